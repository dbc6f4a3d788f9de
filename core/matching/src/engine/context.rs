//! Numbers the events of the command being applied, and passes them to the listener.

use tickpath_types::{
    ClientOrderId, InstrumentId, MarketEvent, MarketEventKind, MatchId, OrderEvent, OrderEventKind, OrderId,
    RejectReason, Sequence, SessionId, UserRefNum,
};

use crate::{Command, EngineCounters, EventListener};

/// The sequence numbers and ids that the engine used last, and its counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) last_command: Sequence,
    pub(super) last_market: Sequence,
    pub(super) last_order_id: OrderId,
    pub(super) last_match_id: MatchId,
    pub(super) counters: EngineCounters,
}

/// The command being applied, the listener for its events, and the engine's progress.
pub(super) struct Context<'a, L> {
    pub(super) command: &'a Command,
    pub(super) out: &'a mut L,
    pub(super) progress: &'a mut Progress,
}

impl<L: EventListener> Context<'_, L> {
    /// A context for a call out of line. Passing the caller's own would force it into memory, also for the
    /// commands that make no such call.
    #[inline(always)]
    pub(super) const fn reborrow(&mut self) -> Context<'_, L> {
        Context { command: self.command, out: self.out, progress: self.progress }
    }

    /// Sends the command's first response to the session that sent the command.
    #[inline]
    pub(super) fn reply(&mut self, kind: OrderEventKind) {
        self.report(self.command.session, true, kind);
    }

    /// Sends an order event to `session`. `is_reply` is true for the first response to the command.
    #[inline]
    pub(super) fn report(&mut self, session: SessionId, is_reply: bool, kind: OrderEventKind) {
        let Command { sequence, ts, .. } = *self.command;
        self.out.on_order_event(&OrderEvent { command: sequence, session, ts, is_reply, kind });
    }

    #[cold]
    pub(super) fn reject(
        &mut self,
        user_ref: UserRefNum,
        reason: RejectReason,
        client_order_id: ClientOrderId,
    ) {
        self.progress.counters.rejected += 1;
        self.reply(OrderEventKind::Rejected { user_ref, reason, client_order_id });
    }

    /// Publishes a market event under the next sequence number.
    #[inline]
    pub(super) fn publish(&mut self, instrument: InstrumentId, kind: MarketEventKind) {
        let sequence = self.progress.last_market.next();
        self.progress.last_market = sequence;
        let Command { sequence: command, ts, .. } = *self.command;
        self.out.on_market_event(&MarketEvent { sequence, command, ts, instrument, kind });
    }

    #[inline]
    pub(super) fn ignore(&mut self) {
        self.progress.counters.ignored += 1;
    }

    #[inline]
    pub(super) fn next_order_id(&mut self) -> OrderId {
        self.progress.last_order_id.0 += 1;
        self.progress.last_order_id
    }
}

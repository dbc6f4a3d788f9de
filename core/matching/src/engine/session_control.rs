//! Commands about a session as a whole: its rules, kill switches, order entry, and mass cancels.

use tickpath_book::OrderBooks;
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, ClientOrderId, InstrumentId, MassCancel, OrderEventKind, RejectReason, SelfTradePrevention,
    SessionId, SetOrderEntry,
};

use super::Engine;
use super::context::Context;
use super::owner::Owner;
use super::sessions::SessionRules;
use crate::EventListener;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Changes the rules of a session, if it exists.
    #[cold]
    pub(super) fn set_rules(&mut self, session: SessionId, change: impl FnOnce(&mut SessionRules)) -> bool {
        let is_known = self.sessions.set_rules(session, change);
        self.counters.ignored += u64::from(!is_known);
        is_known
    }

    /// The latest [`CommandKind::SetSelfTradePrevention`](crate::CommandKind::SetSelfTradePrevention) of a session: the
    /// strategy and the account. `None` for a session beyond the limit.
    #[must_use]
    pub fn self_trade_prevention(&self, session: SessionId) -> Option<(SelfTradePrevention, SessionId)> {
        self.sessions.rules.get(usize::from(session.0)).map(|rules| (rules.prevention, rules.account))
    }

    #[cold]
    pub(super) fn kill_session(&mut self, is_killed: bool, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        if self.set_rules(session, |rules| rules.is_killed = is_killed) && is_killed {
            failpoint!(KillKeepsOrders => return);
            self.cancel_all(session, CancelReason::Supervisory, context);
        }
    }

    #[cold]
    pub(super) fn kill_venue(&mut self, is_killed: bool, context: &mut Context<'_, impl EventListener>) {
        self.sessions.set_killed(is_killed);
        if is_killed {
            for session in (0..self.limits.max_sessions).map(SessionId) {
                self.cancel_some(session, false, CancelReason::Supervisory, context, |_, _| true);
            }
        }
    }

    /// Disables or enables the session's order entry, as it asks.
    #[cold]
    pub(super) fn set_order_entry(
        &mut self,
        request: &SetOrderEntry,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let session = context.command.session;
        match self.use_number(session, request.user_ref) {
            Ok(None) => {}
            Ok(Some(_)) => {
                self.set_rules(session, |rules| rules.is_disabled = !request.is_enabled);
                context.reply(OrderEventKind::OrderEntrySet(*request));
            }
            Err(reason) => self.reject(request.user_ref, reason, ClientOrderId::default(), context),
        }
    }

    /// Cancels the session's orders of one instrument or all, of one side or both, in the order of entry.
    #[cold]
    pub(super) fn mass_cancel(
        &mut self,
        request: &MassCancel,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let MassCancel { user_ref, instrument, side, .. } = *request;
        let session = context.command.session;
        let checked = match self.use_number(session, user_ref) {
            Ok(None) => return,
            Ok(Some(_)) if instrument == InstrumentId(0) || self.listing(instrument).is_some() => Ok(()),
            Ok(Some(_)) => Err(RejectReason::UnknownInstrument),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = checked {
            return self.reject(user_ref, reason, ClientOrderId::default(), context);
        }
        context.reply(OrderEventKind::MassCanceled(*request));
        self.cancel_some(session, false, CancelReason::User, context, |engine, handle| {
            let (of_instrument, of_side) = engine.resting.place_of(handle);
            (instrument == InstrumentId(0) || of_instrument == instrument)
                && side.is_none_or(|side| of_side == side)
        });
    }
}

//! The engine: routes commands to the parts that execute them.
//!
//! [`orders::OpenOrders`] holds the open orders; [`matcher::Matcher`] matches incoming orders with them.

mod context;
mod enter;
mod executions;
mod grid;
mod listing;
mod look_ahead;
mod mass_cancel;
mod matcher;
mod order_checks;
mod orders;
mod owner;
mod phases;
mod reduce;
mod sessions;
mod snapshot;
mod special;
mod stops;

pub use look_ahead::LOOK_AHEAD_LEN;
pub use owner::Owner;

use tickpath_book::{OrderBooks, OrderHandle};
use tickpath_types::{
    CrossKind, Imbalance, Instrument, InstrumentId, MarketEventKind, OrderRequest, Qty, SelfTradePrevention,
    Sequence, SessionId, TradingState, UserRefNum,
};

use self::context::{Context, Progress};
use self::executions::Executions;
use self::listing::Listing;
use self::look_ahead::{GROUP_LEN, LookAhead, Step};
use self::matcher::Matcher;
use self::orders::OpenOrders;
use crate::limits::check_instrument;
use crate::{Command, CommandKind, EngineCounters, EngineError, EngineLimits, EventListener};

/// Price-time matching of all instruments: a pure function from commands to events.
///
/// Reads no clock and allocates nothing after creation. The same commands give the same events and the
/// same [`Engine::state_hash`] with any implementation `B` of the books.
#[derive(Clone, Debug)]
pub struct Engine<B> {
    matcher: Matcher<B>,
    progress: Progress,
    /// Sequence number of the last command for which memory was prefetched; no part of the state.
    prefetched: Sequence,
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// An engine with empty books, every instrument halted.
    ///
    /// # Errors
    /// [`EngineError`] when the instruments' definitions are invalid.
    pub fn new(instruments: &[Instrument], limits: EngineLimits) -> Result<Engine<B>, EngineError> {
        let mut engine = Engine::untouched(instruments, limits)?;
        engine.prefault();
        Ok(engine)
    }

    /// As [`Engine::new`], but does not touch the memory: a command may cause page faults until
    /// [`prefault`](Self::prefault) is called, and an engine without orders occupies hardly any memory.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn untouched(instruments: &[Instrument], limits: EngineLimits) -> Result<Engine<B>, EngineError> {
        let greatest = instruments.iter().map(|instrument| instrument.id).max().unwrap_or(InstrumentId(0));
        let max_instrument = greatest.max(InstrumentId(limits.max_instruments));
        let mut orders = OpenOrders::untouched(max_instrument, limits);
        for instrument in instruments {
            check_instrument(instrument, &limits)?;
            if !orders.listings.add(Listing::new(*instrument)) {
                return Err(EngineError::InstrumentId(instrument.id));
            }
        }
        let executions = Executions::new(limits.max_recent_executions);
        let matcher = Matcher { orders, executions };
        Ok(Engine { matcher, progress: Progress::default(), prefetched: Sequence(0) })
    }

    /// Touches all memory that has not been touched yet.
    pub fn prefault(&mut self) {
        self.matcher.orders.prefault();
    }

    /// Applies one command; `out` receives its events before this returns.
    #[inline]
    pub fn apply(&mut self, command: &Command, out: &mut impl EventListener) {
        let Engine { matcher, progress, .. } = self;
        progress.last_command = command.sequence;
        progress.counters.commands += 1;
        let mut context = Context { command, out, progress };
        // Nearly all commands are one of these two kinds; two tests are cheaper than a jump through a table.
        if let CommandKind::Order(OrderRequest::Enter(order)) = &command.kind {
            matcher.enter(order, &mut context);
        } else if let CommandKind::Order(OrderRequest::Cancel(request)) = &command.kind {
            matcher.orders.cancel(request, &mut context);
        } else {
            apply_other(matcher, &mut context.reborrow());
        }
    }

    /// Records the sequence number of a log command that only the venue interprets: the state hash covers it.
    #[cold]
    pub fn skip(&mut self, sequence: Sequence) {
        self.progress.last_command = sequence;
        self.progress.counters.commands += 1;
    }

    /// The books of displayed orders.
    #[must_use]
    pub fn books(&self) -> &B {
        &self.matcher.orders.books
    }

    /// Definition of an instrument; `None` if it is unknown.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.matcher.orders.listings.find(id).map(|listing| &listing.instrument)
    }

    /// Trading state of an instrument; `None` if it is unknown.
    #[must_use]
    pub fn trading_state(&self, id: InstrumentId) -> Option<TradingState> {
        self.matcher.orders.listings.find(id).map(|listing| listing.state)
    }

    /// Handle of the displayed part of the session's open order `user_ref`; `None` if no part is displayed.
    #[must_use]
    pub fn find_order(&self, session: SessionId, user_ref: UserRefNum) -> Option<OrderHandle> {
        self.matcher.orders.displayed_part(session, user_ref)
    }

    /// Executed and open quantity of the session's open order `user_ref`, displayed or not.
    #[must_use]
    pub fn open_qty(&self, session: SessionId, user_ref: UserRefNum) -> Option<(Qty, Qty)> {
        let open = self.matcher.orders.open_order(session, user_ref)?;
        Some((Qty(open.executed), open.leaves))
    }

    /// Expiry times of open orders, in seconds since midnight, unordered.
    pub fn expire_times(&self) -> impl Iterator<Item = u32> {
        self.matcher
            .orders
            .specials
            .iter()
            .map(|(_, it)| it.instructions().expire_at)
            .filter(|second| *second != 0)
    }

    /// Number of open orders of all sessions, whether they are displayed, hidden or wait for a stop price.
    #[must_use]
    pub fn open_order_count(&self) -> u64 {
        self.matcher.orders.sessions.open_order_count()
    }

    /// The books of undisplayed resting quantity: hidden orders, and reserves of orders displayed in parts.
    #[must_use]
    pub fn hidden_books(&self) -> &B {
        &self.matcher.orders.hidden
    }

    /// The indicative result of a cross of an instrument; `None` for an unknown instrument.
    ///
    /// The price is the one with the largest volume; among several, the one with the smallest imbalance;
    /// among several, the one nearest to the last trade's price, or to the instrument's reference price when
    /// there was no trade. All resting orders take part, displayed or not; orders that wait for a stop price
    /// do not. Walks the crossed part of the book.
    #[must_use]
    pub fn indicative(&self, instrument: InstrumentId, kind: CrossKind) -> Option<Imbalance> {
        self.matcher.indicative(instrument, kind)
    }

    /// A session's self-trade prevention strategy and account, as last set. `None` for an unknown session.
    #[must_use]
    pub fn self_trade_prevention(&self, session: SessionId) -> Option<(SelfTradePrevention, SessionId)> {
        let rules = self.matcher.orders.sessions.rules.get(usize::from(session.0))?;
        Some((rules.prevention, rules.account))
    }

    /// The session's greatest `UserRefNum` so far, 0 before the first; the next one must be greater.
    #[must_use]
    pub fn last_user_ref(&self, session: SessionId) -> UserRefNum {
        self.matcher.orders.sessions.find(session).map_or(UserRefNum(0), |session| session.last_user_ref)
    }

    /// Sequence number of the last command applied or skipped.
    #[must_use]
    pub fn last_command(&self) -> Sequence {
        self.progress.last_command
    }

    /// Sequence number of the last market event published.
    #[must_use]
    pub fn last_market(&self) -> Sequence {
        self.progress.last_market
    }

    /// The limits given at creation or restoration.
    #[must_use]
    pub fn limits(&self) -> &EngineLimits {
        &self.matcher.orders.limits
    }

    /// Counters of the engine's work.
    #[must_use]
    pub fn counters(&self) -> &EngineCounters {
        &self.progress.counters
    }

    /// Applies the commands in order, like [`Engine::apply`] for each, but prefetches the memory that they
    /// need.
    pub fn apply_batch(&mut self, commands: &[Command], out: &mut impl EventListener) {
        self.apply_batch_before(commands, &[], out);
    }

    /// As [`Engine::apply_batch`], and prefetches memory for `next`, the waiting commands that will be applied
    /// after these, so that no command waits for it. `next` has no other effect.
    pub fn apply_batch_before(
        &mut self,
        commands: &[Command],
        next: &[Command],
        out: &mut impl EventListener,
    ) {
        // The commands for small books are one group, since there is nothing to prefetch.
        let group_len = if self.matcher.orders.exceeds_cache() { GROUP_LEN } else { usize::MAX };
        let mut groups = commands.chunks(group_len).peekable();
        let is_prefetched = commands.first().is_some_and(|first| first.sequence <= self.prefetched);
        if let Some(first) = groups.peek().filter(|_| !is_prefetched) {
            self.look_ahead(*first);
        }
        let next = &next[..next.len().min(GROUP_LEN)];
        let mut ahead = LookAhead::NONE;
        while let Some(group) = groups.next() {
            let following = groups.peek().copied().unwrap_or(next);
            let mut rest = group;
            // Each step has the commands of a part to overlap with.
            for (step, len) in [(Step::Index, 5), (Step::Orders, 6), (Step::Neighbours, usize::MAX)] {
                ahead.take(step, following, &self.matcher.orders);
                let part;
                (part, rest) = rest.split_at(len.min(rest.len()));
                for command in part {
                    self.apply(command, out);
                }
            }
        }
        self.prefetched = next.last().map_or(Sequence(0), |last| last.sequence);
    }

    /// Prefetches the open orders that the first [`LOOK_AHEAD_LEN`] of these commands name, then each order's
    /// queue neighbours and level. Changes no state. Callers that cannot use [`Engine::apply_batch`], because
    /// they do other work between commands, call this before `apply`.
    ///
    /// Does nothing while few orders are open. A prefetch is wasted if an earlier command of the batch removes
    /// the order.
    pub fn look_ahead<'a>(&self, commands: impl IntoIterator<Item = &'a Command>) {
        let mut ahead = LookAhead::NONE;
        if self.matcher.orders.exceeds_cache() {
            ahead.name(commands);
            ahead.find(&self.matcher.orders);
            ahead.prefetch_neighbours(&self.matcher.orders);
        }
    }
}

/// Applies a command other than a new order or a cancel.
#[inline(never)]
fn apply_other<B: OrderBooks<Owner>>(matcher: &mut Matcher<B>, context: &mut Context<impl EventListener>) {
    match &context.command.kind {
        CommandKind::Order(OrderRequest::Replace(request)) => matcher.replace(request, context),
        CommandKind::Order(OrderRequest::Modify(request)) => matcher.orders.modify(request, context),
        CommandKind::Order(OrderRequest::MassCancel(request)) => matcher.orders.mass_cancel(request, context),
        CommandKind::Order(OrderRequest::SetOrderEntry(request)) => {
            matcher.orders.set_order_entry(request, context)
        }
        CommandKind::CancelAll { reason } => matcher.orders.cancel_all(*reason, context),
        CommandKind::GatewayReject { user_ref, reason, client_order_id } => {
            matcher.reject_for_gateway(*user_ref, *reason, *client_order_id, context);
        }
        CommandKind::AccountQuery => {
            let session = matcher.orders.sessions.find(context.command.session);
            let last = session.map_or(0, |session| session.last_user_ref.0);
            context.out.on_query_answer(context.command, UserRefNum(last.wrapping_add(1)));
        }
        CommandKind::System(code) => {
            context.publish(InstrumentId(0), MarketEventKind::System(*code));
            context.out.on_session_phase(context.command, *code);
        }
        CommandKind::OpenInstrument { instrument, state } => {
            matcher.open_instrument(*instrument, *state, context);
        }
        CommandKind::SetTradingState { instrument, state } => {
            matcher.set_trading_state(*instrument, *state, context);
        }
        _ => apply_rare(matcher, context),
    }
}

/// Applies a command of a rare kind, whose latency does not matter.
#[cold]
#[inline(never)]
fn apply_rare<B: OrderBooks<Owner>>(matcher: &mut Matcher<B>, context: &mut Context<impl EventListener>) {
    match context.command.kind {
        CommandKind::Uncross { instrument, kind, state } => matcher.uncross(instrument, kind, state, context),
        CommandKind::PublishImbalance { instrument, kind } => {
            matcher.publish_imbalance(instrument, kind, context);
        }
        CommandKind::SetPriceBand { instrument, reference, width } => {
            matcher.set_price_band(instrument, reference, width, context);
        }
        CommandKind::AddInstrument(instrument) => {
            if !matcher.orders.add_instrument(&instrument) {
                context.ignore();
            }
        }
        CommandKind::SuspendInstrument { instrument } => {
            matcher.orders.suspend_instrument(instrument, context)
        }
        CommandKind::BreakTrade { match_id, reason } => {
            matcher.executions.break_trade(match_id, reason, context)
        }
        CommandKind::ExpireOrders => matcher.orders.expire_orders(context),
        CommandKind::EndDay => {
            matcher.executions.clear();
            matcher.orders.end_day(context);
        }
        CommandKind::SetLimits { open_orders, order_qty, order_notional } => {
            matcher.orders.set_rules(context, |rules| {
                rules.max_open_orders = open_orders;
                rules.max_qty = order_qty;
                rules.max_notional = order_notional;
            });
        }
        CommandKind::SetSelfTradePrevention { strategy, account } => {
            matcher.orders.set_rules(context, |rules| {
                rules.prevention = strategy;
                rules.account = account;
            });
        }
        CommandKind::Force(order) => matcher.force(&order, context),
        CommandKind::KillSession { is_killed } => matcher.orders.kill_session(is_killed, context),
        CommandKind::KillVenue { is_killed } => matcher.orders.kill_venue(is_killed, context),
        _ => unreachable!("the caller applies the other kinds"),
    }
}

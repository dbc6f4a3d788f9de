//! The engine: it owns resting orders, instruments, sessions and executions, and routes commands and events.

mod auction;
mod cancel;
mod context;
mod day;
mod enter;
mod executions;
mod grid;
mod listing;
mod look_ahead;
mod owner;
mod reduce;
mod replace;
mod resting;
mod session_control;
mod sessions;
mod snapshot;
mod snapshot_special;
mod special;
mod stops;
mod terms;
mod trigger;
mod venue;
mod working;

pub use look_ahead::LOOK_AHEAD_LEN;
pub use owner::Owner;

use tickpath_book::{OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    ClientOrderId, Instrument, InstrumentId, MarketEvent, MarketEventKind, MatchId, OrderEventKind, OrderId,
    OrderRequest, Qty, RejectReason, Sequence, SessionId, TradingState, UserRefNum,
};

use self::context::Context;
use self::executions::Executions;
use self::listing::{Listing, Listings};
use self::owner::order_key;
use self::resting::{Carried, Resting};
use self::sessions::{Session, Sessions};
use crate::limits::check_instrument;
use crate::{Command, CommandKind, EngineCounters, EngineError, EngineLimits, EventListener};

/// Price-time matching of all instruments: a pure function from commands to events.
///
/// Reads no clock and allocates nothing after creation. The same commands give the same events and the
/// same [`Engine::state_hash`], whatever books `B` it runs on.
#[derive(Clone, Debug)]
pub struct Engine<B> {
    limits: EngineLimits,
    resting: Resting<B>,
    listings: Listings,
    sessions: Sessions,
    executions: Executions,
    /// Room for lists of orders, and of parts of orders, within a command; empty between commands.
    scratch: Vec<(u64, OrderHandle)>,
    carried: Vec<Carried>,
    last_command: Sequence,
    last_market: Sequence,
    last_order_id: OrderId,
    last_match_id: MatchId,
    counters: EngineCounters,
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// An engine with empty books, every instrument halted.
    ///
    /// # Errors
    /// [`EngineError`] when the instruments' definitions cannot be computed with.
    pub fn new(instruments: &[Instrument], limits: EngineLimits) -> Result<Engine<B>, EngineError> {
        let mut engine = Engine::untouched(instruments, limits)?;
        engine.prefault();
        Ok(engine)
    }

    /// The same whose memory is touched as it comes into use, or by [`prefault`](Self::prefault): a command may then cost a
    /// page fault, and an engine without orders costs next to nothing.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn untouched(instruments: &[Instrument], limits: EngineLimits) -> Result<Engine<B>, EngineError> {
        let greatest = instruments.iter().map(|instrument| instrument.id).max().unwrap_or(InstrumentId(0));
        let max_instrument = greatest.max(InstrumentId(limits.max_instruments));
        let mut listings = Listings::new(max_instrument);
        for instrument in instruments {
            check_instrument(instrument, &limits)?;
            if !listings.add(Listing::new(*instrument)) {
                return Err(EngineError::InstrumentId { instrument: instrument.id });
            }
        }
        let max_special = limits.max_special_orders as usize;
        Ok(Engine {
            limits,
            resting: Resting::untouched(max_instrument, &limits),
            listings,
            sessions: Sessions::new(&limits),
            executions: Executions::new(limits.max_recent_executions),
            scratch: Vec::with_capacity(max_special),
            carried: Vec::with_capacity(2 * max_special),
            last_command: Sequence(0),
            last_market: Sequence(0),
            last_order_id: OrderId(0),
            last_match_id: MatchId(0),
            counters: EngineCounters::default(),
        })
    }

    /// Touches all memory that is not yet.
    pub fn prefault(&mut self) {
        self.resting.prefault();
    }

    /// Applies one command; its events go to `out` before this returns.
    #[inline]
    pub fn apply(&mut self, command: &Command, out: &mut impl EventListener) {
        self.last_command = command.sequence;
        self.counters.commands += 1;
        let mut context = Context { command, out };
        // Nearly all commands are one of these two; two tests are cheaper than a jump through a table.
        if let CommandKind::Order(OrderRequest::Enter(order)) = &command.kind {
            self.enter(order, &mut context);
        } else if let CommandKind::Order(OrderRequest::Cancel(request)) = &command.kind {
            self.cancel(request, &mut context);
        } else {
            self.apply_other(&mut context);
        }
    }

    /// Takes note of a command of the log that is not the engine's: the state hash covers the sequence of the last command.
    #[cold]
    pub fn skip(&mut self, sequence: Sequence) {
        self.last_command = sequence;
        self.counters.commands += 1;
    }

    #[inline(never)]
    fn apply_other(&mut self, context: &mut Context<'_, impl EventListener>) {
        match &context.command.kind {
            CommandKind::Order(OrderRequest::Enter(order)) => self.enter(order, context),
            CommandKind::Order(OrderRequest::Cancel(request)) => self.cancel(request, context),
            CommandKind::Order(OrderRequest::Replace(request)) => self.replace(request, context),
            CommandKind::Order(OrderRequest::Modify(request)) => self.modify(request, context),
            CommandKind::Order(OrderRequest::MassCancel(request)) => self.mass_cancel(request, context),
            CommandKind::Order(OrderRequest::SetOrderEntry(request)) => {
                self.set_order_entry(request, context)
            }
            CommandKind::CancelAll { reason } => self.cancel_all(context.command.session, *reason, context),
            CommandKind::Refuse { user_ref, reason, client_order_id } => {
                self.refuse(*user_ref, *reason, *client_order_id, context);
            }
            CommandKind::AccountQuery => {
                let last = self.last_user_ref(context.command.session);
                context.out.on_query_answer(context.command, UserRefNum(last.0.wrapping_add(1)));
            }
            CommandKind::System(code) => {
                self.publish(InstrumentId(0), MarketEventKind::System(*code), context);
                context.out.on_stage(context.command, *code);
            }
            CommandKind::OpenInstrument { instrument, state } => {
                self.open_instrument(*instrument, *state, context);
            }
            CommandKind::SetTradingState { instrument, state } => {
                self.set_trading_state(*instrument, *state, context);
            }
            _ => self.apply_rare(context),
        }
    }

    /// What a venue does seldom, and never while a client waits for it.
    #[cold]
    #[inline(never)]
    fn apply_rare(&mut self, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        match context.command.kind {
            CommandKind::Uncross { instrument, kind, state } => {
                self.uncross(instrument, kind, state, context)
            }
            CommandKind::PublishImbalance { instrument, kind } => {
                self.publish_imbalance(instrument, kind, context);
            }
            CommandKind::SetPriceBand { instrument, reference, width } => {
                self.set_price_band(instrument, reference, width, context);
            }
            CommandKind::AddInstrument(instrument) => self.add_instrument(&instrument),
            CommandKind::SuspendInstrument { instrument } => self.suspend_instrument(instrument, context),
            CommandKind::BreakTrade { match_id, reason } => self.break_trade(match_id, reason, context),
            CommandKind::ExpireOrders => self.expire_orders(context),
            CommandKind::EndDay => self.end_day(context),
            CommandKind::SetLimits { open_orders, order_qty, order_notional } => {
                self.set_rules(session, |rules| {
                    rules.max_open_orders = open_orders;
                    rules.max_qty = order_qty;
                    rules.max_notional = order_notional;
                });
            }
            CommandKind::SetSelfTradePrevention { strategy, account } => {
                self.set_rules(session, |rules| {
                    rules.prevention = strategy;
                    rules.account = account;
                });
            }
            CommandKind::Force(order) => self.force(&order, context),
            CommandKind::KillSession { is_killed } => self.kill_session(is_killed, context),
            CommandKind::KillVenue { is_killed } => self.kill_venue(is_killed, context),
            _ => unreachable!("the caller applies the other kinds"),
        }
    }

    /// The books.
    #[must_use]
    pub fn books(&self) -> &B {
        &self.resting.books
    }

    /// The definition of an instrument.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.listing(id).map(|listing| &listing.instrument)
    }

    /// Whether an instrument trades.
    #[must_use]
    pub fn trading_state(&self, id: InstrumentId) -> Option<TradingState> {
        self.listing(id).map(|listing| listing.state)
    }

    /// What of the open order that a session has under this number is displayed; `None` when nothing is.
    #[must_use]
    pub fn find_order(&self, session: SessionId, user_ref: UserRefNum) -> Option<OrderHandle> {
        self.resting.displayed_part(session, user_ref)
    }

    /// What the open order that a session has under this number has executed and has left, displayed or not.
    #[must_use]
    pub fn open_qty(&self, session: SessionId, user_ref: UserRefNum) -> Option<(Qty, Qty)> {
        self.resting.open_order(session, user_ref).map(|open| (Qty(open.executed), open.leaves))
    }

    /// When open orders expire, in seconds since midnight, in no order.
    pub fn expire_times(&self) -> impl Iterator<Item = u32> {
        self.resting.specials.iter().map(|(_, order)| order.terms.expire_at).filter(|second| *second != 0)
    }

    /// Open orders of all sessions, whether they are displayed, hidden or wait for a stop price.
    #[must_use]
    pub fn open_order_count(&self) -> u64 {
        self.sessions.open_order_count()
    }

    /// What rests and is not displayed, by the price at which it would trade.
    #[must_use]
    pub fn hidden_books(&self) -> &B {
        &self.resting.hidden
    }

    /// The greatest number that a session has used for an order, 0 when none: its next must be greater.
    #[must_use]
    pub fn last_user_ref(&self, session: SessionId) -> UserRefNum {
        self.sessions.find(session).map_or(UserRefNum(0), |session| session.last_user_ref)
    }

    /// Sequence of the last command applied or skipped.
    #[must_use]
    pub fn last_command(&self) -> Sequence {
        self.last_command
    }

    /// Sequence of the last market event published.
    #[must_use]
    pub fn last_market(&self) -> Sequence {
        self.last_market
    }

    /// The bounds.
    #[must_use]
    pub fn limits(&self) -> &EngineLimits {
        &self.limits
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &EngineCounters {
        &self.counters
    }

    /// Digest (XXH3, 64 bits) of everything that later events depend on. Walks all books.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        let books: &[&B] = &[&self.resting.books, &self.resting.hidden, &self.resting.stops.books];
        failpoint!(StateHashIgnoresHidden: books = &books[..1]);
        for &books in books {
            hasher.update(&hash_of(books).to_le_bytes());
        }
        for counter in [self.last_command.0, self.last_market.0, self.last_order_id.0, self.last_match_id.0] {
            hasher.update(&counter.to_le_bytes());
        }
        for listing in self.listings.iter() {
            hasher.update(&listing.instrument.id.0.to_le_bytes());
            hasher.update(&[listing.state as u8]);
            for price in [listing.last_price, listing.band_reference, listing.band_width] {
                hasher.update(&price.0.to_le_bytes());
            }
        }
        self.sessions.hash(&mut hasher);
        self.resting.specials.hash(&mut hasher);
        self.executions.hash(self.last_match_id, &mut hasher);
        hasher.digest()
    }

    #[inline]
    fn listing(&self, id: InstrumentId) -> Option<&Listing> {
        self.listings.find(id)
    }

    /// Numbers a public event and hands it out.
    #[inline]
    fn publish(
        &mut self,
        instrument: InstrumentId,
        kind: MarketEventKind,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.last_market = self.last_market.next();
        let Command { sequence, ts, .. } = *context.command;
        let event = MarketEvent { sequence: self.last_market, command: sequence, ts, instrument, kind };
        context.out.on_market_event(&event);
    }

    /// Uses up a number for a new order, and returns its session. `None` when the request must be dropped: its
    /// number is not above all earlier ones of the session, so it was sent again.
    #[inline]
    fn use_number(&mut self, id: SessionId, user_ref: UserRefNum) -> Result<Option<Session>, RejectReason> {
        match self.sessions.use_number(id, user_ref) {
            Ok(None) => self.check_used_number(id, user_ref),
            used => used,
        }
    }

    /// A session without a number left learns it from the answer to any further order. The answer never carries the number
    /// of an open order, which it would seem to reject.
    #[cold]
    fn check_used_number(
        &mut self,
        id: SessionId,
        user_ref: UserRefNum,
    ) -> Result<Option<Session>, RejectReason> {
        let is_exhausted = self.last_user_ref(id).0 == u32::MAX;
        if is_exhausted && self.resting.index.find(order_key(id, user_ref)).is_none() {
            return Err(RejectReason::UserRefsExhausted);
        }
        self.counters.duplicates += 1;
        Ok(None)
    }

    #[cold]
    fn reject(
        &mut self,
        user_ref: UserRefNum,
        reason: RejectReason,
        client_order_id: ClientOrderId,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.counters.rejected += 1;
        context.reply(OrderEventKind::Rejected { user_ref, reason, client_order_id });
    }

    /// Answers a new order that the door refused. A number that is not new is that of an order, which the answer
    /// would seem to kill, so it gets none.
    #[cold]
    fn refuse(
        &mut self,
        user_ref: UserRefNum,
        reason: RejectReason,
        client_order_id: ClientOrderId,
        context: &mut Context<'_, impl EventListener>,
    ) {
        match self.use_number(context.command.session, user_ref) {
            Ok(None) => {}
            Ok(Some(_)) => self.reject(user_ref, reason, client_order_id, context),
            Err(reason) => self.reject(user_ref, reason, client_order_id, context),
        }
    }
}

/// Digest of books and of what is kept with their orders.
fn hash_of<B: OrderBooks<Owner>>(books: &B) -> u64 {
    tickpath_book::state_hash(books, |hasher, order| {
        hasher.update(&order.data.executed.to_le_bytes());
        hasher.update(&order.data.user_ref.0.to_le_bytes());
        hasher.update(&order.data.session.0.to_le_bytes());
        hasher.update(&[order.data.capacity, order.data.cross_type]);
    })
}

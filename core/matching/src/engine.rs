//! The engine: state, dispatch, and what everything in it shares.

mod cancel;
mod enter;
mod look_ahead;
mod replace;

pub use look_ahead::LOOK_AHEAD_LEN;

use tickpath_book::{BookLimits, IndexLimits, OrderBooks, OrderHandle, OrderIndex};
use tickpath_types::{
    ClientOrderId, Instrument, InstrumentId, MarketEvent, MarketEventKind, MatchId, OrderEvent,
    OrderEventKind, OrderId, OrderRequest, RejectReason, Sequence, SessionId, TradingState, UserRefNum,
};

use crate::limits::check_instrument;
use crate::{Command, CommandKind, EngineCounters, EngineError, EngineLimits, EventListener};

/// Whose a resting order is, kept beside it in the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// What the order and those that it replaced have executed; with its quantity, its intended size.
    pub executed: u64,
    /// The session's number of it.
    pub user_ref: UserRefNum,
    /// The session.
    pub session: SessionId,
    /// OUCH Capacity, which an order that replaces it takes over.
    pub capacity: u8,
    /// OUCH CrossType, likewise.
    pub cross_type: u8,
}

// Four orders' owners fill a cache line.
const _: () = assert!(size_of::<Owner>() == 16);

/// Price-time matching of all instruments: a pure function from commands to events.
///
/// Reads no clock and allocates nothing after creation. The same commands give the same events and the
/// same [`Engine::state_hash`], whatever books `B` it runs on.
#[derive(Clone, Debug)]
pub struct Engine<B> {
    limits: EngineLimits,
    books: B,
    /// By instrument id; `None` where there is no such instrument.
    instruments: Vec<Option<Listing>>,
    sessions: Vec<Session>,
    /// Open orders by [`order_key`].
    index: OrderIndex,
    last_command: Sequence,
    last_market: Sequence,
    last_order_id: OrderId,
    last_match_id: MatchId,
    counters: EngineCounters,
}

/// An instrument and its state.
#[derive(Clone, Copy, Debug)]
struct Listing {
    instrument: Instrument,
    state: TradingState,
}

#[derive(Clone, Copy, Debug, Default)]
struct Session {
    last_user_ref: UserRefNum,
    open_orders: u32,
}

/// The command at hand and where its events go.
struct Context<'a, L> {
    command: &'a Command,
    out: &'a mut L,
}

impl<L: EventListener> Context<'_, L> {
    /// The first answer to the session that sent the command.
    #[inline]
    fn reply(&mut self, kind: OrderEventKind) {
        self.tell(self.command.session, true, kind);
    }

    /// Tells any session what happened to its order.
    #[inline]
    fn tell(&mut self, session: SessionId, is_reply: bool, kind: OrderEventKind) {
        let Command { sequence, ts, .. } = *self.command;
        self.out.on_order_event(&OrderEvent { command: sequence, session, ts, is_reply, kind });
    }
}

/// One key space for all sessions: a block of 2^32 numbers for each.
#[inline]
fn order_key(session: SessionId, user_ref: UserRefNum) -> u64 {
    u64::from(session.0) << 32 | u64::from(user_ref.0)
}

/// The session's number in an [`order_key`].
#[inline]
fn user_ref_of(key: u64) -> UserRefNum {
    UserRefNum(key as u32)
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// An engine with empty books, every instrument halted.
    ///
    /// # Errors
    /// [`EngineError`] when the instruments' definitions cannot be computed with.
    pub fn new(instruments: &[Instrument], limits: EngineLimits) -> Result<Engine<B>, EngineError> {
        let max_instrument =
            instruments.iter().map(|instrument| instrument.id).max().unwrap_or(InstrumentId(0));
        let mut listings = vec![None; usize::from(max_instrument.0) + 1];
        for instrument in instruments {
            check_instrument(instrument, &limits)?;
            let listing = &mut listings[usize::from(instrument.id.0)];
            if instrument.id.0 == 0 || listing.is_some() {
                return Err(EngineError::InstrumentId { instrument: instrument.id });
            }
            *listing = Some(Listing { instrument: *instrument, state: TradingState::Halted });
        }
        let index = IndexLimits {
            blocks: u32::from(limits.max_sessions),
            max_pages: limits.max_index_pages,
            max_pages_per_block: limits.max_index_pages_per_session,
            // Clients choose their numbers, and would choose those that collide.
            max_hashed: 0,
        };
        Ok(Engine {
            limits,
            books: B::new(BookLimits::new(max_instrument, limits.max_open_orders)),
            instruments: listings,
            sessions: vec![Session::default(); usize::from(limits.max_sessions)],
            index: OrderIndex::with_base(index, 0),
            last_command: Sequence(0),
            last_market: Sequence(0),
            last_order_id: OrderId(0),
            last_match_id: MatchId(0),
            counters: EngineCounters::default(),
        })
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

    #[inline(never)]
    fn apply_other(&mut self, context: &mut Context<'_, impl EventListener>) {
        match &context.command.kind {
            CommandKind::Order(OrderRequest::Enter(order)) => self.enter(order, context),
            CommandKind::Order(OrderRequest::Cancel(request)) => self.cancel(request, context),
            CommandKind::Order(OrderRequest::Replace(request)) => self.replace(request, context),
            CommandKind::Order(OrderRequest::Modify(request)) => self.modify(request, context),
            CommandKind::CancelAll { reason } => self.cancel_all(*reason, context),
            CommandKind::Refuse { user_ref, reason, client_order_id } => {
                self.refuse(*user_ref, *reason, *client_order_id, context);
            }
            CommandKind::AccountQuery => {
                let last = self.last_user_ref(context.command.session);
                context.out.on_query_answer(context.command, UserRefNum(last.0.saturating_add(1)));
            }
            CommandKind::System(code) => {
                self.publish(InstrumentId(0), MarketEventKind::System(*code), context);
            }
            CommandKind::OpenInstrument { instrument, state } => {
                self.open_instrument(*instrument, *state, context);
            }
            CommandKind::SetTradingState { instrument, state } => {
                self.set_trading_state(*instrument, *state, context);
            }
        }
    }

    /// The books.
    #[must_use]
    pub fn books(&self) -> &B {
        &self.books
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

    /// The open order that a session has under this number.
    #[must_use]
    pub fn find_order(&self, session: SessionId, user_ref: UserRefNum) -> Option<OrderHandle> {
        self.index.find(order_key(session, user_ref))
    }

    /// The greatest number that a session has used for an order, 0 when none: its next must be greater.
    #[must_use]
    pub fn last_user_ref(&self, session: SessionId) -> UserRefNum {
        self.sessions.get(usize::from(session.0)).map_or(UserRefNum(0), |session| session.last_user_ref)
    }

    /// Sequence of the last command applied.
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
        let books = tickpath_book::state_hash(&self.books, |hasher, order| {
            hasher.update(&order.data.executed.to_le_bytes());
            hasher.update(&order.data.user_ref.0.to_le_bytes());
            hasher.update(&order.data.session.0.to_le_bytes());
            hasher.update(&[order.data.capacity, order.data.cross_type]);
        });
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&books.to_le_bytes());
        for counter in [self.last_command.0, self.last_market.0, self.last_order_id.0, self.last_match_id.0] {
            hasher.update(&counter.to_le_bytes());
        }
        for listing in self.instruments.iter().flatten() {
            hasher.update(&[listing.state as u8]);
        }
        for session in &self.sessions {
            hasher.update(&session.last_user_ref.0.to_le_bytes());
        }
        hasher.digest()
    }

    #[inline]
    fn listing(&self, id: InstrumentId) -> Option<&Listing> {
        self.instruments.get(usize::from(id.0))?.as_ref()
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

    /// Uses up a number for a new order. False when the request must be dropped: its number is not above
    /// all earlier ones of the session, so it was sent again.
    #[inline]
    fn use_number(&mut self, session: SessionId, user_ref: UserRefNum) -> Result<bool, RejectReason> {
        let session = self.sessions.get_mut(usize::from(session.0)).ok_or(RejectReason::NotAuthorised)?;
        if user_ref <= session.last_user_ref {
            self.counters.duplicates += 1;
            return Ok(false);
        }
        session.last_user_ref = user_ref;
        Ok(true)
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
            Ok(false) => {}
            Ok(true) => self.reject(user_ref, reason, client_order_id, context),
            Err(reason) => self.reject(user_ref, reason, client_order_id, context),
        }
    }

    #[cold]
    fn open_instrument(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if self.listing(id).is_none() {
            self.counters.ignored += 1;
            return;
        }
        self.publish(id, MarketEventKind::Directory, context);
        self.set_trading_state(id, state, context);
    }

    fn set_trading_state(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let Some(Some(listing)) = self.instruments.get_mut(usize::from(id.0)) else {
            self.counters.ignored += 1;
            return;
        };
        listing.state = state;
        self.publish(id, MarketEventKind::TradingAction(state), context);
    }
}

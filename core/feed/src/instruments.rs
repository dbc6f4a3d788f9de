//! The books of a feed's instruments and their health, for any protocol.

use tickpath_book::{AddError, BooksById, Order, PrefetchRequest};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, OrderId, Price, PriceLevel, Qty, SIDE_NOT_STATED,
    Sequence, Side, SuspectReason, Symbol, TradingState, UpdateKind,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::line::Line;

/// Receives the effect of each message after it was applied.
pub trait UpdateListener {
    /// False for a listener that needs only the books: no update is built, and `on_update` is not called.
    const WANTS_UPDATES: bool = true;

    /// True for a listener that needs `on_apply` and `on_applied` for each message; disables batches.
    const WANTS_MESSAGES: bool = false;

    /// Reports that a message was applied, or that the health of a book changed.
    fn on_update(&mut self, update: &MarketUpdate);

    /// Reports that a channel is about to handle a packet from `line`.
    #[inline(always)]
    fn on_packet(&mut self, line: Line) {
        let _ = line;
    }

    /// Reports that a channel is about to apply the message of this sequence number to its books.
    #[inline(always)]
    fn on_apply(&mut self, sequence: Sequence) {
        let _ = sequence;
    }

    /// Reports that a channel has applied this message, or holds it for a book that waits for a snapshot.
    #[inline(always)]
    fn on_applied(&mut self, sequence: Sequence) {
        let _ = sequence;
    }
}

/// A listener that ignores updates, for callers that need only the books.
#[derive(Clone, Copy, Debug)]
pub struct IgnoreUpdates;

impl UpdateListener for IgnoreUpdates {
    const WANTS_UPDATES: bool = false;

    #[inline]
    fn on_update(&mut self, _: &MarketUpdate) {}
}

/// The state of one instrument in a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentState {
    /// Symbol of the instrument; `None` until the directory names it.
    pub symbol: Option<Symbol>,
    /// Trading state of the instrument; `None` until one is published.
    pub trading: Option<TradingState>,
    /// Health of the instrument's book.
    pub health: BookHealth,
    /// The reason why the book is [`Suspect`](BookHealth::Suspect); else `None`.
    pub reason: Option<SuspectReason>,
}

/// An instrument that the directory lists under another symbol than expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSymbol {
    /// The instrument's id.
    pub instrument: InstrumentId,
    /// The expected symbol.
    pub expected: Symbol,
    /// The symbol in the directory.
    pub named: Symbol,
}

/// Counters of one book builder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct BuilderCounters {
    /// Messages handled.
    pub messages: u64,
    /// Messages that do not follow the protocol, or do not have the length of their type.
    pub malformed: u64,
    /// Messages of a type that the protocol does not list.
    pub unknown_type: u64,
    /// Messages about an order that is not in the book.
    pub unknown_order: u64,
    /// Adds of an order that is already in the book.
    pub duplicate_order: u64,
    /// Executions or reductions beyond the remaining quantity.
    pub beyond_qty: u64,
    /// Orders beyond the books' limits, and messages with a value that no order can have.
    pub refused: u64,
    /// Orders that crossed a book during trading, and books that were crossed when trading began.
    pub crossed: u64,
    /// Instruments that the directory lists under another symbol than [expected](Instruments::expecting).
    pub other_symbols: u64,
    /// Messages about a symbol index that was never mapped.
    pub unmapped: u64,
    /// Gaps in the sequence numbers of single symbols.
    pub symbol_gaps: u64,
}

/// The effect of one message, without the best prices that result from it.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Time of the event at the venue, since midnight.
    pub ts: Nanos,
    /// The kind of the effect.
    pub kind: UpdateKind,
    /// Id of the order; 0 for none.
    pub order_id: OrderId,
    /// Side of the resting order.
    pub side: Side,
    /// Price of the order or trade.
    pub price: Price,
    /// Quantity added, traded or removed.
    pub qty: Qty,
}

impl Change {
    /// Creates a change that reports only the instrument's status.
    #[must_use]
    pub const fn status(instrument: InstrumentId, ts: Nanos) -> Change {
        let (order_id, price, qty) = (OrderId(0), Price(0), Qty::ZERO);
        Change { instrument, ts, kind: UpdateKind::Status, order_id, side: Side::Buy, price, qty }
    }

    /// Builds the update for the change, with the best prices after it and the health of the book.
    #[inline]
    pub fn update(&self, sequence: u64, books: &impl BooksById, health: BookHealth) -> MarketUpdate {
        let best = |side| {
            let best = books.best(self.instrument, side);
            PriceLevel::of(best.map(|level| (level.price, level.qty)))
        };
        MarketUpdate {
            sequence,
            ts_event: self.ts.0,
            order_id: self.order_id.0,
            price: self.price.0,
            qty: self.qty.0,
            bid: best(Side::Buy),
            ask: best(Side::Sell),
            instrument: self.instrument.0,
            kind: self.kind as u8,
            side: self.side as u8,
            health: health as u8,
            reason: 0,
            trading: 0,
            has_more: 0,
        }
    }
}

/// The books of a feed's instruments, the state of each, and the updates built from both.
///
/// Each protocol's builder decodes messages and uses this type to change and check the books and to report
/// updates. A message begins with [`begin_message`](Self::begin_message) and ends with
/// [`end_message`](Self::end_message). A message that contradicts its book is counted and applied as far as
/// possible. The book becomes [`Suspect`](BookHealth::Suspect) with a [`SuspectReason`]; lost messages make
/// every book [`Stale`](BookHealth::Stale).
pub struct Instruments<B> {
    books: B,
    states: Box<[InstrumentState]>,
    counters: BuilderCounters,
    recovering: bool,
    sequence: Sequence,
    /// The latest instrument for which `refresh_fronts` prefetched.
    refreshed: InstrumentId,
    /// The instrument whose book the current message made less healthy.
    worsened: Option<InstrumentId>,
    /// Number of times that a book became suspect.
    suspected: u64,
    /// Expected symbols of instruments 1, 2 and so on.
    expected: Box<[Symbol]>,
}

/// Id 0, which no instrument has; its state covers all instruments without a book.
const NO_INSTRUMENT: InstrumentId = InstrumentId(0);

/// Number of instruments for which one call of `refresh_fronts` prefetches.
const FRONTS_PER_CALL: usize = 8;

/// Defines functions that count a contradiction and make the book of an instrument suspect.
macro_rules! contradictions {
    ($($(#[$doc:meta])* $visibility:vis $name:ident: $counter:ident, $reason:ident;)*) => {
        $($(#[$doc])*
        #[cold]
        $visibility fn $name(&mut self, id: InstrumentId) {
            self.counters.$counter += 1;
            self.suspect(id, SuspectReason::$reason);
        })*
    };
}

impl<B: BooksById> Instruments<B> {
    /// Creates instruments with empty books.
    #[must_use]
    pub fn new(books: B) -> Instruments<B> {
        let state = InstrumentState { symbol: None, trading: None, health: BookHealth::Live, reason: None };
        let count = usize::from(books.limits().max_instrument.0) + 1;
        Instruments {
            books,
            states: vec![state; count].into_boxed_slice(),
            counters: BuilderCounters::default(),
            recovering: false,
            sequence: Sequence(0),
            refreshed: InstrumentId(0),
            worsened: None,
            suspected: 0,
            expected: Box::default(),
        }
    }

    /// Sets the expected symbols of instruments 1, 2 and so on; later instruments have none.
    ///
    /// Messages identify an instrument only by its id. If the directory lists another symbol, the
    /// instrument's book is [`Suspect`](BookHealth::Suspect) for good: no snapshot or later directory message
    /// changes that.
    #[must_use]
    pub fn expecting(self, symbols: &[Symbol]) -> Instruments<B> {
        Instruments { expected: symbols.into(), ..self }
    }

    /// Begins the processing of the message with this sequence number.
    #[inline(always)]
    pub fn begin_message(&mut self, sequence: Sequence) {
        self.sequence = sequence;
        self.counters.messages += 1;
    }

    /// Counts messages of a group, which [`set_sequence`](Self::set_sequence) begins.
    #[inline(always)]
    pub(crate) const fn count_messages(&mut self, count: usize) {
        self.counters.messages += count as u64;
    }

    /// Begins the processing of a message of a group.
    #[inline(always)]
    pub(crate) const fn set_sequence(&mut self, sequence: Sequence) {
        self.sequence = sequence;
    }

    /// Ends the message; reports the status of the book whose health it reduced, if any.
    #[inline(always)]
    pub fn end_message(&mut self, out: &mut impl UpdateListener) {
        if self.worsened.is_some() {
            self.report_worsened(out);
        }
    }

    #[cold]
    fn report_worsened(&mut self, out: &mut impl UpdateListener) {
        if let Some(id) = self.worsened.take() {
            self.report_status(id, out);
        }
    }

    /// Handles a damaged message about `instrument`, 0 if the message names none: makes the instrument's book
    /// suspect, or every book if there is no such instrument.
    #[cold]
    pub fn handle_malformed(&mut self, instrument: InstrumentId, out: &mut impl UpdateListener) {
        self.counters.malformed += 1;
        if instrument.0 != 0 && self.states.len() > usize::from(instrument.0) {
            self.suspect(instrument, SuspectReason::Malformed);
        } else {
            self.suspect_all(SuspectReason::Malformed, out);
        }
    }

    /// Counts a message of a type that the protocol does not list, and ignores it.
    #[cold]
    pub fn count_unknown_type(&mut self) {
        self.counters.unknown_type += 1;
    }

    /// Makes every book suspect and reports the status of each.
    #[cold]
    pub fn suspect_all(&mut self, reason: SuspectReason, out: &mut impl UpdateListener) {
        self.worsen_all(BookHealth::Suspect, Some(reason), out);
    }

    fn worsen_all(
        &mut self,
        health: BookHealth,
        reason: Option<SuspectReason>,
        out: &mut impl UpdateListener,
    ) {
        for id in self.ids() {
            self.worsen(id, health, reason);
            self.report_status(id, out);
        }
        self.worsened = None;
    }

    /// Returns the valid instrument ids.
    pub fn ids(&self) -> impl Iterator<Item = InstrumentId> + use<B> {
        (1..=self.books.limits().max_instrument.0).map(InstrumentId)
    }

    /// Handles the loss of messages: every book becomes stale.
    pub fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.worsen_all(BookHealth::Stale, None, out);
    }

    /// Handles the loss of messages of one instrument: its book becomes stale.
    #[cold]
    pub fn handle_lost_of(&mut self, id: InstrumentId, out: &mut impl UpdateListener) {
        self.worsen(id, BookHealth::Stale, None);
        self.end_message(out);
    }

    /// Empties the book of an instrument. Its health does not change.
    pub fn clear(&mut self, id: InstrumentId) {
        for side in Side::BOTH {
            while let Some(order) = self.books.front(id, side) {
                self.books.remove(id, order.id);
            }
        }
    }

    /// Returns false after a message about an instrument without a book (beyond the limit, or never mapped),
    /// until [`set_complete`](Self::set_complete) or [`restart`](Self::restart).
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.states[NO_INSTRUMENT.0 as usize].health, BookHealth::Live)
    }

    /// Notes a message about an instrument without a book.
    #[cold]
    pub(crate) fn note_bookless(&mut self) {
        self.suspect(NO_INSTRUMENT, SuspectReason::Refused);
    }

    /// Notes that a snapshot has named every instrument: [`is_complete`](Self::is_complete) is true again.
    pub fn set_complete(&mut self) {
        self.set_health(NO_INSTRUMENT, BookHealth::Live, None);
    }

    /// Sets the health of an instrument's book and the reason. A book under another symbol than expected
    /// stays suspect. Publishes nothing; [`report_status`](Self::report_status) does.
    pub fn set_health(&mut self, id: InstrumentId, health: BookHealth, reason: Option<SuspectReason>) {
        let is_other = self.other_symbol(id).is_some();
        if let Some(state) = self.states.get_mut(usize::from(id.0)) {
            (state.health, state.reason) = match is_other {
                true => (BookHealth::Suspect, Some(SuspectReason::OtherSymbol)),
                false => (health, reason.filter(|_| health == BookHealth::Suspect)),
            };
        }
    }

    /// Handles a restart of the numbering: every book becomes empty, and live unless its symbol is not the
    /// expected one. Trading states become unknown.
    pub fn restart(&mut self, out: &mut impl UpdateListener) {
        for id in self.ids() {
            self.clear(id);
            self.states[usize::from(id.0)].trading = None;
            self.set_health(id, BookHealth::Live, None);
            self.report_status(id, out);
        }
        self.set_complete();
        self.worsened = None;
    }

    /// Returns the number of times so far that a book became suspect.
    #[must_use]
    #[inline]
    pub const fn suspected(&self) -> u64 {
        self.suspected
    }

    /// Returns the number of messages so far that were malformed or contradicted their book.
    #[must_use]
    pub const fn contradictions(&self) -> u64 {
        let of = &self.counters;
        let of_orders = of.unknown_order + of.duplicate_order + of.beyond_qty + of.refused + of.crossed;
        of.malformed + of_orders + of.unmapped + of.symbol_gaps
    }

    /// Returns true if all books are shown as recovering.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// Marks all books as recovering (`true`, after a retransmission request) or as recovered (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        if std::mem::replace(&mut self.recovering, recovering) != recovering {
            for id in self.ids() {
                self.report_status(id, out);
            }
        }
    }

    /// Returns the books.
    #[must_use]
    #[inline(always)]
    pub const fn books(&self) -> &B {
        &self.books
    }

    /// Returns the books for changes, which the caller must report.
    #[must_use]
    #[inline(always)]
    pub const fn books_mut(&mut self) -> &mut B {
        &mut self.books
    }

    /// Returns the state of an instrument; `None` beyond the books' limit.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.states.get(usize::from(id.0)).map(|state| InstrumentState { health: self.health(id), ..*state })
    }

    /// Returns the instrument that the directory lists under this symbol, if any, by a linear search.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.ids().find(|id| self.states[usize::from(id.0)].symbol == Some(symbol))
    }

    /// Returns the instruments that the directory lists under another symbol than
    /// [expected](Self::expecting), in the order of their ids.
    pub fn other_symbols(&self) -> impl Iterator<Item = OtherSymbol> {
        self.ids().filter_map(|id| self.other_symbol(id))
    }

    fn other_symbol(&self, id: InstrumentId) -> Option<OtherSymbol> {
        let place = usize::from(id.0);
        let expected = *self.expected.get(place.checked_sub(1)?)?;
        let named = self.states.get(place)?.symbol?;
        (named != expected).then_some(OtherSymbol { instrument: id, expected, named })
    }

    /// Sets the symbol of an instrument. A later call cannot replace a symbol that was not the expected one.
    #[cold]
    pub fn name(&mut self, id: InstrumentId, symbol: Symbol) {
        if self.other_symbol(id).is_some() {
            return;
        }
        match self.states.get_mut(usize::from(id.0)) {
            Some(state) => state.symbol = Some(symbol),
            None => self.count_refused(id),
        }
        if self.other_symbol(id).is_some() {
            self.counters.other_symbols += 1;
            self.suspect(id, SuspectReason::OtherSymbol);
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &BuilderCounters {
        &self.counters
    }

    fn health(&self, id: InstrumentId) -> BookHealth {
        let own = self.states.get(usize::from(id.0)).map_or(BookHealth::Suspect, |state| state.health);
        if self.recovering { own.max(BookHealth::Recovering) } else { own }
    }

    /// Makes the book of an instrument suspect. [`end_message`](Self::end_message) reports it.
    #[cold]
    pub fn suspect(&mut self, id: InstrumentId, reason: SuspectReason) {
        self.worsen(id, BookHealth::Suspect, Some(reason));
    }

    /// Lowers the health of a book to `health`, unless it is as low already. Ids without a book share the
    /// state of `NO_INSTRUMENT`, which [`is_complete`](Self::is_complete) reads.
    #[cold]
    fn worsen(&mut self, id: InstrumentId, health: BookHealth, reason: Option<SuspectReason>) {
        let id = if usize::from(id.0) < self.states.len() { id } else { NO_INSTRUMENT };
        let state = &mut self.states[usize::from(id.0)];
        if state.health < health {
            (state.health, state.reason) = (health, reason);
            self.worsened = Some(id);
            self.suspected += u64::from(health == BookHealth::Suspect);
        }
    }

    /// Reports the status of an instrument, if it has a symbol.
    pub fn report_status(&self, id: InstrumentId, out: &mut impl UpdateListener) {
        if self.states.get(usize::from(id.0)).is_some_and(|state| state.symbol.is_some()) {
            self.report_state(id, Nanos::ZERO, out);
        }
    }

    #[cold]
    pub(crate) fn report_state<L: UpdateListener>(&self, id: InstrumentId, ts: Nanos, out: &mut L) {
        let Some(state) = self.states.get(usize::from(id.0)).filter(|_| L::WANTS_UPDATES) else { return };
        let reason = state.reason.map_or(0, |reason| reason as u8);
        let trading = state.trading.map_or(0, |trading| trading as u8);
        let side = SIDE_NOT_STATED;
        out.on_update(&MarketUpdate { side, reason, trading, ..self.update(&Change::status(id, ts)) });
    }

    /// Reports a trade that the feed publishes without an order; its aggressor side is not stated.
    pub(crate) fn report_trade<L: UpdateListener>(
        &self,
        instrument: InstrumentId,
        ts: Nanos,
        (price, qty): (Price, Qty),
        out: &mut L,
    ) {
        if L::WANTS_UPDATES {
            let change = Change { kind: UpdateKind::Trade, price, qty, ..Change::status(instrument, ts) };
            out.on_update(&MarketUpdate { side: SIDE_NOT_STATED, ..self.update(&change) });
        }
    }

    /// Sets the trading state of an instrument and reports it; ignores an id beyond the books' limit.
    pub fn set_trading(
        &mut self,
        id: InstrumentId,
        trading: Option<TradingState>,
        ts: Nanos,
        out: &mut impl UpdateListener,
    ) {
        if self.note_trading(id, trading) {
            self.check_crossed(id);
            self.report_state(id, ts, out);
        }
    }

    /// Sets an instrument's trading state without a report; returns false for an id beyond the books' limit.
    pub(crate) fn note_trading(&mut self, id: InstrumentId, trading: Option<TradingState>) -> bool {
        let state = self.states.get_mut(usize::from(id.0));
        state.map(|state| state.trading = trading).is_some()
    }

    /// Reports a change, with the best prices after it.
    #[inline(always)]
    pub fn report<L: UpdateListener>(&self, change: &Change, out: &mut L) {
        if L::WANTS_UPDATES {
            out.on_update(&self.update(change));
        }
    }

    #[inline]
    fn update(&self, change: &Change) -> MarketUpdate {
        change.update(self.sequence.0, &self.books, self.health(change.instrument))
    }

    /// Makes the book of an instrument suspect if it is crossed while the instrument trades.
    #[cold]
    pub fn check_crossed(&mut self, id: InstrumentId) {
        let best = |side| self.books.best(id, side).map(|level| level.price);
        let (Some(bid), Some(ask)) = (best(Side::Buy), best(Side::Sell)) else { return };
        let trading = self.states.get(usize::from(id.0)).and_then(|state| state.trading);
        if bid >= ask && trading == Some(TradingState::Trading) {
            self.counters.crossed += 1;
            self.suspect(id, SuspectReason::Crossed);
        }
    }

    contradictions! {
        /// Counts a value that no order can have, or an order beyond the books' limits.
        pub count_refused: refused, Refused;
        /// Counts a message about a symbol index that was never mapped.
        pub count_unmapped: unmapped, UnmappedIndex;
        /// Counts a gap in the symbol's own sequence numbers.
        pub count_symbol_gap: symbol_gaps, SymbolGap;
        /// Counts an add of an order that is already in the book.
        count_duplicate: duplicate_order, DuplicateOrder;
        /// Counts a message about an order that is not in the book.
        count_unknown: unknown_order, UnknownOrder;
        /// Counts an execution or a reduction beyond an order's remaining quantity.
        count_beyond_qty: beyond_qty, BeyondQty;
    }

    /// Prefetches the memory that a later message needs. Has no other effect.
    #[inline]
    pub fn prefetch(&self, request: &PrefetchRequest) {
        self.books.prefetch(request);
    }

    /// Prefetches the orders that trade next, at the front of the best levels, and their index entries. Each
    /// call covers the next `FRONTS_PER_CALL` instruments; meant for idle moments.
    pub fn refresh_fronts(&mut self) {
        let last = self.states.len() - 1;
        for _ in 0..FRONTS_PER_CALL.min(last) {
            let id = InstrumentId(self.refreshed.0 % last as u16 + 1);
            self.refreshed = id;
            for side in Side::BOTH {
                if let Some(Order { id, instrument, side, price, .. }) = self.books.front(id, side) {
                    self.books.prefetch(&PrefetchRequest { id, instrument, side, price });
                }
            }
        }
    }

    /// Adds an order without a report; a book that refuses it becomes suspect.
    // `inline(always)`, so that the compiler removes look-ups whose result the caller ignores.
    #[inline(always)]
    pub fn add(&mut self, change: &Change) {
        if self.enter(change) {
            self.check_crossed(change.instrument);
        }
    }

    /// Adds an order without a check for a crossed book; returns true if it crosses the opposite side.
    #[inline(always)]
    pub(crate) fn enter(&mut self, change: &Change) -> bool {
        let &Change { instrument, order_id, side, price, qty, .. } = change;
        let crosses = self.books.would_trade(instrument, side, price);
        match self.books.add(Order { id: order_id, instrument, side, price, qty, data: () }) {
            Ok(()) => {}
            Err(AddError::DuplicateId(_)) => self.count_duplicate(instrument),
            Err(_) => self.count_refused(instrument),
        }
        crosses
    }

    /// Returns the order with this id; if it is not in the book of `instrument`, that book becomes suspect.
    #[inline]
    pub fn resting(&mut self, instrument: InstrumentId, order_id: OrderId) -> Option<Order<()>> {
        let found = self.books.find(order_id).filter(|order| order.instrument == instrument);
        if found.is_none() {
            self.count_unknown(instrument);
        }
        found
    }

    /// Removes an order from the book of `instrument`; if it is not there, the book becomes suspect.
    #[inline(always)]
    pub fn take(&mut self, instrument: InstrumentId, order_id: OrderId) -> Option<Order<()>> {
        let taken = self.books.remove(instrument, order_id);
        if taken.is_none() {
            self.count_unknown(instrument);
        }
        taken
    }

    /// Reduces an order by `qty`. If `qty` exceeds its quantity, removes the order and makes the book
    /// suspect.
    pub fn reduce(&mut self, order: &Order<()>, qty: Qty) {
        if qty > order.qty {
            self.count_beyond_qty(order.instrument);
        }
        self.books.reduce(order.instrument, order.id, qty.min(order.qty));
    }

    /// Executes `qty` of a resting order, at `price` or else the order's own price, and reports the trade.
    pub fn execute(
        &mut self,
        instrument: InstrumentId,
        ts: Nanos,
        order_id: OrderId,
        qty: Qty,
        price: Option<Price>,
        out: &mut impl UpdateListener,
    ) {
        if let Some(order) = self.resting(instrument, order_id) {
            self.reduce(&order, qty);
            let (kind, side, price) = (UpdateKind::Trade, order.side, price.unwrap_or(order.price));
            self.report(&Change { instrument, ts, kind, order_id, side, price, qty }, out);
        }
    }
}

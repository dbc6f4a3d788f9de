//! The books of a feed's instruments, and whether each can be believed, whatever protocol they come by.

use tickpath_book::{AddError, BooksById, Coming, Order};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, OrderId, Price, PriceLevel, Qty, SIDE_NOT_STATED,
    Sequence, Side, SuspectReason, Symbol, TradingState, UpdateKind,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::line::Line;

/// Receives each message's effect after it was applied.
pub trait UpdateListener {
    /// False for who wants the books alone: no update is made then, and `on_update` is never called.
    const WANTS_UPDATES: bool = true;

    /// True for a listener to each message of a [`Channel`](crate::Channel), which then applies them one by one.
    const WANTS_MESSAGES: bool = false;

    /// A message was applied, or the health of a book changed.
    fn on_update(&mut self, update: &MarketUpdate);

    /// A channel takes a packet of this line.
    #[inline(always)]
    fn on_packet(&mut self, line: Line) {
        let _ = line;
    }

    /// A channel is about to apply the message of this sequence to its books.
    #[inline(always)]
    fn on_apply(&mut self, sequence: Sequence) {
        let _ = sequence;
    }

    /// A channel has applied the message of this sequence, or holds it for a book that waits for a snapshot.
    #[inline(always)]
    fn on_applied(&mut self, sequence: Sequence) {
        let _ = sequence;
    }
}

/// For who wants the books alone: no update is made.
#[derive(Clone, Copy, Debug)]
pub struct BooksAlone;

impl UpdateListener for BooksAlone {
    const WANTS_UPDATES: bool = false;

    #[inline]
    fn on_update(&mut self, _: &MarketUpdate) {}
}

/// What a feed knows of one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentState {
    /// Its symbol, once the directory named it.
    pub symbol: Option<Symbol>,
    /// Its trading state, once one was published.
    pub trading: Option<TradingState>,
    /// Whether its book can be believed.
    pub health: BookHealth,
    /// Why it cannot, while it is [`Suspect`](BookHealth::Suspect).
    pub reason: Option<SuspectReason>,
}

/// An instrument that the directory names otherwise than is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSymbol {
    /// Its number.
    pub instrument: InstrumentId,
    /// What it was expected to be.
    pub expected: Symbol,
    /// What the directory named.
    pub named: Symbol,
}

/// Counts of one builder of books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct BuilderCounters {
    /// Messages taken.
    pub messages: u64,
    /// Messages that are not of the protocol, or not as long as their type says.
    pub malformed: u64,
    /// Messages of a type that the protocol does not list.
    pub unknown_type: u64,
    /// Messages about an order that does not rest.
    pub unknown_order: u64,
    /// Adds of an order that rests already.
    pub duplicate_order: u64,
    /// Executions or reductions beyond what is left of the order.
    pub beyond_qty: u64,
    /// Adds that the books' bounds refused, and values that no order can have.
    pub refused: u64,
    /// Orders that crossed a book in trading, and books that were crossed when trading began.
    pub crossed: u64,
    /// Instruments that the directory names otherwise than is [expected](Instruments::expecting).
    pub other_symbols: u64,
    /// Messages about a number that no symbol was mapped to.
    pub unmapped: u64,
    /// Times that an instrument's own numbering skipped messages.
    pub symbol_gaps: u64,
}

/// What one message did, before the prices that it left are added.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Whose book it changed.
    pub instrument: InstrumentId,
    /// Time of the event at the venue, since midnight.
    pub ts: Nanos,
    /// What it did.
    pub kind: UpdateKind,
    /// The order that it is about; 0 when none.
    pub order_id: OrderId,
    /// Side of the resting order.
    pub side: Side,
    /// Price of the order or trade.
    pub price: Price,
    /// Quantity added, traded or taken away.
    pub qty: Qty,
}

impl Change {
    /// A change of state alone.
    #[must_use]
    pub const fn status(instrument: InstrumentId, ts: Nanos) -> Change {
        let (order_id, price, qty) = (OrderId(0), Price(0), Qty::ZERO);
        Change { instrument, ts, kind: UpdateKind::Status, order_id, side: Side::Buy, price, qty }
    }

    /// The update about it, with the best prices that it left in a book so healthy.
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
            reserved: 0,
        }
    }
}

/// Books of a feed's instruments with what is known of each, and the updates that are made of both.
///
/// The builder of each protocol's books stands on this: it decodes, and this changes the books, judges and reports. A
/// message begins with [`begin_message`](Self::begin_message) and ends with [`end_message`](Self::end_message). What
/// contradicts its book is counted, applied as far as it makes sense, and makes the book
/// [`Suspect`](BookHealth::Suspect) with a [`SuspectReason`]; lost messages make every book [`Stale`](BookHealth::Stale).
pub struct Instruments<B> {
    books: B,
    states: Box<[InstrumentState]>,
    counters: BuilderCounters,
    recovering: bool,
    sequence: Sequence,
    /// The instrument whose fronts were refreshed last.
    refreshed: InstrumentId,
    /// The instrument of whose book the message at hand left less to believe.
    worsened: Option<InstrumentId>,
    /// Times that a book became suspect.
    suspected: u64,
    /// Symbols of the instruments from 1 on.
    expected: Box<[Symbol]>,
}

/// The number that no instrument has, and whose state is that of all without a book.
const NOBODY: InstrumentId = InstrumentId(0);

/// Instruments whose fronts are refreshed by one call.
const FRONTS_PER_CALL: usize = 8;

/// Functions that count a contradiction and make the book of an instrument suspect.
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
    /// Starts with empty books.
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

    /// Expects these symbols of the instruments from 1 on, and none in particular of those beyond.
    ///
    /// Messages know an instrument by its number alone. The book of one that the directory names otherwise is
    /// [`Suspect`](BookHealth::Suspect) for good: no snapshot heals it, and no later directory message does.
    #[must_use]
    pub fn expecting(self, symbols: &[Symbol]) -> Instruments<B> {
        Instruments { expected: symbols.into(), ..self }
    }

    /// The message of `sequence` is to be applied.
    #[inline(always)]
    pub fn begin_message(&mut self, sequence: Sequence) {
        self.sequence = sequence;
        self.counters.messages += 1;
    }

    /// It has been; tells of the book that it left less believable, if there is one.
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

    /// Nobody knows what a damaged message was to change: the book that it names, or each if it names none (`0`) or
    /// one that does not exist, is suspect.
    #[cold]
    pub fn handle_malformed(&mut self, instrument: InstrumentId, out: &mut impl UpdateListener) {
        self.counters.malformed += 1;
        if instrument.0 != 0 && self.states.len() > usize::from(instrument.0) {
            self.suspect(instrument, SuspectReason::Malformed);
        } else {
            self.suspect_all(SuspectReason::Malformed, out);
        }
    }

    /// Counts a message of a type that the protocol does not list; it changes nothing.
    #[cold]
    pub fn count_unknown_type(&mut self) {
        self.counters.unknown_type += 1;
    }

    /// Every book is suspect, and says so.
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

    /// The numbers that an instrument may have.
    pub fn ids(&self) -> impl Iterator<Item = InstrumentId> + use<B> {
        (1..=self.books.limits().max_instrument.0).map(InstrumentId)
    }

    /// Messages were lost for good before the next one.
    pub fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.worsen_all(BookHealth::Stale, None, out);
    }

    /// Messages of one instrument were lost for good.
    #[cold]
    pub fn handle_lost_of(&mut self, id: InstrumentId, out: &mut impl UpdateListener) {
        self.worsen(id, BookHealth::Stale, None);
        self.end_message(out);
    }

    /// Empties the book of an instrument: what follows is a snapshot of it. Its health stays as it is.
    pub fn clear(&mut self, id: InstrumentId) {
        for side in Side::BOTH {
            while let Some(order) = self.books.front(id, side) {
                self.books.remove(id, order.id);
            }
        }
    }

    /// False once a message came that is about an instrument without a book: beyond their bound, or never mapped. True
    /// again after [`set_whole`](Self::set_whole), or a [`restart`](Self::restart).
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.states[NOBODY.0 as usize].health, BookHealth::Live)
    }

    /// A message came about an instrument without a book.
    #[cold]
    pub(crate) fn note_bookless(&mut self) {
        self.suspect(NOBODY, SuspectReason::Refused);
    }

    /// A snapshot has named every instrument: from now on each has a book, as far as is known.
    pub fn set_whole(&mut self) {
        self.set_health(NOBODY, BookHealth::Live, None);
    }

    /// Says whether the book of an instrument can be believed, and why not; that of another symbol than is expected never
    /// can. Tells nobody: [`report_status`](Self::report_status) does.
    pub fn set_health(&mut self, id: InstrumentId, health: BookHealth, reason: Option<SuspectReason>) {
        let is_other = self.other_symbol(id).is_some();
        if let Some(state) = self.states.get_mut(usize::from(id.0)) {
            (state.health, state.reason) = match is_other {
                true => (BookHealth::Suspect, Some(SuspectReason::OtherSymbol)),
                false => (health, reason.filter(|_| health == BookHealth::Suspect)),
            };
        }
    }

    /// The numbering starts again: every book is empty, and live but for another symbol than is expected; no trading
    /// state is known.
    pub fn restart(&mut self, out: &mut impl UpdateListener) {
        for id in self.ids() {
            self.clear(id);
            self.states[usize::from(id.0)].trading = None;
            self.set_health(id, BookHealth::Live, None);
            self.report_status(id, out);
        }
        self.set_whole();
        self.worsened = None;
    }

    /// Times so far that a book became suspect.
    #[must_use]
    #[inline]
    pub const fn suspected(&self) -> u64 {
        self.suspected
    }

    /// Messages so far that contradicted their book or made no sense.
    #[must_use]
    pub const fn contradictions(&self) -> u64 {
        let of = &self.counters;
        let of_orders = of.unknown_order + of.duplicate_order + of.beyond_qty + of.refused + of.crossed;
        of.malformed + of_orders + of.unmapped + of.symbol_gaps
    }

    /// Whether all books are shown as recovering.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// A gap opened that the lines do not close (`true`), or the last one closed (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        if std::mem::replace(&mut self.recovering, recovering) != recovering {
            for id in self.ids() {
                self.report_status(id, out);
            }
        }
    }

    /// The books.
    #[must_use]
    #[inline(always)]
    pub const fn books(&self) -> &B {
        &self.books
    }

    /// The books, to be changed by who reports what changed.
    #[must_use]
    #[inline(always)]
    pub const fn books_mut(&mut self) -> &mut B {
        &mut self.books
    }

    /// What is known of an instrument; `None` beyond the books' bound.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.states.get(usize::from(id.0)).map(|state| InstrumentState { health: self.health(id), ..*state })
    }

    /// The instrument that the directory named so, if it did. Walks all of them.
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.ids().find(|id| self.states[usize::from(id.0)].symbol == Some(symbol))
    }

    /// Instruments that the directory names otherwise than is [expected](Self::expecting), in the order of their
    /// numbers.
    pub fn other_symbols(&self) -> impl Iterator<Item = OtherSymbol> {
        self.ids().filter_map(|id| self.other_symbol(id))
    }

    fn other_symbol(&self, id: InstrumentId) -> Option<OtherSymbol> {
        let place = usize::from(id.0);
        let expected = *self.expected.get(place.checked_sub(1)?)?;
        let named = self.states.get(place)?.symbol?;
        (named != expected).then_some(OtherSymbol { instrument: id, expected, named })
    }

    /// Takes the symbol of an instrument. One that is not the expected one stays: what comes after it would be
    /// believed otherwise.
    #[cold]
    pub fn name(&mut self, id: InstrumentId, symbol: Symbol) {
        if self.other_symbol(id).is_some() {
            return;
        }
        match self.states.get_mut(usize::from(id.0)) {
            Some(state) => state.symbol = Some(symbol),
            None => self.refuse(id),
        }
        if self.other_symbol(id).is_some() {
            self.counters.other_symbols += 1;
            self.suspect(id, SuspectReason::OtherSymbol);
        }
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &BuilderCounters {
        &self.counters
    }

    fn health(&self, id: InstrumentId) -> BookHealth {
        let own = self.states.get(usize::from(id.0)).map_or(BookHealth::Suspect, |state| state.health);
        if self.recovering { own.max(BookHealth::Recovering) } else { own }
    }

    /// The book of an instrument contradicts what came, and is suspect. [`end_message`](Self::end_message) tells of it.
    #[cold]
    pub fn suspect(&mut self, id: InstrumentId, reason: SuspectReason) {
        self.worsen(id, BookHealth::Suspect, Some(reason));
    }

    /// What is about no book that there is goes to that of nobody: see [`is_whole`](Self::is_whole).
    #[cold]
    fn worsen(&mut self, id: InstrumentId, health: BookHealth, reason: Option<SuspectReason>) {
        let id = if usize::from(id.0) < self.states.len() { id } else { NOBODY };
        let state = &mut self.states[usize::from(id.0)];
        if state.health < health {
            (state.health, state.reason) = (health, reason);
            self.worsened = Some(id);
            self.suspected += u64::from(health == BookHealth::Suspect);
        }
    }

    /// Tells of an instrument's state, once it has a symbol.
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

    /// Tells of a trade that the feed reports without an order: which side came in is not stated.
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

    /// Takes the trading state of an instrument and tells of it; of one beyond the bound there is nothing to tell.
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

    /// Takes the trading state of an instrument and tells nobody; false of one beyond the bound.
    pub(crate) fn note_trading(&mut self, id: InstrumentId, trading: Option<TradingState>) -> bool {
        let state = self.states.get_mut(usize::from(id.0));
        state.map(|state| state.trading = trading).is_some()
    }

    /// Tells of a change, with the best prices that it left.
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

    /// A book that is crossed while the instrument trades contradicts itself.
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
        /// A value that no order can have, or an order that the books' bounds refuse.
        pub refuse: refused, Refused;
        /// A message about a number that no symbol was mapped to. Where a book has the number it is suspect.
        pub count_unmapped: unmapped, UnmappedIndex;
        /// The instrument's own numbering skipped messages.
        pub count_symbol_gap: symbol_gaps, SymbolGap;
        /// An order that rests already came.
        count_duplicate: duplicate_order, DuplicateOrder;
        /// A message is about an order that does not rest.
        count_unknown: unknown_order, UnknownOrder;
        /// More was executed or taken away than is left of an order.
        count_beyond_qty: beyond_qty, BeyondQty;
    }

    /// Begins to fetch what a message that will be handled soon refers to; a hint.
    #[inline]
    pub fn prefetch(&self, coming: &Coming) {
        self.books.announce(coming);
    }

    /// Fetches the orders that trade next, those at the front of the best levels, and what finds them: of some
    /// instruments at each call, in turn. For quiet moments.
    pub fn refresh_fronts(&mut self) {
        let last = self.states.len() - 1;
        for _ in 0..FRONTS_PER_CALL.min(last) {
            let id = InstrumentId(self.refreshed.0 % last as u16 + 1);
            self.refreshed = id;
            for side in Side::BOTH {
                if let Some(Order { id, instrument, side, price, .. }) = self.books.front(id, side) {
                    let announced = self.books.announce(&Coming { id, instrument, side, price });
                    self.books.look_ahead(&mut [announced]);
                }
            }
        }
    }

    /// Enters the order of an add; a book that refuses it is suspect. Tells nobody.
    // `inline(always)`: what nobody asks for is then not even looked up.
    #[inline(always)]
    pub fn add(&mut self, change: &Change) {
        if self.enter(change) {
            self.check_crossed(change.instrument);
        }
    }

    /// The same without judging whether the book is crossed then: true where the order crosses what rests on the other side.
    #[inline(always)]
    pub(crate) fn enter(&mut self, change: &Change) -> bool {
        let &Change { instrument, order_id, side, price, qty, .. } = change;
        let crosses = self.books.would_trade(instrument, side, price);
        match self.books.add(Order { id: order_id, instrument, side, price, qty, data: () }) {
            Ok(()) => {}
            Err(AddError::DuplicateId(_)) => self.count_duplicate(instrument),
            Err(_) => self.refuse(instrument),
        }
        crosses
    }

    /// The resting order of a reference, which must be in the book of `instrument`; else the book is suspect.
    #[inline]
    pub fn resting(&mut self, instrument: InstrumentId, order_id: OrderId) -> Option<Order<()>> {
        let found = self.books.find(order_id).filter(|order| order.instrument == instrument);
        if found.is_none() {
            self.count_unknown(instrument);
        }
        found
    }

    /// Takes the order of a reference out of the book of `instrument`; when it is not there the book is suspect.
    #[inline(always)]
    pub fn take(&mut self, instrument: InstrumentId, order_id: OrderId) -> Option<Order<()>> {
        let taken = self.books.remove(instrument, order_id);
        if taken.is_none() {
            self.count_unknown(instrument);
        }
        taken
    }

    /// Takes `qty` off an order, all of it when it has less: then the book is suspect.
    pub fn reduce(&mut self, order: &Order<()>, qty: Qty) {
        if qty > order.qty {
            self.count_beyond_qty(order.instrument);
        }
        self.books.reduce(order.instrument, order.id, qty.min(order.qty));
    }

    /// A resting order traded `qty`, at `price` when that is not its own; tells of it.
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

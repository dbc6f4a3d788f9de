//! Books from messages, and whether they can be believed.

use tickpath_book::{AddError, BooksById, Coming, Order};
use tickpath_faults::{Fault, is_planted_for};
use tickpath_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, Listener, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, StockDirectory, StockTradingAction,
};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, OrderId, Price, Qty, Sequence, Side, Symbol, TradingState,
    UpdateKind,
};

use crate::look_ahead::coming_of;

/// Receives each message's effect after it was applied.
pub trait UpdateListener {
    /// False for who wants the books alone: no update is made then, and `on_update` is never called.
    const WANTS_UPDATES: bool = true;

    /// A message was applied, or the health of a book changed.
    fn on_update(&mut self, update: &MarketUpdate);
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

/// Counts of one [`BookBuilder`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuilderCounters {
    /// Messages taken.
    pub messages: u64,
    /// Messages that are not ITCH 5.0, or not as long as their type says.
    pub malformed: u64,
    /// Messages of a type that ITCH 5.0 does not list.
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
    /// Instruments that the directory names otherwise than is [expected](BookBuilder::expecting).
    pub other_symbols: u64,
}

/// What one message did, before the prices that it left are added.
#[derive(Clone, Copy)]
struct Change {
    instrument: InstrumentId,
    ts: Nanos,
    kind: UpdateKind,
    order_id: OrderId,
    side: Side,
    price: Price,
    qty: Qty,
}

impl Change {
    const fn status(instrument: InstrumentId, ts: Nanos) -> Change {
        let (order_id, price, qty) = (OrderId(0), Price(0), Qty::ZERO);
        Change { instrument, ts, kind: UpdateKind::Status, order_id, side: Side::Buy, price, qty }
    }
}

/// Builds order-by-order books from ITCH messages in sequence, and says of each whether it can be believed.
///
/// A message that contradicts its book is counted, applied as far as it makes sense, and makes the book
/// [`Suspect`](BookHealth::Suspect); lost messages make every book [`Stale`](BookHealth::Stale). Nothing
/// is silently wrong.
pub struct BookBuilder<B> {
    books: B,
    states: Box<[InstrumentState]>,
    counters: BuilderCounters,
    recovering: bool,
    sequence: Sequence,
    /// The instrument whose fronts were refreshed last.
    refreshed: InstrumentId,
    /// The instrument of whose book the message at hand left less to believe.
    worsened: Option<InstrumentId>,
    /// Symbols of the instruments from 1 on.
    expected: Box<[Symbol]>,
}

/// Where every message has the instrument that it is about.
const STOCK_LOCATE: std::ops::Range<usize> = 1..3;
/// Instruments whose fronts are refreshed by one call.
const FRONTS_PER_CALL: usize = 8;

impl<B: BooksById> BookBuilder<B> {
    /// Starts with empty books.
    #[must_use]
    pub fn new(books: B) -> BookBuilder<B> {
        let state = InstrumentState { symbol: None, trading: None, health: BookHealth::Live };
        let count = usize::from(books.limits().max_instrument.0) + 1;
        BookBuilder {
            books,
            states: vec![state; count].into_boxed_slice(),
            counters: BuilderCounters::default(),
            recovering: false,
            sequence: Sequence(0),
            refreshed: InstrumentId(0),
            worsened: None,
            expected: Box::default(),
        }
    }

    /// Expects these symbols of the instruments from 1 on, and none in particular of those beyond.
    ///
    /// Messages know an instrument by its number alone. The book of one that the directory names otherwise is
    /// [`Suspect`](BookHealth::Suspect) for good: no snapshot heals it, and no later directory message does.
    #[must_use]
    pub fn expecting(self, symbols: &[Symbol]) -> BookBuilder<B> {
        BookBuilder { expected: symbols.into(), ..self }
    }

    /// Applies the message of `sequence` and reports its effect.
    #[inline(always)]
    pub fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.sequence = sequence;
        self.counters.messages += 1;
        if itch50::decode(message, &mut Apply { builder: self, out }).is_err() {
            self.handle_malformed(message, out);
        }
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

    /// Nobody knows what a damaged message was to change: the book that it names, or each if it names none, is
    /// suspect.
    #[cold]
    fn handle_malformed(&mut self, message: &[u8], out: &mut impl UpdateListener) {
        self.counters.malformed += 1;
        match instrument_of(message) {
            InstrumentId(id) if id != 0 && self.states.len() > usize::from(id) => {
                self.worsen(InstrumentId(id), BookHealth::Suspect);
            }
            _ => self.worsen_all(BookHealth::Suspect, out),
        }
    }

    fn worsen_all(&mut self, health: BookHealth, out: &mut impl UpdateListener) {
        for id in self.instruments() {
            self.worsen(id, health);
            self.report_status(id, out);
        }
        self.worsened = None;
    }

    fn instruments(&self) -> impl Iterator<Item = InstrumentId> + use<B> {
        (1..=self.books.limits().max_instrument.0).map(InstrumentId)
    }

    /// Begins to fetch what a message that will be handled soon refers to. Any bytes will do: it is a hint.
    #[inline]
    pub fn prefetch(&self, message: &[u8]) {
        self.books.announce(&coming_of(message));
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
                    self.books.look_ahead(&[announced]);
                }
            }
        }
    }

    /// Messages were lost for good before the next one.
    pub fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.worsen_all(BookHealth::Stale, out);
    }

    /// Empties the book of an instrument: what follows is a snapshot of it. Its health stays as it is.
    pub(crate) fn clear(&mut self, id: InstrumentId) {
        for side in Side::BOTH {
            while let Some(order) = self.books.front(id, side) {
                self.books.remove(id, order.id);
            }
        }
    }

    /// Says whether the book of an instrument can be believed; that of another symbol than is expected never can.
    pub(crate) fn set_health(&mut self, id: InstrumentId, health: BookHealth) {
        let health = if self.other_symbol(id).is_some() { BookHealth::Suspect } else { health };
        if let Some(state) = self.states.get_mut(usize::from(id.0)) {
            state.health = health;
        }
    }

    /// Messages so far that contradicted their book or made no sense.
    pub(crate) const fn contradictions(&self) -> u64 {
        let BuilderCounters {
            malformed, unknown_order, duplicate_order, beyond_qty, refused, crossed, ..
        } = self.counters;
        malformed + unknown_order + duplicate_order + beyond_qty + refused + crossed
    }

    /// A gap opened that the lines do not close (`true`), or the last one closed (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        if std::mem::replace(&mut self.recovering, recovering) != recovering {
            for id in self.instruments() {
                self.report_status(id, out);
            }
        }
    }

    /// The books.
    #[must_use]
    pub const fn books(&self) -> &B {
        &self.books
    }

    /// What is known of an instrument; `None` beyond the books' bound.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.states.get(usize::from(id.0)).map(|state| InstrumentState { health: self.health(id), ..*state })
    }

    /// Instruments that the directory names otherwise than is [expected](Self::expecting), in the order of their
    /// numbers.
    pub fn other_symbols(&self) -> impl Iterator<Item = OtherSymbol> {
        self.instruments().filter_map(|id| self.other_symbol(id))
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
    fn name(&mut self, id: InstrumentId, symbol: Symbol) {
        if self.other_symbol(id).is_some() {
            return;
        }
        match self.states.get_mut(usize::from(id.0)) {
            Some(state) => state.symbol = Some(symbol),
            None => self.counters.refused += 1,
        }
        if self.other_symbol(id).is_some() {
            self.counters.other_symbols += 1;
            self.worsen(id, BookHealth::Suspect);
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

    #[cold]
    fn worsen(&mut self, id: InstrumentId, health: BookHealth) {
        if let Some(state) = self.states.get_mut(usize::from(id.0))
            && state.health < health
        {
            state.health = health;
            self.worsened = Some(id);
        }
    }

    pub(crate) fn report_status(&self, id: InstrumentId, out: &mut impl UpdateListener) {
        if self.states[usize::from(id.0)].symbol.is_some() {
            out.on_update(&self.update(&Change::status(id, Nanos::ZERO)));
        }
    }

    #[inline]
    fn update(&self, change: &Change) -> MarketUpdate {
        let best = |side| {
            self.books.best(change.instrument, side).map_or((0, 0), |level| (level.price.0, level.qty.0))
        };
        let ((bid_price, bid_qty), (ask_price, ask_qty)) = (best(Side::Buy), best(Side::Sell));
        MarketUpdate {
            sequence: self.sequence.0,
            ts_event: change.ts.0,
            order_id: change.order_id.0,
            price: change.price.0,
            qty: change.qty.0,
            bid_price,
            bid_qty,
            ask_price,
            ask_qty,
            instrument: change.instrument.0,
            kind: change.kind as u8,
            side: change.side as u8,
            health: self.health(change.instrument) as u8,
            reserved: [0; 3],
        }
    }

    /// Enters the order of an add; a book that refuses it is suspect.
    // `inline(always)`: what nobody asks for is then not even looked up.
    #[inline(always)]
    fn add(&mut self, change: &Change) {
        let &Change { instrument, order_id, side, price, qty, .. } = change;
        let crosses = self.books.would_trade(instrument, side, price);
        match self.books.add(Order { id: order_id, instrument, side, price, qty, data: () }) {
            Ok(()) => {}
            Err(AddError::DuplicateId { .. }) => self.count_duplicate(instrument),
            Err(_) => self.refuse(instrument),
        }
        if crosses {
            self.check_crossed(instrument);
        }
    }

    #[cold]
    fn count_duplicate(&mut self, instrument: InstrumentId) {
        self.counters.duplicate_order += 1;
        self.worsen(instrument, BookHealth::Suspect);
    }

    #[cold]
    fn refuse(&mut self, instrument: InstrumentId) {
        self.counters.refused += 1;
        self.worsen(instrument, BookHealth::Suspect);
    }

    /// The resting order of a reference, which must be in the book of `instrument`.
    #[inline]
    fn resting(&mut self, instrument: InstrumentId, order_id: OrderId) -> Option<Order<()>> {
        let found = self.books.find(order_id).filter(|order| order.instrument == instrument);
        if found.is_none() {
            self.count_unknown(instrument);
        }
        found
    }

    /// Takes the order of a reference out of the book of `instrument`.
    #[inline(always)]
    fn take(&mut self, instrument: InstrumentId, order_id: OrderId) -> Option<Order<()>> {
        let taken = self.books.remove(instrument, order_id);
        if taken.is_none() {
            self.count_unknown(instrument);
        }
        taken
    }

    #[cold]
    fn count_unknown(&mut self, instrument: InstrumentId) {
        self.counters.unknown_order += 1;
        self.worsen(instrument, BookHealth::Suspect);
    }

    /// Takes `qty` off an order, all of it when it has less.
    fn reduce(&mut self, order: &Order<()>, qty: Qty) {
        if qty > order.qty {
            self.counters.beyond_qty += 1;
            self.worsen(order.instrument, BookHealth::Suspect);
        }
        self.books.reduce(order.instrument, order.id, qty.min(order.qty));
    }

    /// A book that is crossed while the instrument trades contradicts itself.
    #[cold]
    fn check_crossed(&mut self, instrument: InstrumentId) {
        let (Some(bid), Some(ask)) =
            (self.books.best_price(instrument, Side::Buy), self.books.best_price(instrument, Side::Sell))
        else {
            return;
        };
        let trading = self.states.get(usize::from(instrument.0)).and_then(|state| state.trading);
        if bid >= ask && trading == Some(TradingState::Trading) {
            self.counters.crossed += 1;
            self.worsen(instrument, BookHealth::Suspect);
        }
    }
}

/// The instrument that a message is about; 0 for one about none, or too short to say.
#[inline]
pub(crate) fn instrument_of(message: &[u8]) -> InstrumentId {
    InstrumentId(message.get(STOCK_LOCATE).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// One message being applied.
struct Apply<'a, B, L> {
    builder: &'a mut BookBuilder<B>,
    out: &'a mut L,
}

impl<B: BooksById, L: UpdateListener> Apply<'_, B, L> {
    #[inline(always)]
    fn added(&mut self, change: Change, side: Option<Side>) {
        match side {
            Some(side) => {
                let change = Change { side, ..change };
                self.builder.add(&change);
                self.report(&change);
            }
            None => self.builder.refuse(change.instrument),
        }
    }

    /// `price` is that of the trade when it is not the resting order's own.
    fn executed(
        &mut self,
        instrument: InstrumentId,
        ts: Nanos,
        order_id: OrderId,
        qty: Qty,
        price: Option<Price>,
    ) {
        if let Some(order) = self.builder.resting(instrument, order_id) {
            self.builder.reduce(&order, qty);
            let price = price.unwrap_or(order.price);
            self.report(&Change {
                instrument,
                ts,
                kind: UpdateKind::Trade,
                order_id,
                side: order.side,
                price,
                qty,
            });
        }
    }

    #[inline]
    fn report(&mut self, change: &Change) {
        if L::WANTS_UPDATES {
            self.out.on_update(&self.builder.update(change));
        }
    }
}

impl<B: BooksById, L: UpdateListener> Listener for Apply<'_, B, L> {
    #[inline(always)]
    fn on_add_order(&mut self, message: &AddOrder) {
        let change = Change {
            instrument: message.stock_locate.get(),
            ts: message.timestamp.get(),
            kind: UpdateKind::Add,
            order_id: message.order_ref.get(),
            side: Side::Buy,
            price: message.price.get(),
            qty: message.shares.get(),
        };
        self.added(change, message.side.side());
    }

    fn on_add_order_mpid(&mut self, message: &AddOrderMpid) {
        let change = Change {
            instrument: message.stock_locate.get(),
            ts: message.timestamp.get(),
            kind: UpdateKind::Add,
            order_id: message.order_ref.get(),
            side: Side::Buy,
            price: message.price.get(),
            qty: message.shares.get(),
        };
        self.added(change, message.side.side());
    }

    fn on_order_executed(&mut self, message: &OrderExecuted) {
        let (instrument, ts) = (message.stock_locate.get(), message.timestamp.get());
        self.executed(instrument, ts, message.order_ref.get(), message.executed_shares.get(), None);
    }

    fn on_order_executed_with_price(&mut self, message: &OrderExecutedWithPrice) {
        let (instrument, ts) = (message.stock_locate.get(), message.timestamp.get());
        let price = Some(message.execution_price.get());
        self.executed(instrument, ts, message.order_ref.get(), message.executed_shares.get(), price);
    }

    fn on_order_cancel(&mut self, message: &OrderCancel) {
        let (instrument, order_id) = (message.stock_locate.get(), message.order_ref.get());
        if let Some(order) = self.builder.resting(instrument, order_id) {
            let (ts, qty) = (message.timestamp.get(), message.canceled_shares.get());
            self.builder.reduce(&order, qty);
            let (side, price) = (order.side, order.price);
            self.report(&Change { instrument, ts, kind: UpdateKind::Reduce, order_id, side, price, qty });
        }
    }

    #[inline(always)]
    fn on_order_delete(&mut self, message: &OrderDelete) {
        let (instrument, order_id) = (message.stock_locate.get(), message.order_ref.get());
        if is_planted_for(Fault::DeleteMissed, order_id.0) {
            return;
        }
        if let Some(order) = self.builder.take(instrument, order_id) {
            let (ts, side, price, qty) = (message.timestamp.get(), order.side, order.price, order.qty);
            self.report(&Change { instrument, ts, kind: UpdateKind::Delete, order_id, side, price, qty });
        }
    }

    fn on_order_replace(&mut self, message: &OrderReplace) {
        let (instrument, old) = (message.stock_locate.get(), message.original_order_ref.get());
        if let Some(order) = self.builder.take(instrument, old) {
            let change = Change {
                instrument,
                ts: message.timestamp.get(),
                kind: UpdateKind::Replace,
                order_id: message.new_order_ref.get(),
                side: order.side,
                price: message.price.get(),
                qty: message.shares.get(),
            };
            self.builder.add(&change);
            self.report(&change);
        }
    }

    fn on_stock_directory(&mut self, message: &StockDirectory) {
        self.builder.name(message.stock_locate.get(), message.stock.get());
    }

    fn on_stock_trading_action(&mut self, message: &StockTradingAction) {
        let instrument = message.stock_locate.get();
        if let Some(state) = self.builder.states.get_mut(usize::from(instrument.0)) {
            state.trading = message.trading_state.state();
            self.builder.check_crossed(instrument);
            self.report(&Change::status(instrument, message.timestamp.get()));
        }
    }

    fn on_unknown(&mut self, _message_type: u8, _message: &[u8]) {
        self.builder.counters.unknown_type += 1;
    }
}

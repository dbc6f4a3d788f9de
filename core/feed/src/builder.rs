//! Books from ITCH messages.

use tickpath_book::{Announced, BooksById};
use tickpath_faults::failpoint;
use tickpath_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, Listener, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, StockDirectory, StockTradingAction,
};
use tickpath_types::{InstrumentId, Sequence, Side, Symbol, UpdateKind};

use crate::instruments::{
    BuilderCounters, Change, InstrumentState, Instruments, OtherSymbol, UpdateListener,
};
use crate::look_ahead::{LOOK_AHEAD_LEN, OPEN_ORDERS_MIN, coming_of, new_order_of};

/// Builds order-by-order books from ITCH messages in sequence, and says of each whether it can be believed.
///
/// A message that contradicts its book is counted, applied as far as it makes sense, and makes the book
/// [`Suspect`](tickpath_types::BookHealth::Suspect); lost messages make every book
/// [`Stale`](tickpath_types::BookHealth::Stale). Nothing is silently wrong.
pub struct BookBuilder<B> {
    instruments: Instruments<B>,
}

/// Where every message has the instrument that it is about.
const STOCK_LOCATE: std::ops::Range<usize> = 1..3;

impl<B: BooksById> BookBuilder<B> {
    /// Starts with empty books.
    #[must_use]
    pub fn new(books: B) -> BookBuilder<B> {
        BookBuilder { instruments: Instruments::new(books) }
    }

    /// Expects these symbols of the instruments from 1 on: see [`Instruments::expecting`].
    #[must_use]
    pub fn expecting(self, symbols: &[Symbol]) -> BookBuilder<B> {
        BookBuilder { instruments: self.instruments.expecting(symbols) }
    }

    /// Applies the message of `sequence` and reports its effect.
    #[inline(always)]
    pub fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.instruments.begin_message(sequence);
        if itch50::decode(message, &mut Apply { instruments: &mut self.instruments, out }).is_err() {
            self.instruments.handle_malformed(instrument_of(message), out);
        }
        self.instruments.end_message(out);
    }

    /// Applies messages that wait together, in order, the first with the number `first`; the same as
    /// [`BookBuilder::handle_message`] for each, but the memory that they need is fetched beforehand. Returns how many
    /// there were.
    #[inline]
    pub fn handle_batch<'a>(
        &mut self,
        first: Sequence,
        messages: impl IntoIterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) -> u64 {
        let mut messages = messages.into_iter();
        let mut group = [&[] as &[u8]; LOOK_AHEAD_LEN];
        let mut announced = [Announced::NOTHING; LOOK_AHEAD_LEN];
        let mut sequence = first;
        loop {
            let is_large = self.books().order_count() >= OPEN_ORDERS_MIN;
            let mut count = 0;
            for ((place, announced), message) in group.iter_mut().zip(&mut announced).zip(&mut messages) {
                *place = message;
                let coming = coming_of(message);
                if is_large {
                    *announced = self.books().announce(&coming);
                    if let Some(id) = new_order_of(message) {
                        self.books().prefetch(id);
                    }
                } else {
                    self.books().prefetch(coming.id);
                }
                count += 1;
            }
            if count == 0 {
                return sequence.0 - first.0;
            }
            if is_large {
                self.books().look_ahead(&mut announced[..count]);
            }
            self.handle_all(sequence, &group[..count], out);
            sequence = Sequence(sequence.0 + count as u64);
        }
    }

    /// Applies messages one after the other.
    // A separate loop, which has all the CPU's registers.
    #[inline(never)]
    fn handle_all(&mut self, first: Sequence, messages: &[&[u8]], out: &mut impl UpdateListener) {
        let mut sequence = first;
        for message in messages {
            self.handle_message(sequence, message, out);
            sequence = sequence.next();
        }
    }

    /// Begins to fetch what a message that will be handled soon refers to. Any bytes will do: it is a hint.
    #[inline]
    pub fn prefetch(&self, message: &[u8]) {
        self.instruments.prefetch(&coming_of(message));
    }

    /// Fetches the orders that trade next: see [`Instruments::refresh_fronts`].
    pub fn refresh_fronts(&mut self) {
        self.instruments.refresh_fronts();
    }

    /// Messages were lost for good before the next one.
    pub fn handle_lost(&mut self, out: &mut impl UpdateListener) {
        self.instruments.handle_lost(out);
    }

    /// A gap opened that the lines do not close (`true`), or the last one closed (`false`).
    pub fn handle_recovering(&mut self, recovering: bool, out: &mut impl UpdateListener) {
        self.instruments.handle_recovering(recovering, out);
    }

    /// The books with what is known of each instrument.
    #[must_use]
    pub const fn instruments(&self) -> &Instruments<B> {
        &self.instruments
    }

    /// The same, to be changed.
    #[must_use]
    pub const fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.instruments
    }

    /// The books.
    #[must_use]
    #[inline(always)]
    pub const fn books(&self) -> &B {
        self.instruments.books()
    }

    /// What is known of an instrument; `None` beyond the books' bound.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<InstrumentState> {
        self.instruments.instrument(id)
    }

    /// Instruments that the directory names otherwise than is [expected](Self::expecting), in the order of their
    /// numbers.
    pub fn other_symbols(&self) -> impl Iterator<Item = OtherSymbol> {
        self.instruments.other_symbols()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> &BuilderCounters {
        self.instruments.counters()
    }
}

/// The instrument that a message is about; 0 for one about none, or too short to say.
#[inline]
pub(crate) fn instrument_of(message: &[u8]) -> InstrumentId {
    InstrumentId(message.get(STOCK_LOCATE).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// One message being applied.
struct Apply<'a, B, L> {
    instruments: &'a mut Instruments<B>,
    out: &'a mut L,
}

impl<B: BooksById, L: UpdateListener> Apply<'_, B, L> {
    #[inline(always)]
    fn added(&mut self, change: Change, side: Option<Side>) {
        match side {
            Some(side) => {
                let change = Change { side, ..change };
                self.instruments.add(&change);
                self.instruments.report(&change, self.out);
            }
            None => self.instruments.refuse(change.instrument),
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
        let (order_id, qty) = (message.order_ref.get(), message.executed_shares.get());
        self.instruments.execute(instrument, ts, order_id, qty, None, self.out);
    }

    fn on_order_executed_with_price(&mut self, message: &OrderExecutedWithPrice) {
        let (instrument, ts) = (message.stock_locate.get(), message.timestamp.get());
        let (order_id, qty) = (message.order_ref.get(), message.executed_shares.get());
        let price = Some(message.execution_price.get());
        self.instruments.execute(instrument, ts, order_id, qty, price, self.out);
    }

    fn on_order_cancel(&mut self, message: &OrderCancel) {
        let (instrument, order_id) = (message.stock_locate.get(), message.order_ref.get());
        if let Some(order) = self.instruments.resting(instrument, order_id) {
            let (ts, qty) = (message.timestamp.get(), message.canceled_shares.get());
            self.instruments.reduce(&order, qty);
            let (side, price) = (order.side, order.price);
            self.instruments.report(
                &Change { instrument, ts, kind: UpdateKind::Reduce, order_id, side, price, qty },
                self.out,
            );
        }
    }

    #[inline(always)]
    fn on_order_delete(&mut self, message: &OrderDelete) {
        let (instrument, order_id) = (message.stock_locate.get(), message.order_ref.get());
        failpoint!(DeleteMissed => return, for order_id.0);
        if let Some(order) = self.instruments.take(instrument, order_id) {
            let (ts, side, price, qty) = (message.timestamp.get(), order.side, order.price, order.qty);
            self.instruments.report(
                &Change { instrument, ts, kind: UpdateKind::Delete, order_id, side, price, qty },
                self.out,
            );
        }
    }

    fn on_order_replace(&mut self, message: &OrderReplace) {
        let (instrument, old) = (message.stock_locate.get(), message.original_order_ref.get());
        if let Some(order) = self.instruments.take(instrument, old) {
            let change = Change {
                instrument,
                ts: message.timestamp.get(),
                kind: UpdateKind::Replace,
                order_id: message.new_order_ref.get(),
                side: order.side,
                price: message.price.get(),
                qty: message.shares.get(),
            };
            self.instruments.add(&change);
            self.instruments.report(&change, self.out);
        }
    }

    fn on_stock_directory(&mut self, message: &StockDirectory) {
        self.instruments.name(message.stock_locate.get(), message.stock.get());
    }

    fn on_stock_trading_action(&mut self, message: &StockTradingAction) {
        let (instrument, ts) = (message.stock_locate.get(), message.timestamp.get());
        self.instruments.set_trading(instrument, message.trading_state.state(), ts, self.out);
    }

    fn on_unknown(&mut self, _message_type: u8, _message: &[u8]) {
        self.instruments.count_unknown_type();
    }
}

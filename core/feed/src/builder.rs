//! Books from ITCH messages.

use std::hint::select_unpredictable;
use std::mem::offset_of;

use tickpath_book::{BooksById, ChangeKind, OrderChange, OrderGroup, OrderMessages, PrefetchRequest, Step};
use tickpath_faults::failpoint;
use tickpath_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, BuySell, Listener, MESSAGE_TYPES, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, StockDirectory, StockTradingAction,
};
use tickpath_types::{InstrumentId, Nanos, OrderId, Price, Qty, Sequence, Side, Symbol, UpdateKind};
use zerocopy::FromBytes;

use crate::instruments::{Change, Instruments, UpdateListener};
use crate::message_books::MessageBooks;

/// Builds order-by-order books from ITCH messages in sequence, and tracks whether each book can be trusted.
///
/// A message that contradicts its book is counted and applied as far as possible. The book becomes
/// [`Suspect`](tickpath_types::BookHealth::Suspect). Lost messages make every book
/// [`Stale`](tickpath_types::BookHealth::Stale). No inconsistency goes unreported.
pub struct BookBuilder<B> {
    instruments: Instruments<B>,
    group: OrderGroup,
}

/// Byte range of the stock locate (instrument number) in every message.
const STOCK_LOCATE: std::ops::Range<usize> = 1..3;

impl<B: BooksById> BookBuilder<B> {
    /// Creates a builder with empty books.
    #[must_use]
    pub fn new(books: B) -> BookBuilder<B> {
        BookBuilder { instruments: Instruments::new(books), group: OrderGroup::default() }
    }

    /// Sets the expected symbols of instruments 1, 2 and so on: see [`Instruments::expecting`].
    #[must_use]
    pub fn expecting(self, symbols: &[Symbol]) -> BookBuilder<B> {
        BookBuilder { instruments: self.instruments.expecting(symbols), ..self }
    }

    /// Applies queued messages in order; `first` is the sequence number of the first. The result is the same
    /// as with [`handle_message`](MessageBooks::handle_message) for each, but memory is prefetched. Returns
    /// the number of messages.
    #[inline]
    pub fn handle_batch<'a>(
        &mut self,
        first: Sequence,
        messages: impl IntoIterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) -> u64 {
        let mut messages = messages.into_iter();
        let mut batch: [&[u8]; OrderGroup::LEN_MAX] = [&[]; OrderGroup::LEN_MAX];
        let mut total = 0;
        loop {
            let count = self.prepare_group(&mut messages, &mut batch);
            if count == 0 {
                return total;
            }
            self.apply_group(Sequence(first.0 + total), &batch[..count], out);
            total += count as u64;
        }
    }

    /// Decodes messages into the group, and prefetches the memory that they need.
    // Not inlined, so that the loop can use all CPU registers, as in `apply_group`.
    #[inline(never)]
    fn prepare_group<'a>(
        &mut self,
        messages: &mut impl Iterator<Item = &'a [u8]>,
        batch: &mut [&'a [u8]; OrderGroup::LEN_MAX],
    ) -> usize {
        let mut count = 0;
        let taken = batch.iter_mut().zip(messages).map(|(place, message)| {
            *place = message;
            count += 1;
            message
        });
        self.instruments.books().prepare(&mut self.group, taken, &ItchOrders);
        count
    }

    /// Decodes one message into the group.
    #[inline(never)]
    fn prepare_message(&mut self, message: &[u8]) {
        self.instruments.books().prepare(&mut self.group, std::iter::once(message), &ItchOrders);
    }

    /// Applies the messages of the prepared group.
    #[inline(never)]
    fn apply_group<L: UpdateListener>(&mut self, first: Sequence, messages: &[&[u8]], out: &mut L) {
        self.instruments.count_messages(messages.len());
        loop {
            let books = self.instruments.books_mut();
            let step = match L::WANTS_UPDATES {
                true => books.advance::<true>(&mut self.group),
                false => books.advance::<false>(&mut self.group),
            };
            let Some(index) = step.index() else {
                return self.instruments.set_sequence(Sequence(first.0 + messages.len() as u64 - 1));
            };
            self.instruments.set_sequence(Sequence(first.0 + index as u64));
            let message = messages[index];
            match step {
                Step::Applied { side, price, qty, crosses, .. } => {
                    if crosses {
                        self.instruments.check_crossed(instrument_of(message));
                    }
                    if L::WANTS_UPDATES {
                        self.instruments.report(&applied(message, side, price, qty), out);
                    }
                    self.instruments.end_message(out);
                }
                Step::NewOrderException { side, .. } => self.add_replacement(message, side, out),
                _ => self.apply_alone(message, out),
            }
        }
    }

    /// Applies a message outside a group.
    // Cold: a group applies nearly all messages.
    #[cold]
    #[inline(never)]
    fn apply_alone(&mut self, message: &[u8], out: &mut impl UpdateListener) {
        if itch50::decode(message, &mut Apply { instruments: &mut self.instruments, out }).is_err() {
            self.instruments.handle_malformed(instrument_of(message), out);
        }
        self.instruments.end_message(out);
    }

    /// Adds the new order of a replacement whose old order, on `side`, was removed.
    #[cold]
    #[inline(never)]
    fn add_replacement(&mut self, message: &[u8], side: Side, out: &mut impl UpdateListener) {
        if let Ok(message) = OrderReplace::ref_from_bytes(message) {
            let change = replacement(message, side);
            self.instruments.add(&change);
            self.instruments.report(&change, out);
        }
        self.instruments.end_message(out);
    }
}

impl<B: BooksById> MessageBooks for BookBuilder<B> {
    type Books = B;

    #[inline(always)]
    fn instruments(&self) -> &Instruments<B> {
        &self.instruments
    }

    #[inline(always)]
    fn instruments_mut(&mut self) -> &mut Instruments<B> {
        &mut self.instruments
    }

    #[inline(always)]
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.prepare_message(message);
        self.apply_group(sequence, &[message], out);
    }

    #[inline]
    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        self.handle_batch(first, messages, out);
    }

    #[inline]
    fn prefetch(&self, message: &[u8]) {
        if let Some(OrderChange { id, instrument, side, price, .. }) = ItchOrders.change(&message) {
            self.instruments.prefetch(&PrefetchRequest { id, instrument, side, price });
        }
    }

    #[inline]
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId {
        instrument_of(message)
    }
}

/// Returns the instrument that a message refers to; 0 if it refers to none or is too short.
#[inline]
pub(crate) fn instrument_of(message: &[u8]) -> InstrumentId {
    InstrumentId(message.get(STOCK_LOCATE).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]])))
}

/// The effect of a replacement of an order on `side`.
fn replacement(message: &OrderReplace, side: Side) -> Change {
    Change {
        instrument: message.stock_locate.get(),
        ts: message.timestamp.get(),
        kind: UpdateKind::Replace,
        order_id: message.new_order_ref.get(),
        side,
        price: message.price.get(),
        qty: message.shares.get(),
    }
}

/// The effect of an order message that a group applied to an order of this side and price: `qty` was added or
/// removed.
#[inline(always)]
fn applied(message: &[u8], side: Side, price: Price, qty: Qty) -> Change {
    let (order_id, kind, price) = match message[0] {
        AddOrder::TYPE | AddOrderMpid::TYPE => (bytes_at(message, ORDER_REF), UpdateKind::Add, price),
        OrderDelete::TYPE => (bytes_at(message, ORDER_REF), UpdateKind::Delete, price),
        OrderReplace::TYPE => (bytes_at(message, NEW_ORDER_REF), UpdateKind::Replace, price),
        OrderCancel::TYPE => (bytes_at(message, ORDER_REF), UpdateKind::Reduce, price),
        OrderExecutedWithPrice::TYPE => {
            let price = Price(u32::from_be_bytes(bytes_at(message, EXECUTION_PRICE)).into());
            (bytes_at(message, ORDER_REF), UpdateKind::Trade, price)
        }
        _ => (bytes_at(message, ORDER_REF), UpdateKind::Trade, price),
    };
    let [a, b, c, d, e, f] = bytes_at(message, TIMESTAMP);
    Change {
        instrument: instrument_of(message),
        ts: Nanos(u64::from_be_bytes([0, 0, a, b, c, d, e, f])),
        kind,
        order_id: OrderId(u64::from_be_bytes(order_id)),
        side,
        price,
        qty,
    }
}

/// Offsets of fields in order messages.
const TIMESTAMP: usize = offset_of!(AddOrder, timestamp);
const ORDER_REF: usize = offset_of!(AddOrder, order_ref);
const NEW_ORDER_REF: usize = offset_of!(OrderReplace, new_order_ref);
const EXECUTION_PRICE: usize = offset_of!(OrderExecutedWithPrice, execution_price);

/// How a type of message changes an order, and where its fields are.
///
/// All fields behind the order reference are in a window of 17 bytes of the message: the side, then four words
/// of 32 bits. The last word is the price. The first two are the new order reference of a replacement.
#[derive(Clone, Copy)]
#[repr(align(4))]
struct Layout {
    kind: ChangeKind,
    /// Length of the message; 0 for a type that changes no order.
    len: u8,
    /// Offset of the window.
    window: u8,
    /// Number of the word with the quantity.
    qty: u8,
}

const WINDOW_LEN: usize = 17;
const WORD_LEN: usize = 4;

/// The layouts of all types of messages.
static LAYOUTS: [Layout; 256] = {
    /// A message of `len` bytes with its quantity at offset `qty`.
    const fn layout(kind: ChangeKind, len: usize, qty: usize) -> Layout {
        // The greatest window offset with the quantity in a whole word, and the window within the message.
        let mut word = 0;
        while qty - 1 - WORD_LEN * word + WINDOW_LEN > len {
            word += 1;
        }
        Layout { kind, len: len as u8, window: (qty - 1 - WORD_LEN * word) as u8, qty: word as u8 }
    }
    let mut all = [Layout { kind: ChangeKind::Delete, len: 0, window: 0, qty: 0 }; 256];
    all[AddOrder::TYPE as usize] = layout(ChangeKind::Add, AddOrder::LEN, offset_of!(AddOrder, shares));
    all[AddOrderMpid::TYPE as usize] =
        Layout { len: AddOrderMpid::LEN as u8, ..all[AddOrder::TYPE as usize] };
    all[OrderExecuted::TYPE as usize] =
        layout(ChangeKind::Reduce, OrderExecuted::LEN, offset_of!(OrderExecuted, executed_shares));
    all[OrderExecutedWithPrice::TYPE as usize] = layout(
        ChangeKind::Reduce,
        OrderExecutedWithPrice::LEN,
        offset_of!(OrderExecutedWithPrice, executed_shares),
    );
    all[OrderCancel::TYPE as usize] =
        layout(ChangeKind::Reduce, OrderCancel::LEN, offset_of!(OrderCancel, canceled_shares));
    all[OrderDelete::TYPE as usize] =
        Layout { kind: ChangeKind::Delete, len: OrderDelete::LEN as u8, window: 0, qty: 0 };
    all[OrderReplace::TYPE as usize] =
        layout(ChangeKind::Replace, OrderReplace::LEN, offset_of!(OrderReplace, shares));
    all
};

/// Offset of the last word, the price, in the window.
const PRICE: usize = WINDOW_LEN - WORD_LEN;

const _: () = {
    let add = LAYOUTS[AddOrder::TYPE as usize];
    assert!(add.window as usize == offset_of!(AddOrder, side));
    assert!(add.window as usize + PRICE == offset_of!(AddOrder, price));
    let replace = LAYOUTS[OrderReplace::TYPE as usize];
    assert!(replace.window as usize + 1 == NEW_ORDER_REF);
    assert!(replace.window as usize + PRICE == offset_of!(OrderReplace, price));
};

const BUY: u8 = Side::Buy as u8;
const SELL: u8 = Side::Sell as u8;

/// Numbers of the sides by their codes in an add message; another number for any other code.
static SIDES: [u8; 256] = {
    let mut all = [u8::MAX; 256];
    all[BuySell::BUY.0 as usize] = BUY;
    all[BuySell::SELL.0 as usize] = SELL;
    all
};

/// Lengths of the messages that the books ignore, by type; 0 for other types.
static IGNORED: [u8; 256] = {
    let mut all = [0; 256];
    let mut place = 0;
    while place < MESSAGE_TYPES.len() {
        let kind = MESSAGE_TYPES[place];
        if LAYOUTS[kind as usize].len == 0
            && !matches!(kind, StockDirectory::TYPE | StockTradingAction::TYPE)
            && let Some(len) = itch50::message_len(kind)
        {
            all[kind as usize] = len as u8;
        }
        place += 1;
    }
    all
};

/// Decodes the messages that change orders.
struct ItchOrders;

impl OrderMessages<&[u8]> for ItchOrders {
    /// No branch depends on the type, since a CPU cannot predict the order of types: every field is read from
    /// every message, and the layout tells where.
    #[inline(always)]
    fn change(&self, message: &&[u8]) -> Option<OrderChange> {
        let head = message.first_chunk::<HEAD_LEN>()?;
        let layout = LAYOUTS[usize::from(head[0])];
        if message.len() != usize::from(layout.len) {
            return None;
        }
        let window = usize::from(layout.window);
        let (side, words) = message.get(window..window + WINDOW_LEN)?.split_first()?;
        let words: &[[u8; WORD_LEN]; 4] = words.as_chunks().0.first_chunk()?;
        // Only an added order states its side.
        let side = select_unpredictable(layout.kind == ChangeKind::Add, SIDES[usize::from(*side)], BUY);
        let side = match side {
            BUY => Side::Buy,
            SELL => Side::Sell,
            _ => return None,
        };
        let id = OrderId(u64::from_be_bytes(bytes_at(head, ORDER_REF)));
        failpoint!(DeleteMissed => if layout.kind == ChangeKind::Delete { return None }, for id.0);
        Some(OrderChange {
            kind: layout.kind,
            id,
            instrument: InstrumentId(u16::from_be_bytes(bytes_at(head, STOCK_LOCATE.start))),
            side,
            price: Price(u32::from_be_bytes(words[3]).into()),
            qty: Qty(u32::from_be_bytes(words[usize::from(layout.qty) % words.len()]).into()),
        })
    }

    #[inline(always)]
    fn is_without_effect(&self, message: &&[u8]) -> bool {
        message.first().is_some_and(|kind| usize::from(IGNORED[usize::from(*kind)]) == message.len())
    }

    #[inline(always)]
    fn new_id(&self, message: &&[u8]) -> OrderId {
        OrderId(u64::from_be_bytes(bytes_at(message, NEW_ORDER_REF)))
    }
}

/// Length of the part that all order messages begin with, up to the order reference.
const HEAD_LEN: usize = OrderDelete::LEN;

/// The `N` bytes from offset `at` on, which are part of the message.
#[inline(always)]
pub(crate) fn bytes_at<const N: usize>(message: &[u8], at: usize) -> [u8; N] {
    *message[at..at + N].first_chunk().expect("N bytes were taken")
}

/// Message listener that applies one ITCH message to the books.
struct Apply<'a, B, L> {
    instruments: &'a mut Instruments<B>,
    out: &'a mut L,
}

/// Adds the order of an add message, with or without attribution.
macro_rules! add {
    ($self:ident, $message:ident) => {
        let Some(side) = $message.side.side() else {
            return $self.instruments.count_refused($message.stock_locate.get());
        };
        let change = Change {
            instrument: $message.stock_locate.get(),
            ts: $message.timestamp.get(),
            kind: UpdateKind::Add,
            order_id: $message.order_ref.get(),
            side,
            price: $message.price.get(),
            qty: $message.shares.get(),
        };
        $self.instruments.add(&change);
        $self.instruments.report(&change, $self.out);
    };
}

impl<B: BooksById, L: UpdateListener> Listener for Apply<'_, B, L> {
    #[inline(always)]
    fn on_add_order(&mut self, message: &AddOrder) {
        add!(self, message);
    }

    fn on_add_order_mpid(&mut self, message: &AddOrderMpid) {
        add!(self, message);
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
            let change = replacement(message, order.side);
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

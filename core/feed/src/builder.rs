//! Books from ITCH messages.

use tickpath_book::BooksById;
use tickpath_faults::failpoint;
use tickpath_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, Listener, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, StockDirectory, StockTradingAction,
};
use tickpath_types::{InstrumentId, Sequence, Symbol, UpdateKind};

use crate::instruments::{Change, Instruments, UpdateListener};
use crate::look_ahead::{handle_in_groups, new_order_of, prefetch_request};
use crate::message_books::MessageBooks;

/// Builds order-by-order books from ITCH messages in sequence, and tracks whether each book can be trusted.
///
/// A message that contradicts its book is counted and applied as far as possible. The book becomes
/// [`Suspect`](tickpath_types::BookHealth::Suspect). Lost messages make every book
/// [`Stale`](tickpath_types::BookHealth::Stale). No inconsistency goes unreported.
pub struct BookBuilder<B> {
    instruments: Instruments<B>,
}

/// Byte range of the stock locate (instrument number) in every message.
const STOCK_LOCATE: std::ops::Range<usize> = 1..3;

impl<B: BooksById> BookBuilder<B> {
    /// Creates a builder with empty books.
    #[must_use]
    pub fn new(books: B) -> BookBuilder<B> {
        BookBuilder { instruments: Instruments::new(books) }
    }

    /// Sets the expected symbols of instruments 1, 2 and so on: see [`Instruments::expecting`].
    #[must_use]
    pub fn expecting(self, symbols: &[Symbol]) -> BookBuilder<B> {
        BookBuilder { instruments: self.instruments.expecting(symbols) }
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
        let mut sequence = first;
        handle_in_groups(
            self,
            messages,
            &[] as &[u8],
            BookBuilder::books,
            |_, message| prefetch_request(message),
            |message| new_order_of(message),
            |builder, messages| {
                builder.handle_all(sequence, messages, out);
                sequence = Sequence(sequence.0 + messages.len() as u64);
            },
        )
    }

    /// Applies messages one after another, without prefetching.
    // Not inlined, so that the loop can use all CPU registers.
    #[inline(never)]
    fn handle_all(&mut self, first: Sequence, messages: &[&[u8]], out: &mut impl UpdateListener) {
        let mut sequence = first;
        for message in messages {
            self.handle_message(sequence, message, out);
            sequence = sequence.next();
        }
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
        self.instruments.begin_message(sequence);
        if itch50::decode(message, &mut Apply { instruments: &mut self.instruments, out }).is_err() {
            self.instruments.handle_malformed(instrument_of(message), out);
        }
        self.instruments.end_message(out);
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
        self.instruments.prefetch(&prefetch_request(message));
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

//! Two drivers that decode a day and apply it to books: [`Sequential`] message by message, [`LookAhead`] in
//! batches, as feed handlers do.

use tickpath_book::{BooksById, Order};
use tickpath_feed::{BookBuilder, BuilderCounters, MessageBooks, UpdateListener};
use tickpath_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, BuySell, Listener, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace,
};
use tickpath_types::{InstrumentId, MarketUpdate, OrderId, Price, Qty, Sequence, Side, UpdateKind};

use crate::books::{self, Books, Limits};
use crate::day::frames;

/// Digests of a structure's results; all structures must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Digest of levels and queues of all books.
    pub books: u64,
    /// Digest of the best prices after each message so far.
    pub tops: u64,
    /// Number of resting orders.
    pub live: u32,
}

/// A structure that processes a day piece by piece.
pub trait Runner {
    /// Processes the framed messages of a piece.
    fn run(&mut self, bytes: &[u8]);
    /// Computes the digest of all books.
    fn digest(&self) -> Digest;
}

/// Digest of the best prices after each message, so that no structure can postpone finding them.
#[derive(Clone, Copy, Default)]
struct Tops(u64);

impl Tops {
    #[inline]
    fn fold(&mut self, bid: i64, ask: i64) {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let both = bid.cast_unsigned() << 32 ^ ask.cast_unsigned();
        self.0 = (self.0.rotate_left(5) ^ both).wrapping_mul(MULTIPLIER);
    }
}

/// A structure with the plain driver, which decodes and applies each message before it reads the next.
pub struct Sequential<B> {
    books: B,
    tops: Tops,
    max_instrument: InstrumentId,
}

impl<B: Books> Sequential<B> {
    /// Creates the driver with empty books.
    pub fn new(limits: Limits) -> Self {
        Sequential { books: B::new(limits), tops: Tops::default(), max_instrument: limits.max_instrument }
    }

    /// Applies a piece. Callgrind counts only inside functions with this name.
    #[inline(never)]
    fn measured_day(&mut self, bytes: &[u8]) {
        for message in frames(bytes) {
            itch50::decode(message, self).expect("the day is ITCH 5.0");
        }
    }

    #[inline]
    fn add(&mut self, instrument: InstrumentId, id: OrderId, side: Side, price: Price, qty: Qty) {
        self.books.add(Order { id, instrument, side, price, qty, data: () });
        self.fold(instrument);
    }

    #[inline]
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) {
        self.books.reduce(id.0, qty);
        self.fold(instrument);
    }

    #[inline]
    fn fold(&mut self, instrument: InstrumentId) {
        let best = |side| self.books.best_price(instrument, side).map_or(0, |price| price.0);
        let (bid, ask) = (best(Side::Buy), best(Side::Sell));
        self.tops.fold(bid, ask);
    }
}

fn side(side: BuySell) -> Side {
    side.side().expect("the day says buy or sell")
}

impl<B: Books> Listener for Sequential<B> {
    #[inline]
    fn on_add_order(&mut self, message: &AddOrder) {
        let (instrument, id) = (message.stock_locate.get(), message.order_ref.get());
        self.add(instrument, id, side(message.side), message.price.get(), message.shares.get());
    }

    #[inline]
    fn on_add_order_mpid(&mut self, message: &AddOrderMpid) {
        let (instrument, id) = (message.stock_locate.get(), message.order_ref.get());
        self.add(instrument, id, side(message.side), message.price.get(), message.shares.get());
    }

    #[inline]
    fn on_order_executed(&mut self, message: &OrderExecuted) {
        let qty = message.executed_shares.get();
        self.reduce(message.stock_locate.get(), message.order_ref.get(), qty);
    }

    #[inline]
    fn on_order_executed_with_price(&mut self, message: &OrderExecutedWithPrice) {
        let qty = message.executed_shares.get();
        self.reduce(message.stock_locate.get(), message.order_ref.get(), qty);
    }

    #[inline]
    fn on_order_cancel(&mut self, message: &OrderCancel) {
        let qty = message.canceled_shares.get();
        self.reduce(message.stock_locate.get(), message.order_ref.get(), qty);
    }

    #[inline]
    fn on_order_delete(&mut self, message: &OrderDelete) {
        self.books.remove(message.order_ref.get().0);
        self.fold(message.stock_locate.get());
    }

    #[inline]
    fn on_order_replace(&mut self, message: &OrderReplace) {
        let old = self.books.remove(message.original_order_ref.get().0);
        let (id, price, qty) = (message.new_order_ref.get(), message.price.get(), message.shares.get());
        self.add(old.instrument, id, old.side, price, qty);
    }
}

impl<B: Books> Runner for Sequential<B> {
    fn run(&mut self, bytes: &[u8]) {
        self.measured_day(bytes);
    }

    fn digest(&self) -> Digest {
        let (books, live) = books::digest(&self.books, self.max_instrument);
        Digest { books, tops: self.tops.0, live }
    }
}

/// A structure with the driver of feed handlers and of `lab bench`. It prefetches memory for batches, checks
/// every order reference, and publishes both best levels after each message.
pub struct LookAhead<B> {
    builder: BookBuilder<B>,
    next: Sequence,
    tops: Tops,
}

impl UpdateListener for Tops {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        if update.kind != UpdateKind::Status as u8 {
            self.fold(update.bid.price, update.ask.price);
        }
    }
}

impl<B: BooksById> LookAhead<B> {
    /// Creates the driver with empty books.
    pub fn new(limits: Limits) -> Self {
        let builder = BookBuilder::new(B::new(limits.books()));
        LookAhead { builder, next: Sequence(1), tops: Tops::default() }
    }

    #[inline(never)]
    fn measured_day(&mut self, bytes: &[u8]) {
        let count = self.builder.handle_batch(self.next, frames(bytes), &mut self.tops);
        self.next = Sequence(self.next.0 + count);
    }
}

impl<B: BooksById> Runner for LookAhead<B> {
    fn run(&mut self, bytes: &[u8]) {
        self.measured_day(bytes);
    }

    fn digest(&self) -> Digest {
        let counters = *self.builder.counters();
        let harmless = BuilderCounters { messages: counters.messages, ..BuilderCounters::default() };
        assert_eq!(counters, harmless, "the day contradicts nothing");
        let books = self.builder.books();
        Digest { books: books.state_hash(), tops: self.tops.0, live: books.order_count() }
    }
}

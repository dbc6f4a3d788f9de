//! Cache prefetch hints accept any message, cover every instrument, and change no book.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::cell::RefCell;

use tickpath_book::{
    AddError, BookLimits, BooksById, Level, Order, PackedBooks, PrefetchRequest, QueuePosition,
};
use tickpath_feed::{BookBuilder, BuilderCounters, MessageBooks, UpdateListener};
use tickpath_nasdaq::itch50::{OrderDelete, market_event_message};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, MarketUpdate, Nanos, OrderId, Price, Qty,
    Sequence, Side, Symbol,
};
use zerocopy::IntoBytes;

/// Books that record which orders are prefetched and which front orders are read.
struct RecordingBooks {
    books: PackedBooks,
    fronts: RefCell<Vec<(InstrumentId, Side)>>,
    prefetched: RefCell<Vec<OrderId>>,
}

impl BooksById for RecordingBooks {
    fn new(limits: BookLimits) -> RecordingBooks {
        let books = PackedBooks::new(limits);
        RecordingBooks { books, fronts: RefCell::default(), prefetched: RefCell::default() }
    }
    fn limits(&self) -> BookLimits {
        self.books.limits()
    }
    fn order_count(&self) -> u32 {
        self.books.order_count()
    }
    fn level_count(&self) -> u32 {
        self.books.level_count()
    }
    fn add(&mut self, order: Order<()>) -> Result<(), AddError> {
        self.books.add(order)
    }
    fn find(&self, id: OrderId) -> Option<Order<()>> {
        self.books.find(id)
    }
    fn reduce(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        self.books.reduce(instrument, id, qty)
    }
    fn increase(&mut self, instrument: InstrumentId, id: OrderId, qty: Qty) -> Option<Qty> {
        self.books.increase(instrument, id, qty)
    }
    fn remove(&mut self, instrument: InstrumentId, id: OrderId) -> Option<Order<()>> {
        self.books.remove(instrument, id)
    }
    fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.books.best(instrument, side)
    }
    fn front(&self, instrument: InstrumentId, side: Side) -> Option<Order<()>> {
        self.fronts.borrow_mut().push((instrument, side));
        self.books.front(instrument, side)
    }
    fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> {
        self.books.levels(instrument, side)
    }
    fn orders(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Order<()>> {
        self.books.orders(instrument, side)
    }
    fn queue_position(&self, id: OrderId) -> Option<QueuePosition> {
        self.books.queue_position(id)
    }
    fn prefetch(&self, request: &PrefetchRequest) {
        self.prefetched.borrow_mut().push(request.id);
        self.books.prefetch(request);
    }
}

struct DiscardUpdates;

impl UpdateListener for DiscardUpdates {
    fn on_update(&mut self, _: &MarketUpdate) {}
}

fn listed(id: u16) -> Instrument {
    Instrument::in_cents(InstrumentId(id), Symbol::new("ALPHA").unwrap(), Price(1_000_000))
}

/// Creates a builder with two orders at each best price of every instrument; for instrument 3, orders 300 and
/// 301 are first in the queues.
fn builder(instrument_count: u16) -> BookBuilder<RecordingBooks> {
    let books = RecordingBooks::new(BookLimits::new(InstrumentId(instrument_count), 1_024));
    let mut builder = BookBuilder::new(books);
    for id in 1..=instrument_count {
        for number in 0..4 {
            let side = Side::BOTH[number as usize % 2];
            let (order_id, price) =
                (OrderId(100 * u64::from(id) + number), Price(1_000_000 - side.sign() * 100));
            let kind = MarketEventKind::Add { order_id, side, price, qty: Qty(10) };
            let (sequence, instrument) = (Sequence(order_id.0), InstrumentId(id));
            let event = MarketEvent { sequence, command: sequence, ts: Nanos(1), instrument, kind };
            let message = market_event_message(&event, Some(&listed(id))).unwrap();
            builder.handle_message(sequence, &message, &mut DiscardUpdates);
        }
    }
    builder.books().fronts.take();
    builder
}

fn state(builder: &BookBuilder<RecordingBooks>) -> (u64, BuilderCounters) {
    (builder.books().state_hash(), *builder.counters())
}

#[test]
fn a_prefetch_takes_any_bytes() {
    let builder = builder(3);
    let before = state(&builder);
    for order_ref in [0, 1, 100, 301, 303, 1 << 20, 1 << 40, u64::MAX] {
        let delete = OrderDelete::new(InstrumentId(1), 0_u16, Nanos(1), OrderId(order_ref));
        let mut bytes = delete.as_bytes().to_vec();
        bytes.resize(70, 0xff);
        for len in 0..=bytes.len() {
            builder.prefetch(&bytes[..len]);
        }
    }
    for byte in 0..=u8::MAX {
        builder.prefetch(&[byte; 64]);
    }
    assert_eq!(state(&builder), before);

    let empty = BookBuilder::new(PackedBooks::new(BookLimits::new(InstrumentId(1), 1)));
    empty.prefetch(&[0; 36]);
    assert_eq!(empty.books().order_count(), 0);
}

#[test]
fn refresh_covers_all_instruments_and_changes_nothing() {
    for count in [1, 3, 8, 9, 20] {
        let mut builder = builder(count);
        let before = state(&builder);
        let mut visited = Vec::new();
        for _ in 0..10 {
            builder.instruments_mut().refresh_fronts();
            let fronts = builder.books().fronts.take();
            assert!(
                !fronts.is_empty() && fronts.len() <= 2 * usize::from(count.min(8)),
                "{count}: {fronts:?}"
            );
            visited.extend(fronts);
        }
        let expected = (1..=count).cycle().flat_map(|id| Side::BOTH.map(|side| (InstrumentId(id), side)));
        assert_eq!(visited, expected.take(visited.len()).collect::<Vec<_>>());
        assert!(visited.len() >= 4 * usize::from(count), "all of {count}, and again");
        let firsts = visited
            .iter()
            .map(|(id, side)| OrderId(100 * u64::from(id.0) + u64::from(*side == Side::BOTH[1])));
        assert_eq!(builder.books().prefetched.take(), firsts.collect::<Vec<_>>());
        assert_eq!(state(&builder), before);
    }
}

#[test]
fn there_may_be_nothing_to_refresh() {
    let mut without_instruments = builder(0);
    without_instruments.instruments_mut().refresh_fronts();
    assert!(without_instruments.books().fronts.take().is_empty());

    let books = RecordingBooks::new(BookLimits::new(InstrumentId(2), 8));
    let mut without_orders = BookBuilder::new(books);
    without_orders.instruments_mut().refresh_fronts();
    assert_eq!(without_orders.books().fronts.take().len(), 4);
    assert!(without_orders.books().prefetched.take().is_empty());
}

#[test]
fn refresh_covers_the_maximum_number_of_instruments() {
    let books = RecordingBooks::new(BookLimits::new(InstrumentId(u16::MAX), 1));
    let mut builder = BookBuilder::new(books);
    let mut visited = Vec::new();
    while visited.len() <= 2 * usize::from(u16::MAX) {
        builder.instruments_mut().refresh_fronts();
        visited.extend(builder.books().fronts.take().into_iter().map(|(id, _)| id.0));
    }
    assert_eq!(visited[2 * usize::from(u16::MAX) - 1..][..2], [u16::MAX, 1]);
}

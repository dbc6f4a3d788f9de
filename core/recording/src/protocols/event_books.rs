//! Books from recorded events of any format.

use tickpath_book::{BooksById, Order};
use tickpath_feed::{BuilderCounters, Change, UpdateListener};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, Qty, Side, UpdateKind};

use crate::updates::Updates;
use crate::{Depth, EventKind, Level, RecordedEvent, RecordingInfo};

/// Builds order-by-order books from [`RecordedEvent`]s.
///
/// A recording that reports the outcome of each fill in a separate record ([`RecordingInfo::sums_fills`]:
/// Databento MBO) changes its books only by those records, as Databento specifies. In any other recording, a
/// fill reduces the order. In a best-levels recording, an order below the best levels may leave the book
/// without a message. The books remove it when an event proves that it left, see
/// [`EventBooks::unreported`]. Orders are found by their reference alone, so two instruments must not use the
/// same reference at the same time.
pub struct EventBooks<B> {
    books: B,
    counters: BuilderCounters,
    do_fills_change_books: bool,
    depth: Depth,
    unreported: u64,
}

/// Returns the books' id of the instrument with this index in the recording; `None` if it exceeds 16 bits.
pub(crate) fn instrument_id(index: u32) -> Option<InstrumentId> {
    u16::try_from(index + 1).ok().map(InstrumentId)
}

impl<B: BooksById> EventBooks<B> {
    pub(crate) fn new(books: B, info: RecordingInfo) -> EventBooks<B> {
        let counters = BuilderCounters::default();
        let (do_fills_change_books, depth) = (!info.sums_fills, info.depth);
        EventBooks { books, counters, do_fills_change_books, depth, unreported: 0 }
    }

    /// The order-by-order books that the events changed.
    pub(crate) const fn books(&self) -> &B {
        &self.books
    }

    /// Number of orders removed because an event of a best-levels recording proves their removal.
    pub(crate) const fn unreported(&self) -> u64 {
        self.unreported
    }

    /// Applies event `number` of the file, which is at `index` in its block.
    #[inline]
    pub(crate) fn apply_event(
        &mut self,
        number: u64,
        index: usize,
        event: &RecordedEvent,
        updates: &mut Updates,
    ) {
        let before = self.counters;
        self.handle(number, event, updates);
        updates.record(&before, &self.counters, || index..=index);
    }

    fn handle(&mut self, number: u64, event: &RecordedEvent, updates: &mut Updates) {
        self.counters.messages += 1;
        let Some(instrument) = instrument_id(event.instrument) else {
            self.counters.refused += 1;
            return;
        };
        if let (Depth::Partial { levels }, Some(level)) = (self.depth, event.kind.level()) {
            self.remove_unreported(instrument, &event.kind, level, levels == Some(1));
        }
        if let Some(change) = self.handle_kind(instrument, Nanos(event.ts_ns), &event.kind) {
            updates.on_update(&change.update(number, &self.books, BookHealth::Live));
        }
    }

    fn handle_kind(&mut self, instrument: InstrumentId, ts: Nanos, kind: &EventKind) -> Option<Change> {
        let change = |kind, order_id, level, qty| {
            let (Level { side, price }, order_id) = (level, OrderId(order_id));
            Some(Change { instrument, ts, kind, order_id, side, price, qty })
        };
        match *kind {
            EventKind::Add { order_id, level, qty } => {
                self.add(instrument, order_id, level, qty);
                change(UpdateKind::Add, order_id, level, qty)
            }
            EventKind::Delete { order_id, qty, .. } => {
                let order = self.resting(instrument, order_id)?;
                let qty = qty.unwrap_or(order.qty);
                self.reduce(&order, qty);
                change(UpdateKind::Delete, order_id, level(&order), qty)
            }
            EventKind::Reduce { order_id, by, .. } => {
                let order = self.resting(instrument, order_id)?;
                self.reduce(&order, by);
                change(UpdateKind::Reduce, order_id, level(&order), by)
            }
            EventKind::Modify { order_id, level, qty } => {
                self.modify(instrument, order_id, level, qty);
                change(UpdateKind::Replace, order_id, level, qty)
            }
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                let order = self.resting(instrument, order_id)?;
                self.books.remove(instrument, OrderId(order_id));
                let level = Level { side: order.side, price };
                self.add(instrument, new_order_id, level, qty);
                change(UpdateKind::Replace, new_order_id, level, qty)
            }
            EventKind::Fill { order_id, qty, price, in_auction: false, .. } if self.do_fills_change_books => {
                let order = self.resting(instrument, order_id)?;
                self.reduce(&order, qty);
                let level = Level { side: order.side, price: price.unwrap_or(order.price) };
                change(UpdateKind::Trade, order_id, level, qty)
            }
            EventKind::Clear => {
                self.clear(instrument);
                Some(Change::status(instrument, ts))
            }
            EventKind::Fill { .. }
            | EventKind::Trade { .. }
            | EventKind::Status(_)
            | EventKind::Ignored(_) => None,
        }
    }

    #[inline]
    fn add(&mut self, instrument: InstrumentId, order_id: u64, level: Level, qty: Qty) {
        let Level { side, price } = level;
        let order = Order { id: OrderId(order_id), instrument, side, price, qty, data: () };
        if self.books.find(order.id).is_some() {
            self.counters.duplicate_order += 1;
        } else if self.books.add(order).is_err() {
            self.counters.refused += 1;
        }
    }

    /// Changes an order. It keeps its priority if only reduced; otherwise it moves to the tail of its level.
    fn modify(&mut self, instrument: InstrumentId, order_id: u64, level: Level, qty: Qty) {
        match self.resting(instrument, order_id) {
            Some(order) if level == self::level(&order) && qty <= order.qty => {
                self.reduce(&order, Qty(order.qty.0 - qty.0));
            }
            Some(order) => {
                self.books.remove(instrument, order.id);
                if !qty.is_zero() {
                    self.add(instrument, order_id, level, qty);
                }
            }
            None => self.add(instrument, order_id, level, qty),
        }
    }

    fn clear(&mut self, instrument: InstrumentId) {
        for side in Side::BOTH {
            while let Some(front) = self.books.front(instrument, side) {
                self.books.remove(instrument, front.id);
            }
        }
    }

    /// Removes orders that, as an event proves, no longer rest. A fill, or any event of a recording of one
    /// level, is at the best price, so no better order rests. An added order did not trade, so it crosses no
    /// resting order.
    fn remove_unreported(
        &mut self,
        instrument: InstrumentId,
        kind: &EventKind,
        level: Level,
        is_best_level: bool,
    ) {
        let Level { side, price } = level;
        if is_best_level || matches!(kind, EventKind::Fill { .. }) {
            while self.books.best_price(instrument, side).is_some_and(|best| side.is_better(best, price)) {
                self.remove_front(instrument, side);
            }
        }
        if matches!(kind, EventKind::Add { .. }) {
            while self.books.would_trade(instrument, side, price) {
                self.remove_front(instrument, side.opposite());
            }
        }
    }

    fn remove_front(&mut self, instrument: InstrumentId, side: Side) {
        if let Some(front) = self.books.front(instrument, side) {
            self.books.remove(instrument, front.id);
            self.unreported += 1;
        }
    }

    #[inline]
    fn resting(&mut self, instrument: InstrumentId, order_id: u64) -> Option<Order<()>> {
        let found = self.books.find(OrderId(order_id)).filter(|order| order.instrument == instrument);
        self.counters.unknown_order += u64::from(found.is_none());
        found
    }

    #[inline]
    fn reduce(&mut self, order: &Order<()>, by: Qty) {
        self.counters.beyond_qty += u64::from(by > order.qty);
        self.books.reduce(order.instrument, order.id, by.min(order.qty));
    }
}

fn level(order: &Order<()>) -> Level {
    Level { side: order.side, price: order.price }
}

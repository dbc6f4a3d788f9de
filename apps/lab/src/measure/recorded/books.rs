//! Books from the events of a recording, by the rules of `tickpath replay` and without what it reports of each.

use tickpath_book::{BookLimits, IndexLimits, Order, OrderBooks, OrderHandle, OrderIndex};
use tickpath_capture::{Depth, EventKind, Level, RecordedEvent, RecordingInfo};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// The first instrument of a recording, and the only one of those that are measured.
const INSTRUMENT: InstrumentId = InstrumentId(1);

/// Order-by-order books of the one instrument of a recording.
pub(super) struct RecordedBooks<B> {
    books: B,
    index: OrderIndex,
    info: RecordingInfo,
    /// Events so far.
    pub(super) events: u64,
    /// Events about orders that do not rest: in a recording of the best levels, orders older than it.
    pub(super) unknown: u64,
    /// Events that no book can follow: of another instrument, an order that rests already, more than an order
    /// has, no room.
    pub(super) contradictions: u64,
}

impl<B: OrderBooks<()>> RecordedBooks<B> {
    pub(super) fn new(max_orders: u32, info: RecordingInfo) -> RecordedBooks<B> {
        RecordedBooks {
            books: B::new(BookLimits::new(INSTRUMENT, max_orders)),
            index: OrderIndex::new(IndexLimits::hashed(max_orders)),
            info,
            events: 0,
            unknown: 0,
            contradictions: 0,
        }
    }

    pub(super) fn books(&self) -> &B {
        &self.books
    }

    #[inline]
    pub(super) fn handle_event(&mut self, event: &RecordedEvent) {
        self.events += 1;
        if event.instrument != 0 {
            self.contradictions += 1;
            return;
        }
        if let Depth::Partial { levels } = self.info.depth {
            self.take_out_unreported(&event.kind, levels == Some(1));
        }
        match event.kind {
            EventKind::Add { order_id, level, qty } => self.add(order_id, level, qty),
            EventKind::Delete { order_id, qty, .. } => {
                if let Some((handle, order)) = self.resting(order_id) {
                    self.reduce(handle, &order, qty.unwrap_or(order.qty));
                }
            }
            EventKind::Reduce { order_id, by, .. } => {
                if let Some((handle, order)) = self.resting(order_id) {
                    self.reduce(handle, &order, by);
                }
            }
            EventKind::Modify { order_id, level, qty } => self.modify(order_id, level, qty),
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                if let Some((handle, order)) = self.resting(order_id) {
                    self.remove(handle, order_id);
                    self.add(new_order_id, Level { side: order.side, price }, qty);
                }
            }
            // Where the outcome of a fill is reported once more, that alone changes the book.
            EventKind::Fill { order_id, qty, in_auction: false, .. } if !self.info.sums_fills => {
                if let Some((handle, order)) = self.resting(order_id) {
                    self.reduce(handle, &order, qty);
                }
            }
            EventKind::Clear => {
                Side::BOTH.into_iter().for_each(|side| while self.take_out_front(side) {});
            }
            EventKind::Fill { .. }
            | EventKind::Trade { .. }
            | EventKind::Status(_)
            | EventKind::Ignored(_) => {}
        }
    }

    fn add(&mut self, order_id: u64, Level { side, price }: Level, qty: Qty) {
        let order = Order { id: OrderId(order_id), instrument: INSTRUMENT, side, price, qty, data: () };
        if self.index.find(order_id).is_some() {
            self.contradictions += 1;
            return;
        }
        match self.books.add(order) {
            Ok(handle) if self.index.insert(order_id, handle).is_ok() => {}
            _ => self.contradictions += 1,
        }
    }

    /// A smaller order keeps its place; at another price or with more it goes to the tail.
    fn modify(&mut self, order_id: u64, level: Level, qty: Qty) {
        let found = self.index.find(order_id).and_then(|handle| Some((handle, self.books.order(handle)?)));
        match found {
            Some((handle, order))
                if (order.side, order.price) == (level.side, level.price) && qty <= order.qty =>
            {
                self.reduce(handle, &order, Qty(order.qty.0 - qty.0));
            }
            _ => {
                if let Some((handle, _)) = found {
                    self.remove(handle, order_id);
                }
                if !qty.is_zero() {
                    self.add(order_id, level, qty);
                }
            }
        }
    }

    /// What is reported at the best level, and every fill, is at the best price: nothing better rests. What is
    /// added does not trade: nothing that it would cross rests.
    fn take_out_unreported(&mut self, kind: &EventKind, is_best_level: bool) {
        let Some(Level { side, price }) = level_of(kind) else { return };
        if is_best_level || matches!(kind, EventKind::Fill { .. }) {
            let is_better = |best: Price| side.is_better(best, price);
            while self.books.best_price(INSTRUMENT, side).is_some_and(is_better) {
                self.take_out_front(side);
            }
        }
        if matches!(kind, EventKind::Add { .. }) {
            while self.books.would_trade(INSTRUMENT, side, price) {
                self.take_out_front(side.opposite());
            }
        }
    }

    fn take_out_front(&mut self, side: Side) -> bool {
        let Some(front) = self.books.front(INSTRUMENT, side) else { return false };
        let order = self.books.remove(front);
        self.index.remove(order.id.0);
        true
    }

    #[inline]
    fn resting(&mut self, order_id: u64) -> Option<(OrderHandle, Order<()>)> {
        let found = self.index.find(order_id).and_then(|handle| Some((handle, self.books.order(handle)?)));
        self.unknown += u64::from(found.is_none());
        found
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, order: &Order<()>, by: Qty) {
        self.contradictions += u64::from(by > order.qty);
        if by >= order.qty {
            self.remove(handle, order.id.0);
        } else if !by.is_zero() {
            self.books.reduce(handle, by);
        }
    }

    #[inline]
    fn remove(&mut self, handle: OrderHandle, order_id: u64) {
        self.books.remove(handle);
        self.index.remove(order_id);
    }
}

/// Where in the book an event is, outside auctions.
fn level_of(kind: &EventKind) -> Option<Level> {
    match *kind {
        EventKind::Add { level, .. } | EventKind::Modify { level, .. } => Some(level),
        EventKind::Delete { level, .. } | EventKind::Reduce { level, .. } => level,
        EventKind::Fill { side, price, in_auction: false, .. } => {
            side.zip(price).map(|(side, price)| Level { side, price })
        }
        _ => None,
    }
}

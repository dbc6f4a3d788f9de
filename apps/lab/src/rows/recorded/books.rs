//! Books from the events of a recording, by the rules of `tickpath replay` but without its report of each
//! event.

use std::hint::select_unpredictable;

use tickpath_book::{BookLimits, Order, OrderBooks, OrderHandle, OrderIndex};
use tickpath_capture::{Depth, EventKind, Level, RecordedEvent, RecordingInfo};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// The first instrument of a recording; the measured recordings have no other one.
const INSTRUMENT: InstrumentId = InstrumentId(1);

/// Capacity of the order index, as a multiple of the maximum number of resting orders.
const INDEX_CAPACITY: u32 = 4;

/// Order-by-order books of the one instrument of a recording.
pub(super) struct RecordedBooks<B> {
    books: B,
    index: OrderIndex,
    info: RecordingInfo,
    /// Number of events handled so far.
    pub(super) events: u64,
    /// Number of events about orders that are not in the books; in a recording of the best levels, these
    /// orders are older than the recording.
    pub(super) unknown: u64,
    /// Number of events that the books cannot apply: for another instrument, for an order that already rests,
    /// for more than an order's quantity, or beyond the capacity.
    pub(super) contradictions: u64,
}

impl<B: OrderBooks<()>> RecordedBooks<B> {
    pub(super) fn new(max_orders: u32, info: RecordingInfo) -> RecordedBooks<B> {
        RecordedBooks {
            books: B::new(BookLimits::new(INSTRUMENT, max_orders)),
            // A venue's ids come in clusters. With spare capacity in the table, nearly every id has a slot in
            // its own bucket.
            index: OrderIndex::new(max_orders.saturating_mul(INDEX_CAPACITY)),
            info,
            events: 0,
            unknown: 0,
            contradictions: 0,
        }
    }

    pub(super) fn books(&self) -> &B {
        &self.books
    }

    #[inline(always)]
    pub(super) fn handle_event(&mut self, event: &RecordedEvent) {
        self.events += 1;
        if event.instrument != 0 {
            self.contradictions += 1;
            return;
        }
        match event.kind {
            EventKind::Add { order_id, level, qty } => {
                self.remove_better_than_best(level);
                self.remove_crossed(level);
                self.add(order_id, level, qty);
            }
            EventKind::Delete { order_id, level, qty } => {
                level.into_iter().for_each(|level| self.remove_better_than_best(level));
                self.delete(order_id, qty);
            }
            EventKind::Reduce { order_id, by, level } => {
                level.into_iter().for_each(|level| self.remove_better_than_best(level));
                self.reduce_known(order_id, by);
            }
            EventKind::Modify { order_id, level, qty } => {
                self.remove_better_than_best(level);
                self.modify(order_id, level, qty);
            }
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                if let Some((handle, order)) = self.resting(order_id) {
                    self.remove(handle, order_id);
                    self.add(new_order_id, Level { side: order.side, price }, qty);
                }
            }
            EventKind::Fill { order_id, qty, side, price, in_auction: false } => {
                if let (true, Some(side), Some(price)) = (self.is_partial(), side, price) {
                    self.remove_better(Level { side, price });
                }
                // If the recording reports the outcome of a fill separately, only that report changes the
                // book.
                if !self.info.sums_fills {
                    self.reduce_known(order_id, qty);
                }
            }
            EventKind::Clear => {
                Side::BOTH.into_iter().for_each(|side| while self.remove_front(side) {});
            }
            EventKind::Fill { .. }
            | EventKind::Trade { .. }
            | EventKind::Status(_)
            | EventKind::Ignored(_) => {}
        }
    }

    #[inline]
    fn add(&mut self, order_id: u64, Level { side, price }: Level, qty: Qty) {
        let order = Order { id: OrderId(order_id), instrument: INSTRUMENT, side, price, qty, data: () };
        let Ok(handle) = self.books.add(order) else {
            self.contradictions += 1;
            return;
        };
        if self.index.insert(order_id, handle).is_err() {
            self.contradictions += 1;
            self.books.remove(handle);
        }
    }

    #[inline]
    fn delete(&mut self, order_id: u64, qty: Option<Qty>) {
        // Remove the order from the index first, because nearly always the whole order is deleted.
        let Some(handle) = self.index.remove(order_id) else {
            self.unknown += 1;
            return;
        };
        let resting = self.books.order(handle).map_or(Qty::ZERO, |order| order.qty);
        match qty {
            Some(qty) if qty < resting => {
                self.contradictions += u64::from(self.index.insert(order_id, handle).is_err());
                self.books.reduce(handle, qty);
            }
            _ => {
                self.contradictions += u64::from(qty.is_some_and(|qty| qty > resting));
                self.books.remove(handle);
            }
        }
    }

    #[inline]
    fn reduce_known(&mut self, order_id: u64, by: Qty) {
        if let Some((handle, order)) = self.resting(order_id) {
            self.reduce(handle, &order, by);
        }
    }

    /// Modifies an order, which loses its priority if the price changes or the quantity grows.
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

    #[inline]
    const fn is_partial(&self) -> bool {
        matches!(self.info.depth, Depth::Partial { .. })
    }

    /// In a best-level recording, removes orders better than `level`: every event, except an auction's fill,
    /// is at the best price.
    #[inline]
    fn remove_better_than_best(&mut self, level: Level) {
        if matches!(self.info.depth, Depth::Partial { levels: Some(1) }) {
            self.remove_better(level);
        }
    }

    /// Removes orders at prices better than `price`; an event at `price` shows that they no longer rest.
    #[inline]
    fn remove_better(&mut self, Level { side, price }: Level) {
        // An opposite order, priced one unit beyond `price`, would trade with exactly the better orders.
        let better = select_unpredictable(side == Side::Buy, 1, -1);
        let beyond = Price(price.0.saturating_add(better));
        while self.books.would_trade(INSTRUMENT, side.opposite(), beyond) {
            self.remove_front(side);
        }
    }

    /// In a partial recording, removes the opposite orders that a new order at this level would trade with:
    /// the new order rests, so they no longer do.
    #[inline]
    fn remove_crossed(&mut self, Level { side, price }: Level) {
        if self.is_partial() {
            while self.books.would_trade(INSTRUMENT, side, price) {
                self.remove_front(side.opposite());
            }
        }
    }

    fn remove_front(&mut self, side: Side) -> bool {
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

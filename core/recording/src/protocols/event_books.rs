//! Books from recorded events of any format.

use tickpath_book::{BooksById, Order};
use tickpath_feed::{BuilderCounters, UpdateListener};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, OrderId, Price, Qty, SIDE_NOT_STATED, Side, UpdateKind,
};

use crate::updates::Updates;
use crate::{Depth, EventKind, Level, RecordedEvent, RecordingInfo};

/// Builds order-by-order books from [`RecordedEvent`]s.
///
/// A recording that reports the outcome of each fill in a record of its own
/// ([`RecordingInfo::sums_fills`]: Databento MBO) changes its books by those alone, as its documentation has
/// it; in any other a fill takes its quantity off the order. In a recording of the best levels an order that
/// sank below them may go without a word; it is taken out when an event shows that it must be gone, see
/// [`EventBooks::unreported`]. References are looked up by number, so two
/// instruments must not use the same one at a time.
pub struct EventBooks<B> {
    books: B,
    counters: BuilderCounters,
    do_fills_change_books: bool,
    depth: Depth,
    unreported: u64,
}

/// The id in the books of an instrument of a recording; `None` beyond the last one.
pub(crate) fn instrument_id(index: u32) -> Option<InstrumentId> {
    u16::try_from(index + 1).ok().map(InstrumentId)
}

/// One event being applied, and what it did.
struct Applied {
    kind: UpdateKind,
    order_id: u64,
    level: Level,
    qty: Qty,
}

impl<B: BooksById> EventBooks<B> {
    pub(crate) fn new(books: B, info: RecordingInfo) -> EventBooks<B> {
        let counters = BuilderCounters::default();
        let (do_fills_change_books, depth) = (!info.sums_fills, info.depth);
        EventBooks { books, counters, do_fills_change_books, depth, unreported: 0 }
    }

    /// The books under these.
    pub(crate) const fn books(&self) -> &B {
        &self.books
    }

    /// Orders that were taken out because an event of a recording of the best levels proves them gone.
    pub(crate) const fn unreported(&self) -> u64 {
        self.unreported
    }

    /// Applies the event of a number, which has the place `index` in its block.
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
        updates.note(&before, &self.counters, || index..=index);
    }

    fn handle(&mut self, number: u64, event: &RecordedEvent, updates: &mut Updates) {
        self.counters.messages += 1;
        let Some(instrument) = instrument_id(event.instrument) else {
            self.counters.refused += 1;
            return;
        };
        if let (Depth::Partial { levels }, Some(level)) = (self.depth, event.kind.level()) {
            self.take_out_unreported(instrument, &event.kind, level, levels == Some(1));
        }
        if let Some(applied) = self.handle_kind(instrument, &event.kind) {
            let Applied { kind, order_id, level: Level { side, price }, qty } = applied;
            let (price, qty, side) = (price.0, qty.0, side as u8);
            let update = market_update(&self.books, number, event.ts_ns, instrument, kind);
            updates.on_update(&MarketUpdate { order_id, price, qty, side, ..update });
        }
    }

    fn handle_kind(&mut self, instrument: InstrumentId, kind: &EventKind) -> Option<Applied> {
        match *kind {
            EventKind::Add { order_id, level, qty } => {
                self.add(instrument, order_id, level, qty);
                Some(Applied { kind: UpdateKind::Add, order_id, level, qty })
            }
            EventKind::Delete { order_id, qty, .. } => {
                let order = self.resting(instrument, order_id)?;
                let qty = qty.unwrap_or(order.qty);
                self.reduce(&order, qty);
                Some(Applied { kind: UpdateKind::Delete, order_id, level: level(&order), qty })
            }
            EventKind::Reduce { order_id, by, .. } => {
                let order = self.resting(instrument, order_id)?;
                self.reduce(&order, by);
                Some(Applied { kind: UpdateKind::Reduce, order_id, level: level(&order), qty: by })
            }
            EventKind::Modify { order_id, level, qty } => {
                self.modify(instrument, order_id, level, qty);
                Some(Applied { kind: UpdateKind::Replace, order_id, level, qty })
            }
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                let order = self.resting(instrument, order_id)?;
                self.books.remove(instrument, OrderId(order_id));
                let level = Level { side: order.side, price };
                self.add(instrument, new_order_id, level, qty);
                Some(Applied { kind: UpdateKind::Replace, order_id: new_order_id, level, qty })
            }
            EventKind::Fill { order_id, qty, price, in_auction: false, .. } if self.do_fills_change_books => {
                let order = self.resting(instrument, order_id)?;
                self.reduce(&order, qty);
                let level = Level { side: order.side, price: price.unwrap_or(order.price) };
                Some(Applied { kind: UpdateKind::Trade, order_id, level, qty })
            }
            EventKind::Clear => {
                self.clear(instrument);
                let level = Level { side: Side::Buy, price: Price(0) };
                Some(Applied { kind: UpdateKind::Status, order_id: 0, level, qty: Qty::ZERO })
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

    /// A smaller order keeps its place; at another price or with more it goes to the tail.
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

    /// What is reported at the best level, and every fill, is at the best price: nothing better rests. What
    /// is added does not trade: nothing that it would cross rests.
    fn take_out_unreported(
        &mut self,
        instrument: InstrumentId,
        kind: &EventKind,
        level: Level,
        is_best_level: bool,
    ) {
        let Level { side, price } = level;
        if is_best_level || matches!(kind, EventKind::Fill { .. }) {
            while self.books.best_price(instrument, side).is_some_and(|best| side.is_better(best, price)) {
                self.take_out_front(instrument, side);
            }
        }
        if matches!(kind, EventKind::Add { .. }) {
            while self.books.would_trade(instrument, side, price) {
                self.take_out_front(instrument, side.opposite());
            }
        }
    }

    fn take_out_front(&mut self, instrument: InstrumentId, side: Side) {
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

/// An update of an instrument's best prices; everything about an order is left blank.
pub(super) fn market_update(
    books: &impl BooksById,
    number: u64,
    ts_ns: u64,
    instrument: InstrumentId,
    kind: UpdateKind,
) -> MarketUpdate {
    let best = |side| books.best(instrument, side).map_or((0, 0), |level| (level.price.0, level.qty.0));
    let ((bid_price, bid_qty), (ask_price, ask_qty)) = (best(Side::Buy), best(Side::Sell));
    MarketUpdate {
        sequence: number,
        ts_event: ts_ns,
        order_id: 0,
        price: 0,
        qty: 0,
        bid_price,
        bid_qty,
        ask_price,
        ask_qty,
        instrument: instrument.0,
        kind: kind as u8,
        side: SIDE_NOT_STATED,
        health: BookHealth::Live as u8,
        reason: 0,
        trading: 0,
        reserved: 0,
    }
}

fn level(order: &Order<()>) -> Level {
    Level { side: order.side, price: order.price }
}

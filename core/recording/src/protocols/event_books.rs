//! Books from recorded events of any format.

use arrayvec::ArrayVec;
use tickpath_book::{BooksById, ChangeKind, Order, OrderChange, OrderGroup, OrderMessages, Step};
use tickpath_feed::{BuilderCounters, Change, UpdateListener};
use tickpath_types::{BookHealth, InstrumentId, Nanos, OrderId, Price, Qty, Side, UpdateKind};

use crate::{Depth, EventKind, Level, RecordedEvent, RecordingInfo};

/// Number of events that the books apply together, see [`OrderGroup::LEN_MAX`].
pub const EVENT_GROUP_LEN: usize = OrderGroup::LEN_MAX;

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
    group: OrderGroup,
}

/// Returns the books' id of the instrument with this index in the recording; `None` if it exceeds 16 bits.
pub(crate) fn instrument_id(index: u32) -> Option<InstrumentId> {
    u16::try_from(index + 1).ok().map(InstrumentId)
}

impl<B: BooksById> EventBooks<B> {
    /// Creates books of a recording with these properties on `books`, which have no orders.
    pub fn new(books: B, info: RecordingInfo) -> EventBooks<B> {
        let counters = BuilderCounters::default();
        let (do_fills_change_books, depth) = (!info.sums_fills, info.depth);
        EventBooks {
            books,
            counters,
            do_fills_change_books,
            depth,
            unreported: 0,
            group: OrderGroup::default(),
        }
    }

    /// The order-by-order books that the events changed.
    pub const fn books(&self) -> &B {
        &self.books
    }

    /// Counters of events and of contradictions between events and books.
    pub const fn counters(&self) -> &BuilderCounters {
        &self.counters
    }

    /// Number of orders removed because an event of a best-levels recording proves their removal.
    pub const fn unreported(&self) -> u64 {
        self.unreported
    }

    /// Applies events in order; `first` is the number of the first one in the file, and the sequence number of
    /// its update. After each event that may contradict the books, calls `check` with its index in `events` and
    /// the counters before it and after it.
    #[inline]
    pub fn handle_events<L: UpdateListener>(
        &mut self,
        first: u64,
        events: &[RecordedEvent],
        out: &mut L,
        mut check: impl FnMut(&mut L, usize, &BuilderCounters, &BuilderCounters),
    ) {
        for (group, start) in events.chunks(EVENT_GROUP_LEN).zip((0..).step_by(EVENT_GROUP_LEN)) {
            let indices = self.prepare_group(group);
            self.counters.messages += group.len() as u64;
            self.apply_group(first + start as u64, &indices, group, out, |out, index, before, after| {
                check(out, start + index, before, after);
            });
        }
    }

    /// Puts events into the group, and prefetches the memory that they need. Returns their indices. Leaves out
    /// events that have no effect on books.
    // Not inlined, so that the loop can use all CPU registers.
    #[inline(never)]
    fn prepare_group(&mut self, events: &[RecordedEvent]) -> ArrayVec<u8, EVENT_GROUP_LEN> {
        let is_partial = self.depth != Depth::Full;
        let orders = EventOrders { do_fills_change_books: self.do_fills_change_books };
        let may_change_books = |event: &RecordedEvent| match event.kind {
            EventKind::Fill { in_auction, .. } => !in_auction & (orders.do_fills_change_books | is_partial),
            EventKind::Trade { .. } | EventKind::Status(_) | EventKind::Ignored(_) => false,
            _ => true,
        };
        // An event of an instrument without a book is counted.
        let has_effect =
            |event: &RecordedEvent| may_change_books(event) || instrument_id(event.instrument).is_none();
        let indices: ArrayVec<u8, EVENT_GROUP_LEN> =
            (0..).zip(events).filter(|(_, event)| has_effect(event)).map(|(index, _)| index).collect();
        self.books.prepare(
            &mut self.group,
            indices.iter().map(|index| &events[usize::from(*index)]),
            &orders,
        );
        indices
    }

    /// Applies the events of the prepared group; `number` is that of the first of `events`.
    #[inline(never)]
    fn apply_group<L: UpdateListener>(
        &mut self,
        number: u64,
        indices: &[u8],
        events: &[RecordedEvent],
        out: &mut L,
        mut check: impl FnMut(&mut L, usize, &BuilderCounters, &BuilderCounters),
    ) {
        // In a recording of the best levels, each event may prove that orders left before it, so the group stops
        // after each event.
        let is_partial = self.depth != Depth::Full;
        let mut checked = indices.iter().map(|index| &events[usize::from(*index)]);
        loop {
            if is_partial && let Some(next) = checked.next() {
                self.remove_unreported(next);
            }
            let step = match L::WANTS_UPDATES || is_partial {
                true => self.books.advance::<true>(&mut self.group),
                false => self.books.advance::<false>(&mut self.group),
            };
            let Some(index) = step.index() else { return };
            let index = usize::from(indices[index]);
            self.end_step(step, number + index as u64, &events[index], out, |out, before, after| {
                check(out, index, before, after);
            });
        }
    }

    /// Reports an event that the group applied, or applies it if the group did not.
    #[inline(always)]
    fn end_step<L: UpdateListener>(
        &mut self,
        step: Step,
        number: u64,
        event: &RecordedEvent,
        out: &mut L,
        check: impl FnOnce(&mut L, &BuilderCounters, &BuilderCounters),
    ) {
        let change = match step {
            Step::Applied { side, price, qty, .. } if L::WANTS_UPDATES => {
                instrument_id(event.instrument).and_then(|it| applied(it, event, Level { side, price }, qty))
            }
            Step::Applied { .. } => None,
            step => {
                let before = self.counters;
                let change = self.apply_alone(step, event);
                check(out, &before, &self.counters);
                change
            }
        };
        if let Some(change) = change.filter(|_| L::WANTS_UPDATES) {
            out.on_update(&change.update(number, &self.books, BookHealth::Live));
        }
    }

    /// Applies an event that the group did not apply, or of which it only removed the old order.
    #[inline(never)]
    fn apply_alone(&mut self, step: Step, event: &RecordedEvent) -> Option<Change> {
        let Some(instrument) = instrument_id(event.instrument) else {
            self.counters.refused += 1;
            return None;
        };
        let ts = Nanos(event.ts_ns);
        let Step::NewOrderException { side, .. } = step else {
            return self.handle_kind(instrument, ts, &event.kind);
        };
        let (order_id, level, qty) = match event.kind {
            EventKind::Modify { order_id, level, qty } => (order_id, level, qty),
            EventKind::Replace { new_order_id, price, qty, .. } => (new_order_id, Level { side, price }, qty),
            _ => return None,
        };
        // A modification to quantity zero only removes the order.
        if !qty.is_zero() || matches!(event.kind, EventKind::Replace { .. }) {
            self.add(instrument, order_id, level, qty);
        }
        let (Level { side, price }, order_id) = (level, OrderId(order_id));
        Some(Change { instrument, ts, kind: UpdateKind::Replace, order_id, side, price, qty })
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

    /// Removes orders that, as an event of a recording of the best levels proves, no longer rest. A fill, or any
    /// event of a recording of one level, is at the best price, so no better order rests. An added order did
    /// not trade, so it crosses no resting order.
    #[inline(always)]
    fn remove_unreported(&mut self, event: &RecordedEvent) {
        let (Some(instrument), Some(level)) = (instrument_id(event.instrument), event.kind.level()) else {
            return;
        };
        let Level { side, price } = level;
        let is_best_level = self.depth == Depth::Partial { levels: Some(1) };
        if is_best_level || matches!(event.kind, EventKind::Fill { .. }) {
            while self.books.best_price(instrument, side).is_some_and(|best| side.is_better(best, price)) {
                self.remove_front(instrument, side);
            }
        }
        if matches!(event.kind, EventKind::Add { .. }) {
            while self.books.would_trade(instrument, side, price) {
                self.remove_front(instrument, side.opposite());
            }
        }
    }

    #[cold]
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

/// The changes of orders by events.
struct EventOrders {
    do_fills_change_books: bool,
}

impl OrderMessages<&RecordedEvent> for EventOrders {
    #[inline(always)]
    fn change(&self, event: &&RecordedEvent) -> Option<OrderChange> {
        let instrument = instrument_id(event.instrument)?;
        let change = |kind, order_id, Level { side, price }, qty| {
            Some(OrderChange { kind, id: OrderId(order_id), instrument, side, price, qty })
        };
        // Only an added or modified order needs its level.
        const ANY: Level = Level { side: Side::Buy, price: Price(0) };
        match event.kind {
            EventKind::Add { order_id, level, qty } => change(ChangeKind::Add, order_id, level, qty),
            EventKind::Delete { order_id, qty: Some(by), .. } | EventKind::Reduce { order_id, by, .. } => {
                change(ChangeKind::Reduce, order_id, ANY, by)
            }
            EventKind::Delete { order_id, qty: None, .. } => {
                change(ChangeKind::Delete, order_id, ANY, Qty::ZERO)
            }
            EventKind::Modify { order_id, level, qty } => change(ChangeKind::Modify, order_id, level, qty),
            EventKind::Replace { order_id, price, qty, .. } => {
                change(ChangeKind::Replace, order_id, Level { price, ..ANY }, qty)
            }
            EventKind::Fill { order_id, qty, in_auction: false, .. } if self.do_fills_change_books => {
                change(ChangeKind::Reduce, order_id, ANY, qty)
            }
            EventKind::Fill { .. }
            | EventKind::Trade { .. }
            | EventKind::Clear
            | EventKind::Status(_)
            | EventKind::Ignored(_) => None,
        }
    }

    #[inline(always)]
    fn new_id(&self, event: &&RecordedEvent) -> OrderId {
        match event.kind {
            EventKind::Replace { new_order_id, .. } => OrderId(new_order_id),
            EventKind::Modify { order_id, .. } => OrderId(order_id),
            _ => OrderId(0),
        }
    }
}

/// The effect of an event that a group applied to an order of this level: `qty` was added or removed.
fn applied(instrument: InstrumentId, event: &RecordedEvent, level: Level, qty: Qty) -> Option<Change> {
    let (kind, order_id, price, qty) = match event.kind {
        EventKind::Add { order_id, .. } => (UpdateKind::Add, order_id, level.price, qty),
        EventKind::Delete { order_id, .. } => (UpdateKind::Delete, order_id, level.price, qty),
        EventKind::Reduce { order_id, .. } => (UpdateKind::Reduce, order_id, level.price, qty),
        EventKind::Modify { order_id, qty, .. } => (UpdateKind::Replace, order_id, level.price, qty),
        EventKind::Replace { new_order_id, .. } => (UpdateKind::Replace, new_order_id, level.price, qty),
        EventKind::Fill { order_id, price, .. } => {
            (UpdateKind::Trade, order_id, price.unwrap_or(level.price), qty)
        }
        EventKind::Trade { .. } | EventKind::Clear | EventKind::Status(_) | EventKind::Ignored(_) => {
            return None;
        }
    };
    let (ts, order_id) = (Nanos(event.ts_ns), OrderId(order_id));
    Some(Change { instrument, ts, kind, order_id, side: level.side, price, qty })
}

fn level(order: &Order<()>) -> Level {
    Level { side: order.side, price: order.price }
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, DirectBooks, PackedBooks};
    use tickpath_types::{MarketUpdate, Rng};

    use super::*;
    use crate::updates::Updates;
    use crate::{IgnoredReason, PRICE_DECIMALS, TimeBase};

    type Outcome = (Vec<MarketUpdate>, Vec<(u64, (u64, u64))>, BuilderCounters, u64, u64);

    /// Updates, counters of each check, counters, number of unreported orders and state hash after events.
    fn outcome<B: BooksById>(events: &[RecordedEvent], info: RecordingInfo, batch: usize) -> Outcome {
        let limits = BookLimits::new(InstrumentId(2), 60);
        let mut books = EventBooks::new(B::new(limits), info);
        let (mut updates, mut checks, mut number) = (Updates::default(), Vec::new(), 1);
        for batch in events.chunks(batch) {
            books.handle_events(number, batch, &mut updates, |_, index, before, after| {
                let change = (after.unknown_order - before.unknown_order, after.refused - before.refused);
                if change != (0, 0) {
                    checks.push((number + index as u64, change));
                }
            });
            number += batch.len() as u64;
        }
        (updates.list, checks, books.counters, books.unreported, books.books.state_hash())
    }

    fn random_event(rng: &mut Rng) -> RecordedEvent {
        let level = Level {
            side: Side::BOTH[rng.below(2) as usize],
            price: Price(250_000_000 * (18_000 + rng.below(30) as i64)),
        };
        let (order_id, new_order_id, qty) =
            (6_400_000_000_000 + rng.below(80), rng.below(80), Qty(rng.below(6)));
        let some = rng.below(2) == 0;
        let kind = match rng.below(14) {
            0..6 => EventKind::Add { order_id, level, qty },
            6 => {
                EventKind::Delete { order_id, level: some.then_some(level), qty: Some(qty).filter(|_| some) }
            }
            7 => EventKind::Reduce { order_id, by: qty, level: some.then_some(level) },
            8..10 => EventKind::Modify { order_id, level, qty },
            10 => EventKind::Replace { order_id, new_order_id, price: level.price, qty },
            11 => {
                let (side, price) = (Some(level.side), some.then_some(level.price));
                EventKind::Fill { order_id, qty, side, price, in_auction: rng.below(8) == 0 }
            }
            12 if rng.below(20) == 0 => EventKind::Clear,
            12 => EventKind::Ignored(IgnoredReason::OtherRecord),
            _ => EventKind::Trade { order_id, price: level.price, qty, aggressor: None, is_hidden: some },
        };
        let instrument = [rng.below(2) as u32, u32::from(u16::MAX)][usize::from(rng.below(50) == 0)];
        RecordedEvent { ts_ns: rng.below(1 << 40), instrument, kind, ..RecordedEvent::NOTHING }
    }

    #[test]
    fn groups_do_what_each_event_does_alone() {
        for seed in 1..60 {
            let mut rng = Rng::new(seed);
            let events: Vec<RecordedEvent> = (0..2_000).map(|_| random_event(&mut rng)).collect();
            for depth in [Depth::Full, Depth::Partial { levels: Some(1) }, Depth::Partial { levels: None }] {
                for sums_fills in [false, true] {
                    let time_base = TimeBase::Midnight;
                    let info = RecordingInfo { time_base, depth, sums_fills, price_decimals: PRICE_DECIMALS };
                    let alone = outcome::<DirectBooks>(&events, info, 1);
                    for batch in [1, 7, 32, 50, 2_000] {
                        assert!(outcome::<PackedBooks>(&events, info, batch) == alone, "{seed} {depth:?}");
                    }
                }
            }
        }
    }
}

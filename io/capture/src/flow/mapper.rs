//! Maps recorded events to order requests.

use tickpath_types::{InstrumentId, Price, Qty, Side, UserRefNum};

use super::book::{Books, Key, OrderStatus};
use super::fills::{Fill, Fills};
use super::request_queue::RequestQueue;
use super::survey::is_price;
use super::{Exclusion, Expected, FlowCounts, FlowStep, ORDER_QTY_MAX, Survey};
use crate::{Depth, EventKind, Level, RecordedEvent};

/// Limits of a mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Maximum number of orders in the shadow book, including held-back ones; adds beyond it are excluded.
    pub open_order_count_max: usize,
    /// Maximum number of held-back crossing orders per instrument; adds beyond it are excluded permanently.
    pub held_back_count_max: usize,
    /// Maximum number of events of one transaction; a longer one is mapped in parts.
    pub transaction_len_max: usize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        FlowLimits { open_order_count_max: 1 << 20, held_back_count_max: 4_096, transaction_len_max: 4_096 }
    }
}

/// Maps a recording to order requests, see the [module](super).
///
/// Performs no IO. Pass all events in the order of the recording to [`Mapper::handle_event`], and then call
/// [`Mapper::finish`]. After each call, take the requests from [`Mapper::poll_step`].
pub struct Mapper {
    survey: Survey,
    limits: FlowLimits,
    books: Books,
    requests: RequestQueue,
    counts: FlowCounts,
    transaction: Vec<RecordedEvent>,
    /// Index of the next event.
    event_index: u64,
    /// Index of the next unannounced order in the survey's history; those before it were entered.
    next_missing: usize,
    /// True when an order at a better price, or ahead in the queue, was evicted for the current fill.
    evicted_for_fill: bool,
}

impl Mapper {
    /// Creates a mapper for the surveyed recording.
    #[must_use]
    pub fn new(survey: Survey, limits: FlowLimits) -> Self {
        Mapper {
            survey,
            limits,
            books: Books::default(),
            requests: RequestQueue::new(),
            counts: FlowCounts::default(),
            transaction: Vec::new(),
            event_index: 0,
            next_missing: 0,
            evicted_for_fill: false,
        }
    }

    /// Handles the next event.
    pub fn handle_event(&mut self, event: &RecordedEvent) {
        let event = &self.survey.at_venue(event);
        if self.transaction.first().is_some_and(|first| first.ts_ns != event.ts_ns) {
            self.map_transaction();
        }
        self.requests.ts_ns = event.ts_ns;
        if self.survey.history.is_some() {
            self.enter_missing(event);
            self.evict_contradicted(event);
        }
        self.transaction.push(*event);
        self.event_index += 1;
        if event.ends_transaction || self.transaction.len() >= self.limits.transaction_len_max {
            self.map_transaction();
        }
    }

    /// Maps the last transaction, at the end of the recording.
    pub fn finish(&mut self) {
        self.map_transaction();
    }

    /// Returns the next request to send; `None` if there is none before the next event.
    pub fn poll_step(&mut self) -> Option<FlowStep> {
        self.requests.steps.pop_front()
    }

    /// The counters so far.
    #[must_use]
    pub const fn counts(&self) -> FlowCounts {
        self.counts
    }

    /// The maker's orders that rest on one side at the venue after all requests so far, in priority order:
    /// UserRefNum, price and open quantity. `instrument` is the instrument's index in the recording.
    pub fn resting(&self, instrument: u32, side: Side) -> impl Iterator<Item = (UserRefNum, Price, Qty)> {
        self.books.resting(instrument, side).filter_map(|(_, order)| match order.status {
            OrderStatus::Resting(user_ref) => Some((user_ref, order.level.price, order.qty)),
            _ => None,
        })
    }

    fn map_transaction(&mut self) {
        let Some(last) = self.transaction.last() else { return };
        self.requests.ts_ns = last.ts_ns;
        let mut events = std::mem::take(&mut self.transaction);
        let (mut fills, incoming_count) = Fills::of(&events);
        self.counts.executions.seen += fills.len() as u64 + incoming_count;
        self.counts.executions.excluded[Exclusion::IncomingOrder.index()] += incoming_count;
        // Self-match prevention cancels an order before the trade, but is reported after it.
        if !fills.is_empty() {
            for event in &events {
                if let EventKind::Delete { order_id, .. } = event.kind
                    && !fills.is_about((event.instrument, order_id))
                {
                    self.reduce_to((event.instrument, order_id), Qty::ZERO);
                }
            }
        }
        self.map_fills(&mut fills);
        for event in &events {
            self.map_event(event, &fills);
        }
        for event in &events {
            self.enter_held_back(event.instrument);
        }
        events.clear();
        self.transaction = events;
    }

    fn map_fills(&mut self, fills: &mut Fills) {
        let sums_fills = self.survey.info.sums_fills;
        while let Some(fill) = fills.pop(&self.books) {
            let obstacle = match fill.obstacle(&self.books, sums_fills) {
                Ok(()) if self.requests.is_exhausted() => Err(Exclusion::TooManyOrders),
                other => other,
            };
            match obstacle {
                Ok(()) => {
                    if let Some(rest) = self.execute(fill) {
                        fills.push(rest);
                    }
                }
                Err(reason) => self.exclude(fill, reason),
            }
        }
    }

    /// Repeats an execution at the venue. Enters a quantity beyond the displayed one as a new slice, and
    /// returns the fill of that slice.
    fn execute(&mut self, mut fill: Fill) -> Option<Fill> {
        let order = *self.books.order(fill.key)?;
        let OrderStatus::Resting(resting) = order.status else { return None };
        let qty = fill.qty.min(order.qty);
        let expected = Expected { resting, price: order.level.price, qty };
        self.requests.take(instrument_id(fill.key.0), order.level.side.opposite(), expected);
        self.books.execute(fill.key, qty);
        let rest = Qty(fill.qty.0 - qty.0);
        if !rest.is_zero() {
            self.counts.replenished += 1;
            self.add(fill.key, order.level, rest, order.is_synthesised);
            fill.qty = rest;
            return Some(fill);
        }
        let executions = &mut self.counts.executions;
        executions.eligible_by_eviction += u64::from(self.evicted_for_fill);
        executions.eligible_synthesised += u64::from(order.is_synthesised);
        executions.eligible += u64::from(!order.is_synthesised);
        None
    }

    /// Excludes an execution: reduces the order by a cancel instead, in the shadow book and at the venue.
    fn exclude(&mut self, fill: Fill, reason: Exclusion) {
        self.counts.executions.excluded[reason.index()] += 1;
        if let Some(order) = self.books.order(fill.key) {
            let left = Qty(order.qty.0.saturating_sub(fill.qty.0));
            self.reduce_to(fill.key, left);
        }
    }

    /// Maps an event other than a fill. Some of these only restate the outcome of a fill in their
    /// transaction.
    fn map_event(&mut self, event: &RecordedEvent, fills: &Fills) {
        let key = |order_id| (event.instrument, order_id);
        match event.kind {
            EventKind::Add { order_id, level, qty } => self.add(key(order_id), level, qty, false),
            EventKind::Delete { order_id, .. } => {
                let is_known = self.reduce_to(key(order_id), Qty::ZERO);
                // In a transaction with fills, an unknown order was removed by its fills, or by this delete,
                // which was mapped before the fills.
                self.counts.unknown_changes += u64::from(!is_known && fills.is_empty());
            }
            EventKind::Reduce { order_id, by, .. } => {
                let left = self.books.order(key(order_id)).map(|order| order.qty.0.saturating_sub(by.0));
                match left {
                    Some(left) => _ = self.reduce_to(key(order_id), Qty(left)),
                    None => self.counts.unknown_changes += 1,
                }
            }
            EventKind::Modify { order_id, level, qty } => {
                self.modify(key(order_id), level, qty, fills.is_about(key(order_id)));
            }
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                match self.books.order(key(order_id)).map(|order| order.level.side) {
                    Some(side) => self.relocate(key(order_id), key(new_order_id), Level { side, price }, qty),
                    None => self.counts.unknown_changes += 1,
                }
            }
            EventKind::Clear => {
                for key in self.books.keys(event.instrument) {
                    self.reduce_to(key, Qty::ZERO);
                }
            }
            EventKind::Trade { is_hidden: true, .. } => {
                self.counts.executions.seen += 1;
                self.counts.executions.excluded[Exclusion::HiddenExecution.index()] += 1;
            }
            EventKind::Fill { .. }
            | EventKind::Trade { .. }
            | EventKind::Status(_)
            | EventKind::Ignored(_) => {}
        }
    }

    fn modify(&mut self, key: Key, level: Level, qty: Qty, has_traded: bool) {
        match self.books.order(key) {
            Some(order) if order.level == level && qty <= order.qty => {
                if qty < order.qty {
                    self.reduce_to(key, qty);
                }
            }
            Some(order) if order.level.side == level.side && !qty.is_zero() => {
                self.relocate(key, key, level, qty);
            }
            Some(_) => {
                self.reduce_to(key, Qty::ZERO);
                self.add(key, level, qty, false);
            }
            None if has_traded => {
                self.counts.replenished += 1;
                self.add(key, level, qty, false);
            }
            None => {
                self.counts.unknown_changes += 1;
                self.add(key, level, qty, false);
            }
        }
    }

    /// Enters an order at the venue, holds it back or refuses it, and adds it to the shadow book.
    fn add(&mut self, key: Key, level: Level, qty: Qty, is_synthesised: bool) {
        if self.books.order(key).is_some() {
            self.counts.duplicate_adds += 1;
            self.reduce_to(key, Qty::ZERO);
        }
        if self.books.len() >= self.limits.open_order_count_max {
            self.counts.adds_excluded[Exclusion::TooManyOrders.index()] += 1;
            return;
        }
        let status = self.enter_or_hold(key, level, qty);
        if let OrderStatus::Refused(reason) = status {
            self.counts.adds_excluded[reason.index()] += 1;
        }
        self.books.add(key, level, qty, status, is_synthesised);
    }

    /// Enters a new order at the venue if it can rest. Returns the order's status.
    fn enter_or_hold(&mut self, key: Key, level: Level, qty: Qty) -> OrderStatus {
        if let Some(reason) = self.refusal(key.0, level, qty) {
            return OrderStatus::Refused(reason);
        }
        if !self.books.crosses(key.0, level) {
            return OrderStatus::Resting(self.requests.enter(instrument_id(key.0), level, qty));
        }
        if self.books.held_back_len(key.0) >= self.limits.held_back_count_max {
            return OrderStatus::Refused(Exclusion::CrossedAdd);
        }
        self.counts.adds_excluded[Exclusion::CrossedAdd.index()] += 1;
        OrderStatus::HeldBack
    }

    fn refusal(&self, instrument: u32, level: Level, qty: Qty) -> Option<Exclusion> {
        let obstacles = [
            (!is_price(level.price), Exclusion::PriceOutOfRange),
            (qty.is_zero() || qty > ORDER_QTY_MAX, Exclusion::QtyOutOfRange),
            (instrument >= u32::from(u16::MAX), Exclusion::TooManyInstruments),
            (self.requests.is_exhausted(), Exclusion::TooManyOrders),
        ];
        obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
    }

    /// Moves an order to the tail of a level, under the reference `to`, which may be new.
    fn relocate(&mut self, from: Key, to: Key, level: Level, qty: Qty) {
        let Some(order) = self.books.order(from).copied() else { return };
        if to != from && self.books.order(to).is_some() {
            self.counts.duplicate_adds += 1;
            self.reduce_to(to, Qty::ZERO);
        }
        let total = Qty(qty.0.saturating_add(order.executed.0));
        let can_rest = self.refusal(from.0, level, total).is_none() && !self.books.crosses(from.0, level);
        match order.status {
            OrderStatus::Resting(user_ref) if can_rest && !qty.is_zero() => {
                let user_ref = self.requests.replace(user_ref, level.price, total);
                self.books.move_to(from, to, level, qty, OrderStatus::Resting(user_ref));
            }
            _ => {
                self.reduce_to(from, Qty::ZERO);
                self.add(to, level, qty, order.is_synthesised);
            }
        }
    }

    /// Reduces an order to `left`, in the shadow book and at the venue; false for an unknown order.
    fn reduce_to(&mut self, key: Key, left: Qty) -> bool {
        let Some(order) = self.books.order(key) else { return false };
        if let OrderStatus::Resting(user_ref) = order.status {
            let total = if left.is_zero() { left } else { Qty(left.0 + order.executed.0) };
            self.requests.cancel(user_ref, total);
        }
        self.books.set_qty(key, left);
        true
    }

    /// Enters held-back orders that no longer cross, oldest first.
    fn enter_held_back(&mut self, instrument: u32) {
        for key in self.books.held_back(instrument) {
            let Some(order) = self.books.order(key).copied() else { continue };
            if !self.books.crosses(instrument, order.level) && !self.requests.is_exhausted() {
                let user_ref = self.requests.enter(instrument_id(instrument), order.level, order.qty);
                self.books.move_to(key, key, order.level, order.qty, OrderStatus::Resting(user_ref));
                self.counts.entered_later += 1;
            }
        }
    }
}

/// Reconstruction of the missing parts of a partial recording.
impl Mapper {
    /// Enters the unannounced orders with references up to that of the event's order.
    fn enter_missing(&mut self, event: &RecordedEvent) {
        let Some(order_id) = order_id(&event.kind) else { return };
        while let Some(missing) =
            self.survey.history.as_ref().and_then(|h| h.missing.get(self.next_missing)).copied()
            && missing.key.1 <= order_id
        {
            self.next_missing += 1;
            self.counts.synthesised += 1;
            self.evict_crossed(missing.key.0, missing.level);
            self.add(missing.key, missing.level, missing.qty, true);
        }
    }

    /// Cancels orders that cannot rest any more, according to the event, and have no later event.
    fn evict_contradicted(&mut self, event: &RecordedEvent) {
        let Some(level) = event.kind.level() else { return };
        let instrument = event.instrument;
        let is_fill = matches!(event.kind, EventKind::Fill { .. });
        self.evicted_for_fill = false;
        let is_best_level = self.survey.info.depth == Depth::Partial { levels: Some(1) };
        if is_best_level || is_fill {
            // The event is at the best level, so orders at better prices no longer rest.
            while let Some(best) = self.books.best(instrument, level.side)
                && level.side.is_better(best, level.price)
                && self.evict_front(instrument, level.side)
            {
                self.counts.evicted_better += 1;
                self.evicted_for_fill |= is_fill;
            }
        }
        if let EventKind::Fill { order_id, .. } = event.kind {
            // An order that trades is at the front of its level.
            while self.books.best(instrument, level.side) == Some(level.price)
                && self.books.front(instrument, level.side) != Some((instrument, order_id))
                && self.evict_front(instrument, level.side)
            {
                self.counts.evicted_ahead += 1;
                self.evicted_for_fill = true;
            }
        }
        if matches!(event.kind, EventKind::Add { .. }) {
            self.evict_crossed(instrument, level);
        }
    }

    /// Cancels orders that a recorded resting order at `level` would cross: they were removed before it.
    fn evict_crossed(&mut self, instrument: u32, level: Level) {
        while self.books.crosses(instrument, level) && self.evict_front(instrument, level.side.opposite()) {
            self.counts.evicted_better += 1;
        }
    }

    /// Cancels the front order of a side if the recording has no later event of it. True if it was cancelled.
    fn evict_front(&mut self, instrument: u32, side: Side) -> bool {
        let Some(front) = self.books.front(instrument, side) else { return false };
        let has_no_later_event =
            self.survey.history.as_ref().is_some_and(|h| h.is_last_seen_before(front, self.event_index));
        if has_no_later_event {
            self.reduce_to(front, Qty::ZERO);
        }
        has_no_later_event
    }
}

/// Id of an instrument in requests. No order of an instrument beyond the last id is entered.
const fn instrument_id(instrument: u32) -> InstrumentId {
    InstrumentId(instrument as u16 + 1)
}

/// Reference of the order that an event of a partial recording adds, changes or fills.
const fn order_id(kind: &EventKind) -> Option<u64> {
    match kind {
        EventKind::Add { order_id, .. }
        | EventKind::Delete { order_id, .. }
        | EventKind::Reduce { order_id, .. }
        | EventKind::Fill { order_id, .. } => Some(*order_id),
        _ => None,
    }
}

//! The shadow book: the state of the venue's book after all requests so far.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use tickpath_types::{Price, Qty, Side, UserRefNum};

use super::Exclusion;
use crate::Level;

/// Key of a recorded order: index of its instrument, and the recorded venue's reference of the order.
pub(crate) type Key = (u32, u64);

/// The status of an order of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderStatus {
    /// The order rests at the venue, under this UserRefNum.
    Resting(UserRefNum),
    /// The order is held back because it would cross.
    HeldBack,
    /// The order must not be entered.
    Refused(Exclusion),
}

/// An order of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) level: Level,
    /// Open quantity.
    pub(crate) qty: Qty,
    /// Quantity that the venue executed of the order and of the orders that it replaced.
    pub(crate) executed: Qty,
    pub(crate) status: OrderStatus,
    pub(crate) is_synthesised: bool,
    /// Time priority: an order with a smaller rank is ahead.
    rank: u64,
}

/// Orders in priority order: price key (the smallest trades first), time rank, order reference.
type Queue = BTreeSet<(i64, u64, u64)>;

#[derive(Default)]
struct InstrumentBook {
    sides: [Queue; 2],
    /// Held-back orders, oldest first.
    held_back: Queue,
}

impl InstrumentBook {
    /// The queue for an order, and the order's price key in it; `None` for a refused order.
    fn queue(&mut self, order: &Order) -> Option<(&mut Queue, i64)> {
        let Level { side, price } = order.level;
        match order.status {
            OrderStatus::Resting(_) => Some((&mut self.sides[side.index()], -side.sign() * price.0)),
            OrderStatus::HeldBack => Some((&mut self.held_back, 0)),
            OrderStatus::Refused(_) => None,
        }
    }
}

/// All orders of all instruments.
#[derive(Default)]
pub(crate) struct Books {
    orders: FxHashMap<Key, Order>,
    instruments: Vec<InstrumentBook>,
    next_rank: u64,
}

impl Books {
    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(crate) fn order(&self, key: Key) -> Option<&Order> {
        self.orders.get(&key)
    }

    /// Best price of the resting orders on one side.
    pub(crate) fn best(&self, instrument: u32, side: Side) -> Option<Price> {
        self.resting(instrument, side).next().map(|(_, order)| order.level.price)
    }

    /// Key of the resting order of a side that trades next.
    pub(crate) fn front(&self, instrument: u32, side: Side) -> Option<Key> {
        self.resting(instrument, side).next().map(|(key, _)| key)
    }

    /// True when an order at this level would trade on entry.
    pub(crate) fn crosses(&self, instrument: u32, level: Level) -> bool {
        self.best(instrument, level.side.opposite())
            .is_some_and(|resting| level.side.crosses(level.price, resting))
    }

    /// Resting orders of one side in priority order.
    pub(crate) fn resting(&self, instrument: u32, side: Side) -> impl Iterator<Item = (Key, &Order)> {
        let queue = self.instruments.get(instrument as usize).map(|book| &book.sides[side.index()]);
        queue.into_iter().flatten().map(move |(_, _, order_id)| {
            let key = (instrument, *order_id);
            (key, &self.orders[&key])
        })
    }

    /// Keys of an instrument's held-back orders, oldest first.
    pub(crate) fn held_back(&self, instrument: u32) -> Vec<Key> {
        let queue = self.instruments.get(instrument as usize).map(|book| &book.held_back);
        queue.into_iter().flatten().map(|(_, _, order_id)| (instrument, *order_id)).collect()
    }

    pub(crate) fn held_back_len(&self, instrument: u32) -> usize {
        self.instruments.get(instrument as usize).map_or(0, |book| book.held_back.len())
    }

    /// Adds an order with the lowest time priority.
    pub(crate) fn add(
        &mut self,
        key: Key,
        level: Level,
        qty: Qty,
        status: OrderStatus,
        is_synthesised: bool,
    ) {
        self.insert(key, Order { level, qty, executed: Qty::ZERO, status, is_synthesised, rank: 0 });
    }

    /// Gives an order the lowest time priority, and a new reference, level, quantity and status.
    pub(crate) fn move_to(&mut self, from: Key, to: Key, level: Level, qty: Qty, status: OrderStatus) {
        if let Some(order) = self.remove(from) {
            self.insert(to, Order { level, qty, status, ..order });
        }
    }

    fn insert(&mut self, key: Key, order: Order) {
        let (index, rank) = (key.0 as usize, self.next_rank);
        self.next_rank += 1;
        if self.instruments.len() <= index {
            self.instruments.resize_with(index + 1, InstrumentBook::default);
        }
        if let Some((queue, price)) = self.instruments[index].queue(&order) {
            queue.insert((price, rank, key.1));
        }
        self.orders.insert(key, Order { rank, ..order });
    }

    /// Removes an order.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Order> {
        let order = self.orders.remove(&key)?;
        if let Some((queue, price)) = self.instruments[key.0 as usize].queue(&order) {
            queue.remove(&(price, order.rank, key.1));
        }
        Some(order)
    }

    /// Sets the open quantity of an order, which keeps its priority; removes an order without quantity.
    pub(crate) fn set_qty(&mut self, key: Key, qty: Qty) {
        if qty.is_zero() {
            self.remove(key);
        } else if let Some(order) = self.orders.get_mut(&key) {
            order.qty = qty;
        }
    }

    /// Records that the venue executed `qty` of an order.
    pub(crate) fn execute(&mut self, key: Key, qty: Qty) {
        if let Some(order) = self.orders.get_mut(&key) {
            order.executed.0 += qty.0;
            let left = Qty(order.qty.0.saturating_sub(qty.0));
            self.set_qty(key, left);
        }
    }

    /// Keys of all orders of an instrument, oldest first.
    pub(crate) fn keys(&self, instrument: u32) -> Vec<Key> {
        let mut keys: Vec<Key> = self.orders.keys().copied().filter(|key| key.0 == instrument).collect();
        keys.sort_unstable_by_key(|key| self.orders[key].rank);
        keys
    }
}

//! The shadow: what the venue holds once every request so far was handled.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tickpath_types::{Price, Qty, Side, UserRefNum};

use super::Exclusion;
use crate::Level;

/// An order of the recording: index of its instrument and the venue's reference.
pub(crate) type Key = (u32, u64);

/// Where an order of the recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the venue, under this number.
    Resting(UserRefNum),
    /// Held back because it would cross.
    HeldBack,
    /// Not to be entered.
    Refused(Exclusion),
}

/// An order of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) level: Level,
    /// What is left of it.
    pub(crate) qty: Qty,
    /// What the venue executed of it and of those that it replaced.
    pub(crate) executed: Qty,
    pub(crate) place: Place,
    pub(crate) is_synthesised: bool,
    /// Position in time: smaller stands ahead.
    rank: u64,
}

/// Order references by rank.
type Queue = BTreeMap<u64, u64>;

#[derive(Default)]
struct InstrumentBook {
    sides: [BTreeMap<Price, Queue>; 2],
    held_back: Queue,
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

    /// The best price of resting orders.
    pub(crate) fn best(&self, instrument: u32, side: Side) -> Option<Price> {
        let levels = &self.instruments.get(instrument as usize)?.sides[side.index()];
        match side {
            Side::Buy => levels.last_key_value(),
            Side::Sell => levels.first_key_value(),
        }
        .map(|(price, _)| *price)
    }

    /// The resting order that trades next.
    pub(crate) fn front(&self, instrument: u32, side: Side) -> Option<Key> {
        let best = self.best(instrument, side)?;
        let queue = &self.instruments[instrument as usize].sides[side.index()][&best];
        queue.first_key_value().map(|(_, order_id)| (instrument, *order_id))
    }

    /// True when an order at this level would trade on entry.
    pub(crate) fn crosses(&self, instrument: u32, level: Level) -> bool {
        self.best(instrument, level.side.opposite())
            .is_some_and(|resting| level.side.crosses(level.price, resting))
    }

    /// Resting orders of one side in priority.
    pub(crate) fn resting(&self, instrument: u32, side: Side) -> impl Iterator<Item = (Key, &Order)> {
        let levels = self.instruments.get(instrument as usize).map(|book| &book.sides[side.index()]);
        let (up, down) = match side {
            Side::Buy => (None, levels),
            Side::Sell => (levels, None),
        };
        let up = up.into_iter().flat_map(|levels| levels.values());
        let down = down.into_iter().flat_map(|levels| levels.values().rev());
        up.chain(down)
            .flat_map(|queue| queue.values())
            .map(move |order_id| ((instrument, *order_id), &self.orders[&(instrument, *order_id)]))
    }

    /// Orders held back, oldest first.
    pub(crate) fn held_back(&self, instrument: u32) -> impl Iterator<Item = Key> {
        let queue = self.instruments.get(instrument as usize).map(|book| &book.held_back);
        queue.into_iter().flat_map(Queue::values).map(move |order_id| (instrument, *order_id))
    }

    pub(crate) fn held_back_len(&self, instrument: u32) -> usize {
        self.instruments.get(instrument as usize).map_or(0, |book| book.held_back.len())
    }

    /// Puts an order behind all others.
    pub(crate) fn insert(&mut self, key: Key, level: Level, qty: Qty, place: Place, is_synthesised: bool) {
        let rank = self.next_rank;
        self.next_rank += 1;
        self.orders.insert(key, Order { level, qty, executed: Qty::ZERO, place, is_synthesised, rank });
        self.enqueue(key, rank, level, place);
    }

    /// Moves an order behind all others, with a new level, quantity and place.
    pub(crate) fn move_to(&mut self, from: Key, to: Key, level: Level, qty: Qty, place: Place) {
        if let Some(order) = self.remove(from) {
            self.insert(to, level, qty, place, order.is_synthesised);
            if let Some(moved) = self.orders.get_mut(&to) {
                moved.executed = order.executed;
            }
        }
    }

    fn enqueue(&mut self, key: Key, rank: u64, level: Level, place: Place) {
        let index = key.0 as usize;
        if self.instruments.len() <= index {
            self.instruments.resize_with(index + 1, InstrumentBook::default);
        }
        let book = &mut self.instruments[index];
        match place {
            Place::Resting(_) => {
                book.sides[level.side.index()].entry(level.price).or_default().insert(rank, key.1);
            }
            Place::HeldBack => {
                book.held_back.insert(rank, key.1);
            }
            Place::Refused(_) => {}
        }
    }

    /// Takes an order out.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Order> {
        let order = self.orders.remove(&key)?;
        let book = &mut self.instruments[key.0 as usize];
        match order.place {
            Place::Resting(_) => {
                let levels = &mut book.sides[order.level.side.index()];
                if let Some(queue) = levels.get_mut(&order.level.price) {
                    queue.remove(&order.rank);
                    if queue.is_empty() {
                        levels.remove(&order.level.price);
                    }
                }
            }
            Place::HeldBack => {
                book.held_back.remove(&order.rank);
            }
            Place::Refused(_) => {}
        }
        Some(order)
    }

    /// Makes an order smaller where it stands; an order of nothing goes.
    pub(crate) fn set_qty(&mut self, key: Key, qty: Qty) {
        if qty.is_zero() {
            self.remove(key);
        } else if let Some(order) = self.orders.get_mut(&key) {
            order.qty = qty;
        }
    }

    /// Books an execution by the venue.
    pub(crate) fn execute(&mut self, key: Key, qty: Qty) {
        if let Some(order) = self.orders.get_mut(&key) {
            order.executed.0 += qty.0;
            let left = Qty(order.qty.0.saturating_sub(qty.0));
            self.set_qty(key, left);
        }
    }

    /// Every order of an instrument, resting ones in priority, in a fixed sequence.
    pub(crate) fn keys(&self, instrument: u32) -> Vec<Key> {
        let mut keys: Vec<(u64, Key)> = self
            .orders
            .iter()
            .filter(|(key, _)| key.0 == instrument)
            .map(|(key, order)| (order.rank, *key))
            .collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }
}

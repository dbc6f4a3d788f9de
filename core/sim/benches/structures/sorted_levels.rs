//! Each side's levels in one sorted vector, the best at its end, where most of them come and go.

use tickpath_book::{Level, Order, OrderHandle};
use tickpath_types::{InstrumentId, Price, Qty, Side};

use crate::books::{HandleBooks, Limits, Resting, key, order_of, price, side_index};
use crate::queues::{Orders, Queue};

/// A key of the sorted vector, and where its level is. Only these are moved.
#[derive(Clone, Copy)]
struct Entry {
    key: i64,
    level: u32,
}

#[derive(Clone, Copy)]
struct LevelRecord {
    key: i64,
    side: u32,
    queue: Queue,
}

/// Sorted vectors over a pool of levels and one of orders; an order knows its level.
pub struct SortedLevels {
    sides: Vec<Vec<Entry>>,
    levels: Vec<LevelRecord>,
    free_levels: Vec<u32>,
    orders: Orders<u32>,
}

impl SortedLevels {
    fn open_level(&mut self, side: usize, position: usize, key: i64) -> u32 {
        let record = LevelRecord { key, side: side as u32, queue: Queue::default() };
        let level = match self.free_levels.pop() {
            Some(level) => {
                self.levels[level as usize] = record;
                level
            }
            None => {
                self.levels.push(record);
                self.levels.len() as u32 - 1
            }
        };
        self.sides[side].insert(position, Entry { key, level });
        level
    }

    fn close_level(&mut self, level: u32) {
        let LevelRecord { key, side, .. } = self.levels[level as usize];
        let entries = &mut self.sides[side as usize];
        let position = position(entries, key).expect("an open level is in its vector");
        entries.remove(position);
        self.free_levels.push(level);
    }
}

/// Where a key is, or where it belongs: from the best, since most keys are near it.
#[inline]
fn position(entries: &[Entry], key: i64) -> Result<usize, usize> {
    // Entries at the end that are looked at one by one; behind them the search is by halves.
    const NEAR: usize = 16;
    let far = entries.len().saturating_sub(NEAR);
    let worse = match entries.get(far) {
        Some(first) if first.key > key => entries[..far].partition_point(|entry| entry.key < key),
        _ => entries[far..].iter().rposition(|entry| entry.key < key).map_or(far, |last| far + last + 1),
    };
    match entries.get(worse) {
        Some(entry) if entry.key == key => Ok(worse),
        _ => Err(worse),
    }
}

impl HandleBooks for SortedLevels {
    fn new(limits: Limits) -> Self {
        SortedLevels {
            sides: vec![Vec::new(); limits.sides()],
            levels: Vec::new(),
            free_levels: Vec::new(),
            orders: Orders::new(limits.max_orders),
        }
    }

    #[inline]
    fn add(&mut self, order: Order<()>) -> OrderHandle {
        let (side, key) = (side_index(order.instrument, order.side), key(order.side, order.price));
        let level = match position(&self.sides[side], key) {
            Ok(position) => self.sides[side][position].level,
            Err(position) => self.open_level(side, position, key),
        };
        let queue = &mut self.levels[level as usize].queue;
        self.orders.push(queue, order.id.0, order.qty.0, level)
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        let level = self.orders.record(handle).home;
        let left = self.orders.reduce(&mut self.levels[level as usize].queue, handle, qty.0);
        if left == 0 {
            self.remove(handle);
        }
        Qty(left)
    }

    #[inline]
    fn remove(&mut self, handle: OrderHandle) -> Order<()> {
        let record = *self.orders.record(handle);
        let level = &mut self.levels[record.home as usize];
        let order = order_of(level.side as usize, record.id, level.key, record.qty);
        self.orders.remove(&mut level.queue, handle);
        if level.queue.order_count == 0 {
            self.close_level(record.home);
        }
        order
    }

    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.sides[side_index(instrument, side)].last().map(|entry| price(side, entry.key))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        let view = |entry: &Entry| {
            let Queue { qty, order_count, .. } = self.levels[entry.level as usize].queue;
            Level { price: price(side, entry.key), qty: Qty(qty), order_count }
        };
        self.sides[side_index(instrument, side)].iter().rev().map(view).collect()
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting> {
        let queue = |entry: &Entry| {
            let price = price(side, entry.key);
            let orders = self.orders.iter(&self.levels[entry.level as usize].queue);
            orders.map(move |order| Resting { id: order.id, price, qty: order.qty }).collect::<Vec<_>>()
        };
        self.sides[side_index(instrument, side)].iter().rev().flat_map(queue).collect()
    }
}

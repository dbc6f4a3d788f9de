//! Levels of each side in an array with a slot for every tick near the best price.
//!
//! An ordered map holds prices off the tick or out of range of the array, so the books are correct for every
//! price. The array follows the best price: it moves when the best price leaves its upper half. Levels that
//! enter or leave its range move between array and map.

use std::collections::BTreeMap;
use std::ops::Range;

use tickpath_book::{Level, Order, OrderHandle};
use tickpath_types::{InstrumentId, Price, Qty, Side};

use crate::books::{HandleBooks, Limits, Resting, key, order_of, price, side_index};
use crate::queues::{Orders, Queue};

/// Tick size: one cent.
const TICK: i64 = 100;
/// Size of the array in ticks, a power of two. After each move, a quarter of it is above the best price.
const WINDOW: usize = 256;
const ABOVE: i64 = WINDOW as i64 / 4;
const WORD: usize = u64::BITS as usize;

/// Side and key of an order's level. The level is found by them, since its storage location changes.
#[derive(Clone, Copy, Default)]
struct Home {
    key: i64,
    side: u32,
}

/// One side of one book. Ticks are keys divided by [`TICK`]; a tick's slot is the tick modulo [`WINDOW`].
#[derive(Clone)]
struct Ladder {
    /// Lowest tick of the array.
    base: i64,
    best: Option<i64>,
    /// Bit set of the slots with an open level.
    open: [u64; WINDOW / WORD],
    queues: [Queue; WINDOW],
    far: BTreeMap<i64, Queue>,
}

const fn slot(tick: i64) -> usize {
    tick.cast_unsigned() as usize % WINDOW
}

/// Tick of a key; `None` if the key is not a multiple of [`TICK`].
#[inline]
fn tick_of(key: i64) -> Option<i64> {
    let tick = key.div_euclid(TICK);
    (tick * TICK == key).then_some(tick)
}

impl Ladder {
    fn new() -> Ladder {
        Ladder {
            base: 0,
            best: None,
            open: [0; WINDOW / WORD],
            queues: [Queue::default(); WINDOW],
            far: BTreeMap::new(),
        }
    }

    #[inline]
    fn ticks(&self) -> Range<i64> {
        self.base..self.base + WINDOW as i64
    }

    /// Slot of a key in the array; `None` if the key belongs in the map.
    #[inline]
    fn slot(&self, key: i64) -> Option<usize> {
        tick_of(key).filter(|tick| self.ticks().contains(tick)).map(slot)
    }

    fn is_open(&self, slot: usize) -> bool {
        self.open[slot / WORD] >> (slot % WORD) & 1 == 1
    }

    /// Returns the level of a key, and opens it if needed.
    #[inline]
    fn open(&mut self, key: i64) -> &mut Queue {
        if self.best.is_none_or(|best| key > best) {
            self.best = Some(key);
            self.follow(key);
        }
        match self.slot(key) {
            Some(slot) => {
                self.open[slot / WORD] |= 1 << (slot % WORD);
                &mut self.queues[slot]
            }
            None => self.far.entry(key).or_default(),
        }
    }

    /// Returns the open level of a key.
    #[inline]
    fn queue_mut(&mut self, key: i64) -> &mut Queue {
        match self.slot(key) {
            Some(slot) => &mut self.queues[slot],
            None => self.far.get_mut(&key).expect("a level that is open and out of reach is in the map"),
        }
    }

    /// Closes an empty level.
    #[inline]
    fn close(&mut self, key: i64) {
        match self.slot(key) {
            Some(slot) => self.open[slot / WORD] &= !(1 << (slot % WORD)),
            None => _ = self.far.remove(&key),
        }
        if self.best == Some(key) {
            self.best = self.highest_tick().map(|tick| tick * TICK).max(self.farthest());
            if let Some(best) = self.best {
                self.follow(best);
            }
        }
    }

    fn farthest(&self) -> Option<i64> {
        self.far.last_key_value().map(|(key, _)| *key)
    }

    /// The highest tick in the array with an open level.
    #[inline]
    fn highest_tick(&self) -> Option<i64> {
        const WORDS: usize = WINDOW / WORD;
        let top = slot(self.base - 1);
        let (first, below) = (top / WORD, u64::MAX >> (WORD - 1 - top % WORD));
        // The word of the highest tick also holds the lowest ticks, in the bits above `top`: check them last.
        let found = |word: usize, bits: u64| {
            let slot = word * WORD + bits.checked_ilog2()? as usize;
            Some(self.base + WINDOW as i64 - 1 - ((top + WINDOW - slot) % WINDOW) as i64)
        };
        found(first, self.open[first] & below)
            .or_else(|| {
                (1..WORDS).find_map(|step| {
                    let word = (first + WORDS - step) % WORDS;
                    found(word, self.open[word])
                })
            })
            .or_else(|| found(first, self.open[first] & !below))
    }

    /// Moves the array unless the best price is in its upper half.
    #[inline]
    fn follow(&mut self, best: i64) {
        let tick = best.div_euclid(TICK);
        let is_placed = (self.base + WINDOW as i64 / 2..self.base + WINDOW as i64).contains(&tick);
        if !is_placed {
            self.move_to(tick + ABOVE - WINDOW as i64 + 1);
        }
    }

    #[inline(never)]
    fn move_to(&mut self, base: i64) {
        let ticks = base..base + WINDOW as i64;
        for tick in self.ticks().filter(|tick| !ticks.contains(tick)) {
            let slot = slot(tick);
            if self.is_open(slot) {
                self.open[slot / WORD] &= !(1 << (slot % WORD));
                self.far.insert(tick * TICK, std::mem::take(&mut self.queues[slot]));
            }
        }
        self.base = base;
        let reach = ticks.start * TICK..ticks.end * TICK;
        let came: Vec<i64> =
            self.far.range(reach).map(|(key, _)| *key).filter(|key| key % TICK == 0).collect();
        for key in came {
            let slot = slot(key / TICK);
            self.open[slot / WORD] |= 1 << (slot % WORD);
            self.queues[slot] = self.far.remove(&key).expect("it was there just now");
        }
    }

    /// Levels, best first.
    fn levels(&self) -> Vec<(i64, Queue)> {
        let near = self.ticks().map(|tick| (tick * TICK, slot(tick))).filter(|(_, slot)| self.is_open(*slot));
        let near = near.map(|(key, slot)| (key, self.queues[slot]));
        let mut levels: Vec<_> = near.chain(self.far.iter().map(|(key, queue)| (*key, *queue))).collect();
        levels.sort_unstable_by_key(|(key, _)| std::cmp::Reverse(*key));
        levels
    }
}

/// The ladders of all sides, which share one pool of orders.
pub struct DenseLadder {
    ladders: Vec<Ladder>,
    orders: Orders<Home>,
}

impl HandleBooks for DenseLadder {
    fn new(limits: Limits) -> Self {
        DenseLadder { ladders: vec![Ladder::new(); limits.sides()], orders: Orders::new(limits.max_orders) }
    }

    #[inline]
    fn add(&mut self, order: Order<()>) -> OrderHandle {
        let (side, key) = (side_index(order.instrument, order.side), key(order.side, order.price));
        let queue = self.ladders[side].open(key);
        self.orders.push(queue, order.id.0, order.qty.0, Home { key, side: side as u32 })
    }

    #[inline]
    fn reduce(&mut self, handle: OrderHandle, qty: Qty) -> Qty {
        let Home { key, side } = self.orders.record(handle).home;
        let left = self.orders.reduce(self.ladders[side as usize].queue_mut(key), handle, qty.0);
        if left == 0 {
            self.remove(handle);
        }
        Qty(left)
    }

    #[inline]
    fn remove(&mut self, handle: OrderHandle) -> Order<()> {
        let record = *self.orders.record(handle);
        let Home { key, side } = record.home;
        let ladder = &mut self.ladders[side as usize];
        let queue = ladder.queue_mut(key);
        self.orders.remove(queue, handle);
        if queue.order_count == 0 {
            ladder.close(key);
        }
        order_of(side as usize, record.id, key, record.qty)
    }

    #[inline]
    fn best_price(&self, instrument: InstrumentId, side: Side) -> Option<Price> {
        self.ladders[side_index(instrument, side)].best.map(|key| price(side, key))
    }

    fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        let view = |(key, queue): (i64, Queue)| Level {
            price: price(side, key),
            qty: Qty(queue.qty),
            order_count: queue.order_count,
        };
        self.ladders[side_index(instrument, side)].levels().into_iter().map(view).collect()
    }

    fn orders(&self, instrument: InstrumentId, side: Side) -> Vec<Resting> {
        let queue = |(key, queue): (i64, Queue)| {
            let orders = self.orders.iter(&queue);
            let view = |order: &crate::queues::Record<Home>| Resting {
                id: order.id,
                price: price(side, key),
                qty: order.qty,
            };
            orders.map(view).collect::<Vec<_>>()
        };
        self.ladders[side_index(instrument, side)].levels().into_iter().flat_map(queue).collect()
    }
}

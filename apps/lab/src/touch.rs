//! A loop that touches the memory that each message of a day needs in a compact layout, and does nothing
//! else: the limit of a feed's books, for any protocol.
//!
//! The layout is fixed and independent of the layout of [`tickpath_book`]: orders of 24 bytes in a pool, of
//! which the one freed last is used first; an index of 8 bytes an entry by order reference; levels of 32
//! bytes in such a pool; sides of 64 bytes.

use std::collections::HashMap;

use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{Price, Qty, Side};
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

/// Number of steps whose memory is prefetched together.
const GROUP: usize = 32;

/// The places that an order's entry or removal touches.
#[derive(Clone, Copy)]
struct Step {
    index: u32,
    order: u32,
    level: u32,
    side: u32,
    prev: u32,
    next: u32,
}

/// The memory of a day. All lengths are powers of two, so that the compiler needs no check of an index that
/// is masked.
struct Lines {
    index: Box<[u64]>,
    orders: Box<[[u32; 6]]>,
    levels: Box<[[u64; 4]]>,
    sides: Box<[[u64; 8]; SIDES]>,
}

const SIDES: usize = 1 << 14;

impl Lines {
    /// Memory for up to `orders` orders and `levels` levels at a time. The length of the index is the next
    /// power of two above twice the number of orders.
    fn new(orders: u32, levels: u32) -> Lines {
        let [orders, levels] = [orders, levels].map(|count| count as usize + 1);
        Lines {
            index: vec![0; (2 * orders).next_power_of_two()].into(),
            orders: vec![[0; 6]; orders.next_power_of_two()].into(),
            levels: vec![[0; 4]; levels.next_power_of_two()].into(),
            sides: vec![[0; 8]; SIDES].try_into().expect("the length is SIDES"),
        }
    }

    /// Touches the memory of all steps, and returns a number that depends on all of it.
    #[inline(never)]
    fn touch(&mut self, steps: &[Step]) -> u64 {
        let Lines { index, orders, levels, sides } = self;
        let (index_mask, order_mask, level_mask) = (index.len() - 1, orders.len() - 1, levels.len() - 1);
        let (index_of, order_of) = (|it: u32| it as usize & index_mask, |it: u32| it as usize & order_mask);
        let (level_of, side_of) = (|it: u32| it as usize & level_mask, |it: u32| it as usize % SIDES);
        let mut sum = 0_u64;
        for group in steps.chunks(GROUP) {
            for step in group {
                prefetch_index(&index[..], index_of(step.index));
            }
            for step in group {
                prefetch_index(&orders[..], order_of(step.order));
            }
            for step in group {
                prefetch_index(&levels[..], level_of(step.level));
                prefetch_index(&sides[..], side_of(step.side));
                prefetch_index(&orders[..], order_of(step.prev));
                prefetch_index(&orders[..], order_of(step.next));
            }
            for step in group {
                let entry = &mut index[index_of(step.index)];
                *entry = entry.wrapping_add(1);
                let order = &mut orders[order_of(step.order)][0];
                *order = order.wrapping_add(1);
                let touched = *order;
                orders[order_of(step.prev)][1] = step.order;
                orders[order_of(step.next)][2] = step.order;
                let level = &mut levels[level_of(step.level)][0];
                *level = level.wrapping_add(touched.into());
                let side = &mut sides[side_of(step.side)][0];
                *side = side.wrapping_add(*level);
                sum = sum.wrapping_add(*side);
            }
        }
        sum
    }
}

/// A pool of numbers from 1 on; the one freed last is used first.
#[derive(Default)]
struct Pool {
    free: Vec<u32>,
    len: u32,
}

impl Pool {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.len += 1;
            self.len
        })
    }
}

/// An order of the day while its steps are recorded.
pub(crate) struct Order {
    slot: u32,
    /// Number of its side, see [`side_index`].
    pub(crate) side: u32,
    pub(crate) price: Price,
    pub(crate) qty: Qty,
}

/// A level: its number, its last order and the number of its orders.
#[derive(Default)]
struct Level {
    number: u32,
    tail: u32,
    count: u32,
}

type Map<K, V> = HashMap<K, V, Xxh3DefaultBuilder>;

/// Records the steps of a day: the changes of orders in the sequence of the messages that make them. Changes
/// of unknown orders have no steps.
#[derive(Default)]
pub(crate) struct Recorder {
    steps: Vec<Step>,
    orders: Map<u64, Order>,
    levels: Map<(u32, Price), Level>,
    slots: Pool,
    numbers: Pool,
    /// The orders ahead and behind by slot.
    links: Vec<[u32; 2]>,
}

/// Number of a side of an instrument's book.
pub(crate) fn side_index(instrument: u16, side: Side) -> u32 {
    u32::from(instrument) * 2 + side as u32
}

impl Recorder {
    /// Records an order that enters the book at the tail of its level, if it has a quantity.
    pub(crate) fn add(&mut self, id: u64, side: u32, price: Price, qty: Qty) {
        if qty.is_zero() {
            return;
        }
        let slot = self.slots.take();
        self.links.resize(self.links.len().max(slot as usize + 1), [0; 2]);
        let level = self.levels.entry((side, price)).or_default();
        if level.count == 0 {
            level.number = self.numbers.take();
        }
        let prev = std::mem::replace(&mut level.tail, slot);
        level.count += 1;
        self.links[slot as usize] = [prev, 0];
        self.links[prev as usize][1] = slot;
        self.orders.insert(id, Order { slot, side, price, qty });
        self.push(id, slot, self.level_number(side, price), side, [prev, 0]);
    }

    /// Records the removal of an order and returns its side.
    pub(crate) fn remove(&mut self, id: u64) -> Option<u32> {
        let Order { slot, side, price, .. } = self.orders.remove(&id)?;
        let [prev, next] = self.links[slot as usize];
        self.links[prev as usize][1] = next;
        self.links[next as usize][0] = prev;
        let number = self.level_number(side, price);
        let level = self.levels.get_mut(&(side, price))?;
        if level.tail == slot {
            level.tail = prev;
        }
        level.count -= 1;
        if level.count == 0 {
            self.numbers.free.push(number);
            self.levels.remove(&(side, price));
        }
        self.slots.free.push(slot);
        self.push(id, slot, number, side, [prev, next]);
        Some(side)
    }

    /// Records an order that loses `by` of its quantity, or is removed.
    pub(crate) fn reduce(&mut self, id: u64, by: Qty) {
        let Some(order) = self.orders.get_mut(&id) else { return };
        if order.qty <= by {
            self.remove(id);
            return;
        }
        order.qty.0 -= by.0;
        let Order { slot, side, price, .. } = *order;
        self.push(id, slot, self.level_number(side, price), side, [0, 0]);
    }

    /// Records the removal of an order and the entry of another one on the same side.
    pub(crate) fn replace(&mut self, id: u64, new_id: u64, price: Price, qty: Qty) {
        if let Some(side) = self.remove(id) {
            self.add(new_id, side, price, qty);
        }
    }

    /// Records an order that keeps its place with another quantity.
    pub(crate) fn resize(&mut self, id: u64, qty: Qty) {
        if let Some(order) = self.orders.get_mut(&id) {
            order.qty = qty;
            let Order { slot, side, price, .. } = *order;
            self.push(id, slot, self.level_number(side, price), side, [0, 0]);
        }
    }

    /// Records the removal of all orders of an instrument, in the sequence of their ids.
    pub(crate) fn clear(&mut self, instrument: u16) {
        let is_cleared =
            |order: &Order| Side::BOTH.map(|side| side_index(instrument, side)).contains(&order.side);
        let mut ids: Vec<u64> =
            self.orders.iter().filter(|(_, order)| is_cleared(order)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            self.remove(id);
        }
    }

    /// Number of orders that rest.
    pub(crate) fn order_count(&self) -> usize {
        self.orders.len()
    }

    /// An order in its book.
    pub(crate) fn order(&self, id: u64) -> Option<&Order> {
        self.orders.get(&id)
    }

    fn push(&mut self, id: u64, order: u32, level: u32, side: u32, [prev, next]: [u32; 2]) {
        self.steps.push(Step { index: id as u32, order, level, side, prev, next });
    }

    fn level_number(&self, side: u32, price: Price) -> u32 {
        self.levels.get(&(side, price)).map_or(0, |level| level.number)
    }

    /// Prepares the loop that touches the memory of all recorded steps; each call of the closure touches all.
    pub(crate) fn finish(self) -> Box<dyn FnMut() -> u64> {
        let mut lines = Lines::new(self.slots.len, self.numbers.len);
        // The first pass causes the page faults.
        lines.touch(&self.steps);
        Box::new(move || lines.touch(std::hint::black_box(&self.steps)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_the_next_power_of_two_above_twice_the_orders() {
        for (orders, len) in [(1, 4), (3, 8), (1_000, 2_048), (1_023, 2_048), (1_024, 4_096)] {
            assert_eq!(Lines::new(orders, 1).index.len(), len, "{orders}");
        }
    }
}

//! A loop that touches the memory that each message of a day needs in a compact layout, and does nothing else:
//! the limit of books.
//!
//! The layout is fixed and independent of the layout of [`tickpath_book`]: orders of 24 bytes in a pool, of
//! which the one freed last is used first; an index of 8 bytes an entry by order reference; levels of 32 bytes
//! in such a pool; sides of 64 bytes.

use std::collections::HashMap;

use anyhow::{Context as _, anyhow, ensure};
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_nasdaq::itch50::Message;
use tickpath_types::Side;
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::itch_books::frames;

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

/// The memory of a day with fewer than `ORDERS` orders and `LEVELS` levels at a time. All lengths are powers of
/// two, so that the compiler needs no check of an index that is masked.
struct Lines<const INDEX: usize, const ORDERS: usize, const LEVELS: usize> {
    index: Box<[u64; INDEX]>,
    orders: Box<[[u32; 6]; ORDERS]>,
    levels: Box<[[u64; 4]; LEVELS]>,
    sides: Box<[[u64; 8]; SIDES]>,
}

const SIDES: usize = 1 << 14;

/// A zeroed array on the heap.
fn zeroed<T: Copy + Default, const LEN: usize>() -> anyhow::Result<Box<[T; LEN]>> {
    vec![T::default(); LEN].into_boxed_slice().try_into().map_err(|_| anyhow!("the length is LEN"))
}

impl<const INDEX: usize, const ORDERS: usize, const LEVELS: usize> Lines<INDEX, ORDERS, LEVELS> {
    fn new() -> anyhow::Result<Self> {
        Ok(Lines { index: zeroed()?, orders: zeroed()?, levels: zeroed()?, sides: zeroed()? })
    }

    /// Touches the memory of all steps, and returns a number that depends on all of it.
    #[inline(never)]
    fn touch(&mut self, steps: &[Step]) -> u64 {
        let Lines { index, orders, levels, sides } = self;
        let (index_of, order_of) = (|it: u32| it as usize % INDEX, |it: u32| it as usize % ORDERS);
        let (level_of, side_of) = (|it: u32| it as usize % LEVELS, |it: u32| it as usize % SIDES);
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
struct Order {
    slot: u32,
    side: u32,
    price: u32,
    qty: u64,
}

/// A level: its number, its first and last order and their number.
#[derive(Default)]
struct Level {
    number: u32,
    tail: u32,
    count: u32,
}

type Map<K, V> = HashMap<K, V, Xxh3DefaultBuilder>;

/// Records the steps of a day.
#[derive(Default)]
struct Recorder {
    steps: Vec<Step>,
    orders: Map<u64, Order>,
    levels: Map<(u32, u32), Level>,
    slots: Pool,
    numbers: Pool,
    /// The orders ahead and behind by slot.
    links: Vec<[u32; 2]>,
}

impl Recorder {
    fn add(&mut self, reference: u64, side: u32, price: u32, qty: u64) {
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
        self.orders.insert(reference, Order { slot, side, price, qty });
        self.push(reference, slot, level_number(&self.levels, side, price), side, [prev, 0]);
    }

    /// Removes an order and returns its side; `None` for an order that is unknown.
    fn remove(&mut self, reference: u64) -> Option<u32> {
        let Order { slot, side, price, .. } = self.orders.remove(&reference)?;
        let [prev, next] = self.links[slot as usize];
        self.links[prev as usize][1] = next;
        self.links[next as usize][0] = prev;
        let number = level_number(&self.levels, side, price);
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
        self.push(reference, slot, number, side, [prev, next]);
        Some(side)
    }

    fn reduce(&mut self, reference: u64, by: u64) {
        let Some(order) = self.orders.get_mut(&reference) else { return };
        if order.qty <= by {
            self.remove(reference);
            return;
        }
        order.qty -= by;
        let Order { slot, side, price, .. } = *order;
        self.push(reference, slot, level_number(&self.levels, side, price), side, [0, 0]);
    }

    fn push(&mut self, reference: u64, order: u32, level: u32, side: u32, [prev, next]: [u32; 2]) {
        self.steps.push(Step { index: reference as u32, order, level, side, prev, next });
    }
}

fn level_number(levels: &Map<(u32, u32), Level>, side: u32, price: u32) -> u32 {
    levels.get(&(side, price)).map_or(0, |level| level.number)
}

/// Prepares a loop that touches the memory that the messages of a day's file need. Each call of the closure
/// touches all of it.
pub(crate) fn prepare(file: &[u8]) -> anyhow::Result<Box<dyn FnMut() -> u64>> {
    let mut recorder = Recorder::default();
    for message in frames(file) {
        match Message::parse(message).context("a message of a day")? {
            Message::AddOrder(add) => {
                let side = side_index(add.stock_locate.get().0, add.side.side());
                recorder.add(add.order_ref.get().0, side, add.price.get().0 as u32, add.shares.get().0);
            }
            Message::AddOrderMpid(add) => {
                let side = side_index(add.stock_locate.get().0, add.side.side());
                recorder.add(add.order_ref.get().0, side, add.price.get().0 as u32, add.shares.get().0);
            }
            Message::OrderDelete(delete) => {
                recorder.remove(delete.order_ref.get().0);
            }
            Message::OrderReplace(replace) => {
                if let Some(side) = recorder.remove(replace.original_order_ref.get().0) {
                    let (price, qty) = (replace.price.get().0 as u32, replace.shares.get().0);
                    recorder.add(replace.new_order_ref.get().0, side, price, qty);
                }
            }
            Message::OrderExecuted(executed) => {
                recorder.reduce(executed.order_ref.get().0, executed.executed_shares.get().0);
            }
            Message::OrderExecutedWithPrice(executed) => {
                recorder.reduce(executed.order_ref.get().0, executed.executed_shares.get().0);
            }
            Message::OrderCancel(cancel) => {
                recorder.reduce(cancel.order_ref.get().0, cancel.canceled_shares.get().0);
            }
            _ => {}
        }
    }
    let (orders, levels, steps) = (recorder.slots.len, recorder.numbers.len, recorder.steps);
    // The index is as long as the next power of two above twice the number of orders.
    if orders < 1 << 19 && levels < 1 << 17 {
        return touching::<{ 1 << 20 }, { 1 << 19 }, { 1 << 17 }>(steps);
    }
    ensure!(
        orders < 1 << 21 && levels < 1 << 20,
        "{orders} orders and {levels} levels are too many to touch"
    );
    touching::<{ 1 << 22 }, { 1 << 21 }, { 1 << 20 }>(steps)
}

fn touching<const INDEX: usize, const ORDERS: usize, const LEVELS: usize>(
    steps: Vec<Step>,
) -> anyhow::Result<Box<dyn FnMut() -> u64>> {
    let mut lines = Lines::<INDEX, ORDERS, LEVELS>::new()?;
    Ok(Box::new(move || lines.touch(std::hint::black_box(&steps))))
}

fn side_index(locate: u16, side: Option<Side>) -> u32 {
    u32::from(locate) * 2 + side.map_or(0, |side| side as u32)
}

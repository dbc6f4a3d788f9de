//! The fast books against the reference model, and the index against an ordered map, on random commands.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use crate::prices::Prices;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{
    BookLimits, FastBooks, InsertError, Order, OrderBooks, OrderHandle, OrderIndex, PageIndex, PageLimits,
};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, OrderId, Qty, Side};
use xxhash_rust::xxh3::Xxh3;

/// Parameters of the random commands.
#[derive(Clone, Copy, Debug)]
struct Shape {
    seed: u64,
    steps: u32,
    limits: BookLimits,
    prices: Prices,
    /// Percentage of commands that try to add an order.
    add_percent: u32,
}

fn run(shape: Shape) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(shape.seed);
    let mut below = |bound: u32| random.next_u32() % bound;
    let mut fast: FastBooks<u64> = FastBooks::new(shape.limits);
    let mut reference: ReferenceBooks<u64> = ReferenceBooks::new(shape.limits);
    let mut open: Vec<(OrderHandle, OrderHandle)> = Vec::new();
    for step in 0..shape.steps {
        if below(100) < shape.add_percent || open.is_empty() {
            let order = Order {
                id: OrderId(u64::from(step)),
                // Some orders are beyond the last book, or have quantity zero.
                instrument: InstrumentId(below(u32::from(shape.limits.max_instrument.0) + 2) as u16),
                side: Side::BOTH[below(2) as usize],
                price: shape.prices.draw(step, &mut below),
                qty: Qty(u64::from(below(50))),
                data: u64::from(step) * 3,
            };
            match (fast.add(order), reference.add(order)) {
                (Ok(fast), Ok(reference)) => open.push((fast, reference)),
                (fast, reference) => assert_eq!(fast.err(), reference.err()),
            }
            continue;
        }
        let chosen = below(open.len() as u32) as usize;
        let (in_fast, in_reference) = open[chosen];
        assert_eq!(fast.queue_position(in_fast), reference.queue_position(in_reference));
        let order = reference.order(in_reference).expect("only open orders are listed");
        assert_eq!(fast.order(in_fast), Some(order));
        let qty = Qty(u64::from(below(order.qty.0 as u32 + 1)));
        let is_removed = match below(3) {
            0 => {
                assert_eq!(fast.reduce(in_fast, qty), reference.reduce(in_reference, qty));
                qty == order.qty
            }
            1 => {
                *fast.data_mut(in_fast) += 1;
                *reference.data_mut(in_reference) += 1;
                false
            }
            _ => {
                assert_eq!(fast.remove(in_fast), reference.remove(in_reference));
                true
            }
        };
        if is_removed {
            open.swap_remove(chosen);
        }
        let side = Side::BOTH[below(2) as usize];
        assert_eq!(fast.best(order.instrument, side), reference.best(order.instrument, side));
        if step % 500 == 0 {
            assert_eq!(fast.state_hash(), reference.state_hash());
            assert_eq!(
                (fast.order_count(), fast.level_count()),
                (reference.order_count(), reference.level_count())
            );
            let limit = shape.prices.draw(step, &mut below);
            assert_eq!(
                fast.available(order.instrument, side, limit, Qty(1_000)),
                reference.available(order.instrument, side, limit, Qty(1_000))
            );
        }
    }
    let with_data = |hasher: &mut Xxh3, order: &Order<u64>| hasher.update(&order.data.to_le_bytes());
    assert_eq!(tickpath_book::state_hash(&fast, with_data), tickpath_book::state_hash(&reference, with_data));
}

#[test]
fn fast_books_match_the_reference() {
    let limits = BookLimits::new(InstrumentId(4), 400);
    for (seed, prices, add_percent) in [(1, 20, 55), (2, 300, 60), (3, 5, 50), (4, 4_000, 80)] {
        run(Shape { seed, steps: 20_000, limits, prices: Prices::UpTo(prices), add_percent });
    }
}

#[test]
fn fast_books_match_the_reference_while_prices_wander() {
    let limits = BookLimits::new(InstrumentId(1), 600);
    for (seed, tick) in [(11, 100), (12, 1), (13, 2_500), (14, 7)] {
        run(Shape { seed, steps: 30_000, limits, prices: Prices::Wander(tick), add_percent: 53 });
    }
    // A bound on levels that is low enough to be reached both inside the window and outside.
    let tight = BookLimits { max_levels: 70, ..limits };
    run(Shape { seed: 15, steps: 30_000, limits: tight, prices: Prices::Wander(100), add_percent: 53 });
}

#[test]
fn fast_books_match_the_reference_at_the_bounds() {
    let limits = BookLimits { max_instrument: InstrumentId(1), max_orders: 60, max_levels: 20 };
    run(Shape { seed: 5, steps: 20_000, limits, prices: Prices::UpTo(40), add_percent: 70 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_books_match_the_reference_in_any_shape(
        seed: u64, max_orders in 1..200_u32, max_levels in 1..100_u32, prices in 1..200_u32, add_percent in 30..90_u32,
    ) {
        let limits = BookLimits { max_instrument: InstrumentId(2), max_orders, max_levels };
        run(Shape { seed, steps: 1_500, limits, prices: Prices::UpTo(prices), add_percent });
    }
}

/// The common methods of both kinds of index.
trait Index {
    fn has_capacity(&self, id: u64) -> bool;
    fn insert(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError>;
    fn find(&self, id: u64) -> Option<OrderHandle>;
    fn remove(&mut self, id: u64) -> Option<OrderHandle>;
}

macro_rules! index {
    ($($Type:ty: |$index:ident, $id:ident| $has_capacity:expr;)*) => { $(
        impl Index for $Type {
            fn has_capacity(&self, $id: u64) -> bool {
                let $index = self;
                $has_capacity
            }

            fn insert(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
                self.insert(id, handle)
            }

            fn find(&self, id: u64) -> Option<OrderHandle> {
                self.find(id)
            }

            fn remove(&mut self, id: u64) -> Option<OrderHandle> {
                self.remove(id)
            }
        }
    )* };
}

index! {
    PageIndex: |index, id| index.has_capacity(id);
    OrderIndex: |_index, _id| true; // sized for the maximum number of orders
}

/// Runs an index and an ordered map on random ids, most near a moving front, some far off; returns the map.
fn run_index(seed: u64, index: &mut impl Index, spread: u64) -> BTreeMap<u64, OrderHandle> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut reference: BTreeMap<u64, OrderHandle> = BTreeMap::new();
    let mut front = 1 << 33;
    for step in 1..30_000_u32 {
        front += random.next_u64() % 3;
        let far = random.next_u32() % 50 == 0;
        let id = if far { random.next_u64() } else { front - random.next_u64() % spread };
        let handle = OrderHandle::new(step).expect("steps count from 1");
        if random.next_u32() % 100 < 55 {
            let (had_capacity, was_present) = (index.has_capacity(id), reference.contains_key(&id));
            match index.insert(id, handle) {
                Ok(()) => assert_eq!((reference.insert(id, handle), had_capacity), (None, true)),
                Err(InsertError::Duplicate(_)) => assert!(was_present),
                Err(_) => assert!(!had_capacity && !was_present),
            }
        } else {
            // Remove an id near the front, or the smallest present one, so that pages become empty.
            let oldest = reference.keys().next().copied();
            let id = if random.next_u32() % 2 == 0 { id } else { oldest.unwrap_or(id) };
            assert_eq!(index.remove(id), reference.remove(&id));
        }
        assert_eq!(index.find(id), reference.get(&id).copied());
    }
    for (id, handle) in &reference {
        assert_eq!(index.find(*id), Some(*handle));
    }
    reference
}

#[test]
fn an_index_is_a_map() {
    for (seed, spread) in [(1, 2_000), (2, 200_000), (3, 5_000_000)] {
        let mut hashed = OrderIndex::new(20_000);
        for (id, handle) in run_index(seed, &mut hashed, spread) {
            assert_eq!(hashed.remove(id), Some(handle));
        }
        let mut paged =
            PageIndex::untouched(PageLimits { blocks: 3, max_pages: 12, max_pages_per_block: 9 }, 0);
        let reference = run_index(seed, &mut paged, spread);
        let mut from = 0;
        let walked = std::iter::from_fn(|| {
            let (id, handle) = paged.first_from(from)?;
            from = id + 1;
            Some((id, handle))
        });
        assert!(walked.eq(reference.iter().map(|(id, handle)| (*id, *handle))));
        for id in reference.keys() {
            assert!(paged.remove(*id).is_some());
        }
        assert_eq!(paged.page_count(), 0, "everything goes back to the pool");
    }
}

#[test]
fn pages_are_refused_at_their_bounds() {
    let handle = OrderHandle::new(7).expect("not zero");
    let mut index = PageIndex::untouched(PageLimits { blocks: 2, max_pages: 5, max_pages_per_block: 3 }, 0);
    let page = 1 << 10;
    // One directory page and two leaves are the block's three pages.
    for id in [0, page, 5, page + 5] {
        assert_eq!(index.insert(id, handle), Ok(()));
    }
    assert!(!index.has_capacity(2 * page));
    assert_eq!(index.insert(2 * page, handle), Err(InsertError::IndexFull(2 * page)));
    assert!(index.has_capacity(6), "its page is there");
    assert_eq!(index.insert(5, handle), Err(InsertError::Duplicate(5)));
    // The other block gets the last two of the five pages.
    let block = 1 << 32;
    assert_eq!(index.insert(block, handle), Ok(()));
    assert_eq!(index.insert(block + page, handle), Err(InsertError::IndexFull(block + page)));
    assert_eq!(index.page_count(), 5);
    assert_eq!(index.insert(2 * block, handle), Err(InsertError::IndexFull(2 * block)), "outside");
    // The removal of both orders of a leaf frees its page.
    assert_eq!(index.remove(page), Some(handle));
    assert_eq!(index.remove(page + 5), Some(handle));
    assert_eq!(index.insert(2 * page, handle), Ok(()));
}

#[test]
fn ids_are_hashed_up_to_the_bound() {
    let mut index = OrderIndex::new(2);
    let handle = |slot| OrderHandle::new(slot).expect("not zero");
    index.insert(1, handle(1)).unwrap();
    index.insert(1 << 40, handle(2)).unwrap();
    assert_eq!(index.insert(2, handle(3)), Err(InsertError::IndexFull(2)));
    assert_eq!(index.insert(1, handle(3)), Err(InsertError::Duplicate(1)));
    assert_eq!((index.find(1), index.find(1 << 40)), (Some(handle(1)), Some(handle(2))));
    assert_eq!((index.remove(1), index.remove(1)), (Some(handle(1)), None));
    assert_eq!(index.insert(2, handle(3)), Ok(()));
}

#[test]
fn pages_are_recycled_while_the_window_moves() {
    let mut index = PageIndex::untouched(PageLimits { blocks: 1, max_pages: 4, max_pages_per_block: 4 }, 0);
    let handle = OrderHandle::new(1).expect("not zero");
    // A thousand open orders at a time, over three million ids.
    for id in 0..3_000_000_u64 {
        index.insert(id, handle).unwrap();
        if id >= 1_000 {
            assert_eq!(index.remove(id - 1_000), Some(handle));
        }
    }
}

//! Books by id against the reference model, on random commands.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::prices::Prices;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{
    AddError, BookLimits, BooksById, DirectBooks, FastBooks, Indexed, Order, PackedBooks, PrefetchRequest,
};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// Parameters of the random commands.
#[derive(Clone, Copy, Debug)]
struct Shape {
    seed: u64,
    steps: u32,
    limits: BookLimits,
    prices: Prices,
    ids: Ids,
    /// Percentage of commands that try to add an order.
    add_percent: u32,
}

/// Distribution of the venue's order ids.
#[derive(Clone, Copy, Debug)]
enum Ids {
    /// Ascending: each id is above the last one by 1 to this number.
    Ascending(u32),
    /// Random multiples of this number, from 0 to 499 times.
    Multiples(u64),
    /// Random numbers below this, so that many are already in use.
    Few(u32),
    /// Random 64-bit numbers.
    Any,
}

impl Ids {
    fn draw(self, last: &mut u64, random: &mut impl Rng) -> OrderId {
        let id = match self {
            Ids::Ascending(gap) => *last + 1 + u64::from(random.next_u32() % gap),
            Ids::Multiples(step) => u64::from(random.next_u32() % 500).wrapping_mul(step),
            Ids::Few(count) => u64::from(random.next_u32() % count),
            Ids::Any => random.next_u64(),
        };
        *last = id;
        OrderId(id)
    }
}

fn run<B: BooksById>(shape: Shape) {
    let Shape { seed, steps, limits, prices, ids, add_percent } = shape;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut fast, mut reference) = (B::new(limits), Indexed::<ReferenceBooks>::new(limits));
    let mut open: Vec<Order<()>> = Vec::new();
    let mut last = 0;
    for step in 0..steps {
        let mut below = |bound: u32| random.next_u32() % bound;
        // Some instruments are beyond the last book.
        let instrument = InstrumentId(below(u32::from(limits.max_instrument.0) + 2) as u16);
        let side = Side::BOTH[below(2) as usize];
        let is_add = below(100) < add_percent || open.is_empty();
        let (chosen, action) = (below(open.len().max(1) as u32) as usize, below(12));
        let price = prices.draw(step, &mut below);
        // Some quantities are zero or the maximum.
        let qty = Qty([u64::from(below(50)), u64::MAX][usize::from(below(400) == 0)]);
        let id = ids.draw(&mut last, &mut random);
        // A prefetch changes nothing, whatever order it names.
        fast.prefetch(&PrefetchRequest { id, instrument, side, price });
        if is_add {
            let order = Order { id, instrument, side, price, qty, data: () };
            let result = fast.add(order);
            assert_eq!(result, reference.add(order), "{order:?}");
            if result.is_ok() {
                open.push(order);
            }
            assert_eq!(fast.find(id), reference.find(id));
            assert_eq!(fast.best(instrument, side), reference.best(instrument, side));
            continue;
        }
        let Order { id, instrument, side, .. } = open[chosen];
        let order = reference.find(id).expect("only open orders are listed");
        assert_eq!(fast.find(id), Some(order));
        assert_eq!(fast.queue_position(id), reference.queue_position(id));
        let price = order.price;
        assert!(fast.queue(instrument, side, price).eq(reference.queue(instrument, side, price)));
        match action {
            // The order rests in another book than the named one, or its id is unknown.
            0 => {
                let other_instrument = InstrumentId(instrument.0 + 1);
                let unknown = OrderId(id.0 ^ 1 << 63);
                for (instrument, id) in [(other_instrument, id), (instrument, unknown)] {
                    if reference.find(id).is_some_and(|order| order.instrument == instrument) {
                        continue;
                    }
                    assert_eq!(fast.remove(instrument, id), reference.remove(instrument, id));
                    let zero = Qty::ZERO;
                    assert_eq!(fast.reduce(instrument, id, zero), reference.reduce(instrument, id, zero));
                    assert_eq!(fast.increase(instrument, id, zero), reference.increase(instrument, id, zero));
                }
            }
            1..=3 => {
                let by = Qty(qty.0.min(order.qty.0));
                let more = Qty(qty.0 % 7);
                assert_eq!(fast.increase(instrument, id, more), reference.increase(instrument, id, more));
                let left = fast.reduce(instrument, id, by);
                assert_eq!(left, reference.reduce(instrument, id, by));
                if left == Some(Qty::ZERO) {
                    open.swap_remove(chosen);
                }
            }
            _ => {
                assert_eq!(fast.remove(instrument, id), reference.remove(instrument, id));
                assert_eq!(fast.find(id), None);
                open.swap_remove(chosen);
            }
        }
        for side in Side::BOTH {
            assert_eq!(fast.best(instrument, side), reference.best(instrument, side));
        }
        assert_eq!(fast.front(instrument, side), reference.front(instrument, side));
        assert_eq!(fast.would_trade(instrument, side, price), reference.would_trade(instrument, side, price));
        assert_eq!(fast.order_count(), reference.order_count());
        if step % 250 == 0 {
            assert_eq!(fast.state_hash(), reference.state_hash());
            assert_eq!(fast.level_count(), reference.level_count());
        }
    }
    assert_eq!(fast.state_hash(), reference.state_hash());
    for order in open {
        assert_eq!(fast.remove(order.instrument, order.id), reference.remove(order.instrument, order.id));
    }
    assert_eq!((fast.order_count(), fast.level_count()), (0, 0));
}

fn run_both(shape: Shape) {
    run::<DirectBooks>(shape);
    run::<PackedBooks>(shape);
}

const LIMITS: BookLimits = BookLimits::new(InstrumentId(2), 400);

const USUAL: Shape = Shape {
    seed: 1,
    steps: 20_000,
    limits: LIMITS,
    prices: Prices::Wander(100),
    ids: Ids::Ascending(3),
    add_percent: 54,
};

#[test]
fn books_match_the_reference_with_all_kinds_of_ids() {
    let all = [Ids::Ascending(1), Ids::Ascending(7), Ids::Few(300), Ids::Any];
    let apart = [Ids::Multiples(1 << 10), Ids::Multiples(1 << 33), Ids::Multiples(1 << 7), Ids::Multiples(2)];
    for (seed, ids) in (1..).zip(all.into_iter().chain(apart)) {
        run_both(Shape { seed, ids, ..USUAL });
    }
    run::<Indexed<FastBooks>>(USUAL);
}

#[test]
fn books_match_the_reference_with_all_kinds_of_prices() {
    let all =
        [Prices::UpTo(30), Prices::UpTo(5_000), Prices::Wander(1), Prices::Wander(7), Prices::Wander(2_500)];
    for (seed, prices) in (20..).zip(all) {
        run_both(Shape { seed, prices, ..USUAL });
        run_both(Shape { seed, prices, limits: BookLimits::new(InstrumentId(0), 400), ..USUAL });
    }
}

#[test]
fn books_match_the_reference_at_the_bounds() {
    for (seed, max_orders, max_levels) in
        [(40, 50, 50), (41, 60, 12), (42, 4, 2), (43, 1, 1), (44, 0, 0), (45, 9, 0)]
    {
        let limits = BookLimits { max_instrument: InstrumentId(1), max_orders, max_levels };
        for ids in [Ids::Ascending(2), Ids::Few(80), Ids::Multiples(64)] {
            run_both(Shape { seed, limits, ids, add_percent: 65, steps: 6_000, ..USUAL });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn books_match_the_reference_in_any_shape(
        seed: u64, max_orders in 1..200_u32, max_levels in 1..100_u32, prices in 1..2_000_u32, step: u64,
        add_percent in 30..90_u32,
    ) {
        let limits = BookLimits { max_instrument: InstrumentId(2), max_orders, max_levels };
        let (prices, ids) = (Prices::UpTo(prices), Ids::Multiples(step));
        run_both(Shape { seed, steps: 1_500, limits, prices, ids, add_percent });
    }
}

fn bid(id: u64, price: i64) -> Order<()> {
    let (instrument, side) = (InstrumentId(1), Side::Buy);
    Order { id: OrderId(id), instrument, side, price: Price(price), qty: Qty(10), data: () }
}

/// Two levels 256 prices apart share a cell: the better one has it, even if it was opened second.
#[test]
fn prices_that_share_a_cell_stay_sorted() {
    keep_prices_sorted::<DirectBooks>();
    keep_prices_sorted::<PackedBooks>();
}

fn keep_prices_sorted<B: BooksById>() {
    let far = 256 * 100;
    for prices in [[0, far, 2 * far], [2 * far, far, 0], [far, 2 * far, 0], [0, 5 * far, far]] {
        let mut books = B::new(LIMITS);
        for (id, price) in (0..).zip(prices) {
            // One level has more orders than may be moved.
            for copy in 0..if id == 1 { 20 } else { 3 } {
                books.add(bid(id * 100 + copy, price)).unwrap();
            }
        }
        let mut sorted = prices;
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let levels = |books: &B| {
            books.levels(InstrumentId(1), Side::Buy).map(|level| level.price.0).collect::<Vec<_>>()
        };
        assert_eq!(levels(&books), sorted);
        for left in (0..3).rev() {
            let best = books.best(InstrumentId(1), Side::Buy).unwrap();
            assert_eq!(best.price.0, sorted[2 - left]);
            for _ in 0..best.order_count {
                let front = books.front(InstrumentId(1), Side::Buy).unwrap();
                books.remove(front.instrument, front.id).unwrap();
            }
            assert_eq!(levels(&books).len(), left);
        }
    }
}

#[test]
fn a_duplicate_id_is_rejected_without_effect() {
    reject_duplicates::<DirectBooks>();
    reject_duplicates::<PackedBooks>();
}

fn reject_duplicates<B: BooksById>() {
    let mut books = B::new(LIMITS);
    let near = 0..300;
    let far = (1..60).map(|id| id << 33);
    let ids: Vec<u64> = near.chain(far).collect();
    for id in &ids {
        books.add(bid(*id, 100)).unwrap();
    }
    let before = books.state_hash();
    for id in ids {
        assert_eq!(books.add(bid(id, 200)), Err(AddError::DuplicateId(OrderId(id))));
        assert_eq!(books.state_hash(), before);
    }
}

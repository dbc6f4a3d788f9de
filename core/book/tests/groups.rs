//! Packed books that apply changes in groups, against plain books that apply each change by itself.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::prices::Prices;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{
    BookLimits, BooksById, ChangeKind, DirectBooks, Order, OrderChange, OrderGroup, OrderMessages,
    PackedBooks, Step,
};
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

/// A message: a change and the id of the new order of a replacement; or none.
type Message = Option<(OrderChange, OrderId)>;

/// The protocol of [`Message`].
struct Messages;

impl OrderMessages<Message> for Messages {
    fn change(&self, message: &Message) -> Option<OrderChange> {
        message.map(|(change, _)| change)
    }

    fn new_id(&self, message: &Message) -> OrderId {
        message.unwrap().1
    }
}

/// The effect of a message on an order: side, price, and the quantity added or removed.
type Effect = Option<(Side, Price, Qty)>;

fn add(books: &mut impl BooksById, change: &OrderChange, id: OrderId, side: Side) -> (Effect, bool) {
    let &OrderChange { instrument, price, qty, .. } = change;
    let crosses = books.would_trade(instrument, side, price);
    let added = books.add(Order { id, instrument, side, price, qty, data: () });
    (added.ok().map(|()| (side, price, qty)), crosses && added.is_ok())
}

/// Applies one change by the methods for single orders.
fn apply_alone(books: &mut impl BooksById, (change, new_id): &(OrderChange, OrderId)) -> (Effect, bool) {
    let &OrderChange { kind, id, instrument, side, qty, .. } = change;
    match kind {
        ChangeKind::Add => add(books, change, id, side),
        ChangeKind::Reduce => {
            let resting = books.find(id).filter(|order| order.instrument == instrument && order.qty >= qty);
            let Some(order) = resting else { return (None, false) };
            books.reduce(instrument, id, qty).unwrap();
            (Some((order.side, order.price, qty)), false)
        }
        ChangeKind::Delete => {
            let removed = books.remove(instrument, id);
            (removed.map(|order| (order.side, order.price, order.qty)), false)
        }
        ChangeKind::Replace => {
            let Some(order) = books.remove(instrument, id) else { return (None, false) };
            add(books, change, *new_id, order.side)
        }
        ChangeKind::Modify | ChangeKind::ModifyEitherSide => {
            let Some(order) = books.find(id).filter(|order| order.instrument == instrument) else {
                return (None, false);
            };
            let is_on_side = kind == ChangeKind::ModifyEitherSide || order.side == side;
            if order.price == change.price && is_on_side {
                let Some(by) = order.qty.0.checked_sub(qty.0).map(Qty) else { return (None, false) };
                books.reduce(instrument, id, by);
                return (Some((order.side, order.price, by)), false);
            }
            if !is_on_side {
                return (None, false);
            }
            books.remove(instrument, id);
            add(books, change, *new_id, order.side)
        }
    }
}

/// Applies a group and returns the effect of each message, which the books must report with `REPORTS`.
fn apply_group<const REPORTS: bool>(
    books: &mut PackedBooks,
    group: &mut OrderGroup,
    messages: &[Message],
) -> Vec<(Effect, bool)> {
    books.prepare(group, messages.iter().copied(), &Messages);
    let mut effects = vec![(None, false); messages.len()];
    loop {
        match books.advance::<REPORTS>(group) {
            Step::Done => return effects,
            Step::Exception { index } => {
                effects[index] = messages[index].map_or((None, false), |it| apply_alone(books, &it));
            }
            Step::NewOrderException { index, side } => {
                let (change, new_id) = messages[index].unwrap();
                effects[index] = add(books, &change, new_id, side);
            }
            Step::Applied { index, side, price, qty, is_added, crosses } => {
                let kind = messages[index].unwrap().0.kind;
                let may_add = !matches!(kind, ChangeKind::Delete | ChangeKind::Reduce);
                let may_keep = !matches!(kind, ChangeKind::Add | ChangeKind::Replace);
                assert!(if is_added { may_add } else { may_keep }, "{kind:?}");
                effects[index] = (Some((side, price, qty)), crosses);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    seed: u64,
    groups: usize,
    limits: BookLimits,
    prices: Prices,
    /// Order ids are multiples of this.
    id_step: u64,
}

fn run<const REPORTS: bool>(shape: Shape) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(shape.seed);
    let (mut packed, mut direct) = (PackedBooks::new(shape.limits), DirectBooks::new(shape.limits));
    let mut group = OrderGroup::default();
    let ids = 2 * shape.limits.max_orders + 4;
    for step in 0..shape.groups {
        let mut below = |bound: u32| random.next_u32() % bound;
        let messages: Vec<Message> = (0..below(OrderGroup::LEN_MAX as u32 + 1))
            .map(|_| {
                let id = |number: u32| OrderId(u64::from(number).wrapping_mul(shape.id_step));
                let kind = match below(12) {
                    0..5 => ChangeKind::Add,
                    5..7 => ChangeKind::Delete,
                    7 => ChangeKind::Reduce,
                    8 => ChangeKind::Replace,
                    9 => ChangeKind::Modify,
                    10 => ChangeKind::ModifyEitherSide,
                    _ => return None,
                };
                let qty = [Qty(u64::from(below(6))), Qty(u64::MAX - 9)][usize::from(below(300) == 0)];
                let change = OrderChange {
                    kind,
                    id: id(below(ids)),
                    instrument: InstrumentId(below(u32::from(shape.limits.max_instrument.0) + 2) as u16),
                    side: Side::BOTH[below(2) as usize],
                    price: shape.prices.draw(step as u32, &mut below),
                    qty,
                };
                Some((change, id(below(ids))))
            })
            .collect();
        let effects = apply_group::<REPORTS>(&mut packed, &mut group, &messages);
        for (message, (effect, crosses)) in messages.iter().zip(effects) {
            let expected = message.map_or((None, false), |it| apply_alone(&mut direct, &it));
            if REPORTS {
                assert_eq!(effect, expected.0, "{message:?}");
            }
            if REPORTS || expected.1 {
                assert_eq!(crosses, expected.1, "{message:?}");
            }
        }
        let id = OrderId(u64::from(random.next_u32() % ids).wrapping_mul(shape.id_step));
        if let Some(order) = packed.find(id).filter(|_| random.next_u32().is_multiple_of(8)) {
            // More than 32 bits, which an order in the neighbouring bucket may get, too.
            let by = Qty(1 << 32);
            assert_eq!(packed.increase(order.instrument, id, by), direct.increase(order.instrument, id, by));
        }
        assert_eq!(packed.order_count(), direct.order_count());
        assert_eq!(packed.level_count(), direct.level_count());
        for instrument in (0..=shape.limits.max_instrument.0).map(InstrumentId) {
            for side in Side::BOTH {
                assert_eq!(packed.best(instrument, side), direct.best(instrument, side));
                assert_eq!(packed.front(instrument, side), direct.front(instrument, side));
            }
        }
        if step % 8 == 0 {
            assert_eq!(packed.state_hash(), direct.state_hash());
        }
    }
    assert_eq!(packed.state_hash(), direct.state_hash());
}

fn run_both(shape: Shape) {
    run::<true>(shape);
    run::<false>(shape);
}

/// Miri takes about a thousand times as long.
const GROUPS: usize = if cfg!(miri) { 2 } else { 400 };

/// Distances between ids: neighbours, ids of other upper parts, ids too large for an exact tag.
const ID_STEPS: &[u64] =
    if cfg!(miri) { &[1, u64::MAX] } else { &[1, 2, 1 << 9, 1 << 33, 0x9e37_79b9_7f4a_7c15, u64::MAX] };

#[test]
fn groups_match_single_changes() {
    for (seed, max_orders) in [(1, 1), (2, 3), (3, 4), (4, 60), (5, 500)] {
        for &id_step in ID_STEPS {
            let limits =
                BookLimits { max_levels: max_orders / 2 + 1, ..BookLimits::new(InstrumentId(2), max_orders) };
            run_both(Shape { seed, groups: GROUPS, limits, prices: Prices::Wander(100), id_step });
        }
    }
}

/// Prices off the default grid make sides change their grids in the middle of groups.
#[test]
fn groups_match_single_changes_with_any_prices() {
    let limits = BookLimits::new(InstrumentId(1), 200);
    for (seed, prices) in
        (20..).zip([Prices::Wander(1), Prices::Wander(7), Prices::UpTo(5_000), Prices::UpTo(30)])
    {
        run_both(Shape { seed, groups: GROUPS, limits, prices, id_step: 1 });
    }
}

/// Books with equal limits have other homes for the same ids.
#[test]
fn a_group_of_other_books_has_only_exceptions() {
    let books = |orders| PackedBooks::new(BookLimits::new(InstrumentId(1), orders));
    let mut applying = books(400);
    let add = OrderChange {
        kind: ChangeKind::Add,
        id: OrderId(1),
        instrument: InstrumentId(1),
        side: Side::Buy,
        price: Price(100),
        qty: Qty(1),
    };
    let mut group = OrderGroup::default();
    for preparing in [books(4), books(400)] {
        preparing.prepare(&mut group, [None, Some((add, OrderId(0)))].into_iter(), &Messages);
        assert_eq!(applying.advance::<false>(&mut group), Step::Exception { index: 0 });
        assert_eq!(applying.advance::<false>(&mut group), Step::Exception { index: 1 });
        assert_eq!(applying.advance::<false>(&mut group), Step::Done);
        assert_eq!(applying.order_count(), 0);
    }
}

/// Adds alone make sides change their grids in the middle of groups, also of groups without reports.
#[test]
fn groups_of_adds_match_single_adds() {
    for (unit, seed) in [1, 7, 250_000_000].into_iter().flat_map(|unit| (0..4).map(move |seed| (unit, seed)))
    {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let limits = BookLimits::new(InstrumentId(2), 4_000);
        let (mut packed, mut direct) = (PackedBooks::new(limits), DirectBooks::new(limits));
        let mut group = OrderGroup::default();
        for number in 0..GROUPS as u64 / 4 {
            let mut below = |bound: u32| random.next_u32() % bound;
            let messages: Vec<Message> = (0..OrderGroup::LEN_MAX as u64)
                .map(|place| {
                    let side = Side::BOTH[below(2) as usize];
                    let steps = i64::from(below(300)) + 1;
                    let ticks = if side == Side::Buy { 10_000 - steps } else { 10_000 + steps };
                    let change = OrderChange {
                        kind: ChangeKind::Add,
                        id: OrderId((number * OrderGroup::LEN_MAX as u64 + place) * 977),
                        instrument: InstrumentId(below(3) as u16),
                        side,
                        price: Price(ticks * unit + 3),
                        qty: Qty(1 + u64::from(below(5))),
                    };
                    Some((change, OrderId(0)))
                })
                .collect();
            apply_group::<false>(&mut packed, &mut group, &messages);
            for message in messages.iter().flatten() {
                apply_alone(&mut direct, message);
            }
            assert_eq!(packed.order_count(), direct.order_count());
            assert_eq!(packed.state_hash(), direct.state_hash(), "{unit} {seed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 40 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn groups_match_single_changes_in_any_shape(
        seed: u64, max_orders in 1..200_u32, max_levels in 1..100_u32, prices in 1..2_000_u32, id_step: u64,
    ) {
        let limits = BookLimits { max_instrument: InstrumentId(2), max_orders, max_levels };
        run_both(Shape { seed, groups: GROUPS.div_ceil(10), limits, prices: Prices::UpTo(prices), id_step });
    }
}

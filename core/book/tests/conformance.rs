//! Conformance suite for all implementations of `OrderBooks`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tickpath_book::{AddError, BookLimits, FastBooks, Level, Order, OrderBooks};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

const ALPHA: InstrumentId = InstrumentId(1);

fn order(id: u64, side: Side, qty: u64, price: i64) -> Order<u32> {
    Order {
        id: OrderId(id),
        instrument: ALPHA,
        side,
        price: Price(price),
        qty: Qty(qty),
        data: id as u32 * 7,
    }
}

fn level(price: i64, qty: u64, order_count: u32) -> Level {
    Level { price: Price(price), qty: Qty(qty), order_count }
}

fn books<B: OrderBooks<u32>>() -> B {
    B::new(BookLimits::new(InstrumentId(3), 100))
}

fn ids<B: OrderBooks<u32>>(books: &B, side: Side) -> Vec<u64> {
    books.orders(ALPHA, side).map(|(_, order)| order.id.0).collect()
}

fn priority_is_by_price_then_time<B: OrderBooks<u32>>() {
    let mut books: B = books();
    for (id, side, qty, price) in [
        (1, Side::Buy, 10, 99),
        (2, Side::Buy, 20, 100),
        (3, Side::Buy, 30, 98),
        (4, Side::Buy, 40, 100),
        (5, Side::Sell, 50, 103),
        (6, Side::Sell, 60, 102),
        (7, Side::Sell, 70, 103),
    ] {
        books.add(order(id, side, qty, price)).unwrap();
    }
    assert_eq!(ids(&books, Side::Buy), [2, 4, 1, 3]);
    assert_eq!(ids(&books, Side::Sell), [6, 5, 7]);
    assert_eq!(books.best(ALPHA, Side::Buy), Some(level(100, 60, 2)));
    assert_eq!(books.best_price(ALPHA, Side::Sell), Some(Price(102)));
    let mut depth = [level(0, 0, 0); 2];
    assert_eq!(books.depth(ALPHA, Side::Buy, &mut depth), 2);
    assert_eq!(depth, [level(100, 60, 2), level(99, 10, 1)]);
    let mut depth = [level(0, 0, 0); 4];
    assert_eq!(books.depth(ALPHA, Side::Sell, &mut depth), 2);
    assert_eq!((books.order_count(), books.level_count()), (7, 5));
}

fn a_reduced_order_keeps_its_place<B: OrderBooks<u32>>() {
    let mut books: B = books();
    let first = books.add(order(1, Side::Sell, 10, 100)).unwrap();
    let second = books.add(order(2, Side::Sell, 20, 100)).unwrap();
    assert_eq!(books.reduce(first, Qty(4)), Qty(6));
    assert_eq!(books.reduce(second, Qty(0)), Qty(20));
    assert_eq!(books.front(ALPHA, Side::Sell), Some(first));
    assert_eq!(books.best(ALPHA, Side::Sell), Some(level(100, 26, 2)));
    assert_eq!(books.queue_position(second).orders_ahead, 1);
    assert_eq!(books.queue_position(second).qty_ahead, Qty(6));
    assert_eq!(books.reduce(first, Qty(6)), Qty::ZERO);
    assert_eq!(books.order(first), None);
    assert_eq!(books.front(ALPHA, Side::Sell), Some(second));
    assert_eq!(books.queue_position(second), Default::default());
}

fn an_increased_order_keeps_its_place<B: OrderBooks<u32>>() {
    let mut books: B = books();
    let first = books.add(order(1, Side::Sell, 10, 100)).unwrap();
    books.add(order(2, Side::Sell, 20, 100)).unwrap();
    assert_eq!(books.increase(first, Qty(5)), Some(Qty(15)));
    assert_eq!(books.front(ALPHA, Side::Sell), Some(first));
    assert_eq!(books.best(ALPHA, Side::Sell), Some(level(100, 35, 2)));
    assert_eq!(books.increase(first, Qty(u64::MAX - 35)), Some(Qty(u64::MAX - 20)));
    assert_eq!(books.increase(first, Qty(1)), None, "one beyond what a level can have");
    assert_eq!(books.best(ALPHA, Side::Sell), Some(level(100, u64::MAX, 2)));
}

fn orders_leave_from_anywhere<B: OrderBooks<u32>>() {
    for leaving in 0..4 {
        let mut books: B = books();
        let handles: Vec<_> =
            (0..4).map(|id| books.add(order(id, Side::Buy, 10 + id, 100)).unwrap()).collect();
        let removed = books.remove(handles[leaving]);
        assert_eq!(removed, order(leaving as u64, Side::Buy, 10 + leaving as u64, 100));
        let expected: Vec<u64> = (0..4).filter(|id| *id != leaving as u64).collect();
        assert_eq!(ids(&books, Side::Buy), expected);
        books.add(order(9, Side::Buy, 1, 100)).unwrap();
        assert_eq!(ids(&books, Side::Buy).last(), Some(&9));
        for (id, handle) in handles.iter().enumerate().filter(|(id, _)| *id != leaving) {
            assert_eq!(books.remove(*handle).data, id as u32 * 7);
        }
        assert_eq!(books.best(ALPHA, Side::Buy), Some(level(100, 1, 1)));
    }
}

fn user_data_stays_with_the_order<B: OrderBooks<u32>>() {
    let mut books: B = books();
    let handle = books.add(order(3, Side::Sell, 5, 7)).unwrap();
    assert_eq!(books.order(handle).unwrap().data, 21);
    *books.data_mut(handle) += 1;
    assert_eq!(books.order(handle), Some(Order { data: 22, ..order(3, Side::Sell, 5, 7) }));
}

fn every_price_has_its_order<B: OrderBooks<u32>>() {
    let mut books: B = books();
    let prices = [0, i64::MIN, i64::MAX, -1, 1];
    for side in Side::BOTH {
        for (id, price) in prices.into_iter().enumerate() {
            books.add(order(id as u64, side, 1, price)).unwrap();
        }
    }
    let of = |side| books.levels(ALPHA, side).map(|level| level.price.0).collect::<Vec<_>>();
    assert_eq!(of(Side::Sell), [i64::MIN, -1, 0, 1, i64::MAX]);
    assert_eq!(of(Side::Buy), [i64::MAX, 1, 0, -1, i64::MIN]);
}

fn available_quantity_is_counted_to_the_limit<B: OrderBooks<u32>>() {
    let mut books: B = books();
    for (id, qty, price) in [(1, 10, 100), (2, 20, 101), (3, u64::MAX, 102)] {
        books.add(order(id, Side::Sell, qty, price)).unwrap();
    }
    let available = |limit, enough| books.available(ALPHA, Side::Sell, Price(limit), Qty(enough)).0;
    assert_eq!(available(99, 50), 0);
    assert_eq!(available(100, 50), 10);
    assert_eq!(available(101, 50), 30);
    assert_eq!(available(101, 15), 15);
    assert_eq!(available(102, u64::MAX), u64::MAX);
}

fn books_are_independent<B: OrderBooks<u32>>() {
    let mut books: B = books();
    books.add(order(1, Side::Buy, 10, 100)).unwrap();
    let other = Order { instrument: InstrumentId(3), ..order(2, Side::Buy, 20, 100) };
    let handle = books.add(other).unwrap();
    assert_eq!(books.best(ALPHA, Side::Buy), Some(level(100, 10, 1)));
    assert_eq!(books.best(InstrumentId(3), Side::Buy), Some(level(100, 20, 1)));
    assert_eq!(books.order(handle), Some(other));
    for nowhere in [InstrumentId(2), InstrumentId(4), InstrumentId(u16::MAX)] {
        assert_eq!(books.best(nowhere, Side::Buy), None);
        assert_eq!(books.front(nowhere, Side::Buy), None);
        assert_eq!(books.orders(nowhere, Side::Buy).count() + books.levels(nowhere, Side::Buy).count(), 0);
    }
}

fn rejections_at_the_bounds_have_no_effect<B: OrderBooks<u32>>() {
    let limits = BookLimits { max_instrument: ALPHA, max_orders: 3, max_levels: 2 };
    let mut books = B::new(limits);
    let first = books.add(order(1, Side::Buy, 1, 100)).unwrap();
    books.add(order(2, Side::Buy, 1, 101)).unwrap();
    let hash = books.state_hash();
    let refused = [
        (order(3, Side::Buy, 1, 102), AddError::LevelsFull(2)),
        (order(3, Side::Buy, 0, 100), AddError::ZeroQty),
        (order(3, Side::Buy, u64::MAX, 100), AddError::QtyOverflow(Price(100))),
        (
            Order { instrument: InstrumentId(2), ..order(3, Side::Buy, 1, 100) },
            AddError::UnknownInstrument(InstrumentId(2)),
        ),
    ];
    for (order, error) in refused {
        assert_eq!(books.add(order), Err(error));
        assert_eq!(books.state_hash(), hash);
    }
    books.add(order(3, Side::Buy, u64::MAX - 1, 100)).unwrap();
    assert_eq!(books.add(order(4, Side::Buy, 1, 100)), Err(AddError::BookFull(3)));
    assert_eq!(books.best(ALPHA, Side::Buy), Some(level(101, 1, 1)));
    books.remove(first);
    books.add(order(5, Side::Sell, 1, 300)).expect_err("both levels are still in use");
    books.add(order(5, Side::Buy, 1, 100)).unwrap();
}

fn zero_limits_reject_every_order<B: OrderBooks<u32>>() {
    let mut books = B::new(BookLimits::new(InstrumentId(0), 0));
    let order = Order { instrument: InstrumentId(0), ..order(1, Side::Buy, 1, 1) };
    assert_eq!(books.add(order), Err(AddError::BookFull(0)));
    let mut books = B::new(BookLimits { max_levels: 0, ..BookLimits::new(InstrumentId(0), 1) });
    assert_eq!(books.add(order), Err(AddError::LevelsFull(0)));
}

fn the_hash_covers_the_whole_state<B: OrderBooks<u32>>() {
    let build = |orders: &[Order<u32>]| {
        let mut books: B = books();
        for order in orders {
            books.add(*order).unwrap();
        }
        books.state_hash()
    };
    let (a, b) = (order(1, Side::Buy, 10, 100), order(2, Side::Buy, 20, 100));
    let hash = build(&[a, b]);
    assert_eq!(hash, build(&[a, b]));
    assert_eq!(hash, build(&[Order { data: 5, ..a }, b]), "users' data is not part of it");
    let others = [
        build(&[b, a]),
        build(&[a]),
        build(&[a, Order { qty: Qty(21), ..b }]),
        build(&[a, Order { id: OrderId(3), ..b }]),
        build(&[a, Order { price: Price(99), ..b }]),
        build(&[a, Order { side: Side::Sell, ..b }]),
        build(&[a, Order { instrument: InstrumentId(2), ..b }]),
    ];
    assert!(others.iter().all(|other| *other != hash));
}

fn handles_of_removed_orders_are_refused<B: OrderBooks<u32>>() {
    let mut books: B = books();
    let handle = books.add(order(1, Side::Buy, 10, 100)).unwrap();
    books.remove(handle);
    for named in [None, Some(handle)] {
        books.prefetch(named);
        books.prefetch_neighbours(named);
    }
    books.remove(handle);
}

fn reducing_beyond_the_quantity_panics<B: OrderBooks<u32>>() {
    let mut books: B = books();
    let handle = books.add(order(1, Side::Buy, 10, 100)).unwrap();
    books.reduce(handle, Qty(11));
}

macro_rules! conformance {
    ($($module:ident: $books:ty;)*) => {$(
        mod $module {
            use super::*;

            conformance!(@tests $books:
                priority_is_by_price_then_time,
                a_reduced_order_keeps_its_place,
                an_increased_order_keeps_its_place,
                orders_leave_from_anywhere,
                user_data_stays_with_the_order,
                every_price_has_its_order,
                available_quantity_is_counted_to_the_limit,
                books_are_independent,
                rejections_at_the_bounds_have_no_effect,
                zero_limits_reject_every_order,
                the_hash_covers_the_whole_state,
            );

            #[test]
            #[should_panic(expected = "the handle names an open order")]
            fn handles_of_removed_orders_are_refused() {
                super::handles_of_removed_orders_are_refused::<$books>();
            }

            #[test]
            #[should_panic(expected = "reduced by at most what it has")]
            fn reducing_beyond_the_quantity_panics() {
                super::reducing_beyond_the_quantity_panics::<$books>();
            }
        }
    )*};
    (@tests $books:ty: $($test:ident,)*) => {$(
        #[test]
        fn $test() {
            super::$test::<$books>();
        }
    )*};
}

conformance! {
    fast: FastBooks<u32>;
    reference: ReferenceBooks<u32>;
}

//! Compares the builder with a reference model (a map): equal books after each of many random messages.

use std::collections::BTreeMap;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_book::{BookLimits, BooksById, Indexed, PackedBooks};
use tickpath_feed::iex::BookBuilder;
use tickpath_feed::{IgnoreUpdates, MessageBooks};
use tickpath_iex::{
    AddOrder, Feed, ModifyFlags, OrderDelete, OrderExecuted, OrderModify, PriceLevelUpdate, SaleFlags,
};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, OrderId, Sequence, Side, Symbol};
use zerocopy::IntoBytes;

use super::ticker;

const SYMBOLS: [&str; 3] = ["ALPHA", "BRAVO", "CHARLIE"];
const STEPS: usize = 30_000;

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.next_u32() % bound
    }

    fn side(&mut self) -> Side {
        Side::BOTH[self.below(2) as usize]
    }
}

type Levels = BTreeMap<(usize, Side, i64), u64>;

fn levels_of(builder: &BookBuilder<impl BooksById>) -> Levels {
    let mut levels = Levels::new();
    for (index, symbol) in SYMBOLS.iter().enumerate() {
        let Some(id) = builder.find(Symbol::new(symbol).unwrap()) else { continue };
        for side in Side::BOTH {
            let ordered: Vec<_> = builder.books().levels(id, side).collect();
            assert!(ordered.is_sorted_by(|a, b| side.is_better(a.price, b.price)));
            levels.extend(ordered.iter().map(|level| ((index, side, level.price.0), level.qty.0)));
        }
    }
    levels
}

fn builders(feed: Feed) -> (BookBuilder<PackedBooks>, BookBuilder<Indexed<ReferenceBooks>>) {
    let limits = BookLimits::new(InstrumentId(8), 4_096);
    (BookBuilder::new(feed, PackedBooks::new(limits)), BookBuilder::new(feed, Indexed::new(limits)))
}

#[test]
fn levels_are_a_map_from_price_to_size() {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(11));
    let (mut fast, mut reference) = builders(Feed::Deep10);
    let mut expected = Levels::new();
    for step in 0..STEPS {
        let (index, side) = (random.below(3) as usize, random.side());
        // Prices from a narrow or a wide range, so that both the slots and the arrays of the fast books are
        // used.
        let spread = if random.below(4) == 0 { 5_000 } else { 40 };
        let price = i64::from(100 + random.below(spread));
        let size = random.below(4).saturating_sub(1) * random.below(900);
        let is_complete = random.below(3) != 0;
        let symbol = ticker(SYMBOLS[index]);
        let message = PriceLevelUpdate::of(side, is_complete, Nanos(1), symbol, size, price);
        let sequence = Sequence(step as u64 + 1);
        fast.handle_message(sequence, message.as_bytes(), &mut IgnoreUpdates);
        reference.handle_message(sequence, message.as_bytes(), &mut IgnoreUpdates);
        if size == 0 {
            expected.remove(&(index, side, price));
        } else {
            expected.insert((index, side, price), u64::from(size));
        }
        if step % 97 == 0 {
            assert_eq!(levels_of(&fast), expected);
        }
    }
    assert!(expected.len() > 100);
    assert_eq!((levels_of(&fast), levels_of(&reference)), (expected.clone(), expected));
    assert_eq!(fast.books().state_hash(), reference.books().state_hash());
    assert_eq!(fast.counters(), reference.counters());
}

/// An order in the reference map.
#[derive(Clone, Copy)]
struct Resting {
    index: usize,
    side: Side,
    price: i64,
    qty: u32,
}

#[test]
fn orders_are_a_map_from_number_to_order() {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(12));
    let (mut fast, mut reference) = builders(Feed::DeepPlus10);
    let mut orders = BTreeMap::<u64, Resting>::new();
    for step in 0..STEPS {
        let id = u64::from(random.below(400)) << 24 | 7;
        let (size, price) = (1 + random.below(900), i64::from(100 + random.below(300)));
        let message = match orders.get(&id).copied() {
            None => {
                let (index, side) = (random.below(3) as usize, random.side());
                orders.insert(id, Resting { index, side, price, qty: size });
                let symbol = ticker(SYMBOLS[index]);
                AddOrder::new(side, Nanos(1), symbol, OrderId(id), size, price).as_bytes().to_vec()
            }
            Some(order) => {
                let symbol = ticker(SYMBOLS[order.index]);
                match random.below(3) {
                    0 => {
                        orders.remove(&id);
                        OrderDelete::new(b' ', Nanos(1), symbol, OrderId(id)).as_bytes().to_vec()
                    }
                    1 => {
                        let qty = 1 + random.below(order.qty);
                        match order.qty - qty {
                            0 => _ = orders.remove(&id),
                            left => _ = orders.insert(id, Resting { qty: left, ..order }),
                        }
                        let flags = SaleFlags(0);
                        let executed =
                            OrderExecuted::new(flags, Nanos(1), symbol, OrderId(id), qty, price, 1);
                        executed.as_bytes().to_vec()
                    }
                    _ => {
                        let keeps = ModifyFlags(random.below(2) as u8);
                        let price = if random.below(2) == 0 { order.price } else { price };
                        orders.insert(id, Resting { price, qty: size, ..order });
                        let modify = OrderModify::new(keeps, Nanos(1), symbol, OrderId(id), size, price);
                        modify.as_bytes().to_vec()
                    }
                }
            }
        };
        let sequence = Sequence(step as u64 + 1);
        fast.handle_message(sequence, &message, &mut IgnoreUpdates);
        reference.handle_message(sequence, &message, &mut IgnoreUpdates);
        assert_eq!(fast.books().order_count() as usize, orders.len());
        if step % 997 == 0 {
            assert_eq!(fast.books().state_hash(), reference.books().state_hash());
        }
    }
    let mut expected = Levels::new();
    for order in orders.values() {
        *expected.entry((order.index, order.side, order.price)).or_default() += u64::from(order.qty);
    }
    assert_eq!((levels_of(&fast), levels_of(&reference)), (expected.clone(), expected));
    assert_eq!(fast.books().state_hash(), reference.books().state_hash());
    assert_eq!((fast.counters().unknown_order, fast.counters()), (0, reference.counters()));
}

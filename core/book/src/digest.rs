//! One number for the whole state of the books, from a canonical walk.

use tickpath_types::{InstrumentId, Side};
use xxhash_rust::xxh3::Xxh3;

use crate::{BookLimits, BooksById, Level, Order, OrderBooks};

/// Digest (XXH3, 64 bits) of all levels and queues of `books`; `data` adds what the user keeps with an
/// order.
///
/// The walk is canonical: instruments ascending, bids before asks, levels from the best with their
/// totals, orders of a level in time priority.
#[must_use]
pub fn state_hash<T: Copy, B: OrderBooks<T>>(books: &B, mut data: impl FnMut(&mut Xxh3, &Order<T>)) -> u64 {
    walk(books.limits(), |hasher, instrument, side| {
        books.levels(instrument, side).for_each(|level| add_level(hasher, instrument, side, &level));
        for (_, order) in books.orders(instrument, side) {
            add_order(hasher, &order);
            data(hasher, &order);
        }
    })
}

/// The same of books by id.
pub(crate) fn of_books_by_id<B: BooksById>(books: &B) -> u64 {
    walk(books.limits(), |hasher, instrument, side| {
        books.levels(instrument, side).for_each(|level| add_level(hasher, instrument, side, &level));
        books.orders(instrument, side).for_each(|order| add_order(hasher, &order));
    })
}

fn walk(limits: BookLimits, mut add_side: impl FnMut(&mut Xxh3, InstrumentId, Side)) -> u64 {
    let mut hasher = Xxh3::new();
    for instrument in (0..=limits.max_instrument.0).map(InstrumentId) {
        Side::BOTH.into_iter().for_each(|side| add_side(&mut hasher, instrument, side));
    }
    hasher.digest()
}

fn add_level(hasher: &mut Xxh3, instrument: InstrumentId, side: Side, level: &Level) {
    hasher.update(&instrument.0.to_le_bytes());
    hasher.update(&[side as u8]);
    hasher.update(&level.price.0.to_le_bytes());
    hasher.update(&level.qty.0.to_le_bytes());
    hasher.update(&level.order_count.to_le_bytes());
}

fn add_order<T>(hasher: &mut Xxh3, order: &Order<T>) {
    hasher.update(&order.price.0.to_le_bytes());
    hasher.update(&order.id.0.to_le_bytes());
    hasher.update(&order.qty.0.to_le_bytes());
}

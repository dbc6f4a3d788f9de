//! One number for the whole state of the books, from a canonical walk.

use tickpath_types::{InstrumentId, Side};
use xxhash_rust::xxh3::Xxh3;

use crate::{Order, OrderBooks};

/// Digest (XXH3, 64 bits) of all levels and queues of `books`; `data` adds what the user keeps with an
/// order.
///
/// The walk is canonical: instruments ascending, bids before asks, levels from the best with their
/// totals, orders of a level in time priority.
#[must_use]
pub fn state_hash<T: Copy, B: OrderBooks<T>>(books: &B, mut data: impl FnMut(&mut Xxh3, &Order<T>)) -> u64 {
    let mut hasher = Xxh3::new();
    for instrument in (0..=books.limits().max_instrument.0).map(InstrumentId) {
        for side in Side::BOTH {
            for level in books.levels(instrument, side) {
                hasher.update(&instrument.0.to_le_bytes());
                hasher.update(&[side as u8]);
                hasher.update(&level.price.0.to_le_bytes());
                hasher.update(&level.qty.0.to_le_bytes());
                hasher.update(&level.order_count.to_le_bytes());
            }
            for (_, order) in books.orders(instrument, side) {
                hasher.update(&order.price.0.to_le_bytes());
                hasher.update(&order.id.0.to_le_bytes());
                hasher.update(&order.qty.0.to_le_bytes());
                data(&mut hasher, &order);
            }
        }
    }
    hasher.digest()
}

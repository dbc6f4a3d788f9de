//! Digest of the books: hashes every level and order in a fixed sequence.

use tickpath_types::{InstrumentId, Side};
use xxhash_rust::xxh3::Xxh3;

use crate::{BookLimits, Level, Order};

/// Digest of levels and orders, by instrument, bids before asks; `data` hashes the caller's data of an order.
pub(crate) fn digest<T, L: Iterator<Item = Level>, O: Iterator<Item = Order<T>>>(
    limits: BookLimits,
    levels: impl Fn(InstrumentId, Side) -> L,
    orders: impl Fn(InstrumentId, Side) -> O,
    mut data: impl FnMut(&mut Xxh3, &Order<T>),
) -> u64 {
    let mut hasher = Xxh3::new();
    let instruments = (0..=limits.max_instrument.0).map(InstrumentId);
    for (instrument, side) in instruments.flat_map(|id| Side::BOTH.map(|side| (id, side))) {
        for Level { price, qty, order_count } in levels(instrument, side) {
            hasher.update(&instrument.0.to_le_bytes());
            hasher.update(&[side as u8]);
            hasher.update(&price.0.to_le_bytes());
            hasher.update(&qty.0.to_le_bytes());
            hasher.update(&order_count.to_le_bytes());
        }
        for order in orders(instrument, side) {
            hasher.update(&order.price.0.to_le_bytes());
            hasher.update(&order.id.0.to_le_bytes());
            hasher.update(&order.qty.0.to_le_bytes());
            data(&mut hasher, &order);
        }
    }
    hasher.digest()
}

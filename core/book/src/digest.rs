//! One number for the whole state of the books, from a canonical walk.

use tickpath_types::{InstrumentId, Side};
use xxhash_rust::xxh3::Xxh3;

use crate::{BookLimits, Level, Order};

/// Digest of what `add_side` adds of each side, instruments ascending, bids before asks.
pub(crate) fn walk(limits: BookLimits, mut add_side: impl FnMut(&mut Xxh3, InstrumentId, Side)) -> u64 {
    let mut hasher = Xxh3::new();
    for instrument in (0..=limits.max_instrument.0).map(InstrumentId) {
        Side::BOTH.into_iter().for_each(|side| add_side(&mut hasher, instrument, side));
    }
    hasher.digest()
}

pub(crate) fn add_level(hasher: &mut Xxh3, instrument: InstrumentId, side: Side, level: &Level) {
    hasher.update(&instrument.0.to_le_bytes());
    hasher.update(&[side as u8]);
    hasher.update(&level.price.0.to_le_bytes());
    hasher.update(&level.qty.0.to_le_bytes());
    hasher.update(&level.order_count.to_le_bytes());
}

pub(crate) fn add_order<T>(hasher: &mut Xxh3, order: &Order<T>) {
    hasher.update(&order.price.0.to_le_bytes());
    hasher.update(&order.id.0.to_le_bytes());
    hasher.update(&order.qty.0.to_le_bytes());
}

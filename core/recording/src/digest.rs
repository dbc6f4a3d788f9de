//! A checksum over every field of every event.

use tickpath_nasdaq::itch50::Checksum;
use tickpath_types::Side;

use crate::{EventKind, Level, RecordedEvent};

/// A checksum of a recording's events. Because it uses every field, the compiler cannot remove the decoding
/// when only that is timed. The same events give the same checksum on every machine. ITCH messages have
/// another checksum: [`Checksum`](tickpath_nasdaq::itch50::Checksum).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// The checksum so far.
    pub checksum: u64,
}

/// Odd multiplier with many one bits, so that each step spreads the bits of the previous value.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digest {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        self.checksum = (self.checksum ^ value).rotate_left(5).wrapping_mul(MULTIPLIER);
    }

    /// Adds the sum of several fields, each rotated by a different number of bits. The CPU can compute the
    /// rotations in parallel.
    #[inline(always)]
    pub fn fields(&mut self, fields: &[u64]) {
        let rotated = fields.iter().zip(0..).map(|(field, index)| field.rotate_left(index * 11 % u64::BITS));
        self.add(rotated.fold(0, u64::wrapping_add));
    }

    /// Adds all fields of an event to the checksum.
    #[inline]
    pub fn event(&mut self, event: &RecordedEvent) {
        self.fields(&[event.ts_ns, u64::from(event.instrument), u64::from(event.ends_transaction)]);
        let price_bits = |level: Level| level.price.0.cast_unsigned() ^ (level.side as u64) << 63;
        let side = |side: Option<Side>| side.map_or(2, |side| side as u64);
        match event.kind {
            EventKind::Add { order_id, level, qty } => self.fields(&[1, order_id, price_bits(level), qty.0]),
            EventKind::Delete { order_id, level, qty } => {
                self.fields(&[2, order_id, level.map_or(0, price_bits), qty.map_or(0, |qty| qty.0)]);
            }
            EventKind::Reduce { order_id, by, level } => {
                self.fields(&[3, order_id, level.map_or(0, price_bits), by.0]);
            }
            EventKind::Modify { order_id, level, qty } => {
                self.fields(&[4, order_id, price_bits(level), qty.0])
            }
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                self.fields(&[5, order_id, new_order_id, price.0.cast_unsigned(), qty.0]);
            }
            EventKind::Fill { order_id, qty, side: resting, price, in_auction } => {
                let price = price.map_or(0, |price| price.0.cast_unsigned());
                self.fields(&[6, order_id, qty.0, side(resting), price, u64::from(in_auction)]);
            }
            EventKind::Trade { order_id, price, qty, aggressor, is_hidden } => {
                let price = price.0.cast_unsigned();
                self.fields(&[7, order_id, qty.0, side(aggressor), price, u64::from(is_hidden)]);
            }
            EventKind::Clear => self.fields(&[8]),
            EventKind::Status(_) => self.fields(&[9]),
            EventKind::Ignored(_) => self.fields(&[10]),
        }
    }
}

/// Checksums over all fields of all messages. A recording uses one of them; the other stays 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksums {
    /// Checksum of ITCH messages.
    pub(crate) itch: Checksum,
    /// Checksum of the messages of all protocols but ITCH.
    pub(crate) others: Digest,
}

impl Checksums {
    /// Returns the checksum that is in use; the other one is 0.
    #[inline]
    pub(crate) fn value(&self) -> u64 {
        self.itch.get() ^ self.others.checksum
    }
}

//! Encoding of ITCH messages.

use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
use tickpath_types::{InstrumentId, Nanos, Price};
use zerocopy::byteorder::big_endian::U16;
use zerocopy::{Immutable, IntoBytes};

/// Buffer for one message of any type.
pub(super) type Buffer = [u8; MESSAGE_LEN_MAX];

/// Tracking number of every message; it has a meaning only inside Nasdaq.
pub(super) const NO_TRACKING: U16 = U16::ZERO;

/// The time of a message, and the index of its security.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub ts: Nanos,
    pub security: usize,
}

/// The locate code of a security.
#[inline]
pub(super) fn locate(security: usize) -> InstrumentId {
    InstrumentId(security as u16 + 1)
}

/// Writes a message at the start of `out` and returns its length.
#[inline]
pub(super) fn put<M: IntoBytes + Immutable>(out: &mut Buffer, message: &M) -> usize {
    let bytes = message.as_bytes();
    out[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

/// Writes a message about a security from its fields after the time: `put_message!(out, at, OrderDelete(id))`.
macro_rules! put_message {
    ($out:expr, $at:expr, $message:ident($($field:expr),* $(,)?) $(,)?) => {
        put($out, &$message::new(locate($at.security), NO_TRACKING, $at.ts, $($field),*))
    };
}
pub(super) use put_message;

#[inline]
pub(super) fn wire_price(price: Price) -> u32 {
    u32::try_from(price.0).expect("prices lie between a cent and a few thousand dollars")
}

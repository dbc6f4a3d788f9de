//! Field types of IEX's messages: little-endian, unaligned, exactly as wide as on the wire.
//!
//! Every `field!` type has `get()`, which returns a type of `tickpath_types`; some also convert from it.

use tickpath_types::{MatchId, Nanos, OrderId, Price, Qty};
use tickpath_wire::field;
use zerocopy::byteorder::little_endian::{I64, U32};

#[doc(inline)]
pub use tickpath_wire::Alpha;

/// A symbol in Nasdaq's integrated symbology, 8 bytes.
pub type Ticker = tickpath_wire::Stock;

field! {
    /// A quantity of shares in 4 bytes.
    Shares(U32: u32) = |bits| Qty { Qty(bits as u64) }
    /// A price in 8 bytes with 4 implied decimals.
    LongPrice(I64: i64) = |bits| Price { Price(bits) }, from |price| { price.0 }
    /// Nanoseconds since the Unix epoch, 8 bytes. `get()` returns 0 for times before the epoch. `From`
    /// saturates at 63 bits, in the year 2262.
    Timestamp(I64: i64) = |bits| Nanos { Nanos(if bits < 0 { 0 } else { bits as u64 }) },
        from |ts| { i64::try_from(ts.0).unwrap_or(i64::MAX) }
    /// Seconds since the Unix epoch, 4 bytes.
    EventTime(U32: u32) = |bits| Nanos { Nanos(bits as u64 * 1_000_000_000) }
    /// Id of an order, 8 bytes; it may be reused after the order was removed.
    OrderNumber(I64: i64) = |bits| OrderId { OrderId(bits as u64) }, from |id| { id.0 as i64 }
    /// Id of a trade, 8 bytes, unique within the day.
    TradeNumber(I64: i64) = |bits| MatchId { MatchId(bits as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_every_bit_and_saturate() {
        for ts in [0, 1, 1_493_132_598_123_456_789, i64::MAX as u64] {
            assert_eq!(Timestamp::from(Nanos(ts)).get(), Nanos(ts));
        }
        assert_eq!(Timestamp::from(Nanos(u64::MAX)).get(), Nanos(i64::MAX as u64));
        assert_eq!(Timestamp::from(-1).get(), Nanos(0));
        assert_eq!(EventTime::from(u32::MAX).get(), Nanos(4_294_967_295_000_000_000));
    }
}

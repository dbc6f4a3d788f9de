//! Field types of Nasdaq's messages: big-endian, unaligned, exactly as wide as on the wire.
//!
//! Every field type has `get()`, which returns the value as a type such as [`Price`]. The conversion from
//! that type is `From` if every value fits the field, otherwise `TryFrom`.

use std::fmt;

use tickpath_types::{InstrumentId, MatchId, Nanos, OrderId, Price, Qty, UserRefNum};
use tickpath_wire::{Bits, field};
use zerocopy::byteorder::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[doc(inline)]
pub use tickpath_wire::{Alpha, Stock};

/// The error of a conversion to a field: the value is negative or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} does not fit {field}: keep within 0..={max}")]
pub struct OutOfRange {
    /// Name of the field's type.
    pub field: &'static str,
    /// The value that does not fit.
    pub value: i128,
    /// The largest value that fits the field.
    pub max: u64,
}

/// Declares numeric fields narrower than the type that `get()` returns; `TryFrom` converts that type.
macro_rules! narrow_fields {
    ($( $(#[$doc:meta])* $name:ident($wire:ty: $inner:ty) = $value:ident($wide:ty) )+) => { $(
        field! {
            $(#[$doc])*
            $name($wire: $inner) = |bits| $value { $value(bits as $wide) }
        }

        impl TryFrom<$value> for $name {
            type Error = OutOfRange;

            #[inline]
            fn try_from($value(value): $value) -> Result<Self, OutOfRange> {
                match <$inner>::try_from(value) {
                    Ok(fits) => Ok($name(<$wire>::new(fits))),
                    Err(_) => Err(OutOfRange {
                        field: stringify!($name),
                        value: i128::from(value),
                        max: u64::from(<$inner>::MAX),
                    }),
                }
            }
        }
    )+ };
}

field! {
    /// Day-unique index of a symbol, 2 bytes; 0 in messages that concern no single symbol.
    Locate(U16: u16) = |bits| InstrumentId { InstrumentId(bits) }, from |id| { id.0 }
    /// Day-unique reference of an order, 8 bytes.
    OrderRef(U64: u64) = |bits| OrderId { OrderId(bits) }, from |id| { id.0 }
    /// Day-unique number of an execution, 8 bytes.
    MatchNumber(U64: u64) = |bits| MatchId { MatchId(bits) }, from |id| { id.0 }
    /// The client's reference number of an order, 4 bytes, strictly increasing within a day and port.
    UserRef(U32: u32) = |bits| UserRefNum { UserRefNum(bits) }, from |number| { number.0 }
    /// A quantity of shares in 8 bytes, as in crosses and imbalances.
    LongShares(U64: u64) = |bits| Qty { Qty(bits) }, from |qty| { qty.0 }
    /// Nanoseconds since midnight of the exchange's day, 8 bytes.
    LongTimestamp(U64: u64) = |bits| Nanos { Nanos(bits) }, from |ts| { ts.0 }
    /// OUCH's price: 8 bytes with 4 implied decimals. `get()` returns [`Price::MARKET`] for
    /// [`LongPrice::MARKET`] and for values of at least `i64::MAX`.
    LongPrice(U64: u64) = |bits| Price {
        match bits {
            0x7fff_ffff => Price::MARKET,
            units if units >= i64::MAX as u64 => Price::MARKET,
            units => Price(units as i64),
        }
    }
    /// A level of a stock index, ITCH's Price(8): 8 bytes with 8 implied decimals. `get()` returns the
    /// number of 10^-8 units.
    IndexLevel(U64: u64) = |bits| u64 { bits }
}
narrow_fields! {
    /// A quantity of shares in 4 bytes.
    Shares(U32: u32) = Qty(u64)
    /// A price in 4 bytes with 4 implied decimals: ITCH's Price(4).
    ShortPrice(U32: u32) = Price(i64)
}

impl LongPrice {
    /// The price field of an OUCH order without a limit price.
    pub const MARKET: LongPrice = LongPrice(U64::new(0x7fff_ffff));
}

impl TryFrom<Price> for LongPrice {
    type Error = OutOfRange;

    #[inline]
    fn try_from(price: Price) -> Result<Self, OutOfRange> {
        const MARKET: u64 = LongPrice::MARKET.0.get();
        if price == Price::MARKET {
            return Ok(LongPrice::MARKET);
        }
        match u64::try_from(price.0) {
            Ok(units) if units != MARKET => Ok(LongPrice(U64::new(units))),
            _ => Err(OutOfRange { field: "LongPrice", value: i128::from(price.0), max: MARKET - 1 }),
        }
    }
}

/// Nanoseconds since midnight of the exchange's day in 6 bytes: ITCH's timestamp.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Timestamp {
    high: U16,
    low: U32,
}

impl Timestamp {
    /// The maximum time that 6 bytes hold, a little over 78 hours.
    pub const MAX: Nanos = Nanos((1 << 48) - 1);

    /// Returns the time since midnight.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Nanos {
        Nanos(((self.high.get() as u64) << 32) | self.low.get() as u64)
    }
}

impl From<Nanos> for Timestamp {
    /// Converts a time; saturates at [`Timestamp::MAX`], which times since midnight do not reach.
    #[inline]
    fn from(ts: Nanos) -> Self {
        let ts = ts.0.min(Timestamp::MAX.0);
        Timestamp { high: U16::new((ts >> 32) as u16), low: U32::new(ts as u32) }
    }
}

impl Bits for Timestamp {
    #[inline]
    fn bits(&self) -> u64 {
        self.get().0
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_byte_times_keep_every_bit_and_stop_at_their_largest() {
        for ts in [0, 1, 34_200_000_000_123, 0xffff_ffff, 0x1_0000_0000, Timestamp::MAX.0] {
            assert_eq!(Timestamp::from(Nanos(ts)).get(), Nanos(ts));
        }
        assert_eq!(Timestamp::from(Nanos(1 << 48)).get(), Timestamp::MAX);
        assert_eq!(Timestamp::from(Nanos(0x1f1a_ced9_f07b)).as_bytes(), [0x1f, 0x1a, 0xce, 0xd9, 0xf0, 0x7b]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_bound() {
        assert_eq!(ShortPrice::try_from(Price(1_891_234)).unwrap().get(), Price(1_891_234));
        assert_eq!(ShortPrice::try_from(Price(u32::MAX.into())).unwrap().get(), Price(u32::MAX.into()));
        for price in [Price(-1), Price(i64::from(u32::MAX) + 1), Price::MARKET] {
            let error = ShortPrice::try_from(price).unwrap_err();
            assert_eq!(error.value, i128::from(price.0));
            assert!(error.to_string().contains("ShortPrice"));
        }
        assert!(Shares::try_from(Qty(1 << 32)).is_err());
        assert_eq!(Shares::try_from(Qty((1 << 32) - 1)).unwrap().get(), Qty((1 << 32) - 1));
    }

    #[test]
    fn the_market_marker_is_a_separate_price() {
        assert_eq!(LongPrice::try_from(Price::MARKET), Ok(LongPrice::MARKET));
        assert_eq!(LongPrice::MARKET.get(), Price::MARKET);
        assert_eq!(LongPrice::from(u64::MAX).get(), Price::MARKET);
        assert!(LongPrice::try_from(Price(0x7fff_ffff)).is_err(), "would read as a market order");
        assert_eq!(LongPrice::try_from(Price(1_891_234)).unwrap().get(), Price(1_891_234));
    }
}

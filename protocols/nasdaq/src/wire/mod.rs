//! Field types of Nasdaq's messages: big-endian, unaligned, exactly as wide as on the wire.
//!
//! Every field has `get()`, which gives the project's own vocabulary, and conversions from it. A
//! conversion that may not fit the field is a `TryFrom`.

mod code;
mod message;

use std::fmt;

use tickpath_types::{InstrumentId, MatchId, Nanos, OrderId, Price, Qty, Symbol, UserRefNum};
use zerocopy::byteorder::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(crate) use code::codes;
pub(crate) use message::wire_message;

/// A field as a number: the same for equal fields and no other, of one type of at most 8 bytes.
pub(crate) trait Bits {
    fn bits(&self) -> u64;
}

impl Bits for U16 {
    #[inline]
    fn bits(&self) -> u64 {
        u64::from(self.get())
    }
}

impl Bits for U32 {
    #[inline]
    fn bits(&self) -> u64 {
        u64::from(self.get())
    }
}

impl Bits for U64 {
    #[inline]
    fn bits(&self) -> u64 {
        self.get()
    }
}

impl Bits for Timestamp {
    #[inline]
    fn bits(&self) -> u64 {
        self.get().0
    }
}

impl<const N: usize> Bits for Alpha<N> {
    #[inline]
    fn bits(&self) -> u64 {
        const { assert!(N <= 8) };
        let mut word = [0; 8];
        word[..N].copy_from_slice(&self.0);
        u64::from_be_bytes(word)
    }
}

/// A value of the project's vocabulary does not fit the field of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} does not fit {field}: keep within 0..={max}")]
pub struct OutOfRange {
    /// The field.
    pub field: &'static str,
    /// What was to be put there.
    pub value: i128,
    /// The largest that fits.
    pub max: u64,
}

/// A field that always holds what its counterpart in the vocabulary holds.
macro_rules! lossless_field {
    ($(#[$doc:meta])* $name:ident($wire:ty) = $value:ident($inner:ty)) => {
        field!($(#[$doc])* $name($wire));

        impl $name {
            /// The value.
            #[inline]
            #[must_use]
            pub const fn get(self) -> $value {
                $value(self.0.get())
            }
        }

        impl From<$value> for $name {
            #[inline]
            fn from(value: $value) -> Self {
                $name(<$wire>::new(value.0))
            }
        }

        impl From<$inner> for $name {
            #[inline]
            fn from(value: $inner) -> Self {
                $name(<$wire>::new(value))
            }
        }
    };
}

/// A field that is narrower than its counterpart in the vocabulary.
macro_rules! narrow_field {
    ($(#[$doc:meta])* $name:ident($wire:ty: $inner:ty) = $value:ident($wide:ty) up to $max:expr) => {
        field!($(#[$doc])* $name($wire));

        impl $name {
            /// The value.
            #[inline]
            #[must_use]
            pub const fn get(self) -> $value {
                $value(self.0.get() as $wide)
            }
        }

        impl From<$inner> for $name {
            #[inline]
            fn from(value: $inner) -> Self {
                $name(<$wire>::new(value))
            }
        }

        impl TryFrom<$value> for $name {
            type Error = OutOfRange;

            #[inline]
            fn try_from(value: $value) -> Result<Self, OutOfRange> {
                const MAX: u64 = $max as u64;
                match <$inner>::try_from(value.0) {
                    Ok(fits) if u64::from(fits) <= MAX => Ok($name(<$wire>::new(fits))),
                    _ => Err(OutOfRange {
                        field: stringify!($name),
                        value: i128::from(value.0),
                        max: MAX,
                    }),
                }
            }
        }
    };
}

macro_rules! field {
    ($(#[$doc:meta])* $name:ident($wire:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
        )]
        #[repr(transparent)]
        pub struct $name(pub $wire);

        impl Bits for $name {
            #[inline]
            fn bits(&self) -> u64 {
                self.0.bits()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.get(), f)
            }
        }
    };
}

lossless_field! {
    /// Day-unique index of a symbol, 2 bytes; 0 means the whole system.
    Locate(U16) = InstrumentId(u16)
}
lossless_field! {
    /// Day-unique reference of an order, 8 bytes.
    OrderRef(U64) = OrderId(u64)
}
lossless_field! {
    /// Day-unique number of an execution, 8 bytes.
    MatchNumber(U64) = MatchId(u64)
}
lossless_field! {
    /// The client's number of an order, 4 bytes, strictly increasing within a day and port.
    UserRef(U32) = UserRefNum(u32)
}
lossless_field! {
    /// A quantity of shares in 8 bytes, as in crosses and imbalances.
    LongShares(U64) = Qty(u64)
}
lossless_field! {
    /// Nanoseconds since midnight of the exchange's day, 8 bytes.
    LongTimestamp(U64) = Nanos(u64)
}
narrow_field! {
    /// A quantity of shares in 4 bytes.
    Shares(U32: u32) = Qty(u64) up to u32::MAX
}
narrow_field! {
    /// A price in 4 bytes with 4 implied decimals: ITCH's Price(4).
    ShortPrice(U32: u32) = Price(i64) up to u32::MAX
}

field! {
    /// A price in 8 bytes with 4 implied decimals: OUCH's price.
    LongPrice(U64)
}

impl LongPrice {
    /// What OUCH writes for an order without a limit.
    pub const MARKET: LongPrice = LongPrice(U64::new(0x7fff_ffff));

    /// The price: [`Price::MARKET`] for the market marker and for what no price can be.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Price {
        match self.0.get() {
            0x7fff_ffff => Price::MARKET,
            units if units >= i64::MAX as u64 => Price::MARKET,
            units => Price(units as i64),
        }
    }
}

impl From<u64> for LongPrice {
    #[inline]
    fn from(units: u64) -> Self {
        LongPrice(U64::new(units))
    }
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

field! {
    /// A level of an index in 8 bytes with 8 implied decimals: ITCH's Price(8).
    IndexLevel(U64)
}

impl IndexLevel {
    /// The level in units of 10^-8.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<u64> for IndexLevel {
    fn from(units: u64) -> Self {
        IndexLevel(U64::new(units))
    }
}

/// Nanoseconds since midnight of the exchange's day in 6 bytes: ITCH's time stamp.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Timestamp {
    high: U16,
    low: U32,
}

impl Timestamp {
    /// The largest time that 6 bytes hold, a little over 78 hours.
    pub const MAX: Nanos = Nanos((1 << 48) - 1);

    /// The time.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Nanos {
        Nanos(((self.high.get() as u64) << 32) | self.low.get() as u64)
    }
}

impl From<Nanos> for Timestamp {
    /// A time after [`Timestamp::MAX`] becomes that: times since midnight stay far below.
    #[inline]
    fn from(ts: Nanos) -> Self {
        let ts = ts.0.min(Timestamp::MAX.0);
        Timestamp { high: U16::new((ts >> 32) as u16), low: U32::new(ts as u32) }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// ASCII text of fixed width, left-justified and padded with spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Alpha<const N: usize>(pub [u8; N]);

impl<const N: usize> Alpha<N> {
    /// The field filled with spaces.
    pub const BLANK: Self = Alpha([b' '; N]);

    /// Pads `text`; `None` when it is longer than the field or not ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut field = Self::BLANK;
        field.0.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        text.is_ascii().then_some(field)
    }

    /// The text without its padding; what is not UTF-8 shows as nothing.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("").trim_end()
    }
}

impl<const N: usize> Default for Alpha<N> {
    fn default() -> Self {
        Self::BLANK
    }
}

impl<const N: usize> From<[u8; N]> for Alpha<N> {
    #[inline]
    fn from(bytes: [u8; N]) -> Self {
        Alpha(bytes)
    }
}

impl<const N: usize> fmt::Debug for Alpha<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// A symbol as ITCH and OUCH carry it, 8 bytes.
pub type Stock = Alpha<8>;

impl Stock {
    /// The symbol; its bytes are as they came and need not be printable.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Symbol {
        Symbol(self.0)
    }
}

impl From<Symbol> for Stock {
    #[inline]
    fn from(symbol: Symbol) -> Self {
        Alpha(symbol.0)
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
    fn the_market_marker_is_a_price_of_its_own() {
        assert_eq!(LongPrice::try_from(Price::MARKET), Ok(LongPrice::MARKET));
        assert_eq!(LongPrice::MARKET.get(), Price::MARKET);
        assert_eq!(LongPrice::from(u64::MAX).get(), Price::MARKET);
        assert!(LongPrice::try_from(Price(0x7fff_ffff)).is_err(), "would read as a market order");
        assert_eq!(LongPrice::try_from(Price(1_891_234)).unwrap().get(), Price(1_891_234));
    }

    #[test]
    fn text_is_padded_and_shown_without_padding() {
        let mpid = Alpha::<4>::new("AB").unwrap();
        assert_eq!(mpid.0, *b"AB  ");
        assert_eq!(mpid.as_str(), "AB");
        assert_eq!(Alpha::<4>::new("ABCDE"), None);
        assert_eq!(Alpha::<4>::new("é"), None);
        assert_eq!(format!("{:?}", Alpha([0xff, b'A'])), "\"\\xffA\"");
    }
}

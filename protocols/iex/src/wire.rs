//! Field types of IEX's messages: little-endian, unaligned, exactly as wide as on the wire.
//!
//! Every field has `get()`, which gives the project's own vocabulary, and conversions from it.

use std::fmt;

use tickpath_types::{MatchId, Nanos, OrderId, Price, Qty, Symbol};
use zerocopy::byteorder::little_endian::{I64, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A field whose counterpart in the vocabulary has the same bits or fewer.
macro_rules! field {
    ($(#[$doc:meta])* $name:ident($wire:ty: $inner:ty) = |$bits:ident| $value:ty { $get:expr }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
        )]
        #[repr(transparent)]
        pub struct $name(pub $wire);

        impl $name {
            /// The value.
            #[inline]
            #[must_use]
            pub const fn get(self) -> $value {
                let $bits = self.0.get();
                $get
            }
        }

        impl From<$inner> for $name {
            #[inline]
            fn from(value: $inner) -> Self {
                $name(<$wire>::new(value))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.get(), f)
            }
        }
    };
}

field! {
    /// A quantity of shares in 4 bytes.
    Shares(U32: u32) = |bits| Qty { Qty(bits as u64) }
}
field! {
    /// A price in 8 bytes with 4 implied decimals.
    LongPrice(I64: i64) = |bits| Price { Price(bits) }
}
field! {
    /// Nanoseconds since the Unix epoch, 8 bytes. A time before it reads as the epoch.
    Timestamp(I64: i64) = |bits| Nanos { Nanos(if bits < 0 { 0 } else { bits as u64 }) }
}
field! {
    /// Seconds since the Unix epoch, 4 bytes.
    EventTime(U32: u32) = |bits| Nanos { Nanos(bits as u64 * 1_000_000_000) }
}
field! {
    /// Number of an order, 8 bytes; it may be used again after the order went away.
    OrderNumber(I64: i64) = |bits| OrderId { OrderId(bits as u64) }
}
field! {
    /// Number of a trade, 8 bytes, unique within the day.
    TradeNumber(I64: i64) = |bits| MatchId { MatchId(bits as u64) }
}

impl From<Nanos> for Timestamp {
    /// A time that 63 bits do not hold, after the year 2262, becomes the last that they do.
    #[inline]
    fn from(ts: Nanos) -> Self {
        Timestamp(I64::new(i64::try_from(ts.0).unwrap_or(i64::MAX)))
    }
}

impl From<Price> for LongPrice {
    #[inline]
    fn from(price: Price) -> Self {
        LongPrice(I64::new(price.0))
    }
}

impl From<OrderId> for OrderNumber {
    #[inline]
    fn from(id: OrderId) -> Self {
        OrderNumber(I64::new(id.0 as i64))
    }
}

/// ASCII text of fixed width, left-justified and padded with spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Alpha<const N: usize>(pub [u8; N]);

impl<const N: usize> Alpha<N> {
    /// Pads `text`; `None` when it is longer than the field or not ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut field = [b' '; N];
        field.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        text.is_ascii().then_some(Alpha(field))
    }

    /// The text without its padding; what is not UTF-8 shows as nothing.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("").trim_end()
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

/// A symbol in Nasdaq's integrated symbology, 8 bytes.
pub type Ticker = Alpha<8>;

impl Ticker {
    /// The symbol; its bytes are as they came and need not be printable.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Symbol {
        Symbol(self.0)
    }
}

impl From<Symbol> for Ticker {
    #[inline]
    fn from(symbol: Symbol) -> Self {
        Alpha(symbol.0)
    }
}

/// The bytes of a field as one number.
#[inline(always)]
pub(crate) fn bits<T: IntoBytes + Immutable + ?Sized>(field: &T) -> u64 {
    let (words, rest) = field.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u64::from_le_bytes(last), |sum, word| sum.rotate_left(29) ^ u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_every_bit_and_stop_at_their_ends() {
        for ts in [0, 1, 1_493_132_598_123_456_789, i64::MAX as u64] {
            assert_eq!(Timestamp::from(Nanos(ts)).get(), Nanos(ts));
        }
        assert_eq!(Timestamp::from(Nanos(u64::MAX)).get(), Nanos(i64::MAX as u64));
        assert_eq!(Timestamp::from(-1).get(), Nanos(0));
        assert_eq!(EventTime::from(u32::MAX).get(), Nanos(4_294_967_295_000_000_000));
    }

    #[test]
    fn text_is_padded_and_shown_without_padding() {
        let ticker = Ticker::new("IBKR").expect("four characters");
        assert_eq!((ticker.0, ticker.as_str()), (*b"IBKR    ", "IBKR"));
        assert_eq!(Ticker::new("NINECHARS"), None);
        assert_eq!(Alpha::<4>::new("\u{e9}"), None);
        assert_eq!(format!("{:?}", Alpha([0xff, b'A'])), "\"\\xffA\"");
    }
}

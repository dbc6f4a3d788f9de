//! Prices, quantities and sides.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::Decimal;
use crate::codes::coded;

/// A price in units of 10^-4 of the instrument's currency.
///
/// The scale is that of ITCH and OUCH prices: `Price(1_002_500)` is 100.2500. Arithmetic uses the inner
/// integer. Matching and booking use no floating point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Price(pub i64);

impl Price {
    /// Price units per unit of currency.
    pub const SCALE: i64 = 10_000;
    /// Number of digits after the decimal point.
    pub const DECIMALS: usize = 4;
    /// Price of a market order, which is limited only by the collar.
    pub const MARKET: Price = Price(i64::MAX);

    /// Parses a decimal such as `100`, `100.25` or `-0.5`.
    ///
    /// # Errors
    /// [`ParsePriceError`] if the text is not a number with at most 4 decimals, or is out of range.
    pub fn parse(text: &str) -> Result<Price, ParsePriceError> {
        // `Decimal::parse` accepts zeros after the fourth decimal; a price must not have them.
        let places = text.split_once('.').map_or(0, |(_, places)| places.len());
        let price = Decimal::parse(text, Self::DECIMALS as u8).filter(|_| places <= Self::DECIMALS);
        let price = price.filter(|price| price.units.unsigned_abs() < Price::MARKET.0.unsigned_abs());
        price.map(|price| Price(price.units)).ok_or_else(|| ParsePriceError { text: text.to_owned() })
    }
}

impl From<Price> for Decimal {
    fn from(price: Price) -> Decimal {
        Decimal { units: price.0, decimals: Price::DECIMALS as u8 }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Price::MARKET {
            return f.pad("market");
        }
        Decimal::from(*self).fmt(f)
    }
}

/// The text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a price: write a decimal of at most 4 places, e.g. 100.25")]
pub struct ParsePriceError {
    text: String,
}

/// A quantity in the instrument's smallest unit (a share, a contract).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable,
)]
#[repr(transparent)]
pub struct Qty(pub u64);

impl Qty {
    /// Zero.
    pub const ZERO: Qty = Qty(0);

    /// True for [`Qty::ZERO`].
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Qty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

coded! {
    /// The side of an order or of a book.
    #[derive(PartialOrd, Ord)]
    pub enum Side {
        /// Bids.
        Buy = 0,
        /// Asks.
        Sell = 1,
    }
}

impl Side {
    /// Both sides, bids first.
    pub const BOTH: [Side; 2] = [Side::Buy, Side::Sell];

    /// The other side.
    #[must_use]
    #[inline]
    pub const fn opposite(self) -> Side {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }

    /// 0 for `Buy`, 1 for `Sell`: the index of this side in a pair.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// +1 for `Buy`, -1 for `Sell`: the sign of a position change by a fill on this side.
    #[must_use]
    #[inline]
    pub const fn sign(self) -> i64 {
        match self {
            Side::Buy => 1,
            Side::Sell => -1,
        }
    }

    /// True when an order on this side at `limit` trades with a resting order at `resting`.
    #[must_use]
    #[inline]
    pub const fn crosses(self, limit: Price, resting: Price) -> bool {
        match self {
            Side::Buy => limit.0 >= resting.0,
            Side::Sell => limit.0 <= resting.0,
        }
    }

    /// True when `a` has priority over `b` on this side of a book.
    #[must_use]
    #[inline]
    pub const fn is_better(self, a: Price, b: Price) -> bool {
        match self {
            Side::Buy => a.0 > b.0,
            Side::Sell => a.0 < b.0,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Side::Buy => "buy",
            Side::Sell => "sell",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_and_written_exactly() {
        for (text, value) in
            [("0", 0), ("100", 1_000_000), ("0.0001", 1), ("-0.5", -5_000), ("12.3456", 123_456)]
        {
            assert_eq!(Price::parse(text), Ok(Price(value)), "{text}");
        }
        for text in
            ["", ".", "1.", ".5", "1.00001", "1.00000", "1e3", "x", "--1", "+1", " 1", "922337203685478"]
        {
            let error = Price::parse(text).expect_err(text);
            assert!(error.to_string().contains("is not a price"));
        }
        assert_eq!(Price(-5_000).to_string(), "-0.5000");
        assert_eq!(format!("{:>10}", Price(10_000)), "    1.0000");
    }

    #[test]
    fn sides_know_what_is_better_and_what_crosses() {
        let (low, high) = (Price(1), Price(2));
        assert!(Side::Buy.is_better(high, low) && Side::Sell.is_better(low, high));
        assert!(Side::Buy.crosses(high, low) && Side::Buy.crosses(low, low) && !Side::Buy.crosses(low, high));
        assert!(
            Side::Sell.crosses(low, high) && Side::Sell.crosses(low, low) && !Side::Sell.crosses(high, low)
        );
        assert_eq!(Side::Buy.opposite(), Side::Sell);
        assert_eq!(Side::Buy.sign() + Side::Sell.sign(), 0);
    }
}

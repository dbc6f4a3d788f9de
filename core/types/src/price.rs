//! Prices, quantities and sides.

use std::fmt;

/// A price in units of 10^-4 of the instrument's currency.
///
/// The scale is that of ITCH and OUCH prices: `Price(1_002_500)` is 100.2500. Ordinary arithmetic is
/// done on the inner integer; there is no floating point anywhere that a price is matched or booked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Price(pub i64);

impl Price {
    /// Units in one unit of currency.
    pub const SCALE: i64 = 10_000;
    /// Digits after the decimal point.
    pub const DECIMALS: usize = 4;
    /// The price of an order that takes whatever the collar allows.
    pub const MARKET: Price = Price(i64::MAX);

    /// Reads a decimal such as `100`, `100.25` or `-0.5`.
    ///
    /// # Errors
    /// [`ParsePriceError`] when the text is not a decimal of at most 4 places, or is out of range.
    pub fn parse(text: &str) -> Result<Price, ParsePriceError> {
        let error = || ParsePriceError { text: text.to_owned() };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || digits.ends_with('.')
            || fraction.len() > Self::DECIMALS
            || !is_number(whole)
            || !is_number(fraction)
        {
            return Err(error());
        }
        let whole: i64 = whole.parse().map_err(|_| error())?;
        let mut units = 0_i64;
        for place in 0..Self::DECIMALS {
            units = units * 10 + fraction.as_bytes().get(place).map_or(0, |digit| i64::from(digit - b'0'));
        }
        let value = whole
            .checked_mul(Self::SCALE)
            .and_then(|scaled| scaled.checked_add(units))
            .filter(|value| *value < i64::MAX)
            .ok_or_else(error)?;
        Ok(Price(if negative { -value } else { value }))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Price::MARKET {
            return f.pad("market");
        }
        let magnitude = self.0.unsigned_abs();
        let scale = Self::SCALE.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        f.pad(&format!("{sign}{}.{:04}", magnitude / scale, magnitude % scale))
    }
}

/// A price in units of 10^-`decimals`.
///
/// It is written exactly, with four decimals or as many more as it needs.
///
/// ```
/// use tickpath_types::{Price, ScaledPrice};
///
/// let euro = ScaledPrice { units: 1_084_550_000, decimals: 9 };
/// assert_eq!(euro.to_string(), "1.08455");
/// assert_eq!(euro.at(4), None);
/// assert_eq!(ScaledPrice::from(Price(1_002_500)).to_string(), "100.2500");
/// assert_eq!(ScaledPrice::parse("1.08455", 9), Some(euro));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaledPrice {
    /// The price in these units.
    pub units: i64,
    /// Digits of the units behind the decimal point, at most 18: a unit of currency is then still within 64 bits.
    pub decimals: u8,
}

impl ScaledPrice {
    /// Reads a decimal with at most `decimals` decimals; `None` when it is none or out of range.
    #[must_use]
    pub fn parse(text: &str, decimals: u8) -> Option<ScaledPrice> {
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        // Zeros at the end say nothing.
        let fraction_len = fraction.trim_end_matches('0').len();
        if !are_digits(whole) || !are_digits(fraction) || fraction_len > usize::from(decimals) {
            return None;
        }
        let fraction = fraction.get(..fraction_len)?;
        let scale = 10_i128.pow(u32::from(decimals));
        let rest = 10_i128.pow(u32::from(decimals) - fraction_len as u32);
        let fraction = fraction.parse::<i128>().unwrap_or(0) * rest;
        let units = i128::from(whole.parse::<i64>().ok()?) * scale + fraction;
        let units = i64::try_from(if is_negative { -units } else { units }).ok()?;
        Some(ScaledPrice { units, decimals })
    }

    /// The same price in units of 10^-`decimals`, where that is exact and in range.
    #[must_use]
    pub const fn at(self, decimals: u8) -> Option<i64> {
        if self.decimals > decimals {
            let divisor = 10_i64.pow((self.decimals - decimals) as u32);
            return if self.units % divisor == 0 { Some(self.units / divisor) } else { None };
        }
        self.units.checked_mul(10_i64.pow((decimals - self.decimals) as u32))
    }
}

impl From<Price> for ScaledPrice {
    fn from(price: Price) -> ScaledPrice {
        ScaledPrice { units: price.0, decimals: Price::DECIMALS as u8 }
    }
}

impl fmt::Display for ScaledPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = usize::from(self.decimals);
        let digits = format!("{:0width$}", self.units.unsigned_abs(), width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let sign = if self.units < 0 { "-" } else { "" };
        let needed = fraction.trim_end_matches('0').len().max(Price::DECIMALS);
        // Fewer decimals are filled up with zeros.
        let fraction = fraction.get(..needed.min(decimals)).unwrap_or_default();
        f.pad(&format!("{sign}{whole}.{fraction:0<4}"))
    }
}

/// The text was not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a price: write a decimal of at most 4 places, e.g. 100.25")]
pub struct ParsePriceError {
    text: String,
}

/// A quantity in the instrument's smallest unit (a share, a contract).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Qty(pub u64);

impl Qty {
    /// Nothing.
    pub const ZERO: Qty = Qty(0);

    /// True for [`Qty::ZERO`].
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Qty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The side of an order or of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// Bids.
    Buy = 0,
    /// Asks.
    Sell = 1,
}

impl Side {
    /// Both sides, bids first.
    pub const BOTH: [Side; 2] = [Side::Buy, Side::Sell];

    /// The other side.
    #[must_use]
    pub const fn opposite(self) -> Side {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }

    /// 0 for `Buy`, 1 for `Sell`: the index of this side in a pair.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// +1 for `Buy`, -1 for `Sell`: the sign that a fill on this side gives a position.
    #[must_use]
    pub const fn sign(self) -> i64 {
        match self {
            Side::Buy => 1,
            Side::Sell => -1,
        }
    }

    /// True when an order on this side at `limit` trades with a resting order at `resting`.
    #[must_use]
    pub const fn crosses(self, limit: Price, resting: Price) -> bool {
        match self {
            Side::Buy => limit.0 >= resting.0,
            Side::Sell => limit.0 <= resting.0,
        }
    }

    /// True when `a` has priority over `b` on this side of a book.
    #[must_use]
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
        for text in ["", ".", "1.", ".5", "1.00001", "1e3", "x", "--1", "+1", " 1", "922337203685478"] {
            let error = Price::parse(text).expect_err(text);
            assert!(error.to_string().contains("is not a price"));
        }
        assert_eq!(Price(-5_000).to_string(), "-0.5000");
        assert_eq!(format!("{:>10}", Price(10_000)), "    1.0000");
    }

    #[test]
    fn scaled_prices_are_read_and_written_exactly() {
        for (text, units, decimals) in [
            ("1.08455", 1_084_550_000, 9),
            ("110.0078125", 110_007_812_500, 9),
            ("-0.00390625", -3_906_250, 9),
            ("4799.2500", 4_799_250_000_000, 9),
            ("0.000000001", 1, 9),
            ("9223372036.854775807", i64::MAX, 9),
            ("-9223372036.854775808", i64::MIN, 9),
            ("100.2500", 1_002_500, 4),
            ("7.0000", 7, 0),
            ("0.0000", 0, 18),
        ] {
            let price = ScaledPrice { units, decimals };
            assert_eq!(price.to_string(), text);
            assert_eq!(ScaledPrice::parse(text, decimals), Some(price), "{text}");
        }
        assert_eq!(format!("{:>9}", ScaledPrice { units: 15, decimals: 1 }), "   1.5000");
        for text in ["", "1.", ".5", "1e3", "+1", "--1", "1.0000000001", "9223372036.854775808"] {
            assert_eq!(ScaledPrice::parse(text, 9), None, "{text}");
        }
        let price = ScaledPrice { units: 1_084_550_000, decimals: 9 };
        assert_eq!(
            (price.at(5), price.at(4), price.at(18)),
            (Some(108_455), None, Some(1_084_550_000_000_000_000))
        );
        assert_eq!(ScaledPrice { units: 1 << 40, decimals: 4 }.at(18), None);
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

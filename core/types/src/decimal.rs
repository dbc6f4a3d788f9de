//! Exact decimal numbers with a variable number of decimals.

use std::fmt;

/// Minimum number of digits after the decimal point in the text.
const WRITTEN_MIN: usize = 4;

/// An exact decimal: a number of units of 10^-`decimals`, for example a price with as many decimals as its
/// recording has.
///
/// Its text is exact, with four decimals, or more if needed.
///
/// ```
/// use tickpath_types::{Decimal, Price};
///
/// let euro = Decimal { units: 1_084_550_000, decimals: 9 };
/// assert_eq!(euro.to_string(), "1.08455");
/// assert_eq!(euro.at(4), None);
/// assert_eq!(Decimal::from(Price(1_002_500)).to_string(), "100.2500");
/// assert_eq!(Decimal::parse("1.08455", 9), Some(euro));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Number of units of 10^-`decimals`.
    pub units: i64,
    /// Digits after the decimal point, at most 18: one unit of currency then still fits in 64 bits.
    pub decimals: u8,
}

impl Decimal {
    /// Parses a decimal with at most `decimals` decimals, not counting trailing zeros. Returns `None` for any
    /// other text, or if the number is out of range.
    #[must_use]
    pub fn parse(text: &str, decimals: u8) -> Option<Decimal> {
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
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
        Some(Decimal { units, decimals })
    }

    /// The same number in units of 10^-`decimals`; `None` if this is inexact or out of range.
    #[must_use]
    pub const fn at(self, decimals: u8) -> Option<i64> {
        if self.decimals > decimals {
            let divisor = 10_i64.pow((self.decimals - decimals) as u32);
            return if self.units % divisor == 0 { Some(self.units / divisor) } else { None };
        }
        self.units.checked_mul(10_i64.pow((decimals - self.decimals) as u32))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = usize::from(self.decimals);
        let digits = format!("{:0width$}", self.units.unsigned_abs(), width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let sign = if self.units < 0 { "-" } else { "" };
        let needed = fraction.trim_end_matches('0').len().max(WRITTEN_MIN);
        // Missing decimals are padded with zeros.
        let fraction = fraction.get(..needed.min(decimals)).unwrap_or_default();
        f.pad(&format!("{sign}{whole}.{fraction:0<WRITTEN_MIN$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_and_written_exactly() {
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
            let price = Decimal { units, decimals };
            assert_eq!(price.to_string(), text);
            assert_eq!(Decimal::parse(text, decimals), Some(price), "{text}");
        }
        assert_eq!(format!("{:>9}", Decimal { units: 15, decimals: 1 }), "   1.5000");
        for text in ["", "1.", ".5", "1e3", "+1", "--1", "1.0000000001", "9223372036.854775808"] {
            assert_eq!(Decimal::parse(text, 9), None, "{text}");
        }
        let price = Decimal { units: 1_084_550_000, decimals: 9 };
        assert_eq!(
            (price.at(5), price.at(4), price.at(18)),
            (Some(108_455), None, Some(1_084_550_000_000_000_000))
        );
        assert_eq!(Decimal { units: 1 << 40, decimals: 4 }.at(18), None);
    }
}

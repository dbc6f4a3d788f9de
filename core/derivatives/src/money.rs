//! Exact fixed-point amounts.

use std::fmt;

/// An amount of a currency, or a price derived from amounts, in units of 10^-18.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(pub i128);

impl Money {
    /// Number of decimal places of an amount.
    pub const DECIMALS: u32 = 18;
    /// One unit of the currency.
    pub const ONE: Money = Money(10_i128.pow(Money::DECIMALS));
    /// Zero.
    pub const ZERO: Money = Money(0);

    /// The amount `numerator / denominator`, rounded to the nearest 10^-18, halves away from zero. The result
    /// saturates at 10^19.
    ///
    /// # Panics
    /// When `denominator` is 0.
    #[must_use]
    pub const fn ratio(numerator: i128, denominator: i128) -> Money {
        Money(multiply_divide(numerator, Money::ONE.0, denominator))
    }

    /// This amount times `numerator / denominator`, rounded and saturated as by [`Money::ratio`].
    ///
    /// # Panics
    /// When `denominator` is 0.
    #[must_use]
    pub const fn scaled(self, numerator: i128, denominator: i128) -> Money {
        Money(multiply_divide(self.0, numerator, denominator))
    }

    /// This amount rounded to `decimals` digits after the decimal point, at most 18.
    #[must_use]
    pub const fn rounded(self, decimals: u32) -> Money {
        let unit = 10_i128.pow(Money::DECIMALS - decimals);
        Money(multiply_divide(self.0, 1, unit) * unit)
    }

    /// Parses a decimal number with at most 18 digits on each side of its point; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Money> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || whole.len() > 18 || fraction.len() > 18 {
            return None;
        }
        let places = 10_i128.pow(Money::DECIMALS - fraction.len() as u32);
        let units = whole.parse::<i128>().ok()? * Money::ONE.0 + fraction.parse::<i128>().ok()? * places;
        Some(Money(sign * units))
    }

    /// The greater of this amount and `other`.
    #[must_use]
    pub const fn max(self, other: Money) -> Money {
        if self.0 > other.0 { self } else { other }
    }

    /// The lesser of this amount and `other`.
    #[must_use]
    pub const fn min(self, other: Money) -> Money {
        if self.0 < other.0 { self } else { other }
    }
}

/// `a * b / divisor`, rounded to the nearest integer, halves away from zero; the product may exceed 128 bits.
const fn multiply_divide(a: i128, b: i128, divisor: i128) -> i128 {
    let is_negative = (a < 0) != (b < 0) && a != 0 && b != 0;
    let is_negative = is_negative != (divisor < 0);
    let (a, b, divisor) = (a.unsigned_abs(), b.unsigned_abs(), divisor.unsigned_abs());
    let (quotient, rest) = match a.checked_mul(b) {
        Some(product) => (product / divisor, product % divisor),
        None => divide_long(a, b, divisor),
    };
    // Compares without doubling `rest`, since the double could overflow 128 bits.
    let quotient = if quotient > LARGEST { LARGEST } else { quotient };
    let magnitude = (quotient + (rest >= divisor - rest) as u128) as i128;
    if is_negative { -magnitude } else { magnitude }
}

/// Saturation bound of a quotient, in units of 10^-18; larger than any real amount of a currency.
const LARGEST: u128 = 10_u128.pow(37);

/// `a * b / divisor` and its remainder, by long division; [`LARGEST`] and 0 if the quotient overflows.
const fn divide_long(a: u128, b: u128, divisor: u128) -> (u128, u128) {
    const HALF: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & HALF, b >> 64, b & HALF);
    let (low, first, second) = (a_low * b_low, a_high * b_low, a_low * b_high);
    let middle = (low >> 64) + (first & HALF) + (second & HALF);
    let mut low = (middle << 64) | (low & HALF);
    let mut rest = a_high * b_high + (first >> 64) + (second >> 64) + (middle >> 64);
    if rest >= divisor {
        return (LARGEST, 0);
    }
    let mut step = 0;
    while step < 128 {
        let carry = rest >> 127;
        rest = (rest << 1) | (low >> 127);
        low <<= 1;
        if carry == 1 || rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            low |= 1;
        }
        step += 1;
    }
    (low, rest)
}

tickpath_types::impl_sums!(Money);

impl fmt::Display for Money {
    /// Formats the amount as a JSON number without exponent; a whole amount ends in `.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = Money::ONE.0.unsigned_abs();
        let (whole, fraction) = (self.0.unsigned_abs() / one, self.0.unsigned_abs() % one);
        let sign = if self.0 < 0 { "-" } else { "" };
        if fraction == 0 {
            return write!(f, "{sign}{whole}.0");
        }
        let digits = format!("{fraction:018}");
        write!(f, "{sign}{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["0.0", "1.0", "-0.5", "0.000000000000000001", "123456789.25", "-7.0"] {
            assert_eq!(Money::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "-", ".5", "1.", "1e5", "+1", "1.2.3", "0.0000000000000000001", "1000000000000000000000"]
        {
            assert_eq!(Money::parse(bad), None, "{bad}");
        }
        assert_eq!(Money::parse("12"), Some(Money(12 * Money::ONE.0)));
    }

    #[test]
    fn rounding_is_to_the_nearest_and_the_same_on_both_sides_of_zero() {
        assert_eq!(Money::ratio(2, 3).to_string(), "0.666666666666666667");
        assert_eq!(Money::ratio(-2, 3).to_string(), "-0.666666666666666667");
        assert_eq!(Money::ratio(1, 3).rounded(2).to_string(), "0.33");
        assert_eq!(Money::parse("0.125").unwrap().rounded(2).to_string(), "0.13");
        let huge = 10_i128.pow(30);
        assert_eq!(Money(huge).scaled(huge + 7, huge), Money(huge + 7));
        assert_eq!(Money(-huge).scaled(3 * huge, 2 * huge), Money(-huge / 2 * 3));
        assert_eq!(Money(0).scaled(-huge, 7), Money(0));
        assert_eq!(Money(huge).scaled(huge + 1, 2 * huge), Money((huge + 1) / 2 + 1));
        assert_eq!(Money(3).scaled(1, 2), Money(2));
        assert_eq!(Money(-3).scaled(1, 2), Money(-2));
    }
}

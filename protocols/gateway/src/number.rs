//! Exact decimal numbers: prices, quantities and money.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Decimal places of a [`Fixed`].
pub const FIXED_PLACES: u32 = 8;
/// Decimal places of a [`Money`].
pub const MONEY_PLACES: u32 = 18;
/// Maximum length of a number's text.
const TEXT_LEN_MAX: usize = 64;
/// Maximum exponent in a number's text, of either sign.
const EXPONENT_MAX: i32 = 64;

/// Reason why a number has no exact value of its type. It is rejected, never rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumberError {
    /// It is not a decimal number.
    #[error("it is no decimal number: write digits with an optional '-', '.' and exponent")]
    Malformed,
    /// It has more decimal places than the type.
    #[error("it has more decimal places than can be kept exactly")]
    TooFine,
    /// It is out of the type's range.
    #[error("it is out of range")]
    TooLarge,
}

/// A price or a quantity: a whole number of 10^-8, from about -92 to 92 billion.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Fixed(pub i64);

impl Fixed {
    /// Zero.
    pub const ZERO: Fixed = Fixed(0);
    /// One.
    pub const ONE: Fixed = Fixed(100_000_000);

    /// `mantissa` / 10^`scale`, exactly.
    ///
    /// # Errors
    /// [`NumberError::TooFine`], [`NumberError::TooLarge`].
    #[inline]
    pub fn from_parts(mantissa: i64, scale: u32) -> Result<Fixed, NumberError> {
        let value = rescale(i128::from(mantissa), scale, FIXED_PLACES)?;
        i64::try_from(value).map(Fixed).map_err(|_| NumberError::TooLarge)
    }

    /// Whether it is 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Product with another value, such as price times quantity; exact in units of 10^-16.
    #[must_use]
    pub const fn times(self, other: Fixed) -> i128 {
        self.0 as i128 * other.0 as i128
    }
}

/// An amount of money: a whole number of 10^-18, in 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Money {
    low: u64,
    high: u64,
}

impl Money {
    /// Zero.
    pub const ZERO: Money = Money::new(0);

    /// An amount of `units` times 10^-18.
    #[must_use]
    pub const fn new(units: i128) -> Money {
        Money { low: units as u64, high: (units >> 64) as u64 }
    }

    /// Number of units of 10^-18.
    #[must_use]
    pub const fn units(self) -> i128 {
        ((self.high as i128) << 64) | self.low as i128
    }

    /// `mantissa` / 10^`scale`, exactly.
    ///
    /// # Errors
    /// [`NumberError::TooFine`], [`NumberError::TooLarge`].
    #[inline]
    pub fn from_parts(mantissa: i64, scale: u32) -> Result<Money, NumberError> {
        rescale(i128::from(mantissa), scale, MONEY_PLACES).map(Money::new)
    }
}

impl From<Fixed> for Money {
    fn from(value: Fixed) -> Money {
        Money::new(i128::from(value.0) * 10_i128.pow(MONEY_PLACES - FIXED_PLACES))
    }
}

/// Returns `mantissa` / 10^`scale` in units of 10^-`places`.
fn rescale(mut mantissa: i128, mut scale: u32, places: u32) -> Result<i128, NumberError> {
    if mantissa == 0 {
        return Ok(0);
    }
    while scale > places {
        if mantissa % 10 != 0 {
            return Err(NumberError::TooFine);
        }
        mantissa /= 10;
        scale -= 1;
    }
    mantissa.checked_mul(10_i128.pow(places - scale)).ok_or(NumberError::TooLarge)
}

/// Parses `[-]digits[.digits][e[+-]digits]` as units of 10^-`places`.
fn parse(text: &str, places: u32) -> Result<i128, NumberError> {
    if text.len() > TEXT_LEN_MAX {
        return Err(NumberError::Malformed);
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((_, "")) => return Err(NumberError::Malformed),
        parts => parts.unwrap_or((digits, "")),
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(NumberError::Malformed);
    }
    let fraction = fraction.trim_end_matches('0');
    let mut mantissa: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let next = mantissa.checked_mul(10).and_then(|it| it.checked_add(i128::from(digit - b'0')));
        mantissa = next.ok_or(NumberError::TooLarge)?;
    }
    if text.starts_with('-') {
        mantissa = -mantissa;
    }
    shift(mantissa, fraction.len() as i32 - exponent, places)
}

fn parse_exponent(text: &str) -> Result<i32, NumberError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::Malformed);
    }
    let exponent: i32 = text.parse().map_err(|_| NumberError::TooLarge)?;
    if exponent.abs() > EXPONENT_MAX { Err(NumberError::TooLarge) } else { Ok(exponent) }
}

/// Like [`rescale`], for a scale that may be negative.
fn shift(mantissa: i128, scale: i32, places: u32) -> Result<i128, NumberError> {
    match u32::try_from(scale) {
        Ok(scale) => rescale(mantissa, scale, places),
        Err(_) if mantissa == 0 => Ok(0),
        Err(_) => {
            let power = 10_i128.checked_pow(scale.unsigned_abs()).ok_or(NumberError::TooLarge)?;
            rescale(mantissa.checked_mul(power).ok_or(NumberError::TooLarge)?, 0, places)
        }
    }
}

/// Writes units of 10^-`places` without trailing zeros.
fn show(f: &mut fmt::Formatter<'_>, units: i128, places: u32) -> fmt::Result {
    let one = 10_u128.pow(places);
    let magnitude = units.unsigned_abs();
    let (whole, mut fraction) = (magnitude / one, magnitude % one);
    let sign = if units < 0 { "-" } else { "" };
    if fraction == 0 {
        return write!(f, "{sign}{whole}");
    }
    let mut width = places as usize;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        width -= 1;
    }
    write!(f, "{sign}{whole}.{fraction:0width$}")
}

impl FromStr for Fixed {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Fixed, NumberError> {
        i64::try_from(parse(text, FIXED_PLACES)?).map(Fixed).map_err(|_| NumberError::TooLarge)
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, i128::from(self.0), FIXED_PLACES)
    }
}

impl FromStr for Money {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Money, NumberError> {
        parse(text, MONEY_PLACES).map(Money::new)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.units(), MONEY_PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_units_are_the_same_number() {
        for (text, units, shown) in [
            ("0", 0, "0"),
            ("-0.0", 0, "0"),
            ("1", 100_000_000, "1"),
            ("64250.50", 6_425_050_000_000, "64250.5"),
            ("-0.00000001", -1, "-0.00000001"),
            ("1e-7", 10, "0.0000001"),
            ("3.2E+4", 3_200_000_000_000, "32000"),
            ("0.1230000000000", 12_300_000, "0.123"),
            ("92233720368.54775807", i64::MAX, "92233720368.54775807"),
            ("-92233720368.54775808", i64::MIN, "-92233720368.54775808"),
            ("0e64", 0, "0"),
        ] {
            let number: Fixed = text.parse().expect("it is a number");
            assert_eq!((number.0, number.to_string().as_str()), (units, shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_exact_number_is_refused() {
        use NumberError::{Malformed, TooFine, TooLarge};
        for (text, error) in [
            ("", Malformed),
            ("-", Malformed),
            (".5", Malformed),
            ("5.", Malformed),
            ("+5", Malformed),
            ("1 ", Malformed),
            ("1e", Malformed),
            ("1e+-2", Malformed),
            ("1.2.3", Malformed),
            ("--1", Malformed),
            ("NaN", Malformed),
            ("0x10", Malformed),
            ("0.000000001", TooFine),
            ("1e-9", TooFine),
            ("1e65", TooLarge),
            ("1e99999999999", TooLarge),
            ("92233720368.54775808", TooLarge),
            ("99999999999999999999999999999999999999999", TooLarge),
        ] {
            assert_eq!(text.parse::<Fixed>(), Err(error), "{text}");
        }
        assert_eq!("1".repeat(65).parse::<Money>(), Err(Malformed));
    }

    #[test]
    fn parts_are_taken_exactly() {
        assert_eq!(Fixed::from_parts(504_234, 2), Ok(Fixed(504_234_000_000)));
        assert_eq!(Fixed::from_parts(5, 9), Err(NumberError::TooFine));
        assert_eq!(Fixed::from_parts(50, 9), Ok(Fixed(5)));
        assert_eq!(Fixed::from_parts(i64::MAX, 0), Err(NumberError::TooLarge));
        assert_eq!(Money::from_parts(-1, 18).map(Money::units), Ok(-1));
        assert_eq!(
            Money::from_parts(i64::MIN, 0).map(|it| it.to_string()).as_deref(),
            Ok("-9223372036854775808")
        );
        assert_eq!(Money::from(Fixed(-1)), "-0.00000001".parse().expect("it is money"));
    }

    #[test]
    fn money_keeps_its_sign_in_two_words() {
        for units in [0, 1, -1, i128::MAX, i128::MIN, 1 << 64, -(1 << 64)] {
            assert_eq!(Money::new(units).units(), units);
        }
    }
}

//! Exact decimals: the numbers of prices and amounts, never through a float.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Most digits after the decimal point that a [`Decimal`] has.
pub const SCALE_MAX: u8 = 18;
/// Digits that a `u64` holds whatever they are.
const DIGITS_EXACT: usize = 19;
const POWERS: [i64; SCALE_MAX as usize + 1] = {
    let mut powers = [1; SCALE_MAX as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// A decimal number, exactly: a mantissa divided by a power of ten.
///
/// It is kept in its shortest form (`950.0` is 950), so that equal numbers are equal values. A number that does not fit
/// 63 bits and [`SCALE_MAX`] places is an error of its reading and never rounded.
///
/// ```
/// use tickpath_deribit::number::Decimal;
///
/// let price: Decimal = "5042.340".parse().unwrap();
/// assert_eq!((price.mantissa(), price.scale()), (504_234, 2));
/// assert_eq!(price.units(4), Ok(50_423_400));
/// assert_eq!("3.2e4".parse(), Ok(Decimal::from(32_000)));
/// assert_eq!("1e-5".parse::<Decimal>().unwrap().to_string(), "0.00001");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i64,
    scale: u8,
}

impl Decimal {
    /// Nothing.
    pub const ZERO: Decimal = Decimal { mantissa: 0, scale: 0 };

    /// `mantissa` / 10^`scale`; none when `scale` is over [`SCALE_MAX`] after trailing zeros are gone.
    #[must_use]
    pub const fn new(mantissa: i64, scale: u8) -> Option<Decimal> {
        let (mut mantissa, mut scale) = (mantissa, scale);
        while scale > 0 && mantissa % 10 == 0 {
            if mantissa == 0 {
                scale = 0;
            } else {
                mantissa /= 10;
                scale -= 1;
            }
        }
        if scale > SCALE_MAX || mantissa == i64::MIN { None } else { Some(Decimal { mantissa, scale }) }
    }

    /// The number without its decimal point, in 10^-[`scale`](Decimal::scale).
    #[must_use]
    pub const fn mantissa(self) -> i64 {
        self.mantissa
    }

    /// Digits after the decimal point, 0 to [`SCALE_MAX`]; the last of them is not 0.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// True for 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// True below 0.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// The number in units of 10^-`scale`: a price or quantity of an instrument whose exponent that is.
    ///
    /// # Errors
    /// [`NumberError::TooFine`] when it is no whole number of units, [`NumberError::TooLarge`] when it is out of range.
    pub fn units(self, scale: u8) -> Result<i64, NumberError> {
        let places = scale.checked_sub(self.scale).ok_or(NumberError::TooFine)?;
        let power = match POWERS.get(usize::from(places)) {
            Some(power) => *power,
            None if self.mantissa == 0 => 0,
            None => return Err(NumberError::TooLarge),
        };
        self.mantissa.checked_mul(power).ok_or(NumberError::TooLarge)
    }

    /// Appends the number as JSON text: plain digits, no exponent, no trailing zeros.
    pub fn write(self, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(self.mantissa.unsigned_abs()).as_bytes();
        if self.mantissa < 0 {
            out.push(b'-');
        }
        let scale = usize::from(self.scale);
        if scale == 0 {
            out.extend_from_slice(digits);
        } else if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(fraction);
        } else {
            out.extend_from_slice(b"0.");
            out.extend_from_slice(&b"000000000000000000"[..scale - digits.len()]);
            out.extend_from_slice(digits);
        }
    }

    /// The number at the start of `bytes` and its length.
    ///
    /// # Errors
    /// [`NumberError::NotANumber`] for what is no JSON number; the other errors when it is one and not exact here.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Decimal, usize), NumberError> {
        let sign_len = usize::from(bytes.first() == Some(&b'-'));
        let unsigned = &bytes[sign_len..];
        let mut at = 0;
        let mut mantissa = 0_u64;
        while let Some(digit) = digit_at(unsigned, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        let whole_len = at;
        let mut scale = 0;
        if unsigned.get(at) == Some(&b'.') {
            at += 1;
            while let Some(digit) = digit_at(unsigned, at) {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
                at += 1;
            }
            scale = at - whole_len - 1;
            if scale == 0 {
                return Err(NumberError::NotANumber);
            }
        }
        if whole_len == 0 || (unsigned[0] == b'0' && whole_len > 1) {
            return Err(NumberError::NotANumber);
        }
        if matches!(unsigned.get(at), Some(b'e' | b'E')) || whole_len + scale >= DIGITS_EXACT {
            return read_long(unsigned, whole_len, scale).map(|(magnitude, len)| {
                (if sign_len == 1 { magnitude.negated() } else { magnitude }, sign_len + len)
            });
        }
        while scale > 0 && mantissa.is_multiple_of(10) {
            if mantissa == 0 {
                scale = 0;
            } else {
                mantissa /= 10;
                scale -= 1;
            }
        }
        // Fewer than 19 digits are below 10^18.
        let mantissa = if sign_len == 1 { -(mantissa as i64) } else { mantissa as i64 };
        Ok((Decimal { mantissa, scale: scale as u8 }, sign_len + at))
    }

    const fn negated(self) -> Decimal {
        Decimal { mantissa: -self.mantissa, scale: self.scale }
    }
}

#[inline]
fn digit_at(bytes: &[u8], at: usize) -> Option<u64> {
    let digit = bytes.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(u64::from(digit))
}

/// A number with an exponent or more digits than fit at a glance. `scale` digits follow the point, if there are any.
#[cold]
fn read_long(bytes: &[u8], whole_len: usize, scale: usize) -> Result<(Decimal, usize), NumberError> {
    let fraction_at = whole_len + usize::from(scale > 0);
    let fraction = &bytes[fraction_at..fraction_at + scale];
    let mut at = fraction_at + scale;
    let mut exponent = 0_i64;
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let negative = bytes.get(at + 1) == Some(&b'-');
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let digits_at = at;
        while let Some(digit) = digit_at(bytes, at) {
            exponent = exponent.saturating_mul(10).saturating_add(digit as i64);
            at += 1;
        }
        if at == digits_at {
            return Err(NumberError::NotANumber);
        }
        exponent = if negative { -exponent } else { exponent };
    }
    let decimal = compose(&bytes[..whole_len], fraction, exponent)?;
    Ok((decimal, at))
}

/// The number `whole`.`fraction` * 10^`exponent`.
fn compose(whole: &[u8], fraction: &[u8], exponent: i64) -> Result<Decimal, NumberError> {
    let digits = || whole.iter().chain(fraction);
    let len = whole.len() + fraction.len();
    let leading = digits().take_while(|digit| **digit == b'0').count();
    if leading == len {
        return Ok(Decimal::ZERO);
    }
    let trailing = digits().rev().take_while(|digit| **digit == b'0').count();
    let significant = len - leading - trailing;
    if significant > DIGITS_EXACT {
        return Err(NumberError::TooLong);
    }
    let exponent = exponent.saturating_add(trailing as i64).saturating_sub(fraction.len() as i64);
    let value = digits()
        .skip(leading)
        .take(significant)
        .fold(0_u64, |value, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    let mantissa = i64::try_from(value).map_err(|_| NumberError::TooLong)?;
    if exponent <= 0 {
        let scale = u8::try_from(-exponent.max(-1000)).unwrap_or(u8::MAX);
        return if scale > SCALE_MAX { Err(NumberError::TooFine) } else { Ok(Decimal { mantissa, scale }) };
    }
    let power = usize::try_from(exponent).ok().and_then(|exponent| POWERS.get(exponent));
    let mantissa = power.and_then(|power| mantissa.checked_mul(*power)).ok_or(NumberError::TooLarge)?;
    Ok(Decimal { mantissa, scale: 0 })
}

impl From<i64> for Decimal {
    /// A whole number; the one below -(2^63 - 1) becomes that.
    fn from(value: i64) -> Decimal {
        Decimal { mantissa: value.max(-i64::MAX), scale: 0 }
    }
}

impl From<tickpath_types::Price> for Decimal {
    /// A price in its own scale.
    fn from(price: tickpath_types::Price) -> Decimal {
        Decimal::new(price.0.max(-i64::MAX), tickpath_types::Price::DECIMALS as u8)
            .expect("4 is a small scale")
    }
}

impl FromStr for Decimal {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Decimal, NumberError> {
        // A number that does not fit may have something behind it.
        Number::new(text)?;
        Decimal::read(text.as_bytes()).map(|(decimal, _)| decimal)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        // At most 2^63 * 10^18, which is below 2^123.
        let widened =
            |a: &Decimal, b: &Decimal| i128::from(a.mantissa) * i128::from(POWERS[usize::from(b.scale)]);
        widened(self, other).cmp(&widened(other, self))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        f.pad(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number as the peer wrote it, not yet read: for figures that are shown rather than reckoned with, whose digits may
/// be more than a [`Decimal`] holds (funding rates, greeks, profit and margin totals).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number<'a>(pub(crate) &'a str);

impl<'a> Number<'a> {
    /// A JSON number's text.
    ///
    /// # Errors
    /// [`NumberError::NotANumber`].
    pub fn new(text: &'a str) -> Result<Number<'a>, NumberError> {
        match number_len(text.as_bytes()) {
            Some(len) if len == text.len() => Ok(Number(text)),
            _ => Err(NumberError::NotANumber),
        }
    }

    /// The text.
    #[must_use]
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The number, exactly.
    ///
    /// # Errors
    /// [`NumberError`] when it does not fit.
    pub fn decimal(self) -> Result<Decimal, NumberError> {
        self.0.parse()
    }
}

impl fmt::Debug for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

/// Length of the JSON number at the start of `bytes`; none when there is none.
pub(crate) fn number_len(bytes: &[u8]) -> Option<usize> {
    let digits = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (bytes[at] == b'0' && whole > 1) {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    Some(at)
}

/// Why a text is not an exact number here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumberError {
    /// It is no JSON number.
    #[error("not a number: write digits with at most one decimal point, e.g. 5042.5")]
    NotANumber,
    /// It has more significant digits than 63 bits hold.
    #[error("a number of more than 18 significant digits")]
    TooLong,
    /// It has more places after the decimal point than fit: shorten it to the instrument's tick.
    #[error("a number with more decimal places than there is room for")]
    TooFine,
    /// Its magnitude does not fit 63 bits.
    #[error("a number that is too large")]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly_and_written_shortest() {
        for (text, mantissa, scale, written) in [
            ("0", 0, 0, "0"),
            ("-0.0", 0, 0, "0"),
            ("950", 950, 0, "950"),
            ("950.0", 950, 0, "950"),
            ("5042.34", 504_234, 2, "5042.34"),
            ("-0.0005", -5, 4, "-0.0005"),
            ("1e-5", 1, 5, "0.00001"),
            ("3.2e4", 32_000, 0, "32000"),
            ("9.21E+4", 92_100, 0, "92100"),
            ("5.0e-8", 5, 8, "0.00000005"),
            ("9007199254740992", 9_007_199_254_740_992, 0, "9007199254740992"),
            ("9223372036854775807", i64::MAX, 0, "9223372036854775807"),
            ("0.000000000000000001", 1, 18, "0.000000000000000001"),
            ("1.00000000000000000000000000", 1, 0, "1"),
            ("0e999999999999999999999", 0, 0, "0"),
            ("1000000000000000000000e-21", 1, 0, "1"),
        ] {
            let decimal: Decimal = text.parse().expect(text);
            assert_eq!((decimal.mantissa(), decimal.scale()), (mantissa, scale), "{text}");
            assert_eq!(decimal.to_string(), written);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_never_rounded() {
        for (text, error) in [
            ("", NumberError::NotANumber),
            ("-", NumberError::NotANumber),
            ("01", NumberError::NotANumber),
            ("1.", NumberError::NotANumber),
            (".5", NumberError::NotANumber),
            ("+1", NumberError::NotANumber),
            ("1e", NumberError::NotANumber),
            ("1e+", NumberError::NotANumber),
            ("1x", NumberError::NotANumber),
            ("NaN", NumberError::NotANumber),
            ("1e-50-0.0", NumberError::NotANumber),
            ("0.5 ", NumberError::NotANumber),
            ("9223372036854775808", NumberError::TooLong),
            ("1.2345678901234567891", NumberError::TooLong),
            ("0.0028213400122472977", NumberError::TooFine),
            ("1e-19", NumberError::TooFine),
            ("1e19", NumberError::TooLarge),
            ("1e99999999999999999999", NumberError::TooLarge),
            ("1e-99999999999999999999", NumberError::TooFine),
        ] {
            assert_eq!(text.parse::<Decimal>(), Err(error), "{text}");
            assert_eq!(Number::new(text).is_err(), error == NumberError::NotANumber, "{text}");
        }
    }

    #[test]
    fn units_and_order_are_exact() {
        let decimal = |text: &str| text.parse::<Decimal>().expect("a number");
        assert_eq!(decimal("0.5").units(4), Ok(5_000));
        assert_eq!(decimal("0.00005").units(4), Err(NumberError::TooFine));
        assert_eq!(decimal("1e18").units(1), Err(NumberError::TooLarge));
        assert_eq!((decimal("0").units(200), decimal("1").units(200)), (Ok(0), Err(NumberError::TooLarge)));
        let ordered = ["-9223372036854775807", "-0.5", "0", "1e-18", "0.1", "0.11", "9223372036854775807"];
        assert!(ordered.windows(2).all(|pair| decimal(pair[0]) < decimal(pair[1])));
        assert_eq!(Decimal::from(tickpath_types::Price(1_002_500)), decimal("100.25"));
        assert_eq!(Decimal::new(5, 19), None);
        assert_eq!(Decimal::new(50, 19), Decimal::new(5, 18));
    }
}

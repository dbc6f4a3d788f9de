//! Exact decimals for prices and amounts, without floating point.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::digits::{WHOLE_ROOM, write_whole};

mod pair;

pub(crate) use pair::price_amount;

/// Maximum number of decimals of a [`Decimal`].
pub const SCALE_MAX: u8 = 18;
/// Number of digits that always fit into a `u64`.
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

/// An exact decimal number: a mantissa divided by a power of ten.
///
/// It is stored in its shortest form (`950.0` as 950), so equal numbers are equal values. A number that
/// exceeds 63 bits or [`SCALE_MAX`] decimals causes an error on reading, and is never rounded.
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
    /// A whole word, because padded types are copied slowly.
    scale: u64,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { mantissa: 0, scale: 0 };

    /// `mantissa` / 10^`scale`; `None` if `scale` exceeds [`SCALE_MAX`] without trailing zeros.
    #[must_use]
    pub const fn new(mantissa: i64, scale: u8) -> Option<Decimal> {
        let (mut mantissa, mut scale) = (mantissa, scale as u64);
        if mantissa == 0 {
            return Some(Decimal::ZERO);
        }
        // Drop trailing zeros in eights, then in halves of that: most numbers have many of them.
        while scale >= 8 && mantissa % POWERS[8] == 0 {
            (mantissa, scale) = (mantissa / POWERS[8], scale - 8);
        }
        if scale >= 4 && mantissa % POWERS[4] == 0 {
            (mantissa, scale) = (mantissa / POWERS[4], scale - 4);
        }
        if scale >= 2 && mantissa % POWERS[2] == 0 {
            (mantissa, scale) = (mantissa / POWERS[2], scale - 2);
        }
        if scale >= 1 && mantissa % 10 == 0 {
            (mantissa, scale) = (mantissa / 10, scale - 1);
        }
        if scale > SCALE_MAX as u64 || mantissa == i64::MIN {
            None
        } else {
            Some(Decimal { mantissa, scale })
        }
    }

    /// The number in units of 10^-[`scale`](Decimal::scale).
    #[must_use]
    pub const fn mantissa(self) -> i64 {
        self.mantissa
    }

    /// Number of decimals, 0 to [`SCALE_MAX`]; the last one is not 0.
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale as u8
    }

    /// True for 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// True for a negative number.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// The number in units of 10^-`scale`: a price or quantity of an instrument with this exponent.
    ///
    /// # Errors
    /// [`NumberError::TooFine`] if it is no multiple of the unit, [`NumberError::TooLarge`] if out of range.
    pub fn units(self, scale: u8) -> Result<i64, NumberError> {
        let places = u64::from(scale).checked_sub(self.scale).ok_or(NumberError::TooFine)?;
        let power = match POWERS.get(places as usize) {
            Some(power) => *power,
            None if self.mantissa == 0 => 0,
            None => return Err(NumberError::TooLarge),
        };
        self.mantissa.checked_mul(power).ok_or(NumberError::TooLarge)
    }

    /// Appends the number as JSON text: plain digits, no exponent, no trailing zeros.
    pub fn write(self, out: &mut Vec<u8>) {
        let mut room = [0; WHOLE_ROOM];
        let len = write_whole(self.mantissa.unsigned_abs(), &mut room);
        let digits = &room[..len];
        if self.mantissa < 0 {
            out.push(b'-');
        }
        let scale = self.scale as usize;
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

    /// Reads the number at the start of `bytes`, with its length. Fast for short numbers.
    #[inline(always)]
    pub(crate) fn read_quick(bytes: &[u8]) -> Option<(Decimal, usize)> {
        let Some(short) = Short::read(bytes) else { return Decimal::read_quick_any(bytes) };
        let (mut digit_count, mut places) = (short.digit_count, short.digit_count - short.whole_len);
        let is_zero = |count: u32| short.digits >> (8 * (count - 1)) & 0xff == 0;
        // Trailing zeros after the point do not count. There is often one, rarely a second.
        let dropped = u32::from(is_zero(digit_count) & (places > 0));
        (digit_count, places) = (digit_count - dropped, places - dropped);
        while dropped == 1 && places > 0 && is_zero(digit_count) {
            (digit_count, places) = (digit_count - 1, places - 1);
        }
        let mantissa = value_of(short.digits, digit_count) as i64;
        Some((Decimal { mantissa, scale: places.into() }, short.len as usize))
    }

    /// [`Decimal::read_quick`] as one function for all fields, so that message code stays small.
    #[inline(always)]
    pub(crate) fn read_shared(bytes: &[u8]) -> Option<(Decimal, usize)> {
        let (mantissa, scale_and_len) = shared_decimal(bytes);
        let decimal = Decimal { mantissa, scale: (scale_and_len & 0xff) as u64 };
        if scale_and_len == 0 { None } else { Some((decimal, scale_and_len >> 8)) }
    }

    /// [`Decimal::read_quick`] for a negative or long number, or another form.
    #[inline(never)]
    fn read_quick_any(bytes: &[u8]) -> Option<(Decimal, usize)> {
        read_quick_long(bytes).or_else(|| Decimal::read(bytes).ok())
    }

    /// Reads the number at the start of `bytes`, with its length.
    ///
    /// # Errors
    /// [`NumberError::NotANumber`] if it is not a JSON number; other errors if it cannot be represented.
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
        // A number with fewer than 19 digits is below 10^18.
        let mantissa = if sign_len == 1 { -(mantissa as i64) } else { mantissa as i64 };
        Ok((Decimal { mantissa, scale: scale as u64 }, sign_len + at))
    }

    const fn negated(self) -> Decimal {
        Decimal { mantissa: -self.mantissa, scale: self.scale }
    }
}

/// A number of up to seven digits with an optional point in its first eight bytes, followed by another byte.
struct Short {
    /// Digits as values 0 to 9, one per byte, the first one lowest; higher bytes are undefined.
    digits: u64,
    /// Number of digits, 1 to 7.
    digit_count: u32,
    /// Number of digits before the point; all if there is no point.
    whole_len: u32,
    /// Length of the number in bytes, including the point.
    len: u32,
}

impl Short {
    /// Reads the number at the start of `bytes`; `None` if it has another form.
    #[inline(always)]
    fn read(bytes: &[u8]) -> Option<Short> {
        let window: &[u8; 9] = bytes.first_chunk()?;
        let word = digit_values(window.first_chunk()?);
        let flags = non_digits(word);
        let whole_len = flags.trailing_zeros() / 8;
        if whole_len > 7 || whole_len == 0 || (word & 0xff == 0 && whole_len > 1) {
            return None;
        }
        let behind = word >> (8 * whole_len) & 0xff;
        if behind != u64::from(b'.' ^ b'0') {
            let is_whole = behind | 0x20 != u64::from(b'e' ^ b'0') | 0x20;
            return is_whole.then_some(Short {
                digits: word,
                digit_count: whole_len,
                whole_len,
                len: whole_len,
            });
        }
        // Shift the digits after the point to those before it; the ninth byte follows.
        let before = (1 << (8 * whole_len)) - 1;
        let digits = word & before | (word >> 8 | u64::from(window[8] ^ b'0') << 56) & !before;
        let flags = non_digits(digits);
        let digit_count = flags.trailing_zeros() / 8;
        if digit_count > 7 || digit_count == whole_len {
            return None;
        }
        let behind = digits >> (8 * digit_count) & 0xff;
        let is_end = behind | 0x20 != u64::from(b'e' ^ b'0') | 0x20;
        is_end.then_some(Short { digits, digit_count, whole_len, len: digit_count + 1 })
    }
}

/// A number without sign, exponent and trailing zeros: at most 16 digits before the point and 18 in total.
fn read_quick_long(unsigned: &[u8]) -> Option<(Decimal, usize)> {
    let (whole, whole_len) = quick_whole(unsigned)?;
    let (magnitude, scale, len) = match unsigned.get(whole_len)? {
        b'.' => {
            let fraction = unsigned.get(whole_len + 1..)?;
            let first = digit_at(fraction, 0)?;
            match fraction.get(1)? {
                b'0'..=b'9' => {
                    let (digits, len) = quick_digits(fraction)?;
                    if whole_len + len >= DIGITS_EXACT || fraction[len - 1] == b'0' {
                        return None;
                    }
                    (whole * POWERS[len] as u64 + digits, len, whole_len + 1 + len)
                }
                b'e' | b'E' => return None,
                _ if first == 0 => (whole, 0, whole_len + 2),
                _ => (whole * 10 + first, 1, whole_len + 2),
            }
        }
        b'e' | b'E' => return None,
        _ => (whole, 0, whole_len),
    };
    if matches!(unsigned.get(len)?, b'e' | b'E') {
        return None;
    }
    // A number with fewer than 19 digits is below 10^18.
    Some((Decimal { mantissa: magnitude as i64, scale: scale as u64 }, len))
}

/// The mantissa, and the scale plus 256 times the length (0 for none): both are returned in registers.
#[inline(never)]
fn shared_decimal(bytes: &[u8]) -> (i64, usize) {
    match Decimal::read_quick(bytes) {
        Some((decimal, len)) => (decimal.mantissa, decimal.scale as usize | len << 8),
        None => (0, 0),
    }
}

/// A non-negative integer and its length, which is 0 if there is none; one function for all fields.
#[inline(never)]
pub(crate) fn shared_whole(bytes: &[u8]) -> (u64, usize) {
    match usual_whole(bytes) {
        Some(whole) => whole,
        None => any_whole(bytes).unwrap_or_default(),
    }
}

/// A number of at most 16 digits followed by the end of its member.
#[inline(always)]
fn usual_whole(bytes: &[u8]) -> Option<(u64, usize)> {
    let window: &[u8; 17] = bytes.first_chunk()?;
    let high = digit_values(window.first_chunk()?);
    let flags = non_digits(high);
    let (value, len) = if flags != 0 {
        let count = flags.trailing_zeros() / 8;
        if count == 0 {
            return None;
        }
        (value_of(high, count), count as usize)
    } else {
        let low = digit_values(window[8..].first_chunk()?);
        let count = non_digits(low).trailing_zeros() / 8;
        let low = if count == 0 { 0 } else { value_of(low, count) };
        (value_of(high, 8) * POWERS[count as usize] as u64 + low, 8 + count as usize)
    };
    let is_usual = matches!(window.get(len), Some(b',' | b'}')) && (high & 0xff != 0 || len == 1);
    is_usual.then_some((value, len))
}

#[cold]
fn any_whole(bytes: &[u8]) -> Option<(u64, usize)> {
    let (decimal, len) = Decimal::read(bytes).ok()?;
    if decimal.scale == 0 { Some((u64::try_from(decimal.mantissa).ok()?, len)) } else { None }
}

#[inline(always)]
fn digit_at(bytes: &[u8], at: usize) -> Option<u64> {
    let digit = bytes.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(u64::from(digit))
}

/// An integer of at most 16 digits at the start of `bytes`, and its length. `None` otherwise or near the end.
#[inline(always)]
fn quick_whole(bytes: &[u8]) -> Option<(u64, usize)> {
    let (value, len) = quick_digits(bytes)?;
    if bytes[0] == b'0' && len > 1 { None } else { Some((value, len)) }
}

/// Reads 1 to 16 digits at the start of `bytes`.
#[inline(always)]
fn quick_digits(bytes: &[u8]) -> Option<(u64, usize)> {
    let (high, high_len) = up_to_eight_digits(bytes.first_chunk()?);
    if high_len < 8 {
        return if high_len == 0 { None } else { Some((high, high_len)) };
    }
    let (low, low_len) = up_to_eight_digits(bytes[8..].first_chunk()?);
    if low_len == 8 && digit_at(bytes, 16).is_some() {
        return None;
    }
    Some((high * POWERS[low_len] as u64 + low, 8 + low_len))
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Converts eight characters; digits become 0 to 9.
#[inline(always)]
const fn digit_values(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes) ^ (ONES * 0x30)
}

/// Sets a flag in each byte above 9. The lowest flag is exact, because only flagged bytes cause a carry.
#[inline(always)]
const fn non_digits(values: u64) -> u64 {
    (values.wrapping_add(ONES * 0x76) | values) & (ONES * 0x80)
}

/// Value and number of the digits at the start of eight bytes; processes all eight in parallel.
#[inline(always)]
const fn up_to_eight_digits(bytes: &[u8; 8]) -> (u64, usize) {
    let digits = digit_values(bytes);
    let len = non_digits(digits).trailing_zeros() / 8;
    if len == 0 {
        return (0, 0);
    }
    (value_of(digits, len), len as usize)
}

/// Value of 1 to 8 digits, with values 0 to 9, one per byte, the first one lowest.
#[inline(always)]
const fn value_of(digits: u64, count: u32) -> u64 {
    value_of_last(digits << (64 - 8 * count))
}

/// Value of digits whose last one is in the highest byte, with zeros before the first.
#[inline(always)]
const fn value_of_last(digits: u64) -> u64 {
    // Add pairs, then groups of four, then all.
    let pairs = (digits.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// Reads a number with an exponent or many digits. `scale` digits follow the point, if any.
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
        let scale = exponent.unsigned_abs();
        return if scale > SCALE_MAX.into() {
            Err(NumberError::TooFine)
        } else {
            Ok(Decimal { mantissa, scale })
        };
    }
    let power = usize::try_from(exponent).ok().and_then(|exponent| POWERS.get(exponent));
    let mantissa = power.and_then(|power| mantissa.checked_mul(*power)).ok_or(NumberError::TooLarge)?;
    Ok(Decimal { mantissa, scale: 0 })
}

impl From<i64> for Decimal {
    /// Converts an integer; -2^63 becomes -(2^63 - 1).
    fn from(value: i64) -> Decimal {
        Decimal { mantissa: value.max(-i64::MAX), scale: 0 }
    }
}

impl From<tickpath_types::Price> for Decimal {
    /// Converts a price at the same scale.
    fn from(price: tickpath_types::Price) -> Decimal {
        Decimal::new(price.0.max(-i64::MAX), tickpath_types::Price::DECIMALS as u8)
            .expect("4 is a small scale")
    }
}

impl FromStr for Decimal {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Decimal, NumberError> {
        // A number that does not fit may have trailing text.
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
            |a: &Decimal, b: &Decimal| i128::from(a.mantissa) * i128::from(POWERS[b.scale as usize]);
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

/// A number as text of the peer, not yet decoded. It is for figures that are displayed rather than computed
/// with, which may exceed a [`Decimal`] (funding rates, greeks, profit and margin totals).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number<'a>(pub(crate) &'a str);

impl<'a> Number<'a> {
    /// Creates a number from the text of a JSON number.
    ///
    /// # Errors
    /// [`NumberError::NotANumber`] for any other text.
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

    /// The exact number.
    ///
    /// # Errors
    /// [`NumberError`] if it does not fit.
    pub fn decimal(self) -> Result<Decimal, NumberError> {
        self.0.parse()
    }
}

impl Default for Number<'_> {
    /// Zero.
    fn default() -> Self {
        Number("0")
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

/// Number of digits at the start of `bytes`.
#[inline(always)]
fn digits_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(chunk) = bytes.get(len..).and_then(|rest| rest.first_chunk()) {
        let flags = non_digits(digit_values(chunk));
        if flags != 0 {
            return len + flags.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + bytes[len..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Length of the JSON number at the start of `bytes`; `None` if there is none.
#[inline(never)]
pub(crate) fn number_len(bytes: &[u8]) -> Option<usize> {
    match usual_number_len(bytes) {
        Some(len) => Some(len),
        None => long_number_len(bytes),
    }
}

/// [`number_len`] for a number without sign and exponent, with at most seven digits before and after the
/// point, followed by the end of its member.
#[inline(always)]
fn usual_number_len(bytes: &[u8]) -> Option<usize> {
    let window: &[u8; 16] = bytes.first_chunk()?;
    let word = digit_values(window.first_chunk()?);
    let whole_len = non_digits(word).trailing_zeros() as usize / 8;
    if whole_len == 0 || (word & 0xff == 0 && whole_len > 1) {
        return None;
    }
    let mut len = whole_len;
    if *window.get(len)? == b'.' {
        let fraction = digit_values(window.get(len + 1..)?.first_chunk()?);
        let fraction_len = non_digits(fraction).trailing_zeros() as usize / 8;
        if fraction_len == 0 {
            return None;
        }
        len += 1 + fraction_len;
    }
    matches!(window.get(len), Some(b',' | b'}' | b']')).then_some(len)
}

#[inline(never)]
fn long_number_len(bytes: &[u8]) -> Option<usize> {
    let digits = |at: usize| digits_len(&bytes[at..]);
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

/// Reason why a text has no exact number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NumberError {
    /// It is not a JSON number.
    #[error("not a number: write digits with at most one decimal point, e.g. 5042.5")]
    NotANumber,
    /// It has more significant digits than fit into 63 bits.
    #[error("a number of more than 18 significant digits")]
    TooLong,
    /// It has too many decimals: round it to the instrument's tick size.
    #[error("a number with more decimal places than there is room for")]
    TooFine,
    /// Its magnitude exceeds 63 bits.
    #[error("a number that is too large")]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zeros_are_dropped_as_far_as_there_are_decimals() {
        for (zeros, power) in POWERS.iter().enumerate().take(19) {
            for scale in 0..=40_u8 {
                for sign in [1, -1] {
                    let (mantissa, drop) = (sign * power, zeros.min(scale.into()));
                    let left = scale - drop as u8;
                    let expected = (left <= SCALE_MAX).then_some((mantissa / POWERS[drop], left));
                    let found = Decimal::new(mantissa, scale).map(|it| (it.mantissa(), it.scale()));
                    assert_eq!(found, expected, "{mantissa} of scale {scale}");
                }
            }
        }
        assert_eq!((Decimal::new(0, 255), Decimal::new(i64::MIN, 0)), (Some(Decimal::ZERO), None));
    }

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
    fn the_quick_reading_is_the_same_where_there_is_one() {
        let digits = [
            "0",
            "7",
            "10",
            "05",
            "1234567",
            "12345678",
            "123456789",
            "1234567890123456",
            "12345678901234567",
        ];
        let ends = [",", "]", "}", " ", "e5", ".", "-", "/", ":", "\u{e9}"];
        let mut quick_count = 0;
        for whole in digits {
            for fraction in [""].into_iter().chain(digits) {
                for (sign, end) in ["", "-"].into_iter().flat_map(|sign| ends.map(|end| (sign, end))) {
                    let point = if fraction.is_empty() { "" } else { "." };
                    let text = format!("{sign}{whole}{point}{fraction}{end}        ");
                    if let Some(quick) = Decimal::read_quick(text.as_bytes()) {
                        assert_eq!(Decimal::read(text.as_bytes()), Ok(quick), "{text}");
                        quick_count += 1;
                    }
                }
            }
        }
        assert!(quick_count > 500, "{quick_count}");
        let near_the_end = Some((Decimal { mantissa: 8_095, scale: 1 }, 5));
        assert_eq!(Decimal::read_quick(b"809.5,"), near_the_end);
        assert_eq!(
            Decimal::read_quick(b"36809.5,        "),
            Some((Decimal { mantissa: 368_095, scale: 1 }, 7))
        );
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

//! Exact decimal numbers as in FIX, without an exponent.

use std::cmp::Ordering;
use std::fmt;

/// Maximum number of decimals.
pub const SCALE_MAX: u8 = 18;
/// Maximum length of the text of a [`Decimal`], in bytes: a sign, a zero, a point and 19 digits.
pub const DECIMAL_LEN_MAX: usize = 22;

const POWERS: [i64; SCALE_MAX as usize + 1] = {
    let mut powers = [1; SCALE_MAX as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// An exact decimal number: `mantissa / 10^scale`.
///
/// The scale is preserved, so that `10.0000` is written as `10.0000`; comparison uses the value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decimal {
    mantissa: i64,
    scale: u8,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { mantissa: 0, scale: 0 };

    /// Creates `mantissa / 10^scale`.
    ///
    /// # Panics
    /// If the scale exceeds [`SCALE_MAX`].
    #[must_use]
    pub const fn new(mantissa: i64, scale: u8) -> Decimal {
        assert!(scale <= SCALE_MAX, "a decimal has at most 18 digits after its point");
        Decimal { mantissa, scale }
    }

    /// The digits as an integer.
    #[must_use]
    pub const fn mantissa(self) -> i64 {
        self.mantissa
    }

    /// Number of decimals, 0 to [`SCALE_MAX`].
    #[must_use]
    pub const fn scale(self) -> u8 {
        self.scale
    }

    /// Parses `-12.50`, `12`, `.5` or `5.`; `None` for any other text, and for numbers that do not fit. Zeros
    /// after the point that do not fit are dropped.
    #[inline]
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Decimal> {
        let (negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (mut mantissa, mut scale) = (0_i64, 0_u8);
        let (mut has_point, mut has_digit, mut is_full) = (false, false, false);
        for &byte in digits {
            match byte {
                b'0'..=b'9' => {
                    has_digit = true;
                    let longer = mantissa.checked_mul(10).and_then(|m| m.checked_add(i64::from(byte - b'0')));
                    match longer {
                        Some(longer) if !is_full && scale + u8::from(has_point) <= SCALE_MAX => {
                            mantissa = longer;
                            scale += u8::from(has_point);
                        }
                        _ if has_point && byte == b'0' => is_full = true,
                        _ => return None,
                    }
                }
                b'.' if !has_point => has_point = true,
                _ => return None,
            }
        }
        has_digit.then_some(Decimal { mantissa: if negative { -mantissa } else { mantissa }, scale })
    }

    /// The number in units of `10^-scale`: `10.5` at scale 4 is 105000. `None` if it is not a multiple of the
    /// unit, or does not fit.
    #[inline]
    #[must_use]
    pub fn at_scale(self, scale: u8) -> Option<i64> {
        if scale >= self.scale {
            self.mantissa.checked_mul(*POWERS.get(usize::from(scale - self.scale))?)
        } else {
            let power = POWERS[usize::from(self.scale - scale)];
            (self.mantissa % power == 0).then_some(self.mantissa / power)
        }
    }

    /// The same number without trailing zeros.
    #[must_use]
    pub const fn normalized(mut self) -> Decimal {
        while self.scale > 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }

    /// The exact product; `None` if it does not fit.
    #[must_use]
    pub fn times(self, other: Decimal) -> Option<Decimal> {
        let (a, b) = (self.normalized(), other.normalized());
        let mut product = i128::from(a.mantissa) * i128::from(b.mantissa);
        let mut scale = a.scale + b.scale;
        while scale > 0 && product % 10 == 0 {
            product /= 10;
            scale -= 1;
        }
        let mantissa = i64::try_from(product).ok()?;
        (scale <= SCALE_MAX).then_some(Decimal { mantissa, scale })
    }

    /// The mantissa at the larger of the two scales: below 2^63 * 10^18, which fits.
    fn widened(self, other: Decimal) -> i128 {
        let up = other.scale.saturating_sub(self.scale);
        i128::from(self.mantissa) * i128::from(POWERS[usize::from(up)])
    }

    /// Writes the number into `out`, and returns the text.
    #[inline]
    pub fn write(self, out: &mut [u8; DECIMAL_LEN_MAX]) -> &[u8] {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(self.mantissa.unsigned_abs()).as_bytes();
        let scale = usize::from(self.scale);
        let mut len = 0;
        let mut push = |bytes: &[u8]| {
            out[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        if self.mantissa < 0 {
            push(b"-");
        }
        if scale == 0 {
            push(digits);
        } else if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            push(whole);
            push(b".");
            push(fraction);
        } else {
            push(b"0.");
            push(&[b'0'; SCALE_MAX as usize][..scale - digits.len()]);
            push(digits);
        }
        &out[..len]
    }
}

impl From<i64> for Decimal {
    fn from(mantissa: i64) -> Decimal {
        Decimal { mantissa, scale: 0 }
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        self.widened(*other).cmp(&other.widened(*self))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = [0; DECIMAL_LEN_MAX];
        f.pad(std::str::from_utf8(self.write(&mut out)).expect("digits are text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_are_read_and_written_as_they_came() {
        for text in ["0", "10", "-0.00000021", "9593.5042", "10.0000", "0.0002", "-1", "9223372036854775807"]
        {
            assert_eq!(decimal(text).to_string(), text);
        }
        assert_eq!((decimal(".5").to_string(), decimal("5.").to_string()), ("0.5".into(), "5".into()));
        assert_eq!(decimal("007.50").mantissa(), 750);
        assert_eq!(decimal("-0.000000000000000001").to_string().len(), DECIMAL_LEN_MAX - 1);
        assert_eq!(Decimal::new(i64::MIN, 18).to_string(), "-9.223372036854775808");
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_is_refused() {
        for text in ["", "-", ".", "1e5", "+1", "1.2.3", "1,5", " 1", "--1", "9223372036854775808", "1-"] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decimal("0.1000000000000000000000"), decimal("0.1"));
        assert_eq!(Decimal::parse(b"0.1000000000000000000001"), None);
        assert_eq!(Decimal::parse(b"0.1234567890123456789"), None);
    }

    #[test]
    fn numbers_compare_and_scale_by_value() {
        assert_eq!(decimal("10.0000"), decimal("10"));
        assert!(decimal("-1.5") < decimal("-1.49") && decimal("0.1") > decimal("0.09"));
        assert_eq!(decimal("10.5").at_scale(4), Some(105_000));
        assert_eq!(decimal("10.5000").at_scale(1), Some(105));
        assert_eq!(decimal("10.55").at_scale(1), None);
        assert_eq!(decimal("9223372036854775807").at_scale(1), None);
        assert_eq!(decimal("10.50").times(decimal("0.2")), Some(decimal("2.1")));
        assert_eq!(decimal("4000000000").times(decimal("4000000000")), None);
    }
}

//! Fields: a tag, and a value that is decoded by type.

use tickpath_types::Nanos;

use crate::decimal::Decimal;
use crate::error::{FieldError, SessionRejectReason};
use crate::time::parse_time;
use crate::writer::Writer;

/// Separator at the end of every field.
pub const SOH: u8 = 1;
/// Maximum number of digits of a tag: the largest is 999,999,999.
const TAG_DIGITS_MAX: usize = 9;
/// Maximum number of digits of an integer.
const INT_DIGITS_MAX: usize = 18;

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Tag number.
    pub tag: u32,
    /// Bytes after `=`; never empty.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// Returns an error for this field with a reason.
    #[must_use]
    pub const fn error(&self, reason: SessionRejectReason) -> FieldError {
        FieldError { tag: self.tag, reason }
    }

    /// Decodes the value as `T`.
    ///
    /// # Errors
    /// [`SessionRejectReason::BAD_FORMAT`] if the value is malformed.
    #[inline]
    pub fn read<T: Value<'a>>(self) -> Result<T, FieldError> {
        T::read(self.value).ok_or(FieldError { tag: self.tag, reason: SessionRejectReason::BAD_FORMAT })
    }
}

/// Iterator over the fields of a message or a part of it, in order. Ends after the first malformed field.
///
/// A data field has the length in the length field directly before it, and may contain separators. Without a
/// length field it is read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// The data field that must follow, with its length.
    data: Option<(u32, usize)>,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes, data: None }
    }

    /// The unread rest.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn read(&mut self) -> Result<Field<'a>, FieldError> {
        let (tag, tag_len) = read_tag(self.rest)?;
        let error = |reason| FieldError { tag, reason };
        let value = &self.rest[tag_len + 1..];
        let len = match self.data.take() {
            Some((data_tag, len)) if data_tag == tag => len,
            Some(_) => return Err(error(SessionRejectReason::TAG_ORDER)),
            None => value.iter().position(|&byte| byte == SOH).unwrap_or(value.len()),
        };
        if value.get(len) != Some(&SOH) {
            return Err(error(SessionRejectReason::BAD_FORMAT));
        }
        if len == 0 {
            return Err(error(SessionRejectReason::NO_VALUE));
        }
        let field = Field { tag, value: &value[..len] };
        if let Some(data_tag) = data_tag(tag) {
            let len: u64 = field.read()?;
            self.data = Some((data_tag, usize::try_from(len).unwrap_or(usize::MAX)));
        }
        self.rest = &value[len + 1..];
        Ok(field)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, FieldError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            let (tag, _) = self.data.take()?;
            return Some(Err(FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING }));
        }
        let field = self.read();
        if field.is_err() {
            (self.rest, self.data) = (&[], None);
        }
        Some(field)
    }
}

/// Reads a tag, with its number of digits.
#[inline]
fn read_tag(bytes: &[u8]) -> Result<(u32, usize), FieldError> {
    let mut tag = 0;
    for (index, &byte) in bytes.iter().enumerate().take(TAG_DIGITS_MAX + 1) {
        match byte {
            b'0' if index == 0 => break,
            b'0'..=b'9' if index < TAG_DIGITS_MAX => tag = tag * 10 + u32::from(byte - b'0'),
            b'=' if index > 0 => return Ok((tag, index)),
            _ => break,
        }
    }
    Err(FieldError { tag, reason: SessionRejectReason::INVALID_TAG })
}

/// Data field of a length field.
#[inline]
const fn data_tag(tag: u32) -> Option<u32> {
    match tag {
        93 => Some(89),
        90 | 95 | 212 | 348 | 350 | 352 | 354 | 356 | 358 | 360 | 362 | 364 | 445 | 618 | 621 => {
            Some(tag + 1)
        }
        _ => None,
    }
}

/// A value that can be decoded from and encoded into a field.
pub trait Value<'a>: Sized {
    /// Decodes the value; `None` if it is malformed.
    fn read(value: &'a [u8]) -> Option<Self>;
    /// Encodes the value as the field `tag`.
    fn write(&self, tag: u32, writer: &mut Writer<'_>);
}

impl<'a> Value<'a> for &'a str {
    #[inline]
    fn read(value: &'a [u8]) -> Option<&'a str> {
        std::str::from_utf8(value).ok()
    }

    #[inline]
    fn write(&self, tag: u32, writer: &mut Writer<'_>) {
        writer.field(tag, self.as_bytes());
    }
}

/// Up to 18 digits, including leading zeros.
impl Value<'_> for u64 {
    #[inline]
    fn read(value: &[u8]) -> Option<u64> {
        if value.is_empty() || value.len() > INT_DIGITS_MAX {
            return None;
        }
        value
            .iter()
            .try_fold(0, |number, &byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
    }

    #[inline]
    fn write(&self, tag: u32, writer: &mut Writer<'_>) {
        writer.field(tag, itoa::Buffer::new().format(*self).as_bytes());
    }
}

/// Up to 18 digits with an optional minus sign.
impl Value<'_> for i64 {
    #[inline]
    fn read(value: &[u8]) -> Option<i64> {
        match value {
            [b'-', digits @ ..] => Some(-(u64::read(digits)? as i64)),
            digits => Some(u64::read(digits)? as i64),
        }
    }

    #[inline]
    fn write(&self, tag: u32, writer: &mut Writer<'_>) {
        writer.field(tag, itoa::Buffer::new().format(*self).as_bytes());
    }
}

impl Value<'_> for Decimal {
    #[inline]
    fn read(value: &[u8]) -> Option<Decimal> {
        Decimal::parse(value)
    }

    #[inline]
    fn write(&self, tag: u32, writer: &mut Writer<'_>) {
        writer.decimal(tag, *self);
    }
}

/// A UTCTimestamp, in nanoseconds since the Unix epoch.
impl Value<'_> for Nanos {
    #[inline]
    fn read(value: &[u8]) -> Option<Nanos> {
        parse_time(value)
    }

    #[inline]
    fn write(&self, tag: u32, writer: &mut Writer<'_>) {
        writer.time(tag, *self);
    }
}

/// `Y` or `N`.
impl Value<'_> for bool {
    #[inline]
    fn read(value: &[u8]) -> Option<bool> {
        match value {
            b"Y" => Some(true),
            b"N" => Some(false),
            _ => None,
        }
    }

    #[inline]
    fn write(&self, tag: u32, writer: &mut Writer<'_>) {
        writer.field(tag, if *self { b"Y" } else { b"N" });
    }
}

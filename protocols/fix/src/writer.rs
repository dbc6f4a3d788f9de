//! Encodes messages into a caller's buffer. BodyLength and CheckSum are set at the end; nothing is allocated.

use std::ops::Range;

use tickpath_types::Nanos;

use crate::decimal::{DECIMAL_LEN_MAX, Decimal};
use crate::error::WriteError;
use crate::field::{Field, SOH, Value};
use crate::message::{BEGIN, MsgType, TRAILER_LEN, checksum};
use crate::tag;
use crate::time::{TIME_LEN_MAX, write_time};

/// Digits reserved for BodyLength; a body with another number of digits is moved once.
const LENGTH_DIGITS: usize = 3;
const BODY_START: usize = BEGIN.len() + LENGTH_DIGITS + 1;

/// Writes one message.
///
/// Overflow and invalid values are recorded, and [`finish`](Writer::finish) returns the error.
///
/// ```
/// use tickpath_fix::{Message, MsgType, Parsed, Writer, tag};
///
/// let mut buffer = [0; 256];
/// let mut writer = Writer::new(&mut buffer, MsgType::new("1"));
/// writer.field(tag::TEST_REQ_ID, b"hello");
/// let len = writer.finish().unwrap();
/// assert_eq!(&buffer[..len], b"8=FIX.4.4\x019=15\x0135=1\x01112=hello\x0110=187\x01");
/// assert!(matches!(Message::parse(&buffer[..len]), Parsed::Complete { .. }));
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    len: usize,
    /// Start of the fields after MsgType.
    fields_at: usize,
    error: Option<WriteError>,
}

impl<'b> Writer<'b> {
    /// Starts a message of this type at the start of `buffer`.
    #[inline]
    #[must_use]
    pub fn new(buffer: &'b mut [u8], msg_type: MsgType) -> Writer<'b> {
        let mut writer = Writer { buffer, len: BODY_START, fields_at: BODY_START, error: None };
        match writer.buffer.get_mut(..BEGIN.len()) {
            Some(begin) => begin.copy_from_slice(BEGIN),
            None => writer.error = Some(WriteError::BufferTooShort { len: writer.buffer.len() }),
        }
        writer.field(tag::MSG_TYPE, msg_type.as_bytes());
        writer.fields_at = writer.len;
        writer
    }

    /// Adds a field; its value must not be empty or contain SOH.
    #[inline]
    pub fn field(&mut self, tag: u32, value: &[u8]) {
        if value.is_empty() || value.contains(&SOH) {
            self.fail(WriteError::BadValue { tag });
        } else {
            self.push(tag, value);
        }
    }

    /// Adds a field unchanged, as it was read.
    #[inline]
    pub fn copy(&mut self, field: Field<'_>) {
        self.push(field.tag, field.value);
    }

    /// Adds fields that another writer [encoded](Writer::into_fields).
    #[inline]
    pub fn fields(&mut self, fields: &[u8]) {
        let buffer_len = self.buffer.len();
        let Some(room) = self.buffer.get_mut(self.len..).and_then(|rest| rest.get_mut(..fields.len())) else {
            return self.fail(WriteError::BufferTooShort { len: buffer_len });
        };
        room.copy_from_slice(fields);
        self.len += fields.len();
    }

    /// Ends the encoding of fields that [`fields`](Writer::fields) adds to a message. Returns the range of
    /// the fields after MsgType in the buffer.
    ///
    /// # Errors
    /// [`WriteError`] if the fields do not fit or a value was invalid.
    pub fn into_fields(self) -> Result<Range<usize>, WriteError> {
        self.error.map_or(Ok(self.fields_at..self.len), Err)
    }

    /// Adds a value with its own encoding.
    #[inline]
    pub fn value<'a>(&mut self, tag: u32, value: impl Value<'a>) {
        value.write(tag, self);
    }

    /// Adds a data field, which may contain any bytes, after the field of its length.
    pub fn data(&mut self, len_tag: u32, tag: u32, value: &[u8]) {
        self.value(len_tag, value.len() as u64);
        if value.is_empty() {
            self.fail(WriteError::BadValue { tag });
        } else {
            self.push(tag, value);
        }
    }

    /// Adds a decimal number.
    #[inline]
    pub fn decimal(&mut self, tag: u32, number: Decimal) {
        self.push(tag, number.write(&mut [0; DECIMAL_LEN_MAX]));
    }

    /// Adds a UTCTimestamp of a time since the Unix epoch.
    #[inline]
    pub fn time(&mut self, tag: u32, time: Nanos) {
        self.push(tag, write_time(time, &mut [0; TIME_LEN_MAX]));
    }

    /// Ends the message, and returns its length; it starts at the start of the buffer.
    ///
    /// # Errors
    /// [`WriteError`] if the message does not fit or a value was invalid.
    #[inline]
    pub fn finish(self) -> Result<usize, WriteError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(self.len - BODY_START).as_bytes();
        let body_start = BEGIN.len() + digits.len() + 1;
        let end = self.len + body_start - BODY_START;
        let too_short = WriteError::BufferTooShort { len: self.buffer.len() };
        if end + TRAILER_LEN > self.buffer.len() {
            return Err(too_short);
        }
        if body_start != BODY_START {
            self.buffer.copy_within(BODY_START..self.len, body_start);
        }
        self.buffer[BEGIN.len()..body_start - 1].copy_from_slice(digits);
        self.buffer[body_start - 1] = SOH;
        let sum = checksum(&self.buffer[..end]);
        let digits = [sum / 100, sum / 10 % 10, sum % 10].map(|digit| b'0' + digit);
        let trailer = [b'1', b'0', b'=', digits[0], digits[1], digits[2], SOH];
        self.buffer[end..end + TRAILER_LEN].copy_from_slice(&trailer);
        Ok(end + TRAILER_LEN)
    }

    #[inline]
    fn push(&mut self, tag: u32, value: &[u8]) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(tag).as_bytes();
        let (value_at, len) = (digits.len() + 1, digits.len() + value.len() + 2);
        let buffer_len = self.buffer.len();
        let Some(room) = self.buffer.get_mut(self.len..).and_then(|rest| rest.get_mut(..len)) else {
            return self.fail(WriteError::BufferTooShort { len: buffer_len });
        };
        room[..value_at - 1].copy_from_slice(digits);
        room[value_at - 1] = b'=';
        room[value_at..len - 1].copy_from_slice(value);
        room[len - 1] = SOH;
        self.len += len;
    }

    #[cold]
    fn fail(&mut self, error: WriteError) {
        self.error.get_or_insert(error);
    }
}

//! Messages of a byte stream: framing, validation, and fields read on demand.
//!
//! Source: FIX 4.4, "Message format". Messages are never copied, but borrow from the receive buffer. The cost
//! of a message is bounded by its length, because fields are not collected.

use crate::error::{FieldError, FrameError, SessionRejectReason};
use crate::field::{Field, Fields, SOH};

/// Maximum length of a message for [`Message::parse`], in bytes, including header and trailer. A list of
/// several thousand instruments fits.
pub const MESSAGE_LEN_MAX: usize = 1 << 20;

/// Start of every message.
pub(crate) const BEGIN: &[u8] = b"8=FIX.4.4\x019=";
/// Maximum number of digits of BodyLength.
const LENGTH_DIGITS_MAX: usize = 9;
/// Length of `10=ddd` and SOH.
pub(crate) const TRAILER_LEN: usize = 7;
/// Maximum length of MsgType.
const MSG_TYPE_LEN_MAX: usize = 4;

/// Message type, tag 35: one to four characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MsgType([u8; MSG_TYPE_LEN_MAX]);

impl MsgType {
    /// Creates a type from its name of one to four characters.
    ///
    /// # Panics
    /// If the name is longer or empty.
    #[must_use]
    pub const fn new(name: &str) -> MsgType {
        let name = name.as_bytes();
        assert!(!name.is_empty() && name.len() <= MSG_TYPE_LEN_MAX, "a type has one to four characters");
        let mut bytes = [0; MSG_TYPE_LEN_MAX];
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        MsgType(bytes)
    }

    /// Bytes of the type in a message.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|&byte| byte == 0).unwrap_or(MSG_TYPE_LEN_MAX);
        &self.0[..len]
    }

    /// Text of the type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or("?")
    }

    /// True for session messages: `0` to `5` and `A`.
    #[inline]
    #[must_use]
    pub const fn is_admin(self) -> bool {
        matches!(self.0, [b'0'..=b'5' | b'A', 0, ..])
    }
}

/// Result of parsing the start of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete message.
    Complete {
        /// The message.
        message: Message<'a>,
        /// Length of the message; the next one begins there.
        len: usize,
    },
    /// The start of a message, or nothing: continue reading.
    NeedMore {
        /// Number of bytes needed before parsing can progress.
        len_min: usize,
    },
    /// Not a message. FIX ignores it, and it does not use a sequence number.
    Garbled {
        /// The error.
        error: FrameError,
        /// Number of bytes to skip: up to the possible start of a message, or the end of the buffer.
        skip: usize,
    },
}

/// A message with valid BeginString, BodyLength, MsgType and CheckSum; its fields are not yet validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    bytes: &'a [u8],
    /// From after the SOH of tag 9 up to and including the SOH before tag 10.
    body: &'a [u8],
    msg_type: MsgType,
}

impl<'a> Message<'a> {
    /// Parses the message at the start of `bytes`, of at most [`MESSAGE_LEN_MAX`] bytes.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Parsed<'a> {
        Message::parse_within(bytes, MESSAGE_LEN_MAX)
    }

    /// Parses the message at the start of `bytes`, of at most `len_max` bytes.
    #[inline]
    #[must_use]
    pub fn parse_within(bytes: &'a [u8], len_max: usize) -> Parsed<'a> {
        match frame(bytes, len_max) {
            Ok(Some(Frame { body_start, len })) if len <= bytes.len() => {
                match check(&bytes[..len], body_start) {
                    Ok(message) => Parsed::Complete { message, len },
                    Err(error) => garbled(bytes, error),
                }
            }
            Ok(Some(Frame { len, .. })) => Parsed::NeedMore { len_min: len },
            Ok(None) => Parsed::NeedMore { len_min: bytes.len() + 1 },
            Err(error) => garbled(bytes, error),
        }
    }

    /// Message type, tag 35.
    #[inline]
    #[must_use]
    pub const fn msg_type(&self) -> MsgType {
        self.msg_type
    }

    /// The whole message, from tag 8 to the last SOH.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Fields from tag 35 to before tag 10, in order.
    #[inline]
    #[must_use]
    pub const fn fields(&self) -> Fields<'a> {
        Fields::new(self.body)
    }

    /// The first field with this tag; `None` if there is none before the first malformed field.
    #[must_use]
    pub fn find(&self, tag: u32) -> Option<Field<'a>> {
        self.fields().map_while(Result::ok).find(|field| field.tag == tag)
    }

    /// The first field with this tag.
    ///
    /// # Errors
    /// If the field is missing.
    pub fn require(&self, tag: u32) -> Result<Field<'a>, FieldError> {
        self.find(tag).ok_or(FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING })
    }
}

struct Frame {
    body_start: usize,
    len: usize,
}

/// Start of the body and end of the message; `None` while unknown.
#[inline]
fn frame(bytes: &[u8], len_max: usize) -> Result<Option<Frame>, FrameError> {
    let there = bytes.len().min(BEGIN.len());
    if bytes[..there] != BEGIN[..there] {
        return Err(FrameError::BeginString);
    }
    let mut body_len = 0;
    for (index, &byte) in bytes.iter().enumerate().skip(BEGIN.len()).take(LENGTH_DIGITS_MAX + 1) {
        match byte {
            b'0'..=b'9' if index < BEGIN.len() + LENGTH_DIGITS_MAX => {
                body_len = body_len * 10 + usize::from(byte - b'0');
            }
            SOH if index > BEGIN.len() => {
                let (body_start, len) = (index + 1, index + 1 + body_len + TRAILER_LEN);
                return if len > len_max {
                    Err(FrameError::TooLong { len, len_max })
                } else {
                    Ok(Some(Frame { body_start, len }))
                };
            }
            _ => return Err(FrameError::BodyLength),
        }
    }
    Ok(None)
}

/// Validates a message of the stated length.
#[inline]
fn check(bytes: &[u8], body_start: usize) -> Result<Message<'_>, FrameError> {
    let end = bytes.len() - TRAILER_LEN;
    let (body, trailer) = (&bytes[body_start..end], &bytes[end..]);
    let [b'1', b'0', b'=', digits @ .., SOH] = trailer else { return Err(FrameError::BodyLength) };
    if body.last() != Some(&SOH) {
        return Err(FrameError::BodyLength);
    }
    let said = digits.iter().try_fold(0_u32, |sum, &digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')).ok_or(FrameError::CheckSumFormat)
    })?;
    let computed = checksum(&bytes[..end]);
    if said != u32::from(computed) {
        return Err(FrameError::CheckSum { said, computed });
    }
    Ok(Message { bytes, body, msg_type: msg_type(body)? })
}

/// The third field is MsgType. Leading blanks, which Deribit is known to have sent, are ignored.
#[inline]
fn msg_type(body: &[u8]) -> Result<MsgType, FrameError> {
    let value = body.strip_prefix(b"35=").ok_or(FrameError::MsgType)?;
    let value = value.trim_ascii_start();
    let len = value.iter().take(MSG_TYPE_LEN_MAX + 1).position(|&byte| byte == SOH).unwrap_or(0);
    if len == 0 || !value[..len].iter().all(u8::is_ascii_graphic) {
        return Err(FrameError::MsgType);
    }
    let mut bytes = [0; MSG_TYPE_LEN_MAX];
    bytes[..len].copy_from_slice(&value[..len]);
    Ok(MsgType(bytes))
}

/// Sum of all bytes modulo 256.
#[inline]
#[must_use]
pub(crate) fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, &byte| sum.wrapping_add(byte))
}

#[cold]
fn garbled(bytes: &[u8], error: FrameError) -> Parsed<'_> {
    let begins = |at: usize| {
        let there = (bytes.len() - at).min(BEGIN.len());
        bytes[at..at + there] == BEGIN[..there]
    };
    let skip = (1..bytes.len()).find(|&at| bytes[at] == BEGIN[0] && begins(at)).unwrap_or(bytes.len());
    Parsed::Garbled { error, skip }
}

//! Errors of messages, with FIX's own codes.

use crate::tag;

/// The bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes do not begin with `8=FIX.4.4` and tag 9: skip them, or close the connection.
    #[error("it does not begin with 8=FIX.4.4 and 9=: skip it, or close the connection")]
    BeginString,
    /// BodyLength is not a number, or no CheckSum is at its end: skip the message, or close the connection.
    #[error("BodyLength (9) does not lead to a CheckSum (10): skip it, or close the connection")]
    BodyLength,
    /// The message exceeds the maximum length: close the connection, or increase the maximum.
    #[error("a message of {len} bytes, at most {len_max} are allowed: close the connection, or allow more")]
    TooLong {
        /// Length in bytes.
        len: usize,
        /// Maximum length in bytes.
        len_max: usize,
    },
    /// CheckSum is not three digits: skip the message, or close the connection.
    #[error("CheckSum (10) is not three digits: skip it, or close the connection")]
    CheckSumFormat,
    /// CheckSum is wrong: skip the message, or close the connection.
    #[error("CheckSum (10) says {said}, the bytes sum to {computed}: skip it, or close the connection")]
    CheckSum {
        /// CheckSum in the message.
        said: u32,
        /// Computed checksum.
        computed: u8,
    },
    /// The third field is not a MsgType of one to four characters: skip the message, or close the connection.
    #[error("the third field is no MsgType (35) of 1 to 4 characters: skip it, or close the connection")]
    MsgType,
}

/// Reason for a rejected message: SessionRejectReason, tag 373.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionRejectReason(pub u16);

impl SessionRejectReason {
    /// A tag is not a number.
    pub const INVALID_TAG: SessionRejectReason = SessionRejectReason(0);
    /// A required field is missing.
    pub const REQUIRED_TAG_MISSING: SessionRejectReason = SessionRejectReason(1);
    /// A field is not defined for this message.
    pub const TAG_NOT_DEFINED: SessionRejectReason = SessionRejectReason(2);
    /// A tag is unknown.
    pub const UNDEFINED_TAG: SessionRejectReason = SessionRejectReason(3);
    /// A field has no value.
    pub const NO_VALUE: SessionRejectReason = SessionRejectReason(4);
    /// A value is out of range.
    pub const OUT_OF_RANGE: SessionRejectReason = SessionRejectReason(5);
    /// A value is malformed.
    pub const BAD_FORMAT: SessionRejectReason = SessionRejectReason(6);
    /// SenderCompID or TargetCompID is wrong.
    pub const COMP_ID: SessionRejectReason = SessionRejectReason(9);
    /// SendingTime is too far from the clock.
    pub const SENDING_TIME: SessionRejectReason = SessionRejectReason(10);
    /// The message type is not supported.
    pub const INVALID_MSG_TYPE: SessionRejectReason = SessionRejectReason(11);
    /// A field occurs twice.
    pub const TAG_TWICE: SessionRejectReason = SessionRejectReason(13);
    /// A field is out of the required order.
    pub const TAG_ORDER: SessionRejectReason = SessionRejectReason(14);
    /// A group does not start with its first field.
    pub const GROUP_ORDER: SessionRejectReason = SessionRejectReason(15);
    /// The number of entries of a group does not match its count.
    pub const GROUP_COUNT: SessionRejectReason = SessionRejectReason(16);
    /// Another reason, see the text.
    pub const OTHER: SessionRejectReason = SessionRejectReason(99);

    /// Description of the reason.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self.0 {
            0 => "invalid tag number",
            1 => "required tag missing",
            2 => "tag not defined for this message type",
            3 => "undefined tag",
            4 => "tag specified without a value",
            5 => "value is incorrect (out of range) for this tag",
            6 => "incorrect data format for value",
            7 => "decryption problem",
            8 => "signature problem",
            9 => "CompID problem",
            10 => "SendingTime accuracy problem",
            11 => "invalid MsgType",
            13 => "tag appears more than once",
            14 => "tag specified out of required order",
            15 => "repeating group fields out of order",
            16 => "incorrect NumInGroup count for repeating group",
            17 => "non data value includes field delimiter",
            _ => "other",
        }
    }
}

/// A field is invalid or missing: reply with a Reject (`3`) with this tag and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tag {tag}{}: {}", name_of(*.tag), .reason.text())]
pub struct FieldError {
    /// Tag of the field; 0 if it could not be read.
    pub tag: u32,
    /// Reason.
    pub reason: SessionRejectReason,
}

fn name_of(tag: u32) -> String {
    tag::name(tag).map_or_else(String::new, |name| format!(" ({name})"))
}

/// A message could not be written; discard the partial output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer is too short: send its content first, or use a longer one.
    #[error(
        "the message does not fit the {len} bytes of its buffer: send what is there first, or take a longer one"
    )]
    BufferTooShort {
        /// Length of the buffer, in bytes.
        len: usize,
    },
    /// A value is empty, or contains a byte that would end its field: pass another value.
    #[error("the value of tag {tag} is empty or holds a separator: give another")]
    BadValue {
        /// The tag.
        tag: u32,
    },
}

//! What can be wrong with a message, in FIX's own codes.

use crate::tag;

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It does not begin with `8=FIX.4.4` and tag 9: skip it, or close the connection.
    #[error("it does not begin with 8=FIX.4.4 and 9=: skip it, or close the connection")]
    BeginString,
    /// BodyLength is no number, or no CheckSum stands where it ends: skip it, or close the connection.
    #[error("BodyLength (9) does not lead to a CheckSum (10): skip it, or close the connection")]
    BodyLength,
    /// It is longer than is allowed: close the connection, or allow more.
    #[error("a message of {len} bytes, at most {len_max} are allowed: close the connection, or allow more")]
    TooLong {
        /// Its length, in bytes.
        len: usize,
        /// The most that is allowed.
        len_max: usize,
    },
    /// CheckSum is not three digits: skip it, or close the connection.
    #[error("CheckSum (10) is not three digits: skip it, or close the connection")]
    CheckSumFormat,
    /// CheckSum is wrong: skip it, or close the connection.
    #[error("CheckSum (10) says {said}, the bytes sum to {computed}: skip it, or close the connection")]
    CheckSum {
        /// As the message says.
        said: u32,
        /// As it is.
        computed: u8,
    },
    /// The third field is no MsgType of one to four characters: skip it, or close the connection.
    #[error("the third field is no MsgType (35) of 1 to 4 characters: skip it, or close the connection")]
    MsgType,
}

/// Why a message is rejected: SessionRejectReason, tag 373.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionRejectReason(pub u16);

impl SessionRejectReason {
    /// A tag that is no number.
    pub const INVALID_TAG: SessionRejectReason = SessionRejectReason(0);
    /// A field is missing.
    pub const REQUIRED_TAG_MISSING: SessionRejectReason = SessionRejectReason(1);
    /// A field that this message does not have.
    pub const TAG_NOT_DEFINED: SessionRejectReason = SessionRejectReason(2);
    /// A tag that nobody knows.
    pub const UNDEFINED_TAG: SessionRejectReason = SessionRejectReason(3);
    /// A field without a value.
    pub const NO_VALUE: SessionRejectReason = SessionRejectReason(4);
    /// A value out of its range.
    pub const OUT_OF_RANGE: SessionRejectReason = SessionRejectReason(5);
    /// A value that is written wrongly.
    pub const BAD_FORMAT: SessionRejectReason = SessionRejectReason(6);
    /// SenderCompID or TargetCompID is wrong.
    pub const COMP_ID: SessionRejectReason = SessionRejectReason(9);
    /// SendingTime is too far from the clock.
    pub const SENDING_TIME: SessionRejectReason = SessionRejectReason(10);
    /// A type of message that is not taken.
    pub const INVALID_MSG_TYPE: SessionRejectReason = SessionRejectReason(11);
    /// A field came twice.
    pub const TAG_TWICE: SessionRejectReason = SessionRejectReason(13);
    /// A field is not where it must be.
    pub const TAG_ORDER: SessionRejectReason = SessionRejectReason(14);
    /// A group does not begin with its first field.
    pub const GROUP_ORDER: SessionRejectReason = SessionRejectReason(15);
    /// A group has not as many entries as it says.
    pub const GROUP_COUNT: SessionRejectReason = SessionRejectReason(16);
    /// Another reason, see the text.
    pub const OTHER: SessionRejectReason = SessionRejectReason(99);

    /// In words.
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

/// A field is wrong or missing: answer with a Reject (`3`) of this tag and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tag {tag}{}: {}", name_of(*.tag), .reason.text())]
pub struct FieldError {
    /// The tag; 0 when it could not be read.
    pub tag: u32,
    /// What is wrong with it.
    pub reason: SessionRejectReason,
}

fn name_of(tag: u32) -> String {
    tag::name(tag).map_or_else(String::new, |name| format!(" ({name})"))
}

/// A message could not be written; nothing of it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The buffer is too short: send what is in it, or take a longer one.
    #[error(
        "the message does not fit the {len} bytes of its buffer: send what is there first, or take a longer one"
    )]
    BufferTooShort {
        /// Length of the buffer, in bytes.
        len: usize,
    },
    /// A value is empty, or holds a byte that would end its field: the caller must give another.
    #[error("the value of tag {tag} is empty or holds a separator: give another")]
    BadValue {
        /// The tag.
        tag: u32,
    },
}

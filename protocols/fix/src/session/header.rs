//! The standard header, and initial validation of every field.

use tickpath_types::Nanos;

use crate::error::{FieldError, SessionRejectReason};
use crate::field::{Field, Value};
use crate::message::{Message, MsgType};
use crate::tag;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Message type.
    pub msg_type: MsgType,
    /// Sequence number, from 1.
    pub sequence: u64,
    /// SenderCompID.
    pub sender: &'a [u8],
    /// TargetCompID.
    pub target: &'a [u8],
    /// SendingTime, since the Unix epoch.
    pub sending_time: Option<Nanos>,
    /// OrigSendingTime of a resent message, since the Unix epoch.
    pub orig_sending_time: Option<Nanos>,
    /// True if the message may be a duplicate (PossDupFlag).
    pub is_poss_dup: bool,
}

/// A header with all readable fields, and the first field error.
pub(super) struct Read<'a> {
    /// The sequence number is 0 if absent.
    pub(super) header: Header<'a>,
    pub(super) error: Option<FieldError>,
}

impl<'a> Header<'a> {
    /// Reads the header, and validates all fields.
    #[inline]
    pub(super) fn read(message: &Message<'a>) -> Read<'a> {
        let mut header = Header {
            msg_type: message.msg_type(),
            sequence: 0,
            sender: &[],
            target: &[],
            sending_time: None,
            orig_sending_time: None,
            is_poss_dup: false,
        };
        let mut seen = 0_u8;
        let mut error = None;
        for field in message.fields() {
            let taken = field.and_then(|field| header.take(field, &mut seen));
            if let Err(first) = taken {
                error.get_or_insert(first);
            }
        }
        Read { header, error }
    }

    #[inline]
    fn take(&mut self, field: Field<'a>, seen: &mut u8) -> Result<(), FieldError> {
        let bit = match field.tag {
            tag::MSG_SEQ_NUM => 1,
            tag::SENDER_COMP_ID => 2,
            tag::TARGET_COMP_ID => 4,
            tag::SENDING_TIME => 8,
            tag::ORIG_SENDING_TIME => 16,
            tag::POSS_DUP_FLAG => 32,
            tag::MSG_TYPE => 64,
            _ => return Ok(()),
        };
        if *seen & bit != 0 {
            return Err(field.error(SessionRejectReason::TAG_TWICE));
        }
        *seen |= bit;
        match field.tag {
            tag::MSG_SEQ_NUM => self.sequence = field.read()?,
            tag::SENDER_COMP_ID => self.sender = field.value,
            tag::TARGET_COMP_ID => self.target = field.value,
            tag::SENDING_TIME => self.sending_time = Some(field.read()?),
            tag::ORIG_SENDING_TIME => self.orig_sending_time = Some(field.read()?),
            tag::POSS_DUP_FLAG => self.is_poss_dup = field.read()?,
            _ => {}
        }
        Ok(())
    }
}

/// True for tags that every message sets, and which are not copied when resending.
pub(super) const fn is_header(tag: u32) -> bool {
    matches!(
        tag,
        tag::BEGIN_STRING
            | tag::BODY_LENGTH
            | tag::CHECK_SUM
            | tag::MSG_TYPE
            | tag::MSG_SEQ_NUM
            | tag::SENDER_COMP_ID
            | tag::TARGET_COMP_ID
            | tag::SENDING_TIME
            | tag::ORIG_SENDING_TIME
            | tag::POSS_DUP_FLAG
    )
}

/// Value of an optional field, or its error.
pub(super) fn optional<'a, T: Value<'a>>(message: &Message<'a>, tag: u32) -> Result<Option<T>, FieldError> {
    message.find(tag).map(Field::read).transpose()
}

//! Messages of the session that an application reads or writes.

use crate::body::message;

message! {
    /// Reject (`3`): a message was not understood. Deribit answers orders that it refuses so, too.
    Reject<'a> = REJECT
    {
        /// Number of the message that was rejected.
        ref_seq_num: u64 = REF_SEQ_NUM,
    }
    {
        /// The field that was wrong.
        ref_tag_id: u64 = REF_TAG_ID,
        /// Type of the message that was rejected.
        ref_msg_type: &'a str = REF_MSG_TYPE,
        /// Why, see [`SessionRejectReason`](crate::SessionRejectReason).
        reason: u64 = SESSION_REJECT_REASON,
        /// Why, in words; `connection_too_slow` of Deribit: connect again.
        text: &'a str = TEXT,
    }
    {}
}

message! {
    /// Logout (`5`).
    Logout<'a> = LOGOUT
    {}
    {
        /// Why.
        text: &'a str = TEXT,
        /// Deribit: orders stay although a Logon said otherwise.
        dont_cancel_on_disconnect: bool = DONT_CANCEL_ON_DISCONNECT,
    }
    {}
}

message! {
    /// Business Message Reject (`j`): a message was understood and cannot be done.
    BusinessReject<'a> = BUSINESS_MESSAGE_REJECT
    {
        /// Type of the message.
        ref_msg_type: &'a str = REF_MSG_TYPE,
        /// 0 other, 1 unknown id, 2 unknown security, 3 unsupported type, 4 not available, 5 field missing.
        reason: u64 = BUSINESS_REJECT_REASON,
    }
    {
        /// Number of the message.
        ref_seq_num: u64 = REF_SEQ_NUM,
        /// Id that the message had.
        ref_id: &'a str = BUSINESS_REJECT_REF_ID,
        /// Why, in words.
        text: &'a str = TEXT,
    }
    {}
}

//! Session messages that an application reads or writes.

use crate::body::message;

message! {
    /// Reject (`3`): a message was invalid. Deribit also rejects orders with it.
    Reject<'a> = REJECT
    {
        /// Sequence number of the rejected message.
        ref_seq_num: u64 = REF_SEQ_NUM,
    }
    {
        /// Tag of the invalid field.
        ref_tag_id: u64 = REF_TAG_ID,
        /// Type of the rejected message.
        ref_msg_type: &'a str = REF_MSG_TYPE,
        /// Reason, see [`SessionRejectReason`](crate::SessionRejectReason).
        reason: u64 = SESSION_REJECT_REASON,
        /// Description of the reason; reconnect after Deribit's `connection_too_slow`.
        text: &'a str = TEXT,
    }
    {}
}

message! {
    /// Logout (`5`).
    Logout<'a> = LOGOUT
    {}
    {
        /// Reason.
        text: &'a str = TEXT,
        /// Deribit: keep orders, even if the Logon requested to cancel them.
        dont_cancel_on_disconnect: bool = DONT_CANCEL_ON_DISCONNECT,
    }
    {}
}

message! {
    /// Business Message Reject (`j`): a message was valid, but could not be processed.
    BusinessReject<'a> = BUSINESS_MESSAGE_REJECT
    {
        /// Type of the rejected message.
        ref_msg_type: &'a str = REF_MSG_TYPE,
        /// 0 other, 1 unknown id, 2 unknown security, 3 unsupported type, 4 not available, 5 field missing.
        reason: u64 = BUSINESS_REJECT_REASON,
    }
    {
        /// Sequence number of the rejected message.
        ref_seq_num: u64 = REF_SEQ_NUM,
        /// Id in the rejected message.
        ref_id: &'a str = BUSINESS_REJECT_REF_ID,
        /// Description of the reason.
        text: &'a str = TEXT,
    }
    {}
}

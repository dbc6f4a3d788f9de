//! Reasons why a connection ends, or a message is not sent.

use crate::error::{FieldError, FrameError, WriteError};

/// Reason to close a connection, after the pending output has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides have logged out.
    #[error("both sides have logged out")]
    LoggedOut,
    /// The peer did not reply to our Logout in time.
    #[error("the peer did not answer the Logout in time")]
    LogoutTimeout,
    /// The transport ended without a Logout.
    #[error("the connection ended without a Logout: connect again")]
    TransportClosed,
    /// The peer exceeded the maximum number of garbled messages.
    #[error("the peer sends what is no FIX: {0}")]
    Garbled(FrameError),
    /// Another message arrived before the Logon.
    #[error("the peer sent something else before its Logon")]
    NotLogon,
    /// The Logon, the reply to it or the decision about it did not arrive in time.
    #[error("no Logon was completed in time")]
    LogonTimeout,
    /// The peer rejected our Logon; the listener received its reason.
    #[error("the peer refused the Logon: check names and credentials")]
    LogonRefused,
    /// We rejected the peer's Logon.
    #[error("the Logon was refused: {0}")]
    LogonDenied(&'static str),
    /// A field of the Logon is invalid.
    #[error("the Logon is wrong: {0}")]
    BadLogon(FieldError),
    /// SenderCompID or TargetCompID differs from the configured one.
    #[error("SenderCompID or TargetCompID is wrong: check the names on both sides")]
    CompId,
    /// SendingTime is too far from the clock.
    #[error("SendingTime is too far from the clock: set the clocks of both sides")]
    SendingTime,
    /// A message has no sequence number.
    #[error("a message has no MsgSeqNum")]
    SequenceMissing,
    /// A message has a sequence number that was used before.
    #[error("MsgSeqNum {received} is too low, {expected} was expected: agree on the numbers, or reset them")]
    SequenceTooLow {
        /// Expected number.
        expected: u64,
        /// Received number.
        received: u64,
    },
    /// Messages are missing and are not requested: reconnect and rebuild the state.
    #[error("MsgSeqNum {received} came, {expected} was expected: connect again")]
    Gap {
        /// Expected number.
        expected: u64,
        /// Received number.
        received: u64,
    },
    /// Missing messages were requested, but did not arrive.
    #[error("missing messages did not come in time: connect again")]
    GapNotFilled,
    /// The peer requests messages, but none are resent: reconnect.
    #[error("the peer asks for messages from {begin} on, which are not sent again: connect again")]
    ResendRequested {
        /// First requested number.
        begin: u64,
    },
    /// The peer did not send anything.
    #[error("the peer is silent and did not answer a TestRequest: connect again")]
    PeerSilent,
    /// The peer does not read its messages.
    #[error("the peer does not read what it is sent: connect again")]
    OutputFull,
    /// The application ended the session for this reason.
    #[error("ended: {0}")]
    Ended(&'static str),
    /// The application passed an empty text, or one with a separator, for a Logout or a reply.
    #[error("the application's value of tag {tag} is empty or holds a separator: give another")]
    BadValue {
        /// The tag.
        tag: u32,
    },
}

/// Reason why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The session is not logged on.
    #[error("the session is not logged on: wait for the Logon, or connect again")]
    NotLoggedOn,
    /// The session already has a connection.
    #[error("the session has a connection already: end that first")]
    Connected,
    /// The output is full, or messages are being resent: retry after some of it has been sent.
    #[error("too much waits to be sent: try again when some of it has been")]
    Full,
    /// A value is empty or contains a separator; a retry fails again.
    #[error("the value of tag {tag} is empty or holds a separator: give another")]
    BadValue {
        /// The tag.
        tag: u32,
    },
}

impl From<WriteError> for SendError {
    fn from(error: WriteError) -> SendError {
        match error {
            WriteError::BufferTooShort { .. } => SendError::Full,
            WriteError::BadValue { tag } => SendError::BadValue { tag },
        }
    }
}

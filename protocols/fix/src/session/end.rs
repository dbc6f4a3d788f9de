//! How a connection ends, and why a message is not sent.

use crate::error::{FieldError, FrameError, WriteError};

/// Why a connection is to be closed, once what waits in the output has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides have logged out.
    #[error("both sides have logged out")]
    LoggedOut,
    /// The peer did not answer our Logout in time.
    #[error("the peer did not answer the Logout in time")]
    LogoutTimeout,
    /// The transport ended without a Logout.
    #[error("the connection ended without a Logout: connect again")]
    TransportClosed,
    /// More bytes than are allowed were no messages.
    #[error("the peer sends what is no FIX: {0}")]
    Garbled(FrameError),
    /// Something else came before a Logon.
    #[error("the peer sent something else before its Logon")]
    NotLogon,
    /// No Logon, or no answer to it, or no decision about it, in time.
    #[error("no Logon was completed in time")]
    LogonTimeout,
    /// The peer refused our Logon; the listener was told why.
    #[error("the peer refused the Logon: check names and credentials")]
    LogonRefused,
    /// We refused the peer's Logon.
    #[error("the Logon was refused: {0}")]
    LogonDenied(&'static str),
    /// A field of the Logon is wrong.
    #[error("the Logon is wrong: {0}")]
    BadLogon(FieldError),
    /// SenderCompID or TargetCompID is not what it was agreed to be.
    #[error("SenderCompID or TargetCompID is wrong: check the names on both sides")]
    CompId,
    /// SendingTime is too far from the clock.
    #[error("SendingTime is too far from the clock: set the clocks of both sides")]
    SendingTime,
    /// A message has no number.
    #[error("a message has no MsgSeqNum")]
    SequenceMissing,
    /// A message has a number that was used before.
    #[error("MsgSeqNum {received} is too low, {expected} was expected: agree on the numbers, or reset them")]
    SequenceTooLow {
        /// What was expected.
        expected: u64,
        /// What came.
        received: u64,
    },
    /// Messages are missing and are not asked for: connect again and build the state anew.
    #[error("MsgSeqNum {received} came, {expected} was expected: connect again")]
    Gap {
        /// What was expected.
        expected: u64,
        /// What came.
        received: u64,
    },
    /// Missing messages were asked for and did not come.
    #[error("missing messages did not come in time: connect again")]
    GapNotFilled,
    /// The peer asks for messages, and none is ever sent again: connect again.
    #[error("the peer asks for messages from {begin} on, which are not sent again: connect again")]
    ResendRequested {
        /// The first.
        begin: u64,
    },
    /// The peer is silent.
    #[error("the peer is silent and did not answer a TestRequest: connect again")]
    PeerSilent,
    /// The peer does not read what it is sent.
    #[error("the peer does not read what it is sent: connect again")]
    OutputFull,
    /// The application ended the session, for this reason.
    #[error("ended: {0}")]
    Ended(&'static str),
    /// The application gave a Logout or an answer an empty text, or one that holds a separator.
    #[error("the application's value of tag {tag} is empty or holds a separator: give another")]
    BadValue {
        /// The tag.
        tag: u32,
    },
}

/// A message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The session is not up.
    #[error("the session is not logged on: wait for the Logon, or connect again")]
    NotLoggedOn,
    /// The session is connected already.
    #[error("the session has a connection already: end that first")]
    Connected,
    /// The output is full, or messages are being sent again: try again when some of it has been sent.
    #[error("too much waits to be sent: try again when some of it has been")]
    Full,
    /// A value is empty or holds a separator; sent again it fails again.
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

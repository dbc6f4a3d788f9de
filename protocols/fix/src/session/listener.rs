//! Callbacks from a session to its application.

use tickpath_types::Nanos;

use super::{Header, Reject};
use crate::error::FieldError;
use crate::message::Message;

/// A Logon that an acceptor received.
#[derive(Clone, Copy, Debug)]
pub struct LogonRequest<'a> {
    /// Header of the Logon.
    pub header: Header<'a>,
    /// Requested heartbeat interval.
    pub heartbeat: Nanos,
    /// Whether the client requests a reset of both sides' numbers to 1.
    pub resets: bool,
    /// The Logon message.
    pub message: Message<'a>,
}

/// Decision about a Logon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogonDecision {
    /// Accept the Logon.
    Accept,
    /// Reject the Logon for this reason.
    Refuse(&'static str),
    /// Decide later with [`Session::decide_logon`](super::Session::decide_logon).
    Later,
}

/// Rejection of an application message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A field is invalid: the reply is a Reject (`3`). Deribit has its own texts.
    Field {
        /// The field and the reason.
        error: FieldError,
        /// The text; that of the reason if `None`.
        text: Option<&'static str>,
    },
    /// The message cannot be processed: the reply is a Business Message Reject (`j`).
    Business {
        /// BusinessRejectReason (380).
        reason: u64,
        /// The text.
        text: &'static str,
    },
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Refusal {
        Refusal::Field { error, text: None }
    }
}

/// Receives the events of a session, during the call that passes in the bytes.
pub trait Listener {
    /// An application message, in sequence and without duplicates.
    ///
    /// # Errors
    /// The rejection, which the session sends as a reply.
    fn on_message(&mut self, header: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal>;

    /// A session message arrived (types `0` to `5` and `A`). It is called before validation and processing,
    /// for logging.
    #[inline]
    fn on_session_message(&mut self, message: &Message<'_>) {
        let _ = message;
    }

    /// A client requests to log on; called once per connection at an acceptor.
    fn on_logon_request(&mut self, request: &LogonRequest<'_>) -> LogonDecision {
        let _ = request;
        LogonDecision::Accept
    }

    /// The session is up: orders may be sent.
    fn on_logged_on(&mut self) {}

    /// The peer rejected one of our messages.
    fn on_reject(&mut self, reject: &Reject<'_>) {
        let _ = reject;
    }

    /// The peer logs out, or rejects our Logon, for this reason.
    fn on_logout(&mut self, text: Option<&str>) {
        let _ = text;
    }

    /// Messages are missing: this number arrived instead of the expected one.
    fn on_gap(&mut self, expected: u64, received: u64) {
        let _ = (expected, received);
    }
}

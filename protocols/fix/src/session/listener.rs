//! What leaves a session towards its application.

use tickpath_types::Nanos;

use super::{Header, Reject};
use crate::error::FieldError;
use crate::message::Message;

/// A client wants to log on.
#[derive(Clone, Copy, Debug)]
pub struct LogonRequest<'a> {
    /// Header of its Logon.
    pub header: Header<'a>,
    /// Interval of heartbeats that it asks for.
    pub heartbeat: Nanos,
    /// Whether it asks that both sides begin at 1.
    pub resets: bool,
    /// The Logon.
    pub message: Message<'a>,
}

/// What becomes of a client that wants to log on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogonDecision {
    /// It is logged on.
    Accept,
    /// It is not, for this reason.
    Refuse(&'static str),
    /// That is known later: see [`Session::decide_logon`](super::Session::decide_logon).
    Later,
}

/// Why a message for the application is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A field is wrong: a Reject (`3`) answers. Deribit answers with a text of its own.
    Field {
        /// Which, and why.
        error: FieldError,
        /// The text; that of the reason when `None`.
        text: Option<&'static str>,
    },
    /// The message cannot be done: a Business Message Reject (`j`) answers.
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

/// Takes what a session receives, during the call that hands in the bytes.
pub trait Listener {
    /// A message for the application, in sequence; each comes once.
    ///
    /// # Errors
    /// Why it is not taken: the session answers.
    fn on_message(&mut self, header: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal>;

    /// A message of the session itself came - types `0` to `5` and `A` -, before it is checked and dealt with: for who
    /// writes down what comes.
    #[inline]
    fn on_session_message(&mut self, message: &Message<'_>) {
        let _ = message;
    }

    /// A client wants to log on; asked at an acceptor once a connection.
    fn on_logon_request(&mut self, request: &LogonRequest<'_>) -> LogonDecision {
        let _ = request;
        LogonDecision::Accept
    }

    /// The session is up: orders may be sent.
    fn on_logged_on(&mut self) {}

    /// The peer did not understand one of our messages.
    fn on_reject(&mut self, reject: &Reject<'_>) {
        let _ = reject;
    }

    /// The peer logs out, or refuses to log us on, for this reason.
    fn on_logout(&mut self, text: Option<&str>) {
        let _ = text;
    }

    /// Messages are missing: this one came instead of the expected.
    fn on_gap(&mut self, expected: u64, received: u64) {
        let _ = (expected, received);
    }
}

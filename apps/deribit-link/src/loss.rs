//! Reasons of lost and failed connections.

use tickpath_deribit::method::Method;
use tickpath_fix::session::{CloseReason, SendError};
use tickpath_web::WebError;

/// The reason why a connection was lost or failed, with a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// It failed to open, or broke.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The name service did not answer in time.
    #[error("no answer of the name service for {host} in time: check the name, or name the address")]
    NameService {
        /// The name looked up.
        host: String,
    },
    /// The venue closed it.
    #[error("{}{}{reason}", close_words(*.code), if .reason.is_empty() { "" } else { ": " })]
    Closed {
        /// Its close code, see [`Closed`](tickpath_web::Closed); 1006 if the connection broke without one.
        code: u16,
        /// Its reason. For 1006, the cause of the break; empty if the venue ended it without a close frame.
        reason: String,
    },
    /// A step of the login timed out.
    #[error("no answer to {method} in time")]
    Login {
        /// The step.
        method: Method,
    },
    /// A step of the login, or the renewal of its tokens, was refused.
    #[error("login refused: {why}")]
    Refused {
        /// The venue's code; `None` if its answer cannot be parsed.
        code: Option<i64>,
        /// The venue's message, and the remedy.
        why: String,
    },
    /// A FIX session ended.
    #[error("FIX: {why}{}{text}", if .text.is_empty() { "" } else { ": " })]
    Fix {
        /// The reason.
        why: CloseReason,
        /// The venue's text; empty if it gave none.
        text: String,
    },
    /// A FIX session could not begin: its Logon cannot be encoded.
    #[error("the FIX Logon cannot be sent: {0}")]
    Logon(#[from] SendError),
    /// No message from the venue for two heartbeat intervals: the connection is half open, or the venue
    /// hangs.
    #[error("the venue is silent")]
    Silence,
    /// The connection accepts no more bytes.
    #[error("the venue takes nothing any more")]
    Backpressured,
    /// The peer had closed the connection before a send.
    #[error("the connection is closed")]
    Gone,
    /// The client logged out, and the venue closed the connection.
    #[error("the session is over")]
    Logout,
    /// The client logged out, but the venue did not close the connection: it may have missed the logout.
    #[error("no answer to the logout in time: whether the venue took it is not known")]
    LogoutUnanswered,
}

/// Describes a close code (RFC 6455, 7.4.1).
fn close_words(code: u16) -> String {
    let words = match code {
        1000 => "its work is done",
        1001 => "it goes away",
        1002 => "a message broke the protocol",
        1005 => return "the venue closed the connection and says no reason (1005)".to_owned(),
        1006 => return "the connection broke without a word of the venue (1006)".to_owned(),
        1007 | 1003 => "a message was no text",
        1008 => "the peer's policy was violated",
        1009 => "a message was too long",
        1011 => "it has trouble",
        1012 => "it restarts",
        1013 => "it is too busy: later",
        _ => return format!("the venue closed the connection: {code}"),
    };
    format!("the venue closed the connection: {words} ({code})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_connection_is_told_in_words() {
        let closed = |code, reason: &str| Loss::Closed { code, reason: reason.to_owned() }.to_string();
        assert_eq!(closed(1006, ""), "the connection broke without a word of the venue (1006)");
        assert_eq!(
            closed(1001, "maintenance"),
            "the venue closed the connection: it goes away (1001): maintenance"
        );
        assert_eq!(closed(4000, ""), "the venue closed the connection: 4000");
    }
}

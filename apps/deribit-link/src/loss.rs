//! Why a connection was lost or never came to be.

use tickpath_deribit::method::Method;
use tickpath_fix::session::{CloseReason, SendError};
use tickpath_web::WebError;

/// Why a connection was lost or never came to be, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// It could not be made, or broke.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The name service did not answer in time.
    #[error("no answer of the name service for {host} in time: check the name, or name the address")]
    NameService {
        /// The name that was asked for.
        host: String,
    },
    /// The venue closed it.
    #[error("{}{}{reason}", close_words(*.code), if .reason.is_empty() { "" } else { ": " })]
    Closed {
        /// Its close code, see [`Closed`](tickpath_web::Closed); 1006 where the connection broke without one.
        code: u16,
        /// Its reason; of 1006 what broke the connection, empty where the venue ended it without a close frame.
        reason: String,
    },
    /// A step of the login had no reply.
    #[error("no answer to {method} in time")]
    Login {
        /// The step.
        method: Method,
    },
    /// A step of the login, or the renewal of its tokens, was refused.
    #[error("login refused: {why}")]
    Refused {
        /// The venue's code; none where its answer cannot be read.
        code: Option<i64>,
        /// What it said, and what to do.
        why: String,
    },
    /// A FIX session ended.
    #[error("FIX: {why}{}{text}", if .text.is_empty() { "" } else { ": " })]
    Fix {
        /// Why.
        why: CloseReason,
        /// What the venue said of it; empty where it said nothing.
        text: String,
    },
    /// A FIX session could not begin: its Logon cannot be written.
    #[error("the FIX Logon cannot be sent: {0}")]
    Logon(#[from] SendError),
    /// Not a word of the venue for twice the time between heartbeats: the connection is half open, or the venue stands
    /// still.
    #[error("the venue is silent")]
    Silence,
    /// It takes nothing any more.
    #[error("the venue takes nothing any more")]
    Backpressured,
    /// The other end was gone when something was sent.
    #[error("the connection is closed")]
    Gone,
    /// The client logged out, and the venue closed the connection.
    #[error("the session is over")]
    Logout,
    /// The client logged out, and the venue did not close the connection: whether it took the logout is not known.
    #[error("no answer to the logout in time: whether the venue took it is not known")]
    LogoutUnanswered,
}

/// What a close code says (RFC 6455, 7.4.1).
fn close_words(code: u16) -> String {
    let words = match code {
        1000 => "its work is done",
        1001 => "it goes away",
        1002 => "a message broke the protocol",
        1005 => return "the venue closed the connection and says no reason (1005)".to_owned(),
        1006 => return "the connection broke without a word of the venue (1006)".to_owned(),
        1007 | 1003 => "a message was no text",
        1008 => "a rule of its own was broken",
        1009 => "a message was too long",
        1011 => "it has trouble",
        1012 => "it starts anew",
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

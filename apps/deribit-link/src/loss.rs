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
    #[error("the venue closed the connection: {code}{}{reason}", if .reason.is_empty() { "" } else { " " })]
    Closed {
        /// Its close code, see [`Closed`](tickpath_web::Closed); 1006 where the connection broke without one.
        code: u16,
        /// Its reason.
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

//! Errors of the client port and of connections to it, with the remedy.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tickpath_gateway_protocol::frame::{FrameError, Refusal};
use tickpath_shm::ShmError;
use tickpath_shm::channel::ChannelError;

/// The client port cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DoorError {
    /// The socket cannot be opened: another gateway listens there, or the system refuses.
    #[error(transparent)]
    Socket(#[from] ChannelError),
    /// The broadcast segment cannot be created: another gateway uses its name, or there is no space.
    #[error(transparent)]
    Segment(#[from] ShmError),
    /// A path is too long to be sent to clients.
    #[error("{} is longer than 160 bytes, or not plain text: choose a shorter folder", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
}

/// The client is not connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No gateway listens at the socket, or this user may not connect to it.
    #[error("cannot call the gateway at {}: {error}; is it running?", whole(path).display())]
    Call {
        /// The socket.
        path: PathBuf,
        /// The system's error; part of the message, and therefore not its source, which would repeat it.
        error: io::Error,
    },
    /// The gateway refused the client.
    #[error("the gateway refuses: {}{}", refusal.reason, after(refusal))]
    Refused {
        /// The reason.
        refusal: Refusal,
    },
    /// The gateway closed the connection without an answer, or has ended.
    #[error("the gateway closed the connection: it may be stopping")]
    Closed,
    /// The gateway did not answer in time.
    #[error("the gateway gave no answer in {} ms: it may be overloaded", timeout.as_millis())]
    Silent {
        /// Time waited.
        timeout: std::time::Duration,
    },
    /// The answer is not a valid frame.
    #[error("what listens there is no gateway of this version: {0}")]
    Frame(#[from] FrameError),
    /// The rings of the gateway are unusable.
    #[error("the gateway's rings cannot be used: {0}")]
    Rings(#[from] ChannelError),
    /// The broadcast segment is unusable.
    #[error("the gateway's market data cannot be read: {0}")]
    Segment(#[from] ShmError),
    /// The system's error.
    #[error("cannot talk with the gateway: {0}")]
    System(#[from] io::Error),
}

/// Makes the path absolute, as the current folder is not part of the message.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl ConnectError {
    /// Whether another attempt may succeed; false for a wrong name, password or version.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        use tickpath_gateway_protocol::frame::RefusalReason as Reason;
        match self {
            ConnectError::Refused { refusal } => {
                matches!(refusal.reason, Reason::BANNED | Reason::TOO_MANY | Reason::STOPPING)
            }
            ConnectError::Frame(_) => false,
            _ => true,
        }
    }
}

fn after(refusal: &Refusal) -> String {
    match refusal.retry_after_ns.div_ceil(1_000_000_000) {
        0 => String::new(),
        seconds => format!(" (for {seconds} s)"),
    }
}

/// A request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no connection: poll until there is.
    #[error("there is no connection with the gateway")]
    NotConnected,
    /// The ring is full, as the gateway has not taken the earlier requests; try again later.
    #[error("the ring to the gateway is full: the gateway is busy or stuck")]
    Full,
}

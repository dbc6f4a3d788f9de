//! What can go wrong at the door, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tickpath_gateway_protocol::frame::{FrameError, Refusal};
use tickpath_shm::ShmError;
use tickpath_shm::channel::ChannelError;

/// Why a door was not opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DoorError {
    /// Of the socket: another gateway listens there, or the system refuses.
    #[error(transparent)]
    Socket(#[from] ChannelError),
    /// Of the broadcast segment: another gateway has its name, or there is no room.
    #[error(transparent)]
    Segment(#[from] ShmError),
    /// A path is too long to be told to clients.
    #[error("{} is longer than 160 bytes, or not plain text: choose a shorter folder", path.display())]
    Path {
        /// The path.
        path: PathBuf,
    },
}

/// Why a client is not connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nothing listens there, or this user may not call it.
    #[error("cannot call the gateway at {}: {error}; is it running?", whole(path).display())]
    Call {
        /// The socket.
        path: PathBuf,
        /// What the system says; it is part of the message, and no source that would be told once more.
        error: io::Error,
    },
    /// The gateway said no.
    #[error("the gateway refuses: {}{}", refusal.reason, after(refusal))]
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// It closed the connection without a word, or was gone.
    #[error("the gateway closed the connection: it may be stopping")]
    Closed,
    /// It gave no answer in time.
    #[error("the gateway gave no answer in {} ms: it may be overloaded", timeout.as_millis())]
    Silent {
        /// As long as was waited.
        timeout: std::time::Duration,
    },
    /// What it said is no answer.
    #[error("what listens there is no gateway of this version: {0}")]
    Frame(#[from] FrameError),
    /// Its rings cannot be used.
    #[error("the gateway's rings cannot be used: {0}")]
    Rings(#[from] ChannelError),
    /// Its broadcast segment cannot be used.
    #[error("the gateway's market data cannot be read: {0}")]
    Segment(#[from] ShmError),
    /// What the system says.
    #[error("cannot talk with the gateway: {0}")]
    System(#[from] io::Error),
}

/// A path that says more than where it was said.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl ConnectError {
    /// Whether another try may do better: not where name, password or version are wrong.
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

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no connection; poll until there is.
    #[error("there is no connection with the gateway")]
    NotConnected,
    /// The gateway has not taken the requests before it; try again later.
    #[error("the ring to the gateway is full: the gateway is busy or stuck")]
    Full,
}

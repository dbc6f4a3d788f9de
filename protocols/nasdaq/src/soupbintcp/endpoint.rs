//! What both ends of a connection have in common: when to speak, when to give up, and what goes wrong.

use tickpath_types::{Nanos, Sequence};

use super::{BufferTooShort, DataKind, FrameError, HEADER_LEN, encode_data_with};

/// A connection is over: close the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The other side sent what is no packet.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The other side sent a packet that it may not send, or may not send now.
    #[error("a packet '{}' has no place here: close the connection", *packet_type as char)]
    UnexpectedPacket {
        /// Its type byte.
        packet_type: u8,
    },
    /// The other side sent nothing for as long as it may; a client connects again.
    #[error("the other side was silent for {timeout}: close, and connect again")]
    PeerSilent {
        /// How long it may be silent.
        timeout: Nanos,
    },
    /// No login, or no answer to it, came in time.
    #[error("no login was completed within {timeout}: close the connection")]
    LoginTimeout {
        /// How long it may take.
        timeout: Nanos,
    },
    /// The connection had ended before.
    #[error("the connection has ended: close the socket")]
    Closed,
}

/// A message could not be framed; nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no login yet, or no longer.
    #[error("the session is not logged in: wait for the login, or connect again")]
    NotLoggedIn,
    /// The buffer is too short.
    #[error(transparent)]
    BufferTooShort(#[from] BufferTooShort),
}

/// When a side last spoke and last heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    last_sent: Nanos,
    last_received: Nanos,
    heartbeat_interval: Nanos,
    pub(super) peer_timeout: Nanos,
}

impl Timers {
    pub(super) fn new(now: Nanos, heartbeat_interval: Nanos, peer_timeout: Nanos) -> Self {
        Timers { last_sent: now, last_received: now, heartbeat_interval, peer_timeout }
    }

    #[inline]
    pub(super) fn sent(&mut self, now: Nanos) {
        self.last_sent = now;
    }

    #[inline]
    pub(super) fn received(&mut self, now: Nanos) {
        self.last_received = now;
    }

    pub(super) fn heartbeat_at(&self) -> Nanos {
        self.last_sent + self.heartbeat_interval
    }

    pub(super) fn silent_at(&self) -> Nanos {
        self.last_received + self.peer_timeout
    }

    pub(super) fn next(&self) -> Nanos {
        self.heartbeat_at().min(self.silent_at())
    }

    pub(super) fn check_peer(&self, now: Nanos) -> Result<(), SessionError> {
        if now < self.silent_at() {
            Ok(())
        } else {
            Err(SessionError::PeerSilent { timeout: self.peer_timeout })
        }
    }
}

/// The number after `sequence`. It stops at the largest, which a peer may claim to have reached.
#[inline]
pub(super) fn following(sequence: Sequence) -> Sequence {
    Sequence(sequence.0.saturating_add(1))
}

/// Writes a message that exists already.
#[inline]
pub(super) fn copied(room: &mut [u8], message: &[u8]) -> Result<usize, SendError> {
    let too_short = BufferTooShort { needed: HEADER_LEN + message.len(), len: HEADER_LEN + room.len() };
    room.get_mut(..message.len()).ok_or(too_short)?.copy_from_slice(message);
    Ok(message.len())
}

/// [`encode_data_with`] for a writer whose error is made of a [`SendError`].
#[inline]
pub(super) fn framed<E: From<SendError>>(
    out: &mut [u8],
    kind: DataKind,
    write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<usize, E> {
    enum Failure<E> {
        Frame(BufferTooShort),
        Write(E),
    }
    impl<E> From<BufferTooShort> for Failure<E> {
        fn from(error: BufferTooShort) -> Self {
            Failure::Frame(error)
        }
    }
    encode_data_with(out, kind, |room| write(room).map_err(Failure::Write)).map_err(|failure| match failure {
        Failure::Frame(error) => SendError::BufferTooShort(error).into(),
        Failure::Write(error) => error,
    })
}

//! Code that the client's and the server's side of a connection share: heartbeats, timeouts and errors.

use tickpath_types::{Nanos, Sequence};

use super::{CONTROL_LEN_MAX, FrameError, HEARTBEAT_INTERVAL, LOGIN_TIMEOUT, PEER_TIMEOUT, Packet, Session};

/// The reason why a connection is over: close the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The other side sent an invalid packet.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The other side sent a packet that it must not send in this state of the connection, or ever.
    #[error("a packet '{}' is not allowed here: close the connection", *packet_type as char)]
    UnexpectedPacket {
        /// The type byte of the packet.
        packet_type: u8,
    },
    /// The other side was silent until the timeout; a client connects again.
    #[error("the other side was silent for {timeout}: close, and connect again")]
    PeerSilent {
        /// Maximum duration of the silence.
        timeout: Nanos,
    },
    /// The login was not completed in time.
    #[error("no login was completed within {timeout}: close the connection")]
    LoginTimeout {
        /// Maximum time from the connection's start to the login.
        timeout: Nanos,
    },
    /// The connection had already ended.
    #[error("the connection has ended: close the socket")]
    Closed,
}

/// The state of the connection at one side: the client's or the server's.
pub(super) trait State: Copy {
    /// The state once the connection is over.
    const CLOSED: Self;
}

/// Data that both sides of a connection have: state, timers, session and sequence number.
#[derive(Clone, Debug)]
pub(super) struct Endpoint<S> {
    pub(super) state: S,
    started: Nanos,
    last_sent: Nanos,
    last_received: Nanos,
    /// Duration of the other side's silence after which the connection ends.
    pub(super) peer_timeout: Nanos,
    pub(super) session: Session,
    pub(super) next_sequence: Sequence,
}

impl<S: State> Endpoint<S> {
    pub(super) fn new(now: Nanos, state: S, session: Session, next: Sequence) -> Self {
        Endpoint {
            state,
            started: now,
            last_sent: now,
            last_received: now,
            peer_timeout: PEER_TIMEOUT,
            session,
            next_sequence: next,
        }
    }

    #[cold]
    pub(super) fn close(&mut self, error: SessionError) -> SessionError {
        self.state = S::CLOSED;
        error
    }

    pub(super) fn heartbeat_at(&self) -> Nanos {
        self.last_sent + HEARTBEAT_INTERVAL
    }

    fn idle_deadline(&self) -> Nanos {
        self.last_received + self.peer_timeout
    }

    pub(super) fn check_login(&mut self, now: Nanos) -> Result<(), SessionError> {
        if now < self.started + LOGIN_TIMEOUT {
            return Ok(());
        }
        Err(self.close(SessionError::LoginTimeout { timeout: LOGIN_TIMEOUT }))
    }

    pub(super) fn check_peer(&mut self, now: Nanos) -> Result<(), SessionError> {
        if now < self.idle_deadline() {
            return Ok(());
        }
        Err(self.close(SessionError::PeerSilent { timeout: self.peer_timeout }))
    }

    /// Writes a control packet and enters `state`; returns the packet's length.
    pub(super) fn transmit(&mut self, now: Nanos, packet: &Packet<'_>, state: S, out: &mut [u8]) -> usize {
        assert!(out.len() >= CONTROL_LEN_MAX, "control packets need room for {CONTROL_LEN_MAX} bytes");
        let len = packet.encode(out).expect("no control packet is longer than CONTROL_LEN_MAX");
        self.state = state;
        self.sent(now);
        len
    }

    #[inline]
    pub(super) fn sent(&mut self, now: Nanos) {
        self.last_sent = now;
    }

    #[inline]
    pub(super) fn received(&mut self, now: Nanos) {
        self.last_received = now;
    }

    /// Returns the next sequence number and increments it. Saturates: a server may announce the maximum.
    #[inline]
    pub(super) fn take_sequence(&mut self) -> Sequence {
        let next = Sequence(self.next_sequence.0.saturating_add(1));
        std::mem::replace(&mut self.next_sequence, next)
    }
}

//! What both ends of a connection have in common: when to speak, when to give up, and what goes wrong.

use tickpath_types::{Nanos, Sequence};

use super::{CONTROL_LEN_MAX, FrameError, Packet, Session};

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

/// The state of one end.
pub(super) trait State: Copy {
    /// The connection is over.
    const CLOSED: Self;
}

/// The part that both ends of a connection share: state, timers, session and numbers.
#[derive(Clone, Debug)]
pub(super) struct Endpoint<S> {
    pub(super) state: S,
    pub(super) started: Nanos,
    last_sent: Nanos,
    last_received: Nanos,
    heartbeat_interval: Nanos,
    pub(super) peer_timeout: Nanos,
    login_timeout: Nanos,
    pub(super) session: Session,
    pub(super) next_sequence: Sequence,
}

impl<S: State> Endpoint<S> {
    /// `[heartbeat_interval, peer_timeout, login_timeout]`
    pub(super) fn new(now: Nanos, state: S, timeouts: [Nanos; 3], session: Session, next: Sequence) -> Self {
        let [heartbeat_interval, peer_timeout, login_timeout] = timeouts;
        Endpoint {
            state,
            started: now,
            last_sent: now,
            last_received: now,
            heartbeat_interval,
            peer_timeout,
            login_timeout,
            session,
            next_sequence: next,
        }
    }

    #[cold]
    pub(super) fn close(&mut self, error: SessionError) -> SessionError {
        self.state = S::CLOSED;
        error
    }

    pub(super) fn login_deadline(&self) -> Nanos {
        self.started + self.login_timeout
    }

    pub(super) fn heartbeat_at(&self) -> Nanos {
        self.last_sent + self.heartbeat_interval
    }

    fn silent_at(&self) -> Nanos {
        self.last_received + self.peer_timeout
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.heartbeat_at().min(self.silent_at())
    }

    pub(super) fn check_login(&mut self, now: Nanos) -> Result<(), SessionError> {
        if now < self.login_deadline() {
            return Ok(());
        }
        Err(self.close(SessionError::LoginTimeout { timeout: self.login_timeout }))
    }

    pub(super) fn check_peer(&mut self, now: Nanos) -> Result<(), SessionError> {
        if now < self.silent_at() {
            return Ok(());
        }
        Err(self.close(SessionError::PeerSilent { timeout: self.peer_timeout }))
    }

    /// Writes a control packet, after which the side is in another state; its length.
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

    /// Takes the number of a message. Numbers stop at the largest, which a peer may claim to have reached.
    #[inline]
    pub(super) fn take_sequence(&mut self) -> Sequence {
        let next = Sequence(self.next_sequence.0.saturating_add(1));
        std::mem::replace(&mut self.next_sequence, next)
    }
}

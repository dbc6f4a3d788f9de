//! The client's side of a SoupBinTCP connection.

use tickpath_types::{Nanos, Sequence};

use super::endpoint::{self, Endpoint};
use super::packet::encode_data_with;
use super::{
    LoginAccepted, LoginRejectReason, LoginRequest, Packet, SendError, Session, SessionError, next_packet,
};

/// A packet from the server, as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The login was accepted.
    LoginAccepted {
        /// Name of the session.
        session: Session,
        /// Sequence number of the next message, possibly higher than requested.
        next_sequence: Sequence,
    },
    /// The login was refused; the connection is over.
    LoginRejected(LoginRejectReason),
    /// The next sequenced message.
    Message {
        /// Sequence number of the message.
        sequence: Sequence,
        /// The message.
        message: &'a [u8],
    },
    /// A message without a sequence number; servers send it only in protocol editions 4.x.
    Unsequenced(&'a [u8]),
    /// A heartbeat of the server.
    Heartbeat,
    /// A debug packet: human-readable text.
    Debug(&'a [u8]),
    /// The session has ended: no message will follow in it, and this connection is over.
    EndOfSession,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The login is not yet sent.
    Connected,
    LoginSent,
    Active,
    /// The logout is not yet sent.
    LoggingOut,
    Closed,
}

impl endpoint::State for State {
    const CLOSED: State = State::Closed;
}

/// The client's side of one connection, created once TCP is connected.
///
/// Performs no IO and reads no clock. After a lost connection, create another session with the login request
/// that [`resume`](Self::resume) returns.
#[derive(Clone, Debug)]
pub struct ClientSession {
    login: LoginRequest,
    endpoint: Endpoint<State>,
}

impl ClientSession {
    /// Creates a session on a connection established at `now`.
    #[must_use]
    pub fn new(login: LoginRequest, now: Nanos) -> Self {
        ClientSession { login, endpoint: Endpoint::new(now, State::Connected, login.session, login.sequence) }
    }

    /// Returns a login request for a new connection; it resumes after the last sequenced message received.
    #[must_use]
    pub fn resume(&self) -> LoginRequest {
        LoginRequest { session: self.endpoint.session, sequence: self.endpoint.next_sequence, ..self.login }
    }

    /// Handles the packet at the start of `bytes`, which must be all received bytes not yet consumed. Returns
    /// the packet's event and the number of bytes consumed, or `None` until the packet is complete. Call it
    /// until it returns `None`.
    ///
    /// # Errors
    /// [`SessionError`]: close the socket.
    #[inline]
    pub fn handle_bytes<'a>(
        &mut self,
        now: Nanos,
        bytes: &'a [u8],
    ) -> Result<Option<(ClientEvent<'a>, usize)>, SessionError> {
        if self.endpoint.state == State::Closed {
            return Err(SessionError::Closed);
        }
        let (packet, used) = match next_packet(bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.endpoint.close(error.into())),
        };
        self.endpoint.received(now);
        let event = self.handle_packet(packet)?;
        Ok(Some((event, used)))
    }

    #[inline]
    fn handle_packet<'a>(&mut self, packet: Packet<'a>) -> Result<ClientEvent<'a>, SessionError> {
        let is_logged_in = matches!(self.endpoint.state, State::Active | State::LoggingOut);
        Ok(match packet {
            Packet::SequencedData(message) if is_logged_in => {
                ClientEvent::Message { sequence: self.endpoint.take_sequence(), message }
            }
            Packet::UnsequencedData(message) if is_logged_in => ClientEvent::Unsequenced(message),
            Packet::ServerHeartbeat if is_logged_in => ClientEvent::Heartbeat,
            Packet::EndOfSession if is_logged_in => {
                self.endpoint.state = State::Closed;
                ClientEvent::EndOfSession
            }
            Packet::LoginAccepted(accepted) if self.endpoint.state == State::LoginSent => {
                self.endpoint.state = State::Active;
                let LoginAccepted { session, next_sequence } = accepted;
                (self.endpoint.session, self.endpoint.next_sequence) = (session, next_sequence);
                ClientEvent::LoginAccepted { session, next_sequence }
            }
            Packet::LoginRejected(reason) if self.endpoint.state == State::LoginSent => {
                self.endpoint.state = State::Closed;
                ClientEvent::LoginRejected(reason)
            }
            Packet::Debug(text) => ClientEvent::Debug(text),
            other => {
                let packet_type = other.packet_type();
                return Err(self.endpoint.close(SessionError::UnexpectedPacket { packet_type }));
            }
        })
    }

    /// Ends the connection if the server was silent for too long or did not answer the login in time.
    ///
    /// # Errors
    /// [`SessionError`]: close the socket and connect again.
    pub fn handle_timeout(&mut self, now: Nanos) -> Result<(), SessionError> {
        match self.endpoint.state {
            State::Closed => Err(SessionError::Closed),
            State::Connected | State::LoginSent => self.endpoint.check_login(now),
            State::Active | State::LoggingOut => self.endpoint.check_peer(now),
        }
    }

    /// Writes the next control packet that is due - login, heartbeat, logout - and returns its length, or 0
    /// if none is due. Call it after each `handle_*`.
    ///
    /// # Panics
    /// When `out` is shorter than [`CONTROL_LEN_MAX`](super::CONTROL_LEN_MAX).
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut [u8]) -> usize {
        let (packet, state) = match self.endpoint.state {
            State::Connected => (Packet::LoginRequest(self.login), State::LoginSent),
            State::LoggingOut => (Packet::LogoutRequest, State::Closed),
            State::Active if now >= self.endpoint.heartbeat_at() => (Packet::ClientHeartbeat, State::Active),
            State::Active | State::LoginSent | State::Closed => return 0,
        };
        self.endpoint.transmit(now, &packet, state, out)
    }

    /// Frames an unsequenced message to the server; it is lost if the connection breaks. `write` writes the
    /// message at the start of the buffer that it receives, and returns the message's length. Returns the
    /// packet's length; after sending the packet, call [`sent`](Self::sent).
    ///
    /// # Errors
    /// The error of `write`, or [`SendError`]: nothing was framed.
    #[inline]
    pub fn frame_message_with<E: From<SendError>>(
        &self,
        out: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        if self.endpoint.state != State::Active {
            return Err(SendError::NotLoggedIn.into());
        }
        encode_data_with(out, b'U', write)
    }

    /// Records that messages were sent at `now`, which postpones the next heartbeat.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.endpoint.sent(now);
    }

    /// Logs out: the next [`poll_transmit`](Self::poll_transmit) writes the logout and ends the connection.
    /// If no login was sent yet, the connection ends at once.
    pub fn logout(&mut self) {
        self.endpoint.state = match self.endpoint.state {
            State::Active | State::LoginSent => State::LoggingOut,
            _ => State::Closed,
        };
    }

    /// Returns true while messages may be sent: after the login was accepted.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.endpoint.state == State::Active
    }

    /// Returns true when the connection is over and the socket must be closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.endpoint.state == State::Closed
    }

    /// Returns the name of the session; before the login is accepted, the requested name.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.endpoint.session
    }

    /// Returns the sequence number of the next sequenced message from the server.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.endpoint.next_sequence
    }
}

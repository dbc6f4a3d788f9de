//! The server's side of a SoupBinTCP connection.

use tickpath_types::{Nanos, Sequence};

use super::endpoint::{self, Endpoint};
use super::packet::encode_data_with;
use super::{
    BufferTooShort, HEADER_LEN, LoginAccepted, LoginRejectReason, LoginRequest, PEER_TIMEOUT_MAX,
    PEER_TIMEOUT_MIN, Packet, SendError, Session, SessionError, next_packet,
};

/// An event for the application: one packet from the client.
#[derive(Clone, Copy, Debug)]
pub enum ServerEvent<'a> {
    /// A login request: answer by [`ServerSession::accept`] or [`ServerSession::reject`].
    LoginRequest(LoginRequest),
    /// An unsequenced message, such as an order.
    Message(&'a [u8]),
    /// A heartbeat.
    Heartbeat,
    /// Human-readable text.
    Debug(&'a [u8]),
    /// A logout request; the connection is over.
    LogoutRequest,
}

#[derive(Clone, Copy, Debug)]
enum State {
    AwaitingLogin,
    /// The application has received the login request, but has not answered it.
    Deciding,
    /// The login was accepted, but the acceptance is not yet sent.
    Accepting,
    Active,
    /// The login was refused, but the refusal is not yet sent.
    Rejecting(LoginRejectReason),
    /// The session was ended, but its end is not yet sent.
    Ending,
    Closed,
}

impl endpoint::State for State {
    const CLOSED: State = State::Closed;
}

/// The server's side of one connection, from the moment that TCP accepted it.
///
/// Performs no IO, reads no clock and keeps no messages. After [`accept`](Self::accept) the application sends
/// the messages that the client missed, then new ones, both by [`encode_message`](Self::encode_message).
#[derive(Clone, Debug)]
pub struct ServerSession {
    endpoint: Endpoint<State>,
}

impl ServerSession {
    /// Creates the server's side of a TCP connection that was accepted at `now`.
    #[must_use]
    pub fn new(now: Nanos) -> Self {
        ServerSession { endpoint: Endpoint::new(now, State::AwaitingLogin, Session::BLANK, Sequence(1)) }
    }

    /// Handles the packet at the start of `bytes`, which must hold all received bytes not yet consumed.
    /// Returns the event and the number of bytes consumed; `None` if the packet is incomplete, the login
    /// awaits the application's answer, or the connection is ending. Call it until it returns `None`.
    ///
    /// # Errors
    /// [`SessionError`]: close the socket.
    #[inline]
    pub fn handle_bytes<'a>(
        &mut self,
        now: Nanos,
        bytes: &'a [u8],
    ) -> Result<Option<(ServerEvent<'a>, usize)>, SessionError> {
        match self.endpoint.state {
            State::Closed => return Err(SessionError::Closed),
            State::Deciding | State::Rejecting(_) | State::Ending => return Ok(None),
            State::AwaitingLogin | State::Accepting | State::Active => {}
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
    fn handle_packet<'a>(&mut self, packet: Packet<'a>) -> Result<ServerEvent<'a>, SessionError> {
        let awaits_login = matches!(self.endpoint.state, State::AwaitingLogin);
        Ok(match packet {
            Packet::UnsequencedData(message) if !awaits_login => ServerEvent::Message(message),
            Packet::ClientHeartbeat if !awaits_login => ServerEvent::Heartbeat,
            Packet::LoginRequest(login) if awaits_login => {
                self.endpoint.state = State::Deciding;
                if let Some(timeout) = login.heartbeat_timeout {
                    self.endpoint.peer_timeout = timeout.clamp(PEER_TIMEOUT_MIN, PEER_TIMEOUT_MAX);
                }
                ServerEvent::LoginRequest(login)
            }
            Packet::LogoutRequest => {
                self.endpoint.state = State::Closed;
                ServerEvent::LogoutRequest
            }
            Packet::Debug(text) => ServerEvent::Debug(text),
            other => {
                let packet_type = other.packet_type();
                return Err(self.endpoint.close(SessionError::UnexpectedPacket { packet_type }));
            }
        })
    }

    /// Accepts the pending login; the next message to the client gets sequence number `next_sequence`.
    /// Without a pending login it has no effect and returns false.
    pub fn accept(&mut self, session: Session, next_sequence: Sequence) -> bool {
        let waits = matches!(self.endpoint.state, State::Deciding);
        if waits {
            self.endpoint.state = State::Accepting;
            self.endpoint.session = session;
            self.endpoint.next_sequence = next_sequence;
        }
        waits
    }

    /// Refuses the pending login; the connection is over once the refusal is sent. Without a pending login it
    /// has no effect and returns false.
    pub fn reject(&mut self, reason: LoginRejectReason) -> bool {
        let waits = matches!(self.endpoint.state, State::Deciding);
        if waits {
            self.endpoint.state = State::Rejecting(reason);
        }
        waits
    }

    /// Ends the session: the connection is over once the End of Session packet is sent, or at once if no
    /// login was accepted.
    pub fn end_session(&mut self) {
        self.endpoint.state = match self.endpoint.state {
            State::Accepting | State::Active => State::Ending,
            _ => State::Closed,
        };
    }

    /// Closes the connection if the client was silent too long, or no login was completed in time.
    ///
    /// # Errors
    /// [`SessionError`]: close the socket.
    pub fn handle_timeout(&mut self, now: Nanos) -> Result<(), SessionError> {
        match self.endpoint.state {
            State::Closed => Err(SessionError::Closed),
            State::AwaitingLogin | State::Deciding => self.endpoint.check_login(now),
            State::Accepting | State::Active | State::Rejecting(_) | State::Ending => {
                self.endpoint.check_peer(now)
            }
        }
    }

    /// Writes the next control packet that is due - login answer, heartbeat, end of session - and returns its
    /// length, or 0 if none is due. Call it after each `handle_*` and before messages.
    ///
    /// # Panics
    /// When `out` is shorter than [`CONTROL_LEN_MAX`](super::CONTROL_LEN_MAX).
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut [u8]) -> usize {
        let (packet, state) = match self.endpoint.state {
            State::Accepting => {
                let accepted = LoginAccepted {
                    session: self.endpoint.session,
                    next_sequence: self.endpoint.next_sequence,
                };
                (Packet::LoginAccepted(accepted), State::Active)
            }
            State::Active if now >= self.endpoint.heartbeat_at() => (Packet::ServerHeartbeat, State::Active),
            State::Rejecting(reason) => (Packet::LoginRejected(reason), State::Closed),
            State::Ending => (Packet::EndOfSession, State::Closed),
            State::AwaitingLogin | State::Deciding | State::Active | State::Closed => return 0,
        };
        self.endpoint.transmit(now, &packet, state, out)
    }

    /// Writes `message` to `out` as the next Sequenced Data packet; returns the packet's length and the
    /// message's sequence number.
    ///
    /// # Errors
    /// [`SendError`]: nothing was framed and no sequence number used. Messages can be framed only after
    /// [`poll_transmit`](Self::poll_transmit) has written the acceptance of the login.
    #[inline]
    pub fn encode_message(
        &mut self,
        now: Nanos,
        out: &mut [u8],
        message: &[u8],
    ) -> Result<(usize, Sequence), SendError> {
        self.encode_message_with(now, out, |space| {
            let (needed, len) = (HEADER_LEN + message.len(), HEADER_LEN + space.len());
            let too_short = BufferTooShort { needed, len };
            space.get_mut(..message.len()).ok_or(too_short)?.copy_from_slice(message);
            Ok(message.len())
        })
    }

    /// As [`encode_message`](Self::encode_message), but `write` writes the message at the start of the buffer
    /// that it receives, and returns the message's length.
    ///
    /// # Errors
    /// The error of `write`, or [`SendError`]: nothing was framed and no sequence number used.
    #[inline]
    pub fn encode_message_with<E: From<SendError>>(
        &mut self,
        now: Nanos,
        out: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(usize, Sequence), E> {
        if !self.is_active() {
            return Err(SendError::NotLoggedIn.into());
        }
        let len = encode_data_with(out, b'S', write)?;
        self.endpoint.sent(now);
        Ok((len, self.endpoint.take_sequence()))
    }

    /// Returns true while messages can be sent: from the written login acceptance to the end of the session.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self.endpoint.state, State::Active)
    }

    /// Returns true when the connection is over and the application must close the socket.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.endpoint.state, State::Closed)
    }

    /// Returns the name of the session that the client joined; blank until a login is accepted.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.endpoint.session
    }

    /// Returns the sequence number of the next message to the client.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.endpoint.next_sequence
    }
}

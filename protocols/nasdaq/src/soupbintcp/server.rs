//! The server's end of a connection.

use tickpath_types::{Nanos, Sequence};

use super::endpoint::{self, Endpoint};
use super::packet::encode_data_with;
use super::{
    BufferTooShort, HEADER_LEN, LoginAccepted, LoginRejectReason, LoginRequest, PEER_TIMEOUT_MAX,
    PEER_TIMEOUT_MIN, Packet, SendError, Session, SessionError, next_packet,
};

/// What the client said.
#[derive(Clone, Copy, Debug)]
pub enum ServerEvent<'a> {
    /// It wants to log in: answer by [`ServerSession::accept`] or [`ServerSession::reject`].
    LoginRequest(LoginRequest),
    /// A message.
    Message(&'a [u8]),
    /// The line is alive.
    Heartbeat,
    /// Text for people.
    Debug(&'a [u8]),
    /// It logs out; the connection is over.
    LogoutRequest,
}

#[derive(Clone, Copy, Debug)]
enum State {
    AwaitingLogin,
    /// The application has the login and has not answered.
    Deciding,
    /// The acceptance is still to be sent.
    Accepting,
    Active,
    /// The refusal is still to be sent.
    Rejecting(LoginRejectReason),
    /// The end of the session is still to be sent.
    Ending,
    Closed,
}

impl endpoint::State for State {
    const CLOSED: State = State::Closed;
}

/// The server's end of one connection, from the moment that TCP accepted it.
///
/// Performs no IO, reads no clock, and keeps no message: after [`accept`](Self::accept) the application
/// sends what the client has missed, then what is new, by the same
/// [`encode_message`](Self::encode_message).
#[derive(Clone, Debug)]
pub struct ServerSession {
    endpoint: Endpoint<State>,
}

impl ServerSession {
    /// A connection that was accepted at `now`.
    #[must_use]
    pub fn new(now: Nanos) -> Self {
        ServerSession { endpoint: Endpoint::new(now, State::AwaitingLogin, Session::BLANK, Sequence(1)) }
    }

    /// Takes one packet from the start of `bytes`, which are all that was received and not yet
    /// consumed: the event and how many bytes it took, or `None` until a whole packet is there. To be
    /// repeated until `None`. While a login waits for its verdict, later bytes wait too.
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

    /// Lets the client in: messages to it are numbered from `next_sequence`. Without a login that waits
    /// for a verdict it does nothing and returns false.
    pub fn accept(&mut self, session: Session, next_sequence: Sequence) -> bool {
        let waits = matches!(self.endpoint.state, State::Deciding);
        if waits {
            self.endpoint.state = State::Accepting;
            self.endpoint.session = session;
            self.endpoint.next_sequence = next_sequence;
        }
        waits
    }

    /// Turns the client away; the connection is over once that is sent. Without a login that waits for
    /// a verdict it does nothing and returns false.
    pub fn reject(&mut self, reason: LoginRejectReason) -> bool {
        let waits = matches!(self.endpoint.state, State::Deciding);
        if waits {
            self.endpoint.state = State::Rejecting(reason);
        }
        waits
    }

    /// Ends the session for good; the connection is over once that is sent.
    pub fn end_session(&mut self) {
        self.endpoint.state = match self.endpoint.state {
            State::Accepting | State::Active => State::Ending,
            _ => State::Closed,
        };
    }

    /// Gives up when the client was silent, or did not log in, for as long as it may.
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

    /// Writes the next control packet that is due - the verdict, a heartbeat, the end of the session -
    /// and returns its length, 0 when none is. To be called after each `handle_*` and before messages.
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

    /// Frames the next numbered message; returns the packet's length and the message's number.
    ///
    /// # Errors
    /// [`SendError`]: nothing was sent and no number used. A login that was accepted counts once
    /// [`poll_transmit`](Self::poll_transmit) has said so.
    #[inline]
    pub fn encode_message(
        &mut self,
        now: Nanos,
        out: &mut [u8],
        message: &[u8],
    ) -> Result<(usize, Sequence), SendError> {
        self.encode_message_with(now, out, |room| {
            let (needed, len) = (HEADER_LEN + message.len(), HEADER_LEN + room.len());
            let too_short = BufferTooShort { needed, len };
            room.get_mut(..message.len()).ok_or(too_short)?.copy_from_slice(message);
            Ok(message.len())
        })
    }

    /// As [`encode_message`](Self::encode_message), of a message that `write` puts at the start of the
    /// room that it is given and whose length it returns.
    ///
    /// # Errors
    /// What `write` returns, or [`SendError`]: nothing was sent and no number used.
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

    /// True when the login was accepted and the client was told: messages may be sent.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self.endpoint.state, State::Active)
    }

    /// True when the connection is over and the socket is to be closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.endpoint.state, State::Closed)
    }

    /// The session logged in to; blank before.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.endpoint.session
    }

    /// Number that the next message to the client will have.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.endpoint.next_sequence
    }
}

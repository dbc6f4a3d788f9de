//! The client's end of a connection.

use tickpath_types::{Nanos, Sequence};

use super::endpoint::{Timers, copied, following, framed};
use super::{
    CONTROL_LEN_MAX, DataKind, HEARTBEAT_INTERVAL, LOGIN_TIMEOUT, LoginRejectReason, LoginRequest,
    PEER_TIMEOUT, Packet, Password, SendError, Session, SessionError, Username, next_packet,
};

/// How a client logs in.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig {
    /// What it says of itself and where it wants to go on.
    pub login: LoginRequest,
    /// After how much silence of its own it sends a heartbeat.
    pub heartbeat_interval: Nanos,
    /// After how much silence of the server it gives up.
    pub peer_timeout: Nanos,
    /// How long it waits for the answer to its login.
    pub login_timeout: Nanos,
}

impl ClientConfig {
    /// Logs in to the current session from its start, by edition 3.00 and with the specification's
    /// times; `None` when the name is longer than 6, the password longer than 10, or either not ASCII.
    #[must_use]
    pub fn new(username: &str, password: &str) -> Option<ClientConfig> {
        Some(ClientConfig {
            login: LoginRequest {
                username: Username::new(username)?,
                password: Password::new(password)?,
                session: Session::BLANK,
                sequence: Sequence(1),
                heartbeat_timeout: None,
            },
            heartbeat_interval: HEARTBEAT_INTERVAL,
            peer_timeout: PEER_TIMEOUT,
            login_timeout: LOGIN_TIMEOUT,
        })
    }
}

/// What the server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The login stands.
    LoginAccepted {
        /// The session.
        session: Session,
        /// Number of the next message; may be later than was asked for, never trust it to be equal.
        next_sequence: Sequence,
    },
    /// The login was refused; the connection is over.
    LoginRejected(LoginRejectReason),
    /// The next numbered message.
    Message {
        /// Its number.
        sequence: Sequence,
        /// The message.
        message: &'a [u8],
    },
    /// A message without a number, in editions 4.x.
    Unsequenced(&'a [u8]),
    /// The line is alive.
    Heartbeat,
    /// Text for people.
    Debug(&'a [u8]),
    /// The session is over for good, and with it the connection.
    EndOfSession,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The login is still to be sent.
    Connected,
    LoginSent,
    Active,
    /// The logout is still to be sent.
    LoggingOut,
    Closed,
}

/// The client's end of one connection, from the moment that TCP is connected.
///
/// Performs no IO and reads no clock. After a lost connection, make another of [`resume`](Self::resume).
#[derive(Clone, Debug)]
pub struct ClientSession {
    config: ClientConfig,
    state: State,
    started: Nanos,
    timers: Timers,
    session: Session,
    next_sequence: Sequence,
}

impl ClientSession {
    /// A connection that was made at `now`.
    #[must_use]
    pub fn new(config: ClientConfig, now: Nanos) -> Self {
        ClientSession {
            config,
            state: State::Connected,
            started: now,
            timers: Timers::new(now, config.heartbeat_interval, config.peer_timeout),
            session: config.login.session,
            next_sequence: config.login.sequence,
        }
    }

    /// How to log in again so that no numbered message is missed or seen twice.
    #[must_use]
    pub fn resume(&self) -> ClientConfig {
        let mut config = self.config;
        config.login.session = self.session;
        config.login.sequence = self.next_sequence;
        config
    }

    /// Takes one packet from the start of `bytes`, which are all that was received and not yet
    /// consumed: the event and how many bytes it took, or `None` until a whole packet is there. To be
    /// repeated until `None`.
    ///
    /// # Errors
    /// [`SessionError`]: close the socket.
    #[inline]
    pub fn handle_bytes<'a>(
        &mut self,
        now: Nanos,
        bytes: &'a [u8],
    ) -> Result<Option<(ClientEvent<'a>, usize)>, SessionError> {
        if self.state == State::Closed {
            return Err(SessionError::Closed);
        }
        let (packet, used) = match next_packet(bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.close(error.into())),
        };
        self.timers.received(now);
        let event = self.handle_packet(packet)?;
        Ok(Some((event, used)))
    }

    #[inline]
    fn handle_packet<'a>(&mut self, packet: Packet<'a>) -> Result<ClientEvent<'a>, SessionError> {
        let is_logged_in = matches!(self.state, State::Active | State::LoggingOut);
        Ok(match packet {
            Packet::SequencedData(message) if is_logged_in => {
                let sequence = self.next_sequence;
                self.next_sequence = following(sequence);
                ClientEvent::Message { sequence, message }
            }
            Packet::UnsequencedData(message) if is_logged_in => ClientEvent::Unsequenced(message),
            Packet::ServerHeartbeat if is_logged_in => ClientEvent::Heartbeat,
            Packet::EndOfSession if is_logged_in => {
                self.state = State::Closed;
                ClientEvent::EndOfSession
            }
            Packet::LoginAccepted(accepted) if self.state == State::LoginSent => {
                self.state = State::Active;
                self.session = accepted.session;
                self.next_sequence = accepted.next_sequence;
                ClientEvent::LoginAccepted {
                    session: accepted.session,
                    next_sequence: accepted.next_sequence,
                }
            }
            Packet::LoginRejected(reason) if self.state == State::LoginSent => {
                self.state = State::Closed;
                ClientEvent::LoginRejected(reason)
            }
            Packet::Debug(text) => ClientEvent::Debug(text),
            other => {
                let packet_type = other.packet_type();
                return Err(self.close(SessionError::UnexpectedPacket { packet_type }));
            }
        })
    }

    /// Gives up when the server was silent, or did not answer the login, for as long as it may.
    ///
    /// # Errors
    /// [`SessionError`]: close the socket and connect again.
    pub fn handle_timeout(&mut self, now: Nanos) -> Result<(), SessionError> {
        match self.state {
            State::Closed => Err(SessionError::Closed),
            State::Connected | State::LoginSent if now >= self.login_deadline() => {
                let timeout = self.config.login_timeout;
                Err(self.close(SessionError::LoginTimeout { timeout }))
            }
            State::Connected | State::LoginSent => Ok(()),
            State::Active | State::LoggingOut => {
                self.timers.check_peer(now).map_err(|error| self.close(error))
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) next, or `None` when the connection is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        match self.state {
            State::Closed => None,
            State::Connected | State::LoggingOut => Some(self.started),
            State::LoginSent => Some(self.login_deadline()),
            State::Active => Some(self.timers.next()),
        }
    }

    /// Writes the next control packet that is due - login, heartbeat, logout - and returns its length,
    /// 0 when none is. To be called after each `handle_*`.
    ///
    /// # Panics
    /// When `out` is shorter than [`CONTROL_LEN_MAX`].
    pub fn poll_transmit(&mut self, now: Nanos, out: &mut [u8]) -> usize {
        let (packet, state) = match self.state {
            State::Connected => (Packet::LoginRequest(self.config.login), State::LoginSent),
            State::LoggingOut => (Packet::LogoutRequest, State::Closed),
            State::Active if now >= self.timers.heartbeat_at() => (Packet::ClientHeartbeat, State::Active),
            State::Active | State::LoginSent | State::Closed => return 0,
        };
        assert!(out.len() >= CONTROL_LEN_MAX, "control packets need room for {CONTROL_LEN_MAX} bytes");
        let len = packet.encode(out).expect("no control packet is longer than CONTROL_LEN_MAX");
        self.state = state;
        self.timers.sent(now);
        len
    }

    /// Frames a message to the server, which is lost if the connection is; returns the packet's length.
    ///
    /// # Errors
    /// [`SendError`]: nothing was sent.
    #[inline]
    pub fn encode_message(&mut self, now: Nanos, out: &mut [u8], message: &[u8]) -> Result<usize, SendError> {
        self.encode_message_with(now, out, |room| copied(room, message))
    }

    /// As [`encode_message`](Self::encode_message), of a message that `write` puts at the start of the
    /// room that it is given and whose length it returns.
    ///
    /// # Errors
    /// What `write` returns, or [`SendError`]: nothing was sent.
    #[inline]
    pub fn encode_message_with<E: From<SendError>>(
        &mut self,
        now: Nanos,
        out: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let len = self.frame_message_with(out, write)?;
        self.sent(now);
        Ok(len)
    }

    /// As [`encode_message_with`](Self::encode_message_with), without counting it as sent: that is for
    /// [`sent`](Self::sent) to do.
    ///
    /// # Errors
    /// As [`encode_message_with`](Self::encode_message_with).
    #[inline]
    pub fn frame_message_with<E: From<SendError>>(
        &self,
        out: &mut [u8],
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        if self.state != State::Active {
            return Err(SendError::NotLoggedIn.into());
        }
        framed(out, DataKind::Unsequenced, write)
    }

    /// Messages were sent just now: no heartbeat is due for a while.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.timers.sent(now);
    }

    /// Logs out: the next [`poll_transmit`](Self::poll_transmit) says so and the connection is over.
    pub fn logout(&mut self) {
        self.state = match self.state {
            State::Active | State::LoginSent => State::LoggingOut,
            _ => State::Closed,
        };
    }

    /// True when the login stands and messages may be sent.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// True when the connection is over and the socket is to be closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The session; before the login stands, the one that was asked for.
    #[must_use]
    pub const fn session(&self) -> Session {
        self.session
    }

    /// Number that the next numbered message will have.
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.next_sequence
    }

    fn login_deadline(&self) -> Nanos {
        self.started + self.config.login_timeout
    }

    #[cold]
    fn close(&mut self, error: SessionError) -> SessionError {
        self.state = State::Closed;
        error
    }
}

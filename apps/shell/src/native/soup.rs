//! A receive-only session: drop copies, snapshots.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_nasdaq::soupbintcp::{
    CONTROL_LEN_MAX, ClientEvent, ClientSession, LoginRejectReason, LoginRequest,
};
use tickpath_net::{BufferSizes, Fill, Kernel, SendOutcome, TcpConnection};
use tickpath_types::Nanos;

/// Time-out of a connection attempt.
const CONNECT_MAX: Nanos = Nanos::from_secs(2);
/// Upper bound of messages that one poll handles.
const MESSAGES_MAX: usize = 4_096;

/// An event of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard<'a> {
    /// The next message.
    Message(&'a [u8]),
    /// The session has ended permanently.
    End,
}

/// The reason why a session was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The login was refused.
    Refused(LoginRejectReason),
    /// The connection was lost or failed.
    Gone(String),
}

enum State {
    Off,
    Connecting { deadline: Nanos },
    Up(Box<ClientSession>),
}

/// One SoupBinTCP session, starting at any message. It never blocks.
pub(super) struct SoupReader {
    address: SocketAddrV4,
    login: LoginRequest,
    state: State,
    tcp: Option<TcpConnection>,
}

impl SoupReader {
    /// Creates a session that is off.
    pub(super) fn new(address: SocketAddrV4, login: LoginRequest) -> SoupReader {
        SoupReader { address, login, state: State::Off, tcp: None }
    }

    /// True if the session is neither open nor connecting.
    pub(super) fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// True once the login is accepted.
    pub(super) fn is_active(&self) -> bool {
        matches!(&self.state, State::Up(session) if session.is_active())
    }

    /// The socket, if any.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let is_up = matches!(self.state, State::Up(_));
        self.tcp.as_ref().filter(|_| is_up).map(AsFd::as_fd)
    }

    /// Starts to connect, to resume the session.
    pub(super) fn start(&mut self, now: Nanos) -> Result<(), Lost> {
        let begun = match &mut self.tcp {
            Some(tcp) => tcp.start_connecting(self.address),
            none => TcpConnection::begin_on(Kernel, self.address, BufferSizes::default())
                .map(|tcp| *none = Some(tcp)),
        };
        begun.map_err(|error| Lost::Gone(error.to_string()))?;
        self.state = State::Connecting { deadline: now + CONNECT_MAX };
        Ok(())
    }

    /// Closes the connection; the next one resumes the session.
    pub(super) fn close(&mut self) {
        if let State::Up(session) = &self.state {
            self.login = session.resume();
        }
        self.state = State::Off;
        if let Some(tcp) = &mut self.tcp {
            tcp.close();
        }
    }

    /// Handles received messages, up to `MESSAGES_MAX`; returns their number.
    pub(super) fn poll(&mut self, now: Nanos, mut hear: impl FnMut(Heard<'_>)) -> Result<usize, Lost> {
        let gone = |why: &str| Err(Lost::Gone(why.to_owned()));
        if let State::Connecting { deadline } = self.state {
            let Some(tcp) = &mut self.tcp else { return gone("never begun") };
            match tcp.poll_connected() {
                Ok(true) => self.state = State::Up(Box::new(ClientSession::new(self.login, now))),
                Ok(false) if now < deadline => return Ok(0),
                Ok(false) => return gone("no answer: is the venue running there?"),
                Err(error) => return Err(Lost::Gone(error.to_string())),
            }
        }
        let (State::Up(session), Some(tcp)) = (&mut self.state, &mut self.tcp) else { return Ok(0) };
        let mut packet = [0; CONTROL_LEN_MAX];
        let len = session.poll_transmit(now, &mut packet);
        if len > 0 && !matches!(tcp.send(&packet[..len]), Ok(SendOutcome::Sent | SendOutcome::Pending)) {
            return gone("the connection was closed");
        }
        let mut count = 0;
        loop {
            let fill = tcp.fill().map_err(|error| Lost::Gone(error.to_string()))?;
            while let Some((event, used)) =
                session.handle_bytes(now, tcp.received()).map_err(|error| Lost::Gone(error.to_string()))?
            {
                count += 1;
                match event {
                    ClientEvent::Message { message, .. } => hear(Heard::Message(message)),
                    ClientEvent::LoginRejected(reason) => return Err(Lost::Refused(reason)),
                    ClientEvent::EndOfSession => {
                        hear(Heard::End);
                        return Ok(count);
                    }
                    ClientEvent::LoginAccepted { .. }
                    | ClientEvent::Unsequenced(_)
                    | ClientEvent::Heartbeat
                    | ClientEvent::Debug(_) => {}
                }
                tcp.consume(used);
            }
            match fill {
                Fill::Closed => return gone("the connection was closed"),
                Fill::Empty => break,
                _ if count >= MESSAGES_MAX => break,
                _ => {}
            }
        }
        session.handle_timeout(now).map_err(|error| Lost::Gone(error.to_string()))?;
        Ok(count)
    }
}

//! A session that is only listened to: drop copies, snapshots.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_nasdaq::soupbintcp::{
    CONTROL_LEN_MAX, ClientEvent, ClientSession, LoginRejectReason, LoginRequest,
};
use tickpath_net::{BufferSizes, Fill, Kernel, SendOutcome, TcpConnection};
use tickpath_types::Nanos;

/// How long a connection may take to come about.
const CONNECT_MAX: Nanos = Nanos::from_secs(2);
/// Messages taken in one look.
const MESSAGES_MAX: usize = 4_096;

/// What a session says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard<'a> {
    /// The next message.
    Message(&'a [u8]),
    /// The session is over for good.
    End,
}

/// Why a session cannot be listened to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The login was refused.
    Refused(LoginRejectReason),
    /// The connection is gone, or never came.
    Gone(String),
}

enum State {
    Off,
    Connecting { deadline: Nanos },
    Up(Box<ClientSession>),
}

/// One session over TCP, from any message on. Waits for nothing.
pub(super) struct SoupReader {
    address: SocketAddrV4,
    login: LoginRequest,
    state: State,
    tcp: Option<TcpConnection>,
}

impl SoupReader {
    /// A session that is not begun.
    pub(super) fn new(address: SocketAddrV4, login: LoginRequest) -> SoupReader {
        SoupReader { address, login, state: State::Off, tcp: None }
    }

    /// True when it is neither there nor on its way.
    pub(super) fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// True once the login stands.
    pub(super) fn is_active(&self) -> bool {
        matches!(&self.state, State::Up(session) if session.is_active())
    }

    /// The socket, where there is one.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let is_up = matches!(self.state, State::Up(_));
        self.tcp.as_ref().filter(|_| is_up).map(AsFd::as_fd)
    }

    /// Begins to connect, to go on where the session stood.
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

    /// Gives the connection up; the next one goes on where this one stood.
    pub(super) fn close(&mut self) {
        if let State::Up(session) = &self.state {
            self.login = session.resume();
        }
        self.state = State::Off;
        if let Some(tcp) = &mut self.tcp {
            tcp.close();
        }
    }

    /// Takes what came, as much as there is room for in one look; how much.
    pub(super) fn poll(&mut self, now: Nanos, mut hear: impl FnMut(Heard<'_>)) -> Result<usize, Lost> {
        let gone = |why: &str| Err(Lost::Gone(why.to_owned()));
        if let State::Connecting { deadline } = self.state {
            let Some(tcp) = &mut self.tcp else { return gone("never begun") };
            match tcp.poll_connected() {
                Ok(true) => self.state = State::Up(Box::new(ClientSession::new(self.login, now))),
                Ok(false) if now < deadline => return Ok(0),
                Ok(false) => return gone("nobody answers: is the venue running there?"),
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

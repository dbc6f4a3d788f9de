//! A client's connection, the same at every endpoint: SoupBinTCP over TCP.

use tickpath_nasdaq::soupbintcp::{LoginRequest, ServerEvent, ServerSession, packet_len};
use tickpath_net::{Fill, Network, SendOutcome, TcpConnection};
use tickpath_types::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// The client left or is lost, or was told why it may not stay.
    Over,
    /// It sent what is no packet, is too long to be taken, or has no place here.
    Malformed,
    /// It was silent, or did not log in, for as long as it may.
    Silent,
    /// It reads too slowly for what is kept.
    Slow,
}

/// The TCP connection and the SoupBinTCP session of one client.
pub(crate) struct SoupLink<N: Network> {
    pub(crate) tcp: TcpConnection<N>,
    pub(crate) soup: ServerSession,
}

impl<N: Network> SoupLink<N> {
    /// A connection that was accepted at `now`.
    pub(crate) fn new(tcp: TcpConnection<N>, now: Nanos) -> SoupLink<N> {
        SoupLink { tcp, soup: ServerSession::new(now) }
    }

    /// Where no whole packet was received: more of it may come, unless it announces more than there is room for.
    #[inline]
    pub(crate) fn check_announced(&self) -> Result<(), Hangup> {
        let len = packet_len(self.tcp.received());
        if len > Some(self.tcp.receive_capacity()) { Err(Hangup::Malformed) } else { Ok(()) }
    }

    /// Reads once, at an endpoint whose clients send nothing but logins and heartbeats; the login, when it comes.
    pub(crate) fn listen(&mut self, now: Nanos) -> Result<Option<LoginRequest>, Hangup> {
        let fill = self.tcp.fill().map_err(|_| Hangup::Over)?;
        let mut login = None;
        while let Some((event, used)) =
            self.soup.handle_bytes(now, self.tcp.received()).map_err(|_| Hangup::Malformed)?
        {
            match event {
                ServerEvent::LoginRequest(request) => login = Some(request),
                ServerEvent::Message(_) => return Err(Hangup::Malformed),
                ServerEvent::LogoutRequest => return Err(Hangup::Over),
                ServerEvent::Heartbeat | ServerEvent::Debug(_) => {}
            }
            self.tcp.consume(used);
        }
        self.check_announced()?;
        if fill == Fill::Closed {
            return Err(Hangup::Over);
        }
        self.soup.handle_timeout(now).map_err(|_| Hangup::Silent)?;
        Ok(login)
    }

    /// After the last packet: hands on what is pending, then ends this side of the connection, and takes away what the
    /// client still sends, for a connection that is closed with bytes unread takes back what is on its way. True when the
    /// client has closed its side too.
    pub(crate) fn linger(&mut self) -> bool {
        if self.flush() == Ok(true) {
            self.tcp.end_sending();
        }
        let unread = self.tcp.received().len();
        self.tcp.consume(unread);
        !matches!(self.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty))
    }

    /// Gives TCP what is pending; false when it takes no more at present.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<bool, Hangup> {
        is_taken(self.tcp.flush_pending())
    }

    /// Sends bytes that the pending buffer has room for; false when TCP has not taken them all yet.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<bool, Hangup> {
        is_taken(self.tcp.send(bytes))
    }
}

#[inline]
fn is_taken(outcome: std::io::Result<SendOutcome>) -> Result<bool, Hangup> {
    match outcome {
        Ok(SendOutcome::Sent) => Ok(true),
        Ok(SendOutcome::Pending) => Ok(false),
        Ok(SendOutcome::Backpressured | SendOutcome::Closed) | Err(_) => Err(Hangup::Over),
    }
}

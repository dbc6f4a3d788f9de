//! A client's TCP connection and SoupBinTCP session, shared by all SoupBinTCP endpoints.

use tickpath_nasdaq::soupbintcp::{LoginRequest, ServerEvent, ServerSession, packet_len};
use tickpath_net::{Fill, Network, SendOutcome, TcpConnection};
use tickpath_types::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisconnectReason {
    /// The client closed the connection, the connection failed, or the client was rejected.
    Closed,
    /// The client sent an invalid packet, one that is too long, or one that the endpoint does not allow.
    Malformed,
    /// The client sent nothing for too long, or did not log in in time.
    TimedOut,
    /// The client reads too slowly: its next message is no longer retained, or its reading time is over.
    Slow,
}

/// The TCP connection and the SoupBinTCP session of one client.
pub(crate) struct SoupLink<N: Network> {
    pub(crate) tcp: TcpConnection<N>,
    pub(crate) soup: ServerSession,
}

impl<N: Network> SoupLink<N> {
    /// Wraps a connection accepted at `now`.
    pub(crate) fn new(tcp: TcpConnection<N>, now: Nanos) -> SoupLink<N> {
        SoupLink { tcp, soup: ServerSession::new(now) }
    }

    /// Checks the length of an incomplete packet: fails if it exceeds the receive buffer.
    #[inline]
    pub(crate) fn check_packet_len(&self) -> Result<(), DisconnectReason> {
        let len = packet_len(self.tcp.received());
        if len > Some(self.tcp.receive_capacity()) { Err(DisconnectReason::Malformed) } else { Ok(()) }
    }

    /// Reads once, for an endpoint whose clients send only logins and heartbeats. Returns a received login.
    pub(crate) fn read_login(&mut self, now: Nanos) -> Result<Option<LoginRequest>, DisconnectReason> {
        let fill = self.tcp.fill().map_err(|_| DisconnectReason::Closed)?;
        let mut login = None;
        while let Some((event, used)) =
            self.soup.handle_bytes(now, self.tcp.received()).map_err(|_| DisconnectReason::Malformed)?
        {
            match event {
                ServerEvent::LoginRequest(request) => login = Some(request),
                ServerEvent::Message(_) => return Err(DisconnectReason::Malformed),
                ServerEvent::LogoutRequest => return Err(DisconnectReason::Closed),
                ServerEvent::Heartbeat | ServerEvent::Debug(_) => {}
            }
            self.tcp.consume(used);
        }
        self.check_packet_len()?;
        if fill == Fill::Closed {
            return Err(DisconnectReason::Closed);
        }
        self.soup.handle_timeout(now).map_err(|_| DisconnectReason::TimedOut)?;
        Ok(login)
    }

    /// Called after the last packet: flushes pending data, then ends this side of the connection. Discards
    /// further input, because closing a connection with unread bytes would drop outbound data in flight. True
    /// when the client has closed its side too.
    pub(crate) fn linger(&mut self) -> bool {
        if self.flush() == Ok(true) {
            self.tcp.end_sending();
        }
        let unread = self.tcp.received().len();
        self.tcp.consume(unread);
        !matches!(self.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty))
    }

    /// Passes pending data to TCP; false while the socket is full.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<bool, DisconnectReason> {
        is_taken(self.tcp.flush_pending())
    }

    /// Sends bytes, which must fit into the pending buffer; false if TCP has not accepted all of them yet.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<bool, DisconnectReason> {
        is_taken(self.tcp.send(bytes))
    }
}

#[inline]
fn is_taken(outcome: std::io::Result<SendOutcome>) -> Result<bool, DisconnectReason> {
    match outcome {
        Ok(SendOutcome::Sent) => Ok(true),
        Ok(SendOutcome::Pending) => Ok(false),
        Ok(SendOutcome::Backpressured | SendOutcome::Closed) | Err(_) => Err(DisconnectReason::Closed),
    }
}

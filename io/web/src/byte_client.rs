//! The client end of a byte connection.

use std::io::ErrorKind;
use std::net::SocketAddrV4;

use tickpath_net::{Kernel, NetError, Network, StreamSocket};
use tickpath_types::Nanos;

use crate::proxy::Proxy;
use crate::stream::Stream;
use crate::tls::TlsClient;
use crate::{ByteConnection, WebError};

/// Upper bound of handshake bytes that one call reads.
const READ_MAX: usize = 64 << 10;

/// The address of an endpoint and the route to it.
#[derive(Clone, Debug)]
pub struct ByteTarget {
    /// The endpoint's name or IPv4 address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The address to connect to: the endpoint's own, or that of the proxy.
    pub address: SocketAddrV4,
    /// Whether `address` is an HTTP proxy, which is asked to CONNECT to the endpoint by its name.
    pub is_proxy: bool,
    /// The trusted certificates for an endpoint that uses TLS; `None` for plain TCP.
    pub tls: Option<TlsClient>,
}

/// Progress of a connection.
#[derive(Debug)]
enum State<S: StreamSocket> {
    Connecting(S),
    Proxy(Proxy<S>),
    Handshake(Stream<S>),
    Open(Stream<S>),
    /// The connection failed, or the caller has taken it.
    Over,
}

/// Opens a [`ByteConnection`] by TCP or TLS, directly or through a proxy.
///
/// It never blocks: call [`poll_open`](ByteClient::poll_open) in each duty cycle until it returns the
/// connection.
#[derive(Debug)]
pub struct ByteClient<N: Network = Kernel> {
    state: State<N::Socket>,
    target: ByteTarget,
    deadline: Nanos,
}

impl<N: Network> ByteClient<N> {
    /// Starts a connection, which must be open within `timeout`.
    ///
    /// # Errors
    /// [`WebError::Connect`] if the connection fails immediately.
    pub fn start(
        network: &N,
        now: Nanos,
        target: ByteTarget,
        timeout: Nanos,
    ) -> Result<ByteClient<N>, WebError> {
        let state = State::Connecting(network.start_connecting(target.address)?);
        Ok(ByteClient { state, target, deadline: now + timeout })
    }

    /// Continues to connect. Returns the connection once, when it is open.
    ///
    /// # Errors
    /// The reason why the connection cannot open.
    pub fn poll_open(&mut self, now: Nanos) -> Result<Option<ByteConnection<N>>, WebError> {
        loop {
            let before = std::mem::discriminant(&self.state);
            let state = std::mem::replace(&mut self.state, State::Over);
            self.state = match state {
                State::Connecting(socket) => self.poll_connecting(socket)?,
                State::Proxy(mut proxy) => {
                    let is_through = proxy.poll_through(&self.target.host, self.target.port)?;
                    if is_through { self.agree(proxy.into_socket())? } else { State::Proxy(proxy) }
                }
                State::Handshake(stream) => self.poll_handshake(stream)?,
                State::Open(stream) => return Ok(Some(ByteConnection::new(stream))),
                State::Over => return Ok(None),
            };
            if std::mem::discriminant(&self.state) == before {
                break;
            }
        }
        if now >= self.deadline {
            let stage = self.stage();
            self.state = State::Over;
            return Err(WebError::Timeout { host: self.target.host.clone(), stage });
        }
        Ok(None)
    }

    /// Names the pending step.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        match &self.state {
            State::Connecting(_) => "TCP connection",
            State::Proxy(_) => "answer of the proxy",
            State::Handshake(_) => "TLS handshake",
            State::Open(_) => "open",
            State::Over => "over",
        }
    }

    fn poll_connecting(&self, socket: N::Socket) -> Result<State<N::Socket>, WebError> {
        let ByteTarget { address, is_proxy, host, port, .. } = &self.target;
        match socket.poll_connected() {
            Ok(false) => Ok(State::Connecting(socket)),
            Ok(true) if *is_proxy => Ok(State::Proxy(Proxy::ask(socket, host, *port))),
            Ok(true) => self.agree(socket),
            Err(source) => Err(NetError::Connect { address: *address, source }.into()),
        }
    }

    fn agree(&self, socket: N::Socket) -> Result<State<N::Socket>, WebError> {
        let tls = self.target.tls.as_ref().map(|tls| tls.connect(&self.target.host)).transpose()?;
        Ok(State::Handshake(Stream::new(socket, tls)))
    }

    fn poll_handshake(&self, mut stream: Stream<N::Socket>) -> Result<State<N::Socket>, WebError> {
        let host = || self.target.host.clone();
        stream.allow_reading(READ_MAX);
        match stream.poll_handshake() {
            Ok(true) => Ok(State::Open(stream)),
            Ok(false) => Ok(State::Handshake(stream)),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(WebError::Tls { host: host(), why: error.to_string() })
            }
            Err(source) => Err(WebError::Io { host: host(), source }),
        }
    }
}

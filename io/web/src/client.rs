//! The client end of a WebSocket.

use std::io::{self, ErrorKind};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_net::{Interest, Kernel, Network, SendOutcome, SocketPoller, StreamSocket};
use tickpath_types::Nanos;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::client::ClientHandshake;
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::protocol::Role;

use crate::channel::{self, Channel};
use crate::proxy::Proxy;
use crate::stream::Stream;
use crate::tls::TlsClient;
use crate::{WebError, WebEvent, WebLimits, WebUrl};

/// The address of an endpoint and the route to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The endpoint.
    pub url: WebUrl,
    /// The address to connect to: the endpoint's own ([`WebUrl::resolve`]), or that of the proxy.
    pub address: SocketAddrV4,
    /// Whether `address` is an HTTP proxy, which is asked to CONNECT to the endpoint by its name.
    pub is_proxy: bool,
    /// The trusted certificates; required for `wss`.
    pub tls: Option<TlsClient>,
}

/// Progress of a connection.
#[derive(Debug)]
enum State<S: StreamSocket> {
    /// TCP is connecting.
    Connecting(S),
    /// The CONNECT request is being sent or answered.
    Proxy(Proxy<S>),
    /// TLS and the WebSocket upgrade are in progress.
    Upgrading(Box<MidHandshake<ClientHandshake<Stream<S>>>>),
    /// Messages can be sent and received.
    Open(Box<Channel<S>>),
    /// The connection failed.
    Failed,
}

/// A client's WebSocket connection, over TCP or TLS, directly or through a proxy.
///
/// It never blocks: call [`poll_open`](WebSocketClient::poll_open) until it is open. Then call
/// [`receive`](WebSocketClient::receive) until it returns `None`, in each duty cycle or when the poller
/// reports data. Pings are answered. A silent failure of the peer is not detected here; protocols use
/// heartbeats for that.
#[derive(Debug)]
pub struct WebSocketClient<N: Network = Kernel> {
    state: State<N::Socket>,
    target: Target,
    limits: WebLimits,
    deadline: Nanos,
}

impl<N: Network> WebSocketClient<N> {
    /// Starts a connection.
    ///
    /// # Errors
    /// [`WebError::TlsMissing`], and [`WebError::Connect`] if the connection fails immediately.
    pub fn start(
        network: &N,
        now: Nanos,
        target: Target,
        limits: WebLimits,
    ) -> Result<WebSocketClient<N>, WebError> {
        if target.url.is_tls() && target.tls.is_none() {
            return Err(WebError::TlsMissing { host: target.url.host().to_owned() });
        }
        let state = State::Connecting(network.start_connecting(target.address)?);
        Ok(WebSocketClient { state, target, limits, deadline: now + limits.connect_timeout })
    }

    /// Continues to connect. Returns whether the connection is open.
    ///
    /// # Errors
    /// The reason why the connection cannot open.
    pub fn poll_open(&mut self, now: Nanos) -> Result<bool, WebError> {
        loop {
            let before = std::mem::discriminant(&self.state);
            let state = std::mem::replace(&mut self.state, State::Failed);
            self.state = match state {
                State::Connecting(socket) => self.poll_connecting(socket)?,
                State::Proxy(proxy) => self.poll_proxy(proxy)?,
                State::Upgrading(handshake) => self.poll_upgrading(*handshake)?,
                State::Open(channel) => {
                    self.state = State::Open(channel);
                    return Ok(true);
                }
                State::Failed => return Ok(false),
            };
            if std::mem::discriminant(&self.state) == before {
                break;
            }
        }
        if now >= self.deadline {
            let stage = self.stage();
            self.state = State::Failed;
            return Err(WebError::Timeout { host: self.host(), stage });
        }
        Ok(false)
    }

    /// Names the pending step.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        match &self.state {
            State::Connecting(_) => "TCP connection",
            State::Proxy(_) => "answer of the proxy",
            State::Upgrading(handshake) if handshake.get_ref().get_ref().is_handshaking() => "TLS handshake",
            State::Upgrading(_) => "upgrade to WebSocket",
            State::Open(_) => "open",
            State::Failed => "failed",
        }
    }

    fn host(&self) -> String {
        self.target.url.host().to_owned()
    }

    fn poll_connecting(&self, socket: N::Socket) -> Result<State<N::Socket>, WebError> {
        let address = self.target.address;
        match socket.poll_connected() {
            Ok(false) => Ok(State::Connecting(socket)),
            Ok(true) if self.target.is_proxy => {
                Ok(State::Proxy(Proxy::ask(socket, self.target.url.host(), self.target.url.port())))
            }
            Ok(true) => self.upgrade(socket),
            Err(source) => Err(tickpath_net::NetError::Connect { address, source }.into()),
        }
    }

    fn poll_proxy(&self, mut proxy: Proxy<N::Socket>) -> Result<State<N::Socket>, WebError> {
        let is_through = proxy.poll_through(self.target.url.host(), self.target.url.port())?;
        if is_through { self.upgrade(proxy.into_socket()) } else { Ok(State::Proxy(proxy)) }
    }

    fn upgrade(&self, socket: N::Socket) -> Result<State<N::Socket>, WebError> {
        let url = &self.target.url;
        let tls = match &self.target.tls {
            Some(tls) if url.is_tls() => Some(tls.connect(url.host())?),
            _ => None,
        };
        let mut stream = Stream::new(socket, tls);
        stream.allow_reading(self.limits.read_max);
        let request = url.uri().into_client_request().map_err(|error| self.handshake_error(error))?;
        let handshake = ClientHandshake::start(stream, request, Some(channel::config(&self.limits)));
        Ok(State::Upgrading(Box::new(handshake.map_err(|error| self.handshake_error(error))?)))
    }

    fn poll_upgrading(
        &self,
        mut handshake: MidHandshake<ClientHandshake<Stream<N::Socket>>>,
    ) -> Result<State<N::Socket>, WebError> {
        handshake.get_mut().get_mut().allow_reading(self.limits.read_max);
        match handshake.handshake() {
            Ok((socket, _)) => {
                Ok(State::Open(Box::new(Channel::new(socket, Role::Client, &self.limits, self.host()))))
            }
            Err(HandshakeError::Interrupted(handshake)) => Ok(State::Upgrading(Box::new(handshake))),
            Err(HandshakeError::Failure(error)) => Err(self.handshake_error(error)),
        }
    }

    fn handshake_error(&self, error: tungstenite::Error) -> WebError {
        let host = self.host();
        match error {
            tungstenite::Error::Http(answer) => WebError::Refused { host, status: answer.status().as_u16() },
            tungstenite::Error::Io(source) if source.kind() == ErrorKind::InvalidData => {
                WebError::Tls { host, why: source.to_string() }
            }
            tungstenite::Error::Io(source) => WebError::Io { host, source },
            other => WebError::Protocol { host, why: other.to_string() },
        }
    }

    /// Returns the next event of an open connection, or `None` if nothing is available. A caller that stops
    /// before `None` must call again without waiting for the poller.
    ///
    /// # Errors
    /// [`WebError::Protocol`], [`WebError::TooLong`], [`WebError::Tls`] and [`WebError::Io`]: the connection
    /// has ended.
    #[inline]
    pub fn receive(&mut self) -> Result<Option<WebEvent<'_>>, WebError> {
        match &mut self.state {
            State::Open(channel) => channel.receive(),
            _ => Ok(None),
        }
    }

    /// Whether there is another event, as [`receive`](WebSocketClient::receive);
    /// [`event`](WebSocketClient::event) returns it. The caller can use the connection while it borrows the
    /// event, for example to read [`kernel_ns`](WebSocketClient::kernel_ns).
    ///
    /// # Errors
    /// As [`receive`](WebSocketClient::receive).
    #[inline]
    pub fn poll_event(&mut self) -> Result<bool, WebError> {
        match &mut self.state {
            State::Open(channel) => channel.poll(),
            _ => Ok(false),
        }
    }

    /// The last event found by [`poll_event`](WebSocketClient::poll_event), if the connection is open.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Option<WebEvent<'_>> {
        match &self.state {
            State::Open(channel) => Some(channel.last()),
            _ => None,
        }
    }

    /// Sends a text message after those that wait. It is sent whole or not at all:
    /// [`SendOutcome::Backpressured`] if too many bytes wait.
    #[inline]
    pub fn send(&mut self, text: &str) -> SendOutcome {
        self.send_utf8(text.as_bytes())
    }

    /// Sends a text message as [`send`](WebSocketClient::send). The caller's encoder guarantees that the bytes
    /// are UTF-8, which only debug builds check; a peer closes the connection otherwise.
    #[inline]
    pub fn send_utf8(&mut self, text: &[u8]) -> SendOutcome {
        match &mut self.state {
            State::Open(channel) => channel.send(text),
            _ => SendOutcome::Closed,
        }
    }

    /// Queues a text message without a system call, so that one [`flush`](WebSocketClient::flush) sends
    /// several. The bytes are those of [`send_utf8`](WebSocketClient::send_utf8).
    #[inline]
    pub fn queue_utf8(&mut self, text: &[u8]) -> SendOutcome {
        match &mut self.state {
            State::Open(channel) => channel.queue(text),
            _ => SendOutcome::Closed,
        }
    }

    /// Runs the code of [`queue_utf8`](WebSocketClient::queue_utf8) to warm the processor's caches. Nothing is
    /// kept or sent.
    pub fn rehearse(&mut self, text: &[u8]) {
        if let State::Open(channel) = &mut self.state {
            channel.rehearse(text);
        }
    }

    /// Passes waiting bytes to the kernel: [`SendOutcome::Sent`] if none are left, [`SendOutcome::Pending`]
    /// if the next duty cycle must try again.
    #[inline]
    pub fn flush(&mut self) -> SendOutcome {
        match &mut self.state {
            State::Open(channel) => channel.flush(),
            _ => SendOutcome::Closed,
        }
    }

    /// Whether bytes may wait for a [`flush`](WebSocketClient::flush).
    #[must_use]
    pub fn has_pending(&self) -> bool {
        matches!(&self.state, State::Open(channel) if channel.has_pending())
    }

    /// Whether a text message of `len` bytes would be accepted now, if the connection still works.
    #[inline]
    #[must_use]
    pub fn has_room(&self, len: usize) -> bool {
        matches!(&self.state, State::Open(channel) if channel.has_room(len))
    }

    /// Starts the closing handshake, e.g. with 1000 or, when this program ends, 1001. Keep receiving until
    /// the peer has closed, or drop the client after [`WebLimits::close_timeout`].
    pub fn close(&mut self, code: u16, reason: &str) {
        if let State::Open(channel) = &mut self.state {
            channel.close(code, reason);
        }
    }

    /// Whether the connection has ended or failed to open.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.state {
            State::Open(channel) => channel.is_closed(),
            State::Failed => true,
            _ => false,
        }
    }

    /// The kernel's receive time of the bytes read last, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn kernel_ns(&self) -> Option<u64> {
        match &self.state {
            State::Open(channel) => channel.stream().kernel_ns(),
            _ => None,
        }
    }

    /// Registers the connection with the poller for reading, under `key`.
    ///
    /// # Errors
    /// A system error.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        self.socket().map_or(Ok(()), |socket| poller.add(socket, key, Interest::Read))
    }

    fn socket(&self) -> Option<&N::Socket> {
        match &self.state {
            State::Connecting(socket) => Some(socket),
            State::Proxy(proxy) => Some(proxy.socket()),
            State::Upgrading(handshake) => Some(handshake.get_ref().get_ref().socket()),
            State::Open(channel) => Some(channel.stream().socket()),
            State::Failed => None,
        }
    }
}

impl WebSocketClient {
    /// The socket, for waiting on it together with others; `None` after a failure.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket().map(AsFd::as_fd)
    }
}

impl<N: Network> Drop for WebSocketClient<N> {
    /// Sends close_notify on an open TLS session. A WebSocket close frame is sent by
    /// [`close`](WebSocketClient::close).
    fn drop(&mut self) {
        if let State::Open(channel) = &mut self.state {
            channel.stream_mut().shut_down();
        }
    }
}

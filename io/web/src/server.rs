//! The server end: HTTP and WebSocket on one port.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use tickpath_net::{Interest, Kernel, NetError, Network, SendOutcome, SocketPoller, StreamSocket};
use tickpath_types::Nanos;
use tungstenite::protocol::{Role, WebSocket};

use crate::channel::{self, Channel, is_lost};
use crate::http::{self, BadRequest, Head};
use crate::stream::Stream;
use crate::{Closed, HttpRequest, HttpResponse, TlsServer, WebError, WebEvent, WebLimits};

/// Bytes requested from the socket at once while it speaks HTTP.
const READ_CHUNK: usize = 4 << 10;

/// Accepts connections that speak HTTP, then possibly WebSocket.
#[derive(Debug)]
pub struct WebAcceptor<N: Network = Kernel> {
    socket: N::Socket,
    local_address: SocketAddrV4,
    tls: Option<TlsServer>,
    limits: WebLimits,
}

impl<N: Network> WebAcceptor<N> {
    /// Listens at `address`; port 0 selects a free one. With `tls` every connection must use TLS.
    ///
    /// # Errors
    /// [`NetError::AddressInUse`] if another socket listens there; [`NetError::Bind`] if this machine does
    /// not have the address.
    pub fn bind(
        network: N,
        address: SocketAddrV4,
        tls: Option<TlsServer>,
        limits: WebLimits,
    ) -> Result<WebAcceptor<N>, NetError> {
        let (socket, local_address) = network.listen(address)?;
        Ok(WebAcceptor { socket, local_address, tls, limits })
    }

    /// Returns the next waiting connection, if any.
    ///
    /// # Errors
    /// A system error, such as the limit of open files; the connection then keeps waiting. A connection that
    /// was reset while it waited is skipped.
    pub fn accept(&mut self, now: Nanos) -> io::Result<Option<WebConnection<N>>> {
        use ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        match self.socket.accept() {
            Ok((socket, peer)) => {
                let Some(peer_address) = peer else { return Ok(None) };
                let tls = self.tls.as_ref().map(TlsServer::accept).transpose().map_err(io::Error::other)?;
                let http = Http::new(Stream::new(socket, tls));
                let deadline = now + self.limits.request_timeout;
                let state = State::Http(Box::new(http));
                Ok(Some(WebConnection {
                    state,
                    peer_address,
                    limits: self.limits,
                    deadline,
                    is_closing: false,
                }))
            }
            Err(error) if matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The listening address with its port.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local_address
    }

    /// Registers the listener with the poller under `key`.
    ///
    /// # Errors
    /// A system error.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        poller.add(&self.socket, key, Interest::Read)
    }

    /// Removes the listener from the poller.
    ///
    /// # Errors
    /// A system error: the listener was not registered.
    pub fn unwatch(&self, poller: &N::Poller) -> io::Result<()> {
        poller.remove(&self.socket)
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
pub enum ServerEvent<'a> {
    /// A whole HTTP request; no event follows before it is [answered](WebConnection::respond), now or later.
    Request(HttpRequest<'a>),
    /// A request for a WebSocket: [accept](WebConnection::accept_upgrade) it, or
    /// [answer](WebConnection::respond) with an error, e.g. 404 for a wrong path.
    Upgrade(HttpRequest<'a>),
    /// A WebSocket message; a close is reported as [`End`](ServerEvent::End).
    Message(WebEvent<'a>),
    /// The connection has ended: drop it.
    End(EndCause),
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndCause {
    /// The client disconnected between requests, or a WebSocket was closed properly.
    Done,
    /// The client disconnected during a request, an answer or a WebSocket session.
    Lost,
    /// Time-out: TLS, a request, an answer or a close took too long, or no request came.
    Slow,
    /// The TLS handshake failed.
    Tls,
    /// Not HTTP, or an invalid request.
    BadRequest,
    /// Head, body or message above its limit.
    TooLarge,
    /// A violation of the WebSocket protocol.
    BadFrame,
}

/// Counters of ended connections by cause, for their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebCounters {
    /// Ends by [`EndCause::Done`].
    pub done: u64,
    /// Ends by [`EndCause::Lost`].
    pub lost: u64,
    /// Ends by [`EndCause::Slow`].
    pub slow: u64,
    /// Ends by [`EndCause::Tls`].
    pub tls: u64,
    /// Ends by [`EndCause::BadRequest`].
    pub bad_requests: u64,
    /// Ends by [`EndCause::TooLarge`].
    pub too_large: u64,
    /// Ends by [`EndCause::BadFrame`].
    pub bad_frames: u64,
}

impl WebCounters {
    /// Counts an ended connection.
    pub fn count(&mut self, cause: EndCause) {
        let counter = match cause {
            EndCause::Done => &mut self.done,
            EndCause::Lost => &mut self.lost,
            EndCause::Slow => &mut self.slow,
            EndCause::Tls => &mut self.tls,
            EndCause::BadRequest => &mut self.bad_requests,
            EndCause::TooLarge => &mut self.too_large,
            EndCause::BadFrame => &mut self.bad_frames,
        };
        *counter += 1;
    }
}

/// The protocol state of a connection.
#[derive(Debug)]
enum State<S: StreamSocket> {
    /// HTTP requests and answers.
    Http(Box<Http<S>>),
    /// WebSocket messages.
    WebSocket(Box<Channel<S>>),
    /// An error was answered. Further bytes from the client are read and discarded: closing a socket with
    /// unread bytes resets the connection and loses the answer.
    Refused(Box<Http<S>>, EndCause),
    /// Ended; the cause was reported.
    Ended,
}

/// A client's connection: HTTP, until it is upgraded to a WebSocket.
///
/// Call [`receive`](WebConnection::receive) until it returns `None`, in each duty cycle or when the poller
/// reports data, and periodically for the time-outs. While [`has_pending`](WebConnection::has_pending), also
/// call [`flush`](WebConnection::flush).
#[derive(Debug)]
pub struct WebConnection<N: Network = Kernel> {
    state: State<N::Socket>,
    peer_address: SocketAddrV4,
    limits: WebLimits,
    deadline: Nanos,
    /// True once the WebSocket was asked to close.
    is_closing: bool,
}

impl<N: Network> WebConnection<N> {
    /// Returns the next event, or `None` if nothing is available or a request waits for its answer. A caller
    /// that stops before `None` must call again without waiting for the poller.
    #[inline]
    pub fn receive(&mut self, now: Nanos) -> Option<ServerEvent<'_>> {
        let end = match &mut self.state {
            State::WebSocket(_) => return self.receive_message(now),
            State::Http(http) => match http.poll(now, &mut self.deadline, &self.limits) {
                Ok(false) => return None,
                Ok(true) => return self.request_event(),
                Err(end) => end,
            },
            State::Refused(http, cause) => match http.poll_refused(now, self.deadline) {
                false => return None,
                true => HttpEnd::Over(*cause),
            },
            State::Ended => return None,
        };
        self.end_http(now, end)
    }

    fn request_event(&self) -> Option<ServerEvent<'_>> {
        let State::Http(http) = &self.state else { return None };
        let request = http.request();
        Some(if request.head.is_upgrade {
            ServerEvent::Upgrade(request)
        } else {
            ServerEvent::Request(request)
        })
    }

    #[cold]
    fn end_http(&mut self, now: Nanos, end: HttpEnd) -> Option<ServerEvent<'_>> {
        let (response, cause) = match end {
            HttpEnd::Over(cause) => return Some(self.end(cause)),
            HttpEnd::Bad(bad) => {
                let is_large = matches!(bad, BadRequest::HeadTooLarge | BadRequest::BodyTooLarge);
                (Some(bad.response()), if is_large { EndCause::TooLarge } else { EndCause::BadRequest })
            }
            HttpEnd::Answered => (None, EndCause::Done),
        };
        let State::Http(mut http) = std::mem::replace(&mut self.state, State::Ended) else { return None };
        if let Some(response) = response {
            http.answer(&response, false);
        }
        self.deadline = now + self.limits.request_timeout;
        self.state = State::Refused(http, cause);
        None
    }

    fn receive_message(&mut self, now: Nanos) -> Option<ServerEvent<'_>> {
        let State::WebSocket(channel) = &mut self.state else { return None };
        let cause = match channel.poll() {
            Ok(true) => match channel.last() {
                WebEvent::Closed(closed) if closed.code == Closed::BROKEN && !self.is_closing => {
                    EndCause::Lost
                }
                WebEvent::Closed(_) => EndCause::Done,
                _ => {
                    // Borrowed again: returning the first borrow from one branch does not compile.
                    let State::WebSocket(channel) = &self.state else { return None };
                    return Some(ServerEvent::Message(channel.last()));
                }
            },
            Ok(false) if self.is_closing && now >= self.deadline => EndCause::Slow,
            Ok(false) => return None,
            Err(WebError::TooLong { .. }) => EndCause::TooLarge,
            Err(WebError::Protocol { .. }) => EndCause::BadFrame,
            Err(WebError::Tls { .. }) => EndCause::Tls,
            Err(_) => EndCause::Lost,
        };
        Some(self.end(cause))
    }

    #[cold]
    fn end(&mut self, cause: EndCause) -> ServerEvent<'static> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Http(mut http) | State::Refused(mut http, _) => http.stream.shut_down(),
            State::WebSocket(mut channel) => channel.stream_mut().shut_down(),
            State::Ended => {}
        }
        ServerEvent::End(cause)
    }

    /// Answers the last request; `now` starts the client's time to receive the answer. The connection is kept
    /// for another request if the client wants that.
    ///
    /// # Panics
    /// If no request waits for an answer.
    pub fn respond(&mut self, now: Nanos, response: &HttpResponse<'_>) {
        let State::Http(http) = &mut self.state else { return };
        assert!(http.is_unanswered, "an answer belongs to a request");
        let is_kept = http.head.as_ref().is_some_and(|head| head.is_kept && !head.is_upgrade);
        http.answer(response, is_kept);
        self.deadline = now + self.limits.request_timeout;
    }

    /// Accepts the last upgrade request: the connection then carries messages.
    ///
    /// # Panics
    /// If no upgrade waits for an answer.
    pub fn accept_upgrade(&mut self) {
        let State::Http(http) = std::mem::replace(&mut self.state, State::Ended) else { return };
        assert!(http.is_unanswered && http.request().head.is_upgrade, "no upgrade was requested");
        let host = self.peer_address.to_string();
        let socket = http.into_websocket(&self.limits);
        let mut channel = Channel::new(socket, Role::Server, &self.limits, host);
        // Bytes that cannot leave now are sent before the first message, or at the next poll.
        let _ = channel.flush();
        self.state = State::WebSocket(Box::new(channel));
    }

    /// Sends a text message after those that wait. It is sent whole or not at all:
    /// [`SendOutcome::Backpressured`] if too many bytes wait, [`SendOutcome::Closed`] if this is not an open
    /// WebSocket.
    #[inline]
    pub fn send(&mut self, text: &str) -> SendOutcome {
        match &mut self.state {
            State::WebSocket(channel) => channel.send(text.as_bytes()),
            _ => SendOutcome::Closed,
        }
    }

    /// Queues a text message without a system call; one [`flush`](WebConnection::flush) sends several.
    #[inline]
    pub fn queue(&mut self, text: &str) -> SendOutcome {
        match &mut self.state {
            State::WebSocket(channel) => channel.queue(text.as_bytes()),
            _ => SendOutcome::Closed,
        }
    }

    /// Passes waiting bytes to the kernel: [`SendOutcome::Sent`] if none are left, [`SendOutcome::Pending`]
    /// if the next duty cycle must try again.
    #[inline]
    pub fn flush(&mut self) -> SendOutcome {
        match &mut self.state {
            State::WebSocket(channel) => channel.flush(),
            State::Http(http) | State::Refused(http, _) => http.flush(),
            State::Ended => SendOutcome::Closed,
        }
    }

    /// Whether bytes may wait for a [`flush`](WebConnection::flush).
    #[must_use]
    pub fn has_pending(&self) -> bool {
        match &self.state {
            State::WebSocket(channel) => channel.has_pending(),
            State::Http(http) | State::Refused(http, _) => http.stream.unsent() > 0,
            State::Ended => false,
        }
    }

    /// Starts the closing handshake, e.g. with 1001 when the venue shuts down. Keep receiving until the end,
    /// which comes after [`WebLimits::close_timeout`] at the latest.
    pub fn close(&mut self, now: Nanos, code: u16, reason: &str) {
        if let State::WebSocket(channel) = &mut self.state {
            channel.close(code, reason);
            self.is_closing = true;
            self.deadline = now + self.limits.close_timeout;
        }
    }

    /// Whether the connection is a WebSocket now.
    #[must_use]
    pub fn is_websocket(&self) -> bool {
        matches!(self.state, State::WebSocket(_))
    }

    /// The client's address.
    #[must_use]
    pub fn peer_address(&self) -> SocketAddrV4 {
        self.peer_address
    }

    /// The kernel's receive time of the bytes read last, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn kernel_ns(&self) -> Option<u64> {
        self.stream().and_then(Stream::kernel_ns)
    }

    /// Registers the connection with the poller for reading, under `key`.
    ///
    /// # Errors
    /// A system error.
    pub fn watch(&self, poller: &N::Poller, key: u64) -> io::Result<()> {
        self.stream().map_or(Ok(()), |stream| poller.add(stream.socket(), key, Interest::Read))
    }

    /// Removes the connection from the poller.
    ///
    /// # Errors
    /// A system error: the connection was not registered.
    pub fn unwatch(&self, poller: &N::Poller) -> io::Result<()> {
        self.stream().map_or(Ok(()), |stream| poller.remove(stream.socket()))
    }

    /// Bounds the bytes that the kernel buffers until the client receives them. The kernel's default grows to
    /// megabytes, which a client that does not read would occupy.
    ///
    /// # Errors
    /// A system error.
    pub fn limit_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.stream().map_or(Ok(()), |stream| stream.socket().limit_send_buffer(bytes))
    }

    fn stream(&self) -> Option<&Stream<N::Socket>> {
        match &self.state {
            State::Http(http) | State::Refused(http, _) => Some(&http.stream),
            State::WebSocket(channel) => Some(channel.stream()),
            State::Ended => None,
        }
    }
}

impl WebAcceptor {
    /// The socket, for waiting on it together with others.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl WebConnection {
    /// The socket, for waiting on it together with others; `None` after the end.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream().map(|stream| stream.socket().as_fd())
    }
}

/// The end of the HTTP phase.
#[derive(Clone, Copy, Debug)]
enum HttpEnd {
    /// Immediate, without an answer.
    Over(EndCause),
    /// With an answer that states the fault.
    Bad(BadRequest),
    /// After the last answer.
    Answered,
}

/// A connection in the HTTP phase.
struct Http<S> {
    stream: Stream<S>,
    /// Received bytes: the start of a request or a whole one, and any bytes after it.
    input: Vec<u8>,
    /// The head of the request at the start of `input`.
    head: Option<Head>,
    /// True until the first request is answered.
    is_first: bool,
    /// True while the current request waits for its answer.
    is_unanswered: bool,
    /// True if the last answer announced the end of the connection.
    is_last: bool,
    /// True while the client's time to receive the last answer runs.
    is_answering: bool,
    /// True if the client sends no more bytes.
    is_at_end: bool,
    /// True if the sending side was shut down.
    has_ended: bool,
}

impl<S> fmt::Debug for Http<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Requests contain secrets.
        f.debug_struct("Http").field("input_len", &self.input.len()).finish_non_exhaustive()
    }
}

impl<S: StreamSocket> Http<S> {
    fn new(stream: Stream<S>) -> Http<S> {
        Http {
            stream,
            input: Vec::new(),
            head: None,
            is_first: true,
            is_unanswered: false,
            is_last: false,
            is_answering: false,
            is_at_end: false,
            has_ended: false,
        }
    }

    fn request(&self) -> HttpRequest<'_> {
        let head = self.head.as_ref().expect("a request is given out when its head is read");
        HttpRequest { bytes: &self.input, head, body: &self.input[head.len..head.len + head.body_len] }
    }

    /// Whether a request is complete.
    fn poll(&mut self, now: Nanos, deadline: &mut Nanos, limits: &WebLimits) -> Result<bool, HttpEnd> {
        if self.is_unanswered {
            return Ok(false);
        }
        if !self.poll_answer(now, deadline, limits)? {
            return Ok(false);
        }
        let was_empty = self.input.is_empty();
        if !self.parse(limits)? {
            let room = limits.head_max + limits.body_max;
            self.read(room, limits.read_max).map_err(HttpEnd::Over)?;
            if was_empty && !self.input.is_empty() && !self.is_first {
                // A request's time starts at its first byte; the first request shares it with TLS.
                *deadline = now + limits.request_timeout;
            }
            if !self.parse(limits)? {
                return self.wait(now, *deadline);
            }
        }
        self.is_unanswered = true;
        Ok(true)
    }

    /// Whether the last answer was sent completely.
    fn poll_answer(&mut self, now: Nanos, deadline: &mut Nanos, limits: &WebLimits) -> Result<bool, HttpEnd> {
        if !self.is_answering {
            return Ok(true);
        }
        match self.flush() {
            SendOutcome::Sent => {}
            SendOutcome::Closed => return Err(HttpEnd::Over(EndCause::Lost)),
            _ if now >= *deadline => return Err(HttpEnd::Over(EndCause::Slow)),
            _ => return Ok(false),
        }
        if self.is_last {
            return Err(HttpEnd::Answered);
        }
        self.is_answering = false;
        let patience = if self.input.is_empty() { limits.idle_timeout } else { limits.request_timeout };
        *deadline = now + patience;
        Ok(true)
    }

    fn wait(&self, now: Nanos, deadline: Nanos) -> Result<bool, HttpEnd> {
        if self.is_at_end {
            let is_between = self.input.is_empty();
            return Err(HttpEnd::Over(if is_between { EndCause::Done } else { EndCause::Lost }));
        }
        if now >= deadline {
            return Err(HttpEnd::Over(EndCause::Slow));
        }
        Ok(false)
    }

    /// Whether head and body are complete.
    fn parse(&mut self, limits: &WebLimits) -> Result<bool, HttpEnd> {
        if self.head.is_none() && !self.input.is_empty() {
            self.head = http::parse_head(&self.input, limits.head_max).map_err(HttpEnd::Bad)?;
            let Some(head) = &self.head else { return Ok(false) };
            if head.body_len > limits.body_max {
                return Err(HttpEnd::Bad(BadRequest::BodyTooLarge));
            }
            if head.expects_continue && self.input.len() < head.len + head.body_len {
                self.stream.first_out().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                let _ = self.flush();
            }
        }
        Ok(self.head.as_ref().is_some_and(|head| self.input.len() >= head.len + head.body_len))
    }

    /// Reads the available bytes, up to `room` in the input buffer.
    fn read(&mut self, room: usize, read_max: usize) -> Result<(), EndCause> {
        self.stream.allow_reading(read_max);
        while !self.is_at_end && self.input.len() < room {
            let start = self.input.len();
            self.input.resize(room.min(start + READ_CHUNK), 0);
            let result = self.stream.read(&mut self.input[start..]);
            self.input.truncate(start + result.as_ref().copied().unwrap_or(0));
            match result {
                Ok(0) => self.is_at_end = true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidData => return Err(EndCause::Tls),
                Err(error) if is_lost(&error) => self.is_at_end = true,
                Err(_) => return Err(EndCause::Lost),
            }
        }
        Ok(())
    }

    /// Removes the request from the input and passes the answer to the kernel, as much as it accepts.
    fn answer(&mut self, response: &HttpResponse<'_>, is_kept: bool) {
        let is_head = self.is_unanswered && self.request().method() == "HEAD";
        response.write(is_kept, !is_head, self.stream.first_out());
        if let Some(head) = self.head.take() {
            self.input.drain(..(head.len + head.body_len).min(self.input.len()));
        }
        (self.is_first, self.is_unanswered) = (false, false);
        (self.is_last, self.is_answering) = (!is_kept, true);
        // The rest is flushed before the next request is read.
        let _ = self.flush();
    }

    fn flush(&mut self) -> SendOutcome {
        match self.stream.flush() {
            Ok(()) => SendOutcome::Sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => SendOutcome::Pending,
            Err(_) => SendOutcome::Closed,
        }
    }

    /// Sends the last answer, then waits for the client to disconnect. Returns whether that is done.
    fn poll_refused(&mut self, now: Nanos, deadline: Nanos) -> bool {
        match self.flush() {
            SendOutcome::Sent if !self.has_ended => {
                self.stream.end_sending();
                self.has_ended = true;
            }
            SendOutcome::Sent | SendOutcome::Pending => {}
            _ => return true,
        }
        self.input.clear();
        let is_lost = self.read(READ_CHUNK, READ_CHUNK).is_err();
        is_lost || self.is_at_end || now >= deadline
    }

    /// Creates the WebSocket; bytes after the request belong to it.
    fn into_websocket(mut self, limits: &WebLimits) -> WebSocket<Stream<S>> {
        let mut answer = Vec::new();
        http::write_upgrade(&self.request(), &mut answer);
        self.stream.first_out().extend_from_slice(&answer);
        let behind = self.input.split_off(self.request().head.len);
        WebSocket::from_partially_read(self.stream, behind, Role::Server, Some(channel::config(limits)))
    }
}

//! A persistent connection to a venue.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_deribit::channel::ChannelError;
use tickpath_deribit::envelope::ErrorBody;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::Field;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{Expiry, Key, RequestError, Session, SessionConfig, SessionEvent};
use tickpath_net::{Kernel, Network, SendOutcome};
use tickpath_types::Nanos;
use tickpath_web::{Closed, Target, WebEvent, WebLimits, WebSocketClient};

use crate::listener::{Change, Listener, Received, Unanswered};
use crate::lookup::{NameService, Resolver};
use crate::loss::Loss;
use crate::pauses::Pauses;
use crate::route::Route;
use crate::state::{Standing, State};

/// The close code of a client that disconnects (RFC 6455, 7.4.1).
const CLOSE_GOING_AWAY: u16 = 1001;

/// Configuration of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The route to the venue.
    pub route: Route,
    /// The session.
    pub session: SessionConfig,
    /// Bounds of the connection.
    pub limits: WebLimits,
    /// The first pause before a reconnect; each further one is twice as long.
    pub pause_min: Nanos,
    /// The longest pause.
    pub pause_max: Nanos,
    /// Upper bound of messages that one duty cycle handles.
    pub messages_max: usize,
    /// Whether a permanently refused login is retried after the longest pause; if not, the link turns off.
    pub retries_refused_login: bool,
    /// Seed of the random reductions of pauses, so that many clients do not reconnect at once.
    pub seed: u64,
    /// The name resolver.
    pub resolver: Resolver,
}

impl LinkConfig {
    /// Defaults: pauses of 250 ms to 30 s, 256 messages a duty cycle, the system's resolver, and no retry of
    /// a refused login.
    #[must_use]
    pub fn new(route: Route, session: SessionConfig) -> LinkConfig {
        LinkConfig {
            route,
            session,
            limits: WebLimits::client(),
            pause_min: Nanos::from_millis(250),
            pause_max: Nanos::from_secs(30),
            messages_max: 256,
            retries_refused_login: false,
            seed: u64::from(std::process::id()),
            resolver: tickpath_web::resolve,
        }
    }
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Connections opened.
    pub opened: u64,
    /// Logins completed.
    pub logins: u64,
    /// Connections that were lost or could not be made.
    pub losses: u64,
    /// Messages received.
    pub messages: u64,
    /// Messages that could not be parsed.
    pub unreadable: u64,
    /// Requests that timed out.
    pub late: u64,
    /// Requests whose connection was lost before the reply.
    pub lost: u64,
}

/// A connection to a venue that reconnects after each loss.
#[derive(Debug)]
pub struct Link<N: Network = Kernel> {
    config: LinkConfig,
    network: N,
    names: NameService,
    session: Session,
    state: State<WebSocketClient<N>, WebSocketClient<N>>,
    pauses: Pauses,
    ready_at: Option<Nanos>,
    /// The error that ended the connection between two duty cycles.
    broken: Option<Loss>,
    /// True if the login was refused permanently.
    is_refused: bool,
    /// After a logout: the deadline for the venue to close the connection, which is its answer.
    logout_until: Option<Nanos>,
    /// The last request or session message.
    out: Vec<u8>,
    stats: LinkStats,
}

impl Link {
    /// Creates a link over the kernel's sockets, disconnected.
    #[must_use]
    pub fn new(config: LinkConfig) -> Link {
        Link::on(Kernel, config)
    }

    /// The socket, for waiting on it together with others; `None` while there is no connection.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket().and_then(WebSocketClient::fd)
    }
}

impl<N: Network> Link<N> {
    /// Creates a link on any network; see [`new`](Link::new).
    #[must_use]
    pub fn on(network: N, config: LinkConfig) -> Link<N> {
        Link {
            network,
            names: NameService::new(config.resolver),
            session: Session::new(config.session.clone()),
            state: State::Off,
            pauses: Pauses::new(config.pause_min, config.pause_max, config.seed),
            ready_at: None,
            broken: None,
            is_refused: false,
            logout_until: None,
            out: Vec::with_capacity(4 << 10),
            stats: LinkStats::default(),
            config,
        }
    }

    /// The status of the link.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.state.standing(self.session.is_ready() && self.broken.is_none())
    }

    /// Names the pending step.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        self.state.stage(self.session.is_ready(), "login", WebSocketClient::stage)
    }

    /// Whether the connection is open; the login may still be in progress.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// The session, for queries.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The route to the venue.
    #[must_use]
    pub fn route(&self) -> &Route {
        &self.config.route
    }

    /// Subscribes to a channel, now and after each reconnect.
    ///
    /// # Errors
    /// [`ChannelError`] if the name is not a valid channel.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ChannelError> {
        self.session.subscribe(channel)
    }

    /// Unsubscribes from a channel.
    pub fn unsubscribe(&mut self, channel: &str) {
        self.session.unsubscribe(channel);
    }

    /// Renews a subscription, to get a full book after a gap. Returns false if the channel is not subscribed.
    pub fn resubscribe(&mut self, channel: &str) -> bool {
        self.session.resubscribe(channel)
    }

    /// Requests a connection, at once and until [`disconnect`](Link::disconnect).
    pub fn connect(&mut self, now: Nanos) {
        if self.state.want(now) {
            self.is_refused = false;
            self.pauses.reset();
        }
    }

    /// Closes the connection with "going away" and stops reconnecting.
    pub fn disconnect(&mut self, now: Nanos, listener: &mut impl Listener) {
        self.close(now, listener);
        self.state = State::Off;
    }

    /// Changes the venue or the route. The link stays off until it is connected again.
    pub fn set_route(&mut self, now: Nanos, route: Route, listener: &mut impl Listener) {
        self.disconnect(now, listener);
        self.config.route = route;
    }

    /// Logs in with another key, or none, on the open connection if there is one. Subscriptions remain;
    /// unanswered requests are reported as lost.
    pub fn set_key(&mut self, now: Nanos, key: Option<Key>, listener: &mut impl Listener) {
        self.give_up_requests(now, listener);
        self.session.set_key(key);
        if self.is_open() {
            self.start_session(now, listener);
        }
    }

    /// Sends a request at once; [`Listener::on_event`] receives its reply.
    ///
    /// # Errors
    /// [`RequestError`]; the request was not sent and will not be.
    #[inline]
    pub fn request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        self.send_request(now, method, params, WebSocketClient::send_utf8)
    }

    /// Does the same as [`request`](Link::request), but sends at the next [`flush`](Link::flush) or duty
    /// cycle, so that several requests cost one system call.
    ///
    /// # Errors
    /// See [`request`](Link::request).
    #[inline]
    pub fn queue_request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        self.send_request(now, method, params, WebSocketClient::queue_utf8)
    }

    /// Whether [`queue_request`](Link::queue_request) would accept a request of up to `len` bytes now.
    ///
    /// # Errors
    /// See [`request`](Link::request).
    #[inline]
    pub fn check_request(&self, now: Nanos, method: Method, len: usize) -> Result<(), RequestError> {
        match &self.state {
            State::Open(socket) if self.broken.is_none() && socket.has_room(len) => {
                self.session.check_request(now, method)
            }
            _ => Err(RequestError::NotReady),
        }
    }

    /// Runs the code of [`queue_request`](Link::queue_request) to warm the processor's caches. Nothing is
    /// kept or sent.
    pub fn rehearse_request<'a>(&mut self, now: Nanos, method: Method, params: &impl Field<'a>) {
        let State::Open(socket) = &mut self.state else { return };
        self.out.clear();
        self.session.rehearse_request(now, method, params, &mut self.out);
        socket.rehearse(&self.out);
        self.out.clear();
    }

    #[inline]
    fn send_request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
        send: impl Fn(&mut WebSocketClient<N>, &[u8]) -> SendOutcome,
    ) -> Result<i64, RequestError> {
        let State::Open(socket) = &mut self.state else { return Err(RequestError::NotReady) };
        if self.broken.is_some() {
            return Err(RequestError::NotReady);
        }
        self.out.clear();
        let id = self.session.request(now, method, params, &mut self.out)?;
        match send(socket, &self.out) {
            SendOutcome::Sent | SendOutcome::Pending => Ok(id),
            SendOutcome::Backpressured => {
                self.session.withdraw(id);
                self.broken = Some(Loss::Backpressured);
                Err(RequestError::NotReady)
            }
            // The kernel may have accepted the whole request before it detected the close.
            SendOutcome::Closed => {
                self.broken = Some(Loss::Gone);
                Ok(id)
            }
        }
    }

    /// The last request written, until the next call.
    #[must_use]
    pub fn sent(&self) -> &str {
        text_of(&self.out)
    }

    /// Passes waiting bytes to the kernel. Returns whether none are left.
    #[inline]
    pub fn flush(&mut self) -> bool {
        match &mut self.state {
            State::Open(socket) if socket.has_pending() => match socket.flush() {
                SendOutcome::Sent => true,
                SendOutcome::Pending | SendOutcome::Backpressured => false,
                SendOutcome::Closed => {
                    self.broken = Some(Loss::Gone);
                    true
                }
            },
            _ => true,
        }
    }

    /// Does a bounded amount of pending work and returns the amount. Never blocks.
    #[inline]
    pub fn do_work(&mut self, now: Nanos, listener: &mut impl Listener) -> usize {
        if let State::Open(_) = self.state {
            return match self.work_open(now, listener) {
                Ok(work) => work,
                Err(loss) => self.lose(listener.now(now), loss, listener),
            };
        }
        self.work_closed(now, listener)
    }

    /// Works on an attempt to connect.
    #[cold]
    fn work_closed(&mut self, now: Nanos, listener: &mut impl Listener) -> usize {
        let result = match &mut self.state {
            State::Off | State::Open(_) => return 0,
            State::Pausing { until } if now < *until => return 0,
            State::Pausing { .. } => {
                listener.on_change(now, Change::Begun);
                self.look_up(now)
            }
            State::Looking { .. } => self.look_up(now),
            State::Opening(socket) => match socket.poll_open(now) {
                Ok(false) => Ok(0),
                Ok(true) => Ok(self.open(now, listener)),
                Err(error) => Err(error.into()),
            },
        };
        result.unwrap_or_else(|loss| self.lose(now, loss, listener))
    }

    /// Polls the name service, then starts to connect.
    fn look_up(&mut self, now: Nanos) -> Result<usize, Loss> {
        let (timeout, hop) = (self.config.limits.connect_timeout, self.config.route.first_hop());
        let Some(address) = self.state.look_up(now, timeout, &mut self.names, hop)? else { return Ok(0) };
        let Route { url, proxy, tls } = &self.config.route;
        let target = Target { url: url.clone(), address, is_proxy: proxy.is_some(), tls: tls.clone() };
        let socket = WebSocketClient::start(&self.network, now, target, self.config.limits)?;
        self.state = State::Opening(socket);
        Ok(1)
    }

    /// Starts the session on a new connection.
    fn open(&mut self, now: Nanos, listener: &mut impl Listener) -> usize {
        self.state = match std::mem::replace(&mut self.state, State::Off) {
            State::Opening(socket) => State::Open(socket),
            other => other,
        };
        self.stats.opened += 1;
        listener.on_change(now, Change::Opened);
        self.start_session(now, listener);
        1
    }

    fn start_session(&mut self, now: Nanos, listener: &mut impl Listener) {
        // Shared by the whole process: two links may log in within the same millisecond.
        static NONCES: AtomicU64 = AtomicU64::new(0);
        self.ready_at = None;
        let unix_ms = listener.unix_ms(now);
        let number = NONCES.fetch_add(1, Ordering::Relaxed);
        let nonce = format!("{unix_ms:x}-{:x}-{number:x}", std::process::id());
        self.session.start(now, unix_ms, &nonce);
        if let Err(loss) = self.transmit(now, listener) {
            self.broken = Some(loss);
        }
    }

    fn work_open(&mut self, now: Nanos, listener: &mut impl Listener) -> Result<usize, Loss> {
        // After a logout, any other cause also ends the connection at once.
        if self.session.is_over() {
            return self.await_logout(now, listener);
        }
        if let Some(loss) = self.broken.take() {
            return Err(loss);
        }
        let mut work = self.receive(now, listener)?;
        work += self.expire(listener.now(now), listener)?;
        work += self.transmit(listener.now(now), listener)?;
        Ok(work)
    }

    /// Waits after a logout, which has no reply: the venue confirms it by closing the connection.
    #[cold]
    fn await_logout(&mut self, now: Nanos, listener: &mut impl Listener) -> Result<usize, Loss> {
        let until = *self.logout_until.get_or_insert(now + self.config.session.request_timeout);
        if self.broken.take().is_some() || now >= until {
            return Err(Loss::LogoutUnanswered);
        }
        match self.receive(now, listener).and_then(|work| Ok(work + self.transmit(now, listener)?)) {
            Ok(work) => Ok(work),
            // A broken connection is no confirmation: the venue treats it as a loss and cancels accordingly.
            Err(Loss::Closed { code: Closed::BROKEN, reason }) if !reason.is_empty() => {
                Err(Loss::LogoutUnanswered)
            }
            Err(Loss::Closed { .. }) => Err(Loss::Logout),
            Err(_) => Err(Loss::LogoutUnanswered),
        }
    }

    fn receive(&mut self, cycle: Nanos, listener: &mut impl Listener) -> Result<usize, Loss> {
        for count in 0..self.config.messages_max {
            let State::Open(socket) = &mut self.state else { return Ok(count) };
            if !socket.poll_event()? {
                return Ok(count);
            }
            let at = Received { at: listener.now(cycle), kernel_ns: socket.kernel_ns() };
            let text = match socket.event() {
                Some(WebEvent::Text(text)) => text,
                Some(WebEvent::Closed(closed)) => {
                    return Err(Loss::Closed { code: closed.code, reason: closed.reason.to_owned() });
                }
                Some(WebEvent::Binary(_)) | None => {
                    self.stats.unreadable += 1;
                    continue;
                }
            };
            self.stats.messages += 1;
            let Ok(inbound) = listener.on_text(at, text) else {
                self.stats.unreadable += 1;
                continue;
            };
            let was_ready = self.ready_at.is_some();
            if let Some(event) = self.session.handle(at.at, inbound) {
                let refusal = match event {
                    SessionEvent::Ready => {
                        self.stats.logins += 1;
                        self.ready_at = Some(at.at);
                        None
                    }
                    SessionEvent::LoginRefused { method, error } => Some(refusal(method, error)),
                    _ => None,
                };
                listener.on_event(at, event);
                if let Some((loss, may_succeed)) = refusal {
                    // After a refused renewal, a login with the key may still succeed.
                    self.is_refused = !was_ready && !may_succeed;
                    return Err(loss);
                }
            }
            if !self.session.is_ready() {
                // Sends the next step of the login at once.
                self.transmit(at.at, listener)?;
            }
        }
        Ok(self.config.messages_max)
    }

    fn expire(&mut self, now: Nanos, listener: &mut impl Listener) -> Result<usize, Loss> {
        let mut count = 0;
        while let Some(expiry) = self.session.handle_timeout(now) {
            count += 1;
            match expiry {
                Expiry::Request { id, method } => {
                    self.stats.late += 1;
                    listener.on_unanswered(now, id, method, Unanswered::Late);
                }
                Expiry::Login { method } => return Err(Loss::Login { method }),
                _ => return Err(Loss::Silence),
            }
        }
        Ok(count)
    }

    /// Sends the session's messages and the queued bytes.
    fn transmit(&mut self, now: Nanos, listener: &mut impl Listener) -> Result<usize, Loss> {
        let mut count = 0;
        let State::Open(socket) = &mut self.state else { return Ok(0) };
        loop {
            self.out.clear();
            if !self.session.poll_transmit(now, &mut self.out) {
                break;
            }
            let text = text_of(&self.out);
            match socket.send(text) {
                SendOutcome::Sent | SendOutcome::Pending => {
                    listener.on_sent(now, text);
                    count += 1;
                }
                SendOutcome::Backpressured => return Err(Loss::Backpressured),
                SendOutcome::Closed => return Err(Loss::Gone),
            }
        }
        if socket.has_pending() && socket.flush() == SendOutcome::Closed {
            return Err(Loss::Gone);
        }
        Ok(count)
    }

    #[cold]
    fn lose(&mut self, now: Nanos, loss: Loss, listener: &mut impl Listener) -> usize {
        self.stats.losses += 1;
        self.pauses.note_end(now, self.ready_at);
        self.close(now, listener);
        let is_over = matches!(loss, Loss::Logout | Loss::LogoutUnanswered)
            || (self.is_refused && !self.config.retries_refused_login);
        let again_at = (!is_over).then(|| now + self.next_pause(now));
        self.state = again_at.map_or(State::Off, |until| State::Pausing { until });
        listener.on_change(now, Change::Lost { why: &loss, again_at });
        1
    }

    fn next_pause(&mut self, now: Nanos) -> Nanos {
        if std::mem::take(&mut self.is_refused) { self.pauses.longest() } else { self.pauses.next(now) }
    }

    /// Closes the connection and reports the unanswered requests.
    fn close(&mut self, now: Nanos, listener: &mut impl Listener) {
        if let State::Open(socket) = &mut self.state {
            socket.close(CLOSE_GOING_AWAY, "going away");
            // If the close cannot leave now, the venue detects the disconnect anyway.
            let _ = socket.flush();
        }
        self.state = State::Off;
        self.ready_at = None;
        self.logout_until = None;
        self.broken = None;
        self.give_up_requests(now, listener);
        self.session.end();
    }

    fn give_up_requests(&mut self, now: Nanos, listener: &mut impl Listener) {
        for (id, method) in self.session.pending() {
            self.stats.lost += 1;
            listener.on_unanswered(now, id, method, Unanswered::Lost);
        }
    }

    fn socket(&self) -> Option<&WebSocketClient<N>> {
        match &self.state {
            State::Opening(socket) | State::Open(socket) => Some(socket),
            _ => None,
        }
    }
}

fn text_of(out: &[u8]) -> &str {
    std::str::from_utf8(out).expect("requests are written as JSON text")
}

/// The reason of a refused login, and whether a retry may succeed: not if the key itself is refused.
fn refusal(method: Method, error: Option<ErrorBody<'_>>) -> (Loss, bool) {
    let Some(error) = error else {
        return (Loss::Refused { code: None, why: "its answer cannot be read".to_owned() }, true);
    };
    let known = error.error_code();
    let remedy = match (method, known) {
        (Method::Auth, Some(ErrorCode::Unauthorized | ErrorCode::InvalidCredentials)) => {
            "Check client_id and client_secret, that they are of this environment, and the clock of this machine."
        }
        _ => known.map_or("", |code| code.remedy()),
    };
    let why = format!("{} ({}): {remedy}", error.message.to_cow(), error.code);
    let may_succeed = method != Method::Auth || known.is_some_and(|code| code.is_retryable());
    (Loss::Refused { code: Some(error.code), why }, may_succeed)
}

//! The connection to a venue, kept.

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

/// The close code of a client that leaves (RFC 6455, 7.4.1).
const CLOSE_GOING_AWAY: u16 = 1001;

/// How a link is to be.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Where the venue is.
    pub route: Route,
    /// The session.
    pub session: SessionConfig,
    /// Bounds of the connection.
    pub limits: WebLimits,
    /// The first pause before connecting again; each further one is twice as long.
    pub pause_min: Nanos,
    /// The longest pause.
    pub pause_max: Nanos,
    /// Messages that one duty cycle takes at most.
    pub messages_max: usize,
    /// A login that was refused for good is tried again, after the longest pause; otherwise the link is off then.
    pub retries_refused_login: bool,
    /// Of the parts that pauses are shortened by, so that many clients do not come back at once.
    pub seed: u64,
    /// Who knows the addresses of names.
    pub resolver: Resolver,
}

impl LinkConfig {
    /// Pauses of 250 ms to 30 s, 256 messages a duty cycle; the system knows the addresses, and a refused login is not
    /// tried again.
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

/// What a link counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Connections that stood.
    pub opened: u64,
    /// Logins that were done.
    pub logins: u64,
    /// Connections that were lost or did not come to be.
    pub losses: u64,
    /// Messages received.
    pub messages: u64,
    /// Messages that could not be read.
    pub unreadable: u64,
    /// Requests without a reply in time.
    pub late: u64,
    /// Requests whose connection was lost before the reply.
    pub lost: u64,
}

/// A connection to a venue that is made again when it is lost.
#[derive(Debug)]
pub struct Link<N: Network = Kernel> {
    config: LinkConfig,
    network: N,
    names: NameService,
    session: Session,
    state: State<WebSocketClient<N>, WebSocketClient<N>>,
    pauses: Pauses,
    ready_at: Option<Nanos>,
    /// What ended the connection between two duty cycles.
    broken: Option<Loss>,
    /// The login was refused for good.
    is_refused: bool,
    /// After a logout: until when the venue may close the connection, which is its answer.
    logout_until: Option<Nanos>,
    /// The last request, or message of the session.
    out: Vec<u8>,
    stats: LinkStats,
}

impl Link {
    /// A link over the kernel's sockets that is off.
    #[must_use]
    pub fn new(config: LinkConfig) -> Link {
        Link::on(Kernel, config)
    }

    /// The socket, to wait for together with others; none while there is no connection.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket().and_then(WebSocketClient::fd)
    }
}

impl<N: Network> Link<N> {
    /// As [`new`](Link::new), on any network.
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

    /// Where it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.state.standing(self.session.is_ready() && self.broken.is_none())
    }

    /// What is being waited for, in words.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        self.state.stage(self.session.is_ready(), "login", WebSocketClient::stage)
    }

    /// Whether the connection stands; the login may still be on its way.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// The session, to be asked.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Where the venue is.
    #[must_use]
    pub fn route(&self) -> &Route {
        &self.config.route
    }

    /// Wants a channel, from now on and after each new connection.
    ///
    /// # Errors
    /// [`ChannelError`] when no channel has such a name.
    pub fn subscribe(&mut self, channel: &str) -> Result<(), ChannelError> {
        self.session.subscribe(channel)
    }

    /// Wants a channel no longer.
    pub fn unsubscribe(&mut self, channel: &str) {
        self.session.unsubscribe(channel);
    }

    /// Ends a subscription and begins it anew, for a whole book after a gap. False when the channel is not wanted.
    pub fn resubscribe(&mut self, channel: &str) -> bool {
        self.session.resubscribe(channel)
    }

    /// Wants a connection, from now on and at once.
    pub fn connect(&mut self, now: Nanos) {
        if self.state.want(now) {
            self.is_refused = false;
            self.pauses.reset();
        }
    }

    /// Wants no connection any longer, and closes it with "going away".
    pub fn disconnect(&mut self, now: Nanos, listener: &mut impl Listener) {
        self.close(now, listener);
        self.state = State::Off;
    }

    /// Goes to another venue, or another way: off until it is connected.
    pub fn set_route(&mut self, now: Nanos, route: Route, listener: &mut impl Listener) {
        self.disconnect(now, listener);
        self.config.route = route;
    }

    /// Logs in with another key, or none, on this connection where there is one. What is subscribed stays so; what was
    /// asked and has no reply is told as lost.
    pub fn set_key(&mut self, now: Nanos, key: Option<Key>, listener: &mut impl Listener) {
        self.give_up_requests(now, listener);
        self.session.set_key(key);
        if self.is_open() {
            self.start_session(now, listener);
        }
    }

    /// Sends a request at once; its reply comes by [`Listener::on_event`].
    ///
    /// # Errors
    /// [`RequestError`]; nothing was sent then, and nothing will be.
    #[inline]
    pub fn request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        self.send_request(now, method, params, WebSocketClient::send)
    }

    /// As [`request`](Link::request), to leave with the next [`flush`](Link::flush) or duty cycle, so that several
    /// requests cost one system call.
    ///
    /// # Errors
    /// As [`request`](Link::request).
    #[inline]
    pub fn queue_request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<i64, RequestError> {
        self.send_request(now, method, params, WebSocketClient::queue)
    }

    /// Whether [`queue_request`](Link::queue_request) would take a request of up to `len` bytes now.
    ///
    /// # Errors
    /// As [`request`](Link::request).
    #[inline]
    pub fn check_request(&self, now: Nanos, method: Method, len: usize) -> Result<(), RequestError> {
        match &self.state {
            State::Open(socket) if self.broken.is_none() && socket.has_room(len) => {
                self.session.check_request(now, method)
            }
            _ => Err(RequestError::NotReady),
        }
    }

    /// Goes through the motions of [`queue_request`](Link::queue_request), so that its code is in the processor's caches
    /// when it counts. Nothing is kept of it, or sent.
    pub fn rehearse_request<'a>(&mut self, method: Method, params: &impl Field<'a>) {
        let State::Open(socket) = &mut self.state else { return };
        self.out.clear();
        self.session.rehearse_request(method, params, &mut self.out);
        socket.rehearse(text_of(&self.out));
        self.out.clear();
    }

    #[inline]
    fn send_request<'a>(
        &mut self,
        now: Nanos,
        method: Method,
        params: &impl Field<'a>,
        send: impl Fn(&mut WebSocketClient<N>, &str) -> SendOutcome,
    ) -> Result<i64, RequestError> {
        let State::Open(socket) = &mut self.state else { return Err(RequestError::NotReady) };
        if self.broken.is_some() {
            return Err(RequestError::NotReady);
        }
        self.out.clear();
        let id = self.session.request(now, method, params, &mut self.out)?;
        match send(socket, text_of(&self.out)) {
            SendOutcome::Sent | SendOutcome::Pending => Ok(id),
            SendOutcome::Backpressured => {
                self.session.withdraw(id);
                self.broken = Some(Loss::Backpressured);
                Err(RequestError::NotReady)
            }
            // The kernel may have had all of it before it noticed.
            SendOutcome::Closed => {
                self.broken = Some(Loss::Gone);
                Ok(id)
            }
        }
    }

    /// The request that was written last, until the next call.
    #[must_use]
    pub fn sent(&self) -> &str {
        text_of(&self.out)
    }

    /// Gives the kernel what waits; whether nothing is left.
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

    /// Does a bounded amount of what there is to do, and returns how much. Waits for nothing.
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

    /// On the way to a connection.
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

    /// With what the name service says.
    fn look_up(&mut self, now: Nanos) -> Result<usize, Loss> {
        let (timeout, hop) = (self.config.limits.connect_timeout, self.config.route.first_hop());
        let Some(address) = self.state.look_up(now, timeout, &mut self.names, hop)? else { return Ok(0) };
        let Route { url, proxy, tls } = &self.config.route;
        let target = Target { url: url.clone(), address, is_proxy: proxy.is_some(), tls: tls.clone() };
        let socket = WebSocketClient::start(&self.network, now, target, self.config.limits)?;
        self.state = State::Opening(socket);
        Ok(1)
    }

    /// The connection stands now.
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
        // Of the whole process: two links may log in within the same millisecond.
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
        // It ends at once for whatever other reason.
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

    /// After a logout, which has no reply: the end of the connection says that the venue took it.
    #[cold]
    fn await_logout(&mut self, now: Nanos, listener: &mut impl Listener) -> Result<usize, Loss> {
        let until = *self.logout_until.get_or_insert(now + self.config.session.request_timeout);
        if self.broken.take().is_some() || now >= until {
            return Err(Loss::LogoutUnanswered);
        }
        match self.receive(now, listener).and_then(|work| Ok(work + self.transmit(now, listener)?)) {
            Ok(work) => Ok(work),
            // What breaks the line is no answer: the venue takes it for a loss, with what is to be cancelled then.
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
                    // A renewal that is refused: the login with the key may succeed.
                    self.is_refused = !was_ready && !may_succeed;
                    return Err(loss);
                }
            }
            if !self.session.is_ready() {
                // The next step of the login leaves at once.
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

    /// Sends what the session has to say, and what waits.
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

    /// Ends the connection, and tells what has no reply.
    fn close(&mut self, now: Nanos, listener: &mut impl Listener) {
        if let State::Open(socket) = &mut self.state {
            socket.close(CLOSE_GOING_AWAY, "going away");
            // Where it does not leave now the other end notices without it.
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

/// Why a login was refused, and whether another one may succeed: unless the key itself is refused.
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

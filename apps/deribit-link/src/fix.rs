//! A persistent connection to a venue's FIX endpoint.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::BorrowedFd;

use tickpath_deribit::credits::{CreditPlan, Credits};
use tickpath_deribit::session::{Key, RequestError};
use tickpath_fix::deribit::{Credentials, LogonClock, NONCE_LEN_MIN, RAW_DATA_LEN_MAX, password, raw_data};
use tickpath_fix::session::{
    CloseReason, Header, Listener as SessionListener, Logout, NoStore, Refusal, Reject, SendError, Session,
    SessionConfig,
};
use tickpath_fix::{Body, Message, MsgType, Parsed};
use tickpath_net::{Kernel, Network};
use tickpath_types::Nanos;
use tickpath_web::{ByteClient, ByteConnection, ByteTarget, TlsClient, WebError};

use crate::link::LinkStats;
use crate::lookup::{NameService, Resolver};
use crate::loss::Loss;
use crate::pauses::Pauses;
use crate::route::Proxy;
use crate::state::{Standing, State};

/// Upper bound of bytes that one duty cycle reads.
const READ_MAX: usize = 16 << 10;
/// Longest Reject that is passed to the listener, in bytes: a Reject names one field and one text.
const REJECT_LEN_MAX: usize = 1 << 10;
/// Longest request that warm-up encodes in full, in bytes.
const REHEARSED_LEN_MAX: usize = 1 << 10;
/// Text of a venue that refuses a Logon permanently.
const BAD_KEY: &str = "invalid_credentials";
/// Text of our venue when another client logs on under our name. An immediate reconnect would cause a loop.
const ANOTHER_LOGON: &str = "another Logon";

/// The address of a venue's FIX endpoint and the route to it.
#[derive(Clone, Debug)]
pub struct FixRoute {
    /// Name or IPv4 address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The proxy, if any.
    pub proxy: Option<Proxy>,
    /// The trusted certificates for an endpoint that uses TLS; `None` for plain TCP.
    pub tls: Option<TlsClient>,
}

/// Configuration of a FIX link.
#[derive(Clone, Debug)]
pub struct FixLinkConfig {
    /// The route to the endpoint.
    pub route: FixRoute,
    /// The session; its heartbeat interval is whole seconds.
    pub session: SessionConfig,
    /// The credentials for the Logon.
    pub key: Key,
    /// The venue cancels the orders of this connection when it ends (CancelOnDisconnect, 9001).
    pub cancel_on_disconnect: bool,
    /// The venue's limit of orders, replacements and cancels per second; exceeding it ends the session.
    pub matching: CreditPlan,
    /// Time for TCP, proxy and TLS.
    pub connect_timeout: Nanos,
    /// The first pause before a reconnect; each further one is twice as long.
    pub pause_min: Nanos,
    /// The longest pause, also after a permanently refused Logon, and when another client uses our name.
    pub pause_max: Nanos,
    /// Seed of the random reductions of pauses.
    pub seed: u64,
    /// The name resolver.
    pub resolver: Resolver,
}

impl FixLinkConfig {
    /// Defaults: heartbeats of 5 s, pauses of 250 ms to 30 s, 5 requests a second in bursts of 20. `sender`
    /// is our name (SenderCompID).
    ///
    /// # Panics
    /// If the name is longer than 64 bytes.
    #[must_use]
    pub fn new(route: FixRoute, sender: &str, key: Key) -> FixLinkConfig {
        FixLinkConfig {
            route,
            session: SessionConfig {
                heartbeat: Nanos::from_secs(5),
                ..SessionConfig::deribit_client(sender)
            },
            key,
            cancel_on_disconnect: true,
            matching: CreditPlan::rate(5, 20),
            connect_timeout: Nanos::from_secs(15),
            pause_min: Nanos::from_millis(250),
            pause_max: Nanos::from_secs(30),
            seed: u64::from(std::process::id()),
            resolver: tickpath_web::resolve,
        }
    }
}

/// A change of the connection's state.
#[derive(Debug)]
#[non_exhaustive]
pub enum FixChange<'l> {
    /// Connecting has begun.
    Begun,
    /// The connection is open; the Logon begins.
    Opened,
    /// The Logon is complete: requests may be sent.
    Ready,
    /// The connection was lost or could not be made. Unanswered requests may or may not have been executed.
    Lost {
        /// The reason.
        why: &'l Loss,
        /// The time of the next attempt.
        again_at: Nanos,
    },
}

/// Receives a link's events, which borrow from the receive buffer.
pub trait FixListener {
    /// The time, read after each message; `cycle` is the time passed to [`do_work`](FixLink::do_work).
    #[inline]
    fn now(&mut self, cycle: Nanos) -> Nanos {
        cycle
    }

    /// The time of day in milliseconds since 1970, for the signature of a Logon. By default the owner's clock
    /// counts from the Unix epoch, like that of agents.
    fn unix_ms(&mut self, now: Nanos) -> u64 {
        now.0 / 1_000_000
    }

    /// An application message, in sequence and without duplicates. This includes a Reject (`3`), the answer
    /// to one of our messages.
    fn on_message(&mut self, at: Nanos, message: &Message<'_>);

    /// A session message. A Logon response may repeat credentials: do not display it unmasked.
    #[inline]
    fn on_session_message(&mut self, at: Nanos, message: &Message<'_>) {
        let _ = (at, message);
    }

    /// The connection's state changed.
    fn on_change(&mut self, at: Nanos, change: FixChange<'_>);
}

/// A FIX session with a venue that reconnects after each loss.
///
/// As on Deribit, sequence numbers start at 1 with each connection, and nothing is resent. After a loss,
/// reconcile the unanswered requests in another way. Buffers are allocated at the start; later only losses
/// and logons allocate.
#[derive(Debug)]
pub struct FixLink<N: Network = Kernel> {
    config: FixLinkConfig,
    network: N,
    names: NameService,
    pauses: Pauses,
    session: Session<NoStore>,
    logons: LogonClock,
    credits: Credits,
    state: State<Box<ByteClient<N>>, Box<ByteConnection<N>>>,
    received: Box<[u8]>,
    received_len: usize,
    /// A Reject, until the session has checked it.
    reject: Vec<u8>,
    /// The text of the venue's logout.
    farewell: String,
    ready_at: Option<Nanos>,
    /// The error that ended the connection between two duty cycles.
    broken: Option<Loss>,
    /// Buffer of the last warm-up request.
    rehearsed: Box<[u8]>,
    /// The time of the last call.
    now: Nanos,
    stats: LinkStats,
}

impl FixLink {
    /// Creates a link over the kernel's sockets, disconnected.
    #[must_use]
    pub fn new(config: FixLinkConfig) -> FixLink {
        FixLink::on(Kernel, config)
    }

    /// The socket, for waiting on it together with others; `None` while no connection is open.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Open(connection) => Some(connection.fd()),
            _ => None,
        }
    }
}

impl<N: Network> FixLink<N> {
    /// Creates a link on any network; see [`new`](FixLink::new).
    #[must_use]
    pub fn on(network: N, config: FixLinkConfig) -> FixLink<N> {
        FixLink {
            network,
            names: NameService::new(config.resolver),
            pauses: Pauses::new(config.pause_min, config.pause_max, config.seed),
            session: Session::new(config.session, NoStore),
            logons: LogonClock::default(),
            credits: Credits::new(config.matching, Nanos::ZERO),
            state: State::Off,
            received: vec![0; config.session.message_len_max + READ_MAX].into_boxed_slice(),
            received_len: 0,
            reject: Vec::with_capacity(REJECT_LEN_MAX),
            farewell: String::new(),
            ready_at: None,
            broken: None,
            rehearsed: vec![0; REHEARSED_LEN_MAX].into_boxed_slice(),
            now: Nanos::ZERO,
            stats: LinkStats::default(),
            config,
        }
    }

    /// The status of the link.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.state.standing(self.session.is_up() && self.broken.is_none())
    }

    /// Names the pending step.
    #[must_use]
    pub fn stage(&self) -> &'static str {
        self.state.stage(self.session.is_up(), "logon", |opening| opening.stage())
    }

    /// Number of matching engine requests that may be sent now.
    #[must_use]
    pub fn requests_left(&self, now: Nanos) -> u64 {
        self.credits.requests_left(now)
    }

    /// The counters.
    #[must_use]
    pub const fn stats(&self) -> LinkStats {
        self.stats
    }

    /// The session, for queries.
    #[must_use]
    pub const fn session(&self) -> &Session<NoStore> {
        &self.session
    }

    /// Requests a connection, at once and until [`disconnect`](FixLink::disconnect).
    pub fn connect(&mut self, now: Nanos) {
        if self.state.want(now) {
            self.pauses.reset();
        }
    }

    /// Logs out without waiting for the answer, closes the connection and stops reconnecting. The venue then
    /// applies [`cancel_on_disconnect`](FixLinkConfig::cancel_on_disconnect).
    pub fn disconnect(&mut self, now: Nanos) {
        self.session.logout(now, &Logout::default());
        self.close(now);
        self.state = State::Off;
    }

    /// Writes a request to the send buffer, for the next [`flush`](FixLink::flush) or duty cycle. Returns its
    /// MsgSeqNum.
    ///
    /// # Errors
    /// [`RequestError`]; nothing was written.
    #[inline]
    pub fn send<'a, B: Body<'a>>(&mut self, now: Nanos, body: &B) -> Result<i64, RequestError> {
        self.now = now;
        if !self.session.is_up() || self.broken.is_some() {
            return Err(RequestError::NotReady);
        }
        if B::MSG_TYPE != MsgType::ORDER_MASS_CANCEL_REQUEST {
            self.credits.try_take(now).map_err(|wait_ns| RequestError::RateLimit { wait_ns })?;
        }
        self.session.send(now, body).map(|sequence| sequence as i64).map_err(|error| match error {
            SendError::Full => RequestError::TooManyPending,
            SendError::BadValue { .. } => RequestError::TooLarge,
            _ => RequestError::NotReady,
        })
    }

    /// Whether [`send`](FixLink::send) would accept a request of up to `len` bytes now.
    ///
    /// # Errors
    /// See [`send`](FixLink::send).
    #[inline]
    pub fn check_request(&self, now: Nanos, len: usize) -> Result<(), RequestError> {
        if !self.session.is_up() || self.broken.is_some() {
            return Err(RequestError::NotReady);
        }
        if !self.session.has_room(len) {
            return Err(RequestError::TooManyPending);
        }
        match self.credits.wait_ns(now) {
            0 => Ok(()),
            wait_ns => Err(RequestError::RateLimit { wait_ns }),
        }
    }

    /// Encodes a request and discards it, to warm the processor's caches with code and data.
    ///
    /// # Errors
    /// Always.
    pub fn rehearse<'a>(&mut self, body: &impl Body<'a>) -> Result<i64, RequestError> {
        let _ = std::hint::black_box(body.write_bare(&mut self.rehearsed));
        Err(RequestError::NotReady)
    }

    /// Passes waiting bytes to the kernel. Returns whether none are left.
    #[inline]
    pub fn flush(&mut self) -> bool {
        if self.session.output().is_empty() {
            return true;
        }
        match self.write() {
            Ok(is_done) => is_done,
            Err(loss) => {
                self.broken.get_or_insert(loss);
                true
            }
        }
    }

    fn write(&mut self) -> Result<bool, Loss> {
        let State::Open(connection) = &mut self.state else { return Ok(true) };
        let broke = |source| WebError::Io { host: self.config.route.host.clone(), source };
        while !self.session.output().is_empty() {
            let count = connection.write(self.session.output()).map_err(broke)?;
            if count == 0 {
                return Ok(false);
            }
            self.session.handle_sent(self.now, count);
        }
        // TLS may still hold bytes that it accepted.
        Ok(connection.flush().map_err(broke)?)
    }

    /// Does a bounded amount of pending work and returns the amount. Never blocks.
    #[inline]
    pub fn do_work(&mut self, now: Nanos, listener: &mut impl FixListener) -> usize {
        self.now = now;
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
    fn work_closed(&mut self, now: Nanos, listener: &mut impl FixListener) -> usize {
        let result = match &mut self.state {
            State::Off | State::Open(_) => return 0,
            State::Pausing { until } if now < *until => return 0,
            State::Pausing { .. } => {
                listener.on_change(now, FixChange::Begun);
                self.look_up(now)
            }
            State::Looking { .. } => self.look_up(now),
            State::Opening(opening) => match opening.poll_open(now) {
                Ok(None) => Ok(0),
                Ok(Some(connection)) => self.open(now, connection, listener),
                Err(error) => Err(error.into()),
            },
        };
        result.unwrap_or_else(|loss| self.lose(now, loss, listener))
    }

    /// Polls the name service, then starts to connect.
    fn look_up(&mut self, now: Nanos) -> Result<usize, Loss> {
        let (timeout, hop) = (self.config.connect_timeout, self.config.route.first_hop());
        let Some(address) = self.state.look_up(now, timeout, &mut self.names, hop)? else { return Ok(0) };
        let FixRoute { host, port, proxy, tls } = self.config.route.clone();
        let target = ByteTarget { host, port, address, is_proxy: proxy.is_some(), tls };
        let opening = ByteClient::start(&self.network, now, target, self.config.connect_timeout)?;
        self.state = State::Opening(Box::new(opening));
        Ok(1)
    }

    /// Sends the Logon on a new connection.
    fn open(
        &mut self,
        now: Nanos,
        connection: ByteConnection<N>,
        listener: &mut impl FixListener,
    ) -> Result<usize, Loss> {
        self.state = State::Open(Box::new(connection));
        self.stats.opened += 1;
        self.received_len = 0;
        self.farewell.clear();
        listener.on_change(now, FixChange::Opened);
        let timestamp = self.logons.next(listener.unix_ms(now));
        let mut raw = [0; RAW_DATA_LEN_MAX];
        let raw = raw_data(timestamp, &nonce(timestamp), &mut raw).expect("the nonce has enough bytes");
        let password = password(raw, self.config.key.secret().as_bytes());
        let credentials = Credentials {
            raw_data_length: Some(raw.len() as u64),
            raw_data: Some(raw),
            username: Some(&self.config.key.client_id),
            password: Some(std::str::from_utf8(&password).expect("base64 is text")),
            cancel_on_disconnect: Some(self.config.cancel_on_disconnect),
            ..Credentials::default()
        };
        self.session.connect(now, &credentials)?;
        self.write()?;
        Ok(1)
    }

    fn work_open(&mut self, now: Nanos, listener: &mut impl FixListener) -> Result<usize, Loss> {
        if let Some(loss) = self.broken.take() {
            return Err(loss);
        }
        let mut work = self.receive(now, listener)?;
        if self.session.poll_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
            work += 1;
        }
        if !self.session.output().is_empty() {
            self.write()?;
            work += 1;
        }
        match self.session.close_reason() {
            Some(why) => Err(self.loss_of(why)),
            None => Ok(work),
        }
    }

    fn receive(&mut self, cycle: Nanos, listener: &mut impl FixListener) -> Result<usize, Loss> {
        let State::Open(connection) = &mut self.state else { return Ok(0) };
        let room = &mut self.received[self.received_len..];
        let room_len = room.len().min(READ_MAX);
        let count = match connection.read(&mut room[..room_len]) {
            Ok(None) => return Ok(0),
            Ok(Some(count)) => count,
            Err(_) if !self.farewell.is_empty() => return Err(self.loss_of(CloseReason::LoggedOut)),
            Err(source) => return Err(WebError::Io { host: self.config.route.host.clone(), source }.into()),
        };
        self.received_len += count;
        let at = listener.now(cycle);
        let before = self.session.stats().received;
        let FixLink { session, received, received_len, reject, farewell, stats, .. } = self;
        let was_up = session.is_up();
        let mut ear =
            Ear { listener, at, reject, farewell, was_up, is_up: false, unreadable: &mut stats.unreadable };
        let done = session.handle_bytes(at, &received[..*received_len], &mut ear);
        let is_up = ear.is_up;
        received.copy_within(done..*received_len, 0);
        *received_len -= done;
        self.stats.messages += self.session.stats().received - before;
        if is_up {
            self.stats.logins += 1;
            self.ready_at = Some(at);
        }
        Ok(1)
    }

    fn loss_of(&mut self, why: CloseReason) -> Loss {
        if why == CloseReason::LogonRefused {
            let why = std::mem::take(&mut self.farewell);
            let why = if why.is_empty() { "the venue does not say why".to_owned() } else { why };
            return Loss::Refused { code: None, why };
        }
        Loss::Fix { why, text: std::mem::take(&mut self.farewell) }
    }

    #[cold]
    fn lose(&mut self, now: Nanos, loss: Loss, listener: &mut impl FixListener) -> usize {
        self.stats.losses += 1;
        self.pauses.note_end(now, self.ready_at);
        self.close(now);
        let is_for_good = match &loss {
            Loss::Refused { why, .. } => why.contains(BAD_KEY),
            Loss::Fix { text, .. } => text.starts_with(ANOTHER_LOGON),
            _ => false,
        };
        let pause = if is_for_good { self.pauses.longest() } else { self.pauses.next(now) };
        let again_at = now + pause;
        self.state = State::Pausing { until: again_at };
        listener.on_change(now, FixChange::Lost { why: &loss, again_at });
        1
    }

    /// Sends the waiting bytes and closes the connection.
    fn close(&mut self, now: Nanos) {
        self.now = now;
        // If the bytes cannot leave now, the venue detects the disconnect anyway.
        let _ = self.write();
        if let State::Open(connection) = &mut self.state {
            connection.close();
        }
        self.state = State::Off;
        self.session.handle_closed();
        (self.ready_at, self.broken, self.received_len) = (None, None, 0);
    }
}

impl FixRoute {
    /// The host and port to look up: the proxy's, or the venue's.
    fn first_hop(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (&self.host, self.port),
        }
    }
}

/// Random bytes. They need not be secret, but each logon needs different ones.
fn nonce(timestamp: u64) -> [u8; NONCE_LEN_MIN] {
    let random = RandomState::new();
    let mut bytes = [0; NONCE_LEN_MIN];
    for (place, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&random.hash_one((timestamp, place, std::process::id())).to_le_bytes());
    }
    bytes
}

/// Forwards the session's events to the link's listener.
struct Ear<'a, L> {
    listener: &'a mut L,
    at: Nanos,
    reject: &'a mut Vec<u8>,
    farewell: &'a mut String,
    was_up: bool,
    is_up: bool,
    unreadable: &'a mut u64,
}

impl<L: FixListener> SessionListener for Ear<'_, L> {
    #[inline]
    fn on_message(&mut self, _: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        self.listener.on_message(self.at, message);
        Ok(())
    }

    #[inline]
    fn on_session_message(&mut self, message: &Message<'_>) {
        if message.msg_type() != MsgType::REJECT {
            return self.listener.on_session_message(self.at, message);
        }
        self.reject.clear();
        match message.as_bytes().len() <= REJECT_LEN_MAX {
            true => self.reject.extend_from_slice(message.as_bytes()),
            // The rejected request then gets no answer and times out.
            false => *self.unreadable += 1,
        }
    }

    fn on_logged_on(&mut self) {
        self.is_up = true;
        self.listener.on_change(self.at, FixChange::Ready);
    }

    fn on_reject(&mut self, reject: &Reject<'_>) {
        if !self.was_up {
            // The Logon was refused.
            self.farewell.push_str(reject.text.unwrap_or_default());
        }
        if let Parsed::Complete { message, .. } = Message::parse(self.reject) {
            self.listener.on_message(self.at, &message);
        }
    }

    fn on_logout(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.farewell.clear();
            self.farewell.push_str(text);
        }
    }
}

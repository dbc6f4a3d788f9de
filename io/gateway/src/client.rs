//! The client side.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tickpath_gateway_protocol::frame::{Hello, Password, Welcome};
use tickpath_gateway_protocol::{
    Body, Connected, Disconnected, DownloadEnd, DownloadMarketData, Event, EventKind, Lapped, ORDER_ID_MAX,
    Request, RequestBody, RequestHeader, SessionId, Start, Stop, Text, Timer, flags,
};
use tickpath_lockfree::cpu;
use tickpath_types::Nanos;

use crate::clock::monotonic;
use crate::connection::{Connection, Received};
use crate::error::{ConnectError, SendError};
use crate::server::SYSTEM_TIMEOUT;

/// Interval of checks whether the gateway still exists.
const CHECK_PERIOD: Nanos = Nanos(10_000_000);
/// Maximum number of the client's local events that wait to be polled.
const LOCAL_MAX: usize = 16;
/// Number of events between two checks of the timers while there is no pause.
const BUSY_POLLS: u32 = 64;
/// Number of ticks of the time-stamp counter, a fraction of a microsecond, between two checks of the timers
/// while there are no events. A check reads the monotonic clock, which takes longer than a poll of the rings.
const REST_TICKS: u64 = 1_000;
/// Base of client order ids: the first one is one above.
const ORDER_ID_BASE: u64 = 1_000;

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The gateway's Unix socket.
    pub socket: PathBuf,
    /// Name of the client.
    pub name: Text<32>,
    /// Name of the user.
    pub user: Text<32>,
    /// The user's password.
    pub password: Password,
    /// Whether the client wants to send orders; the gateway then refuses a user without that right.
    pub is_trading: bool,
    /// Time to wait for the gateway's answer when connecting.
    pub timeout: Duration,
    /// Whether to reconnect when the connection is lost.
    pub is_persistent: bool,
    /// Pause before the first reconnect; it doubles with each further attempt.
    pub backoff: Nanos,
    /// Maximum pause before a reconnect.
    pub backoff_max: Nanos,
    /// Period of [`Timer`] events; no such events when absent.
    pub timer: Option<Nanos>,
    /// Whether to request market data automatically after broadcast events were lost.
    pub is_resyncing: bool,
}

impl ClientConfig {
    /// A trading client named `client` with an answer timeout of 5 s, which reconnects after 100 ms to 5 s.
    #[must_use]
    pub fn new(socket: &Path, user: Text<32>, password: Password) -> ClientConfig {
        ClientConfig {
            socket: socket.to_owned(),
            name: Text::cut("client"),
            user,
            password,
            is_trading: true,
            timeout: SYSTEM_TIMEOUT,
            is_persistent: true,
            backoff: Nanos(100_000_000),
            backoff_max: Nanos::from_secs(5),
            timer: None,
            is_resyncing: true,
        }
    }

    fn open(&self) -> Result<Connection, ConnectError> {
        let hello = Hello::new(self.name, self.user, self.password.clone(), self.is_trading);
        Connection::open(&self.socket, hello, self.timeout)
    }
}

/// A client of a gateway. One thread polls it.
///
/// [`poll`](Client::poll) returns the gateway's events and the client's local ones - start, connected,
/// disconnected, timer, lapped, stop - whose header has source 0. Polling and sending allocate nothing while
/// the connection lasts; reconnecting blocks up to [`ClientConfig::timeout`].
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    connection: Option<Connection>,
    local: VecDeque<Event>,
    local_sequence: u64,
    session: SessionId,
    request_id: u64,
    order_id: u64,
    next_check: Nanos,
    next_timer: Nanos,
    timers: u64,
    busy: u32,
    /// Tick of the last check of the timers.
    rested_at: u64,
    next_try: Nanos,
    backoff: Nanos,
    /// Error of the last connection attempt.
    failure: Option<ConnectError>,
    is_stopped: bool,
    /// Market data is to be requested.
    wants_download: bool,
}

impl Client {
    /// Connects immediately.
    ///
    /// # Errors
    /// [`ConnectError`] if the connection fails.
    pub fn connect(config: ClientConfig) -> Result<Client, ConnectError> {
        let connection = config.open()?;
        let mut client = Client::start(config);
        client.is_connected_by(connection);
        Ok(client)
    }

    /// Creates a client that connects while it is polled.
    #[must_use]
    pub fn start(config: ClientConfig) -> Client {
        let now = monotonic();
        let mut client = Client {
            connection: None,
            local: VecDeque::with_capacity(LOCAL_MAX),
            local_sequence: 0,
            session: SessionId::default(),
            request_id: 0,
            order_id: ORDER_ID_BASE,
            next_check: now,
            next_timer: config.timer.map_or(Nanos(u64::MAX), |period| now + period),
            timers: 0,
            busy: 0,
            rested_at: cpu::rdtsc().wrapping_sub(REST_TICKS),
            next_try: now,
            backoff: config.backoff,
            failure: None,
            is_stopped: false,
            wants_download: false,
            config,
        };
        client.tell(&Start { now_ns: now.0 });
        client
    }

    /// Returns the next event; `None` if there is none at the moment. A poll without an event pauses the CPU
    /// ([`cpu::pause`]).
    #[inline]
    pub fn poll(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.local.pop_front() {
                return Some(event);
            }
            if self.busy < BUSY_POLLS
                && let Some(connection) = &mut self.connection
            {
                match connection.receive() {
                    Received::Event(event) => {
                        self.busy += 1;
                        if event.header.kind == EventKind::DOWNLOAD_END {
                            self.note_orders(&event);
                        }
                        return Some(event);
                    }
                    Received::Lapped(lost) => {
                        self.lapped(lost);
                        continue;
                    }
                    Received::Nothing => {}
                }
            }
            let is_busy = self.busy >= BUSY_POLLS;
            let ticks = cpu::rdtsc();
            if !is_busy && ticks.wrapping_sub(self.rested_at) < REST_TICKS {
                // Leaves the core to a sibling thread, which may be the gateway's, and the ring's line to the
                // gateway, which writes it.
                cpu::pause();
                return None;
            }
            self.rested_at = ticks;
            self.rest();
            if self.local.is_empty() && !is_busy {
                return None;
            }
        }
    }

    /// Does the work that is not urgent: timers, the check of the gateway, reconnecting.
    #[cold]
    fn rest(&mut self) {
        self.busy = 0;
        let now = monotonic();
        if now >= self.next_timer {
            let period = self.config.timer.unwrap_or(Nanos(u64::MAX));
            self.next_timer = now + period;
            self.timers += 1;
            self.tell(&Timer { now_ns: now.0, count: self.timers });
        }
        if self.wants_download {
            let asked = self.request(0, 0, 0, &DownloadMarketData::default());
            self.wants_download = asked == Err(SendError::Full);
        }
        if now < self.next_check || self.is_stopped {
            return;
        }
        self.next_check = now + CHECK_PERIOD;
        match &mut self.connection {
            Some(connection) => {
                let Some(reason) = connection.end() else { return };
                // First the events that the gateway sent before it ended.
                match connection.receive() {
                    Received::Event(event) => {
                        if event.header.kind == EventKind::DOWNLOAD_END {
                            self.note_orders(&event);
                        }
                        self.local.push_back(event);
                        self.next_check = now;
                    }
                    Received::Lapped(_) => self.next_check = now,
                    Received::Nothing => self.is_lost(reason, now),
                }
            }
            None if now >= self.next_try => self.try_again(),
            None => {}
        }
    }

    fn try_again(&mut self) {
        match self.config.open() {
            Ok(connection) => self.is_connected_by(connection),
            Err(error) => {
                self.next_try =
                    if error.is_temporary() { monotonic() + self.backoff } else { Nanos(u64::MAX) };
                self.backoff = Nanos((self.backoff.0 * 2).min(self.config.backoff_max.0));
                self.failure = Some(error);
            }
        }
    }

    fn is_connected_by(&mut self, connection: Connection) {
        let welcome = connection.welcome;
        self.session = welcome.session;
        self.connection = Some(connection);
        self.backoff = self.config.backoff;
        self.failure = None;
        self.wants_download = false;
        self.tell(&Connected {
            client: welcome.client,
            capabilities: welcome.capabilities,
            gateway: welcome.gateway,
            exchange: welcome.exchange,
        });
    }

    fn is_lost(&mut self, reason: &'static str, now: Nanos) {
        self.connection = None;
        self.next_try = if self.config.is_persistent { now + self.backoff } else { Nanos(u64::MAX) };
        self.tell(&Disconnected { reason: Text::cut(reason) });
    }

    fn lapped(&mut self, lost: u64) {
        self.tell(&Lapped { lost });
        self.wants_download = self.config.is_resyncing;
    }

    fn note_orders(&mut self, event: &Event) {
        if let Some(end) = event.body::<DownloadEnd>() {
            self.order_id = self.order_id.max(end.max_order_id.min(ORDER_ID_MAX));
        }
    }

    /// Queues a local event.
    fn tell<B: Body>(&mut self, body: &B) {
        let mut event = Event::of(body);
        self.local_sequence += 1;
        event.header.sequence = self.local_sequence;
        event.header.session = self.session;
        event.header.send_ns = monotonic().0;
        event.header.flags = flags::LAST_IN_BATCH;
        // The queue is drained before events are added, a handful at a time.
        debug_assert!(self.local.len() < LOCAL_MAX);
        self.local.push_back(event);
    }

    /// Sends a request, after filling in the time and, if it is 0, the request id; returns the request id.
    ///
    /// # Errors
    /// [`SendError`]; the request was not sent.
    #[inline]
    pub fn send(&mut self, request: &mut Request) -> Result<u64, SendError> {
        let connection = self.connection.as_mut().ok_or(SendError::NotConnected)?;
        if request.header.request_id == 0 {
            self.request_id += 1;
            request.header.request_id = self.request_id;
        }
        request.header.create_ns = monotonic().0;
        connection.send(request)?;
        Ok(request.header.request_id)
    }

    /// Sends a request with this body; returns the request id.
    ///
    /// # Errors
    /// [`SendError`]; the request was not sent.
    #[inline]
    pub fn request<B: RequestBody>(
        &mut self,
        account: u16,
        symbol: u32,
        client_order_id: u64,
        body: &B,
    ) -> Result<u64, SendError> {
        let mut request = Request::of(body);
        request.header = RequestHeader { account, symbol, client_order_id, ..request.header };
        self.send(&mut request)
    }

    /// Returns an order id that is unused by this user, as far as reported; valid once the account is ready.
    pub fn next_order_id(&mut self) -> u64 {
        // After the last id the gateway rejects the repeated one.
        self.order_id = (self.order_id + 1).min(ORDER_ID_MAX);
        self.order_id
    }

    /// Whether the client is connected.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// The gateway's welcome message.
    #[must_use]
    pub fn welcome(&self) -> Option<&Welcome> {
        self.connection.as_ref().map(|connection| &connection.welcome)
    }

    /// Error of the last connection attempt, while the client is not connected.
    #[must_use]
    pub const fn failure(&self) -> Option<&ConnectError> {
        self.failure.as_ref()
    }

    /// Whether the client will not connect again: the refusal is permanent, or reconnecting is disabled.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connection.is_none()
            && (self.next_try == Nanos(u64::MAX) || self.is_stopped)
            && self.local.is_empty()
    }

    /// Closes the connection; the gateway then treats the client's orders as on any disconnect. The next
    /// polls return the remaining events, and [`Stop`].
    pub fn stop(&mut self) {
        if !self.is_stopped {
            self.is_stopped = true;
            self.connection = None;
            self.tell(&Stop { now_ns: monotonic().0 });
        }
    }
}

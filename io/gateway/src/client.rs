//! The client's end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tickpath_gateway_protocol::frame::{Hello, Password, Welcome};
use tickpath_gateway_protocol::{
    Body, Connected, Disconnected, DownloadEnd, DownloadMarketData, Event, EventKind, Lapped, ORDER_ID_MAX,
    Request, RequestBody, RequestHeader, SessionId, Start, Stop, Text, Timer, flags,
};
use tickpath_types::Nanos;

use crate::clock::monotonic;
use crate::connection::{Connection, Received};
use crate::error::{ConnectError, SendError};
use crate::server::SYSTEM_TIMEOUT;

/// Time between two looks at whether the gateway has gone.
const CHECK_PERIOD: Nanos = Nanos(10_000_000);
/// Events of the client's own that wait to be polled.
const LOCAL_MAX: usize = 16;
/// Events between two looks at timers, where there is no pause.
const BUSY_POLLS: u32 = 64;
/// The first client order id is one above.
const ORDER_ID_BASE: u64 = 1_000;

/// What a client is to be.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The gateway's Unix socket.
    pub socket: PathBuf,
    /// What the client calls itself.
    pub name: Text<32>,
    /// The user.
    pub user: Text<32>,
    /// The user's password.
    pub password: Password,
    /// Whether the client wants to send orders; a user who may not is refused then.
    pub is_trading: bool,
    /// How long a try to connect waits for the gateway's answer.
    pub timeout: Duration,
    /// Whether to connect anew when the connection is lost.
    pub is_persistent: bool,
    /// Time until the first new try; each further one waits twice as long as the one before,
    pub backoff: Nanos,
    /// up to this.
    pub backoff_max: Nanos,
    /// Period of [`Timer`] events; none unless it is set.
    pub timer: Option<Nanos>,
    /// Whether to ask for market data anew by itself when broadcast events were lost.
    pub is_resyncing: bool,
}

impl ClientConfig {
    /// A client that trades, named `client`, that waits 5 s for an answer, and connects anew after 100 ms and up to 5 s.
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
/// Events come by [`poll`](Client::poll): those of the gateway, and those that the client makes itself - start, connected,
/// disconnected, timer, lapped, stop - whose header says source 0. Polling and sending allocate nothing while the
/// connection lasts; connecting anew waits up to [`ClientConfig::timeout`].
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
    next_try: Nanos,
    backoff: Nanos,
    /// Why the last try failed.
    failure: Option<ConnectError>,
    is_stopped: bool,
    /// Market data is to be asked for.
    wants_download: bool,
}

impl Client {
    /// Connects now.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(config: ClientConfig) -> Result<Client, ConnectError> {
        let connection = config.open()?;
        let mut client = Client::start(config);
        client.is_connected_by(connection);
        Ok(client)
    }

    /// Connects as it is polled.
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

    /// The next event; `None` when there is none for now.
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
            self.rest();
            if self.local.is_empty() && !is_busy {
                return None;
            }
        }
    }

    /// What is not urgent: timers, whether the gateway is there, a new try.
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
                // What the gateway said before it went comes first.
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

    /// Makes an event of the client's own.
    fn tell<B: Body>(&mut self, body: &B) {
        let mut event = Event::of(body);
        self.local_sequence += 1;
        event.header.sequence = self.local_sequence;
        event.header.session = self.session;
        event.header.send_ns = monotonic().0;
        event.header.flags = flags::LAST_IN_BATCH;
        // It is polled empty before anything is added, but for a handful at a time.
        debug_assert!(self.local.len() < LOCAL_MAX);
        self.local.push_back(event);
    }

    /// Sends a request, with the time and, where it has none, an id filled in; the request's id.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
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

    /// Sends a request with this body; the request's id.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
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

    /// An order id that no client of this user has used, as far as the gateway has said: use it once the account is ready.
    pub fn next_order_id(&mut self) -> u64 {
        // Beyond the last one the gateway refuses the same id again.
        self.order_id = (self.order_id + 1).min(ORDER_ID_MAX);
        self.order_id
    }

    /// Whether there is a connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// What the gateway said when it let the client in.
    #[must_use]
    pub fn welcome(&self) -> Option<&Welcome> {
        self.connection.as_ref().map(|connection| &connection.welcome)
    }

    /// Why the last try to connect failed, while there is no connection.
    #[must_use]
    pub const fn failure(&self) -> Option<&ConnectError> {
        self.failure.as_ref()
    }

    /// Whether no new try will be made: the gateway has refused for good, or the client was not to connect anew.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.connection.is_none()
            && (self.next_try == Nanos(u64::MAX) || self.is_stopped)
            && self.local.is_empty()
    }

    /// Closes the connection; the gateway does with the client's orders what it does when a client goes. The next polls
    /// give what is left, and [`Stop`].
    pub fn stop(&mut self) {
        if !self.is_stopped {
            self.is_stopped = true;
            self.connection = None;
            self.tell(&Stop { now_ns: monotonic().0 });
        }
    }
}

//! The gateway side: accepts callers, admits clients, and routes events to them.

mod clients;
mod handshakes;
mod rings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tickpath_admission::PreLoginLimits;
use tickpath_gateway_protocol::frame::{Hello, Refusal, RefusalReason, VERSION, Welcome};
use tickpath_gateway_protocol::{Event, Ready, ReadyScope, Request, SessionId, Text, flags};
use tickpath_shm::channel::{ChannelListener, Peer};
use tickpath_shm::{EventsWriter, Folder, SegmentName};
use tickpath_types::Nanos;

use crate::clock::{monotonic, unix_time};
use crate::error::DoorError;
use clients::{Clients, Found};
use handshakes::Handshakes;
use rings::RingMaker;

/// Interval of housekeeping: new callers, lost clients, pings.
const HOUSEKEEPING: Nanos = Nanos(1_000_000);
/// Maximum number of unmatched ping answers handled in one poll; the next poll handles more.
const WRONG_PONGS_MAX: usize = 16;
/// Interval of the broadcast segment's heartbeat.
const SIGN_OF_LIFE: Nanos = Nanos(100_000_000);

/// Configuration of a client port.
#[derive(Clone, Debug)]
pub struct ClientPortConfig {
    /// Unix socket that clients connect to.
    pub socket: PathBuf,
    /// Folder of the broadcast segment.
    pub folder: Folder,
    /// Name of the broadcast segment.
    pub segment: SegmentName,
    /// Source number of the gateway in its events.
    pub source: u8,
    /// The gateway's name, for clients.
    pub gateway: Text<32>,
    /// The venue, for clients.
    pub exchange: Text<32>,
    /// Maximum number of connected clients.
    pub clients_max: usize,
    /// Limits for callers before login; the process takes the role of the address.
    pub pre_login: PreLoginLimits,
    /// Maximum number of requests queued in a client's ring, rounded up to a power of two.
    pub requests_max: u64,
    /// Maximum number of events queued in a client's ring, rounded up to a power of two.
    pub events_max: u64,
    /// Number of broadcast events kept, rounded up to a power of two.
    pub broadcasts_max: u64,
    /// Interval between pings of a client.
    pub heartbeat: Nanos,
}

impl ClientPortConfig {
    /// Default limits: 64 clients, 128 handshakes of 5 s and 64 per process, rings of 1,024 requests and
    /// 16,384 events, 65,536 broadcast events, a ping every second.
    #[must_use]
    pub fn new(socket: &Path, folder: Folder, segment: SegmentName) -> ClientPortConfig {
        ClientPortConfig {
            socket: socket.to_owned(),
            gateway: Text::cut(segment.as_str()),
            folder,
            segment,
            source: 1,
            exchange: Text::EMPTY,
            clients_max: 64,
            pre_login: PreLoginLimits::default(),
            requests_max: 1 << 10,
            events_max: 1 << 14,
            broadcasts_max: 1 << 16,
            heartbeat: Nanos::from_secs(1),
        }
    }
}

/// Id of a connected client, unique within one instance of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    pub(crate) number: u32,
    pub(crate) slot: u32,
}

impl ClientId {
    /// Number of the client, from 1, in order of arrival.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Slot of the client, below [`ClientPortConfig::clients_max`]; reused once the client has left.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Id of a pending login, unique within one instance of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginId(pub(crate) u64);

/// A login request of a caller.
#[derive(Clone, Debug)]
pub struct Login {
    /// Id for [`ClientPort::admit`] or [`ClientPort::refuse`], now or later.
    pub id: LoginId,
    /// The caller's hello message.
    pub hello: Box<Hello>,
    /// The caller's process, as reported by the kernel.
    pub peer: Peer,
}

/// Measured times of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Time from sending the ping to its receipt by the client, in nanoseconds.
    pub to_client_ns: u64,
    /// Time from the client's answer to its receipt by the gateway, in nanoseconds.
    pub to_gateway_ns: u64,
}

/// Reason why a client is no longer connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaveReason {
    /// The client closed the connection.
    Closed,
    /// The client's process ended, or closed the socket without notice.
    Died,
    /// The client read so slowly that its ring was full.
    TooSlow,
    /// The client wrote an impossible position into a ring: it is damaged or hostile.
    Broken,
    /// The gateway disconnected the client: [`ClientPort::disconnect`].
    Dismissed,
}

/// An event of the client port.
#[derive(Debug)]
pub enum ClientPortEvent {
    /// A caller wants to log in: answer with [`ClientPort::admit`] or [`ClientPort::refuse`], now or later.
    Login(Login),
    /// A client's request. Its numbers and codes are not validated.
    Request(ClientId, Request),
    /// A client answered a ping.
    Heartbeat(ClientId, Heartbeat),
    /// A client is no longer connected. All of its requests were returned before; it gets no more events.
    Left(ClientId, LeaveReason),
}

/// Event counts since the port was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// Number of connections to the socket.
    pub calls: u64,
    /// Number of callers admitted.
    pub admitted: u64,
    /// Number of callers refused.
    pub refused: u64,
    /// Number of callers that sent a message that is not a valid hello, or one of another version.
    pub malformed: u64,
    /// Number of callers that did not log in in time, or whose login was not answered in time.
    pub timed_out: u64,
    /// Number of callers that disconnected before login.
    pub gave_up: u64,
    /// Number of callers evicted before login because of newer ones.
    pub evicted: u64,
    /// Number of callers that could not be accepted or served because of a system error.
    pub failed: u64,
    /// Number of clients that disconnected in order.
    pub closed: u64,
    /// Number of clients whose process ended.
    pub died: u64,
    /// Number of clients disconnected because their ring was full.
    pub too_slow: u64,
    /// Number of clients disconnected because their ring was damaged.
    pub broken: u64,
    /// Number of clients disconnected by the gateway.
    pub dismissed: u64,
    /// Number of ping answers that match no ping.
    pub wrong_pongs: u64,
    /// Number of requests taken.
    pub requests: u64,
    /// Number of events sent to single clients.
    pub events: u64,
}

/// A gateway's local client port. One thread polls it; it never blocks.
///
/// Times are those of [`monotonic`]. Polling and sending allocate nothing; admitting and removing a client
/// does. A separate thread creates the rings of the next two clients in advance, as that takes milliseconds.
#[derive(Debug)]
pub struct ClientPort {
    config: ClientPortConfig,
    session: SessionId,
    listener: Option<ChannelListener>,
    handshakes: Handshakes,
    clients: Clients,
    rings: RingMaker,
    broadcast: EventsWriter<Event>,
    counters: DoorCounters,
    next_housekeeping: Nanos,
    next_sign_of_life: Nanos,
    /// Next handshake to check in this turn of housekeeping.
    turn: usize,
}

impl ClientPort {
    /// Opens the port: creates the broadcast segment, replacing one left by a killed gateway, and listens.
    ///
    /// # Errors
    /// [`DoorError`], e.g. if another gateway uses the name or the socket.
    pub fn open(config: ClientPortConfig) -> Result<ClientPort, DoorError> {
        let folder_text = config.folder.path().to_str().and_then(Text::<160>::new);
        if folder_text.is_none() {
            return Err(DoorError::Path { path: config.folder.path().to_owned() });
        }
        // The segment first: its lock also keeps a second gateway of this name away from the socket.
        let broadcast =
            EventsWriter::create(&config.folder, &config.segment, config.broadcasts_max, unix_time())?;
        let listener = ChannelListener::bind(&config.socket)?;
        Ok(ClientPort {
            session: new_session(),
            listener: Some(listener),
            handshakes: Handshakes::new(config.pre_login),
            clients: Clients::new(config.clients_max),
            rings: RingMaker::start(config.requests_max, config.events_max),
            broadcast,
            counters: DoorCounters::default(),
            next_housekeeping: Nanos::ZERO,
            next_sign_of_life: Nanos::ZERO,
            turn: 0,
            config,
        })
    }

    /// Returns the next event; `None` if there is none at the moment. Clients take turns, and each client's
    /// requests stay in order. Some calls do a bounded amount of housekeeping.
    #[inline]
    pub fn poll(&mut self, now: Nanos) -> Option<ClientPortEvent> {
        // Housekeeping depends on time, not on idleness: a client that never stops sending requests must not
        // keep others from logging in.
        if now >= self.next_housekeeping
            && let Some(event) = self.keep_house(now)
        {
            return Some(event);
        }
        for _ in 0..WRONG_PONGS_MAX {
            match self.clients.poll(&mut self.counters)? {
                Found::Request(client, request) => return Some(ClientPortEvent::Request(client, request)),
                Found::Pong(client, request) => {
                    // Reads the clock again: `now` may be older than the answer.
                    match self.clients.pong(client, &request, monotonic()) {
                        Some(heartbeat) => return Some(ClientPortEvent::Heartbeat(client, heartbeat)),
                        None => self.counters.wrong_pongs += 1,
                    }
                }
                Found::Left(client, reason) => return Some(ClientPortEvent::Left(client, reason)),
            }
        }
        None
    }

    /// Housekeeping: logins, new callers, lost clients, pings.
    #[cold]
    fn keep_house(&mut self, now: Nanos) -> Option<ClientPortEvent> {
        if self.turn == 0 {
            self.handshakes.expire(now, &mut self.counters);
        }
        while self.turn < self.handshakes.places() {
            self.turn += 1;
            if let Some(login) = self.handshakes.look(self.turn - 1, now, &mut self.counters) {
                return Some(ClientPortEvent::Login(login));
            }
        }
        self.turn = 0;
        // Accepts after reading: a hello that has arrived is read before its caller can be evicted.
        if let Some(listener) = &self.listener {
            self.handshakes.accept(listener, now, &mut self.counters);
        }
        // Last, so that no system call comes between a ping and the check for its answer.
        self.clients.look_after(now, self.config.heartbeat, self.header_base());
        if now >= self.next_sign_of_life {
            self.next_sign_of_life = now + SIGN_OF_LIFE;
            self.broadcast.heartbeat(unix_time());
        }
        self.next_housekeeping = now + HOUSEKEEPING;
        None
    }

    fn header_base(&self) -> (SessionId, u8) {
        (self.session, self.config.source)
    }

    /// Admits a caller with these [`capability`](tickpath_gateway_protocol::frame::capability) bits. Returns
    /// `None` if it has disconnected, or if no slot is free, in which case it is refused.
    pub fn admit(&mut self, login: LoginId, capabilities: u32) -> Option<ClientId> {
        let caller = self.handshakes.take(login)?;
        let Some(id) = self.clients.next_id() else {
            self.counters.refused += 1;
            handshakes::refuse(&caller, refusal(RefusalReason::TOO_MANY, Nanos::ZERO));
            return None;
        };
        let welcome = Welcome {
            session: self.session,
            client: id.number,
            capabilities,
            heartbeat_ns: self.config.heartbeat.0,
            clock_ns: monotonic().0,
            clock_utc_ns: unix_time().0,
            generation: self.broadcast.header().generation,
            broadcast_sequence: self.broadcast.sent(),
            segment: Text::cut(self.config.segment.as_str()),
            folder: Text::cut(&self.config.folder.path().to_string_lossy()),
            gateway: self.config.gateway,
            exchange: self.config.exchange,
            source: self.config.source,
            ..Welcome::default()
        };
        let channel = self.rings.take().and_then(|rings| handshakes::welcome(caller, welcome, rings));
        let Some(channel) = channel else {
            self.counters.failed += 1;
            return None;
        };
        self.counters.admitted += 1;
        self.clients.join(id, channel);
        Some(id)
    }

    /// Whether a login is pending.
    #[must_use]
    pub fn is_waiting(&self, login: LoginId) -> bool {
        self.handshakes.is_waiting(login)
    }

    /// Sets the time of a login's check, which is also the start of its deadline. With `is_trusted` its
    /// password was correct before, and logins of others do not evict it.
    pub fn postpone(&mut self, login: LoginId, user: Option<usize>, at: Nanos, is_trusted: bool) {
        self.handshakes.postpone(login, user, at, is_trusted);
    }

    /// Refuses a caller. `retry_after` is for a ban; otherwise zero.
    pub fn refuse(&mut self, login: LoginId, reason: RefusalReason, retry_after: Nanos) {
        if let Some(caller) = self.handshakes.take(login) {
            self.counters.refused += 1;
            handshakes::refuse(&caller, refusal(reason, retry_after));
        }
    }

    /// Puts an event into a client's ring, with session, source, sequence and send time filled in. Returns
    /// false if it is not connected. A full ring disconnects it, and it is reported [left](ClientPortEvent::Left).
    #[inline]
    pub fn send(&mut self, client: ClientId, event: &mut Event) -> bool {
        self.deliver(client, event, false)
    }

    /// Does the same as [`send`](ClientPort::send), or warms it up: does everything but the write to the ring, so
    /// that code and data are in the processor's caches, and returns false.
    #[inline]
    pub fn deliver(&mut self, client: ClientId, event: &mut Event, is_rehearsal: bool) -> bool {
        self.stamp(event);
        let is_sent = self.clients.send(client, event, is_rehearsal);
        self.counters.events += u64::from(is_sent);
        is_sent
    }

    #[inline]
    fn stamp(&self, event: &mut Event) {
        event.header.session = self.session;
        event.header.source = self.config.source;
        event.header.flags &= !flags::BROADCAST;
        event.header.send_ns = monotonic().0;
    }

    /// Reports to a client that the state of instrument `symbol` is complete: from now on the client library
    /// returns its broadcast events.
    pub fn send_instrument_ready(&mut self, client: ClientId, symbol: u32) -> bool {
        let ready = Ready {
            scope: ReadyScope::INSTRUMENT,
            broadcast_sequence: self.broadcast.sent(),
            ..Ready::default()
        };
        let mut event = Event::of(&ready);
        event.header.symbol = symbol;
        event.header.flags |= flags::DOWNLOAD;
        self.send(client, &mut event)
    }

    /// Puts an event into the broadcast ring, after filling in session, source, sequence and send time. Never
    /// fails: slow readers lose the oldest events.
    #[inline]
    pub fn broadcast(&mut self, event: &mut Event) {
        event.header.session = self.session;
        event.header.source = self.config.source;
        event.header.flags |= flags::BROADCAST;
        event.header.sequence = self.broadcast.sent() + 1;
        event.header.send_ns = monotonic().0;
        self.broadcast.send(event);
    }

    /// Disconnects a client; later polls report that it left.
    pub fn disconnect(&mut self, client: ClientId) {
        self.clients.dismiss(client, LeaveReason::Dismissed);
    }

    /// Stops accepting logins and disconnects all clients, which later polls report. Waiting callers are
    /// refused with the reason that the gateway is stopping. The socket closes at once.
    pub fn stop(&mut self) {
        self.listener = None;
        self.counters.refused += self.handshakes.refuse_all(refusal(RefusalReason::STOPPING, Nanos::ZERO));
        self.clients.dismiss_all();
    }

    /// Number of events that a client's ring can take now; 0 if it is not connected. Long sequences, such as
    /// a download, are sent in parts.
    #[must_use]
    pub fn room(&self, client: ClientId) -> u64 {
        self.clients.room(client)
    }

    /// Capacity of a client's ring, in events.
    #[must_use]
    pub const fn events_max(&self) -> u64 {
        self.config.events_max.next_power_of_two()
    }

    /// Whether the client is still connected.
    #[must_use]
    pub fn is_in(&self, client: ClientId) -> bool {
        self.clients.is_in(client)
    }

    /// Number of connected clients.
    #[must_use]
    pub const fn client_count(&self) -> usize {
        self.clients.count()
    }

    /// Number of broadcast events sent.
    #[must_use]
    pub const fn broadcasts(&self) -> u64 {
        self.broadcast.sent()
    }

    /// Id of this instance of the gateway.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Event counts since the port was opened.
    #[must_use]
    pub const fn counters(&self) -> &DoorCounters {
        &self.counters
    }

    /// The configuration of the port.
    #[must_use]
    pub const fn config(&self) -> &ClientPortConfig {
        &self.config
    }
}

impl Drop for ClientPort {
    /// Removes the segment; readers that still map it see it as closed.
    fn drop(&mut self) {
        // If removal fails, the closed segment remains until its name is used again or it is reclaimed.
        let _ = self.broadcast.remove();
    }
}

fn refusal(reason: RefusalReason, retry_after: Nanos) -> Refusal {
    Refusal { reason, version: VERSION, retry_after_ns: retry_after.0 }
}

/// Creates a random UUID (version 4). The standard library offers random numbers only in its hasher.
fn new_session() -> SessionId {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one((monotonic().0, std::process::id()));
    SessionId([(random() & !0xf000) | 0x4000, (random() & (u64::MAX >> 2)) | 1 << 63])
}

/// Maximum time that a client waits for a system operation.
pub(crate) const SYSTEM_TIMEOUT: Duration = Duration::from_secs(5);

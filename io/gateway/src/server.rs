//! The server's end: who calls, who is in, what goes to whom.

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

/// Time between two looks at what is not urgent: who calls, who has gone, pings.
const HOUSEKEEPING: Nanos = Nanos(1_000_000);
/// Answers to pings that fit none, in one poll; the next takes more.
const WRONG_PONGS_MAX: usize = 16;
/// Time between two signs of life of the broadcast segment.
const SIGN_OF_LIFE: Nanos = Nanos(100_000_000);

/// What a door is to be.
#[derive(Clone, Debug)]
pub struct DoorConfig {
    /// The Unix socket that clients call.
    pub socket: PathBuf,
    /// Where the broadcast segment lies.
    pub folder: Folder,
    /// Its name.
    pub segment: SegmentName,
    /// Number of the gateway in its events.
    pub source: u8,
    /// The gateway's name, for clients.
    pub gateway: Text<32>,
    /// The venue, for clients.
    pub exchange: Text<32>,
    /// Clients at a time.
    pub clients_max: usize,
    /// Callers that have not said who they are, or wait to be judged; the process takes the place of the address.
    pub pre_login: PreLoginLimits,
    /// Requests that wait in a client's ring, rounded up to a power of two.
    pub requests_max: u64,
    /// Events that wait in a client's ring, rounded up to a power of two.
    pub events_max: u64,
    /// Broadcast events that are kept, rounded up to a power of two.
    pub broadcasts_max: u64,
    /// Time between two pings of a client.
    pub heartbeat: Nanos,
}

impl DoorConfig {
    /// The usual bounds: 64 clients, 128 handshakes of 5 s and 64 of one process, rings of 1,024 requests and 16,384 events, 65,536 broadcast
    /// events, a ping every second.
    #[must_use]
    pub fn new(socket: &Path, folder: Folder, segment: SegmentName) -> DoorConfig {
        DoorConfig {
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

/// A client that is in. No two of one door's life are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    pub(crate) number: u32,
    pub(crate) slot: u32,
}

impl ClientId {
    /// From 1, in the order of coming.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Below [`DoorConfig::clients_max`]; another client may have it once this one has left.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// A caller that waits to be judged. No two of one door's life are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginId(pub(crate) u64);

/// Who wants to come in.
#[derive(Clone, Debug)]
pub struct Login {
    /// To be given to [`Door::admit`] or [`Door::refuse`], now or later.
    pub id: LoginId,
    /// What it says of itself.
    pub hello: Box<Hello>,
    /// The process, as the kernel knows it.
    pub peer: Peer,
}

/// How long a ping took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// From the gateway's sending to the client's having it, in nanoseconds.
    pub to_client_ns: u64,
    /// From the client's answer to the gateway's having it.
    pub to_gateway_ns: u64,
}

/// Why a client is no longer in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaveReason {
    /// It said so.
    Closed,
    /// Its process is gone, or closed the socket without a word.
    Died,
    /// It read so slowly that its ring was full.
    TooSlow,
    /// It put a position into a ring that it cannot have reached: it is damaged or hostile.
    Broken,
    /// The gateway's owner wanted it: [`Door::disconnect`].
    Dismissed,
}

/// What has happened at the door.
#[derive(Debug)]
pub enum DoorEvent {
    /// Somebody wants to come in: answer by [`Door::admit`] or [`Door::refuse`], now or once it is known.
    Login(Login),
    /// A client asks for something. Its numbers and codes may be anything.
    Request(ClientId, Request),
    /// A client has answered a ping.
    Heartbeat(ClientId, Heartbeat),
    /// A client is no longer in; all that it asked for before has been told. Nothing more can be sent to it.
    Left(ClientId, LeaveReason),
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// Connections to the socket.
    pub calls: u64,
    /// Callers that were let in.
    pub admitted: u64,
    /// Callers that were refused.
    pub refused: u64,
    /// Callers that said something that is no hello, or of another version.
    pub malformed: u64,
    /// Callers that were silent too long, or waited too long to be judged.
    pub timed_out: u64,
    /// Callers that went before they were let in.
    pub gave_up: u64,
    /// Callers that were closed before they were let in, because others came and there was no capacity.
    pub evicted: u64,
    /// Callers that the system did not let be accepted or served.
    pub failed: u64,
    /// Clients that left in good order.
    pub closed: u64,
    /// Clients whose processes went.
    pub died: u64,
    /// Clients that were cut off because their rings were full.
    pub too_slow: u64,
    /// Clients that were cut off because their rings were damaged.
    pub broken: u64,
    /// Clients that were cut off by the gateway's owner.
    pub dismissed: u64,
    /// Answers to pings that fit no ping.
    pub wrong_pongs: u64,
    /// Requests that were taken.
    pub requests: u64,
    /// Events to single clients.
    pub events: u64,
}

/// A gateway's local door. One thread polls it; it never waits.
///
/// Times are those of [`monotonic`]. Polling and sending allocate nothing; letting a client in and out does. The rings of the
/// next two clients are made ahead by a thread of the door's own, as that takes milliseconds.
#[derive(Debug)]
pub struct Door {
    config: DoorConfig,
    session: SessionId,
    listener: Option<ChannelListener>,
    handshakes: Handshakes,
    clients: Clients,
    rings: RingMaker,
    broadcast: EventsWriter<Event>,
    counters: DoorCounters,
    next_housekeeping: Nanos,
    next_sign_of_life: Nanos,
    /// Handshakes still to be looked at in this turn of housekeeping.
    turn: usize,
}

impl Door {
    /// Opens the door: makes the broadcast segment, in the place of one that a killed gateway left, and listens.
    ///
    /// # Errors
    /// [`DoorError`]; another gateway of the same name or socket among them.
    pub fn open(config: DoorConfig) -> Result<Door, DoorError> {
        let folder_text = config.folder.path().to_str().and_then(Text::<160>::new);
        if folder_text.is_none() {
            return Err(DoorError::Path { path: config.folder.path().to_owned() });
        }
        // The segment first: its lock keeps a second gateway of the name away from the socket too.
        let broadcast =
            EventsWriter::create(&config.folder, &config.segment, config.broadcasts_max, unix_time())?;
        let listener = ChannelListener::bind(&config.socket)?;
        Ok(Door {
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

    /// The next thing that has happened; `None` when there is nothing more for now. Requests of all clients come in turn,
    /// those of one in order. Now and then a call does a bounded amount of housekeeping.
    #[inline]
    pub fn poll(&mut self, now: Nanos) -> Option<DoorEvent> {
        // By the time, and not by whether there is nothing else to do: a client that never stops asking must not keep others
        // from coming in.
        if now >= self.next_housekeeping
            && let Some(event) = self.keep_house(now)
        {
            return Some(event);
        }
        for _ in 0..WRONG_PONGS_MAX {
            match self.clients.poll(&mut self.counters)? {
                Found::Request(client, request) => return Some(DoorEvent::Request(client, request)),
                Found::Pong(client, request) => {
                    // The clock anew: `now` may be older than the answer.
                    match self.clients.pong(client, &request, monotonic()) {
                        Some(heartbeat) => return Some(DoorEvent::Heartbeat(client, heartbeat)),
                        None => self.counters.wrong_pongs += 1,
                    }
                }
                Found::Left(client, reason) => return Some(DoorEvent::Left(client, reason)),
            }
        }
        None
    }

    /// Who calls, who has said who it is, who has gone, who is to be pinged.
    #[cold]
    fn keep_house(&mut self, now: Nanos) -> Option<DoorEvent> {
        if self.turn == 0 {
            self.handshakes.expire(now, &mut self.counters);
        }
        while self.turn < self.handshakes.places() {
            self.turn += 1;
            if let Some(login) = self.handshakes.look(self.turn - 1, now, &mut self.counters) {
                return Some(DoorEvent::Login(login));
            }
        }
        self.turn = 0;
        // Behind the others: a hello that has come is read before its caller could be closed for a newcomer.
        if let Some(listener) = &self.listener {
            self.handshakes.accept(listener, now, &mut self.counters);
        }
        // Last: no system call stands between a ping and the look for its answer.
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

    /// Lets a caller in, with what it may do ([`capability`](tickpath_gateway_protocol::frame::capability)); `None` when
    /// it has gone meanwhile, or there is no room, which it is told.
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

    /// True while a caller waits to be judged.
    #[must_use]
    pub fn is_waiting(&self, login: LoginId) -> bool {
        self.handshakes.is_waiting(login)
    }

    /// A caller is judged at this time and not before: its deadline begins there. With `is_trusted` its password was right
    /// before, and others' logins do not take its place.
    pub fn postpone(&mut self, login: LoginId, user: Option<usize>, at: Nanos, is_trusted: bool) {
        self.handshakes.postpone(login, user, at, is_trusted);
    }

    /// Does not let a caller in. `retry_after` is for a ban; otherwise zero.
    pub fn refuse(&mut self, login: LoginId, reason: RefusalReason, retry_after: Nanos) {
        if let Some(caller) = self.handshakes.take(login) {
            self.counters.refused += 1;
            handshakes::refuse(&caller, refusal(reason, retry_after));
        }
    }

    /// Puts an event into a client's ring, with the session, source, sequence and time of sending filled in; false when the
    /// client is no longer in. One whose ring is full is cut off: the next polls say that it [left](DoorEvent::Left).
    #[inline]
    pub fn send(&mut self, client: ClientId, event: &mut Event) -> bool {
        self.stamp(event);
        let is_sent = self.clients.send(client, event);
        self.counters.events += u64::from(is_sent);
        is_sent
    }

    /// Goes through the motions of [`send`](Door::send) but for the ring, so that code and data are in the processor's
    /// caches when it counts.
    pub fn rehearse(&self, client: ClientId, event: &mut Event) {
        self.stamp(event);
        std::hint::black_box((self.clients.room(client), event));
    }

    // Never inlined: what is sent and what is rehearsed is the same code.
    #[inline(never)]
    fn stamp(&self, event: &mut Event) {
        event.header.session = self.session;
        event.header.source = self.config.source;
        event.header.flags &= !flags::BROADCAST;
        event.header.send_ns = monotonic().0;
    }

    /// Tells a client that the header's instrument, whose state it has been sent, is ready: from now on its library gives
    /// out broadcast events of it.
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

    /// Puts an event into the broadcast ring, with session, source, sequence and time of sending filled in. Never fails:
    /// who reads too slowly loses the oldest.
    #[inline]
    pub fn broadcast(&mut self, event: &mut Event) {
        event.header.session = self.session;
        event.header.source = self.config.source;
        event.header.flags |= flags::BROADCAST;
        event.header.sequence = self.broadcast.sent() + 1;
        event.header.send_ns = monotonic().0;
        self.broadcast.send(event);
    }

    /// Cuts a client off; the next polls say that it left.
    pub fn disconnect(&mut self, client: ClientId) {
        self.clients.dismiss(client, LeaveReason::Dismissed);
    }

    /// Lets nobody in any more and cuts all clients off, which the next polls say. Callers that wait are told that the
    /// gateway is stopping. The socket goes at once.
    pub fn stop(&mut self) {
        self.listener = None;
        self.counters.refused += self.handshakes.refuse_all(refusal(RefusalReason::STOPPING, Nanos::ZERO));
        self.clients.dismiss_all();
    }

    /// Events that a client could be sent now without being cut off; 0 when it is not in. Whoever has much to send, such as
    /// a download, sends it in parts.
    #[must_use]
    pub fn room(&self, client: ClientId) -> u64 {
        self.clients.room(client)
    }

    /// Events that a client's ring holds.
    #[must_use]
    pub const fn events_max(&self) -> u64 {
        self.config.events_max.next_power_of_two()
    }

    /// Whether it is still in.
    #[must_use]
    pub fn is_in(&self, client: ClientId) -> bool {
        self.clients.is_in(client)
    }

    /// Clients that are in.
    #[must_use]
    pub const fn client_count(&self) -> usize {
        self.clients.count()
    }

    /// Broadcast events sent.
    #[must_use]
    pub const fn broadcasts(&self) -> u64 {
        self.broadcast.sent()
    }

    /// This life of the gateway.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// What has happened so far.
    #[must_use]
    pub const fn counters(&self) -> &DoorCounters {
        &self.counters
    }

    /// As it was opened.
    #[must_use]
    pub const fn config(&self) -> &DoorConfig {
        &self.config
    }
}

impl Drop for Door {
    /// Nobody reads the segment of a door that is no more; whoever still maps it finds it closed.
    fn drop(&mut self) {
        // What cannot be removed stays, closed, until the name is used again or somebody reclaims it.
        let _ = self.broadcast.remove();
    }
}

fn refusal(reason: RefusalReason, retry_after: Nanos) -> Refusal {
    Refusal { reason, version: VERSION, retry_after_ns: retry_after.0 }
}

/// A random UUID (version 4). The standard library's hasher has the only random numbers that it gives.
fn new_session() -> SessionId {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one((monotonic().0, std::process::id()));
    SessionId([(random() & !0xf000) | 0x4000, (random() & (u64::MAX >> 2)) | 1 << 63])
}

/// How long a client waits at most where the system has to do something for it.
pub(crate) const SYSTEM_TIMEOUT: Duration = Duration::from_secs(5);

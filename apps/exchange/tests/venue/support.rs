//! A venue whose agents the test runs turn by turn, and its clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};

use socket2::{Domain, Socket, Type};
use tickpath_agent::{AgentFailure, FINISH_TIMEOUT, Invoker, TscClock, thread_allocations};
use tickpath_exchange::{
    AdminClient, AdminCommand, AdminOutcome, Endpoints, JournalSettings, MarketRecovery, Venue, VenueJournal,
    VenueSettings, VenueTracers, VenueView,
};
use tickpath_journal::{FaultyDisk, Policy};
use tickpath_nasdaq::ouch50::{self, Answer};
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, Packet, next_packet};
use tickpath_net::Kernel;
use tickpath_test_support::Deadline;
use tickpath_test_venue::venue_settings;
use tickpath_timing::NoTrace;
use tickpath_types::{
    CancelOrder, ClientOrderId, EnterOrder, InstrumentId, InstrumentTable, Nanos, OrderEventKind,
    OrderRequest, Price, Qty, Side, TimeInForce, UserRefNum,
};

pub use tickpath_test_support::soup::{login, packet};
pub use tickpath_test_venue::{PASSWORD, build};

/// Simulated duration of a turn, in which each agent runs one duty cycle.
const TURN: Nanos = Nanos::from_micros(1);
/// Simulated duration of a turn during the shutdown.
const FINISH_TURN: Nanos = Nanos::from_micros(100);
/// Number of messages at the start of each user's stream, before those that tests count.
pub const START_OF_DAY: u64 = 1;
pub const USERS: [&str; 3] = ["ANNA", "BERT", "CLEO"];
pub const ALPHA: InstrumentId = InstrumentId(1);

pub fn instruments() -> InstrumentTable {
    tickpath_test_support::instruments(&["ALPHA", "BRAVO"])
}

pub fn settings() -> VenueSettings {
    venue_settings(&["ALPHA", "BRAVO"], &USERS)
}

/// A venue whose agents run on the test's thread, turn by turn, in simulated time.
pub struct Rig {
    invoker: Invoker,
    now: Nanos,
    pub endpoints: Endpoints,
    pub view: VenueView,
    pub admin: Option<AdminClient>,
    /// The journal, whose disk work is done in each turn.
    pub journal: Option<VenueJournal>,
    /// Market data recovery, which runs in each turn.
    pub market_recovery: Option<MarketRecovery>,
    /// True while the disk does no work.
    pub is_disk_stuck: bool,
}

/// Journal settings of a test's venue, with small files.
#[allow(dead_code)] // not used by every suite
pub fn journal(policy: Policy) -> JournalSettings {
    JournalSettings {
        segment_len: 16 << 10,
        buffer_len: 4 << 10,
        snapshot_every: 50,
        ..JournalSettings::new("", policy)
    }
}

#[allow(dead_code)] // not used by every suite
pub fn build_on(
    settings: &VenueSettings,
    journal: &JournalSettings,
    disk: &FaultyDisk,
) -> anyhow::Result<Venue> {
    let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
    Venue::build_in(settings, journal, disk, &Kernel, TscClock::system(), tracers)
}

impl Rig {
    pub fn new() -> Rig {
        Rig::with(&settings())
    }

    pub fn with(settings: &VenueSettings) -> Rig {
        Rig::of(build(settings).unwrap())
    }

    pub fn of(venue: Venue) -> Rig {
        let mut invoker = Invoker::new("venue", venue.agents, &[]).unwrap();
        invoker.start().unwrap();
        let now = TscClock::system().now();
        Rig {
            invoker,
            now,
            endpoints: venue.endpoints,
            view: venue.view,
            admin: Some(venue.admin),
            journal: venue.journal,
            market_recovery: venue.market_recovery,
            is_disk_stuck: false,
        }
    }

    /// Runs a turn; returns the amount of work.
    pub fn turn(&mut self) -> usize {
        self.try_turn().unwrap()
    }

    /// Runs a turn in which an agent may fail.
    pub fn try_turn(&mut self) -> Result<usize, AgentFailure> {
        self.now = self.now + TURN;
        let mut work = self.invoker.run_once(self.now)?;
        work += self.market_recovery.as_mut().map_or(0, |recovery| recovery.run_once(self.now));
        Ok(work + self.work_on_disk())
    }

    fn work_on_disk(&mut self) -> usize {
        let Some(journal) = self.journal.as_mut().filter(|_| !self.is_disk_stuck) else { return 0 };
        journal.work_on_disk() + journal.follow().unwrap_or(0) + journal.run_drop_copy(self.now).unwrap()
    }

    /// Advances the simulated time, and runs a turn.
    pub fn advance(&mut self, time: Nanos) {
        self.now = self.now + time;
        self.turn();
    }

    /// Advances the simulated time, and runs a turn in which an agent may fail.
    #[allow(dead_code)] // not used by every suite
    pub fn try_advance(&mut self, time: Nanos) -> Result<usize, AgentFailure> {
        self.now = self.now + time;
        self.try_turn()
    }

    /// Simulated time of day in nanoseconds since midnight, as in messages.
    pub fn time_of_day(&self) -> u64 {
        self.now.0 % 86_400_000_000_000
    }

    /// Runs turns until `check` returns a result.
    pub fn until<R>(&mut self, what: &str, mut check: impl FnMut(&mut Rig) -> Option<R>) -> R {
        let deadline = Deadline::start();
        loop {
            if let Some(found) = check(self) {
                return found;
            }
            assert!(!deadline.is_over(), "{what} did not happen");
            self.turn();
        }
    }

    pub fn until_true(&mut self, what: &str, mut check: impl FnMut(&Rig) -> bool) {
        self.until(what, |rig| check(rig).then_some(()));
    }

    /// Returns the client's next packet.
    pub fn receive(&mut self, client: &mut Client) -> Received {
        self.until("an answer", |_| client.try_receive())
    }

    /// Returns the next message, after skipping heartbeats.
    pub fn receive_event(&mut self, client: &mut Client) -> OrderEventKind {
        loop {
            match self.receive(client) {
                Received::Message(message) => return event(&message),
                Received::Heartbeat => {}
                other => panic!("{other:?} in place of an answer"),
            }
        }
    }

    pub fn receive_events<const N: usize>(&mut self, client: &mut Client) -> [OrderEventKind; N] {
        std::array::from_fn(|_| self.receive_event(client))
    }

    /// Logs a user in, with all messages after the start of the day.
    pub fn log_in(&mut self, user: &str) -> Client {
        self.log_in_from(user, 1)
    }

    pub fn log_in_from(&mut self, user: &str, sequence: u64) -> Client {
        let mut client = Client::connect(self.endpoints.order_entry);
        let next = sequence + START_OF_DAY;
        client.send(&login(user, PASSWORD, "", next));
        assert_eq!(self.receive(&mut client), Received::LoginAccepted { session: "TODAY".into(), next });
        client
    }

    /// Sends a request and returns the first response.
    pub fn submit(&mut self, client: &mut Client, request: &OrderRequest) -> OrderEventKind {
        client.request(request);
        self.receive_event(client)
    }

    /// Asserts that the venue serves this client: it answers an order and a cancel of this order.
    pub fn assert_serves(&mut self, client: &mut Client, user_ref: u32) {
        let answer = self.submit(client, &enter(user_ref, Side::Buy, 1, 900_000));
        assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
        let answer = self.submit(client, &cancel(user_ref, 0));
        assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
    }

    /// Runs a turn of the shutdown; true when all agents have finished.
    pub fn finish_turn(&mut self) -> bool {
        self.now = self.now + FINISH_TURN;
        self.work_on_disk();
        self.invoker.finish(self.now).unwrap()
    }

    /// Executes an administrator's command and returns its outcome.
    #[allow(dead_code)] // not used by every suite
    pub fn command(&mut self, command: AdminCommand) -> AdminOutcome {
        let mut admin = self.admin.take().unwrap();
        let id = admin.submit(command).unwrap();
        self.advance(Nanos::from_millis(20));
        let answer = self.until("an answer to the administrator", |_| admin.poll());
        assert_eq!(answer.id, id);
        self.admin = Some(admin);
        answer.outcome
    }

    /// The simulated time.
    #[allow(dead_code)] // not used by every suite
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Shuts the venue down as a runner does.
    pub fn close(&mut self) {
        let deadline = self.now + FINISH_TIMEOUT;
        while !self.finish_turn() && self.now < deadline {}
        // If this fails, only trusted logins are lost.
        let _ = self.journal.as_mut().map(VenueJournal::save_trusted_logins);
        self.invoker.close();
    }

    /// Closes the agents at once, as a runner does after a failure.
    #[allow(dead_code)] // not used by every suite
    pub fn close_at_once(&mut self) {
        self.invoker.close();
    }

    /// Runs `turns` turns; returns the number of allocations.
    pub fn allocations_of(&mut self, turns: usize) -> u64 {
        let before = thread_allocations();
        for _ in 0..turns {
            self.turn();
        }
        thread_allocations() - before
    }
}

/// A packet that a client receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    LoginAccepted {
        session: String,
        next: u64,
    },
    LoginRejected(LoginRejectReason),
    Message(Vec<u8>),
    /// Text of a debug packet, which has no sequence number.
    Debug(String),
    Heartbeat,
    EndOfSession,
    /// The venue closed the connection.
    Closed,
}

/// A client's end of a connection. It parses SoupBinTCP packets and does not check their contents.
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    /// True if the client returns the day's system event messages, which most tests do not need.
    pub keeps_system_events: bool,
}

impl Client {
    pub fn connect(address: SocketAddrV4) -> Client {
        Client::of(TcpStream::connect(address).unwrap())
    }

    /// Connects a client from another address of the loopback interface.
    #[allow(dead_code)] // not used by every suite
    pub fn connect_from(from: Ipv4Addr, address: SocketAddrV4) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddrV4::new(from, 0).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        Client::of(socket.into())
    }

    /// Creates a client whose socket is not connected yet.
    #[allow(dead_code)] // not used by every suite
    pub fn prepare() -> Client {
        Client::of(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap().into())
    }

    /// Connects a client from [`prepare`](Client::prepare).
    #[allow(dead_code)] // not used by every suite
    pub fn connect_prepared(&mut self, address: SocketAddrV4) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_nonblocking(false).unwrap();
        socket.connect(&address.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
    }

    /// Connects a client whose kernel receive buffer is small.
    pub fn connect_narrow(address: SocketAddrV4) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(2_048).unwrap();
        socket.connect(&address.into()).unwrap();
        Client::of(socket.into())
    }

    fn of(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Client { stream, received: Vec::new(), keeps_system_events: false }
    }

    /// Sends raw bytes, which must be few enough for the kernel to accept at once.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends bytes; false if the kernel's buffer is full or the venue has closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write(bytes).is_ok_and(|count| {
            assert_eq!(count, bytes.len(), "the kernel took a part");
            true
        })
    }

    pub fn request(&mut self, request: &OrderRequest) {
        self.send(&request_packet(request));
    }

    /// Returns the next packet, if it has arrived.
    pub fn try_receive(&mut self) -> Option<Received> {
        if let Some(parsed) = self.take_packet() {
            return Some(parsed);
        }
        let mut bytes = [0; 4_096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Some(Received::Closed),
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                self.take_packet()
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(_) => Some(Received::Closed),
        }
    }

    fn take_packet(&mut self) -> Option<Received> {
        let (packet, used) = next_packet(&self.received).unwrap()?;
        let parsed = match packet {
            Packet::LoginAccepted(accepted) => Received::LoginAccepted {
                session: accepted.session.to_string(),
                next: accepted.next_sequence.0,
            },
            Packet::LoginRejected(reason) => Received::LoginRejected(reason),
            Packet::SequencedData(message) => Received::Message(message.to_vec()),
            Packet::Debug(text) => Received::Debug(String::from_utf8(text.to_vec()).unwrap()),
            Packet::ServerHeartbeat => Received::Heartbeat,
            Packet::EndOfSession => Received::EndOfSession,
            other => panic!("a venue does not send {other:?}"),
        };
        self.received.drain(..used);
        match parsed {
            Received::Message(message) if is_system_event(&message) && !self.keeps_system_events => {
                self.take_packet()
            }
            parsed => Some(parsed),
        }
    }
}

pub fn request_packet(request: &OrderRequest) -> Vec<u8> {
    let table = instruments();
    let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
    let len = ouch50::encode_request(request, |id| table.symbol(id), &mut bytes).unwrap();
    packet(b'U', &bytes[..len])
}

/// True if a message announces the start or end of the day.
fn is_system_event(message: &[u8]) -> bool {
    message[0] == b'S'
}

pub fn event(message: &[u8]) -> OrderEventKind {
    let table = instruments();
    match ouch50::decode_event(message, |symbol| table.find(symbol)) {
        Ok(Answer::Order(answer)) => answer.kind,
        other => panic!("{other:?} is not about an order"),
    }
}

pub fn order(user_ref: u32, side: Side, qty: u64, price: i64) -> EnterOrder {
    EnterOrder {
        client_order_id: ClientOrderId(*b"from-the-test "),
        ..EnterOrder::limit(UserRefNum(user_ref), ALPHA, side, Qty(qty), Price(price))
    }
}

pub fn enter(user_ref: u32, side: Side, qty: u64, price: i64) -> OrderRequest {
    OrderRequest::Enter(order(user_ref, side, qty, price))
}

pub fn ioc(user_ref: u32, side: Side, qty: u64, price: i64) -> OrderRequest {
    OrderRequest::Enter(EnterOrder { time_in_force: TimeInForce::Ioc, ..order(user_ref, side, qty, price) })
}

pub fn cancel(user_ref: u32, qty: u64) -> OrderRequest {
    OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(user_ref), qty: Qty(qty) })
}

pub fn replace(orig_user_ref: u32, user_ref: u32, qty: u64, price: i64) -> OrderRequest {
    // The side is ignored: a replacement has the side of the replaced order.
    let order = order(user_ref, Side::Buy, qty, price);
    let order = EnterOrder { client_order_id: ClientOrderId(*b"replaced      "), ..order };
    OrderRequest::Replace(order.replacing(UserRefNum(orig_user_ref)))
}

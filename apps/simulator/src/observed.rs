//! The observations of a run, as plain data. They are collected during the run and checked after it.

use std::collections::BTreeMap;

use tickpath_book::Order;
use tickpath_exchange::{LogCommand, UserSettings};
use tickpath_journal::{Policy, Snapshot};
use tickpath_matching::EngineLimits;
use tickpath_simnet::HostFailure;
use tickpath_trading::{Bbo, EngineCounters, Limits, OwnOrder, Position};
use tickpath_types::{
    BookHealth, Instrument, InstrumentId, MarketUpdate, Nanos, Qty, Sequence, SessionId, UserRefNum,
};

/// All observations of a run.
///
/// All times are virtual: nanoseconds since the start of the run, on one clock for all parts. The venue's own
/// clock is not used, since it may be stepped.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The settings of the venue.
    pub setup: Setup,
    /// One log per user that enters orders, in the order of [`Setup::users`], in which other users come last.
    /// A trader's log is recorded at its connections. A trader requests no messages from before its start.
    pub clients: Vec<ClientLog>,
    /// The reader of drop copies, if there is one.
    pub copies: Option<CopyReader>,
    /// Events of the venue's instances, from the first start on.
    pub venue: Vec<Timed<VenueEvent>>,
    /// Times at which the venue's clock was stepped: the venue cannot measure a span that contains one.
    pub clock_steps: Vec<Nanos>,
    /// The venue's log.
    pub log: Log,
    /// All MoldUDP64 packets that the venue's instances published, in order, as sent: before the network's
    /// faults.
    pub published: Vec<Timed<(Line, Vec<u8>)>>,
    /// All answers of the venue's instances to retransmission requests, in order, as sent: before the
    /// network's faults.
    pub retransmitted: Vec<Timed<Vec<u8>>>,
    /// Every instance of every feed handler.
    pub feeds: Vec<FeedInstance>,
    /// Every instance of every trader, in order.
    pub traders: Vec<TraderInstance>,
    /// The venue's final state.
    pub last: FinalVenue,
    /// Time of the end of the run.
    pub ended_at: Nanos,
}

/// The venue's settings that the checkers use.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The instruments, without those that are added later.
    pub instruments: Vec<Instrument>,
    /// Capacity limits of the venue's engine.
    pub limits: EngineLimits,
    /// The journal's policy: it decides when a command counts as durable.
    pub policy: Policy,
    /// Users, in the order of their sessions 1, 2, 3 ...
    pub users: Vec<UserSettings>,
    /// Seconds of the day, in UTC, at which the venue's schedule has steps.
    pub schedule: Vec<u32>,
    /// Maximum delay of scheduled actions: timer delay plus the longest time for which an agent gets no CPU.
    pub reaction_max: Nanos,
}

/// The venue's log, and its changes over time.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// All commands, as the journal's reader found them on the disk at the end. Segments that were removed
    /// because snapshots cover them were read before their removal.
    pub commands: Vec<LogCommand>,
    /// Last command of the log after each duty cycle of the order server in which the log grew, over all
    /// instances. Decreases when a power loss removed records.
    pub sequenced: Vec<Timed<Sequence>>,
    /// Commands that the simulator had read, but that were missing when the venue started again. Commands
    /// that it had not read may be missing too.
    pub lost: Vec<Timed<Vec<LogCommand>>>,
    /// Number of requests refused without a record because the log was full, per order server duty cycle.
    pub unlogged: Vec<Timed<u64>>,
    /// The snapshots on the disk at the end that could be read, in order.
    pub snapshots: Vec<Snapshot>,
}

/// A value and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed<T> {
    /// Time at which the value was recorded.
    pub at: Nanos,
    /// The recorded value.
    pub value: T,
}

/// The actions and observations of one client, in order.
#[derive(Clone, Debug)]
pub struct ClientLog {
    /// Session of the client at the venue.
    pub session: SessionId,
    /// Events in time order, over all instances of the client. Received messages survive its crashes.
    pub events: Vec<ClientEvent>,
}

/// A reader of drop copies.
#[derive(Clone, Debug)]
pub struct CopyReader {
    /// Indexes of the watched users in the list of users.
    pub watched: Vec<usize>,
    /// True if the log keeps all commands, so that every past copy can be requested.
    pub is_log_whole: bool,
    /// Actions and observations of the reader; the messages are drop copies.
    pub log: ClientLog,
    /// Failures after which the venue makes no drop copies until its next start, with the reason.
    pub failures: Vec<Timed<String>>,
}

/// One action or observation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// Time of the event.
    pub at: Nanos,
    /// Number of the client's connection, from 1.
    pub connection: u32,
    /// Kind of the event.
    pub kind: ClientEventKind,
}

/// An action or observation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEventKind {
    /// A connection is established.
    Connected,
    /// A login was passed to the connection.
    LoginSent {
        /// Sequence number of the next message that the client requests; 0 for new messages only.
        sequence: Sequence,
    },
    /// The venue answered the login.
    LoginAnswered(LoginOutcome),
    /// A whole request was passed to the connection (OUCH bytes without header). It may never arrive.
    Sent(Vec<u8>),
    /// A sequenced message arrived: the OUCH bytes without SoupBinTCP's header. Repetitions are recorded too.
    Received {
        /// Sequence number, counted from that of the login's answer.
        sequence: Sequence,
        /// The message.
        bytes: Vec<u8>,
    },
    /// The venue reported the end of the session.
    SessionEnded,
    /// Invalid SoupBinTCP bytes arrived.
    Garbage,
    /// The client's end of the connection is closed.
    Disconnected(DisconnectCause),
    /// The venue read from the connection. Recorded by the network, at the time of the venue's read.
    ReadByVenue {
        /// Receive time returned with the bytes, in nanoseconds of the kernel's clock; 0 when unknown.
        kernel_ns: u64,
        /// The bytes, SoupBinTCP's framing and control packets included.
        bytes: Vec<u8>,
    },
    /// The connection ended at the venue: the venue closed it, or a reset or the end of the client's bytes
    /// arrived there. Recorded by the network, not by the client.
    DisconnectedAtVenue,
}

/// The answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The venue accepts the login.
    Accepted {
        /// Sequence number of the first message after the answer.
        sequence: Sequence,
    },
    /// The venue refuses the login, with this reject code.
    Rejected(u8),
}

/// The reason why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectCause {
    /// The client logged out or closed its end.
    Client,
    /// The client crashed.
    ClientCrash,
    /// The venue closed its end, or crashed.
    Venue,
    /// The network cut the connection.
    Network,
}

/// An event of the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VenueEvent {
    /// The venue started from the contents of its journal.
    Started {
        /// Sequence number of the last command that the venue recovered.
        last: Sequence,
        /// State hash after recovery.
        state_hash: u64,
        /// The records on the disk at the start, as the journal's reader found them. The first may not be the
        /// log's first, since old segments are removed once snapshots cover them.
        journal: Vec<LogCommand>,
    },
    /// The venue's machine lost power while the venue started.
    PowerLostAtStart,
    /// The venue refused to start, with this reason.
    Refused(String),
    /// The venue crashed.
    Crashed(HostFailure),
    /// The operator or the end of the run stopped the venue.
    Stopped,
    /// The venue can no longer write to its disk.
    DiskFailed,
}

/// One of the two redundant market data lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// Line A.
    A,
    /// Line B.
    B,
}

/// One instance of a feed handler.
#[derive(Clone, Debug, Default)]
pub struct FeedInstance {
    /// Number of the feed handler.
    pub handler: u32,
    /// Time of the instance's start.
    pub started_at: Nanos,
    /// Time at which the instance was killed; `None` when it ran to the end of the run.
    pub ended_at: Option<Nanos>,
    /// Number of messages that the feed handler reported as lost.
    pub lost: u64,
    /// Updates that the feed handler published, in order.
    pub updates: Vec<MarketUpdate>,
    /// Number of updates overwritten before they were recorded; if any, only the final state is checked.
    pub unrecorded: u64,
    /// Orders in the feed handler's books at the end, sorted by instrument, side (bids first), price (best
    /// first) and priority.
    pub orders: Vec<Order<()>>,
    /// Health of each book at the end of the instance.
    pub health: Vec<(InstrumentId, BookHealth)>,
    /// Sequence number of the next message expected at the end of the instance.
    pub next: Sequence,
    /// Number of books recovered from a snapshot; the number is not checked.
    pub recovered: u64,
}

/// One instance of a trader, with its state at its end.
#[derive(Clone, Debug)]
pub struct TraderInstance {
    /// Number of the trader.
    pub trader: u32,
    /// Index of the trader's user in the list of users.
    pub user: usize,
    /// Time of the instance's start.
    pub started_at: Nanos,
    /// Time and kind of the instance's end; `None` when it ran to the end of the run.
    pub ended: Option<(Nanos, TraderEnd)>,
    /// Number of the instance's first connection; its last one precedes the next instance's first one.
    pub first_connection: u32,
    /// Risk limits of the trader, the same for each instrument.
    pub limits: Limits,
    /// The trader's positions; index 0 is instrument id 1.
    pub positions: Vec<Position>,
    /// Open quantity of buy and of sell orders in each instrument, as counted by the trader.
    pub open_qty: Vec<[Qty; 2]>,
    /// Best prices of each instrument; `None` where the trader does not trust its book.
    pub markets: Vec<Option<Bbo>>,
    /// Open orders of the trader.
    pub orders: Vec<OwnOrder>,
    /// Request counters of the trader.
    pub counters: EngineCounters,
    /// Number of orders that the trader treated as rejected until it learned that the venue had accepted
    /// them.
    pub reopened: u64,
    /// Number of market updates lost because the trader read too slowly.
    pub lost_updates: u64,
}

/// The kind of a trader's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraderEnd {
    /// The trader's process was killed, or its machine lost power.
    Killed,
    /// The operator stopped the trader, which handled all received answers before it ended.
    Stopped,
}

/// The venue's final state.
#[derive(Clone, Debug, Default)]
pub struct FinalVenue {
    /// The engine's state hash.
    pub state_hash: u64,
    /// Sequence number of the last command applied.
    pub last_command: Sequence,
    /// Sequence number of the last market event.
    pub last_market: Sequence,
    /// Time of the stop by the venue's clock, in nanoseconds since the Unix epoch.
    pub stopped_at: Nanos,
    /// Executed and open quantity of each open order, displayed or not, by session and UserRefNum.
    pub open_orders: BTreeMap<(SessionId, UserRefNum), (Qty, Qty)>,
    /// Displayed orders in the venue's books, sorted by instrument, side (bids first), price (best first) and
    /// priority.
    pub displayed: Vec<Order<()>>,
    /// Counters of the venue's last instance, by agent and field: `order_server.commands`,
    /// `matcher.market_events`, `publisher.messages`, `journal.durable`. Other counters are not checked.
    pub counters: Vec<(String, u64)>,
}

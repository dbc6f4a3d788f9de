//! The observations of a run, as plain data: collected during the run, checked after it.

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
    /// One log per user that enters orders, in the same order; other users come after them. A trader's log
    /// has the traffic of its connections, which never requests messages from before its start.
    pub clients: Vec<ClientLog>,
    /// The reader of drop copies, if there is one.
    pub copies: Option<CopyReader>,
    /// The venue's instances, from the first start on.
    pub venue: Vec<Timed<VenueEvent>>,
    /// Times at which the venue's clock was stepped: it mismeasured every span that contains one of them.
    pub clock_steps: Vec<Nanos>,
    /// The venue's log.
    pub log: Log,
    /// Every MoldUDP64 packet that the publisher sent, before the network, in order; over all instances.
    pub published: Vec<Timed<(Line, Vec<u8>)>>,
    /// Every answer to a retransmission request, before the network, in order; over all instances.
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

/// The settings of a venue that the checkers know.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The instruments, without those that are added later.
    pub instruments: Vec<Instrument>,
    /// Bounds of the venue's engine.
    pub limits: EngineLimits,
    /// The policy by which a command counts as durable.
    pub policy: Policy,
    /// Users of sessions 1, 2, 3 ...
    pub users: Vec<UserSettings>,
    /// Seconds of the day, in UTC, at which the venue's schedule has steps.
    pub schedule: Vec<u32>,
    /// Maximum delay of the venue's reaction to a time: its timers, plus the longest starvation of an agent.
    pub reaction_max: Nanos,
}

/// The venue's log, and its changes over time.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// From its first command to its last, as the journal's reader found it on the disk at the end. Parts
    /// that were removed because snapshots cover them are as read before their removal.
    pub commands: Vec<LogCommand>,
    /// Its last command after each duty cycle of the order server in which it grew, over all instances. It
    /// goes back when a power loss removed records.
    pub sequenced: Vec<Timed<Sequence>>,
    /// Commands found lost at a start, as far as they were read before; later ones may have been lost unread.
    pub lost: Vec<Timed<Vec<LogCommand>>>,
    /// Requests refused without a record because the log was full, counted by duty cycle of the order server.
    pub unlogged: Vec<Timed<u64>>,
    /// The snapshots on the disk at the end that could be read, in order.
    pub snapshots: Vec<Snapshot>,
}

/// A value and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed<T> {
    /// Time.
    pub at: Nanos,
    /// Value.
    pub value: T,
}

/// The actions and observations of one client, in order.
#[derive(Clone, Debug)]
pub struct ClientLog {
    /// Its session at the venue.
    pub session: SessionId,
    /// In time order, over all instances of the client, whose memory of received messages survives them.
    pub events: Vec<ClientEvent>,
}

/// A reader of drop copies.
#[derive(Clone, Debug)]
pub struct CopyReader {
    /// Indexes of the watched users in the list of users.
    pub watched: Vec<usize>,
    /// True if the log covers all messages: any copy can be requested.
    pub is_log_whole: bool,
    /// Its actions and observations. Messages are copies.
    pub log: ClientLog,
    /// Times at which the venue could make no more copies until its next start, and the reason.
    pub failures: Vec<Timed<String>>,
}

/// One action or observation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// Time at the client.
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
        /// The next message that the client wants; 0 for new ones alone.
        sequence: Sequence,
    },
    /// The venue answered the login.
    LoginAnswered(LoginOutcome),
    /// A whole request was passed to the connection (OUCH bytes without header). It may never arrive.
    Sent(Vec<u8>),
    /// A sequenced message arrived: the OUCH bytes without SoupBinTCP's header. Includes repetitions.
    Received {
        /// Its number, counted from the sequence of the login's answer.
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
        /// The receive time returned with them, in nanoseconds of the kernel's clock; 0 when unknown.
        kernel_ns: u64,
        /// The bytes, SoupBinTCP's framing and control packets included.
        bytes: Vec<u8>,
    },
    /// The venue's end of the connection was closed, or could read the end of the client's bytes or a reset
    /// from this time on. Recorded by the network, not the client.
    DisconnectedAtVenue,
}

/// The answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The session continues.
    Accepted {
        /// The number of the next message.
        sequence: Sequence,
    },
    /// The letter of the reason.
    Rejected(u8),
}

/// The reason why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectCause {
    /// The client logged out or closed its end.
    Client,
    /// The client crashed.
    ClientCrash,
    /// The venue closed its end, alive or by its death.
    Venue,
    /// The network cut it.
    Network,
}

/// An event of the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VenueEvent {
    /// It started from the contents of its journal.
    Started {
        /// The last command that it recovered.
        last: Sequence,
        /// Its state hash after recovery.
        state_hash: u64,
        /// The records on the disk at that time, as the journal's reader found them. The first may not be the
        /// log's first, since old segments are removed once snapshots cover them.
        journal: Vec<LogCommand>,
    },
    /// Its machine lost power while it started.
    PowerLostAtStart,
    /// It refused to start, with the reason.
    Refused(String),
    /// It crashed.
    Crashed(HostFailure),
    /// It was stopped in the regular way.
    Stopped,
    /// Its disk can no longer write.
    DiskFailed,
}

/// One of the two lines.
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
    /// Time of its start.
    pub started_at: Nanos,
    /// Time at which it was killed; `None` when it ran to the end of the run.
    pub ended_at: Option<Nanos>,
    /// Messages that it reported as lost.
    pub lost: u64,
    /// Its updates, in order.
    pub updates: Vec<MarketUpdate>,
    /// Updates overwritten before they were recorded; if any, only its final state is checked.
    pub unrecorded: u64,
    /// The orders in its books at the end: by instrument, purchases first, best first, in priority order.
    pub orders: Vec<Order<()>>,
    /// Health of each book at the end of the instance.
    pub health: Vec<(InstrumentId, BookHealth)>,
    /// The next message that it expects at its end.
    pub next: Sequence,
    /// Books recovered from a snapshot; not checked.
    pub recovered: u64,
}

/// One instance of a trader: its state at its end.
#[derive(Clone, Debug)]
pub struct TraderInstance {
    /// Number of the trader.
    pub trader: u32,
    /// Index of its user in the list of users.
    pub user: usize,
    /// Time of its start.
    pub started_at: Nanos,
    /// Time and kind of its end; `None` when it ran to the end of the run.
    pub ended: Option<(Nanos, TraderEnd)>,
    /// Its first connection; its connections continue up to those of the next instance.
    pub first_connection: u32,
    /// Its limits, the same in each instrument.
    pub limits: Limits,
    /// Its position in each instrument, by id from 1.
    pub positions: Vec<Position>,
    /// Open quantity of purchases and sales in each instrument, by its own account.
    pub open_qty: Vec<[Qty; 2]>,
    /// The best prices of each instrument; `None` where it does not trust the book.
    pub markets: Vec<Option<Bbo>>,
    /// Its open orders.
    pub orders: Vec<OwnOrder>,
    /// Its counters of requests.
    pub counters: EngineCounters,
    /// Orders that it had given up and that the venue accepted after all.
    pub reopened: u64,
    /// Market updates lost because it read too slowly.
    pub lost_updates: u64,
}

/// The kind of a trader's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraderEnd {
    /// It was killed.
    Killed,
    /// It ended by itself, after it had handled all received answers.
    Stopped,
}

/// The venue's final state.
#[derive(Clone, Debug, Default)]
pub struct FinalVenue {
    /// The engine's state hash.
    pub state_hash: u64,
    /// The last command applied.
    pub last_command: Sequence,
    /// The last market event.
    pub last_market: Sequence,
    /// Its own time when it was stopped, in nanoseconds since the Unix epoch.
    pub stopped_at: Nanos,
    /// Executed and open quantity of each open order, displayed or not, by session and client's number.
    pub open_orders: BTreeMap<(SessionId, UserRefNum), (Qty, Qty)>,
    /// Displayed orders in its books: by instrument, purchases first, best first, in priority order.
    pub displayed: Vec<Order<()>>,
    /// The counters of the venue's last instance, by agent and field: `order_server.commands`,
    /// `matcher.market_events`, `publisher.messages`, `journal.durable`. Others are not checked.
    pub counters: Vec<(String, u64)>,
}

//! What a run has seen, as plain data: filled while it goes on, judged when it is over.

use std::collections::BTreeMap;

use tickpath_book::Order;
use tickpath_exchange::{LogCommand, UserSettings};
use tickpath_journal::{Policy, Snapshot};
use tickpath_matching::EngineLimits;
use tickpath_simnet::Death;
use tickpath_trading::{Bbo, EngineCounters, Limits, OwnOrder, Position};
use tickpath_types::{
    BookHealth, Instrument, InstrumentId, MarketUpdate, Nanos, Qty, Sequence, SessionId, UserRefNum,
};

/// Everything that a run has seen.
///
/// All times are virtual: nanoseconds since the run began, one clock for everybody. What the venue takes for the time is
/// not among them, for it may be stepped.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The settings of the venue.
    pub setup: Setup,
    /// One of each user that enters orders, in the same order; who does not is behind them. Of a trader it is what went over
    /// its connections, which never asks for what was there before it began.
    pub clients: Vec<ClientLog>,
    /// Who reads drop copies, if somebody does.
    pub copies: Option<CopyReader>,
    /// The venue's lives, from the first start on.
    pub venue: Vec<Timed<VenueEvent>>,
    /// When the venue's clock was set: it measured wrongly every span with one of these times in it.
    pub clock_steps: Vec<Nanos>,
    /// The venue's log.
    pub log: Log,
    /// Every MoldUDP64 packet that the publisher sent on a line, before the network had it, in order; over all lives.
    pub published: Vec<Timed<(Line, Vec<u8>)>>,
    /// Every answer to a request for retransmission, before the network had it, in order; over all lives.
    pub retransmitted: Vec<Timed<Vec<u8>>>,
    /// Feed handlers, each life of each of them.
    pub feeds: Vec<FeedLife>,
    /// Traders, each life of each of them, in order.
    pub traders: Vec<TraderLife>,
    /// What the venue came to.
    pub last: FinalVenue,
    /// When the run ended.
    pub ended_at: Nanos,
}

/// The settings of a venue that the checkers know.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The instruments, without those that are added later.
    pub instruments: Vec<Instrument>,
    /// Bounds of the venue's engine.
    pub limits: EngineLimits,
    /// When a command counts as durable.
    pub policy: Policy,
    /// Users of sessions 1, 2, 3 ...
    pub users: Vec<UserSettings>,
    /// Seconds of the day, in UTC, at which the venue's schedule has steps.
    pub schedule: Vec<u32>,
    /// How late the venue may notice and do what is due at a time: its timers, and the longest starvation of an agent.
    pub reaction_max: Nanos,
}

/// The venue's log, and its changes over time.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// From its first command to its last, as the journal's reader found it on the disk at the end; what was removed by
    /// then because snapshots cover it, as it was read before it was removed.
    pub commands: Vec<LogCommand>,
    /// Its last command, noted after each duty cycle of the order server in which it grew; over all lives, so that it
    /// goes back where a power loss took records away.
    pub sequenced: Vec<Timed<Sequence>>,
    /// Commands that it had lost at a start, as far as they were read before; later ones may have been lost unread.
    pub lost: Vec<Timed<Vec<LogCommand>>>,
    /// Requests refused without a record because it was full, counted for each duty cycle of the order server with one.
    pub unlogged: Vec<Timed<u64>>,
    /// The snapshots on the disk at the end that could be read, in order.
    pub snapshots: Vec<Snapshot>,
}

/// Something, and when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed<T> {
    /// When.
    pub at: Nanos,
    /// The thing.
    pub what: T,
}

/// What one client did and saw, in order.
#[derive(Clone, Debug)]
pub struct ClientLog {
    /// Its session at the venue.
    pub session: SessionId,
    /// In order of time; over all lives of the client, whose memory of what it received survives them.
    pub events: Vec<ClientEvent>,
}

/// Who watches over users.
#[derive(Clone, Debug)]
pub struct CopyReader {
    /// Places in the list of users of those whose messages it gets.
    pub watched: Vec<usize>,
    /// The log leads to everything that there ever was: any copy can be asked for.
    pub is_log_whole: bool,
    /// What it did and saw. Messages are copies.
    pub log: ClientLog,
    /// When the venue could make no more copies until its next start, and why.
    pub failures: Vec<Timed<String>>,
}

/// One thing that a client did or saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// When, at the client.
    pub at: Nanos,
    /// Which of the client's connections, counted from 1.
    pub connection: u32,
    /// What.
    pub kind: ClientEventKind,
}

/// What a client did or saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEventKind {
    /// A connection stands.
    Connected,
    /// A login was handed to the connection.
    LoginSent {
        /// The next message that the client wants; 0 for new ones alone.
        sequence: Sequence,
    },
    /// The venue answered the login.
    LoginAnswered(LoginOutcome),
    /// A request was handed to the connection, whole: the OUCH bytes without SoupBinTCP's header. It may never arrive.
    Sent(Vec<u8>),
    /// A sequenced message arrived: the OUCH bytes without SoupBinTCP's header. Repeats are among them.
    Received {
        /// Its number, counted from the sequence of the login's answer.
        sequence: Sequence,
        /// The message.
        bytes: Vec<u8>,
    },
    /// The venue said that the session is over.
    SessionEnded,
    /// Bytes arrived that are no SoupBinTCP.
    Garbage,
    /// The connection is gone for the client.
    Disconnected(DisconnectCause),
    /// The venue read from the connection. Noted by the network, at the time of the venue's read.
    ReadByVenue {
        /// The receive time that it was given with them, in nanoseconds of the kernel's clock; 0 when not known.
        kernel_ns: u64,
        /// The bytes, SoupBinTCP's framing and control packets included.
        bytes: Vec<u8>,
    },
    /// The venue's end of the connection learned that it is gone, or had it closed: the time at which the end of the
    /// client's bytes, or a reset, was there to be read. Noted by the network, not the client.
    GoneAtVenue,
}

/// How a login was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The session goes on.
    Accepted {
        /// The number of the next message.
        sequence: Sequence,
    },
    /// The letter of the reason.
    Rejected(u8),
}

/// Why a connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectCause {
    /// The client logged out or closed its end.
    Client,
    /// The client died.
    ClientCrash,
    /// The venue closed its end, living or dying.
    Venue,
    /// The network cut it.
    Network,
}

/// What happened to the venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VenueEvent {
    /// It began, from what its journal held.
    Started {
        /// The last command that it found.
        last: Sequence,
        /// The state hash that it came to.
        state_hash: u64,
        /// The records on the disk then, as the journal's reader found them; the first need not be the log's, for old
        /// segments are removed once snapshots cover them.
        journal: Vec<LogCommand>,
    },
    /// Its machine lost power while it started.
    CutAtStart,
    /// It would not start, and why.
    Refused(String),
    /// It died.
    Crashed(Death),
    /// It was asked to stop and did, saying goodbye.
    Stopped,
    /// Its disk could not write any more.
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

/// One life of a feed handler.
#[derive(Clone, Debug, Default)]
pub struct FeedLife {
    /// Which of the feed handlers.
    pub handler: u32,
    /// When it began.
    pub started_at: Nanos,
    /// When it was killed; `None` when it lived to the end of the run.
    pub ended_at: Option<Nanos>,
    /// Messages that it gave up, and said so.
    pub lost: u64,
    /// What it handed on, in order.
    pub updates: Vec<MarketUpdate>,
    /// What it handed on and was overwritten before it could be written down; then only its end is judged.
    pub unseen: u64,
    /// The orders in its books at the end: by instrument, purchases before sales, best first, in priority.
    pub orders: Vec<Order<()>>,
    /// How far each book can be believed at the end of its life.
    pub health: Vec<(InstrumentId, BookHealth)>,
    /// The next message that it waits for at the end of its life.
    pub next: Sequence,
    /// Books that a snapshot healed; not looked at.
    pub healed: u64,
}

/// One life of a trader: what it held and believed at its end.
#[derive(Clone, Debug)]
pub struct TraderLife {
    /// Which of the traders.
    pub trader: u32,
    /// Place of its user in the list of users.
    pub user: usize,
    /// When it began.
    pub started_at: Nanos,
    /// When it ended and how; `None` when it lived to the end of the run.
    pub ended: Option<(Nanos, TraderEnd)>,
    /// Its connections: from this number on, up to those of the next life.
    pub first_connection: u32,
    /// What it may do in each instrument.
    pub limits: Limits,
    /// What it holds of each instrument, by id from 1.
    pub positions: Vec<Position>,
    /// What its open purchases and sales of each instrument could still trade, by its own account.
    pub open_qty: Vec<[Qty; 2]>,
    /// The best prices of each instrument that it believes in; `None` where it believes in none.
    pub markets: Vec<Option<Bbo>>,
    /// Its open orders.
    pub orders: Vec<OwnOrder>,
    /// What it says that it asked for.
    pub counters: EngineCounters,
    /// Orders that it had given up and that the venue took all the same.
    pub revived: u64,
    /// Market updates that it lost because it read too slowly.
    pub lost_updates: u64,
}

/// How a trader's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraderEnd {
    /// It was killed.
    Killed,
    /// It ended itself, having taken all answers that had come.
    Stopped,
}

/// What the venue came to.
#[derive(Clone, Debug, Default)]
pub struct FinalVenue {
    /// The engine's state hash.
    pub state_hash: u64,
    /// The last command applied.
    pub last_command: Sequence,
    /// The last market event.
    pub last_market: Sequence,
    /// The time by its own clock when it was asked to stop, in nanoseconds since the Unix epoch.
    pub stopped_at: Nanos,
    /// The executed and the open quantity of each open order, displayed or not; by session and the client's number.
    pub open_orders: BTreeMap<(SessionId, UserRefNum), (Qty, Qty)>,
    /// Displayed orders in its books: by instrument, purchases before sales, best first and in the order of priority.
    pub displayed: Vec<Order<()>>,
    /// The venue's counters of its last life, by agent and field: `order_server.commands`, `matcher.market_events`,
    /// `publisher.messages`, `journal.durable`; others are not looked at.
    pub counters: Vec<(String, u64)>,
}

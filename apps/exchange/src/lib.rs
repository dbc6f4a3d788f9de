//! The venue: order server, sequencer, matcher, publisher and retransmission server.
//!
//! ```text
//! TCP -> order server -> sequencer -> [commands] -> matcher -> [market events] -> publisher -> lines A and B
//!              ^                                       |
//!              +---------------- [responses] <---------+
//! ```
//!
//! A command is numbered, written to the journal and then matched; nothing of what it causes is told to anybody before it
//! is safe in the journal.
//!
//! Each box is an agent that runs wherever the placement puts it; the brackets are bounded rings.
//! [`Venue::build`] opens the sockets and gives the agents.

mod admin;
mod config;
mod drop_copy;
mod front_port;
mod journal;
mod log_feed;
mod login;
mod market_recovery;
mod matcher;
mod order_server;
mod publisher;
mod resting_thread;
mod soup_endpoint;
mod soup_link;
mod venue;

pub use tickpath_admission::{LoginPolicy, PreLoginLimits};
pub use tickpath_venue::day::{BandWidth, DaySettings, Phase, Schedule, ScheduleStep};
pub use tickpath_venue::market_recovery::{REQUESTS_PER_POLL, RecoveryCounters, RetransmissionQueue};
pub use tickpath_venue::{
    AdminAnswer, AdminCommand, AdminOutcome, AdminRefusal, Definition, FrontRequest, FrontRequestKind,
    LimitsChange, LogCommand, LogCommandKind, LogReadError, MarketImage, MessageStore, Password, RateLimit,
    RegisterError, Replica, ReplicaError, RequestLimits, Response, SessionLog, UserLimits, UserPorts,
    UserRegistry, UserSettings, VenueCommandKind,
};

pub use admin::{AddUserError, AdminClient, AdminSocket, DrainWatch};
pub use config::{
    AdminConfig, BackgroundFlowConfig, CancelConfig, DayConfig, ExchangeConfig, JournalConfig, LimitsConfig,
    LoginConfig, MarketDataConfig, MatchingConfig, OrderEntryConfig, PhaseConfig, PolicyConfig, PortConfig,
    RequestsConfig, SelfTradeConfig, SnapshotsConfig, StepConfig, TimeOfDay, TimeZone, UserConfig,
};
pub use drop_copy::{COPY_HEADER_LEN, Copy, CopyError, DropCopyCounters, DropCopySettings};
pub use front_port::FrontPort;
pub use journal::{
    ArchiveError, Audit, Follower, FollowerError, JournalCounters, JournalSettings, JournalThreads, Recovery,
    RecoveryError, ReplayError, VenueJournal, archive, audit, replay,
};
pub use log_feed::{LogFeed, LogFeedError, LogListener, VenueEngine};
pub use login::{PasswordHashError, hash_password, hashed_password};
pub use market_recovery::{GlimpseServer, MarketRecovery, MarketRecoverySettings, SnapshotSettings};
pub use matcher::{FinalEngine, Matcher, MatcherCounters};
pub use order_server::{OrderServer, OrderServerCounters};
pub use publisher::{Publisher, PublisherConfig, PublisherCounters};
pub use venue::{Endpoints, Venue, VenueSettings, VenueTracer, VenueTracers, VenueView};

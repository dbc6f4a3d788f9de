//! The venue: order server, sequencer, matcher, publisher and retransmission server.
//!
//! ```text
//! TCP -> order server -> sequencer -> [commands] -> matcher -> [market events] -> publisher -> lines A and B
//!              ^                                       |
//!              +---------------- [responses] <---------+
//! ```
//!
//! A command is numbered, written to the journal and then matched. No result is sent before its
//! command is durable.
//!
//! Order server, matcher and publisher are agents; the sequencer is part of the order server. The placement
//! assigns each agent to a thread. Names in brackets are bounded rings. [`Venue::build`] opens the sockets
//! and returns the agents.

mod admin;
mod background_agent;
mod config;
mod drop_copy;
mod journal;
mod login;
mod market_recovery;
mod matcher;
mod order_server;
mod publisher;
mod soup_endpoint;
mod soup_link;
mod venue;

pub use tickpath_admission::{LoginPolicy, PreLoginLimits};
pub use tickpath_venue::day::{BandWidth, DaySettings, Phase, Schedule, ScheduleStep};
pub use tickpath_venue::market_recovery::{REQUESTS_PER_POLL, RecoveryCounters, RetransmissionQueue};
pub use tickpath_venue::{
    AdminAnswer, AdminCommand, AdminOutcome, AdminRefusal, Definition, DrainWatch, DropCopyCounters,
    FinalEngine, FrontPort, FrontRequest, FrontRequestKind, JournalCounters, LimitsChange, LogCommand,
    LogCommandKind, LogFeed, LogFeedError, LogListener, LogReadError, MarketImage, Matcher, MatcherCounters,
    MessageStore, OrderServerCounters, Password, PublisherCounters, RateLimit, RegisterError, Replica,
    ReplicaError, RequestLimits, Response, SessionLog, UserLimits, UserPorts, UserRegistry, UserSettings,
    VenueCommandKind, VenueEngine, VenueView,
};

pub use admin::{AddUserError, AdminClient, AdminSocket, status};
pub use config::{
    AdminConfig, BackgroundFlowConfig, CancelConfig, DayConfig, ExchangeConfig, JournalConfig, LimitsConfig,
    LoginConfig, MarketDataConfig, MatchingConfig, OrderEntryConfig, PhaseConfig, PolicyConfig, PortConfig,
    RequestsConfig, SelfTradeConfig, StepConfig, TimeOfDay, TimeZone, UserConfig,
};
pub use drop_copy::{COPY_HEADER_LEN, DropCopy, DropCopySettings};
pub use journal::{JournalSettings, JournalThreads, VenueJournal};
pub use tickpath_journal::archive;
pub use tickpath_venue_log::{Recovery, audit};

pub use login::{PasswordHashError, hash_password, hashed_password};
pub use market_recovery::{GlimpseServer, MarketRecovery, MarketRecoverySettings, SnapshotSettings};
pub use order_server::OrderServer;
pub use publisher::{Publisher, PublisherConfig};
pub use venue::{Endpoints, Venue, VenueSettings, VenueTracer, VenueTracers};

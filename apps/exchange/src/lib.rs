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
mod answers;
mod config;
mod day;
mod drop_copy;
mod gate;
mod journal;
mod late;
mod log_feed;
mod login;
mod market_recovery;
mod matcher;
mod message_store;
mod order_server;
mod publisher;
mod replica;
mod roster;
mod sequencer;
mod session_log;
mod side_door;
mod soup_link;
mod standing;
mod token_bucket;
mod users;
mod venue;

pub use tickpath_admission::{LoginPolicy, PreLoginLimits};

pub use admin::{
    AdminAnswer, AdminClient, AdminCommand, AdminOutcome, AdminRefusal, AdminSocket, DrainWatch, LimitsChange,
};
pub use config::{
    AdminConfig, BackgroundFlowConfig, CancelConfig, DayConfig, DropCopyConfig, ExchangeConfig,
    JournalConfig, LimitsConfig, LoginConfig, MarketDataConfig, MatchingConfig, OrderEntryConfig,
    PhaseConfig, PolicyConfig, PortConfig, RequestsConfig, SelfTradeConfig, SnapshotsConfig, StepConfig,
    TimeOfDay, TimeZone, UserConfig,
};
pub(crate) use day::state_of;
pub use day::{BandWidth, DaySettings, Phase, Schedule, ScheduleStep};
pub use drop_copy::{COPY_HEADER_LEN, Copy, CopyError, DropCopyCounters, DropCopyError, DropCopySettings};
pub use gate::UserLimits;
pub use journal::{
    ArchiveError, Audit, Follower, FollowerError, JournalCounters, JournalSettings, JournalThreads, Recovery,
    RecoveryError, ReplayError, VenueJournal, archive, audit, replay,
};
pub use log_feed::{LogFeed, LogFeedError, LogListener, VenueEngine};
pub use login::{Password, PasswordHashError, hash_password};
pub use market_recovery::{
    GlimpseServer, MarketImage, MarketRecovery, MarketRecoverySettings, RecoveryCounters, RecoveryThread,
    RequestLimits, SnapshotSettings,
};
pub use matcher::{FinalEngine, Matcher, MatcherCounters, Response};
pub use message_store::MessageStore;
pub use order_server::{OrderServer, OrderServerCounters};
pub use publisher::{Publisher, PublisherConfig, PublisherCounters};
pub use replica::{Definition, Replica, ReplicaError};
pub use roster::{AddUserError, LimitsView, Roster, UserView};
pub use session_log::SessionLog;
pub use side_door::{DoorAsk, DoorRequest, SideDoor};
pub use token_bucket::RateLimit;
pub use users::{Doors, UserSettings};
pub use venue::{Endpoints, Venue, VenueSettings, VenueTracer, VenueTracers, VenueView};

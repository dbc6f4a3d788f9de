//! The venue's logic, without sockets, files, threads and clocks.
//!
//! Users' requests become commands in a single order, the log. The log determines all output of the venue:
//! the messages to users, market data, drop copies, snapshots.
//!
//! | module | subject |
//! |---|---|
//! | `user_settings`, `user_limits`, `password` | users as the configuration describes them |
//! | `user_registry` | the registered users, readable from all threads |
//! | `users`, `logins` | the users' sessions; checks of logins |
//! | `internal_commands` | commands of the venue itself: from the trading day and the administrator |
//! | `order_entry` | order entry, independent of connections: users, logins, sequencer, internal commands |
//! | `entitlements` | the permissions of each user, by configuration and by commands |
//! | `request_filter`, `token_bucket` | checks of requests before the engine |
//! | `admin_command`, `front_request` | commands of the administrator; requests of a gateway thread |
//! | [`day`] | the trading day: schedule, phases, order expiry |
//! | `log_command` | commands of the log: those for the engine, and those for the venue only |
//! | `sequencer`, `command_log` | the single order of all commands, and the log to which they are written |
//! | `matcher` | applies the sequenced commands to the engine |
//! | `response`, `overflow_queue` | the matcher's responses, and the queue used when a ring is full |
//! | `message_log` | numbered messages that can be resent: to each user, and the published market data |
//! | `session_messages` | messages to a user, appended to its log |
//! | `published_messages`, `retransmission_limits` | market data for snapshots; rate limits of resends |
//! | `replica` | the complete state that results from a log, and its encoding in a snapshot |
//! | `stored_log`, `log_follower`, `log_feed` | the stored log, and its readers |
//! | `opening`, `session_name` | the first commands after a venue's start; the names of its sessions |
//! | `counters`, `view`, `drain` | counters and states of a venue, readable while it runs |
//! | `market_image` | the public state of the market, and snapshots of it |
//! | [`market_recovery`] | market data resent on request, from memory or from the log |
//! | [`drop_copy`] | copies of the messages to users, for authorised readers |
//!
//! ```
//! use tickpath_lockfree::spsc;
//! use tickpath_matching::CommandKind;
//! use tickpath_timing::NoTrace;
//! use tickpath_types::{Nanos, Sequence, SessionId};
//! use tickpath_venue::{Arrival, Sequencer};
//!
//! let (commands, mut sequenced) = spsc::channel(16);
//! let mut sequencer = Sequencer::new(commands, 16);
//! let is_killed = true;
//! sequencer.add(Arrival::internal(SessionId(3), CommandKind::KillSession { is_killed }));
//! assert_eq!(sequencer.sequence(Nanos(5), &mut NoTrace), 1);
//! let command = sequenced.try_pop().ok_or("sequenced")?;
//! assert_eq!((command.sequence(), command.session(), command.ts()), (Sequence(1), SessionId(3), Nanos(5)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admin_command;
mod command_log;
mod counters;
pub mod day;
mod drain;
pub mod drop_copy;
mod entitlements;
mod front_request;
mod internal_commands;
mod log_command;
mod log_feed;
mod log_follower;
mod logins;
mod market_image;
pub mod market_recovery;
mod matcher;
mod message_log;
mod opening;
mod order_entry;
mod overflow_queue;
mod password;
mod published_messages;
mod replica;
mod request_filter;
mod response;
mod retransmission_limits;
mod sequencer;
mod session_messages;
mod session_name;
mod stored_log;
mod token_bucket;
mod user_limits;
mod user_registry;
mod user_settings;
mod users;
mod view;

pub use admin_command::{AdminAnswer, AdminCommand, AdminOutcome, AdminRefusal};
pub use command_log::{CommandLog, LogState};
pub use counters::{DropCopyCounters, JournalCounters, OrderServerCounters, PublisherCounters, TradeTotals};
pub use drain::DrainWatch;
pub use entitlements::{Configured, Entitlements, ReplayedUser};
pub use front_request::{FrontPort, FrontRequest, FrontRequestKind};
pub use internal_commands::InternalCommands;
pub use log_command::{LogCommand, LogCommandKind, VenueCommand, VenueCommandKind};
pub use log_feed::{LogFeed, LogFeedError, LogListener};
pub use log_follower::LogFollower;
pub use logins::{Check, Denial, LoginStep, LoginUsers, Logins, PasswordChecks, is_for_session};
pub use market_image::{MarketImage, next_message};
pub use matcher::{FinalEngine, Matcher, MatcherCounters, VenueEngine};
pub use message_log::{MAX_LOGGED_MESSAGE, MAX_STORED_MESSAGE, MessageLog, MessageStore, SessionLog};
pub use opening::{Opening, OpeningSettings};
pub use order_entry::{Admission, FrontAdmission, OrderEntry};
pub use overflow_queue::end_ring;
pub use password::Password;
pub use published_messages::{MessageCopies, PublishedMessage};
pub use replica::{Definition, OutboundStreams, ReplayedState, Replica, ReplicaError, Stream};
pub use request_filter::RequestFilter;
pub use response::Response;
pub use retransmission_limits::RequestLimits;
pub use sequencer::{Arrival, Sequencer};
pub use session_messages::{append_event, append_query_answer, append_session_phase};
pub use session_name::{parse_session_name, session_name_at, wire_name};
pub use stored_log::{LogReadError, StoredCommands, StoredLog};
pub use token_bucket::RateLimit;
pub use user_limits::{LimitsChange, UserLimits};
pub use user_registry::{LimitsView, RegisterError, UserRegistry, UserView};
pub use user_settings::{UserPorts, UserSettings, check_names, check_watched};
pub use users::{NewUser, User, Users};
pub use view::VenueView;

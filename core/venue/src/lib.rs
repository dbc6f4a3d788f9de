//! The venue without sockets, files, threads and clocks.
//!
//! Requests of users become commands in one order, the log. Everything that the venue sends follows from the log: the
//! messages to users, market data, drop copies, snapshots.
//!
//! | module | subject |
//! |---|---|
//! | `user_settings`, `user_limits`, `password` | users as the configuration describes them |
//! | `user_registry` | the users that there are, readable from every thread |
//! | `users`, `logins` | the users' sessions, and who may log in |
//! | `internal_commands` | commands of the venue itself: its day, and those of the administrator |
//! | `order_entry` | order entry without its connections: the parts above and the sequencer, joined |
//! | `entitlements` | what each user may do, by the configuration and by commands |
//! | `request_filter`, `token_bucket` | checks of requests before the log |
//! | `admin_command`, `front_request` | commands of the administrator, a front beside the venue and its requests |
//! | [`day`] | the trading day: schedule, phases, orders that expire |
//! | `log_command` | commands of the log: of the engine, and of the venue alone |
//! | `sequencer`, `command_log` | the one order of all commands, and the log that they are written to |
//! | `matcher` | the sequenced commands, applied to the engine |
//! | `response`, `overflow_queue` | what the matcher answers, and the queue behind a full ring |
//! | `message_log` | numbered messages that can be sent again: those to each user, and the market data that was published |
//! | `session_messages` | messages to a user, appended to its log |
//! | `published_messages`, `retransmission_limits` | market data that was published, for snapshots and on request |
//! | `replica` | the whole state that follows from a log, and its bytes in a snapshot |
//! | `stored_log`, `log_follower`, `log_feed` | the log where it is kept, and those who follow it |
//! | `opening`, `session_name` | the venue's first commands, and the names of its session |
//! | `counters`, `view`, `drain` | counters and states of a venue, readable while it runs |
//! | `market_image` | the state of the market as subscribers know it, and snapshots of it |
//! | [`market_recovery`] | messages that are sent again on request, out of memory or out of the log |
//! | [`drop_copy`] | copies of the messages to users, for those who may read them |
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
pub use counters::{DropCopyCounters, JournalCounters, OrderServerCounters, PublisherCounters};
pub use drain::DrainWatch;
pub use entitlements::{Configured, Entitlements, ReplayedUser};
pub use front_request::{FrontPort, FrontRequest, FrontRequestKind};
pub use internal_commands::InternalCommands;
pub use log_command::{LogCommand, LogCommandKind, VenueCommand, VenueCommandKind};
pub use log_feed::{LogFeed, LogFeedError, LogListener};
pub use log_follower::LogFollower;
pub use logins::{Check, Denial, LoginStep, LoginUsers, Logins, PasswordChecks, is_current};
pub use market_image::{MarketImage, next_message};
pub use matcher::{FinalEngine, Matcher, MatcherCounters, VenueEngine};
pub use message_log::{MAX_LOGGED_MESSAGE, MAX_STORED_MESSAGE, MessageLog, MessageStore, SessionLog};
pub use opening::{Opening, OpeningSettings};
pub use order_entry::{Admission, FrontAdmission, OrderEntry};
pub use password::Password;
pub use published_messages::{MessageCopies, PublishedMessage};
pub use replica::{Definition, OutboundStreams, ReplayedState, Replica, ReplicaError, Stream};
pub use request_filter::RequestFilter;
pub use response::Response;
pub use retransmission_limits::RequestLimits;
pub use sequencer::{Arrival, Sequencer};
pub use session_messages::{append_event, append_query_answer, append_stage};
pub use session_name::{session_name_at, session_named, wire_name};
pub use stored_log::{LogReadError, StoredCommands, StoredLog};
pub use token_bucket::RateLimit;
pub use user_limits::{LimitsChange, UserLimits};
pub use user_registry::{LimitsView, RegisterError, UserRegistry, UserView};
pub use user_settings::{UserPorts, UserSettings, check_names, check_watched};
pub use users::{NewUser, User, Users};
pub use view::VenueView;

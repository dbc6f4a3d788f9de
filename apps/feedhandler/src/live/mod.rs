//! Live feed handlers of real markets: channels of any protocol, their recovery, and their outputs.

mod admin;
mod channel;
mod config;
mod handler;
mod outputs;
mod protocol;
mod protocols;
mod report;
mod run;
mod section;

pub use admin::send_command;
pub use channel::{BookStatus, ChannelStatus, LISTED_MAX, ResyncOutcome};
pub use config::{CHANNELS_MAX, LiveConfig};
pub use handler::{ChannelReport, LiveCommand, LiveHandler, LiveReport, LiveView, NamedBooks};
pub use report::{book_line, status_line, summary, to_json};
pub use run::{Notice, run};
pub use section::{AdminSection, ChannelSection, FeedSection, OutputsSection, ProtocolName};
pub use tickpath_feed::RecoveryCounters;

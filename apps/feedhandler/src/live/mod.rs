//! Feed handlers of real markets, live: channels of any protocol, what recovers them, and what they put out.

mod admin;
mod channel;
mod config;
mod handler;
mod iex;
mod itch;
mod lines;
mod outputs;
mod recovery;
mod report;
mod run;
mod soup;
mod xdp;

pub use admin::{LiveSocket, SocketError, ask};
pub use channel::{BookStatus, ChannelStatus, LISTED_MAX, ResyncOutcome};
pub use config::{
    AdminSection, CHANNELS_MAX, ChannelSection, FeedSection, LiveConfig, OutputsSection, ProtocolName,
};
pub use handler::{ChannelReport, LiveCommand, LiveError, LiveHandler, LiveStatus, LiveView, NamedBooks};
pub use recovery::RecoveryCounters;
pub use report::{book_line, status_line, summary, to_json};
pub use run::{LiveReport, Notice, RunError, run};

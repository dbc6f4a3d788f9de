//! A whole market on one machine: venue, feed handler, traders and background flow, with checks and a report.
//!
//! [`run`] starts everything over real loopback sockets, lets it trade, waits until all messages in flight
//! have arrived, and returns an [`Outcome`]: the checks with their results, and the timing report.

mod background;
mod background_flow;
mod fills;
mod flow;
mod json;
mod market;
mod notes;
mod outcome;
mod participant;
mod probe;
mod retention;
mod run;
mod settings;
mod text;
mod watch;

pub use background::{BackgroundFlowThread, BackgroundSettings};
pub use flow::FlowResult;
pub use outcome::{Outcome, Participant, ReconciliationCheck, Totals};
pub use retention::JournalSummary;
pub use run::run;
pub use settings::{DemoConfig, DemoSettings, GuestsConfig, ViewMode};
pub use tickpath_config::Speed;

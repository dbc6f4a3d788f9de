//! A whole market on one machine: venue, feed handler, traders and a crowd, with proofs and a report.
//!
//! [`run`] starts everything over real loopback sockets, lets it trade, waits until everything that is under way
//! has arrived, and returns an [`Outcome`]: what must hold and whether it did, and where the time went.

mod background;
mod crowd;
mod fills;
mod flow;
mod json;
mod kept;
mod market;
mod notes;
mod outcome;
mod participant;
mod probe;
mod run;
mod settings;
mod text;
mod watch;

pub use background::{BackgroundFlow, BackgroundSettings};
pub use flow::FlowResult;
pub use kept::Kept;
pub use outcome::{Outcome, Participant, Proof, Totals};
pub use run::run;
pub use settings::{DemoConfig, DemoSettings, GuestsConfig, ViewMode};
pub use tickpath_config::Speed;

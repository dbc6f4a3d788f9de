//! An interactive and scriptable trader for a venue with Deribit's API, or a native one.
//!
//! A command returns when the venue has answered, never when the request was merely sent. A time-out is an
//! error, and an order with a lost reply is looked up by its label or number. [`run`] executes the commands
//! of a script or a person, [`Shell::execute`] a single one.
//!
//! Accidental trading is prevented: a venue that is neither on this machine nor a test environment needs
//! `production = true` and all limits in the configuration file ([`ShellConfig`]). Secrets come from the
//! environment or from files that only their owner can read, and are never shown.

mod clock;
mod commands;
mod config;
mod execute;
mod history;
mod interactive;
mod json_text;
mod keeper;
mod link;
mod log;
mod native;
mod order;
mod pane;
mod print;
mod run;
mod settle;
mod shell;
mod stopwatch;
mod trade;
mod watch;
mod words;

pub use config::{DecimalText, GrantName, Limits, ShellConfig, TEST_URL, VenueUrl};
pub use execute::Done;
pub use history::{Entry, History, Way};
pub use link::{Answer, Clock, Feed, Link, Standing};
pub use log::Module;
pub use native::{NativeConfig, NativeUrl};
pub use order::{Change, NewOrder};
pub use run::{CommandReport, Ended, Report, RunOptions, Source, run};
pub use shell::{Failure, Interrupt, Reply, Shell};
pub use stopwatch::{Figures, Readable, Span, Stopwatches};

//! Venues for tests, on the loopback interface at free addresses. Use this crate only as a dev-dependency.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // a failed step of a test is a failed test

mod running;
mod samples;
mod settings;

pub use running::{RunningVenue, on_one_thread, on_own_threads};
pub use samples::{configs, sample};
pub use settings::{PASSWORD, build, venue_settings};

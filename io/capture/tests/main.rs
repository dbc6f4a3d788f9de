//! All integration tests of the crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod flow_scenarios;
mod readers;
#[path = "real_recordings.rs"]
mod real_recordings;

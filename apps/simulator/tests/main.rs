//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "checkers/main.rs"]
mod checkers;
mod gateway;
mod live_feeds;
mod planted;
mod recovery;
mod seeds;
mod traders;

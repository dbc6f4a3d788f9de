//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod crashes;
mod format;
mod generation;
mod journal;
mod no_allocation;
mod read_ahead;
mod snapshots;

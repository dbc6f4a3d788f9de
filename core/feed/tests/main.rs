//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod arbiter;
mod builder;
mod hints;
#[path = "iex/main.rs"]
mod iex;
mod lines;
mod look_ahead;
mod recovery;
mod snapshot_recovery;
#[path = "xdp/main.rs"]
mod xdp;

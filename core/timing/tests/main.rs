//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod allocation;
mod bounds;
mod scenario;
mod scenarios;

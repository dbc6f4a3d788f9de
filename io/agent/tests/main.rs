//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod finish;
mod idle_cycles;
mod no_allocation;
mod pinning;
mod runner;

//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod against_a_venue;
mod lost_connection;
mod no_allocation;

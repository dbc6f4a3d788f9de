//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bytes;
#[path = "mutated.rs"]
mod mutated;
mod web;

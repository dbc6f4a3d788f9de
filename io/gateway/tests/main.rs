//! Integration tests of the crate, built as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod allocations;
mod door;
mod killed;
mod support;

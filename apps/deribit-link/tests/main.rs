//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod allocations;
#[path = "link/main.rs"]
mod link;
#[path = "../../deribit-front/tests/running/mod.rs"]
mod running;

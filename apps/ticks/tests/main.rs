//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "client.rs"]
mod client;
#[path = "server/main.rs"]
mod server;
mod server_allocations;

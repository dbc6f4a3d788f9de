//! Integration tests of the crate, in one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod flood;
#[path = "front/main.rs"]
mod front;
mod loopback;
mod running;
mod sockets;

//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod no_allocation;
mod packet_ring;
mod reconnect;
mod tcp;
mod udp;

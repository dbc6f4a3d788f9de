//! One process that holds the venue's connections and shares them with local clients through shared memory.
//!
//! Clients send requests through rings of their own; the gateway checks them, hands them to the venue and tells each client what
//! became of them. Market data goes once into a ring that all clients read.

pub mod admin;
pub mod config;
pub mod doorway;
pub mod event_log;
mod kill_marker;
pub mod metrics;
mod notes;
pub mod process;
pub mod recorder;
pub mod replay;
pub mod run;
pub mod users;
pub mod venue;
pub mod view;

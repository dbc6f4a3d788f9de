//! The gateway: one process that shares the venue's connections with local clients through shared memory.
//!
//! Clients send requests through their own rings. The gateway checks them, forwards them to the venue and
//! reports the outcome to each client. Market data is written once into a ring that all clients read.

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

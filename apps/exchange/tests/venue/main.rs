//! A whole venue on loopback sockets: real TCP and multicast, simulated time, one thread.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod admin;
mod asleep;
mod closing;
mod commanded_settings;
mod config;
mod damage;
mod day;
mod direct_reading;
mod disconnects;
mod drop_copy;
mod generations;
mod hostile;
mod journal;
mod limits;
mod logins;
mod market_data;
mod orders;
mod recovery;
mod sessions;
mod snapshots;
mod support;
mod sweeps;
mod upgrade;
mod users;

use tickpath_agent::CountingAllocator;

/// Counts allocations, so that tests can assert that duty cycles make none.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

//! Tests of a trader and a venue over loopback sockets: in one thread at simulated time, or on threads.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod added;
mod connection;
mod engine;
mod feed_stream;
mod gateway;
mod late_join;
mod lost;
mod other_symbols;
mod restart;
mod script;
mod sessions;
mod site;
mod strategy;
mod threads;

use tickpath_agent::CountingAllocator;

/// Lets tests count the allocations of duty cycles.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

//! Tests of complete demonstrations, with all agents, sockets and checks.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod background_flow;
mod flow;
mod support;

use tickpath_agent::CountingAllocator;

/// Counts allocations, so that an outcome has those of the duty cycles.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

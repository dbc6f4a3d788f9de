//! Whole demonstrations: every agent, every socket, every check.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod background_flow;
mod flow;
mod support;

use tickpath_agent::CountingAllocator;

/// Lets the demonstrations count the allocations of their duty cycles.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

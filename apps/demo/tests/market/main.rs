//! Whole demonstrations: every agent, every socket, every proof.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod crowd;
mod flow;
mod support;

use tickpath_agent::CountingAllocator;

/// So that the demonstrations see what their duty cycles allocate.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

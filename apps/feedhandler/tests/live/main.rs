//! Tests of live channels over real loopback multicast, with losses, servers, commands and outputs.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod allocations;
mod commands;
mod iex;
mod itch;
mod rig;
mod soup;
mod xdp;

#[global_allocator]
static ALLOCATOR: tickpath_agent::CountingAllocator = tickpath_agent::CountingAllocator;

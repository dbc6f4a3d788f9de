//! `tickpath gateway` as a separate program.

use std::process::ExitCode;

use tickpath::commands::gateway;

/// Lets every agent's duty cycles be watched for allocations; costs an addition for each.
#[global_allocator]
static ALLOCATOR: tickpath::CountingAllocator = tickpath::CountingAllocator;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath gateway", gateway::run)
}

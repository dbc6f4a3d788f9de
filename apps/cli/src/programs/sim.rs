//! `tickpath sim` as a separate program.

use std::process::ExitCode;

use tickpath::commands::sim;

/// Lets every agent's duty cycles be watched for allocations; costs an addition for each.
#[global_allocator]
static ALLOCATOR: tickpath::CountingAllocator = tickpath::CountingAllocator;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath sim", sim::run)
}

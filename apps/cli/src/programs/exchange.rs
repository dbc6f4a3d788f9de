//! `tickpath exchange` with the Deribit front.

use std::process::ExitCode;

use tickpath::commands::exchange::{self, deribit};

/// Lets every agent's duty cycles be watched for allocations; costs an addition for each.
#[global_allocator]
static ALLOCATOR: tickpath::CountingAllocator = tickpath::CountingAllocator;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath exchange", |args| exchange::run(args, Some(deribit::open)))
}

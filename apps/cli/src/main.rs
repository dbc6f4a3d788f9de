//! The program `tickpath`.

mod commands;

use std::process::ExitCode;

use clap::Parser;
use tickpath_agent::CountingAllocator;

/// Lets every agent's duty cycles be watched for allocations; costs an addition for each.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A complete low-latency electronic trading system on one machine.
///
/// Start with `tickpath demo`: a whole market trades on this machine, and at the end you see where each
/// nanosecond of a trade went.
#[derive(Parser)]
#[command(name = "tickpath", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match commands::run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            // One line: what failed, in what, and what to do.
            let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("tickpath: {}", chain.join(": "));
            ExitCode::FAILURE
        }
    }
}

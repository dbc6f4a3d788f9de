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
            eprintln!("tickpath: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// What failed, in what, and what to do: the causes in one line, without those that an error before them quotes.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.replace('\n', "; ")
}

//! `tickpath gateway` as a separate program.

use std::process::ExitCode;

use tickpath::commands::gateway;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath gateway", gateway::run)
}

//! `tickpath sim` as a separate program.

use std::process::ExitCode;

use tickpath::commands::sim;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath sim", sim::run)
}

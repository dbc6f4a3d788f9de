//! `tickpath generate` as a separate program.

use std::process::ExitCode;

use tickpath::commands::generate;

fn main() -> ExitCode {
    tickpath::program::main_of_subcommands("tickpath generate", generate::run)
}

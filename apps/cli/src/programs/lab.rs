//! `tickpath lab` as a separate program.

use std::process::ExitCode;

use tickpath::commands::lab;

fn main() -> ExitCode {
    tickpath::program::main_of_subcommands("tickpath lab", lab::run)
}

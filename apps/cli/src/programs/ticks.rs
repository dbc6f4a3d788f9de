//! `tickpath ticks` as a separate program.

use std::process::ExitCode;

use tickpath::commands::ticks;

fn main() -> ExitCode {
    tickpath::program::main_of_subcommands("tickpath ticks", ticks::run)
}

//! `tickpath replay` as a separate program.

use std::process::ExitCode;

use tickpath::commands::replay;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath replay", replay::run)
}

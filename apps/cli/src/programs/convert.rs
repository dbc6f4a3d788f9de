//! `tickpath convert` as a separate program.

use std::process::ExitCode;

use tickpath::commands::convert;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath convert", convert::run)
}

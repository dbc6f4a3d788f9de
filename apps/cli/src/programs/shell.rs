//! `tickpath shell` as a separate program.

use std::process::ExitCode;

use tickpath::commands::shell;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath shell", shell::run)
}

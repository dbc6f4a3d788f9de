//! `tickpath demo` as a separate program, which can play recorded flows.

use std::process::ExitCode;

use tickpath::commands::demo;

fn main() -> ExitCode {
    tickpath::program::main_of("tickpath demo", demo::run)
}

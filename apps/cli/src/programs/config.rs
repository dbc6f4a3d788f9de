//! `tickpath config` for all kinds of files.

use std::process::ExitCode;

use tickpath::commands::config::{self, other};

fn main() -> ExitCode {
    tickpath::program::main_of_subcommands("tickpath config", |args| config::run(args, Some(other::read)))
}

//! The sub-commands, one file each.

mod demo;
mod json;

use std::process::ExitCode;

/// What to do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The main job: a whole market on this machine, live view, latency report at the end
    Demo(demo::Args),
}

/// Runs a command to its exit code.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args),
    }
}

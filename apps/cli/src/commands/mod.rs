//! The sub-commands, one file each.

mod config;
mod demo;
mod exchange;
mod json;
mod lab;
mod trader;

use std::process::ExitCode;

/// What to do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The main job: a whole market on this machine, live view, latency report at the end
    Demo(demo::Args),
    /// Run a venue until Ctrl-C
    Exchange(exchange::Args),
    /// Run a trader until Ctrl-C
    Trader(trader::Args),
    /// The latency laboratory: benchmarks beside the host's limits
    #[command(subcommand)]
    Lab(lab::Args),
    /// Check or show a configuration file
    #[command(subcommand)]
    Config(config::Args),
}

/// Runs a command to its exit code.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Exchange(args) => exchange::run(&args),
        Command::Trader(args) => trader::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Config(args) => config::run(&args),
    }
}

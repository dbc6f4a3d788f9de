//! The sub-commands, one file each.

mod admin;
mod config;
mod convert;
mod demo;
mod exchange;
mod feed;
mod gateway;
mod generate;
mod journal;
mod json;
mod lab;
mod password;
mod progress;
mod replay;
mod shell;
mod shm;
mod sim;
mod ticks;
mod trader;

use std::process::ExitCode;

/// Exit status after Ctrl-C, as shells report it.
const INTERRUPTED: u8 = 130;

/// What to do. A command without a line here has its help where its arguments are.
#[derive(clap::Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Exchange(exchange::Args),
    Feed(feed::Args),
    Trader(trader::Args),
    Replay(Box<replay::Args>),
    Convert(convert::Args),
    /// The latency laboratory: benchmarks beside the host's limits
    #[command(subcommand)]
    Lab(lab::Args),
    /// Write synthetic market data with known statistics and a known hash
    #[command(subcommand)]
    Generate(generate::Args),
    Admin(admin::Args),
    #[command(subcommand)]
    Journal(journal::Args),
    #[command(subcommand)]
    Shm(shm::Args),
    Shell(Box<shell::Args>),
    Gateway(Box<gateway::Args>),
    Sim(sim::Args),
    /// Ticks over TCP: quotes and trades of many symbols
    #[command(subcommand)]
    Ticks(ticks::Args),
    /// Check or show a configuration file
    #[command(subcommand)]
    Config(config::Args),
}

/// Runs a command to its exit code.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Exchange(args) => exchange::run(&args),
        Command::Feed(args) => feed::run(&args),
        Command::Trader(args) => trader::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Admin(args) => admin::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Shm(args) => shm::run(&args),
        Command::Shell(args) => shell::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Ticks(args) => ticks::run(&args),
        Command::Config(args) => config::run(&args),
    }
}

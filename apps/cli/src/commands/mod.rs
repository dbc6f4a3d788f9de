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

/// What to do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// The main job: a whole market on this machine, live view, latency report at the end
    Demo(demo::Args),
    /// Run a venue until Ctrl-C
    Exchange(exchange::Args),
    /// Run a feed handler on its own until Ctrl-C: ITCH, XDP, IEX
    Feed(feed::Args),
    /// Run a trader until Ctrl-C
    Trader(trader::Args),
    /// Recorded markets through full order books: what is in a file, and whether it holds together
    Replay(Box<replay::Args>),
    /// An exported table in another format: CSV as Parquet, or Parquet as CSV
    Convert(convert::Args),
    /// The latency laboratory: benchmarks beside the host's limits
    #[command(subcommand)]
    Lab(lab::Args),
    /// Write synthetic market data with known statistics and a known hash
    #[command(subcommand)]
    Generate(generate::Args),
    /// Commands to a running venue, over its Unix socket
    Admin(admin::Args),
    /// A venue's journal: whether it is whole, what is in it, and what it leads to
    #[command(subcommand)]
    Journal(journal::Args),
    /// Market data in shared memory: which segments there are, whether they are whole, and what is in them
    #[command(subcommand)]
    Shm(shm::Args),
    /// An interactive trader at a venue that speaks Deribit's dialect; scriptable
    Shell(Box<shell::Args>),
    /// Run a gateway until Ctrl-C: local clients share one process's connections to a venue; tell it something, or read its log
    Gateway(Box<gateway::Args>),
    /// The whole system in one thread under virtual time, attacked on purpose, and judged from outside
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

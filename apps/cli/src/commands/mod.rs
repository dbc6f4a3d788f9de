//! The commands, one file each. Those behind a Cargo feature run in separate programs.

mod admin;
#[cfg(feature = "data")]
pub mod backtest;
pub mod config;
#[cfg(feature = "data")]
pub mod convert;
pub mod demo;
pub mod exchange;
mod feed;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "data")]
pub mod generate;
mod journal;
mod json;
#[cfg(feature = "lab")]
pub mod lab;
mod manual;
mod outputs;
mod password;
#[cfg(feature = "data")]
mod progress;
#[cfg(feature = "data")]
pub mod replay;
#[cfg(feature = "shell")]
pub mod shell;
mod shm;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "ticks")]
pub mod ticks;
mod trader;

use std::process::ExitCode;

use crate::program;

/// Exit status after Ctrl-C, as shells report it.
const INTERRUPTED: u8 = 130;

/// The commands of `tickpath` itself.
#[derive(clap::Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Exchange(exchange::Args),
    Feed(feed::Args),
    Trader(trader::Args),
    Admin(admin::Args),
    #[command(subcommand)]
    Journal(journal::Args),
    #[command(subcommand)]
    Shm(shm::Args),
    /// Check or show a configuration file
    #[command(subcommand)]
    Config(config::Args),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

/// Runs a command and returns its exit code. `root` returns the clap command that contains every program's
/// commands.
///
/// # Errors
/// The failed operation and its remedy.
pub fn run(command: Command, root: impl FnOnce() -> clap::Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) if args.reads_a_recording() => Err(program::run_separate(
            "demo",
            "data",
            "a demo with recorded orders",
            program::arguments_of_command(),
        )),
        Command::Demo(args) => demo::run(&args),
        Command::Exchange(args) => exchange::run(&args, None),
        Command::Feed(args) => feed::run(&args),
        Command::Trader(args) => trader::run(&args),
        Command::Admin(args) => admin::run(&args),
        Command::Journal(args) => journal::run(&args),
        Command::Shm(args) => shm::run(&args),
        Command::Config(args) => config::run(&args, None),
        Command::Completions(args) => manual::completions(&args, root()),
        Command::Man(args) => manual::man(&args, root()),
    }
}

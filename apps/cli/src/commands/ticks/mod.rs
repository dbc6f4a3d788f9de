//! `tickpath ticks`.

mod serve;
mod watch;

use std::process::ExitCode;

/// Ticks over TCP: quotes and trades of many symbols, as docs/protocols/ticks.md has them
#[derive(clap::Subcommand)]
pub enum Args {
    /// Make ticks and send them to all who connect
    Serve(serve::Args),
    /// Connect to a server, fill the symbol cache, and show it
    Watch(watch::Args),
}

/// Runs it to its exit code.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Serve(args) => serve::run(args),
        Args::Watch(args) => watch::run(args),
    }
}

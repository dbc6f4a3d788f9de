//! `tickpath ticks`.

mod serve;
mod watch;

use std::process::ExitCode;

/// Where a server listens, and where a client looks for it, unless told otherwise.
const ADDRESS: &str = "127.0.0.1:9200";

/// Ticks over TCP: quotes and trades of many symbols, as docs/protocols/ticks.md has them
#[derive(clap::Subcommand)]
pub enum Args {
    /// Make ticks of many symbols and send them to all who connect
    ///
    /// Prices follow geometric Brownian motion, each symbol with a price, volatility, spread and quantity of its own, all
    /// drawn from the seed. A tick of a symbol is one second of trading time, however fast they come. Everything is sent
    /// over TCP as docs/protocols/ticks.md says; docs/ticks.md has more about rates, slow clients and trouble made on
    /// purpose.
    ///
    /// Runs until Ctrl-C, or for at most the time of --for. Exit code 0; 1 when the rate was not kept.
    Serve(serve::Args),
    /// Connect to a ticks server, check every message, fill the symbol cache, and show it
    ///
    /// Checksums and numbers are checked; what is missing or damaged is counted and shown. A lost connection is made again,
    /// first after 100 ms, then after twice as long each time, up to 30 s. On a terminal the most traded symbols are shown
    /// twice a second, elsewhere a line a second.
    ///
    /// Runs until Ctrl-C, or for at most the time of --for. Exit code 0; 1 when it was not connected at the end, or when a CSV
    /// file lacks ticks.
    Watch(watch::Args),
}

/// Runs it to its exit code.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Serve(args) => serve::run(args),
        Args::Watch(args) => watch::run(args),
    }
}

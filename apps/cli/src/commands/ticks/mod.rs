//! `tickpath ticks`.

mod serve;
mod watch;

use std::process::ExitCode;

/// Default listening address of a server, and default target of a client.
const ADDRESS: &str = "127.0.0.1:9200";

/// Ticks over TCP: quotes and trades of many symbols, in the format of docs/protocols/ticks.md
#[derive(clap::Subcommand)]
pub enum Args {
    /// Generate ticks of many symbols and send them to all clients
    ///
    /// Prices follow geometric Brownian motion, with an individual price, volatility, spread and quantity for
    /// each symbol, all drawn from the seed. Each tick of a symbol represents one second of trading time,
    /// at any tick rate. Everything is sent over TCP as documented in docs/protocols/ticks.md; docs/ticks.md
    /// covers rates, slow clients and injected faults.
    ///
    /// Runs until Ctrl-C, or for at most the time of --for. Exit code 0; 1 when the rate was not reached.
    Serve(serve::Args),
    /// Connect to a ticks server, check every message, fill the symbol cache, and show it
    ///
    /// Checks checksums and sequence numbers, and shows the numbers of missing and damaged messages.
    /// Reconnects after a lost connection, first after 100 ms, then after twice as long each time, up to 30
    /// s. On a terminal it shows the most traded symbols twice a second, elsewhere a line a second.
    ///
    /// Runs until Ctrl-C, or for at most the time of --for. Exit code 0; 1 when it was not connected at the
    /// end, or when ticks are missing in the CSV file.
    Watch(watch::Args),
}

/// Runs the command and returns its exit code.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Serve(args) => serve::run(args),
        Args::Watch(args) => watch::run(args),
    }
}

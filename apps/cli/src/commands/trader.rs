//! `tickpath trader`.

use std::path::PathBuf;
use std::process::ExitCode;

use tickpath_agent::StopSignal;
use tickpath_trader::{TraderSettings, run_with, strategy_by_name};

/// Run a trader until Ctrl-C: a strategy receives market data and sends orders within its limits.
///
/// At the end it cancels its orders and prints a latency report. Start a venue first:
/// tickpath exchange --config configs/exchange.toml
#[derive(clap::Args)]
pub struct Args {
    /// The trader's configuration file, such as configs/trader.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let settings = TraderSettings::load(&args.config)?;
    let strategy = strategy_by_name(&settings)?;
    run_with(&settings, strategy, &StopSignal::on_signals()?)?;
    Ok(ExitCode::SUCCESS)
}

//! `tickpath backtest`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use tickpath_agent::StopSignal;
use tickpath_backtest::{BacktestOptions, StrategyName, backtest};
use tickpath_backtest_core::{Latencies, Latency};
use tickpath_config::{Duration, print_stderr, print_stdout};
use tickpath_replay::{Moment, Progress};
use tickpath_types::{Nanos, Qty};

use super::progress::Line;
use super::replay::progress_text;
use super::{INTERRUPTED, json, outputs};

/// Run a strategy on a recorded file, and report its orders, fills and P&L
///
/// Reads the order-by-order recordings of tickpath replay: ITCH 5.0, Databento DBN (mbo) and LOBSTER message files,
/// plain, .gz or .zst. The strategy decides in virtual time. It learns of the market --market-data-latency after each
/// event; its requests and the venue's answers take --request-latency and --answer-latency.
///
/// Fill model "queue position": an order that crosses the recorded book trades with it at once. Any other order joins
/// the queue of its level, behind the recorded orders, and trades when a recorded order behind it trades, when a
/// recorded trade has a worse price, or when a recorded order arrives that would have traded with it. The recorded
/// market does not react to own orders.
///
/// The same file and options give the same results, to the last digit. Exit code 130 after Ctrl-C, with a report of
/// the part that was read.
#[derive(clap::Args)]
pub struct Args {
    /// Recording, "-" for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Symbols to trade
    #[arg(long, value_name = "A,B...", value_delimiter = ',', required = true)]
    symbols: Vec<String>,
    /// The strategy
    #[arg(long, value_name = "NAME", default_value = "maker",
        value_parser = PossibleValuesParser::new(StrategyName::ALL.map(StrategyName::name)))]
    strategy: String,
    /// Start of the back-test: HH:MM:SS, optionally with a fraction or a date before it [default: first message]
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// End of the back-test
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
    /// Latency of every leg without a separate option
    #[arg(long, value_name = "TIME", default_value = "50us")]
    latency: Duration,
    /// From an event at the venue to the strategy
    #[arg(long, value_name = "TIME")]
    market_data_latency: Option<Duration>,
    /// From a request of the strategy to the venue's matching
    #[arg(long, value_name = "TIME")]
    request_latency: Option<Duration>,
    /// From the venue's matching to the strategy
    #[arg(long, value_name = "TIME")]
    answer_latency: Option<Duration>,
    /// Mean of a random, exponentially distributed time on top of each latency
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    jitter: Duration,
    /// Tick size of the symbols
    #[arg(long, value_name = "PRICE", default_value = "0.01")]
    tick: String,
    /// Lot size of the symbols
    #[arg(long, value_name = "QTY", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    lot: u64,
    /// Size of the strategy's orders
    #[arg(long, value_name = "QTY", default_value_t = 100)]
    clip: u64,
    /// Threshold at which the strategy acts: the maker's in price units, the taker's in ppm [default: its usual one]
    #[arg(long, value_name = "N")]
    threshold: Option<u64>,
    /// Maximum position, long or short
    #[arg(long, value_name = "QTY", default_value_t = 1_000)]
    max_position: u64,
    /// Maximum loss; beyond it only orders pass that reduce the position
    #[arg(long, value_name = "AMOUNT", default_value = "1000000")]
    max_loss: String,
    /// Fee for each unit that added liquidity; negative for a rebate
    #[arg(long, value_name = "AMOUNT", default_value = "0", allow_hyphen_values = true)]
    fee_added: String,
    /// Fee for each unit that removed liquidity
    #[arg(long, value_name = "AMOUNT", default_value = "0", allow_hyphen_values = true)]
    fee_removed: String,
    /// Seed of random latencies and of the random strategy
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the report with all fills and the P&L curve as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Args {
    fn options(&self) -> BacktestOptions {
        let leg = |own: Option<Duration>| {
            let min = own.unwrap_or(self.latency).0;
            match self.jitter.0 {
                Nanos::ZERO => Latency::Constant(min),
                mean_extra => Latency::Jitter { min, mean_extra },
            }
        };
        let strategy = StrategyName::ALL.into_iter().find(|known| known.name() == self.strategy);
        BacktestOptions {
            symbols: self.symbols.clone(),
            strategy: strategy.unwrap_or(StrategyName::Maker),
            from: self.from,
            to: self.to,
            latencies: Latencies {
                market_data: leg(self.market_data_latency),
                request: leg(self.request_latency),
                answer: leg(self.answer_latency),
            },
            tick: self.tick.clone(),
            lot: Qty(self.lot),
            clip: Qty(self.clip),
            threshold: self.threshold,
            max_position: Qty(self.max_position),
            max_loss: self.max_loss.clone(),
            fee_added: self.fee_added.clone(),
            fee_removed: self.fee_removed.clone(),
            seed: self.seed,
            ..BacktestOptions::new("")
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = if args.file.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { args.file.clone() };
    let json = args.json.as_deref().filter(|path| path.as_os_str() != "-");
    let written: Vec<_> = json.into_iter().map(|path| ("--json", path)).collect();
    outputs::check(&written, &[&file])?;
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let mut line = Line::new();
    let mut observer = |progress: &Progress| line.show(|| progress_text(1, progress));
    let result = backtest(&file, &args.options(), &stop, &mut observer);
    line.clear();
    let report = result?;
    if args.json.as_deref().is_none_or(|path| path.as_os_str() != "-") {
        print_stdout(&report)?;
    }
    if let Some(path) = &args.json {
        json::write(path, &format!("{:#}", report.to_json()))?;
    }
    if report.is_stopped() {
        print_stderr(format_args!("tickpath: interrupted: the report covers what was read"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

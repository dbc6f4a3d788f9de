//! Runs a strategy on a recorded file, in virtual time, and reports its orders, fills and P&L.
//!
//! [`backtest()`] reads any file that [`tickpath_replay`] reads order by order, passes each message to a
//! [`Backtest`](tickpath_backtest_core::Backtest), and returns a [`BacktestReport`]. The file's path, the options and
//! the seed determine the result, to the last digit.

mod driver;
mod error;
mod options;
mod report;

use std::path::Path;
use std::time::Instant;

use tickpath_agent::StopSignal;
use tickpath_replay::{Progress, ReplayOptions, replay_to};

pub use error::BacktestError;
pub use options::{BacktestOptions, StrategyName};
pub use report::BacktestReport;

use crate::driver::Driver;

/// Runs a back-test on one file. `observer` receives the progress a few times a second. `stop` ends the back-test
/// early, with a report on the part that was read.
///
/// # Errors
/// [`BacktestError`] when the recording or an option is unsuitable.
pub fn backtest(
    path: &Path,
    options: &BacktestOptions,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
) -> Result<BacktestReport, BacktestError> {
    let mut driver = Driver::new(options);
    let replay_options = ReplayOptions {
        symbols: options.symbols.clone(),
        from: options.from,
        to: options.to,
        ..ReplayOptions::default()
    };
    let started = Instant::now();
    let replayed = replay_to(path, &replay_options, stop, observer, &mut driver)?;
    if let Some(file) =
        replayed.files.iter().find(|file| file.schema.is_some() || file.recording.capture.is_some())
    {
        return Err(BacktestError::NoOrders { file: path.display().to_string(), found: file.title() });
    }
    let report = driver.finish(replayed, started.elapsed())?;
    if report.updates == 0 && !report.is_stopped() {
        let (symbols, file) = (options.symbols.join(", "), path.display().to_string());
        return Err(BacktestError::NoSuchSymbol { symbols, file });
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tickpath_backtest_core::Latencies;
    use tickpath_flowgen::{ItchDay, ItchDayConfig};
    use tickpath_types::{Nanos, Qty};

    use super::*;

    /// Writes a generated day of ten symbols, and returns its path.
    fn day(folder: &tempfile::TempDir) -> PathBuf {
        let config =
            ItchDayConfig { live: 1_000, ..ItchDayConfig::itch_500().with_messages(60_000).with_symbols(10) };
        let mut day = ItchDay::new(config).unwrap();
        let mut file = Vec::new();
        while day.append_frames(1 << 16, &mut file) > 0 {}
        let path = folder.path().join("day.itch");
        fs::write(&path, file).unwrap();
        path
    }

    fn run(path: &Path, options: &BacktestOptions) -> BacktestReport {
        backtest(path, options, &StopSignal::new(), &mut |_| {}).unwrap()
    }

    /// The first symbols of the day.
    fn symbols(path: &Path) -> Vec<String> {
        let report =
            tickpath_replay::replay(path, &ReplayOptions::default(), &StopSignal::new(), &mut |_| {});
        report.unwrap().files[0].statistics.iter().map(|(symbol, _)| symbol.clone()).collect()
    }

    #[test]
    fn a_day_gives_the_same_result_again_and_pnl_is_the_sum_of_its_fills() {
        let folder = tempfile::tempdir().unwrap();
        let path = day(&folder);
        for strategy in StrategyName::ALL {
            let options = BacktestOptions {
                symbols: symbols(&path)[..2].to_vec(),
                strategy,
                fee_removed: "0.003".to_owned(),
                timer_interval: Nanos::from_secs(1),
                ..BacktestOptions::new("")
            };
            let report = run(&path, &options);
            let again = run(&path, &options);
            assert_eq!(report.outcome, again.outcome, "{strategy:?}");
            assert!(report.counters.enters > 0, "{strategy:?}: {:?}", report.counters);
            assert_eq!(report.counters.fills, report.outcome.fills.len() as u64);
            for (place, position) in report.positions.iter().enumerate() {
                let own = |fill: &&tickpath_backtest_core::BacktestFill| {
                    usize::from(fill.instrument.0) == place + 1
                };
                let signed =
                    report.outcome.fills.iter().filter(own).map(|fill| fill.side.sign() * fill.qty.0 as i64);
                assert_eq!(signed.sum::<i64>(), *position, "{strategy:?}");
            }
            let slow = BacktestOptions { latencies: Latencies::constant(Nanos::from_secs(1)), ..options };
            assert_ne!(run(&path, &slow).outcome, report.outcome, "{strategy:?}: latency has an effect");
        }
    }

    #[test]
    fn unsuitable_options_are_refused_with_their_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = day(&folder);
        let error = |options: BacktestOptions| {
            backtest(&path, &options, &StopSignal::new(), &mut |_| {}).unwrap_err().to_string()
        };
        assert!(error(BacktestOptions::new("NONE")).contains("no order of NONE"));
        let symbol = symbols(&path)[0].clone();
        let tick = BacktestOptions { tick: "0.00001".to_owned(), ..BacktestOptions::new(&symbol) };
        assert!(error(tick).contains("--tick 0.00001: write a decimal with at most 4 places"));
        let lot = BacktestOptions { lot: Qty(0), ..BacktestOptions::new(&symbol) };
        assert!(error(lot).contains("lot"));
        let missing =
            backtest(Path::new("/nowhere"), &BacktestOptions::new(&symbol), &StopSignal::new(), &mut |_| {});
        assert!(missing.unwrap_err().to_string().contains("/nowhere"));
    }
}

//! `tickpath replay`.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use tickpath_agent::StopSignal;
use tickpath_config::say;
use tickpath_replay::{
    CHECK_EVERY_DEFAULT, DEPTH_DEFAULT, DEPTH_MAX, Exports, Moment, Progress, ReplayOptions, ReplayReport,
    Speed, replay,
};

use super::json;

/// Replay recorded markets through full order books: ITCH 5.0, Databento DBN MBO or LOBSTER message files,
/// plain, .gz or .zst. At the end: what is in the file, what each message cost, and whether it holds together.
///
/// The books are always built from the first message, for all symbols. --from and --to choose the messages that
/// are counted, exported and part of the statistics; --symbols chooses whose statistics, books and exports are
/// wanted. Times are the exchange's: Eastern Time for ITCH and LOBSTER, UTC for DBN.
///
/// Exit code 0 when nothing contradicts any of the files.
#[derive(clap::Args)]
pub struct Args {
    /// Recordings; each is reported, then their sum
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only these symbols in statistics, books and exports
    #[arg(long, value_name = "A,B...", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Count from this time on: HH:MM:SS, with a fraction or (DBN) a date before it if need be
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// End before the first message of this time
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
    /// End after so many messages from the start of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// How fast: max, or a multiple of recorded time such as 10x
    #[arg(long, value_name = "SPEED", default_value = "max", value_parser = parse_speed)]
    speed: Speed,
    /// Run the plain twin beside and compare every book; hold LOBSTER messages against their order book file
    #[arg(long, conflicts_with = "decode_only")]
    check: bool,
    /// Messages between comparisons of every book
    #[arg(long, value_name = "N", requires = "check", default_value_t = CHECK_EVERY_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..))]
    check_every: u64,
    /// The order book file of a LOBSTER message file, if it is not beside it under its usual name
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    orderbook: Option<PathBuf>,
    /// Levels of each side that are shown and exported
    #[arg(long, value_name = "N", default_value_t = DEPTH_DEFAULT, value_parser = parse_depth)]
    depth: usize,
    /// Only decode and count: for files whose books are inconsistent by construction
    #[arg(long)]
    decode_only: bool,
    /// Room in the books for open orders [default: 2097152, less for small files]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    max_orders: Option<u32>,
    /// Export every change of a best price, as .csv or .parquet
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    bbo: Option<PathBuf>,
    /// Export every trade, as .csv or .parquet
    #[arg(long, value_name = "FILE")]
    trades: Option<PathBuf>,
    /// Export every change of the best --depth levels, as .csv or .parquet
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    depth_out: Option<PathBuf>,
    /// Write the report as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    match super::demo::parse_speed(text)? {
        tickpath_demo::Speed::Max => Ok(Speed::Max),
        tickpath_demo::Speed::Hundredths(hundredths) => Ok(Speed::Hundredths(hundredths)),
    }
}

fn parse_depth(text: &str) -> Result<usize, String> {
    let depth = text.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth));
    depth.ok_or_else(|| format!("write a number of levels from 1 to {DEPTH_MAX}"))
}

impl Args {
    fn options(&self) -> ReplayOptions {
        ReplayOptions {
            symbols: self.symbols.clone(),
            from: self.from,
            to: self.to,
            limit: self.limit,
            speed: self.speed,
            check_every: self.check.then_some(self.check_every),
            order_book: self.orderbook.clone(),
            depth: self.depth,
            exports: Exports {
                bbo: self.bbo.clone(),
                trades: self.trades.clone(),
                depth: self.depth_out.clone(),
            },
            decode_only: self.decode_only,
            orders_max: self.max_orders,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = args.options();
    let is_one = args.files.len() == 1;
    anyhow::ensure!(
        is_one || options.exports == Exports::default(),
        "--bbo, --trades and --depth-out take one recording at a time"
    );
    anyhow::ensure!(
        is_one || options.order_book.is_none(),
        "--orderbook belongs to one recording: name only that one"
    );
    let stop = StopSignal::on_signals()?;
    let mut report = ReplayReport { files: Vec::new(), failures: Vec::new() };
    for file in args.files.iter().take_while(|_| !stop.is_stopped()) {
        let mut line = ProgressLine::new();
        let result = replay(file, &options, &stop, &mut |progress| line.show(progress));
        line.clear();
        match result {
            Ok(found) => report.files.push(found),
            Err(error) if is_one => return Err(error.into()),
            Err(error) => report.failures.push((file.clone(), error.to_string())),
        }
    }
    match &args.json {
        Some(path) if path.as_os_str() == "-" => tell_doubts(&report),
        _ => say(&report),
    }
    if let Some(path) = &args.json {
        json::write(path, &format!("{:#}", report.to_json()))?;
    }
    Ok(if report.is_trustworthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a reader of the text would find, for one who gets the JSON: a line each on standard error.
fn tell_doubts(report: &ReplayReport) {
    for file in &report.files {
        for words in &file.contradictions {
            eprintln!("tickpath: {}: {words}", file.path.display());
        }
    }
    for (path, error) in &report.failures {
        eprintln!("tickpath: not replayed: {}: {error}", path.display());
    }
}

/// One line on standard error that is written over, when that is a terminal.
struct ProgressLine {
    is_terminal: bool,
    is_shown: bool,
}

impl ProgressLine {
    fn new() -> ProgressLine {
        ProgressLine { is_terminal: stderr().is_terminal(), is_shown: false }
    }

    fn show(&mut self, progress: &Progress) {
        if self.is_terminal {
            self.is_shown = true;
            // A terminal that cannot be written to is no reason to stop.
            let _ = write!(stderr(), "\r\x1b[K{}", progress_words(progress));
        }
    }

    fn clear(&mut self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// How far, how fast and how long yet.
fn progress_words(progress: &Progress) -> String {
    const MIB: f64 = (1 << 20) as f64;
    const BAR_LEN: u64 = 30;
    let seconds = progress.elapsed.as_secs_f64().max(1e-9);
    let rate = progress.messages as f64 / seconds / 1e6;
    let messages = progress.messages as f64 / 1e6;
    let done = progress.bytes as f64 / MIB;
    if progress.bytes_total == 0 {
        return format!("{done:.1} MiB, {messages:.1} M messages, {rate:.2} M/s");
    }
    let bytes = progress.bytes.min(progress.bytes_total);
    let filled = (bytes * BAR_LEN / progress.bytes_total) as usize;
    let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR_LEN as usize - filled));
    let left = seconds * (progress.bytes_total - bytes) as f64 / (bytes as f64).max(1.0);
    let percent = bytes * 100 / progress.bytes_total;
    format!(
        "[{bar}] {percent:>3}% {done:.1} of {:.1} MiB, {messages:.1} M messages, {rate:.2} M/s, {left:.0} s left",
        progress.bytes_total as f64 / MIB
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn progress_says_how_long_yet() {
        let progress = Progress {
            bytes: 1 << 20,
            bytes_total: 4 << 20,
            messages: 3_000_000,
            elapsed: Duration::from_secs(2),
        };
        let words = progress_words(&progress);
        assert!(words.contains(" 25% 1.0 of 4.0 MiB, 3.0 M messages, 1.50 M/s, 6 s left"), "{words}");
        let unknown = Progress { bytes_total: 0, ..progress };
        assert_eq!(progress_words(&unknown), "1.0 MiB, 3.0 M messages, 1.50 M/s");
    }
}

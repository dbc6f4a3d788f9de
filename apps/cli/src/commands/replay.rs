//! `tickpath replay`.

mod publish;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::builder::{PathBufValueParser, TypedValueParser};
use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stdout};
use tickpath_replay::{
    CHECK_EVERY_DEFAULT, DEPTH_DEFAULT, DEPTH_MAX, Date, Exports, Moment, Progress, Protocol, ReplayOptions,
    ReplayReport, Speed, Zone, replay, replay_all,
};

use super::progress::{Line, bar};
use super::{INTERRUPTED, json, outputs};

/// Build full order books from a recorded file, report its contents, and check it for contradictions
///
/// Reads ITCH 5.0, Databento DBN (mbo, mbp-1, mbp-10, tbbo, trades, definition) or LOBSTER message files, and
/// packet captures (pcap, pcapng), plain, .gz or .zst. The final report has the contents of the file, the
/// cost per message, and the reliability of these figures.
///
/// A capture may hold several recordings - sessions of ITCH, markets of XDP, other protocols - each with a
/// separate report. Lines A and B of a channel are merged by their sequence numbers.
///
/// The books are always built from the first message, for all symbols. --from and --to select the messages
/// that are counted, exported and part of the statistics; --symbols selects the symbols for statistics, books
/// and exports. Times are the exchange's, unless --tz names another zone: Eastern Time for ITCH, LOBSTER and
/// captures, UTC for DBN.
///
/// Exports of several files form one table: the rows of all files in the order of the command line, with the
/// file in a first column `file`. Tables of captures number the recording of each row in a column
/// `recording`. In every table `ts_ns` counts from 1970-01-01 UTC if the day is known - for ITCH files by
/// --date - and otherwise from midnight, and `message` from 1 in each file. A table gets its name when it is
/// complete; Ctrl-C leaves none behind.
///
/// Exit code 0 when nothing contradicts any of the files and every symbol of --symbols is in one of them; 1
/// otherwise, 130 after Ctrl-C.
#[derive(clap::Args)]
pub struct Args {
    /// Recordings, "-" for standard input; each has a report, followed by a total
    #[arg(required = true, value_name = "FILE", value_parser = PathBufValueParser::new().map(recording))]
    files: Vec<PathBuf>,
    /// Restrict statistics, books and exports to these symbols
    #[arg(long, value_name = "A,B...", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Start time of counting: HH:MM:SS, optionally with a fraction or a date before it
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// End time: stop before the first message at this time
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
    /// Stop after this number of messages from the start of the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Playback speed: max, or a multiple of recorded time such as 10x [default: max; with --publish 1x]
    #[arg(long, value_name = "SPEED", allow_hyphen_values = true)]
    speed: Option<Speed>,
    /// Compare every book with the reference model, and LOBSTER messages with their order book file
    #[arg(long, conflicts_with = "decode_only")]
    check: bool,
    /// Number of messages between comparisons of every book
    #[arg(long, value_name = "N", requires = "check", default_value_t = CHECK_EVERY_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..))]
    check_every: u64,
    /// Order book file of a LOBSTER message file [default: the file with the usual name in the same folder]
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    orderbook: Option<PathBuf>,
    /// Number of levels per side that are shown and exported
    #[arg(long, value_name = "N", default_value_t = DEPTH_DEFAULT, value_parser = parse_depth)]
    depth: usize,
    /// Only decode and count: for files whose books are inconsistent by construction
    #[arg(long)]
    decode_only: bool,
    /// Time zone of --from, --to and the report: ET, CT, UTC or +HH:MM [default: ET; DBN: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    tz: Option<Zone>,
    /// Date of the session, for times without a date [default: the first packet's day in that zone]
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<Date>,
    /// Protocol of a capture's packets [default: detected]
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Capacity of the books for open orders [default: 2097152, less for small files]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    max_orders: Option<u32>,
    /// Export every change of a best price or its quantity, as .csv or .parquet; for several FILEs with a column `file`
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    bbo: Option<PathBuf>,
    /// Export every trade, as .csv or .parquet; for several FILEs with a column `file`
    #[arg(long, value_name = "FILE")]
    trades: Option<PathBuf>,
    /// Export every change of the best --depth levels, as .csv or .parquet; with `file` for several FILEs
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    depth_out: Option<PathBuf>,
    /// Export every change of an order, as .csv or .parquet, for order-by-order recordings; for several FILEs
    /// with a column `file`
    #[arg(long, value_name = "FILE", conflicts_with = "decode_only")]
    orders: Option<PathBuf>,
    /// Write the report as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    publish: publish::PublishArgs,
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
            speed: self.speed.unwrap_or_default(),
            check_every: self.check.then_some(self.check_every),
            order_book: self.orderbook.clone(),
            depth: self.depth,
            exports: Exports {
                bbo: self.bbo.clone(),
                trades: self.trades.clone(),
                depth: self.depth_out.clone(),
                orders: self.orders.clone(),
            },
            decode_only: self.decode_only,
            orders_max: self.max_orders,
            zone: self.tz,
            date: self.date,
            protocol: self.protocol,
        }
    }

    /// Rejects output paths that equal an input or another output, or at which no file can be created.
    fn check_outputs(&self) -> anyhow::Result<()> {
        let json = self.json.as_deref().filter(|path| path.as_os_str() != "-");
        let named = [
            ("--bbo", self.bbo.as_deref()),
            ("--trades", self.trades.as_deref()),
            ("--depth-out", self.depth_out.as_deref()),
            ("--orders", self.orders.as_deref()),
            ("--json", json),
        ];
        let written: Vec<(&str, &Path)> =
            named.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        let read: Vec<&Path> = self.files.iter().chain(&self.orderbook).map(PathBuf::as_path).collect();
        outputs::check(&written, &read)
    }
}

fn recording(path: PathBuf) -> PathBuf {
    if path.as_os_str() == "-" { PathBuf::from("/dev/stdin") } else { path }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if !args.publish.publish.is_empty() {
        return args.publish.run(&args.files, args.speed, args.json.as_deref());
    }
    let options = args.options();
    anyhow::ensure!(
        args.files.len() == 1 || options.order_book.is_none(),
        "--orderbook belongs to one recording: name only that one"
    );
    args.check_outputs()?;
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let mut line = Line::new();
    let mut observer = |progress: &Progress| line.show(|| progress_text(args.files.len(), progress));
    let result = match args.files.as_slice() {
        [file] => replay(file, &options, &stop, &mut observer),
        files => replay_all(files, &options, &stop, &mut observer),
    };
    line.clear();
    let report = result?;
    match &args.json {
        Some(path) if path.as_os_str() == "-" => {
            print_warnings(&report);
            json::write(path, &format!("{:#}", report.to_json()))?;
        }
        Some(path) => {
            // Write the figures to their file even if the text cannot be printed.
            let printed = print_stdout(&report);
            json::write(path, &format!("{:#}", report.to_json()))?;
            printed?;
        }
        None => print_stdout(&report)?,
    }
    if report.is_stopped() {
        let exports = if options.exports == Exports::default() { "" } else { ", and nothing was exported" };
        print_stderr(format_args!("tickpath: interrupted: the report covers what was read{exports}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let is_complete = report.is_trustworthy() && report.absent_symbols().is_empty();
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the report's problems on standard error, one per line. Called when the report is only JSON.
fn print_warnings(report: &ReplayReport) {
    for file in &report.files {
        for contradiction in &file.contradictions {
            print_stderr(format_args!("tickpath: {}: {contradiction}", file.path.display()));
        }
    }
    for (path, error) in &report.failures {
        print_stderr(format_args!("tickpath: not replayed: {}: {error}", path.display()));
    }
    for symbol in report.absent_symbols() {
        print_stderr(format_args!("tickpath: there is no symbol {symbol} in any recording"));
    }
    for path in &report.left_out {
        print_stderr(format_args!("tickpath: not started: {}", path.display()));
    }
}

/// Formats the progress, the speed and the remaining time.
pub(super) fn progress_text(file_count: usize, progress: &Progress) -> String {
    const MIB: f64 = (1 << 20) as f64;
    let prefix = match file_count {
        1 => String::new(),
        count => format!("file {} of {count} ", progress.file + 1),
    };
    let seconds = progress.elapsed.as_secs_f64().max(1e-9);
    let rate = progress.messages as f64 / seconds / 1e6;
    let messages = progress.messages as f64 / 1e6;
    let done = progress.bytes as f64 / MIB;
    if progress.bytes_total == 0 {
        return format!("{prefix}{done:.1} MiB, {messages:.1} M messages, {rate:.2} M/s");
    }
    let bytes = progress.bytes.min(progress.bytes_total);
    // Estimate the remaining time only after a thousandth of the bytes.
    let left = match bytes.saturating_mul(1_000) >= progress.bytes_total {
        true => format!(", {:.0} s left", seconds * (progress.bytes_total - bytes) as f64 / bytes as f64),
        false => String::new(),
    };
    format!(
        "{prefix}{} {done:.1} of {:.1} MiB, {messages:.1} M messages, {rate:.2} M/s{left}",
        bar(bytes, progress.bytes_total),
        progress.bytes_total as f64 / MIB
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn progress_has_the_remaining_time() {
        let progress = Progress {
            bytes: 1 << 20,
            bytes_total: 4 << 20,
            messages: 3_000_000,
            elapsed: Duration::from_secs(2),
            file: 0,
        };
        let text = progress_text(1, &progress);
        assert!(text.contains(" 25% 1.0 of 4.0 MiB, 3.0 M messages, 1.50 M/s, 6 s left"), "{text}");
        let text = progress_text(1, &Progress { bytes: 100, ..progress });
        assert!(text.ends_with("M/s"), "nothing follows from so little: {text}");
        let unknown = Progress { bytes_total: 0, ..progress };
        assert_eq!(progress_text(2, &unknown), "file 1 of 2 1.0 MiB, 3.0 M messages, 1.50 M/s");
    }
}

//! `tickpath generate`.

mod output;
mod xdp;

use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Map, Value, json};
use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stderr_part, print_stdout, thousands};
use tickpath_flowgen::{ItchDay, ItchDayConfig, ItchDayCounters};
use xxhash_rust::xxh3::Xxh3;

use super::outputs;
use super::{INTERRUPTED, json};
use output::Output;

/// Number of messages generated, hashed and written together.
const BATCH: usize = 8_192;
/// Update interval of the progress line.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Write synthetic market data with known statistics and a known hash
#[derive(clap::Subcommand)]
pub enum Args {
    /// A whole day of Nasdaq TotalView-ITCH 5.0, in Nasdaq's BinaryFILE format
    ///
    /// The same settings give the same bytes on every machine. The books are consistent: every reference is
    /// known, no execution exceeds its order's quantity, no book is crossed. There are two standard days:
    /// itch-500 (20 million messages, 500 symbols, 200 thousand live orders) and itch-8000 (50 million
    /// messages, 8,000 symbols, 1.5 million live orders).
    Itch(ItchArgs),
    /// A whole day of NYSE's Integrated Feed (XDP), as a pcap capture of its multicast packets
    ///
    /// The order flow equals that of the ITCH day with the same settings, so the books of both have the same
    /// levels at every time up to the close. Symbols are distributed over channels; messages of a burst share
    /// packets.
    Xdp(xdp::XdpArgs),
}

#[derive(clap::Args)]
pub struct ItchArgs {
    /// Output file; compressed when the name ends in .gz or .zst, "-" is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Standard day with the defaults for the following settings
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Preset::Itch500)]
    preset: Preset,
    #[command(flatten)]
    flow: FlowArgs,
    /// Write the summary as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Settings of a day's order flow that override the preset.
#[derive(clap::Args)]
struct FlowArgs {
    /// Number of messages of the whole day, as counted by ITCH [default: the preset's]
    #[arg(long, value_name = "N")]
    messages: Option<u64>,
    /// Number of symbols [default: the preset's; with fewer messages at most one per thousand messages]
    #[arg(long, value_name = "N")]
    symbols: Option<u32>,
    /// Number of orders that rest from opening to close [default: the preset's, scaled for fewer messages]
    #[arg(long, value_name = "N")]
    live: Option<u32>,
    /// Random seed [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl FlowArgs {
    fn apply_to(&self, preset: ItchDayConfig) -> ItchDayConfig {
        let day = preset.with_messages(self.messages.unwrap_or(preset.messages));
        let day = day.with_symbols(self.symbols.unwrap_or(day.symbols));
        ItchDayConfig { live: self.live.unwrap_or(day.live), seed: self.seed.unwrap_or(day.seed), ..day }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Preset {
    #[value(name = "itch-500")]
    Itch500,
    #[value(name = "itch-8000")]
    Itch8000,
}

impl ItchArgs {
    fn config(&self) -> ItchDayConfig {
        self.flow.apply_to(match self.preset {
            Preset::Itch500 => ItchDayConfig::itch_500(),
            Preset::Itch8000 => ItchDayConfig::itch_8000(),
        })
    }
}

/// The output files of a generated day and of its summary.
struct Outputs<'a> {
    day: &'a Path,
    json: Option<&'a Path>,
}

impl Outputs<'_> {
    /// Rejects outputs that would fail only after the day is written.
    fn check(&self) -> anyhow::Result<()> {
        let to_standard_output = is_standard_output(self.day) && self.json.is_some_and(is_standard_output);
        anyhow::ensure!(
            !to_standard_output,
            "--output and --json cannot both be standard output: name a file for one of them"
        );
        let named = [("--output", Some(self.day)), ("--json", self.json)];
        let written: Vec<(&str, &Path)> =
            named.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        let files: Vec<_> = written.into_iter().filter(|(_, path)| !is_standard_output(path)).collect();
        outputs::check(&files, &[])
    }
}

fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Itch(args) => run_itch(args),
        Args::Xdp(args) => xdp::run(args),
    }
}

fn run_itch(args: &ItchArgs) -> anyhow::Result<ExitCode> {
    let outputs = Outputs { day: &args.output, json: args.json.as_deref() };
    let config = args.config();
    let mut day = ItchDay::new(config)?;
    let append = |batch: &mut Vec<u8>| {
        let start = batch.len();
        let count = day.append_frames(BATCH, batch) as u64;
        (batch.len() > start).then_some(count)
    };
    let Some((written, time)) = deliver(&outputs, config.messages, append)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let Some(written) = written else { return Ok(ExitCode::SUCCESS) };
    let summary = Summary { config, written, counters: day.counters(), time };
    print_summary(&outputs, &summary.text(&args.output), &summary.json(&args.output))
}

/// Writes a day of about `messages` messages. `append` adds the next messages to a buffer and returns their
/// number, or `None` at the end of the day. Returns `None` when stopped, and no [`Written`] when the reader
/// of a pipe has ended.
fn deliver(
    outputs: &Outputs<'_>,
    messages: u64,
    append: impl FnMut(&mut Vec<u8>) -> Option<u64>,
) -> anyhow::Result<Option<(Option<Written>, Duration)>> {
    outputs.check()?;
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let cannot_write = || format!("cannot write {}", outputs.day.display());
    let output = Output::create(outputs.day).with_context(cannot_write)?;
    let start = Instant::now();
    match write(append, messages, output, &stop) {
        Ok(Some(written)) => Ok(Some((Some(written), start.elapsed()))),
        Ok(None) => {
            print_stderr(format_args!(
                "tickpath: interrupted, and {} was not written",
                outputs.day.display()
            ));
            Ok(None)
        }
        // The reader of a pipe has ended: `tickpath generate itch -o - | head`.
        Err(error) if is_standard_output(outputs.day) && error.kind() == ErrorKind::BrokenPipe => {
            Ok(Some((None, start.elapsed())))
        }
        Err(error) => Err(error).with_context(cannot_write),
    }
}

/// Prints the summary of the written data, and writes it as JSON if requested.
fn print_summary(outputs: &Outputs<'_>, text: &str, figures: &Value) -> anyhow::Result<ExitCode> {
    let mut printed = Ok(());
    if is_standard_output(outputs.day) {
        print_stderr_part(text);
    } else if !outputs.json.is_some_and(is_standard_output) {
        printed = print_stdout(text.trim_end());
    }
    // Write the figures to their file even if the text cannot be printed.
    if let Some(path) = outputs.json {
        json::write(path, &format!("{figures:#}"))?;
    }
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// Size and hash of the written data.
struct Written {
    /// Number of bytes before compression.
    bytes: u64,
    /// Hash of these bytes.
    xxh3: u64,
    /// Number of bytes in the file, compressed if its name requires that.
    file_bytes: u64,
}

impl Written {
    fn bytes_text(&self) -> String {
        let bytes = thousands(self.bytes);
        match self.file_bytes == self.bytes {
            true => bytes,
            false => format!("{bytes}, {} compressed", thousands(self.file_bytes)),
        }
    }
}

/// Writes a whole day and gives the file its final name; returns `None` when stopped by a signal.
fn write(
    mut append: impl FnMut(&mut Vec<u8>) -> Option<u64>,
    messages: u64,
    mut output: Output,
    stop: &StopSignal,
) -> io::Result<Option<Written>> {
    let mut progress = Progress::new(messages);
    let (mut batch, mut hash, mut bytes, mut count) = (Vec::new(), Xxh3::new(), 0, 0);
    loop {
        if stop.is_stopped() {
            return Ok(None);
        }
        batch.clear();
        let Some(appended) = append(&mut batch) else {
            return Ok(Some(Written { bytes, xxh3: hash.digest(), file_bytes: output.finish()? }));
        };
        count += appended;
        hash.update(&batch);
        bytes += batch.len() as u64;
        output.write_all(&batch)?;
        progress.show(count.min(messages));
    }
}

/// A progress line that overwrites itself on standard error; shown only on a terminal.
struct Progress {
    all: u64,
    is_shown: bool,
    start: Instant,
    next: Instant,
    width: usize,
}

impl Progress {
    fn new(all: u64) -> Progress {
        let start = Instant::now();
        Progress { all, is_shown: stderr().is_terminal(), start, next: start + PROGRESS_INTERVAL, width: 0 }
    }

    fn show(&mut self, done: u64) {
        let now = Instant::now();
        if !self.is_shown || now < self.next {
            return;
        }
        self.next = now + PROGRESS_INTERVAL;
        let line = progress_line(done, self.all, now - self.start);
        self.width = self.width.max(line.len());
        print_stderr_part(format_args!("\r{line:<width$}", width = self.width));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.width > 0 {
            print_stderr_part(format_args!("\r{:<width$}\r", "", width = self.width));
        }
    }
}

fn progress_line(done: u64, all: u64, time: Duration) -> String {
    let rate = done as f64 / time.as_secs_f64().max(1e-9);
    let left = (all - done) as f64 / rate.max(1.0);
    let percent = done * 100 / all;
    format!(
        "{} of {} messages, {percent} %, {:.1} M/s, {left:.0} s left",
        thousands(done),
        thousands(all),
        rate / 1e6
    )
}

struct Summary {
    config: ItchDayConfig,
    written: Written,
    counters: ItchDayCounters,
    time: Duration,
}

impl Summary {
    fn text(&self, path: &Path) -> String {
        let ItchDayConfig { messages, symbols, live, seed } = self.config;
        let seconds = self.time.as_secs_f64();
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<18}{value}");
        };
        let name =
            if is_standard_output(path) { "standard output".into() } else { path.display().to_string() };
        line("written", name);
        line("settings", format!("--messages {messages} --symbols {symbols} --live {live} --seed {seed}"));
        line("messages", thousands(self.counters.messages));
        line("bytes", self.written.bytes_text());
        line("symbols", thousands(symbols));
        line("live orders", format!("{} at peak", thousands(self.counters.live_max)));
        line("references", format!("{}, each once", thousands(self.counters.order_refs)));
        line("xxh3", format!("{:016x}", self.written.xxh3));
        let rate = messages as f64 / seconds.max(1e-9) / 1e6;
        line("seconds", format!("{seconds:.2} ({rate:.1} million messages a second)"));
        let mut types: Vec<(u8, u64)> = self.counters.by_type().collect();
        types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (message_type, count) in types {
            let percent = percent(count, self.counters.messages);
            line(
                &format!("  {}", char::from(message_type)),
                format!("{:>14} {percent:>9.4} %", thousands(count)),
            );
        }
        text
    }

    fn json(&self, path: &Path) -> Value {
        let seconds = self.time.as_secs_f64();
        let by_type: Map<String, Value> = self
            .counters
            .by_type()
            .map(|(message_type, count)| {
                let share = json!({ "messages": count, "percent": percent(count, self.counters.messages) });
                (char::from(message_type).to_string(), share)
            })
            .collect();
        json!({
            "file": path.display().to_string(),
            "format": "itch50-binaryfile",
            "settings": {
                "messages": self.config.messages,
                "symbols": self.config.symbols,
                "live": self.config.live,
                "seed": self.config.seed,
            },
            "messages": self.counters.messages,
            "bytes": self.written.bytes,
            "file_bytes": self.written.file_bytes,
            "xxh3": format!("{:016x}", self.written.xxh3),
            "live_max": self.counters.live_max,
            "live_end": self.counters.live,
            "order_refs": self.counters.order_refs,
            "by_type": by_type,
            "seconds": seconds,
            "messages_per_second": self.counters.messages as f64 / seconds.max(1e-9),
        })
    }
}

fn percent(count: u64, all: u64) -> f64 {
    count as f64 * 100.0 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_rate_and_remaining_time() {
        let line = progress_line(5_000_000, 50_000_000, Duration::from_secs(2));
        assert_eq!(line, "5,000,000 of 50,000,000 messages, 10 %, 2.5 M/s, 18 s left");
    }
}

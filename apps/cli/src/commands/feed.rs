//! `tickpath feed`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::Value;
use tickpath_agent::StopSignal;
use tickpath_config::{Duration, print_stderr, print_stderr_part, print_stdout};
use tickpath_feedhandler::live::{
    LiveConfig, LiveReport, Notice, book_line, run as run_handler, send_command, summary, to_json,
};

use super::json;

/// Run a feed handler until Ctrl-C: merge lines, recover gaps, build books, write outputs to shared memory.
///
/// Handles several channels at once: ITCH, XDP, IEX. Exit code 1 when messages were lost permanently, or a
/// book cannot be trusted at the end. docs/feed.md documents every key and the path of a packet.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  tickpath feed --config configs/feed.toml\n  tickpath feed --config configs/feed.toml --symbols ALPHA,BRAVO --json feed.json\n  tickpath feed resync ALPHA --config configs/feed.toml"
)]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Args)]
struct RunArgs {
    /// The handler's configuration file, such as configs/feed.toml
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Symbols that go to the outputs and are listed at the end, instead of the configuration's
    #[arg(long, value_name = "SYMBOL,...", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<Duration>,
    /// Write the final report as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the status of a running handler, and every book that is not live
    Status(AskArgs),
    /// Resync one book of a running handler
    Resync {
        /// Symbol of the book
        symbol: String,
        #[command(flatten)]
        ask: AskArgs,
    },
}

#[derive(clap::Args)]
struct AskArgs {
    /// The running handler's configuration file, which names its socket, such as configs/feed.toml
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Write the answer as JSON, `-` for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        None => run_until_stopped(&args.run),
        Some(Command::Status(ask)) => command(ask, "status"),
        Some(Command::Resync { symbol, ask }) => command(ask, &format!("resync {symbol}")),
    }
}

fn run_until_stopped(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let path = args.config.as_deref().context("name the configuration by --config FILE")?;
    json::check(args.json.as_deref())?;
    let mut config = LiveConfig::load(path)?;
    if !args.symbols.is_empty() {
        config.feed.symbols.clone_from(&args.symbols);
        config.finish()?;
    }
    let is_quiet = args.json.as_deref() == Some(Path::new("-"));
    let is_terminal = std::io::stderr().is_terminal();
    let stop = StopSignal::on_signals()?;
    let time = args.time.map(|time| time.0);
    let report = run_handler(&config, Some(path), &stop, time, |notice| match notice {
        Notice::Endpoint(line) if is_quiet => print_stderr(line),
        // A failure to print must not stop the handler.
        Notice::Endpoint(line) => print_stdout(line).unwrap_or_default(),
        Notice::Warning(line) => print_stderr(format_args!("warning: {line}")),
        Notice::Status(line) if is_terminal => print_stderr_part(format_args!("\r\x1b[2K{line}")),
        Notice::Status(_) => {}
    })?;
    if is_terminal {
        print_stderr("");
    }
    finish(args, &report, !config.feed.symbols.is_empty())
}

/// Prints the report, and writes it as JSON if requested. Lists the books only if symbols were selected.
fn finish(args: &RunArgs, report: &LiveReport, is_chosen: bool) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.json {
        json::write(path, &to_json(&report.channels, &report.books).to_string())?;
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        for channel in &report.channels {
            print_stdout(summary(channel))?;
        }
        if is_chosen {
            for (channel, book) in &report.books {
                print_stdout(book_line(channel, book))?;
            }
        }
    }
    let Some(fault) = report.fault() else { return Ok(ExitCode::SUCCESS) };
    print_stderr(format_args!("tickpath: {fault}"));
    Ok(ExitCode::FAILURE)
}

fn command(args: &AskArgs, line: &str) -> anyhow::Result<ExitCode> {
    let config = LiveConfig::load(&args.config)?;
    let socket = config.admin.socket.with_context(|| {
        format!("{} names no socket for commands: set admin.socket", args.config.display())
    })?;
    let answer = send_command(&socket, line)?;
    if let Some(path) = &args.json {
        json::write(path, &answer.to_string())?;
    }
    if answer["ok"] != true {
        bail!("{line}: {}", answer["error"].as_str().unwrap_or("refused"));
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        print_stdout(describe(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats the time since a channel's last packet. Empty below two seconds, because channels send a heartbeat
/// each second.
fn quiet(quiet_ns: &Value) -> String {
    let seconds = quiet_ns.as_u64().unwrap_or(0) / 1_000_000_000;
    if seconds < 2 { String::new() } else { format!("; no packet for {seconds} s") }
}

/// Formats the answer as text.
fn describe(answer: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    if let Some(symbol) = answer["symbol"].as_str() {
        let channels = answer["channels"].as_array().map(Vec::as_slice).unwrap_or_default();
        let channels: Vec<String> = channels.iter().map(text).collect();
        return format!("{symbol} is being recovered in channel {}", channels.join(", "));
    }
    let mut lines = vec![];
    for channel in answer["channels"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let health = &channel["health"];
        lines.push(format!(
            "{}: {} messages, gaps {}, lost {}; books {} live, {} recovering, {} stale, {} suspect{}{}",
            text(&channel["name"]),
            channel["messages"],
            channel["gaps"]["opened"],
            channel["gaps"]["messages_lost"],
            health["live"],
            health["recovering"],
            health["stale"],
            health["suspect"],
            if channel["lacks_books"] == true { ", and instruments without a book" } else { "" },
            quiet(&channel["quiet_ns"]),
        ));
    }
    for book in answer["books"].as_array().map(Vec::as_slice).unwrap_or_default() {
        lines.push(format!(
            "  {} {} {}{}",
            text(&book["channel"]),
            text(&book["symbol"]),
            text(&book["health"]),
            book["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default(),
        ));
    }
    lines.join("\n")
}

//! `tickpath convert`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stdout, thousands};
use tickpath_replay::{ConvertProgress, Converted, convert};

use super::outputs;
use super::progress::{Line, bar};
use super::{INTERRUPTED, json};

/// Minimum interval between progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Write an exported table in another format: CSV as Parquet, or Parquet as CSV.
///
/// Converts the tables that `tickpath replay` and `tickpath feed` write. It validates every value against its
/// column, uses constant memory for tables of any length, and gives the output its name when it is complete.
/// CSV input may be compressed (.gz, .zst).
#[derive(clap::Args)]
pub struct Args {
    /// Input table
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Output table; the name ends in .csv or .parquet
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Write a report of the conversion as JSON to a file, or to standard output for "-"
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let report = args.json.as_deref().filter(|path| path.as_os_str() != "-");
    let mut written = vec![("OUT", args.output.as_path())];
    written.extend(report.map(|path| ("--json", path)));
    outputs::check(&written, &[&args.input])?;
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let (mut line, begin) = (Line::new(), Instant::now());
    let mut next = PROGRESS_INTERVAL;
    let mut observer = |progress: &ConvertProgress| {
        if begin.elapsed() >= next {
            next = begin.elapsed() + PROGRESS_INTERVAL;
            line.show(|| progress_text(progress));
        }
    };
    let converted = convert(&args.input, &args.output, &stop, &mut observer);
    line.clear();
    let Some(Converted { rows, columns }) = converted? else {
        print_stderr(format_args!("tickpath: interrupted: nothing was written"));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let (from, to) = (args.input.display(), args.output.display());
    if let Some(path) = &args.json {
        let found =
            json!({ "from": from.to_string(), "to": to.to_string(), "rows": rows, "columns": columns });
        json::write(path, &format!("{found:#}"))?;
    }
    if args.json.as_deref().is_none_or(|path| path.as_os_str() != "-") {
        print_stdout(format_args!("{} row(s) of {columns} column(s) from {from} to {to}", thousands(rows)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn progress_text(progress: &ConvertProgress) -> String {
    let &ConvertProgress { rows, done, total } = progress;
    match total {
        0 => format!("{} rows", thousands(rows)),
        _ => format!("{} {} rows", bar(done, total), thousands(rows)),
    }
}

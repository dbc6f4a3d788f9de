//! `tickpath gateway log`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use tickpath_config::{has_reader, print_stderr, print_stdout, thousands};
use tickpath_gateway::event_log::{LogCounts, LogFilter, LogReader, RecordKind, Tail};

/// Print event logs, which hold all messages
///
/// A file that is still being written, or whose end is torn, is printed as far as possible. A file that is
/// damaged in the middle is printed up to the damage, and the exit code is 1.
#[derive(clap::Args)]
pub struct Args {
    /// Log files; a gateway writes them to WEEK/NAME/START under the configured event_log.folder
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind, help = kinds_help())]
    kind: Vec<RecordKind>,
    /// Only records of this client
    #[arg(long, value_name = "NUMBER")]
    client: Option<u32>,
    /// Only records of this connection to the venue
    #[arg(long, value_name = "NUMBER")]
    stream: Option<u8>,
    /// Only records whose text contains this
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// First record
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u64,
    /// Maximum number of records
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Print messages in full, of any length
    #[arg(long)]
    whole: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

fn kind(name: &str) -> Result<RecordKind, String> {
    RecordKind::by_name(name).ok_or_else(|| format!("there is no kind {name}: there are {}", kinds()))
}

fn kinds() -> String {
    RecordKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

fn kinds_help() -> String {
    format!("These kinds alone: {}", kinds())
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let filter = LogFilter {
        kinds: args.kind.clone(),
        client: args.client,
        stream: args.stream,
        contains: args.contains.clone(),
        from: args.from,
        limit: args.limit,
        is_whole: args.whole,
    };
    let mut counts = LogCounts::default();
    let mut is_whole = true;
    for file in &args.files {
        is_whole &= show(file, &filter, args.json, &mut counts)?;
    }
    if !args.json {
        print_stdout(format_args!(
            "{} records, {} of them shown",
            thousands(counts.read),
            thousands(counts.shown)
        ))?;
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the selected records of a file; returns false when it is damaged.
fn show(file: &Path, filter: &LogFilter, is_json: bool, counts: &mut LogCounts) -> anyhow::Result<bool> {
    let mut reader = LogReader::open(file)?;
    let header = reader.header().clone();
    loop {
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                print_stderr(format_args!("tickpath: {error}"));
                return Ok(false);
            }
        };
        counts.read += 1;
        let Some(line) = filter.line(&header, &record, is_json) else { continue };
        if filter.limit.is_some_and(|limit| counts.shown >= limit) || !has_reader() {
            return Ok(true);
        }
        counts.shown += 1;
        print_stdout(line)?;
    }
    if reader.missing() > 0 {
        print_stderr(format_args!(
            "tickpath: {}: {} records are missing: the memory or the disk for them was full",
            file.display(),
            thousands(reader.missing())
        ));
    }
    match reader.tail() {
        Tail::Torn { offset, bytes } => print_stderr(format_args!(
            "tickpath: {}: the last {bytes} bytes, from byte {offset} on, are no whole record: its writer was cut off",
            file.display()
        )),
        Tail::Unread => bail!("{}: its end was not reached", file.display()),
        Tail::Ended | Tail::Continued | Tail::Open => {}
    }
    Ok(true)
}

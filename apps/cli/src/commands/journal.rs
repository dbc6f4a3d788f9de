//! `tickpath journal`.

mod read_only;

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};
use serde_json::json;
use tickpath_agent::StopSignal;
use tickpath_config::{print_stderr, print_stderr_part, print_stdout, thousands};
use tickpath_exchange::{LogCommand, audit};
use tickpath_journal::{
    ACKNOWLEDGED_FILE, Folder, InspectOptions, Inspection, Reader, SnapshotDamage, Snapshots, generation_of,
    inspect, session_of,
};
use tickpath_types::Sequence;

use super::{INTERRUPTED, json};
use read_only::ReadOnly;

/// Inspect a venue's journal: verify it, print its commands, or replay it.
///
/// Changes nothing; may run beside a venue. docs/journal.md describes a journal. Ctrl-C: exit code 130.
#[derive(clap::Subcommand)]
pub enum Args {
    /// Read every record and every snapshot, and report whether the journal is complete
    Verify {
        /// The journal's folder
        folder: PathBuf,
        /// Write the result as JSON, `-` for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Print the commands, one per line
    Dump {
        /// The journal's folder
        folder: PathBuf,
        /// First command
        #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
        from: u64,
        /// Maximum number of commands
        #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
        limit: u64,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Replay every command through the matching engine, and compare the state with each recorded state
    Replay {
        /// The journal's folder
        folder: PathBuf,
        /// Begin with the newest snapshot at or before this command [default: the oldest snapshot]
        #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
        from: u64,
        /// Maximum number of commands after the snapshot
        #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
        limit: u64,
        /// Write the result as JSON, `-` for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let open = |path: &Path| {
        ensure!(path.is_dir(), "{} is not a folder: name the journal's folder", path.display());
        Ok(ReadOnly::new(Folder::new(path)?, stop.clone()))
    };
    let done = match args {
        Args::Verify { folder, json } => open(folder).and_then(|folder| verify(&folder, json.as_deref())),
        Args::Dump { folder, from, limit, json } => {
            open(folder).and_then(|folder| dump(&folder, *from, *limit, *json))
        }
        Args::Replay { folder, from, limit, json } => {
            open(folder).and_then(|folder| replay(&folder, *from, *limit, json.as_deref()))
        }
    };
    match done {
        Err(_) if stop.is_stopped() => {
            print_stderr("tickpath: interrupted: the journal was not read to its end");
            Ok(ExitCode::from(INTERRUPTED))
        }
        done => done,
    }
}

/// Inspects the folder's log. A log that is being written is read up to its present end.
fn inspect_journal(folder: &ReadOnly, from: u64) -> anyhow::Result<Inspection> {
    let options = InspectOptions { from: Sequence(from), ..InspectOptions::default() };
    let found = inspect(folder, &options).with_context(|| folder.name())?;
    ensure!(found.session.is_some(), "{} holds no journal", folder.name());
    let last = found.last_sequence();
    ensure!(from <= last.next().0, "{} ends with command {last}: --from {from} is beyond it", folder.name());
    Ok(found)
}

/// Returns the present snapshots. Called before the log is read, because a running venue may write a later
/// snapshot that covers commands after the last record read.
fn snapshots_in(folder: &ReadOnly) -> anyhow::Result<Vec<Sequence>> {
    let session = session_of(folder).with_context(|| folder.name())?;
    let list = |session| Snapshots::new(folder.clone(), session).list();
    Ok(session.map(list).transpose()?.unwrap_or_default())
}

/// Returns the last command that the newest snapshot covers, if the log after it is complete. A restart
/// reads only that part of the log.
fn covered_by(folder: &ReadOnly) -> Option<Sequence> {
    let session = session_of(folder).ok()??;
    let newest = Snapshots::new(folder.clone(), session).newest(Sequence(u64::MAX)).ok()?.snapshot?;
    inspect_journal(folder, newest.sequence.next().0).ok().map(|_| newest.sequence)
}

fn verify(folder: &ReadOnly, json: Option<&Path>) -> anyhow::Result<ExitCode> {
    json::check(json)?;
    let started = Instant::now();
    let listed = snapshots_in(folder)?;
    let found = inspect_journal(folder, 0).map_err(|error| match covered_by(folder) {
        Some(snapshot) => anyhow!(
            "{error:#}; snapshot {snapshot} covers it: the venue starts without --accept-loss, only history is lost"
        ),
        None => error,
    })?;
    let session = found.session.context("a log has a session")?;
    let generation = generation_of(folder, session)?;
    let (first, last) = (found.first_sequence(), found.last_sequence());
    let snapshots = Snapshots::new(folder.clone(), session);
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for sequence in listed {
        let read = match snapshots.read(sequence) {
            // A running venue removed the snapshot after it was listed.
            Err(_) if !snapshots.list()?.contains(&sequence) => continue,
            read => read?,
        };
        match read {
            Ok(_) if sequence > last => bad.push(format!(
                "snapshot {sequence} covers more than the log, which ends with command {last}: it lost its end"
            )),
            Ok(_) => good.push(sequence.0),
            Err(damage) => bad.push(format!("snapshot {sequence}: {damage}")),
        }
    }
    let missing = snapshots.newest(last)?.skipped.into_iter();
    bad.extend(
        missing
            .filter(|skipped| skipped.damage == SnapshotDamage::Missing)
            .map(|skipped| format!("snapshot {}: {}", skipped.sequence, skipped.damage)),
    );
    let torn = found.torn.as_ref();
    if let Some(json) = json {
        let report = json!({
            "session": session.to_string(),
            "generation": generation,
            "first": first.0,
            "last": last.0,
            "records": found.records_read,
            "acknowledged": found.acknowledged.map(|acknowledged| acknowledged.0),
            "segments": found.segments.iter().map(|segment| &segment.file).collect::<Vec<_>>(),
            "snapshots": good,
            "bad_snapshots": bad,
            "torn": torn.map(|torn| json!({
                "file": torn.file, "offset": torn.offset, "later_records": torn.later_records
            })),
        });
        json::write(json, &report.to_string())?;
    }
    if json != Some(Path::new("-")) {
        print_stdout(format_args!(
            "session {session}: {} records, {first} to {last}, in {} segments; {} snapshots; {:.2?}",
            thousands(found.records_read),
            found.segments.len(),
            good.len(),
            started.elapsed()
        ))?;
        if generation > 0 {
            print_stdout(format_args!(
                "generation {generation}: answered commands may have been lost this number of times"
            ))?;
        }
        if found.acknowledged.is_none() {
            print_stdout(format_args!(
                "no file {ACKNOWLEDGED_FILE}: an earlier version wrote the journal, or the file was removed; damage to its \
                 last records cannot be distinguished from the effect of a crash"
            ))?;
        }
        if let Some(torn) = torn {
            print_stdout(format_args!(
                "{} has a torn tail at byte {} ({}), which the next start cuts off",
                torn.file, torn.offset, torn.damage
            ))?;
        }
    }
    ensure!(bad.is_empty(), "{}: {}", folder.name(), bad.join("; "));
    Ok(ExitCode::SUCCESS)
}

fn dump(folder: &ReadOnly, from: u64, limit: u64, as_json: bool) -> anyhow::Result<ExitCode> {
    let found = inspect_journal(folder, from)?;
    let session = found.session.context("a log has a session")?;
    let first = Sequence(from.max(found.first_sequence().0));
    let last = found.last_sequence().min(Sequence(first.0.saturating_add(limit).saturating_sub(1)));
    if first > last || limit == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let mut reader = Reader::open(folder, session, first)?;
    let mut out = BufWriter::new(stdout().lock());
    while let Some(record) = reader.next(last)? {
        ensure!(!folder.is_stopped(), "interrupted");
        let sequence = record.sequence;
        let command = LogCommand::decode(record.payload)
            .with_context(|| format!("record {sequence} of {} is not a command", folder.name()))?;
        let written = if as_json {
            let line = json!({
                "sequence": sequence.0,
                "ts": command.ts().0,
                "session": command.session().0,
                "kind": format!("{:?}", command.kind()),
            });
            writeln!(out, "{line}")
        } else {
            writeln!(
                out,
                "{sequence:>12} {:>15} {:>5} {:?}",
                command.ts().0,
                command.session().0,
                command.kind()
            )
        };
        if !is_output_open(written)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    is_output_open(out.flush())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns false when the reader of standard output has disconnected, which is not a failure.
fn is_output_open(written: io::Result<()>) -> anyhow::Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::from(error).context("cannot write to standard output")),
    }
}

fn replay(folder: &ReadOnly, from: u64, limit: u64, json: Option<&Path>) -> anyhow::Result<ExitCode> {
    json::check(json)?;
    let found = inspect_journal(folder, from)?;
    let session = found.session.context("a log has a session")?;
    let first = from.max(found.first_sequence().0);
    let last = found.last_sequence().min(Sequence(first.saturating_add(limit).saturating_sub(1)));
    let is_terminal = stderr().is_terminal();
    let started = Instant::now();
    let done = audit(folder, session, Sequence(from), last, |sequence| {
        if is_terminal {
            print_stderr_part(format_args!(
                "\r\x1b[Kcommand {} of {}",
                thousands(sequence.0),
                thousands(last.0)
            ));
        }
    });
    if is_terminal {
        print_stderr_part("\r\x1b[K");
    }
    let done = done.with_context(|| folder.name())?;
    let elapsed = started.elapsed();
    let commands = last.0.saturating_sub(done.from.0);
    let (answers, published) = done.replica.message_counts();
    let hash = done.replica.state_hash();
    if let Some(json) = json {
        let report = json!({
            "session": session.to_string(),
            "from": done.from.0,
            "last": last.0,
            "commands": commands,
            "seconds": elapsed.as_secs_f64(),
            "state_hash": format!("{hash:016x}"),
            "snapshots_checked": done.snapshots_checked,
            "bad_snapshots": done.skipped.iter().map(|skipped| &skipped.file).collect::<Vec<_>>(),
            "answers": answers,
            "market_data_messages": published,
            "open_orders": done.replica.engine.open_order_count(),
        });
        json::write(json, &report.to_string())?;
    }
    if json != Some(Path::new("-")) {
        print_stdout(format_args!(
            "session {session}: {} commands from {} to {last} in {elapsed:.2?}, {:.2} M/s; state hash {hash:016x}\n\
             {} snapshots matched; {} answers, {} messages of market data, {} open orders",
            thousands(commands),
            done.from,
            commands as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6,
            done.snapshots_checked,
            thousands(answers),
            thousands(published),
            thousands(done.replica.engine.open_order_count()),
        ))?;
    }
    let bad: Vec<String> =
        done.skipped.iter().map(|skipped| format!("{}: {}", skipped.file, skipped.damage)).collect();
    ensure!(bad.is_empty(), "{}: {}", folder.name(), bad.join("; "));
    Ok(ExitCode::SUCCESS)
}

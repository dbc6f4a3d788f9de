//! `tickpath shm`.

mod table;
mod watch;

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{anyhow, ensure};
use serde_json::{Value, json};
use tickpath_config::{print_stdout, thousands};
use tickpath_shm::{
    EventsReader, Folder, Reclaimed, Segment, SegmentName, SegmentReader, ShmError, TimeBase, Verified,
    WriterState, reclaim, reclaim_unfinished, verify, verify_events,
};
use tickpath_types::Nanos;

use super::json;
use table::{Colour, Table};

/// A writer counts as silent when its latest heartbeat is older than this. Writers send ten per second.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// Maximum number of problems printed per segment; the JSON report has more.
const PROBLEMS_SHOWN: usize = 4;

/// List, verify, watch and reclaim the shared memory segments with market data or gateway events.
///
/// docs/shm.md describes a segment. Only `reclaim` changes anything.
#[derive(clap::Subcommand)]
pub enum Args {
    /// List the segments with their contents and the state of their writers
    List {
        #[command(flatten)]
        place: Place,
        /// Write the list as JSON, `-` for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Read everything in segments and report whether they are valid; exit code 1 when one is not
    Verify {
        /// Names of segments [default: all]
        names: Vec<String>,
        #[command(flatten)]
        place: Place,
        /// Write the result as JSON, `-` for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Remove segments whose writers have ended; a segment with a live writer is never removed
    Reclaim {
        /// Names of segments
        names: Vec<String>,
        /// All segments whose writers have ended, and unfinished files of killed writers
        #[arg(long, conflicts_with = "names")]
        all: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show the latest quotes until Ctrl-C, twice a second
    Watch(watch::Args),
}

/// The location of segments.
#[derive(clap::Args)]
pub struct Place {
    /// Folder of the segments [default: /dev/shm/tickpath-UID]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(Folder::usual_path)
    }

    fn open(&self) -> Result<Folder, ShmError> {
        Folder::open(&self.path())
    }

    /// Returns whether the default folder is used and does not exist.
    fn is_unused(&self) -> bool {
        self.folder.is_none() && !self.path().exists()
    }

    /// Opens the folder of a segment requested by name.
    fn open_for(&self, name: &SegmentName) -> Result<Folder, ShmError> {
        if self.is_unused() {
            return Err(ShmError::Missing { name: name.to_string(), folder: self.path() });
        }
        self.open()
    }

    fn names(&self) -> anyhow::Result<Vec<(Folder, SegmentName)>> {
        if self.is_unused() {
            return Ok(Vec::new());
        }
        let folder = self.open()?;
        Ok(folder.names()?.into_iter().map(|name| (folder.clone(), name)).collect())
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::List { place, json } => list(place, json.as_deref()),
        Args::Verify { names, place, json } => verify_all(names, place, json.as_deref()),
        Args::Reclaim { names, all, place } => {
            ensure!(*all || !names.is_empty(), "name the segments to remove, or give --all");
            reclaim_all(names, place)
        }
        Args::Watch(args) => watch::run(args),
    }
}

/// Returns the time since `ns`, which counts from the Unix epoch; zero for a future time.
fn age(ns: u64) -> Duration {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(ns))
}

/// Returns the state of a segment's writer as a word, and its colour.
fn state_of(writer: WriterState, heartbeat: Nanos) -> (&'static str, Colour) {
    match writer {
        WriterState::Alive if age(heartbeat.0) > SILENT_AFTER => ("silent", Colour::Yellow),
        WriterState::Alive => ("alive", Colour::Green),
        WriterState::Closed => ("closed", Colour::Plain),
        WriterState::Dead => ("gone", Colour::Red),
    }
}

const fn time_base(base: TimeBase) -> &'static str {
    match base {
        TimeBase::Midnight => "midnight",
        TimeBase::Unix => "unix",
        TimeBase::Monotonic => "monotonic",
    }
}

/// Returns `count` divided by the seconds from the segment's creation to its writer's latest heartbeat.
fn mean_rate(segment: &Segment, count: u64) -> f64 {
    let lifetime_s = segment.heartbeat().0.saturating_sub(segment.header().created_ns) as f64 / 1e9;
    if lifetime_s > 0.0 { count as f64 / lifetime_s } else { 0.0 }
}

fn short_age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3_600),
    }
}

fn list(place: &Place, json: Option<&Path>) -> anyhow::Result<ExitCode> {
    json::check(json)?;
    let names = place.names()?;
    let mut table =
        Table::new(&["SEGMENT", "WRITER", "PID", "SYMBOLS", "ROWS", "STREAM", "A SECOND", "AGE", "GEN"]);
    let (mut report, mut damaged) = (Vec::new(), Vec::new());
    for (folder, name) in &names {
        let segment = match Segment::open(folder, name) {
            Ok(segment) => segment,
            // The segment was removed after the listing.
            Err(ShmError::Missing { .. }) => continue,
            Err(error) => {
                let error = error_text(&error);
                damaged.push(error.clone());
                report.push(json!({ "name": name.as_str(), "error": error }));
                continue;
            }
        };
        let (_, colour) = state_of(segment.writer_state(), segment.heartbeat());
        let found = describe(name, &segment);
        table.row(colour, line_of(&found));
        report.push(found);
    }
    if let Some(json) = json {
        json::write(json, &json!({ "folder": place.path(), "segments": report }).to_string())?;
    }
    if json != Some(Path::new("-")) {
        match names.len() {
            0 => print_stdout(format_args!("no segments in {}", place.path().display()))?,
            _ => print_stdout(table.text(stdout().is_terminal(), usize::MAX))?,
        }
    }
    ensure!(damaged.is_empty(), "{}", damaged.join("; "));
    Ok(ExitCode::SUCCESS)
}

/// Returns the JSON report on a segment. Scripts may rely on its keys: they do not change.
fn describe(name: &SegmentName, segment: &Segment) -> Value {
    let header = segment.header();
    let mut found = json!({
        "name": name.as_str(),
        "writer": state_of(segment.writer_state(), segment.heartbeat()).0,
        "pid": header.writer.pid,
        "generation": header.generation,
        "created_ns": header.created_ns,
        "heartbeat_ns": segment.heartbeat().0,
        "stream_capacity": header.layout.stream_capacity,
        "time_base": time_base(header.time_base()),
        "bytes": header.file_len,
    });
    let own = match segment {
        Segment::MarketData(reader) => json!({
            "kind": "market data",
            "symbols": reader.symbols().count(),
            "rows": header.layout.rows,
            "updates_sent": reader.stream().map(|stream| stream.position()),
            "quotes_written": reader.quotes_written(),
            "quotes_per_second": mean_rate(segment, reader.quotes_written()),
        }),
        Segment::Events(reader) => json!({
            "kind": "events",
            "event_bytes": header.layout.item_len,
            "events_sent": reader.sent(),
            "events_per_second": mean_rate(segment, reader.sent()),
        }),
        _ => json!({ "kind": "other" }),
    };
    if let (Some(found), Value::Object(own)) = (found.as_object_mut(), own) {
        found.extend(own);
    }
    found
}

/// Formats an error with a remedy for users of `tickpath shm`. The error's own remedy, to start the writer,
/// is for programs that read segments.
fn error_text(error: &ShmError) -> String {
    match error {
        ShmError::Missing { name, folder } => {
            format!(
                "there is no segment '{name}' in {}: tickpath shm list names the existing ones",
                folder.display()
            )
        }
        ShmError::Damaged { path, damage } => {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            format!("{} is damaged: {damage}; tickpath shm reclaim {name} removes it", path.display())
        }
        other => other.to_string(),
    }
}

/// Returns the cells of a segment's row in the list, from its JSON report; a dash for missing values.
fn line_of(found: &Value) -> Vec<String> {
    let text = |key: &str| found[key].as_str().unwrap_or("-").to_owned();
    let count = |key: &str| found[key].as_u64().map_or_else(|| "-".to_owned(), thousands);
    let plain = |key: &str| found[key].as_u64().unwrap_or_default().to_string();
    let rate_of =
        |key: &str, what: &str| found[key].as_f64().map(|rate| format!("{} {what}", thousands(rate as u64)));
    let quotes = rate_of("quotes_per_second", "quotes");
    vec![
        text("name"),
        text("writer"),
        plain("pid"),
        count("symbols"),
        count("rows"),
        count("stream_capacity"),
        quotes.or_else(|| rate_of("events_per_second", "events")).unwrap_or_else(|| "-".to_owned()),
        short_age(age(found["created_ns"].as_u64().unwrap_or_default())),
        plain("generation"),
    ]
}

/// Returns the named segments with their folders; all segments if `names` is empty.
fn chosen(names: &[String], place: &Place) -> anyhow::Result<Vec<(Folder, SegmentName)>> {
    if names.is_empty() {
        return place.names();
    }
    let named = |name: &String| {
        let name = SegmentName::new(name)?;
        let folder = place.open_for(&name).map_err(|error| anyhow!(error_text(&error)))?;
        Ok((folder, name))
    };
    names.iter().map(named).collect()
}

fn verify_all(names: &[String], place: &Place, json: Option<&Path>) -> anyhow::Result<ExitCode> {
    json::check(json)?;
    let (mut report, mut bad) = (Vec::new(), Vec::new());
    let mut lines = Vec::new();
    for (folder, name) in chosen(names, place)? {
        let segment = match Segment::open(&folder, &name) {
            Ok(segment) => segment,
            Err(error) => {
                let error = error_text(&error);
                bad.push(error.clone());
                report.push(json!({ "name": name.as_str(), "error": error }));
                continue;
            }
        };
        let (state, _) = state_of(segment.writer_state(), segment.heartbeat());
        let (found, read) = match &segment {
            Segment::MarketData(reader) => verified_market_data(reader),
            Segment::Events(reader) => verified_events(reader),
            _ => continue,
        };
        let verdict = match found.problem_count {
            0 => "no problems".to_owned(),
            count => format!("problems: {}", thousands(count)),
        };
        lines.push(format!(
            "{name}: writer {state}; {read}, {} overtaken by the writer; {verdict}",
            thousands(found.overtaken)
        ));
        report.push(json!({
            "name": name.as_str(),
            "writer": state,
            "symbols": found.symbols,
            "quotes": found.quotes,
            "updates": found.updates,
            "overtaken": found.overtaken,
            "problems": found.problem_count,
            "problem_texts": found.problems,
        }));
        if found.problem_count > 0 {
            let shown = &found.problems[..found.problems.len().min(PROBLEMS_SHOWN)];
            let more = found.problem_count - shown.len() as u64;
            let more = if more == 0 { String::new() } else { format!(", and {} more", thousands(more)) };
            bad.push(format!("{name}: {}{more}", shown.join(", ")));
        }
    }
    if let Some(json) = json {
        json::write(json, &json!({ "folder": place.path(), "segments": report }).to_string())?;
    }
    if json != Some(Path::new("-")) {
        if report.is_empty() {
            lines.push(format!("no segments in {}", place.path().display()));
        }
        lines.iter().try_for_each(print_stdout)?;
    }
    ensure!(bad.is_empty(), "{}", bad.join("; "));
    Ok(ExitCode::SUCCESS)
}

fn verified_market_data(reader: &SegmentReader) -> (Verified, String) {
    let found = verify(reader);
    let read = format!(
        "{} symbols, {} quotes, {} updates read",
        thousands(found.symbols),
        thousands(found.quotes),
        thousands(found.updates)
    );
    (found, read)
}

fn verified_events(reader: &EventsReader) -> (Verified, String) {
    let found = verify_events(reader);
    let read = format!("{} events read", thousands(found.updates));
    (found, read)
}

fn reclaim_all(names: &[String], place: &Place) -> anyhow::Result<ExitCode> {
    let mut failed = Vec::new();
    let chosen = chosen(names, place)?;
    let unfinished =
        if names.is_empty() && !place.is_unused() { reclaim_unfinished(&place.open()?)? } else { 0 };
    if unfinished > 0 {
        print_stdout(format_args!("unfinished files removed: {unfinished}"))?;
    }
    for (folder, name) in chosen {
        match reclaim(&folder, &name) {
            Ok(Reclaimed::Removed) => print_stdout(format_args!("{name}: removed"))?,
            Ok(Reclaimed::Kept) if names.is_empty() => {
                print_stdout(format_args!("{name}: kept, its writer is alive"))?
            }
            Ok(Reclaimed::Kept) => failed.push(format!("{name}: the writer is alive: stop it first")),
            // The other segments can still be removed.
            Err(error) => failed.push(error_text(&error)),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(ExitCode::SUCCESS)
}

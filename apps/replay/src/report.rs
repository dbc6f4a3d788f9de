//! What a replay found.

use std::path::PathBuf;
use std::time::Duration;

use tickpath_book::Level;
use tickpath_capture::{DbnDefinition, DbnSchema, Depth, Format};

use crate::captures::CaptureReport;
use crate::check::TwinReport;
use crate::cost::Cost;
use crate::exports::ExportedRows;
use crate::integrity::Integrity;
use crate::moment::RecordedTime;
use crate::order_book_rows::RowsReport;
use crate::statistics::SymbolStatistics;

/// How many messages of a type there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeCount {
    /// The letter, digit or number of the type in its format; `?` for what is none.
    pub code: String,
    /// What it is called.
    pub name: &'static str,
    /// How many.
    pub count: u64,
}

/// The book of one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolBook {
    /// The symbol.
    pub symbol: String,
    /// The best levels of bids and asks.
    pub sides: [Vec<Level>; 2],
}

/// Why a pass ended before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At the number of messages of `--limit`.
    Limit,
    /// At the end of the window.
    Window,
    /// At the stop signal.
    Stopped,
}

/// What was compared with something else, when `--check` was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The plain twin.
    pub twin: Option<TwinReport>,
    /// The order book file of a LOBSTER message file.
    pub rows: Option<RowsReport>,
}

impl CheckReport {
    /// Everything that differs, in words.
    pub fn differences(&self) -> impl Iterator<Item = &str> {
        let twin = self.twin.as_ref().and_then(|twin| twin.difference.as_deref());
        let rows = self.rows.as_ref().and_then(|rows| rows.first_difference.as_deref());
        twin.into_iter().chain(rows)
    }
}

/// The reliability of the books of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Nothing contradicts the recording, and nothing is seen to be missing.
    Complete,
    /// Nothing contradicts it, but it does not cover all: see the reservations.
    Partial,
    /// It contradicts itself: see the contradictions.
    Contradicted,
}

impl Reliability {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reliability::Complete => "complete",
            Reliability::Partial => "partial",
            Reliability::Contradicted => "contradicted",
        }
    }
}

/// What a replay of one file found.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// How much of the books it covers.
    pub depth: Depth,
    /// Messages that were read, from the start of the file.
    pub messages_read: u64,
    /// Messages in the window.
    pub messages: u64,
    /// Those of them that are parts of snapshots: they built the books, and are in no statistics.
    pub snapshot_messages: u64,
    /// Decimals of the units in which prices are counted.
    pub price_decimals: u8,
    /// These by type, most frequent first.
    pub by_type: Vec<TypeCount>,
    /// Times of the first and last of these.
    pub span: Option<(RecordedTime, RecordedTime)>,
    /// Instruments that the recording has.
    pub symbol_count: usize,
    /// Statistics of the symbols that were chosen or, when none were, of all; most active first.
    pub statistics: Vec<(String, SymbolStatistics)>,
    /// How many of these a text shows: those that were chosen, or the most active ones.
    pub shown_count: usize,
    /// Books of the symbols that were chosen, or of the most active ones, at the end.
    pub tops: Vec<SymbolBook>,
    /// Symbols that were chosen and are not in the recording.
    pub absent_symbols: Vec<String>,
    /// Decoding alone: framing, and every field of every message folded into `checksum`.
    pub decode: Option<Cost>,
    /// Framing, decoding and full books with an update for each message; `None` without books.
    pub books: Option<Cost>,
    /// All fields of all messages that were decoded, see [`Fold`](crate::Fold) and [`Checksum`](tickpath_nasdaq::itch50::Checksum).
    pub checksum: u64,
    /// The most memory that the process had so far, in bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Wall time.
    pub elapsed: Duration,
    /// Whether what the recording says holds together.
    pub integrity: Integrity,
    /// What was compared.
    pub check: CheckReport,
    /// Rows of this file that were exported; none when the replay was stopped, which leaves no table behind.
    pub exported: ExportedRows,
    /// Why the replay ended before the end of the file, when it did.
    pub ended: Option<Ended>,
    /// Everything for which the result cannot be trusted, in words; empty when it can.
    pub contradictions: Vec<String>,
    /// Whether it ends with the end of the session's messages; without it, what is missing behind cannot be seen.
    pub is_end_seen: bool,
    /// Reasons for which the books are incomplete, or cannot be judged, as text.
    pub reservations: Vec<String>,
    /// Of DBN without orders: its schema, ...
    pub schema: Option<DbnSchema>,
    /// ... and what it defines.
    pub definitions: Vec<DbnDefinition>,
    /// Of a capture: its channels, and what else was in it. A capture has a report for each recording in it.
    pub capture: Option<CaptureReport>,
}

impl FileReport {
    /// The reliability of the books.
    #[must_use]
    pub fn reliability(&self) -> Reliability {
        match (self.contradictions.as_slice(), self.reservations.as_slice()) {
            ([], []) => Reliability::Complete,
            ([], _) => Reliability::Partial,
            _ => Reliability::Contradicted,
        }
    }

    /// True when nothing contradicts the result.
    #[must_use]
    pub fn is_trustworthy(&self) -> bool {
        self.contradictions.is_empty()
    }
}

/// What a replay of several files found together.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Each file.
    pub files: Vec<FileReport>,
    /// Files that could not be replayed at all, and why.
    pub failures: Vec<(PathBuf, String)>,
    /// Files that were not begun before the replay was stopped.
    pub left_out: Vec<PathBuf>,
}

impl ReplayReport {
    /// True when every file was replayed and nothing contradicts any result.
    #[must_use]
    pub fn is_trustworthy(&self) -> bool {
        self.failures.is_empty() && self.files.iter().all(FileReport::is_trustworthy)
    }

    /// True when it was told to stop before it was through.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !self.left_out.is_empty() || self.files.iter().any(|file| file.ended == Some(Ended::Stopped))
    }

    /// Symbols that were chosen and are in none of the files.
    #[must_use]
    pub fn absent_symbols(&self) -> Vec<&str> {
        let Some((first, others)) = self.files.split_first() else { return Vec::new() };
        let is_absent = |symbol: &&String| others.iter().all(|file| file.absent_symbols.contains(symbol));
        first.absent_symbols.iter().filter(is_absent).map(String::as_str).collect()
    }

    /// Rows of all files that were exported.
    #[must_use]
    pub fn exported(&self) -> ExportedRows {
        let mut sum = ExportedRows::default();
        self.files.iter().for_each(|file| sum.add(&file.exported));
        sum
    }

    /// Messages of all files.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.files.iter().map(|file| file.messages).sum()
    }

    /// Findings of all files.
    #[must_use]
    pub fn integrity(&self) -> Integrity {
        let mut sum = Integrity::default();
        self.files.iter().for_each(|file| sum.merge(&file.integrity));
        sum
    }

    /// Counts of all files by type: a letter may mean different types in different formats.
    #[must_use]
    pub fn by_type(&self) -> Vec<TypeCount> {
        let mut list: Vec<TypeCount> = Vec::new();
        for entry in self.files.iter().flat_map(|file| &file.by_type) {
            match list.iter_mut().find(|known| known.code == entry.code && known.name == entry.name) {
                Some(known) => known.count += entry.count,
                None => list.push(entry.clone()),
            }
        }
        list.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        list
    }
}

//! What a replay found.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tickpath_book::{BooksById, Level};
use tickpath_capture::{DbnDefinition, DbnSchema, Depth, Format};
use tickpath_types::{InstrumentId, Side};

use crate::captures::CaptureReport;
use crate::check::TwinReport;
use crate::cost::{Cost, peak_rss_bytes};
use crate::exports::ExportedRows;
use crate::integrity::{Integrity, Judgement};
use crate::lobster_rows::RowsReport;
use crate::message::{Source, Types};
use crate::moment::RecordedTime;
use crate::options::SYMBOLS_SHOWN;
use crate::session::{Ended, Session};
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

    pub(crate) fn of(
        path: &Path,
        source: Source<'_>,
        session: &mut Session<'_>,
        books: Option<&impl BooksById>,
        twin: Option<TwinReport>,
        rows: Option<RowsReport>,
        judgement: Judgement,
    ) -> FileReport {
        let elapsed = session.elapsed();
        let (options, tape) = (session.options, &mut session.tape);
        tape.integrity.orders_left = books.map_or(0, |books| u64::from(books.order_count()));
        let check = CheckReport { twin, rows };
        let mut contradictions = tape.integrity.contradictions(judgement);
        contradictions.extend(check.differences().map(str::to_owned));
        let mut reservations: Vec<String> = tape.integrity.unjudged(judgement).into_iter().collect();
        if let (Depth::Partial { levels }, true) = (source.info.depth, judgement.has_books) {
            let levels =
                levels.map_or("the best levels".to_owned(), |count| format!("the best {count} level(s)"));
            reservations
                .push(format!("the recording covers {levels} of each side: what rests below is missing"));
        }
        let part = session.ended.map(|ended| match ended {
            Ended::Limit => "up to --limit",
            Ended::Window => "up to --to",
            Ended::Stopped => "up to where it was stopped",
        });
        reservations.extend(part.map(|part| format!("the recording was read {part}")));
        if !judgement.has_books {
            reservations.push("no books were built: nothing but the messages was judged".to_owned());
        }

        // Number 0 is the whole system; one whose symbol no message told is known by its number.
        let seen = tape.instruments.iter().enumerate().skip(1);
        let seen = seen.filter(|(_, known)| known.symbol.is_some() || known.statistics.messages > 0);
        let mut shown: Vec<(u16, String, SymbolStatistics)> = seen
            .clone()
            .filter(|(_, known)| known.is_chosen)
            .map(|(id, known)| (id as u16, tape.name(id as u16), known.statistics))
            .collect();
        shown.sort_by(|a, b| (b.2.messages, &a.1).cmp(&(a.2.messages, &b.1)));
        let is_present =
            |symbol: &&String| seen.clone().any(|(_, known)| known.symbol.as_ref() == Some(symbol));
        let absent_symbols = options.symbols.iter().filter(|symbol| !is_present(symbol)).cloned().collect();
        let shown_count = if options.symbols.is_empty() { SYMBOLS_SHOWN } else { shown.len() };
        let top = |(id, symbol, _): &(u16, String, SymbolStatistics)| {
            let levels = |side| {
                books
                    .into_iter()
                    .flat_map(move |books| books.levels(InstrumentId(*id), side))
                    .take(options.depth)
            };
            SymbolBook { symbol: symbol.clone(), sides: Side::BOTH.map(|side| levels(side).collect()) }
        };
        let tops = match books {
            Some(_) => shown.iter().take(shown_count).map(top).collect(),
            None => Vec::new(),
        };
        let time = |ns| RecordedTime { ns, calendar: source.calendar };
        FileReport {
            path: path.to_owned(),
            format: source.format,
            depth: source.info.depth,
            messages_read: session.number,
            messages: tape.counts.iter().sum(),
            snapshot_messages: tape.snapshot_count,
            price_decimals: source.info.price_decimals,
            by_type: by_type(source.types, &tape.counts),
            span: tape.span_ns.map(|(first, last)| (time(first), time(last))),
            symbol_count: seen.count(),
            shown_count,
            tops,
            statistics: shown.into_iter().map(|(_, symbol, statistics)| (symbol, statistics)).collect(),
            absent_symbols,
            decode: session.decode.cost(),
            books: session.books.cost(),
            // A file has one format, and the other checksum is still 0.
            checksum: session.itch.get() ^ session.fold.checksum,
            peak_rss_bytes: peak_rss_bytes(),
            elapsed,
            check,
            ended: session.ended,
            contradictions,
            is_end_seen: tape.is_end_seen(),
            reservations,
            exported: tape.exporter.rows(),
            integrity: std::mem::take(&mut tape.integrity),
            schema: None,
            definitions: Vec::new(),
            capture: None,
        }
    }
}

fn by_type(types: Types, counts: &[u64; 256]) -> Vec<TypeCount> {
    let mut list: Vec<TypeCount> = Vec::new();
    for (code, &count) in (0_u8..=255).zip(counts).filter(|(_, count)| **count > 0) {
        let (name, shown) = (types.name(code), types.code(code));
        match list.iter_mut().find(|known| known.code == shown) {
            Some(known) => known.count += count,
            None => list.push(TypeCount { code: shown, name, count }),
        }
    }
    list.sort_by_key(|entry| std::cmp::Reverse(entry.count));
    list
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
        let sum = |rows: fn(&ExportedRows) -> Option<u64>| {
            let all = self.files.iter().filter_map(|file| rows(&file.exported));
            all.reduce(|sum, rows| sum + rows)
        };
        ExportedRows {
            bbo: sum(|rows| rows.bbo),
            trades: sum(|rows| rows.trades),
            depth: sum(|rows| rows.depth),
            orders: sum(|rows| rows.orders),
        }
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

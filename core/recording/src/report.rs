//! The final report of a recording.

use tickpath_book::{BooksById, Level};
use tickpath_types::{InstrumentId, Side};

use crate::Depth;
use crate::captures::CaptureReport;
use crate::integrity::{Criteria, Integrity};
use crate::moment::RecordedTime;
use crate::protocol::RecordedProtocol;
use crate::reference_check::ModelReport;
use crate::replay::{EndReason, Pass, Replay};
use crate::state::{KnownInstrument, RecordingState};
use crate::statistics::SymbolStatistics;

/// Number of symbols in a text report if none are chosen: the most active ones.
pub const SYMBOLS_SHOWN: usize = 5;

/// The count of messages of one type in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeCount {
    /// The letter, digit or number of the type in its format; `?` for an unknown type.
    pub code: String,
    /// Name of the type.
    pub name: &'static str,
    /// Number of messages.
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

/// The reliability of the books of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Nothing contradicts the recording, and no gap is detected.
    Complete,
    /// Nothing contradicts the recording, but it is incomplete: see [`RecordingReport::reservations`].
    Partial,
    /// The recording contradicts itself: see [`RecordingReport::contradictions`].
    Contradicted,
}

impl Reliability {
    /// Name of the value in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reliability::Complete => "complete",
            Reliability::Partial => "partial",
            Reliability::Contradicted => "contradicted",
        }
    }
}

/// The result of the replay of one recording.
#[derive(Clone, Debug)]
pub struct RecordingReport {
    /// Part of the book that the recording covers.
    pub depth: Depth,
    /// Number of messages read, including those before the window.
    pub messages_read: u64,
    /// Number of messages in the selected window of time.
    pub messages: u64,
    /// Number of messages in the window that are parts of snapshots: they built the books, and are excluded
    /// from statistics.
    pub snapshot_messages: u64,
    /// Number of decimals of prices.
    pub price_decimals: u8,
    /// Messages in the window by type, most frequent first.
    pub by_type: Vec<TypeCount>,
    /// Times of the first and last message in the window, snapshots excluded.
    pub span: Option<(RecordedTime, RecordedTime)>,
    /// Number of instruments in the recording.
    pub symbol_count: usize,
    /// Statistics of the chosen symbols, or of all if none were chosen; most active first.
    pub statistics: Vec<(String, SymbolStatistics)>,
    /// Number of entries of `statistics` that a text report shows: the chosen or the most active symbols.
    pub shown_count: usize,
    /// Final books of the chosen symbols, or of the most active ones.
    pub tops: Vec<SymbolBook>,
    /// Chosen symbols that are not in the recording.
    pub absent_symbols: Vec<String>,
    /// Checksum of all fields: [`Digest`](crate::Digest) or [`Checksum`](tickpath_nasdaq::itch50::Checksum).
    pub checksum: u64,
    /// The results of the consistency checks.
    pub integrity: Integrity,
    /// Result of the comparison with the reference model; `None` if none was made.
    pub model: Option<ModelReport>,
    /// The reason why the replay ended before the end of the recording, if it did.
    pub ended: Option<EndReason>,
    /// All contradictions, as text; empty when the result can be trusted.
    pub contradictions: Vec<String>,
    /// True when the feed announced the end of the session's messages; without it, the loss of the last
    /// messages cannot be detected.
    pub is_end_seen: bool,
    /// Reasons, as text, why the books are incomplete or their correctness is unknown.
    pub reservations: Vec<String>,
    /// Channels of the recording, and the capture's unknown packets; `None` without a capture.
    pub capture: Option<CaptureReport>,
}

impl RecordingReport {
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

impl<P: RecordedProtocol> Replay<P> {
    /// Returns the report, after the recording was read to its end or to the end of the selected messages.
    pub fn finish<L>(mut self, pass: &Pass<L>) -> RecordingReport {
        let (info, state, selection) = (self.protocol.info(), &mut self.state, &pass.selection);
        let criteria = Criteria {
            is_full_depth: self.protocol.is_full_depth(),
            is_ordered_by_time: P::IS_ORDERED_BY_TIME,
            has_books: self.pair.books.is_some(),
        };
        let model = self.pair.finish_model(&|instrument| state.name(instrument));
        let books = self.pair.orders();
        state.integrity.orders_left = books.map_or(0, |books| u64::from(books.order_count()));
        state.integrity.unreported = self.pair.books.as_ref().map_or(0, P::unreported);
        let mut contradictions = state.integrity.contradictions(criteria);
        contradictions.extend(model.iter().filter_map(|model| model.difference.clone()));
        let mut reservations: Vec<String> =
            state.integrity.crossed_without_state(criteria).into_iter().collect();
        reservations.extend(coverage(info.depth, pass.ended, criteria.has_books));

        let seen = seen_instruments(state);
        let shown = shown_symbols(state);
        let is_present =
            |symbol: &&String| seen.clone().any(|(_, known)| known.symbol.as_ref() == Some(symbol));
        let absent_symbols = selection.symbols.iter().filter(|symbol| !is_present(symbol)).cloned().collect();
        let shown_count = if selection.symbols.is_empty() { SYMBOLS_SHOWN } else { shown.len() };
        let tops = shown.iter().take(shown_count);
        let tops = tops.filter_map(|(id, symbol, _)| Some(top(books?, *id, symbol, selection.depth)));
        let time = |ns| RecordedTime { ns, calendar: self.calendar };
        RecordingReport {
            depth: info.depth,
            messages_read: self.message_count,
            messages: state.counts.iter().sum(),
            snapshot_messages: state.snapshot_count,
            price_decimals: info.price_decimals,
            by_type: by_type::<P>(&state.counts),
            span: state.span_ns.map(|(first, last)| (time(first), time(last))),
            symbol_count: seen.count(),
            shown_count,
            tops: tops.collect(),
            statistics: shown.into_iter().map(|(_, symbol, statistics)| (symbol, statistics)).collect(),
            absent_symbols,
            checksum: state.checksums.value(),
            model,
            ended: pass.ended,
            contradictions,
            is_end_seen: state.is_end_seen(),
            reservations,
            integrity: std::mem::take(&mut state.integrity),
            capture: None,
        }
    }
}

/// Ids and states of the instruments that have a symbol or messages; skips id 0 (no instrument).
fn seen_instruments(state: &RecordingState) -> impl Iterator<Item = (usize, &KnownInstrument)> + Clone {
    let seen = state.instruments.iter().enumerate().skip(1);
    seen.filter(|(_, known)| known.symbol.is_some() || known.statistics.messages > 0)
}

/// Id, name and statistics of the chosen instruments, by descending number of messages.
fn shown_symbols(state: &RecordingState) -> Vec<(u16, String, SymbolStatistics)> {
    let mut shown: Vec<_> = seen_instruments(state)
        .filter(|(_, known)| known.is_chosen)
        .map(|(id, known)| (id as u16, state.name(id as u16), known.statistics))
        .collect();
    shown.sort_by(|a, b| (b.2.messages, &a.1).cmp(&(a.2.messages, &b.1)));
    shown
}

/// Reasons, as text, why the books are not complete: few levels, an early end of reading, or no books.
fn coverage(depth: Depth, ended: Option<EndReason>, has_books: bool) -> Vec<String> {
    let mut reservations = Vec::new();
    if let (Depth::Partial { levels }, true) = (depth, has_books) {
        let levels =
            levels.map_or("the best levels".to_owned(), |count| format!("the best {count} level(s)"));
        reservations.push(format!("the recording covers {levels} of each side: deeper levels are missing"));
    }
    let part = ended.map(|ended| match ended {
        EndReason::Limit => "up to --limit",
        EndReason::Window => "up to --to",
        EndReason::Stopped => "up to where it was stopped",
    });
    reservations.extend(part.map(|part| format!("the recording was read {part}")));
    if !has_books {
        reservations.push("no books were built: only the messages were checked".to_owned());
    }
    reservations
}

/// Returns the best `depth` levels of each side of one instrument's book.
fn top(books: &impl BooksById, id: u16, symbol: &str, depth: usize) -> SymbolBook {
    let levels = |side| books.levels(InstrumentId(id), side).take(depth).collect();
    SymbolBook { symbol: symbol.to_owned(), sides: Side::BOTH.map(levels) }
}

/// Message types that occurred, most frequent first.
fn by_type<P: RecordedProtocol>(counts: &[u64; 256]) -> Vec<TypeCount> {
    let mut list: Vec<TypeCount> = Vec::new();
    for (code, &count) in (0_u8..=255).zip(counts).filter(|(_, count)| **count > 0) {
        let (name, shown) = match P::type_name(code) {
            Some(name) => (name, P::type_code(code)),
            None => ("Unknown type", "?".to_owned()),
        };
        match list.iter_mut().find(|known| known.code == shown) {
            Some(known) => known.count += count,
            None => list.push(TypeCount { code: shown, name, count }),
        }
    }
    list.sort_by_key(|entry| std::cmp::Reverse(entry.count));
    list
}

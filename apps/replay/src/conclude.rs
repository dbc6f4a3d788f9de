//! The report of a recording, made when all of it was read.

use std::path::Path;

use tickpath_book::BooksById;
use tickpath_capture::Depth;
use tickpath_types::{InstrumentId, Side};

use crate::books::BookPair;
use crate::cost::peak_rss_bytes;
use crate::integrity::Judgement;
use crate::moment::RecordedTime;
use crate::options::SYMBOLS_SHOWN;
use crate::order_book_rows::RowsReport;
use crate::protocol::{RecordedProtocol, Source};
use crate::report::{CheckReport, Ended, FileReport, SymbolBook, TypeCount};
use crate::session::Session;
use crate::statistics::SymbolStatistics;
use crate::tape::{Tape, TapeInstrument};

impl Session<'_> {
    /// The report of a recording that was read as far as it is wanted.
    pub(crate) fn conclude<P: RecordedProtocol>(
        &mut self,
        path: &Path,
        protocol: &P,
        source: Source<'_>,
        mut pair: BookPair<P>,
        rows: Option<RowsReport>,
    ) -> FileReport {
        let elapsed = self.elapsed();
        let judgement = Judgement {
            is_full_depth: protocol.is_full_depth(),
            is_ordered_by_time: P::IS_ORDERED_BY_TIME,
            has_books: pair.books.is_some(),
        };
        let twin = pair.finish_twin(&|instrument| self.tape.name(instrument));
        let books = pair.orders();
        let (options, tape) = (self.options, &mut self.tape);
        tape.state.integrity.orders_left = books.map_or(0, |books| u64::from(books.order_count()));
        let check = CheckReport { twin, rows };
        let mut contradictions = tape.state.integrity.contradictions(judgement);
        contradictions.extend(check.differences().map(str::to_owned));
        let mut reservations: Vec<String> = tape.state.integrity.unjudged(judgement).into_iter().collect();
        reservations.extend(coverage(source.info.depth, self.ended, judgement.has_books));

        let seen = seen_instruments(tape);
        let shown = shown_symbols(tape);
        let is_present =
            |symbol: &&String| seen.clone().any(|(_, known)| known.symbol.as_ref() == Some(symbol));
        let absent_symbols = options.symbols.iter().filter(|symbol| !is_present(symbol)).cloned().collect();
        let shown_count = if options.symbols.is_empty() { SYMBOLS_SHOWN } else { shown.len() };
        let tops = shown.iter().take(shown_count);
        let tops = tops.filter_map(|(id, symbol, _)| Some(top(books?, *id, symbol, options.depth)));
        let time = |ns| RecordedTime { ns, calendar: source.calendar };
        FileReport {
            path: path.to_owned(),
            format: source.format,
            depth: source.info.depth,
            messages_read: self.number,
            messages: tape.state.counts.iter().sum(),
            snapshot_messages: tape.state.snapshot_count,
            price_decimals: source.info.price_decimals,
            by_type: by_type::<P>(&tape.state.counts),
            span: tape.state.span_ns.map(|(first, last)| (time(first), time(last))),
            symbol_count: seen.count(),
            shown_count,
            tops: tops.collect(),
            statistics: shown.into_iter().map(|(_, symbol, statistics)| (symbol, statistics)).collect(),
            absent_symbols,
            decode: tape.state.decode.cost(),
            books: tape.state.books.cost(),
            checksum: tape.state.checksums.value(),
            peak_rss_bytes: peak_rss_bytes(),
            elapsed,
            check,
            ended: self.ended,
            contradictions,
            is_end_seen: tape.is_end_seen(),
            reservations,
            exported: tape.exporter.rows(),
            integrity: std::mem::take(&mut tape.state.integrity),
            schema: None,
            definitions: Vec::new(),
            capture: None,
        }
    }
}

/// The instruments that messages were about, with their numbers. Number 0 is the whole system; an instrument whose symbol
/// no message has is known by its number.
fn seen_instruments<'t>(tape: &'t Tape<'_>) -> impl Iterator<Item = (usize, &'t TapeInstrument)> + Clone {
    let seen = tape.state.instruments.iter().enumerate().skip(1);
    seen.filter(|(_, known)| known.symbol.is_some() || known.statistics.messages > 0)
}

/// Of these the chosen ones with their names, the one with the most messages first.
fn shown_symbols(tape: &Tape<'_>) -> Vec<(u16, String, SymbolStatistics)> {
    let mut shown: Vec<_> = seen_instruments(tape)
        .filter(|(_, known)| known.is_chosen)
        .map(|(id, known)| (id as u16, tape.name(id as u16), known.statistics))
        .collect();
    shown.sort_by(|a, b| (b.2.messages, &a.1).cmp(&(a.2.messages, &b.1)));
    shown
}

/// Parts of the books that a recording does not cover, as text.
fn coverage(depth: Depth, ended: Option<Ended>, has_books: bool) -> Vec<String> {
    let mut reservations = Vec::new();
    if let (Depth::Partial { levels }, true) = (depth, has_books) {
        let levels =
            levels.map_or("the best levels".to_owned(), |count| format!("the best {count} level(s)"));
        reservations.push(format!("the recording covers {levels} of each side: what rests below is missing"));
    }
    let part = ended.map(|ended| match ended {
        Ended::Limit => "up to --limit",
        Ended::Window => "up to --to",
        Ended::Stopped => "up to where it was stopped",
    });
    reservations.extend(part.map(|part| format!("the recording was read {part}")));
    if !has_books {
        reservations.push("no books were built: nothing but the messages was judged".to_owned());
    }
    reservations
}

/// The best levels of one instrument.
fn top(books: &impl BooksById, id: u16, symbol: &str, depth: usize) -> SymbolBook {
    let levels = |side| books.levels(InstrumentId(id), side).take(depth).collect();
    SymbolBook { symbol: symbol.to_owned(), sides: Side::BOTH.map(levels) }
}

/// Types that were counted, most frequent first.
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

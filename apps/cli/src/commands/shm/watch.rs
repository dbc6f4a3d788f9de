//! `tickpath shm watch`.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tickpath_agent::StopSignal;
use tickpath_config::{has_reader, print_stderr, print_stdout, thousands};
use tickpath_shm::{Folder, SegmentName, SegmentReader, ShmError, SymbolName, TimeBase, WriterState};
use tickpath_types::{BookHealth, Nanos, TopOfBook, TradingState};

use super::table::{Colour, Table, paint};
use super::{Place, state_of, time_base};
use crate::commands::json;

/// Refresh interval.
const INTERVAL: Duration = Duration::from_millis(500);
/// Interval at which Ctrl-C is checked.
const STOP_INTERVAL: Duration = Duration::from_millis(20);
/// Number of terminal lines besides the rows: two headers, the number of further rows, and the cursor line.
const OTHER_LINES: usize = 4;
/// Size of a terminal that does not report one, in columns and lines.
const SIZE_DEFAULT: (u16, u16) = (80, 24);

#[derive(clap::Args)]
pub struct Args {
    /// Name of the segment
    name: String,
    #[command(flatten)]
    place: Place,
    /// Show the present quotes and exit
    #[arg(long)]
    once: bool,
    /// Only these symbols, separated by commas
    #[arg(long, value_name = "SYMBOLS", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Maximum number of rows on a terminal [default: as many as fit]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Write the last quotes as JSON at the end, `-` for standard output, which then shows nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A displayed row.
struct Row {
    index: usize,
    name: SymbolName,
    /// The quote last displayed.
    quote: TopOfBook,
    /// Total number of writes to the row, as of the last refresh; `None` before the first.
    writes: Option<u64>,
    /// Number of writes since the previous refresh; at the first refresh, all writes.
    fresh: u64,
}

/// The watched segment, and its displayed rows.
struct WatchedSegment {
    reader: SegmentReader,
    named: u64,
    rows: Vec<Row>,
    updated_at: Instant,
    /// Number of quotes per second written to all rows together since the previous refresh.
    rate: f64,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    json::check(args.json.as_deref())?;
    let stop = StopSignal::on_signals().context("cannot watch for Ctrl-C")?;
    let name = SegmentName::new(&args.name)?;
    let folder = args.place.open_for(&name)?;
    let mut watched = WatchedSegment::open(&folder, &name, &args.symbols)?;
    for symbol in &args.symbols {
        let is_there = watched.rows.iter().any(|row| row.name.as_str() == Some(symbol));
        ensure!(is_there || !args.once, "{name} has no symbol {symbol}: see tickpath shm watch {name}");
        if !is_there {
            print_stderr(format_args!("{name} has no symbol {symbol} yet: it is shown once it exists"));
        }
    }
    let is_quiet = args.json.as_deref() == Some(Path::new("-"));
    let mut screen =
        Screen { is_terminal: stdout().is_terminal() && !args.once, lines: 0, is_end_shown: false };
    loop {
        watched.update(args);
        if !is_quiet {
            screen.show(&watched, args)?;
        }
        // Check here whether the reader of a pipe has ended: after the writer's end nothing is printed, so no
        // print fails.
        if args.once || !has_reader() || wait(&stop) {
            break;
        }
        if watched.follow(&folder, &name, &args.symbols)? {
            // Print the next table below the line about the new writer; do not overwrite the old table.
            screen.lines = 0;
        }
    }
    if let Some(json) = &args.json {
        json::write(json, &watched.report(&name).to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the next refresh; true when the program is to stop.
fn wait(stop: &StopSignal) -> bool {
    let start = Instant::now();
    while start.elapsed() < INTERVAL && !stop.is_stopped() {
        thread::sleep(STOP_INTERVAL);
    }
    stop.is_stopped()
}

impl WatchedSegment {
    fn open(folder: &Folder, name: &SegmentName, symbols: &[String]) -> Result<WatchedSegment, ShmError> {
        let reader = SegmentReader::open(folder, name)?;
        let mut watched =
            WatchedSegment { reader, named: 0, rows: Vec::new(), updated_at: Instant::now(), rate: 0.0 };
        watched.read_names(symbols);
        Ok(watched)
    }

    fn read_names(&mut self, symbols: &[String]) {
        // Read the count before the names: it then differs at the next check if names were added meanwhile.
        self.named = self.reader.named();
        let is_selected =
            |name: &SymbolName| symbols.is_empty() || symbols.iter().any(|it| name.as_str() == Some(it));
        let old = std::mem::take(&mut self.rows);
        let mut old = old.into_iter().peekable();
        for (index, name) in self.reader.symbols().filter(|(_, name)| is_selected(name)) {
            while old.next_if(|row| row.index < index).is_some() {}
            let known = old.next_if(|row| row.index == index);
            let new = Row { index, name, quote: TopOfBook::default(), writes: None, fresh: 0 };
            self.rows.push(known.map_or(new, |row| Row { name, ..row }));
        }
    }

    /// Switches to the new segment if the writer was restarted; returns whether it did. Fails if the file of
    /// the present segment was truncated.
    fn follow(&mut self, folder: &Folder, name: &SegmentName, symbols: &[String]) -> anyhow::Result<bool> {
        ensure!(self.reader.is_whole(), "{} is truncated: restart its writer", self.reader.path().display());
        if !self.reader.is_replaced() {
            return Ok(false);
        }
        match WatchedSegment::open(folder, name, symbols) {
            Ok(new) => {
                let generation = new.reader.header().generation;
                print_stderr(format_args!("the writer was restarted: generation {generation}"));
                *self = new;
                Ok(true)
            }
            // The segment was reclaimed, and may be created again.
            Err(ShmError::Missing { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn update(&mut self, args: &Args) {
        if self.reader.named() != self.named {
            self.read_names(&args.symbols);
        }
        let mut fresh = 0;
        for row in &mut self.rows {
            let Some(entry) = self.reader.entry(row.index) else { continue };
            let writes = entry.writes();
            // If the writer is changing the row, keep the previous quote.
            if let Ok(quote) = entry.try_read() {
                row.quote = quote;
            }
            row.fresh = writes.saturating_sub(row.writes.unwrap_or(0));
            fresh += row.writes.map_or(0, |_| row.fresh);
            row.writes = Some(writes);
        }
        let seconds = self.updated_at.elapsed().as_secs_f64();
        self.rate = if seconds > 0.01 { fresh as f64 / seconds } else { 0.0 };
        self.updated_at = Instant::now();
    }

    /// Returns whether the writer has ended, normally or not.
    fn is_ended(&self) -> bool {
        self.reader.writer_state() != WriterState::Alive
    }

    fn report(&self, name: &SegmentName) -> Value {
        let (state, _) = state_of(self.reader.writer_state(), self.reader.heartbeat());
        let quotes: Vec<_> = self.rows.iter().map(quote_json).collect();
        json!({
            "name": name.as_str(),
            "generation": self.reader.header().generation,
            "writer": state,
            "time_base": time_base(self.reader.header().time_base()),
            "quotes": quotes,
        })
    }
}

fn quote_json(row: &Row) -> Value {
    let quote = &row.quote;
    let side = |side: Option<(tickpath_types::Price, tickpath_types::Qty)>| {
        side.map(|(price, qty)| json!({ "price": price.to_string(), "qty": qty.0 }))
    };
    json!({
        "row": row.index,
        "symbol": row.name.as_str(),
        "bid": side(quote.bid()),
        "ask": side(quote.ask()),
        "last": side(quote.last()),
        "ts_event_ns": quote.ts_event,
        "health": health(quote),
        "suspect_reason": quote.suspect_reason().map(|reason| reason.as_str()),
        "trading": trading(quote),
        "writes": row.writes.unwrap_or(0),
    })
}

const fn health(quote: &TopOfBook) -> &'static str {
    quote.health().as_str()
}

const fn trading(quote: &TopOfBook) -> &'static str {
    match quote.trading_state() {
        Some(TradingState::Halted) => "halted",
        Some(TradingState::QuotationOnly) => "quotes",
        Some(TradingState::Paused) => "paused",
        Some(TradingState::Trading) => "trading",
        None => "-",
    }
}

/// The display of the watched rows on standard output.
struct Screen {
    is_terminal: bool,
    /// Number of lines displayed now.
    lines: usize,
    /// True if the display shows that the writer has ended.
    is_end_shown: bool,
}

impl Screen {
    /// On a terminal, overwrites the previous display; elsewhere, prints each changed row as a line.
    fn show(&mut self, watched: &WatchedSegment, args: &Args) -> anyhow::Result<()> {
        let is_first = self.lines == 0;
        let rows = watched.rows.iter();
        let is_ended = watched.is_ended();
        let is_new_end = is_ended && !self.is_end_shown;
        self.is_end_shown = is_ended;
        if !self.is_terminal && !is_first {
            rows.filter(|row| row.fresh > 0).try_for_each(|row| print_stdout(plain_line(watched, row)))?;
            if is_new_end {
                print_stdout(head(watched, args, false))?;
            }
            return Ok(());
        }
        let (width, limit) =
            if self.is_terminal { terminal_size(args.limit) } else { (usize::MAX, usize::MAX) };
        let mut table = Table::new(&["SYMBOL", "STATE", "QTY", "BID", "ASK", "QTY", "LAST", "TIME"]);
        rows.take(limit).for_each(|row| table.row(colour(&row.quote), cells(watched, row)));
        let left = watched.rows.len().saturating_sub(limit);
        let mut text =
            format!("{}\n{}", head(watched, args, self.is_terminal), table.text(self.is_terminal, width));
        if left > 0 {
            text.push_str(&format!("\n{} more: --symbols chooses", thousands(left as u64)));
        }
        let before = std::mem::replace(&mut self.lines, text.lines().count());
        if !self.is_terminal {
            return Ok(print_stdout(text)?);
        }
        let up = if is_first { String::new() } else { format!("\x1b[{before}A\x1b[J") };
        // Turn line wrapping off: a wrapped header takes more lines than the one that is counted.
        Ok(print_stdout(format_args!("{up}\x1b[?7l{text}\x1b[?7h"))?)
    }
}

/// Returns the terminal's width in columns, and the number of table rows to show: at most `limit`, and only
/// as many as fit, because rows that scroll away cannot be overwritten.
fn terminal_size(limit: Option<usize>) -> (usize, usize) {
    let (width, height) = ratatui::crossterm::terminal::size().unwrap_or(SIZE_DEFAULT);
    let rows = usize::from(height).saturating_sub(OTHER_LINES).max(1);
    (usize::from(width), limit.unwrap_or(usize::MAX).min(rows))
}

fn head(watched: &WatchedSegment, args: &Args, is_terminal: bool) -> String {
    let (state, colour) = state_of(watched.reader.writer_state(), watched.reader.heartbeat());
    let state = if is_terminal { paint(state, colour) } else { state.to_owned() };
    format!(
        "{}: writer {state}{}; {} symbols; {} quotes/s",
        args.name,
        if watched.is_ended() { ", these are its last quotes" } else { "" },
        thousands(watched.rows.len() as u64),
        thousands(watched.rate as u64),
    )
}

/// Formats the health of the book, and the trading state unless it is "trading" or unknown.
fn state(quote: &TopOfBook) -> String {
    match trading(quote) {
        "trading" | "-" => health(quote).to_owned(),
        other => format!("{} {other}", health(quote)),
    }
}

const fn colour(quote: &TopOfBook) -> Colour {
    match quote.health() {
        BookHealth::Live => Colour::Green,
        BookHealth::Recovering => Colour::Yellow,
        BookHealth::Stale | BookHealth::Suspect => Colour::Red,
    }
}

fn cells(watched: &WatchedSegment, row: &Row) -> Vec<String> {
    let quote = &row.quote;
    let price = |side: Option<(tickpath_types::Price, tickpath_types::Qty)>| {
        side.map_or_else(|| "-".to_owned(), |(price, _)| price.to_string())
    };
    let qty = |side: Option<(tickpath_types::Price, tickpath_types::Qty)>| {
        side.map_or_else(|| "-".to_owned(), |(_, qty)| thousands(qty.0))
    };
    let mut cells = vec![
        row.name.as_str().unwrap_or_default().to_owned(),
        state(quote),
        qty(quote.bid()),
        price(quote.bid()),
        price(quote.ask()),
        qty(quote.ask()),
        price(quote.last()),
        clock(watched.reader.header().time_base(), quote.ts_event),
    ];
    // Add the reason of a suspect quote only if there is one, so that the other lines stay short.
    cells.extend(quote.suspect_reason().map(|reason| reason.as_str().to_owned()));
    cells
}

fn plain_line(watched: &WatchedSegment, row: &Row) -> String {
    cells(watched, row).join(" ")
}

/// Formats the time of day: UTC with a `Z` if the segment has Unix time, otherwise the venue's time.
fn clock(base: TimeBase, ns: u64) -> String {
    let of_day = Nanos(ns).time_of_day().0;
    let (seconds, micros) = (of_day / 1_000_000_000, of_day / 1_000 % 1_000_000);
    let zone = if base == TimeBase::Unix { "Z" } else { "" };
    format!("{:02}:{:02}:{:02}.{micros:06}{zone}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_day() {
        assert_eq!(clock(TimeBase::Midnight, 34_200_000_001_000), "09:30:00.000001");
        assert_eq!(clock(TimeBase::Unix, 1_700_000_000_123_456_000), "22:13:20.123456Z");
        assert_eq!(clock(TimeBase::Unix, u64::MAX), "23:34:33.709551Z");
    }
}

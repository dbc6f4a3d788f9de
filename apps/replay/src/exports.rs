//! Exports best prices, trades, depth and order changes to tables.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use tickpath_book::{BooksById, Level};
use tickpath_capture::table::{Cell, Column, ColumnKind, TableError, TableWriter};
use tickpath_recording::{Bbo, Calendar, MessageView, PRICE_DECIMALS, Tables, TradeInfo};
use tickpath_types::{Decimal, InstrumentId, MarketUpdate, Price, Side, UpdateKind};

use crate::options::Exports;

/// The leading columns of all tables. Only tables of several files have `file`. Only tables of captures have
/// `recording`, since a capture may have several recordings.
const HEAD: [&str; 5] = ["file", "recording", "ts_ns", "message", "symbol"];
/// The columns of each table after those of `HEAD`.
const COLUMNS: [&[&str]; 4] = [
    &["bid_price", "bid_qty", "ask_price", "ask_qty"],
    &["price", "qty", "aggressor", "kind", "order_id"],
    &["side", "level", "price", "qty", "orders"],
    &["event", "order_id", "replaced_id", "side", "price", "qty", "kind"],
];
/// Number of columns of the widest table.
const COLUMNS_MAX: usize = HEAD.len() + COLUMNS[ORDERS].len();

/// Indices of the tables in `COLUMNS` and in `Exporter`.
const BBO: usize = 0;
const TRADES: usize = 1;
const DEPTH: usize = 2;
const ORDERS: usize = 3;

/// Writes the requested tables.
///
/// The rows of several files follow each other file by file, each row with the name of its file. The
/// recordings of a capture are numbered.
#[derive(Default)]
pub(crate) struct Exporter {
    tables: [Option<TableWriter>; 4],
    level_count: usize,
    /// Depth levels written last, bids and asks, by recording of the current file and by instrument.
    shown: FxHashMap<(usize, InstrumentId), [Vec<Level>; 2]>,
    head: Head,
    /// Number of rows of each recording of the current file, by table.
    rows: Vec<[u64; 4]>,
    /// The error of the first row that could not be written; no rows are written after it.
    failure: Option<TableError>,
}

/// Properties of all input files of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// True if a file is a capture, which may have several recordings.
    pub(crate) has_captures: bool,
    /// True if the day of every file is known, so that all times are UTC.
    pub(crate) is_dated: bool,
}

/// The values of the `HEAD` columns in the following rows, and the units of times and prices.
#[derive(Default)]
struct Head {
    names_files: bool,
    numbers_recordings: bool,
    file: String,
    is_capture: bool,
    /// Index of the current recording, counted from 0.
    recording: usize,
    /// Nanoseconds from 1970-01-01 UTC to the origin of the current recording's times, and the decimals of
    /// its prices.
    epoch_offset_ns: u64,
    price_decimals: u8,
}

impl Head {
    /// Writes a row about a message.
    fn row(
        &self,
        writer: &mut TableWriter,
        view: &MessageView<'_>,
        symbol: &str,
        cells: &[Cell<'_>],
    ) -> Result<(), TableError> {
        let mut row = [Cell::Empty; COLUMNS_MAX];
        let mut len = 0;
        let recording = if self.is_capture { Cell::Integer(self.recording as u64 + 1) } else { Cell::Empty };
        let ts_ns = Cell::Integer(view.ts_ns.saturating_add(self.epoch_offset_ns));
        let head = [(self.names_files, Cell::Text(&self.file)), (self.numbers_recordings, recording)];
        let head = head.into_iter().filter_map(|(is_there, cell)| is_there.then_some(cell));
        let common = [ts_ns, Cell::Integer(view.number), Cell::Text(symbol)];
        for cell in head.chain(common).chain(cells.iter().copied()) {
            row[len] = cell;
            len += 1;
        }
        writer.row(&row[..len])
    }

    /// Returns the cell of a price.
    fn price(&self, price: Price) -> Cell<'static> {
        Cell::price(Decimal { units: price.0, decimals: self.price_decimals })
    }
}

impl Exporter {
    /// Creates the requested tables for files with these properties; rows name their file if `names_files`.
    pub(crate) fn create(
        exports: &Exports,
        level_count: usize,
        names_files: bool,
        contents: Contents,
    ) -> Result<Exporter, TableError> {
        let Contents { has_captures: numbers_recordings, is_dated: is_utc } = contents;
        let skipped = [(names_files, HEAD[0]), (numbers_recordings, HEAD[1])];
        let is_there = |name: &&&str| !skipped.contains(&(false, name));
        let table = |path: &Option<PathBuf>, table: usize| {
            let names = HEAD.iter().filter(is_there).chain(COLUMNS[table]);
            let columns = names.map(|name| {
                let column = Column::known(name).expect("each exported column is known");
                let kind = match column.kind {
                    ColumnKind::Time { .. } => ColumnKind::Time { is_utc },
                    kind => kind,
                };
                Column { kind, ..column }
            });
            let columns: Vec<Column> = columns.collect();
            path.as_deref().map(|path| TableWriter::create(path, &columns)).transpose()
        };
        Ok(Exporter {
            tables: [
                table(&exports.bbo, BBO)?,
                table(&exports.trades, TRADES)?,
                table(&exports.depth, DEPTH)?,
                table(&exports.orders, ORDERS)?,
            ],
            level_count,
            head: Head { names_files, numbers_recordings, price_decimals: PRICE_DECIMALS, ..Head::default() },
            ..Exporter::default()
        })
    }

    /// Sets the file of the following rows.
    pub(crate) fn start_file(&mut self, path: &Path, is_capture: bool) {
        self.head.file = path.display().to_string();
        self.head.is_capture = is_capture;
        self.shown.clear();
        self.rows.clear();
    }

    /// Sets the recording of the following rows, counted from 0 in the file.
    pub(crate) fn begin_recording(&mut self, recording: usize, calendar: &Calendar, price_decimals: u8) {
        self.head.recording = recording;
        self.head.epoch_offset_ns = calendar.epoch_offset_ns();
        self.head.price_decimals = price_decimals;
        self.rows.resize(self.rows.len().max(recording + 1), [0; 4]);
    }

    /// Returns the number of rows of a recording of the current file.
    pub(crate) fn rows(&self, recording: usize) -> ExportedRows {
        let rows = |table: usize| {
            let rows = self.rows.get(recording)?;
            self.tables[table].as_ref().map(|_| rows[table])
        };
        [BBO, TRADES, DEPTH, ORDERS].map(rows).into()
    }

    /// True if the depth table is requested: the books must then be read after every message.
    pub(crate) const fn wants_depth(&self) -> bool {
        self.tables[DEPTH].is_some()
    }

    /// Writes a row about a message.
    fn write(&mut self, table: usize, view: &MessageView<'_>, symbol: &str, cells: &[Cell<'_>]) {
        if let (Some(writer), None) = (&mut self.tables[table], &self.failure) {
            self.failure = self.head.row(writer, view, symbol, cells).err();
            self.rows[self.head.recording][table] += 1;
        }
    }

    /// Returns the error of the first row that could not be written, if any.
    pub(crate) fn check(&mut self) -> Result<(), TableError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Writes the effect of a message on an order, if any.
    pub(crate) fn order(&mut self, view: &MessageView<'_>, symbol: &str, update: Option<&MarketUpdate>) {
        if self.tables[ORDERS].is_none() {
            return;
        }
        let Some(event) = OrderEvent::of(view, update) else { return };
        let number = |number: u64| if number == 0 { Cell::Empty } else { Cell::Integer(number) };
        let kind = view.trade.filter(|_| event.name == "execute").map(|trade| trade.kind);
        let cells = [
            Cell::Text(event.name),
            number(event.order_id),
            number(view.order.replaced),
            side(event.side),
            event.price.map_or(Cell::Empty, |price| self.head.price(price)),
            Cell::Integer(event.qty),
            kind.map_or(Cell::Empty, Cell::Text),
        ];
        self.write(ORDERS, view, symbol, &cells);
    }

    /// Writes the best prices after a message.
    pub(crate) fn bbo(&mut self, view: &MessageView<'_>, symbol: &str, bbo: Bbo) {
        if self.tables[BBO].is_none() {
            return;
        }
        let cells = |(price, qty): (i64, u64)| match qty {
            0 => (Cell::Empty, Cell::Empty),
            _ => (self.head.price(Price(price)), Cell::Integer(qty)),
        };
        let ((bid_price, bid_qty), (ask_price, ask_qty)) = (cells(bbo.bid), cells(bbo.ask));
        self.write(BBO, view, symbol, &[bid_price, bid_qty, ask_price, ask_qty]);
    }

    /// Writes a trade.
    pub(crate) fn trade(&mut self, view: &MessageView<'_>, symbol: &str, trade: &TradeInfo) {
        if self.tables[TRADES].is_none() {
            return;
        }
        let cells = [
            trade.price.map_or(Cell::Empty, |price| self.head.price(price)),
            Cell::Integer(trade.qty.0),
            side(trade.aggressor),
            Cell::Text(trade.kind),
            if trade.order_id == 0 { Cell::Empty } else { Cell::Integer(trade.order_id) },
        ];
        self.write(TRADES, view, symbol, &cells);
    }

    /// Writes the levels of one instrument that changed since they were written last.
    pub(crate) fn depth(
        &mut self,
        view: &MessageView<'_>,
        symbol: &str,
        instrument: InstrumentId,
        books: &impl BooksById,
    ) {
        let place = (self.head.recording, instrument);
        let mut shown = self.shown.remove(&place).unwrap_or_default();
        for (side, name) in [(Side::Buy, "bid"), (Side::Sell, "ask")] {
            let shown = &mut shown[side.index()];
            let mut levels = books.levels(instrument, side);
            for rank in 0..self.level_count {
                let level = levels.next();
                if level == shown.get(rank).copied() {
                    continue;
                }
                match level {
                    Some(level) if rank < shown.len() => shown[rank] = level,
                    Some(level) => shown.push(level),
                    None => {}
                }
                let cells = [
                    Cell::Text(name),
                    Cell::Integer(rank as u64 + 1),
                    level.map_or(Cell::Empty, |level| self.head.price(level.price)),
                    Cell::Integer(level.map_or(0, |level| level.qty.0)),
                    Cell::Integer(level.map_or(0, |level| u64::from(level.order_count))),
                ];
                self.write(DEPTH, view, symbol, &cells);
            }
            shown.truncate(books.levels(instrument, side).take(self.level_count).count());
        }
        self.shown.insert(place, shown);
    }

    /// Completes all tables; after an error, incomplete tables are removed.
    pub(crate) fn finish(mut self) -> Result<(), TableError> {
        self.check()?;
        for table in self.tables.into_iter().flatten() {
            table.finish()?;
        }
        Ok(())
    }
}

/// The effect of a message on an order.
struct OrderEvent {
    name: &'static str,
    order_id: u64,
    side: Option<Side>,
    price: Option<Price>,
    /// The quantity that rests after an add or a replacement; otherwise the removed quantity.
    qty: u64,
}

impl OrderEvent {
    fn of(view: &MessageView<'_>, update: Option<&MarketUpdate>) -> Option<OrderEvent> {
        if let Some(update) = update.filter(|update| update.order_id != 0) {
            let name = match update.kind()? {
                UpdateKind::Add if view.is_snapshot => "snapshot",
                UpdateKind::Add => "add",
                UpdateKind::Delete => "delete",
                UpdateKind::Reduce => "reduce",
                UpdateKind::Replace => "replace",
                UpdateKind::Trade => "execute",
                _ => return None,
            };
            let (order_id, price) = (update.order_id, Some(Price(update.price)));
            return Some(OrderEvent { name, order_id, side: update.side(), price, qty: update.qty });
        }
        // An execution without a book update: a separate record reduces the order.
        let trade =
            view.trade.filter(|trade| view.order.is_execution && !trade.counts && trade.order_id != 0)?;
        let side = trade.aggressor.map(|side| side.opposite());
        Some(OrderEvent {
            name: "execute",
            order_id: trade.order_id,
            side,
            price: trade.price,
            qty: trade.qty.0,
        })
    }
}

/// Number of exported rows; `None` for a table that was not requested.
pub type ExportedRows = Tables<Option<u64>>;

/// Returns the cell of a side; empty if unknown.
fn side(side: Option<Side>) -> Cell<'static> {
    side.map_or(Cell::Empty, |side| Cell::Text(if side == Side::Buy { "buy" } else { "sell" }))
}

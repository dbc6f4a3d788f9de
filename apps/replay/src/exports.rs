//! Best prices, trades, depth and changes of orders into tables.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tickpath_book::{BooksById, Level};
use tickpath_capture::PRICE_DECIMALS;
use tickpath_capture::table::{Cell, Column, ColumnKind, TableError, TableWriter};
use tickpath_types::{Decimal, InstrumentId, MarketUpdate, Price, Side, UpdateKind};

use crate::moment::Calendar;
use crate::options::Exports;
use crate::seen::{Bbo, Seen, SeenTrade};

/// The first column of a table of several files, ...
const FILE: Column = Column::new("file", ColumnKind::Text);
/// ... and that of a table of captures, which may have several recordings.
const RECORDING: Column = Column::new("recording", ColumnKind::Integer);
/// When; a table says whether all of its times are UTC.
const TIME: Column = Column::new("ts_ns", ColumnKind::Time { is_utc: false });
/// Columns of the widest table, with those two.
const COLUMNS_MAX: usize = 2 + ORDER_COLUMNS.len();

const BBO_COLUMNS: [Column; 7] = [
    TIME,
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("bid_price", ColumnKind::Price),
    Column::new("bid_qty", ColumnKind::Integer),
    Column::new("ask_price", ColumnKind::Price),
    Column::new("ask_qty", ColumnKind::Integer),
];

const TRADE_COLUMNS: [Column; 8] = [
    TIME,
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("price", ColumnKind::Price),
    Column::new("qty", ColumnKind::Integer),
    Column::new("aggressor", ColumnKind::Text),
    Column::new("kind", ColumnKind::Text),
    Column::new("order_id", ColumnKind::Integer),
];

const DEPTH_COLUMNS: [Column; 8] = [
    TIME,
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("side", ColumnKind::Text),
    Column::new("level", ColumnKind::Integer),
    Column::new("price", ColumnKind::Price),
    Column::new("qty", ColumnKind::Integer),
    Column::new("orders", ColumnKind::Integer),
];

const ORDER_COLUMNS: [Column; 10] = [
    TIME,
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("event", ColumnKind::Text),
    Column::new("order_id", ColumnKind::Integer),
    Column::new("replaced_id", ColumnKind::Integer),
    Column::new("side", ColumnKind::Text),
    Column::new("price", ColumnKind::Price),
    Column::new("qty", ColumnKind::Integer),
    Column::new("kind", ColumnKind::Text),
];

/// The levels that were written last, per instrument and side.
#[derive(Default)]
struct Shown {
    by_instrument: Vec<[Vec<Level>; 2]>,
}

/// The tables that were asked for.
///
/// The rows of several files stand one file after the other, each row with the name of its file; the recordings of a
/// capture are numbered.
#[derive(Default)]
pub(crate) struct Exporter {
    bbo: Option<TableWriter>,
    trades: Option<TableWriter>,
    depth: Option<TableWriter>,
    orders: Option<TableWriter>,
    level_count: usize,
    /// By recording of the file at hand.
    shown: Vec<Shown>,
    /// Of the recording at hand: what makes its times count from 1970-01-01 UTC, and decimals of the units of its prices.
    epoch_offset_ns: u64,
    price_decimals: u8,
    head: Head,
    /// Rows of the files before.
    before: ExportedRows,
}

/// The kinds of the files that a table is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// One of them is a capture, which may have several recordings.
    pub(crate) has_captures: bool,
    /// The day of every file is known, so that all times are UTC.
    pub(crate) is_dated: bool,
}

/// What the rows that come begin with.
#[derive(Default)]
struct Head {
    names_files: bool,
    numbers_recordings: bool,
    file: String,
    /// Counted from 0; `None` of a file that is no capture.
    recording: Option<usize>,
}

impl Head {
    fn columns(&self) -> impl Iterator<Item = Column> {
        let columns = [(self.names_files, FILE), (self.numbers_recordings, RECORDING)];
        columns.into_iter().filter_map(|(is_there, column)| is_there.then_some(column))
    }

    /// Writes a row.
    fn write(&self, table: &mut TableWriter, cells: &[Cell<'_>]) -> Result<(), TableError> {
        let recording = self.recording.map_or(Cell::Empty, |index| Cell::Integer(index as u64 + 1));
        let head = [(self.names_files, Cell::Text(&self.file)), (self.numbers_recordings, recording)];
        let mut row = [Cell::Empty; COLUMNS_MAX];
        let mut len = 0;
        for (_, cell) in head.into_iter().filter(|(is_there, _)| *is_there) {
            row[len] = cell;
            len += 1;
        }
        row[len..len + cells.len()].copy_from_slice(cells);
        table.row(&row[..len + cells.len()])
    }
}

impl Exporter {
    /// Starts the tables of files with such contents; rows name their file when `names_files`.
    pub(crate) fn create(
        exports: &Exports,
        level_count: usize,
        names_files: bool,
        contents: Contents,
    ) -> Result<Exporter, TableError> {
        let Contents { has_captures: numbers_recordings, is_dated: is_utc } = contents;
        let head = Head { names_files, numbers_recordings, ..Head::default() };
        let table = |path: &Option<PathBuf>, columns: &[Column]| {
            let typed = columns.iter().map(|column| match column.kind {
                ColumnKind::Time { .. } => Column::new(column.name, ColumnKind::Time { is_utc }),
                _ => *column,
            });
            let columns: Vec<Column> = head.columns().chain(typed).collect();
            path.as_deref().map(|path| TableWriter::create(path, &columns)).transpose()
        };
        Ok(Exporter {
            bbo: table(&exports.bbo, &BBO_COLUMNS)?,
            trades: table(&exports.trades, &TRADE_COLUMNS)?,
            depth: table(&exports.depth, &DEPTH_COLUMNS)?,
            orders: table(&exports.orders, &ORDER_COLUMNS)?,
            level_count,
            price_decimals: PRICE_DECIMALS,
            head,
            ..Exporter::default()
        })
    }

    /// The rows that come are of this file.
    pub(crate) fn start_file(&mut self, path: &Path) {
        self.head.file = path.display().to_string();
        self.head.recording = None;
        (self.epoch_offset_ns, self.price_decimals) = (0, PRICE_DECIMALS);
        self.shown.clear();
        self.before = self.all_rows();
    }

    /// The rows that come are of this recording of a capture, counted from 0.
    pub(crate) const fn go_to(&mut self, recording: usize) {
        self.head.recording = Some(recording);
    }

    /// Times of the recording at hand are these.
    pub(crate) fn count_from(&mut self, calendar: &Calendar) {
        self.epoch_offset_ns = calendar.epoch_offset_ns();
    }

    /// Sets the decimals of the units of prices of the file at hand.
    pub(crate) const fn set_price_decimals(&mut self, decimals: u8) {
        self.price_decimals = decimals;
    }

    /// Rows of the file that was started last.
    pub(crate) fn rows(&self) -> ExportedRows {
        self.all_rows().since(&self.before)
    }

    fn all_rows(&self) -> ExportedRows {
        let rows = |table: &Option<TableWriter>| table.as_ref().map(TableWriter::row_count);
        ExportedRows {
            bbo: rows(&self.bbo),
            trades: rows(&self.trades),
            depth: rows(&self.depth),
            orders: rows(&self.orders),
        }
    }

    /// True when the books are looked at after every single message.
    pub(crate) const fn wants_depth(&self) -> bool {
        self.depth.is_some()
    }

    /// True when changes of orders are wanted.
    pub(crate) const fn wants_orders(&self) -> bool {
        self.orders.is_some()
    }

    /// Writes what a message did to an order, if it did anything.
    pub(crate) fn order(
        &mut self,
        seen: &Seen<'_>,
        symbol: &str,
        update: Option<&MarketUpdate>,
    ) -> Result<(), TableError> {
        let Some(table) = &mut self.orders else { return Ok(()) };
        let Some(event) = OrderEvent::of(seen, update) else { return Ok(()) };
        let number = |number: u64| if number == 0 { Cell::Empty } else { Cell::Integer(number) };
        let price = prices(self.price_decimals);
        let row = [
            Cell::Integer(seen.ts_ns.saturating_add(self.epoch_offset_ns)),
            Cell::Integer(seen.number),
            Cell::Text(symbol),
            Cell::Text(event.name),
            number(event.order_id),
            number(seen.order.replaced),
            event.side.map_or(Cell::Empty, |side| Cell::Text(side_name(side))),
            event.price.map_or(Cell::Empty, price),
            Cell::Integer(event.qty),
            seen.trade
                .filter(|_| event.name == "execute")
                .map_or(Cell::Empty, |trade| Cell::Text(trade.kind)),
        ];
        self.head.write(table, &row)
    }

    pub(crate) fn bbo(&mut self, ts_ns: u64, number: u64, symbol: &str, bbo: Bbo) -> Result<(), TableError> {
        let Some(table) = &mut self.bbo else { return Ok(()) };
        let side = |(price, qty): (i64, u64)| match qty {
            0 => (Cell::Empty, Cell::Empty),
            _ => (prices(self.price_decimals)(Price(price)), Cell::Integer(qty)),
        };
        let ts_ns = ts_ns.saturating_add(self.epoch_offset_ns);
        let ((bid_price, bid_qty), (ask_price, ask_qty)) = (side(bbo.bid), side(bbo.ask));
        let (time, message) = (Cell::Integer(ts_ns), Cell::Integer(number));
        let row = [time, message, Cell::Text(symbol), bid_price, bid_qty, ask_price, ask_qty];
        self.head.write(table, &row)
    }

    pub(crate) fn trade(
        &mut self,
        seen: &Seen<'_>,
        symbol: &str,
        trade: &SeenTrade,
    ) -> Result<(), TableError> {
        let Some(table) = &mut self.trades else { return Ok(()) };
        let row = [
            Cell::Integer(seen.ts_ns.saturating_add(self.epoch_offset_ns)),
            Cell::Integer(seen.number),
            Cell::Text(symbol),
            trade.price.map_or(Cell::Empty, prices(self.price_decimals)),
            Cell::Integer(trade.qty.0),
            trade.aggressor.map_or(Cell::Empty, |side| Cell::Text(side_name(side))),
            Cell::Text(trade.kind),
            if trade.order_id == 0 { Cell::Empty } else { Cell::Integer(trade.order_id) },
        ];
        self.head.write(table, &row)
    }

    /// Writes the levels of one instrument that are not as they were last.
    pub(crate) fn depth(
        &mut self,
        ts_ns: u64,
        number: u64,
        symbol: &str,
        instrument: InstrumentId,
        books: &impl BooksById,
    ) -> Result<(), TableError> {
        let Some(table) = &mut self.depth else { return Ok(()) };
        let (ts_ns, price) = (ts_ns.saturating_add(self.epoch_offset_ns), prices(self.price_decimals));
        let (recording, index) = (self.head.recording.unwrap_or_default(), usize::from(instrument.0));
        if self.shown.len() <= recording {
            self.shown.resize_with(recording + 1, Shown::default);
        }
        let shown = &mut self.shown[recording].by_instrument;
        if shown.len() <= index {
            shown.resize_with(index + 1, Default::default);
        }
        for side in Side::BOTH {
            let shown = &mut shown[index][side.index()];
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
                let row = [
                    Cell::Integer(ts_ns),
                    Cell::Integer(number),
                    Cell::Text(symbol),
                    Cell::Text(if side == Side::Buy { "bid" } else { "ask" }),
                    Cell::Integer(rank as u64 + 1),
                    level.map_or(Cell::Empty, |level| price(level.price)),
                    Cell::Integer(level.map_or(0, |level| level.qty.0)),
                    Cell::Integer(level.map_or(0, |level| u64::from(level.order_count))),
                ];
                self.head.write(table, &row)?;
            }
            let left = books.levels(instrument, side).take(self.level_count).count();
            shown.truncate(left);
        }
        Ok(())
    }

    /// Completes all tables; without it nothing is left of them.
    pub(crate) fn finish(self) -> Result<(), TableError> {
        for table in [self.bbo, self.trades, self.depth, self.orders].into_iter().flatten() {
            table.finish()?;
        }
        Ok(())
    }
}

/// Cells of prices in units of 10^-`decimals`.
fn prices(decimals: u8) -> impl Fn(Price) -> Cell<'static> {
    move |price| Cell::price(Decimal { units: price.0, decimals })
}

/// What a message did to an order.
struct OrderEvent {
    name: &'static str,
    order_id: u64,
    side: Option<Side>,
    price: Option<Price>,
    /// Of an add or a replacement what rests then, of the others what went away.
    qty: u64,
}

impl OrderEvent {
    fn of(seen: &Seen<'_>, update: Option<&MarketUpdate>) -> Option<OrderEvent> {
        if let Some(update) = update.filter(|update| update.order_id != 0) {
            let name = match update.kind()? {
                UpdateKind::Add if seen.is_snapshot => "snapshot",
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
        // An execution whose outcome another record reports once more.
        let trade =
            seen.trade.filter(|trade| seen.order.is_execution && !trade.counts && trade.order_id != 0)?;
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

/// Rows that were exported; `None` for a table that was not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportedRows {
    /// Changes of best prices.
    pub bbo: Option<u64>,
    /// Trades.
    pub trades: Option<u64>,
    /// Changes of levels.
    pub depth: Option<u64>,
    /// Changes of orders.
    pub orders: Option<u64>,
}

impl ExportedRows {
    /// Adds those of another part.
    pub(crate) fn add(&mut self, other: &ExportedRows) {
        *self = self.with(other, |mine, theirs| match (mine, theirs) {
            (None, None) => None,
            (mine, theirs) => Some(mine.unwrap_or(0) + theirs.unwrap_or(0)),
        });
    }

    /// Those since an earlier count.
    pub(crate) fn since(&self, before: &ExportedRows) -> ExportedRows {
        self.with(before, |all, before| all.map(|all| all - before.unwrap_or(0)))
    }

    /// Both counts of each table in one.
    fn with(&self, other: &ExportedRows, both: fn(Option<u64>, Option<u64>) -> Option<u64>) -> ExportedRows {
        ExportedRows {
            bbo: both(self.bbo, other.bbo),
            trades: both(self.trades, other.trades),
            depth: both(self.depth, other.depth),
            orders: both(self.orders, other.orders),
        }
    }
}

const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

#[cfg(test)]
mod tests {
    use tickpath_capture::table::KNOWN_COLUMNS;

    use super::*;

    #[test]
    fn every_column_can_be_read_again() {
        let all =
            [&[FILE, RECORDING][..], &BBO_COLUMNS, &TRADE_COLUMNS, &DEPTH_COLUMNS, &ORDER_COLUMNS].concat();
        for column in all {
            assert!(KNOWN_COLUMNS.contains(&column), "{column:?}");
        }
    }
}

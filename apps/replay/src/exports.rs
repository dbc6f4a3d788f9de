//! Best prices, trades, depth and changes of orders into tables.

use std::path::{Path, PathBuf};

use tickpath_book::{BooksById, Level};
use tickpath_capture::table::{Cell, Column, ColumnKind, TableError, TableWriter};
use tickpath_types::{InstrumentId, MarketUpdate, Price, Side, UpdateKind};

use crate::options::Exports;
use crate::tape::{Bbo, Seen, SeenTrade};

/// The first column of a table of several recordings.
const FILE: Column = Column::new("file", ColumnKind::Text);

const BBO_COLUMNS: [Column; 8] = [
    FILE,
    Column::new("ts_ns", ColumnKind::Integer),
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("bid_price", ColumnKind::Price),
    Column::new("bid_qty", ColumnKind::Integer),
    Column::new("ask_price", ColumnKind::Price),
    Column::new("ask_qty", ColumnKind::Integer),
];

const TRADE_COLUMNS: [Column; 9] = [
    FILE,
    Column::new("ts_ns", ColumnKind::Integer),
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("price", ColumnKind::Price),
    Column::new("qty", ColumnKind::Integer),
    Column::new("aggressor", ColumnKind::Text),
    Column::new("kind", ColumnKind::Text),
    Column::new("order_id", ColumnKind::Integer),
];

const DEPTH_COLUMNS: [Column; 9] = [
    FILE,
    Column::new("ts_ns", ColumnKind::Integer),
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("side", ColumnKind::Text),
    Column::new("level", ColumnKind::Integer),
    Column::new("price", ColumnKind::Price),
    Column::new("qty", ColumnKind::Integer),
    Column::new("orders", ColumnKind::Integer),
];

const ORDER_COLUMNS: [Column; 11] = [
    FILE,
    Column::new("ts_ns", ColumnKind::Integer),
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
/// The rows of several recordings stand one recording after the other, each row with the name of its file.
#[derive(Default)]
pub(crate) struct Exporter {
    bbo: Option<TableWriter>,
    trades: Option<TableWriter>,
    depth: Option<TableWriter>,
    orders: Option<TableWriter>,
    level_count: usize,
    shown: Shown,
    /// The recording of the rows that come, when they name it.
    file: Option<String>,
    /// Columns that are left out: that of the file where there is only one.
    skipped: usize,
    /// Rows of the recordings before.
    before: ExportedRows,
}

impl Exporter {
    /// Starts the tables; rows name their file when `is_of_several`.
    pub(crate) fn create(
        exports: &Exports,
        level_count: usize,
        is_of_several: bool,
    ) -> Result<Exporter, TableError> {
        let skipped = usize::from(!is_of_several);
        let table = |path: &Option<PathBuf>, columns: &[Column]| {
            path.as_deref().map(|path| TableWriter::create(path, &columns[skipped..])).transpose()
        };
        Ok(Exporter {
            bbo: table(&exports.bbo, &BBO_COLUMNS)?,
            trades: table(&exports.trades, &TRADE_COLUMNS)?,
            depth: table(&exports.depth, &DEPTH_COLUMNS)?,
            orders: table(&exports.orders, &ORDER_COLUMNS)?,
            level_count,
            skipped,
            ..Exporter::default()
        })
    }

    /// The rows that come are of this recording.
    pub(crate) fn start_file(&mut self, path: &Path) {
        self.file = (self.skipped == 0).then(|| path.display().to_string());
        self.shown = Shown::default();
        self.before = self.all_rows();
    }

    /// Rows of the recording that was started last.
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
        let row = [
            file_cell(&self.file),
            Cell::Integer(seen.ts_ns),
            Cell::Integer(seen.number),
            Cell::Text(symbol),
            Cell::Text(event.name),
            number(event.order_id),
            number(seen.replaced),
            event.side.map_or(Cell::Empty, |side| Cell::Text(side_name(side))),
            event.price.map_or(Cell::Empty, Cell::Price),
            Cell::Integer(event.qty),
            seen.trade
                .filter(|_| event.name == "execute")
                .map_or(Cell::Empty, |trade| Cell::Text(trade.kind)),
        ];
        table.row(&row[self.skipped..])
    }

    pub(crate) fn bbo(&mut self, ts_ns: u64, number: u64, symbol: &str, bbo: Bbo) -> Result<(), TableError> {
        let Some(table) = &mut self.bbo else { return Ok(()) };
        let side = |(price, qty): (i64, u64)| match qty {
            0 => (Cell::Empty, Cell::Empty),
            _ => (Cell::Price(Price(price)), Cell::Integer(qty)),
        };
        let ((bid_price, bid_qty), (ask_price, ask_qty)) = (side(bbo.bid), side(bbo.ask));
        let (time, message) = (Cell::Integer(ts_ns), Cell::Integer(number));
        let file = file_cell(&self.file);
        let row = [file, time, message, Cell::Text(symbol), bid_price, bid_qty, ask_price, ask_qty];
        table.row(&row[self.skipped..])
    }

    pub(crate) fn trade(
        &mut self,
        seen: &Seen<'_>,
        symbol: &str,
        trade: &SeenTrade,
    ) -> Result<(), TableError> {
        let Some(table) = &mut self.trades else { return Ok(()) };
        let row = [
            file_cell(&self.file),
            Cell::Integer(seen.ts_ns),
            Cell::Integer(seen.number),
            Cell::Text(symbol),
            trade.price.map_or(Cell::Empty, Cell::Price),
            Cell::Integer(trade.qty.0),
            trade.aggressor.map_or(Cell::Empty, |side| Cell::Text(side_name(side))),
            Cell::Text(trade.kind),
            if trade.order_id == 0 { Cell::Empty } else { Cell::Integer(trade.order_id) },
        ];
        table.row(&row[self.skipped..])
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
        let index = usize::from(instrument.0);
        if self.shown.by_instrument.len() <= index {
            self.shown.by_instrument.resize_with(index + 1, Default::default);
        }
        for side in Side::BOTH {
            let shown = &mut self.shown.by_instrument[index][side.index()];
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
                    file_cell(&self.file),
                    Cell::Integer(ts_ns),
                    Cell::Integer(number),
                    Cell::Text(symbol),
                    Cell::Text(if side == Side::Buy { "bid" } else { "ask" }),
                    Cell::Integer(rank as u64 + 1),
                    level.map_or(Cell::Empty, |level| Cell::Price(level.price)),
                    Cell::Integer(level.map_or(0, |level| level.qty.0)),
                    Cell::Integer(level.map_or(0, |level| u64::from(level.order_count))),
                ];
                table.row(&row[self.skipped..])?;
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
                UpdateKind::Add => "add",
                UpdateKind::Delete => "delete",
                UpdateKind::Reduce => "reduce",
                UpdateKind::Replace => "replace",
                UpdateKind::Trade => "execute",
                _ => return None,
            };
            let (order_id, price) = (update.order_id, Some(Price(update.price)));
            return Some(OrderEvent { name, order_id, side: Some(update.side()), price, qty: update.qty });
        }
        // An execution whose outcome another record reports once more.
        let trade = seen.trade.filter(|trade| seen.is_execution && !trade.counts && trade.order_id != 0)?;
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

fn file_cell(file: &Option<String>) -> Cell<'_> {
    file.as_deref().map_or(Cell::Empty, Cell::Text)
}

/// Rows that were exported; `None` for a table that was not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
        let sum = |mine: Option<u64>, theirs: Option<u64>| match (mine, theirs) {
            (None, None) => None,
            (mine, theirs) => Some(mine.unwrap_or(0) + theirs.unwrap_or(0)),
        };
        self.bbo = sum(self.bbo, other.bbo);
        self.trades = sum(self.trades, other.trades);
        self.depth = sum(self.depth, other.depth);
        self.orders = sum(self.orders, other.orders);
    }

    /// Those since an earlier count.
    pub(crate) fn since(&self, before: &ExportedRows) -> ExportedRows {
        let since = |all: Option<u64>, before: Option<u64>| all.map(|all| all - before.unwrap_or(0));
        ExportedRows {
            bbo: since(self.bbo, before.bbo),
            trades: since(self.trades, before.trades),
            depth: since(self.depth, before.depth),
            orders: since(self.orders, before.orders),
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
        let all = [&BBO_COLUMNS[..], &TRADE_COLUMNS, &DEPTH_COLUMNS, &ORDER_COLUMNS].concat();
        for column in all {
            assert!(KNOWN_COLUMNS.contains(&column), "{column:?}");
        }
    }
}

//! Columns of tables, their values, and the list of all exported columns.

use tickpath_types::Decimal;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers from 0 to 2^63 - 1, Parquet `INT64`; a greater number is written as an empty value.
    Integer,
    /// Times in nanoseconds; in CSV whole numbers, Parquet `TIMESTAMP` in nanoseconds.
    Time {
        /// True when all times count from 1970-01-01 UTC; Parquet then marks the column as UTC. Otherwise
        /// some may count from the midnight of an unknown day.
        is_utc: bool,
    },
    /// Prices; in CSV with at least four decimals, Parquet `DECIMAL(18, 9)`.
    Price,
    /// Text; in CSV with quotes where needed, Parquet `STRING`.
    Text,
}

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// The type of the column's values.
    pub kind: ColumnKind,
}

impl Column {
    /// Creates a column.
    #[must_use]
    pub const fn new(name: &'static str, kind: ColumnKind) -> Column {
        Column { name, kind }
    }

    /// The exported column with this name.
    ///
    /// # Errors
    /// A description, when no exported table has such a column.
    pub fn known(name: &str) -> Result<Column, String> {
        let found = KNOWN_COLUMNS.into_iter().find(|column| column.name == name);
        found.ok_or_else(|| format!("no exported table has a column '{}'", name.escape_debug()))
    }
}

/// The value of one cell to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// An empty field in CSV, null in Parquet.
    Empty,
    /// A whole number.
    Integer(u64),
    /// A price.
    Price(Decimal),
    /// Text.
    Text(&'a str),
}

impl Cell<'_> {
    /// Makes a cell of a price with any number of decimals.
    pub fn price(price: impl Into<Decimal>) -> Cell<'static> {
        Cell::Price(price.into())
    }
}

/// The value of one cell that was read from a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Empty,
    Integer(u64),
    Price(Decimal),
    Text(String),
}

impl Value {
    pub(super) fn cell(&self) -> Cell<'_> {
        match self {
            Value::Empty => Cell::Empty,
            Value::Integer(number) => Cell::Integer(*number),
            Value::Price(price) => Cell::Price(*price),
            Value::Text(text) => Cell::Text(text),
        }
    }
}

/// A table being read.
pub(super) struct ReadTable {
    pub(super) columns: Vec<Column>,
    /// The rows in order; they are read one by one, in constant memory.
    pub(super) rows: Box<dyn Iterator<Item = Result<Vec<Value>, String>>>,
    /// Number of rows, if the file states it.
    pub(super) row_count: Option<u64>,
    /// True when the file states for each column of times whether it is UTC.
    pub(super) knows_times: bool,
}

/// The columns of the exported tables. The name of a column determines its kind.
const KNOWN_COLUMNS: [Column; 22] = [
    Column::new("file", ColumnKind::Text),
    Column::new("recording", ColumnKind::Integer),
    Column::new("ts_ns", ColumnKind::Time { is_utc: false }),
    Column::new("message", ColumnKind::Integer),
    Column::new("symbol", ColumnKind::Text),
    Column::new("bid_price", ColumnKind::Price),
    Column::new("bid_qty", ColumnKind::Integer),
    Column::new("ask_price", ColumnKind::Price),
    Column::new("ask_qty", ColumnKind::Integer),
    Column::new("price", ColumnKind::Price),
    Column::new("qty", ColumnKind::Integer),
    Column::new("aggressor", ColumnKind::Text),
    Column::new("kind", ColumnKind::Text),
    Column::new("order_id", ColumnKind::Integer),
    Column::new("replaced_id", ColumnKind::Integer),
    Column::new("event", ColumnKind::Text),
    Column::new("side", ColumnKind::Text),
    Column::new("level", ColumnKind::Integer),
    Column::new("orders", ColumnKind::Integer),
    Column::new("sequence", ColumnKind::Integer),
    Column::new("health", ColumnKind::Text),
    Column::new("channel", ColumnKind::Text),
];

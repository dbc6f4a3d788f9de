//! Columns of tables, the values in them, and the columns of the tables that are exported.

use tickpath_types::Decimal;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers from 0 to 2^63 - 1, a greater one is left empty; Parquet `INT64`.
    Integer,
    /// Times in nanoseconds; in CSV whole numbers, Parquet `TIMESTAMP` in nanoseconds.
    Time {
        /// True when all count from 1970-01-01 UTC, which Parquet then says; otherwise some may count from the midnight of a
        /// day that is not known.
        is_utc: bool,
    },
    /// Prices; in CSV with four decimals or as many as they need, Parquet `DECIMAL(18, 9)`.
    Price,
    /// Text; in CSV within quotes where it needs them, Parquet `STRING`.
    Text,
}

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
}

impl Column {
    /// A column.
    #[must_use]
    pub const fn new(name: &'static str, kind: ColumnKind) -> Column {
        Column { name, kind }
    }

    /// The column with a name, of those that are exported.
    ///
    /// # Errors
    /// No exported table has such a column.
    pub fn known(name: &str) -> Result<Column, String> {
        let found = KNOWN_COLUMNS.into_iter().find(|column| column.name == name);
        found.ok_or_else(|| format!("no exported table has a column '{}'", name.escape_debug()))
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Nothing: an empty field, a null.
    Empty,
    /// A whole number.
    Integer(u64),
    /// A price.
    Price(Decimal),
    /// Text.
    Text(&'a str),
}

impl Cell<'_> {
    /// A price of any scale.
    pub fn price(price: impl Into<Decimal>) -> Cell<'static> {
        Cell::Price(price.into())
    }
}

/// A value of a row that was read.
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

/// A table that is read.
pub(super) struct ReadTable {
    pub(super) columns: Vec<Column>,
    /// One after the other, in constant memory.
    pub(super) rows: Box<dyn Iterator<Item = Result<Vec<Value>, String>>>,
    /// Their number, where the table has it.
    pub(super) row_count: Option<u64>,
    /// Whether the table says what its times count from.
    pub(super) knows_times: bool,
}

/// The columns of the tables that are exported, whose names say what they hold.
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

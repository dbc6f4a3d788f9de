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

pub(super) const fn column(name: &'static str, kind: ColumnKind) -> Column {
    Column::new(name, kind)
}

/// The columns of the tables that are exported, whose names say what they hold.
const KNOWN_COLUMNS: [Column; 22] = [
    column("file", ColumnKind::Text),
    column("recording", ColumnKind::Integer),
    column("ts_ns", ColumnKind::Time { is_utc: false }),
    column("message", ColumnKind::Integer),
    column("symbol", ColumnKind::Text),
    column("bid_price", ColumnKind::Price),
    column("bid_qty", ColumnKind::Integer),
    column("ask_price", ColumnKind::Price),
    column("ask_qty", ColumnKind::Integer),
    column("price", ColumnKind::Price),
    column("qty", ColumnKind::Integer),
    column("aggressor", ColumnKind::Text),
    column("kind", ColumnKind::Text),
    column("order_id", ColumnKind::Integer),
    column("replaced_id", ColumnKind::Integer),
    column("event", ColumnKind::Text),
    column("side", ColumnKind::Text),
    column("level", ColumnKind::Integer),
    column("orders", ColumnKind::Integer),
    column("sequence", ColumnKind::Integer),
    column("health", ColumnKind::Text),
    column("channel", ColumnKind::Text),
];

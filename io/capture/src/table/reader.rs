//! Reads exported tables, CSV or (with the feature `parquet`) Parquet, and converts them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use tickpath_agent::StopSignal;
use tickpath_types::{Decimal, Price};

use super::column::{Cell, Column, ColumnKind, ReadTable, Value};
use super::{TableError, TableWriter};
use crate::CaptureError;
use crate::format::open;
use crate::input::Input;

/// Maximum length of a CSV row in bytes.
pub const ROW_LEN_MAX: usize = 64 * 1024;
/// Number of rows between two checks of the stop signal.
const ROWS_AT_ONCE: u64 = 1_024;
/// A bound in ns, two days: times since midnight are below it, times since 1970 above it.
const OF_DAY_NS_MAX: u64 = 2 * 86_400_000_000_000;

/// The reason why a table could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The table could not be opened: see the source.
    #[error(transparent)]
    Open(#[from] CaptureError),
    /// The new table could not be written: see the source.
    #[error(transparent)]
    Write(#[from] TableError),
    /// The file is not an exported table, or is damaged: export it again.
    #[error("{} is not a table that can be converted: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Description and position of the error.
        what: String,
    },
}

/// The progress of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertProgress {
    /// Number of rows written.
    pub rows: u64,
    /// Amount read: bytes of the CSV file as stored, or rows of Parquet.
    pub done: u64,
    /// Total amount to read; 0 when unknown.
    pub total: u64,
}

/// The result of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub columns: usize,
}

/// Converts an exported table to the format that the extension of `to` names; the same format gives a copy.
///
/// Every value is checked against the type of its column. Memory is constant. `observer` receives the
/// progress every thousand rows. After a stop, no file is written and the result is `None`. CSV may be
/// compressed by gzip or Zstandard. The first value of a CSV column of times decides whether it is UTC.
///
/// # Errors
/// [`ConvertError`]; the incomplete target file is then removed.
pub fn convert(
    from: &Path,
    to: &Path,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&ConvertProgress),
) -> Result<Option<Converted>, ConvertError> {
    match convert_all(from, to, stop, observer) {
        // The stop signal makes a read from a pipe fail; this is not damage.
        Err(_) if stop.is_stopped() => Ok(None),
        result => result,
    }
}

fn convert_all(
    from: &Path,
    to: &Path,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&ConvertProgress),
) -> Result<Option<Converted>, ConvertError> {
    let (input, meter) = open(from, stop)?;
    let malformed = |what| ConvertError::Malformed { path: from.to_owned(), what };
    let ReadTable { mut columns, mut rows, row_count, knows_times } =
        read_table(from, input).map_err(malformed)?;
    let mut next =
        |number: u64| rows.next().transpose().map_err(|what| malformed(format!("row {number}: {what}")));
    let mut row = next(1)?;
    if !knows_times {
        for (column, value) in columns.iter_mut().zip(row.iter().flatten()) {
            if let (ColumnKind::Time { is_utc }, Value::Integer(ns)) = (&mut column.kind, value) {
                *is_utc = *ns >= OF_DAY_NS_MAX;
            }
        }
    }
    let mut table = TableWriter::create(to, &columns)?;
    loop {
        let count = table.row_count();
        if count.is_multiple_of(ROWS_AT_ONCE) {
            let (done, total) = row_count.map_or((meter.position(), meter.len()), |all| (count, all));
            observer(&ConvertProgress { rows: count, done, total });
            if stop.is_stopped() {
                return Ok(None);
            }
        }
        let Some(values) = &row else { break };
        let cells: Vec<Cell<'_>> = values.iter().map(Value::cell).collect();
        table.row(&cells)?;
        row = next(count + 2)?;
    }
    Ok(Some(Converted { rows: table.finish()?, columns: columns.len() }))
}

/// Opens a table of any format.
#[cfg_attr(
    not(feature = "parquet"),
    expect(unused_variables, reason = "a Parquet file is opened by its path")
)]
fn read_table(path: &Path, input: Input) -> Result<ReadTable, String> {
    let mut input = BufReader::new(input);
    let begin = input.fill_buf().map_err(|error| error.to_string())?;
    if begin.is_empty() {
        return Err("it is empty".to_owned());
    }
    if begin.starts_with(b"PAR1") {
        #[cfg(feature = "parquet")]
        return super::columnar::open(path);
        #[cfg(not(feature = "parquet"))]
        return Err("it is a Parquet file, and this program was built without Parquet".to_owned());
    }
    let mut csv = CsvRows { input, columns: Vec::new(), line: Vec::new() };
    if !csv.read_line()? {
        return Err("it has no line of column names".to_owned());
    }
    csv.columns = fields(&csv.line)?.iter().map(|name| Column::known(name)).collect::<Result<_, _>>()?;
    let columns = csv.columns.clone();
    let rows = Box::new(std::iter::from_fn(move || csv.read().transpose()));
    Ok(ReadTable { columns, rows, row_count: None, knows_times: false })
}

struct CsvRows {
    input: BufReader<Input>,
    columns: Vec<Column>,
    line: Vec<u8>,
}

impl CsvRows {
    /// Reads a row, which continues on the next line while a quote is open; false at the end.
    fn read_line(&mut self) -> Result<bool, String> {
        self.line.clear();
        loop {
            let left = (ROW_LEN_MAX + 1 - self.line.len()) as u64;
            let len = self.input.by_ref().take(left).read_until(b'\n', &mut self.line);
            if len.map_err(|error| error.to_string())? == 0 {
                break;
            }
            if self.line.len() > ROW_LEN_MAX {
                return Err(format!("it is longer than {ROW_LEN_MAX} bytes"));
            }
            let quotes = self.line.iter().filter(|byte| **byte == b'"').count();
            if self.line.ends_with(b"\n") && quotes.is_multiple_of(2) {
                break;
            }
        }
        let is_there = !self.line.is_empty();
        for end in [b'\n', b'\r'] {
            if self.line.last() == Some(&end) {
                self.line.pop();
            }
        }
        Ok(is_there)
    }

    fn read(&mut self) -> Result<Option<Vec<Value>>, String> {
        if !self.read_line()? {
            return Ok(None);
        }
        let fields = fields(&self.line)?;
        let (count, columns) = (fields.len(), self.columns.len());
        if count != columns {
            return Err(format!("it has {count} fields, and there are {columns} columns"));
        }
        self.columns
            .iter()
            .zip(fields)
            .map(|(column, field)| value(column, field))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// The fields of a CSV line, without quotes.
fn fields(line: &[u8]) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is one from the beginning");
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    if is_quoted { Err("a quote is not closed".to_owned()) } else { Ok(fields) }
}

fn value(column: &Column, field: String) -> Result<Value, String> {
    if field.is_empty() {
        return Ok(Value::Empty);
    }
    let wrong = |what: &str| format!("column {}: '{}' is {what}", column.name, field.escape_debug());
    match column.kind {
        ColumnKind::Text => Ok(Value::Text(field)),
        ColumnKind::Integer | ColumnKind::Time { .. } => {
            let is_number = field.bytes().all(|byte| byte.is_ascii_digit());
            let number =
                field.parse().ok().filter(|number: &u64| is_number && i64::try_from(*number).is_ok());
            number.map(Value::Integer).ok_or_else(|| wrong("not a whole number from 0 to 2^63 - 1"))
        }
        ColumnKind::Price => {
            price(&field).map(Value::Price).ok_or_else(|| wrong("not a price with at most nine decimals"))
        }
    }
}

/// Parses a decimal number with at most nine decimals, exactly.
fn price(text: &str) -> Option<Decimal> {
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.trim_end_matches('0').len());
    let decimals = u8::try_from(decimals.max(Price::DECIMALS)).ok().filter(|decimals| *decimals <= 9)?;
    Decimal::parse(text, decimals)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[cfg(feature = "parquet")]
    const TEXT: &str =
        "ts_ns,symbol,price,order_id\n1,AAA,100.2500,7\n2,\"B,\"\"B\",-0.0001,\n3,,1.08455,9\n";

    fn convert(from: &Path, to: &Path) -> Result<Option<Converted>, ConvertError> {
        super::convert(from, to, &StopSignal::new(), &mut |_| {})
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn a_converted_table_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.csv"), TEXT).unwrap();
        let expected = Some(Converted { rows: 3, columns: 4 });
        assert_eq!(convert(&path("a.csv"), &path("b.parquet")).unwrap(), expected);
        assert_eq!(convert(&path("b.parquet"), &path("c.parquet")).unwrap(), expected);
        assert_eq!(convert(&path("c.parquet"), &path("d.csv")).unwrap(), expected);
        assert_eq!(fs::read_to_string(path("d.csv")).unwrap(), TEXT);
        let stop = StopSignal::new();
        stop.stop();
        assert_eq!(super::convert(&path("a.csv"), &path("e.csv"), &stop, &mut |_| {}).unwrap(), None);
        assert!(!path("e.csv").exists());
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn progress_is_of_bytes_or_of_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let text: String =
            std::iter::once("ts_ns\n".to_owned()).chain((0..5_000).map(|n| format!("{n}\n"))).collect();
        fs::write(path("a.csv"), &text).unwrap();
        for (from, to, total) in [("a.csv", "b.parquet", text.len() as u64), ("b.parquet", "c.csv", 5_000)] {
            let mut reported = Vec::new();
            let mut observer = |progress: &ConvertProgress| reported.push(*progress);
            super::convert(&path(from), &path(to), &StopSignal::new(), &mut observer).unwrap();
            assert!(
                reported.iter().all(|progress| progress.total == total && progress.done <= total),
                "{reported:?}"
            );
            assert_eq!(reported.last().map(|progress| progress.rows), Some(4_096));
        }
        assert_eq!(fs::read_to_string(path("c.csv")).unwrap(), text);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn numbers_beyond_the_bound_are_empty_in_both_formats() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a.csv", "a.parquet"] {
            let mut table =
                TableWriter::create(&path(name), &[Column::new("order_id", ColumnKind::Integer)]).unwrap();
            for number in [i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
                table.row(&[Cell::Integer(number)]).unwrap();
            }
            table.finish().unwrap();
        }
        convert(&path("a.parquet"), &path("b.csv")).unwrap();
        let text = fs::read_to_string(path("a.csv")).unwrap();
        assert_eq!(text, "order_id\n9223372036854775807\n\n\n");
        assert_eq!(fs::read_to_string(path("b.csv")).unwrap(), text);
    }

    #[test]
    fn other_tables_are_rejected_with_the_position() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (text, expected) in [
            ("", "it is empty"),
            ("a,b\n1,2\n", "no exported table has a column 'a'"),
            ("ts_ns,price\n1,1.0000000001\n", "row 1: column price: '1.0000000001' is not a price"),
            ("ts_ns,price\n1,1\nx,1\n", "row 2: column ts_ns: 'x' is not a whole number"),
            ("ts_ns,price\n9223372036854775808,1\n", "row 1: column ts_ns"),
            ("ts_ns,price\n1\n", "row 1: it has 1 fields, and there are 2 columns"),
            ("symbol\n\"a\n", "a quote is not closed"),
            ("PAR1 and nothing behind", "not a table"),
        ] {
            fs::write(path("bad.csv"), text).unwrap();
            let error = convert(&path("bad.csv"), &path("out.csv")).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
            assert!(!path("out.csv").exists());
        }
        fs::write(path("long.csv"), format!("symbol\n{}\n", "x".repeat(ROW_LEN_MAX))).unwrap();
        let error = convert(&path("long.csv"), &path("out.csv")).unwrap_err().to_string();
        assert!(error.contains("longer than 65536 bytes"), "{error}");
    }
}

//! Writes and reads Parquet tables.

use std::fs::File;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};

use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::{ColumnPath, Type};
use tickpath_types::Decimal;

use super::column::{Cell, Column, ColumnKind, ReadTable, Value};

/// Number of rows per Parquet row group. The writer keeps one group in memory until it is full.
const GROUP_ROWS: usize = 65_536;
/// Number of digits of a price column: the maximum for 64 bits.
const DECIMAL_PRECISION: i32 = 18;
/// Number of decimals of a price: the most that any recording format has.
const DECIMAL_SCALE: u8 = 9;
/// The largest number with [`DECIMAL_PRECISION`] digits.
const DECIMAL_MAX: u64 = 10_u64.pow(DECIMAL_PRECISION as u32) - 1;

/// The values of one column in the current group.
enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
}

struct Buffer {
    values: Values,
    /// Parquet definition level of each row: 1 with a value, 0 without.
    defined: Vec<i16>,
}

pub(super) struct ParquetSink<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
}

impl<W: Write + Send> ParquetSink<W> {
    pub(super) fn new(out: W, columns: &[Column]) -> io::Result<Self> {
        let fields = columns.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<Vec<_>, _>>().map_err(io_error)?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(io_error)?;
        let mut properties = WriterProperties::builder();
        // Times and prices differ little from row to row: delta packing compresses them well.
        for column in columns.iter().filter(|column| column.kind != ColumnKind::Text) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))
            .map_err(io_error)?;
        Ok(ParquetSink { writer, columns: columns.iter().map(Buffer::new).collect() })
    }

    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell)?;
        }
        if self.columns.first().is_some_and(|column| column.defined.len() >= GROUP_ROWS) {
            self.write_group()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.columns.first().is_some_and(|column| !column.defined.is_empty()) {
            self.write_group()?;
        }
        self.writer.into_inner().map_err(io_error)?.flush()
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.try_write_group().map_err(io_error)?;
        self.columns.iter_mut().for_each(Buffer::clear);
        Ok(())
    }

    fn try_write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &self.columns {
            let mut writer = group.next_column()?.expect("as many columns as the schema has");
            match (writer.untyped(), &column.values) {
                (ColumnWriter::Int64ColumnWriter(writer), Values::Numbers(values)) => {
                    writer.write_batch(values, Some(&column.defined), None)?;
                }
                (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts(values)) => {
                    writer.write_batch(values, Some(&column.defined), None)?;
                }
                _ => unreachable!("the schema was made of the same columns"),
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl Buffer {
    fn new(column: &Column) -> Buffer {
        let values = match column.kind {
            ColumnKind::Text => Values::Texts(Vec::new()),
            _ => Values::Numbers(Vec::new()),
        };
        Buffer { values, defined: Vec::new() }
    }

    fn push(&mut self, cell: &Cell<'_>) -> io::Result<()> {
        match (&mut self.values, cell) {
            (Values::Numbers(values), Cell::Integer(number)) => match i64::try_from(*number) {
                Ok(number) => values.push(number),
                Err(_) => {
                    self.defined.push(0);
                    return Ok(());
                }
            },
            (Values::Numbers(values), Cell::Price(price)) => values.push(decimal(*price)?),
            (Values::Texts(values), Cell::Text(text)) => values.push(ByteArray::from(*text)),
            _ => {
                debug_assert_eq!(*cell, Cell::Empty, "a cell is of its column's kind");
                self.defined.push(0);
                return Ok(());
            }
        }
        self.defined.push(1);
        Ok(())
    }

    fn clear(&mut self) {
        self.defined.clear();
        match &mut self.values {
            Values::Numbers(values) => values.clear(),
            Values::Texts(values) => values.clear(),
        }
    }
}

/// A price as an integer with [`DECIMAL_SCALE`] decimals.
fn decimal(price: Decimal) -> io::Result<i64> {
    let units = price.at(DECIMAL_SCALE).filter(|units| units.unsigned_abs() <= DECIMAL_MAX);
    units.ok_or_else(|| {
        let message =
            format!("the price {price} has more digits than Parquet's DECIMAL(18, 9): export to .csv");
        io::Error::other(message)
    })
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let physical = match column.kind {
        ColumnKind::Text => PhysicalType::BYTE_ARRAY,
        _ => PhysicalType::INT64,
    };
    let builder = Type::primitive_type_builder(column.name, physical).with_repetition(Repetition::OPTIONAL);
    match column.kind {
        ColumnKind::Integer => builder,
        ColumnKind::Time { is_utc } => {
            builder.with_logical_type(Some(LogicalType::timestamp(is_utc, TimeUnit::NANOS)))
        }
        ColumnKind::Price => builder
            .with_converted_type(ConvertedType::DECIMAL)
            .with_precision(DECIMAL_PRECISION)
            .with_scale(i32::from(DECIMAL_SCALE)),
        ColumnKind::Text => builder.with_logical_type(Some(LogicalType::String)),
    }
    .build()
}

/// Reads the rows of a file, group by group.
struct ParquetRows {
    rows: RowIter<'static>,
    columns: Vec<Column>,
    /// Number of decimals of the prices in each column.
    scales: Vec<u8>,
    /// Number of rows of the file that were not read yet.
    left: u64,
}

/// Opens a table. A column of times may also be plain integers; `knows_times` is then false.
pub(super) fn open(path: &Path) -> Result<ReadTable, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = guarded(|| SerializedFileReader::new(file))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let (mut columns, mut scales, mut knows_times) = (Vec::new(), Vec::new(), true);
    for found in schema.columns() {
        let column = Column::known(found.name())?;
        let scale = u8::try_from(found.type_scale()).ok().filter(|scale| *scale <= DECIMAL_SCALE);
        let is_utc = match found.logical_type_ref() {
            Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS => {
                Some(time.is_adjusted_to_u_t_c)
            }
            _ => None,
        };
        let kind = match (found.physical_type(), found.converted_type(), column.kind) {
            (PhysicalType::INT64, ConvertedType::DECIMAL, kind @ ColumnKind::Price) => scale.map(|_| kind),
            (PhysicalType::INT64, ConvertedType::NONE, kind @ ColumnKind::Integer) => {
                is_utc.is_none().then_some(kind)
            }
            (PhysicalType::INT64, ConvertedType::NONE, ColumnKind::Time { .. }) => {
                knows_times &= is_utc.is_some();
                Some(ColumnKind::Time { is_utc: is_utc.unwrap_or_default() })
            }
            (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8, kind @ ColumnKind::Text) => Some(kind),
            _ => None,
        };
        let kind =
            kind.ok_or_else(|| format!("column {} has another type than in exported tables", column.name))?;
        columns.push(Column { kind, ..column });
        scales.push(scale.unwrap_or_default());
    }
    let count = reader.metadata().file_metadata().num_rows();
    let left = u64::try_from(count).map_err(|_| "it is damaged: its number of rows is invalid".to_owned())?;
    let rows = guarded(|| Ok(RowIter::from_file_into(Box::new(reader))))?;
    let mut rows = ParquetRows { rows, columns: columns.clone(), scales, left };
    let rows = Box::new(std::iter::from_fn(move || rows.read().transpose()));
    Ok(ReadTable { columns, rows, row_count: Some(left), knows_times })
}

impl ParquetRows {
    fn read(&mut self) -> Result<Option<Vec<Value>>, String> {
        let row = match (guarded(|| self.rows.next().transpose())?, self.left) {
            (None, 0) => return Ok(None),
            (Some(row), 1..) => row,
            _ => return Err("it is damaged: it has another number of rows than it states".to_owned()),
        };
        self.left -= 1;
        let mut values = Vec::with_capacity(self.columns.len());
        for ((_, field), (column, scale)) in row.get_column_iter().zip(self.columns.iter().zip(&self.scales))
        {
            values.push(match (field, column.kind) {
                (Field::Null, _) => Value::Empty,
                (Field::Long(number), ColumnKind::Integer | ColumnKind::Time { .. }) if *number >= 0 => {
                    Value::Integer(number.cast_unsigned())
                }
                (Field::Decimal(decimal), ColumnKind::Price) => {
                    let bytes = decimal.data().try_into().map_err(|_| "a price is too long".to_owned())?;
                    Value::Price(Decimal { units: i64::from_be_bytes(bytes), decimals: *scale })
                }
                (Field::Str(text), ColumnKind::Text) => Value::Text(text.clone()),
                _ => return Err(format!("column {} has a value out of range", column.name)),
            });
        }
        Ok(Some(values))
    }
}

thread_local! {
    /// True while this thread is in a call of [`guarded`], which turns a panic into an error.
    static IS_GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Calls the Parquet library, which panics on some damaged files. Turns a panic into an error; the panic
/// hook does not print it.
fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                usual(info);
            }
        }));
    });
    IS_GUARDED.set(true);
    // Asserting unwind safety is correct: after an error, the library's state is not used again.
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    IS_GUARDED.set(false);
    match result {
        Ok(result) => result.map_err(|error| one_line(&error)),
        Err(_) => Err("it is damaged: its pages cannot be decoded".to_owned()),
    }
}

fn one_line(error: &ParquetError) -> String {
    error.to_string().replace('\n', " ")
}

/// Returns the I/O error inside the library's error, or the library's error if there is none.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use parquet::record::RowAccessor;
    use tickpath_types::Price;

    use super::*;

    #[test]
    fn what_was_written_is_read_back_over_several_groups() {
        let columns = [
            Column::new("n", ColumnKind::Integer),
            Column::new("price", ColumnKind::Price),
            Column::new("symbol", ColumnKind::Text),
        ];
        let file = tempfile::tempfile().unwrap();
        let mut sink = ParquetSink::new(file.try_clone().unwrap(), &columns).unwrap();
        let count = GROUP_ROWS as u64 + 1;
        for n in 0..count {
            let price = if n % 2 == 0 { Cell::price(Price(-12_345)) } else { Cell::Empty };
            sink.row(&[Cell::Integer(n), price, Cell::Text("ABC")]).unwrap();
        }
        sink.finish().unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let mut rows = 0;
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            assert_eq!(row.get_long(0).unwrap(), rows);
            assert_eq!(row.get_string(2).unwrap(), "ABC");
            match row.get_column_iter().nth(1).unwrap().1 {
                Field::Decimal(decimal) => {
                    assert_eq!(
                        (decimal.scale(), decimal.data()),
                        (9, (-1_234_500_000_i64).to_be_bytes().as_slice())
                    );
                }
                other => assert!(rows % 2 == 1 && *other == Field::Null),
            }
            rows += 1;
        }
        assert_eq!(rows, count as i64);
    }

    /// Reads a file with these bytes and returns its number of rows.
    fn read(bytes: &[u8]) -> Result<u64, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        open(file.path())?.rows.try_fold(0, |count, row| row.map(|_| count + 1))
    }

    #[test]
    fn times_are_timestamps_and_prices_have_nine_decimals() {
        for is_utc in [true, false] {
            let columns =
                [Column::new("ts_ns", ColumnKind::Time { is_utc }), Column::new("price", ColumnKind::Price)];
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut sink = ParquetSink::new(file.reopen().unwrap(), &columns).unwrap();
            let price = Decimal { units: 1_084_550_000, decimals: 9 };
            sink.row(&[Cell::Integer(1_703_422_805_243_925_307), Cell::price(price)]).unwrap();
            let beyond = Decimal { units: 1_000_000_000_000_000_000, decimals: 9 };
            let error = sink.row(&[Cell::Integer(1), Cell::price(beyond)]).unwrap_err().to_string();
            assert!(error.contains("the price 1000000000.0000 has more digits"), "{error}");
            let mut sink = ParquetSink::new(file.reopen().unwrap(), &columns).unwrap();
            sink.row(&[Cell::Integer(1_703_422_805_243_925_307), Cell::price(price)]).unwrap();
            sink.finish().unwrap();
            let mut table = open(file.path()).unwrap();
            assert_eq!(table.columns, columns);
            let written = [Value::Integer(1_703_422_805_243_925_307), Value::Price(price)];
            assert_eq!(table.rows.next().unwrap().unwrap(), written);
        }
    }

    #[test]
    fn damage_anywhere_is_an_error_or_other_values_and_never_a_panic() {
        let columns = [
            Column::new("ts_ns", ColumnKind::Time { is_utc: true }),
            Column::new("price", ColumnKind::Price),
            Column::new("symbol", ColumnKind::Text),
        ];
        let mut bytes = Vec::new();
        let mut sink = ParquetSink::new(&mut bytes, &columns).unwrap();
        for n in 0..20 {
            sink.row(&[Cell::Integer(n), Cell::price(Price(-5)), Cell::Text("ABC")]).unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(read(&bytes), Ok(20));
        for at in 0..bytes.len() {
            assert!(read(&bytes[..at]).is_err(), "cut after {at} bytes");
            for change in [1, 0x40, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let rows = read(&damaged);
                assert!(rows.is_err() || rows == Ok(20), "byte {at}: {rows:?}");
            }
        }
    }
}

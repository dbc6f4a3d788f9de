//! Comma-separated text with a line of column names.

use std::io::{self, Write};

use super::column::{Cell, Column};

pub(super) struct CsvSink<W> {
    out: W,
}

impl<W: Write> CsvSink<W> {
    pub(super) fn new(mut out: W, columns: &[Column]) -> io::Result<Self> {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(CsvSink { out })
    }

    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                self.out.write_all(b",")?;
            }
            match cell {
                Cell::Empty => {}
                Cell::Integer(number) if i64::try_from(*number).is_err() => {}
                Cell::Integer(number) => write!(self.out, "{number}")?,
                Cell::Price(price) => write!(self.out, "{price}")?,
                Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                    write!(self.out, "\"{}\"", text.replace('"', "\"\""))?;
                }
                Cell::Text(text) => self.out.write_all(text.as_bytes())?,
            }
        }
        self.out.write_all(b"\n")
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ColumnKind;

    #[test]
    fn text_that_would_break_a_line_is_quoted() {
        let columns = [Column::new("a", ColumnKind::Text), Column::new("b", ColumnKind::Text)];
        let mut out = Vec::new();
        let mut sink = CsvSink::new(&mut out, &columns).unwrap();
        sink.row(&[Cell::Text("A,B"), Cell::Text("C\"D")]).unwrap();
        sink.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a,b\n\"A,B\",\"C\"\"D\"\n");
    }
}

//! Tables of recorded data in files: CSV, and Parquet with the feature `parquet`.
//!
//! A table is written to `FILE.part` in the same folder and renamed when it is complete (see [`PartFile`]),
//! so a file under its final name is complete. A non-regular file, such as a pipe, is written directly.
//! Memory is constant: rows are kept only until a group of them is written.
//!
//! ```
//! use tickpath_capture::table::{Cell, Column, ColumnKind, TableWriter};
//! use tickpath_types::Price;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("trades.csv");
//! let columns = [Column::new("ts_ns", ColumnKind::Time { is_utc: false }), Column::new("price", ColumnKind::Price)];
//! let mut table = TableWriter::create(&path, &columns)?;
//! table.row(&[Cell::Integer(34_200_000_000_000), Cell::price(Price(1_002_500))])?;
//! assert_eq!(table.finish()?, 1);
//! assert_eq!(std::fs::read_to_string(&path)?, "ts_ns,price\n34200000000000,100.2500\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod column;
#[cfg(feature = "parquet")]
mod columnar;
mod csv;
mod reader;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use tickpath_agent::PartFile;

use csv::CsvSink;

pub use column::{Cell, Column, ColumnKind};
pub use reader::{ConvertError, ConvertProgress, Converted, ROW_LEN_MAX, convert};

/// The reason why a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The name does not determine the format: end it in `.csv` or `.parquet`.
    #[error("cannot export to {}: the name must end in {}", path.display(), formats())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// Writing to the file system failed: free space, or choose another folder.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The file extensions that [`TableWriter::create`] accepts.
const fn formats() -> &'static str {
    if cfg!(feature = "parquet") { ".csv or .parquet" } else { ".csv (this build has no Parquet)" }
}

/// Writes the rows of one table.
pub struct TableWriter {
    path: PathBuf,
    /// `None` once the table is finished or has failed.
    sink: Option<Sink>,
    row_count: u64,
    /// The temporary file of the incomplete table; `None` if the output is not a regular file.
    part: Option<PartFile>,
}

enum Sink {
    Csv(CsvSink<BufWriter<File>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<columnar::ParquetSink<BufWriter<File>>>),
}

impl TableWriter {
    /// Creates a file, in the format that the extension of its name determines.
    ///
    /// # Errors
    /// [`TableError`] when the extension is unknown, or the file cannot be created.
    pub fn create(path: &Path, columns: &[Column]) -> Result<TableWriter, TableError> {
        let extension = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let failed = |source| TableError::Write { path: path.to_owned(), source };
        // A device or a pipe is written directly: a rename would replace it with a file.
        let is_file = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
        let open = || -> io::Result<(BufWriter<File>, Option<PartFile>)> {
            if !is_file {
                return Ok((BufWriter::new(File::options().write(true).open(path)?), None));
            }
            let part = PartFile::create(path)?;
            Ok((BufWriter::new(part.file().try_clone()?), Some(part)))
        };
        let (sink, part) = match extension {
            "csv" => {
                let (out, part) = open().map_err(failed)?;
                (Sink::Csv(CsvSink::new(out, columns).map_err(failed)?), part)
            }
            #[cfg(feature = "parquet")]
            "parquet" => {
                let (out, part) = open().map_err(failed)?;
                let sink = columnar::ParquetSink::new(out, columns).map_err(failed)?;
                (Sink::Parquet(Box::new(sink)), part)
            }
            _ => return Err(TableError::UnknownFormat { path: path.to_owned() }),
        };
        Ok(TableWriter { path: path.to_owned(), part, sink: Some(sink), row_count: 0 })
    }

    /// Writes one row: one cell for each column, of the column's kind or empty.
    ///
    /// # Errors
    /// [`TableError`]; the incomplete file is then removed, and further rows are rejected.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), TableError> {
        let written = match &mut self.sink {
            Some(Sink::Csv(sink)) => sink.row(cells),
            #[cfg(feature = "parquet")]
            Some(Sink::Parquet(sink)) => sink.row(cells),
            None => Err(io::Error::other("an earlier row could not be written")),
        };
        self.row_count += 1;
        written.map_err(|source| self.fail(source))
    }

    /// Number of rows written so far.
    #[must_use]
    pub const fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Completes the file, renames it and returns its number of rows.
    ///
    /// # Errors
    /// [`TableError`]; the incomplete file is then removed.
    pub fn finish(mut self) -> Result<u64, TableError> {
        let finished = match self.sink.take() {
            Some(Sink::Csv(sink)) => sink.finish(),
            #[cfg(feature = "parquet")]
            Some(Sink::Parquet(sink)) => sink.finish(),
            None => Err(io::Error::other("an earlier row could not be written")),
        };
        finished
            .and_then(|()| self.part.take().map_or(Ok(()), PartFile::finish))
            .map_err(|source| self.fail(source))?;
        Ok(self.row_count)
    }

    /// Removes the incomplete file, and returns the error to report.
    fn fail(&mut self, source: io::Error) -> TableError {
        (self.sink, self.part) = (None, None);
        TableError::Write { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_path(path: &Path) -> PathBuf {
        PartFile::name_for(path)
    }

    const COLUMNS: [Column; 1] = [Column::new("n", ColumnKind::Integer)];

    #[test]
    fn a_table_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let mut table = TableWriter::create(&path, &COLUMNS).unwrap();
        table.row(&[Cell::Integer(7)]).unwrap();
        assert!(!path.exists() && part_path(&path).exists());
        drop(table);
        assert!(!path.exists() && !part_path(&path).exists());
        let mut table = TableWriter::create(&path, &COLUMNS).unwrap();
        table.row(&[Cell::Empty]).unwrap();
        assert_eq!(table.finish().unwrap(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "n\n\n");
    }

    #[test]
    fn a_second_writer_of_a_table_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        // The new writer replaces the file that a killed process left.
        fs::write(part_path(&path), "m\n1\n2\n3\n").unwrap();
        let mut table = TableWriter::create(&path, &COLUMNS).unwrap();
        let error = TableWriter::create(&path, &COLUMNS).err().unwrap().to_string();
        assert!(error.contains("another process is writing it") && !error.contains('\n'), "{error}");
        table.row(&[Cell::Integer(7)]).unwrap();
        assert_eq!(table.finish().unwrap(), 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), "n\n7\n");
        TableWriter::create(&path, &COLUMNS).unwrap().finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "n\n");
    }

    #[test]
    fn names_must_have_a_known_extension() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["t", "t.txt", "csv"] {
            let error = TableWriter::create(&folder.path().join(name), &COLUMNS).err().unwrap();
            assert!(matches!(error, TableError::UnknownFormat { .. }), "{error}");
        }
        let error = TableWriter::create(&folder.path().join("none/t.csv"), &COLUMNS).err().unwrap();
        assert!(matches!(error, TableError::Write { .. }), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.csv");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut table = TableWriter::create(&path, &COLUMNS).unwrap();
        let error = (0..100_000).find_map(|n| table.row(&[Cell::Integer(n)]).err()).expect("it is full");
        assert!(error.to_string().contains("No space left") && !error.to_string().contains('\n'), "{error}");
        assert!(table.finish().is_err() && !part_path(&path).exists());
        assert!(fs::symlink_metadata(&path).is_ok(), "a device stays where it is");
    }

    #[test]
    fn a_planted_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("t.csv"), folder.path().join("victim"));
        fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, part_path(&path)).unwrap();
        let error = TableWriter::create(&path, &COLUMNS).err().unwrap().to_string();
        assert!(error.contains("t.csv.part is not a regular file"), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    }
}

//! The result of a replay.

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use tickpath_capture::{DbnDefinition, Format, PacketCounters};
use tickpath_recording::{DbnSchema, EndReason, Integrity, RecordingReport, TypeCount};

use crate::cost::Cost;
use crate::exports::ExportedRows;
use crate::order_book_rows::RowsReport;

/// The result of a replay of one file, or of one recording of a capture.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file.
    pub format: Format,
    /// Cost of decoding alone: framing each message and adding all of its fields to the checksum.
    pub decode: Option<Cost>,
    /// Cost of framing and decoding each message, applying it to the books with all checks, and of building the
    /// update with the best prices after it. Excludes the reading of the file, statistics, the reference model
    /// and exports. `None` without books.
    pub books: Option<Cost>,
    /// Peak memory of the process so far, in bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Wall time from the start of the file's replay to the creation of this report.
    pub elapsed: Duration,
    /// The comparison with the order book file of a LOBSTER message file.
    pub rows: Option<RowsReport>,
    /// Number of exported rows of this file; `None` if the replay was stopped, which removes the tables.
    pub exported: ExportedRows,
    /// Schema of a DBN file; `None` for schema mbo and for other formats.
    pub schema: Option<DbnSchema>,
    /// Instrument definitions in a DBN file.
    pub definitions: Vec<DbnDefinition>,
    /// Counts of frames, for a capture.
    pub frames: Option<PacketCounters>,
    /// The report on the messages of the recording.
    pub recording: RecordingReport,
}

/// Makes the fields of [`FileReport::recording`] readable as those of the file.
impl Deref for FileReport {
    type Target = RecordingReport;

    fn deref(&self) -> &RecordingReport {
        &self.recording
    }
}

/// The combined result of a replay of several files.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// The reports on all files.
    pub files: Vec<FileReport>,
    /// Files that could not be replayed at all, and the reasons.
    pub failures: Vec<(PathBuf, String)>,
    /// Files that were not started before the replay was stopped.
    pub left_out: Vec<PathBuf>,
}

impl ReplayReport {
    /// True if no file failed, and no report has a contradiction.
    #[must_use]
    pub fn is_trustworthy(&self) -> bool {
        self.failures.is_empty() && self.files.iter().all(|file| file.is_trustworthy())
    }

    /// True if the replay was stopped before the end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !self.left_out.is_empty() || self.files.iter().any(|file| file.ended == Some(EndReason::Stopped))
    }

    /// Selected symbols that are in none of the files.
    #[must_use]
    pub fn absent_symbols(&self) -> Vec<&str> {
        let Some((first, others)) = self.files.split_first() else { return Vec::new() };
        let is_absent = |symbol: &&String| others.iter().all(|file| file.absent_symbols.contains(symbol));
        first.absent_symbols.iter().filter(is_absent).map(String::as_str).collect()
    }

    /// Number of exported rows of all files.
    #[must_use]
    pub fn exported(&self) -> ExportedRows {
        let sum = |table: usize| {
            let rows = self.files.iter().filter_map(|file| file.exported.values()[table]);
            rows.reduce(|sum, rows| sum + rows)
        };
        std::array::from_fn(sum).into()
    }

    /// Number of messages of all files.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.files.iter().map(|file| file.messages).sum()
    }

    /// Sum of the consistency findings of all files.
    #[must_use]
    pub fn integrity(&self) -> Integrity {
        let mut sum = Integrity::default();
        self.files.iter().for_each(|file| sum.merge(&file.integrity));
        sum
    }

    /// Message counts of all files, by type code and name: formats use the same code for different types.
    #[must_use]
    pub fn by_type(&self) -> Vec<TypeCount> {
        let mut list: Vec<TypeCount> = Vec::new();
        for entry in self.files.iter().flat_map(|file| &file.by_type) {
            match list.iter_mut().find(|known| known.code == entry.code && known.name == entry.name) {
                Some(known) => known.count += entry.count,
                None => list.push(entry.clone()),
            }
        }
        list.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        list
    }
}

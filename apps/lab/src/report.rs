//! All figures of a run.

use tickpath_config::Zone;

use crate::context::Effort;
use crate::days::DayView;
use crate::host::HostView;
use crate::row::Row;

/// All figures of a run and the machine on which they were measured.
///
/// `Display` gives a text table; see also [`BenchReport::to_json`].
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// One row for each figure.
    pub rows: Vec<Row>,
    /// The standard days of market data that some of the figures use.
    pub days: Vec<DayView>,
    /// The machine, the cores used, and the stolen CPU time.
    pub host: HostView,
    /// Number of rounds for each figure.
    pub rounds: usize,
    /// Amount of work in each round.
    pub effort: Effort,
    /// Commit of the program, if known.
    pub commit: Option<String>,
    /// Start of the run, in nanoseconds since 1970-01-01 UTC.
    pub started_ns: u64,
}

impl BenchReport {
    /// Adds a row that the caller measured.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the row of this name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.spec.name == name)
    }

    /// Names of the rows whose measurement failed.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter(|row| row.failure.is_some()).map(|row| row.spec.name)
    }

    /// Start of the run as a date and a time in UTC.
    pub(crate) fn date(&self) -> String {
        let seconds = self.started_ns / 1_000_000_000 % 86_400;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        format!("{}T{hours:02}:{minutes:02}:{:02}Z", Zone::UTC.date_at(self.started_ns), seconds % 60)
    }
}

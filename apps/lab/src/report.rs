//! All figures of a run.

use crate::context::Effort;
use crate::days::DayView;
use crate::host::HostView;
use crate::row::Row;

/// All figures of a run and the machine that they were taken on.
///
/// `Display` gives a text table; see also [`BenchReport::to_json`].
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// The figures.
    pub rows: Vec<Row>,
    /// The standard days of market data that some of them were taken on.
    pub days: Vec<DayView>,
    /// The machine.
    pub host: HostView,
    /// Rounds over which each figure was taken.
    pub rounds: usize,
    /// How much was done in each round.
    pub effort: Effort,
}

impl BenchReport {
    /// Adds a figure that was measured elsewhere.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The figure of a name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// True when every goal is reached.
    #[must_use]
    pub fn all_reached(&self) -> bool {
        self.rows.iter().all(|row| row.reached() != Some(false))
    }
}

//! The options of a run.

use std::ffi::OsString;

use tickpath_agent::StopSignal;

use crate::context::Effort;

/// Default number of rounds.
pub const ROUNDS_DEFAULT: usize = 5;

/// The options of a run: the rows to measure, and the amount of work.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Rows to measure, by name; the limit of each is included. Empty means all.
    pub filter: Vec<String>,
    /// Further names that a filter may contain: those of rows that the caller measures and pushes.
    pub external_rows: &'static [&'static str],
    /// Number of rounds; 0 counts as 1.
    pub rounds: usize,
    /// Amount of work in each round.
    pub effort: Effort,
    /// True to print the current measurement on standard error.
    pub show_progress: bool,
    /// The command line, program first, that calls [`run_counted`](crate::run_counted), for rows whose
    /// instructions are counted; without it these rows have no value.
    pub counting_command: Option<Vec<OsString>>,
    /// Commit of the program, for the report; `None` if unknown.
    pub commit: Option<String>,
    /// Once raised, ends the run with an error before the next measurement, or while a standard day is
    /// generated.
    pub stop: StopSignal,
}

impl Default for BenchOptions {
    fn default() -> Self {
        BenchOptions {
            filter: Vec::new(),
            external_rows: &[],
            rounds: ROUNDS_DEFAULT,
            effort: Effort::default(),
            show_progress: false,
            counting_command: None,
            commit: None,
            stop: StopSignal::new(),
        }
    }
}

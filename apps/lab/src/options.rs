//! The options of a run.

use std::ffi::OsString;

use tickpath_agent::StopSignal;

use crate::context::Effort;

/// Rounds unless stated otherwise.
pub const ROUNDS_DEFAULT: usize = 5;

/// The rows to measure, and how thoroughly.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Rows to measure, by name; each brings its limit with it. Empty means all.
    pub filter: Vec<String>,
    /// Names that a filter may have besides: rows that the caller measures and pushes.
    pub external_rows: &'static [&'static str],
    /// Rounds, at least one.
    pub rounds: usize,
    /// Amount of work in each round.
    pub effort: Effort,
    /// Whether to say on standard error what is being measured.
    pub show_progress: bool,
    /// The command line, program first, by which [`run_counted`](crate::run_counted) is called, for rows whose
    /// instructions are counted; without it these have no value.
    pub counting_command: Option<Vec<OsString>>,
    /// Commit that the program was built from, as the report states it; none where that is not known.
    pub commit: Option<String>,
    /// Raised, it ends the run with an error before the next measurement, or while a standard day is made.
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

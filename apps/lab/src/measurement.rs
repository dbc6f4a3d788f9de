//! A measurement and its rows, as declared by the files below `rows/`.

use crate::context::Context;
use crate::counted::CountedWork;
pub(crate) use crate::lab::{Lab, Missing};
pub(crate) use crate::row::{Goal, RowSpec, row};

/// A row's value in one round.
pub(crate) struct Sample {
    pub(crate) value: f64,
    /// Limit measured in the same round; `None` to use this round's value of the row that is the limit.
    pub(crate) limit: Option<f64>,
    /// The control sample: the limit's work measured again in the same round, divided by the limit.
    pub(crate) control: Option<f64>,
    /// Details for the row's note; those of the last round are kept.
    pub(crate) note: Option<String>,
}

impl From<f64> for Sample {
    fn from(value: f64) -> Sample {
        Sample { value, limit: None, control: None, note: None }
    }
}

impl Sample {
    pub(crate) fn with_note(value: f64, note: String) -> Sample {
        Sample { note: Some(note), ..value.into() }
    }
}

/// Measures one round and returns a sample for each row of the measurement, in their order. The closure keeps
/// the state between rounds.
pub(crate) type Round = Box<dyn FnMut() -> anyhow::Result<Vec<Sample>>>;

/// Returns a [`Round`] for results that never change: its first call returns them, later calls nothing.
pub(crate) fn once<S: Into<Sample>, const ROWS: usize>(samples: [S; ROWS]) -> Round {
    let mut samples: Vec<Sample> = samples.map(Into::into).into();
    Box::new(move || Ok(std::mem::take(&mut samples)))
}

/// Returns a [`Round`] that calls `round` with the context of the run.
pub(crate) fn each_round<S: Into<Sample>, const ROWS: usize>(
    lab: &Lab<'_>,
    mut round: impl FnMut(&Context) -> anyhow::Result<[S; ROWS]> + 'static,
) -> anyhow::Result<Round> {
    let context = lab.context;
    Ok(Box::new(move || Ok(round(&context)?.map(Into::into).into())))
}

/// Calls `measure` once with each index below `COUNT` and returns the results by index. Each round begins
/// with another index, so that the host's noise affects all results alike.
pub(crate) fn in_turn<T: Copy + Default, const COUNT: usize>(
    round: &mut usize,
    mut measure: impl FnMut(usize) -> anyhow::Result<T>,
) -> anyhow::Result<[T; COUNT]> {
    let mut found = [T::default(); COUNT];
    for step in 0..COUNT {
        let place = (*round + step) % COUNT;
        found[place] = measure(place)?;
    }
    *round += 1;
    Ok(found)
}

/// Prepares the rounds of a measurement; fails with [`Missing`] if this host cannot run them.
type Open = fn(&Lab<'_>) -> anyhow::Result<Round>;

/// A measurement and its rows.
pub(crate) struct Measurement {
    /// Rows in the order of the report: a limit precedes the rows that it limits.
    pub(crate) rows: &'static [RowSpec],
    pub(crate) needs_two_cores: bool,
    pub(crate) open: Open,
    /// The work of a separate process whose instructions [`open`](Measurement::open) counts.
    pub(crate) counted: Option<&'static CountedWork>,
}

pub(crate) const fn on_one_core(rows: &'static [RowSpec], open: Open) -> Measurement {
    Measurement { rows, needs_two_cores: false, open, counted: None }
}

pub(crate) const fn on_two_cores(rows: &'static [RowSpec], open: Open) -> Measurement {
    Measurement { needs_two_cores: true, ..on_one_core(rows, open) }
}

impl Measurement {
    pub(crate) const fn counting(self, work: &'static CountedWork) -> Measurement {
        Measurement { counted: Some(work), ..self }
    }

    pub(crate) fn has_row(&self, row: &str) -> bool {
        self.rows.iter().any(|spec| spec.name == row)
    }
}

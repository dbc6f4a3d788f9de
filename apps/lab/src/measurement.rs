//! A measurement and the rows that it gives: what the files below `rows/` declare.

use crate::context::Context;
use crate::counted::CountedWork;
pub(crate) use crate::lab::{Lab, Missing};
pub(crate) use crate::row::{Goal, RowSpec, row};

/// A row's value in one round.
pub(crate) struct Sample {
    pub(crate) value: f64,
    /// The limit of the same round, where it is not the value of the limit's own row as it stands.
    pub(crate) limit: Option<f64>,
    /// Another measurement of the same work as the limit's, in the same round, divided by the limit.
    pub(crate) again: Option<f64>,
    /// Details for the row's note; those of the last round are kept.
    pub(crate) note: Option<String>,
}

impl From<f64> for Sample {
    fn from(value: f64) -> Sample {
        Sample { value, limit: None, again: None, note: None }
    }
}

impl Sample {
    pub(crate) fn with_note(value: f64, note: String) -> Sample {
        Sample { note: Some(note), ..value.into() }
    }
}

/// Measures one round: a sample for each row of the measurement, in their order. What lasts over the rounds is inside.
pub(crate) type Round = Box<dyn FnMut() -> anyhow::Result<Vec<Sample>>>;

/// Rounds that would all find the same, which is given in the first alone.
pub(crate) fn once<S: Into<Sample>, const ROWS: usize>(samples: [S; ROWS]) -> Round {
    let mut samples: Vec<Sample> = samples.map(Into::into).into();
    Box::new(move || Ok(std::mem::take(&mut samples)))
}

/// Rounds of the run's effort.
pub(crate) fn each_round<S: Into<Sample>, const ROWS: usize>(
    lab: &Lab<'_>,
    mut round: impl FnMut(&Context) -> anyhow::Result<[S; ROWS]> + 'static,
) -> anyhow::Result<Round> {
    let context = lab.context;
    Ok(Box::new(move || Ok(round(&context)?.map(Into::into).into())))
}

/// Measures several things in a round, the next one of them first in each round: what the host does falls on all alike.
/// `measure` is given their places.
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

/// Prepares the rounds; [`Missing`] where they cannot be made on this host.
type Open = fn(&Lab<'_>) -> anyhow::Result<Round>;

/// A measurement and the rows that it gives.
pub(crate) struct Measurement {
    /// In the order of the report: a limit comes before what it is the limit of.
    pub(crate) rows: &'static [RowSpec],
    pub(crate) needs_two_cores: bool,
    pub(crate) open: Open,
    /// The work of a process that [`open`](Measurement::open) counts the instructions of.
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

    pub(crate) fn gives(&self, row: &str) -> bool {
        self.rows.iter().any(|spec| spec.name == row)
    }
}

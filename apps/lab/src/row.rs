//! One measured figure, its limit and its goal.

use std::fmt;

use crate::statistics::median;

/// The target of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The figure divided by its limit is at most this ratio.
    RatioAtMost(f64),
    /// The figure divided by its limit is at least this ratio.
    RatioAtLeast(f64),
    /// The figure divided by its limit is at most the largest control sample: the limit's work measured again
    /// in the same round, divided by the limit.
    RatioWithinControl,
    /// The figure is at most this, in the unit of the row. The unit is not a time or a rate, whose value
    /// depends on the speed of the host.
    ValueAtMost(f64),
}

/// The text of a goal, also in JSON: `ratio <= 1.6`, `ratio >= 0.5`, `ratio <= that of the limit again`,
/// `value <= 12`.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::RatioAtMost(bound) => write!(f, "ratio <= {bound}"),
            Goal::RatioAtLeast(bound) => write!(f, "ratio >= {bound}"),
            Goal::RatioWithinControl => f.write_str("ratio <= that of the limit again"),
            Goal::ValueAtMost(bound) => write!(f, "value <= {bound}"),
        }
    }
}

/// The declaration of a row of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSpec {
    /// Name of the measurement, as used by filters.
    pub name: &'static str,
    /// Unit of the values and of the limits, e.g. `ns` or `M/s`.
    pub unit: &'static str,
    /// Description of the measurement; in a report, details of the run follow it.
    pub(crate) note: &'static str,
    /// Name of the limit: the row with the best possible value on this host, or with a competitor's figure.
    pub limit: Option<&'static str>,
    /// The target; none for a limit itself.
    pub(crate) goal: Option<Goal>,
    /// Figures that others published for the same work.
    pub(crate) reference: &'static str,
    /// Part of the work that the limit or the goal leaves out. A row with such a part has no verdict.
    pub(crate) limit_excludes: Option<&'static str>,
}

/// Declares a row of this name and unit.
#[must_use]
pub const fn row(name: &'static str, unit: &'static str) -> RowSpec {
    RowSpec { name, unit, note: "", limit: None, goal: None, reference: "", limit_excludes: None }
}

impl RowSpec {
    /// Sets the description of the measurement.
    #[must_use]
    pub const fn note(self, note: &'static str) -> RowSpec {
        RowSpec { note, ..self }
    }

    /// Sets the name of the row that is the limit of this one.
    pub(crate) const fn limit(self, row: &'static str) -> RowSpec {
        RowSpec { limit: Some(row), ..self }
    }

    /// Sets the target.
    #[must_use]
    pub const fn goal(self, goal: Goal) -> RowSpec {
        RowSpec { goal: Some(goal), ..self }
    }

    /// Sets the figures that others published for the same work.
    pub(crate) const fn reference(self, reference: &'static str) -> RowSpec {
        RowSpec { reference, ..self }
    }

    /// Disables the verdict, and describes the part of the work that the limit or the goal leaves out.
    #[must_use]
    pub const fn not_judged(self, limit_excludes: &'static str) -> RowSpec {
        RowSpec { limit_excludes: Some(limit_excludes), ..self }
    }
}

/// One figure of a report: a value for each round, beside the limit of the same round.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name, unit, limit and goal.
    pub spec: RowSpec,
    /// One value for each round; empty if the figure is unavailable on this host.
    pub values: Vec<f64>,
    /// The limit in each round, in the unit of the values.
    pub limits: Vec<f64>,
    /// Control samples: the limit's work measured again in the same round, divided by the limit. They show
    /// the noise between equal measurements. Empty if the limit's work is not measured again.
    pub control: Vec<f64>,
    /// Description of the measurement, with details of the run; or the reason why the values are missing.
    pub note: String,
    /// Error that ended the measurement, which then has no values.
    pub failure: Option<String>,
}

impl Row {
    /// Creates a row without values.
    #[must_use]
    pub fn of(spec: RowSpec) -> Row {
        let (values, limits, control) = (Vec::new(), Vec::new(), Vec::new());
        Row { spec, values, limits, control, note: spec.note.to_owned(), failure: None }
    }

    /// Discards the values of a row whose measurement failed: those of earlier rounds are not trustworthy.
    pub fn fail(&mut self, error: String) {
        *self = Row { note: std::mem::take(&mut self.note), failure: Some(error), ..Row::of(self.spec) };
    }

    /// Median of the values over the rounds.
    pub(crate) fn value(&self) -> Option<f64> {
        median(&self.values)
    }

    /// Median of the limit over the rounds.
    pub(crate) fn limit(&self) -> Option<f64> {
        median(&self.limits)
    }

    /// Median of the rounds' ratios of value to limit. Within a round, value and limit have the same noise.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let rounds = self.values.iter().zip(&self.limits);
        median(&rounds.map(|(value, limit)| value / limit).collect::<Vec<_>>())
    }

    /// Minimum and maximum of the values.
    pub(crate) fn spread(&self) -> Option<[f64; 2]> {
        spread(&self.values)
    }

    /// Minimum and maximum of the control samples.
    pub(crate) fn control_spread(&self) -> Option<[f64; 2]> {
        spread(&self.control)
    }

    /// Returns whether the goal is reached; `None` without a goal, or if `limit_excludes` is set. A figure
    /// that was not measured reaches no goal.
    #[must_use]
    pub fn reached(&self) -> Option<bool> {
        if self.spec.limit_excludes.is_some() {
            return None;
        }
        let holds = |figure: Option<f64>, test: &dyn Fn(f64) -> bool| figure.is_some_and(test);
        self.spec.goal.map(|goal| match goal {
            Goal::RatioAtMost(bound) => holds(self.ratio(), &|ratio| ratio <= bound),
            Goal::RatioAtLeast(bound) => holds(self.ratio(), &|ratio| ratio >= bound),
            Goal::RatioWithinControl => {
                let control = self.control_spread();
                holds(self.ratio(), &|ratio| control.is_some_and(|[_, greatest]| ratio <= greatest))
            }
            Goal::ValueAtMost(bound) => holds(self.value(), &|value| value <= bound),
        })
    }
}

fn spread(values: &[f64]) -> Option<[f64; 2]> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let greatest = values.iter().copied().max_by(f64::total_cmp)?;
    Some([least, greatest])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f64], limits: &[f64], goal: Goal) -> Row {
        Row { values: values.into(), limits: limits.into(), ..Row::of(super::row("x", "ns").goal(goal)) }
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        let row = row(&[10.0, 40.0, 14.0], &[10.0, 20.0, 10.0], Goal::RatioAtMost(1.4));
        assert_eq!((row.value(), row.limit(), row.ratio()), (Some(14.0), Some(10.0), Some(1.4)));
        assert_eq!(row.spread(), Some([10.0, 40.0]));
        assert_eq!(row.reached(), Some(true));
    }

    #[test]
    fn a_ratio_within_the_control_reaches_its_goal() {
        let control = |control: &[f64]| Row {
            control: control.into(),
            ..row(&[11.0, 12.0, 13.0], &[10.0, 10.0, 10.0], Goal::RatioWithinControl)
        };
        assert_eq!(control(&[0.9, 1.2, 1.0]).control_spread(), Some([0.9, 1.2]));
        assert_eq!(control(&[0.9, 1.2, 1.0]).reached(), Some(true), "at the bound");
        assert_eq!(control(&[0.9, 1.19, 1.0]).reached(), Some(false), "beyond it");
        assert_eq!(control(&[]).reached(), Some(false), "not measured again");
    }

    #[test]
    fn goals_include_their_bound() {
        for (goal, holds) in [
            (Goal::RatioAtMost(2.0), true),
            (Goal::RatioAtMost(1.99), false),
            (Goal::RatioAtLeast(2.0), true),
            (Goal::RatioAtLeast(2.01), false),
            (Goal::ValueAtMost(10.0), true),
            (Goal::ValueAtMost(9.9), false),
        ] {
            assert_eq!(row(&[10.0], &[5.0], goal).reached(), Some(holds), "{goal}");
            assert_eq!(row(&[], &[], goal).reached(), Some(false), "{goal}");
        }
        assert_eq!(Row::of(super::row("x", "ns")).reached(), None);
    }

    #[test]
    fn a_row_with_an_incomplete_limit_is_not_judged() {
        let excludes = "one order is in flight at a time";
        let row = row(&[10.0], &[10.0], Goal::ValueAtMost(20.0));
        let row = Row { spec: row.spec.not_judged(excludes), ..row };
        assert_eq!(row.reached(), None);
    }
}

//! One measured figure, its limit and its goal.

use std::fmt;

use crate::statistics::median;

/// What a figure is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The figure divided by its limit is at most this.
    RatioAtMost(f64),
    /// The figure divided by its limit is at least this.
    RatioAtLeast(f64),
    /// The figure divided by its limit is at most what the limit itself came to, measured again beside it, in the round
    /// in which it came to the most.
    RatioWithinAgain,
    /// The figure is at most so much above its limit, in its own unit.
    AboveLimitAtMost(f64),
    /// The figure is at most this, in its own unit.
    ValueAtMost(f64),
    /// The figure is at least this, in its own unit.
    ValueAtLeast(f64),
}

/// As in JSON: `ratio <= 1.6`, `ratio <= that of the limit again`, `value - limit <= 200`, `value >= 25`.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::RatioAtMost(bound) => write!(f, "ratio <= {bound}"),
            Goal::RatioAtLeast(bound) => write!(f, "ratio >= {bound}"),
            Goal::RatioWithinAgain => f.write_str("ratio <= that of the limit again"),
            Goal::AboveLimitAtMost(bound) => write!(f, "value - limit <= {bound}"),
            Goal::ValueAtMost(bound) => write!(f, "value <= {bound}"),
            Goal::ValueAtLeast(bound) => write!(f, "value >= {bound}"),
        }
    }
}

/// One figure of a report: a value for each round, beside the limit of the same round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What is measured, as filters name it.
    pub name: String,
    /// Unit of the values and of the limits, e.g. `ns` or `M/s`.
    pub unit: String,
    /// One value for each round; empty when the figure cannot be had on this host.
    pub values: Vec<f64>,
    /// Name of the limit: what this host needs for the same work at the least, or the twin to be beaten.
    pub limit_name: Option<String>,
    /// The limit in each round, in the unit of the values.
    pub limits: Vec<f64>,
    /// What is equal to the limit, measured beside it in each round, divided by it: how far equal things differ here.
    /// Empty where nothing is measured again.
    pub again: Vec<f64>,
    /// What is to be reached; none for a limit itself.
    pub goal: Option<Goal>,
    /// What others report for the same work.
    pub reference: String,
    /// What exactly is measured, or why it was not.
    pub note: String,
    /// Part of the work that the limit or the goal leaves out. A row that has one is not judged.
    pub limit_excludes: Option<&'static str>,
    /// Error that ended the measurement, which then has no values.
    pub failure: Option<String>,
}

impl Row {
    /// A row without values.
    #[must_use]
    pub fn new(name: &str, unit: &str) -> Row {
        Row { name: name.to_owned(), unit: unit.to_owned(), ..Row::default() }
    }

    /// Gives up the values of a row whose measurement failed: those of earlier rounds are of doubtful worth.
    pub fn fail(&mut self, error: String) {
        self.values.clear();
        self.limits.clear();
        self.again.clear();
        self.failure = Some(error);
    }

    /// Median over the rounds.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        median(&self.values)
    }

    /// Median of the limit over the rounds.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        median(&self.limits)
    }

    /// Value divided by limit: the median of the ratios of each round, since both met the same noise.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let ratios: Vec<f64> =
            self.values.iter().zip(&self.limits).map(|(value, limit)| value / limit).collect();
        median(&ratios)
    }

    /// Value less limit: the median of the differences of each round.
    #[must_use]
    pub fn above_limit(&self) -> Option<f64> {
        let differences: Vec<f64> =
            self.values.iter().zip(&self.limits).map(|(value, limit)| value - limit).collect();
        median(&differences)
    }

    /// Least and greatest value.
    #[must_use]
    pub fn spread(&self) -> Option<[f64; 2]> {
        spread(&self.values)
    }

    /// Least and greatest ratio of what is equal to the limit, measured beside it.
    #[must_use]
    pub fn again_spread(&self) -> Option<[f64; 2]> {
        spread(&self.again)
    }

    /// Whether the goal is reached, none without a goal or where the limit leaves something out. A figure that was not
    /// measured reaches nothing.
    #[must_use]
    pub fn reached(&self) -> Option<bool> {
        if self.limit_excludes.is_some() {
            return None;
        }
        let holds = |figure: Option<f64>, test: &dyn Fn(f64) -> bool| figure.is_some_and(test);
        self.goal.map(|goal| match goal {
            Goal::RatioAtMost(bound) => holds(self.ratio(), &|ratio| ratio <= bound),
            Goal::RatioAtLeast(bound) => holds(self.ratio(), &|ratio| ratio >= bound),
            Goal::RatioWithinAgain => {
                let again = self.again_spread();
                holds(self.ratio(), &|ratio| again.is_some_and(|[_, greatest]| ratio <= greatest))
            }
            Goal::AboveLimitAtMost(bound) => holds(self.above_limit(), &|above| above <= bound),
            Goal::ValueAtMost(bound) => holds(self.value(), &|value| value <= bound),
            Goal::ValueAtLeast(bound) => holds(self.value(), &|value| value >= bound),
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
        Row { values: values.into(), limits: limits.into(), goal: Some(goal), ..Row::new("x", "ns") }
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        let row = row(&[10.0, 40.0, 14.0], &[10.0, 20.0, 10.0], Goal::RatioAtMost(1.4));
        assert_eq!((row.value(), row.limit(), row.ratio()), (Some(14.0), Some(10.0), Some(1.4)));
        assert_eq!(row.spread(), Some([10.0, 40.0]));
        assert_eq!(row.reached(), Some(true));
    }

    #[test]
    fn a_ratio_within_that_of_equals_reaches_its_goal() {
        let again = |again: &[f64]| Row {
            again: again.into(),
            ..row(&[11.0, 12.0, 13.0], &[10.0, 10.0, 10.0], Goal::RatioWithinAgain)
        };
        assert_eq!(again(&[0.9, 1.2, 1.0]).again_spread(), Some([0.9, 1.2]));
        assert_eq!(again(&[0.9, 1.2, 1.0]).reached(), Some(true), "at the bound");
        assert_eq!(again(&[0.9, 1.19, 1.0]).reached(), Some(false), "beyond it");
        assert_eq!(again(&[]).reached(), Some(false), "not measured again");
    }

    #[test]
    fn goals_hold_at_their_bound_and_not_beyond() {
        for (goal, holds) in [
            (Goal::RatioAtMost(2.0), true),
            (Goal::RatioAtMost(1.99), false),
            (Goal::RatioAtLeast(2.0), true),
            (Goal::RatioAtLeast(2.01), false),
            (Goal::AboveLimitAtMost(5.0), true),
            (Goal::AboveLimitAtMost(4.9), false),
            (Goal::ValueAtMost(10.0), true),
            (Goal::ValueAtMost(9.9), false),
            (Goal::ValueAtLeast(10.0), true),
            (Goal::ValueAtLeast(10.1), false),
        ] {
            assert_eq!(row(&[10.0], &[5.0], goal).reached(), Some(holds), "{goal}");
            assert_eq!(row(&[], &[], goal).reached(), Some(false), "{goal}");
        }
        assert_eq!(Row::new("x", "ns").reached(), None);
    }

    #[test]
    fn a_row_whose_limit_leaves_something_out_is_not_judged() {
        let excludes = "one order is in flight at a time";
        let row = Row { limit_excludes: Some(excludes), ..row(&[10.0], &[10.0], Goal::ValueAtMost(20.0)) };
        assert_eq!(row.reached(), None);
    }
}

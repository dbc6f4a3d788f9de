//! When new orders are due.

use tickpath_types::{Draw, Nanos};

/// How the times between new orders are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// All alike.
    Even,
    /// Exponential, as independent arrivals are.
    #[default]
    Exponential,
}

/// Times at which the rate is higher: the first `length` of each `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// From the start of one burst to the start of the next.
    pub period: Nanos,
    /// How long one lasts.
    pub length: Nanos,
    /// How many times the rate; the rate outside of bursts stays as it is.
    pub factor: u32,
}

/// An endless row of due times, a pure function of its settings and seed.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    draw: Draw,
    spacing: Spacing,
    burst: Option<Burst>,
    rate: u32,
    /// In units of 2^-16 ns, so that rates that do not divide a second keep their mean.
    next_q16: u128,
}

impl Schedule {
    /// `rate` per second, the first due after `start`.
    pub fn new(seed: u64, start: Nanos, rate: u32, spacing: Spacing, burst: Option<Burst>) -> Schedule {
        let next_q16 = u128::from(start.0) << 16;
        Schedule { draw: Draw::new(seed), spacing, burst, rate: rate.max(1), next_q16 }
    }

    /// Takes the next due time.
    pub fn next(&mut self) -> Nanos {
        let mean_q16 = (1_000_000_000_u64 << 16) / (u64::from(self.rate) * u64::from(self.factor()));
        let gap = match self.spacing {
            Spacing::Even => mean_q16,
            Spacing::Exponential => self.draw.exponential(mean_q16),
        };
        self.next_q16 += u128::from(gap);
        self.last()
    }

    fn last(&self) -> Nanos {
        Nanos(u64::try_from(self.next_q16 >> 16).unwrap_or(u64::MAX))
    }

    fn factor(&self) -> u32 {
        match self.burst {
            Some(burst) if self.last().0 % burst.period.0.max(1) < burst.length.0 => burst.factor.max(1),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_within(schedule: &mut Schedule, from: Nanos, to: Nanos) -> usize {
        std::iter::repeat_with(|| schedule.next())
            .skip_while(|due| *due < from)
            .take_while(|due| *due < to)
            .count()
    }

    #[test]
    fn the_mean_rate_is_as_asked() {
        for (spacing, slack) in [(Spacing::Even, 1), (Spacing::Exponential, 2_500)] {
            let mut schedule = Schedule::new(3, Nanos(500), 30_007, spacing, None);
            let count = due_within(&mut schedule, Nanos::ZERO, Nanos::from_secs(10));
            assert!(count.abs_diff(300_070) <= slack, "{spacing:?}: {count}");
        }
    }

    #[test]
    fn bursts_multiply_the_rate_while_they_last() {
        let burst = Burst { period: Nanos::from_millis(100), length: Nanos::from_millis(10), factor: 10 };
        let mut schedule = Schedule::new(3, Nanos::ZERO, 10_000, Spacing::Even, Some(burst));
        let inside = due_within(&mut schedule.clone(), Nanos::ZERO, Nanos::from_millis(10));
        let outside = due_within(&mut schedule, Nanos::from_millis(10), Nanos::from_millis(100));
        assert!(inside.abs_diff(1_000) <= 1 && outside.abs_diff(900) <= 1, "{inside} {outside}");
    }
}

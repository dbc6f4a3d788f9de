//! Schedule of the background flow's new orders.

use tickpath_types::{Nanos, Rng};

/// An endless series of due times with exponential intervals, determined by start, rate and seed.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    rng: Rng,
    /// Mean interval in units of 2^-16 ns, so that its rounding hardly changes the rate.
    mean_q16: u64,
    next_q16: u128,
}

impl Schedule {
    /// Creates a schedule of `rate` orders per second after `start`.
    pub fn new(seed: u64, start: Nanos, rate: u32) -> Schedule {
        let mean_q16 = (1_000_000_000_u64 << 16) / u64::from(rate.max(1));
        Schedule { rng: Rng::new(seed), mean_q16, next_q16: u128::from(start.0) << 16 }
    }

    /// Returns the next due time.
    pub fn next(&mut self) -> Nanos {
        self.next_q16 += u128::from(self.rng.exponential(self.mean_q16));
        Nanos(u64::try_from(self.next_q16 >> 16).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_matches_the_setting() {
        let mut schedule = Schedule::new(3, Nanos(500), 30_007);
        let due = std::iter::repeat_with(|| schedule.next());
        let count = due.take_while(|due| *due < Nanos::from_secs(10)).count();
        assert!(count.abs_diff(300_070) <= 2_500, "{count}");
    }
}

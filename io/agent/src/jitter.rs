//! Time that the host takes from a thread that is always ready to run.

use std::fmt;

use tickpath_types::Nanos;

use crate::clock::TscClock;

/// Shortest gap that counts as lost time.
const GAP_MIN: Nanos = Nanos::from_micros(1);

/// Gaps between the clock readings of a thread that only reads its clock.
///
/// Every latency tail measured on the same host contains such gaps: print both together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// Duration of the measurement.
    pub elapsed: Nanos,
    /// Gaps longer than 1 us, including those counted below.
    pub gaps_over_1us: u64,
    /// Gaps longer than 10 us, including those counted below.
    pub gaps_over_10us: u64,
    /// Gaps longer than 100 us, including those counted below.
    pub gaps_over_100us: u64,
    /// Gaps longer than 1 ms.
    pub gaps_over_1ms: u64,
    /// The longest gap.
    pub gap_max: Nanos,
    /// Sum of the gaps longer than 1 us.
    pub lost: Nanos,
}

impl Jitter {
    fn add_gap(&mut self, gap: Nanos) {
        self.gaps_over_1us += u64::from(gap > GAP_MIN);
        self.gaps_over_10us += u64::from(gap > Nanos::from_micros(10));
        self.gaps_over_100us += u64::from(gap > Nanos::from_micros(100));
        self.gaps_over_1ms += u64::from(gap > Nanos::from_millis(1));
        self.gap_max = self.gap_max.max(gap);
        self.lost = self.lost + gap;
    }

    /// Share of `elapsed` that was lost, 0 to 1.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        if self.elapsed == Nanos::ZERO { 0.0 } else { self.lost.0 as f64 / self.elapsed.0 as f64 }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "in {}: {} gaps >1us, {} >10us, {} >100us, {} >1ms, max {}, {:.2} % of the time lost",
            self.elapsed,
            self.gaps_over_1us,
            self.gaps_over_10us,
            self.gaps_over_100us,
            self.gaps_over_1ms,
            self.gap_max,
            self.lost_share() * 100.0
        )
    }
}

/// Spins on `clock` for `time` and reports the gaps between its readings.
#[must_use]
pub fn measure_jitter(clock: &TscClock, time: Nanos) -> Jitter {
    let gap_ticks_min = clock.nanos_to_ticks(GAP_MIN);
    let start = clock.ticks();
    let end = start + clock.nanos_to_ticks(time);
    let mut jitter = Jitter::default();
    let mut previous = start;
    while previous < end {
        let ticks = clock.ticks();
        let gap = ticks.saturating_sub(previous);
        if gap > gap_ticks_min {
            jitter.add_gap(clock.ticks_to_nanos(gap));
        }
        previous = ticks;
    }
    jitter.elapsed = clock.ticks_to_nanos(previous - start);
    jitter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_in_every_class_that_it_exceeds() {
        let mut jitter = Jitter::default();
        for gap in [1_000, 1_001, 10_001, 100_001, 1_000_001] {
            jitter.add_gap(Nanos(gap));
        }
        let counts =
            [jitter.gaps_over_1us, jitter.gaps_over_10us, jitter.gaps_over_100us, jitter.gaps_over_1ms];
        assert_eq!(counts, [4, 3, 2, 1]);
        assert_eq!(jitter.gap_max, Nanos(1_000_001));
        assert_eq!(jitter.lost, Nanos(1_112_004));
    }

    #[test]
    fn the_requested_time_is_measured_and_bounds_the_loss() {
        let jitter = measure_jitter(&TscClock::shared(), Nanos::from_millis(2));
        assert!(jitter.elapsed >= Nanos::from_millis(2) - Nanos(10));
        assert!(jitter.lost <= jitter.elapsed);
        assert!(jitter.to_string().contains("of the time lost"));
    }
}

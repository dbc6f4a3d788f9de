//! The schedule by which ticks are generated.

use tickpath_types::Nanos;

use super::settings::TickRate;

/// Maximum lag behind the schedule. At a larger lag, all due ticks are dropped.
const LAG_MAX: Nanos = Nanos::from_secs(1);

/// The schedule of a rate: tick `i` is due at start + i / rate, however late earlier ticks were generated.
#[derive(Debug)]
pub(super) struct Pace {
    /// Interval between two ticks: whole nanoseconds, and the remainder `interval_rest` in units of 2^-32 ns.
    /// Both are 0 at [`TickRate::Max`].
    interval: u64,
    interval_rest: u32,
    /// Time at which the next tick is due: nanoseconds, and `due_rest` in units of 2^-32 ns.
    due: u64,
    due_rest: u32,
}

impl Pace {
    /// Creates a schedule that begins at `now`.
    pub(super) fn new(rate: TickRate, now: Nanos) -> Pace {
        let (interval, interval_rest) = match rate {
            TickRate::Max => (0, 0),
            TickRate::PerSecond(rate) => {
                let scaled = (1_000_000_000_u128 << 32) / u128::from(rate);
                ((scaled >> 32) as u64, scaled as u32)
            }
        };
        Pace { interval, interval_rest, due: now.0, due_rest: 0 }
    }

    /// Returns the number of ticks due by now, at most `max`.
    #[inline]
    pub(super) fn due(&self, now: Nanos, max: u64) -> u64 {
        if now.0 < self.due {
            return 0;
        }
        // Rounding the interval up makes the number slightly too low; the remaining ticks wait for the next
        // call.
        ((now.0 - self.due) / (self.interval + 1) + 1).min(max)
    }

    /// Returns the time at which the next tick is due.
    #[inline]
    pub(super) fn next_due(&self) -> Nanos {
        Nanos(self.due)
    }

    /// Removes the next tick from the schedule and returns its due time.
    #[inline]
    pub(super) fn take(&mut self) -> Nanos {
        let ts = Nanos(self.due);
        let (rest, carries) = self.due_rest.overflowing_add(self.interval_rest);
        self.due_rest = rest;
        self.due += self.interval + u64::from(carries);
        ts
    }

    /// If the next tick is more than [`LAG_MAX`] late, drops all due ticks and returns their number.
    pub(super) fn drop_late(&mut self, now: Nanos) -> u64 {
        let late = now.since(Nanos(self.due));
        if late <= LAG_MAX || self.interval == 0 {
            return 0;
        }
        let dropped = late.0 / (self.interval + 1);
        self.due = now.0;
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_to_the_tick() {
        for rate in [1, 3, 7_000, 100_000, 333_333, 99_999_999] {
            let mut pace = Pace::new(TickRate::PerSecond(rate), Nanos(5));
            let mut last = Nanos(0);
            for _ in 0..rate.min(200_000) {
                last = pace.take();
            }
            let count = u64::from(rate.min(200_000)) - 1;
            let expected = 5 + (u128::from(count) * 1_000_000_000 / u128::from(rate)) as u64;
            assert!(last.0.abs_diff(expected) <= 1, "{rate}: {last:?} {expected}");
        }
    }

    #[test]
    fn ticks_are_due_at_their_times_and_not_before() {
        let mut pace = Pace::new(TickRate::PerSecond(1_000_000), Nanos(1_000));
        assert_eq!(pace.due(Nanos(999), 10), 0);
        assert_eq!(pace.due(Nanos(1_000), 10), 1);
        assert_eq!(pace.due(Nanos(1_000_000), 10), 10);
        assert_eq!(pace.take(), Nanos(1_000));
        assert_eq!((pace.due(Nanos(1_999), 10), pace.next_due()), (0, Nanos(2_000)));
        let mut taken = 0;
        while pace.due(Nanos(10_000_000), u64::MAX) > 0 {
            assert!(pace.take() <= Nanos(10_000_000));
            taken += 1;
        }
        assert_eq!(taken, 9_999, "one for each microsecond");
    }

    #[test]
    fn ticks_late_by_over_a_second_are_dropped() {
        let mut pace = Pace::new(TickRate::PerSecond(1_000), Nanos(0));
        assert_eq!(pace.drop_late(Nanos::from_secs(1)), 0);
        let given_up = pace.drop_late(Nanos::from_secs(3));
        assert!((2_990..=3_000).contains(&given_up), "{given_up}");
        assert_eq!(pace.take(), Nanos::from_secs(3));
    }
}

//! The order rate limit.

use tickpath_types::Nanos;

/// A token bucket for new orders and replacements: `per_second` on average, `burst` at once.
///
/// Stored as the time at which the bucket would be full again (the generic cell rate algorithm), so it needs
/// no refill and no fraction of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRate {
    interval_ns: u64,
    tolerance_ns: u64,
    full_at: Nanos,
}

impl OrderRate {
    /// Maximum rate, in orders per second: one order per nanosecond. A higher rate counts as this one.
    pub const PER_SECOND_MAX: u32 = 1_000_000_000;

    /// Creates a full bucket. `per_second` and `burst` of 0 count as 1.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> OrderRate {
        let interval_ns = u64::from(Self::PER_SECOND_MAX / per_second.clamp(1, Self::PER_SECOND_MAX));
        OrderRate {
            interval_ns,
            tolerance_ns: interval_ns * u64::from(burst.max(1) - 1),
            full_at: Nanos::ZERO,
        }
    }

    /// Returns true if the rate limit allows an order now.
    #[must_use]
    pub fn has_token(&self, now: Nanos) -> bool {
        self.full_at <= now + Nanos(self.tolerance_ns)
    }

    /// Takes a token for an order that is sent now.
    pub fn take(&mut self, now: Nanos) {
        self.full_at = self.full_at.max(now) + Nanos(self.interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rate: &mut OrderRate, now: Nanos, attempts: usize) -> usize {
        (0..attempts).filter(|_| rate.has_token(now).then(|| rate.take(now)).is_some()).count()
    }

    #[test]
    fn a_burst_passes_and_then_one_per_interval() {
        let mut rate = OrderRate::new(1_000, 5);
        let start = Nanos::from_secs(9);
        assert_eq!(taken(&mut rate, start, 20), 5);
        assert_eq!(taken(&mut rate, start + Nanos(999_999), 20), 0);
        assert_eq!(taken(&mut rate, start + Nanos::from_millis(1), 20), 1);
        assert_eq!(taken(&mut rate, start + Nanos::from_millis(3), 20), 2);
        assert_eq!(taken(&mut rate, start + Nanos::from_secs(60), 20), 5, "a full bucket holds the burst");
    }

    #[test]
    fn the_rate_holds_over_any_second() {
        let mut rate = OrderRate::new(300, 10);
        let count: usize = (0..10_000).map(|step| taken(&mut rate, Nanos(step * 100_000), 3)).sum();
        assert!((300..=310).contains(&count), "{count}");
        assert_eq!(taken(&mut OrderRate::new(0, 0), Nanos::ZERO, 3), 1);
    }
}

//! Token buckets that limit message rates.

use tickpath_types::Nanos;

/// A sustained message rate, and the maximum burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Sustained messages per second; at least 1.
    pub per_second: u32,
    /// Messages in one burst; at least 1.
    pub burst: u32,
}

/// Units of a bucket's level per token. At one token per second, one unit is added per nanosecond.
const TOKEN: u64 = 1_000_000_000;

/// A bucket of up to `burst` tokens that gains `per_second` tokens a second, exact to 10^-9 tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    per_second: u64,
    capacity: u64,
    level: u64,
    /// Time of the last refill.
    at: Nanos,
}

impl TokenBucket {
    pub(crate) fn new(limit: RateLimit) -> TokenBucket {
        let capacity = u64::from(limit.burst) * TOKEN;
        TokenBucket { per_second: limit.per_second.into(), capacity, level: capacity, at: Nanos::ZERO }
    }

    /// Takes a token if available; returns whether it did.
    pub(crate) fn take(&mut self, now: Nanos) -> bool {
        self.refill(now);
        let has_token = self.level >= TOKEN;
        if has_token {
            self.level -= TOKEN;
        }
        has_token
    }

    /// Takes a token, or the remaining fraction of one, for a message that is accepted in any case.
    pub(crate) fn charge(&mut self, now: Nanos) {
        self.refill(now);
        self.level = self.level.saturating_sub(TOKEN);
    }

    /// Adds the tokens gained since the last refill; none if the clock went back.
    fn refill(&mut self, now: Nanos) {
        let elapsed = now.0.saturating_sub(self.at.0);
        self.at = self.at.max(now);
        self.level = self.level.saturating_add(elapsed.saturating_mul(self.per_second)).min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &mut TokenBucket, now: u64, tries: usize) -> usize {
        (0..tries).filter(|_| bucket.take(Nanos(now))).count()
    }

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: 1_000, burst: 5 });
        let start = 7_000_000_000;
        assert_eq!(taken(&mut bucket, start, 9), 5);
        assert_eq!(taken(&mut bucket, start + 999_999, 9), 0, "a nanosecond early");
        assert_eq!(taken(&mut bucket, start + 1_000_000, 9), 1);
        assert_eq!(taken(&mut bucket, start + 3_999_999, 9), 2);
        assert_eq!(taken(&mut bucket, start + 4_000_000, 9), 1, "nothing was rounded away");
        assert_eq!(taken(&mut bucket, start + 3_600_000_000_000, 9), 5, "never more than the burst");
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_is_exact() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: 7, burst: 2 });
        assert_eq!(taken(&mut bucket, 0, 9), 2);
        let count: usize = (1..=300).map(|tick| taken(&mut bucket, tick * 33_333_334, 9)).sum();
        assert_eq!(count, 70, "300 ticks are 10.0000002 s");
    }

    #[test]
    fn charges_stop_at_an_empty_bucket() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: 1, burst: 2 });
        for _ in 0..100 {
            bucket.charge(Nanos(5));
        }
        assert_eq!(taken(&mut bucket, 5, 1), 0);
        assert_eq!(taken(&mut bucket, 1_000_000_005, 2), 1, "no debt");
    }

    #[test]
    fn a_backward_clock_or_overflow_does_not_refill() {
        let mut bucket = TokenBucket::new(RateLimit { per_second: u32::MAX, burst: u32::MAX });
        assert!(bucket.take(Nanos(u64::MAX)));
        let mut bucket = TokenBucket::new(RateLimit { per_second: 1, burst: 1 });
        assert_eq!(taken(&mut bucket, 9_000_000_000, 2), 1);
        assert_eq!(taken(&mut bucket, 1_000_000_000, 2), 0);
        assert_eq!(taken(&mut bucket, 9_999_999_999, 2), 0);
    }
}

//! Histograms with fixed bounds, written by one thread without a lock.

use tickpath_agent::Counter;

/// Bounds for times on this machine, in nanoseconds: 500 ns to 20 us.
pub const PROFILE_NS: [u64; 6] = [500, 1_000, 2_000, 5_000, 10_000, 20_000];
/// Bounds for times across a network, in nanoseconds: 20 us to 5 s.
pub const NETWORK_NS: [u64; 15] = [
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
];

/// Counts of values within each bound. One thread records, any other reads; a reader may see a value in the
/// count before it is in the sum.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One count for each bound, and one for all larger values.
    buckets: Box<[Counter]>,
    sum: Counter,
}

impl Histogram {
    /// Creates a histogram with these bounds, ascending; a value that equals a bound is within it.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Histogram {
        debug_assert!(bounds.is_sorted(), "bounds ascend");
        Histogram {
            bounds,
            buckets: (0..=bounds.len()).map(|_| Counter::default()).collect(),
            sum: Counter::default(),
        }
    }

    /// Records a value. Only the writer thread may call this.
    #[inline]
    pub fn record(&self, value: u64) {
        // One comparison per bound, and no branches.
        let place: usize = self.bounds.iter().map(|bound| usize::from(value > *bound)).sum();
        self.buckets[place].add(1);
        self.sum.set(self.sum.read().wrapping_add(value));
    }

    /// Resets all counts, e.g. when a slot gets another client. Only the writer thread may call this.
    pub fn clear(&self) {
        self.buckets.iter().for_each(|bucket| bucket.set(0));
        self.sum.set(0);
    }

    /// Number of values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::read).sum()
    }

    /// Sum of the values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.read()
    }

    /// Returns each bound with the number of values within it, and finally `None` with the total number.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let mut count = 0;
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(&self.buckets).map(move |(bound, bucket)| {
            count += bucket.read();
            (bound, count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_within_their_bounds() {
        let histogram = Histogram::new(&PROFILE_NS);
        for value in [0, 500, 501, 1_000, 20_000, 20_001, u64::MAX - 42_002] {
            histogram.record(value);
        }
        let found: Vec<(Option<u64>, u64)> = histogram.cumulative().collect();
        let expected = [
            (Some(500), 2),
            (Some(1_000), 4),
            (Some(2_000), 4),
            (Some(5_000), 4),
            (Some(10_000), 4),
            (Some(20_000), 5),
            (None, 7),
        ];
        assert_eq!(found, expected);
        assert_eq!((histogram.count(), histogram.sum()), (7, u64::MAX));
        histogram.record(1);
        assert_eq!(histogram.sum(), 0, "a sum goes around, as counters of Prometheus may");
        histogram.clear();
        assert_eq!((histogram.count(), histogram.sum()), (0, 0));
    }

    #[test]
    fn bounds_ascend() {
        assert!(PROFILE_NS.is_sorted() && NETWORK_NS.is_sorted());
    }
}

//! A series of signed durations: histograms, with exact extremes and sums.

use hdrhistogram::Histogram;

use crate::Calibration;

/// Longest duration that a histogram holds, in nanoseconds: 60 s. Longer ones are recorded as 60 s.
pub const DURATION_NS_MAX: u64 = 60_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Negative durations are few and short: two significant digits take an eighth of the memory.
const SIGNIFICANT_DIGITS_NEGATIVE: u8 = 2;

/// Durations of one pair of hops, span or function. All memory is allocated at creation: about 250 KiB.
pub(crate) struct Series {
    calibration: Calibration,
    /// Durations from 0 up, in nanoseconds.
    histogram: Histogram<u64>,
    /// Magnitudes of negative durations, in nanoseconds.
    negatives: Histogram<u64>,
    above: u64,
    sum_ticks: i128,
    min_ticks: i64,
    max_ticks: i64,
}

/// Statistics of a series, in nanoseconds.
///
/// Negative durations are included in every value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of durations.
    pub count: u64,
    /// Number of negative durations.
    pub negatives: u64,
    /// Number of durations longer than [`DURATION_NS_MAX`]; quantiles treat them as exactly that long.
    pub above: u64,
    /// Shortest duration; may be negative.
    pub min_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// 90 % quantile.
    pub p90_ns: i64,
    /// 99 % quantile.
    pub p99_ns: i64,
    /// 99.9 % quantile.
    pub p999_ns: i64,
    /// Longest duration; may be negative.
    pub max_ns: i64,
    /// The exact mean. For the same messages, the means of pairs add up to the mean of their span.
    pub mean_ns: f64,
}

impl Series {
    pub(crate) fn new(calibration: Calibration) -> Series {
        let histogram = |digits| {
            Histogram::new_with_bounds(1, DURATION_NS_MAX, digits).expect("1 ns to 60 s are valid bounds")
        };
        Series {
            calibration,
            histogram: histogram(SIGNIFICANT_DIGITS),
            negatives: histogram(SIGNIFICANT_DIGITS_NEGATIVE),
            above: 0,
            sum_ticks: 0,
            min_ticks: i64::MAX,
            max_ticks: i64::MIN,
        }
    }

    pub(crate) fn record(&mut self, ticks: i64) {
        self.sum_ticks += i128::from(ticks);
        self.min_ticks = self.min_ticks.min(ticks);
        self.max_ticks = self.max_ticks.max(ticks);
        let ns = self.calibration.nanos(ticks.unsigned_abs()).0;
        self.above += u64::from(ns > DURATION_NS_MAX);
        let histogram = if ticks < 0 { &mut self.negatives } else { &mut self.histogram };
        histogram.saturating_record(ns.min(DURATION_NS_MAX));
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len() + self.negatives.len()
    }

    /// The shortest duration, in nanoseconds, that a share of `quantile` of all durations does not exceed; 0
    /// without durations.
    ///
    /// The histogram returns the end of a bucket, so the result is clamped to the shortest and longest
    /// duration.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> i64 {
        if self.count() == 0 {
            return 0;
        }
        let [min, max] = [self.min_ticks, self.max_ticks].map(|ticks| self.calibration.signed_nanos(ticks));
        self.bucket_end_ns(quantile).clamp(min, max)
    }

    fn bucket_end_ns(&self, quantile: f64) -> i64 {
        let (negatives, others) = (self.negatives.len(), self.histogram.len());
        let rank = (quantile * self.count() as f64).ceil().max(1.0) as u64;
        let value = |histogram: &Histogram<u64>, rank: u64, count: u64| {
            histogram.value_at_quantile(rank as f64 / count as f64) as i64
        };
        if rank <= negatives {
            // Among the negative durations, the lowest rank has the greatest magnitude.
            -value(&self.negatives, negatives - rank + 1, negatives)
        } else {
            value(&self.histogram, rank - negatives, others)
        }
    }

    /// Longest duration, in nanoseconds; 0 without durations.
    pub(crate) fn max_ns(&self) -> i64 {
        if self.count() == 0 { 0 } else { self.calibration.signed_nanos(self.max_ticks) }
    }

    pub(crate) fn summary(&self) -> Summary {
        let count = self.count();
        if count == 0 {
            return Summary::default();
        }
        Summary {
            count,
            negatives: self.negatives.len(),
            above: self.above,
            min_ns: self.calibration.signed_nanos(self.min_ticks),
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p999_ns: self.quantile_ns(0.999),
            max_ns: self.calibration.signed_nanos(self.max_ticks),
            mean_ns: self.calibration.fractional_nanos(self.sum_ticks as f64 / count as f64),
        }
    }

    /// Removes all durations; keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.histogram.reset();
        self.negatives.reset();
        (self.above, self.sum_ticks) = (0, 0);
        (self.min_ticks, self.max_ticks) = (i64::MAX, i64::MIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(durations: &[i64]) -> Series {
        let mut series = Series::new(Calibration::identity());
        for ticks in durations {
            series.record(*ticks);
        }
        series
    }

    #[test]
    fn a_small_series_is_exact() {
        let summary = series(&[10, 20, 30, 40]).summary();
        assert_eq!((summary.count, summary.negatives, summary.above), (4, 0, 0));
        assert_eq!((summary.min_ns, summary.p50_ns, summary.p90_ns, summary.max_ns), (10, 20, 40, 40));
        assert!((summary.mean_ns - 25.0).abs() < 1e-9);
        assert_eq!(Series::new(Calibration::identity()).summary(), Summary::default());
    }

    #[test]
    fn negatives_count_in_every_statistic() {
        let summary = series(&[-100, -50, 0, 30]).summary();
        assert_eq!((summary.count, summary.negatives), (4, 2));
        assert_eq!((summary.min_ns, summary.max_ns), (-100, 30));
        assert_eq!((summary.p50_ns, summary.p99_ns), (-50, 30));
        assert!((summary.mean_ns + 30.0).abs() < 1e-9);
        let all = series(&[-3, -2]).summary();
        assert_eq!((all.p50_ns, all.p999_ns, all.max_ns), (-3, -2, -2));
        let series = series(&[5, -1, -9, -4, 7]);
        let quantiles = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(|quantile| series.quantile_ns(quantile));
        assert_eq!(quantiles, [-9, -9, -4, -1, 5, 7]);
    }

    #[test]
    fn the_bound_of_60_s_clamps_and_counts() {
        let bound = DURATION_NS_MAX as i64;
        let summary = series(&[bound, bound + 1]).summary();
        assert_eq!((summary.count, summary.above, summary.max_ns), (2, 1, bound + 1));
        assert!(summary.p999_ns.abs_diff(bound) < DURATION_NS_MAX / 1_000);
    }

    #[test]
    fn the_tail_is_kept_to_three_digits() {
        let mut durations = vec![100; 999];
        durations.push(3_000_000);
        let summary = series(&durations).summary();
        assert_eq!((summary.p50_ns, summary.p999_ns, summary.max_ns), (100, 100, 3_000_000));
        durations.push(3_000_000);
        let p999 = series(&durations).summary().p999_ns;
        assert!(p999.abs_diff(3_000_000) < 3_000, "{p999}");
    }

    #[test]
    fn no_quantile_is_beyond_the_shortest_or_the_longest() {
        // The bucket of 1,000,001 ends at 1,000,447, that of -1,000,001 at -1,003,519.
        for duration in [1_000_001, -1_000_001] {
            let series = series(&[duration; 3]);
            let summary = series.summary();
            assert_eq!((summary.p50_ns, summary.p999_ns, summary.max_ns), (duration, duration, duration));
            assert_eq!(series.quantile_ns(0.99), duration);
        }
    }

    #[test]
    fn a_reset_series_is_a_new_one() {
        let mut series = series(&[-5, 5]);
        series.reset();
        assert_eq!(series.summary(), Summary::default());
        series.record(7);
        let summary = series.summary();
        assert_eq!((summary.count, summary.min_ns, summary.max_ns, summary.p50_ns), (1, 7, 7, 7));
    }
}

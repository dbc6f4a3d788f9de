//! Latencies by hop, in histograms that one thread fills and others read.

use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_types::Nanos;

/// A part of a tick's latency, between two of its time stamps T0 to T6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// T0 to T2: from generation until the server takes the tick for sending.
    Server,
    /// T2 to T3: from the server taking the tick for sending until this client reads it.
    Network,
    /// T3 to T4: from this client's read until the tick is checked and passed to the listener.
    Parse,
    /// T4 to T5: from the listener's call until the tick is stored in the cache.
    Cache,
    /// T0 to T5: from generation until stored in the cache.
    Total,
    /// T0 to T6: from generation until drawn as the latest quote of a row.
    Draw,
}

impl Span {
    /// All spans: the consecutive parts of a tick's path, then the two totals.
    pub const ALL: [Span; 6] =
        [Span::Server, Span::Network, Span::Parse, Span::Cache, Span::Total, Span::Draw];

    /// Returns the span's name, formed from its first and last time stamp.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Span::Server => "T0_T2",
            Span::Network => "T2_T3",
            Span::Parse => "T3_T4",
            Span::Cache => "T4_T5",
            Span::Total => "T0_T5",
            Span::Draw => "T0_T6",
        }
    }

    /// Returns a short description of the span.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Span::Server => "created to sent",
            Span::Network => "sent to read",
            Span::Parse => "read to checked",
            Span::Cache => "checked to cached",
            Span::Total => "created to cached",
            Span::Draw => "created to drawn",
        }
    }
}

/// Number of buckets per doubling of the value, so that a value is accurate to one part in 32.
const PARTS: u64 = 32;
/// Each value below this has a separate bucket.
const EXACT_BELOW: u64 = 2 * PARTS;
/// Doublings from `EXACT_BELOW` to 2^42 ns, more than an hour; longer latencies count in the last bucket.
const DOUBLINGS: usize = 36;
const BUCKETS: usize = EXACT_BELOW as usize + DOUBLINGS * PARTS as usize;

/// Percentiles of the latencies of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of recorded latencies.
    pub count: u64,
    /// Median in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile in nanoseconds.
    pub p999_ns: u64,
    /// Maximum in nanoseconds.
    pub max_ns: u64,
}

struct Histogram {
    buckets: Box<[AtomicU64]>,
    max_ns: AtomicU64,
}

impl Histogram {
    fn new() -> Histogram {
        Histogram { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), max_ns: AtomicU64::new(0) }
    }

    /// Records a value by a load and a store, without a lock. Only one thread may call it.
    #[inline]
    fn record(&self, ns: u64) {
        let bucket = &self.buckets[bucket_of(ns)];
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }

    fn percentiles(&self) -> Percentiles {
        let mut counts = [0; BUCKETS];
        counts
            .iter_mut()
            .zip(&self.buckets)
            .for_each(|(count, bucket)| *count = bucket.load(Ordering::Relaxed));
        let count = counts.iter().sum::<u64>();
        let max_ns = self.max_ns.load(Ordering::Relaxed);
        let at = |part: u64| {
            let rank = count.saturating_mul(part).div_ceil(1000).max(1);
            let mut seen = 0;
            let bucket = counts.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            bucket.map_or(0, |bucket| upper_end(bucket).min(max_ns))
        };
        Percentiles { count, p50_ns: at(500), p99_ns: at(990), p999_ns: at(999), max_ns }
    }

    fn clear(&self) {
        self.buckets.iter().for_each(|bucket| bucket.store(0, Ordering::Relaxed));
        self.max_ns.store(0, Ordering::Relaxed);
    }
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < EXACT_BELOW {
        return ns as usize;
    }
    let doubling = ns.ilog2() - EXACT_BELOW.ilog2();
    let part = (ns >> (doubling + 1)) - PARTS;
    (EXACT_BELOW as usize + doubling as usize * PARTS as usize + part as usize).min(BUCKETS - 1)
}

/// Returns the largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT_BELOW {
        return bucket;
    }
    let (doubling, part) = ((bucket - EXACT_BELOW) / PARTS, (bucket - EXACT_BELOW) % PARTS);
    ((PARTS + part + 1) << (doubling + 1)) - 1
}

/// Histograms of all spans: one thread records, any thread reads.
pub struct Latencies {
    spans: [Histogram; Span::ALL.len()],
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl Latencies {
    /// Creates empty histograms; allocates all memory now.
    #[must_use]
    pub fn new() -> Latencies {
        Latencies { spans: Span::ALL.map(|_| Histogram::new()) }
    }

    /// Returns the percentiles of the values recorded so far.
    #[must_use]
    pub fn percentiles(&self, span: Span) -> Percentiles {
        self.spans[span as usize].percentiles()
    }

    /// Clears the histograms of all spans. A value that is recorded concurrently may remain.
    pub fn clear(&self) {
        self.spans.iter().for_each(Histogram::clear);
    }

    /// Records a latency; only one thread may record each span. A negative difference, as between two clocks,
    /// counts as zero.
    #[inline]
    pub fn record(&self, span: Span, from: Nanos, to: Nanos) {
        self.spans[span as usize].record(to.since(from).0);
    }
}

/// Maximum number of ticks per batch whose latencies are recorded. In a longer batch, they are evenly spaced.
const MEASURED_MAX: usize = 32;

/// Returns the index step between measured ticks in a batch of `count` ticks.
#[inline]
pub(super) fn step(count: usize) -> usize {
    count.div_ceil(MEASURED_MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_lose_at_most_a_part_in_32() {
        assert!((1..100_000).all(|ns| [0, 1].contains(&(bucket_of(ns) - bucket_of(ns - 1)))));
        for ns in (0..100_000).chain((0..42).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let end = upper_end(bucket_of(ns));
            assert!(end >= ns && end - ns <= ns / PARTS, "{ns} {end}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_match_the_recorded_values() {
        let latencies = Latencies::new();
        assert_eq!(latencies.percentiles(Span::Total), Percentiles::default());
        for ns in 1..=1000 {
            latencies.record(Span::Total, Nanos(5), Nanos(5 + ns));
        }
        latencies.record(Span::Total, Nanos(5), Nanos(4));
        let found = latencies.percentiles(Span::Total);
        assert_eq!((found.count, found.max_ns), (1001, 1000));
        assert!(found.p50_ns.abs_diff(500) <= 16 && found.p99_ns.abs_diff(990) <= 32, "{found:?}");
        latencies.clear();
        assert_eq!(latencies.percentiles(Span::Total).count, 0);
    }
}

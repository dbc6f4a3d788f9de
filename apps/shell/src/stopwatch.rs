//! Named stopwatches with histograms.

use std::fmt;

use hdrhistogram::Histogram;
use tickpath_types::Nanos;

/// The longest time that is distinguished from longer ones.
const LONGEST_NS: u64 = 120_000_000_000;
/// Significant digits of a recorded time.
const DIGITS: u8 = 2;

/// A measured interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// From the command to the send: encoding, TLS, and the kernel's acceptance.
    SendRequest,
    /// From the send of the login request until its answer is processed. At a native venue: from the start of
    /// the connection until all drop copies are read.
    E2eAuth,
    /// From the buy command to the venue's answer.
    E2eBuyOrder,
    /// From any request to its answer.
    RoundTrip,
}

impl Span {
    /// All intervals.
    pub const ALL: [Span; 4] = [Span::SendRequest, Span::E2eAuth, Span::E2eBuyOrder, Span::RoundTrip];

    /// The interval's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Span::SendRequest => "send_request",
            Span::E2eAuth => "e2e_auth",
            Span::E2eBuyOrder => "e2e_buy_order",
            Span::RoundTrip => "round_trip",
        }
    }
}

/// The stopwatches.
#[derive(Debug)]
pub struct Stopwatches([Histogram<u64>; Span::ALL.len()]);

/// Statistics of a stopwatch, in nanoseconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Figures {
    /// The stopwatch's name.
    pub name: &'static str,
    /// Number of measurements.
    pub count: u64,
    /// Minimum.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl Default for Stopwatches {
    fn default() -> Stopwatches {
        Stopwatches(Span::ALL.map(|_| {
            Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("bounds and digits are such as it takes")
        }))
    }
}

impl Stopwatches {
    /// Records a time; one above two minutes counts as two minutes.
    pub fn record(&mut self, span: Span, time: Nanos) {
        self.0[span as usize].saturating_record(time.0.max(1));
    }

    /// Clears all measurements.
    pub fn reset(&mut self) {
        self.0.iter_mut().for_each(Histogram::reset);
    }

    /// Statistics of all stopwatches with measurements.
    pub fn figures(&self) -> impl Iterator<Item = Figures> {
        Span::ALL.into_iter().zip(&self.0).filter(|(_, times)| !times.is_empty()).map(|(span, times)| {
            Figures {
                name: span.name(),
                count: times.len(),
                min_ns: times.min(),
                p50_ns: times.value_at_quantile(0.5),
                p99_ns: times.value_at_quantile(0.99),
                max_ns: times.max(),
            }
        })
    }

    /// The histogram by powers of two of nanoseconds: upper end and count.
    #[must_use]
    pub fn buckets(&self, span: Span) -> Vec<(Nanos, u64)> {
        let times = &self.0[span as usize];
        let mut buckets: Vec<(Nanos, u64)> = Vec::new();
        for step in times.iter_recorded() {
            let end = Nanos(step.value_iterated_to().next_power_of_two());
            match buckets.last_mut() {
                Some((last, count)) if *last == end => *count += step.count_at_value(),
                _ => buckets.push((end, step.count_at_value())),
            }
        }
        buckets
    }
}

/// A time formatted for people: `850 ns`, `21.3 us`, `4.20 ms`, `1.50 s`.
#[derive(Clone, Copy, Debug)]
pub struct Readable(pub Nanos);

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.0;
        // In hundredths, to avoid floating point.
        let (scale, unit) = match ns {
            0..1_000 => return f.pad(&format!("{ns} ns")),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let hundredths = ns / (scale / 100);
        f.pad(&format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_and_read() {
        let mut watches = Stopwatches::default();
        assert_eq!(watches.figures().count(), 0);
        for time in [0, 1_000, 2_000, u64::MAX] {
            watches.record(Span::E2eAuth, Nanos(time));
        }
        let figures: Vec<Figures> = watches.figures().collect();
        assert_eq!((figures.len(), figures[0].name, figures[0].count), (1, "e2e_auth", 4));
        assert_eq!(watches.buckets(Span::E2eAuth).iter().map(|(_, count)| count).sum::<u64>(), 4);
        watches.reset();
        assert!(watches.buckets(Span::E2eAuth).is_empty());
    }

    #[test]
    fn times_are_written_with_their_unit() {
        for (ns, text) in
            [(850, "850 ns"), (21_300, "21.30 us"), (4_200_000, "4.20 ms"), (1_500_000_000, "1.50 s")]
        {
            assert_eq!(Readable(Nanos(ns)).to_string(), text);
        }
    }
}

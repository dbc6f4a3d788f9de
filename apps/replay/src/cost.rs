//! What each message cost, and how much memory all of it took.

use std::fs;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Digits that a block's cost is kept to.
const SIGNIFICANT_DIGITS: u8 = 3;
const PS_PER_NS: u64 = 1_000;

/// The cost of messages, measured block by block.
pub(crate) struct CostMeter {
    /// Picoseconds per message, one value a block.
    blocks: Histogram<u64>,
    total: Duration,
    messages: u64,
}

/// What a message cost, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Median over the blocks.
    pub median_ns: f64,
    /// The total divided by the messages.
    pub mean_ns: f64,
    /// Blocks.
    pub blocks: u64,
}

impl CostMeter {
    pub(crate) fn new() -> CostMeter {
        let blocks = Histogram::new(SIGNIFICANT_DIGITS).expect("between 0 and 5 digits");
        CostMeter { blocks, total: Duration::ZERO, messages: 0 }
    }

    pub(crate) fn record(&mut self, elapsed: Duration, messages: usize) {
        if messages > 0 {
            let ps = elapsed.as_nanos() as u64 * PS_PER_NS / messages as u64;
            self.blocks.record(ps.max(1)).expect("it grows as need be");
            self.total += elapsed;
            self.messages += messages as u64;
        }
    }

    /// `None` when nothing was measured.
    pub(crate) fn cost(&self) -> Option<Cost> {
        (self.messages > 0).then(|| Cost {
            median_ns: self.blocks.value_at_quantile(0.5) as f64 / PS_PER_NS as f64,
            mean_ns: self.total.as_nanos() as f64 / self.messages as f64,
            blocks: self.blocks.len(),
        })
    }
}

/// The most memory that this process had at a time, in bytes; `None` where the system does not tell.
#[must_use]
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_over_blocks_and_the_mean_over_messages() {
        let mut meter = CostMeter::new();
        assert_eq!(meter.cost(), None);
        for (ns, messages) in [(1_000, 100), (2_000, 100), (90_000, 300)] {
            meter.record(Duration::from_nanos(ns), messages);
        }
        let cost = meter.cost().unwrap();
        assert!((cost.median_ns - 20.0).abs() < 0.1 && (cost.mean_ns - 186.0).abs() < 1e-9, "{cost:?}");
    }
}

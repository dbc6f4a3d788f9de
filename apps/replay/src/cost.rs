//! Measures the processing time per message of a replay, and passes the messages to the exporter.

use std::fs;
use std::mem::{replace, take};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tickpath_book::BooksById;
use tickpath_recording::{Bbo, Calendar, Listener, MessageView, TradeInfo, WorkStep};
use tickpath_types::{InstrumentId, MarketUpdate};

use crate::exports::Exporter;

/// Significant digits of the times in the histogram.
const SIGNIFICANT_DIGITS: u8 = 3;
const PS_PER_NS: u64 = 1_000;

/// Accumulates the processing time of messages, block by block.
struct CostMeter {
    /// Picoseconds per message: one value for each block.
    blocks: Histogram<u64>,
    total: Duration,
    messages: u64,
}

/// The processing time of a message, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Median of the blocks' times per message.
    pub median_ns: f64,
    /// Total time divided by the number of messages.
    pub mean_ns: f64,
    /// Number of measured blocks of messages.
    pub blocks: u64,
}

impl CostMeter {
    fn new() -> CostMeter {
        let blocks = Histogram::new(SIGNIFICANT_DIGITS).expect("between 0 and 5 digits");
        CostMeter { blocks, total: Duration::ZERO, messages: 0 }
    }

    fn record(&mut self, elapsed: Duration, messages: usize) {
        if messages > 0 {
            let ps = elapsed.as_nanos() as u64 * PS_PER_NS / messages as u64;
            self.blocks.record(ps.max(1)).expect("it resizes automatically");
            self.total += elapsed;
            self.messages += messages as u64;
        }
    }

    /// Returns the cost; `None` without measurements.
    fn cost(&self) -> Option<Cost> {
        (self.messages > 0).then(|| Cost {
            median_ns: self.blocks.value_at_quantile(0.5) as f64 / PS_PER_NS as f64,
            mean_ns: self.total.as_nanos() as f64 / self.messages as f64,
            blocks: self.blocks.len(),
        })
    }
}

/// Measures the processing time of each recording in a file, writes the rows of the tables, and passes everything to
/// another listener.
pub(crate) struct Output<'a, L = ()> {
    pub(crate) exporter: &'a mut Exporter,
    listener: &'a mut L,
    /// Two meters for each recording: decoding, and books.
    meters: Vec<[CostMeter; 2]>,
    /// Index of the current recording.
    recording: usize,
    /// Time at which the previous step ended.
    since: Instant,
    /// Time spent on finding the messages of the current block.
    framing: Duration,
    /// Time spent on applying the messages of the current block.
    applying: Duration,
}

impl<'a, L: Listener> Output<'a, L> {
    pub(crate) fn new(exporter: &'a mut Exporter, listener: &'a mut L) -> Output<'a, L> {
        let (framing, applying) = (Duration::ZERO, Duration::ZERO);
        Output {
            exporter,
            listener,
            meters: Vec::new(),
            recording: 0,
            since: Instant::now(),
            framing,
            applying,
        }
    }

    /// Ends a step. Its cost is the time since the end of the previous step, less `excluded`. Nothing is measured for
    /// a listener that gets the messages one by one: reading the clock would take a part of their time.
    pub(crate) fn step_excluding(&mut self, excluded: Duration, step: WorkStep) {
        if self.listener.wants_books() {
            return;
        }
        let now = Instant::now();
        let elapsed = (now - replace(&mut self.since, now)).saturating_sub(excluded);
        match step {
            WorkStep::Other => {}
            WorkStep::Framed => self.framing += elapsed,
            WorkStep::Decoded(count) => self.meters[self.recording][0].record(self.framing + elapsed, count),
            WorkStep::Applied => self.applying += elapsed,
            WorkStep::Done(count) => {
                let elapsed = take(&mut self.framing) + take(&mut self.applying);
                self.meters[self.recording][1].record(elapsed, count);
            }
        }
    }

    /// Returns the costs of decoding and of books for a recording, counted from 0.
    pub(crate) fn costs(&self, recording: usize) -> (Option<Cost>, Option<Cost>) {
        let meters = self.meters.get(recording);
        meters.map_or((None, None), |[decode, books]| (decode.cost(), books.cost()))
    }
}

impl<L: Listener> Listener for Output<'_, L> {
    fn on_recording(&mut self, recording: usize, calendar: &Calendar, price_decimals: u8) {
        self.recording = recording;
        while self.meters.len() <= recording {
            self.meters.push([CostMeter::new(), CostMeter::new()]);
        }
        self.exporter.begin_recording(recording, calendar, price_decimals);
        self.listener.on_recording(recording, calendar, price_decimals);
    }

    fn on_step(&mut self, step: WorkStep) {
        self.step_excluding(Duration::ZERO, step);
    }

    #[inline]
    fn on_message(&mut self, view: &MessageView<'_>, symbol: &str, update: Option<&MarketUpdate>) {
        self.exporter.order(view, symbol, update);
        self.listener.on_message(view, symbol, update);
    }

    #[inline]
    fn on_trade(&mut self, view: &MessageView<'_>, symbol: &str, trade: &TradeInfo) {
        self.exporter.trade(view, symbol, trade);
        self.listener.on_trade(view, symbol, trade);
    }

    #[inline]
    fn on_bbo(&mut self, view: &MessageView<'_>, symbol: &str, bbo: Bbo) {
        self.exporter.bbo(view, symbol, bbo);
        self.listener.on_bbo(view, symbol, bbo);
    }

    #[inline]
    fn wants_books(&self) -> bool {
        self.exporter.wants_depth() || self.listener.wants_books()
    }

    #[inline]
    fn on_book(&mut self, view: &MessageView<'_>, symbol: &str, id: InstrumentId, books: &impl BooksById) {
        if self.exporter.wants_depth() {
            self.exporter.depth(view, symbol, id, books);
        }
        self.listener.on_book(view, symbol, id, books);
    }

    #[inline]
    fn before_message(&mut self, ts_ns: u64, books: &impl BooksById) {
        self.listener.before_message(ts_ns, books);
    }
}

/// Peak memory of this process in bytes; `None` if the system does not report it.
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

//! What is shown.

use std::time::Duration;

use crate::client::{Count, Counts, LinkState, MarketRow, Percentiles, Shared, Span};

/// A picture of a client.
#[derive(Clone, Debug)]
pub struct TicksView {
    /// The server's address.
    pub address: String,
    /// How long it has been watched.
    pub elapsed: Duration,
    /// How long it will be; `None`: until stopped.
    pub planned: Option<Duration>,
    /// What the client is at.
    pub state: LinkState,
    /// When the next attempt to connect is made, in nanoseconds since the Unix epoch, while it waits.
    pub retry_at_ns: u64,
    /// Name of the session; 0 before the first.
    pub session: u64,
    /// Every symbol, by its number.
    pub rows: Vec<MarketRow>,
    /// What was counted since the start, or since it was set to nothing.
    pub counts: Counts,
    /// Ticks per second, over the last second or so.
    pub ticks_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Latencies by hop.
    pub latencies: [(Span, Percentiles); Span::ALL.len()],
    /// What went wrong last.
    pub trouble: Option<String>,
    baseline: Counts,
    /// Counts at the ends of the last intervals, the oldest first.
    recent: [(Duration, Counts); RECENT],
}

/// Intervals that a rate is taken over: with two pictures a second, one second.
const RECENT: usize = 2;

impl TicksView {
    /// Before anything came.
    #[must_use]
    pub fn new(address: &str, planned: Option<Duration>) -> TicksView {
        TicksView {
            address: address.to_owned(),
            elapsed: Duration::ZERO,
            planned,
            state: LinkState::Connecting,
            retry_at_ns: 0,
            session: 0,
            rows: Vec::new(),
            counts: Counts::default(),
            ticks_per_s: 0.0,
            bytes_per_s: 0.0,
            latencies: Span::ALL.map(|span| (span, Percentiles::default())),
            trouble: None,
            baseline: Counts::default(),
            recent: [(Duration::ZERO, Counts::default()); RECENT],
        }
    }

    /// Takes over what the client shows now.
    pub fn update(&mut self, shared: &Shared, elapsed: Duration) {
        let counts = shared.counts();
        let market = shared.market();
        self.elapsed = elapsed;
        self.state = shared.state();
        self.retry_at_ns = shared.retry_at().0;
        self.trouble = shared.trouble();
        self.session = market.session();
        market.read_into(&mut self.rows);
        self.latencies = Span::ALL.map(|span| (span, shared.latencies().percentiles(span)));
        self.update_rates(counts, elapsed);
        self.counts = counts.since(&self.baseline);
    }

    fn update_rates(&mut self, counts: Counts, elapsed: Duration) {
        let (from, earlier) = self.recent[0];
        let seconds = elapsed.saturating_sub(from).as_secs_f64();
        let added = counts.since(&earlier);
        if seconds > 0.0 {
            self.ticks_per_s = added.of(Count::Ticks) as f64 / seconds;
            self.bytes_per_s = added.of(Count::Bytes) as f64 / seconds;
        }
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = (elapsed, counts);
    }

    /// Counts from now on.
    pub fn reset(&mut self, shared: &Shared) {
        self.baseline = shared.counts();
        self.counts = Counts::default();
    }

    /// A span's percentiles.
    #[must_use]
    pub fn latency(&self, span: Span) -> Percentiles {
        self.latencies[span as usize].1
    }
}

//! The data that the view shows.

use std::time::Duration;

use crate::client::{Count, Counts, LinkState, MarketRow, Percentiles, Shared, Span};

/// A snapshot of a client's connection state, counters, latencies and symbols.
#[derive(Clone, Debug)]
pub struct TicksView {
    /// The server's address.
    pub address: String,
    /// Time since the client was started.
    pub elapsed: Duration,
    /// Duration after which the watch ends; `None`: it runs until stopped.
    pub planned: Option<Duration>,
    /// The connection state of the client.
    pub state: LinkState,
    /// Time of the next attempt to connect while waiting, in nanoseconds since the Unix epoch.
    pub retry_at_ns: u64,
    /// Number of the session; 0 before the first session.
    pub session: u64,
    /// Every symbol, in the order of the instrument numbers.
    pub rows: Vec<MarketRow>,
    /// The client's counters since the start or the last [`reset`](TicksView::reset).
    pub counts: Counts,
    /// Ticks per second, averaged over about the last second.
    pub ticks_per_s: f64,
    /// Bytes per second, averaged over about the last second.
    pub bytes_per_s: f64,
    /// Latency percentiles of each span.
    pub latencies: [(Span, Percentiles); Span::ALL.len()],
    /// The last connection failure since the client was last subscribed.
    pub last_error: Option<String>,
    baseline: Counts,
    /// Elapsed time and counts at the last updates, the oldest first.
    recent: [(Duration, Counts); RECENT],
}

/// Number of updates over which a rate is averaged: one second at two updates a second.
const RECENT: usize = 2;

impl TicksView {
    /// Creates a view without data.
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
            last_error: None,
            baseline: Counts::default(),
            recent: [(Duration::ZERO, Counts::default()); RECENT],
        }
    }

    /// Replaces the snapshot by the client's current state.
    pub fn update(&mut self, shared: &Shared, elapsed: Duration) {
        let counts = shared.counts();
        let market = shared.market();
        self.elapsed = elapsed;
        self.state = shared.state();
        self.retry_at_ns = shared.retry_at().0;
        self.last_error = shared.last_error();
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

    /// Restarts the counts at zero.
    pub fn reset(&mut self, shared: &Shared) {
        self.baseline = shared.counts();
        self.counts = Counts::default();
    }

    /// Returns the latency percentiles of a span.
    #[must_use]
    pub fn latency(&self, span: Span) -> Percentiles {
        self.latencies[span as usize].1
    }
}

//! The state that the client's thread publishes to other threads.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tickpath_types::Nanos;

use super::latency::Latencies;
use super::market::Market;

/// The connection state of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkState {
    /// The client is connecting.
    #[default]
    Connecting = 0,
    /// The client is connected and waits until the server grants its subscription.
    Subscribing = 1,
    /// The client is subscribed.
    Live = 2,
    /// The connection failed or was lost; the client waits before the next attempt.
    Waiting = 3,
    /// The client has ended.
    Ended = 4,
}

impl LinkState {
    const fn from_code(code: u8) -> LinkState {
        match code {
            0 => LinkState::Connecting,
            1 => LinkState::Subscribing,
            2 => LinkState::Live,
            3 => LinkState::Waiting,
            _ => LinkState::Ended,
        }
    }

    /// Returns the state's name, for display.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            LinkState::Connecting => "connecting",
            LinkState::Subscribing => "subscribing",
            LinkState::Live => "live",
            LinkState::Waiting => "waiting",
            LinkState::Ended => "ended",
        }
    }
}

macro_rules! counts {
    ($( $(#[$doc:meta])* $name:ident = $text:literal, )+) => {
        /// The client's counters, each summed over all connections since the start.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count { $( $(#[$doc])* $name, )+ }

        impl Count {
            /// All counters.
            pub const ALL: &'static [Count] = &[$( Count::$name, )+];

            /// Returns the counter's name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Count::$name => $text, )+ }
            }
        }
    };
}

counts! {
    /// Bytes received.
    Bytes = "bytes",
    /// Socket reads that returned data.
    Reads = "reads",
    /// Ticks received: quotes, trades and trading states.
    Ticks = "ticks",
    /// Trades, which `Ticks` includes.
    Trades = "trades",
    /// Messages other than ticks.
    Others = "other_messages",
    /// Messages of unknown types.
    Unknown = "unknown_messages",
    /// Ticks and symbol definitions with an instrument number that the session does not have.
    UnknownInstrument = "unknown_instruments",
    /// Number of gaps in the sequence numbers.
    Gaps = "gaps",
    /// Number of missing sequence numbers.
    Lost = "lost",
    /// Messages that the server reported as omitted.
    Skipped = "skipped",
    /// Ticks with a sequence number that was received before.
    Duplicates = "duplicates",
    /// Number of times that damaged data was found in the stream.
    Corrupt = "corrupt",
    /// Bytes skipped to find the next valid message.
    ResyncBytes = "resync_bytes",
    /// Messages of subscribed symbols that the server generated while the client was not connected.
    Missed = "missed_while_away",
    /// Attempts to connect.
    Attempts = "attempts",
    /// Connections that led to a subscription.
    Subscriptions = "subscriptions",
    /// Connections that were lost, ended, or could not be established.
    Failures = "failures",
}

/// A snapshot of all counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; Count::ALL.len()])
    }
}

impl Counts {
    /// Returns the value of one counter.
    #[must_use]
    pub const fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// Returns the increase of each counter since the snapshot `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts(std::array::from_fn(|index| self.0[index].saturating_sub(earlier.0[index])))
    }

    /// Returns a copy in which one counter has this value.
    #[must_use]
    pub const fn with(mut self, count: Count, value: u64) -> Counts {
        self.0[count as usize] = value;
        self
    }

    /// Returns the number of subscribed connections after the first one.
    #[must_use]
    pub const fn reconnects(&self) -> u64 {
        self.of(Count::Subscriptions).saturating_sub(1)
    }
}

/// Counters, state, latencies and the market, which the client's thread writes and other threads read.
pub struct Shared {
    counts: [AtomicU64; Count::ALL.len()],
    state: AtomicU8,
    /// While waiting, time of the next attempt to connect, in nanoseconds since the Unix epoch.
    retry_at_ns: AtomicU64,
    market: Mutex<Arc<Market>>,
    /// The last connection failure since the client was last subscribed, in one line.
    last_error: Mutex<Option<String>>,
    latencies: Latencies,
    stop: AtomicBool,
    reconnect: AtomicBool,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            state: AtomicU8::new(LinkState::Connecting as u8),
            retry_at_ns: AtomicU64::new(0),
            market: Mutex::new(Arc::new(Market::empty())),
            last_error: Mutex::new(None),
            latencies: Latencies::new(),
            stop: AtomicBool::new(false),
            reconnect: AtomicBool::new(false),
        }
    }
}

impl Shared {
    /// Returns the current values of all counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts(std::array::from_fn(|index| self.counts[index].load(Ordering::Relaxed)))
    }

    /// Returns the connection state of the client.
    #[must_use]
    pub fn state(&self) -> LinkState {
        LinkState::from_code(self.state.load(Ordering::Acquire))
    }

    /// Returns the time of the next attempt to connect, while the client [waits](LinkState::Waiting).
    #[must_use]
    pub fn retry_at(&self) -> Nanos {
        Nanos(self.retry_at_ns.load(Ordering::Relaxed))
    }

    /// Returns the symbol cache of the latest session.
    #[must_use]
    pub fn market(&self) -> Arc<Market> {
        Arc::clone(&self.market.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the last connection failure since the client was last subscribed, in one line.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the latency histograms of all spans.
    #[must_use]
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Sets a counter; only the client's thread may call it.
    #[inline]
    pub(super) fn set(&self, count: Count, value: u64) {
        self.counts[count as usize].store(value, Ordering::Relaxed);
    }

    /// Adds to a counter; only the client's thread may call it.
    #[inline]
    pub(super) fn add(&self, count: Count, value: u64) {
        let counter = &self.counts[count as usize];
        counter.store(counter.load(Ordering::Relaxed) + value, Ordering::Relaxed);
    }

    pub(super) fn set_state(&self, state: LinkState) {
        self.state.store(state as u8, Ordering::Release);
    }

    pub(super) fn set_retry_at(&self, at: Nanos) {
        self.retry_at_ns.store(at.0, Ordering::Relaxed);
    }

    pub(super) fn set_market(&self, market: Arc<Market>) {
        *self.market.lock().unwrap_or_else(PoisonError::into_inner) = market;
    }

    pub(super) fn set_last_error(&self, last_error: Option<String>) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = last_error;
    }

    pub(super) fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn is_stop_requested(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn request_reconnect(&self) {
        self.reconnect.store(true, Ordering::Release);
    }

    /// Returns true if a reconnect was requested since the last call.
    pub(super) fn take_reconnect(&self) -> bool {
        self.reconnect.load(Ordering::Acquire) && self.reconnect.swap(false, Ordering::AcqRel)
    }
}

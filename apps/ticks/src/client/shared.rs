//! What the client's thread shows to whoever watches it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tickpath_types::Nanos;

use super::latency::Latencies;
use super::market::Market;

/// What the client is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkState {
    /// It makes a connection.
    #[default]
    Connecting = 0,
    /// It is connected and waits for its subscription.
    Subscribing = 1,
    /// It is subscribed.
    Live = 2,
    /// The connection could not be made or was lost; it waits before the next attempt.
    Waiting = 3,
    /// It has ended.
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

    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
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
        /// What is counted, over all connections.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count { $( $(#[$doc])* $name, )+ }

        impl Count {
            /// All of them.
            pub const ALL: &'static [Count] = &[$( Count::$name, )+];

            /// Its name in reports.
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
    /// Reads from the socket that brought something.
    Reads = "reads",
    /// Quotes, trades and states.
    Ticks = "ticks",
    /// Trades among them.
    Trades = "trades",
    /// Other messages.
    Others = "other_messages",
    /// Messages of types that are not known.
    Unknown = "unknown_messages",
    /// Ticks of instruments that the session does not have.
    UnknownInstrument = "unknown_instruments",
    /// Times that numbers were missing.
    Gaps = "gaps",
    /// Numbers that were missing.
    Lost = "lost",
    /// Messages that the server said it left out.
    Skipped = "skipped",
    /// Ticks whose number had been before.
    Duplicates = "duplicates",
    /// Damaged places in the stream.
    Corrupt = "corrupt",
    /// Bytes passed over to find the next good message.
    ResyncBytes = "resync_bytes",
    /// Messages of a session that went on while the client was not connected.
    Missed = "missed_while_away",
    /// Attempts to connect.
    Attempts = "attempts",
    /// Connections that became a subscription.
    Subscriptions = "subscriptions",
    /// Connections that were lost or ended, or could not be made.
    Failures = "failures",
}

/// All counts at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; Count::ALL.len()])
    }
}

impl Counts {
    /// One of them.
    #[must_use]
    pub const fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts(std::array::from_fn(|index| self.0[index].saturating_sub(earlier.0[index])))
    }

    /// The same with another value of one.
    #[must_use]
    pub const fn with(mut self, count: Count, value: u64) -> Counts {
        self.0[count as usize] = value;
        self
    }

    /// Connections after the first one.
    #[must_use]
    pub const fn reconnects(&self) -> u64 {
        self.of(Count::Subscriptions).saturating_sub(1)
    }
}

/// Counters, state, latencies and the market: written by the client's thread, read by whoever watches.
pub struct Shared {
    counts: [AtomicU64; Count::ALL.len()],
    state: AtomicU8,
    /// When the next attempt is made, while waiting.
    retry_at_ns: AtomicU64,
    market: Mutex<Arc<Market>>,
    /// What went wrong last, in a line.
    trouble: Mutex<Option<String>>,
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
            trouble: Mutex::new(None),
            latencies: Latencies::new(),
            stop: AtomicBool::new(false),
            reconnect: AtomicBool::new(false),
        }
    }
}

impl Shared {
    /// All counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts(std::array::from_fn(|index| self.counts[index].load(Ordering::Relaxed)))
    }

    /// What the client is at.
    #[must_use]
    pub fn state(&self) -> LinkState {
        LinkState::from_code(self.state.load(Ordering::Acquire))
    }

    /// When the next attempt to connect is made, while it [waits](LinkState::Waiting).
    #[must_use]
    pub fn retry_at(&self) -> Nanos {
        Nanos(self.retry_at_ns.load(Ordering::Relaxed))
    }

    /// The symbols of the latest session.
    #[must_use]
    pub fn market(&self) -> Arc<Market> {
        Arc::clone(&self.market.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What went wrong last, in a line; `None` while nothing did.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Latencies by hop.
    #[must_use]
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// By the client's thread alone.
    #[inline]
    pub(super) fn set(&self, count: Count, value: u64) {
        self.counts[count as usize].store(value, Ordering::Relaxed);
    }

    /// By the client's thread alone.
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

    pub(super) fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(super) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn ask_to_reconnect(&self) {
        self.reconnect.store(true, Ordering::Release);
    }

    /// True once after each request.
    pub(super) fn takes_reconnect(&self) -> bool {
        self.reconnect.load(Ordering::Acquire) && self.reconnect.swap(false, Ordering::AcqRel)
    }
}

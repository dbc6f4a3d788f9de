//! The phase of the market, and the published state of the background or recorded flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tickpath_agent::Counter;
use tickpath_lockfree::seqlock::{self, Busy};
use tickpath_trader::OrderEntry;
use tickpath_trading::Position;
use tickpath_types::Nanos;

use crate::fills::Fills;

/// Interval at which a source publishes its positions and its number of logged-in sessions.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(100);

/// Phase of the market; moves only forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// All participants log in; none trades.
    LogIn = 0,
    /// The participants send orders.
    Trading = 1,
    /// No new orders; messages in flight arrive.
    Draining = 2,
}

/// The market's phase, for all participants; clones share it.
#[derive(Clone, Default)]
pub(crate) struct SharedPhase(Arc<AtomicU8>);

impl SharedPhase {
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.0.load(Ordering::Acquire) {
            0 => Phase::LogIn,
            1 => Phase::Trading,
            _ => Phase::Draining,
        }
    }
}

/// The observable state of an order source other than a trader: the background flow, or a recorded flow.
#[derive(Clone)]
pub(crate) struct SourceView {
    pub(crate) counters: Arc<SourceCounters>,
    positions: seqlock::Reader<(), Position>,
}

impl SourceView {
    /// Creates the view of a source that trades `instrument_count` instruments, and the source's writer.
    pub(crate) fn new(instrument_count: usize) -> (SourceView, SourceWriter) {
        let (writer, positions) = seqlock::cell((), &vec![Position::default(); instrument_count]);
        let counters = Arc::<SourceCounters>::default();
        (
            SourceView { counters: Arc::clone(&counters), positions },
            SourceWriter { counters, positions: writer },
        )
    }

    /// Returns the positions by instrument: at most 100 ms old, and exact once the source has closed.
    ///
    /// # Errors
    /// [`Busy`] while the source writes the positions: use those of an earlier call.
    pub(crate) fn positions(&self) -> Result<Vec<Position>, Busy> {
        let mut positions = vec![Position::default(); self.positions.row_count()];
        self.positions.try_read(&mut positions)?;
        Ok(positions)
    }
}

/// The source's end of a [`SourceView`], through which it updates the view.
pub(crate) struct SourceWriter {
    pub(crate) counters: Arc<SourceCounters>,
    positions: seqlock::Writer<(), Position>,
}

impl SourceWriter {
    /// Publishes the positions and the number of logged-in sessions; returns the time of the next update.
    pub(crate) fn publish<'a>(
        &mut self,
        now: Nanos,
        entries: impl Iterator<Item = &'a OrderEntry>,
        fills: &Fills,
    ) -> Nanos {
        self.counters.logged_in.set(entries.filter(|entry| entry.is_active()).count() as u64);
        self.positions.write(&(), fills.positions.iter().copied());
        now + SNAPSHOT_INTERVAL
    }

    pub(crate) fn count_fills(&self, fills: &Fills) {
        self.counters.fills.set(fills.fills);
        self.counters.unknown_fills.set(fills.unknown);
    }
}

#[derive(Default)]
#[repr(align(128))] // separate cache lines: other threads' writes nearby would slow down the source
pub(crate) struct SourceCounters {
    /// Requests sent, of any kind.
    pub(crate) requests: Counter,
    /// Orders entered, including replacements.
    pub(crate) orders: Counter,
    /// Order events received: the venue's answers and executions.
    pub(crate) answers: Counter,
    /// Sequenced messages received from the venue, over all sessions.
    pub(crate) received: Counter,
    /// Executions of the source's orders.
    pub(crate) fills: Counter,
    /// Requests that the venue refused.
    pub(crate) rejected: Counter,
    /// Executions of orders whose instrument and side are unknown.
    pub(crate) unknown_fills: Counter,
    /// Number of open orders known to the background flow; a recorded flow does not count them.
    pub(crate) open_orders: Counter,
    /// Number of logged-in sessions.
    pub(crate) logged_in: Counter,
    /// 1 once a recorded flow has sent all requests and waits for no answer.
    pub(crate) finished: Counter,
    /// Time from the due time of the background flow's last request to its sending, in nanoseconds.
    pub(crate) behind_ns: Counter,
}

//! What is seen of a participant from outside, and the phases that all of them go through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tickpath_agent::Counter;
use tickpath_lockfree::seqlock::{self, Busy};
use tickpath_trader::OrderEntry;
use tickpath_trading::Position;
use tickpath_types::Nanos;

use crate::fills::Fills;

/// How often what others read is brought up to date.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(100);

/// What the market is doing; moves forward only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Everybody logs in; nobody trades.
    LogIn = 0,
    /// Orders flow.
    Trading = 1,
    /// No new orders; what is under way arrives.
    Draining = 2,
}

/// The phase that all participants see; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Stage(Arc<AtomicU8>);

impl Stage {
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

/// What can be read of a source of orders that is no trader: the crowd, or a recorded flow.
#[derive(Clone)]
pub(crate) struct SourceView {
    pub(crate) counters: Arc<SourceCounters>,
    positions: seqlock::Reader<(), Position>,
}

impl SourceView {
    /// A view of a source that trades so many instruments, and the source's end of it.
    pub(crate) fn new(instrument_count: usize) -> (SourceView, SourceWriter) {
        let (writer, positions) = seqlock::cell((), &vec![Position::default(); instrument_count]);
        let counters = Arc::<SourceCounters>::default();
        (
            SourceView { counters: Arc::clone(&counters), positions },
            SourceWriter { counters, positions: writer },
        )
    }

    /// Positions by instrument; a tenth of a second old at most, exact at the end.
    ///
    /// # Errors
    /// [`Busy`] when the source was just writing them: keep the older ones. Never once it has closed.
    pub(crate) fn positions(&self) -> Result<Vec<Position>, Busy> {
        let mut positions = vec![Position::default(); self.positions.row_count()];
        self.positions.try_read(&mut positions)?;
        Ok(positions)
    }
}

/// A source's end of its [`SourceView`].
pub(crate) struct SourceWriter {
    pub(crate) counters: Arc<SourceCounters>,
    positions: seqlock::Writer<(), Position>,
}

impl SourceWriter {
    /// Brings positions and logins up to date; returns when to do so again.
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
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub(crate) struct SourceCounters {
    /// Requests sent, of any kind.
    pub(crate) requests: Counter,
    /// Orders entered, replacements included.
    pub(crate) orders: Counter,
    /// Answers received.
    pub(crate) answers: Counter,
    /// Messages of the venue received, over all sessions.
    pub(crate) received: Counter,
    /// Executions.
    pub(crate) fills: Counter,
    /// Requests that the venue refused.
    pub(crate) rejected: Counter,
    /// Executions that could not be booked.
    pub(crate) unknown_fills: Counter,
    /// Orders that rest, as far as the source knows.
    pub(crate) open_orders: Counter,
    /// Sessions that are logged in.
    pub(crate) logged_in: Counter,
    /// 1 when there is nothing more to send.
    pub(crate) finished: Counter,
    /// By how much the source is behind its schedule, in nanoseconds.
    pub(crate) behind_ns: Counter,
}

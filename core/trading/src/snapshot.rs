//! Snapshots of an engine's state for other threads.

use std::sync::Arc;

use tickpath_lockfree::seqlock::{self, Busy};
use tickpath_lockfree::{CachePadded, Counter};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Desk, EngineCounters, Position, StopReason};

/// A consistent snapshot of an engine's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraderSnapshot {
    /// The engine's counters.
    pub counters: EngineCounters,
    /// The engine's position in each instrument, by id from 1.
    pub positions: Vec<Position>,
    /// Number of own open orders, as far as known: after a lost connection their status may be outdated.
    pub open_orders: u64,
    /// Market updates lost because the engine read too slowly.
    pub lost_updates: u64,
    /// The reason why the engine no longer trades; `None` while it trades.
    pub stopped: Option<StopReason>,
}

/// A view of a trader that stays readable after the trader ends.
#[derive(Clone, Debug)]
pub struct TraderView {
    snapshot: seqlock::Reader<Head, Position>,
    /// Market updates that the engine received.
    pub updates: Arc<CachePadded<Counter>>,
    /// The gateway's counters.
    pub gateway: Arc<GatewayCounters>,
}

impl TraderView {
    /// Returns the engine's state, at most a tenth of a second old, or its final state once it has closed.
    ///
    /// # Errors
    /// [`Busy`] while the engine updates the snapshot: use the previous one. Never after the engine closed.
    pub fn snapshot(&self) -> Result<TraderSnapshot, Busy> {
        let mut positions = vec![Position::default(); self.snapshot.row_count()];
        let head = self.snapshot.try_read(&mut positions)?;
        Ok(TraderSnapshot {
            counters: head.counters,
            positions,
            open_orders: head.open_orders,
            lost_updates: head.lost_updates,
            stopped: StopReason::from_code(head.stopped),
        })
    }
}

/// Counters of an order gateway, readable from other threads while it runs.
#[derive(Debug, Default)]
#[repr(align(128))] // no false sharing with data that another thread writes
pub struct GatewayCounters {
    /// Requests written to the venue.
    pub requests: Counter,
    /// Requests returned to the engine because the gateway was not logged in.
    pub unsent: Counter,
    /// Answers received from the venue.
    pub answers: Counter,
    /// Sequence number of the last message received in the venue's session.
    pub last_sequence: Counter,
    /// 1 while logged in. At the first login, 1 only once `first_user_ref` is known too.
    pub logged_in: Counter,
    /// Connections lost after a login.
    pub disconnects: Counter,
    /// UserRefNum of the engine's first order: 1, or one more than the last of an earlier run. 0 until it is
    /// known; the engine waits until then.
    pub first_user_ref: Counter,
}

/// The contents of a snapshot besides the positions.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Head {
    counters: EngineCounters,
    open_orders: u64,
    lost_updates: u64,
    /// [`StopReason::code`]; 0 while the engine trades.
    stopped: u64,
}

/// The writer of a [`TraderView`].
#[derive(Debug)]
pub struct SnapshotWriter(seqlock::Writer<Head, Position>);

impl SnapshotWriter {
    /// Creates the writer and its view, for an engine of `instrument_count` instruments.
    #[must_use]
    pub fn new(instrument_count: usize) -> (SnapshotWriter, TraderView) {
        let flat = vec![Position::default(); instrument_count];
        let (writer, snapshot) = seqlock::cell(Head::default(), &flat);
        let view = TraderView { snapshot, updates: Arc::default(), gateway: Arc::default() };
        (SnapshotWriter(writer), view)
    }

    /// Publishes the state of `desk` and the number of lost updates.
    pub fn write(&mut self, desk: &Desk, lost_updates: u64) {
        let head = Head {
            counters: *desk.counters(),
            open_orders: desk.orders().total_open() as u64,
            lost_updates,
            stopped: desk.stopped().map_or(0, StopReason::code),
        };
        self.0.write(&head, desk.positions().iter().map(|(_, position)| *position));
    }
}

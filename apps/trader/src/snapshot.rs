//! How an engine stands, for whoever watches it from another thread.

use std::sync::Arc;

use tickpath_agent::Counter;
use tickpath_lockfree::CachePadded;
use tickpath_lockfree::seqlock::{self, Busy};
use tickpath_trading::{Desk, EngineCounters, Position, PositionRecord, StopReason};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::gateway::GatewayCounters;

/// How an engine stands, all of it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraderSnapshot {
    /// What it did.
    pub counters: EngineCounters,
    /// Its position in each instrument, by id from 1.
    pub positions: Vec<Position>,
    /// Own orders that are open, as far as it knows: after a lost connection they may be.
    pub open_orders: u64,
    /// Market updates that it lost because it read too slowly.
    pub lost_updates: u64,
    /// Why it no longer trades.
    pub stopped: Option<StopReason>,
}

/// What can be read of a trader while it runs, and afterwards.
#[derive(Clone, Debug)]
pub struct TraderView {
    snapshot: seqlock::Reader<Head, PositionRecord>,
    /// Market updates taken.
    pub updates: Arc<CachePadded<Counter>>,
    /// The gateway's counts.
    pub gateway: Arc<GatewayCounters>,
}

impl TraderView {
    /// How the engine stands; at most a tenth of a second old, exact once it has closed.
    ///
    /// # Errors
    /// [`Busy`] when the engine was just bringing it up to date: keep the older one. Never once it has closed.
    pub fn snapshot(&self) -> Result<TraderSnapshot, Busy> {
        let mut records = vec![PositionRecord::default(); self.snapshot.row_count()];
        let head = self.snapshot.try_read(&mut records)?;
        Ok(TraderSnapshot {
            counters: head.counters,
            positions: records.iter().map(Position::from).collect(),
            open_orders: head.open_orders,
            lost_updates: head.lost_updates,
            stopped: StopReason::from_code(head.stopped),
        })
    }
}

/// What a snapshot has beside the positions.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Head {
    counters: EngineCounters,
    open_orders: u64,
    lost_updates: u64,
    /// [`StopReason::code`]; 0 while it trades.
    stopped: u64,
}

/// The engine's end of a [`TraderView`].
pub(crate) struct SnapshotWriter(seqlock::Writer<Head, PositionRecord>);

impl SnapshotWriter {
    pub(crate) fn new(instrument_count: usize) -> (SnapshotWriter, TraderView) {
        let flat = vec![PositionRecord::default(); instrument_count];
        let (writer, snapshot) = seqlock::cell(Head::default(), &flat);
        let view = TraderView { snapshot, updates: Arc::default(), gateway: Arc::default() };
        (SnapshotWriter(writer), view)
    }

    pub(crate) fn write(&mut self, desk: &Desk, lost_updates: u64) {
        let head = Head {
            counters: *desk.counters(),
            open_orders: desk.orders().total_open() as u64,
            lost_updates,
            stopped: desk.stopped().map_or(0, StopReason::code),
        };
        self.0.write(&head, desk.positions().iter().map(|(_, position)| position.into()));
    }
}

//! How an engine stands, for whoever watches it from another thread.

use std::sync::Arc;

use tickpath_lockfree::seqlock::{self, Busy};
use tickpath_lockfree::{CachePadded, Counter};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Desk, EngineCounters, Position, StopReason};

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
    snapshot: seqlock::Reader<Head, Position>,
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
    /// Requests given back to the engine because the gateway was not logged in.
    pub unsent: Counter,
    /// Answers read from it.
    pub answers: Counter,
    /// Number of the last message of the venue's session.
    pub last_sequence: Counter,
    /// 1 while logged in; at first once `first_user_ref` is known too.
    pub logged_in: Counter,
    /// Connections lost after the login.
    pub disconnects: Counter,
    /// Number of the engine's first order: 1, or behind those that an earlier run has used. 0 until it is known, and
    /// until then the engine waits.
    pub first_user_ref: Counter,
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
#[derive(Debug)]
pub struct SnapshotWriter(seqlock::Writer<Head, Position>);

impl SnapshotWriter {
    /// Both ends, for an engine of `instrument_count` instruments.
    #[must_use]
    pub fn new(instrument_count: usize) -> (SnapshotWriter, TraderView) {
        let flat = vec![Position::default(); instrument_count];
        let (writer, snapshot) = seqlock::cell(Head::default(), &flat);
        let view = TraderView { snapshot, updates: Arc::default(), gateway: Arc::default() };
        (SnapshotWriter(writer), view)
    }

    /// Brings what others read up to date.
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

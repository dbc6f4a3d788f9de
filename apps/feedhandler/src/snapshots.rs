//! The sources of snapshots for books that lost messages for good, and the counts of them.

use std::net::SocketAddrV4;

use tickpath_agent::Counter;
use tickpath_feed::{SnapshotHealer, SocketCounters};
use tickpath_net::ReconnectConfig;
use tickpath_types::Nanos;

use crate::senders::Senders;

/// Waiting times of the connection to a GLIMPSE server. Between attempts the turn is the snapshot channel's.
pub(crate) const GLIMPSE: ReconnectConfig =
    ReconnectConfig::fixed(Nanos::from_secs(2), Nanos::from_millis(20));

/// Where snapshots come from, and what waits meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSources {
    /// Snapshots of the market over SoupBinTCP, tried first.
    pub glimpse: Option<SocketAddrV4>,
    /// Group and port of snapshots of one instrument after another, on the interface of the lines.
    pub channel: Option<SocketAddrV4>,
    /// Addresses that may send to that group.
    pub senders: Senders,
    /// Messages held for books that wait; the oldest are dropped, and newer snapshots needed.
    pub hold_messages: usize,
}

impl SnapshotSources {
    /// None: what is lost for good leaves the books stale.
    #[must_use]
    pub const fn none() -> SnapshotSources {
        SnapshotSources { glimpse: None, channel: None, senders: Senders::any(), hold_messages: 1 << 16 }
    }

    /// True when there is one.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.glimpse.is_some() || self.channel.is_some()
    }
}

/// What came of snapshots, readable from outside.
#[derive(Default)]
pub struct SnapshotCounters {
    /// Books that wait for a snapshot.
    pub waiting: Counter,
    /// Books that a snapshot healed.
    pub healed: Counter,
    /// Connections to the snapshot server.
    pub connections: Counter,
    /// Of these, those that did not bring a snapshot to its end.
    pub failures: Counter,
    /// Times that the snapshot channel was joined.
    pub channel_joins: Counter,
    /// Snapshots that were too old.
    pub too_old: Counter,
    /// Snapshots that ended too far ahead of the lines to be believed.
    pub too_far_ahead: Counter,
    /// Snapshots that were cut off, by a lost packet or connection.
    pub abandoned: Counter,
    /// Live messages dropped because too many waited.
    pub dropped: Counter,
}

impl SnapshotCounters {
    /// Brings the counts up to date.
    pub(crate) fn publish(&self, healer: &SnapshotHealer, sockets: &SocketCounters) {
        let counters = healer.counters();
        self.waiting.set(healer.waiting().into());
        self.healed.set(counters.healed);
        self.connections.set(sockets.connections);
        self.failures.set(sockets.failures);
        self.channel_joins.set(sockets.joins);
        self.too_old.set(counters.too_old);
        self.too_far_ahead.set(counters.too_far_ahead);
        self.abandoned.set(counters.abandoned);
        self.dropped.set(counters.dropped);
    }
}

//! Sources of snapshots for books that permanently lost messages, and counters of the snapshot recovery.

use std::net::SocketAddrV4;

use tickpath_agent::Counter;
use tickpath_feed::{SnapshotRecovery, SocketCounters};
use tickpath_net::ReconnectConfig;
use tickpath_types::Nanos;

use crate::senders::Senders;

/// Connect timeout and retry delay for a GLIMPSE server. Between attempts the snapshot channel is used.
pub(crate) const GLIMPSE: ReconnectConfig =
    ReconnectConfig::fixed(Nanos::from_secs(2), Nanos::from_millis(20));

/// The sources of snapshots, and the capacity for messages held until a snapshot arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSources {
    /// Address of the GLIMPSE server (snapshots of the market over SoupBinTCP), tried first.
    pub glimpse: Option<SocketAddrV4>,
    /// Multicast group, on the lines' interface, that repeats snapshots of one instrument after another.
    pub channel: Option<SocketAddrV4>,
    /// Addresses that may send to the snapshot group.
    pub senders: Senders,
    /// Maximum number of messages held for books that wait for a snapshot. Beyond it the oldest are dropped.
    pub hold_messages: usize,
}

impl SnapshotSources {
    /// Returns no sources: a book that permanently lost a message stays stale.
    #[must_use]
    pub const fn none() -> SnapshotSources {
        SnapshotSources { glimpse: None, channel: None, senders: Senders::any(), hold_messages: 1 << 16 }
    }

    /// Returns whether a source is configured.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.glimpse.is_some() || self.channel.is_some()
    }
}

/// Counters of the snapshot recovery, readable by other threads.
#[derive(Default)]
pub struct SnapshotCounters {
    /// Books that wait for a snapshot.
    pub waiting: Counter,
    /// Books recovered by a snapshot.
    pub recovered: Counter,
    /// Connections to the snapshot server.
    pub connections: Counter,
    /// Connections to the snapshot server that did not complete a snapshot.
    pub failures: Counter,
    /// Number of times that the snapshot channel was joined.
    pub channel_joins: Counter,
    /// Rejected snapshots that end before the first held message: the messages between are missing.
    pub too_old: Counter,
    /// Snapshots rejected because their last sequence number is too far ahead of the lines.
    pub too_far_ahead: Counter,
    /// Snapshots interrupted by a lost packet or connection.
    pub abandoned: Counter,
    /// Live messages dropped because too many were held.
    pub dropped: Counter,
}

impl SnapshotCounters {
    /// Publishes the counters of the snapshot recovery and of its sockets.
    pub(crate) fn publish(&self, snapshot_recovery: &SnapshotRecovery, sockets: &SocketCounters) {
        let counters = snapshot_recovery.counters();
        self.waiting.set(snapshot_recovery.waiting().into());
        self.recovered.set(counters.recovered);
        self.connections.set(sockets.connections);
        self.failures.set(sockets.failures);
        self.channel_joins.set(sockets.joins);
        self.too_old.set(counters.too_old);
        self.too_far_ahead.set(counters.too_far_ahead);
        self.abandoned.set(counters.abandoned);
        self.dropped.set(counters.dropped);
    }
}

//! Counters of the recovery of market data.

use tickpath_lockfree::Counter;

/// Counters of the recovery of market data, readable from outside while it runs.
#[derive(Default)]
#[repr(align(128))] // on cache lines that it shares with nothing: another thread's writes beside it would cost its writer
pub struct RecoveryCounters {
    /// Number of the next message that the snapshots do not cover.
    pub next_sequence: Counter,
    /// 1 once a message was missed: no snapshot is taken until the state is rebuilt out of the journal or, without
    /// one, until the venue is started again.
    pub is_behind: Counter,
    /// Times that the state was rebuilt out of the journal.
    pub renewals: Counter,
    /// GLIMPSE connections at present.
    pub glimpse_connections: Counter,
    /// GLIMPSE logins.
    pub glimpse_logins: Counter,
    /// GLIMPSE logins beyond the bound, to another session, or while no snapshot can be taken.
    pub glimpse_refused: Counter,
    /// GLIMPSE connections closed before their login, because others came and there was no capacity, or it did not come in
    /// time.
    pub glimpse_evicted: Counter,
    /// GLIMPSE clients that said what no client says.
    pub glimpse_malformed: Counter,
    /// GLIMPSE clients that were too slow, or silent.
    pub glimpse_slow: Counter,
    /// Snapshots taken for GLIMPSE clients.
    pub glimpse_snapshots: Counter,
    /// Snapshots sent by multicast, of one instrument each.
    pub channel_snapshots: Counter,
    /// Their packets.
    pub channel_packets: Counter,
    /// Times that the kernel did not take one; it is tried again.
    pub channel_unsent: Counter,
    /// Answers out of the journal.
    pub archive_answers: Counter,
    /// Requests for what the journal has no longer.
    pub archive_too_old: Counter,
    /// Snapshots of the journal that were read.
    pub archive_rewinds: Counter,
    /// Reads of the journal that failed.
    pub archive_errors: Counter,
}

//! Counters of the recovery of market data.

tickpath_lockfree::counters! {
    /// Counters of the recovery of market data, readable from outside while it runs.
    pub struct RecoveryCounters {
        /// Number of the next message that the snapshots do not cover.
        pub next_sequence,
        /// 1 once a message was missed: no snapshot is taken until the state is rebuilt from the journal or,
        /// without one, until the venue restarts.
        pub is_behind,
        /// Times that the state was rebuilt from the journal.
        pub renewals => "snapshot_renewals",
        /// GLIMPSE connections at present.
        pub glimpse_connections => "glimpse_connections",
        /// GLIMPSE logins.
        pub glimpse_logins => "glimpse_logins",
        /// GLIMPSE logins beyond the bound, to another session, or while no snapshot can be taken.
        pub glimpse_refused => "glimpse_refused",
        /// GLIMPSE connections closed before their login, for lack of capacity or because it came too late.
        pub glimpse_evicted => "glimpse_evicted",
        /// GLIMPSE clients that sent invalid messages.
        pub glimpse_malformed => "glimpse_malformed",
        /// GLIMPSE clients that were too slow, or silent.
        pub glimpse_slow => "glimpse_slow",
        /// Snapshots taken for GLIMPSE clients.
        pub glimpse_snapshots => "glimpse_snapshots",
        /// Snapshots sent by multicast, of one instrument each.
        pub channel_snapshots => "channel_snapshots",
        /// Packets of these snapshots.
        pub channel_packets => "channel_packets",
        /// Times that the kernel did not accept a packet; it is retried.
        pub channel_unsent => "channel_unsent",
        /// Answers from the journal.
        pub archive_answers => "archive_answers",
        /// Requests for messages that the journal no longer has.
        pub archive_too_old => "archive_too_old",
        /// Snapshots of the journal that were read.
        pub archive_rewinds => "archive_rewinds",
        /// Reads of the journal that failed.
        pub archive_errors => "archive_errors",
    }
}

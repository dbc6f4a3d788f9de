//! Counters of market data recovery.

tickpath_lockfree::counters! {
    /// Counters of market data recovery, readable from other threads while it runs.
    pub struct RecoveryCounters {
        /// Sequence number of the first message that snapshots do not cover yet.
        pub next_sequence,
        /// 1 after a missed message: no snapshots are taken until the state is rebuilt from the journal or,
        /// without a journal, until the venue restarts.
        pub is_behind,
        /// Number of times that the market state was rebuilt from the journal.
        pub renewals => "snapshot_renewals",
        /// Open GLIMPSE connections.
        pub glimpse_connections => "glimpse_connections",
        /// GLIMPSE logins accepted.
        pub glimpse_logins => "glimpse_logins",
        /// GLIMPSE logins refused: too many clients, another session named, or no snapshot can be taken.
        pub glimpse_refused => "glimpse_refused",
        /// GLIMPSE connections closed before login: no capacity, or no login in time.
        pub glimpse_evicted => "glimpse_evicted",
        /// GLIMPSE clients disconnected after an invalid message.
        pub glimpse_malformed => "glimpse_malformed",
        /// GLIMPSE clients disconnected because they read too slowly or timed out without sending.
        pub glimpse_slow => "glimpse_slow",
        /// Snapshots taken for GLIMPSE clients.
        pub glimpse_snapshots => "glimpse_snapshots",
        /// Snapshots of single instruments taken for the multicast channel.
        pub channel_snapshots => "channel_snapshots",
        /// Packets with snapshots sent on the multicast channel.
        pub channel_packets => "channel_packets",
        /// Failed sends of a multicast packet, because the kernel did not accept it; it is sent again later.
        pub channel_unsent => "channel_unsent",
        /// Packets with messages recomputed from the journal, sent in answer to requests.
        pub archive_answers => "archive_answers",
        /// Archive requests without an answer: the messages are not available, or took over 2 s to recompute.
        pub archive_too_old => "archive_too_old",
        /// Searches of the journal for a usable snapshot, for a request or to rebuild the market state.
        pub archive_rewinds => "archive_rewinds",
        /// Reads of the journal that failed.
        pub archive_errors => "archive_errors",
    }
}

//! Counters of the venue's agents, readable from outside while they run.

tickpath_lockfree::counters! {
    /// Counters of the order server.
    pub struct OrderServerCounters {
        /// Connections accepted.
        pub connections => "connections",
        /// Logins refused because the maximum number of clients was logged in.
        pub connections_refused => "connections_refused",
        /// Connections closed before their login, because others arrived and there was no capacity.
        pub pre_login_evicted => "pre_login_evicted",
        /// Connections closed because their login did not arrive in time.
        pub pre_login_expired => "pre_login_expired",
        /// Times that the system refused a connection, mostly by the limit of open files; the connection waits.
        pub accept_errors => "accept_errors",
        /// Connections closed, by either side.
        pub disconnects => "disconnects",
        /// Logins accepted.
        pub logins => "logins",
        /// Logins refused.
        pub logins_refused => "logins_refused",
        /// Requests sequenced, refused ones included.
        pub requests => "requests",
        /// Requests refused before the log.
        pub requests_refused => "requests_refused",
        /// Messages that are not OUCH, packets that are not SoupBinTCP, and messages that are not supported.
        pub malformed => "malformed",
        /// Answers to users.
        pub responses,
        /// Times that a connection's send buffer was full, because its client does not read.
        pub full_connections => "full_connections",
        /// Clients disconnected because they read more slowly than messages are overwritten.
        pub slow_clients => "slow_clients",
        /// Commands in the log, the venue's own included.
        pub commands => "commands",
        /// Wrong passwords, and unknown names.
        pub wrong_passwords => "wrong_passwords",
        /// Logins whose check was postponed: too many wrong passwords before, or too many checks waiting.
        pub logins_delayed => "logins_delayed",
        /// Password checks whose connection was closed before they completed.
        pub checks_dropped => "checks_dropped",
        /// Sessions whose open orders were cancelled because they had no connection.
        pub cancels_on_disconnect => "cancels_on_disconnect",
        /// Commands of the administrator that were carried out.
        pub admin_commands => "admin_commands",
        /// 1 between kill and unkill of all users.
        pub is_killed,
        /// 1 once the venue refuses new orders until it stops.
        pub is_draining,
    }
}

tickpath_lockfree::counters! {
    /// Counters of the publisher.
    pub struct PublisherCounters {
        /// Messages published; also the sequence of the last one.
        pub messages => "market_messages",
        /// Packets sent on each line.
        pub packets,
        /// Packets that the kernel did not accept, over both lines and in answer to requests.
        pub unsent => "market_packets_unsent",
        /// Requests for retransmission.
        pub requests => "retransmit_requests",
        /// Requests that were malformed, for another session, above their address's rate, or over capacity.
        pub requests_dropped => "retransmit_dropped",
        /// Of these, those that were malformed.
        pub requests_malformed => "retransmit_malformed",
        /// Of these, those for another session.
        pub requests_foreign => "retransmit_foreign",
        /// Of these, those above the rate of their address.
        pub requests_limited => "retransmit_limited",
        /// Requests for messages that are not published yet, or no longer kept; they have no answer.
        pub requests_unknown => "retransmit_unknown",
        /// Requests for messages from the journal.
        pub requests_archived => "retransmit_archived",
        /// Messages sent again.
        pub retransmitted => "retransmitted",
    }
}

tickpath_lockfree::counters! {
    /// Counters and state of the journal.
    pub struct JournalCounters {
        /// The last durable command: answers up to it may be sent.
        pub durable,
        /// Times that a command had to wait because the journal's buffer was full.
        pub delayed,
        /// 1 while there is no space for another segment: new orders are refused.
        pub is_full,
        /// Requests refused without a numbered answer: the log's remaining space was reserved for cancels.
        pub unlogged_refusals => "unlogged_refusals",
        /// 1 once nothing more can be written: nothing more is answered.
        pub has_failed,
        /// Snapshots written since the start.
        pub snapshots,
        /// The last command that the newest of them covers.
        pub snapshot_sequence,
        /// Snapshots that could not be written, older files that could not be removed, and reads of the log that failed.
        pub snapshot_errors,
    }
}

tickpath_lockfree::counters! {
    /// Counters of the drop copies.
    pub struct DropCopyCounters {
        /// The last command whose messages are copied.
        pub commands,
        /// Messages of users that were read from the log.
        pub messages,
        /// Copies sent, over all readers.
        pub copies => "drop_copies",
        /// Connections accepted.
        pub connections,
        /// Connections closed before their login, for lack of capacity or because it came too late.
        pub pre_login_evicted => "drop_copy_evicted",
        /// Connections closed, by either side.
        pub disconnects,
        /// Logins accepted.
        pub logins => "drop_copy_logins",
        /// Logins refused, for any reason.
        pub logins_refused => "drop_copy_refused",
        /// Wrong passwords, and unknown names.
        pub wrong_passwords,
        /// Bytes that are not a SoupBinTCP packet, and messages of readers, which must not send any.
        pub malformed => "drop_copy_malformed",
        /// Readers that began before the messages in memory, and for which the log was read again.
        pub rewinds => "drop_copy_rewinds",
        /// Of these, those disconnected because the log was removed before they had received all of it.
        pub rewinds_failed => "drop_copy_rewinds_cut",
        /// Readers disconnected because they read more slowly than messages are overwritten.
        pub slow_readers => "drop_copy_readers_slow",
        /// 1 once the log cannot be followed any more: there are no drop copies until the venue restarts.
        pub has_failed,
    }
}

//! Counters of the venue's agents, readable from other threads while the agents run.

use tickpath_lockfree::Counter;
use tickpath_types::{Price, Qty};

tickpath_lockfree::counters! {
    /// Counters of the order server.
    pub struct OrderServerCounters {
        /// Connections accepted.
        pub connections => "connections",
        /// Logins refused because the maximum number of clients was logged in.
        pub connections_refused => "connections_refused",
        /// Connections closed before login to free capacity for newer ones.
        pub pre_login_evicted => "pre_login_evicted",
        /// Connections closed because no login arrived in time.
        pub pre_login_expired => "pre_login_expired",
        /// Failed `accept` calls, mostly at the limit of open files; the kernel keeps the connection queued.
        pub accept_errors => "accept_errors",
        /// Connections closed, by either side.
        pub disconnects => "disconnects",
        /// Logins accepted.
        pub logins => "logins",
        /// Logins refused.
        pub logins_refused => "logins_refused",
        /// Requests sequenced, including refused ones.
        pub requests => "requests",
        /// Requests refused by the checks before the engine.
        pub requests_refused => "requests_refused",
        /// Messages that are not OUCH, packets that are not SoupBinTCP, and messages that are not supported.
        pub malformed => "malformed",
        /// Responses to users that the order server received from the matcher.
        pub responses,
        /// Times that a connection's send buffer was full, because its client did not read.
        pub full_connections => "full_connections",
        /// Clients disconnected because messages were overwritten before they had read them.
        pub slow_clients => "slow_clients",
        /// Commands in the log, including the venue's internal ones.
        pub commands => "commands",
        /// Logins with a wrong password or an unknown name.
        pub wrong_passwords => "wrong_passwords",
        /// Logins whose password check was postponed: after wrong passwords, or because its queue was full.
        pub logins_delayed => "logins_delayed",
        /// Password checks whose connection was closed before they completed.
        pub checks_dropped => "checks_dropped",
        /// Times that the open orders of a disconnected session were cancelled.
        pub cancels_on_disconnect => "cancels_on_disconnect",
        /// Commands of the administrator that were carried out.
        pub admin_commands => "admin_commands",
        /// 1 while the venue refuses new orders of all users because of a kill command.
        pub is_killed,
        /// 1 while the venue drains: it refuses new orders until it stops.
        pub is_draining,
    }
}

tickpath_lockfree::counters! {
    /// Counters of the publisher.
    pub struct PublisherCounters {
        /// Messages published; also the sequence number of the last one.
        pub messages => "market_messages",
        /// Packets sent on each of the two lines.
        pub packets,
        /// Packets that the kernel did not accept: those of both lines and those in answers to requests. If line B
        /// has a separate agent, its packets are not included.
        pub unsent => "market_packets_unsent",
        /// Packets of line B that the kernel did not accept from a separate agent for line B.
        pub unsent_line_b => "market_line_b_unsent",
        /// 1 once the kernel has refused to segment a run of packets: each packet then takes a separate call.
        pub is_unsegmented => "market_unsegmented",
        /// Retransmission requests received.
        pub requests => "retransmit_requests",
        /// Requests dropped: malformed, for another session, above the rate limit, or queue overflow.
        pub requests_dropped => "retransmit_dropped",
        /// Dropped requests that were malformed.
        pub requests_malformed => "retransmit_malformed",
        /// Dropped requests that named a session other than the current one.
        pub requests_foreign => "retransmit_foreign",
        /// Dropped requests above the rate limit of their source address.
        pub requests_limited => "retransmit_limited",
        /// Requests without an answer: their messages are not published yet, or no longer kept.
        pub requests_unknown => "retransmit_unknown",
        /// Requests passed to the archive, which reads the log: their messages are no longer in memory.
        pub requests_archived => "retransmit_archived",
        /// Messages sent again in answer to requests.
        pub retransmitted => "retransmitted",
    }
}

tickpath_lockfree::counters! {
    /// Counters and state of the journal.
    pub struct JournalCounters {
        /// Sequence number of the last durable command; responses to commands up to it may be sent.
        pub durable,
        /// Times that a command had to wait because the journal's buffer was full.
        pub delayed,
        /// 1 while there is no space for another log segment: new orders are refused.
        pub is_full,
        /// Requests refused without a log entry, because the log's remaining space was reserved for cancels.
        pub unlogged_refusals => "unlogged_refusals",
        /// 1 once the journal cannot be written any more: the venue sends no more responses.
        pub has_failed,
        /// Snapshots written since the venue's start.
        pub snapshots,
        /// Sequence number of the last command that the newest snapshot covers.
        pub snapshot_sequence,
        /// Failed writes of snapshots, failed removals of older files, and failed reads of the log.
        pub snapshot_errors,
    }
}

tickpath_lockfree::counters! {
    /// Counters of the drop copies.
    pub struct DropCopyCounters {
        /// Sequence number of the last command whose messages are ready to be copied to readers.
        pub commands,
        /// Messages to users that were read from the log.
        pub messages,
        /// Copies sent to all readers together.
        pub copies => "drop_copies",
        /// Connections accepted.
        pub connections,
        /// Connections closed before login: no capacity, or no login in time.
        pub pre_login_evicted => "drop_copy_evicted",
        /// Connections closed, by either side.
        pub disconnects,
        /// Logins accepted.
        pub logins => "drop_copy_logins",
        /// Logins refused, for any reason.
        pub logins_refused => "drop_copy_refused",
        /// Logins with a wrong password or an unknown name.
        pub wrong_passwords,
        /// Invalid packets, and messages from readers, which must not send any.
        pub malformed => "drop_copy_malformed",
        /// Rewinds: repeated readings of the log for a reader that requested messages no longer in memory.
        pub rewinds => "drop_copy_rewinds",
        /// Readers disconnected because the part of the log that their rewind needed was removed.
        pub rewinds_failed => "drop_copy_rewinds_cut",
        /// Readers disconnected because messages were overwritten before they had read them.
        pub slow_readers => "drop_copy_readers_slow",
        /// 1 once the log cannot be followed any more: no drop copies until the venue restarts.
        pub has_failed,
    }
}

/// Trades of an instrument since the venue's start. A trade that is broken later still counts.
#[derive(Debug, Default)]
pub struct TradeTotals {
    /// Price of the last trade, in units of [`Price`], as the bits of an `i64`; unset while `count` is 0.
    last: Counter,
    /// Traded quantity.
    pub volume: Counter,
    /// Number of trades; each cross counts as one.
    pub count: Counter,
}

impl TradeTotals {
    /// Adds a trade.
    #[inline]
    pub fn add(&self, price: Price, qty: Qty) {
        self.last.set(price.0.cast_unsigned());
        self.volume.add(qty.0);
        self.count.add(1);
    }

    /// Price of the last trade; `None` before the first.
    #[must_use]
    pub fn last(&self) -> Option<Price> {
        (self.count.read() > 0).then(|| Price(self.last.read().cast_signed()))
    }
}

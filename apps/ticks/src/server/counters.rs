//! The counters of a server.

use serde_json::{Value, json};

/// Counts since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Ticks generated.
    pub ticks: u64,
    /// Ticks not generated because the server was more than a second behind the schedule.
    pub given_up: u64,
    /// Ticks that the kernel accepted for sending, summed over all subscribers.
    pub ticks_sent: u64,
    /// Bytes that the kernel accepted for sending.
    pub bytes_sent: u64,
    /// Write system calls.
    pub writes: u64,
    /// System calls other than writes: reads, accepts, polls and changes of the polled events.
    pub other_calls: u64,
    /// Writes of which the kernel accepted nothing or only a part.
    pub blocked: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that ended, for any reason.
    pub closed: u64,
    /// Connections closed to admit others: those without a subscription, and subscribers from the address
    /// with the most connections.
    pub evicted: u64,
    /// Connections refused because the maximum number of clients was reached.
    pub refused_full: u64,
    /// Clients refused because of a different protocol version.
    pub refused_version: u64,
    /// Clients refused because their input is not a valid message.
    pub refused_malformed: u64,
    /// Requests refused because they name more symbols than exist.
    pub refused_symbols: u64,
    /// Requests refused because they name a symbol that does not exist.
    pub refused_unknown: u64,
    /// Requests granted.
    pub subscriptions: u64,
    /// Number of times that the policy for slow subscribers was applied.
    pub slow: u64,
    /// Ticks omitted for subscribers that were too far behind, summed over these subscribers.
    pub skipped: u64,
    /// Subscribers disconnected because they were too far behind.
    pub slow_disconnected: u64,
    /// Clients disconnected because they sent nothing for too long.
    pub silent: u64,
    /// Heartbeats sent.
    pub heartbeats: u64,
    /// Ticks omitted by fault injection.
    pub fault_gaps: u64,
    /// Ticks damaged by fault injection.
    pub fault_corrupt: u64,
    /// Stalls caused by fault injection.
    pub fault_stalls: u64,
    /// Disconnections caused by fault injection.
    pub fault_disconnects: u64,
}

impl ServerCounters {
    /// Returns the counts by name, as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "ticks": self.ticks,
            "given_up": self.given_up,
            "ticks_sent": self.ticks_sent,
            "bytes_sent": self.bytes_sent,
            "writes": self.writes,
            "other_calls": self.other_calls,
            "blocked": self.blocked,
            "accepted": self.accepted,
            "closed": self.closed,
            "evicted": self.evicted,
            "refused": {
                "full": self.refused_full,
                "version": self.refused_version,
                "malformed": self.refused_malformed,
                "symbols": self.refused_symbols,
                "unknown": self.refused_unknown,
            },
            "subscriptions": self.subscriptions,
            "slow": self.slow,
            "skipped": self.skipped,
            "slow_disconnected": self.slow_disconnected,
            "silent": self.silent,
            "heartbeats": self.heartbeats,
            "faults": {
                "gaps": self.fault_gaps,
                "corrupt": self.fault_corrupt,
                "stalls": self.fault_stalls,
                "disconnects": self.fault_disconnects,
            },
        })
    }
}

//! What happened on the lines of a channel.

use tickpath_types::Nanos;

/// Counts of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Datagrams taken from the line.
    pub packets: u64,
    /// Messages of which this line brought the first copy.
    pub first_messages: u64,
    /// Messages that had already come by another way.
    pub duplicate_messages: u64,
    /// Messages that the line's own numbering skipped: lost on this line.
    pub missed_messages: u64,
    /// Datagrams that were not MoldUDP64.
    pub malformed: u64,
    /// Datagrams of another session.
    pub wrong_session: u64,
    /// Datagrams that began further ahead than [`MAX_AHEAD`](crate::MAX_AHEAD) when no other did; dropped.
    pub far_ahead: u64,
    /// What the line should bring next; 0 before its first datagram.
    pub(crate) next_sequence: u64,
}

/// Counts of one [`Arbiter`](crate::Arbiter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArbiterCounters {
    /// By [`Line`](crate::Line): A, B, Recovery.
    pub lines: [LineCounters; 3],
    /// Gaps seen: a later message came before an earlier one from any line.
    pub gaps_opened: u64,
    /// Gaps that the other line closed.
    pub gaps_healed_by_line: u64,
    /// Gaps that an answer of the retransmission server closed.
    pub gaps_healed_by_retransmission: u64,
    /// Runs of messages given up.
    pub gaps_lost: u64,
    /// Messages given up.
    pub messages_lost: u64,
    /// Requests for retransmission.
    pub requests: u64,
    /// Messages dropped because the hold buffer's window did not reach them, or that came twice.
    pub not_held: u64,
    /// Times that the lines went over to another session: the publisher started anew.
    pub foreign_sessions: u64,
    /// Longest time from the opening of a gap to its close.
    pub longest_gap: Nanos,
}

impl ArbiterCounters {
    /// Gaps that were closed with every message delivered.
    #[must_use]
    pub const fn gaps_healed(&self) -> u64 {
        self.gaps_healed_by_line + self.gaps_healed_by_retransmission
    }

    /// Messages that one line lost and that were delivered all the same.
    #[must_use]
    pub const fn line_losses(&self) -> u64 {
        self.lines[0].missed_messages + self.lines[1].missed_messages
    }
}

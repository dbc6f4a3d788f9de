//! Counters of the lines of a channel.

use tickpath_types::Nanos;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::MAX_AHEAD;

/// Counters of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct LineCounters {
    /// Datagrams processed; not those counted below as malformed, of another session or far ahead.
    pub packets: u64,
    /// Messages of which this line delivered the first copy.
    pub first_messages: u64,
    /// Messages of which a copy had already arrived.
    pub duplicate_messages: u64,
    /// Messages skipped in the line's sequence numbers: lost on this line.
    pub missed_messages: u64,
    /// Datagrams that do not follow the protocol.
    pub malformed: u64,
    /// Datagrams of another session.
    pub wrong_session: u64,
    /// Datagrams dropped because they began over [`MAX_AHEAD`](crate::MAX_AHEAD) messages ahead, and no other
    /// datagram confirmed that.
    pub far_ahead: u64,
    /// Datagrams that began before the end of an earlier one on the line.
    pub backward: u64,
    /// Delay of this line behind the other, for packets that the other line brought first.
    pub skew: Skew,
    /// The sequence number expected next on the line; 0 before its first datagram.
    pub(crate) next_sequence: u64,
    /// Run of packets that indicates an unannounced sequence reset: its next sequence number, its length, and
    /// the known end of the stream at its latest packet.
    back_next: u64,
    pub(crate) back_run: u64,
    back_known_end: u64,
    /// This line's next sequence number when the other line restarted, until this line also restarts; else 0.
    left_behind: u64,
}

impl LineCounters {
    /// Counts a datagram of messages `first..end` that does not begin at the line's next sequence number. All
    /// messages before `known_end` are known to exist.
    pub(crate) fn count_jump(&mut self, first: u64, end: u64, known_end: u64) {
        if first > self.next_sequence {
            if self.next_sequence != 0 {
                self.missed_messages += first - self.next_sequence;
            }
        } else if end > first {
            self.backward += 1;
            let is_old = end <= known_end;
            // If the other line advanced meanwhile, this line only repeats packets: begin a new run.
            let continues = first >= self.back_next
                && first - self.back_next <= MAX_AHEAD
                && known_end == self.back_known_end;
            self.back_run = if is_old && continues { self.back_run + 1 } else { u64::from(is_old) };
            (self.back_next, self.back_known_end) = (end, known_end);
        }
        self.next_sequence = self.next_sequence.max(end);
    }

    /// Resets the line's numbering after a restart, which came on this line (`is_here`) or on the other one.
    pub(crate) fn restart(&mut self, is_here: bool) {
        self.left_behind = if is_here { 0 } else { self.next_sequence.max(self.left_behind) };
        (self.next_sequence, self.back_next, self.back_run, self.back_known_end) = (0, 0, 0, 0);
    }

    /// Returns true until the line is known to use the numbering of the latest restart.
    pub(crate) const fn is_before_restart(&self) -> bool {
        self.left_behind != 0
    }

    /// Returns true if a packet that begins at `first` still has numbers from before the latest restart.
    /// Always false once `next`, the next sequence number after the restart, has reached the line's old
    /// numbers.
    pub(crate) const fn is_left_behind(&mut self, first: u64, next: u64) -> bool {
        if first < self.left_behind || next >= self.left_behind {
            self.left_behind = 0;
        }
        self.left_behind != 0
    }
}

/// Distribution of the delay between the first copy of a packet and its duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Skew {
    /// Packets that arrived on both lines, and on this line later than on the other.
    pub count: u64,
    /// Sum of the delays.
    pub sum: Nanos,
    /// Maximum delay.
    pub max: Nanos,
    /// Packets by delay: bucket n counts 2^n to 2^(n+1) ns. Bucket 0 also counts 0 ns, and the last bucket
    /// all longer delays.
    pub buckets: [u32; SKEW_BUCKETS],
}

/// Number of [`Skew::buckets`]; the last one begins at two seconds.
pub const SKEW_BUCKETS: usize = 32;
const LAST_BUCKET: usize = SKEW_BUCKETS - 1;

impl Skew {
    /// Counts one packet that arrived `behind` after the first copy.
    #[inline]
    pub fn record(&mut self, behind: Nanos) {
        self.count += 1;
        self.sum = Nanos(self.sum.0.saturating_add(behind.0));
        self.max = self.max.max(behind);
        let place = (behind.0 | 1).ilog2() as usize;
        self.buckets[place.min(LAST_BUCKET)] += 1;
    }

    /// Returns the mean delay; zero without packets.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        self.sum.0.checked_div(self.count).map_or(Nanos::ZERO, Nanos)
    }

    /// Returns the delay that `per_mille` of 1000 packets did not exceed, within a factor of two: the upper
    /// bound of its bucket, limited to the maximum.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Nanos {
        let total: u64 = self.buckets.iter().map(|&count| u64::from(count)).sum();
        let wanted = (total * per_mille).div_ceil(1_000);
        let mut seen = 0;
        let place = self.buckets.iter().position(|&count| {
            seen += u64::from(count);
            seen >= wanted
        });
        place.map_or(Nanos::ZERO, |place| match place {
            LAST_BUCKET => self.max,
            _ => Nanos((2_u64 << place) - 1).min(self.max),
        })
    }
}

/// Counters of one [`Arbiter`](crate::Arbiter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct ArbiterCounters {
    /// Counters of each [`Line`](crate::Line): A, B, Recovery.
    pub lines: [LineCounters; 3],
    /// Gaps opened: a message arrived while an earlier one was missing on both lines.
    pub gaps_opened: u64,
    /// Gaps closed by a packet of line A or B.
    pub gaps_healed_by_line: u64,
    /// Gaps closed by an answer of the retransmission server.
    pub gaps_healed_by_retransmission: u64,
    /// Runs of messages given up as lost.
    pub gaps_lost: u64,
    /// Messages given up as lost.
    pub messages_lost: u64,
    /// Retransmission requests sent.
    pub requests: u64,
    /// Messages dropped because they were beyond the reorder buffer's window or already held.
    pub not_held: u64,
    /// Session changes reported to the listener.
    pub other_sessions: u64,
    /// Restarts of the numbering at 1 within a session, announced by the publisher.
    pub restarts: u64,
    /// Unannounced sequence resets: the lines continued with earlier numbers.
    pub jumps_back: u64,
    /// Packets dropped because their line still used the numbers from before a restart.
    pub left_behind: u64,
    /// Packets or held messages that differ from the other line's under the same sequence numbers.
    pub disagreements: u64,
    /// Messages that the publisher reported as no longer available.
    pub unavailable: u64,
    /// Out-of-band packets, which are not part of the numbered stream.
    pub out_of_band: u64,
    /// Longest time from the opening of a gap to its close.
    pub longest_gap: Nanos,
}

impl ArbiterCounters {
    /// Returns the number of gaps that were filled.
    #[must_use]
    pub const fn gaps_healed(&self) -> u64 {
        self.gaps_healed_by_line + self.gaps_healed_by_retransmission
    }

    /// Returns the number of messages missed on line A plus the number missed on line B.
    #[must_use]
    pub const fn line_losses(&self) -> u64 {
        self.lines[0].missed_messages + self.lines[1].missed_messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_has_a_mean_a_maximum_and_quantiles_to_a_factor_of_two() {
        let mut skew = Skew::default();
        assert_eq!((skew.mean(), skew.quantile(500)), (Nanos::ZERO, Nanos::ZERO));
        for nanos in [0, 1, 2, 3, 1_000, 5_000_000_000] {
            skew.record(Nanos(nanos));
        }
        assert_eq!(skew.buckets[..3], [2, 2, 0]);
        assert_eq!((skew.buckets[9], skew.buckets[LAST_BUCKET]), (1, 1));
        assert_eq!((skew.mean(), skew.max), (Nanos(5_000_001_006 / 6), Nanos(5_000_000_000)));
        assert_eq!(skew.quantile(500), Nanos(3));
        assert_eq!(skew.quantile(800), Nanos(1_023));
        assert_eq!(skew.quantile(1_000), skew.max, "the last bucket has no end");
    }
}

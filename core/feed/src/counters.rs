//! What happened on the lines of a channel.

use tickpath_types::Nanos;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::MAX_AHEAD;

/// Counts of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct LineCounters {
    /// Datagrams taken from the line.
    pub packets: u64,
    /// Messages of which this line brought the first copy.
    pub first_messages: u64,
    /// Messages that had already come by another way.
    pub duplicate_messages: u64,
    /// Messages that the line's own numbering skipped: lost on this line.
    pub missed_messages: u64,
    /// Datagrams that were not of the protocol.
    pub malformed: u64,
    /// Datagrams of another session.
    pub wrong_session: u64,
    /// Datagrams that began further ahead than [`MAX_AHEAD`](crate::MAX_AHEAD) when no other did; dropped.
    pub far_ahead: u64,
    /// Datagrams that began before where the line had come by its own numbering.
    pub backward: u64,
    /// How far the line was behind, for packets that the other line had brought.
    pub skew: Skew,
    /// What the line should bring next; 0 before its first datagram.
    pub(crate) next_sequence: u64,
    /// What it would bring next if it had begun again further back, how many packets in a row say so, and what was known
    /// to exist when the first of them came.
    back_next: u64,
    pub(crate) back_run: u64,
    back_known_end: u64,
    /// Where it had come in numbers that have been left for others, until it leaves them too; 0 when it has.
    left_behind: u64,
}

impl LineCounters {
    /// A datagram came that does not begin where the one before it ended; messages before `known_end` are known to exist.
    pub(crate) fn count_step(&mut self, first: u64, end: u64, known_end: u64) {
        if first > self.next_sequence {
            if self.next_sequence != 0 {
                self.missed_messages += first - self.next_sequence;
            }
        } else if end > first {
            self.backward += 1;
            let is_old = end <= known_end;
            // Something new by the other line says that only this one repeats itself.
            let goes_on = first >= self.back_next
                && first - self.back_next <= MAX_AHEAD
                && known_end == self.back_known_end;
            self.back_run = if is_old && goes_on { self.back_run + 1 } else { u64::from(is_old) };
            (self.back_next, self.back_known_end) = (end, known_end);
        }
        self.next_sequence = self.next_sequence.max(end);
    }

    /// The numbering has started again, on this line or on the other one.
    pub(crate) fn restart(&mut self, is_here: bool) {
        self.left_behind = if is_here { 0 } else { self.next_sequence.max(self.left_behind) };
        (self.next_sequence, self.back_next, self.back_run, self.back_known_end) = (0, 0, 0, 0);
    }

    /// True while the line has not come to the numbers of the latest restart, as far as is known.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        self.left_behind != 0
    }

    /// True for a packet that begins at `first` and is still of the numbers before the latest restart, which the line has
    /// not come to: it goes on where it was. Never true once the new numbers have come as far, `next` being the next.
    pub(crate) const fn is_left_behind(&mut self, first: u64, next: u64) -> bool {
        if first < self.left_behind || next >= self.left_behind {
            self.left_behind = 0;
        }
        self.left_behind != 0
    }
}

/// How long after the first copy of a packet the second one came, packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Skew {
    /// Packets of which both copies came, and this line's was the second.
    pub count: u64,
    /// The sum of how far it was behind.
    pub sum: Nanos,
    /// The furthest.
    pub max: Nanos,
    /// How many were behind by 2^n to 2^(n+1) nanoseconds, at place n, those of less at 0 and those of more at the last.
    pub buckets: [u32; SKEW_BUCKETS],
}

/// Places of [`Skew::buckets`]: the last one begins at two seconds.
pub const SKEW_BUCKETS: usize = 32;
const LAST_BUCKET: usize = SKEW_BUCKETS - 1;

impl Skew {
    /// Counts one packet.
    #[inline]
    pub fn record(&mut self, behind: Nanos) {
        self.count += 1;
        self.sum = Nanos(self.sum.0.saturating_add(behind.0));
        self.max = self.max.max(behind);
        let place = (behind.0 | 1).ilog2() as usize;
        self.buckets[place.min(LAST_BUCKET)] += 1;
    }

    /// The mean; zero when there is none.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        self.sum.0.checked_div(self.count).map_or(Nanos::ZERO, Nanos)
    }

    /// What `per_mille` of 1000 packets did not exceed, to a factor of two: the end of its bucket, at most the maximum.
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

/// Counts of one [`Arbiter`](crate::Arbiter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
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
    /// Times that the publisher began to number from 1 again, within a session, and said so.
    pub restarts: u64,
    /// Times that the lines went on with numbers that had been, and nobody said why.
    pub jumps_back: u64,
    /// Packets that were dropped because they are of numbers that have been left: their line has not come to the new ones
    /// yet.
    pub left_behind: u64,
    /// Packets, or messages held, that differ from what the other line brought under the same numbers.
    pub disagreements: u64,
    /// Messages that the publisher said it does not have any more.
    pub unavailable: u64,
    /// Packets that are not part of the numbered stream.
    pub aside: u64,
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

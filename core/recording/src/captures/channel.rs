//! One channel of a capture: puts the messages from its lines in sequence, and detects gaps and duplicates.

use core::net::SocketAddrV4;
use std::collections::BTreeMap;

use serde::Serialize;
use tickpath_feed::JUMP_BACK_PACKETS;

use crate::StreamCounters;

/// Time in ns, by capture time, from the detection of a gap until its missing packets count as lost. Until
/// then they may arrive on another line, or out of order.
const REORDER_WAIT_NS: u64 = 100_000_000;
/// Maximum delay of a duplicate, in ns of capture time, on a line that once delivered a packet before the
/// other lines. A packet with a longer delay is no duplicate: its sequence number jumped back.
const DUPLICATE_LATE_NS: u64 = 1_000_000_000;
/// Line index of retransmitted packets, which arrive on no line and at any time.
pub(crate) const NO_LINE: usize = usize::MAX;
/// Maximum payload bytes held behind a gap; beyond this the missing messages count as lost.
const HELD_BYTES_MAX: usize = 16 << 20;
/// Number of packets remembered for comparison with their duplicates. The first sequence number of a packet
/// selects its slot; a later packet overwrites an earlier one.
const RECENT_LEN: usize = 4_096;

/// Counters of a channel's packets and messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelReport {
    /// Name of the channel, taken from its packets.
    pub name: String,
    /// Destination address and number of packets of each line.
    #[serde(skip)]
    pub lines: Vec<(SocketAddrV4, u64)>,
    /// Packets of all lines, heartbeats included.
    pub packets: u64,
    /// Packets without messages.
    pub heartbeats: u64,
    /// Messages, without duplicates.
    pub messages: u64,
    /// Sequence number of the first message.
    pub first_sequence: u64,
    /// Duplicate messages.
    pub duplicates: u64,
    /// Duplicate messages whose contents were not compared, since no packet of the same sequence numbers is
    /// remembered: the original is too old, or was cut into packets differently.
    pub uncompared: u64,
    /// Messages numbered below `first_sequence` that arrived after the first message; they are omitted.
    pub before_first: u64,
    /// Number of gaps that were filled: the missing messages arrived late or on another line.
    pub gaps_filled: u64,
    /// Number of gaps that were never filled.
    pub gaps: u64,
    /// Number of messages that were lost.
    pub lost: u64,
    /// Number of restarts of the sequence numbers.
    pub restarts: u64,
    /// Messages without a sequence number.
    pub unnumbered: u64,
    /// Packets with invalid contents, or of a session that has ended.
    pub malformed: u64,
    /// Packets whose messages differ from those of their duplicate on another line.
    pub disagreements: u64,
    /// Packets omitted because their sequence numbers jumped back without an announcement: their line had
    /// delivered these numbers with other contents, or more than a second ago. The packet at which the
    /// numbering is assumed to restart is not counted.
    pub jumped_back: u64,
    /// Packets outside the sequence, such as refreshes.
    pub skipped: u64,
    /// Number of books recovered by a refresh in the capture.
    #[serde(rename = "healed")]
    pub recovered: u64,
    /// Counters of the channel's TCP segments; `None` for UDP.
    pub stream: Option<StreamCounters>,
}

/// A packet that is held because earlier messages are missing.
#[derive(Debug)]
pub(crate) struct BufferedPacket {
    pub(crate) number: u64,
    pub(crate) payload: Vec<u8>,
    count: u64,
}

/// A packet remembered for comparison with its duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RecentPacket {
    first: u64,
    content: u32,
    count: u16,
    line: u16,
}

/// Result of comparing a packet with the remembered packet of the same sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// Both have the same messages.
    Same,
    /// The messages differ, and both packets came from the same line.
    Reused,
    /// The messages differ, and the packets came from different lines.
    Disagrees,
    /// No packet of these sequence numbers is remembered.
    Unknown,
}

/// The treatment of a packet, as `Channel::judge` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Apply the messages, except this number of leading ones, which arrived before.
    Take(u64),
    /// Drop the packet: all its messages arrived before, or its numbers jumped back.
    Duplicate,
    /// The numbering restarted without an announcement: call [`Channel::restart`], and judge the packet
    /// again.
    Restarted,
    /// Hold the packet: messages before it are missing.
    Hold,
}

/// Judges the packets of one channel by their sequence numbers.
///
/// A capture may begin in mid-session: the first packet then sets the first number. Packets after a gap are
/// held until the missing ones arrive. After a time limit, or a limit of held bytes, the missing ones count
/// as lost.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    pub(crate) report: ChannelReport,
    next: Option<u64>,
    /// One past the highest sequence number known to exist.
    end: u64,
    held: BTreeMap<u64, BufferedPacket>,
    held_bytes: usize,
    /// Capture time, in ns, at which the open gap was detected; `None` without a gap.
    gap_since: Option<u64>,
    /// The latest packets, indexed by [`recent_slot`].
    recent: Vec<RecentPacket>,
    /// Two samples of capture time and next sequence number, at least a second apart, older first. On a line
    /// that was once the first to deliver, a packet that ends at or before the older sample's number is too
    /// late to be a duplicate.
    past: [(u64, u64); 2],
    /// Number of consecutive packets whose numbers jumped back.
    back_run: u32,
    /// One bit for each of the first 64 lines, set if the line delivered some message first.
    leaders: u64,
}

impl Channel {
    pub(crate) fn new(name: String) -> Channel {
        Channel { report: ChannelReport { name, ..ChannelReport::default() }, ..Channel::default() }
    }

    /// Index of the line with destination `dst`, which is added if it is new.
    pub(crate) fn line(&mut self, dst: SocketAddrV4) -> usize {
        let lines = &mut self.report.lines;
        lines.iter().position(|(known, _)| *known == dst).unwrap_or_else(|| {
            lines.push((dst, 0));
            lines.len() - 1
        })
    }

    /// Counts a packet of a line.
    pub(crate) fn count_packet(&mut self, line: usize) {
        self.report.packets += 1;
        self.report.lines[line].1 += 1;
    }

    /// Judges a packet with messages `first..first + count`. `line` is [`NO_LINE`] for a retransmission, and
    /// `content` is the digest of the messages.
    #[inline]
    pub(crate) fn judge(&mut self, line: usize, first: u64, count: u64, ts_ns: u64, content: u32) -> Verdict {
        let next = *self.next.get_or_insert_with(|| {
            self.report.first_sequence = first;
            self.end = first;
            first
        });
        self.note_past(next, ts_ns);
        let leader = u32::try_from(line).ok().and_then(|line| 1_u64.checked_shl(line)).unwrap_or_default();
        let end = first.saturating_add(count);
        self.end = self.end.max(end);
        let packet = RecentPacket { first, content, count: count as u16, line: line as u16 };
        let comparison = self.compare(packet, end > next);
        if end <= next {
            let was_leader = self.leaders & leader != 0;
            let is_old = end <= self.past[0].1;
            let is_jump = match comparison {
                Comparison::Reused => true,
                Comparison::Same => is_old && was_leader,
                // With several lines, the packet may duplicate one that is no longer remembered; a single
                // line has no duplicates.
                Comparison::Unknown => was_leader && (is_old || self.report.lines.len() == 1),
                Comparison::Disagrees => false,
            };
            if is_jump {
                self.back_run += 1;
                if self.back_run == JUMP_BACK_PACKETS {
                    return Verdict::Restarted;
                }
                self.report.jumped_back += 1;
            } else {
                let before = match self.report.restarts {
                    0 => self.report.first_sequence.saturating_sub(first).min(count),
                    _ => 0,
                };
                self.report.before_first += before;
                self.report.duplicates += count - before;
                self.report.uncompared += if comparison == Comparison::Unknown { count - before } else { 0 };
            }
            return Verdict::Duplicate;
        }
        self.leaders |= leader;
        self.back_run = 0;
        if first > next {
            self.gap_since.get_or_insert(ts_ns);
            return Verdict::Hold;
        }
        self.report.duplicates += next - first;
        self.take(end, end - next);
        Verdict::Take(next - first)
    }

    /// Samples the next sequence number, at most once per second of capture time.
    #[inline]
    fn note_past(&mut self, next: u64, ts_ns: u64) {
        let [_, (latest_ns, _)] = self.past;
        if ts_ns.saturating_sub(latest_ns) >= DUPLICATE_LATE_NS {
            self.past = [self.past[1], (ts_ns, next)];
        }
    }

    /// Records that `first` is the next number to be sent. If no packet arrived yet, expects it next.
    pub(crate) fn expect(&mut self, first: u64) {
        if self.next.is_none() {
            self.report.first_sequence = first;
            self.next = Some(first);
        }
        self.end = self.end.max(first);
    }

    /// Handles a heartbeat, which names the next sequence number.
    pub(crate) fn heartbeat(&mut self, next: u64, ts_ns: u64) {
        self.report.heartbeats += 1;
        self.expect(next);
        if self.next.is_some_and(|expected| expected < next) {
            self.gap_since.get_or_insert(ts_ns);
        }
    }

    /// True while messages are missing or held.
    pub(crate) fn is_open(&self) -> bool {
        self.gap_since.is_some() || !self.held.is_empty()
    }

    /// The next expected sequence number; `None` before the first packet.
    pub(crate) const fn next(&self) -> Option<u64> {
        self.next
    }

    /// Restarts the sequence numbers at `first`, and drops held packets, which are numbered as before.
    pub(crate) fn restart(&mut self, first: u64) {
        self.report.restarts += 1;
        (self.next, self.end) = (Some(first), first);
        self.held.clear();
        self.held_bytes = 0;
        self.gap_since = None;
        self.recent.clear();
        self.past = Default::default();
        self.back_run = 0;
    }

    /// Holds a packet until the messages before it arrive or are given up.
    pub(crate) fn hold(&mut self, first: u64, count: u64, number: u64, payload: &[u8]) {
        if let Some(known) = self.held.get(&first).filter(|known| known.count >= count) {
            self.report.duplicates += count.min(known.count);
            return;
        }
        self.held_bytes += payload.len();
        if let Some(shorter) =
            self.held.insert(first, BufferedPacket { number, payload: payload.to_vec(), count })
        {
            self.report.duplicates += shorter.count;
            self.held_bytes -= shorter.payload.len();
        }
    }

    /// Removes the first held packet with new messages, unless a gap precedes it. Returns the packet and the
    /// number of its messages that had arrived before.
    pub(crate) fn poll_held(&mut self) -> Option<(BufferedPacket, u64)> {
        let next = self.next?;
        while let Some(entry) = self.held.first_entry() {
            let first = *entry.key();
            if first > next {
                break;
            }
            let held = entry.remove();
            self.held_bytes -= held.payload.len();
            let end = first + held.count;
            let known = next.min(end) - first;
            self.report.duplicates += known;
            if end > next {
                self.take(end, end - next);
                return Some((held, known));
            }
        }
        None
    }

    /// Gives up missing messages at the time limit, at the limit of held bytes, or at the end of the capture
    /// (`now_ns` is `None`). Returns true if it gave up messages, so that a held packet may be next.
    pub(crate) fn give_up(&mut self, now_ns: Option<u64>) -> bool {
        let Some(since) = self.gap_since else { return false };
        let is_over = now_ns.is_none_or(|now| now.saturating_sub(since) > REORDER_WAIT_NS);
        if !is_over && self.held_bytes <= HELD_BYTES_MAX {
            return false;
        }
        let next = self.next.unwrap_or_default();
        let first = self.held.first_key_value().map_or(self.end, |(first, _)| *first);
        self.gap_since = None;
        if first <= next {
            return false;
        }
        self.report.gaps += 1;
        self.report.lost += first - next;
        self.next = Some(first);
        // Another gap may follow: its waiting time begins now.
        if self.held.len() > 1 || self.end > first {
            self.gap_since = now_ns.or(Some(since));
        }
        true
    }

    /// Records that all messages before `end` arrived, of which `count` are new.
    fn take(&mut self, end: u64, count: u64) {
        self.report.messages += count;
        self.next = Some(end);
        if self.gap_since.is_some() && self.held.is_empty() && end >= self.end {
            self.report.gaps_filled += 1;
            self.gap_since = None;
        }
    }

    /// True when a packet with these messages is remembered.
    pub(crate) fn remembers(&self, first: u64, count: u64, content: u32) -> bool {
        let known = self.recent.get(recent_slot(first)).copied().unwrap_or_default();
        (known.first, u64::from(known.count), known.content) == (first, count, content)
    }

    /// Compares `packet` with the remembered packet of the same numbers. If there is none and `is_new`,
    /// remembers `packet`.
    fn compare(&mut self, packet: RecentPacket, is_new: bool) -> Comparison {
        if self.recent.is_empty() {
            self.recent.resize(RECENT_LEN, RecentPacket::default());
        }
        let recent = &mut self.recent[recent_slot(packet.first)];
        if (recent.first, recent.count) != (packet.first, packet.count) {
            *recent = if is_new { packet } else { *recent };
            return Comparison::Unknown;
        }
        if recent.content == packet.content {
            return Comparison::Same;
        }
        if recent.line == packet.line && !is_new {
            return Comparison::Reused;
        }
        self.report.disagreements += 1;
        Comparison::Disagrees
    }
}

const fn recent_slot(first: u64) -> usize {
    first as usize % RECENT_LEN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_lines(count: u8) -> Channel {
        let mut channel = Channel::new("C".to_owned());
        for line in 1..=count {
            channel.line(format!("233.1.1.{line}:1").parse().unwrap());
        }
        channel
    }

    fn judge(channel: &mut Channel, first: u64, count: u64, ts_ns: u64) -> Verdict {
        let verdict = channel.judge(0, first, count, ts_ns, 7);
        if verdict == Verdict::Hold {
            channel.hold(first, count, 0, b"held");
        }
        verdict
    }

    #[test]
    fn the_other_line_fills_a_gap_and_duplicates_are_counted() {
        let mut channel = of_lines(2);
        assert_eq!(judge(&mut channel, 5, 3, 0), Verdict::Take(0));
        assert_eq!(judge(&mut channel, 5, 3, 1), Verdict::Duplicate);
        assert_eq!(judge(&mut channel, 10, 2, 2), Verdict::Hold);
        assert!(channel.poll_held().is_none() && !channel.give_up(Some(3)));
        assert_eq!(judge(&mut channel, 7, 3, 4), Verdict::Take(1));
        let (_, known) = channel.poll_held().unwrap();
        assert_eq!((known, channel.next()), (0, Some(12)));
        let report = &channel.report;
        assert_eq!((report.messages, report.first_sequence, report.duplicates), (7, 5, 4));
        assert_eq!((report.gaps_filled, report.gaps, report.lost), (1, 0, 0));
    }

    #[test]
    fn missing_messages_are_lost_after_the_time_limit_or_at_the_end() {
        let mut channel = of_lines(1);
        judge(&mut channel, 1, 1, 0);
        judge(&mut channel, 3, 1, 10);
        judge(&mut channel, 6, 1, 20);
        assert!(!channel.give_up(Some(10 + REORDER_WAIT_NS)));
        assert!(channel.give_up(Some(11 + REORDER_WAIT_NS)));
        assert!(channel.poll_held().is_some() && channel.poll_held().is_none());
        assert!(channel.give_up(None) && channel.poll_held().is_some());
        channel.heartbeat(9, 0);
        assert!(channel.give_up(None));
        let report = &channel.report;
        assert_eq!((report.messages, report.gaps, report.lost), (3, 3, 1 + 2 + 2));
        assert!(!channel.give_up(None));
    }

    #[test]
    fn disagreeing_lines_are_counted_and_a_restart_clears_them() {
        let mut channel = of_lines(2);
        channel.judge(0, 1, 2, 0, 1);
        channel.judge(1, 1, 2, 0, 2);
        assert_eq!(channel.report.disagreements, 1);
        channel.restart(1);
        assert_eq!(judge(&mut channel, 1, 2, 0), Verdict::Take(0));
        assert_eq!((channel.report.disagreements, channel.report.restarts), (1, 1));
    }

    #[test]
    fn numbers_that_jump_back_are_not_duplicates() {
        const SECOND: u64 = DUPLICATE_LATE_NS;
        let mut channel = of_lines(2);
        for (number, ts_ns) in [(1, 10 * SECOND), (2, 11 * SECOND), (3, 12 * SECOND)] {
            assert_eq!(channel.judge(0, number, 1, ts_ns, 7), Verdict::Take(0));
        }
        // Repeat message 3 on both lines, and message 1 two seconds late. Message 1 is a duplicate on line 1,
        // which never delivered a message first, and a jump back on line 0.
        for (line, number) in [(0, 3), (1, 3), (1, 1), (0, 1)] {
            assert_eq!(channel.judge(line, number, 1, 12 * SECOND + 1, 7), Verdict::Duplicate);
        }
        assert_eq!((channel.report.duplicates, channel.report.jumped_back), (3, 1));
        // A new message resets the count of consecutive jumps; then `JUMP_BACK_PACKETS` jumps in a row
        // restart the numbering.
        assert_eq!(channel.judge(1, 4, 1, 12 * SECOND + 2, 7), Verdict::Take(0));
        let verdicts: Vec<_> =
            (0..JUMP_BACK_PACKETS).map(|_| channel.judge(0, 1, 1, 12 * SECOND + 3, 7)).collect();
        let (last, others) = verdicts.split_last().unwrap();
        assert!(*last == Verdict::Restarted && others.iter().all(|verdict| *verdict == Verdict::Duplicate));
        channel.restart(1);
        assert_eq!(channel.judge(0, 1, 1, 12 * SECOND + 3, 7), Verdict::Take(0));
        assert_eq!((channel.report.jumped_back, channel.report.restarts), (u64::from(JUMP_BACK_PACKETS), 1));
    }

    #[test]
    fn reused_numbers_with_other_contents_are_not_duplicates() {
        let mut channel = of_lines(1);
        for number in 1..=3 {
            assert_eq!(channel.judge(0, number, 1, number, 7), Verdict::Take(0));
        }
        // Within a second of the original: a duplicate, message 2 with other contents, messages 1 to 3
        // repacketised.
        for (first, count, content) in [(2, 1, 7), (2, 1, 8), (1, 3, 9)] {
            assert_eq!(channel.judge(0, first, count, 4, content), Verdict::Duplicate);
        }
        assert_eq!((channel.report.duplicates, channel.report.jumped_back), (1, 2));
        assert_eq!(channel.report.disagreements, 0);
    }

    #[test]
    fn held_packets_are_bounded() {
        let mut channel = of_lines(1);
        judge(&mut channel, 1, 1, 0);
        let packet = vec![0; 1 << 20];
        for index in 0..16 {
            assert!(!channel.give_up(Some(0)));
            channel.judge(0, 3 + index, 1, 0, 0);
            channel.hold(3 + index, 1, 0, &packet);
        }
        assert!(!channel.give_up(Some(0)));
        channel.judge(0, 19, 1, 0, 0);
        channel.hold(19, 1, 0, &packet);
        assert!(channel.give_up(Some(0)));
    }
}

//! Lines A and B: their packets in flight, losses and counters.

use std::collections::VecDeque;

use tickpath_feed::LossModel;
use tickpath_nyse::PACKET_LEN_MAX;

use super::XdpDayConfig;

/// Delay of line B relative to line A.
pub(super) const LINE_B_LATER_NS: u64 = 14_000;

/// The lines of all channels, with their packets in flight.
#[derive(Debug)]
pub(super) struct Lines {
    /// Time that a partially filled packet waits for more messages.
    pub window_ns: u64,
    has_line_b: bool,
    waiting: [VecDeque<XdpPacket>; 2],
    loss: LossModel,
    pub counters: XdpDayCounters,
}

impl Lines {
    pub fn new(config: &XdpDayConfig) -> Lines {
        Lines {
            window_ns: config.window_ns,
            has_line_b: config.lines == 2,
            waiting: Default::default(),
            loss: LossModel::new(&config.loss),
            counters: XdpDayCounters::default(),
        }
    }

    /// Sends a packet on line A, and on line B if there is one. Counts it if it has messages.
    pub fn send(&mut self, packet: XdpPacket) {
        self.counters.filled += u64::from(packet.message_count > 0);
        self.waiting[0].push_back(packet);
        if self.has_line_b {
            self.waiting[1].push_back(XdpPacket { ts_ns: packet.ts_ns + LINE_B_LATER_NS, line: 1, ..packet });
        }
    }

    /// True if the next packet to arrive is known: no packet sent later can overtake one waiting on line A.
    pub fn is_next_known(&self) -> bool {
        !self.waiting[0].is_empty()
    }

    /// Takes the next packet, with true if it arrives and false if it is lost; `None` if none is in flight.
    pub fn next(&mut self) -> Option<(bool, XdpPacket)> {
        let due = |line: &VecDeque<XdpPacket>| line.front().map_or(u64::MAX, |packet| packet.ts_ns);
        let line = usize::from(due(&self.waiting[1]) < due(&self.waiting[0]));
        let packet = self.waiting[line].pop_front()?;
        let sequence = u64::from(packet.channel) << 32 | u64::from(packet.sequence);
        let is_lost = packet.message_count > 0 && self.loss.drops(line, sequence);
        if is_lost {
            self.counters.lost += 1;
        } else {
            self.counters.packets += 1;
            self.counters.bytes += u64::from(packet.len);
        }
        Some((!is_lost, packet))
    }
}

/// A packet of the day as it arrives at a receiver.
#[derive(Clone, Copy)]
pub struct XdpPacket {
    /// Time of arrival, in nanoseconds since the Unix epoch.
    pub ts_ns: u64,
    /// Channel number, from 1.
    pub channel: u8,
    /// Line: 0 for A, 1 for B.
    pub line: u8,
    /// Sequence number of the first message.
    pub sequence: u32,
    /// Number of messages.
    pub message_count: u8,
    pub(super) len: u16,
    pub(super) bytes: [u8; PACKET_LEN_MAX],
}

impl XdpPacket {
    pub(super) fn new(ts_ns: u64, channel: u8, sequence: u32, message_count: u8, packet: &[u8]) -> XdpPacket {
        let mut bytes = [0; PACKET_LEN_MAX];
        bytes[..packet.len()].copy_from_slice(packet);
        XdpPacket { ts_ns, channel, line: 0, sequence, message_count, len: packet.len() as u16, bytes }
    }

    /// Bytes of the packet.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for XdpPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let XdpPacket { ts_ns, channel, line, sequence, message_count, .. } = self;
        write!(f, "{ts_ns} channel {channel} line {line}: {message_count} messages from {sequence}")
    }
}

/// Counters of a day so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpDayCounters {
    /// Number of messages, each counted once for all lines.
    pub messages: u64,
    /// Number of packets that arrived, on all lines.
    pub packets: u64,
    /// Number of packets lost in transit.
    pub lost: u64,
    /// Number of bytes in the packets that arrived.
    pub bytes: u64,
    /// Number of packets sent on line A, lost or not, except heartbeats.
    pub filled: u64,
    by_type: [u64; 256],
}

impl Default for XdpDayCounters {
    fn default() -> XdpDayCounters {
        XdpDayCounters { messages: 0, packets: 0, lost: 0, bytes: 0, filled: 0, by_type: [0; 256] }
    }
}

impl XdpDayCounters {
    /// Message types that occurred, in numeric order, each with the number of its messages.
    pub fn by_type(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.by_type).filter(|(_, count)| *count > 0)
    }

    /// Counts a message, given its bytes.
    pub(super) fn count_message(&mut self, message: &[u8]) {
        self.messages += 1;
        self.by_type[usize::from(u16::from_le_bytes([message[2], message[3]]))] += 1;
    }
}

//! One channel: packs messages into packets.

use tickpath_nyse::{DeliveryFlag, PACKET_LEN_MAX, PacketBuilder, SendTime, SourceTimeReference};
use zerocopy::{Immutable, IntoBytes};

use super::clock::{NANOS_PER_SECOND, round_down};
use super::lines::{Lines, XdpPacket};

/// Interval without packets after which a channel sends a heartbeat.
const HEARTBEAT_NS: u64 = NANOS_PER_SECOND;

/// A channel with its current packet.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub id: u8,
    builder: PacketBuilder<[u8; PACKET_LEN_MAX]>,
    /// Latest time to send the current packet; `u64::MAX` while it has no message.
    deadline_ns: u64,
    /// Second of the latest time reference, since the Unix epoch.
    second: u32,
    last_sent_ns: u64,
}

impl Channel {
    pub fn new(id: u8) -> Channel {
        let builder = PacketBuilder::new([0; PACKET_LEN_MAX], 1);
        Channel { id, builder, deadline_ns: u64::MAX, second: 0, last_sent_ns: 0 }
    }

    /// Time at which the current packet or a heartbeat is due if no message is added; `u64::MAX` for never.
    pub fn due_ns(&self, heartbeats: bool) -> u64 {
        let heartbeat_due_ns =
            if heartbeats && self.last_sent_ns > 0 { self.last_sent_ns + HEARTBEAT_NS } else { u64::MAX };
        self.deadline_ns.min(heartbeat_due_ns)
    }

    /// Sends the due packet or heartbeat.
    pub fn send_due(&mut self, ts_ns: u64, lines: &mut Lines) {
        let flag = if self.builder.is_empty() { DeliveryFlag::HEARTBEAT } else { DeliveryFlag::ORIGINAL };
        self.send(ts_ns, flag, lines);
    }

    /// Sends the current packet now, if it has messages.
    pub fn flush(&mut self, ts_ns: u64, lines: &mut Lines) {
        if !self.builder.is_empty() {
            self.send(ts_ns, DeliveryFlag::ORIGINAL, lines);
        }
    }

    /// Flushes the current packet, then sends a message in a separate packet.
    pub fn send_separately<M: IntoBytes + Immutable>(
        &mut self,
        ts_ns: u64,
        flag: DeliveryFlag,
        message: &M,
        lines: &mut Lines,
    ) {
        self.flush(ts_ns, lines);
        self.push_message(ts_ns, message, lines);
        self.send(ts_ns, flag, lines);
    }

    /// Adds a message, preceded by a time reference if the message is the first in its second.
    pub fn push<M: IntoBytes + Immutable>(&mut self, ts_ns: u64, message: &M, lines: &mut Lines) {
        let second = (ts_ns / NANOS_PER_SECOND) as u32;
        if self.second != second {
            self.second = second;
            self.push_message(ts_ns, &SourceTimeReference::new(u32::from(self.id), 0, second), lines);
        }
        self.push_message(ts_ns, message, lines);
    }

    fn push_message<M: IntoBytes + Immutable>(&mut self, ts_ns: u64, message: &M, lines: &mut Lines) {
        if self.builder.push(message).is_err() {
            self.flush(ts_ns, lines);
            self.builder.push(message).expect("an empty packet has room for any message");
        }
        lines.counters.count_message(message.as_bytes());
        if self.builder.message_count() == 1 {
            self.deadline_ns = ts_ns + lines.window_ns;
        }
    }

    fn send(&mut self, ts_ns: u64, flag: DeliveryFlag, lines: &mut Lines) {
        let sequence = self.builder.sequence();
        let message_count = self.builder.message_count();
        let bytes = self.builder.finish(flag, SendTime::of_nanos(round_down(ts_ns)));
        lines.send(XdpPacket::new(ts_ns, self.id, sequence, message_count, bytes));
        self.builder.start_next();
        self.deadline_ns = u64::MAX;
        self.last_sent_ns = ts_ns;
    }
}

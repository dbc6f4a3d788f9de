//! One packet of the day.

use tickpath_nyse::PACKET_LEN_MAX;

/// One packet of the day as it arrives.
#[derive(Clone, Copy)]
pub struct XdpPacket {
    /// When, in nanoseconds since the Unix epoch.
    pub ts_ns: u64,
    /// The channel, from 1.
    pub channel: u8,
    /// The line, 0 for A and 1 for B.
    pub line: u8,
    /// Number of its first message.
    pub sequence: u32,
    /// Number of its messages.
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

    /// Its bytes.
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

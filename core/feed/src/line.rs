//! The lines of a channel, and the maximum distance of a packet ahead of the known messages.

/// Maximum distance, in messages, from the last message known to exist to the start of a packet. A packet
/// further ahead is damaged or follows a long silence. It is dropped unless the previous such packet is near.
/// Otherwise a single datagram could make the arbiter give up all messages before it.
pub const MAX_AHEAD: u64 = 1 << 16;

/// The source of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Line {
    /// First multicast line.
    A = 0,
    /// Second multicast line.
    B = 1,
    /// Answers of the retransmission server.
    Recovery = 2,
}

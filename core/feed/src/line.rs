//! The lines of a channel, and how far they may be apart.

/// Greatest distance from the last message that is known to exist to the start of a packet. One that begins further on, as
/// after a long silence or as damage would have it, counts only when the next such one begins near it: a single
/// datagram cannot make the arbiter give up the messages between.
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

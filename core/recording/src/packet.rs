//! The payload of one captured packet.

use core::net::SocketAddrV4;

/// The payload of one UDP datagram or TCP segment over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Number of the frame in the file, from 1, counting skipped frames too, as packet analysers do.
    pub number: u64,
    /// Capture time, in nanoseconds since the Unix epoch.
    pub ts_ns: u64,
    /// Address of the sender.
    pub src: SocketAddrV4,
    /// Destination address; for multicast, that of the group.
    pub dst: SocketAddrV4,
    /// UDP, or TCP with the payload's position in its stream.
    pub transport: Transport,
    /// The payload bytes.
    pub payload: &'a [u8],
}

/// The transport protocol of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A UDP datagram.
    Udp,
    /// A segment of a TCP stream.
    Tcp(Segment),
}

/// Position of a payload in its TCP stream, from the TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the payload's first byte, or of the SYN before it; wraps at 2^32.
    pub sequence: u32,
    /// True for a SYN segment, which begins the stream: the first byte has the number `sequence + 1`.
    pub is_syn: bool,
    /// True when the stream ends after this payload.
    pub is_fin: bool,
    /// True when the connection was reset.
    pub is_reset: bool,
}

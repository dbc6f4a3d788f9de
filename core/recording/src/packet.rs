//! The payload of one captured packet.

use core::net::SocketAddrV4;

/// The payload of one UDP datagram or TCP segment over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Number of the frame in the file, from 1, as packet analysers count: frames that are skipped have numbers too.
    pub number: u64,
    /// When it was captured, in nanoseconds since the Unix epoch.
    pub ts_ns: u64,
    /// The sender.
    pub src: SocketAddrV4,
    /// The destination: of multicast the group.
    pub dst: SocketAddrV4,
    /// UDP, or TCP with the place in its stream.
    pub transport: Transport,
    /// The data that it carried.
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

/// The place of a payload in its TCP stream, from the TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the payload's first byte, or of the SYN before it; wraps at 2^32.
    pub sequence: u32,
    /// The stream begins here: its first byte has the number `sequence + 1`.
    pub is_syn: bool,
    /// The stream ends behind this payload.
    pub is_fin: bool,
    /// The connection was broken off.
    pub is_reset: bool,
}

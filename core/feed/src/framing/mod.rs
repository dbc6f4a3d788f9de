//! The interface to each protocol's packet format and message numbering.

use std::fmt::Debug;

use tickpath_types::Sequence;

use crate::reorder_buffer::MessageStorage;

mod iex_tp;
mod moldudp64;

pub use iex_tp::{IexRequest, IexStream, IexTp};
pub use moldudp64::MoldUdp64;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Carries at least one message.
    Messages,
    /// Shows that the line is alive, and which number comes next.
    Heartbeat,
    /// Reports the end of the session and the number that would come next.
    EndOfSession,
    /// Reports that the publisher no longer has these messages: they are lost for good.
    Unavailable,
    /// Out-of-band: not part of the numbered stream, such as a snapshot's packet. An arbiter drops it.
    OutOfBand,
}

/// The contents of a packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader<S> {
    /// Identifies the numbering that the packet belongs to.
    pub session: S,
    /// The kind of the packet.
    pub kind: PacketKind,
    /// Number of the first message, or of the next message if the packet has none.
    pub first: u64,
    /// Number of messages that it carries or reports as unavailable; `first + count` does not overflow.
    pub count: u64,
    /// Send time by the publisher, in nanoseconds of a clock that runs on from packet to packet; 0 where the
    /// protocol does not state it.
    pub sent_ns: u64,
    /// True if it begins the numbering: the first packet of a session or after a restart.
    pub is_reset: bool,
}

impl<S> PacketHeader<S> {
    /// Returns the number after that of its last message.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// The properties of one protocol's packets that an [`Arbiter`](crate::Arbiter) needs.
pub trait Framing {
    /// Identifies a numbering; `()` where the protocol has no identifier for it.
    type Session: Copy + Eq + Debug;
    /// A request for lost messages.
    type Request: Copy + Debug;
    /// Storage for the longest message that can be held.
    type Storage: MessageStorage;
    /// True if one packet answers a request, with the messages that fit; false for as many packets as needed.
    const ANSWERS_ARE_ONE_PACKET: bool;

    /// Reads the header of a packet; `None` if it is missing or inconsistent. `near` is the number that is
    /// expected next, for protocols that send only the low part of a number.
    fn header(datagram: &[u8], near: u64) -> Option<PacketHeader<Self::Session>>;

    /// Returns the messages of a packet with a valid header, in order; `None` unless all are whole.
    fn messages(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>>;

    /// Returns the part of a packet that is equal on both lines, without the header's transmission fields.
    fn body(datagram: &[u8]) -> &[u8];

    /// Returns the request for `count` messages from `first` on.
    fn request(session: Self::Session, first: Sequence, count: u16) -> Self::Request;
}

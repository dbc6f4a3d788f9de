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
    /// Shows that the line is alive, and states the next sequence number.
    Heartbeat,
    /// Reports the end of the session, and states the sequence number that would come next.
    EndOfSession,
    /// Reports that the publisher no longer has certain messages: they are lost for good.
    Unavailable,
    /// Not part of the numbered stream, such as a packet of a snapshot. The arbiter drops it.
    OutOfBand,
}

/// The contents of a packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader<S> {
    /// Identifies the session or stream to which the sequence numbers belong.
    pub session: S,
    /// The kind of the packet.
    pub kind: PacketKind,
    /// Sequence number of the first message, or of the next message if the packet has none.
    pub first: u64,
    /// Number of messages carried or reported as unavailable; `first + count` does not overflow.
    pub count: u64,
    /// Send time, in nanoseconds of a monotonic clock of the publisher; 0 where the protocol does not state
    /// it.
    pub sent_ns: u64,
    /// True if the packet begins the numbering: the first packet of a session or after a restart.
    pub is_reset: bool,
}

impl<S> PacketHeader<S> {
    /// Returns the sequence number after that of the packet's last message.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// The properties of one protocol's packets that an [`Arbiter`](crate::Arbiter) needs.
pub trait Framing {
    /// Identifies a session or stream; `()` where the protocol has no identifier for it.
    type Session: Copy + Eq + Debug;
    /// A request for lost messages.
    type Request: Copy + Debug;
    /// Storage for the longest message that the reorder buffer can hold.
    type Storage: MessageStorage;
    /// True if the server answers a request with one packet, of as many messages as fit; else with several.
    const ANSWERS_ARE_ONE_PACKET: bool;

    /// Reads the header of a packet; `None` if it is missing or inconsistent. `near` is the next expected
    /// sequence number. It supplies the high bits in protocols that send only the low bits.
    fn header(datagram: &[u8], near: u64) -> Option<PacketHeader<Self::Session>>;

    /// Returns the messages of a packet with a valid header, in order; `None` if a message is truncated.
    fn messages(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>>;

    /// Returns the part of a packet that is equal on both lines: the bytes after the header.
    fn body(datagram: &[u8]) -> &[u8];

    /// Returns the request for `count` messages from `first` on.
    fn request(session: Self::Session, first: Sequence, count: u16) -> Self::Request;
}

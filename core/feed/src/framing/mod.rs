//! How the packets of a protocol number their messages.

use std::fmt::Debug;

use tickpath_types::Sequence;

use crate::hold::MessageRoom;

mod iex_tp;
mod moldudp64;

pub use iex_tp::{IexRequest, IexStream, IexTp};
pub use moldudp64::MoldUdp64;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// It carries at least one message.
    Messages,
    /// It says that the line is alive and which number comes next.
    Heartbeat,
    /// It says that the session is over and which number would have come next.
    EndOfSession,
    /// It says that the publisher does not have these messages any more: they are lost for good.
    Unavailable,
    /// It is not part of the numbered stream, and an arbiter drops it: a snapshot's, for example.
    Aside,
}

/// What the header of a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader<S> {
    /// Names the run of numbers that the packet belongs to.
    pub session: S,
    /// What the packet is for.
    pub kind: PacketKind,
    /// Number of the first message; of the next one to come when there is none.
    pub first: u64,
    /// How many messages it carries, or speaks of; `first + count` does not overflow.
    pub count: u64,
    /// When the publisher sent it, in nanoseconds of a clock that runs on from packet to packet; 0 where the protocol does not
    /// say.
    pub sent_ns: u64,
    /// It begins the numbering: the first packet of a session, or of numbers that start again.
    pub starts_anew: bool,
}

impl<S> PacketHeader<S> {
    /// Number of the message after its last.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// The packets of one protocol, as far as an [`Arbiter`](crate::Arbiter) has to know them.
pub trait Framing {
    /// Names a run of numbers; packets of another one are foreign. `()` where the protocol has no name for it.
    type Session: Copy + Eq + Debug;
    /// A request for messages that were lost.
    type Request: Copy + Debug;
    /// Room for the longest message that can be held until its turn comes.
    type Room: MessageRoom;
    /// A request is answered by one packet, as many messages as that holds, and not by as many packets as it takes.
    const ANSWERS_ARE_ONE_PACKET: bool;

    /// Reads the header of a packet; `None` when there is none, or it contradicts itself. `near` is the number that is
    /// expected next, for protocols that send only the low part of a number.
    fn header(datagram: &[u8], near: u64) -> Option<PacketHeader<Self::Session>>;

    /// The messages of a packet whose header was read, in order: as many as it says, each whole; `None` when they are not.
    fn messages(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>>;

    /// What of a packet is the same on both lines: all but what its header says of the sending.
    fn body(datagram: &[u8]) -> &[u8];

    /// The request for `count` messages from `first` on.
    fn request(session: Self::Session, first: Sequence, count: u16) -> Self::Request;
}

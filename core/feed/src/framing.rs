//! How the packets of a protocol number their messages.

use std::fmt::Debug;

use tickpath_nasdaq::moldudp64::{self, Kind, Packet, Request, Session};
use tickpath_types::Sequence;
use zerocopy::FromBytes;

use crate::hold::{MAX_HELD_MESSAGE, MessageRoom};

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
    /// The messages of a packet, in order.
    type Messages<'a>: Iterator<Item = &'a [u8]>;
    /// A request for messages that were lost.
    type Request: Copy + Debug;
    /// Room for the longest message that can be held until its turn comes.
    type Room: MessageRoom;

    /// Reads the header of a packet; `None` when there is none, or it contradicts itself. `near` is the number that is
    /// expected next, for protocols that send only the low part of a number.
    fn header(datagram: &[u8], near: u64) -> Option<PacketHeader<Self::Session>>;

    /// The messages of a packet whose header was read: as many as it says, each whole; `None` when they are not.
    fn messages(datagram: &[u8]) -> Option<Self::Messages<'_>>;

    /// What of a packet is the same on both lines: all but what its header says of the sending.
    fn body(datagram: &[u8]) -> &[u8];

    /// The request for `count` messages from `first` on.
    fn request(session: Self::Session, first: Sequence, count: u16) -> Self::Request;
}

/// MoldUDP64: the packets that carry ITCH.
#[derive(Clone, Copy, Debug)]
pub struct MoldUdp64;

/// The messages of a MoldUDP64 packet.
#[derive(Clone, Debug)]
pub struct MoldMessages<'a>(moldudp64::Messages<'a>);

impl<'a> Iterator for MoldMessages<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(|(_, message)| message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl Framing for MoldUdp64 {
    type Session = Session;
    type Messages<'a> = MoldMessages<'a>;
    type Request = Request;
    type Room = [u8; MAX_HELD_MESSAGE];

    #[inline(always)]
    fn header(datagram: &[u8], _near: u64) -> Option<PacketHeader<Session>> {
        let (header, _) = moldudp64::Header::ref_from_prefix(datagram).ok()?;
        let (count, kind) = match header.message_count.get() {
            0 => (0, PacketKind::Heartbeat),
            moldudp64::END_OF_SESSION => (0, PacketKind::EndOfSession),
            count => (u64::from(count), PacketKind::Messages),
        };
        let first = header.sequence.get();
        first.checked_add(count)?;
        Some(PacketHeader { session: header.session, kind, first, count, sent_ns: 0, starts_anew: false })
    }

    #[inline(always)]
    fn messages(datagram: &[u8]) -> Option<MoldMessages<'_>> {
        let packet = Packet::parse(datagram).ok()?;
        debug_assert!(packet.kind() == Kind::Messages || packet.message_count() == 0);
        Some(MoldMessages(packet.messages()))
    }

    #[inline]
    fn body(datagram: &[u8]) -> &[u8] {
        datagram.get(moldudp64::HEADER_LEN..).unwrap_or_default()
    }

    fn request(session: Session, sequence: Sequence, message_count: u16) -> Request {
        Request { session, sequence, message_count }
    }
}

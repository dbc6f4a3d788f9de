//! Framing of IEX-TP segments.

use tickpath_iex::{Header, MESSAGE_LEN_MAX, Segment};
use tickpath_types::Sequence;
use zerocopy::FromBytes;

use super::{Framing, PacketHeader, PacketKind};

/// Framing of the segments of one channel of an IEX feed.
///
/// The lines may divide messages into segments differently, but every message has a sequence number. A
/// segment that begins at message 1 restarts the numbering if it was sent after all other segments and at
/// least 1 s after the segment that began the current numbering.
#[derive(Clone, Copy, Debug)]
pub struct IexTp;

/// Identifies a numbered stream of messages: feed, channel and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IexStream {
    /// Message Protocol ID, which identifies the feed and its version.
    pub protocol_id: u16,
    /// Channel ID.
    pub channel: u32,
    /// Session ID.
    pub session: u32,
}

/// A gap fill request for lost messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IexRequest {
    /// The stream of the lost messages.
    pub stream: IexStream,
    /// Sequence number of the first lost message.
    pub first: u64,
    /// Sequence number of the last lost message.
    pub last: u64,
}

impl Framing for IexTp {
    type Session = IexStream;
    type Request = IexRequest;
    type Storage = [u8; MESSAGE_LEN_MAX + 16];
    const ANSWERS_ARE_ONE_PACKET: bool = false;

    #[inline]
    fn header(datagram: &[u8], _near: u64) -> Option<PacketHeader<IexStream>> {
        let (header, _) = Header::ref_from_prefix(datagram).ok()?;
        let session = IexStream {
            protocol_id: header.protocol_id.get(),
            channel: header.channel.get(),
            session: header.session.get(),
        };
        let count = u64::from(header.message_count.get());
        let first = u64::try_from(header.first_sequence.get()).ok()?;
        first.checked_add(count)?;
        let kind = if count == 0 { PacketKind::Heartbeat } else { PacketKind::Messages };
        let is_reset = first == 1 && header.stream_offset.get() == 0;
        Some(PacketHeader { session, kind, first, count, sent_ns: header.send_time.get().0, is_reset })
    }

    #[inline]
    fn messages(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
        Some(Segment::parse(datagram).ok()?.messages().map(|(_, message)| message))
    }

    #[inline]
    fn body(datagram: &[u8]) -> &[u8] {
        datagram.get(size_of::<Header>()..).unwrap_or_default()
    }

    fn request(stream: IexStream, first: Sequence, count: u16) -> IexRequest {
        IexRequest { stream, first: first.0, last: first.0 + u64::from(count.max(1)) - 1 }
    }
}

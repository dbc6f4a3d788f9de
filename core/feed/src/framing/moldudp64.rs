//! Framing of MoldUDP64, which carries ITCH.

use tickpath_nasdaq::moldudp64::{self, Kind, Packet, Request, Session};
use tickpath_types::Sequence;
use zerocopy::FromBytes;

use super::{Framing, PacketHeader, PacketKind};
use crate::reorder_buffer::MAX_BUFFERED_MESSAGE;

/// Framing of the MoldUDP64 packets that carry ITCH.
#[derive(Clone, Copy, Debug)]
pub struct MoldUdp64;

impl Framing for MoldUdp64 {
    type Session = Session;
    type Request = Request;
    type Storage = [u8; MAX_BUFFERED_MESSAGE];
    const ANSWERS_ARE_ONE_PACKET: bool = true;

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
        Some(PacketHeader { session: header.session, kind, first, count, sent_ns: 0, is_reset: false })
    }

    #[inline(always)]
    fn messages(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
        let packet = Packet::parse(datagram).ok()?;
        debug_assert!(packet.kind() == Kind::Messages || packet.message_count() == 0);
        Some(packet.messages().map(|(_, message)| message))
    }

    #[inline]
    fn body(datagram: &[u8]) -> &[u8] {
        datagram.get(moldudp64::HEADER_LEN..).unwrap_or_default()
    }

    fn request(session: Session, sequence: Sequence, message_count: u16) -> Request {
        Request { session, sequence, message_count }
    }
}

//! Packets of NYSE XDP.

use tickpath_nyse::{
    DeliveryFlag, Header, MESSAGE_LEN_MAX, MessageUnavailable, Messages, Packet, SequenceNumberReset,
};
use tickpath_types::Sequence;
use zerocopy::FromBytes;

use super::{Framing, PacketHeader, PacketKind};

/// Packets of one channel of NYSE XDP.
///
/// Numbers on the wire are 32 bits and wrap: the arbiter's go on, and the nearest to the one that is expected is meant.
/// A sequence number reset, in a failover too, begins the numbering again. Packets of a refresh are aside: they
/// have numbers of their own.
#[derive(Clone, Copy, Debug)]
pub struct XdpPackets;

/// Messages that were lost, as the request server is asked for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpRequest {
    /// Number of the first, as on the wire.
    pub begin: u32,
    /// Number of the last.
    pub end: u32,
}

/// The messages of an XDP packet.
#[derive(Clone, Debug)]
pub struct XdpMessages<'a>(Messages<'a>);

impl<'a> Iterator for XdpMessages<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(|(_, message)| message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// The number that is meant by its low 32 bits: the nearest to `near`.
#[inline]
fn whole(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32).cast_signed();
    near.checked_add_signed(i64::from(ahead)).unwrap_or(u64::from(low))
}

/// The first message of a packet, by its type and its bytes.
fn first_message(datagram: &[u8]) -> Option<(u16, &[u8])> {
    let message = datagram.get(size_of::<Header>()..)?;
    let message_type = message.get(2..)?.first_chunk()?;
    Some((u16::from_le_bytes(*message_type), message))
}

impl Framing for XdpPackets {
    type Session = ();
    type Messages<'a> = XdpMessages<'a>;
    type Request = XdpRequest;
    type Room = [u8; MESSAGE_LEN_MAX + 15];

    #[inline]
    fn header(datagram: &[u8], near: u64) -> Option<PacketHeader<()>> {
        let header = Packet::parse_header(datagram).ok()?.header();
        let count = u64::from(header.number_msgs);
        let sent_ns =
            u64::from(header.send_time.get()) * 1_000_000_000 + u64::from(header.send_time_ns.get());
        let first = whole(header.seq_num.get(), near);
        first.checked_add(count)?;
        let flag = header.delivery_flag;
        let plain = PacketHeader {
            session: (),
            kind: PacketKind::Messages,
            first,
            count,
            sent_ns,
            starts_anew: false,
        };
        if flag == DeliveryFlag::ORIGINAL && count > 0 {
            return Some(plain);
        }
        special(flag, plain, datagram, near)
    }

    #[inline]
    fn messages(datagram: &[u8]) -> Option<XdpMessages<'_>> {
        Packet::parse(datagram).ok().map(|packet| XdpMessages(packet.messages()))
    }

    #[inline]
    fn body(datagram: &[u8]) -> &[u8] {
        datagram.get(size_of::<Header>()..).unwrap_or_default()
    }

    fn request((): (), first: Sequence, count: u16) -> XdpRequest {
        let begin = first.0 as u32;
        XdpRequest { begin, end: begin.wrapping_add(u32::from(count.max(1)) - 1) }
    }
}

/// What a packet is that carries no original messages.
fn special(
    flag: DeliveryFlag,
    plain: PacketHeader<()>,
    datagram: &[u8],
    near: u64,
) -> Option<PacketHeader<()>> {
    if flag.is_refresh() {
        return Some(PacketHeader { kind: PacketKind::Aside, ..plain });
    }
    if plain.count == 0 {
        return Some(PacketHeader { kind: PacketKind::Heartbeat, ..plain });
    }
    let (message_type, message) = first_message(datagram)?;
    if message_type == SequenceNumberReset::TYPE {
        // Its number is 1 whatever was expected.
        return Some(PacketHeader { first: 1, starts_anew: true, ..plain });
    }
    if message_type == MessageUnavailable::TYPE {
        let (message, _) = MessageUnavailable::ref_from_prefix(message).ok()?;
        let first = whole(message.begin_seq_num.get(), near);
        let count = u64::from(message.end_seq_num.get().wrapping_sub(message.begin_seq_num.get())) + 1;
        first.checked_add(count)?;
        return Some(PacketHeader { kind: PacketKind::Unavailable, first, count, ..plain });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_32_bits_go_on_where_they_wrap() {
        let high = u64::from(u32::MAX);
        assert_eq!(whole(1, 1), 1);
        assert_eq!(whole(u32::MAX, high), high);
        assert_eq!(whole(0, high), high + 1, "the next one");
        assert_eq!(whole(u32::MAX, high + 5), high, "a late one");
        assert_eq!(whole(3_000_000_000, 1), 3_000_000_000, "joined late in the day");
        let request = XdpPackets::request((), Sequence(high + 1), 3);
        assert_eq!(request, XdpRequest { begin: 0, end: 2 });
        assert_eq!(XdpPackets::request((), Sequence(high), 2), XdpRequest { begin: u32::MAX, end: 0 });
    }
}

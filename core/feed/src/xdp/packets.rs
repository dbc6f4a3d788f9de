//! Framing of XDP packets.

use tickpath_nyse::{DeliveryFlag, HEADER_LEN, MESSAGE_LEN_MAX, Message, Packet, SequenceNumberReset};
use tickpath_types::Sequence;

use crate::framing::{Framing, PacketHeader, PacketKind};

/// The packets of one channel of NYSE's Integrated Feed.
///
/// Sequence numbers have 32 bits and wrap; the arbiter extends them to 64. A sequence number reset restarts
/// them at 1, in the morning or in a failover. Refresh packets have separate numbers and are out-of-band.
#[derive(Clone, Copy, Debug)]
pub struct Packets;

/// Messages that both lines lost, for a [`RetransmissionRequest`](tickpath_nyse::RetransmissionRequest). The
/// sender of the request adds the ids of the client and the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Sequence number of the first missing message.
    pub begin_seq_num: u32,
    /// Sequence number of the last missing message.
    pub end_seq_num: u32,
}

impl Framing for Packets {
    type Session = ();
    type Request = Missing;
    type Storage = [u8; MESSAGE_LEN_MAX];
    const ANSWERS_ARE_ONE_PACKET: bool = false;

    #[inline]
    fn header(datagram: &[u8], near: u64) -> Option<PacketHeader<()>> {
        let packet = Packet::parse_header(datagram).ok()?;
        let header = PacketHeader {
            session: (),
            kind: PacketKind::Messages,
            first: widened(packet.sequence(), near),
            count: u64::from(packet.message_count()),
            sent_ns: packet.send_time().as_nanos(),
            is_reset: false,
        };
        match packet.delivery_flag() {
            DeliveryFlag::ORIGINAL | DeliveryFlag::RETRANSMISSION_ONE | DeliveryFlag::RETRANSMISSION_PART
                if header.count > 0 =>
            {
                Some(header)
            }
            _ => unusual(&packet, header),
        }
    }

    #[inline]
    fn messages(datagram: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
        Some(Packet::parse(datagram).ok()?.messages().map(|(_, message)| message))
    }

    #[inline]
    fn body(datagram: &[u8]) -> &[u8] {
        datagram.get(HEADER_LEN..).unwrap_or_default()
    }

    fn request(_: (), Sequence(first): Sequence, count: u16) -> Missing {
        let last = first + u64::from(count.max(1)) - 1;
        Missing { begin_seq_num: first as u32, end_seq_num: last as u32 }
    }
}

/// Returns the 64-bit sequence number nearest to `near` whose low 32 bits are `sequence`.
#[inline]
#[must_use]
pub const fn widened(sequence: u32, near: u64) -> u64 {
    let ahead = sequence.wrapping_sub(near as u32).cast_signed() as i64;
    match near.checked_add_signed(ahead) {
        Some(wide) => wide,
        // The nearest number would be negative, so return the lowest that is not.
        None => sequence as u64,
    }
}

/// Returns the header of a packet with a rare delivery flag, or without messages.
#[cold]
fn unusual(packet: &Packet<'_>, header: PacketHeader<()>) -> Option<PacketHeader<()>> {
    let flag = packet.delivery_flag();
    if flag.is_refresh() {
        return Some(PacketHeader { kind: PacketKind::OutOfBand, ..header });
    }
    if flag == DeliveryFlag::UNAVAILABLE {
        let (_, message) = packet.messages().next()?;
        let Ok(Message::MessageUnavailable(message)) = Message::parse(message) else { return None };
        let (begin, end) = (message.begin_seq_num.get(), message.end_seq_num.get());
        let count = u64::from(end.wrapping_sub(begin)) + 1;
        // The unavailable numbers were requested, so they are close to the expected number.
        let first = widened(begin, header.first);
        return Some(PacketHeader { kind: PacketKind::Unavailable, first, count, ..header });
    }
    if header.count == 0 {
        return Some(PacketHeader { kind: PacketKind::Heartbeat, ..header });
    }
    let is_reset = || {
        let first = packet.messages().next().map(|(_, message)| message);
        let is_type = |message: &[u8]| message.get(2..4) == Some(&SequenceNumberReset::TYPE.to_le_bytes());
        first.is_some_and(is_type)
    };
    match flag {
        DeliveryFlag::SEQUENCE_RESET | DeliveryFlag::FAILOVER if is_reset() => {
            Some(PacketHeader { first: u64::from(packet.sequence()), is_reset: true, ..header })
        }
        _ => Some(header),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_32_bits_are_extended_to_64() {
        let wrap = 1_u64 << 32;
        assert_eq!(widened(5, 3), 5);
        assert_eq!(widened(2, wrap - 1), wrap + 2);
        assert_eq!(widened(u32::MAX, wrap + 1), wrap - 1);
        assert_eq!(widened(7, 5 * wrap + 9), 5 * wrap + 7);
        assert_eq!(widened(u32::MAX, 1), u64::from(u32::MAX), "nothing is before the first number");
    }
}

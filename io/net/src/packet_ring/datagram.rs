//! UDP datagrams in IPv4 packets (RFC 768, RFC 791).

use std::net::{Ipv4Addr, SocketAddrV4};

const IP_HEADER_LEN_MIN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;

/// A datagram with its source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) from: Ipv4Addr,
    pub(super) to: SocketAddrV4,
    pub(super) payload: &'a [u8],
}

/// The reason why a packet contains no complete datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reject {
    Fragment,
    Damaged,
}

impl<'a> Datagram<'a> {
    /// Parses a packet from its IPv4 header on. `is_checked` means that the datagram's checksum has been
    /// verified or needs no check; otherwise this verifies it. Bytes after the datagram are padding.
    #[inline]
    pub(super) fn parse(packet: &'a [u8], is_checked: bool) -> Result<Datagram<'a>, Reject> {
        let header_len = usize::from(packet.first().ok_or(Reject::Damaged)? & 0x0f) * 4;
        if header_len < IP_HEADER_LEN_MIN || packet[0] >> 4 != 4 {
            return Err(Reject::Damaged);
        }
        let (header, rest) = packet.split_at_checked(header_len).ok_or(Reject::Damaged)?;
        if half(header, 6) & MORE_FRAGMENTS_AND_OFFSET != 0 {
            return Err(Reject::Fragment);
        }
        let udp_len =
            rest.get(..UDP_HEADER_LEN).map(|udp| usize::from(half(udp, 4))).ok_or(Reject::Damaged)?;
        let udp = rest.get(..udp_len).filter(|udp| udp.len() >= UDP_HEADER_LEN).ok_or(Reject::Damaged)?;
        if !is_checked && !is_sum_right(&header[12..20], udp) {
            return Err(Reject::Damaged);
        }
        let ip = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        Ok(Datagram {
            from: ip(12),
            to: SocketAddrV4::new(ip(16), half(udp, 2)),
            payload: &udp[UDP_HEADER_LEN..],
        })
    }
}

#[inline]
fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Verifies the checksum over both addresses, the datagram and its length. A checksum of 0 means none.
#[cold]
fn is_sum_right(addresses: &[u8], udp: &[u8]) -> bool {
    if half(udp, 6) == 0 {
        return true;
    }
    let sum = |bytes: &[u8]| -> u64 {
        let pairs =
            bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        pairs.map(u64::from).sum()
    };
    let mut total = sum(addresses) + sum(udp) + libc::IPPROTO_UDP as u64 + udp.len() as u64;
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet from 192.0.2.1:1000 to 239.1.2.3:2000 with payload "abc" and a checksum computed by hand.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 31, 0, 0, 0x40, 0, 1, 17, 0, 0, 192, 0, 2, 1, 239, 1, 2, 3];
        packet.extend([0x03, 0xe8, 0x07, 0xd0, 0, 11, 0, 0, b'a', b'b', b'c']);
        // c000 + 0201 + ef01 + 0203 + 0011 + 000b + 03e8 + 07d0 + 000b + 6162 + 6300 = 28346
        // folded 8348, inverted 7cb7
        packet[26..28].copy_from_slice(&[0x7c, 0xb7]);
        packet
    }

    #[test]
    fn a_datagram_is_found_with_padding_and_options() {
        let to = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 2000);
        let expected = Ok(Datagram { from: Ipv4Addr::new(192, 0, 2, 1), to, payload: b"abc" });
        assert_eq!(Datagram::parse(&packet(), false), expected);
        let padded = [packet(), vec![0; 15]].concat();
        assert_eq!(Datagram::parse(&padded, false), expected);
        let mut with_options = packet();
        with_options[0] = 0x46;
        with_options.splice(20..20, [1, 1, 1, 1]);
        assert_eq!(Datagram::parse(&with_options, false), expected);
    }

    #[test]
    fn a_wrong_checksum_is_found_and_none_is_accepted() {
        let mut damaged = packet();
        damaged[30] ^= 1;
        assert_eq!(Datagram::parse(&damaged, false), Err(Reject::Damaged));
        assert!(Datagram::parse(&damaged, true).is_ok());
        damaged[26..28].fill(0);
        assert!(Datagram::parse(&damaged, false).is_ok());
    }

    #[test]
    fn truncated_and_invalid_packets_are_rejected() {
        let whole = packet();
        for len in 0..whole.len() {
            assert_eq!(Datagram::parse(&whole[..len], true), Err(Reject::Damaged), "{len}");
        }
        let with = |at: usize, byte: u8| {
            let mut packet = packet();
            packet[at] = byte;
            Datagram::parse(&packet, true).map(|datagram| datagram.payload.len())
        };
        assert_eq!(with(0, 0x65), Err(Reject::Damaged), "version 6");
        assert_eq!(with(0, 0x44), Err(Reject::Damaged), "a header too short");
        assert_eq!(with(25, 7), Err(Reject::Damaged), "a datagram shorter than its header");
        assert_eq!(with(25, 12), Err(Reject::Damaged), "longer than the packet");
        assert_eq!(with(6, 0x20), Err(Reject::Fragment), "more fragments");
        assert_eq!(with(7, 1), Err(Reject::Fragment), "a later fragment");
        assert_eq!(with(25, 8), Ok(0), "an empty datagram");
    }

    #[test]
    fn damaged_lengths_never_read_outside_the_packet() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..50_000 {
            let mut bytes = [packet(), vec![0; draw(40)]].concat();
            for _ in 0..=draw(4) {
                let at = draw(bytes.len());
                bytes[at] = draw(256) as u8;
            }
            bytes.truncate(draw(bytes.len() + 1));
            for is_checked in [false, true] {
                if let Ok(datagram) = Datagram::parse(&bytes, is_checked) {
                    let end = datagram.payload.as_ptr_range().end;
                    assert!(end <= bytes.as_ptr_range().end && datagram.payload.len() + 28 <= bytes.len());
                }
            }
        }
    }
}

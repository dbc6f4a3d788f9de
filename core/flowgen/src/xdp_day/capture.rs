//! Encoding of packets as a pcap file: nanosecond times, Ethernet, IPv4 and UDP.

use core::net::{Ipv4Addr, SocketAddrV4};

use super::XdpPacket;

/// Lengths of the headers before a packet in a capture: pcap record, Ethernet, IPv4 and UDP.
const RECORD_LEN: usize = 16;
const ETHERNET_LEN: usize = 14;
const IP_LEN: usize = 20;
const UDP_LEN: usize = 8;

/// Source address of the venue's packets.
const SOURCE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 197, 203, 130), 29_267);
const SOURCE_MAC: [u8; 6] = [0x84, 0x18, 0x88, 0x21, 0xe4, 0x01];
const TIME_TO_LIVE: u8 = 126;
const UDP: u8 = 17;

/// Returns the multicast group and port of a channel's line: 0 for A, 1 for B.
#[must_use]
pub fn xdp_group(channel: u8, line: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(239, 253, 72 + line, 20 + channel), 29_267 + u16::from(channel))
}

/// File header of a pcap file with nanosecond times: little-endian, Ethernet.
#[must_use]
pub fn pcap_header() -> [u8; 24] {
    // Magic number, version 2.4, two reserved words, maximum record length, link type.
    let words: [u32; 6] = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 65_535, 1];
    zerocopy::transmute!(words.map(u32::to_le))
}

/// Appends one packet as a record of a pcap file, which starts with [`pcap_header`].
pub fn append_record(packet: &XdpPacket, out: &mut Vec<u8>) {
    let payload = packet.bytes();
    let to = xdp_group(packet.channel, packet.line);
    let len = (ETHERNET_LEN + IP_LEN + UDP_LEN + payload.len()) as u32;
    out.reserve(RECORD_LEN + len as usize);
    let (secs, nanos) = ((packet.ts_ns / 1_000_000_000) as u32, (packet.ts_ns % 1_000_000_000) as u32);
    for word in [secs, nanos, len, len] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    // The Ethernet address of a multicast group contains the group's lower 23 bits.
    let [_, second, third, fourth] = to.ip().octets();
    out.extend_from_slice(&[0x01, 0x00, 0x5e, second & 0x7f, third, fourth]);
    out.extend_from_slice(&SOURCE_MAC);
    out.extend_from_slice(&[0x08, 0x00]);
    let udp_len = (UDP_LEN + payload.len()) as u16;
    out.extend_from_slice(&ip_header(IP_LEN as u16 + udp_len, *to.ip()));
    let mut udp = [0; UDP_LEN];
    udp[0..2].copy_from_slice(&to.port().to_be_bytes());
    udp[2..4].copy_from_slice(&to.port().to_be_bytes());
    udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
    // The checksum includes a pseudo header of addresses, protocol and length.
    let pseudo = addresses(*to.ip()) + u32::from(UDP) + u32::from(udp_len);
    let checksum = match !folded(pseudo + sum(&udp) + sum(payload)) {
        0 => u16::MAX,
        checksum => checksum,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    out.extend_from_slice(&udp);
    out.extend_from_slice(payload);
}

fn ip_header(len: u16, to: Ipv4Addr) -> [u8; IP_LEN] {
    let mut header = [0; IP_LEN];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[8] = TIME_TO_LIVE;
    header[9] = UDP;
    header[12..16].copy_from_slice(&SOURCE.ip().octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = !folded(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn addresses(to: Ipv4Addr) -> u32 {
    sum(&SOURCE.ip().octets()) + sum(&to.octets())
}

/// Sum of big-endian 16-bit words; an odd last byte is zero-padded. 1400 bytes cannot overflow the sum.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |byte| u32::from(*byte) << 8);
    words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>() + last
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

//! Decodes the frame of a link layer down to the payload of a UDP datagram or TCP segment.
//!
//! Sources: IEEE 802.3 and 802.1Q; the link-layer header types of tcpdump.org (NULL, LOOP, RAW, LINUX_SLL,
//! LINUX_SLL2); RFC 791 (IPv4), RFC 768 (UDP), RFC 9293 (TCP).

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_recording::{Segment, Transport};

/// Maximum number of VLAN tags that are skipped; a frame with more is counted as malformed.
const VLAN_TAGS_MAX: usize = 4;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags: 802.1Q, 802.1ad (QinQ), and the older number of 802.1ad.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Total length in bytes of three headers: Ethernet, IPv4 without options, and UDP.
const FAST_PATH_HEADER_LEN: usize = 14 + 20 + 8;

/// Mask of IPv4's "more fragments" flag and fragment offset; both are 0 in an unfragmented packet.
const FRAGMENT: u16 = 0x3fff;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// The link layer of an interface, which determines the first header of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkLayer {
    Ethernet,
    /// Linux cooked capture, version 1, used for the device `any`.
    LinuxSll,
    /// Linux cooked capture, version 2, used for the device `any`.
    LinuxSll2,
    /// An IP header, without a link-layer header.
    Raw,
    /// BSD loopback: four bytes with the address family, in either byte order.
    Loopback,
    /// Any other link layer.
    Other,
}

impl LinkLayer {
    /// The link layer that a capture file identifies by `number`.
    pub(super) const fn of(number: u16) -> LinkLayer {
        match number {
            1 => LinkLayer::Ethernet,
            113 => LinkLayer::LinuxSll,
            276 => LinkLayer::LinuxSll2,
            // LINKTYPE_RAW, the numbers that BSDs write for it, and LINKTYPE_IPV4.
            101 | 12 | 14 | 228 => LinkLayer::Raw,
            0 | 108 => LinkLayer::Loopback,
            _ => LinkLayer::Other,
        }
    }
}

/// The addresses and the payload of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) src: SocketAddrV4,
    pub(super) dst: SocketAddrV4,
    pub(super) transport: Transport,
    pub(super) payload: &'a [u8],
}

tickpath_types::enumerated! {
    /// The reason why a frame is skipped.
    pub enum Skip {
        /// The link layer is unknown.
        LinkLayer,
        /// The frame is not IP but ARP, LLDP or the like.
        NotIp,
        Ipv6,
        /// The packet is a fragment of an IPv4 datagram.
        Fragment,
        /// The packet is neither UDP nor TCP.
        Transport,
        /// Fewer bytes were captured than the headers state, because of the capture's snap length.
        Cut,
        /// The headers contradict each other or the length of the frame.
        Malformed,
        /// The frame has no time: it is in a Simple Packet Block of pcapng.
        Time,
    }
}

impl Skip {
    /// Description of the frames skipped for this reason, such as "not IP".
    pub(super) const fn description(self) -> &'static str {
        match self {
            Skip::LinkLayer => "of an unknown link layer",
            Skip::NotIp => "not IP",
            Skip::Ipv6 => "IPv6",
            Skip::Fragment => "IPv4 fragments",
            Skip::Transport => "neither UDP nor TCP",
            Skip::Cut => "cut by the capture's snap length",
            Skip::Malformed => "with malformed headers",
            Skip::Time => "without a time stamp",
        }
    }
}

/// Finds the payload of a frame; `is_cut` is true when only the beginning of the frame was captured.
pub(super) fn decode(link: LinkLayer, frame: &[u8], is_cut: bool) -> Result<Datagram<'_>, Skip> {
    let short = if is_cut { Skip::Cut } else { Skip::Malformed };
    let packet = match link {
        LinkLayer::Ethernet => network(be16(frame, 12).ok_or(short)?, &frame[14..], short)?,
        LinkLayer::LinuxSll => network(be16(frame, 14).ok_or(short)?, &frame[16..], short)?,
        LinkLayer::LinuxSll2 => {
            let ethertype = be16(frame, 0).ok_or(short)?;
            network(ethertype, frame.get(20..).ok_or(short)?, short)?
        }
        LinkLayer::Raw => frame,
        LinkLayer::Loopback => {
            let family = frame.first_chunk::<4>().ok_or(short)?;
            match u32::from_le_bytes(*family).min(u32::from_be_bytes(*family)) {
                2 => &frame[4..],
                // AF_INET6 on the BSDs, macOS and Linux.
                10 | 24 | 28 | 30 => return Err(Skip::Ipv6),
                _ => return Err(Skip::NotIp),
            }
        }
        LinkLayer::Other => return Err(Skip::LinkLayer),
    };
    internet(packet, short)
}

/// Skips VLAN tags and returns the IPv4 packet after them.
fn network(mut ethertype: u16, mut rest: &[u8], short: Skip) -> Result<&[u8], Skip> {
    for _ in 0..=VLAN_TAGS_MAX {
        match ethertype {
            ETHERTYPE_IPV4 => return Ok(rest),
            ETHERTYPE_IPV6 => return Err(Skip::Ipv6),
            tag if ETHERTYPES_VLAN.contains(&tag) => {
                ethertype = be16(rest, 2).ok_or(short)?;
                rest = &rest[4..];
            }
            _ => return Err(Skip::NotIp),
        }
    }
    Err(Skip::Malformed)
}

/// As [`decode`], for the form of nearly all market data: a whole UDP datagram in an untagged Ethernet frame,
/// after an IPv4 header without options. `None` for all other frames, which [`decode`] must handle.
#[inline]
pub(super) fn udp_fast_path(frame: &[u8]) -> Option<Datagram<'_>> {
    let (header, rest) = frame.split_first_chunk::<FAST_PATH_HEADER_LEN>()?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_common_form = (half(12) == ETHERTYPE_IPV4) & (header[14] == 0x45) & (header[23] == PROTOCOL_UDP);
    let (total_len, len) = (usize::from(half(16)), usize::from(half(38)));
    let fits = (len >= 8) & (20 + len <= total_len) & (14 + total_len <= frame.len());
    if !(is_common_form & fits & (half(20) & FRAGMENT == 0)) {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let (src, dst) = (SocketAddrV4::new(address(26), half(34)), SocketAddrV4::new(address(30), half(36)));
    Some(Datagram { src, dst, transport: Transport::Udp, payload: rest.get(..len - 8)? })
}

fn internet(packet: &[u8], short: Skip) -> Result<Datagram<'_>, Skip> {
    let header = packet.first_chunk::<20>().ok_or(short)?;
    match header[0] >> 4 {
        4 => {}
        6 => return Err(Skip::Ipv6),
        _ => return Err(Skip::Malformed),
    }
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total_len = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
        // The total length is 0 if the packet was captured before the network card segmented it.
        0 => packet.len(),
        len => len,
    };
    if header_len < 20 || total_len < header_len {
        return Err(Skip::Malformed);
    }
    if u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0 {
        return Err(Skip::Fragment);
    }
    let protocol = header[9];
    if protocol != PROTOCOL_UDP && protocol != PROTOCOL_TCP {
        return Err(Skip::Transport);
    }
    // The bytes after the IP packet are padding, a checksum or a switch's time stamp.
    let segment = packet.get(header_len..total_len).ok_or(short)?;
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let ports = segment.first_chunk::<4>().ok_or(Skip::Malformed)?;
    let src = SocketAddrV4::new(address(12), u16::from_be_bytes([ports[0], ports[1]]));
    let dst = SocketAddrV4::new(address(16), u16::from_be_bytes([ports[2], ports[3]]));
    let (transport, payload) = if protocol == PROTOCOL_UDP { udp(segment) } else { tcp(segment) }?;
    Ok(Datagram { src, dst, transport, payload })
}

fn udp(segment: &[u8]) -> Result<(Transport, &[u8]), Skip> {
    let len = match usize::from(be16(segment, 4).ok_or(Skip::Malformed)?) {
        0 => segment.len(),
        len => len,
    };
    Ok((Transport::Udp, segment.get(8..len).ok_or(Skip::Malformed)?))
}

fn tcp(segment: &[u8]) -> Result<(Transport, &[u8]), Skip> {
    let header = segment.first_chunk::<20>().ok_or(Skip::Malformed)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    let payload = segment.get(header_len..).filter(|_| header_len >= 20).ok_or(Skip::Malformed)?;
    let flags = header[13];
    let segment = Segment {
        sequence: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        is_syn: flags & 0x02 != 0,
        is_fin: flags & 0x01 != 0,
        is_reset: flags & 0x04 != 0,
    };
    Ok((Transport::Tcp(segment), payload))
}

/// The big-endian 16-bit number at an offset.
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

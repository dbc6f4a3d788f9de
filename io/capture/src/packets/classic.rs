//! The classic pcap file: one header, then records.
//!
//! Source: IETF draft "PCAP Capture File Format" (draft-ietf-opsawg-pcap).

use super::frame::LinkLayer;
use super::record::{ByteOrder, PACKET_LEN_MAX, Record, Step};

const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
const NS_PER_SEC: u64 = 1_000_000_000;

/// Properties of all records, from the file header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classic {
    order: ByteOrder,
    /// Nanoseconds per unit of a record's sub-second time field.
    ns_per_unit: u64,
    link: LinkLayer,
}

impl Classic {
    /// Returns the byte order and the nanoseconds per time unit, given a file's first four bytes; `None` if
    /// the file is not pcap.
    pub(super) const fn magic(bytes: [u8; 4]) -> Option<(ByteOrder, u64)> {
        match bytes {
            [0xd4, 0xc3, 0xb2, 0xa1] => Some((ByteOrder::Little, 1_000)),
            [0xa1, 0xb2, 0xc3, 0xd4] => Some((ByteOrder::Big, 1_000)),
            [0x4d, 0x3c, 0xb2, 0xa1] => Some((ByteOrder::Little, 1)),
            [0xa1, 0xb2, 0x3c, 0x4d] => Some((ByteOrder::Big, 1)),
            _ => None,
        }
    }

    /// Parses the file header; also returns its length. `None` when the header is incomplete or invalid.
    pub(super) fn parse(data: &[u8]) -> Option<(Classic, usize)> {
        let header = data.first_chunk::<FILE_HEADER_LEN>()?;
        let (order, ns_per_unit) = Classic::magic([header[0], header[1], header[2], header[3]])?;
        // Ignore the upper 16 bits: they describe a checksum after each frame, which the IP length excludes.
        let link = LinkLayer::of(order.u32(header, 20) as u16);
        Some((Classic { order, ns_per_unit, link }, FILE_HEADER_LEN))
    }

    /// Parses the record at the start of `data`.
    #[inline]
    pub(super) fn next<'a>(&self, data: &'a [u8]) -> Step<'a> {
        let Some(header) = data.first_chunk::<RECORD_HEADER_LEN>() else { return Step::Incomplete };
        let (seconds, units) = (self.order.u32(header, 0), self.order.u32(header, 4));
        let (len, wire_len) = (self.order.u32(header, 8) as usize, self.order.u32(header, 12) as usize);
        if len > PACKET_LEN_MAX {
            return Step::Malformed(format!("a packet that claims {len} bytes, more than {PACKET_LEN_MAX},"));
        }
        let end = RECORD_HEADER_LEN + len;
        let Some(frame) = data.get(RECORD_HEADER_LEN..end) else { return Step::Incomplete };
        let ts_ns = u64::from(seconds) * NS_PER_SEC + u64::from(units) * self.ns_per_unit;
        Step::Record(Record { ts_ns, link: self.link, is_cut: len < wire_len, frame }, end)
    }
}

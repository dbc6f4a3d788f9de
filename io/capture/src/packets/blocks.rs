//! The pcapng format: sections of blocks. Each section describes the interfaces of its packets.
//!
//! Source: IETF draft "PCAP Next Generation (pcapng) Capture File Format" (draft-ietf-opsawg-pcapng).

use super::frame::LinkLayer;
use super::record::{ByteOrder, PACKET_LEN_MAX, Record, Step};

/// Maximum number of interfaces per section.
pub(super) const INTERFACES_MAX: usize = 4_096;
/// Maximum length in bytes of a block that is parsed: the longest packet, its header and its options.
const BLOCK_LEN_MAX: usize = PACKET_LEN_MAX + 64 * 1024;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Type of the obsolete packet block, which some programs still write.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPTION_END: u16 = 0;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;

/// Number of bytes of a block besides its body: type and length before it, and the length again after it.
const FRAMING_LEN: usize = 12;
const NS_PER_SEC: u64 = 1_000_000_000;

/// The unit of an interface's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// One unit is this number of nanoseconds.
    Nanos(u64),
    /// One nanosecond is this number of units.
    PerNano(u64),
    /// One unit is 2^-n seconds.
    Binary(u8),
}

impl Resolution {
    fn of(code: u8) -> Option<Resolution> {
        match (code & 0x80 != 0, code & 0x7f) {
            (false, exponent @ 0..=9) => Some(Resolution::Nanos(10_u64.pow(9 - u32::from(exponent)))),
            (false, exponent @ 10..=28) => Some(Resolution::PerNano(10_u64.pow(u32::from(exponent) - 9))),
            (true, exponent @ 0..=63) => Some(Resolution::Binary(exponent)),
            _ => None,
        }
    }

    #[inline]
    fn ns(self, units: u64) -> u64 {
        match self {
            Resolution::Nanos(ns) => units.saturating_mul(ns),
            Resolution::PerNano(count) => units / count,
            Resolution::Binary(exponent) => {
                let ns = (u128::from(units) * u128::from(NS_PER_SEC)) >> exponent;
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkLayer,
    resolution: Resolution,
    /// Number of seconds to add to each time stamp of the interface.
    offset_s: i64,
}

/// Byte order and interfaces of the current section.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

impl Blocks {
    /// Creates the state before the header of the first section.
    pub(super) const fn new() -> Blocks {
        Blocks { order: ByteOrder::Little, interfaces: Vec::new() }
    }

    /// Parses the block at the start of `data`.
    pub(super) fn next<'a>(&mut self, data: &'a [u8]) -> Step<'a> {
        let Some(header) = data.first_chunk::<12>() else { return Step::Incomplete };
        if self.order.u32(header, 0) == SECTION_HEADER {
            match [header[8], header[9], header[10], header[11]] {
                [0x4d, 0x3c, 0x2b, 0x1a] => self.order = ByteOrder::Little,
                [0x1a, 0x2b, 0x3c, 0x4d] => self.order = ByteOrder::Big,
                _ => return Step::Malformed("a section header without a byte order".to_owned()),
            }
            self.interfaces.clear();
        }
        let (kind, len) = (self.order.u32(header, 0), self.order.u32(header, 4) as usize);
        let is_taken =
            matches!(kind, SECTION_HEADER | INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET);
        if len < FRAMING_LEN || !len.is_multiple_of(4) || is_taken && len > BLOCK_LEN_MAX {
            return Step::Malformed(format!("a block that claims {len} bytes"));
        }
        if !is_taken {
            return Step::Skip(len as u64);
        }
        let Some(block) = data.get(..len) else { return Step::Incomplete };
        if self.order.u32(block, len - 4) as usize != len {
            return Step::Malformed("a block whose two lengths differ".to_owned());
        }
        let body = &block[8..len - 4];
        let step = match kind {
            INTERFACE_DESCRIPTION => self.interface(body).map(|()| Step::Skip(len as u64)),
            ENHANCED_PACKET | PACKET => {
                self.record(kind == PACKET, body).map(|record| Step::Record(record, len))
            }
            SIMPLE_PACKET => Ok(Step::WithoutTime(len)),
            _ => Ok(Step::Skip(len as u64)),
        };
        step.unwrap_or_else(Step::Malformed)
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), String> {
        let Some(fixed) = body.first_chunk::<8>() else {
            return Err("an interface description that is too short".to_owned());
        };
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(format!("a section with more than {INTERFACES_MAX} interfaces"));
        }
        let mut interface = Interface {
            link: LinkLayer::of(self.order.u16(fixed, 0)),
            resolution: Resolution::Nanos(1_000),
            offset_s: 0,
        };
        let mut options = &body[8..];
        while let Some(head) = options.first_chunk::<4>() {
            let (code, len) = (self.order.u16(head, 0), usize::from(self.order.u16(head, 2)));
            if code == OPTION_END {
                break;
            }
            let Some(value) = options.get(4..4 + len) else {
                return Err("an interface option that is too long".to_owned());
            };
            match (code, value) {
                (OPTION_RESOLUTION, [code, ..]) => {
                    interface.resolution = Resolution::of(*code)
                        .ok_or_else(|| format!("a time resolution of {code:#04x}, finer than any clock,"))?;
                }
                (OPTION_OFFSET, [_, _, _, _, _, _, _, _, ..]) => {
                    interface.offset_s = self.order.u64(value, 0).cast_signed();
                }
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Returns the frame in a packet block's body. Obsolete blocks differ only in the body's first 4 bytes.
    #[inline]
    fn record<'a>(&self, is_obsolete: bool, body: &'a [u8]) -> Result<Record<'a>, String> {
        let Some(fixed) = body.first_chunk::<20>() else {
            return Err("a packet block that is too short".to_owned());
        };
        let interface =
            if is_obsolete { u32::from(self.order.u16(fixed, 0)) } else { self.order.u32(fixed, 0) };
        let Some(interface) = self.interfaces.get(interface as usize) else {
            return Err(format!("a packet of interface {interface}, which is not described,"));
        };
        let units = u64::from(self.order.u32(fixed, 4)) << 32 | u64::from(self.order.u32(fixed, 8));
        let (len, wire_len) = (self.order.u32(fixed, 12) as usize, self.order.u32(fixed, 16) as usize);
        let Some(frame) = body.get(20..20 + len) else {
            return Err(format!("a packet that claims {len} bytes, more than its block has,"));
        };
        let ns = interface.resolution.ns(units);
        let ts_ns = match interface.offset_s {
            0 => ns,
            seconds => ns.saturating_add_signed(seconds.saturating_mul(NS_PER_SEC.cast_signed())),
        };
        Ok(Record { ts_ns, link: interface.link, is_cut: len < wire_len, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_gives_nanoseconds() {
        for (code, units, ns) in [
            (6, 1_500_000_000_000_001, 1_500_000_000_000_001_000),
            (9, 7, 7),
            (0, 3, 3_000_000_000),
            (12, 1_999, 1),
            (28, u64::MAX, 1),
            (0x80, 2, 2_000_000_000),
            (0x80 | 10, 1_536, 1_500_000_000),
            (0x80 | 63, u64::MAX, 1_999_999_999),
        ] {
            assert_eq!(Resolution::of(code).map(|resolution| resolution.ns(units)), Some(ns), "{code:#x}");
        }
        assert_eq!((Resolution::of(29), Resolution::of(0x80 | 64)), (None, None));
    }
}

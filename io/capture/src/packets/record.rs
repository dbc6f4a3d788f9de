//! One record of a pcap or pcapng file.

use super::frame::LinkLayer;

/// Maximum length of a captured packet in bytes, as in tcpdump; a longer one means that the file is damaged.
pub const PACKET_LEN_MAX: usize = 256 * 1024;

/// The byte order of stored integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let pair = [bytes[at], bytes[at + 1]];
        if self == ByteOrder::Little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self == ByteOrder::Little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) }
    }

    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, at)), u64::from(self.u32(bytes, at + 4)));
        if self == ByteOrder::Little { second << 32 | first } else { first << 32 | second }
    }
}

/// One captured frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) ts_ns: u64,
    pub(super) link: LinkLayer,
    pub(super) is_cut: bool,
    pub(super) frame: &'a [u8],
}

/// The result of parsing a record or block at the start of the data.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A frame, and the length of its record or block in bytes.
    Record(Record<'a>, usize),
    /// A frame without a time; its block has this length in bytes.
    WithoutTime(usize),
    /// A header or block without a frame, of this length in bytes; the data may end within it.
    Skip(u64),
    /// The record or block is incomplete.
    Incomplete,
    /// The record or block is invalid; the text describes the problem.
    Malformed(String),
}

//! One record of a capture file of either format.

use super::frame::LinkLayer;

/// Maximum length of a captured packet in bytes; a longer one is damaged. It is also tcpdump's maximum.
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

/// One frame in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) ts_ns: u64,
    pub(super) link: LinkLayer,
    pub(super) is_cut: bool,
    pub(super) frame: &'a [u8],
}

/// The record at the start of some data.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A frame, and its length in bytes.
    Record(Record<'a>, usize),
    /// A frame without a time.
    WithoutTime(usize),
    /// A number of bytes to skip, which may not have been read yet.
    Skip(u64),
    /// An incomplete record.
    Incomplete,
    /// Invalid data.
    Malformed(String),
}

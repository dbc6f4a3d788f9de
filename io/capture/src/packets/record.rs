//! One record of a capture file, whichever of the two formats the file has.

use super::frame::LinkLayer;

/// Longest packet of a capture; what claims to be longer is damage. The longest that tcpdump keeps.
pub const PACKET_LEN_MAX: usize = 256 * 1024;

/// How integers are stored.
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

/// One frame as the file has it.
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
    /// A frame, and how many bytes it takes.
    Record(Record<'a>, usize),
    /// A frame without a time.
    WithoutTime(usize),
    /// A number of bytes to pass over; they need not be there yet.
    Skip(u64),
    /// The beginning of something.
    Incomplete,
    /// Nothing that could be.
    Malformed(String),
}

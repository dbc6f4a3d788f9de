//! Requests for messages that were lost, over UDP or TCP. The answer is ordinary segments.
//!
//! Source: IEX Transport Specification 1.26, "Gap Fill".

use tickpath_wire::layout;
use zerocopy::byteorder::little_endian::{I64, U16, U32};
use zerocopy::{FromBytes, IntoBytes};

/// Messages that a request over UDP may name at most; of one over TCP there is no bound.
pub const UDP_MESSAGES_MAX: u64 = 1_000;
/// Ranges that this reader takes in one request: what fits a datagram.
pub const RANGES_MAX: usize = 64;

layout! {
    /// The head of a request.
    RequestHeader, 16 => {
        /// 1.
        0 version: u8,
        /// 1 for messages, 2 for bytes of the stream; the feeds answer 1 alone.
        1 request_type: u8,
        /// Message Protocol ID.
        2 protocol_id: U16,
        /// Channel ID.
        4 channel: U32,
        /// Session ID, as the multicast says it.
        8 session: U32,
        /// Ranges that follow; 0 is a test.
        12 range_count: U32,
    }
}

layout! {
    /// One run of messages.
    Range, 16 => {
        /// The first of them.
        0 first: I64,
        /// The last of them, which over TCP may lie in the future.
        8 last: I64,
    }
}

impl Range {
    /// A run from `first` to `last`, both inclusive.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Range {
        Range { first: I64::new(first as i64), last: I64::new(last as i64) }
    }

    /// How many messages; 0 for a run that ends before it begins.
    #[must_use]
    pub const fn message_count(&self) -> u64 {
        let (first, last) = (self.first.get(), self.last.get());
        if last < first { 0 } else { last.abs_diff(first).saturating_add(1) }
    }
}

/// Not a request that is answered. Over UDP ignore it, on TCP close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Shorter than its header or its ranges: drop it; on a stream wait for more.
    #[error("{len} bytes of {needed} are there: wait for the others or drop it")]
    Truncated {
        /// What is there, in bytes.
        len: usize,
        /// What has to be, in bytes.
        needed: usize,
    },
    /// Of another version: drop it.
    #[error("version {version} of a request, and 1 is known: drop it")]
    UnknownVersion {
        /// The version.
        version: u8,
    },
    /// For bytes of the stream or something else, which no feed answers: drop it.
    #[error("request type {request_type}, and 1 is answered: drop it")]
    UnknownType {
        /// The type.
        request_type: u8,
    },
    /// More ranges than [`RANGES_MAX`]: drop it.
    #[error("{count} ranges, and 64 are the most: drop it")]
    TooManyRanges {
        /// How many.
        count: u32,
    },
    /// A range ends before it begins, begins before 1, or not after the one before it: drop it.
    #[error("range {index} is not in ascending order: drop it")]
    NotAscending {
        /// Which, from 0.
        index: usize,
    },
}

/// A request whose ranges have been checked: ascending and apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its head.
    pub header: &'a RequestHeader,
    /// The runs asked for.
    pub ranges: &'a [Range],
}

impl<'a> Request<'a> {
    /// Length of the head in bytes.
    pub const HEADER_LEN: usize = size_of::<RequestHeader>();
    /// Longest request that this reader takes, in bytes.
    pub const LEN_MAX: usize = Self::HEADER_LEN + RANGES_MAX * size_of::<Range>();

    /// Reads the request at the start of `bytes`, and how many bytes it takes.
    ///
    /// # Errors
    /// [`RequestError::Truncated`] until all of it is there; any other means that it is not answered.
    pub fn parse_prefix(bytes: &'a [u8]) -> Result<(Request<'a>, usize), RequestError> {
        let Ok((header, rest)) = RequestHeader::ref_from_prefix(bytes) else {
            return Err(RequestError::Truncated { len: bytes.len(), needed: Self::HEADER_LEN });
        };
        if header.version != 1 {
            return Err(RequestError::UnknownVersion { version: header.version });
        }
        if header.request_type != 1 {
            return Err(RequestError::UnknownType { request_type: header.request_type });
        }
        let count = header.range_count.get();
        if count as usize > RANGES_MAX {
            return Err(RequestError::TooManyRanges { count });
        }
        let ranges_len = count as usize * size_of::<Range>();
        let needed = Self::HEADER_LEN + ranges_len;
        let Some(ranges) = rest.get(..ranges_len) else {
            return Err(RequestError::Truncated { len: bytes.len(), needed });
        };
        let ranges = <[Range]>::ref_from_bytes(ranges).expect("as long as a whole number of ranges");
        check_ascending(ranges)?;
        Ok((Request { header, ranges }, needed))
    }

    /// Messages asked for in all.
    #[must_use]
    pub fn message_count(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.message_count()))
    }

    /// Writes a request; `None` when there are more ranges than [`RANGES_MAX`].
    #[must_use]
    pub fn encode<'b>(
        protocol_id: u16,
        channel: u32,
        session: u32,
        ranges: &[Range],
        room: &'b mut [u8; Request::LEN_MAX],
    ) -> Option<&'b [u8]> {
        let len = Self::HEADER_LEN + size_of_val(ranges);
        let bytes = room.get_mut(..len)?;
        let header = RequestHeader {
            version: 1,
            request_type: 1,
            protocol_id: U16::new(protocol_id),
            channel: U32::new(channel),
            session: U32::new(session),
            range_count: U32::new(ranges.len() as u32),
        };
        bytes[..Self::HEADER_LEN].copy_from_slice(header.as_bytes());
        bytes[Self::HEADER_LEN..].copy_from_slice(ranges.as_bytes());
        Some(bytes)
    }
}

fn check_ascending(ranges: &[Range]) -> Result<(), RequestError> {
    let mut before = 0;
    for (index, range) in ranges.iter().enumerate() {
        if range.first.get() <= before || range.last.get() < range.first.get() {
            return Err(RequestError::NotAscending { index });
        }
        before = range.last.get();
    }
    Ok(())
}

//! Requests for lost messages, over UDP or TCP. The answers are ordinary segments.
//!
//! Source: IEX Transport Specification 1.26, "Gap Fill".

use tickpath_wire::{Malformed, layout};
use zerocopy::byteorder::little_endian::{I64, U16, U32};
use zerocopy::{FromBytes, IntoBytes};

/// Maximum number of messages per request over UDP; TCP has no limit.
pub const UDP_MESSAGES_MAX: u64 = 1_000;
/// Maximum number of ranges in a request that [`Request::parse_prefix`] accepts; they fit a datagram.
pub const RANGES_MAX: usize = 64;

layout! {
    /// The header of a request.
    RequestHeader, 16 => {
        /// The version, 1.
        0 version: u8,
        /// 1 to request messages, 2 to request bytes of the stream; the feeds answer only 1.
        1 request_type: u8,
        /// Message Protocol ID of the feed.
        2 protocol_id: U16,
        /// Channel ID.
        4 channel: U32,
        /// Session ID, as in the multicast segments.
        8 session: U32,
        /// Number of ranges that follow; 0 for a test request.
        12 range_count: U32,
    }
}

layout! {
    /// One range of messages.
    Range, 16 => {
        /// Sequence number of the first message.
        0 first: I64,
        /// Sequence number of the last message; over TCP, that message may not have been sent yet.
        8 last: I64,
    }
}

impl Range {
    /// Creates a range from `first` to `last`, both inclusive.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Range {
        Range { first: I64::new(first as i64), last: I64::new(last as i64) }
    }

    /// Returns the number of messages in the range; 0 if `last` is before `first`.
    #[must_use]
    pub const fn message_count(&self) -> u64 {
        let (first, last) = (self.first.get(), self.last.get());
        if last < first { 0 } else { last.abs_diff(first).saturating_add(1) }
    }
}

/// A request whose ranges have been checked: ascending and disjoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The header.
    pub header: &'a RequestHeader,
    /// The requested ranges.
    pub ranges: &'a [Range],
}

impl<'a> Request<'a> {
    /// Length of the header, in bytes.
    pub const HEADER_LEN: usize = size_of::<RequestHeader>();
    /// Maximum length of a request with [`RANGES_MAX`] ranges, in bytes.
    pub const LEN_MAX: usize = Self::HEADER_LEN + RANGES_MAX * size_of::<Range>();

    /// Returns the request at the start of `bytes` and its length, or `None` until the request is complete.
    ///
    /// # Errors
    /// [`Malformed`] for an invalid request: ignore it over UDP, close the connection over TCP.
    pub fn parse_prefix(bytes: &'a [u8]) -> Result<Option<(Request<'a>, usize)>, Malformed> {
        let Ok((header, rest)) = RequestHeader::ref_from_prefix(bytes) else {
            return Ok(None);
        };
        if header.version != 1 {
            return Err(Malformed("a version of a request other than 1"));
        }
        if header.request_type != 1 {
            return Err(Malformed("a request for something other than messages"));
        }
        let count = header.range_count.get() as usize;
        if count > RANGES_MAX {
            return Err(Malformed("a request of more than 64 ranges"));
        }
        let ranges_len = count * size_of::<Range>();
        let Some(ranges) = rest.get(..ranges_len) else { return Ok(None) };
        let ranges = <[Range]>::ref_from_bytes(ranges).expect("as long as a whole number of ranges");
        check_ascending(ranges)?;
        Ok(Some((Request { header, ranges }, Self::HEADER_LEN + ranges_len)))
    }

    /// Returns the total number of requested messages.
    #[must_use]
    pub fn message_count(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.message_count()))
    }

    /// Writes a request into `buffer` and returns its bytes; `None` when there are more ranges than
    /// [`RANGES_MAX`].
    #[must_use]
    pub fn encode<'b>(
        protocol_id: u16,
        channel: u32,
        session: u32,
        ranges: &[Range],
        buffer: &'b mut [u8; Request::LEN_MAX],
    ) -> Option<&'b [u8]> {
        let len = Self::HEADER_LEN + size_of_val(ranges);
        let bytes = buffer.get_mut(..len)?;
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

fn check_ascending(ranges: &[Range]) -> Result<(), Malformed> {
    let mut before = 0;
    for range in ranges {
        if range.first.get() <= before || range.last.get() < range.first.get() {
            return Err(Malformed("ranges that do not ascend from 1"));
        }
        before = range.last.get();
    }
    Ok(())
}

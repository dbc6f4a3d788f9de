//! Segments of IEX-TP 1: each is a multicast datagram or a part of a TCP stream.
//!
//! Source: IEX Transport Specification 1.26.

use tickpath_types::{Nanos, Sequence};
use tickpath_wire::{Malformed, layout};
use zerocopy::byteorder::little_endian::{I64, U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use crate::Feed;
use crate::wire::Timestamp;

/// Maximum length of a segment, in bytes: a header, and the longest payload that its length field can state.
pub const SEGMENT_LEN_MAX: usize = Header::LEN + u16::MAX as usize;

layout! {
    /// The header of a segment.
    Header, Header::LEN => {
        /// The version, 1.
        0 version: u8,
        /// Without meaning.
        1 reserved: u8,
        /// Message Protocol ID, see [`Feed::of`].
        2 protocol_id: U16,
        /// Channel ID: 1, or 1 to 16 where a feed has several.
        4 channel: U32,
        /// Session ID, the same throughout a trading session.
        8 session: U32,
        /// Length in bytes of the payload, which follows the header; 0 in a heartbeat.
        12 payload_len: U16,
        /// Number of messages in the payload; 0 in a heartbeat.
        14 message_count: U16,
        /// Stream offset of the payload: number of payload bytes that the session sent before it.
        16 stream_offset: I64,
        /// Sequence number of the first message; in a heartbeat, of the next message.
        24 first_sequence: I64,
        /// Send time of the segment.
        32 send_time: Timestamp,
    }
}

impl Header {
    /// Length of a header in bytes.
    pub const LEN: usize = 40;
    /// The version of IEX-TP.
    pub const VERSION: u8 = 1;
}

/// A segment; the lengths of all its message blocks have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    header: &'a Header,
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Parses a datagram, which is one segment.
    ///
    /// # Errors
    /// [`Malformed`] when the datagram is not a segment, or has trailing bytes: drop it.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Segment<'a>, Malformed> {
        let Ok((header, payload)) = Header::ref_from_prefix(datagram) else {
            return Err(Malformed("a segment shorter than its header"));
        };
        if header.version != Header::VERSION {
            return Err(Malformed("a version of IEX-TP other than 1"));
        }
        if payload.len() != usize::from(header.payload_len.get()) {
            return Err(Malformed("a segment of another length than its header says"));
        }
        check_numbers(header)?;
        check_blocks(header, payload)?;
        Ok(Segment { header, payload })
    }

    /// Returns the header as received.
    #[must_use]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// Returns the payload: blocks, each of which is a length and a message.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the feed of the segment; `None` for an unknown Message Protocol ID.
    #[inline]
    #[must_use]
    pub const fn feed(&self) -> Option<Feed> {
        Feed::of(self.header.protocol_id.get())
    }

    /// Returns the channel ID.
    #[inline]
    #[must_use]
    pub const fn channel(&self) -> u32 {
        self.header.channel.get()
    }

    /// Returns the session ID.
    #[inline]
    #[must_use]
    pub const fn session(&self) -> u32 {
        self.header.session.get()
    }

    /// Returns the sequence number of the first message; in a heartbeat, of the next message.
    #[inline]
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        Sequence(self.header.first_sequence.get() as u64)
    }

    /// Returns the sequence number after the last message.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        Sequence(self.sequence().0 + self.header.message_count.get() as u64)
    }

    /// Returns the offset of the payload in the session's stream, in bytes.
    #[must_use]
    pub const fn stream_offset(&self) -> u64 {
        self.header.stream_offset.get() as u64
    }

    /// Returns the number of messages in the segment.
    #[inline]
    #[must_use]
    pub const fn message_count(&self) -> u16 {
        self.header.message_count.get()
    }

    /// Returns true for a segment without messages, sent when no message was sent for a second.
    #[inline]
    #[must_use]
    pub const fn is_heartbeat(&self) -> bool {
        self.message_count() == 0
    }

    /// Returns the send time of the segment, since the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn send_time(&self) -> Nanos {
        self.header.send_time.get()
    }

    /// Returns true for the first segment of a session: sequence number 1 at offset 0. A session that
    /// restarts sends such a segment again, with a later send time and often with the same session ID.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.header.first_sequence.get() == 1 && self.header.stream_offset.get() == 0
    }

    /// Returns the messages of the segment, each with its sequence number.
    #[inline]
    #[must_use]
    pub fn messages(&self) -> Messages<'a> {
        Messages { sequence: self.sequence().0, rest: self.payload }
    }
}

fn check_numbers(header: &Header) -> Result<(), Malformed> {
    let (first, offset) = (header.first_sequence.get(), header.stream_offset.get());
    let ends = [
        first.checked_add(i64::from(header.message_count.get())),
        offset.checked_add(i64::from(header.payload_len.get())),
    ];
    let fits = first >= 0 && offset >= 0 && !ends.contains(&None);
    fits.then_some(()).ok_or(Malformed("a sequence number or offset out of range"))
}

#[inline]
fn check_blocks(header: &Header, payload: &[u8]) -> Result<(), Malformed> {
    let wrong = Malformed("messages that do not fill their segment");
    let mut at = 0;
    for _ in 0..header.message_count.get() {
        let Some(len) = payload.get(at..).and_then(|rest| rest.first_chunk()) else {
            return Err(wrong);
        };
        at += 2 + usize::from(u16::from_le_bytes(*len));
    }
    if at == payload.len() { Ok(()) } else { Err(wrong) }
}

/// The messages of a segment, in order.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    sequence: u64,
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Sequence, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(Sequence, &'a [u8])> {
        let (len, rest) = self.rest.split_first_chunk()?;
        let (message, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
        let sequence = Sequence(self.sequence);
        (self.sequence, self.rest) = (self.sequence + 1, rest);
        Some((sequence, message))
    }
}

/// The segment has no space for the message: send the segment and push the message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {len} bytes does not fit the {remaining} that are left: send the segment first")]
pub struct PushError {
    /// Length of the message, in bytes.
    pub len: usize,
    /// Remaining space for a message, in bytes.
    pub remaining: usize,
}

/// Builds segments of one channel, with consecutive sequence numbers.
#[derive(Clone, Debug)]
pub struct SegmentBuilder<B> {
    buffer: B,
    header: Header,
    len: usize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> SegmentBuilder<B> {
    /// Creates a builder for a new session, from sequence number 1. A segment is at most as long as `buffer`.
    ///
    /// # Panics
    /// When the buffer is shorter than a header.
    #[must_use]
    pub fn new(buffer: B, feed: Feed, channel: u32, session: u32) -> SegmentBuilder<B> {
        SegmentBuilder::resuming(buffer, feed.protocol_id(), channel, session, Sequence(1), 0)
    }

    /// Creates a builder that continues a session at a sequence number and a stream offset.
    ///
    /// # Panics
    /// When the buffer is shorter than a header.
    #[must_use]
    pub fn resuming(
        buffer: B,
        protocol_id: u16,
        channel: u32,
        session: u32,
        next: Sequence,
        stream_offset: u64,
    ) -> SegmentBuilder<B> {
        assert!(buffer.as_ref().len() >= Header::LEN, "a segment has a header");
        let header = Header {
            version: Header::VERSION,
            reserved: 0,
            protocol_id: U16::new(protocol_id),
            channel: U32::new(channel),
            session: U32::new(session),
            payload_len: U16::new(0),
            message_count: U16::new(0),
            stream_offset: I64::new(stream_offset as i64),
            first_sequence: I64::new(next.0 as i64),
            send_time: Timestamp::default(),
        };
        SegmentBuilder { buffer, header, len: 0 }
    }

    /// Returns the sequence number of the next message to be pushed.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        Sequence(self.header.first_sequence.get() as u64 + u64::from(self.header.message_count.get()))
    }

    /// Returns the stream offset of the next message to be pushed.
    #[must_use]
    pub fn next_offset(&self) -> u64 {
        self.header.stream_offset.get() as u64 + self.len as u64
    }

    /// Returns true while the segment has no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.header.message_count.get() == 0
    }

    /// Adds a message to the segment.
    ///
    /// # Errors
    /// [`PushError`] when there is no space; the segment is unchanged.
    pub fn push(&mut self, message: &[u8]) -> Result<(), PushError> {
        let capacity = (self.buffer.as_ref().len() - Header::LEN).min(usize::from(u16::MAX));
        let error = PushError { len: message.len(), remaining: (capacity - self.len).saturating_sub(2) };
        let (at, end) = (Header::LEN + self.len, self.len + 2 + message.len());
        let count = self.header.message_count.get().checked_add(1).ok_or(error)?;
        if end > capacity {
            return Err(error);
        }
        let block = &mut self.buffer.as_mut()[at..Header::LEN + end];
        block[..2].copy_from_slice(&(message.len() as u16).to_le_bytes());
        block[2..].copy_from_slice(message);
        (self.len, self.header.message_count) = (end, U16::new(count));
        Ok(())
    }

    /// Returns the segment, to be sent at `send_time`; the next message begins the next segment. A segment
    /// without messages is a heartbeat.
    pub fn finish(&mut self, send_time: Nanos) -> &[u8] {
        let len = Header::LEN + self.len;
        self.header.payload_len = U16::new(self.len as u16);
        self.header.send_time = send_time.into();
        self.buffer.as_mut()[..Header::LEN].copy_from_slice(self.header.as_bytes());
        let (next, offset) = (self.next_sequence(), self.next_offset());
        self.header.first_sequence = I64::new(next.0 as i64);
        self.header.stream_offset = I64::new(offset as i64);
        (self.len, self.header.message_count) = (0, U16::new(0));
        &self.buffer.as_ref()[..len]
    }
}

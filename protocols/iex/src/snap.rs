//! SNAP: snapshots of a feed over TCP, on request.
//!
//! Source: IEX TOPS, DEEP and DEEP+ SNAP specifications of June 2026. A frame is a length of two bytes, a
//! type byte and the content. The length counts the bytes after it. Integers are little-endian.
//!
//! A reader buffers the multicast messages and requests a snapshot that reaches at least to the first of
//! them. It loads the snapshot, then applies the buffered messages after the snapshot's sequence number.

use tickpath_types::Sequence;
use tickpath_wire::{Malformed, codes};
use zerocopy::FromBytes;

use crate::wire::Alpha;
use crate::{Header, SEGMENT_LEN_MAX};

/// Maximum length of a frame, in bytes.
pub const FRAME_LEN_MAX: usize = 2 + u16::MAX as usize;
/// Maximum number of requests that a service answers per day and channel.
pub const REQUESTS_PER_DAY: u32 = 1_000;
/// Time without a request after which a service closes a connection, in seconds.
pub const IDLE_TIMEOUT_S: u64 = 10;

const REQUEST_LEN: usize = 59;
const START_LEN: usize = 11;
const END_LEN: usize = 11;
const ERROR_LEN: usize = 4;
const DATA_LEN_MIN: usize = 3 + Header::LEN + 2;
const WRONG_LENGTH: Malformed = Malformed("a frame of another length than its type has");

codes! {
    /// The reason why a service refuses a request.
    ErrorCode {
        AUTHENTICATION = b'A' "the token is not known",
        CHANNEL = b'C' "no such channel",
        ALREADY_ACTIVE = b'E' "a request is being answered already",
        QUOTA = b'Q' "the day's quota is used up",
        NOT_YET = b'R' "no snapshot reaches so far yet",
        SESSION = b'S' "another session",
        UNKNOWN_MESSAGE = b'U' "not a request",
    }
}

/// A request for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// The token by which the service identifies the reader.
    pub token: Alpha<40>,
    /// Channel ID.
    pub channel: u32,
    /// Session ID, as in the multicast segments.
    pub session: u32,
    /// Minimum sequence number that the snapshot must reach; 0 for the latest snapshot.
    pub minimum: Sequence,
}

/// One frame of either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// `r`: a request.
    Request(SnapshotRequest),
    /// `e`: the service refuses the request.
    Error(ErrorCode),
    /// `s`: a snapshot follows.
    Start {
        /// Length in bytes of the whole answer, including this frame and the end frame.
        total_len: u64,
    },
    /// `d`: one message of the snapshot.
    Data {
        /// IEX-TP header of a segment that has only this message.
        header: &'a Header,
        /// The message.
        message: &'a [u8],
    },
    /// `x`: the snapshot is complete.
    End {
        /// Sequence number of the last message in the snapshot.
        sequence: Sequence,
    },
    /// A frame of an unknown type: skip it.
    Unknown {
        /// The type byte.
        frame_type: u8,
    },
}

/// Returns the frame at the start of `bytes` and its length, or `None` until the frame is complete.
///
/// # Errors
/// [`Malformed`] when the bytes are not a frame: close the connection.
pub fn next_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Malformed> {
    let Some(prefix) = bytes.first_chunk() else { return Ok(None) };
    let len = 2 + usize::from(u16::from_le_bytes(*prefix));
    if len < 3 {
        return Err(Malformed("a frame of length zero"));
    }
    let Some(&frame_type) = bytes.get(2) else { return Ok(None) };
    check_len(frame_type, len)?;
    let Some(frame) = bytes.get(..len) else { return Ok(None) };
    let frame = match frame_type {
        b'r' => Frame::Request(SnapshotRequest {
            token: Alpha(field(frame, 3)),
            channel: u32::from_le_bytes(field(frame, 43)),
            session: u32::from_le_bytes(field(frame, 47)),
            minimum: Sequence(number(frame, 51)?),
        }),
        b'e' => Frame::Error(ErrorCode(frame[3])),
        b's' => Frame::Start { total_len: number(frame, 3)? },
        b'x' => Frame::End { sequence: Sequence(number(frame, 3)?) },
        b'd' => data(frame)?,
        _ => Frame::Unknown { frame_type },
    };
    Ok(Some((frame, len)))
}

/// Refuses a length that does not fit the frame's type, before the rest of the frame arrives.
fn check_len(frame_type: u8, len: usize) -> Result<(), Malformed> {
    let fits = match frame_type {
        b'r' => len == REQUEST_LEN,
        b'e' => len == ERROR_LEN,
        b's' => len == START_LEN,
        b'x' => len == END_LEN,
        b'd' => len >= DATA_LEN_MIN,
        _ => true,
    };
    fits.then_some(()).ok_or(WRONG_LENGTH)
}

/// Decodes a data frame. If its block consists of a length and that many bytes, these bytes are the message;
/// otherwise the whole block is.
fn data(frame: &[u8]) -> Result<Frame<'_>, Malformed> {
    let (header, payload) = Header::ref_from_prefix(&frame[3..]).map_err(|_| WRONG_LENGTH)?;
    let outer = usize::from(u16::from_le_bytes(field(payload, 0)));
    let block = payload.get(2..2 + outer).ok_or(WRONG_LENGTH)?;
    let nested = block
        .split_first_chunk()
        .filter(|(len, message)| usize::from(u16::from_le_bytes(**len)) == message.len());
    Ok(Frame::Data { header, message: nested.map_or(block, |(_, message)| message) })
}

/// Returns the `N` bytes at `offset` of a frame whose length has been checked.
fn field<const N: usize>(frame: &[u8], offset: usize) -> [u8; N] {
    frame[offset..offset + N].try_into().expect("a slice of N bytes is an array of N bytes")
}

fn number(frame: &[u8], offset: usize) -> Result<u64, Malformed> {
    let number = i64::from_le_bytes(field(frame, offset));
    u64::try_from(number).map_err(|_| Malformed("a number below zero in a frame"))
}

/// Writes one frame into `buffer` and returns its length; `None` when the buffer is too short or the message
/// does not fit a frame. An unknown frame consists of its type only.
#[must_use]
pub fn encode(frame: &Frame<'_>, buffer: &mut [u8]) -> Option<usize> {
    let len = frame_len(frame)?;
    let bytes = buffer.get_mut(..len)?;
    bytes[..2].copy_from_slice(&((len - 2) as u16).to_le_bytes());
    let (frame_type, body) = bytes[2..].split_first_mut()?;
    match frame {
        Frame::Request(request) => {
            *frame_type = b'r';
            body[..40].copy_from_slice(&request.token.0);
            body[40..44].copy_from_slice(&request.channel.to_le_bytes());
            body[44..48].copy_from_slice(&request.session.to_le_bytes());
            body[48..56].copy_from_slice(&request.minimum.0.to_le_bytes());
        }
        Frame::Error(code) => (*frame_type, body[0]) = (b'e', code.0),
        Frame::Start { total_len } => {
            *frame_type = b's';
            body.copy_from_slice(&total_len.to_le_bytes());
        }
        Frame::Data { header, message } => {
            *frame_type = b'd';
            encode_data(header, message, body);
        }
        Frame::End { sequence } => {
            *frame_type = b'x';
            body.copy_from_slice(&sequence.0.to_le_bytes());
        }
        Frame::Unknown { frame_type: unknown } => *frame_type = *unknown,
    }
    Some(len)
}

fn frame_len(frame: &Frame<'_>) -> Option<usize> {
    Some(match frame {
        Frame::Request(_) => REQUEST_LEN,
        Frame::Error(_) => ERROR_LEN,
        Frame::Start { .. } => START_LEN,
        Frame::Data { message, .. } => {
            let len = data_len(message.len());
            (len <= FRAME_LEN_MAX).then_some(len)?
        }
        Frame::End { .. } => END_LEN,
        Frame::Unknown { .. } => 3,
    })
}

/// Returns the length of the data frame for a message of `message_len` bytes, in bytes.
#[must_use]
pub const fn data_len(message_len: usize) -> usize {
    DATA_LEN_MIN + 2 + message_len
}

const _: () = assert!(data_len(crate::MESSAGE_LEN_MAX) < SEGMENT_LEN_MAX);

fn encode_data(header: &Header, message: &[u8], body: &mut [u8]) {
    use zerocopy::IntoBytes;
    let mut header = *header;
    header.message_count.set(1);
    header.payload_len.set((message.len() + 4) as u16);
    body[..Header::LEN].copy_from_slice(header.as_bytes());
    let block = &mut body[Header::LEN..];
    block[..2].copy_from_slice(&(message.len() as u16 + 2).to_le_bytes());
    block[2..4].copy_from_slice(&(message.len() as u16).to_le_bytes());
    block[4..].copy_from_slice(message);
}

//! Splits a BinaryFILE, the format of Nasdaq's daily data files, into messages.
//!
//! Source: Nasdaq BinaryFILE: `u16 length | message`, big-endian; the length does not count itself.
//! A length of zero ends the session. In some published samples every length field is zero; the message
//! type then determines the length.

use super::message_len;

/// Length of the length field before each message, in bytes.
const PREFIX_LEN: usize = 2;

/// Source of the length of each message in a BinaryFILE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lengths {
    /// The two-byte length field before the message.
    #[default]
    Prefixed,
    /// The message type; the length fields are zero.
    Implied,
}

impl Lengths {
    /// Detects the source from a file's first bytes: `Implied` if a length of zero precedes a known type.
    #[must_use]
    pub fn detect(data: &[u8]) -> Lengths {
        match data {
            [0, 0, message_type, ..] if message_len(*message_type).is_some() => Lengths::Implied,
            _ => Lengths::Prefixed,
        }
    }
}

/// An element of a BinaryFILE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message, without its length field.
    Message(&'a [u8]),
    /// The marker that ends a session.
    EndOfSession,
}

/// Invalid framing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FramingError {
    /// The data ends inside a message: the file is truncated, fetch it again.
    #[error("{len} bytes are left at offset {offset}, inside a message: the file is cut short")]
    Truncated {
        /// Offset of the incomplete message in the file.
        offset: usize,
        /// Number of bytes from that offset to the end.
        len: usize,
    },
    /// Lengths are implied and the message type is unknown, so that no later message can be found.
    #[error("type {message_type:#04x} at offset {offset} has no known length and the file gives none")]
    UnknownType {
        /// The type byte.
        message_type: u8,
        /// Offset of the message in the file.
        offset: usize,
    },
    /// Lengths are implied and a length field is not zero: read the file with [`Lengths::Prefixed`].
    #[error("the length field at offset {offset} is not zero: read with prefixed lengths")]
    UnexpectedLength {
        /// Offset of the length field in the file.
        offset: usize,
    },
}

/// Reads the frame at the start of `data`. Returns the frame and its length in bytes, or `None` when the
/// frame is incomplete; then call again with more bytes.
///
/// # Errors
/// [`FramingError::UnknownType`] and [`FramingError::UnexpectedLength`], both with offset 0.
#[inline]
pub fn next_frame(data: &[u8], lengths: Lengths) -> Result<Option<(Frame<'_>, usize)>, FramingError> {
    let Some((prefix, rest)) = data.split_first_chunk::<PREFIX_LEN>() else {
        return Ok(None);
    };
    let prefix = usize::from(u16::from_be_bytes(*prefix));
    let len = match lengths {
        Lengths::Prefixed if prefix == 0 => return Ok(Some((Frame::EndOfSession, PREFIX_LEN))),
        Lengths::Prefixed => prefix,
        Lengths::Implied if prefix != 0 => return Err(FramingError::UnexpectedLength { offset: 0 }),
        Lengths::Implied => match rest.first() {
            None => return Ok(None),
            Some(&message_type) => {
                message_len(message_type).ok_or(FramingError::UnknownType { message_type, offset: 0 })?
            }
        },
    };
    Ok(rest.get(..len).map(|message| (Frame::Message(message), PREFIX_LEN + len)))
}

/// Iterates over the messages of a file in memory, up to its end or its end-of-session marker.
///
/// The iterator ends after its first error.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    /// The unread bytes; emptied when the iterator finishes early.
    rest: &'a [u8],
    /// Offset in the file at which `rest` ends.
    end: usize,
    lengths: Lengths,
    is_end_of_session: bool,
}

impl<'a> Frames<'a> {
    /// Creates an iterator over the messages of `data`.
    #[must_use]
    pub const fn new(data: &'a [u8], lengths: Lengths) -> Self {
        Frames { rest: data, end: data.len(), lengths, is_end_of_session: false }
    }

    /// Returns the offset of the next frame in the file, or the offset at which the iteration ended.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Returns true once the end-of-session marker was read.
    #[must_use]
    pub const fn is_end_of_session(&self) -> bool {
        self.is_end_of_session
    }

    /// Handles all cases but a complete message with a length prefix: the end, errors and implied lengths.
    #[cold]
    #[inline(never)]
    fn next_unusual(&mut self) -> Option<Result<&'a [u8], FramingError>> {
        let (offset, len) = (self.offset(), self.rest.len());
        let error = match next_frame(self.rest, self.lengths) {
            Ok(Some((Frame::Message(message), used))) => {
                self.rest = &self.rest[used..];
                return Some(Ok(message));
            }
            Ok(Some((Frame::EndOfSession, used))) => {
                self.is_end_of_session = true;
                self.finish(offset + used);
                return None;
            }
            Ok(None) if len == 0 => return None,
            Ok(None) => FramingError::Truncated { offset, len },
            Err(FramingError::UnknownType { message_type, .. }) => {
                FramingError::UnknownType { message_type, offset }
            }
            Err(_) => FramingError::UnexpectedLength { offset },
        };
        self.finish(offset);
        Some(Err(error))
    }

    fn finish(&mut self, offset: usize) {
        self.rest = &[];
        self.end = offset;
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], FramingError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let (Lengths::Prefixed, Some((prefix, rest))) =
            (self.lengths, self.rest.split_first_chunk::<PREFIX_LEN>())
            && let len @ 1.. = usize::from(u16::from_be_bytes(*prefix))
            && let Some((message, rest)) = rest.split_at_checked(len)
        {
            self.rest = rest;
            return Some(Ok(message));
        }
        self.next_unusual()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(data: &[u8], lengths: Lengths) -> Vec<Result<&[u8], FramingError>> {
        Frames::new(data, lengths).collect()
    }

    #[test]
    fn prefixed_messages_follow_one_another_up_to_the_marker() {
        let data = [0, 1, b'z', 0, 2, b'y', 1, 0, 0, 9, 9];
        assert_eq!(frames(&data, Lengths::Prefixed), [Ok(&b"z"[..]), Ok(&b"y\x01"[..])]);
        let mut iterator = Frames::new(&data, Lengths::Prefixed);
        assert_eq!(iterator.by_ref().count(), 2);
        assert!(iterator.is_end_of_session());
        assert_eq!(iterator.offset(), 9);
        let mut plain_end = Frames::new(&data[..3], Lengths::Prefixed);
        assert_eq!(plain_end.by_ref().count(), 1);
        assert!(!plain_end.is_end_of_session());
    }

    #[test]
    fn every_cut_inside_a_message_is_an_error() {
        let data = [0, 3, b'a', b'b', b'c'];
        for len in 1..data.len() {
            let cut = FramingError::Truncated { offset: 0, len };
            assert_eq!(frames(&data[..len], Lengths::Prefixed), [Err(cut)]);
        }
    }

    #[test]
    fn implied_lengths_come_from_the_type() {
        let mut data = vec![0, 0, b'S'];
        data.resize(2 + 12, 7);
        assert_eq!(Lengths::detect(&data), Lengths::Implied);
        assert_eq!(Lengths::detect(&[0, 12, b'S']), Lengths::Prefixed);
        assert_eq!(frames(&data, Lengths::Implied), [Ok(&data[2..])]);
        data.extend([0, 0, b'z']);
        let unknown = FramingError::UnknownType { message_type: b'z', offset: 14 };
        assert_eq!(frames(&data, Lengths::Implied)[1], Err(unknown));
        let unexpected = FramingError::UnexpectedLength { offset: 0 };
        assert_eq!(frames(&[0, 1, b'S'], Lengths::Implied), [Err(unexpected)]);
    }
}

//! The raw messages of an ITCH 5.0 BinaryFILE, block by block.

use std::io::Read;

use tickpath_nasdaq::itch50::framing::{Frame, Lengths, next_frame};

use crate::binaryfile::malformed;
use crate::input::Input;
use crate::window::Window;
use crate::{Position, ReadError, RecordingFile};

/// Typical length in bytes of a message and its length field; sets the initial capacity of a block.
const USUAL_FRAME_LEN: usize = 30;

/// Reads a decompressed ITCH 5.0 BinaryFILE as blocks of message slices. If the file's length fields are
/// zero, the message types determine the lengths.
///
/// Reading and framing are two calls, so that each can be timed separately: [`ItchBlocks::fill`] reads,
/// [`ItchBlocks::block`] frames the read data. Memory is constant.
pub struct ItchBlocks<R> {
    window: Window<R>,
    lengths: Option<Lengths>,
    /// Number of bytes of the window that were framed into the last block; `fill` discards them.
    taken: usize,
    /// A read error that `fill` returns once it has delivered all messages before it.
    failure: Option<ReadError>,
    is_end_of_session: bool,
    is_finished: bool,
}

/// Consecutive messages of the file, which are adjacent in memory.
#[derive(Clone, Debug)]
pub struct ItchBlock<'a> {
    data: &'a [u8],
    offset: u64,
    /// The messages of the block, without their length fields.
    pub messages: Vec<&'a [u8]>,
}

impl ItchBlock<'_> {
    /// Offset of a message's length field in the uncompressed data.
    ///
    /// # Panics
    /// When the block has no message `index`.
    #[must_use]
    pub fn offset_of(&self, index: usize) -> u64 {
        let message = self.messages[index].as_ptr() as usize;
        self.offset + (message - self.data.as_ptr() as usize) as u64 - 2
    }
}

impl ItchBlocks<Input> {
    /// Creates a reader of an open file, whose format must be [`Format::Itch`](crate::Format::Itch).
    #[must_use]
    pub fn of(file: RecordingFile) -> Self {
        ItchBlocks::new(file.input)
    }
}

impl<R: Read> ItchBlocks<R> {
    /// Creates a reader of one file.
    pub fn new(reader: R) -> Self {
        ItchBlocks {
            window: Window::new(reader),
            lengths: None,
            taken: 0,
            failure: None,
            is_end_of_session: false,
            is_finished: false,
        }
    }

    /// True when the last [`ItchBlocks::fill`] has reached the end of the data.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.window.is_at_end()
    }

    /// Reads the next block; false at the end of the file or after the end-of-session marker.
    ///
    /// # Errors
    /// [`ReadError`]; all messages before it were delivered, and later calls return false.
    pub fn fill(&mut self) -> Result<bool, ReadError> {
        if self.is_finished {
            return Ok(false);
        }
        self.window.consume(std::mem::take(&mut self.taken));
        self.read();
        let outcome = self.outcome();
        self.is_finished = !matches!(outcome, Ok(true));
        outcome
    }

    /// Fills the window as far as possible, and records a read error.
    fn read(&mut self) {
        loop {
            match self.window.fill() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.failure = Some(error),
            }
        }
    }

    /// True when the window begins with a complete frame; false at the end of the file or the session.
    fn outcome(&mut self) -> Result<bool, ReadError> {
        let (data, offset) = (self.window.data(), self.window.offset());
        if self.is_end_of_session {
            let what = "a length of zero, which ends the session, with more data behind it,";
            return if data.is_empty() && self.failure.is_none() {
                Ok(false)
            } else {
                let error = ReadError::malformed(Position::Byte(offset.saturating_sub(2)), what);
                Err(self.window.damage_or(error, self.failure.take()))
            };
        }
        let lengths = match self.lengths {
            Some(lengths) => lengths,
            None => *self.lengths.insert(Lengths::detect(data)),
        };
        match next_frame(data, lengths) {
            Ok(Some(_)) => Ok(true),
            Err(error) => Err(self.window.damage_or(malformed(error, offset), self.failure.take())),
            Ok(None) => match self.failure.take() {
                Some(error) => Err(error.after(offset)),
                // With zero length fields, the end-of-session marker looks like an incomplete frame.
                None if matches!(data, [] | [0, 0]) => Ok(false),
                None => Err(ReadError::Truncated { offset }),
            },
        }
    }

    /// The messages read by the last [`ItchBlocks::fill`] that returned true. The block is empty if only an
    /// end-of-session marker was left.
    pub fn block(&mut self) -> ItchBlock<'_> {
        let lengths = self.lengths.unwrap_or_default();
        let (data, offset) = (self.window.data(), self.window.offset());
        let mut messages = Vec::with_capacity(data.len() / USUAL_FRAME_LEN);
        let mut taken = 0;
        loop {
            match next_frame(&data[taken..], lengths) {
                Ok(Some((Frame::Message(message), used))) => {
                    messages.push(message);
                    taken += used;
                }
                Ok(Some((Frame::EndOfSession, used))) => {
                    self.is_end_of_session = true;
                    taken += used;
                    break;
                }
                // The next fill keeps the data that was not framed.
                Ok(None) | Err(_) => break,
            }
        }
        self.taken = taken;
        ItchBlock { data, offset, messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(order_ref: u64) -> Vec<u8> {
        let mut frame = vec![0, 19, b'D', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        frame.extend(order_ref.to_be_bytes());
        frame
    }

    /// Offset and length of every message, and the result at the end of the file.
    fn read(data: &[u8]) -> (Vec<(u64, usize)>, Result<(), String>) {
        let mut blocks = ItchBlocks::new(data);
        let mut messages = Vec::new();
        loop {
            match blocks.fill() {
                Ok(true) => {
                    let block = blocks.block();
                    let offsets = (0..block.messages.len()).map(|index| block.offset_of(index));
                    messages.extend(offsets.zip(block.messages.iter().map(|message| message.len())));
                }
                Ok(false) => return (messages, Ok(())),
                Err(error) => {
                    assert!(!blocks.fill().unwrap(), "nothing comes after an error");
                    return (messages, Err(error.to_string()));
                }
            }
        }
    }

    #[test]
    fn blocks_have_every_message() {
        let count = 20_000;
        let data: Vec<u8> = (0..count).flat_map(delete).collect();
        let (messages, end) = read(&data);
        assert_eq!(end, Ok(()));
        assert_eq!(messages.len(), count as usize);
        assert!(messages.iter().enumerate().all(|(index, found)| *found == (index as u64 * 21, 19)));
    }

    #[test]
    fn every_cut_delivers_whole_messages_and_its_offset() {
        let data: Vec<u8> = (0..3).flat_map(delete).collect();
        for len in 1..data.len() {
            let (messages, end) = read(&data[..len]);
            assert_eq!(messages.len(), len / 21, "{len}");
            match len % 21 {
                0 => assert_eq!(end, Ok(())),
                _ => assert!(end.unwrap_err().contains(&format!("byte {}", len / 21 * 21)), "{len}"),
            }
        }
    }

    #[test]
    fn a_decompressor_that_ends_early_is_an_error_with_the_last_offset() {
        struct Cut<'a>(&'a [u8]);
        impl Read for Cut<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                match self.0.is_empty() {
                    true => Err(std::io::ErrorKind::UnexpectedEof.into()),
                    false => self.0.read(buffer),
                }
            }
        }
        let data: Vec<u8> = (0..3).flat_map(delete).collect();
        let mut blocks = ItchBlocks::new(Cut(&data[..50]));
        assert!(blocks.fill().unwrap());
        assert_eq!(blocks.block().messages.len(), 2);
        assert!(matches!(blocks.fill(), Err(ReadError::Truncated { offset: 42 })));
    }

    #[test]
    fn a_marker_ends_the_session_and_nothing_may_follow() {
        let ended = [delete(1), vec![0, 0]].concat();
        assert_eq!(read(&ended), (vec![(0, 19)], Ok(())));
        let (messages, end) = read(&[ended, delete(2)].concat());
        assert_eq!(messages.len(), 1);
        let error = end.unwrap_err();
        assert!(error.contains("ends the session") && error.contains("byte 21 "), "{error}");
    }

    #[test]
    fn zero_lengths_follow_from_the_type() {
        let mut data = delete(1);
        data[1] = 0;
        let two = [data.clone(), data.clone()].concat();
        assert_eq!(read(&two), (vec![(0, 19), (21, 19)], Ok(())));
        let (messages, end) = read(&[data, vec![0, 0, b'z']].concat());
        assert_eq!(messages.len(), 1);
        assert!(end.unwrap_err().contains("0x7a"));
    }
}

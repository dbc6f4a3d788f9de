//! A bounded window over the bytes of a reader.

use std::io::{self, Read};

use crate::{Position, ReadError};

/// Default capacity of a window in bytes; longer than any record of the formats that use it.
const WINDOW_LEN: usize = 128 * 1024;
/// Maximum bytes read ahead to find damage after an invalid record: about a second of decompression.
const AHEAD_LEN_MAX: u64 = 256 << 20;

/// Reads ahead into a fixed buffer, and tracks the buffer's offset in the data.
pub(crate) struct Window<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Offset of the buffer in the data.
    buffer_offset: u64,
    at_end: bool,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(reader: R) -> Self {
        Window::of_len(reader, WINDOW_LEN)
    }

    /// Creates a window over the data after its first `offset` bytes, which were read already.
    #[cfg(feature = "dbn")]
    pub(crate) fn starting_at(reader: R, offset: u64) -> Self {
        Window { buffer_offset: offset, ..Window::new(reader) }
    }

    /// Creates a window with a capacity of `len` bytes.
    pub(crate) fn of_len(reader: R, len: usize) -> Self {
        Window {
            reader,
            buffer: vec![0; len].into_boxed_slice(),
            start: 0,
            end: 0,
            buffer_offset: 0,
            at_end: false,
        }
    }

    /// The bytes that were read and not consumed yet.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Offset of [`Window::data`] in the whole data.
    #[inline]
    pub(crate) const fn offset(&self) -> u64 {
        self.buffer_offset + self.start as u64
    }

    /// True once the reader returned the end of the data or an error.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// Skips the first `len` bytes of [`Window::data`].
    #[inline]
    pub(crate) fn consume(&mut self, len: usize) {
        debug_assert!(len <= self.end - self.start);
        self.start += len;
    }

    /// Length of the next line without its newline, and true if it has a newline; `None` at the end of the
    /// data. `line` is the line's number for an error, `len_max` its maximum length in bytes.
    pub(crate) fn next_line(
        &mut self,
        line: u64,
        len_max: usize,
    ) -> Result<Option<(usize, bool)>, ReadError> {
        loop {
            let data = self.data();
            if let Some(len) = data.iter().take(len_max + 1).position(|byte| *byte == b'\n') {
                return Ok(Some((len, true)));
            }
            if data.len() > len_max {
                let what = format!("a line of more than {len_max} bytes");
                return Err(ReadError::malformed(Position::Line(line), what));
            }
            if !self.fill()? {
                let len = self.data().len();
                return Ok((len != 0).then_some((len, false)));
            }
        }
    }

    /// Returns [`ReadError::Damaged`] if the compressed data is damaged, otherwise `error`. `failure` is an
    /// earlier read error. Without it, reads ahead: a checksum at the end of the data shows the damage.
    pub(crate) fn damage_or(&mut self, error: ReadError, failure: Option<ReadError>) -> ReadError {
        let offset = self.offset();
        match failure.or_else(|| self.failure_ahead()) {
            Some(ReadError::Damaged { source, .. }) => ReadError::Damaged { offset, source },
            _ => error,
        }
    }

    /// Discards data up to the end or [`AHEAD_LEN_MAX`] bytes; returns the first read error, if any.
    fn failure_ahead(&mut self) -> Option<ReadError> {
        let mut left = AHEAD_LEN_MAX;
        while left > 0 && !self.at_end {
            self.consume(self.end - self.start);
            match self.fill() {
                Ok(true) => left = left.saturating_sub((self.end - self.start) as u64),
                Ok(false) => break,
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// Moves the unconsumed data to the start of the buffer, so that all free space is after it.
    pub(crate) fn compact(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.buffer_offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
    }

    /// Reads more data after the unconsumed data; false at the end of the data, and when the window is full.
    pub(crate) fn fill(&mut self) -> Result<bool, ReadError> {
        if self.at_end {
            return Ok(false);
        }
        if self.end == self.buffer.len() {
            self.compact();
        }
        if self.end == self.buffer.len() {
            return Ok(false);
        }
        match read_some(&mut self.reader, &mut self.buffer[self.end..]) {
            Ok(0) => {
                self.at_end = true;
                Ok(false)
            }
            Ok(len) => {
                self.end += len;
                Ok(true)
            }
            Err(error) => {
                self.at_end = true;
                // The offset is that of the incomplete record at the start of the window.
                Err(ReadError::of_io(error, self.offset()))
            }
        }
    }
}

/// Reads once; repeats a read that a signal interrupted.
pub(crate) fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

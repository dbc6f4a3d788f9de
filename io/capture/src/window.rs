//! A bounded window that moves over the bytes of a reader.

use std::io::{self, Read};

use crate::{Position, ReadError};

/// Capacity of a window in bytes; longer than any record of the formats that use it.
const WINDOW_LEN: usize = 128 * 1024;
/// Bytes searched for damage that explains an invalid record: about a second of decompressing.
const AHEAD_LEN_MAX: u64 = 256 << 20;

/// Reads ahead into a fixed buffer and tracks its position in the data.
pub(crate) struct Window<R> {
    reader: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes before the buffer.
    buffer_offset: u64,
    at_end: bool,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(reader: R) -> Self {
        Window::of_len(reader, WINDOW_LEN)
    }

    /// A window over the data after its first `offset` bytes, which were read already.
    pub(crate) fn starting_at(reader: R, offset: u64) -> Self {
        Window { buffer_offset: offset, ..Window::new(reader) }
    }

    /// A window with a capacity of `len` bytes.
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

    /// The bytes read and not yet consumed.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Offset of [`Window::data`] in the data.
    #[inline]
    pub(crate) const fn offset(&self) -> u64 {
        self.buffer_offset + self.start as u64
    }

    /// True once the reader has no more data.
    pub(crate) const fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// Skips the first `len` bytes of [`Window::data`].
    #[inline]
    pub(crate) fn consume(&mut self, len: usize) {
        debug_assert!(len <= self.end - self.start);
        self.start += len;
    }

    /// The length of the next line without its end, and whether it has one; its number is `line`, and its
    /// maximum length `len_max` bytes.
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

    /// The cause of an error at the start of the window: damage that the decompressor has found, or finds
    /// later, as its checksum comes last; otherwise the error itself.
    pub(crate) fn damage_or(&mut self, error: ReadError, failure: Option<ReadError>) -> ReadError {
        let offset = self.offset();
        match failure.or_else(|| self.failure_ahead()) {
            Some(ReadError::Damaged { source, .. }) => ReadError::Damaged { offset, source },
            _ => error,
        }
    }

    /// Reads and discards further data; returns the read error, if any, before the end or [`AHEAD_LEN_MAX`].
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

    /// Moves all free space after the unconsumed data, when little is left.
    pub(crate) fn compact(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.buffer_offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
    }

    /// Reads more after the unconsumed data: false at the end of the data and when the window is full.
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
                // A compressed stream that ends too early leaves the record that starts here incomplete.
                Err(ReadError::of_io(error, self.offset()))
            }
        }
    }
}

/// One read, restarted after signals.
pub(crate) fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

//! Buffer of bytes to send.

use crate::error::WriteError;

/// A bounded queue of contiguous bytes.
#[derive(Clone, Debug)]
pub(super) struct Output {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Output {
    pub(super) fn new(len: usize) -> Output {
        Output { buffer: vec![0; len].into_boxed_slice(), start: 0, end: 0 }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// True if `len` bytes can be appended now.
    #[inline]
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.end - self.start + len <= self.buffer.len()
    }

    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Appends the output of `write` and returns it; `reserve` bytes stay free.
    #[inline]
    pub(super) fn append(
        &mut self,
        reserve: usize,
        write: impl Fn(&mut [u8]) -> Result<usize, WriteError>,
    ) -> Result<&[u8], WriteError> {
        let end_max = self.buffer.len().saturating_sub(reserve);
        let mut written = write(&mut self.buffer[self.end..end_max.max(self.end)]);
        if matches!(written, Err(WriteError::BufferTooShort { .. })) && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            written = write(&mut self.buffer[self.end..end_max.max(self.end)]);
        }
        let len = written?;
        self.end += len;
        Ok(&self.buffer[self.end - len..self.end])
    }
}

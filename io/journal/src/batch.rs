//! Batches of encoded records that are to be written to the disk.

use tickpath_types::Sequence;

use crate::format::HEADER_LEN;

/// Records of one segment, optionally followed by the header and the first records of the next.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The buffer, of fixed length. The first `len` bytes are in use.
    bytes: Vec<u8>,
    len: usize,
    /// Offset of the batch in the file of its first segment.
    offset: u64,
    last: Sequence,
    /// Offset in the batch where the next segment begins, and the sequence of the last record before it.
    boundary: Option<(usize, Sequence)>,
}

/// The part of a batch that goes to one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) last: Sequence,
}

impl Batch {
    pub(crate) fn new(capacity: usize) -> Batch {
        // Touch the memory, so that the first records cause no page faults.
        let bytes = (0..capacity).map(|_| std::hint::black_box(0)).collect();
        Batch { bytes, len: 0, offset: 0, last: Sequence(0), boundary: None }
    }

    /// Empties the batch. The next record follows sequence `last` and begins at `offset` in its file.
    pub(crate) fn clear(&mut self, offset: u64, last: Sequence) {
        (self.len, self.offset, self.last, self.boundary) = (0, offset, last, None);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the next `len` unused bytes of the buffer, if it has that many.
    #[inline]
    pub(crate) fn free_bytes(&mut self, len: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.len..self.len + len)
    }

    /// Adds the next `len` bytes to the batch as a record.
    #[inline]
    pub(crate) fn commit(&mut self, len: usize, sequence: Sequence) {
        self.len += len;
        self.last = sequence;
    }

    pub(crate) fn begins_segment(&self) -> bool {
        self.boundary.is_some()
    }

    /// Begins the next segment with this header. The batch must have capacity for it.
    pub(crate) fn begin_segment(&mut self, header: &[u8; HEADER_LEN]) {
        self.boundary = Some((self.len, self.last));
        self.bytes[self.len..self.len + HEADER_LEN].copy_from_slice(header);
        self.len += HEADER_LEN;
    }

    /// Returns the part for the file of the batch's first segment.
    pub(crate) fn before_segment(&self) -> Part<'_> {
        let (to, last) = self.boundary.unwrap_or((self.len, self.last));
        Part { bytes: &self.bytes[..to], offset: self.offset, last }
    }

    /// Returns the end of the batch as an offset in the file of its last segment.
    pub(crate) fn end(&self) -> u64 {
        let part = self.after_segment().unwrap_or_else(|| self.before_segment());
        part.offset + part.bytes.len() as u64
    }

    /// Returns the part for the next segment's file, if any.
    pub(crate) fn after_segment(&self) -> Option<Part<'_>> {
        let (from, _) = self.boundary?;
        Some(Part { bytes: &self.bytes[from..self.len], offset: 0, last: self.last })
    }
}

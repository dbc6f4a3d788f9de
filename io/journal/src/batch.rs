//! Records on their way to the disk, in the bytes that they will have there.

use tickpath_types::Sequence;

use crate::format::HEADER_LEN;

/// Records of one segment and then, perhaps, the header and the first records of the next.
#[derive(Debug)]
pub(crate) struct Batch {
    /// As long as it may become, from the start.
    bytes: Vec<u8>,
    len: usize,
    /// Where in the segment's file it begins.
    offset: u64,
    last: Sequence,
    /// Where the next segment begins, and the last record before.
    boundary: Option<(usize, Sequence)>,
}

/// What of a batch goes to one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) last: Sequence,
}

impl Batch {
    pub(crate) fn new(capacity: usize) -> Batch {
        // Touched, so that no page fault comes with the first records.
        let bytes = (0..capacity).map(|_| std::hint::black_box(0)).collect();
        Batch { bytes, len: 0, offset: 0, last: Sequence(0), boundary: None }
    }

    /// Empties it for records at `offset` that follow `last`.
    pub(crate) fn clear(&mut self, offset: u64, last: Sequence) {
        (self.len, self.offset, self.last, self.boundary) = (0, offset, last, None);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next `len` bytes, if there are as many.
    #[inline]
    pub(crate) fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.len..self.len + len)
    }

    /// Makes a record of the next `len` bytes.
    #[inline]
    pub(crate) fn take_up(&mut self, len: usize, sequence: Sequence) {
        self.len += len;
        self.last = sequence;
    }

    pub(crate) fn begins_segment(&self) -> bool {
        self.boundary.is_some()
    }

    /// What follows belongs to the next segment, of which this is the header. There must be room.
    pub(crate) fn begin_segment(&mut self, header: &[u8; HEADER_LEN]) {
        self.boundary = Some((self.len, self.last));
        self.bytes[self.len..self.len + HEADER_LEN].copy_from_slice(header);
        self.len += HEADER_LEN;
    }

    /// What goes to the file of the segment that it begins in.
    pub(crate) fn before_segment(&self) -> Part<'_> {
        let (to, last) = self.boundary.unwrap_or((self.len, self.last));
        Part { bytes: &self.bytes[..to], offset: self.offset, last }
    }

    /// Where in the file of its last segment it ends.
    pub(crate) fn end(&self) -> u64 {
        let part = self.after_segment().unwrap_or_else(|| self.before_segment());
        part.offset + part.bytes.len() as u64
    }

    /// What goes to the next file, if it goes on there.
    pub(crate) fn after_segment(&self) -> Option<Part<'_>> {
        let (from, _) = self.boundary?;
        Some(Part { bytes: &self.bytes[from..self.len], offset: 0, last: self.last })
    }
}

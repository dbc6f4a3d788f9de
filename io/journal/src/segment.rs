//! Segment files: names, creation of empty ones, and reading.

use std::io;
use std::ops::Range;

use tickpath_types::Sequence;

use crate::format::{HEADER_LEN, Layout, Parsed, RECORD_LEN_MAX, SegmentHeader};
use crate::{HeaderDamage, JournalConfig, OpenError, RecordDamage, SessionName, Storage, StorageFile};

/// Temporary name of a segment, until the segment is in use and gets its final name.
pub(crate) const PREPARED: &str = "prepared.segment";
/// Minimum number of bytes that a [`SegmentReader`] requests from the file at a time.
const READ_LEN: usize = 64 * 1024;

/// Returns the name of the segment that begins with this sequence.
pub(crate) fn segment_name(first: Sequence) -> String {
    format!("{:020}.journal", first.0)
}

/// Returns the first sequence of each named segment, ascending.
pub(crate) fn list_segments(storage: &impl Storage) -> Result<Vec<Sequence>, OpenError> {
    list_numbered(storage, "", ".journal")
}

/// Returns the numbers of the files whose names are `prefix`, 20 digits and `suffix`, ascending.
pub(crate) fn list_numbered(
    storage: &impl Storage,
    prefix: &str,
    suffix: &str,
) -> Result<Vec<Sequence>, OpenError> {
    let number = |name: &String| {
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number).map(Sequence)
    };
    let names = storage.list().map_err(OpenError::io("the folder"))?;
    let mut sequences: Vec<Sequence> = names.iter().filter_map(number).collect();
    sequences.sort_unstable();
    Ok(sequences)
}

/// Creates and names an empty segment of `len` bytes, whose header reports everything up to `last` as on the
/// disk.
pub(crate) fn create_empty<S: Storage>(
    storage: &S,
    session: SessionName,
    config: &JournalConfig,
    last: Sequence,
    len: u64,
) -> io::Result<(S::File, Layout)> {
    let header = SegmentHeader {
        version: 2,
        session,
        policy: config.policy,
        first_sequence: last.next(),
        synced: last,
        segment_len: config.segment_len,
    };
    let mut bytes = [0; HEADER_LEN];
    let layout = header.encode(&mut bytes);
    let mut file = storage.create(PREPARED)?;
    file.allocate(len)?;
    file.write_all_at(&bytes, 0)?;
    file.sync()?;
    storage.rename(PREPARED, &segment_name(header.first_sequence))?;
    storage.sync_names()?;
    Ok((file, layout))
}

/// A record read from a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadRecord {
    pub(crate) synced: Sequence,
    /// Position of the payload, for [`SegmentReader::payload`].
    pub(crate) payload: Range<usize>,
}

/// The next item in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Record(ReadRecord),
    /// No more records: zeroes, or the end of the file at a record boundary.
    End,
    Damaged(RecordDamage),
}

/// Reads a segment in large blocks.
#[derive(Debug)]
pub(crate) struct SegmentReader<F> {
    file: F,
    pub(crate) header: SegmentHeader,
    layout: Layout,
    buffer: Vec<u8>,
    /// Part of the buffer that was read from the file and not yet consumed.
    filled: Range<usize>,
    /// File offset of the first byte of `filled`.
    offset: u64,
}

impl<F: StorageFile> SegmentReader<F> {
    /// Creates a reader and reads the segment's header. The inner result holds the header's damage.
    pub(crate) fn new(file: F) -> io::Result<Result<SegmentReader<F>, HeaderDamage>> {
        let mut bytes = [0; HEADER_LEN];
        let len = file.read_start(&mut bytes)?;
        Ok(SegmentHeader::decode(&bytes[..len]).map(|(header, layout)| {
            let offset = layout.header_len as u64;
            SegmentReader { file, header, layout, buffer: Vec::new(), filled: 0..0, offset }
        }))
    }

    /// Returns the offset of the next record.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next record if it is buffered, valid and of sequence `expected`.
    #[inline(always)]
    pub(crate) fn take(&mut self, expected: Sequence) -> Option<ReadRecord> {
        let start = self.filled.start;
        let record = self.layout.record(self.buffer.get(self.filled.clone())?)?;
        if record.sequence != expected {
            return None;
        }
        self.filled.start += record.len;
        self.offset += record.len as u64;
        let payload = start + record.payload_from..start + record.payload_to;
        Some(ReadRecord { synced: record.synced, payload })
    }

    /// Returns the next record if its sequence is `expected`; otherwise the end of the records, or damage.
    pub(crate) fn step(&mut self, expected: Sequence) -> io::Result<Step> {
        loop {
            if let Some(record) = self.take(expected) {
                return Ok(Step::Record(record));
            }
            match self.layout.parse(&self.buffer[self.filled.clone()]) {
                Parsed::Record(record) => {
                    return Ok(Step::Damaged(RecordDamage::Sequence { found: record.sequence }));
                }
                Parsed::End => return Ok(Step::End),
                Parsed::Damaged(damage) => return Ok(Step::Damaged(damage)),
                Parsed::Short(needed) => {
                    if !self.fill(needed)? {
                        let is_end = self.filled.is_empty();
                        return Ok(if is_end { Step::End } else { Step::Damaged(RecordDamage::Cut) });
                    }
                }
            }
        }
    }

    /// Returns the payload at the position in a [`ReadRecord`]. Valid until the next `take` or `step`.
    #[inline(always)]
    pub(crate) fn payload(&self, payload: Range<usize>) -> &[u8] {
        &self.buffer[payload]
    }

    /// Continues at a file offset. Drops buffered data, because more may have been written since.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.filled = 0..0;
        self.offset = offset;
    }

    /// Frees the buffer until it is needed again.
    pub(crate) fn free_buffer(&mut self) {
        self.filled = 0..0;
        self.buffer = Vec::new();
    }

    /// Reads until the buffer holds `needed` bytes; false when the file ends before.
    #[cold]
    fn fill(&mut self, needed: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        if self.buffer.is_empty() {
            self.buffer = vec![0; READ_LEN + RECORD_LEN_MAX];
        }
        while self.filled.len() < needed {
            let at = self.offset + self.filled.len() as u64;
            match self.file.read_at(&mut self.buffer[self.filled.end..], at)? {
                0 => return Ok(false),
                more => self.filled.end += more,
            }
        }
        Ok(true)
    }

    /// Reads all data from the next record's position to the end of the file, and returns a summary of it.
    pub(crate) fn survey(&mut self) -> io::Result<Remains> {
        let mut remains = Remains { is_zero: true, ..Remains::default() };
        loop {
            if self.filled.len() < RECORD_LEN_MAX {
                self.fill(RECORD_LEN_MAX)?;
            }
            let bytes = &self.buffer[self.filled.clone()];
            if bytes.is_empty() {
                return Ok(remains);
            }
            let step = match self.layout.parse(bytes) {
                Parsed::Record(record) if record.sequence >= self.header.first_sequence => {
                    remains.records += 1;
                    remains.synced = remains.synced.max(record.synced);
                    remains.is_zero = false;
                    record.len
                }
                Parsed::End => {
                    let zeroes = bytes.chunks_exact(64).take_while(|chunk| **chunk == [0; 64]).count();
                    (64 * zeroes).max(8)
                }
                _ => {
                    remains.is_zero &= bytes.iter().take(8).all(|byte| *byte == 0);
                    8
                }
            };
            let step = step.min(bytes.len());
            self.filled.start += step;
            self.offset += step as u64;
        }
    }
}

/// Summary of the data from a position in a segment to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// True when all bytes are zero.
    pub(crate) is_zero: bool,
    /// Number of complete records.
    pub(crate) records: u64,
    /// Highest sequence that one of these records reports as synced.
    pub(crate) synced: Sequence,
}

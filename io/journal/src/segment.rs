//! Segments as files: their names, making one without records, and reading one from its start.

use std::io;
use std::ops::Range;

use tickpath_types::Sequence;

use crate::format::{HEADER_LEN, Layout, Parsed, RECORD_LEN_MAX, SegmentHeader};
use crate::{HeaderDamage, JournalConfig, OpenError, RecordDamage, SessionName, Storage, StorageFile};

/// A segment that is ready and has not begun, or has begun and not got its name yet.
pub(crate) const PREPARED: &str = "prepared.segment";
/// Bytes read at once.
const READ_LEN: usize = 512 * 1024;

/// Name of the segment that begins with this sequence.
pub(crate) fn segment_name(first: Sequence) -> String {
    format!("{:020}.journal", first.0)
}

/// First sequences of all segments that have a name, ascending.
pub(crate) fn list_segments(storage: &impl Storage) -> Result<Vec<Sequence>, OpenError> {
    list_numbered(storage, "", ".journal")
}

/// The numbers of the files that are named by one of 20 digits between `prefix` and `suffix`, ascending.
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

/// Makes and names a segment of `len` bytes without records, whose header says that everything up to `last` is on the
/// disk.
pub(crate) fn name_empty<S: Storage>(
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

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenRecord {
    pub(crate) synced: Sequence,
    /// Where its payload is, for [`SegmentReader::payload`].
    pub(crate) payload: Range<usize>,
}

/// What comes next in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Record(TakenRecord),
    /// Zeroes, or the end of the file between two records.
    End,
    Damaged(RecordDamage),
}

/// Reads a segment in large pieces.
#[derive(Debug)]
pub(crate) struct SegmentReader<F> {
    file: F,
    pub(crate) header: SegmentHeader,
    layout: Layout,
    buffer: Vec<u8>,
    /// What of the buffer is read from the file and not yet taken.
    filled: Range<usize>,
    /// Where the first byte of `filled` is in the file.
    offset: u64,
}

impl<F: StorageFile> SegmentReader<F> {
    /// Reads the header; what is wrong with it is in the inner result.
    pub(crate) fn new(file: F) -> io::Result<Result<SegmentReader<F>, HeaderDamage>> {
        let mut bytes = [0; HEADER_LEN];
        let len = file.read_start(&mut bytes)?;
        Ok(SegmentHeader::decode(&bytes[..len]).map(|(header, layout)| {
            let offset = layout.header_len as u64;
            SegmentReader { file, header, layout, buffer: Vec::new(), filled: 0..0, offset }
        }))
    }

    /// Where the next record begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The record that must have this sequence, if it is read already, and good.
    #[inline]
    pub(crate) fn take(&mut self, expected: Sequence) -> Option<TakenRecord> {
        let start = self.filled.start;
        let record = self.layout.record(self.buffer.get(self.filled.clone())?)?;
        if record.sequence != expected {
            return None;
        }
        self.filled.start += record.len;
        self.offset += record.len as u64;
        let payload = start + record.payload_from..start + record.payload_to;
        Some(TakenRecord { synced: record.synced, payload })
    }

    /// The record that must have this sequence, or what stands in its place.
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

    /// The payload that a step told of, before the next step.
    #[inline]
    pub(crate) fn payload(&self, payload: Range<usize>) -> &[u8] {
        &self.buffer[payload]
    }

    /// Continues at a place of the file and drops what was read ahead: more may have been written since.
    pub(crate) fn seek(&mut self, offset: u64) {
        self.filled = 0..0;
        self.offset = offset;
    }

    /// Gives its memory back until it is needed again.
    pub(crate) fn rest(&mut self) {
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

    /// Looks at everything from the next record's place on, whatever stands there.
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

/// What is left in a segment after its last good record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// Nothing but zeroes.
    pub(crate) is_zero: bool,
    /// Records that are whole.
    pub(crate) records: u64,
    /// The highest sequence that one of them calls safe.
    pub(crate) synced: Sequence,
}

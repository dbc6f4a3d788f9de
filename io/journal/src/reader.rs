//! A reader of a log that may still be written.

use tickpath_types::Sequence;

use crate::segment::{ReadRecord, SegmentReader, Step, list_segments, segment_name};
use crate::{OpenError, RecordDamage, SessionName, Storage};

/// A record read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Sequence in the log.
    pub sequence: Sequence,
    /// The appended payload.
    pub payload: &'a [u8],
}

/// Reads the records of a log in order, from any sequence.
///
/// The caller passes a limit: the end that [`open`](crate::open) or [`inspect`](crate::inspect) found, or the
/// [durable](crate::DurableView) end of a journal that is still written. Any invalid record up to this limit
/// is damage.
#[derive(Debug)]
pub struct Reader<S: Storage> {
    storage: S,
    session: SessionName,
    segment: SegmentReader<S::File>,
    file: String,
    next: Sequence,
}

impl<S: Storage> Reader<S> {
    /// Opens a reader whose first record is `from`.
    ///
    /// # Errors
    /// [`OpenError`] when the log begins after `from`, ends more than one record before it, has another
    /// session, or cannot be read.
    pub fn open(storage: &S, session: SessionName, from: Sequence) -> Result<Reader<S>, OpenError> {
        let firsts = list_segments(storage)?;
        let Some(place) = firsts.partition_point(|first| *first <= from).checked_sub(1) else {
            let first = firsts.first().copied().unwrap_or(Sequence(0));
            let last = Sequence(first.0.saturating_sub(1));
            return Err(OpenError::OutOfRange { sequence: from, first, last });
        };
        let next = firsts[place];
        let (file, segment) = open_segment(storage, session, next)?;
        let mut reader = Reader { storage: storage.clone(), session, segment, file, next };
        while reader.next < from {
            if reader.next(Sequence(from.0 - 1))?.is_none() {
                let (first, last) = (firsts[0], Sequence(reader.next.0 - 1));
                return Err(OpenError::OutOfRange { sequence: from, first, last });
            }
        }
        Ok(reader)
    }

    /// Returns the next record if its sequence is at most `limit`; else `None`. Also returns `None` while
    /// the record's segment does not have its final name yet.
    ///
    /// # Errors
    /// [`OpenError`] when the record is damaged, or the file cannot be read.
    #[inline(always)]
    pub fn next(&mut self, limit: Sequence) -> Result<Option<Record<'_>>, OpenError> {
        if self.next > limit {
            return Ok(None);
        }
        let taken = match self.segment.take(self.next) {
            Some(taken) => Some(taken),
            None => self.find()?,
        };
        let Some(ReadRecord { payload, .. }) = taken else { return Ok(None) };
        let sequence = self.next;
        self.next = sequence.next();
        Ok(Some(Record { sequence, payload: self.segment.payload(payload) }))
    }

    /// Finds the next record when it is not in the buffer: reads more, or opens the next segment.
    #[cold]
    fn find(&mut self) -> Result<Option<ReadRecord>, OpenError> {
        let mut is_fresh = false;
        loop {
            match self.segment.step(self.next) {
                Ok(Step::Record(record)) => return Ok(Some(record)),
                // The buffer may have been filled before the records up to `limit` were written: read again.
                Ok(Step::End | Step::Damaged(_)) if !is_fresh => {
                    self.segment.seek(self.segment.offset());
                    is_fresh = true;
                }
                Ok(Step::End) => {
                    if !self.open_next()? {
                        return Ok(None);
                    }
                }
                Ok(Step::Damaged(damage)) => return Err(self.damaged(damage)),
                Err(source) => return Err(OpenError::Io { file: self.file.clone(), source }),
            }
        }
    }

    /// Returns the sequence of the next record.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// Returns the file name of the segment being read.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Opens the segment that begins with the next record; false when there is none.
    #[cold]
    fn open_next(&mut self) -> Result<bool, OpenError> {
        if self.segment.header.first_sequence == self.next {
            return Ok(false);
        }
        let firsts = list_segments(&self.storage)?;
        match firsts.iter().find(|first| **first >= self.next) {
            None => Ok(false),
            Some(first) if *first > self.next => Err(self.damaged(RecordDamage::Missing)),
            Some(first) => {
                (self.file, self.segment) = open_segment(&self.storage, self.session, *first)?;
                Ok(true)
            }
        }
    }

    #[cold]
    fn damaged(&self, damage: RecordDamage) -> OpenError {
        let (file, offset) = (self.file.clone(), self.segment.offset());
        OpenError::Record { file, offset, sequence: self.next, damage }
    }
}

fn open_segment<S: Storage>(
    storage: &S,
    expected: SessionName,
    first: Sequence,
) -> Result<(String, SegmentReader<S::File>), OpenError> {
    let name = segment_name(first);
    let file = storage.open(&name).map_err(OpenError::io(&name))?;
    let reader = match SegmentReader::new(file).map_err(OpenError::io(&name))? {
        Ok(reader) => reader,
        Err(damage) => return Err(OpenError::Header { file: name, damage }),
    };
    match reader.header.session {
        found if found == expected => Ok((name, reader)),
        found => Err(OpenError::Session { file: name, found, expected }),
    }
}

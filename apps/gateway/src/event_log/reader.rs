//! Reading a log, also one that is written just now or whose end is torn.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use tickpath_lockfree::crc32c;

use super::format::{
    FILE_HEADER_LEN, FileHeader, HeaderError, RECORD_HEADER_LEN, Record, RecordHeader, RecordKind, record_len,
};

/// Bytes of a payload that are asked for at once: a length that lies costs no more memory than there are bytes.
const CHUNK: usize = 1 << 20;

/// A log that cannot be read, or not on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The system's answer.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The beginning is none of a log.
    #[error("{}: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: HeaderError,
    },
    /// The file is shorter than a log's beginning.
    #[error("{}: it is no log of a gateway, or was cut off at its very beginning", path.display())]
    Short {
        /// The file.
        path: PathBuf,
    },
    /// A record in the middle does not have the bytes that were written: what is behind it is not read.
    #[error("{}: the record at byte {offset} is damaged: nothing behind it can be trusted", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
    },
}

/// How the records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Not yet reached.
    Unread,
    /// The run ended in order.
    Ended,
    /// The run goes on in another file.
    Continued,
    /// With a whole record: the gateway still runs, or it was killed.
    Open,
    /// In the middle of a record, which was being written when the gateway was killed or the power lost.
    Torn {
        /// Where the record begins.
        offset: u64,
        /// Bytes from there to the file's end.
        bytes: u64,
    },
}

/// Reads the records of a file, one after the other.
#[derive(Debug)]
pub struct LogReader<R> {
    source: R,
    path: PathBuf,
    header: FileHeader,
    offset: u64,
    /// The record read last, as it lies in the file.
    record: Vec<u8>,
    /// Number that the next record should have.
    next: u64,
    missing: u64,
    tail: Tail,
}

impl LogReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`LogError`] when it is no log.
    pub fn open(path: &Path) -> Result<LogReader<BufReader<File>>, LogError> {
        let file = File::open(path).map_err(|source| LogError::Read { path: path.to_owned(), source })?;
        LogReader::new(BufReader::with_capacity(CHUNK, file), path)
    }
}

impl<R: Read> LogReader<R> {
    /// Reads `source`, naming it `path` in errors.
    ///
    /// # Errors
    /// [`LogError`] when it is no log.
    pub fn new(mut source: R, path: &Path) -> Result<LogReader<R>, LogError> {
        let mut bytes = [0; FILE_HEADER_LEN];
        let len = read_up_to(&mut source, &mut bytes)
            .map_err(|source| LogError::Read { path: path.to_owned(), source })?;
        if len < bytes.len() {
            return Err(LogError::Short { path: path.to_owned() });
        }
        let header =
            FileHeader::read(&bytes).map_err(|source| LogError::Header { path: path.to_owned(), source })?;
        Ok(LogReader {
            source,
            path: path.to_owned(),
            next: header.sequence,
            header,
            offset: FILE_HEADER_LEN as u64,
            record: Vec::new(),
            missing: 0,
            tail: Tail::Unread,
        })
    }

    /// What stands at the beginning of the file.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// How the records end, once [`next`](Self::next) gave none.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Records that are missing before the one read last: the ring or the disk was full.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The next record; `None` at the end, of which [`tail`](Self::tail) says what it is.
    ///
    /// # Errors
    /// [`LogError::Damaged`] when there is a record and its bytes are not those that were written.
    #[allow(clippy::should_implement_trait, reason = "a record borrows the reader")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, LogError> {
        if self.tail != Tail::Unread {
            return Ok(None);
        }
        self.record.clear();
        let found = self.read_on(RECORD_HEADER_LEN)?;
        let Some(head) = self.record.first_chunk() else {
            self.tail = if found == 0 { Tail::Open } else { self.torn(found) };
            return Ok(None);
        };
        let Some((checksum, payload_len, header)) = RecordHeader::read(head) else {
            return self.damaged_or_torn();
        };
        let len = record_len(payload_len);
        let found = self.read_on(len)?;
        if found < len {
            // A length that was damaged may reach beyond the file's end; what was being written last has nothing behind it.
            if self.has_record_within() {
                return Err(LogError::Damaged { path: self.path.clone(), offset: self.offset });
            }
            self.tail = self.torn(found);
            return Ok(None);
        }
        let (record, padding) = self.record.split_at(RECORD_HEADER_LEN + payload_len);
        if checksum != crc32c::checksum(&record[4..]) || padding.iter().any(|byte| *byte != 0) {
            return self.damaged_or_torn();
        }
        self.offset += len as u64;
        self.take_note(&header);
        let RecordHeader { kind, origin, sequence, time, origin_time } = header;
        let payload = &self.record[RECORD_HEADER_LEN..RECORD_HEADER_LEN + payload_len];
        Ok(Some(Record { kind, origin, sequence, time, origin_time, payload }))
    }

    fn take_note(&mut self, header: &RecordHeader) {
        self.missing += header.sequence.saturating_sub(self.next);
        self.next = self.next.max(header.sequence.saturating_add(u64::from(header.kind.is_numbered())));
        match header.kind {
            RecordKind::End => self.tail = Tail::Ended,
            RecordKind::Continued => self.tail = Tail::Continued,
            _ => {}
        }
    }

    /// Whether a whole record of this file, later than those read, lies in the bytes of the one that is being read.
    fn has_record_within(&self) -> bool {
        let is_record = |bytes: &[u8]| {
            let Some((checksum, len, header)) = bytes.first_chunk().and_then(RecordHeader::read) else {
                return false;
            };
            let end = RECORD_HEADER_LEN + len;
            header.sequence >= self.next && bytes.len() >= end && checksum == crc32c::checksum(&bytes[4..end])
        };
        // Records begin at whole words.
        (RECORD_HEADER_LEN..self.record.len()).step_by(8).any(|at| is_record(&self.record[at..]))
    }

    fn torn(&self, bytes: usize) -> Tail {
        Tail::Torn { offset: self.offset, bytes: bytes as u64 }
    }

    /// A bad record that is the last one was being written, or was not on the disk when the power was lost: then nothing or
    /// zeros are behind it. One that others follow was whole once.
    fn damaged_or_torn(&mut self) -> Result<Option<Record<'_>>, LogError> {
        let mut bytes = self.record.len();
        let mut chunk = vec![0; CHUNK];
        loop {
            let len = read_up_to(&mut self.source, &mut chunk)
                .map_err(|source| LogError::Read { path: self.path.clone(), source })?;
            if chunk[..len].iter().any(|byte| *byte != 0) {
                return Err(LogError::Damaged { path: self.path.clone(), offset: self.offset });
            }
            bytes += len;
            if len < chunk.len() {
                self.tail = self.torn(bytes);
                return Ok(None);
            }
        }
    }

    /// Reads on until `len` bytes of the record are there, or as many as there are; how many.
    fn read_on(&mut self, len: usize) -> Result<usize, LogError> {
        while self.record.len() < len {
            let start = self.record.len();
            self.record.resize(start + (len - start).min(CHUNK), 0);
            let wanted = self.record.len() - start;
            let found = read_up_to(&mut self.source, &mut self.record[start..])
                .map_err(|source| LogError::Read { path: self.path.clone(), source })?;
            if found < wanted {
                self.record.truncate(start + found);
                break;
            }
        }
        Ok(self.record.len())
    }
}

/// Reads until `bytes` is full or the source ends; how many.
fn read_up_to(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match source.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests;

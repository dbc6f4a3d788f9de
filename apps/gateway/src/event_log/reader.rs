//! Reader of a log, even of one that is still being written or has a torn end.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use tickpath_lockfree::crc32c;

use super::format::{
    FILE_HEADER_LEN, FileHeader, HeaderError, RECORD_HEADER_LEN, Record, RecordHeader, RecordKind, record_len,
};

/// Bytes of a payload read at once: a corrupt length then allocates no more memory than the file has bytes.
const CHUNK: usize = 1 << 20;

/// A log cannot be read, or not beyond some point.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The system's error.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not start with a valid log header.
    #[error("{}: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The defect.
        source: HeaderError,
    },
    /// The file is shorter than a log's header.
    #[error("{}: it is no log of a gateway, or was cut off at its very beginning", path.display())]
    Short {
        /// The file.
        path: PathBuf,
    },
    /// A record in the middle does not match its checksum; nothing after it is read.
    #[error("{}: the record at byte {offset} is damaged: nothing behind it can be trusted", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the record in bytes.
        offset: u64,
    },
}

/// End of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Not yet reached.
    Unread,
    /// The run ended in order.
    Ended,
    /// The run continues in another file.
    Continued,
    /// A whole record: the gateway still runs, or it was killed.
    Open,
    /// A partial record, which was being written when the gateway was killed or the power failed.
    Torn {
        /// Offset of the record in bytes.
        offset: u64,
        /// Number of bytes from there to the end of the file.
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
    /// Bytes of the record read last.
    record: Vec<u8>,
    /// Expected sequence number of the next record.
    next: u64,
    missing: u64,
    tail: Tail,
}

impl LogReader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`LogError`] if it is not a log.
    pub fn open(path: &Path) -> Result<LogReader<BufReader<File>>, LogError> {
        let file = File::open(path).map_err(|source| LogError::Read { path: path.to_owned(), source })?;
        LogReader::new(BufReader::with_capacity(CHUNK, file), path)
    }
}

impl<R: Read> LogReader<R> {
    /// Opens `source`; errors name it `path`.
    ///
    /// # Errors
    /// [`LogError`] if it is not a log.
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

    /// The file header.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// End of the records, once [`next`](Self::next) has returned `None`.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Number of missing records before the one read last: the ring or the disk was full.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Returns the next record; `None` at the end, which [`tail`](Self::tail) describes.
    ///
    /// # Errors
    /// [`LogError::Damaged`] when a record does not match its checksum.
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
            // A corrupt length may reach beyond the file's end; a torn record has no record after it.
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

    /// Whether the bytes of the current record contain a whole later record of this file.
    fn has_record_within(&self) -> bool {
        let is_record = |bytes: &[u8]| {
            let Some((checksum, len, header)) = bytes.first_chunk().and_then(RecordHeader::read) else {
                return false;
            };
            let end = RECORD_HEADER_LEN + len;
            header.sequence >= self.next && bytes.len() >= end && checksum == crc32c::checksum(&bytes[4..end])
        };
        // Records start at multiples of 8 bytes.
        (RECORD_HEADER_LEN..self.record.len()).step_by(8).any(|at| is_record(&self.record[at..]))
    }

    fn torn(&self, bytes: usize) -> Tail {
        Tail::Torn { offset: self.offset, bytes: bytes as u64 }
    }

    /// Classifies a bad record. With nothing or only zeros after it, it is torn: it was being written, or was
    /// not on disk when the power failed. With other bytes after it, it is damaged: it was whole once.
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

    /// Reads until the record has `len` bytes or the source ends; returns the record's length.
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

/// Reads until `bytes` is full or the source ends; returns the number of bytes.
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

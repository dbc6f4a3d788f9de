//! The layout of a snapshot: little-endian fields one after the other between a header and a digest.

use tickpath_types::InstrumentId;
use xxhash_rust::xxh3::xxh3_64;

use crate::EngineError;
use crate::codec::orders::SNAPSHOT_VERSION as VERSION;
use crate::codec::{CodecError, Field, FieldReader, FieldWriter};

/// First bytes of a snapshot.
const MAGIC: [u8; 8] = *b"TPENGINE";
/// Lengths in bytes of the header (magic and version) and of the digest after the fields.
const HEADER_LEN: usize = MAGIC.len() + 4;
const DIGEST_LEN: usize = 8;

/// An engine cannot be restored from these bytes; use an older snapshot, or the log from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes are not an engine's snapshot, or were truncated or changed since they were written.
    #[error("these {0} bytes are not an engine's snapshot, or they are damaged")]
    Damaged(usize),
    /// Another version of the program wrote the snapshot: use that version.
    #[error("an engine's snapshot in version {0}: this program reads version {VERSION}")]
    Version(u32),
    /// A field has a value that no engine writes.
    #[error("field {0} of the engine's snapshot has an invalid value")]
    Value(&'static str),
    /// An instrument is missing, new, or changed since the snapshot: pass the original definitions.
    #[error("instrument {0} is missing, new, or differs from its definition in the snapshot")]
    Instrument(InstrumentId),
    /// The state exceeds the limits: raise them to at least their original values.
    #[error("the snapshot exceeds the engine's limits: restore it with its original limits")]
    Limits,
    /// `max_sessions` differs: set it to its original value.
    #[error("the snapshot is of an engine with max_sessions {expected}, not {found}")]
    Sessions {
        /// `max_sessions` of the saved engine.
        expected: u16,
        /// `max_sessions` of the given limits.
        found: u16,
    },
    /// The instruments' definitions are invalid, or do not fit the limits.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A defect: the restored state differs from the saved one.
    #[error("the restored engine has state hash {found:016x} instead of {expected:016x}")]
    StateHash {
        /// Hash of the saved engine.
        expected: u64,
        /// Hash of the restored engine.
        found: u64,
    },
}

/// Appends fields to a buffer.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        let start = out.len();
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        Writer { out, start }
    }

    pub(crate) fn put<F: Field<Value = F>>(&mut self, field: F) {
        let start = self.out.len();
        self.out.resize(start + F::LEN, 0);
        F::write(field, &mut FieldWriter(&mut self.out[start..]));
    }

    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) {
        let digest = xxh3_64(&self.out[self.start..]);
        self.out.extend(digest.to_le_bytes());
    }
}

/// Reads fields from a buffer whose digest was verified.
pub(crate) struct Reader<'a> {
    fields: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Reader<'a>, SnapshotError> {
        let damaged = SnapshotError::Damaged(bytes.len());
        let (rest, digest) = bytes.split_last_chunk::<DIGEST_LEN>().ok_or(damaged)?;
        let (header, fields) = rest.split_first_chunk::<HEADER_LEN>().ok_or(damaged)?;
        if !header.starts_with(&MAGIC) || xxh3_64(rest) != u64::from_le_bytes(*digest) {
            return Err(damaged);
        }
        let [.., a, b, c, d] = *header;
        let version = u32::from_le_bytes([a, b, c, d]);
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        Ok(Reader { fields })
    }

    pub(crate) fn take_bytes<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (bytes, rest) = self.fields.split_first_chunk().ok_or(SnapshotError::Value("length"))?;
        self.fields = rest;
        Ok(*bytes)
    }

    pub(crate) fn take<F: Field<Value = F>>(&mut self, name: &'static str) -> Result<F, SnapshotError> {
        let (bytes, rest) = self.fields.split_at_checked(F::LEN).ok_or(SnapshotError::Value("length"))?;
        self.fields = rest;
        F::read(name, &mut FieldReader(bytes)).map_err(|error| match error {
            CodecError::Value { field, .. } => SnapshotError::Value(field),
            _ => SnapshotError::Value(name),
        })
    }

    /// Reads a count. One of 2^63 or more is invalid, so that later increments cannot overflow.
    pub(crate) fn take_count(&mut self, field: &'static str) -> Result<u64, SnapshotError> {
        Some(self.take(field)?).filter(|count| *count < 1 << 63).ok_or(SnapshotError::Value(field))
    }

    pub(crate) fn finish(self) -> Result<(), SnapshotError> {
        if self.fields.is_empty() { Ok(()) } else { Err(SnapshotError::Value("length")) }
    }
}

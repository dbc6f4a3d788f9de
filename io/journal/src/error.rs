//! Errors of the journal, and their remedies.

use std::io;

use tickpath_types::Sequence;

use crate::{HeaderDamage, PAYLOAD_LEN_MAX, RecordDamage, SessionName};

/// [`Failure::operation`] when records cannot be written.
pub(crate) const WRITE: &str = "cannot write to the journal";
/// [`Failure::operation`] when records cannot be synced to the disk.
pub(crate) const SYNC: &str = "cannot sync the journal to the disk";
/// [`Failure::operation`] when the next segment cannot be prepared.
pub(crate) const PREPARE: &str = "cannot prepare the journal's next segment";
/// [`Failure::operation`] when the next segment cannot get its final name, or the log cannot be closed.
pub(crate) const NAME: &str = "cannot name the journal's next segment";

/// The reason why the journal accepts no more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {}", reason(*.kind, *.os_error))]
pub struct Failure {
    /// The operation that failed.
    pub operation: &'static str,
    /// Kind of the system's error.
    pub kind: io::ErrorKind,
    /// The system's error number, if any.
    pub os_error: Option<i32>,
}

impl Failure {
    pub(crate) fn of(operation: &'static str) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure { operation, kind: error.kind(), os_error: error.raw_os_error() }
    }
}

fn reason(kind: io::ErrorKind, os_error: Option<i32>) -> io::Error {
    os_error.map_or_else(|| kind.into(), io::Error::from_raw_os_error)
}

/// Error when appending a record. The journal is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The buffer is full. Accept no more requests, call `poll`, and retry.
    #[error("the journal's buffer is full: wait until its records are written")]
    Full,
    /// The segment is full and the next one cannot be created. Free disk space; the journal keeps retrying.
    #[error("{0}")]
    NoNextSegment(Failure),
    /// The journal has failed and acknowledges nothing more. Restart from the log once the disk works.
    #[error("{0}")]
    Failed(Failure),
    /// A caller error: a record's sequence must follow that of the last record.
    #[error("sequence {found} is out of order: the next is {expected}")]
    Sequence {
        /// The expected sequence.
        expected: Sequence,
        /// The given sequence.
        found: Sequence,
    },
    /// A caller error: a payload must have 1 byte up to the configured maximum.
    #[error("a payload of {len} bytes: from 1 to {max} are allowed")]
    PayloadLen {
        /// Length of the payload.
        len: usize,
        /// Maximum length.
        max: usize,
    },
}

/// Error when opening or reading the journal. The folder is unchanged, unless its repair failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Invalid configuration: correct it.
    #[error(
        "journal: payload_len_max must be 1 to {PAYLOAD_LEN_MAX}, buffer_len must hold at least two such payloads, and \
         segment_len at least two buffers"
    )]
    Config,
    /// Another process uses the journal: stop that process, or use another folder.
    #[error("the journal is in use by another process: stop that one, or name another folder")]
    InUse,
    /// The file belongs to another session: use the session that wrote it, or another folder.
    #[error("{file} belongs to session {found}, not {expected}")]
    Session {
        /// File name of the segment.
        file: String,
        /// The file's session.
        found: SessionName,
        /// The expected session.
        expected: SessionName,
    },
    /// The header is damaged: restore the file from a backup, or use the program version that wrote it.
    #[error("{file} cannot be read: {damage}")]
    Header {
        /// File name of the segment.
        file: String,
        /// The damage.
        damage: HeaderDamage,
    },
    /// An acknowledged record is missing: restore the file from a backup, or open with `accept_loss`.
    #[error(
        "{file} is damaged at byte {offset}, where record {sequence} was on the disk: {damage}; put the file back from a \
         copy, or copy the folder and accept by --accept-loss that this record and all after it are lost"
    )]
    Record {
        /// File name of the segment.
        file: String,
        /// Offset where the record should begin.
        offset: u64,
        /// Sequence of the record.
        sequence: Sequence,
        /// The damage.
        damage: RecordDamage,
    },
    /// Records acknowledged under [`Policy::Async`](crate::Policy::Async) are lost, which a power loss can
    /// cause: restore the file from a backup, or open with `accept_loss`.
    #[error(
        "{file} lacks record {sequence} at byte {offset} ({damage}), but {later_records} later records exist: power was \
         lost before it was synced, or the file is damaged; put the file back from a copy, or copy the folder and accept by \
         --accept-loss that this record and all after it are lost"
    )]
    Loss {
        /// File name of the segment.
        file: String,
        /// Offset where the record should begin.
        offset: u64,
        /// Sequence of the record.
        sequence: Sequence,
        /// The damage.
        damage: RecordDamage,
        /// Number of later records that exist but cannot be used.
        later_records: u64,
    },
    /// The last acknowledged record is unknown: restore the file from a backup, or open with `accept_loss`.
    #[error(
        "acknowledged is damaged (neither of its two checksums is right): put it back from a copy, or accept by \
         --accept-loss that acknowledged records may be lost"
    )]
    Acknowledged,
    /// The generation file is damaged, so the number of possible losses is unknown: restore it from a backup,
    /// use the program version that wrote it, begin another session, or open with `accept_loss`.
    #[error(
        "generation is damaged ({damage}): put it back from a copy, use the version of the program that wrote it, \
         begin another session, or, where the file acknowledged is whole, accept by --accept-loss that acknowledged records \
         may be lost"
    )]
    Generation {
        /// Description of the damage.
        damage: String,
    },
    /// The log begins after or ends before `sequence`: use an earlier snapshot, or a lower sequence.
    #[error("the journal has no record {sequence}: it holds {first} to {last}")]
    OutOfRange {
        /// The requested sequence.
        sequence: Sequence,
        /// First sequence in the log.
        first: Sequence,
        /// Last sequence in the log.
        last: Sequence,
    },
    /// A segment cannot be synced: restart from the log once the disk works. The contents of this file may
    /// never reach the disk, even if later syncs succeed.
    #[error("{file} cannot be synced, so no dependent data is written: {source}")]
    Unsynced {
        /// File name of the segment.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused an operation: check the file, the disk and the permissions.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file, or a description such as "the folder".
        file: String,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(file: &str) -> impl FnOnce(io::Error) -> OpenError {
        let file = file.to_owned();
        move |source| OpenError::Io { file, source }
    }
}

//! What can go wrong, and what to do then.

use std::io;

use tickpath_types::Sequence;

use crate::{HeaderDamage, PAYLOAD_LEN_MAX, RecordDamage, SessionName};

/// Records were not written.
pub(crate) const WRITE: &str = "cannot write to the journal";
/// Records were not synced to the disk.
pub(crate) const SYNC: &str = "cannot sync the journal to the disk";
/// The next segment was not prepared.
pub(crate) const PREPARE: &str = "cannot prepare the journal's next segment";
/// A segment that began was not given its name.
pub(crate) const NAME: &str = "cannot name the journal's next segment";

/// Why the journal takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {}", reason(*.kind, *.os_error))]
pub struct Failure {
    /// The operation that failed.
    pub what: &'static str,
    /// What the system said, in general.
    pub kind: io::ErrorKind,
    /// The system's own number of it, if there is one.
    pub os_error: Option<i32>,
}

impl Failure {
    pub(crate) fn of(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure { what, kind: error.kind(), os_error: error.raw_os_error() }
    }
}

fn reason(kind: io::ErrorKind, os_error: Option<i32>) -> io::Error {
    os_error.map_or_else(|| kind.into(), io::Error::from_raw_os_error)
}

/// A record was not appended; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Take no more requests in, call `poll`, and try again.
    #[error("the journal's buffer is full until what it holds is written")]
    Full,
    /// The segment is full and there can be no other: make room on the disk; it is tried again meanwhile.
    #[error("{0}")]
    NoNextSegment(Failure),
    /// Stop: nothing will be acknowledged any more. Restart from the log once the disk works.
    #[error("{0}")]
    Failed(Failure),
    /// A mistake of the caller: sequences are dense.
    #[error("sequence {found} does not follow, {expected} does")]
    Sequence {
        /// What follows.
        expected: Sequence,
        /// What came.
        found: Sequence,
    },
    /// A mistake of the caller: a payload has from 1 byte to the configured bound.
    #[error("a payload of {len} bytes: from 1 to {max} are allowed")]
    PayloadLen {
        /// Its length.
        len: usize,
        /// The bound.
        max: usize,
    },
}

/// The journal was not opened, or not read. The folder is as it was unless the system failed while it was repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Correct the configuration.
    #[error(
        "journal: payload_len_max is from 1 to {PAYLOAD_LEN_MAX}, buffer_len holds at least two such payloads, and \
         segment_len at least two buffers"
    )]
    Config,
    /// Stop the other process, or give this one another folder.
    #[error("the journal is in use by another process: stop that one, or name another folder")]
    InUse,
    /// Give the session that wrote it, or another folder.
    #[error("{file} belongs to session {found}, not {expected}")]
    Session {
        /// The segment.
        file: String,
        /// Whose it is.
        found: SessionName,
        /// Whose it should be.
        expected: SessionName,
    },
    /// Restore the file from a copy, or use the version of the program that wrote it.
    #[error("{file} cannot be read: {damage}")]
    Header {
        /// The segment.
        file: String,
        /// What is wrong.
        damage: HeaderDamage,
    },
    /// Restore the file from a copy, or open with `accept_loss`: a record that was acknowledged is not there any more.
    #[error(
        "{file} is damaged at byte {offset}, where record {sequence} was on the disk: {damage}; put the file back from a \
         copy, or copy the folder and accept by --accept-loss that this record and all after it are lost"
    )]
    Record {
        /// The segment.
        file: String,
        /// Where the record should begin.
        offset: u64,
        /// Which.
        sequence: Sequence,
        /// What is wrong.
        damage: RecordDamage,
    },
    /// Restore the file from a copy, or open with `accept_loss`: records that had been acknowledged under
    /// [`Policy::Async`](crate::Policy::Async) are lost, as the loss of power may cause.
    #[error(
        "{file} lacks record {sequence} at byte {offset} ({damage}), and {later_records} later ones are there: power was \
         lost before it was synced, or the file is damaged; put the file back from a copy, or copy the folder and accept by \
         --accept-loss that this record and all after it are lost"
    )]
    Loss {
        /// The segment.
        file: String,
        /// Where the record should begin.
        offset: u64,
        /// Which.
        sequence: Sequence,
        /// What is wrong.
        damage: RecordDamage,
        /// How many of the log's records are there and cannot be used.
        later_records: u64,
    },
    /// Put the file back from a copy, or open with `accept_loss`: without it the last acknowledged record is unknown.
    #[error(
        "acknowledged is damaged (neither of its two checksums is right): put it back from a copy, or accept by \
         --accept-loss that acknowledged records may be lost"
    )]
    Acknowledged,
    /// Put the file back from a copy, use the version of the program that wrote it, or begin another session: without
    /// the file nobody knows how often acknowledged records were lost.
    #[error(
        "generation is damaged ({damage}): put it back from a copy, use the version of the program that wrote it, \
         begin another session, or, where the file acknowledged is whole, accept by --accept-loss that acknowledged records \
         may be lost"
    )]
    Generation {
        /// What is wrong.
        damage: String,
    },
    /// The log begins later or ends earlier: take a snapshot from before, or a lower sequence.
    #[error("the journal has no record {sequence}: it holds {first} to {last}")]
    OutOfRange {
        /// Which was asked for.
        sequence: Sequence,
        /// The first that it has.
        first: Sequence,
        /// The last that it has.
        last: Sequence,
    },
    /// Start again from the log once the disk works: what this file holds may not come to the disk any more, though later
    /// syncs succeed.
    #[error("{file} cannot be synced, so nothing that builds on it is written: {source}")]
    Unsynced {
        /// The segment.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Look at the file, the disk and its permissions.
    #[error("{file}: {source}")]
    Io {
        /// The file, or what was done with the folder.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(file: &str) -> impl FnOnce(io::Error) -> OpenError {
        let file = file.to_owned();
        move |source| OpenError::Io { file, source }
    }
}

//! Snapshots of the state at a sequence, so that a restart need not read the whole log.
//!
//! The file `snapshot-SEQUENCE` consists of a header of 64 bytes, little-endian, and a payload:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `TPSNAPSH` |
//! | 8 | 2 | version, 1 |
//! | 10 | 2 | length of this header, 64 |
//! | 12 | 4 | zero |
//! | 16 | 16 | name of the session, padded with spaces |
//! | 32 | 8 | sequence of the last record that the snapshot covers |
//! | 40 | 8 | hash of the state |
//! | 48 | 8 | length of the payload |
//! | 56 | 4 | CRC-32C of the payload |
//! | 60 | 4 | CRC-32C of the 60 bytes before |

use std::fmt;

use tickpath_types::Sequence;

use crate::acknowledged::{self, Slot};
use crate::header::{self, chunk, u16_at, u32_at, u64_at};
use crate::segment::{list_numbered, list_segments, segment_name};
use crate::{OpenError, SessionName, Storage, StorageFile};

const MAGIC: [u8; 8] = *b"TPSNAPSH";
const VERSION: u16 = 1;
const HEADER_LEN: usize = 64;
const PREFIX: &str = "snapshot-";
/// Name of a snapshot while it is written. A leftover file of this name was never finished.
const UNFINISHED: &str = "snapshot.unfinished";
/// Maximum number of bytes of a snapshot's payload per write.
const WRITE_LEN: usize = 1 << 20;

/// A snapshot: a state, and the last record that it covers.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Sequence of the last record covered; replay begins with the next.
    pub sequence: Sequence,
    /// Hash of the state, to check a restore.
    pub state_hash: u64,
    /// The state.
    pub payload: Vec<u8>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot { sequence, state_hash, payload } = self;
        write!(f, "Snapshot {{ {sequence}, {state_hash:016x}, {} bytes }}", payload.len())
    }
}

/// A snapshot that cannot be used, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedSnapshot {
    /// File name.
    pub file: String,
    /// Sequence of the last record covered, according to the file name.
    pub sequence: Sequence,
    /// The reason why it cannot be used.
    pub damage: SnapshotDamage,
    /// Recorded hash of the snapshot's state, if known: replay of the log must reach a state with this hash.
    pub state_hash: Option<u64>,
}

/// The reason why a snapshot cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotDamage {
    /// The newest snapshot, according to the acknowledged file, is missing.
    #[error("it is missing")]
    Missing,
    /// The file does not begin like a snapshot, or is truncated.
    #[error("not a whole snapshot")]
    Cut,
    /// A later version of the program wrote it: use that version.
    #[error(
        "snapshot version {version}, which this program cannot read: use the version of the program that wrote it"
    )]
    Version {
        /// Version in the file.
        version: u16,
    },
    /// A checksum is wrong.
    #[error("a checksum is wrong")]
    Checksum,
    /// The snapshot belongs to another session.
    #[error("the snapshot is of session {found}")]
    Session {
        /// Session in the file.
        found: SessionName,
    },
    /// The file name has another sequence than the header.
    #[error("the snapshot is of sequence {found}, its file name states another")]
    Name {
        /// Sequence in the header.
        found: Sequence,
    },
}

/// The newest usable snapshot, and the newer unusable ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestSnapshot {
    /// The snapshot, if any.
    pub snapshot: Option<Snapshot>,
    /// Newer snapshots that cannot be used: report them.
    pub skipped: Vec<SkippedSnapshot>,
}

/// The snapshots of a log. The methods wait for the disk.
#[derive(Clone, Debug)]
pub struct Snapshots<S> {
    storage: S,
    session: SessionName,
}

impl<S: Storage> Snapshots<S> {
    /// Returns the snapshots of a session in the folder of its log.
    #[must_use]
    pub fn new(storage: S, session: SessionName) -> Snapshots<S> {
        Snapshots { storage, session }
    }

    /// Writes a snapshot, which is on the disk when this returns. Only a complete file gets the final name.
    ///
    /// First syncs the log up to `sequence`, under every policy. Otherwise a power loss could leave a log
    /// that ends before the snapshot, and the older snapshots from which it could continue would already be
    /// removed.
    ///
    /// # Errors
    /// [`OpenError::Unsynced`] when the log cannot be synced. No more snapshots may be written then: a
    /// repeated sync succeeds without proving that the data is on the disk. [`OpenError::Io`] for other
    /// failures of the disk; existing snapshots stay.
    pub fn write(&self, sequence: Sequence, state_hash: u64, payload: &[u8]) -> Result<(), OpenError> {
        self.sync_log(sequence)?;
        let header = self.header(sequence, state_hash, payload);
        let written = (|| {
            let mut file = self.storage.create(UNFINISHED)?;
            file.write_all_at(&header, 0)?;
            for (chunk, place) in payload.chunks(WRITE_LEN).zip(0_u64..) {
                file.write_all_at(chunk, HEADER_LEN as u64 + place * WRITE_LEN as u64)?;
            }
            file.sync()?;
            self.storage.rename(UNFINISHED, &snapshot_name(sequence))?;
            self.storage.sync_names()
        })();
        written.map_err(OpenError::io(&snapshot_name(sequence)))?;
        acknowledged::record_snapshot(&self.storage, sequence, state_hash)
    }

    /// Syncs the log up to `last` to the disk.
    fn sync_log(&self, last: Sequence) -> Result<(), OpenError> {
        for first in list_segments(&self.storage)?.into_iter().filter(|first| *first <= last) {
            let name = segment_name(first);
            let mut file = self.storage.open(&name).map_err(OpenError::io(&name))?;
            file.sync().map_err(|source| OpenError::Unsynced { file: name, source })?;
        }
        self.storage.sync_names().map_err(OpenError::io("the folder"))
    }

    /// Returns the newest usable snapshot up to `limit`, the log's last record. A snapshot beyond `limit`
    /// belongs to a log that lost its end.
    ///
    /// # Errors
    /// [`OpenError::Io`] when the folder or a file cannot be read.
    pub fn newest(&self, limit: Sequence) -> Result<NewestSnapshot, OpenError> {
        let mut newest = NewestSnapshot::default();
        // Read the acknowledged file before the folder: a snapshot written in between would seem missing.
        let recorded = self.recorded()?.filter(|recorded| recorded.sequence <= limit);
        for sequence in self.list()?.into_iter().rev().filter(|sequence| *sequence <= limit) {
            match self.read(sequence)? {
                Ok(snapshot) => {
                    newest.snapshot = Some(snapshot);
                    break;
                }
                Err(damage) => newest.skipped.push(self.skipped(sequence, damage)),
            }
        }
        if let Some(Slot { sequence, state_hash, .. }) = recorded
            && newest.snapshot.as_ref().is_none_or(|snapshot| snapshot.sequence < sequence)
        {
            let place = newest.skipped.partition_point(|skipped| skipped.sequence > sequence);
            match newest.skipped.get_mut(place).filter(|skipped| skipped.sequence == sequence) {
                Some(skipped) => skipped.state_hash = Some(state_hash),
                None => {
                    let (file, damage) = (snapshot_name(sequence), SnapshotDamage::Missing);
                    let missing = SkippedSnapshot { file, sequence, damage, state_hash: Some(state_hash) };
                    newest.skipped.insert(place, missing);
                }
            }
        }
        Ok(newest)
    }

    /// Returns the newest snapshot written, according to the acknowledged file.
    fn recorded(&self) -> Result<Option<Slot>, OpenError> {
        let recorded = match acknowledged::read(&self.storage) {
            // Opening the log reports this error.
            Err(OpenError::Acknowledged) => None,
            recorded => recorded?.and_then(|recorded| recorded.snapshot),
        };
        Ok(recorded.filter(|recorded| recorded.session == self.session))
    }

    /// Keeps the newest `keep` usable snapshots, at least one, and every segment with a record after the
    /// oldest of them. Removes older files. Without a usable snapshot it removes nothing.
    ///
    /// # Errors
    /// [`OpenError::Io`] when a disk operation fails. The remaining files are consistent.
    pub fn retain(&self, keep: usize) -> Result<(), OpenError> {
        let mut kept = Vec::new();
        let listed = self.list()?;
        for sequence in listed.iter().rev() {
            if kept.len() < keep.max(1) && self.read(*sequence)?.is_ok() {
                kept.push(*sequence);
            }
        }
        let Some(oldest) = kept.last().copied() else {
            return Ok(());
        };
        // Remove snapshots before segments, oldest first: each remaining snapshot then still has its log.
        let firsts = list_segments(&self.storage)?;
        let segments = firsts.windows(2).take_while(|pair| pair[1] <= oldest.next());
        let snapshots = listed.into_iter().filter(|sequence| *sequence < oldest).map(snapshot_name);
        self.remove(&snapshots.chain(segments.map(|pair| segment_name(pair[0]))).collect::<Vec<_>>())
    }

    /// Removes snapshots beyond `limit`, which belong to a log that lost its end. Returns their names.
    ///
    /// # Errors
    /// [`OpenError::Io`] when a disk operation fails.
    pub fn remove_after(&self, limit: Sequence) -> Result<Vec<String>, OpenError> {
        let later = self.list()?.into_iter().filter(|sequence| *sequence > limit);
        let names: Vec<String> = later.map(snapshot_name).collect();
        self.remove(&names)?;
        Ok(names)
    }

    fn remove(&self, files: &[String]) -> Result<(), OpenError> {
        files.iter().try_for_each(|file| self.storage.remove(file).map_err(OpenError::io(file)))?;
        self.storage.sync_names().map_err(OpenError::io("the folder"))
    }

    /// Returns the sequences of all snapshots, usable or not, ascending.
    ///
    /// # Errors
    /// [`OpenError::Io`] when the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Sequence>, OpenError> {
        list_numbered(&self.storage, PREFIX, "")
    }

    /// Reads a snapshot. The inner result holds its damage. Allocates as much memory as the file is long.
    ///
    /// # Errors
    /// [`OpenError::Io`] when the file cannot be read.
    pub fn read(&self, sequence: Sequence) -> Result<Result<Snapshot, SnapshotDamage>, OpenError> {
        let name = snapshot_name(sequence);
        let read = || {
            let file = self.storage.open(&name)?;
            let mut bytes = vec![0; file.len()? as usize];
            let len = file.read_start(&mut bytes)?;
            bytes.truncate(len);
            Ok(bytes)
        };
        let bytes = read().map_err(OpenError::io(&name))?;
        Ok(self.decode(bytes, sequence))
    }

    /// Describes a snapshot that cannot be used, with the state hash from its header if that is valid.
    #[must_use]
    pub fn skipped(&self, sequence: Sequence, damage: SnapshotDamage) -> SkippedSnapshot {
        let file = snapshot_name(sequence);
        let mut header = [0; HEADER_LEN];
        let filled = self.storage.open(&file).and_then(|file| file.read_start(&mut header));
        let is_complete = filled.is_ok_and(|filled| filled == HEADER_LEN);
        let state_hash = self.check_header(&header, sequence).ok().filter(|_| is_complete);
        SkippedSnapshot { file, sequence, damage, state_hash }
    }

    fn header(&self, sequence: Sequence, state_hash: u64, payload: &[u8]) -> [u8; HEADER_LEN] {
        let mut header = header::begin::<HEADER_LEN>(MAGIC, VERSION);
        header[16..32].copy_from_slice(&self.session.bytes());
        header[32..40].copy_from_slice(&sequence.0.to_le_bytes());
        header[40..48].copy_from_slice(&state_hash.to_le_bytes());
        header[48..56].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        header[56..60].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        header::write_checksum(&mut header);
        header
    }

    fn decode(&self, mut bytes: Vec<u8>, expected: Sequence) -> Result<Snapshot, SnapshotDamage> {
        let header: [u8; HEADER_LEN] = *bytes.first_chunk().ok_or(SnapshotDamage::Cut)?;
        let state_hash = self.check_header(&header, expected)?;
        if u64_at(&header, 48) != (bytes.len() - HEADER_LEN) as u64 {
            return Err(SnapshotDamage::Cut);
        }
        bytes.drain(..HEADER_LEN);
        if crc32c::crc32c(&bytes) != u32_at(&header, 56) {
            return Err(SnapshotDamage::Checksum);
        }
        Ok(Snapshot { sequence: expected, state_hash, payload: bytes })
    }

    /// Checks the fields of a header, and returns the hash of the state.
    fn check_header(&self, header: &[u8; HEADER_LEN], expected: Sequence) -> Result<u64, SnapshotDamage> {
        if !header.starts_with(&MAGIC) {
            return Err(SnapshotDamage::Cut);
        }
        let version = u16_at(header, 8);
        if version != VERSION {
            return Err(SnapshotDamage::Version { version });
        }
        header::valid_checksum(header).ok_or(SnapshotDamage::Checksum)?;
        let found = SessionName::from_bytes(chunk(header, 16));
        if found != self.session {
            return Err(SnapshotDamage::Session { found });
        }
        let sequence = Sequence(u64_at(header, 32));
        if sequence != expected {
            return Err(SnapshotDamage::Name { found: sequence });
        }
        Ok(u64_at(header, 40))
    }
}

/// Returns the file name of the snapshot that covers the log up to this record.
#[must_use]
pub fn snapshot_name(sequence: Sequence) -> String {
    format!("{PREFIX}{:020}", sequence.0)
}

//! The highest acknowledged sequence, stored outside the segments. It tells whether an invalid record at the
//! end of a log was damaged, or left incomplete by a crash.
//!
//! The file `acknowledged` has four slots at multiples of 512 bytes: two for the highest acknowledged
//! sequence, then two for the newest snapshot. The slots of a pair are written alternately, so a torn write
//! leaves the other slot intact. A slot has 80 bytes, little-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `TPACKNOW`, in a snapshot slot `TPSNAPNO` |
//! | 8 | 2 | version, 1 |
//! | 10 | 2 | length, 80 |
//! | 12 | 1 | policy of the acknowledgement, see [`Policy`] |
//! | 13 | 3 | zero |
//! | 16 | 16 | name of the session, padded with spaces |
//! | 32 | 16 | the system boot, see [`Storage::boot`]; zeroes when unknown |
//! | 48 | 4 | generation of the session |
//! | 52 | 4 | zero |
//! | 56 | 8 | sequence: the last one acknowledged, or the last one that the snapshot covers |
//! | 64 | 8 | the hash of a snapshot's state, else zero |
//! | 72 | 4 | zero |
//! | 76 | 4 | CRC-32C of the 76 bytes before |
//!
//! The first pair is written through a mapping of the file, without a system call: after the records are as
//! durable as the policy requires, and before they are acknowledged. Consequences:
//!
//! - **The process dies.** The mapped page is in the page cache, so the slot is exact. The log must hold
//!   every record up to the slot's sequence, under every policy.
//! - **Power is lost under `group` or `sync`.** The page may be older than the last acknowledgement, but not
//!   ahead of the log, because the log is synced first. The page is synced when the log is idle for a moment,
//!   and when it is closed. The log must hold every record up to the slot's sequence; later records are
//!   judged by the log alone.
//! - **Power is lost under `async`.** The page may be ahead of the log, so it requires no record.

use std::io;

use tickpath_types::Sequence;

use crate::header::{self, chunk, u16_at, u32_at, u64_at};
use crate::{OpenError, Policy, SessionName, SharedBytes, Storage, StorageFile};

/// Name of the file with the highest acknowledged sequence. Keep it together with the log.
pub const ACKNOWLEDGED_FILE: &str = "acknowledged";
/// Name of a new acknowledged file until it is complete.
const UNFINISHED: &str = "acknowledged.unfinished";
const MAGIC: [u8; 8] = *b"TPACKNOW";
const SNAPSHOT_MAGIC: [u8; 8] = *b"TPSNAPNO";
const VERSION: u16 = 1;
const SLOT_LEN: usize = 80;
/// Distance between slots: a disk writes this many bytes completely or not at all.
const SLOT_DISTANCE: usize = 512;
const FILE_LEN: usize = 4 * SLOT_DISTANCE;
/// Offset of the slots of the newest snapshot.
const SNAPSHOT_PAIR: usize = 2 * SLOT_DISTANCE;
/// Maximum number of attempts to read the file: a read during writes may find both slots torn.
const READS_MAX: u32 = 5;

/// The fields of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) policy: Policy,
    pub(crate) session: SessionName,
    pub(crate) boot: u128,
    pub(crate) generation: u32,
    pub(crate) sequence: Sequence,
    pub(crate) state_hash: u64,
}

/// The content of the file [`ACKNOWLEDGED_FILE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) acknowledged: Slot,
    /// The newest snapshot, if one was written and a slot of it is valid.
    pub(crate) snapshot: Option<Slot>,
}

/// Reads the acknowledged file; `None` when it does not exist.
pub(crate) fn read<S: Storage>(storage: &S) -> Result<Option<Recorded>, OpenError> {
    if !storage.has(ACKNOWLEDGED_FILE).map_err(OpenError::io("the folder"))? {
        return Ok(None);
    }
    for _ in 0..READS_MAX {
        let bytes = read_bytes(storage).map_err(OpenError::io(ACKNOWLEDGED_FILE))?;
        if let Some(acknowledged) = newest(&bytes, 0) {
            return Ok(Some(Recorded { acknowledged, snapshot: newest(&bytes, SNAPSHOT_PAIR) }));
        }
    }
    Err(OpenError::Acknowledged)
}

/// Returns the bytes of the acknowledged file, padded with zeroes if it is too short.
fn read_bytes<S: Storage>(storage: &S) -> io::Result<[u8; FILE_LEN]> {
    let mut bytes = [0; FILE_LEN];
    storage.open(ACKNOWLEDGED_FILE)?.read_start(&mut bytes)?;
    Ok(bytes)
}

/// Returns the two slots of the pair at offset `at`, each `None` if it is invalid.
fn pair(bytes: &[u8; FILE_LEN], at: usize) -> [Option<Slot>; 2] {
    let magic = if at == SNAPSHOT_PAIR { SNAPSHOT_MAGIC } else { MAGIC };
    [at, at + SLOT_DISTANCE].map(|at| bytes[at..].first_chunk().and_then(|slot| Slot::decode(slot, magic)))
}

/// Returns the newer valid slot of the pair at offset `at`: compares the generations, then the sequences.
fn newest(bytes: &[u8; FILE_LEN], at: usize) -> Option<Slot> {
    pair(bytes, at).into_iter().flatten().max_by_key(Slot::age)
}

/// Creates and syncs the acknowledged file of a log whose records up to `acknowledged` are on the disk.
pub(crate) fn begin<S: Storage>(
    storage: &S,
    acknowledged: Slot,
    snapshot: Option<Slot>,
) -> io::Result<Acknowledged> {
    let mut bytes = [0; FILE_LEN];
    let snapshot = snapshot.map(|snapshot| (SNAPSHOT_PAIR, snapshot.encode(SNAPSHOT_MAGIC)));
    for (at, slot) in [Some((0, acknowledged.encode(MAGIC))), snapshot].into_iter().flatten() {
        bytes[at..at + SLOT_LEN].copy_from_slice(&slot);
        bytes[at + SLOT_DISTANCE..][..SLOT_LEN].copy_from_slice(&slot);
    }
    let mut file = storage.create(UNFINISHED)?;
    file.write_all_at(&bytes, 0)?;
    file.sync()?;
    let shared = file.share(FILE_LEN)?;
    storage.rename(UNFINISHED, ACKNOWLEDGED_FILE)?;
    storage.sync_names()?;
    Ok(Acknowledged { shared, slot: acknowledged.encode(MAGIC), is_second: false, is_synced: true })
}

/// Stores a durable snapshot's sequence and state hash in the acknowledged file, if that file exists.
pub(crate) fn record_snapshot<S: Storage>(
    storage: &S,
    sequence: Sequence,
    state_hash: u64,
) -> Result<(), OpenError> {
    let Some(Recorded { acknowledged, .. }) = read(storage)? else { return Ok(()) };
    let slot = Slot { sequence, state_hash, ..acknowledged };
    let written = (|| {
        let [first, second] =
            pair(&read_bytes(storage)?, SNAPSHOT_PAIR).map(|slot| slot.map(|slot| slot.age()));
        let at = if first <= second { SNAPSHOT_PAIR } else { SNAPSHOT_PAIR + SLOT_DISTANCE };
        let mut file = storage.open(ACKNOWLEDGED_FILE)?;
        file.write_all_at(&slot.encode(SNAPSHOT_MAGIC), at as u64)?;
        file.sync()
    })();
    written.map_err(OpenError::io(ACKNOWLEDGED_FILE))
}

impl Slot {
    fn age(&self) -> (u32, Sequence) {
        (self.generation, self.sequence)
    }

    fn encode(&self, magic: [u8; 8]) -> [u8; SLOT_LEN] {
        let mut bytes = header::begin::<SLOT_LEN>(magic, VERSION);
        bytes[12] = self.policy.code();
        bytes[16..32].copy_from_slice(&self.session.bytes());
        bytes[32..48].copy_from_slice(&self.boot.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.generation.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.sequence.0.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.state_hash.to_le_bytes());
        header::write_checksum(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8; SLOT_LEN], magic: [u8; 8]) -> Option<Slot> {
        let is_valid = bytes.starts_with(&magic)
            && u16_at(bytes, 8) == VERSION
            && header::valid_checksum(bytes).is_some();
        let policy = Policy::from_code(bytes[12]).filter(|_| is_valid)?;
        Some(Slot {
            policy,
            session: SessionName::from_bytes(chunk(bytes, 16)),
            boot: u128::from_le_bytes(chunk(bytes, 32)),
            generation: u32_at(bytes, 48),
            sequence: Sequence(u64_at(bytes, 56)),
            state_hash: u64_at(bytes, 64),
        })
    }
}

/// The acknowledged file of an open log, held by the thread that makes records durable.
pub(crate) struct Acknowledged {
    shared: Box<dyn SharedBytes>,
    slot: [u8; SLOT_LEN],
    /// True when the second slot was written last.
    is_second: bool,
    is_synced: bool,
}

impl Acknowledged {
    /// Stores `last` as the highest sequence that may be acknowledged. Call this before `last` is published.
    #[inline]
    pub(crate) fn set(&mut self, last: Sequence) {
        self.slot[56..64].copy_from_slice(&last.0.to_le_bytes());
        header::write_checksum(&mut self.slot);
        self.is_second = !self.is_second;
        self.shared.write(&self.slot, if self.is_second { SLOT_DISTANCE } else { 0 });
        self.is_synced = false;
    }

    /// Syncs the file to the disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.shared.flush()?;
            self.is_synced = true;
        }
        Ok(())
    }
}

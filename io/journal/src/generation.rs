//! The generation of a session counts possible losses of acknowledged records. It is stored before the log
//! is truncated.
//!
//! Sequences of lost records are reused, so a client that received a lost record would misinterpret later
//! ones. Each possible loss therefore starts a new generation of the session, which clients can see. The file
//! `generation` beside the log holds the current one, 64 bytes, little-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `TPGENERN` |
//! | 8 | 2 | version: 2 when the log was closed normally, else 1 |
//! | 10 | 2 | length, 64 |
//! | 12 | 4 | generation |
//! | 16 | 16 | name of the session, padded with spaces |
//! | 32 | 16 | the system boot in which the log was last opened, see [`Storage::boot`]; zeroes when unknown |
//! | 48 | 8 | version 2: sequence of the last record; every record up to it is on the disk; version 1: zero |
//! | 56 | 4 | zero |
//! | 60 | 4 | CRC-32C of the 60 bytes before |

use std::io;

use tickpath_types::Sequence;

use crate::header::{self, chunk, u16_at, u32_at, u64_at};
use crate::{OpenError, SessionName, Storage, StorageFile};

/// Name of the file with the generation of a session. Keep it together with the log.
pub const GENERATION_FILE: &str = "generation";
/// Name of a new generation file until it is complete.
const UNFINISHED: &str = "generation.unfinished";
const MAGIC: [u8; 8] = *b"TPGENERN";
/// Version for a log that is open or was not closed.
const VERSION_OPEN: u16 = 1;
/// Version for a log that was closed normally.
const VERSION_CLOSED: u16 = 2;
const LEN: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    pub(crate) number: u32,
    /// Id of the system boot in which the log was last opened; zero when unknown.
    pub(crate) boot: u128,
    /// Last sequence, if the log was closed with all records on the disk and was not opened since.
    pub(crate) closed_at: Option<Sequence>,
}

/// Returns the generation of a session whose log is in `storage`; 0 before any possible loss. Changes
/// nothing.
///
/// # Errors
/// [`OpenError::Generation`] when the file is damaged, [`OpenError::Io`] when it cannot be read.
pub fn generation_of<S: Storage>(storage: &S, session: SessionName) -> Result<u32, OpenError> {
    Ok(read(storage, session)?.unwrap_or_default().number)
}

/// Reads the file. `None` when it does not exist, or belongs to an earlier session whose log was removed.
pub(crate) fn read<S: Storage>(storage: &S, session: SessionName) -> Result<Option<Generation>, OpenError> {
    if !storage.has(GENERATION_FILE).map_err(OpenError::io("the folder"))? {
        return Ok(None);
    }
    // One byte longer than a valid file, to detect a longer one.
    let mut bytes = [0; LEN + 1];
    let read = storage.open(GENERATION_FILE).and_then(|file| file.read_start(&mut bytes));
    let len = read.map_err(OpenError::io(GENERATION_FILE))?;
    decode(&bytes[..len], session).map_err(|damage| OpenError::Generation { damage })
}

/// Decodes the file; `None` if it belongs to another session. The error describes the damage.
fn decode(bytes: &[u8], session: SessionName) -> Result<Option<Generation>, String> {
    if bytes.len() != LEN {
        return Err(format!("{} bytes of it were read, and it must have {LEN}", bytes.len()));
    }
    let (version, is_begun) = (u16_at(bytes, 8), bytes.starts_with(&MAGIC));
    if is_begun && ![VERSION_OPEN, VERSION_CLOSED].contains(&version) {
        return Err(format!("version {version}, which this program cannot read"));
    }
    if !is_begun || header::valid_checksum(bytes).is_none() {
        return Err("its magic number or its checksum is wrong".to_owned());
    }
    let boot = u128::from_le_bytes(chunk(bytes, 32));
    let is_ours = session.bytes() == bytes[16..32];
    let closed_at = (version == VERSION_CLOSED).then_some(Sequence(u64_at(bytes, 48)));
    Ok(is_ours.then_some(Generation { number: u32_at(bytes, 12), boot, closed_at }))
}

/// Replaces the file. It is on the disk when this returns.
pub(crate) fn write<S: Storage>(storage: &S, session: SessionName, now: Generation) -> io::Result<()> {
    // A program that knows only version 1 must refuse a closed log: it would not reset `closed_at`.
    let version = if now.closed_at.is_some() { VERSION_CLOSED } else { VERSION_OPEN };
    let mut bytes = header::begin::<LEN>(MAGIC, version);
    bytes[12..16].copy_from_slice(&now.number.to_le_bytes());
    bytes[16..32].copy_from_slice(&session.bytes());
    bytes[32..48].copy_from_slice(&now.boot.to_le_bytes());
    bytes[48..56].copy_from_slice(&now.closed_at.unwrap_or_default().0.to_le_bytes());
    header::write_checksum(&mut bytes);
    storage.replace(UNFINISHED, GENERATION_FILE, &bytes)
}

//! How often records that were acknowledged may have been lost, known before the log is shortened.
//!
//! Whoever heard of a record that is no more would take what follows for what it knows: sequences are used again. So a
//! session has generations, by which clients can be told. The present one stands in the file `generation` beside the
//! log, 64 bytes, little-endian:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `TPGENERN` |
//! | 8 | 2 | version: 1, and 2 where the log was closed in good order |
//! | 10 | 2 | length, 64 |
//! | 12 | 4 | generation |
//! | 16 | 16 | name of the session, padded with spaces |
//! | 32 | 16 | the system's run in which the log was opened last, see [`Storage::boot`]; zeroes when that is not known |
//! | 48 | 8 | of version 2: the last record when the log was closed with all of it on the disk; of version 1 zero |
//! | 56 | 4 | zero |
//! | 60 | 4 | CRC-32C of the 60 bytes before |

use std::io;

use tickpath_types::Sequence;

use crate::header::{self, chunk, u16_at, u32_at, u64_at};
use crate::{OpenError, SessionName, Storage, StorageFile};

/// Name of the file that says which generation of its session a log is of: it goes where the log goes.
pub const GENERATION_FILE: &str = "generation";
/// It while it is written.
const UNFINISHED: &str = "generation.unfinished";
const MAGIC: [u8; 8] = *b"TPGENERN";
/// Of a log that is open, or was left so.
const VERSION_OPEN: u16 = 1;
/// Of a log that was closed.
const VERSION_CLOSED: u16 = 2;
const LEN: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation {
    pub(crate) number: u32,
    /// Zero when it is not known.
    pub(crate) boot: u128,
    /// The last record of a log that was closed with all of it on the disk, and not opened since.
    pub(crate) closed_at: Option<Sequence>,
}

/// The generation of a session whose log is in `storage`, 0 when nothing was ever lost. Changes nothing.
///
/// # Errors
/// [`OpenError::Generation`] when its file is damaged, [`OpenError::Io`] when the system refuses.
pub fn generation_of<S: Storage>(storage: &S, session: SessionName) -> Result<u32, OpenError> {
    Ok(read(storage, session)?.unwrap_or_default().number)
}

/// `None` when there is no such file, or it is another session's, whose log has gone before it.
pub(crate) fn read<S: Storage>(storage: &S, session: SessionName) -> Result<Option<Generation>, OpenError> {
    if !storage.has(GENERATION_FILE).map_err(OpenError::io("the folder"))? {
        return Ok(None);
    }
    // One byte more than it has, so that a longer one is damaged.
    let mut bytes = [0; LEN + 1];
    let read = storage.open(GENERATION_FILE).and_then(|file| file.read_start(&mut bytes));
    let len = read.map_err(OpenError::io(GENERATION_FILE))?;
    decode(&bytes[..len], session).map_err(|damage| OpenError::Generation { damage })
}

/// The error says what is wrong.
fn decode(bytes: &[u8], session: SessionName) -> Result<Option<Generation>, String> {
    if bytes.len() != LEN {
        return Err(format!("{} bytes of it were read, and it must have {LEN}", bytes.len()));
    }
    let (version, is_begun) = (u16_at(bytes, 8), bytes.starts_with(&MAGIC));
    if is_begun && ![VERSION_OPEN, VERSION_CLOSED].contains(&version) {
        return Err(format!("version {version}, which this program cannot read"));
    }
    if !is_begun || header::sealed(bytes).is_none() {
        return Err("it does not begin as it must, or its checksum is wrong".to_owned());
    }
    let boot = u128::from_le_bytes(chunk(bytes, 32));
    let is_ours = session.bytes() == bytes[16..32];
    let closed_at = (version == VERSION_CLOSED).then_some(Sequence(u64_at(bytes, 48)));
    Ok(is_ours.then_some(Generation { number: u32_at(bytes, 12), boot, closed_at }))
}

/// Replaces the file; when this returns it is on the disk.
pub(crate) fn write<S: Storage>(storage: &S, session: SessionName, now: Generation) -> io::Result<()> {
    // A program that knows version 1 alone would leave the mark where it is, and append.
    let version = if now.closed_at.is_some() { VERSION_CLOSED } else { VERSION_OPEN };
    let mut bytes = header::begin::<LEN>(MAGIC, version);
    bytes[12..16].copy_from_slice(&now.number.to_le_bytes());
    bytes[16..32].copy_from_slice(&session.bytes());
    bytes[32..48].copy_from_slice(&now.boot.to_le_bytes());
    bytes[48..56].copy_from_slice(&now.closed_at.unwrap_or_default().0.to_le_bytes());
    header::seal(&mut bytes);
    storage.replace(UNFINISHED, GENERATION_FILE, &bytes)
}

//! Segments seen from outside: are they whole, and may they go.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use tickpath_lockfree::table::ReadError;

use crate::folder::system;
use crate::writer::Old;
use crate::{EventsReader, Folder, SegmentName, SegmentReader, ShmError, WriterState};

/// Problems that are told in words; further ones are counted.
const PROBLEMS_MAX: usize = 16;
/// Looks at a row that is being written, before it counts as never finished.
const LOOKS: usize = 1_000;

/// What [`verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows with a name.
    pub symbols: u64,
    /// Rows with a quote.
    pub quotes: u64,
    /// Updates of the stream that were read.
    pub updates: u64,
    /// Updates that were overwritten while the stream was read: the writer is faster, which is no fault.
    pub overtaken: u64,
    /// What is wrong, in words, up to 16 of them.
    pub problems: Vec<String>,
    /// How many things are wrong.
    pub problem_count: u64,
}

impl Verified {
    fn problem(&mut self, text: impl FnOnce() -> String) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text());
        }
    }
}

/// Reads everything in a segment and says what is wrong; also beside its writer.
#[must_use]
pub fn verify(segment: &SegmentReader) -> Verified {
    let mut verified = Verified::default();
    for index in 0..segment.rows() {
        verify_row(segment, index, &mut verified);
    }
    verify_stream(segment, &mut verified);
    if !segment.is_whole() {
        verified.problem(|| "the file has another length than when it was opened".to_owned());
    }
    verified
}

fn verify_row(segment: &SegmentReader, index: usize, verified: &mut Verified) {
    let name = match patiently(|| segment.raw_symbol(index)) {
        Some(name) => name,
        None => return verified.problem(|| format!("row {index}: its name was never written to its end")),
    };
    let is_named = name.as_str().is_some();
    verified.symbols += u64::from(is_named);
    if !is_named && !name.is_unnamed() {
        verified.problem(|| format!("row {index}: its name is not printable"));
    }
    // The count first: a quote that comes later comes after the name.
    let writes = segment.entry(index).map_or(0, |entry| entry.writes());
    let Some(quote) = patiently(|| segment.try_read(index)) else {
        return verified.problem(|| format!("row {index}: its quote was never written to its end"));
    };
    verified.quotes += u64::from(writes > 0);
    if quote.reserved != 0 || quote.health > 3 {
        verified.problem(|| {
            format!("row {index}: its quote has values that no writer of this version puts there")
        });
    }
    if writes > 0 && !is_named && segment.symbol(index).is_none() {
        verified.problem(|| format!("row {index}: it has quotes and no name"));
    }
}

/// Reads the stream of a segment of events and says what is wrong; also beside its writer. What the events say is not
/// looked at.
#[must_use]
pub fn verify_events(segment: &EventsReader) -> Verified {
    let mut verified = Verified::default();
    let sent = segment.sent();
    let is_alive = segment.writer_state() == WriterState::Alive;
    let capacity = segment.header().layout.stream_capacity;
    let first = sent.saturating_sub(capacity);
    for position in first..sent {
        let expected = position.wrapping_mul(2).wrapping_add(2);
        match segment.slot_sequence(position) {
            found if found == expected => verified.updates += 1,
            // The writer has gone round since.
            found if is_alive && found > expected => verified.overtaken += 1,
            found if found > expected => {
                verified.problem(|| format!("event {position} is torn, and nobody writes"));
            }
            _ => verified.problem(|| format!("event {position} of {sent} is missing")),
        }
    }
    if !segment.is_whole() {
        verified.problem(|| "the file has another length than when it was opened".to_owned());
    }
    verified
}

/// A value that no write was met at, within bounds.
fn patiently<T>(mut read: impl FnMut() -> Result<T, ReadError>) -> Option<T> {
    (0..LOOKS).find_map(|_| read().ok())
}

fn verify_stream(segment: &SegmentReader, verified: &mut Verified) {
    let Some(mut stream) = segment.stream() else { return };
    let end = stream.position();
    stream.rewind();
    let is_alive = segment.writer_state() == WriterState::Alive;
    // Each turn takes a message or skips some, so there are no more turns than messages.
    for _ in 0..=stream.capacity() {
        if stream.position() >= end {
            return;
        }
        match stream.try_recv() {
            Ok(Some(update)) => {
                verified.updates += 1;
                if update.kind().is_none() || update.reserved != 0 {
                    let at = stream.position();
                    verified.problem(|| {
                        format!("update {at}: it has values that no writer of this version sends")
                    });
                }
            }
            // A message is there before the end counts it.
            Ok(None) => {
                let at = stream.position();
                return verified.problem(|| format!("update {at} of {end} is missing"));
            }
            Err(lost) if is_alive => verified.overtaken += lost.0,
            Err(lost) => verified.problem(|| format!("{} updates are torn, and nobody writes", lost.0)),
        }
    }
}

/// What [`reclaim`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// The file is removed; who has it mapped keeps its memory.
    Removed,
    /// Its writer lives.
    Kept,
}

/// Removes a segment, damaged or not, whose writer is gone. One with a living writer is never removed.
///
/// # Errors
/// [`ShmError::Missing`], [`ShmError::NotOurs`], and what the system says.
pub fn reclaim(folder: &Folder, name: &SegmentName) -> Result<Reclaimed, ShmError> {
    let path = folder.file(name);
    // It must be there: a name that was mistyped is told.
    folder.open_segment(name)?;
    match Old::lock(folder, name) {
        Err(ShmError::InUse { .. }) => Ok(Reclaimed::Kept),
        Err(error) => Err(error),
        // Another writer has the name by now.
        Ok(None) => Ok(Reclaimed::Kept),
        // The lock is held until the file is gone, so no writer replaces it meanwhile.
        Ok(Some(_locked)) => {
            fs::remove_file(&path).map_err(system("remove", &path))?;
            Ok(Reclaimed::Removed)
        }
    }
}

/// Removes what writers began and did not finish because they were killed; returns how many files.
///
/// # Errors
/// What the system says of the folder.
pub fn reclaim_unfinished(folder: &Folder) -> Result<usize, ShmError> {
    Ok(folder.unfinished()?.iter().filter(|path| is_removed(path)).count())
}

/// Removes a file unless its writer lives, which holds its lock.
fn is_removed(path: &Path) -> bool {
    // A pipe must not keep this waiting, and a link is none of a writer's.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    opened.is_ok_and(|file| file.try_lock().is_ok() && fs::remove_file(path).is_ok())
}

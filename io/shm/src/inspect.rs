//! Verifies segments, and removes those whose writer has ended.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use tickpath_lockfree::table::ReadError;

use crate::folder::system;
use crate::writer::ExistingSegment;
use crate::{EventsReader, Folder, SegmentName, SegmentReader, ShmError, WriterState};

/// Maximum number of problems described; further ones are only counted.
const PROBLEMS_MAX: usize = 16;
/// Maximum number of attempts to read a row that is being written; then its write counts as unfinished.
const READ_TRIES: usize = 1_000;

/// Result of [`verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of rows with a name.
    pub symbols: u64,
    /// Number of rows with a quote.
    pub quotes: u64,
    /// Number of updates or events read from the stream.
    pub updates: u64,
    /// Number of updates or events overwritten before they were read, which is not a problem.
    pub overtaken: u64,
    /// Descriptions of the problems, up to 16.
    pub problems: Vec<String>,
    /// Number of problems.
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

/// Reads everything in a segment of market data and reports the problems. Also works while its writer runs.
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
    let name = match retry_read(|| segment.raw_symbol(index)) {
        Some(name) => name,
        None => return verified.problem(|| format!("row {index}: its name was never completely written")),
    };
    let is_named = name.as_str().is_some();
    verified.symbols += u64::from(is_named);
    if !is_named && !name.is_unnamed() {
        verified.problem(|| format!("row {index}: its name is not printable"));
    }
    // Read `writes` before the last check reads the name again: a row gets its name before its first quote.
    let writes = segment.entry(index).map_or(0, |entry| entry.writes());
    let Some(quote) = retry_read(|| segment.try_read(index)) else {
        return verified.problem(|| format!("row {index}: its quote was never completely written"));
    };
    verified.quotes += u64::from(writes > 0);
    if quote.reserved != 0 || quote.health > 3 {
        verified.problem(|| format!("row {index}: its quote has values that this version never stores"));
    }
    if writes > 0 && !is_named && segment.symbol(index).is_none() {
        verified.problem(|| format!("row {index}: it has quotes and no name"));
    }
}

/// Reads the stream of a segment of events and reports the problems. Also works while its writer runs.
/// Ignores the contents of the events.
#[must_use]
pub fn verify_events(segment: &EventsReader) -> Verified {
    let mut verified = Verified::default();
    // Read the state before the position: a writer may overwrite slots in between and then end.
    let is_alive = segment.writer_state() == WriterState::Alive;
    let sent = segment.sent();
    let capacity = segment.header().layout.stream_capacity;
    let first = sent.saturating_sub(capacity);
    for position in first..sent {
        let expected = position.wrapping_mul(2).wrapping_add(2);
        match segment.slot_sequence(position) {
            found if found == expected => verified.updates += 1,
            // The writer has overwritten the slot since `sent` was read.
            found if is_alive && found > expected => verified.overtaken += 1,
            found if found > expected => {
                verified.problem(|| format!("event {position} is torn, and there is no writer"));
            }
            _ => verified.problem(|| format!("event {position} of {sent} is missing")),
        }
    }
    if !segment.is_whole() {
        verified.problem(|| "the file has another length than when it was opened".to_owned());
    }
    verified
}

/// Repeats a read until it does not collide with a write; `None` after [`READ_TRIES`] attempts.
fn retry_read<T>(mut read: impl FnMut() -> Result<T, ReadError>) -> Option<T> {
    (0..READ_TRIES).find_map(|_| read().ok())
}

fn verify_stream(segment: &SegmentReader, verified: &mut Verified) {
    let Some(mut stream) = segment.stream() else { return };
    // As in `verify_events`.
    let is_alive = segment.writer_state() == WriterState::Alive;
    let end = stream.position();
    stream.rewind();
    // Each iteration receives an update or skips overwritten ones, so this many iterations suffice.
    for _ in 0..=stream.capacity() {
        if stream.position() >= end {
            return;
        }
        match stream.try_recv() {
            Ok(Some(update)) => {
                verified.updates += 1;
                if update.kind().is_none() || update.has_more > 1 {
                    let at = stream.position();
                    verified.problem(|| {
                        format!("update {at}: it has values that no writer of this version sends")
                    });
                }
            }
            // The writer stores an update before it advances the end position, so none may be missing.
            Ok(None) => {
                let at = stream.position();
                return verified.problem(|| format!("update {at} of {end} is missing"));
            }
            Err(lost) if is_alive => verified.overtaken += lost.0,
            Err(lost) => verified.problem(|| format!("{} updates are torn, and there is no writer", lost.0)),
        }
    }
}

/// Result of [`reclaim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// The file was removed; processes that have mapped it keep the memory.
    Removed,
    /// No file was removed: the writer is alive, or the file was replaced or removed meanwhile.
    Kept,
}

/// Removes a segment, damaged or not, whose writer has ended. Never removes a segment with a live writer.
///
/// # Errors
/// [`ShmError::Missing`], [`ShmError::NotPrivate`], and the system's errors.
pub fn reclaim(folder: &Folder, name: &SegmentName) -> Result<Reclaimed, ShmError> {
    let path = folder.file(name);
    // Report a missing segment, such as for a mistyped name; `lock` does not report it.
    folder.open_segment(name)?;
    match ExistingSegment::lock(folder, name) {
        Err(ShmError::InUse { .. }) => Ok(Reclaimed::Kept),
        Err(error) => Err(error),
        // The file was replaced or removed meanwhile.
        Ok(None) => Ok(Reclaimed::Kept),
        // The lock is held until the file is removed, so no writer replaces it meanwhile.
        Ok(Some(_locked)) => {
            fs::remove_file(&path).map_err(system("remove", &path))?;
            Ok(Reclaimed::Removed)
        }
    }
}

/// Removes unfinished files of killed writers; returns their number.
///
/// # Errors
/// The system's error when it cannot list the folder.
pub fn reclaim_unfinished(folder: &Folder) -> Result<usize, ShmError> {
    Ok(folder.unfinished()?.iter().filter(|path| is_removed(path)).count())
}

/// Removes a file unless a live writer holds its lock; returns whether it was removed.
fn is_removed(path: &Path) -> bool {
    // Refuse symbolic links, which no writer creates, and do not block on opening a FIFO.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    opened.is_ok_and(|file| file.try_lock().is_ok() && fs::remove_file(path).is_ok())
}

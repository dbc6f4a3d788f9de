//! The writer of a segment of market data. A segment has at most one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{io, thread};

use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use tickpath_lockfree::table::{self, NoEntry};
use tickpath_lockfree::{LINE_LEN, SharedLines, broadcast};
use tickpath_types::{MarketUpdate, Nanos, TopOfBook};
use zerocopy::IntoBytes;

use crate::folder::{is_at, system};
use crate::header::{Header, LIVE_LINE, SegmentConfig};
use crate::live::{LiveWord, STATE_CLOSED, STATE_OPEN};
use crate::process::WriterId;
use crate::{Folder, NameError, SegmentName, ShmError, SymbolName, mapping};

/// Maximum number of attempts to create a segment while other processes replace or remove its file.
const TRIES_MAX: usize = 16;
/// Maximum number of attempts to lock a closed segment, and the pause between attempts: 1 s in total.
const CLOSED_TRIES_MAX: u32 = 1_000;
const CLOSED_PAUSE: Duration = Duration::from_millis(1);

/// Counter that makes the names of unfinished files unique within this process.
static NEW_FILES: AtomicU32 = AtomicU32::new(0);

/// Writes a segment of market data: names, quotes, updates, and a heartbeat.
///
/// While this writer lives, no other writer gets the same name. When dropped, it marks the segment as closed
/// and leaves it in the folder, so that the last values stay readable.
#[derive(Debug)]
pub struct SegmentWriter {
    header: Header,
    path: PathBuf,
    lines: SharedLines,
    names: table::Writer<SymbolName>,
    named: u64,
    quotes: table::Writer<TopOfBook>,
    quotes_written: u64,
    stream: Option<broadcast::Sender<MarketUpdate>>,
    /// Holds the lock that excludes other writers; the kernel releases it when the process ends.
    _file: File,
}

impl SegmentWriter {
    /// Creates a segment. Replaces a segment of this name whose writer has ended. The new segment is
    /// invisible until it is complete. `now` is the time since the Unix epoch.
    ///
    /// # Errors
    /// [`ShmError::InUse`] while another writer lives, and the system's errors.
    pub fn create(
        folder: &Folder,
        name: &SegmentName,
        config: &SegmentConfig,
        now: Nanos,
    ) -> Result<SegmentWriter, ShmError> {
        let CreatedSegment { header, path, lines, file } =
            CreatedSegment::new(folder, name, Header::new(config), now)?;
        let wrong = |_| system("map", &path)(io::ErrorKind::InvalidData.into());
        let sections = Sections::of(&lines, &header).ok_or(tickpath_lockfree::WrongMemory);
        let Sections { names, quotes, stream } = sections.map_err(wrong)?;
        let mut writer = SegmentWriter {
            names: table::Writer::over(names).map_err(wrong)?,
            named: 0,
            quotes: table::Writer::over(quotes).map_err(wrong)?,
            quotes_written: 0,
            stream: stream.map(broadcast::Sender::over).transpose().map_err(wrong)?,
            lines,
            header,
            path,
            _file: file,
        };
        writer.heartbeat(now);
        Ok(writer)
    }

    /// Names the row of an instrument; to be called before its first quote. Readers see the name at once. An
    /// existing name is replaced.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn name(&mut self, index: usize, text: &str) -> Result<(), NameError> {
        let name = SymbolName::new(text).ok_or(NameError::Text)?;
        let rows = self.rows();
        self.names.write(index, &name).map_err(|NoEntry| NameError::NoRow { index, rows })?;
        self.named += 1;
        LiveWord::Named.store(&self.lines, self.named);
        Ok(())
    }

    /// Writes the latest quote of an instrument into the cache. Wait-free, a few nanoseconds.
    ///
    /// # Errors
    /// [`NoEntry`] when the segment does not have this row; nothing is written.
    #[inline]
    pub fn write(&mut self, index: usize, quote: &TopOfBook) -> Result<(), NoEntry> {
        self.quotes_written += 1;
        self.quotes.write(index, quote)
    }

    /// Applies `change` to the latest quote of an instrument, or to zeros if it has none. Wait-free, a few
    /// nanoseconds.
    ///
    /// # Errors
    /// [`NoEntry`] when the segment does not have this row; nothing is written.
    #[inline]
    pub fn update(&mut self, index: usize, change: impl FnOnce(&mut TopOfBook)) -> Result<(), NoEntry> {
        self.quotes_written += 1;
        self.quotes.update(index, change)
    }

    /// Appends an update to the stream, and overwrites the oldest one when the stream is full. The update's
    /// instrument is a row of the table. Does nothing without a stream.
    #[inline]
    pub fn send(&mut self, update: &MarketUpdate) {
        if let Some(stream) = &mut self.stream {
            stream.send(*update);
        }
    }

    /// Publishes the number of quotes written, and that this writer is alive at `now`, a time since the Unix
    /// epoch. Call it ten times a second.
    pub fn heartbeat(&mut self, now: Nanos) {
        LiveWord::Heartbeat.store(&self.lines, now.0);
        LiveWord::QuotesWritten.store(&self.lines, self.quotes_written);
    }

    /// Returns the number of table rows, one for each instrument.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.quotes.entries()
    }

    /// Returns the header, which never changes.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        LiveWord::QuotesWritten.store(&self.lines, self.quotes_written);
        LiveWord::State.store(&self.lines, STATE_CLOSED);
    }
}

/// A new segment, whose file has its final name.
pub(crate) struct CreatedSegment {
    pub(crate) header: Header,
    pub(crate) path: PathBuf,
    pub(crate) lines: SharedLines,
    /// The locked file.
    pub(crate) file: File,
}

impl CreatedSegment {
    /// Completes `header` and creates a segment with it. Replaces a segment whose writer has ended.
    pub(crate) fn new(
        folder: &Folder,
        name: &SegmentName,
        header: Header,
        now: Nanos,
    ) -> Result<CreatedSegment, ShmError> {
        let path = folder.file(name);
        for _ in 0..TRIES_MAX {
            let Some(old) = ExistingSegment::lock(folder, name)? else { continue };
            let writer = WriterId::this_process().map_err(system("describe this process for", &path))?;
            let header = header.completed(old.generation.wrapping_add(1), now, writer);
            let number = NEW_FILES.fetch_add(1, Ordering::Relaxed);
            let Some(new) = NewFile::create(folder.new_file(name, number), &header)? else { continue };
            if new.publish(&path, &old)? {
                return Ok(CreatedSegment { header, path, lines: new.lines, file: new.file });
            }
        }
        Err(ShmError::ConcurrentChange(path))
    }
}

/// The sections of a segment of market data.
pub(crate) struct Sections {
    pub(crate) names: SharedLines,
    pub(crate) quotes: SharedLines,
    pub(crate) stream: Option<SharedLines>,
}

impl Sections {
    /// Returns the sections at the offsets in `header`; `None` when a section is not within `lines`.
    pub(crate) fn of(lines: &SharedLines, header: &Header) -> Option<Sections> {
        let line = LINE_LEN as u64;
        let part = |offset: u64, count: u64| {
            lines.part(usize::try_from(offset / line).ok()?, usize::try_from(count).ok()?)
        };
        let stream = match usize::try_from(header.layout.stream_capacity).ok()? {
            0 => None,
            capacity => {
                let count = broadcast::lines_of::<MarketUpdate>(capacity) as u64;
                Some(part(header.layout.stream_offset, count)?)
            }
        };
        Some(Sections {
            names: part(header.layout.names_offset, header.layout.rows)?,
            quotes: part(header.layout.quotes_offset, header.layout.rows)?,
            stream,
        })
    }
}

/// The current segment of a name, locked against other writers.
pub(crate) struct ExistingSegment {
    pub(crate) generation: u64,
    /// The locked file, which no other writer can replace; `None` when no segment has the name.
    file: Option<File>,
}

impl ExistingSegment {
    /// Locks the segment with this name, if there is one. `None` when it was replaced or removed meanwhile.
    pub(crate) fn lock(folder: &Folder, name: &SegmentName) -> Result<Option<ExistingSegment>, ShmError> {
        let (path, file, found) = match folder.open_segment(name) {
            Err(ShmError::Missing { .. }) => return Ok(Some(ExistingSegment { generation: 0, file: None })),
            opened => opened?,
        };
        let mut bytes = [0; size_of::<Header>()];
        let len = file.read_at(&mut bytes, 0).map_err(system("read", &path))?;
        let header = Header::check(&bytes[..len], found.len()).ok();
        // A child process that is being started inherits our descriptors and briefly holds the lock: retry.
        for tries_left in (0..CLOSED_TRIES_MAX).rev() {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if !is_at(&found, &path) => return Ok(None),
                Err(TryLockError::WouldBlock) if tries_left > 0 && is_closed(&file) => {
                    thread::sleep(CLOSED_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(ShmError::InUse { path, pid: header.map(|header| header.writer.pid) });
                }
                Err(TryLockError::Error(error)) => return Err(system("lock", &path)(error)),
                Ok(()) => break,
            }
        }
        if !is_at(&found, &path) {
            return Ok(None);
        }
        Ok(Some(ExistingSegment {
            generation: header.map_or(0, |header| header.generation),
            file: Some(file),
        }))
    }
}

/// Reads from a segment's file whether its writer has closed it.
fn is_closed(file: &File) -> bool {
    let mut word = [0; 8];
    let read = file.read_at(&mut word, (LIVE_LINE * LINE_LEN) as u64);
    read.is_ok_and(|len| len == word.len()) && u64::from_ne_bytes(word) == STATE_CLOSED
}

/// A segment's file under a temporary name, until `publish` gives it the final name.
struct NewFile {
    path: PathBuf,
    file: File,
    lines: SharedLines,
}

impl NewFile {
    /// Creates the file. `None` when a killed writer with the same process id has left a file of this name.
    fn create(path: PathBuf, header: &Header) -> Result<Option<NewFile>, ShmError> {
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&path);
        let file = match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            created => created.map_err(system("make", &path))?,
        };
        match NewFile::fill(&file, header) {
            Ok(lines) => Ok(Some(NewFile { path, file, lines })),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(match error.kind() {
                    io::ErrorKind::StorageFull => ShmError::NoSpace { path, len: header.file_len },
                    _ => system("fill", &path)(error),
                })
            }
        }
    }

    /// Locks the file and allocates all its space. Without the allocation, a write to the mapping could raise
    /// SIGBUS once the file system is full.
    fn fill(file: &File, header: &Header) -> io::Result<SharedLines> {
        // Waits while a process that removes unfinished files holds this file's lock.
        file.lock()?;
        let len = header.file_len.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        fallocate(file, FallocateFlags::empty(), 0, len)?;
        file.write_all_at(header.as_bytes(), 0)?;
        let lines = mapping::map(file, header.file_len, true)?;
        LiveWord::State.store(&lines, STATE_OPEN);
        Ok(lines)
    }

    /// Gives the file its final name and replaces `old`. False when another writer took the name first, or a
    /// process removed the file as the leftover of a killed writer.
    fn publish(&self, path: &Path, old: &ExistingSegment) -> Result<bool, ShmError> {
        let done = match old.file {
            Some(_) => fs::rename(&self.path, path),
            // A rename would replace a segment that another writer has just created; a hard link fails.
            None => fs::hard_link(&self.path, path),
        };
        let _ = fs::remove_file(&self.path);
        match done {
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                Ok(false)
            }
            done => done.map(|()| true).map_err(system("name", path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leftover_or_removed_file_causes_a_retry() {
        let place = tempfile::tempdir().expect("a folder can be made");
        let folder = Folder::create(place.path()).expect("it is ours");
        let name = SegmentName::new("feed").expect("it is a name");
        let writer = WriterId::this_process().expect("/proc is there");
        let config = SegmentConfig { rows: 1, stream_capacity: 0, ..SegmentConfig::default() };
        let header = Header::new(&config).completed(1, Nanos(0), writer);
        let create = || NewFile::create(folder.new_file(&name, 0), &header).expect("there is room");
        fs::write(folder.new_file(&name, 0), b"").expect("there is room");
        assert!(create().is_none());

        let path = folder.file(&name);
        for old in [
            ExistingSegment { generation: 0, file: None },
            ExistingSegment { generation: 0, file: File::open(place.path()).ok() },
        ] {
            assert_eq!(
                crate::reclaim_unfinished(&folder).unwrap_or_default(),
                usize::from(old.file.is_none())
            );
            let new = create().expect("nothing is left there");
            assert_eq!(crate::reclaim_unfinished(&folder).unwrap_or_default(), 0, "its writer lives");
            fs::remove_file(&new.path).expect("it is there");
            assert!(!new.publish(&path, &old).expect("that is no error"));
            assert!(!path.exists());
        }
    }
}

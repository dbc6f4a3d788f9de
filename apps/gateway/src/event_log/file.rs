//! The files of a log, on a disk that may be full.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tickpath_config::folder_of;
use tickpath_types::Nanos;

use super::counters::LogCounters;
use super::format::{FileHeader, Origin, RecordHeader, RecordKind};
use super::week::week_of;

/// Pause after a failed write; records that arrive in it are lost.
const RETRY_AFTER: Nanos = Nanos::from_secs(1);
/// Maximum number of names tried when a file of that millisecond already exists.
const NAMES_MAX: u64 = 1_000;

/// Creates log files.
pub trait Disk {
    /// Type of an open file.
    type File: DiskFile;

    /// Creates the file and its folders.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::AlreadyExists`] if a file of that name exists.
    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
}

/// An open file that is written sequentially.
pub trait DiskFile: Write {
    /// Truncates the file to `len` bytes; later writes continue there.
    ///
    /// # Errors
    /// The system's error.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// Syncs the file: returns once everything written is on disk.
    ///
    /// # Errors
    /// The system's error.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    type File = File;

    fn create(&mut self, path: &Path) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder_of(path))?;
        // Other users of the machine must not learn what clients trade.
        let mut options = File::options();
        options.mode(0o600).append(true).create_new(true).open(path)
    }
}

impl DiskFile for File {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        // The file is open for appending, so writes continue at its end.
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Settings common to all files of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Folder of all logs.
    pub folder: PathBuf,
    /// Name of the gateway.
    pub name: String,
    /// Id of the run.
    pub session: [u8; 16],
    /// Configuration as text, without secrets.
    pub config: String,
    /// Number of bytes written after which the file is synced to disk.
    pub flush_bytes: u64,
    /// Time after which written bytes are synced to disk.
    pub flush_interval: Nanos,
}

/// Writer of the current file, and of the next one when the week ends.
///
/// Records are queued and written whole. A partial write is truncated, so that the file ends with a whole
/// record; lost records are counted.
pub struct LogFile<D: Disk> {
    disk: D,
    run: Run,
    file: D::File,
    path: PathBuf,
    week: String,
    part: u32,
    /// Length of the whole records in the file, in bytes.
    len: u64,
    /// Records queued to be written, and their number.
    pending: Vec<u8>,
    pending_count: u64,
    unsynced: u64,
    synced_at: Nanos,
    /// Earliest time of the next write after a failed one.
    retry_at: Option<Nanos>,
    tell: fn(&str),
}

impl<D: Disk> LogFile<D> {
    /// Creates a run's first file. `clock` is the gateway's clock at `utc`; `tell` reports each failure once.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(mut disk: D, run: Run, utc: Nanos, clock: Nanos, tell: fn(&str)) -> io::Result<LogFile<D>> {
        let week = week_of(utc);
        let (file, path) = new_file(&mut disk, &run, &week, utc)?;
        let mut log = LogFile {
            disk,
            run,
            file,
            path,
            week,
            part: 0,
            len: 0,
            pending: Vec::with_capacity(1 << 16),
            pending_count: 0,
            unsynced: 0,
            synced_at: utc,
            retry_at: None,
            tell,
        };
        log.begin(utc, clock, 0);
        let (bytes, file) = (&log.pending, &mut log.file);
        file.write_all(bytes)?;
        log.len = log.pending.len() as u64;
        log.unsynced = log.len;
        log.pending.clear();
        Ok(log)
    }

    /// Path of the current file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Buffer for whole records; each is [counted](Self::added).
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Counts one record put into [`pending`](Self::pending).
    pub fn added(&mut self) {
        self.pending_count += 1;
    }

    /// Queues a record that does not take a sequence number.
    fn note(&mut self, kind: RecordKind, time: Nanos, sequence: u64, payload: &[u8]) {
        let header =
            RecordHeader { kind, origin: Origin::default(), sequence, time, origin_time: Nanos::ZERO };
        header.write(payload, &mut self.pending);
    }

    fn begin(&mut self, utc: Nanos, clock: Nanos, sequence: u64) {
        let header = FileHeader {
            part: self.part,
            session: self.run.session,
            start: utc,
            clock,
            sequence,
            name: self.run.name.clone(),
        };
        self.pending.extend_from_slice(&header.write());
        let config = self.run.config.clone();
        self.note(RecordKind::Config, clock, sequence, config.as_bytes());
    }

    /// Writes the queued records; those that cannot be written are dropped and counted.
    pub fn write(&mut self, utc: Nanos, counters: &LogCounters) {
        if self.pending.is_empty() {
            return;
        }
        if self.retry_at.is_some_and(|at| utc < at) {
            counters.lost_to_disk.add(self.pending_count);
        } else {
            match self.write_pending() {
                Ok(()) => {
                    counters.written.add(self.pending_count);
                    counters.bytes.add(self.pending.len() as u64);
                    if self.retry_at.take().is_some() {
                        (self.tell)("the event log continues: the disk accepts writes again");
                    }
                }
                Err(error) => {
                    counters.lost_to_disk.add(self.pending_count);
                    counters.disk_errors.add(1);
                    if self.retry_at.is_none() {
                        (self.tell)(&format!(
                            "cannot write {}: {error}; trading continues, and the log counts what it misses",
                            self.path.display()
                        ));
                    }
                    self.retry_at = Some(utc + RETRY_AFTER);
                }
            }
        }
        self.pending.clear();
        self.pending_count = 0;
    }

    fn write_pending(&mut self) -> io::Result<()> {
        if self.retry_at.is_some() {
            // The failed write's remainder, in case truncation failed then as well.
            self.file.cut(self.len)?;
        }
        if let Err(error) = self.file.write_all(&self.pending) {
            // A full disk still allows truncation. If it fails, the next write tries it again.
            let _ = self.file.cut(self.len);
            return Err(error);
        }
        self.len += self.pending.len() as u64;
        self.unsynced += self.pending.len() as u64;
        Ok(())
    }

    /// Syncs the file to disk when enough bytes are written or enough time has passed.
    pub fn flush_when_due(&mut self, utc: Nanos, counters: &LogCounters) {
        let is_late = utc.0.saturating_sub(self.synced_at.0) >= self.run.flush_interval.0;
        if self.unsynced >= self.run.flush_bytes || (is_late && self.unsynced > 0) {
            self.flush(utc, counters);
        }
    }

    fn flush(&mut self, utc: Nanos, counters: &LogCounters) {
        self.unsynced = 0;
        self.synced_at = utc;
        match self.file.sync() {
            Ok(()) => counters.flushes.add(1),
            Err(error) => {
                if counters.flush_errors.read() == 0 {
                    (self.tell)(&format!("cannot force {} to the disk: {error}", self.path.display()));
                }
                counters.flush_errors.add(1);
            }
        }
    }

    /// Continues in a new file when the week ends; `sequence` is the number of the next record. If no file
    /// can be created, the old one continues.
    pub fn turn_when_due(&mut self, utc: Nanos, clock: Nanos, sequence: u64, counters: &LogCounters) {
        let week = week_of(utc);
        if week == self.week {
            return;
        }
        self.write(utc, counters);
        match new_file(&mut self.disk, &self.run, &week, utc) {
            Ok((file, path)) => {
                self.note(RecordKind::Continued, clock, sequence, b"");
                self.write(utc, counters);
                self.flush(utc, counters);
                (self.file, self.path, self.len) = (file, path, 0);
                self.retry_at = None;
                self.part += 1;
                self.begin(utc, clock, sequence);
                self.write(utc, counters);
            }
            Err(error) => {
                counters.disk_errors.add(1);
                let folder = self.run.folder.display();
                (self.tell)(&format!(
                    "no new file of the event log in {folder}: {error}; the old one continues"
                ));
            }
        }
        // Retried only next week: otherwise every cycle would report the same failure.
        self.week = week;
    }

    /// Writes the end record of the run.
    pub fn end(&mut self, utc: Nanos, clock: Nanos, sequence: u64, counters: &LogCounters) {
        self.note(RecordKind::End, clock, sequence, b"");
        self.write(utc, counters);
        self.flush(utc, counters);
    }
}

fn new_file<D: Disk>(disk: &mut D, run: &Run, week: &str, utc: Nanos) -> io::Result<(D::File, PathBuf)> {
    let folder = run.folder.join(week).join(&run.name);
    let start_ms = utc.0 / 1_000_000;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for ms in start_ms..start_ms + NAMES_MAX {
        let path = folder.join(ms.to_string());
        match disk.create(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

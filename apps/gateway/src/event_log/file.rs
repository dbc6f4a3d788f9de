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

/// How long nothing is tried after a write has failed: what comes meanwhile is lost to the log.
const RETRY_AFTER: Nanos = Nanos::from_secs(1);
/// Names that are tried when a file of that millisecond is there already.
const NAMES_MAX: u64 = 1_000;

/// Where files are made.
pub trait Disk {
    /// An open file.
    type File: DiskFile;

    /// Makes the file, and the folders that it needs.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::AlreadyExists`] when there is one of that name.
    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
}

/// An open file that is written from its beginning to its end.
pub trait DiskFile: Write {
    /// Cuts the file to so many bytes and goes on behind them.
    ///
    /// # Errors
    /// The system's.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// Returns when all that was written is on the disk.
    ///
    /// # Errors
    /// The system's.
    fn sync(&mut self) -> io::Result<()>;
}

/// The disks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    type File = File;

    fn create(&mut self, path: &Path) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder_of(path))?;
        // No other user of the machine may know what clients trade.
        let mut options = File::options();
        options.mode(0o600).append(true).create_new(true).open(path)
    }
}

impl DiskFile for File {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        // Appending, it goes on at the end wherever that is.
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// What does not change between the files of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder of all logs.
    pub folder: PathBuf,
    /// The gateway's name.
    pub name: String,
    /// The run.
    pub session: [u8; 16],
    /// The configuration as text, without secrets.
    pub config: String,
    /// Bytes after which the file is forced to the disk.
    pub flush_bytes: u64,
    /// Time after which it is.
    pub flush_interval: Nanos,
}

/// The file that is written, and the next one when the week is over.
///
/// Records come in whole and leave in whole: what cannot be written is cut off again, so that the file ends with a record,
/// and is counted.
pub struct LogFile<D: Disk> {
    disk: D,
    run: Run,
    file: D::File,
    path: PathBuf,
    week: String,
    part: u32,
    /// Bytes of the file that are records.
    len: u64,
    /// Records that wait to be written, and how many they are.
    pending: Vec<u8>,
    pending_count: u64,
    unsynced: u64,
    synced_at: Nanos,
    /// Nothing is tried before, since the latest write failed.
    retry_at: Option<Nanos>,
    tell: fn(&str),
}

impl<D: Disk> LogFile<D> {
    /// Begins the first file of a run; `clock` is the gateway's at `utc`, `tell` says what goes wrong, once each time.
    ///
    /// # Errors
    /// The system's.
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

    /// The file that is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where records are put, whole, each of which is [counted](Self::added).
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// One record was put among those that wait.
    pub fn added(&mut self) {
        self.pending_count += 1;
    }

    /// A record without a number of its own.
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

    /// Writes what waits. What cannot be written is gone and counted.
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
                        (self.tell)("the event log goes on: the disk takes it again");
                    }
                }
                Err(error) => {
                    counters.lost_to_disk.add(self.pending_count);
                    counters.disk_errors.add(1);
                    if self.retry_at.is_none() {
                        (self.tell)(&format!(
                            "cannot write {}: {error}; trading goes on, and what the log misses is counted",
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
            // What the failed write left behind, where even the cut failed then.
            self.file.cut(self.len)?;
        }
        if let Err(error) = self.file.write_all(&self.pending) {
            // A disk that is full still lets a file become shorter. Where not, it is tried before the next write.
            let _ = self.file.cut(self.len);
            return Err(error);
        }
        self.len += self.pending.len() as u64;
        self.unsynced += self.pending.len() as u64;
        Ok(())
    }

    /// Forces the file to the disk when enough was written, or long enough ago.
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

    /// Goes on in another file when the week is over; `sequence` is the number of the next record. Where there can be none
    /// the old one goes on.
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
                    "no new file of the event log in {folder}: {error}; the old one goes on"
                ));
            }
        }
        // Not again before the next week, or the same would be said in every cycle.
        self.week = week;
    }

    /// Ends the run in order.
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

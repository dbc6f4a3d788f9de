//! The duty cycle's end of the log, and the writer thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickpath_lockfree::crc32c;
use tickpath_types::Nanos;

use super::counters::LogCounters;
use super::file::{Disk, LogFile, Run, SystemDisk};
use super::format::{Origin, PAYLOAD_MAX, RECORD_HEADER_LEN, RecordHeader, RecordKind};
use super::ring::{RingReader, RingWriter, ring};
use crate::config::GatewayConfig;

/// Sleep of the thread when the ring is empty; waking it would cost the duty cycle a system call.
const SLEEP: Duration = Duration::from_millis(5);
/// Number of queued bytes after which a write starts.
const WRITE_LEN: usize = 256 << 10;
/// Words of a record's header.
const HEADER_WORDS: usize = RECORD_HEADER_LEN / 8;

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// Folder of all logs.
    pub folder: PathBuf,
    /// The gateway's name, at most 32 bytes.
    pub name: String,
    /// Id of the run.
    pub session: [u8; 16],
    /// Size of the ring between the duty cycle and the thread, in bytes.
    pub buffer: usize,
    /// Number of bytes written after which the file is synced to disk.
    pub flush_bytes: u64,
    /// Time after which written bytes are synced to disk.
    pub flush_interval: Nanos,
    /// Reports each failure once.
    pub tell: fn(&str),
}

impl LogSettings {
    /// Settings with the configuration's defaults.
    #[must_use]
    pub fn new(folder: &Path, name: &str, session: [u8; 16]) -> LogSettings {
        LogSettings {
            folder: folder.to_owned(),
            name: name.to_owned(),
            session,
            buffer: 32 << 20,
            flush_bytes: 1 << 20,
            flush_interval: Nanos::from_secs(300),
            tell: |line| tickpath_config::print_stderr(format_args!("tickpath: {line}")),
        }
    }

    /// Settings of a configuration; `None` if it disables the log.
    #[must_use]
    pub fn of(config: &GatewayConfig, session: [u8; 16]) -> Option<LogSettings> {
        let log = &config.event_log;
        Some(LogSettings {
            buffer: log.buffer.0 as usize,
            flush_bytes: log.flush_bytes.0,
            flush_interval: log.flush_interval.0,
            ..LogSettings::new(log.folder.as_deref()?, &config.name, session)
        })
    }
}

/// Outcome of a log when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// The last file; `None` without a log.
    pub file: Option<PathBuf>,
    /// Number of records in the files.
    pub written: u64,
    /// Number of missing records.
    pub lost: u64,
}

/// The duty cycle's end of the log. Recording only copies the message: no allocation, no system call.
pub struct EventLog {
    ring: Option<RingWriter>,
    sequence: u64,
    counters: Arc<LogCounters>,
    thread: Option<JoinHandle<PathBuf>>,
}

impl EventLog {
    /// A disabled log.
    #[must_use]
    pub fn off() -> EventLog {
        EventLog { ring: None, sequence: 0, counters: Arc::default(), thread: None }
    }

    /// Starts a run's log. `config` is its configuration without secrets, `clock` the gateway's current time.
    ///
    /// # Errors
    /// The system's error: no folder, no file, no thread.
    pub fn start(settings: LogSettings, config: &str, clock: Nanos) -> io::Result<EventLog> {
        EventLog::start_on(SystemDisk, settings, config, clock)
    }

    /// Starts the log on another disk.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on<D>(disk: D, settings: LogSettings, config: &str, clock: Nanos) -> io::Result<EventLog>
    where
        D: Disk<File: Send> + Send + 'static,
    {
        let run = Run {
            folder: settings.folder,
            name: settings.name,
            session: settings.session,
            config: config.to_owned(),
            flush_bytes: settings.flush_bytes,
            flush_interval: settings.flush_interval,
        };
        let utc = utc_now();
        let file = LogFile::create(disk, run, utc, clock, settings.tell)?;
        let (writer, reader) = ring(settings.buffer);
        let counters = Arc::new(LogCounters::default());
        let worker = Worker {
            ring: reader,
            file,
            counters: Arc::clone(&counters),
            clock_behind: utc.0.wrapping_sub(clock.0),
            next: 0,
        };
        let thread = std::thread::Builder::new().name("event-log".to_owned()).spawn(move || worker.run())?;
        Ok(EventLog { ring: Some(writer), sequence: 0, counters, thread: Some(thread) })
    }

    /// Whether there is a log.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.ring.is_some()
    }

    /// The log's counters.
    #[must_use]
    pub fn counters(&self) -> Arc<LogCounters> {
        Arc::clone(&self.counters)
    }

    /// Records a message. `time` is the duty cycle's, `origin_time` that of its cause; zero when unknown.
    #[inline]
    pub fn record(
        &mut self,
        kind: RecordKind,
        origin: Origin,
        time: Nanos,
        origin_time: Nanos,
        payload: &[u8],
    ) {
        let Some(ring) = &mut self.ring else { return };
        let header = RecordHeader { kind, origin, sequence: self.sequence, time, origin_time };
        self.sequence += 1;
        self.counters.offered.set(self.sequence);
        let fits = payload.len() <= PAYLOAD_MAX && ring.push(&header.words(payload.len() as u32), payload);
        if !fits {
            self.counters.lost_to_ring.add(1);
        }
    }

    /// Ends the log after everything recorded is on disk.
    #[must_use]
    pub fn finish(mut self) -> LogEnd {
        let file = self.close();
        LogEnd {
            file,
            written: self.counters.written.read(),
            lost: self.counters.lost_to_ring.read() + self.counters.lost_to_disk.read(),
        }
    }

    fn close(&mut self) -> Option<PathBuf> {
        self.ring = None;
        let thread = self.thread.take()?;
        thread.thread().unpark();
        // A panic has already been reported; the file is then unknown.
        thread.join().ok()
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// The writer thread.
struct Worker<D: Disk> {
    ring: RingReader,
    file: LogFile<D>,
    counters: Arc<LogCounters>,
    /// Difference between UTC and the gateway's clock.
    clock_behind: u64,
    /// Sequence number of the next record.
    next: u64,
}

impl<D: Disk> Worker<D> {
    fn run(mut self) -> PathBuf {
        loop {
            // Read before taking records: records written before the ring was closed are then still taken.
            let is_closed = self.ring.is_closed();
            let count = self.take();
            let utc = utc_now();
            self.file.write(utc, &self.counters);
            self.file.turn_when_due(utc, self.clock(utc), self.next, &self.counters);
            self.file.flush_when_due(utc, &self.counters);
            match (count, is_closed) {
                (0, true) => break,
                (0, false) => std::thread::park_timeout(SLEEP),
                _ => {}
            }
        }
        let utc = utc_now();
        // The end record's number reveals records lost to the ring after the last one written.
        self.file.end(utc, self.clock(utc), self.counters.offered.read(), &self.counters);
        self.file.path().to_owned()
    }

    /// Converts UTC to the gateway's clock.
    fn clock(&self, utc: Nanos) -> Nanos {
        Nanos(utc.0.wrapping_sub(self.clock_behind))
    }

    /// Moves records from the ring to the write buffer until it is long enough; returns their number.
    fn take(&mut self) -> usize {
        let mut count = 0;
        while self.ring.len() >= HEADER_WORDS && self.file.pending().len() < WRITE_LEN {
            let payload_len = (self.ring.word(0) >> 32) as usize;
            self.next = self.ring.word(2) + 1;
            let pending = self.file.pending();
            let start = pending.len();
            self.ring.take(HEADER_WORDS + payload_len.div_ceil(8), pending);
            let end = start + RECORD_HEADER_LEN + payload_len;
            let checksum = crc32c::checksum(&pending[start + 4..end]);
            pending[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
            self.file.added();
            count += 1;
        }
        count
    }
}

fn utc_now() -> Nanos {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

//! Tests of the whole log: threads, full disks, weeks.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tickpath_types::Nanos;

use super::file::{LogFile, Run};
use super::format::{Origin, RecordHeader, RecordKind};
use super::*;

const WEEK_NS: u64 = 7 * 86_400_000_000_000;
const SESSION: [u8; 16] = [3; 16];

fn quiet(_: &str) {}

/// Names and bytes of all files.
type Files = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A disk in memory of limited capacity.
#[derive(Clone, Default)]
struct SmallDisk {
    files: Files,
    capacity: Arc<AtomicU64>,
    is_broken: Arc<AtomicBool>,
}

struct SmallFile {
    disk: SmallDisk,
    place: usize,
}

impl Disk for SmallDisk {
    type File = SmallFile;

    fn create(&mut self, path: &Path) -> io::Result<SmallFile> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(io::Error::other("broken"));
        }
        let mut files = self.files.lock().unwrap();
        let name = path.display().to_string();
        if files.iter().any(|(known, _)| *known == name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        files.push((name, vec![]));
        Ok(SmallFile { disk: self.clone(), place: files.len() - 1 })
    }
}

impl Write for SmallFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.disk.files.lock().unwrap();
        let used: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let free = (self.disk.capacity.load(Ordering::Relaxed) as usize).saturating_sub(used);
        if free == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = free.min(bytes.len());
        files[self.place].1.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for SmallFile {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.disk.files.lock().unwrap()[self.place].1.truncate(len as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.disk.is_broken.load(Ordering::Relaxed) { Err(io::Error::other("broken")) } else { Ok(()) }
    }
}

impl SmallDisk {
    fn new(capacity: u64) -> SmallDisk {
        let disk = SmallDisk::default();
        disk.capacity.store(capacity, Ordering::Relaxed);
        disk
    }

    /// Returns each file's name, its records' sequence numbers, the number of missing ones, and its end.
    fn read(&self) -> Vec<(String, Vec<u64>, u64, Tail)> {
        let read = |(name, bytes): &(String, Vec<u8>)| {
            let mut reader = LogReader::new(&bytes[..], Path::new(name)).unwrap();
            let mut numbers = vec![];
            while let Some(record) = reader.next().unwrap() {
                if record.kind.is_numbered() {
                    numbers.push(record.sequence);
                }
            }
            (name.clone(), numbers, reader.missing(), reader.tail())
        };
        self.files.lock().unwrap().iter().map(read).collect()
    }
}

fn run() -> Run {
    Run {
        folder: "logs".into(),
        name: "g".to_owned(),
        session: SESSION,
        config: "name = 'g'\n".to_owned(),
        flush_bytes: 1_000,
        flush_interval: Nanos::from_secs(300),
    }
}

/// Writes one record with a payload of `len` bytes.
fn write(file: &mut LogFile<SmallDisk>, utc: u64, sequence: u64, len: usize, counters: &LogCounters) {
    let header = RecordHeader {
        kind: RecordKind::VenueIn,
        origin: Origin::default(),
        sequence,
        time: Nanos(utc),
        origin_time: Nanos::ZERO,
    };
    header.write(&vec![7; len], file.pending());
    file.added();
    file.write(Nanos(utc), counters);
}

#[test]
fn a_full_disk_loses_records_and_nothing_else() {
    static SAID: Mutex<Vec<String>> = Mutex::new(vec![]);
    fn say(line: &str) {
        SAID.lock().unwrap().push(line.to_owned());
    }
    let second = 1_000_000_000;
    let disk = SmallDisk::new(2_000);
    let counters = LogCounters::default();
    let mut file = LogFile::create(disk.clone(), run(), Nanos(second), Nanos(5), say).unwrap();
    for sequence in 0..10 {
        write(&mut file, second + sequence, sequence, 460, &counters);
    }
    let lost = counters.lost_to_disk.read();
    assert_eq!((counters.written.read(), lost, counters.disk_errors.read()), (3, 7, 1));
    assert_eq!(SAID.lock().unwrap().len(), 1, "said once");
    // The file ends with a whole record, so later records are readable once there is space again.
    assert_eq!(disk.read()[0].1, [0, 1, 2]);
    disk.capacity.store(1 << 20, Ordering::Relaxed);
    write(&mut file, second + 20, 10, 460, &counters);
    assert_eq!(counters.lost_to_disk.read(), 8, "nothing is tried before a second is over");
    write(&mut file, 3 * second, 11, 460, &counters);
    file.end(Nanos(3 * second), Nanos(6), 12, &counters);
    assert_eq!(disk.read(), [("logs/1970-W01/g/1000".to_owned(), vec![0, 1, 2, 11], 8, Tail::Ended)]);
    let said = SAID.lock().unwrap().clone();
    assert!(said[0].contains("logs/1970-W01/g/1000") && said[0].contains("trading continues"), "{said:?}");
    assert!(said[1].contains("continues") && said.len() == 2, "{said:?}");
}

#[test]
fn a_week_has_a_file_and_two_runs_never_share_one() {
    let disk = SmallDisk::new(1 << 20);
    let counters = LogCounters::default();
    let mut file = LogFile::create(disk.clone(), run(), Nanos(5_000_000), Nanos(5), quiet).unwrap();
    let mut other = LogFile::create(disk.clone(), run(), Nanos(5_000_000), Nanos(5), quiet).unwrap();
    write(&mut file, 6_000_000, 0, 10, &counters);
    file.turn_when_due(Nanos(7_000_000), Nanos(7), 1, &counters);
    file.turn_when_due(Nanos(WEEK_NS), Nanos(8), 1, &counters);
    write(&mut file, WEEK_NS, 1, 10, &counters);
    file.end(Nanos(WEEK_NS), Nanos(9), 2, &counters);
    other.end(Nanos(WEEK_NS), Nanos(9), 0, &counters);
    assert_eq!(
        disk.read(),
        [
            ("logs/1970-W01/g/5".to_owned(), vec![0], 0, Tail::Continued),
            ("logs/1970-W01/g/6".to_owned(), vec![], 0, Tail::Ended),
            (format!("logs/1970-W02/g/{}", WEEK_NS / 1_000_000), vec![1], 0, Tail::Ended),
        ]
    );
    let files = disk.files.lock().unwrap();
    let header = LogReader::new(&files[2].1[..], Path::new("x")).unwrap().header().clone();
    assert_eq!((header.part, header.sequence, header.session), (1, 1, SESSION));
}

#[test]
fn a_disk_that_makes_no_new_file_goes_on_with_the_old_one() {
    let disk = SmallDisk::new(1 << 20);
    let counters = LogCounters::default();
    let mut file = LogFile::create(disk.clone(), run(), Nanos(0), Nanos(5), quiet).unwrap();
    disk.is_broken.store(true, Ordering::Relaxed);
    file.turn_when_due(Nanos(WEEK_NS), Nanos(8), 0, &counters);
    write(&mut file, WEEK_NS, 0, 10, &counters);
    file.end(Nanos(WEEK_NS), Nanos(9), 1, &counters);
    assert_eq!((counters.disk_errors.read(), counters.flush_errors.read()), (1, 1));
    assert_eq!(disk.read(), [("logs/1970-W01/g/0".to_owned(), vec![0], 0, Tail::Ended)]);
}

#[test]
fn a_file_is_forced_to_the_disk_by_its_length_and_by_time() {
    let disk = SmallDisk::new(1 << 20);
    let counters = LogCounters::default();
    let mut file = LogFile::create(disk, run(), Nanos(0), Nanos(5), quiet).unwrap();
    write(&mut file, 1, 0, 100, &counters);
    file.flush_when_due(Nanos(2), &counters);
    assert_eq!(counters.flushes.read(), 0);
    write(&mut file, 3, 1, 900, &counters);
    file.flush_when_due(Nanos(4), &counters);
    assert_eq!(counters.flushes.read(), 1, "by its length");
    write(&mut file, 5, 2, 10, &counters);
    let late = Nanos::from_secs(300);
    file.flush_when_due(Nanos(late.0 + 3), &counters);
    assert_eq!(counters.flushes.read(), 1);
    file.flush_when_due(Nanos(late.0 + 4), &counters);
    assert_eq!(counters.flushes.read(), 2, "by time");
    file.flush_when_due(Nanos(late.0 * 9), &counters);
    assert_eq!(counters.flushes.read(), 2, "nothing new");
}

#[test]
fn what_the_ring_had_no_room_for_is_missing_and_counted() {
    let place = tempfile::tempdir().unwrap();
    let settings =
        LogSettings { buffer: 1 << 10, tell: quiet, ..LogSettings::new(place.path(), "g", SESSION) };
    let mut log = EventLog::start(settings, "", Nanos(1)).unwrap();
    let counters = log.counters();
    let mut record = |len: usize| {
        log.record(RecordKind::VenueIn, Origin::default(), Nanos(2), Nanos::ZERO, &vec![1; len]);
    };
    record(10);
    record(2_000);
    record(format::PAYLOAD_MAX + 1);
    record(20);
    record(2_000);
    let end = log.finish();
    assert_eq!((end.written, end.lost), (2, 3));
    assert_eq!((counters.offered.read(), counters.lost_to_ring.read()), (5, 3));
    let mut reader = LogReader::open(end.file.as_deref().unwrap()).unwrap();
    let mut numbers = vec![];
    while let Some(record) = reader.next().unwrap() {
        numbers.extend(record.kind.is_numbered().then_some((record.sequence, record.payload.len())));
    }
    assert_eq!(numbers, [(0, 10), (3, 20)]);
    assert_eq!((reader.missing(), reader.tail()), (3, Tail::Ended), "also the one behind the last");
}

#[test]
fn everything_recorded_is_in_the_file_in_order() {
    let place = tempfile::tempdir().unwrap();
    let settings = LogSettings { tell: quiet, ..LogSettings::new(place.path(), "g", SESSION) };
    let mut log = EventLog::start(settings, "x", Nanos(1)).unwrap();
    for number in 0..20_000_u32 {
        let origin = Origin { stream: 1, account: 2, client: number };
        let payload = vec![number as u8; number as usize % 300];
        log.record(RecordKind::Broadcast, origin, Nanos(number.into()), Nanos(9), &payload);
    }
    let end = log.finish();
    assert_eq!((end.written, end.lost), (20_000, 0));
    let mut reader = LogReader::open(&end.file.unwrap()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().payload, b"x");
    for number in 0..20_000_u32 {
        let record = reader.next().unwrap().unwrap();
        assert_eq!((record.origin.client, record.payload.len()), (number, number as usize % 300));
        assert!(record.payload.iter().all(|byte| *byte == number as u8));
    }
    assert_eq!(reader.next().unwrap().unwrap().kind, RecordKind::End);
}

#[test]
fn a_folder_that_cannot_be_made_is_said_at_the_start() {
    let place = tempfile::NamedTempFile::new().unwrap();
    let settings = LogSettings::new(place.path(), "g", SESSION);
    assert!(EventLog::start(settings, "", Nanos(1)).is_err());
    let mut log = EventLog::off();
    log.record(RecordKind::Time, Origin::default(), Nanos(1), Nanos::ZERO, b"");
    assert_eq!(log.finish(), LogEnd::default());
}

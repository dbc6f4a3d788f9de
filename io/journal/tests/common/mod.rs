//! Shared helpers of the tests: a small log on an in-memory disk.
#![allow(dead_code, reason = "each test uses some")]

use tickpath_journal::{
    DiskFaults, FaultyDisk, InspectOptions, JournalConfig, OpenError, Opened, Policy, Reader, SessionName,
    open,
};
use tickpath_types::Sequence;

pub const PAYLOAD_LEN_MAX: usize = 100;

pub fn session() -> SessionName {
    SessionName::new("SESSION001").unwrap()
}

/// Returns a configuration with small sizes, so that tests fill segments and buffers soon.
pub fn config(policy: Policy) -> JournalConfig {
    JournalConfig {
        policy,
        segment_len: 4096,
        buffer_len: 1024,
        payload_len_max: PAYLOAD_LEN_MAX,
        first_sequence: Sequence(1),
    }
}

pub fn disk() -> FaultyDisk {
    FaultyDisk::new(1, DiskFaults::default())
}

/// Returns the payload of record `sequence`: 1 to 100 bytes derived from the sequence.
pub fn payload(sequence: u64) -> Vec<u8> {
    let len = 1 + (sequence * 37 % PAYLOAD_LEN_MAX as u64) as usize;
    (0..len as u64).map(|at| (sequence * 131 + at * 7 + 1) as u8).collect()
}

pub fn open_with(disk: &FaultyDisk, policy: Policy) -> Result<Opened<FaultyDisk>, OpenError> {
    open(disk, session(), config(policy), &InspectOptions::default())
}

/// Runs the journal and its worker until neither has work.
pub fn run_until_idle(opened: &mut Opened<FaultyDisk>) {
    while opened.journal.poll() + opened.worker.run_once() > 0 {}
}

/// Appends records up to `last`, and waits after each until it is durable.
pub fn append_to(opened: &mut Opened<FaultyDisk>, last: u64) {
    run_until_idle(opened);
    for sequence in opened.journal.last_appended().0 + 1..=last {
        opened.journal.append(Sequence(sequence), &payload(sequence)).unwrap();
        run_until_idle(opened);
    }
    assert_eq!(opened.journal.durable(), Sequence(last));
}

/// Returns a disk with a log of records up to `last`, each durable before the next was appended.
pub fn written(policy: Policy, last: u64) -> FaultyDisk {
    let disk = disk();
    append_to(&mut open_with(&disk, policy).unwrap(), last);
    disk.kill();
    disk
}

/// Returns a disk with a log up to `last`, appended in batches, so that no record reports the last ones as
/// synced. The log is not closed.
pub fn written_at_once(policy: Policy, last: u64) -> FaultyDisk {
    let disk = disk();
    let mut opened = open_with(&disk, policy).unwrap();
    run_until_idle(&mut opened);
    while opened.journal.durable() < Sequence(last) {
        let next = opened.journal.last_appended().next();
        let is_appended = next <= Sequence(last) && opened.journal.append(next, &payload(next.0)).is_ok();
        if !is_appended {
            opened.journal.poll();
            opened.worker.run_once();
            opened.journal.poll();
        }
    }
    disk.kill();
    disk
}

/// Closes a log normally: the journal first, then its worker.
pub fn close(opened: Opened<FaultyDisk>) {
    let Opened { journal, mut worker, .. } = opened;
    drop(journal);
    while worker.run_once() > 0 {}
}

/// A change of a file's bytes.
pub type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Returns a copy of the disk with one file changed.
pub fn with_change(disk: &FaultyDisk, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> FaultyDisk {
    use tickpath_journal::Storage;
    let copy = FaultyDisk::new(1, DiskFaults::default());
    for name in disk.list().unwrap() {
        copy.put(&name, disk.contents(&name).unwrap());
    }
    let mut bytes = disk.contents(file).unwrap();
    change(&mut bytes);
    copy.put(file, bytes);
    copy
}

/// Reads all records from `first` to `last` and checks them.
pub fn check_records(disk: &FaultyDisk, first: u64, last: u64) {
    if first > last {
        return;
    }
    let mut reader = Reader::open(disk, session(), Sequence(first)).unwrap();
    for sequence in first..=last {
        let record = reader.next(Sequence(last)).unwrap().unwrap();
        assert_eq!((record.sequence, record.payload), (Sequence(sequence), &payload(sequence)[..]));
    }
    assert_eq!(reader.next(Sequence(last)).unwrap(), None);
}

/// Returns the names of the segments, ascending.
pub fn segments(disk: &FaultyDisk) -> Vec<String> {
    use tickpath_journal::Storage;
    disk.list().unwrap().into_iter().filter(|name| name.ends_with(".journal")).collect()
}

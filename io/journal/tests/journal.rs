//! Tests of limits, full disks, readers that follow a journal, and the real file system.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io;

use crate::common;
use crate::common::{
    PAYLOAD_LEN_MAX, append_to, check_records, config, disk, open_with, payload, run_until_idle, segments,
    session, written,
};
use tickpath_journal::{
    AppendError, DiskFaults, FaultyDisk, Folder, InspectOptions, JournalConfig, OpenError, Opened, Policy,
    Reader, State, Storage, WorkerThread, inspect, open, session_of,
};
use tickpath_types::Sequence;

#[test]
fn payloads_and_sequences_have_bounds() {
    let disk = common::disk();
    let mut journal = open_with(&disk, Policy::Async).unwrap().journal;
    let max = PAYLOAD_LEN_MAX;
    assert_eq!(journal.append(Sequence(1), &[1; PAYLOAD_LEN_MAX]), Ok(()));
    let long = [1; PAYLOAD_LEN_MAX + 1];
    assert_eq!(journal.append(Sequence(2), &long), Err(AppendError::PayloadLen { len: max + 1, max }));
    assert_eq!(journal.append(Sequence(2), &[]), Err(AppendError::PayloadLen { len: 0, max }));
    for found in [Sequence(1), Sequence(3)] {
        let expected = Sequence(2);
        assert_eq!(journal.append(found, &[1]), Err(AppendError::Sequence { expected, found }));
    }
    assert_eq!(journal.append(Sequence(2), &[1]), Ok(()));
    assert_eq!(journal.last_appended(), Sequence(2));
}

/// Two buffers of 1024 bytes, records of 128: eight records fill one buffer while the worker holds the other.
#[test]
fn full_buffers_refuse_the_record() {
    let disk = common::disk();
    let Opened { mut journal, mut worker, .. } = open_with(&disk, Policy::Group).unwrap();
    let mut sequence = 0;
    for _ in 0..2 {
        for _ in 0..8 {
            sequence += 1;
            assert_eq!(journal.append(Sequence(sequence), &[7; 100]), Ok(()));
        }
        assert_eq!(journal.append(Sequence(sequence + 1), &[7; 100]), Err(AppendError::Full));
        journal.poll();
    }
    assert_eq!(journal.append(Sequence(17), &[7; 100]), Err(AppendError::Full));
    assert_eq!(journal.durable(), Sequence(0));
    worker.run_once();
    journal.poll();
    assert_eq!(journal.durable(), Sequence(8));
    assert_eq!(journal.append(Sequence(17), &[7; 100]), Ok(()));
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let valid = config(Policy::Group);
    for bad in [
        JournalConfig { payload_len_max: 0, ..valid },
        JournalConfig { payload_len_max: tickpath_journal::PAYLOAD_LEN_MAX + 1, ..JournalConfig::default() },
        JournalConfig { buffer_len: 383, ..valid },
        JournalConfig { segment_len: 2047, ..valid },
        JournalConfig { first_sequence: Sequence(0), ..valid },
    ] {
        let opened = open(&common::disk(), session(), bad, &InspectOptions::default());
        assert!(matches!(opened, Err(OpenError::Config)), "{bad:?}");
    }
    let least = JournalConfig { buffer_len: 384, segment_len: 768, ..valid };
    assert!(open(&common::disk(), session(), least, &InspectOptions::default()).is_ok());
}

#[test]
fn the_log_is_locked_exclusively() {
    let disk = common::disk();
    let opened = open_with(&disk, Policy::Group).unwrap();
    assert!(matches!(open_with(&disk, Policy::Group), Err(OpenError::InUse)));
    let Opened { journal, worker, .. } = opened;
    drop(journal);
    assert!(matches!(open_with(&disk, Policy::Group), Err(OpenError::InUse)), "the worker still has it");
    drop(worker);
    assert!(open_with(&disk, Policy::Group).is_ok());

    let path = tempfile::tempdir().unwrap();
    let folder = Folder::new(path.path()).unwrap();
    let opened = open(&folder, session(), config(Policy::Group), &InspectOptions::default()).unwrap();
    let again = open(&folder, session(), config(Policy::Group), &InspectOptions::default());
    assert!(matches!(again, Err(OpenError::InUse)));
    drop(opened);
    assert!(open(&folder, session(), config(Policy::Group), &InspectOptions::default()).is_ok());
}

#[test]
fn a_full_disk_leaves_the_segments_capacity_and_is_retried() {
    for policy in Policy::ALL {
        let faults = DiskFaults { capacity: 3 * 4096 - 1, ..DiskFaults::default() };
        let disk = FaultyDisk::new(1, faults);
        let mut opened = open_with(&disk, policy).unwrap();
        run_until_idle(&mut opened);
        assert_eq!(opened.journal.state(), State::Running);
        let mut sequence = 0;
        let refused = loop {
            match opened.journal.append(Sequence(sequence + 1), &payload(sequence + 1)) {
                Ok(()) => sequence += 1,
                Err(refused) => break refused,
            }
            run_until_idle(&mut opened);
        };
        let AppendError::NoNextSegment(failure) = refused else { panic!("{refused}") };
        assert!(
            failure.kind == std::io::ErrorKind::StorageFull
                && opened.journal.state() == State::NoNextSegment(failure)
        );
        assert_eq!(opened.journal.durable(), Sequence(sequence), "what was taken is safe");
        assert!(sequence > 60 && opened.journal.remaining_len() < 200, "{sequence}");
        disk.set_faults(DiskFaults::default());
        run_until_idle(&mut opened);
        assert_eq!(opened.journal.state(), State::Running);
        append_to(&mut opened, sequence + 100);
        check_records(&disk, 1, sequence + 100);
    }
}

/// The worker syncs no more zeroes than are due, because every such sync delays a batch.
#[test]
fn the_next_segment_keeps_pace_with_this_one_while_batches_wait() {
    let disk = disk();
    let config = JournalConfig { segment_len: 2 << 20, ..config(Policy::Group) };
    let mut opened = open(&disk, session(), config, &InspectOptions::default()).unwrap();
    run_until_idle(&mut opened);
    let mut sequence = 0;
    for segment in 2..=4 {
        let (before, mut batches) = (disk.counters().syncs, 0);
        while segments(&disk).len() < segment {
            while opened.journal.append(Sequence(sequence + 1), &payload(sequence + 1)).is_ok() {
                sequence += 1;
            }
            opened.journal.poll();
            // There is always a batch, so the worker never does its idle work.
            batches += opened.worker.run_once() as u64;
            let zeroes = batches * config.buffer_len as u64 * 3 / 2 / (256 << 10);
            let syncs = disk.counters().syncs - before;
            // The 4 extra syncs are for the first zeroes and the rename of a segment.
            assert!(syncs <= batches + zeroes + 4, "{syncs} syncs after {batches} batches");
        }
    }
    run_until_idle(&mut opened);
    check_records(&disk, 1, sequence);
}

#[test]
fn a_small_batch_waits_for_one_preparation_step_at_most() {
    let disk = disk();
    let config = JournalConfig { segment_len: 16 << 20, buffer_len: 2 << 20, ..config(Policy::Group) };
    let mut opened = open(&disk, session(), config, &InspectOptions::default()).unwrap();
    for sequence in 1..=40 {
        opened.journal.append(Sequence(sequence), &payload(sequence)).unwrap();
        opened.journal.poll();
        let before = disk.counters().syncs;
        while opened.journal.durable() < Sequence(sequence) {
            assert_eq!(opened.worker.run_once(), 1);
            opened.journal.poll();
        }
        assert!(disk.counters().syncs - before <= 2, "batch {sequence}");
    }
}

#[test]
fn a_failed_sync_is_final() {
    let disk = common::disk();
    let mut opened = open_with(&disk, Policy::Group).unwrap();
    append_to(&mut opened, 3);
    disk.fail_syncs(1);
    opened.journal.append(Sequence(4), &payload(4)).unwrap();
    run_until_idle(&mut opened);
    let State::Failed(failure) = opened.journal.state() else { panic!("{:?}", opened.journal.state()) };
    assert!(failure.to_string().starts_with("cannot sync the journal to the disk: "), "{failure}");
    assert_eq!(opened.journal.append(Sequence(5), &payload(5)), Err(AppendError::Failed(failure)));
    run_until_idle(&mut opened);
    assert_eq!((opened.journal.durable(), disk.counters().failed_syncs), (Sequence(3), 1));
}

#[test]
fn a_reader_starts_anywhere_and_follows_the_durable_end() {
    for policy in Policy::ALL {
        let disk = common::disk();
        let mut opened = open_with(&disk, policy).unwrap();
        append_to(&mut opened, 150);
        assert!(segments(&disk).len() > 2);
        for first in 1..=150 {
            check_records(&disk, first, 150);
        }
        let view = opened.journal.durable_view();
        let mut reader = Reader::open(&disk, session(), Sequence(151)).unwrap();
        let mut next = 151;
        for last in (151..400).step_by(7) {
            assert_eq!(reader.next(view.durable()).unwrap(), None);
            append_to(&mut opened, last);
            while let Some(record) = reader.next(view.durable()).unwrap() {
                assert_eq!((record.sequence.0, record.payload), (next, &payload(next)[..]));
                next += 1;
            }
            assert_eq!(next, last + 1);
        }
        let future = Reader::open(&disk, session(), Sequence(1_000));
        assert!(matches!(future, Err(OpenError::OutOfRange { .. })), "{future:?}");
    }
}

#[test]
fn records_that_a_snapshot_covers_need_not_be_read() {
    let disk = written(Policy::Group, 150);
    let options = InspectOptions { from: Sequence(100), ..InspectOptions::default() };
    let found = inspect(&disk, &options).unwrap();
    assert_eq!((found.first_sequence(), found.last_sequence()), (Sequence(1), Sequence(150)));
    assert!((50..110).contains(&found.records_read), "{}", found.records_read);
    assert_eq!(inspect(&disk, &InspectOptions::default()).unwrap().records_read, 150);
}

/// The journal on a real disk, with a worker thread, over several segments and two runs.
#[test]
fn a_real_folder_and_a_thread() {
    for policy in Policy::ALL {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::new(path.path().join("log")).unwrap();
        let mut last = 0;
        for _ in 0..2 {
            let Opened { mut journal, worker, found, .. } =
                open(&folder, session(), config(policy), &InspectOptions::default()).unwrap();
            assert_eq!((found.last_sequence(), found.torn), (Sequence(last), None));
            let _thread = WorkerThread::start(worker).unwrap();
            let target = last + 200;
            while journal.durable() < Sequence(target) {
                if last < target && journal.append(Sequence(last + 1), &payload(last + 1)).is_ok() {
                    last += 1;
                }
                journal.poll();
                assert_eq!(journal.state(), State::Running);
            }
        }
        let mut reader = Reader::open(&folder, session(), Sequence(1)).unwrap();
        for sequence in 1..=last {
            let record = reader.next(Sequence(last)).unwrap().unwrap();
            assert_eq!((record.sequence.0, record.payload), (sequence, &payload(sequence)[..]));
        }
        assert!(folder.list().unwrap().len() > 5);
        assert_eq!(folder.other_modes().unwrap(), [], "no other user may read it");
    }
}

#[test]
fn files_readable_by_others_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let path = tempfile::tempdir().unwrap();
    let log = path.path().join("log");
    let folder = Folder::new(&log).unwrap();
    drop(open(&folder, session(), config(Policy::Group), &InspectOptions::default()).unwrap());
    let set = |name: &str, mode| {
        std::fs::set_permissions(log.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("generation", 0o644);
    set("", 0o755);
    std::fs::write(log.join("prepared.segment"), "").unwrap();
    set("prepared.segment", 0o666);
    let expected = [(".", 0o755), ("generation", 0o644), ("prepared.segment", 0o666)];
    assert_eq!(folder.other_modes().unwrap(), expected.map(|(name, mode)| (name.to_owned(), mode)));
    // Creating a file again resets its mode to 0600.
    folder.create("prepared.segment").unwrap();
    assert_eq!(folder.other_modes().unwrap().len(), 2);
}

#[test]
fn a_dropped_worker_fails_the_journal() {
    let disk = common::disk();
    let Opened { mut journal, worker, .. } = open_with(&disk, Policy::Group).unwrap();
    drop(worker);
    journal.append(Sequence(1), &[1]).unwrap();
    journal.poll();
    assert!(matches!(journal.state(), State::Failed(_)));
    assert_eq!(journal.durable(), Sequence(0));
}

#[test]
fn a_folder_names_its_session() {
    let disk = common::disk();
    assert_eq!(session_of(&disk).unwrap(), None);
    drop(open_with(&disk, Policy::Async).unwrap());
    assert_eq!(session_of(&disk).unwrap(), Some(session()));
}

/// After a failed sync the system treats the cached data as written: only rewritten data reaches the disk.
#[test]
fn the_next_start_rewrites_data_of_a_failed_sync() {
    for policy in Policy::ALL {
        // `already` determines the failing sync: of records, a whole segment, or the next segment's header.
        for already in [1, 20, 40, 60, 75, 90, 150, 151, 152] {
            let disk = common::disk();
            let mut opened = open_with(&disk, policy).unwrap();
            append_to(&mut opened, already);
            disk.fail_syncs(1);
            let mut last = already;
            while disk.counters().failed_syncs == 0
                && opened.journal.append(Sequence(last + 1), &payload(last + 1)).is_ok()
            {
                last += 1;
                run_until_idle(&mut opened);
            }
            assert_eq!(disk.counters().failed_syncs, 1);
            drop(opened);
            disk.kill();
            let found = open_with(&disk, policy).unwrap().found;
            assert!(found.last_sequence() >= Sequence(already));
            disk.crash();
            let again = open_with(&disk, policy).unwrap().found;
            assert_eq!(again.last_sequence(), found.last_sequence(), "{policy} {already}");
            disk.kill();
            check_records(&disk, 1, found.last_sequence().0);
        }
    }
}

/// A disk that renames the prepared segment after it is listed and before it is opened, as a writer may.
#[derive(Clone)]
struct NamedMeanwhile {
    disk: FaultyDisk,
    name: String,
}

impl Storage for NamedMeanwhile {
    type File = <FaultyDisk as Storage>::File;
    type Lock = <FaultyDisk as Storage>::Lock;

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        if name == "prepared.segment" {
            self.disk.rename(name, &self.name)?;
            return Err(io::ErrorKind::NotFound.into());
        }
        self.disk.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        self.disk.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }

    fn boot(&self) -> Option<u128> {
        self.disk.boot()
    }

    fn lock(&self) -> io::Result<Option<Self::Lock>> {
        self.disk.lock()
    }
}

#[test]
fn a_segment_named_during_inspection_is_read() {
    let disk = written(Policy::Group, 100);
    let whole = inspect(&disk, &InspectOptions::default()).unwrap().last_sequence();
    let name = segments(&disk).pop().unwrap();
    disk.rename(&name, "prepared.segment").unwrap();
    let live = NamedMeanwhile { disk, name };
    assert_eq!(inspect(&live, &InspectOptions::default()).unwrap().last_sequence(), whole);
}

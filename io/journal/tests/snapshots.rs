//! Snapshots appear completely or not at all, bad ones are skipped, and unneeded files are removed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;
use crate::common::{
    append_to, check_records, close, config, open_with, payload, run_until_idle, segments, session, written,
};
use tickpath_journal::{
    ACKNOWLEDGED_FILE, DiskFaults, FaultyDisk, InspectOptions, OpenError, Policy, SessionName,
    SnapshotDamage, Snapshots, State, Storage, open,
};
use tickpath_types::Sequence;

fn state(sequence: u64) -> Vec<u8> {
    (0..3_000).map(|at| (sequence * 17 + at) as u8).collect()
}

fn file(sequence: u64) -> String {
    format!("snapshot-{sequence:020}")
}

#[test]
fn the_newest_usable_snapshot_is_chosen() {
    let disk = common::disk();
    let snapshots = Snapshots::new(disk.clone(), session());
    assert_eq!(snapshots.newest(Sequence(u64::MAX)).unwrap(), Default::default());
    for sequence in [10, 20, 30] {
        snapshots.write(Sequence(sequence), sequence * 3, &state(sequence)).unwrap();
    }
    disk.crash();
    let newest = snapshots.newest(Sequence(100)).unwrap();
    let snapshot = newest.snapshot.unwrap();
    assert_eq!((snapshot.sequence, snapshot.state_hash), (Sequence(30), 90));
    assert!(snapshot.payload == state(30) && newest.skipped.is_empty());
    assert_eq!(snapshots.newest(Sequence(29)).unwrap().snapshot.unwrap().sequence, Sequence(20));

    // With damage to any byte of the newest snapshot, the one before it is used.
    let valid = disk.contents(&file(30)).unwrap();
    for at in (0..100).chain([1_000, valid.len() - 1]) {
        let mut bad = valid.clone();
        bad[at] ^= 0x10;
        disk.put(&file(30), bad);
        let newest = snapshots.newest(Sequence(100)).unwrap();
        assert_eq!(newest.snapshot.unwrap().sequence, Sequence(20), "byte {at}");
        assert_eq!((newest.skipped.len(), &newest.skipped[0].file), (1, &file(30)));
    }
    let mut longer = valid.clone();
    longer.push(0);
    for bad in [longer, valid[..valid.len() - 1].to_vec(), valid[..40].to_vec(), Vec::new()] {
        disk.put(&file(30), bad);
        assert_eq!(snapshots.newest(Sequence(100)).unwrap().skipped[0].damage, SnapshotDamage::Cut);
    }
    disk.put(&file(30), disk.contents(&file(20)).unwrap());
    let damage = snapshots.newest(Sequence(100)).unwrap().skipped[0].damage;
    assert_eq!(damage, SnapshotDamage::Name { found: Sequence(20) });
    let other = Snapshots::new(disk.clone(), SessionName::new("OTHER").unwrap());
    assert_eq!(
        other.newest(Sequence(15)).unwrap().skipped[0].damage,
        SnapshotDamage::Session { found: session() }
    );
}

#[test]
fn a_crash_leaves_a_snapshot_complete_or_absent() {
    let mut survived = 0;
    for changes in 0..12 {
        for seed in 0..20 {
            let disk = FaultyDisk::new(seed, DiskFaults::default());
            let snapshots = Snapshots::new(disk.clone(), session());
            snapshots.write(Sequence(10), 1, &state(10)).unwrap();
            disk.crash_after(changes);
            let written = snapshots.write(Sequence(20), 2, &state(20));
            disk.crash();
            let newest = snapshots.newest(Sequence(100)).unwrap();
            let snapshot = newest.snapshot.unwrap();
            assert!(newest.skipped.is_empty());
            assert!(snapshot.payload == state(snapshot.sequence.0));
            assert!(written.is_err() || snapshot.sequence == Sequence(20));
            survived += u64::from(snapshot.sequence == Sequence(20));
        }
    }
    assert!((20..240).contains(&survived), "{survived}");
}

#[test]
fn a_full_disk_keeps_existing_snapshots() {
    let disk = FaultyDisk::new(1, DiskFaults { capacity: 5_000, ..DiskFaults::default() });
    let snapshots = Snapshots::new(disk.clone(), session());
    snapshots.write(Sequence(10), 1, &state(10)).unwrap();
    let error = snapshots.write(Sequence(20), 2, &state(20)).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
    assert_eq!(snapshots.newest(Sequence(100)).unwrap().snapshot.unwrap().sequence, Sequence(10));
}

#[test]
fn files_that_no_kept_snapshot_needs_are_removed() {
    let disk = written(Policy::Group, 300);
    let snapshots = Snapshots::new(disk.clone(), session());
    let all = disk.list().unwrap();
    snapshots.retain(2).unwrap();
    assert_eq!(disk.list().unwrap(), all, "without a snapshot all is needed");
    for sequence in [50, 120, 200, 260] {
        snapshots.write(Sequence(sequence), 0, &state(sequence)).unwrap();
    }
    // A bad snapshot does not count as kept.
    disk.put(&file(260), vec![1; 100]);
    let before = segments(&disk);
    snapshots.retain(2).unwrap();
    assert_eq!(snapshots.list().unwrap(), [120, 200, 260].map(Sequence));
    let after = segments(&disk);
    let removed = before.len() - after.len();
    assert!(removed > 0 && before[removed..] == after);
    snapshots.retain(2).unwrap();
    assert_eq!(segments(&disk), after);
    disk.crash();
    let opened = open_with(&disk, Policy::Group).unwrap();
    let first = opened.found.first_sequence().0;
    assert!((2..=121).contains(&first), "{first}");
    assert!(before[removed + 1] > format!("{:020}.journal", 121), "as few as can be");
    check_records(&disk, 121, 300);
    let missing = tickpath_journal::Reader::open(&disk, session(), Sequence(1));
    assert!(matches!(missing, Err(OpenError::OutOfRange { .. })));
    assert!(disk.list().unwrap().len() > 4);
}

#[test]
fn snapshots_beyond_the_log_end_are_removed() {
    let disk = common::disk();
    let snapshots = Snapshots::new(disk.clone(), session());
    for sequence in [10, 20, 30] {
        snapshots.write(Sequence(sequence), 0, &state(sequence)).unwrap();
    }
    assert_eq!(snapshots.remove_after(Sequence(20)).unwrap(), [file(30)]);
    disk.crash();
    assert_eq!(snapshots.list().unwrap(), [Sequence(10), Sequence(20)]);
    assert_eq!(snapshots.remove_after(Sequence(20)).unwrap(), Vec::<String>::new());
}

#[test]
fn after_a_power_loss_no_snapshot_exceeds_the_log() {
    for seed in 0..100 {
        let disk = FaultyDisk::new(seed, DiskFaults::default());
        let mut opened = open_with(&disk, Policy::Async).unwrap();
        common::append_to(&mut opened, 90);
        Snapshots::new(disk.clone(), session()).write(Sequence(80), 1, &state(80)).unwrap();
        disk.crash();
        drop(opened);
        let opened = open_with(&disk, Policy::Async).unwrap();
        assert!(opened.found.last_sequence() >= Sequence(80), "seed {seed}");
    }
}

#[test]
fn a_log_that_cannot_be_synced_ends_snapshots_and_the_journal() {
    for policy in Policy::ALL {
        let disk = common::disk();
        let mut opened = open_with(&disk, policy).unwrap();
        append_to(&mut opened, 10);
        disk.fail_syncs(1);
        let refused = Snapshots::new(disk.clone(), session()).write(Sequence(10), 0, &state(10));
        assert!(matches!(refused, Err(OpenError::Unsynced { .. })), "{refused:?}");
        // The journal's file handle reports the failure as well, at its next sync.
        for sequence in 11..200 {
            if opened.journal.append(Sequence(sequence), &payload(sequence)).is_err() {
                break;
            }
            run_until_idle(&mut opened);
        }
        assert!(matches!(opened.journal.state(), State::Failed(_)), "{policy} {:?}", opened.journal.state());
    }
}

/// A missing newest snapshot is detected, and its state hash is known even if its header is damaged.
#[test]
fn the_newest_snapshot_is_known_without_its_file() {
    let disk = common::disk();
    let snapshots = Snapshots::new(disk.clone(), session());
    let mut opened = open_with(&disk, Policy::Group).unwrap();
    append_to(&mut opened, 60);
    for sequence in [20, 40, 60] {
        snapshots.write(Sequence(sequence), sequence * 3, &state(sequence)).unwrap();
    }
    drop(opened);
    disk.kill();
    let whole = disk.contents(&file(60)).unwrap();
    assert_eq!(snapshots.newest(Sequence(60)).unwrap().skipped, []);
    disk.put(&file(60), whole[..30].to_vec());
    let skipped = snapshots.newest(Sequence(60)).unwrap().skipped;
    assert_eq!(
        (skipped.len(), skipped[0].damage, skipped[0].state_hash),
        (1, SnapshotDamage::Cut, Some(180))
    );
    disk.remove(&file(60)).unwrap();
    let newest = snapshots.newest(Sequence(60)).unwrap();
    assert_eq!(newest.snapshot.unwrap().sequence, Sequence(40));
    let skipped = &newest.skipped[0];
    assert_eq!((skipped.damage, skipped.state_hash), (SnapshotDamage::Missing, Some(180)));
    // The acknowledged file names the missing snapshot after a restart too, until the snapshot is rewritten.
    let opened = open_with(&disk, Policy::Group).unwrap();
    assert_eq!(snapshots.newest(Sequence(60)).unwrap().skipped.len(), 1);
    snapshots.write(Sequence(60), 180, &state(60)).unwrap();
    assert_eq!(snapshots.newest(Sequence(60)).unwrap().skipped, []);
    drop(opened);
}

/// The process ended between the rename and the recording of a snapshot; then the log lost its end.
#[test]
fn a_log_restarted_after_an_unrecorded_snapshot_opens() {
    let disk = written(Policy::Group, 100);
    let snapshots = Snapshots::new(disk.clone(), session());
    snapshots.write(Sequence(60), 1, &state(60)).unwrap();
    let recorded = disk.contents(ACKNOWLEDGED_FILE).unwrap();
    snapshots.write(Sequence(90), 2, &state(90)).unwrap();
    disk.put(ACKNOWLEDGED_FILE, recorded);
    let last = segments(&disk).pop().unwrap();
    disk.remove(&last).unwrap();
    let cut = segments(&disk).pop().unwrap();
    let bytes = disk.contents(&cut).unwrap();
    disk.put(&cut, bytes[..bytes.len() / 2].to_vec());
    assert!(open_with(&disk, Policy::Group).is_err(), "what was acknowledged is missing");
    let options = InspectOptions { from: Sequence(91), accept_loss: true, session: Some(session()) };
    let mut opened = open(&disk, session(), config(Policy::Group), &options).unwrap();
    assert_eq!(opened.journal.last_appended(), Sequence(90));
    append_to(&mut opened, 95);
    run_until_idle(&mut opened);
    close(opened);
    let options = InspectOptions { accept_loss: false, ..options };
    let again = open(&disk, session(), config(Policy::Group), &options).unwrap();
    assert_eq!((again.found.first_sequence(), again.journal.last_appended()), (Sequence(91), Sequence(95)));
}

/// The process ended before it named its last segment, and the log ends at 100, before the snapshot at 150.
#[test]
fn a_log_that_restarts_after_a_snapshot_removes_a_segment_without_a_name() {
    let disk = written(Policy::Async, 100);
    let last = segments(&disk).pop().unwrap();
    disk.rename(&last, "prepared.segment").unwrap();
    let options = InspectOptions { from: Sequence(151), accept_loss: true, session: Some(session()) };
    let opened = open(&disk, session(), config(Policy::Async), &options).unwrap();
    assert_eq!(opened.journal.last_appended(), Sequence(150));
}

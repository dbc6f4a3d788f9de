//! The generation of a log: it changes whenever acknowledged records may be lost.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;
use crate::common::{append_to, close, config, disk, open_with, session, with_change, written};
use tickpath_journal::{
    ACKNOWLEDGED_FILE, DiskFaults, FaultyDisk, GENERATION_FILE, InspectOptions, OpenError, Opened, Policy,
    SessionName, Storage, generation_of, open,
};
use tickpath_types::Sequence;

/// A generation file: generation 3 of session SESSION001 in system boot 2.
const VERSION_1: &str = "
    545047454e45524e 0100 4000 03000000 53455353494f4e303031202020202020
    02000000000000000000000000000000 000000000000000000000000 <checksum>
";

fn version_1() -> Vec<u8> {
    let digits: Vec<u8> =
        VERSION_1.replace("<checksum>", "f2bfd84a").bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn open_accepting(disk: &FaultyDisk, policy: Policy) -> Result<Opened<FaultyDisk>, OpenError> {
    open(disk, session(), config(policy), &InspectOptions { accept_loss: true, ..InspectOptions::default() })
}

/// Opens the log, kills the process, and returns the generation of this start.
fn generation_of_start(disk: &FaultyDisk, policy: Policy) -> u32 {
    let generation = open_with(disk, policy).unwrap().generation;
    disk.kill();
    generation
}

#[test]
fn only_possible_losses_begin_a_generation() {
    let disk = disk();
    for policy in [Policy::Group, Policy::Async, Policy::Async, Policy::Sync, Policy::Async] {
        assert_eq!(generation_of_start(&disk, policy), 0, "the process died, {policy}");
    }
    disk.crash();
    assert_eq!(generation_of_start(&disk, Policy::Group), 1, "power was lost under async");
    disk.crash();
    for _ in 0..2 {
        assert_eq!(generation_of_start(&disk, Policy::Async), 1, "power was lost under group");
    }
    for expected in [2, 3] {
        assert_eq!(open_accepting(&disk, Policy::Group).unwrap().generation, expected, "loss was accepted");
        disk.kill();
    }
    // A new log has lost nothing, even with accepted loss.
    assert_eq!(open_accepting(&common::disk(), Policy::Async).unwrap().generation, 0);
}

/// A power loss may remove records and leave no torn tail: only the reboot shows the possible loss.
#[test]
fn a_loss_without_damage_begins_a_generation() {
    let mut silent = 0;
    for seed in 0..60 {
        let disk = FaultyDisk::new(seed, DiskFaults::default());
        append_to(&mut open_with(&disk, Policy::Async).unwrap(), 40);
        disk.crash();
        let Ok(opened) = open_with(&disk, Policy::Async) else { continue };
        assert_eq!(opened.generation, 1, "seed {seed}");
        silent += u64::from(opened.found.torn.is_none() && opened.found.last_sequence() < Sequence(40));
    }
    assert!(silent > 5, "{silent}");
}

#[test]
fn an_unknown_last_run_counts_as_a_loss() {
    for (policy, expected) in [(Policy::Async, 1), (Policy::Group, 0)] {
        let disk = disk();
        append_to(&mut open_with(&disk, policy).unwrap(), 3);
        disk.kill();
        disk.remove(GENERATION_FILE).unwrap();
        assert!(
            open_with(&disk, policy)
                .unwrap_err()
                .to_string()
                .starts_with("generation is damaged (it is missing)")
        );
        // Old logs lack the generation file and the acknowledged file.
        disk.remove(ACKNOWLEDGED_FILE).unwrap();
        assert_eq!(generation_of_start(&disk, policy), expected);
    }
}

#[test]
fn a_missing_generation_file_begins_an_unused_generation() {
    let disk = written(Policy::Group, 5);
    for _ in 0..3 {
        drop(open_accepting(&disk, Policy::Group).unwrap());
        disk.kill();
    }
    for change in [|bytes: &mut Vec<u8>| bytes[20] ^= 1, |bytes: &mut Vec<u8>| bytes.truncate(9)] {
        let copy = with_change(&disk, GENERATION_FILE, change);
        assert!(open_with(&copy, Policy::Group).is_err());
        assert_eq!(open_accepting(&copy, Policy::Group).unwrap().generation, 4);
    }
    disk.remove(GENERATION_FILE).unwrap();
    assert!(open_with(&disk, Policy::Group).is_err());
    assert_eq!(open_accepting(&disk, Policy::Group).unwrap().generation, 4);
}

#[test]
fn one_valid_acknowledged_slot_suffices() {
    for policy in Policy::ALL {
        let disk = written(policy, 20);
        let whole = disk.contents(ACKNOWLEDGED_FILE).unwrap();
        assert_eq!(whole.len(), 2048);
        for at in (0..80).chain(512..592) {
            let copy = with_change(&disk, ACKNOWLEDGED_FILE, |bytes| bytes[at] ^= 0x20);
            let opened = open_with(&copy, policy).unwrap();
            assert!(
                opened.found.acknowledged.unwrap() >= Sequence(19) && opened.generation == 0,
                "{policy} {at}"
            );
        }
        let changes: [common::Change<'_>; 3] =
            [&|bytes| (bytes[60], bytes[512 + 60]) = (0xff, 0xff), &|bytes| bytes.fill(0), &|bytes| {
                bytes.clear()
            }];
        for change in changes {
            let copy = with_change(&disk, ACKNOWLEDGED_FILE, change);
            let refusal = open_with(&copy, policy).unwrap_err().to_string();
            assert!(refusal.starts_with("acknowledged is damaged") && refusal.contains("copy"), "{refusal}");
            assert_eq!(open_accepting(&copy, policy).unwrap().generation, 1);
        }
        // Old logs lack the acknowledged file.
        disk.remove(ACKNOWLEDGED_FILE).unwrap();
        let opened = open_with(&disk, policy).unwrap();
        assert_eq!((opened.found.acknowledged, opened.generation), (None, 0));
    }
}

/// After a power loss the acknowledged file is not ahead of the log, except perhaps under `async`.
#[test]
fn after_a_power_loss_the_file_requires_only_guaranteed_records() {
    for policy in Policy::ALL {
        let mut stale = 0;
        for seed in 0..40 {
            let disk = FaultyDisk::new(seed, DiskFaults::default());
            append_to(&mut open_with(&disk, policy).unwrap(), 40);
            disk.crash();
            let opened = match open_with(&disk, policy) {
                Err(OpenError::Loss { .. }) if policy == Policy::Async => continue,
                opened => opened.unwrap(),
            };
            assert_eq!(opened.generation, u32::from(policy == Policy::Async), "{policy} {seed}");
            stale += u64::from(opened.found.acknowledged < Some(Sequence(40)));
        }
        assert!(stale > 5, "{policy} {stale}");
    }
}

#[test]
fn the_generation_file_is_as_documented() {
    let disk = disk();
    append_to(&mut open_with(&disk, Policy::Async).unwrap(), 3);
    disk.crash();
    for _ in 0..3 {
        drop(open_accepting(&disk, Policy::Async).unwrap());
        disk.kill();
    }
    assert_eq!(disk.contents(GENERATION_FILE).unwrap(), version_1());
    assert_eq!(generation_of(&disk, session()).unwrap(), 3);

    let refusal = |bytes: Vec<u8>| {
        let copy = common::disk();
        copy.put(GENERATION_FILE, bytes);
        open_with(&copy, Policy::Group).unwrap_err().to_string()
    };
    for at in 0..64 {
        let mut bad = version_1();
        bad[at] ^= 1;
        let refusal = refusal(bad);
        assert!(
            refusal.starts_with("generation is damaged (") && refusal.contains("copy"),
            "{at}: {refusal}"
        );
    }
    let mut later = version_1();
    later[8] = 3;
    assert!(refusal(later).contains("version 3, which this program cannot read"));
    for len in [0, 1, 63] {
        assert!(refusal(version_1()[..len].to_vec()).contains(&format!("{len} bytes")));
    }
    assert!(refusal([version_1(), vec![0; 100]].concat()).contains("65 bytes"));

    // The generation file of another session is ignored.
    let copy = common::disk();
    copy.put(GENERATION_FILE, version_1());
    let other = SessionName::new("OTHER").unwrap();
    let opened = open(&copy, other, config(Policy::Async), &InspectOptions::default()).unwrap();
    assert_eq!((opened.generation, generation_of(&copy, other).unwrap()), (0, 0));
}

/// Writes records up to `last` and closes the log: the journal first, then its worker.
fn close_after(disk: &FaultyDisk, policy: Policy, last: u64) {
    let mut opened = open_with(disk, policy).unwrap();
    append_to(&mut opened, last);
    close(opened);
}

#[test]
fn a_closed_log_lost_nothing_until_it_is_opened() {
    for last in [0, 5, 200] {
        let disk = disk();
        close_after(&disk, Policy::Async, last);
        disk.crash();
        close_after(&disk, Policy::Async, last + 3);
        disk.crash();
        let mut opened = open_with(&disk, Policy::Async).unwrap();
        assert_eq!((opened.generation, opened.found.last_sequence()), (0, Sequence(last + 3)));
        append_to(&mut opened, last + 4);
        disk.kill();
        drop(opened);
        disk.crash();
        assert_eq!(open_accepting_if_needed(&disk), 1, "it was opened and left so");
    }
}

/// Returns the generation of a start that accepts losses only if required.
fn open_accepting_if_needed(disk: &FaultyDisk) -> u32 {
    match open_with(disk, Policy::Async) {
        Ok(opened) => opened.generation,
        Err(_) => open_accepting(disk, Policy::Async).unwrap().generation,
    }
}

#[test]
fn a_log_that_ends_elsewhere_than_closed_lost_records() {
    let disk = disk();
    close_after(&disk, Policy::Async, 5);
    let closed = disk.contents(GENERATION_FILE).unwrap();
    assert_eq!((closed[8], &closed[48..60]), (2, &[5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]));
    for at in 0..64 {
        let copy = common::disk();
        let mut bad = closed.clone();
        bad[at] ^= 4;
        copy.put(GENERATION_FILE, bad);
        let refusal = open_with(&copy, Policy::Group).unwrap_err().to_string();
        assert!(refusal.starts_with("generation is damaged ("), "{at}: {refusal}");
    }
    close_after(&disk, Policy::Async, 8);
    disk.put(GENERATION_FILE, closed);
    disk.crash();
    assert_eq!(generation_of_start(&disk, Policy::Async), 1);
}

#[test]
fn a_failed_close_leaves_no_mark() {
    let disk = disk();
    let mut opened = open_with(&disk, Policy::Async).unwrap();
    append_to(&mut opened, 5);
    let Opened { journal, mut worker, .. } = opened;
    drop(journal);
    disk.fail_syncs(1);
    while worker.run_once() > 0 {}
    drop(worker);
    assert_eq!(disk.contents(GENERATION_FILE).unwrap()[8], 1);
    disk.crash();
    assert_eq!(open_accepting_if_needed(&disk), 1);
}

#[test]
fn a_power_loss_while_closing_loses_nothing_or_changes_the_generation() {
    let mut kept = 0;
    for seed in 0..20 {
        for changes in 0..16 {
            let disk = FaultyDisk::new(seed, DiskFaults::default());
            let mut opened = open_with(&disk, Policy::Async).unwrap();
            append_to(&mut opened, 40);
            let Opened { journal, mut worker, .. } = opened;
            drop(journal);
            disk.crash_after(changes);
            while worker.run_once() > 0 {}
            drop(worker);
            disk.crash();
            match open_with(&disk, Policy::Async) {
                Ok(opened) if opened.generation == 0 => {
                    assert_eq!(opened.found.last_sequence(), Sequence(40), "seed {seed}, {changes}");
                    kept += 1;
                }
                Ok(opened) => assert_eq!(opened.generation, 1),
                // The loss is visible, and must be accepted.
                Err(_) => assert_eq!(open_accepting(&disk, Policy::Async).unwrap().generation, 1),
            }
        }
    }
    assert!((20..300).contains(&kept), "{kept}");
}

//! Byte layout of segment versions 1 and 2, and damage to any byte.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common;
use crate::common::{
    append_to, check_records, close, config, disk, open_with, run_until_idle, segments, session, with_change,
    written, written_at_once,
};
use tickpath_journal::{
    ACKNOWLEDGED_FILE, FaultyDisk, GENERATION_FILE, HeaderDamage, InspectOptions, OpenError, Policy, Reader,
    RecordDamage, SessionName, Storage, inspect, open,
};
use tickpath_types::Sequence;

const FIRST: &str = "00000000000000000001.journal";

/// The bytes of a segment of version 1, in hexadecimal: record 7 is "one", and record 8 is "three".
const VERSION_1: &str = "
    54504a4f55524e4c 0100 3000 00000000 53455353494f4e303031202020202020
    0700000000000000 00000000 <header>
    <first> 03000000 0700000000000000 6f6e650000000000
    <second> 05000000 0800000000000000 7468726565000000
";

/// The same records in version 2, in a segment of 64 KiB with policy `group`.
const VERSION_2: &str = "
    54504a4f55524e4c 0200 4000 02 000000 53455353494f4e303031202020202020
    0700000000000000 0600000000000000 0000010000000000 00000000 <header>
    <first> 03000000 0700000000000000 0600000000000000 6f6e650000000000
    <second> 05000000 0800000000000000 0700000000000000 7468726565000000
";

fn bytes(text: &str, checksums: [&str; 3]) -> Vec<u8> {
    let text = text
        .replace("<header>", checksums[0])
        .replace("<first>", checksums[1])
        .replace("<second>", checksums[2]);
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn version_1() -> Vec<u8> {
    bytes(VERSION_1, ["86a9a522", "49d98d35", "ef0fffda"])
}

fn version_2() -> Vec<u8> {
    bytes(VERSION_2, ["b4bf4a55", "41adb9f0", "ff6ae729"])
}

fn session_1() -> SessionName {
    SessionName::new("SESSION001").unwrap()
}

#[test]
fn version_2_is_written_byte_for_byte() {
    let disk = disk();
    let config = tickpath_journal::JournalConfig {
        segment_len: 65_536,
        first_sequence: Sequence(7),
        ..config(Policy::Group)
    };
    let mut opened = open(&disk, session_1(), config, &InspectOptions::default()).unwrap();
    for (sequence, payload) in [(7, "one"), (8, "three")] {
        opened.journal.append(Sequence(sequence), payload.as_bytes()).unwrap();
        run_until_idle(&mut opened);
    }
    let file = disk.contents("00000000000000000007.journal").unwrap();
    let expected = version_2();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&file[..expected.len()]), hex(&expected));
    assert_eq!(file.len(), 65_536);
    assert!(file[expected.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn both_versions_are_read_and_continue_in_version_2() {
    for (version, bytes) in [(1, version_1()), (2, version_2())] {
        // Number of bytes after the records: none, 100 zeroes, or 3 bytes of a torn record.
        for tail in [0, 100, 3] {
            let disk = disk();
            let mut left = bytes.clone();
            left.resize(bytes.len() + tail, u8::from(tail == 3));
            disk.put("00000000000000000007.journal", left);
            let mut opened =
                open(&disk, session_1(), config(Policy::Group), &InspectOptions::default()).unwrap();
            let found = &opened.found;
            assert_eq!((found.first_sequence(), found.last_sequence()), (Sequence(7), Sequence(8)));
            assert_eq!(found.segments[0].header.version, version);
            assert_eq!(found.torn.is_some(), tail == 3);
            run_until_idle(&mut opened);
            opened.journal.append(Sequence(9), b"five").unwrap();
            run_until_idle(&mut opened);
            let header = inspect(&disk, &InspectOptions::default()).unwrap().segments[1].header;
            assert_eq!((header.version, header.first_sequence), (2, Sequence(9)));
            let mut reader = Reader::open(&disk, session_1(), Sequence(7)).unwrap();
            for payload in ["one", "three", "five"] {
                assert_eq!(reader.next(Sequence(9)).unwrap().unwrap().payload, payload.as_bytes());
            }
        }
    }
}

/// Records of version 1 do not hold the synced sequence, so a valid record after a bad one proves damage.
#[test]
fn damage_in_version_1_is_detected() {
    for at in 48..48 + 24 {
        let disk = disk();
        let mut bytes = version_1();
        bytes[at] ^= 1;
        disk.put("00000000000000000007.journal", bytes);
        let error = inspect(&disk, &InspectOptions::default()).unwrap_err();
        assert!(matches!(error, OpenError::Record { offset: 48, sequence: Sequence(7), .. }), "{error}");
    }
}

#[test]
fn later_versions_are_refused() {
    let disk = disk();
    let mut bytes = version_2();
    bytes[8] = 3;
    let checksum = crc32c::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
    disk.put("00000000000000000007.journal", bytes);
    let error = inspect(&disk, &InspectOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "00000000000000000007.journal cannot be read: journal version 3, which this program cannot read: use the \
         version of the program that wrote it, or put the file back from a copy"
    );
}

/// Returns a copy of the log, with the byte at offset `at` of `file` changed.
fn with_damage(disk: &FaultyDisk, file: &str, at: usize) -> FaultyDisk {
    let copy = common::disk();
    for name in segments(disk) {
        let mut bytes = disk.contents(&name).unwrap();
        if name == file {
            bytes[at] ^= 0x41;
        }
        copy.put(&name, bytes);
    }
    copy
}

/// Damages every byte of a log of several segments, one at a time. The log is refused at the damage, or cut
/// there if no later record reports the data as synced.
#[test]
fn damage_to_any_byte_is_refused_or_cut() {
    let last = 130;
    let disk = written(Policy::Group, last);
    let files = segments(&disk);
    assert!(files.len() > 2, "{files:?}");
    let whole = inspect(&disk, &InspectOptions::default()).unwrap();
    assert_eq!((whole.last_sequence(), &whole.torn), (Sequence(last), &None));
    let (mut refused, mut cut) = (0, 0);
    for (file, segment) in files.iter().zip(&whole.segments) {
        for at in 0..disk.contents(file).unwrap().len() {
            let is_last = *file == files[files.len() - 1];
            match inspect(&with_damage(&disk, file, at), &InspectOptions::default()) {
                Err(OpenError::Record { file: damaged, offset, .. }) => {
                    assert!(damaged == *file && offset as usize <= at && at < offset as usize + 128 + 24);
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
                // No later record reports the last record and the zeroes after it as synced.
                Ok(found) => {
                    let torn = found.torn.unwrap();
                    assert!(torn.file == *file && torn.offset as usize <= at);
                    assert!(is_last || torn.offset == segment.end, "{file} {at}");
                    assert!(torn.sequence >= Sequence(last) || torn.damage == RecordDamage::Missing);
                    cut += 1;
                }
            }
        }
    }
    assert!(refused > 4_000 && cut > 10, "{refused} {cut}");
}

/// Damage to acknowledged records is refused, even if no record reports the last ones as synced. With
/// accepted loss the log ends before the damage, in another generation.
#[test]
fn damage_to_acknowledged_records_is_refused() {
    let last = 80;
    for policy in Policy::ALL {
        for is_closed in [false, true] {
            let disk = written_at_once(policy, last);
            if is_closed {
                close(open_with(&disk, policy).unwrap());
                disk.kill();
            }
            let whole = inspect(&disk, &InspectOptions::default()).unwrap();
            assert_eq!((whole.last_sequence(), whole.acknowledged), (Sequence(last), Some(Sequence(last))));
            for segment in whole.segments.iter().filter(|segment| segment.end > 64) {
                for at in (0..segment.end as usize).step_by(61) {
                    let changes: [common::Change<'_>; 3] =
                        [&|bytes| bytes[at] ^= 0x10, &|bytes| bytes.truncate(at), &|bytes| {
                            bytes[at..].fill(0)
                        }];
                    for change in changes {
                        let copy = with_change(&disk, &segment.file, change);
                        let error = open_with(&copy, policy).unwrap_err();
                        let named = matches!(error, OpenError::Record { .. });
                        assert!(named && error.to_string().contains(&segment.file), "{policy} {at}: {error}");
                        let options = InspectOptions { accept_loss: true, ..InspectOptions::default() };
                        let opened = open(&copy, session(), config(policy), &options).unwrap();
                        assert_eq!(opened.generation, 1, "{policy} {at}");
                        assert!(opened.found.last_sequence() < Sequence(last));
                        check_records(&copy, 1, opened.found.last_sequence().0);
                        let cut = opened.found.last_sequence();
                        copy.kill();
                        // The next start need not accept the loss again.
                        let opened = open_with(&copy, policy).unwrap();
                        assert_eq!(
                            (opened.generation, opened.found.last_sequence()),
                            (1, cut),
                            "{policy} {at}"
                        );
                    }
                }
            }
            // Only the first segment is left, and then none.
            let copy = with_change(&disk, FIRST, |_| ());
            for name in segments(&disk).iter().skip(1) {
                copy.remove(name).unwrap();
            }
            let error = open_with(&copy, policy).unwrap_err();
            assert!(matches!(error, OpenError::Record { damage: RecordDamage::Missing, .. }), "{error}");
            copy.remove(FIRST).unwrap();
            let error = open_with(&copy, policy).unwrap_err();
            assert!(matches!(error, OpenError::Record { sequence: Sequence(80), .. }), "{error}");
        }
    }
}

/// Written but never acknowledged records may be cut; the valid ones before the damage stay.
#[test]
fn damaged_unacknowledged_records_are_cut() {
    let disk = written_at_once(Policy::Group, 20);
    let mut opened = open_with(&disk, Policy::Group).unwrap();
    run_until_idle(&mut opened);
    for sequence in 21..=28 {
        opened.journal.append(Sequence(sequence), &common::payload(sequence)).unwrap();
    }
    opened.journal.poll();
    // The records are written, but their sync fails.
    disk.fail_syncs(1);
    opened.worker.run_once();
    assert_eq!(opened.journal.durable(), Sequence(20));
    disk.kill();
    let found = inspect(&disk, &InspectOptions::default()).unwrap();
    assert_eq!((found.last_sequence(), found.acknowledged), (Sequence(28), Some(Sequence(20))));
    let last = found.segments.last().unwrap();
    let copy = with_change(&disk, &last.file, |bytes| bytes[last.end as usize - 200] ^= 1);
    let opened = open_with(&copy, Policy::Group).unwrap();
    assert!((20..28).contains(&opened.found.last_sequence().0), "{:?}", opened.found.torn);
    assert!(opened.found.torn.is_some() && opened.generation == 0);
}

/// A closed log's last segment records the end, even without the acknowledged and generation files.
#[test]
fn a_closed_log_records_its_end() {
    for policy in Policy::ALL {
        let disk = written_at_once(policy, 20);
        close(open_with(&disk, policy).unwrap());
        disk.kill();
        for name in [ACKNOWLEDGED_FILE, GENERATION_FILE] {
            disk.remove(name).unwrap();
        }
        let whole = inspect(&disk, &InspectOptions::default()).unwrap();
        assert_eq!((whole.last_sequence(), whole.acknowledged), (Sequence(20), None));
        let end = whole.segments[0].end as usize;
        let copy = with_change(&disk, FIRST, |bytes| bytes[end - 1] ^= 1);
        let error = open_with(&copy, policy).unwrap_err();
        assert!(matches!(error, OpenError::Record { sequence: Sequence(20), .. }), "{error}");
    }
}

#[test]
fn a_missing_segment_is_detected() {
    let disk = written(Policy::Group, 130);
    let files = segments(&disk);
    for missing in 1..files.len() - 1 {
        let copy = common::disk();
        for name in files.iter().filter(|name| **name != files[missing]) {
            copy.put(name, disk.contents(name).unwrap());
        }
        let error = inspect(&copy, &InspectOptions::default()).unwrap_err();
        let OpenError::Record { file, damage: RecordDamage::Missing, .. } = &error else { panic!("{error}") };
        assert_eq!(*file, files[missing - 1]);
    }
}

#[test]
fn segments_of_other_sessions_and_wrong_names_are_detected() {
    let disk = written(Policy::Group, 5);
    let other = SessionName::new("OTHER").unwrap();
    let options = InspectOptions { session: Some(other), ..InspectOptions::default() };
    let error = inspect(&disk, &options).unwrap_err();
    assert!(
        matches!(error, OpenError::Session { found, expected, .. } if found == session() && expected == other)
    );
    let copy = common::disk();
    copy.put("00000000000000000002.journal", disk.contents(FIRST).unwrap());
    let error = inspect(&copy, &InspectOptions::default()).unwrap_err();
    let damage = HeaderDamage::Name { found: Sequence(1) };
    let damage = RecordDamage::Header(damage);
    assert!(matches!(error, OpenError::Record { damage: found, .. } if found == damage), "{error}");
}

/// Accepting a damaged header loses the records from that segment on, or none if a snapshot covers it.
#[test]
fn an_accepted_header_loss_keeps_independent_records() {
    let last = 130;
    let disk = written(Policy::Group, last);
    let segments = inspect(&disk, &InspectOptions::default()).unwrap().segments;
    assert!(segments.len() > 2, "{segments:?}");
    for (place, segment) in segments.iter().enumerate().take(segments.len() - 1) {
        let next = segments[place + 1].header.first_sequence;
        let before = segments[..place].last().map_or(Sequence(0), |segment| segment.last_sequence);
        let damaged = with_damage(&disk, &segment.file, 8);
        for (from, kept) in [(next, Sequence(last)), (Sequence(next.0 - 1), before)] {
            let options = InspectOptions { accept_loss: true, from, ..InspectOptions::default() };
            let found = inspect(&damaged, &options).unwrap();
            assert_eq!(found.last_sequence(), kept, "{from} {found:?}");
            let cut = found.torn.map_or(0, |torn| torn.later_records);
            let later: u64 = segments[place + 1..]
                .iter()
                .map(|it| it.last_sequence.0 + 1 - it.header.first_sequence.0)
                .sum();
            assert_eq!((cut, found.covered.len()), if kept.0 == last { (0, place + 1) } else { (later, 0) });
        }
        let options = InspectOptions { accept_loss: true, from: next, ..InspectOptions::default() };
        let opened = open(&damaged, session(), config(Policy::Group), &options).unwrap();
        assert_eq!(opened.journal.last_appended(), Sequence(last));
        check_records(&damaged, next.0, last);
    }
}

#[test]
fn a_cut_tail_stays_cut() {
    let disk = written(Policy::Group, 20);
    let end = inspect(&disk, &InspectOptions::default()).unwrap().segments[0].end as usize;
    for cut in [8, 20, 60] {
        let copy = common::disk();
        let mut bytes = disk.contents(FIRST).unwrap();
        bytes[end - cut..end].fill(0);
        copy.put(FIRST, bytes);
        let mut opened = open_with(&copy, Policy::Group).unwrap();
        let torn = opened.found.torn.clone().unwrap();
        assert_eq!((torn.file.as_str(), torn.sequence, torn.later_records), (FIRST, Sequence(20), 0));
        assert_eq!(opened.found.last_sequence(), Sequence(19));
        append_to(&mut opened, 25);
        copy.crash();
        let opened = open_with(&copy, Policy::Group).unwrap();
        assert_eq!((opened.found.last_sequence(), &opened.found.torn), (Sequence(25), &None));
        check_records(&copy, 1, 25);
    }
}

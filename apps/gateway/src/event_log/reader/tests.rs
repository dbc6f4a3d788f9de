//! Tests with logs that are whole, and cut off or damaged at every byte.

use tickpath_types::Nanos;

use super::*;
use crate::event_log::format::Origin;

const PLACE: &str = "log";

fn header(sequence: u64) -> FileHeader {
    FileHeader {
        part: 0,
        session: [1; 16],
        start: Nanos(1_000),
        clock: Nanos(10),
        sequence,
        name: "g".to_owned(),
    }
}

fn put(out: &mut Vec<u8>, kind: RecordKind, sequence: u64, payload: &[u8]) {
    let origin = Origin { stream: 1, account: 2, client: 3 };
    let header = RecordHeader { kind, origin, sequence, time: Nanos(20 + sequence), origin_time: Nanos(5) };
    header.write(payload, out);
}

/// A log of four records: the end offset of each, and its bytes.
fn sample() -> (Vec<usize>, Vec<u8>) {
    let mut bytes = header(7).write().to_vec();
    let mut ends = vec![];
    for (kind, sequence, payload) in [
        (RecordKind::Config, 7, &b"name = 'g'"[..]),
        (RecordKind::VenueIn, 7, b"{}"),
        (RecordKind::Event, 8, &[0x55; 184]),
        (RecordKind::End, 9, b""),
    ] {
        put(&mut bytes, kind, sequence, payload);
        ends.push(bytes.len());
    }
    (ends, bytes)
}

/// Returns the kinds of all records, the number of missing records, and the end.
fn read(bytes: &[u8]) -> Result<(Vec<RecordKind>, u64, Tail), LogError> {
    let mut reader = LogReader::new(bytes, Path::new(PLACE))?;
    let mut kinds = vec![];
    while let Some(record) = reader.next()? {
        kinds.push(record.kind);
    }
    assert!(reader.next()?.is_none(), "the end stays the end");
    Ok((kinds, reader.missing(), reader.tail()))
}

#[test]
fn records_come_back_as_they_were_written() {
    let (_, bytes) = sample();
    let mut reader = LogReader::new(&bytes[..], Path::new(PLACE)).unwrap();
    assert_eq!(reader.header(), &header(7));
    reader.next().unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.kind, record.sequence, record.payload), (RecordKind::VenueIn, 7, &b"{}"[..]));
    assert_eq!(record.origin, Origin { stream: 1, account: 2, client: 3 });
    assert_eq!((record.time, record.origin_time), (Nanos(27), Nanos(5)));
    assert_eq!(read(&bytes).unwrap().1, 0);
    assert_eq!(read(&bytes).unwrap().2, Tail::Ended);
}

#[test]
fn a_file_that_is_cut_off_reads_up_to_there() {
    use RecordKind::{Config, End, Event, VenueIn};
    let (ends, bytes) = sample();
    for len in 0..bytes.len() {
        let found = read(&bytes[..len]);
        if len < FILE_HEADER_LEN {
            assert!(matches!(found, Err(LogError::Short { .. })), "{len}");
            continue;
        }
        let whole = ends.iter().filter(|end| **end <= len).count();
        let offset = ends[..whole].last().copied().unwrap_or(FILE_HEADER_LEN);
        let tail = match (len - offset, whole) {
            (0, _) => Tail::Open,
            (bytes, _) => Tail::Torn { offset: offset as u64, bytes: bytes as u64 },
        };
        let (kinds, missing, end) = found.unwrap();
        assert_eq!(
            (kinds, missing, end),
            ([Config, VenueIn, Event, End][..whole].to_vec(), 0, tail),
            "{len}"
        );
    }
}

#[test]
fn a_file_that_ends_with_zeros_reads_up_to_there() {
    let (ends, bytes) = sample();
    let offset = ends[1];
    for kept in [0, 1, 39, 40, 41, 200] {
        let mut zeroed = bytes[..offset + kept].to_vec();
        zeroed.resize(bytes.len() + 3 * CHUNK, 0);
        let (kinds, _, tail) = read(&zeroed).unwrap();
        assert_eq!(kinds, [RecordKind::Config, RecordKind::VenueIn], "{kept}");
        assert_eq!(tail, Tail::Torn { offset: offset as u64, bytes: (zeroed.len() - offset) as u64 });
    }
}

#[test]
fn every_damage_in_the_middle_is_seen() {
    let (ends, bytes) = sample();
    for at in FILE_HEADER_LEN..ends[2] {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let start = ends.iter().rev().find(|end| **end <= at).copied().unwrap_or(FILE_HEADER_LEN);
            match read(&damaged) {
                Err(LogError::Damaged { offset, .. }) => assert_eq!(offset, start as u64),
                // A corrupt length makes the record look unfinished.
                Ok((_, _, Tail::Torn { offset, .. })) => {
                    assert!((4..8).contains(&(at - start)), "{at}");
                    assert_eq!(offset, start as u64);
                }
                other => panic!("{at}.{bit}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_is_missing_is_counted() {
    let mut bytes = header(0).write().to_vec();
    for (kind, sequence) in [
        (RecordKind::Config, 2),
        (RecordKind::Time, 2),
        (RecordKind::Time, 3),
        (RecordKind::Time, 6),
        (RecordKind::Continued, 10),
    ] {
        put(&mut bytes, kind, sequence, b"");
    }
    let (kinds, missing, tail) = read(&bytes).unwrap();
    assert_eq!((kinds.len(), missing, tail), (5, 2 + 2 + 3, Tail::Continued));
}

#[test]
fn a_length_that_lies_costs_no_memory() {
    let mut bytes = header(0).write().to_vec();
    put(&mut bytes, RecordKind::Time, 0, b"");
    let len = FILE_HEADER_LEN + 4;
    bytes[len..len + 4].copy_from_slice(&(60_u32 << 20).to_le_bytes());
    let mut reader = LogReader::new(&bytes[..], Path::new(PLACE)).unwrap();
    assert!(reader.next().unwrap().is_none());
    assert!(reader.record.capacity() <= 4 * CHUNK);
}

#[test]
fn a_length_that_is_damaged_is_no_torn_end() {
    let (ends, bytes) = sample();
    // Upper bits of the second record's length: the bytes after it then seem to belong to it.
    for bit in [10, 16, 20] {
        let mut damaged = bytes.clone();
        let at = ends[0] + 4 + bit / 8;
        damaged[at] ^= 1 << (bit % 8);
        let found = read(&damaged);
        assert!(
            matches!(found, Err(LogError::Damaged { offset, .. }) if offset == ends[0] as u64),
            "{bit}: {found:?}"
        );
    }
    // No valid record follows the last one, so damage in it is taken for a torn write.
    let mut damaged = bytes.clone();
    damaged[ends[2] + 5] ^= 1;
    assert!(matches!(read(&damaged), Ok((_, 0, Tail::Torn { .. }))));
}

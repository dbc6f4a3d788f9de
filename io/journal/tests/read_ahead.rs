//! Reading ahead gives the same records as a reader, and the same errors after the same records.

use std::collections::HashSet;
use std::thread::{self, ThreadId};

use tickpath_journal::{OpenError, Policy, Reader, Record, read_ahead};
use tickpath_types::Sequence;

use crate::common::{payload, session, written_at_once};

/// Records of a log that is long enough for a second thread, and not a multiple of any batch.
const LONG: u64 = 20_011;

/// An error of the test itself, or of the journal.
#[derive(Debug, PartialEq, Eq)]
enum Error {
    Journal(String),
    Undecodable(u64),
    Refused(u64),
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        Error::Journal(error.to_string())
    }
}

/// Reads a log of `last` records ahead. Decoding fails at the record `undecodable`, accepting at `refused`. Returns the
/// result, the number of accepted records, and the threads that decoded them.
fn read(last: u64, undecodable: u64, refused: u64) -> (Result<(), Error>, u64, HashSet<ThreadId>) {
    let disk = written_at_once(Policy::Async, last);
    let mut reader = Reader::open(&disk, session(), Sequence(1)).unwrap();
    let (mut accepted, mut threads) = (0, HashSet::new());
    let decode = |Record { sequence, payload }: Record<'_>, out: &mut Vec<_>| {
        if sequence.0 == undecodable {
            return Err(Error::Undecodable(sequence.0));
        }
        out.push((sequence.0, payload.to_vec(), thread::current().id()));
        Ok(())
    };
    let accept = |items: &[(u64, Vec<u8>, ThreadId)]| {
        for (sequence, bytes, thread) in items {
            if *sequence == refused {
                return Err(Error::Refused(*sequence));
            }
            accepted += 1;
            assert_eq!((*sequence, bytes), (accepted, &payload(*sequence)));
            threads.insert(*thread);
        }
        Ok(())
    };
    let result = read_ahead(&mut reader, Sequence(last), decode, accept);
    (result, accepted, threads)
}

#[test]
fn a_long_log_is_read_by_another_thread_in_order() {
    let (result, accepted, threads) = read(LONG, 0, 0);
    assert_eq!((result, accepted, threads.len()), (Ok(()), LONG, 1));
    assert!(!threads.contains(&thread::current().id()));
}

#[test]
fn a_short_log_is_read_by_the_caller() {
    for last in [1, 511, 512, 513, 1_024] {
        assert_eq!(read(last, 0, 0), (Ok(()), last, HashSet::from([thread::current().id()])));
    }
}

#[test]
fn all_records_before_a_bad_one_are_accepted() {
    for last in [LONG, 1_024] {
        for bad in [1, 512, 513, last] {
            let (result, accepted, _) = read(last, bad, 0);
            assert_eq!((result, accepted), (Err(Error::Undecodable(bad)), bad - 1));
        }
    }
}

#[test]
fn reading_ends_when_the_caller_refuses_an_item() {
    for last in [LONG, 1_024] {
        for refused in [1, 512, last] {
            let (result, accepted, _) = read(last, 0, refused);
            assert_eq!((result, accepted), (Err(Error::Refused(refused)), refused - 1));
        }
    }
}

#[test]
fn damage_is_reported_after_the_records_before_it() {
    let disk = written_at_once(Policy::Async, LONG);
    let mut reader = Reader::open(&disk, session(), Sequence(1)).unwrap();
    let mut names: Vec<_> = tickpath_journal::Storage::list(&disk).unwrap();
    names.retain(|name| name.ends_with(".journal"));
    names.sort();
    // The last byte of the first record of a segment in the middle.
    let name = &names[names.len() / 2];
    let first: u64 = name.trim_end_matches(".journal").parse().unwrap();
    let mut bytes = disk.contents(name).unwrap();
    bytes[64 + 24] ^= 1;
    disk.put(name, bytes);
    let mut accepted = 0;
    let result = read_ahead(
        &mut reader,
        Sequence(LONG),
        |record, out| {
            out.push(record.sequence.0);
            Ok::<_, OpenError>(())
        },
        |items: &[u64]| {
            accepted += items.len() as u64;
            Ok(())
        },
    );
    let Err(OpenError::Record { file, sequence, .. }) = result else { panic!("{result:?}") };
    assert_eq!((&file, sequence, accepted), (name, Sequence(first), first - 1));
}

//! Measures each book structure's time and memory over a generated [`Day`], and compares the digests.

use crate::catalogue::{self, Entry};
use crate::day::Day;
use crate::driver::Digest;
use crate::host::Stopwatch;
use tickpath_test_support::allocations::HeldBytes;

/// The structure that the others are compared with: the simplest one.
fn reference() -> &'static Entry {
    &catalogue::ALL[0]
}

/// Digests after each piece of the day.
pub fn digests(entry: &Entry, day: &Day) -> Vec<Digest> {
    HeldBytes::reset();
    let mut runner = HeldBytes::counted(|| (entry.open)(day.limits));
    let after = |piece| {
        HeldBytes::counted(|| runner.run(piece));
        runner.digest()
    };
    day.pieces().map(after).collect()
}

/// Panics if a structure's digest after any piece differs from `expected`.
pub fn verify(entry: &Entry, day: &Day, expected: &[Digest]) {
    for (piece, (got, expected)) in digests(entry, day).iter().zip(expected).enumerate() {
        assert_eq!(got, expected, "{} differs from the others after piece {}", entry.name, piece + 1);
    }
}

/// Panics if the structures' digests differ. Returns the final digest, and each structure's peak memory in
/// bytes.
pub fn verify_all(entries: &[&Entry], day: &Day) -> (Digest, Vec<usize>) {
    eprintln!("structures: {}, the books that all must equal: {}", day.name, reference().name);
    let expected = digests(reference(), day);
    let of_reference = HeldBytes::max();
    let verified = |entry: &&Entry| {
        if entry.name == reference().name {
            return of_reference;
        }
        eprintln!("structures: {}, equality and memory: {}", day.name, entry.name);
        verify(entry, day, &expected);
        HeldBytes::max()
    };
    let memory = entries.iter().map(verified).collect();
    (expected[expected.len() - 1], memory)
}

/// Nanoseconds per message of each structure, one value per round. Each run must end with the digest `end`.
pub fn rounds(entries: &[&Entry], day: &Day, rounds: u32, end: Digest) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); entries.len()];
    for round in 0..rounds as usize {
        for turn in 0..entries.len() {
            // Each round starts with another structure.
            let index = (turn + round) % entries.len();
            eprint!("structures: {}, round {} of {rounds}: {}", day.name, round + 1, entries[index].name);
            let (nanos, digest) = time(entries[index], day);
            assert_eq!(digest, end, "{} ends otherwise than before", entries[index].name);
            eprintln!(", {nanos:.1} ns");
            times[index].push(nanos);
        }
    }
    times
}

fn time(entry: &Entry, day: &Day) -> (f64, Digest) {
    let mut runner = (entry.open)(day.limits);
    let stopwatch = Stopwatch::start();
    runner.run(std::hint::black_box(&day.bytes));
    let nanos = stopwatch.nanos();
    (nanos as f64 / day.messages as f64, runner.digest())
}

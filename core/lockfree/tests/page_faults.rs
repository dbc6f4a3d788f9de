//! The first use of a new ring causes no page fault: creation touched all memory.
//!
//! Other tests of the process may add page faults, so the bound is a quarter of those of untouched memory.
// The kernel provides the count of this process's page faults in a file.
#![allow(clippy::disallowed_methods)]
#![cfg(all(target_os = "linux", not(miri)))]

use tickpath_lockfree::{broadcast, records, spsc};

/// Number of 64-byte items, 32 MiB in total: many pages even if they are huge pages.
const ITEMS: usize = 1 << 19;

/// Returns the number of minor page faults of this process so far.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux describes each process");
    let after_name = stat.rsplit(')').next().expect("the name is in brackets");
    after_name.split_whitespace().nth(7).expect("minflt").parse().expect("a number")
}

fn faults_of(work: impl FnOnce()) -> u64 {
    let before = page_faults();
    work();
    page_faults() - before
}

#[test]
fn the_first_pass_through_a_ring_has_no_page_faults() {
    let mut untouched = vec![0_u64; 8 * ITEMS];
    let faults_untouched = faults_of(|| untouched.iter_mut().step_by(8).for_each(|word| *word = 1));
    let check = |what, faults| {
        assert!(4 * faults <= faults_untouched, "{what}: {faults} page faults, untouched {faults_untouched}");
    };
    assert!(faults_untouched > 0 && core::hint::black_box(untouched).len() == 8 * ITEMS);

    let (mut producer, _consumer) = spsc::channel(ITEMS);
    check("spsc", faults_of(|| (0..ITEMS).for_each(|item| producer.try_push([item; 7]).unwrap())));

    let (mut producer, _consumer) = records::channel(ITEMS);
    check("records", faults_of(|| (0..ITEMS).for_each(|item| assert!(producer.push([item; 8])))));

    let (mut sender, _receiver) = broadcast::channel(ITEMS);
    check("broadcast", faults_of(|| (0..ITEMS).for_each(|item| sender.send([item; 7]))));
}

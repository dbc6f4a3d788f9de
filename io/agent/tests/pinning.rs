//! Pinning of a thread to a core, and the restored affinity afterwards.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tickpath_agent::{PinGuard, pin_current_thread};

/// Cores that the calling thread may use.
fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap()).collect()
}

#[test]
fn a_guard_pins_its_thread_and_restores_its_cores() {
    let before = allowed();
    for core in before.iter().copied() {
        let guard = PinGuard::pin(core).unwrap();
        assert_eq!(allowed(), [core]);
        drop(guard);
        assert_eq!(allowed(), before);
    }
}

#[test]
fn a_guard_restores_a_set_of_cores() {
    let before = allowed();
    let mut chosen = CpuSet::new();
    chosen.set(before[0]).unwrap();
    sched_setaffinity(Pid::from_raw(0), &chosen).unwrap();
    // `pin` fails if the process may not use the last core; the affinity is unchanged in any case.
    drop(PinGuard::pin(*before.last().unwrap()));
    assert_eq!(allowed(), [before[0]]);
}

#[test]
fn nested_guards_restore_in_turn() {
    let before = allowed();
    let (first, last) = (before[0], *before.last().unwrap());
    let outer = PinGuard::pin(first).unwrap();
    let inner = PinGuard::pin(last).unwrap();
    assert_eq!(allowed(), [last]);
    drop(inner);
    assert_eq!(allowed(), [first]);
    drop(outer);
    assert_eq!(allowed(), before);
}

#[test]
fn a_missing_core_is_rejected_and_changes_nothing() {
    let before = allowed();
    let refusal = PinGuard::pin(usize::MAX).unwrap_err();
    assert!(refusal.contains("choose one of the allowed cores"), "{refusal}");
    assert_eq!(allowed(), before);
}

#[test]
fn other_threads_are_left_alone() {
    let before = allowed();
    thread::spawn(move || {
        let core = allowed()[0];
        pin_current_thread(core).unwrap();
        assert_eq!(allowed(), [core]);
    })
    .join()
    .unwrap();
    assert_eq!(allowed(), before);
}

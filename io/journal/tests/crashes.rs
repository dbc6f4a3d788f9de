//! Random crashes of process and disk: acknowledged records survive, and no records are invented or skipped.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::{check_records, config, open_with, payload, session};
use proptest::prelude::*;
use tickpath_journal::{
    AppendError, DiskFaults, FaultyDisk, InspectOptions, OpenError, Opened, Policy, State, open,
};
use tickpath_types::{Rng, Sequence};

/// Counts of the situations in a run, so that a test can check that the run was meaningful.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    records: u64,
    torn: u64,
    later_records: u64,
    failed: u64,
    losses: u64,
}

/// A sequencer, its journal, and a disk with faults.
struct Life {
    rng: Rng,
    disk: FaultyDisk,
    policy: Policy,
    acknowledged: u64,
    appended: u64,
    generation: u32,
    met: Met,
}

impl Life {
    fn new(seed: u64, policy: Policy, faults: DiskFaults) -> Life {
        Life {
            rng: Rng::new(seed),
            disk: FaultyDisk::new(seed ^ 0x5eed, faults),
            policy,
            acknowledged: 0,
            appended: 0,
            generation: 0,
            met: Met::default(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next() % bound
    }

    /// Opens the log, and checks its records against the guarantees.
    fn open(&mut self, lost_power: bool) -> Option<Opened<FaultyDisk>> {
        let opened = match open_with(&self.disk, self.policy) {
            Err(OpenError::Loss { .. }) if self.policy == Policy::Async && lost_power => {
                self.met.losses += 1;
                let options = InspectOptions { accept_loss: true, ..InspectOptions::default() };
                match open(&self.disk, session(), config(self.policy), &options) {
                    Err(OpenError::Io { .. }) => return None,
                    opened => opened.unwrap(),
                }
            }
            // The disk fails sometimes, or power is lost just now; the caller retries.
            Err(OpenError::Io { .. }) => return None,
            opened => opened.unwrap(),
        };
        let last = match opened.found.segments.is_empty() {
            true => 0,
            false => opened.found.last_sequence().0,
        };
        let may_lose = self.policy == Policy::Async && lost_power;
        assert!(may_lose || last >= self.acknowledged, "{last} of {} acknowledged", self.acknowledged);
        assert!(last <= self.appended, "{last} of {} appended", self.appended);
        assert_eq!(opened.journal.last_appended(), Sequence(last));
        // A loss of acknowledged records changes the generation; otherwise the generation stays.
        assert!(last >= self.acknowledged || opened.generation > self.generation);
        assert!(may_lose || opened.generation == self.generation);
        self.generation = opened.generation;
        check_records(&self.disk, 1, last);
        if let Some(torn) = &opened.found.torn {
            self.met.torn += 1;
            self.met.later_records += torn.later_records;
        }
        (self.acknowledged, self.appended) = (last, last);
        Some(opened)
    }

    /// Runs duty cycles of both ends in random order, for a number of steps.
    fn run(&mut self, opened: &mut Opened<FaultyDisk>, steps: u64) {
        for _ in 0..steps {
            match self.below(4) {
                0 | 1 => {
                    for _ in 0..=self.below(16) {
                        let sequence = self.appended + 1;
                        match opened.journal.append(Sequence(sequence), &payload(sequence)) {
                            Ok(()) => self.appended = sequence,
                            Err(
                                AppendError::Full | AppendError::NoNextSegment(_) | AppendError::Failed(_),
                            ) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                2 => _ = opened.journal.poll(),
                _ => _ = opened.worker.run_once(),
            }
            let durable = opened.journal.durable().0;
            assert!((self.acknowledged..=self.appended).contains(&durable));
            self.met.records += durable - self.acknowledged;
            self.acknowledged = durable;
        }
        self.met.failed += u64::from(matches!(opened.journal.state(), State::Failed(_)));
    }

    /// Runs instances that end by process death or power loss.
    fn live(mut self, lives: u64) -> Met {
        let mut lost_power = false;
        for _ in 0..lives {
            let crashes = self.disk.counters().crashes;
            if self.below(2) == 0 {
                let changes = self.below(50);
                self.disk.crash_after(changes);
            }
            let opened = self.open(lost_power);
            lost_power &= opened.is_none();
            if let Some(mut opened) = opened {
                let steps = self.below(120);
                self.run(&mut opened, steps);
            }
            if self.below(4) == 0 {
                self.disk.crash();
            }
            self.disk.kill();
            lost_power |= self.disk.counters().crashes > crashes;
        }
        self.disk.set_faults(DiskFaults::default());
        self.open(lost_power).expect("a good disk opens");
        self.met
    }
}

fn many(policy: Policy, faults: DiskFaults) -> Met {
    let mut sum = Met::default();
    for seed in 0..100 {
        let met = Life::new(seed, policy, faults).live(12);
        sum.records += met.records;
        sum.torn += met.torn;
        sum.later_records += met.later_records;
        sum.failed += met.failed;
        sum.losses += met.losses;
    }
    sum
}

#[test]
fn what_was_acknowledged_survives_any_crash() {
    for policy in [Policy::Group, Policy::Sync] {
        let met = many(policy, DiskFaults::default());
        assert!(met.records > 15_000 && met.torn > 0 && met.failed > 20, "{policy} {met:?}");
        // A record that is synced alone has no later record that could survive it.
        assert!((met.later_records > 5) == (policy == Policy::Group), "{policy} {met:?}");
    }
}

#[test]
fn async_survives_the_death_of_the_process_and_admits_what_power_took() {
    let met = many(Policy::Async, DiskFaults::default());
    assert!(met.records > 15_000 && met.losses > 20, "{met:?}");
}

#[test]
fn a_disk_that_fails_to_write_or_sync_loses_nothing_acknowledged() {
    let faults =
        DiskFaults { write_failures_ppm: 10_000, sync_failures_ppm: 10_000, ..DiskFaults::default() };
    for policy in [Policy::Group, Policy::Sync] {
        let met = many(policy, faults);
        assert!(met.records > 5_000 && met.failed > 20, "{policy} {met:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_seed_keeps_the_promise(seed: u64, policy in 0..3_usize, faults in 0..30_000_u32) {
        let policy = Policy::ALL[policy];
        let faults = DiskFaults { write_failures_ppm: faults, sync_failures_ppm: faults, ..DiskFaults::default() };
        Life::new(seed, policy, faults).live(8);
    }
}

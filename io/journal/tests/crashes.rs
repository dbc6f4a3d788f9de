//! Random crashes of process and disk: acknowledged records survive, and no records are invented or skipped.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::{check_records, config, open_with, payload, session};
use proptest::prelude::*;
use tickpath_journal::{
    AppendError, DiskFaults, FaultyDisk, InspectOptions, OpenError, Opened, Policy, State, open,
};
use tickpath_types::{Rng, Sequence};

/// Counts of the situations that occurred in a run; tests require a minimum of each.
#[derive(Clone, Copy, Debug, Default)]
struct Coverage {
    records: u64,
    torn: u64,
    later_records: u64,
    failed: u64,
    losses: u64,
}

/// A disk with random faults, and the last appended and acknowledged sequences of the log on it.
struct CrashRun {
    rng: Rng,
    disk: FaultyDisk,
    policy: Policy,
    acknowledged: u64,
    appended: u64,
    generation: u32,
    coverage: Coverage,
}

impl CrashRun {
    fn new(seed: u64, policy: Policy, faults: DiskFaults) -> CrashRun {
        CrashRun {
            rng: Rng::new(seed),
            disk: FaultyDisk::new(seed ^ 0x5eed, faults),
            policy,
            acknowledged: 0,
            appended: 0,
            generation: 0,
            coverage: Coverage::default(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next() % bound
    }

    /// Opens the log, and checks its records against the guarantees.
    fn open(&mut self, lost_power: bool) -> Option<Opened<FaultyDisk>> {
        let opened = match open_with(&self.disk, self.policy) {
            Err(OpenError::Loss { .. }) if self.policy == Policy::Async && lost_power => {
                self.coverage.losses += 1;
                let options = InspectOptions { accept_loss: true, ..InspectOptions::default() };
                match open(&self.disk, session(), config(self.policy), &options) {
                    Err(OpenError::Io { .. }) => return None,
                    opened => opened.unwrap(),
                }
            }
            // The disk failed, or power was lost during the open; the caller retries.
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
        // A loss of acknowledged records changes the generation. If none can be lost, the generation stays.
        assert!(last >= self.acknowledged || opened.generation > self.generation);
        assert!(may_lose || opened.generation == self.generation);
        self.generation = opened.generation;
        check_records(&self.disk, 1, last);
        if let Some(torn) = &opened.found.torn {
            self.coverage.torn += 1;
            self.coverage.later_records += torn.later_records;
        }
        (self.acknowledged, self.appended) = (last, last);
        Some(opened)
    }

    /// Runs `steps` random steps: each appends records, polls the journal or runs the worker once.
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
            self.coverage.records += durable - self.acknowledged;
            self.acknowledged = durable;
        }
        self.coverage.failed += u64::from(matches!(opened.journal.state(), State::Failed(_)));
    }

    /// Runs process instances, each ended by process death or power loss.
    fn run_instances(mut self, instances: u64) -> Coverage {
        let mut lost_power = false;
        for _ in 0..instances {
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
        self.coverage
    }
}

fn many(policy: Policy, faults: DiskFaults) -> Coverage {
    let mut sum = Coverage::default();
    for seed in 0..100 {
        let coverage = CrashRun::new(seed, policy, faults).run_instances(12);
        sum.records += coverage.records;
        sum.torn += coverage.torn;
        sum.later_records += coverage.later_records;
        sum.failed += coverage.failed;
        sum.losses += coverage.losses;
    }
    sum
}

#[test]
fn acknowledged_records_survive_any_crash() {
    for policy in [Policy::Group, Policy::Sync] {
        let coverage = many(policy, DiskFaults::default());
        assert!(
            coverage.records > 15_000 && coverage.torn > 0 && coverage.failed > 20,
            "{policy} {coverage:?}"
        );
        // Under `sync` each record is synced before the next is written, so no record follows a torn one.
        assert!((coverage.later_records > 5) == (policy == Policy::Group), "{policy} {coverage:?}");
    }
}

#[test]
fn async_survives_process_crashes_and_reports_power_losses() {
    let coverage = many(Policy::Async, DiskFaults::default());
    assert!(coverage.records > 15_000 && coverage.losses > 20, "{coverage:?}");
}

#[test]
fn a_disk_that_fails_to_write_or_sync_loses_nothing_acknowledged() {
    let faults =
        DiskFaults { write_failures_ppm: 10_000, sync_failures_ppm: 10_000, ..DiskFaults::default() };
    for policy in [Policy::Group, Policy::Sync] {
        let coverage = many(policy, faults);
        assert!(coverage.records > 5_000 && coverage.failed > 20, "{policy} {coverage:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_seed_keeps_the_guarantees(seed: u64, policy in 0..3_usize, faults in 0..30_000_u32) {
        let policy = Policy::ALL[policy];
        let faults = DiskFaults { write_failures_ppm: faults, sync_failures_ppm: faults, ..DiskFaults::default() };
        CrashRun::new(seed, policy, faults).run_instances(8);
    }
}

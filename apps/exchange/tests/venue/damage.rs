//! The damage campaign damages one file of a venue's journal and starts the venue again. The venue must
//! refuse to start, or still have every message that a client recorded, byte for byte. If it starts only with
//! `accept_loss`, the session must get another name.
//!
//! A venue in a separate process writes each log until it is stopped or killed. `DAMAGE_TEST_TRIALS` and
//! `DAMAGE_TEST_SEED` set the number of trials and the seed; `cargo xtask damage-test` sets them.

mod client;
mod damages;
mod trial;
mod writer;

use std::collections::BTreeMap;

use tickpath_journal::Policy;

use damages::{Random, Target, kinds};
use trial::{Outcome, check_undamaged, run_trial};
use writer::{Log, write_log};

/// Default number of trials, for CI.
const TRIALS: u64 = 200;
/// Maximum number of trials with one log.
const TRIALS_PER_LOG: u64 = 84;

/// Number of trials with each outcome, by log and by damage.
#[derive(Debug, Default)]
struct Totals {
    by_log: BTreeMap<String, BTreeMap<Outcome, u64>>,
    by_damage: BTreeMap<String, BTreeMap<Outcome, u64>>,
}

impl Totals {
    fn add(&mut self, log: &Log, target: Target, kind: &str, outcome: Outcome) {
        let damage = format!("{} {kind}", target.name());
        for (table, row) in [(&mut self.by_log, log.name()), (&mut self.by_damage, damage)] {
            *table.entry(row).or_default().entry(outcome).or_default() += 1;
        }
    }

    fn print(&self) {
        for (title, table) in [("log", &self.by_log), ("damage", &self.by_damage)] {
            print!("{title:<24}");
            Outcome::ALL.iter().for_each(|outcome| print!("{:>12}", outcome.name()));
            println!();
            for (row, counts) in table {
                print!("{row:<24}");
                Outcome::ALL.iter().for_each(|outcome| print!("{:>12}", counts.get(outcome).unwrap_or(&0)));
                println!();
            }
        }
    }

    fn of(&self, outcome: Outcome) -> u64 {
        self.by_log.values().filter_map(|counts| counts.get(&outcome)).sum()
    }
}

#[test]
fn damage_to_one_file_causes_no_silent_loss_or_reused_number() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (trials, seed) = (number("DAMAGE_TEST_TRIALS", TRIALS), number("DAMAGE_TEST_SEED", 1));
    let mut random = Random(seed);
    let mut totals = Totals::default();
    let mut problems = Vec::new();
    let classes: Vec<(Policy, bool)> =
        Policy::ALL.into_iter().flat_map(|policy| [(policy, false), (policy, true)]).collect();
    let mut done = 0;
    while done < trials {
        let round = (trials - done).min(TRIALS_PER_LOG * classes.len() as u64);
        for (place, (policy, is_killed)) in (0..).zip(&classes) {
            let log = write_log(*policy, *is_killed, random.next());
            check_undamaged(&log);
            let of_class = round / 6 + u64::from(place < round % 6);
            for _ in 0..of_class {
                let (target, kind, outcome, problem) = run_trial(&log, &mut random);
                totals.add(&log, target, kind, outcome);
                problems.extend(problem);
                done += 1;
            }
        }
    }
    totals.print();
    let (lost, twice) = (totals.of(Outcome::Lost), totals.of(Outcome::Twice));
    println!("{done} files damaged: {lost} silent losses, {twice} sequence numbers used twice");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!((lost, twice), (0, 0));
    // Each kind of damage occurred on each kind of file, except for at most three combinations.
    let expected = Target::ALL.len() * kinds().len();
    assert!(trials < TRIALS || totals.by_damage.len() >= expected - 3, "{:?}", totals.by_damage.keys());
}

/// Without the files that record where the log ends, damage to the last record loses messages silently. The
/// comparison must detect this loss; otherwise the campaign proves nothing.
#[test]
fn a_silent_loss_is_detected() {
    let log = write_log(Policy::Group, false, 7);
    let mut random = Random(7);
    for _ in 0..10 {
        let copy = log.copy();
        damages::remove_end_marks(copy.path());
        damages::flip_in_the_last_record(copy.path(), &mut random);
        let (outcome, description) = trial::start_and_compare(&log, copy.path());
        // `Twice` means that the venue's commands at its start reused the numbers of lost messages.
        assert!(matches!(outcome, Outcome::Lost | Outcome::Twice), "{description}");
    }
}

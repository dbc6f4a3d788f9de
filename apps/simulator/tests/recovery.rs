//! The recovery of market data is in reach of the runs: books are healed by snapshots, and old messages come out of the
//! journal.
#![allow(clippy::unwrap_used)]

use tickpath_simulator::{Outcome, Simulation, Weather};

fn healed(outcome: &Outcome) -> u64 {
    outcome.observed.feeds.iter().map(|life| life.healed).sum()
}

fn archived(outcome: &Outcome) -> u64 {
    let counters = &outcome.observed.last.counters;
    let counter = counters.iter().find(|(name, _)| name == "market_recovery.archive_answers").unwrap();
    counter.1
}

#[test]
fn some_seeds_heal_by_snapshots_and_some_out_of_the_journal() {
    let outcomes: Vec<Outcome> = (1..=30).map(|seed| Simulation::new(seed, Weather::Storm).run()).collect();
    let of = |what: fn(&Outcome) -> u64| outcomes.iter().filter(|outcome| what(outcome) > 0).count();
    assert!(of(healed) >= 3 && of(archived) >= 2, "{} and {}", of(healed), of(archived));
    assert!(outcomes.iter().any(|outcome| healed(outcome) == 0 && archived(outcome) == 0), "not all");
}

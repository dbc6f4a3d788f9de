//! Rare events occur in the runs: books recover from snapshots, old messages come from the journal, drop
//! copies are read repeatedly, and added instruments are traded.
#![allow(clippy::unwrap_used)]

use tickpath_simulator::{ClientEventKind, FaultLevel, Outcome, Simulation};
use tickpath_types::{Sequence, UpdateKind};

fn healed(outcome: &Outcome) -> u64 {
    outcome.observed.feeds.iter().map(|life| life.healed).sum()
}

fn archived(outcome: &Outcome) -> u64 {
    let counters = &outcome.observed.last.counters;
    let counter = counters.iter().find(|(name, _)| name == "market_recovery.archive_answers").unwrap();
    counter.1
}

/// Returns the number of drop copies that were received again.
fn copied_again(outcome: &Outcome) -> u64 {
    let (mut last, mut again) = (Sequence(0), 0);
    for event in outcome.observed.copies.iter().flat_map(|reader| &reader.log.events) {
        if let ClientEventKind::Received { sequence, .. } = event.kind {
            again += u64::from(sequence <= last);
            last = last.max(sequence);
        }
    }
    again
}

/// Returns the number of trades in added instruments.
fn traded_later(outcome: &Outcome) -> u64 {
    let first = outcome.observed.setup.instruments.len() as u16;
    let updates = outcome.observed.feeds.iter().flat_map(|life| &life.updates);
    let is_later = |update: &&tickpath_types::MarketUpdate| {
        update.instrument > first && update.kind() == Some(UpdateKind::Trade)
    };
    updates.filter(is_later).count() as u64
}

#[test]
fn what_is_rare_happens_in_some_seeds_and_not_in_all() {
    let outcomes: Vec<Outcome> = (1..=30).map(|seed| Simulation::new(seed, FaultLevel::Full).run()).collect();
    let of = |what: fn(&Outcome) -> u64| outcomes.iter().filter(|outcome| what(outcome) > 0).count();
    assert!(of(healed) >= 3 && of(archived) >= 2, "{} and {}", of(healed), of(archived));
    assert!(of(copied_again) >= 3 && of(traded_later) >= 1, "{} and {}", of(copied_again), of(traded_later));
    assert!(outcomes.iter().any(|outcome| healed(outcome) == 0 && archived(outcome) == 0), "not all");
}

//! Some runs must contain rare events: books recover from snapshots, old messages come from the journal, a
//! reader receives drop copies again, and added instruments are traded.
#![allow(clippy::unwrap_used)]

use tickpath_simulator::{ClientEventKind, FaultLevel, Outcome, Simulation};
use tickpath_types::{Sequence, UpdateKind};

fn recovered(outcome: &Outcome) -> u64 {
    outcome.observed.feeds.iter().map(|instance| instance.recovered).sum()
}

fn archived(outcome: &Outcome) -> u64 {
    let counters = &outcome.observed.last.counters;
    let counter = counters.iter().find(|(name, _)| name == "market_recovery.archive_answers").unwrap();
    counter.1
}

/// Returns the number of drop copies that were received again.
fn repeated_copies(outcome: &Outcome) -> u64 {
    let (mut last, mut repeated) = (Sequence(0), 0);
    for event in outcome.observed.copies.iter().flat_map(|reader| &reader.log.events) {
        if let ClientEventKind::Received { sequence, .. } = event.kind {
            repeated += u64::from(sequence <= last);
            last = last.max(sequence);
        }
    }
    repeated
}

/// Returns the number of trades in added instruments.
fn trades_in_added_instruments(outcome: &Outcome) -> u64 {
    let first = outcome.observed.setup.instruments.len() as u16;
    let updates = outcome.observed.feeds.iter().flat_map(|instance| &instance.updates);
    let is_later = |update: &&tickpath_types::MarketUpdate| {
        update.instrument > first && update.kind() == Some(UpdateKind::Trade)
    };
    updates.filter(is_later).count() as u64
}

#[test]
fn rare_events_occur_in_some_seeds() {
    let outcomes: Vec<Outcome> =
        (1..=100).map(|seed| Simulation::new(seed, FaultLevel::Full).run()).collect();
    let of = |count: fn(&Outcome) -> u64| outcomes.iter().filter(|outcome| count(outcome) > 0).count();
    assert!(of(recovered) >= 3 && of(archived) >= 2, "{} and {}", of(recovered), of(archived));
    assert!(
        of(repeated_copies) >= 3 && of(trades_in_added_instruments) >= 1,
        "{} and {}",
        of(repeated_copies),
        of(trades_in_added_instruments)
    );
    assert!(outcomes.iter().any(|outcome| recovered(outcome) == 0 && archived(outcome) == 0), "not all");
}

//! Plants each fault in the system in turn. The simulator must find it within `SEEDS` seeds.
//!
//! `cargo test -p tickpath-simulator --features planted-faults --test it planted -- --nocapture` prints, for
//! each fault, the seed and the checker that found it.
#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tickpath_faults::{Fault, plant};
use tickpath_simulator::{FaultLevel, Simulation, check};

/// Number of seeds within which a fault must be found.
const SEEDS: u64 = 300;
/// A seed that finds the fault, for some faults. The test tries it first, which saves most of the search. If
/// a change of the system invalidates it, the search finds another.
const KNOWN_SEEDS: &[(Fault, u64)] = &[
    (Fault::ExpiryForgotten, 20),
    (Fault::ExpiryLate, 13),
    (Fault::DayOrderSurvives, 8),
    (Fault::BandIgnored, 14),
    (Fault::CrossAtLowest, 4),
    (Fault::TradeBrokenTwice, 5),
    (Fault::SuspensionKeepsOrders, 91),
    (Fault::NumbersKeptOverDay, 8),
    (Fault::KillKeepsOrders, 84),
    (Fault::CancelOnDisconnectForgotten, 20),
    (Fault::ArrivalsSortedBySession, 6),
    (Fault::DayWaitsForClients, 4),
    (Fault::NamesUnsynced, 7),
    (Fault::TornTailKept, 5),
    (Fault::ChecksumIgnored, 5),
    (Fault::LossUnnamed, 8),
    (Fault::RequestForgotten, 7),
    (Fault::LossUntold, 4),
    (Fault::AnswerAskedForAgain, 15),
    (Fault::AnswersWhileAwayForgotten, 5),
    (Fault::OrdersForgottenAtReconnect, 5),
    (Fault::UnansweredWaitForEver, 34),
    (Fault::NumbersFromOne, 20),
    (Fault::PreventionUnheard, 33),
    (Fault::BrokenTradeKept, 108),
    (Fault::ReplacedOrderStays, 59),
    (Fault::RiskNotReleased, 10),
    (Fault::OpenOrdersUnrisked, 15),
    (Fault::OrderCountUnlimited, 15),
    (Fault::RehearsedRequestSent, 4),
    (Fault::CostNotReleased, 4),
];

#[test]
fn every_planted_fault_is_found() {
    let mut not_found = Vec::new();
    let mut clean = BTreeMap::new();
    for fault in Fault::ALL {
        let known = KNOWN_SEEDS.iter().filter(|(known, _)| known == fault).map(|(_, seed)| *seed);
        let found = known.chain(1..=SEEDS).find_map(|seed| {
            let by = find(*fault, seed)?;
            // A seed that has violations without the fault does not count.
            let is_clean = *clean
                .entry(seed)
                .or_insert_with(|| Simulation::new(seed, FaultLevel::Full).run().violations.is_empty());
            is_clean.then_some((seed, by))
        });
        match found {
            Some((seed, by)) => println!("{:32} seed {seed:3}  {by}", format!("{fault:?}")),
            None => {
                println!("{:32} not found", format!("{fault:?}"));
                not_found.push(*fault);
            }
        }
    }
    assert!(not_found.is_empty(), "not found by {SEEDS} seeds: {not_found:?}");
}

/// Runs the seed with the fault; returns the first violation, or `an assertion` if the run panics.
fn find(fault: Fault, seed: u64) -> Option<String> {
    let planted = plant(fault);
    let outcome = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, FaultLevel::Full).run()));
    drop(planted);
    let Ok(outcome) = outcome else { return Some("an assertion".to_owned()) };
    let mut found = check(&outcome.observed);
    found.extend(outcome.violations.into_iter().filter(|violation| violation.check == "healing"));
    found.first().map(|violation| format!("{violation:.120}"))
}

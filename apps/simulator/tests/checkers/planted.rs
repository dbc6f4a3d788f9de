//! Plants faults in the engine. The checkers must find each of them in a synthetic run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tickpath_faults::{Fault, plant};
use tickpath_simulator::check;

use crate::checkers::model::observe;

/// Number of seeds within which a fault must be found.
const SEEDS: u64 = 20;

const ENGINE_FAULTS: [Fault; 25] = [
    Fault::PartialFillLosesPriority,
    Fault::ReductionLosesPriority,
    Fault::HiddenBeforeDisplayed,
    Fault::ReserveShowsAll,
    Fault::ReserveKeepsReference,
    Fault::PostOnlyTrades,
    Fault::IocRests,
    Fault::MinimumIgnored,
    Fault::SelfTradesAllowed,
    Fault::DecrementOneSided,
    Fault::CancelForgetsExecuted,
    Fault::TradeAtTakersPrice,
    Fault::ReplaceForgetsExecuted,
    Fault::MassCancelMissesOne,
    Fault::GttNeverExpires,
    Fault::DayOrderSurvives,
    Fault::NumberUsedTwice,
    Fault::CancelUnpublished,
    Fault::TradeUntold,
    Fault::MatchNumberReused,
    Fault::RemainderForgotten,
    Fault::HaltIgnored,
    Fault::QtyLimitIgnored,
    Fault::KillKeepsOrders,
    Fault::StateHashIgnoresHidden,
];

#[test]
fn every_engine_fault_is_found() {
    for fault in ENGINE_FAULTS {
        let found = (1..=SEEDS).find_map(|seed| Some((seed, find(fault, seed)?)));
        let (seed, by) = found.unwrap_or_else(|| panic!("{fault:?} was not found by {SEEDS} seeds"));
        println!("{fault:?}: seed {seed}, {by}");
    }
}

/// Runs the seed with the fault; returns the name of the first checker that finds it, or `an assertion` if
/// the run panics.
fn find(fault: Fault, seed: u64) -> Option<String> {
    let planted = plant(fault);
    let observed = catch_unwind(AssertUnwindSafe(|| observe(seed)));
    drop(planted);
    match observed {
        Ok(observed) => check(&observed).first().map(|violation| violation.check.to_owned()),
        Err(_) => Some("an assertion".to_owned()),
    }
}

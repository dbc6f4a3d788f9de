//! Runs short demonstrations without a display, one at a time.

use std::sync::{Mutex, PoisonError};

use tickpath_agent::StopSignal;
use tickpath_demo::{DemoSettings, Outcome, ReconciliationCheck, ViewMode};
use tickpath_types::Nanos;

/// Lets one market run at a time: on a small host each uses every core, so two would delay each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns settings of a market that is small enough for a busy host in the dev profile.
pub fn settings() -> DemoSettings {
    DemoSettings {
        rate: 2_000,
        duration: Some(Nanos::from_millis(800)),
        view: ViewMode::Silent,
        ..DemoSettings::load(None).unwrap()
    }
}

pub fn run(settings: &DemoSettings) -> anyhow::Result<Outcome> {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    tickpath_demo::run(settings, &StopSignal::new())
}

pub fn check<'a>(outcome: &'a Outcome, name: &str) -> &'a ReconciliationCheck {
    outcome.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no check {name}"))
}

/// Asserts that the named check tested at least one case and passed.
pub fn assert_holds(outcome: &Outcome, name: &str) {
    let check = check(outcome, name);
    assert!(check.ok == Some(true) && check.exercised > 0, "{check:?}");
}

/// Asserts that no check failed, even if some had nothing to test.
pub fn assert_no_check_fails(outcome: &Outcome) {
    assert!(outcome.holds(), "{:#?}", outcome.checks);
}

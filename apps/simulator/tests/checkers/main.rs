//! Tests of the checkers on synthetic runs: a clean run passes, and each corruption is found.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod corrupted;
mod model;
#[cfg(feature = "planted-faults")]
mod planted;

use tickpath_simulator::check;

#[test]
fn clean_runs_have_no_violations() {
    for seed in 1..=8 {
        let observed = model::observe(seed);
        let violations = check(&observed);
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
        assert!(observed.log.commands.len() > 500 && observed.published.len() > 500);
    }
}

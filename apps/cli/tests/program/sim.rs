//! Tests of `tickpath sim`: its options, repeated seeds and Ctrl-C.

use serde_json::Value;

use crate::support::{assert_refused, run, spawn};

#[test]
fn invalid_seeds_and_outputs_are_refused_at_once() {
    for (args, words) in [
        (["--seeds", "5..1"], &["--seeds", "the first seed is after the last"] as &[_]),
        (["--seed", "x"], &["--seed", "'x'"]),
        (["--minutes", "long"], &["--minutes", "long"]),
        (["--json", "/nonexistent/sim.json"], &["--json", "its folder cannot be used"]),
    ] {
        assert_refused(&[&["sim"], &args[..]].concat(), words);
    }
}

#[test]
fn a_seed_is_repeated_bit_for_bit() {
    let run_seed = || {
        let mut figures: Value =
            serde_json::from_str(&run(&["sim", "--seed", "7", "--json", "-"]).out).unwrap();
        assert!(figures["elapsed_s"].take().as_f64().unwrap() > 0.0);
        figures
    };
    let figures = run_seed();
    assert_eq!(figures, run_seed());
    assert_eq!(
        (figures["seeds"].as_u64(), figures["violations"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
    for kinds in [&figures["faults"], &figures["consequences"]] {
        let kinds: Vec<_> = kinds.as_object().unwrap().keys().collect();
        let is_plain = |kind: &&String| kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(!kinds.is_empty() && kinds.iter().all(is_plain), "{kinds:?}");
    }
}

#[test]
fn an_interrupted_run_reports_the_seeds_that_were_run() {
    let runs = spawn(&["sim", "--minutes", "60"]);
    runs.wait_for_interrupt_handler();
    runs.interrupt();
    let printed = runs.join();
    assert_eq!(printed.code, Some(130), "{}", printed.err);
    assert!(
        printed.out.starts_with("PASS: no violation\n") && printed.out.contains(" seeds in "),
        "{}",
        printed.out
    );
    assert!(printed.err.contains("interrupted"), "{}", printed.err);
}

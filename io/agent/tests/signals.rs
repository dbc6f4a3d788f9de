//! Signals end a process, so each test runs in a separate process.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::raise;
use tickpath_agent::StopSignal;
use tickpath_test_support::{this_test, wait_until};

/// Environment variable that marks the child process; only a child raises signals, against itself.
const CHILD: &str = "TICKPATH_SIGNALS_CHILD";

/// Runs one of the tests `one_signal` and `two_signals` in a child process; returns its exit status.
fn run_alone(test: &str) -> Option<i32> {
    let mut command = this_test(module_path!(), test);
    command.env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().unwrap();
    assert_eq!(status.signal(), None);
    status.code()
}

#[test]
fn the_first_signal_raises_the_flag() {
    assert_eq!(run_alone("one_signal"), Some(0));
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    assert_eq!(run_alone("two_signals"), Some(130));
}

#[test]
fn one_signal() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let stop = StopSignal::on_signals().unwrap();
    assert!(!stop.is_stopped());
    raise(SIGTERM).unwrap();
    assert!(stop.is_stopped());
}

#[test]
fn two_signals() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let stop = StopSignal::on_signals().unwrap();
    raise(SIGINT).unwrap();
    raise(SIGINT).unwrap();
    assert!(stop.is_stopped(), "the same key press, delivered twice");
    // The immediate exit is armed a moment later; every signal after that ends the process.
    wait_until("the end of the process", || raise(SIGINT).is_err());
}

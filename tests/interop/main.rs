//! Third-party clients of the venue: Nassau's SoupBinTCP and MoldUDP64, Juncture's ITCH parser and QuickFIX/J in Java, and
//! clients of Deribit in Python. See docs/interop.md.
//!
//! CI runs them in a separate step, because they need PyPI and Maven: the workspace's tests skip `third_party`.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod java;
mod python;
#[path = "../../apps/cli/tests/program/support.rs"]
#[allow(dead_code, reason = "the program's own tests use the rest of it")]
mod support;
mod third_party;

use std::process::Command;

/// Runs this test program again in an environment without Java and Python.
#[test]
fn without_java_and_python_missing_programs_are_reported() {
    let this = std::env::current_exe().unwrap();
    let output =
        Command::new(this).args(["--skip", "without_java"]).env("PATH", "/nowhere").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{err}");
    assert_eq!(err.lines().count(), 2, "{err}");
    for word in ["tests/interop is skipped", "'javac'", "JDK of version 17", "Maven", "'python3'"] {
        assert!(err.contains(word), "no '{word}' in {err}");
    }
}

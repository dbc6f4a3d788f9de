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

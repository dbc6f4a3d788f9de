//! The feed handler on real multicast lines, with losses on A, on B and on both, in simulated time.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod channel;
mod damage;
mod losses;

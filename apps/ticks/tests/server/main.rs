//! Scenarios of the ticks server: real connections on loopback, a separate server for each test.
#![allow(clippy::unwrap_used)]

mod faults;
mod harness;
mod hostile;
mod slow;
mod stream;

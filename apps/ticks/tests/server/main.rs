//! Tests of the ticks server over loopback connections. Each test has its own server.
#![allow(clippy::unwrap_used)]

mod faults;
mod harness;
mod hostile;
mod slow;
mod stream;

//! Stories of the ticks server: real connections on loopback, each test with a server of its own.
#![allow(clippy::unwrap_used)]

mod faults;
mod harness;
mod hostile;
mod slow;
mod stream;

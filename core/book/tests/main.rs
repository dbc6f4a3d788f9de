//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod by_id;
mod conformance;
mod groups;
mod prices;
mod reference;

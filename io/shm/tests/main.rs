//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod c_reader;
mod channels;
mod events;
mod segments;

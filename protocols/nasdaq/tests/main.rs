//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod golden;
mod itch_checksum;
mod order_entry;
#[path = "properties.rs"]
mod properties;
#[path = "recorded/main.rs"]
mod recorded;
mod sessions;

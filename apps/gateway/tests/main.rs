//! Integration tests of the crate, built as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "faults/main.rs"]
mod faults;
#[path = "core/main.rs"]
mod machine;
#[path = "../../deribit-front/tests/running/mod.rs"]
mod running;
#[path = "story/main.rs"]
mod story;
#[path = "story/support.rs"]
mod support;

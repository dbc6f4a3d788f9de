//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "front.rs"]
mod front;
#[path = "native/main.rs"]
mod native;
#[path = "shell/main.rs"]
mod shell;

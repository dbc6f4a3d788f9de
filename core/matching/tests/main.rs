//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/auditor.rs"]
mod auditor;
mod bounds;
mod common;
#[path = "common/nasty.rs"]
mod nasty;
mod phases;
mod plain;
mod recovery;
mod special_stories;
mod stories;
#[path = "common/story.rs"]
mod story;
mod twins;

//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/auditor.rs"]
mod auditor;
mod both_books;
mod bounds;
#[path = "common/command_generator.rs"]
mod command_generator;
mod common;
mod phases;
mod recovery;
mod reference_engine;
#[path = "common/scenario.rs"]
mod scenario;
mod scenarios;
mod special_scenarios;

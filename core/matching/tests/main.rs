//! The integration tests of the crate, as one program.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/auditor.rs"]
mod auditor;
mod bounds;
mod common;
#[path = "common/command_generator.rs"]
mod command_generator;
mod phases;
mod reference_engine;
mod recovery;
mod special_scenarios;
mod scenarios;
#[path = "common/scenario.rs"]
mod scenario;
mod both_books;

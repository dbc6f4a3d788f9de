//! A venue that is killed again and again.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::command::Command;
use crate::options;
use crate::say::say;

/// Kills when nothing else is said.
const KILLS: u64 = 100;

/// Runs the kill test with `options`; true when nothing was lost or doubled.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let [kills, seed] = options::numbers(options, [("--kills", KILLS), ("--seed", 1)])?;
    ensure!(kills > 0, "--kills must be at least 1");
    let command = Command::new("cargo test --release -p tickpath --test kill -- --nocapture")
        .env("KILL_TEST_KILLS", kills.to_string())
        .env("KILL_TEST_SEED", seed.to_string());
    say(&command);
    Ok(command.run(root)?.success())
}

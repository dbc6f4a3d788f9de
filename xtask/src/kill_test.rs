//! A venue that is killed again and again.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::Command;

/// Kills when nothing else is said.
const KILLS: u64 = 100;

/// Runs the kill test with `options`; true when nothing was lost or doubled.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let (mut kills, mut seed) = (KILLS, 1);
    for option in options.chunks(2) {
        match option {
            ["--kills", number] => kills = number.parse()?,
            ["--seed", number] => seed = number.parse()?,
            other => bail!("'{}': --kills N and --seed S are what there is", other.join(" ")),
        }
    }
    let command = Command::new("cargo test --release -p tickpath --test kill -- --nocapture")
        .env("KILL_TEST_KILLS", kills.to_string())
        .env("KILL_TEST_SEED", seed.to_string());
    println!("{command}");
    Ok(command.run(root)?.success())
}

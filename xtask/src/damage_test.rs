//! Damages the journals of a venue, one file at a time.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::command::Command;
use crate::interrupt::Interrupt;
use crate::options;
use crate::print_stdout::print_stdout;

/// Default number of damaged files.
const TRIALS: u64 = 2_000;

/// Runs the damage campaign with `options`; true if there was no silent loss and no reused sequence number.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let [trials, seed] = options::numbers(options, [("--trials", TRIALS), ("--seed", 1)])?;
    ensure!(trials > 0, "--trials must be at least 1");
    let interrupt = Interrupt::on_signals()?;
    let command = Command::new("cargo test -p tickpath-exchange --test venue damage:: -- --nocapture")
        .env("DAMAGE_TEST_TRIALS", trials.to_string())
        .env("DAMAGE_TEST_SEED", seed.to_string());
    print_stdout(&command);
    let status = command.run(root)?;
    interrupt.check("the remaining trials have no result")?;
    Ok(status.success())
}

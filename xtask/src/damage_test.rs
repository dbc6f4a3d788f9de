//! Damages the journals of a venue, one file at a time.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::command::Command;
use crate::interrupt::Interrupt;
use crate::options;
use crate::print_stdout::print_stdout;

/// Default number of damaged files.
const TRIALS: u64 = 2_000;

/// Runs the damage campaign with `options`; true when no loss went undetected and no number was used twice.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let [trials, seed] = options::numbers(options, [("--trials", TRIALS), ("--seed", 1)])?;
    ensure!(trials > 0, "--trials must be at least 1");
    let interrupt = Interrupt::on_signals()?;
    let command = Command::new("cargo test -p tickpath-exchange --test venue damage:: -- --nocapture")
        .env("DAMAGE_TEST_TRIALS", trials.to_string())
        .env("DAMAGE_TEST_SEED", seed.to_string());
    print_stdout(&command);
    let status = command.run(root)?;
    interrupt.check("nothing is known of the files that were to be damaged")?;
    Ok(status.success())
}

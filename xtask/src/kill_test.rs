//! A venue that is killed again and again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::interrupt::Interrupt;
use crate::options;
use crate::say::say;

/// Kills when nothing else is said.
const KILLS: u64 = 100;
/// How often it is looked whether the test has ended or is to be ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// What Ctrl-C means.
const MEANING: &str = "what is said above is of the kills until then";

/// Runs the kill test with `options`; true when nothing was lost or doubled.
pub fn run(root: &Path, options: &[&str]) -> Result<bool> {
    let [kills, seed] = options::numbers(options, [("--kills", KILLS), ("--seed", 1)])?;
    ensure!(kills > 0, "--kills must be at least 1");
    let interrupt = Interrupt::on_signals()?;
    let build = Command::new("cargo test --release -p tickpath --test kill --no-run");
    let is_built = build.run(root)?.success();
    interrupt.check("nothing was killed")?;
    ensure!(is_built, "the test does not build");
    let command = Command::new("cargo test --release -p tickpath --test kill -- --nocapture")
        .env("KILL_TEST_KILLS", kills.to_string())
        .env("KILL_TEST_SEED", seed.to_string());
    say(&command);
    let status = watch(&command.env("KILL_TEST_ENDS_WITH_INPUT", "1"), root, &interrupt)?;
    if status.success() {
        interrupt.check(MEANING)?;
    }
    Ok(status.success())
}

/// Runs the test to its end, or until it is interrupted: then its input ends, and with that, after the life of a venue, it
/// does. It is in a process group of its own, so that Ctrl-C reaches nobody but this program; and what it prints is printed
/// here, so that it does not fail where nobody reads it.
fn watch(command: &Command, root: &Path, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut test = command.spawn_apart(root)?;
    let printed = test.stdout.take().context("the pipe was asked for")?;
    let printing = thread::spawn(move || BufReader::new(printed).lines().map_while(Result::ok).for_each(say));
    let status = wait(&mut test, interrupt)?;
    // It has printed everything.
    let _ = printing.join();
    Ok(status)
}

fn wait(test: &mut Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut input = test.stdin.take();
    loop {
        if let Some(status) = test.try_wait()? {
            return Ok(status);
        }
        if interrupt.is_raised() {
            drop(input.take());
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_interrupted_ends_by_itself() {
        // `cat` ends with its input.
        let waits = Command::new("cat");
        let status = watch(&waits, Path::new("."), &Interrupt::raised()).unwrap();
        assert!(status.success());
        let fails = Command::new("false");
        assert!(!watch(&fails, Path::new("."), &Interrupt::default()).unwrap().success());
    }
}

//! Kills a venue repeatedly.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::command::Command;
use crate::interrupt::Interrupt;
use crate::options;
use crate::print_stdout::print_stdout;

/// Default number of kills.
const KILLS: u64 = 100;
/// Interval of the checks for the end of the test or an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Description of the results after Ctrl-C.
const MEANING: &str = "the figures above cover the kills before the interrupt";

/// Runs the kill test with `options`; true when nothing was lost or duplicated.
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
    print_stdout(&command);
    let status = watch(&command.env("KILL_TEST_ENDS_WITH_INPUT", "1"), root, &interrupt)?;
    if status.success() {
        interrupt.check(MEANING)?;
    }
    Ok(status.success())
}

/// Runs the test to its end. An interrupt closes the test's input, which ends the test after the current
/// venue instance. The test runs in a separate process group, so that Ctrl-C reaches only this program. This
/// program prints the test's output, so that a closed pipe does not fail the test.
fn watch(command: &Command, root: &Path, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut test = command.spawn_apart(root)?;
    let printed = test.stdout.take().context("the pipe was requested")?;
    let printer =
        thread::spawn(move || BufReader::new(printed).lines().map_while(Result::ok).for_each(print_stdout));
    let status = wait(&mut test, interrupt)?;
    // The process has printed everything.
    let _ = printer.join();
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
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_test_ends() {
        // `cat` ends when its input is closed.
        let waits = Command::new("cat");
        let status = watch(&waits, Path::new("."), &Interrupt::raised()).unwrap();
        assert!(status.success());
        let fails = Command::new("false");
        assert!(!watch(&fails, Path::new("."), &Interrupt::default()).unwrap().success());
    }
}

//! The project's development tasks as one program: `cargo xtask ci` runs all steps of CI.

mod ci;
mod command;
mod crate_graph;
mod damage_test;
mod figures;
mod flood_test;
mod fuzz;
mod interrupt;
mod kill_test;
mod layouts;
mod options;
mod print_stdout;
mod soak;
mod tidy;

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::ci::Choice;
use crate::interrupt::{EXIT_INTERRUPTED, Interrupted};
use crate::print_stdout::print_stdout;

const HELP: &str = "\
cargo xtask ci [--only STEP,...]   run every step that CI runs, or the named ones, and stop at the first failure
cargo xtask ci --times             the same, with the CPU time of each command
cargo xtask ci --long              the same, and every fuzz target for a minute
cargo xtask ci --list              list the steps and describe the check of each one
cargo xtask tidy                   check what the compiler does not: layers, file sizes, leftovers (seconds)
cargo xtask figures                generate docs/performance.md and README's figures from results/
cargo xtask layouts                generate the tables of docs/protocols/layouts.md from the code
cargo xtask crates                 generate docs/crates.md, the graph of the crates, from their manifests
cargo xtask kill-test [--kills N] [--seed S]
                                   kill a venue under load N times (100), and check for lost or duplicated state
cargo xtask damage-test [--trials N] [--seed S]
                                   damage one file of a venue's journal N times (2000): each start must recover all
                                   that a client was sent, or fail
cargo xtask flood-test [--connections N] [--seconds S]
                                   hold N silent connections (2000) from one address for S seconds (60) at each endpoint
                                   of a venue; logins from another one must succeed, 99 of 100 within 100 ms
cargo xtask soak [--minutes N] [--rate N]
                                   run a whole market for N minutes (60) at N new orders a second (50000): its memory
                                   must stay constant, and every gap of market data must be filled
cargo xtask help                   this text";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If standard error cannot be written to, the exit code shows the failure.
            let _ = writeln!(stderr(), "xtask: {error:#}");
            ExitCode::from(if error.is::<Interrupted>() { EXIT_INTERRUPTED } else { 2 })
        }
    }
}

/// Returns whether all requested tasks passed.
fn run(args: &[String]) -> Result<bool> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h")) {
        print_stdout(HELP);
        return Ok(true);
    }
    match args.as_slice() {
        ["ci"] => ci::run(root(), Choice::Usual, false),
        ["ci", "--times"] => ci::run(root(), Choice::Usual, true),
        ["ci", "--long"] => ci::run(root(), Choice::Long, false),
        ["ci", "--list"] => {
            ci::list(root());
            Ok(true)
        }
        ["ci", "--only", names] => ci::run(root(), Choice::Only(names), true),
        ["tidy"] => tidy::run(root()),
        ["figures"] => figures::run(root()),
        ["layouts"] => layouts::run(root()),
        ["crates"] => crate_graph::run(root()),
        ["kill-test", options @ ..] => kill_test::run(root(), options),
        ["damage-test", options @ ..] => damage_test::run(root(), options),
        ["flood-test", options @ ..] => flood_test::run(root(), options),
        ["soak", options @ ..] => soak::run(root(), options),
        [] | ["help"] => {
            print_stdout(HELP);
            Ok(true)
        }
        other => bail!("'{}' is not a task: give one of these:\n{HELP}", other.join(" ")),
    }
}

/// The workspace's folder.
fn root() -> &'static Path {
    let own: &Path = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask is a folder of the workspace")
}

/// The build folder: `CARGO_TARGET_DIR` or `target`.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

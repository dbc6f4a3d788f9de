//! Runs the commands of README.md in the page's order, with smaller files and shorter demonstrations.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use tickpath_test_support::Running;

use crate::support::repository;
use crate::tutorials::{bash, copy_configs, moved, stop};

/// Test of one README command. The first string is the command that runs, often with less work; the second
/// is a text that it must print.
enum Run {
    /// The command prints the text and exits with code 0.
    Ends(&'static str, &'static str),
    /// The command prints a line with the text, and exits with code 0 on the Ctrl-C that the test sends.
    RunsOn(&'static str, &'static str),
    /// As `RunsOn`, but the test sends Ctrl-C only after it has run all following commands.
    RunsBeside(&'static str, &'static str),
    /// The test does not run the command, which builds the program or runs all tests.
    InTests,
}

const COMMANDS: [(&str, Run); 13] = {
    use Run::{Ends, InTests, RunsBeside, RunsOn};
    [
        ("cargo run --release -- demo", Ends("tickpath demo --seconds 1 --plain", "PASS: ")),
        ("tickpath demo --seconds 10", Ends("tickpath demo --seconds 1", "PASS: ")),
        ("tickpath demo --forever", RunsOn("tickpath demo --forever", "join: orders")),
        (
            "tickpath exchange --config configs/exchange.toml --flow",
            RunsBeside("tickpath exchange --config configs/exchange.toml --flow", "is open"),
        ),
        (
            "tickpath trader --config configs/trader.toml",
            RunsOn("tickpath trader --config configs/trader.toml", "random trades 8 instruments"),
        ),
        (
            "cargo run --release -p tickpath-trader --example own-strategy",
            RunsOn("own-strategy", "imbalance trades 8 instruments"),
        ),
        (
            "tickpath shell --config configs/shell-native.toml",
            Ends("echo ticker ALPHA | tickpath shell --config configs/shell-native.toml", "best bid"),
        ),
        (
            "tickpath generate itch --messages 1000000 -o day.itch",
            Ends("tickpath generate itch --messages 20000 -o day.itch", ""),
        ),
        ("tickpath replay FILE --check", Ends("tickpath replay day.itch --check", "PASS: ")),
        (
            "tickpath lab bench --quick --filter stamp",
            Ends("tickpath lab bench --quick --rounds 1 --filter stamp", "PASS: "),
        ),
        (
            "tickpath config class --students 30",
            Ends("tickpath config class --students 30", "a venue with 30 students"),
        ),
        ("cargo xtask ci", InTests),
        ("cargo build --release --features full", InTests),
    ]
};

/// Returns the `tickpath` and `cargo` commands in the code spans and code blocks of a Markdown page.
fn commands(page: &str) -> BTreeSet<String> {
    let (mut texts, mut prose, mut is_block) = (Vec::new(), String::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            texts.push(line.to_owned());
        } else {
            prose = prose + line + "\n";
        }
    }
    // A code span may cross the end of a line.
    texts.extend(prose.split('`').skip(1).step_by(2).map(str::to_owned));
    let texts = texts.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    texts.filter(|text| text.starts_with("tickpath ") || text.starts_with("cargo ")).collect()
}

/// Builds the `own-strategy` example, unless its program exists.
fn build_own_strategy(programs: &Path) {
    if !programs.join("examples/own-strategy").exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-p", "tickpath-trader", "--example", "own-strategy"]);
        assert!(build.current_dir(repository()).status().unwrap().success());
    }
}

#[test]
fn every_command_of_readme_runs() {
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let tested: BTreeSet<String> = COMMANDS.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(commands(&page), tested);
    build_own_strategy(Path::new(env!("CARGO_BIN_EXE_tickpath")).parent().unwrap());

    let folder = tempfile::tempdir().unwrap();
    let addresses = copy_configs(folder.path());
    let start = |command: &str, text: &str| {
        let mut running = Running::spawn(bash(folder.path(), &moved(command, &addresses)));
        running.wait_for_line(text, |line| line.contains(text).then_some(()));
        running
    };
    let mut beside: Vec<Running> = Vec::new();
    for (_, run) in COMMANDS {
        match run {
            Run::Ends(command, text) => {
                let output = bash(folder.path(), &moved(command, &addresses)).output().unwrap();
                let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                assert!(output.status.success() && printed.contains(text), "{command}: {printed}");
            }
            Run::RunsOn(command, text) => stop(start(command, text)),
            Run::RunsBeside(command, text) => beside.push(start(command, text)),
            Run::InTests => {}
        }
    }
    beside.into_iter().for_each(stop);
}

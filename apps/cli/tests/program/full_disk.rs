//! Standard output on a full disk: one line on standard error and no success; what is done beside it is done.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Site, interrupt, repository};

/// The program, whose standard output takes nothing.
fn tickpath() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    command
}

fn assert_told(args: &[&str]) {
    let output = tickpath().args(args).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), err.lines().count()), (Some(1), 1), "{args:?}: {err}");
    assert!(err.contains("cannot write to standard output: No space left"), "{args:?}: {err}");
}

#[test]
fn every_command_says_in_one_line_that_it_cannot_print() {
    let instruments = repository().join("configs/instruments.toml");
    let instruments = instruments.to_str().unwrap();
    assert_told(&["--help"]);
    assert_told(&["--version"]);
    assert_told(&["config", "check", instruments]);
    assert_told(&["config", "show", instruments]);
    assert_told(&["lab", "bench", "--list"]);
    assert_told(&["demo", "--plain", "--seconds", "1", "--rate", "1000"]);
    assert_told(&["demo", "--json", "-", "--seconds", "1", "--rate", "1000"]);
}

#[test]
fn what_goes_to_a_file_is_written_all_the_same() {
    let site = Site::new();
    let (day, json) = (site.path("day.itch"), site.path("day.json"));
    let size = ["--messages", "20000", "--symbols", "10", "--live", "200"];
    assert_told(&[&["generate", "itch", "-o", &day, "--json", &json], &size[..]].concat());
    assert_eq!(json_of(&json)["bytes"], std::fs::metadata(&day).unwrap().len());
    assert_told(&["replay", &day, "--json", &json]);
    assert_eq!(json_of(&json)["messages"], 20_000);
}

fn json_of(path: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_venue_stays_open_until_it_is_stopped() {
    let site = Site::new();
    let mut venue = tickpath().args(["exchange", "--config", &site.path("exchange.toml")]).spawn().unwrap();
    let mut err = BufReader::new(venue.stderr.take().unwrap()).lines();
    let mut told = || err.by_ref().map(Result::unwrap).find(|line| line.contains("standard output")).unwrap();
    assert!(told().starts_with("warning: cannot write to standard output: No space left"));
    assert_eq!(venue.try_wait().unwrap(), None, "it is open");
    interrupt(&venue);
    assert!(told().starts_with("tickpath: cannot write to standard output"));
    assert_eq!(venue.wait().unwrap().code(), Some(1));
}

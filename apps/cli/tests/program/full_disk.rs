//! Tests with full disks. If standard output is full, the program does its work, prints one error line and
//! fails. If standard error is full, only the messages are lost.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tickpath_test_support::{Running, Signal};

use crate::support::{Site, repository};

/// Returns a `tickpath` command whose standard output accepts no data.
fn tickpath() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    command
}

fn assert_error_line(args: &[&str]) {
    let output = tickpath().args(args).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), err.lines().count()), (Some(1), 1), "{args:?}: {err}");
    assert!(err.contains("cannot write to standard output: No space left"), "{args:?}: {err}");
}

#[test]
fn every_command_has_one_error_line_for_a_full_output() {
    let instruments = repository().join("configs/instruments.toml");
    let instruments = instruments.to_str().unwrap();
    assert_error_line(&["--help"]);
    assert_error_line(&["--version"]);
    assert_error_line(&["config", "check", instruments]);
    assert_error_line(&["config", "show", instruments]);
    assert_error_line(&["lab", "bench", "--list"]);
    assert_error_line(&["demo", "--plain", "--seconds", "1", "--rate", "1000"]);
    assert_error_line(&["demo", "--json", "-", "--seconds", "1", "--rate", "1000"]);
}

#[test]
fn files_are_written_although_the_output_is_full() {
    let site = Site::new();
    let (day, json) = (site.path("day.itch"), site.path("day.json"));
    let size = ["--messages", "20000", "--symbols", "10", "--live", "200"];
    assert_error_line(&[&["generate", "itch", "-o", &day, "--json", &json], &size[..]].concat());
    assert_eq!(json_of(&json)["bytes"], std::fs::metadata(&day).unwrap().len());
    assert_error_line(&["replay", &day, "--json", &json]);
    assert_eq!(json_of(&json)["messages"], 20_000);
}

/// Returns a `tickpath` command whose standard error accepts no data.
fn command_with_full_output() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.env_remove("RUST_BACKTRACE").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(full);
    command
}

#[test]
fn an_error_that_cannot_be_printed_is_in_the_exit_code() {
    assert_eq!(command_with_full_output().arg("nonsense").status().unwrap().code(), Some(2));
    assert_eq!(
        command_with_full_output().args(["config", "check", "nowhere"]).status().unwrap().code(),
        Some(1)
    );
}

#[test]
fn unprintable_progress_loses_no_result() {
    let output = command_with_full_output()
        .args(["lab", "bench", "--quick", "--rounds", "1", "--filter", "stamp"])
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && out.contains("\nstamp "), "{:?}: {out}", output.status);
}

#[test]
fn an_unprintable_summary_or_warning_loses_no_data() {
    let site = Site::new();
    let day = site.path("day.itch");
    let size = ["--messages", "20000", "--symbols", "10", "--live", "200"];
    assert!(
        command_with_full_output()
            .args(["generate", "itch", "-o", &day])
            .args(size)
            .status()
            .unwrap()
            .success()
    );
    let output =
        command_with_full_output().args(["generate", "itch", "-o", "-"]).args(size).output().unwrap();
    assert!(output.status.success() && output.stdout == std::fs::read(&day).unwrap());
    let output = command_with_full_output()
        .args(["replay", &day, "--json", "-", "--symbols", "NOWHERE"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["messages"]), (Some(1), &20_000.into()));
}

#[test]
fn a_venue_that_cannot_print_warnings_opens() {
    let site = Site::new();
    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    site.write("exchange.toml", &format!("{config}\n[journal]\npolicy = 'off'\n"));
    let mut venue = command_with_full_output()
        .args(["exchange", "--config", &site.path("exchange.toml")])
        .spawn()
        .unwrap();
    let mut out = BufReader::new(venue.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.contains("is open")));
    Signal::Interrupt.send_to(&venue);
    assert!(out.any(|line| line.contains("logins")));
    assert_eq!(venue.wait().unwrap().code(), Some(0));
}

#[test]
fn a_trader_that_cannot_print_warnings_watches_its_orders() {
    let site = Site::new();
    let (venue, order_entry, retransmission) = site.start_venue();
    let config = site.trader("TEST01", 1, &order_entry, &retransmission);
    let settings = std::fs::read_to_string(&config).unwrap();
    site.write("TEST01.toml", &format!("disconnect_stop = '2s'\n{settings}"));
    let mut trader = command_with_full_output().args(["trader", "--config", &config]).spawn().unwrap();
    let mut out = BufReader::new(trader.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(out.any(|line| line.starts_with("logged in")));
    // Kill the venue, so that the trader tries to print a warning.
    drop::<Running>(venue);
    let rest: Vec<String> = out.collect();
    let code = trader.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 1)), "{code:?}: {rest:?}");
    assert!(
        rest.iter().any(|line| line.starts_with("stopped: the connection to the venue was lost")),
        "{rest:?}"
    );
}

fn json_of(path: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_venue_stays_open_until_it_is_stopped() {
    let site = Site::new();
    let mut venue = tickpath().args(["exchange", "--config", &site.path("exchange.toml")]).spawn().unwrap();
    let mut err = BufReader::new(venue.stderr.take().unwrap()).lines();
    let mut next_error_line =
        || err.by_ref().map(Result::unwrap).find(|line| line.contains("standard output")).unwrap();
    assert!(next_error_line().starts_with("warning: cannot write to standard output: No space left"));
    assert_eq!(venue.try_wait().unwrap(), None, "it is open");
    Signal::Interrupt.send_to(&venue);
    assert!(next_error_line().starts_with("tickpath: cannot write to standard output"));
    assert_eq!(venue.wait().unwrap().code(), Some(1));
}

//! Tests of `tickpath lab`: the names of the rows, errors, Ctrl-C and the counted work.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::{Site, assert_refused, repository, run, spawn, tickpath};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_row_is_named_by_help_and_by_the_list() {
    let list = run(&["lab", "bench", "--list"]).out;
    let help = run(&["lab", "bench", "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(list.lines().count() >= 20, "{list}");
    for row in list.lines() {
        assert!(help.contains(&format!(" {row}")), "{row} is not in {help}");
    }
}

#[test]
fn the_documents_describe_rows_in_their_order() {
    let page = fs::read_to_string(repository().join("docs/lab.md")).unwrap();
    // A section that builds the program with the feature `peers` describes rows of that build only.
    let has_peers = cfg!(feature = "peers");
    let sections = page.split("\n## ").filter(|section| has_peers || !section.contains("--features peers"));
    let described = sections
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("| `")?.split('|').next())
        .flat_map(|names| names.split('`').step_by(2));
    let list = run(&["lab", "bench", "--list"]).out;
    let mut rows = list.lines();
    for name in described {
        assert!(rows.any(|row| row == name), "{name} is no row, or the list has it before the one above it");
    }
}

#[test]
fn an_unknown_row_is_refused_with_those_near_it() {
    assert_refused(&["lab", "bench", "--filter", "stamp,wat"], &["'wat'", "--list"]);
    assert_refused(
        &["lab", "bench", "--filter", "hot_alocations"],
        &["near it are hot_allocations", "--list"],
    );
    assert_refused(&["lab", "bench", "--rounds", "0"], &["--rounds must be at least 1"]);
    assert_refused(&["lab", "bench", "--rounds", "many"], &["'many'", "--rounds", "lab bench --help"]);
    assert_refused(&["lab", "counted"], &["lab bench"]);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let site = Site::new();
    let missing = site.path("no/report.json");
    for command in [&["lab", "bench"][..], &["demo"]] {
        assert_refused(&[command, &["--json", &missing]].concat(), &["--json", &missing, "its folder"]);
        assert_refused(&[command, &["--json", &site.path("")]].concat(), &["--json", "is a directory"]);
    }
}

#[test]
fn rows_without_recordings_or_valgrind_have_the_reason() {
    let filter = "dbn_recorded,lobster_recorded,book_instructions";
    let output = tickpath()
        .args(["lab", "bench", "--quick", "--rounds", "1", "--json", "-", "--filter", filter])
        .env("TICKPATH_DATA", "/nowhere")
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["effort"], "quick");
    for row in json["rows"].as_array().unwrap() {
        let (name, note) = (row["name"].as_str().unwrap(), row["note"].as_str().unwrap());
        assert!(row["value"].is_null(), "{row}");
        let remedy =
            if name.ends_with("_instructions") { "apt-get install valgrind" } else { "TICKPATH_DATA" };
        assert!(note.contains("not measured") && note.contains(remedy), "{row}");
    }
}

#[test]
fn an_interrupted_run_ends_with_a_notice() {
    let lab = spawn(&["lab", "bench", "--quick", "--rounds", "100000", "--filter", "stamp"]);
    lab.wait_for_interrupt_handler();
    // Interrupt in the middle of a round, if possible.
    thread::sleep(Duration::from_millis(200));
    lab.interrupt();
    let printed = lab.join();
    assert_eq!((printed.code, printed.out.as_str()), (Some(130), ""), "{}", printed.err);
    assert_eq!(printed.err.lines().last(), Some("tickpath: interrupted"));
}

/// The work that callgrind counts for `bench` reads a day, and prints the same books for both book types.
#[test]
fn the_counted_work_takes_a_day_from_standard_input() {
    let site = Site::new();
    let day = site.path("day.itch");
    let made = run(&[
        "generate",
        "itch",
        "--messages",
        "4000",
        "--symbols",
        "2",
        "--live",
        "200",
        "--seed",
        "5",
        "-o",
        &day,
    ]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let ends = ["fast", "plain"].map(|books| {
        let output = tickpath()
            .args(["lab", "counted", books, "4000", "2", "200"])
            .write_stdin(fs::read(&day).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    });
    assert!(ends[0].starts_with("4000 messages, ") && ends[0] == ends[1], "{ends:?}");
}

#[test]
fn two_builds_are_measured_in_turns() {
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_tickpath")).parent().unwrap();
    let programs = programs.to_str().unwrap();
    let compare = |second: &str, options: &[&str]| {
        run(&[&["lab", "compare", programs, second, "--quick", "--rounds", "2"], options].concat())
    };
    let printed = compare(programs, &["--filter", "tsc_read", "--json", "-"]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let json: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    let row = &json["rows"][0];
    let count = |list: &str| row[list].as_array().unwrap().len();
    assert_eq!((row["name"].as_str(), count("first"), count("second")), (Some("tsc_read"), 2, 2));
    assert!(row["ratio"].as_f64().unwrap() > 0.0 && row["noise"].as_f64().unwrap() >= 0.0, "{row}");
    assert_eq!(json["only_in"], serde_json::json!([[], []]));
    let turns: Vec<&str> = printed.err.lines().filter_map(|line| line.split(": the ").nth(1)).collect();
    let (first, second) = ("first build", "second build");
    assert_eq!(turns, [first, second, first, first, first, second]);

    let site = Site::new();
    assert_refused(&["lab", "compare", programs, &site.path("")], &["tickpath-lab", "--features full"]);
    assert_refused(&["lab", "compare", programs, programs, "--filter", "wat"], &["wat", "--list"]);
}

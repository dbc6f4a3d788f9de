//! Tests of `tickpath replay --publish`, run as a process.

use tickpath_net::free_multicast_group;

use crate::support::{assert_refused, repository, run, spawn};

fn recording() -> String {
    let path = repository().join("protocols/iex/tests/data/deep10_20170425_restart.pcap.gz");
    path.to_str().unwrap().to_owned()
}

fn lines() -> String {
    format!("{},{}", free_multicast_group().unwrap(), free_multicast_group().unwrap())
}

#[test]
fn a_whole_capture_is_published_with_its_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("feed.toml");
    let (file, lines) = (recording(), lines());
    let mut args = vec!["replay", &file, "--publish", &lines, "--serve-recovery", "127.0.0.1"];
    args.extend(["--speed", "max", "--drop-a", "10%", "--start-after", "1ms", "--linger", "1ms"]);
    args.extend(["--feed-config", config.to_str().unwrap(), "--json", "-"]);
    let printed = run(&args);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let json: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    let channel = &json["channels"][0];
    assert_eq!((&json["whole"], &channel["messages"]), (&true.into(), &861.into()));
    assert!(channel["lines"][0]["dropped"].as_u64().unwrap() > 0 && channel["lines"][1]["dropped"] == 0);
    let written = std::fs::read_to_string(config).unwrap();
    for key in ["protocol = \"iex-deep\"", "line_a", "line_b", "gap_fill", "snap"] {
        assert!(written.contains(key) && printed.err.contains(key), "{written}");
    }
}

#[test]
fn an_interrupted_publication_reports_what_was_published() {
    let (file, lines) = (recording(), lines());
    let mut running = spawn(&["replay", &file, "--publish", &lines, "--linger", "1h"]);
    running.wait_for_line("configuration", |line| line.contains("[[channel]]").then_some(()));
    running.interrupt();
    let printed = running.join();
    assert_eq!(printed.code, Some(130), "{}", printed.err);
    assert!(printed.out.contains("published from") && printed.err.contains("interrupted"), "{}", printed.out);
}

#[test]
fn an_unusable_capture_is_one_error_line() {
    let (file, group) = (recording(), free_multicast_group().unwrap().to_string());
    let three = format!("{group},{group},{group}");
    let twice = format!("{group},{group}");
    assert_refused(&["replay", &file, "--publish", &three], &["one line or two"]);
    assert_refused(&["replay", &file, "--publish", &twice], &["are the same"]);
    assert_refused(&["replay", &file, "--publish", "127.0.0.1:9"], &["127.0.0.1:9"]);
    assert_refused(&["replay", &file, "--publish", &group, "--drop-b", "1%"], &["--drop-b"]);
    assert_refused(&["replay", &file, "--publish", &group, "--check"], &["--check"]);
    assert_refused(
        &["replay", &file, "--publish", &group, "--serve-recovery", "here"],
        &["'here' is not an address"],
    );
    assert_refused(&["replay", &file, &file, "--publish", &group], &["name one file"]);
    assert_refused(&["replay", &file, "--seed", "3"], &["--publish"]);
}

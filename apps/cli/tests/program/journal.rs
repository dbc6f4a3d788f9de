//! Tests of `tickpath journal`, and of a restarted venue.

use std::io::{BufRead, Read};
use std::time::Duration;

use serde_json::Value;
use tickpath_journal::{Folder, JournalConfig, Opened, Policy, SessionName, open};
use tickpath_matching::{COMMAND_LEN_MAX, CommandKind};
use tickpath_test_support::Signal;
use tickpath_types::{Nanos, Sequence, SessionId, SystemEventCode};

use crate::support::{Site, assert_refused, end_of, run, spawn, spawn_unread};

/// Starts and stops a venue; returns the name of its session.
fn run_and_get_session(site: &Site, options: &[&str]) -> String {
    let config = site.path("exchange.toml");
    let mut venue = spawn(&[&["exchange", "--config", &config], options].concat());
    let name = venue.wait_for_line("the venue's name", |line| {
        Some(line.strip_prefix("venue '")?.split('\'').next()?.to_owned())
    });
    venue.wait_for_line("retransmission", |line| {
        line.trim_start().starts_with("retransmission").then_some(())
    });
    venue.interrupt();
    let printed = venue.join();
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    name
}

#[test]
fn a_venue_continues_its_session_until_a_new_one_is_requested() {
    let site = Site::new();
    let first = run_and_get_session(&site, &[]);
    assert_eq!(run_and_get_session(&site, &[]), first);
    let second = run_and_get_session(&site, &["--new-session"]);
    assert_ne!(second, first);
    assert_eq!(run_and_get_session(&site, &[]), second);
    // The journal of the first session is kept, and is complete.
    let kept = format!("{}/{first}", site.path("journal"));
    let printed = run(&["journal", "verify", &kept]);
    assert!(printed.code == Some(0) && printed.out.contains(&first), "{}", printed.err);
    assert!(std::path::Path::new(&kept).join("generation").exists());

    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    let named = site.write("named.toml", &format!("session = 'MONDAY'\n{config}"));
    assert_refused(&["exchange", "--config", &named], &[&second, "MONDAY", "--new-session"]);
    // The name of the current or an archived session is refused: clients could not tell the two sessions
    // apart, and the new one could not be archived.
    for earlier in [&second, &first] {
        let same = site.write("same.toml", &format!("session = '{earlier}'\n{config}"));
        assert_refused(
            &["exchange", "--config", &same, "--new-session"],
            &["has the name", earlier, "no session had"],
        );
    }
    let taken = format!("{}/{second}", site.path("journal"));
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(format!("{taken}/generation"), "").unwrap();
    let config_path = site.path("exchange.toml");
    assert_refused(&["exchange", "--config", &config_path, "--new-session"], &[&taken, "exists already"]);
    std::fs::remove_dir_all(&taken).unwrap();
    let spaced = site.write("spaced.toml", &format!("session = 'A B'\n{config}"));
    assert_refused(&["exchange", "--config", &spaced], &["'A B'", "letters, digits"]);
}

#[test]
fn a_clean_stop_reports_a_durable_log() {
    for policy in ["async", "group", "sync"] {
        let site = Site::new();
        let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
        site.write("exchange.toml", &format!("{config}[journal]\npolicy = '{policy}'\n"));
        for _ in 0..2 {
            run_and_get_session(&site, &[]);
            let generation = std::fs::read(site.path("journal/generation")).unwrap();
            assert_eq!((generation[8], generation[48] > 0), (2, true), "{policy}");
        }
        let (venue, ..) = site.start_venue();
        let generation = std::fs::read(site.path("journal/generation")).unwrap();
        assert_eq!((generation[8], generation[48]), (1, 0), "{policy}: while it runs");
        drop(venue);
        let generation = std::fs::read(site.path("journal/generation")).unwrap();
        assert_eq!(generation[8], 1, "{policy}: killed");
    }
}

#[test]
fn two_venues_cannot_share_a_journal() {
    let site = Site::new();
    let (venue, _, _) = site.start_venue();
    let (folder, config) = (site.path("journal"), site.path("exchange.toml"));
    for options in [&[][..], &["--new-session"]] {
        let args = [&["exchange", "--config", &config], options].concat();
        assert_refused(&args, &[&folder, "in use by another process", "another folder"]);
    }
    // A journal can be read while it is written.
    assert_eq!(run(&["journal", "verify", &folder]).code, Some(0));
    venue.interrupt();
    assert_eq!(venue.join().code, Some(0));
}

#[test]
fn a_venue_without_a_journal_warns() {
    let site = Site::new();
    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    site.write("exchange.toml", &format!("{config}\n[journal]\npolicy = 'off'\n"));
    let (venue, _, _) = site.start_venue();
    venue.interrupt();
    let printed = venue.join();
    assert_eq!(printed.code, Some(0));
    assert!(
        printed.err.contains("journal.policy is off") && printed.err.contains("forgotten"),
        "{}",
        printed.err
    );
    assert!(!std::path::Path::new(&site.path("journal")).exists());
}

#[test]
fn the_opening_is_in_the_journal_and_can_be_replayed() {
    let site = Site::new();
    let session = run_and_get_session(&site, &[]);
    let folder = site.path("journal");
    let dumped = run(&["journal", "dump", &folder]);
    assert_eq!((dumped.code, dumped.out.lines().count()), (Some(0), 4), "{}{}", dumped.out, dumped.err);
    assert!(dumped.out.contains("StartOfMessages") && dumped.out.contains("OpenInstrument"));
    let one = run(&["journal", "dump", &folder, "--from", "3", "--limit", "1", "--json"]);
    let line: Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!((&line["sequence"], one.out.lines().count()), (&Value::from(3), 1));
    assert_eq!(run(&["journal", "dump", &folder, "--limit", "0"]).out, "");
    let nothing_yet = run(&["journal", "dump", &folder, "--from", "5"]);
    assert_eq!((nothing_yet.code, nothing_yet.out.as_str()), (Some(0), ""));
    for command in ["dump", "replay"] {
        assert_refused(&["journal", command, &folder, "--from", "6"], &["ends with command 4", "--from 6"]);
    }

    let report = |args: &[&str]| -> Value {
        let printed = run(&[&["journal"], args, &[folder.as_str(), "--json", "-"]].concat());
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        serde_json::from_str(&printed.out).unwrap()
    };
    let verified = report(&["verify"]);
    assert_eq!((&verified["session"], &verified["last"]), (&Value::from(session), &Value::from(4)));
    assert_eq!((&verified["generation"], &verified["snapshots"][0]), (&Value::from(0), &Value::from(0)));
    let replayed = report(&["replay"]);
    assert_eq!((&replayed["commands"], &replayed["snapshots_checked"]), (&Value::from(4), &Value::from(1)));
    assert_eq!(report(&["replay", "--limit", "2"])["last"], 2);

    let (child, mut out) = spawn_unread(&["journal", "dump", &folder]);
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    assert_eq!(end_of(child).0, Some(0), "a reader that goes away is no failure");
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let site = Site::new();
    let missing = site.path("nowhere");
    for command in ["verify", "dump", "replay"] {
        assert_refused(&["journal", command, &missing], &[&missing, "not a folder"]);
        assert!(!std::path::Path::new(&missing).exists(), "nothing is made");
    }
    std::fs::create_dir(site.path("empty")).unwrap();
    assert_refused(&["journal", "verify", &site.path("empty")], &["holds no journal"]);

    run_and_get_session(&site, &[]);
    run_and_get_session(&site, &[]);
    let folder = site.path("journal");
    let first = format!("{folder}/{:020}.journal", 1);
    let good = std::fs::read(&first).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    std::fs::write(&first, &bad).unwrap();
    for command in ["verify", "dump", "replay"] {
        assert_refused(&["journal", command, &folder], &["00001.journal", "damaged at byte"]);
    }
    std::fs::write(&first, &good).unwrap();
    std::fs::write(format!("{folder}/snapshot-{:020}", 3), b"nothing").unwrap();
    for command in ["verify", "replay"] {
        let printed = run(&["journal", command, &folder]);
        assert_eq!(printed.code, Some(1), "{command}: {}", printed.out);
        assert!(printed.err.contains('3') && printed.err.contains("not a whole snapshot"), "{}", printed.err);
    }
}

/// Writes a log of `count` commands.
fn write_log(path: &str, count: u64) {
    let config =
        JournalConfig { policy: Policy::Async, payload_len_max: COMMAND_LEN_MAX, ..JournalConfig::default() };
    let session = SessionName::new("LONG").unwrap();
    let folder = Folder::new(path).unwrap();
    let Opened { mut journal, mut worker, .. } = open(&folder, session, config, &Default::default()).unwrap();
    for sequence in (1..=count).map(Sequence) {
        let (session, ts, kind) =
            (SessionId(0), Nanos(sequence.0), CommandKind::System(SystemEventCode::StartOfMessages));
        let command = tickpath_matching::Command { sequence, session, ts, kind };
        journal.append_with(sequence, |out| command.encode(out)).unwrap();
        while journal.durable() < sequence {
            journal.poll();
            worker.run_once();
        }
    }
}

#[test]
fn an_interrupted_dump_ends_with_a_whole_line_and_a_notice() {
    const COMMANDS: u64 = 20_000;
    let site = Site::new();
    let folder = site.path("log");
    write_log(&folder, COMMANDS);
    assert_eq!(run(&["journal", "dump", &folder]).out.lines().count() as u64, COMMANDS);
    let (dump, mut out) = spawn_unread(&["journal", "dump", &folder]);
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    // `dump` waits for its reader, because the pipe is full.
    Signal::Interrupt.send_to(&dump);
    std::thread::sleep(Duration::from_millis(100));
    out.read_to_string(&mut text).unwrap();
    let expected = "tickpath: interrupted: the journal was not read to its end\n";
    assert_eq!(end_of(dump), (Some(130), expected.to_owned()));
    let lines = text.lines().count() as u64;
    assert!(text.ends_with('\n') && lines < COMMANDS, "{lines}");
    assert!(text.lines().all(|line| line.ends_with("System(StartOfMessages)")));
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_journal_is_read() {
    let site = Site::new();
    write_log(&site.path("log"), 1);
    for command in ["verify", "replay"] {
        let args = ["journal", command, &site.path("log"), "--json", &site.path("no/report.json")];
        assert_refused(&args, &["--json", "no/report.json", "its folder"]);
    }
}

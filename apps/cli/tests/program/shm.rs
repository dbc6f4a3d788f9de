//! Tests of `tickpath shm`.

use std::fs;
use std::io::Read;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use tickpath_shm::{Folder, SegmentConfig, SegmentName, SegmentWriter, ShmError, TimeBase};
use tickpath_test_support::wait_for;
use tickpath_types::{MarketUpdate, Nanos, PriceLevel, TopOfBook, TradingState, UpdateKind};
use zerocopy::FromZeros;

use crate::support::{assert_refused, run, spawn};

const CONFIG: SegmentConfig = SegmentConfig { rows: 8, stream_capacity: 16, time_base: TimeBase::Midnight };

fn quote() -> TopOfBook {
    TopOfBook {
        bid: PriceLevel { price: 1_000_000, qty: 1_500 },
        ask: PriceLevel { price: 1_000_100, qty: 20 },
        last_price: 1_000_050,
        last_qty: 7,
        ts_event: 34_200_000_000_000,
        trading_state: TradingState::Trading as u8,
        ..TopOfBook::default()
    }
}

struct Site {
    place: TempDir,
    writer: SegmentWriter,
}

impl Site {
    fn new() -> Site {
        let place = tempfile::tempdir().unwrap();
        let mut writer = Site::writer(&place, "feed");
        writer.name(1, "ALPHA").unwrap();
        writer.name(5, "BETA").unwrap();
        writer.write(1, &quote()).unwrap();
        writer.send(&MarketUpdate { kind: UpdateKind::Add as u8, ..MarketUpdate::new_zeroed() });
        Site { place, writer }
    }

    fn writer(place: &TempDir, name: &str) -> SegmentWriter {
        let folder = Folder::create(&place.path().join("shm")).unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let now = Nanos(now.as_nanos() as u64);
        wait_for("the name of the segment", || {
            match SegmentWriter::create(&folder, &SegmentName::new(name).unwrap(), &CONFIG, now) {
                // Retry: between fork and exec, a child process of another test holds this process's open
                // files, and so keeps the lock of a writer that has ended.
                Err(ShmError::InUse { .. }) => None,
                made => Some(made.unwrap()),
            }
        })
    }

    fn folder(&self) -> String {
        self.place.path().join("shm").to_str().unwrap().to_owned()
    }
}

#[test]
fn segments_are_listed_and_verified() {
    let site = Site::new();
    let folder = site.folder();
    let printed = run(&["shm", "list", "--folder", &folder]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    let line = printed.out.lines().last().unwrap();
    assert!(line.starts_with("feed") && line.contains(&std::process::id().to_string()), "{line}");
    assert!(!printed.out.contains('\x1b'), "colours are for terminals");
    let printed = run(&["shm", "list", "--folder", &folder, "--json", "-"]);
    let report: Value = serde_json::from_str(&printed.out).unwrap();
    let segment = &report["segments"][0];
    assert_eq!((&segment["symbols"], &segment["updates_sent"]), (&2.into(), &1.into()), "{segment}");

    let printed = run(&["shm", "verify", "--folder", &folder]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    assert!(
        printed.out.contains("2 symbols, 1 quotes, 1 updates") && printed.out.ends_with("no problems\n"),
        "{}",
        printed.out
    );

    drop(site.writer);
    let printed = run(&["shm", "list", "--folder", &folder]);
    assert!(printed.out.contains("closed"), "{}", printed.out);
    fs::write(format!("{folder}/other.seg"), b"no segment").unwrap();
    let printed = run(&["shm", "verify", "feed", "--folder", &folder]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    for command in ["list", "verify"] {
        let printed = run(&["shm", command, "--folder", &folder]);
        assert!(printed.code == Some(1) && printed.out.contains("feed"), "{}", printed.out);
        assert!(
            printed.err.contains("other.seg is damaged") && printed.err.lines().count() == 1,
            "{}",
            printed.err
        );
    }
    assert_refused(
        &["shm", "verify", "none", "--folder", &folder],
        &["no segment 'none'", "tickpath shm list"],
    );
    assert_refused(&["shm", "list", "--folder", "/no/such/folder"], &["/no/such/folder"]);
}

#[test]
fn only_segments_without_a_writer_are_reclaimed() {
    let site = Site::new();
    let folder = site.folder();
    drop(Site::writer(&site.place, "old"));
    assert_refused(&["shm", "reclaim", "--folder", &folder], &["--all"]);
    assert_refused(&["shm", "reclaim", "feed", "--folder", &folder], &["feed", "the writer is alive"]);
    let printed = run(&["shm", "reclaim", "--all", "--folder", &folder]);
    assert_eq!(
        (printed.code, printed.out.as_str()),
        (Some(0), "feed: kept, its writer is alive\nold: removed\n")
    );
    // A folder with the name of a segment does not prevent the removal of the other segments.
    drop(Site::writer(&site.place, "old"));
    fs::create_dir(format!("{folder}/folder.seg")).unwrap();
    let printed = run(&["shm", "reclaim", "folder", "old", "feed", "--folder", &folder]);
    assert_eq!((printed.code, printed.out.as_str()), (Some(1), "old: removed\n"));
    assert!(
        printed.err.contains("folder.seg is not a regular file")
            && printed.err.contains("feed: the writer is alive")
    );
    fs::remove_dir(format!("{folder}/folder.seg")).unwrap();
    drop(site.writer);
    let printed = run(&["shm", "reclaim", "feed", "--folder", &folder]);
    assert_eq!((printed.code, printed.out.as_str()), (Some(0), "feed: removed\n"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let printed = run(&["shm", "list", "--folder", &folder]);
    assert!(printed.out.starts_with("no segments in"), "{}", printed.out);
}

#[test]
fn quotes_are_shown_once() {
    let site = Site::new();
    let folder = site.folder();
    let printed = run(&["shm", "watch", "feed", "--once", "--folder", &folder]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    let row: Vec<&str> =
        printed.out.lines().find(|line| line.starts_with("ALPHA")).unwrap().split_whitespace().collect();
    let expected = ["ALPHA", "live", "1,500", "100.0000", "100.0100", "20", "100.0050", "09:30:00.000000"];
    assert_eq!(row, expected);
    let args = ["shm", "watch", "feed", "--once", "--symbols", "ALPHA", "--json", "-", "--folder", &folder];
    let report: Value = serde_json::from_str(&run(&args).out).unwrap();
    let quotes = report["quotes"].as_array().unwrap();
    assert_eq!((quotes.len(), &quotes[0]["bid"]["price"]), (1, &"100.0000".into()), "{report}");
    assert_refused(
        &["shm", "watch", "feed", "--once", "--symbols", "GAMMA", "--folder", &folder],
        &["no symbol GAMMA"],
    );
}

#[test]
fn changes_are_shown_until_ctrl_c_also_of_a_new_writer() {
    let mut site = Site::new();
    let folder = site.folder();
    let mut watching = spawn(&["shm", "watch", "feed", "--folder", &folder]);
    watching.wait_for_line("the first look", |line| line.starts_with("BETA").then_some(()));
    site.writer.write(5, &quote()).unwrap();
    watching.wait_for_line("a change", |line| {
        (line.starts_with("BETA") && line.contains("100.0100")).then_some(())
    });
    site.writer.name(2, "GAMMA").unwrap();
    site.writer.write(2, &quote()).unwrap();
    watching.wait_for_line("a symbol that came later", |line| line.starts_with("GAMMA").then_some(()));
    drop(site.writer);
    let mut writer = Site::writer(&site.place, "feed");
    writer.name(3, "DELTA").unwrap();
    writer.write(3, &quote()).unwrap();
    watching.wait_for_line("a symbol of the next writer", |line| line.starts_with("DELTA").then_some(()));
    watching.interrupt();
    let printed = watching.join();
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(printed.err.contains("generation 2"), "{}", printed.err);
}

#[test]
fn an_idle_watch_ends_when_its_pipe_is_closed() {
    let Site { place, writer } = Site::new();
    drop(writer);
    let folder = place.path().join("shm");
    let (mut reader, out) = std::io::pipe().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tickpath"))
        .args(["shm", "watch", "feed", "--folder"])
        .arg(folder)
        .stdout(out)
        .spawn()
        .unwrap();
    reader.read_exact(&mut [0]).unwrap();
    drop(reader);
    let status = wait_for("its end", || child.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

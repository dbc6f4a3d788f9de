//! Tests that events applied as they are read give the same result as events applied in blocks.

use std::fmt::Write;
use std::path::Path;

use tickpath_replay::{Exports, FileReport, ReplayOptions};

use crate::support::{file, run};

/// Lines of LOBSTER, including contradictory and malformed ones, and some about unknown orders.
fn lines(count: u64) -> String {
    let mut state = 7_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut text = String::new();
    for number in 1..=count {
        let kind = below(40);
        let known = number - below(number.min(60));
        let (event_type, id) = match kind {
            0..20 => (1, number),
            20..28 => (3, known),
            28..34 => (4, known),
            34..37 => (2, known),
            37 => (1, known),
            38 => (5, 0),
            _ => (9, 0),
        };
        let side = if below(2) == 0 { 1 } else { -1 };
        let price = 1_000_000 - side * 100 * (1 + below(30) as i64);
        let (seconds, size) = (34_200 + number / 100, 1 + below(90));
        writeln!(text, "{seconds}.{:02},{event_type},{id},{size},{price},{side}", number % 100).unwrap();
    }
    text
}

fn exported(path: &Path, options: ReplayOptions) -> (FileReport, [Vec<u8>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let [bbo, trades] = ["bbo.csv", "trades.csv"].map(|name| folder.path().join(name));
    let exports = Exports { bbo: Some(bbo.clone()), trades: Some(trades.clone()), ..Exports::default() };
    let report = run(path, &ReplayOptions { exports, ..options });
    (report, [bbo, trades].map(|path| std::fs::read(path).unwrap()))
}

#[test]
fn applying_events_one_by_one_equals_applying_blocks() {
    let text = lines(30_000);
    let (_folder, path) = file("AAA_message_10.csv", text.as_bytes());
    let orders_max = Some(300);
    let options = ReplayOptions { orders_max, ..ReplayOptions::default() };
    let (at_once, rows) = exported(&path, options.clone());
    // With a limit, the replay reads each whole block before it applies the events.
    let (in_blocks, block_rows) = exported(&path, ReplayOptions { limit: Some(u64::MAX), ..options });
    assert!(at_once.decode.unwrap().blocks < at_once.books.unwrap().blocks, "most blocks are not read first");
    assert_eq!(in_blocks.decode.unwrap().blocks, in_blocks.books.unwrap().blocks);

    let integrity = &at_once.integrity;
    for finding in [
        &integrity.malformed,
        &integrity.unknown_references,
        &integrity.beyond_quantity,
        &integrity.duplicate_references,
        &integrity.refused,
    ] {
        assert!(finding.count > 20, "{integrity:?}");
    }
    let (at_once, in_blocks) = (&at_once.recording, &in_blocks.recording);
    assert_eq!(at_once.integrity, in_blocks.integrity);
    assert_eq!((at_once.messages, at_once.checksum), (in_blocks.messages, in_blocks.checksum));
    assert_eq!((&at_once.by_type, &at_once.statistics), (&in_blocks.by_type, &in_blocks.statistics));
    assert_eq!((&at_once.tops, &at_once.contradictions), (&in_blocks.tops, &in_blocks.contradictions));
    assert_eq!(rows, block_rows);
    assert!(rows.iter().all(|rows| rows.len() > 10_000));
}

//! Files that are truncated, damaged, or unusable.

use std::io::Write;
use std::path::Path;

use tickpath_nasdaq::itch50::{BuySell, EventCode, StockTradingState};
use tickpath_replay::{FileReport, ReplayOptions};

use crate::support::{Day, checked, file, run, stored, try_run};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Replays a file; returns the report or the error message.
fn outcome(name: &str, bytes: &[u8]) -> Result<FileReport, String> {
    let (_folder, path) = file(name, bytes);
    try_run(&path, &checked()).map_err(|error| error.to_string())
}

#[test]
fn a_small_day_is_trusted() {
    let report = outcome("day", &Day::small().bytes).unwrap();
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!((report.messages, report.integrity.orders_left), (13, 2));
}

#[test]
fn a_file_cut_at_any_byte_gives_whole_messages() {
    let day = Day::small();
    let mut ends = Vec::new();
    let mut at = 0;
    while at < day.bytes.len() {
        at += 2 + usize::from(u16::from_be_bytes([day.bytes[at], day.bytes[at + 1]]));
        ends.push(at);
    }
    for len in 3..day.bytes.len() {
        let report = outcome("day", &day.bytes[..len]).unwrap();
        let whole = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(report.messages, whole as u64, "{len}");
        assert_eq!(report.is_trustworthy(), ends.contains(&len), "{len}");
        if !ends.contains(&len) {
            let start = whole.checked_sub(1).map_or(0, |last| ends[last]);
            let text = report.contradictions.join("\n");
            assert!(text.contains(&format!("cut short at byte {start} ")), "{len}: {text}");
        }
    }
}

#[test]
fn compressed_files_cut_at_any_byte_are_never_trusted() {
    for bytes in [
        gzip(&Day::small().bytes),
        zstd::encode_all(&Day::small().bytes[..], 1).unwrap(),
        std::fs::read(stored("test_data.mbo.v3.dbn.zst")).unwrap(),
    ] {
        for len in 0..bytes.len() {
            match outcome("day", &bytes[..len]) {
                Ok(report) => assert!(!report.is_trustworthy(), "{len} of {}", bytes.len()),
                Err(error) => assert!(!error.contains('\n'), "{error}"),
            }
        }
    }
}

#[test]
fn damage_anywhere_never_panics_and_is_reported_in_single_lines() {
    for original in [
        Day::small().bytes,
        gzip(&Day::small().bytes),
        std::fs::read(stored("test_data.mbo.v3.dbn.zst")).unwrap(),
        b"34200.5,1,11,100,2238100,1\n34201.0,4,11,40,2238100,1\n".to_vec(),
    ] {
        for at in 0..original.len() {
            for value in [0x00, 0xff, original[at] ^ 0x10] {
                let mut bytes = original.clone();
                bytes[at] = value;
                match outcome("AAA_message_1.csv", &bytes) {
                    Ok(report) => {
                        assert!(report.contradictions.iter().all(|text| !text.contains('\n')));
                        let _ = report.to_string();
                    }
                    Err(error) => assert!(!error.contains('\n'), "{error}"),
                }
            }
        }
    }
}

#[test]
fn other_files_are_rejected_in_one_line() {
    for (name, bytes, expected) in [
        ("empty", &b""[..], "is empty"),
        ("text", b"hello\n", "some other text"),
        ("rows.csv", b"1,2,3,4\n", "order book file"),
        ("a.gz", &[0x1f, 0x8b], "damaged"),
    ] {
        let error = outcome(name, bytes).err().unwrap_or_else(|| panic!("{name} was replayed"));
        assert!(error.contains(expected) || error.contains("cut"), "{name}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = try_run(folder.path(), &checked()).unwrap_err().to_string();
    assert!(error.contains("is a directory"), "{error}");
    let error = try_run(Path::new("/no/such/file"), &checked()).unwrap_err().to_string();
    assert!(error.contains("cannot open /no/such/file"), "{error}");
}

/// Replays a day whose contradictions must contain these texts; returns the report.
fn contradictions(day: &Day, expected: &[&str]) -> FileReport {
    let (_folder, path) = file("day", &day.bytes);
    let report = run(&path, &checked());
    let all = report.contradictions.join("\n");
    assert!(!report.is_trustworthy());
    for word in expected {
        assert!(all.contains(word), "no '{word}' in {all}");
    }
    assert_eq!(report.model.as_ref().unwrap().difference, None, "the twin is contradicted alike");
    report
}

#[test]
fn references_never_added_are_counted_with_their_offset() {
    let mut day = Day::small();
    let at = day.bytes.len();
    day.delete(1, 999).execute(1, 998, 1);
    let report = contradictions(&day, &[&format!("2 references to unknown orders, first at byte {at}")]);
    assert_eq!(report.messages, 15);
    // In decode-only mode, references to orders are not checked.
    let (_folder, path) = file("day", &day.bytes);
    assert!(run(&path, &ReplayOptions { decode_only: true, ..ReplayOptions::default() }).is_trustworthy());
}

#[test]
fn executions_beyond_the_order_and_doubled_references_are_counted() {
    let mut day = Day::small();
    day.execute(1, 1, 1_000_000);
    contradictions(&day, &["1 execution or reduction beyond the order's quantity"]);
    let mut day = Day::small();
    let duplicate = day.bytes[14 + 27 + 27..14 + 27 + 27 + 38].to_vec();
    day.bytes.extend(duplicate);
    contradictions(&day, &["1 reference that is used twice", "1 time that runs backwards"]);
}

#[test]
fn a_wrong_length_is_reported_and_never_trusted() {
    let mut day = Day::small();
    day.bytes[14 + 1] += 1;
    contradictions(&day, &["malformed", "first at byte 14"]);
    // A length of zero ends the session; no data may follow.
    let mut day = Day::small();
    day.bytes[14 + 1] = 0;
    let report = contradictions(&day, &["ends the session", "at byte 14 "]);
    assert_eq!(report.messages, 1);
}

#[test]
fn crossed_books_are_counted_by_the_state_of_session_and_symbol() {
    let mut day = Day::small();
    day.state(1, StockTradingState::HALTED);
    day.add(1, BuySell::BUY, 5, 1_000_200);
    let (_folder, path) = file("day", &day.bytes);
    let report = run(&path, &checked());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(report.integrity.crossed.halted.count, 1);
    // Orders of a symbol in trading state are matched before the open too: a crossed book is a contradiction.
    day.state(1, StockTradingState::TRADING);
    day.add(1, BuySell::BUY, 5, 1_000_200);
    day.stage(EventCode::START_OF_MARKET_HOURS);
    let at = day.bytes.len();
    day.add(1, BuySell::BUY, 5, 1_000_200);
    day.state(1, StockTradingState::PAUSED).stage(EventCode::END_OF_MARKET_HOURS);
    day.add(1, BuySell::BUY, 5, 1_000_200);
    let (_folder, path) = file("day", &day.bytes);
    let report = run(&path, &checked());
    let counts = report.integrity.crossed.clone();
    assert_eq!(
        [&counts.before_open, &counts.trading, &counts.halted, &counts.after_close].map(|found| found.count),
        [2, 1, 3, 0]
    );
    // The count includes the change to trading, because the book is still crossed after that message.
    assert_eq!(counts.contradictory.count, 3);
    let first = counts.trading.first.unwrap();
    assert_eq!(first, format!("byte {at} (bid 100.0200 at ask 100.0200)"));
    assert!(
        report.contradictions[0].contains("3 messages that leave a book crossed while its symbol trades")
    );
}

#[test]
fn full_books_name_the_option_to_enlarge_them() {
    let (_folder, path) = file("AAA_message_1.csv", b"1,1,1,5,100,1\n2,1,2,5,100,1\n3,1,3,5,100,1\n");
    for (capacity, refused) in [(3, 0), (2, 1)] {
        let report = run(&path, &ReplayOptions { orders_max: Some(capacity), ..checked() });
        assert_eq!(report.integrity.refused.count, refused);
        assert_eq!(report.is_trustworthy(), refused == 0);
    }
}

#[test]
fn bad_lines_are_skipped() {
    let text = "1.5,1,1,5,100,1\nrubbish\n2.5,1,2,5,100,1\n";
    let report = outcome("AAA_message_1.csv", text.as_bytes()).unwrap();
    assert_eq!((report.messages, report.integrity.malformed.count), (2, 1));
    assert!(report.contradictions[0].contains("line 2"), "{:?}", report.contradictions);
}

#[test]
fn damaged_compression_is_reported_where_the_data_is_invalid() {
    // The gzip file stores the data uncompressed, so that the damage is in the data itself: only the checksum
    // at the end reveals it.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&Day::small().bytes).unwrap();
    let whole = encoder.finish().unwrap();
    let header = 10 + 5;
    for (at, value) in [(header + 14 + 1, 0), (header + 14, 0xff), (header + 40, whole[header + 40] ^ 1)] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let report = outcome("day.gz", &bytes).unwrap();
        let text = report.contradictions.join("\n");
        assert_eq!(text.matches("the compressed data is damaged near byte").count(), 1, "{at}: {text}");
    }
}

#[test]
fn findings_have_the_position_of_their_message() {
    let lines = "1,1,1,5,100,1\n2,1,2,5,90,1\n3,1,1,5,100,1\n";
    let report = outcome("AAA_message_5.csv", lines.as_bytes()).unwrap();
    assert_eq!(report.recording.integrity.duplicate_references.first.unwrap(), "message 3 (line 3)");
    let mut day = Day::small();
    let last = day.bytes.len();
    day.execute(1, 1, 1_000_000);
    let (_folder, path) = file("day", &day.bytes);
    let report = run(&path, &checked());
    let first = report.recording.integrity.beyond_quantity.first.unwrap();
    assert!(first.ends_with(&format!("to byte {last}")), "{first}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let bytes = gzip(&Day::small().bytes);
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, bytes).unwrap()
    });
    let report = run(&path, &checked());
    writer.join().unwrap();
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(report.messages, 13);
}

//! `tickpath replay` as a process.

use std::path::PathBuf;

use crate::support::{assert_refused, repository, run};

fn stored(name: &str) -> String {
    let path: PathBuf = repository().join("apps/replay/tests/data").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_that_contradicts_itself_fails_and_its_decoding_does_not() {
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let books = run(&["replay", &file, "--check", "--depth", "1"]);
    assert_eq!(books.code, Some(1), "{}", books.err);
    assert!(
        books.out.contains("12,012 messages") && books.out.contains("NOT TO BE TRUSTED"),
        "{}",
        books.out
    );
    let decoded = run(&["replay", &file, "--decode-only", "--json", "-"]);
    assert_eq!((decoded.code, decoded.err.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&decoded.out).unwrap();
    assert_eq!((&json["messages"], &json["by_type"]["A"]), (&12_012.into(), &4_997.into()));
    assert_eq!(json["trustworthy"], true);
}

#[test]
fn several_files_are_summed_and_one_that_fails_is_told() {
    let ritch = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let trades = stored("test_data.trades.v3.dbn.zst");
    let printed = run(&["replay", &ritch, &trades, "--decode-only"]);
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.out.contains("NOT REPLAYED") && printed.out.contains("schema is trades"),
        "{}",
        printed.out
    );
    assert!(printed.out.contains("Sum of 2 files: 12,012 messages"), "{}", printed.out);
}

#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    assert_refused(&["replay", "/no/such/file"], &["cannot open /no/such/file"]);
    assert_refused(&["replay", &stored("")], &["is a directory"]);
    assert_refused(&["replay", &stored("README.md")], &["some other text", "ITCH 5.0 BinaryFILE"]);
    assert_refused(&["replay", &file, "--from", "9"], &["'9' is not a time", "HH:MM:SS"]);
    assert_refused(&["replay", &file, "--depth", "0"], &["from 1 to 100"]);
    assert_refused(&["replay", &file, "--bbo", "x.txt"], &[".csv or .parquet"]);
    assert_refused(&["replay", &file, &file, "--bbo", "x.csv"], &["one recording at a time"]);
    assert_refused(&["replay", &file, "--speed", "fast"], &["is not a speed"]);
    assert_refused(&["replay", &file, "--limit", "0"], &["--limit"]);
    assert_refused(&["replay"], &["FILE"]);
}

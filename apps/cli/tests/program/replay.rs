//! Tests of `tickpath replay`, run as a process.

use std::path::PathBuf;

use tickpath_test_support::wait_until;

use crate::support::{assert_refused, repository, run, spawn, tickpath};

fn stored(name: &str) -> String {
    let path: PathBuf = repository().join("apps/replay/tests/data").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_file_that_contradicts_itself_fails_and_its_decoding_does_not() {
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let books = run(&["replay", &file, "--check", "--depth", "1"]);
    assert_eq!(books.code, Some(1), "{}", books.err);
    assert!(books.out.contains("12,012 messages") && books.out.contains("FAIL: "), "{}", books.out);
    let decoded = run(&["replay", &file, "--decode-only", "--json", "-"]);
    assert_eq!((decoded.code, decoded.err.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&decoded.out).unwrap();
    assert_eq!((&json["messages"], &json["by_type"]["A"]), (&12_012.into(), &4_997.into()));
    assert_eq!(json["trustworthy"], true);
    let piped =
        tickpath().args(["replay", "-", "--decode-only"]).pipe_stdin(&file).unwrap().output().unwrap();
    assert!(piped.status.success() && String::from_utf8(piped.stdout).unwrap().contains("12,012 messages"));
}

#[test]
fn whole_cut_damaged_and_unknown_captures() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let day = path("day.pcap");
    let small = ["--messages", "9000", "--live", "1000", "--symbols", "20", "--lines", "2", "--heartbeats"];
    let written = run(&[&["generate", "xdp", "--output", &day][..], &small].concat());
    assert_eq!(written.code, Some(0), "{}", written.err);
    let whole = run(&["replay", &day, "--check"]);
    assert_eq!(whole.code, Some(0), "{}", whole.out);
    assert!(whole.out.contains("times that run backwards                      0\n"), "{}", whole.out);
    let bytes = std::fs::read(&day).unwrap();
    std::fs::write(path("cut.pcap"), &bytes[..bytes.len() / 2]).unwrap();
    let cut = run(&["replay", &path("cut.pcap")]);
    assert_eq!(cut.code, Some(1));
    assert!(cut.out.contains("FAIL: the recording cannot be trusted:\n  cut short at byte"), "{}", cut.out);
    let packed = run(&[&["generate", "xdp", "--output", &path("day.pcap.gz")][..], &small].concat());
    assert_eq!(packed.code, Some(0), "{}", packed.err);
    let mut damaged = std::fs::read(path("day.pcap.gz")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0x55);
    std::fs::write(path("damaged.pcap.gz"), damaged).unwrap();
    let damaged = run(&["replay", &path("damaged.pcap.gz"), "--json", "-"]);
    assert_eq!(damaged.code, Some(1));
    assert!(damaged.err.contains("compressed data is damaged"), "{}", damaged.err);
    // A capture with only the file header, then one with only a part of that header.
    std::fs::write(path("empty.pcap"), &bytes[..24]).unwrap();
    assert_refused(&["replay", &path("empty.pcap")], &["no market data of a known protocol", "0 frames"]);
    std::fs::write(path("short.pcap"), &bytes[..20]).unwrap();
    assert_refused(&["replay", &path("short.pcap")], &["cut short"]);
}

#[test]
fn several_files_are_summed_and_a_failed_one_is_named() {
    let ritch = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let text = repository().join("README.md");
    let printed = run(&["replay", &ritch, text.to_str().unwrap(), "--decode-only"]);
    assert_eq!(printed.code, Some(1));
    assert!(
        printed.out.contains("NOT REPLAYED") && printed.out.contains("some other text"),
        "{}",
        printed.out
    );
    assert!(printed.out.contains("Sum of 2 files: 12,012 messages"), "{}", printed.out);
}

#[test]
fn impossible_options_are_one_error_line() {
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    assert_refused(&["replay", "/no/such/file"], &["cannot open /no/such/file"]);
    assert_refused(&["replay", &stored("")], &["is a directory"]);
    assert_refused(&["replay", &stored("README.md")], &["some other text", "ITCH 5.0 BinaryFILE"]);
    assert_refused(&["replay", &file, "--from", "9"], &["'9' is not a time", "HH:MM:SS"]);
    assert_refused(&["replay", &file, "--depth", "0"], &["from 1 to 100"]);
    assert_refused(&["replay", &file, "--bbo", "x.txt"], &[".csv or .parquet"]);
    assert_refused(&["replay", &file, &file, "--orderbook", "x"], &["belongs to one recording"]);
    assert_refused(
        &["replay", &file, "--from", "10:00:00", "--to", "09:00:00"],
        &["--to is not after --from"],
    );
    for speed in ["0x", "-1x", "1e9x"] {
        assert_refused(&["replay", &file, "--speed", speed], &["is not a speed"]);
    }
    assert_refused(&["replay", &file, "--speed", "fast"], &["is not a speed"]);
    assert_refused(&["replay", &file, "--limit", "0"], &["--limit"]);
    assert_refused(&["replay"], &["FILE"]);
}

#[test]
fn several_files_are_exported_into_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let trades = folder.path().join("t.csv");
    let trades = trades.to_str().unwrap();
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let printed = run(&["replay", &file, &file, "--decode-only", "--trades", trades]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let table = std::fs::read_to_string(trades).unwrap();
    assert!(table.starts_with("file,ts_ns,message,") && table.lines().nth(1).unwrap().starts_with(&file));
    let rows = table.lines().count() - 1;
    assert!(
        printed.out.contains("Exported ") && rows > 0 && rows.is_multiple_of(2),
        "{rows}: {}",
        printed.out
    );
}

#[test]
fn inputs_are_not_overwritten_and_unwritable_outputs_are_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = "34200.5,1,11,100,2238100,1\n34201.0,4,11,40,2238100,1\n";
    let day = at("AAA_message_1.csv");
    std::fs::write(&day, text).unwrap();
    assert_refused(&["replay", &day, "--bbo", &day], &["--bbo", "would overwrite"]);
    assert_refused(&["replay", &day, "--json", &day], &["--json", "would overwrite"]);
    let rows = at("rows.csv");
    std::fs::write(&rows, "9999999999,0,2238100,100\n").unwrap();
    assert_refused(&["replay", &day, "--orderbook", &rows, "--trades", &rows], &["would overwrite"]);
    assert_refused(&["replay", &day, "--bbo", &at("b.csv"), "--trades", &at("b.csv")], &["the same file"]);
    assert_refused(&["replay", &day, "--json", &at("no/x.json")], &["--json", "its folder cannot be used"]);
    assert_refused(&["replay", &day, "--json", folder.path().to_str().unwrap()], &["is a directory"]);
    assert_eq!(std::fs::read_to_string(&day).unwrap(), text);
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["AAA_message_1.csv", "rows.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_error_line() {
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full.csv");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    assert_refused(&["replay", &file, "--bbo", full.to_str().unwrap()], &["full.csv", "No space left"]);
    assert!(full.is_symlink(), "the device stays");
    let printed = std::process::Command::new(env!("CARGO_BIN_EXE_tickpath"))
        .args(["replay", &file, "--decode-only"])
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    let err = String::from_utf8(printed.stderr).unwrap();
    assert_eq!((printed.status.code(), err.lines().count()), (Some(1), 1), "{err}");
    assert!(err.contains("cannot write to standard output: No space left"), "{err}");
}

#[test]
fn unknown_symbols_are_a_failure() {
    let file = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let printed = run(&["replay", &file, &file, "--decode-only", "--symbols", "ALC,NOPE"]);
    assert_eq!(printed.code, Some(1));
    assert!(printed.out.contains("There is no symbol NOPE in any of them."), "{}", printed.out);
    let printed = run(&["replay", &file, "--decode-only", "--symbols", "NOPE", "--json", "-"]);
    assert_eq!((printed.code, printed.err.lines().count()), (Some(1), 1), "{}", printed.err);
    assert!(printed.err.contains("no symbol NOPE"), "{}", printed.err);
    assert_eq!(run(&["replay", &file, "--decode-only", "--symbols", "ALC"]).code, Some(0));
}

#[test]
fn an_interrupted_replay_reports_what_it_read_and_exports_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("AAA_message_5.csv");
    // An hour of recorded time between two messages.
    std::fs::write(&day, "34200.5,1,11,100,2238100,1\n37800.5,4,11,40,2238100,1\n").unwrap();
    let bbo = folder.path().join("b.csv");
    let args = ["replay", day.to_str().unwrap(), "--speed", "1x", "--bbo", bbo.to_str().unwrap()];
    let replay = spawn(&args);
    let part = folder.path().join("b.csv.part");
    wait_until("the unfinished file", || part.exists());
    replay.interrupt();
    let printed = replay.join();
    assert_eq!(printed.code, Some(130), "{}", printed.err);
    assert!(printed.out.contains("STOPPED before the end of the file"), "{}", printed.out);
    assert_eq!(printed.err.lines().count(), 1);
    assert!(printed.err.contains("interrupted") && printed.err.contains("nothing was exported"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the recording is left");
}

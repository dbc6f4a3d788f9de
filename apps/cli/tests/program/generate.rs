//! Tests of `tickpath generate`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use tickpath_test_support::{ProcessOutput, wait_until};

use crate::support::{assert_refused, end_of, run, spawn, spawn_unread, tickpath};

/// Options of a small day.
const SMALL: [&str; 8] = ["--messages", "20000", "--symbols", "25", "--live", "1000", "--seed", "1"];

fn generate(more: &[&str]) -> Vec<String> {
    ["generate", "itch"].iter().chain(&SMALL).chain(more).map(|arg| (*arg).to_owned()).collect()
}

fn run_generate(more: &[&str]) -> ProcessOutput {
    let args = generate(more);
    run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Counts the messages of a BinaryFILE by their length prefixes.
fn count_messages(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Some((len, rest)) = bytes.split_first_chunk::<2>() {
        bytes = &rest[usize::from(u16::from_be_bytes(*len))..];
        count += 1;
    }
    count
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_day_of_xdp_is_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (day, json) = (path("day.pcap"), path("day.json"));
    let args = [&["generate", "xdp"][..], &SMALL, &["-o", &day, "--json", &json]].concat();
    let printed = run(&args);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    let bytes = fs::read(&day).unwrap();
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    for words in [
        "--channels 2 --lines 1 --window 100us --loss 0% --common-loss 0%",
        "2e13ea4c660d7ee4",
        "messages a packet",
    ] {
        assert!(printed.out.contains(words), "no '{words}' in\n{}", printed.out);
    }
    let json: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!((&json["bytes"], &json["xxh3"]), (&bytes.len().into(), &"2e13ea4c660d7ee4".into()));
    assert!(json["messages_per_packet"].as_f64().unwrap() > 1.0 && json["packets_lost"] == 0);
    assert!(json["by_type"]["100"]["messages"].as_u64().unwrap() > 8_000);
    let refused = run(&["generate", "xdp", "-o", &day, "--channels", "17"]);
    assert!(
        refused.code != Some(0) && refused.err.contains("channels is 17: choose 1 to 16"),
        "{}",
        refused.err
    );
}

#[test]
fn a_day_is_written_and_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let printed = run_generate(&["-o", &path("day.itch"), "--json", &path("day.json")]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    let bytes = fs::read(path("day.itch")).unwrap();
    assert_eq!(count_messages(&bytes), 20_000);
    for words in ["20,000", "--symbols 25 --live 1000 --seed 1", "b83075d607bab7d8", "at peak"] {
        assert!(printed.out.contains(words), "no '{words}' in\n{}", printed.out);
    }
    let json: Value = serde_json::from_slice(&fs::read(path("day.json")).unwrap()).unwrap();
    assert_eq!(json["messages"], 20_000);
    assert_eq!((&json["bytes"], &json["file_bytes"]), (&bytes.len().into(), &bytes.len().into()));
    assert_eq!(json["xxh3"], "b83075d607bab7d8", "the hash that core/sim's test pins");
    assert_eq!(json["settings"]["symbols"], 25);
    assert!((950..=1_050).contains(&json["live_max"].as_u64().unwrap()), "{}", json["live_max"]);
    assert!(json["order_refs"].as_u64().unwrap() > 9_000 && json["seconds"].as_f64().unwrap() > 0.0);
    let types = json["by_type"].as_object().unwrap();
    let total: u64 = types.values().map(|share| share["messages"].as_u64().unwrap()).sum();
    assert_eq!((total, &types["R"]["messages"], &types["S"]["percent"]), (20_000, &25.into(), &0.03.into()));
    assert_eq!(names(folder.path()), ["day.itch", "day.json"], "nothing else is left");
}

#[test]
fn compressed_and_piped_days_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = tickpath().args(generate(&["-o", "-"])).output().unwrap();
    assert_eq!(count_messages(&output.stdout), 20_000);
    assert!(String::from_utf8(output.stderr).unwrap().contains("b83075d607bab7d8"));

    for name in ["day.gz", "day.zst"] {
        let printed = run_generate(&["-o", &path(name), "--json", "-"]);
        let json: Value = serde_json::from_str(&printed.out).unwrap();
        assert_eq!(json["xxh3"], "b83075d607bab7d8");
        let file = fs::read(path(name)).unwrap();
        assert_eq!(json["file_bytes"], file.len());
        assert!(file.len() * 3 < output.stdout.len() * 2, "{name}: {}", file.len());
        let mut plain = Vec::new();
        let mut reader: Box<dyn std::io::Read> = match name {
            "day.gz" => Box::new(flate2::read::GzDecoder::new(file.as_slice())),
            _ => Box::new(zstd::Decoder::new(file.as_slice()).unwrap()),
        };
        reader.read_to_end(&mut plain).unwrap();
        assert!(plain == output.stdout, "{name} holds another day");
    }
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    use std::io::Read;
    // The first day is smaller than one write, so that only the last write detects the closed pipe. The
    // second day is larger.
    for messages in ["20000", "200000"] {
        let args =
            ["generate", "itch", "--messages", messages, "--symbols", "10", "--live", "200", "-o", "-"];
        let (child, mut out) = spawn_unread(&args);
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        assert_eq!(end_of(child), (Some(0), String::new()), "{messages}");
    }
}

#[test]
fn a_day_that_cannot_be_written_is_one_error_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("day.itch");
    let file = file.to_str().unwrap();
    for (args, words) in [
        (&["-o", file, "--messages", "0"][..], &["messages is 0", "choose 1000 to"][..]),
        (&["-o", file, "--live", "5000000"], &["messages is 20000000", "40000000", "fewer live orders"]),
        (&["-o", file, "--symbols", "0"], &["symbols is 0", "65535"]),
        (&["-o", file, "--symbols", "65536"], &["symbols is 65536", "65535"]),
        (&["-o", file, "--live", "999"], &["live is 999", "1000"]),
        (&["-o", file, "--preset", "itch-7"], &["itch-7", "itch-500", "itch-8000"]),
        (&["--messages", "100"], &["--output"]),
        (&["-o", "-", "--json", "-"], &["--output", "--json"]),
        (&["-o", file, "--json", file], &["--output and --json name the same file"]),
        (&["-o", file, "--json", "/nonexistent/x.json"], &["/nonexistent/x.json", "No such file"]),
        (&["-o", "/nonexistent/day.itch"], &["/nonexistent/day.itch", "No such file"]),
        (&["-o", folder.path().to_str().unwrap()], &["is a directory"]),
        (&["-o", "/dev/full"], &["/dev/full", "No space left"]),
    ] {
        assert_refused(&[&["generate", "itch"], args].concat(), words);
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn an_interrupted_day_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("day.itch");
    fs::write(&file, "the day before").unwrap();
    let args = ["generate", "itch", "--messages", "10000000000", "--symbols", "10", "--live", "1000", "-o"];
    let writer = spawn(&[&args[..], &[file.to_str().unwrap()]].concat());
    let part = folder.path().join("day.itch.part");
    wait_until("the unfinished file", || part.exists());
    writer.interrupt();
    let printed = writer.join();
    assert_eq!(printed.code, Some(130), "{}", printed.err);
    assert!(printed.err.contains("was not written") && printed.out.is_empty(), "{}", printed.err);
    assert_eq!(names(folder.path()), ["day.itch"]);
    assert_eq!(fs::read(&file).unwrap(), b"the day before");
}

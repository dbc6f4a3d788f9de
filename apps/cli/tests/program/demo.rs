//! Tests of `tickpath demo`, run as a process.

use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Site, assert_refused, end_of, repository, run, spawn, spawn_unread};

#[test]
fn json_on_standard_output_is_the_only_output() {
    let printed = run(&["demo", "--seconds", "2", "--rate", "2000", "--loss", "1%", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    let failed: Vec<_> =
        json["checks"].as_object().unwrap().iter().filter(|(_, check)| check["ok"] != true).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(json["measurement"]["hot_allocations"], 0);
}

#[test]
fn json_in_a_file_comes_beside_the_report() {
    let site = Site::new();
    let file = site.path("result.json");
    let flow = repository().join("io/capture/tests/data/ritch_excerpt.itch50.gz");
    let printed = run(&["demo", "--plain", "--flow", flow.to_str().unwrap(), "--json", &file]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(printed.out.contains("Checks") && printed.out.contains("The recorded flow"), "{}", printed.out);
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(json["checks"]["flow_executions"]["ok"], true);
    let names: Vec<_> = std::fs::read_dir(std::path::Path::new(&file).parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 3, "nothing is left beside it: {names:?}");
}

#[test]
fn json_can_be_written_to_a_pipe() {
    let site = Site::new();
    let pipe = site.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap())
    };
    let flow = repository().join("io/capture/tests/data/ritch_excerpt.itch50.gz");
    let printed = run(&["demo", "--plain", "--flow", flow.to_str().unwrap(), "--json", &pipe]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&reader.join().unwrap()).unwrap();
    assert_eq!(json["flow"]["complete"], true);
    let kind = std::fs::symlink_metadata(&pipe).unwrap().file_type();
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kind));
}

#[test]
fn a_recording_is_played_for_the_requested_time() {
    let flow = repository().join("io/capture/tests/data/ritch_excerpt.itch50.gz");
    let flow = flow.to_str().unwrap();
    let printed = run(&["demo", "--plain", "--flow", flow, "--speed", "10x", "--seconds", "1"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    assert!(
        printed.out.contains("not played to its end: the market was stopped after 1."),
        "{}",
        printed.out
    );
}

#[test]
fn a_recording_that_is_cut_off_is_no_success() {
    let site = Site::new();
    let whole = std::fs::read(repository().join("io/capture/tests/data/ritch_excerpt.itch50.gz")).unwrap();
    let cut = site.path("cut.itch50.gz");
    std::fs::write(&cut, &whole[..whole.len() * 3 / 4]).unwrap();
    let printed = run(&["demo", "--plain", "--flow", &cut]);
    assert_eq!(printed.code, Some(1), "{}", printed.err);
    assert!(printed.err.contains("cut short"), "{}", printed.err);
    assert!(printed.out.contains("what came before was played"), "{}", printed.out);
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_at_once() {
    let flow = repository().join("io/capture/tests/data/ritch_excerpt.itch50.gz");
    let printed =
        run(&["demo", "--plain", "--flow", flow.to_str().unwrap(), "--json", "/nowhere/result.json"]);
    assert_eq!((printed.code, printed.out.as_str()), (Some(1), ""));
    assert!(printed.err.contains("cannot write --json /nowhere/result.json"), "{}", printed.err);
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let site = Site::new();
    let file = site.path("result.json");
    let (child, mut out) =
        spawn_unread(&["demo", "--plain", "--seconds", "1", "--rate", "1000", "--json", &file]);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("00:00"), "{line}");
    drop(out);
    assert_eq!(end_of(child), (Some(0), String::new()));
    assert!(
        std::fs::read_to_string(&file).unwrap().contains("\"checks\""),
        "the results are written all the same"
    );
}

#[test]
fn ctrl_c_ends_a_market_with_its_report() {
    let mut demo = spawn(&["demo", "--forever", "--plain", "--rate", "1000"]);
    demo.wait_for_line("progress", |line| line.starts_with("00:01").then_some(()));
    demo.interrupt();
    let printed = demo.join();
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    assert!(printed.out.contains("holds         books_equal"), "{}", printed.out);
    assert!(!printed.out.contains("FAILS"), "{}", printed.out);
}

#[test]
fn another_file_is_no_recording() {
    let site = Site::new();
    let file = site.write("noise.csv", "this is, no recording\n");
    assert_refused(&["demo", "--flow", &file], &["noise.csv", "LOBSTER"]);
}

#[test]
fn a_markets_journal_replays_to_the_same_state() {
    let site = Site::new();
    let folder = site.path("kept");
    let demo = ["demo", "--json", "-", "--seconds", "1", "--rate", "2000", "--journal", &folder];
    let printed = run(&demo);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    let journal = &json["journal"];
    assert_eq!(
        (journal["policy"].as_str(), journal["folder"].as_str()),
        (Some("async"), Some(folder.as_str()))
    );
    assert_eq!(journal["commands"], json["rates"]["commands"]);
    let replayed = run(&["journal", "replay", &folder, "--json", "-"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.err);
    let replayed: serde_json::Value = serde_json::from_str(&replayed.out).unwrap();
    assert_eq!(replayed["last"], journal["commands"], "{replayed}");
    assert_refused(&demo, &[&folder, "holds a session"]);
}

#[test]
fn guests_join_a_market_that_is_commanded() {
    let site = Site::new();
    let socket = site.path("demo.sock");
    let file = site.write(
        "demo.toml",
        "rate = 1000\n[order_entry]\ntest_users = ['GUEST']\n[[order_entry.user]]\nname = 'ANNA'\npassword = 'secret'\n\
         [admin]\nsocket = 'demo.sock'\ndrain = '100ms'\n",
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut demo = spawn(&["demo", "--forever", "--plain", "--config", &file]);
    let mut note = |what: &str| {
        let begin = format!("note: join: {what}");
        let note = demo.wait_for_line(what, |line| line.starts_with(&begin).then(|| line.to_owned()));
        // A live view of 80 columns has space for 43 characters of the text, beside its keys and "! ".
        let text = note.trim_start_matches("note: ");
        assert!(text.chars().count() <= 43 || what == "admin", "{text}");
    };
    ["orders", "GUEST with password 'test'; ANNA", "line A", "line B", "requests", "admin"]
        .into_iter()
        .for_each(&mut note);
    let output = run(&["admin", "--socket", &socket, "users"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    assert!(output.out.contains("GUEST") && output.out.contains("ANNA"), "{}", output.out);
    demo.wait_for_line("progress", |line| line.starts_with("00:01").then_some(()));
    assert_eq!(run(&["admin", "--socket", &socket, "drain"]).code, Some(0));
    let printed = demo.join();
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    let (_, last) = printed.out.split_once("\nEndpoints for other clients\n").unwrap();
    assert!(last.starts_with("  orders 127.0.0.1:") && last.contains("holds         books_equal"), "{last}");

    for (text, says) in [
        ("order_entry.test_users = ['MAKER']", "one of the market's own participants"),
        (
            "[[order_entry.user]]\nname = 'ANNA'\npassword = 'x'\nports = ['drop_copy']",
            "a demo has no other port than order_entry",
        ),
    ] {
        let wrong = site.write("wrong.toml", text);
        std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_refused(&["demo", "--config", &wrong], &[says]);
    }
}

//! `tickpath ticks serve` and `tickpath ticks watch` as separate processes.

use std::io::BufRead;

use serde_json::Value;
use tickpath_test_support::{REFUSING, Running};

use crate::support::{assert_refused, end_of, run, spawn, spawn_unread};

/// Starts a server on a free port; returns it with its address.
pub fn serve() -> (Running, String) {
    let mut server = spawn(&["ticks", "serve", "--listen", "127.0.0.1:0", "--rate", "1K/s"]);
    let address = server.wait_for_line("address", |line| {
        let (_, rest) = line.split_once(" at ")?;
        rest.split(';').next().map(str::to_owned)
    });
    (server, address)
}

/// Returns `Some` for a progress line of a connected watch that has received ticks.
pub fn is_live(line: &str) -> Option<()> {
    (line.contains("| live |") && !line.contains(" 0 ticks of")).then_some(())
}

#[test]
fn a_watch_ends_in_time_with_its_report() {
    let (server, address) = serve();
    let printed = run(&["ticks", "watch", &address, "--no-tui", "--for", "3s"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    assert!(!printed.out.contains('\x1b') && printed.out.contains("gaps 0 with 0 lost"), "{}", printed.out);

    let printed = run(&["ticks", "watch", &address, "--for", "3s", "--json", "-"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!((&report["ended"], &report["connected_at_end"]), (&"time_over".into(), &true.into()));
    assert!(report["counts"]["ticks"].as_u64().unwrap() > 0, "{report}");
    server.interrupt();
    let printed = server.join();
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
}

#[test]
fn ctrl_c_ends_a_watch_with_its_report() {
    let (_server, address) = serve();
    let mut watch = spawn(&["ticks", "watch", &address, "--no-tui"]);
    watch.wait_for_line("ticks", is_live);
    watch.interrupt();
    let printed = watch.join();
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    assert!(printed.out.contains("gaps 0 with 0 lost"), "{}", printed.out);
}

#[test]
fn a_watch_that_ends_disconnected_fails_with_the_reason() {
    let (server, address) = serve();
    let mut once = spawn(&["ticks", "watch", &address, "--no-tui", "--no-reconnect"]);
    let mut patient = spawn(&["ticks", "watch", &address, "--no-tui"]);
    once.wait_for_line("ticks", is_live);
    patient.wait_for_line("ticks", is_live);
    server.interrupt();
    server.join();
    let printed = once.join();
    assert_eq!(printed.code, Some(1), "{}", printed.out);
    assert_eq!(printed.err, format!("tickpath: {address}: the server stopped\n"));

    patient.wait_for_line("what happened", |line| line.starts_with("note: ").then_some(()));
    patient.interrupt();
    let printed = patient.join();
    assert_eq!(printed.code, Some(1), "{}", printed.out);
    assert!(printed.err.contains("not connected at the end"), "{}", printed.err);

    let printed = run(&["ticks", "watch", &REFUSING.to_string(), "--for", "1s", "--json", "-"]);
    assert_eq!((printed.code, printed.err.lines().count()), (Some(1), 1), "{}", printed.err);
    let report: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(report["connected_at_end"], Value::from(false));
}

#[test]
fn invalid_addresses_and_files_are_refused() {
    assert_refused(&["ticks", "watch", "9200"], &["give host and port", "ticks watch --help"]);
    assert_refused(&["ticks", "watch", "127.0.0.1:70000"], &["give host and port"]);
    assert_refused(
        &["ticks", "watch", "127.0.0.1:1", "--csv", "/nowhere/ticks.csv"],
        &["/nowhere/ticks.csv"],
    );
    assert_refused(&["ticks", "watch", "127.0.0.1:1", "--csv", "-", "--json", "-"], &["name the same file"]);
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let (_server, address) = serve();
    for (output, first) in [("--no-tui", "00:00"), ("--csv=-", "")] {
        let (child, mut out) = spawn_unread(&["ticks", "watch", &address, "--for", "3s", output]);
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(!line.is_empty() && line.starts_with(first), "{line}");
        drop(out);
        assert_eq!(end_of(child), (Some(0), String::new()), "{output}");
    }
}

//! Tests that every command ends after Ctrl-C as docs/commands.md states.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use tickpath_net::free_multicast_group;
use tickpath_test_support::{ProcessOutput, Running};

use crate::help::commands;
use crate::support::{Site, repository, spawn};

/// The end of a command after Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The command ends with its result, here exit code 0.
    Result,
    /// The command ends with exit code 130.
    Interrupted,
}

/// Returns the end that docs/commands.md states for each command or group of commands.
fn documented() -> BTreeMap<String, End> {
    let page = std::fs::read_to_string(repository().join("docs/commands.md")).unwrap();
    let mut found = BTreeMap::new();
    for (begins, end) in [("| runs until", End::Result), ("| ends when its work is done", End::Interrupted)] {
        let row = page.lines().find(|line| line.starts_with(begins)).unwrap();
        let names = row.split('|').nth(3).unwrap().split('`').skip(1).step_by(2);
        found.extend(names.map(|name| (name.to_owned(), end)));
    }
    found
}

fn end_of(documented: &BTreeMap<String, End>, command: &str) -> Option<End> {
    let mut name = command;
    loop {
        if let Some(end) = documented.get(name) {
            return Some(*end);
        }
        name = name.rsplit_once(' ')?.0;
    }
}

#[test]
fn the_page_has_every_command_and_no_other() {
    let (documented, all) = (documented(), commands());
    for command in all.iter().filter(|command| !command.is_empty()) {
        let is_group = all.iter().any(|other| other.starts_with(&format!("{command} ")));
        assert!(is_group || end_of(&documented, command).is_some(), "{command} is not on the page");
    }
    for name in documented.keys() {
        assert!(all.contains(name), "there is no command {name}");
    }
}

/// Interrupts a command once its signal handler is installed, and returns its output.
fn interrupted(running: Running) -> ProcessOutput {
    running.wait_for_interrupt_handler();
    running.interrupt();
    running.join()
}

#[track_caller]
fn check(command: &str, printed: &ProcessOutput) {
    let expected = match end_of(&documented(), command).unwrap() {
        End::Result => Some(0),
        End::Interrupted => Some(130),
    };
    assert_eq!(printed.code, expected, "{command}:\n{}\n{}", printed.out, printed.err);
}

#[test]
fn an_interrupted_service_ends_with_its_result() {
    let site = Site::new();
    let mut demo = spawn(&["demo", "--forever", "--plain", "--rate", "1000"]);
    demo.wait_for_line("progress", |line| line.starts_with("00:01").then_some(()));
    check("demo", &interrupted(demo));

    let (venue, order_entry, retransmission) = site.start_venue();
    let file = site.trader("TEST01", 1, &order_entry, &retransmission);
    let mut trader = spawn(&["trader", "--config", &file]);
    trader.wait_for_line("the login", |line| line.starts_with("logged in").then_some(()));
    let printed = interrupted(trader);
    check("trader", &printed);
    let last = printed.out.lines().last().unwrap();
    assert_eq!(last, "stopped: as requested; no order is open", "{}", printed.out);
    check("exchange", &interrupted(venue));

    let (folder, group) = (site.path("shm"), free_multicast_group().unwrap());
    let file = site.write(
        "feed.toml",
        &format!("[outputs]\nsegment = 'feed'\nfolder = '{folder}'\n[[channel]]\nprotocol = 'itch'\nline_a = '{group}'\n"),
    );
    let mut feed = spawn(&["feed", "--config", &file]);
    feed.wait_for_line("the segment", |line| line.contains("feed").then_some(()));
    let mut watch = spawn(&["shm", "watch", "feed", "--folder", &folder]);
    watch.wait_for_line("the first look", |_| Some(()));
    check("shm watch", &interrupted(watch));
    check("feed", &interrupted(feed));

    let (server, address) = crate::ticks::serve();
    let mut watch = spawn(&["ticks", "watch", &address, "--no-tui"]);
    watch.wait_for_line("ticks", crate::ticks::is_live);
    check("ticks watch", &interrupted(watch));
    check("ticks serve", &interrupted(server));

    let name = format!("interrupts-{}", std::process::id());
    let _segment = crate::gateway::Removed(name.clone());
    let file = crate::gateway::config(&site, &name);
    let mut gateway = spawn(&["gateway", "--config", &file]);
    gateway.wait_for_line("its endpoints", |line| line.contains("kill switch").then_some(()));
    check("gateway", &interrupted(gateway));
}

/// Omits `replay`, `convert` and `journal`, which have separate tests, and commands that are too short to
/// interrupt.
#[test]
fn an_interrupted_task_has_the_interrupted_exit_code() {
    let site = Site::new();
    let (day, capture) = (site.path("day.itch"), site.path("day.pcap"));
    let (day, capture) = (day.as_str(), capture.as_str());
    // A pipe without a writer.
    let pipe = site.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (command, args) in [
        ("backtest", &["backtest", &pipe, "--symbols", "A"][..]),
        ("sim", &["sim", "--minutes", "60"]),
        ("lab bench", &["lab", "bench", "--quick", "--rounds", "100000", "--filter", "stamp"]),
        (
            "generate itch",
            &[
                "generate",
                "itch",
                "--messages",
                "10000000000",
                "--symbols",
                "10",
                "--live",
                "1000",
                "-o",
                day,
            ],
        ),
        ("generate xdp", &["generate", "xdp", "--messages", "1000000000", "-o", capture]),
        ("shell", &["shell", "--url", "ws://127.0.0.1:9/", "-c", "wait 10m"]),
    ] {
        check(command, &interrupted(spawn(args)));
    }
    for (command, args) in [
        ("admin hash-password", ["admin", "hash-password"]),
        ("gateway hash-password", ["gateway", "hash-password"]),
    ] {
        let mut asking = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        asking.args(args).stdin(Stdio::piped());
        // The command waits for a line of input and has no signal handler to wait for.
        let asking = Running::spawn(asking);
        if !asking.ignores_interrupt() {
            asking.interrupt();
            check(command, &asking.join());
        }
    }
}

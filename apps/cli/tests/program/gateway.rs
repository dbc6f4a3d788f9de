//! Tests of `tickpath gateway`: start, commands, stop, and printing and replay of the log.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{Site, assert_refused, run, spawn};

/// Writes the configuration of a gateway whose venue is unreachable, so that the gateway keeps reconnecting.
pub fn config(site: &Site, name: &str) -> String {
    let text = format!(
        "name = '{name}'\nmetrics_listen_address = '127.0.0.1:0'\n\
         client_listen_address = '{}'\nadmin_listen_address = '{}'\n[loop]\nidle = 'park'\n\
         [venue]\nws_uri = 'ws://127.0.0.1:9/'\n[event_log]\nfolder = '{}'\n\
         [accounts.A1]\nlogin = 'x'\nsecret = 'test'\n\
         [users.u]\npassword = 'test'\naccounts = ['A1']\n",
        site.path("g.sock"),
        site.path("g.admin"),
        site.path("logs")
    );
    site.write("gateway.toml", &text)
}

/// A segment, by name, in the folder that all gateways of this machine share. It is removed on drop.
pub struct Removed(pub String);

impl Drop for Removed {
    fn drop(&mut self) {
        run(&["shm", "reclaim", &self.0]);
    }
}

/// Returns the only file below `folder`, in nested folders of one entry each.
fn only_file(folder: &str) -> String {
    let mut path = std::path::PathBuf::from(folder);
    while path.is_dir() {
        let mut entries = std::fs::read_dir(&path).unwrap();
        let entry = entries.next().unwrap().unwrap();
        assert!(entries.next().is_none(), "more than one in {}", path.display());
        path = entry.path();
    }
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_gateway_executes_commands_and_leaves_a_log() {
    let site = Site::new();
    let name = format!("program-{}", std::process::id());
    // Dropped after the gateway, because later variables are dropped first.
    let _segment = Removed(name.clone());
    let file = config(&site, &name);
    let mut gateway = spawn(&["gateway", "--config_file", &file, "--loop_timer_freq", "1us"]);
    let metrics = gateway.wait_for_line("an address of metrics", |line| {
        line.split_once("http://").map(|(_, rest)| rest.trim_end_matches("/metrics").to_owned())
    });
    let socket = site.path("g.admin");
    let output = run(&["gateway", "status", "--config", &file]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    for words in [
        &format!("{name}: disconnected; no order is accepted: no account is connected"),
        "deribit at ws://127.0.0.1:9/; orders over the WebSocket",
        "0 of 1 ready, 0 open orders",
        "A1         has no connection",
        "WebSocket orders",
        "clients      0",
    ] {
        assert!(output.out.contains(words), "{words} in\n{}", output.out);
    }
    // The gateway's name alone selects it.
    let output = run(&["gateway", "status", &name, "--json", "-"]);
    let answer: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    let state = (&answer["state"], &answer["is_trading"], &answer["accounts_ready"], &answer["clients"]);
    let none = serde_json::Value::from(0);
    assert_eq!(state, (&"disconnected".into(), &false.into(), &none, &none), "{answer:#}");
    assert_eq!(answer["connections"][1]["name"], "A1", "{answer:#}");
    let output = run(&["gateway", "kill", "--socket", &socket, "--json", "-"]);
    assert!(output.out.contains("\"is_killed\": true"), "{}", output.out);
    assert_refused(&["gateway", "release", "--socket", &socket, "--confirm", "yes"], &["say release", &name]);
    assert_refused(
        &["gateway", "limits", &name, "A9", "none", "--socket", &socket],
        &["no account A9", "A1"],
    );
    // With --config, the gateway's name may be given or left out.
    let output = run(&["gateway", "limits", "--config", &file, &name, "A1", "order_size_max=11"]);
    assert!(output.out.contains("limits: an order up to 11, as published"), "{}{}", output.out, output.err);
    let output = run(&["gateway", "limits", "--config", &file, "A1", "order_size_max=10"]);
    assert!(output.out.contains("an order up to 10"), "{}{}", output.out, output.err);
    assert_refused(&["gateway", "limits", "--config", &file, "other", "A1", "none"], &["leave the name out"]);
    assert_refused(&["gateway", "limits", "A1", "none"], &["say which gateway"]);
    assert_refused(&["gateway", "limits", &name, "A1"], &["limits [NAME] ACCOUNT KEY=VALUE"]);

    let mut stream = TcpStream::connect(metrics.trim()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    for family in ["profile_nanoseconds_bucket", "event_log_records_total", "process_threads"] {
        assert!(page.contains(&format!("tickpath_gateway_{family}{{gateway=\"{name}\"")), "{page}");
    }
    assert!(page.contains(&format!("tickpath_gateway_killed{{gateway=\"{name}\"}} 1")), "{page}");
    // A second gateway of the same name is refused: the first uses its socket and its segment.
    assert_refused(&["gateway", "--config", &file], &[]);

    gateway.interrupt();
    let printed = gateway.join();
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_refused(&["gateway", "status", "--config", &file], &["no gateway answers", "is it running"]);

    let log = only_file(&site.path("logs"));
    let shown = run(&["gateway", "log", &log, "--kind", "admin"]);
    assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""), "{}", shown.out);
    assert!(shown.out.contains("kill") && shown.out.contains("limits 0 1000000000 -1 -1"), "{}", shown.out);
    let shown = run(&["gateway", "log", &log, "--json"]);
    assert!(shown.out.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{}", shown.out);
    let replayed = run(&["gateway", "replay", &log]);
    assert_eq!((replayed.code, replayed.err.as_str()), (Some(0), ""), "{}", replayed.out);
    assert!(replayed.out.contains("the same, byte for byte"), "{}", replayed.out);

    // The kill switch stays on in the next run, until it is released.
    let mut gateway = spawn(&["gateway", "--config", &file]);
    gateway.wait_for_line("its endpoints", |line| line.contains("metrics").then_some(()));
    let output = run(&["gateway", "status", "--config", &file]);
    assert!(output.out.contains("the kill switch is on"), "{}", output.out);
    let output = run(&["gateway", "release", "--config", &file, "--confirm", &name]);
    assert!(output.out.contains("no account is connected"), "{}{}", output.out, output.err);
    gateway.interrupt();
    assert_eq!(gateway.join().code, Some(0));
}

#[test]
fn unusable_arguments_are_one_error_line() {
    let site = Site::new();
    let file = config(&site, "g");
    let no_log = site.write("no.log", "no log");
    let long = site.write("long.log", &"x".repeat(1_000));
    let flags = site.write("flags", "--name=x\n--nmae=y\n");
    for (args, words) in [
        (&["gateway"][..], &["--config FILE"][..]),
        (&["gateway", "--config", "none.toml"], &["none.toml"]),
        (&["gateway", "--config", &file, "--ws_uri", "http://x/"], &["venue.ws_uri"]),
        (
            &["gateway", "--config", &file, "--ws-uri", "wss://www.deribit.com/ws/api/v2"],
            &["production = true"],
        ),
        (&["gateway", "kill", "--config", &file, "--dry-run"], &["unexpected argument '--dry-run'"]),
        (&["gateway", "--dry-run", "kill", "--config", &file], &["--dry-run", "leave it out"]),
        (&["gateway", "--ws_uri", "ws://127.0.0.1:1/", "status", "nowhere"], &["--ws-uri", "leave it out"]),
        (&["gateway", "replay", &long, "--config", &file], &["--config", "leave it out"]),
        (&["gateway", "--flagfile", &flags], &["flags:2", "no flag --nmae"]),
        (&["gateway", "status", "nowhere"], &["nowhere.admin.sock", "is it running"]),
        (&["gateway", "kill", "--name", "nowhere"], &["nowhere.admin.sock", "is it running"]),
        (&["gateway", "log", &no_log], &["no.log", "no log of a gateway"]),
        (&["gateway", "log", &long], &["long.log", "no log of a gateway"]),
        (&["gateway", "log", &long, "--kind", "x"], &["no kind x", "venue-in"]),
        (&["gateway", "replay", &long], &["long.log"]),
    ] {
        assert_refused(args, words);
    }
}

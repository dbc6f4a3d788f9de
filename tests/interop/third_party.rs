//! Scenarios of a running venue, each with one third-party client.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tickpath_net::free_multicast_group;
use tickpath_test_support::{ProcessOutput, Running};
use tickpath_test_venue::sample;

use crate::support::{run, spawn};
use crate::{java, python};

/// Time limit for `cryptofeed_client.py`, which runs for a minute and then ends.
const CRYPTOFEED_PATIENCE: Duration = Duration::from_secs(150);
/// Line by which the client asks this test to stop or kill the venue.
const READY: &str = "ready for the end of the venue";

#[test]
fn a_third_party_client_trades_reconnects_and_receives_the_end_of_session() {
    let Some(site) = Site::new() else { return };
    let venue = site.start_venue("127.0.0.1:0", "127.0.0.1:0", "off");
    let mut client = site.start_client(&venue, "stopped", Stdio::null());
    client.wait_for_line(READY, |line| (line == READY).then_some(()));
    venue.process.interrupt();
    assert_passed(client);
    let venue = venue.process.join();
    // The venue warns that without a journal all state is lost.
    assert_eq!(venue.code, Some(0), "{}\n{}", venue.out, venue.err);
}

#[test]
fn a_third_party_client_recovers_everything_after_a_kill() {
    let Some(site) = Site::new() else { return };
    let first = site.start_venue("127.0.0.1:0", "127.0.0.1:0", "async");
    let (input, mut cue) = std::io::pipe().unwrap();
    let mut client = site.start_client(&first, "killed", input.into());
    client.wait_for_line(READY, |line| (line == READY).then_some(()));
    let Venue { process, order_entry, retransmission } = first;
    drop(process);
    let second = site.start_venue(&order_entry, &retransmission, "async");
    writeln!(cue, "restarted").unwrap();
    assert_passed(client);
    second.process.interrupt();
    let second = second.process.join();
    assert_eq!((second.code, second.err.as_str()), (Some(0), ""), "{}", second.out);
}

#[test]
fn third_party_parsers_read_a_generated_day() {
    let Some(classpath) = java::classpath() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (day, summary) = (path("day.itch"), path("day.json"));
    let settings = ["--messages", "20000", "--symbols", "25", "--live", "1000"];
    let generated =
        run(&[["generate", "itch", "-o", &day, "--json", &summary].as_slice(), &settings].concat());
    assert_eq!((generated.code, generated.err.as_str()), (Some(0), ""));
    let summary: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    let expected: BTreeMap<String, u64> = summary["by_type"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(kind, of_kind)| (kind.clone(), of_kind["messages"].as_u64().unwrap()))
        .collect();

    let read = Running::spawn(java::command(classpath, "ItchFile", &[&day])).join();
    assert_eq!((read.code, read.err.as_str()), (Some(0), ""), "{}", read.out);
    let found: BTreeMap<String, u64> = read
        .out
        .lines()
        .map(|line| {
            let (kind, count) = line.split_once(' ').unwrap();
            (kind.to_owned(), count.parse().unwrap())
        })
        .collect();
    assert_eq!(found, expected);
    assert!(found.len() > 10 && found.values().sum::<u64>() == 20_000, "{found:?}");
}

#[test]
fn deribit_clients_trade_over_http_and_websockets() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (venue, address) = start_deribit_web(folder.path(), "ws");
    assert_passed(Running::spawn(python::command(python, "deribit_client.py", &[&address])));
    stop_deribit(venue);
}

#[test]
fn every_unified_ccxt_call_is_answered() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (venue, address) = start_deribit_web(folder.path(), "ws");
    assert_passed(Running::spawn(python::command(python, "ccxt_unified.py", &[&address])));
    stop_deribit(venue);
}

/// Runs for a minute, in which each side of the book is repeatedly empty.
#[test]
fn cryptofeed_follows_a_market_over_tls() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made =
        python::command(python, "certificate.py", &[folder.path().to_str().unwrap()]).status().unwrap();
    assert!(made.success());
    let (venue, address) = start_deribit_web(folder.path(), "wss");
    let args = [address.as_str(), &path("ca.pem"), "60"];
    let client = Running::spawn(python::command(python, "cryptofeed_client.py", &args));
    let client = client.join_within(CRYPTOFEED_PATIENCE);
    println!("{}", stop_deribit(venue)); // shows the venue's reasons if the client failed
    assert_output(client);
}

#[test]
fn quickfixj_trades_by_fix() {
    let Some(classpath) = java::classpath() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut venue = start_deribit(folder.path());
    let address = venue.wait_for_line("Deribit FIX", |line| {
        line.trim_start().strip_prefix("Deribit FIX")?.split_whitespace().next().map(str::to_owned)
    });
    assert_passed(Running::spawn(java::command(classpath, "FixClient", &[&address])));
    stop_deribit(venue);
}

/// Starts the venue of the sample configuration; returns it and its WebSocket URL. With the scheme `wss` the
/// venue uses TLS and the certificate in `folder`.
fn start_deribit_web(folder: &Path, scheme: &str) -> (Running, String) {
    let tls = "tls = { certificate = 'certificate.pem', private_key = 'key.pem' }\n";
    let mut venue = start_deribit_with(folder, if scheme == "wss" { tls } else { "" });
    let address = venue.wait_for_line("Deribit", |line| {
        let url = line.trim_start().strip_prefix("Deribit")?.trim_start();
        let address = url.strip_prefix(scheme)?.strip_prefix("://")?;
        address.split('/').next().map(str::to_owned)
    });
    (venue, address)
}

fn stop_deribit(venue: Running) -> String {
    venue.interrupt();
    let venue = venue.join();
    assert_eq!((venue.code, venue.err.as_str()), (Some(0), ""), "{}", venue.out);
    assert!(!venue.out.contains("not written down"), "{}", venue.out);
    venue.out
}

fn start_deribit(folder: &Path) -> Running {
    start_deribit_with(folder, "")
}

/// Starts the venue of the sample configuration, with its journal in `folder`, and its Deribit front at free
/// addresses and with further `settings`.
fn start_deribit_with(folder: &Path, settings: &str) -> Running {
    let front = format!("[deribit]\n{settings}matching_rate = 1000\nmatching_burst = 1000\n");
    let config =
        sample("deribit.toml").replace("# fix_address", "fix_address").replace("[deribit]\n", &front);
    std::fs::write(folder.join("deribit.toml"), config).unwrap();
    // Give the file's name without a path, as a user does in the folder of the file.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(["exchange", "--config", "deribit.toml"]).current_dir(folder).stdin(Stdio::null());
    Running::spawn(command)
}

/// The folder of a venue of two symbols, and the parameters of the client.
struct Site {
    classpath: &'static str,
    folder: tempfile::TempDir,
    lines: [String; 2],
}

struct Venue {
    process: Running,
    order_entry: String,
    retransmission: String,
}

impl Site {
    /// `None` without Java.
    fn new() -> Option<Site> {
        let classpath = java::classpath()?;
        let folder = tempfile::tempdir().unwrap();
        // Two symbols, so that the expected stock locate is not correct by chance.
        let instruments = "[[instrument]]\nsymbol = 'OTHER'\nreference_price = '25.00'\n\
                           [[instrument]]\nsymbol = 'TRADED'\nreference_price = '100.00'\n";
        std::fs::write(folder.path().join("instruments.toml"), instruments).unwrap();
        let lines = [(); 2].map(|()| free_multicast_group().unwrap().to_string());
        Some(Site { classpath, folder, lines })
    }

    fn start_venue(&self, order_entry: &str, retransmission: &str, journal: &str) -> Venue {
        let [line_a, line_b] = &self.lines;
        let config = format!(
            "session = 'INTEROP'\ninstruments = 'instruments.toml'\njournal.policy = '{journal}'\n\
             [order_entry]\naddress = '{order_entry}'\ntest_users = ['TEST01', 'TEST02']\n\
             [market_data]\nline_a = '{line_a}'\nline_b = '{line_b}'\nretransmission = '{retransmission}'\n\
             heartbeat = '100ms'\n"
        );
        let path = self.folder.path().join("exchange.toml");
        std::fs::write(&path, config).unwrap();
        let mut process = spawn(&["exchange", "--config", path.to_str().unwrap()]);
        let mut address = |name: &str| {
            process.wait_for_line(name, |line| {
                line.trim_start().strip_prefix(name)?.split_whitespace().next().map(str::to_owned)
            })
        };
        let (order_entry, retransmission) = (address("order entry"), address("retransmission"));
        Venue { process, order_entry, retransmission }
    }

    /// Starts the client. `ending` is the venue's end, `stopped` or `killed`; `input` announces the restart.
    fn start_client(&self, venue: &Venue, ending: &str, input: Stdio) -> Running {
        let Venue { order_entry, retransmission, .. } = venue;
        let [line_a, line_b] = &self.lines;
        let args =
            [order_entry, retransmission, line_a, line_b, "127.0.0.1", "INTEROP", "TRADED", "2", ending];
        let mut command = java::command(self.classpath, "Client", &args);
        command.stdin(input);
        Running::spawn(command)
    }
}

fn assert_passed(client: Running) {
    assert_output(client.join());
}

fn assert_output(client: ProcessOutput) {
    assert_eq!(client.code, Some(0), "{}\n{}", client.out, client.err);
    assert!(client.out.lines().last().unwrap().ends_with("steps passed"), "{}", client.out);
}

//! Tests of `tickpath admin` with a running venue.

use std::path::Path;

use tickpath_test_support::Running;

use crate::support::{Site, assert_refused, run, tickpath};

/// Starts a venue with an admin socket; returns the venue and the socket's path.
fn start(site: &Site) -> (Running, String) {
    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    site.write("exchange.toml", &format!("{config}[admin]\nsocket = 'venue.sock'\n"));
    let (venue, ..) = site.start_venue();
    (venue, site.path("venue.sock"))
}

fn json(socket: &str, command: &[&str]) -> serde_json::Value {
    let printed = run(&[&["admin", "--socket", socket, "--json", "-"], command].concat());
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{command:?}: {}", printed.out);
    serde_json::from_str(&printed.out).unwrap()
}

#[test]
fn a_venue_answers_commands_and_drains() {
    let site = Site::new();
    let (mut venue, socket) = start(&site);
    assert_eq!(json(&socket, &["status"])["users"], 2);
    let text = run(&["admin", "status", "--socket", &socket]).out;
    for field in [
        "logins",
        "is_draining",
        "retransmit_requests",
        "glimpse_slow",
        "archive_errors",
        "drop_copy_rewinds",
    ] {
        assert!(text.split_whitespace().any(|word| word == field), "{field}: {text}");
    }
    assert_eq!(json(&socket, &["status"])["glimpse_connections"], 0);
    assert_eq!(json(&socket, &["kill", "test01"])["commands"], 1);
    let users = run(&["admin", "--socket", &socket, "users"]).out;
    let [header, first, _] = users.lines().collect::<Vec<_>>()[..] else { panic!("{users}") };
    assert_eq!(first.len(), header.len(), "columns: {users}");
    let states: Vec<&str> =
        users.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(states, ["killed", "away"], "{users}");
    assert_eq!(json(&socket, &["unkill", "TEST01"])["ok"], true);
    let done = run(&["admin", "--socket", &socket, "halt", "ONLY"]);
    assert_eq!((done.code, done.out.trim()), (Some(0), "done: 1 command in the log"));
    venue.wait_for_line("command", |line| {
        (line.starts_with("admin: user id") && line.ends_with("halt ONLY")).then_some(())
    });

    assert_refused(&["admin", "--socket", &socket, "kill", "ABSENT"], &["kill ABSENT", "no user 'ABSENT'"]);
    assert_refused(&["admin", "--socket", &socket, "disconnect", "TEST01"], &["not connected"]);
    assert_refused(&["admin", "--socket", &socket, "resume", "WHAT"], &["no instrument 'WHAT'"]);

    assert_eq!(json(&socket, &["phase", "only", "auction"])["commands"], 2);
    let status = json(&socket, &["status"]);
    assert_eq!(status["phases"], serde_json::json!({ "ONLY": "auction" }));
    assert_eq!(json(&socket, &["phase", "all", "open"])["ok"], true);
    assert_eq!(json(&socket, &["price-band", "all", "5%"])["commands"], 1);
    assert_eq!(json(&socket, &["limits", "TEST01", "open-orders=5", "messages=100/10"])["commands"], 2);
    assert_eq!(json(&socket, &["instrument", "add", "more", "25.00", "tick=0.05"])["commands"], 2);
    let more = "[[instrument]]\nsymbol = 'MOST'\nreference_price = '7.00'\nlot_size = 10\n";
    let added =
        run(&["admin", "--socket", &socket, "instrument", "add", "--file", &site.write("more.toml", more)]);
    assert_eq!((added.code, added.out.trim()), (Some(0), "done: 2 commands in the log"), "{}", added.err);
    assert_eq!(json(&socket, &["instrument", "suspend", "MORE"])["commands"], 1);
    let text = run(&["admin", "status", "--socket", &socket]).out;
    let rows: Vec<Vec<&str>> =
        text.lines().skip(1).take(3).map(|line| line.split_whitespace().collect()).collect();
    let row = |symbol, phase| vec![symbol, phase, "-", "0", "0"];
    assert_eq!(rows, [row("MORE", "halted"), row("MOST", "halted"), row("ONLY", "trading")], "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(json(&socket, &["disallow", "TEST01", "MORE"])["commands"], 1);
    assert_eq!(json(&socket, &["allow", "test01", "more"])["commands"], 1);
    assert_eq!(json(&socket, &["allow", "TEST01", "MORE"])["commands"], 0);
    assert_refused(&["admin", "--socket", &socket, "allow", "TEST01", "WHAT"], &["no instrument 'WHAT'"]);
    assert_refused(&["admin", "--socket", &socket, "allow", "ABSENT", "MORE"], &["no user 'ABSENT'"]);
    assert_refused(
        &["admin", "--socket", &socket, "break", "77", "consent"],
        &["break 77 consent", "no such execution"],
    );
    assert_refused(
        &["admin", "--socket", &socket, "phase", "ONLY", "lunch"],
        &["no phase 'lunch'", "pre-open"],
    );
    assert_refused(
        &["admin", "--socket", &socket, "phase", "ONLY", "start"],
        &["whole venue", "phase all start"],
    );
    assert_refused(
        &["admin", "--socket", &socket, "phase", "all", "start"],
        &["started already", "end-of-day"],
    );
    assert_refused(&["admin", "--socket", &socket, "limits", "TEST01", "size=5"], &["no limit 'size'"]);
    assert_refused(&["admin", "--socket", &socket, "price-band", "ONLY", "wide"], &["price-band ONLY wide"]);
    assert_refused(&["admin", "--socket", &socket, "instrument", "add", "ONLY", "1.00"], &["'ONLY' already"]);
    assert_refused(&["admin", "--socket", &socket, "instrument", "add", "LESS"], &["REFERENCE_PRICE"]);
    assert!(json(&socket, &["end-of-day"])["commands"].as_u64().unwrap() > 4);
    assert_refused(&["admin", "--socket", &socket, "end-of-day"], &["no day has started"]);

    // No client is connected, so the draining venue stops at once.
    assert_eq!(run(&["admin", "--socket", &socket, "drain"]).code, Some(0));
    let venue = venue.join();
    assert_eq!((venue.code, venue.err.as_str()), (Some(0), ""), "{}", venue.out);
    assert!(venue.out.contains("drained"), "{}", venue.out);
    assert!(!Path::new(&socket).exists());
    assert_refused(&["admin", "--socket", &socket, "status"], &[&socket, "is it running"]);
}

/// Stops the venue; returns its output.
fn stop(venue: Running) -> String {
    venue.interrupt();
    let printed = venue.join();
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
    printed.out
}

#[test]
fn a_restarted_venue_keeps_commands_and_reads_its_changed_files() {
    let site = Site::new();
    let (venue, socket) = start(&site);
    assert_eq!(json(&socket, &["limits", "TEST01", "qty=10", "messages=100/10"])["commands"], 2);
    assert_eq!(json(&socket, &["disallow", "TEST02", "ONLY"])["commands"], 1);
    stop(venue);

    let listed = std::fs::read_to_string(site.path("instruments.toml")).unwrap();
    let more = "[[instrument]]\nsymbol = 'MORE'\nreference_price = '7.00'\n";
    site.write("instruments.toml", &(listed.clone() + more));
    let (venue, ..) = site.start_venue();
    let phases = &json(&socket, &["status"])["phases"];
    assert_eq!(*phases, serde_json::json!({ "ONLY": "trading", "MORE": "trading" }));
    let output = stop(venue);
    for line in [
        "instrument MORE is new in the file and is added",
        "user TEST01: messages=100/10 as commanded, and not none as the file says",
        "user TEST01: qty=10 as commanded, and not none as the file says",
        "user TEST02 may not trade ONLY as commanded",
    ] {
        assert!(output.lines().any(|output| output == line), "no '{line}' in {output}");
    }

    let config = site.path("exchange.toml");
    site.write("instruments.toml", more);
    assert_refused(&["exchange", "--config", &config], &["lacks", "session: ONLY;", "--new-session"]);
    site.write("instruments.toml", &(more.to_owned() + &listed));
    assert_refused(&["exchange", "--config", &config], &["MORE is at place 1", "that of ONLY"]);
    let changed = listed.clone() + more + "lot_size = 10\n";
    site.write("instruments.toml", &changed);
    assert_refused(&["exchange", "--config", &config], &["MORE has changed", "lot_size was 1 and is 10"]);
}

/// Returns the hash that `tickpath admin hash-password` prints for a password.
fn hash(password: &str) -> String {
    let output = tickpath().args(["admin", "hash-password"]).write_stdin(password).output().unwrap();
    let hash = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && hash.starts_with("$argon2id$v=19$"), "{hash}");
    hash.trim().to_owned()
}

#[test]
fn a_user_added_at_run_time_has_its_limits_after_a_restart() {
    let site = Site::new();
    let (mut venue, socket) = start(&site);
    let none = run(&["admin", "--socket", &socket, "reload-users"]);
    assert_eq!((none.code, none.out.trim()), (Some(0), "no user is new in the venue's configuration"));
    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    let user = |name: &str| {
        format!("{config}[[order_entry.user]]\nname = '{name}'\npassword_hash = '{}'\n", hash("secret\n"))
    };
    site.write("exchange.toml", &user("test01"));
    assert_refused(&["admin", "--socket", &socket, "reload-users"], &["'test01' is named twice"]);
    site.write("exchange.toml", &user("SEVENCH"));
    assert_refused(&["admin", "--socket", &socket, "reload-users"], &["'SEVENCH'", "1 to 6 ASCII"]);
    site.write("exchange.toml", &user("DORA"));
    let added = run(&["admin", "--socket", &socket, "reload-users"]);
    assert_eq!(
        (added.code, added.out.trim()),
        (Some(0), "added DORA: 1 command in the log"),
        "{}",
        added.err
    );
    venue.wait_for_line("command", |line| line.ends_with("reload-users: DORA").then_some(()));
    assert_eq!(json(&socket, &["limits", "dora", "messages=100/10", "qty=500"])["commands"], 2);

    let shown = |socket: &str| -> Vec<String> {
        let text = run(&["admin", "--socket", socket, "users"]).out;
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
        text.lines()
            .find(|line| line.starts_with("DORA"))
            .unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    };
    let limits = ["DORA", "away", "0", "0", "0", "100/10", "-", "500", "-"];
    assert_eq!(shown(&socket), limits);
    stop(venue);
    let (venue, ..) = site.start_venue();
    assert_eq!(shown(&socket), limits, "as commanded");
    stop(venue);
    // The journal has the user, so the venue refuses a configuration without the user.
    site.write("exchange.toml", &config);
    assert_refused(
        &["exchange", "--config", &site.path("exchange.toml")],
        &["TEST01, TEST02, DORA: keep them"],
    );
}

#[test]
fn a_password_hashed_from_standard_input_is_accepted() {
    let hash = hash("secret\n");
    let site = Site::new();
    let venue = "instruments = 'instruments.toml'\n[[order_entry.user]]\nname = 'ANNA'\npassword_hash = ";
    let good = site.write("good.toml", &format!("{venue}'{hash}'\n"));
    let checked = run(&["config", "check", &good]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    let shown = run(&["config", "show", &good]);
    assert!(shown.out.contains(&hash), "{}", shown.out);
    let bad = site.write("bad.toml", &format!("{venue}'secret'\n"));
    assert_refused(&["config", "check", &bad], &["ANNA", "tickpath admin hash-password"]);
}

#[test]
fn missing_parts_are_named() {
    assert_refused(&["admin", "status"], &["--socket PATH"]);
    assert_refused(&["admin", "hash-password"], &["1 to 10 ASCII characters", "standard input"]);
    let long = tickpath().args(["admin", "hash-password"]).write_stdin("elevenchars\n").output().unwrap();
    assert_eq!(long.status.code(), Some(1));
    let site = Site::new();
    let (venue, socket) = start(&site);
    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    let second = site.write("second.toml", &format!("{config}\n[journal]\nfolder = 'second'\n"));
    assert_refused(&["exchange", "--config", &second], &[&socket, "served by a running program"]);
    venue.interrupt();
    assert_eq!(venue.join().code, Some(0));
}

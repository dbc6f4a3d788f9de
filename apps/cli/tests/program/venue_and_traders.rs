//! `tickpath exchange` and `tickpath trader` as separate processes.

use std::io::BufRead;

use tickpath_test_support::{REFUSING, Signal};

use crate::support::{Site, assert_refused, end_of, run, spawn, spawn_unread};

/// Returns the number before a word: 7 for `7 fills`.
fn number_before(line: &str, word: &str) -> Option<u64> {
    let end = line.find(word)?;
    line[..end].split_whitespace().last()?.parse().ok()
}

/// Returns the final position in instrument `ONLY` from a trader's report.
fn position(report: &str) -> i64 {
    let line = report.lines().find(|line| line.trim_start().starts_with("ONLY")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn two_traders_trade_at_a_venue_and_all_end_at_ctrl_c() {
    let site = Site::new();
    let (mut venue, order_entry, retransmission) = site.start_venue();
    let start =
        |user, seed| spawn(&["trader", "--config", &site.trader(user, seed, &order_entry, &retransmission)]);
    let (mut first, mut second) = (start("TEST01", 1), start("TEST02", 2));
    for trader in [&mut first, &mut second] {
        trader.wait_for_line("trade", |line| {
            (line.starts_with("logged in") && number_before(line, " fills")? > 0).then_some(())
        });
    }
    // Stop the traders one after the other, so that the second one is alone at the end.
    first.interrupt();
    let first = first.join();
    second.interrupt();
    let second = second.join();
    for printed in [&first, &second] {
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
        assert!(printed.out.contains("stopped: as requested; no order is open"), "{}", printed.out);
        assert!(printed.out.contains("tick_to_trade"), "{}", printed.out);
    }
    assert_eq!(position(&first.out) + position(&second.out), 0, "what one bought the other sold");

    venue.interrupt();
    venue.wait_for_line("last line", |line| line.starts_with("2 logins, 0 refused").then_some(()));
    let venue = venue.join();
    assert_eq!((venue.code, venue.err.as_str()), (Some(0), ""), "{}", venue.out);
    assert!(venue.out.contains("venue_response"), "{}", venue.out);
}

/// The only trader is a market maker, so the background flow must be the counterparty of its fills.
#[test]
fn background_flow_trades_and_leaves_no_orders() {
    let site = Site::new();
    let file = site.path("exchange.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_refused(
        &["exchange", "--config", &file, "--flow"],
        &["background flow needs the user 'FLOW'", "order_entry.test_users"],
    );
    site.write("exchange.toml", &text.replace("'TEST02'", "'TEST02', 'FLOW'"));
    assert_refused(&["exchange", "--config", &file, "--flow", "0"], &["background_flow.rate", "1 to 100000"]);
    let executions = |line: &str| number_before(line.contains("logins").then_some(line)?, " executions");
    // Run the venue three times with one journal, the last time without the flow. The flow must continue the
    // order numbers of its user and leave no open order.
    for flow in [&["--flow", "500"][..], &["--crowd"], &[]] {
        let args = [&["exchange", "--config", file.as_str()][..], flow].concat();
        let mut venue = spawn(&args);
        let mut address = |name: &str| {
            venue.wait_for_line(name, |line| {
                line.trim_start().strip_prefix(name)?.split_whitespace().next().map(str::to_owned)
            })
        };
        let (order_entry, retransmission) = (address("order entry"), address("retransmission"));
        if let Some(rate) = flow.get(1).or(flow.first().map(|_| &"1,000")) {
            let flow_line = venue.wait_for_line("the flow", |line| {
                line.trim_start().starts_with("background flow").then(|| line.to_owned())
            });
            assert!(flow_line.contains(&format!("{rate} new orders a second as user FLOW")), "{flow_line}");
            let config = site.trader("TEST01", 1, &order_entry, &retransmission);
            let maker = std::fs::read_to_string(&config).unwrap().replace("'random'", "'maker'");
            std::fs::write(&config, maker).unwrap();
            let mut maker = spawn(&["trader", "--config", &config]);
            maker.wait_for_line("a fill", |line| (number_before(line, " fills")? > 0).then_some(()));
            maker.interrupt();
            let printed = maker.join();
            assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
        }
        venue.interrupt();
        let printed = venue.join();
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
        assert_eq!(printed.out.lines().rev().find_map(executions).unwrap() > 0, !flow.is_empty());
    }
    let left = run(&["journal", "replay", &site.path("journal"), "--json", "-"]);
    let left: serde_json::Value = serde_json::from_str(&left.out).unwrap();
    assert_eq!(left["open_orders"], 0, "{left:#}");
}

#[test]
fn a_restarted_trader_trades_and_reports_unknown_state() {
    let site = Site::new();
    let (venue, order_entry, retransmission) = site.start_venue();
    let config = site.trader("TEST01", 1, &order_entry, &retransmission);
    for is_restart in [false, true] {
        let mut trader = spawn(&["trader", "--config", &config]);
        trader.wait_for_line("trade", |line| {
            (line.starts_with("logged in") && number_before(line, " fills")? > 0).then_some(())
        });
        trader.interrupt();
        let printed = trader.join();
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{}", printed.out);
        let note = "TEST01 has used this session before: orders are numbered from";
        assert_eq!(printed.out.contains(note), is_restart, "{}", printed.out);
    }
    venue.interrupt();
    assert_eq!(venue.join().code, Some(0));
}

#[test]
fn a_second_venue_at_the_same_port_is_refused() {
    let site = Site::new();
    let (venue, order_entry, _) = site.start_venue();
    let port = order_entry.rsplit(':').next().unwrap();
    let other = Site::new();
    let config = other.path("exchange.toml");
    assert_refused(&["exchange", "--config", &config, "--port", port], &[&order_entry, "in use", "--port"]);
    venue.interrupt();
    assert_eq!(venue.join().code, Some(0));
}

/// The operating system lets two venues send to the same groups; readers would receive both venues' messages.
#[test]
fn a_second_venue_on_the_same_lines_causes_a_warning() {
    let sites = [Site::new(), Site::new()];
    let config = std::fs::read_to_string(sites[0].path("exchange.toml")).unwrap();
    sites[1].write("exchange.toml", &config);
    let venues = sites.each_ref().map(|site| site.start_venue().0);
    let mut warnings = 0;
    for venue in venues {
        venue.interrupt();
        let printed = venue.join();
        assert_eq!(printed.code, Some(0), "{}", printed.err);
        assert!(!printed.out.contains("no order request"), "{}", printed.out);
        assert!(printed.out.contains("0 logins, 0 refused"), "{}", printed.out);
        let lines =
            printed.err.lines().filter(|line| line.contains("another venue of this machine sends to"));
        warnings += lines.count();
    }
    // The venue that started second warns about line A, line B and the snapshots.
    assert_eq!(warnings, 3);
}

#[test]
fn a_trader_without_a_venue_names_what_is_missing() {
    let site = Site::new();
    let unused_address = REFUSING.to_string();
    let config = site.trader("TEST01", 1, &unused_address, &unused_address);
    assert_refused(&["trader", "--config", &config], &[&unused_address, "is the other end running there?"]);
}

/// With empty `sources`, a trader accepts market data from every host that can send to the group.
#[test]
fn a_trader_without_a_source_filter_warns() {
    let site = Site::new();
    let (venue, order_entry, retransmission) = site.start_venue();
    let config = site.trader("TEST01", 1, &order_entry, &retransmission);
    // The file ends with the `[market_data]` table, to which the appended line belongs.
    let text = std::fs::read_to_string(&config).unwrap() + "\nsources = []\n";
    std::fs::write(&config, text).unwrap();
    let mut trader = spawn(&["trader", "--config", &config]);
    trader.wait_for_line("login", |line| line.starts_with("logged in").then_some(()));
    trader.interrupt();
    let printed = trader.join();
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    let warning = "market data is accepted from every address: name the venue's in market_data.sources";
    assert_eq!(printed.err.lines().filter(|line| line.contains(warning)).count(), 1, "{}", printed.err);
    venue.interrupt();
    assert_eq!(venue.join().code, Some(0));
}

#[test]
fn a_refused_trader_gives_the_reason() {
    let site = Site::new();
    let (venue, order_entry, retransmission) = site.start_venue();
    let config = site.trader("ABSENT", 1, &order_entry, &retransmission);
    let printed = run(&["trader", "--config", &config]);
    assert_eq!(printed.code, Some(1), "{}", printed.out);
    assert_eq!(printed.err.lines().count(), 1, "{}", printed.err);
    assert!(
        printed.err.contains("'ABSENT'") && printed.err.contains("check user name and password"),
        "{}",
        printed.err
    );
    venue.interrupt();
    let venue = venue.join();
    assert!(venue.out.contains("0 logins, 1 refused"), "{}", venue.out);
}

#[test]
fn a_venue_ends_when_its_pipe_is_closed() {
    let site = Site::new();
    let (child, mut out) = spawn_unread(&["exchange", "--config", &site.path("exchange.toml")]);
    let mut line = String::new();
    while !line.contains("test users") {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the venue did not start");
    }
    drop(out);
    Signal::Interrupt.send_to(&child);
    assert_eq!(end_of(child), (Some(0), String::new()));
}

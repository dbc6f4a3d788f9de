//! The two clients against a real door.
#![allow(clippy::unwrap_used)]

#[path = "../../../io/gateway/tests/support/rehearsal.rs"]
mod rehearsal;

use std::process::{Command, Output};

use rehearsal::{PASSWORD, Rehearsal, SYMBOL, USER};

fn run(program: &str, gateway: &Rehearsal, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.arg(gateway.socket()).args(["--user", USER, "--exchange", "deribit"]).args(args);
    command.env("TICKPATH_GATEWAY_PASSWORD", PASSWORD).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const ORDER_TEST: &str = env!("CARGO_BIN_EXE_order-test");
const SUBSCRIBE_ALL: &str = env!("CARGO_BIN_EXE_subscribe-all");

#[test]
fn subscribe_all_shows_the_download_and_then_the_market() {
    let gateway = Rehearsal::start();
    let ran = run(SUBSCRIBE_ALL, &gateway, &["--count", "40", "--name", "watcher"]);
    let out = text(&ran.stdout);
    assert!(ran.status.success(), "{out} {}", text(&ran.stderr));
    let kinds: Vec<_> =
        out.lines().map(|line| line.trim_start_matches(SYMBOL).split_whitespace().next().unwrap()).collect();
    let expected = [
        "start",
        "connected",
        "download_begin",
        "reference_data",
        "market_status",
        "market_by_price",
        "top_of_book",
        "ready",
        "download_end",
        "ready",
        "account_reference",
        "download_begin",
        "download_end",
        "ready",
    ];
    assert_eq!(kinds[..expected.len()], expected);
    assert!(kinds[expected.len()..].iter().all(|kind| *kind == "top_of_book"), "{out}");
    assert!(out.contains("BTC-PERPETUAL top_of_book symbol=1"), "{out}");
    let ran = run(SUBSCRIBE_ALL, &gateway, &["--count", "6", "--symbols", "ETH-PERPETUAL"]);
    assert!(!text(&ran.stdout).contains("symbol=1"));
}

#[test]
fn order_test_enters_modifies_and_cancels() {
    let gateway = Rehearsal::start();
    let ran = run(
        ORDER_TEST,
        &gateway,
        &["--symbols", SYMBOL, "--enable_trading", "--rest", "10ms", "--wait", "1ms"],
    );
    let out = text(&ran.stdout);
    assert!(ran.status.success(), "{out} {}", text(&ran.stderr));
    assert_eq!(
        gateway.requests(),
        [
            "create_order symbol=1 account=1 request_id=1 client_order_id=1001 price=64248 quantity=10 stop_price=0 \
         max_show=0 side=buy order_type=limit time_in_force=gtc execution=post_only",
            "modify_order symbol=1 account=1 request_id=2 client_order_id=1001 price=64250.5 quantity=10 stop_price=0 \
         execution=post_only",
            "cancel_order symbol=1 account=1 request_id=3 client_order_id=1001",
        ]
    );
    assert_eq!(out.matches("origin=gateway status=forwarded").count(), 3, "{out}");
    assert_eq!(out.matches("origin=exchange status=accepted").count(), 3, "{out}");
    assert!(out.lines().last().unwrap().contains("status=canceled"), "{out}");
}

#[test]
fn nothing_is_sent_without_leave() {
    let gateway = Rehearsal::start();
    let ran = run(ORDER_TEST, &gateway, &["--symbols", SYMBOL]);
    assert_eq!(text(&ran.stdout), "would buy 10 at 64248: give --enable_trading\n");
    assert!(ran.status.success() && gateway.requests().is_empty());
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let gateway = Rehearsal::start();
    let mut command = Command::new(ORDER_TEST);
    let ran = command
        .arg(gateway.socket())
        .args(["--user", USER])
        .env("TICKPATH_GATEWAY_PASSWORD", "guess")
        .output()
        .unwrap();
    assert_eq!(text(&ran.stderr), "error: the gateway refuses: wrong user or password\n");
    assert_eq!(ran.status.code(), Some(1));
    let ran = run(ORDER_TEST, &gateway, &["--exchange", "other"]);
    assert!(!ran.status.success());
    let ran = run(SUBSCRIBE_ALL, &gateway, &["--password", "literal"]);
    assert_eq!(text(&ran.stderr), "error: --password says where the password is: env:NAME or file:PATH\n");
    let (socket, requests) = (gateway.socket(), gateway.requests());
    drop(gateway);
    assert!(requests.is_empty());
    let ran = Command::new(SUBSCRIBE_ALL)
        .arg(socket)
        .args(["--user", USER])
        .env("TICKPATH_GATEWAY_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    let error = text(&ran.stderr);
    assert!(error.contains("is it running?") && error.lines().count() == 1, "{error}");
}

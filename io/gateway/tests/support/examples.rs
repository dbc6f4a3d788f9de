//! Checks of the two example clients, independent of their language.
#![allow(dead_code, clippy::unwrap_used)] // each test program uses some of it

use std::process::{Command, Output};

use super::rehearsal::{Manner, PASSWORD, Rehearsal, SYMBOL, USER};

/// The first events that a client receives.
const DOWNLOAD: [&str; 15] = [
    "start",
    "connected",
    "download_begin",
    "reference_data",
    "market_status",
    "market_by_price",
    "top_of_book",
    "time_series",
    "ready",
    "download_end",
    "ready",
    "account_reference",
    "download_begin",
    "download_end",
    "ready",
];

/// Runs a client, whose first argument is the socket, with the password in its environment.
pub fn run(mut command: Command, gateway: &Rehearsal, args: &[&str]) -> Output {
    command.arg(gateway.socket()).args(args).env("TICKPATH_GATEWAY_PASSWORD", PASSWORD).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Output of a successful run.
pub fn success(ran: &Output) -> String {
    let out = text(&ran.stdout);
    assert!(ran.status.success(), "{out} {}", text(&ran.stderr));
    out
}

/// The one error line of a failed run, without `error: `.
pub fn failure(ran: &Output) -> String {
    let error = text(&ran.stderr);
    assert!(ran.status.code() == Some(1) && error.lines().count() == 1, "{error}");
    error.trim_end().strip_prefix("error: ").unwrap().to_owned()
}

/// Checks forty events: the download, then the market. A line is the event's kind, after any `before`.
pub fn check_all(ran: &Output, before: &str) {
    let out = success(ran);
    let kinds: Vec<_> =
        out.lines().map(|line| line.trim_start_matches(before).split_whitespace().next().unwrap()).collect();
    assert_eq!(kinds[..DOWNLOAD.len()], DOWNLOAD);
    assert_eq!(kinds.len(), 40);
    assert!(kinds[DOWNLOAD.len()..].iter().all(|kind| *kind == "top_of_book"), "{out}");
    let candle = out.lines().find(|line| line.contains("time_series")).unwrap();
    let figures = "period_secs=3600 update=snapshot open=64240 high=64251 low=64230.5 close=64250.5 volume=0.5 cost=32125";
    assert!(candle.contains(figures), "{candle}");
    assert!(out.contains("top_of_book symbol=1") && out.contains("bid_price=64250.5"), "{out}");
}

/// Checks an order that is entered, moved to the best bid, and cancelled.
pub fn check_order(ran: &Output, gateway: &Rehearsal) {
    let out = success(ran);
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
    assert_eq!(out.matches("origin=gateway status=received").count(), 3, "{out}");
    assert_eq!(out.matches("origin=exchange status=accepted").count(), 3, "{out}");
    assert!(out.lines().last().unwrap().contains("status=canceled"), "{out}");
}

/// Checks an order that is acknowledged, and over before it reached the venue.
pub fn check_refused_order(ran: &Output) {
    let out = text(&ran.stdout);
    assert!(ran.status.code() == Some(1) && failure(ran).contains("was not to"), "{out}");
    assert!(out.lines().last().unwrap().contains("status=rejected"), "{out}");
}

/// Checks that an order is cancelled after a change without an answer.
pub fn check_lost_change(ran: &Output, gateway: &Rehearsal) {
    let out = success(ran);
    let requests = gateway.requests();
    let kinds: Vec<_> = requests.iter().map(|request| request.split_whitespace().next().unwrap()).collect();
    assert_eq!(kinds, ["create_order", "modify_order", "cancel_order"]);
    assert!(out.contains("origin=gateway status=timeout"), "{out}");
    assert!(out.lines().last().unwrap().contains("status=canceled"), "{out}");
}

/// Checks that without permission nothing is sent, and the planned order is printed.
pub fn check_no_order(ran: &Output, gateway: &Rehearsal) {
    assert_eq!(success(ran), "would buy 10 at 64248: give --enable_trading\n");
    assert!(gateway.requests().is_empty(), "{:?}", gateway.requests());
}

/// Checks that a wrong password gives one line.
pub fn check_wrong_password(mut command: Command, gateway: &Rehearsal, args: &[&str]) {
    command.arg(gateway.socket()).args(args).env("TICKPATH_GATEWAY_PASSWORD", "guess");
    assert_eq!(failure(&command.output().unwrap()), "the gateway refuses: wrong user or password");
}

/// Checks that another venue than the expected one gives one line.
pub fn check_other_venue(command: Command, gateway: &Rehearsal, args: &[&str]) {
    let args = [args, &["--exchange", "other"]].concat();
    let error = failure(&run(command, gateway, &args));
    assert_eq!(error, "the gateway is connected with 'deribit', and not with 'other'");
}

/// Checks that a client does not wait for instruments or accounts that do not exist.
pub fn check_nothing_to_trade(command: impl Fn() -> Command, account: &str) {
    let gateway = Rehearsal::start();
    let ran = run(command(), &gateway, &[WHO, "NOPE"]);
    assert_eq!(failure(&ran), "the gateway has no instrument NOPE");
    let watched = Rehearsal::with(Manner::Watched);
    let ran = run(command(), &watched, &[WHO, SYMBOL, "--enable_trading"]);
    assert_eq!(failure(&ran), account);
}

/// The user name of the client.
pub const WHO: &str = USER;

//! The two clients against a gateway's client port.
#![allow(clippy::unwrap_used)]

#[path = "../../../io/gateway/tests/support/examples.rs"]
mod examples;
#[path = "../../../io/gateway/tests/support/rehearsal.rs"]
mod rehearsal;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use examples::{
    WHO, check_all, check_lost_change, check_no_order, check_order, check_other_venue, check_refused_order,
    check_wrong_password, failure, text,
};
use rehearsal::{Manner, PASSWORD, Rehearsal, SYMBOL};

fn run(program: &str, gateway: &Rehearsal, args: &[&str]) -> Output {
    examples::run(Command::new(program), gateway, &[&["--user", WHO], args].concat())
}

const ORDER_TEST: &str = env!("CARGO_BIN_EXE_order-test");
const SUBSCRIBE_ALL: &str = env!("CARGO_BIN_EXE_subscribe-all");

#[test]
fn subscribe_all_shows_the_download_and_then_the_market() {
    let gateway = Rehearsal::start();
    let ran = run(SUBSCRIBE_ALL, &gateway, &["--count", "40", "--name", "watcher", "--exchange", "deribit"]);
    check_all(&ran, SYMBOL);
    assert!(text(&ran.stdout).contains("BTC-PERPETUAL top_of_book symbol=1"));
    let ran = run(SUBSCRIBE_ALL, &gateway, &["--count", "6", "--symbols", "ETH-PERPETUAL"]);
    assert!(!text(&ran.stdout).contains("symbol=1"));
}

#[test]
fn order_test_enters_modifies_and_cancels() {
    let gateway = Rehearsal::start();
    let flags = ["--symbols", SYMBOL, "--enable_trading", "--rest", "10ms", "--wait", "1ms"];
    check_order(&run(ORDER_TEST, &gateway, &flags), &gateway);
}

#[test]
fn order_test_ends_when_its_order_does_and_when_an_answer_is_lost() {
    let flags = ["--symbols", SYMBOL, "--enable_trading", "--rest", "10ms"];
    let refusing = Rehearsal::with(Manner::Refusing);
    check_refused_order(&run(ORDER_TEST, &refusing, &flags));
    let silent = Rehearsal::with(Manner::Silent);
    check_lost_change(&run(ORDER_TEST, &silent, &flags), &silent);
}

#[test]
fn order_test_knows_nothing_any_more_when_the_gateway_was_started_anew() {
    let gateway = Rehearsal::with(Manner::Quiet);
    let mut command = Command::new(ORDER_TEST);
    command.arg(gateway.socket()).args(["--user", WHO, "--symbols", SYMBOL, "--enable_trading"]);
    command.args(["--rest", "10ms"]).env("TICKPATH_GATEWAY_PASSWORD", PASSWORD);
    let mut client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(client.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("there is no bid yet"), "{line}");
    // Its instrument and its account have other numbers now; the old numbers belong to others.
    let gateway = gateway.again(Manner::Renumbered);
    let ran = client.wait_with_output().unwrap();
    errors.read_to_string(&mut line).unwrap();
    assert!(ran.status.success(), "{line} {}", text(&ran.stdout));
    let requests = gateway.requests();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    let is_it = |request: &String| request.contains(" symbol=2 account=2 ");
    assert!(requests.iter().all(is_it) && requests[0].contains("price=64248 "), "{requests:#?}");
}

#[test]
fn nothing_is_sent_without_leave() {
    let gateway = Rehearsal::start();
    check_no_order(&run(ORDER_TEST, &gateway, &["--symbols", SYMBOL]), &gateway);
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let gateway = Rehearsal::start();
    check_wrong_password(Command::new(ORDER_TEST), &gateway, &["--user", WHO]);
    check_other_venue(Command::new(ORDER_TEST), &gateway, &["--user", WHO]);
    let ran = run(SUBSCRIBE_ALL, &gateway, &["--password", "literal"]);
    assert_eq!(failure(&ran), "--password says where the password is: env:NAME or file:PATH");
    // Missing items are an error, not a wait.
    let ran = run(ORDER_TEST, &gateway, &["--symbols", "NOPE"]);
    assert!(failure(&ran).starts_with("the gateway has no instrument NOPE: "));
    let ran = run(ORDER_TEST, &gateway, &["--symbols", SYMBOL, "--account", "B1"]);
    assert_eq!(failure(&ran), format!("the user {WHO} has no account B1: it has A1"));
    let watched = Rehearsal::with(Manner::Watched);
    let ran = run(ORDER_TEST, &watched, &["--symbols", SYMBOL, "--account", "A1"]);
    assert_eq!(failure(&ran), format!("the user {WHO} may not trade with A1"));
    let ran = run(ORDER_TEST, &watched, &["--symbols", SYMBOL]);
    assert_eq!(failure(&ran), format!("the user {WHO} has no account that it may trade with: it has A1"));
    let (socket, requests) = (gateway.socket(), gateway.requests());
    drop(gateway);
    assert!(requests.is_empty());
    let mut command = Command::new(SUBSCRIBE_ALL);
    command.arg(socket).args(["--user", WHO]).env("TICKPATH_GATEWAY_PASSWORD", PASSWORD);
    let error = failure(&command.output().unwrap());
    assert!(error.contains("is it running?"), "{error}");
}

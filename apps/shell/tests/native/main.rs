//! The shell at a native venue: OUCH, drop copies, GLIMPSE and the feed lines, over the loopback interface.

#![allow(clippy::unwrap_used)]

mod venue;

use tickpath_deribit::session::Key;
use tickpath_shell::{Ended, Failure, Interrupt, RunOptions, Shell, Source, run};
use tickpath_test_support::{Deadline, Direction, FaultProxy};

use crate::native::venue::Running;

/// Executes a command and returns its text.
fn said(shell: &mut Shell, command: &str) -> String {
    match shell.execute(command) {
        Ok(done) => done.text,
        Err(failure) => panic!("{command}: {failure}"),
    }
}

fn failure(shell: &mut Shell, command: &str) -> Failure {
    match shell.execute(command) {
        Ok(done) => panic!("{command} was done: {}", done.text),
        Err(failure) => failure,
    }
}

/// Returns the order id in a command's text.
fn id_of(text: &str) -> String {
    text.split_whitespace().nth(1).unwrap().to_owned()
}

/// The user's position in an instrument, as the shell reports it.
fn held(shell: &mut Shell, instrument: &str) -> i64 {
    let json = shell.execute("positions").unwrap().json.unwrap();
    let positions: serde_json::Value = serde_json::from_str(&json).unwrap();
    let find = |position: &&serde_json::Value| position["instrument_name"] == instrument;
    positions.as_array().unwrap().iter().find(find).map_or(0, |position| position["size"].as_i64().unwrap())
}

/// Repeats a command until its text passes a check.
fn until(shell: &mut Shell, command: &str, is_right: impl Fn(&str) -> bool) -> String {
    let deadline = Deadline::start();
    loop {
        let text = said(shell, command);
        if is_right(&text) {
            return text;
        }
        assert!(!deadline.is_over(), "{command}: {text}");
        std::thread::yield_now();
    }
}

#[test]
fn two_shells_trade_with_each_other_and_come_back_to_what_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let (mut anna, mut bert) = (venue.shell("ANNA"), venue.shell("BERT"));
    assert!(said(&mut anna, "connect").contains("ouch://127.0.0.1"));
    assert!(said(&mut anna, "instruments").contains("HARBOR"));
    assert!(said(&mut anna, "test").contains("server time"));
    assert!(said(&mut anna, "status").contains("connected, logged in as ANNA"));

    let text = said(&mut anna, "buy ALPHA 100 99.50 label=first");
    assert!(text.contains("open: buy 100 ALPHA at 99.5") && text.ends_with("label first"), "{text}");
    let id = id_of(&text);
    let text = said(&mut anna, &format!("edit {id} amount=150 price=99.75"));
    assert!(text.starts_with(&format!("order {id} open: buy 150 ALPHA at 99.75")), "{text}");
    until(&mut bert, "book ALPHA", |text| text.contains("99.75") && text.contains("150"));
    assert!(said(&mut bert, "ticker ALPHA").contains("99.75 x 150"));

    let text = said(&mut bert, "sell ALPHA 60 99.70 tif=ioc");
    assert!(text.contains("filled: sell 60 ALPHA") && text.contains("60 done at 99.75"), "{text}");
    assert!(text.contains("trade ") && text.contains(": sell 60 ALPHA at 99.75"), "{text}");
    assert_eq!((held(&mut anna, "ALPHA"), held(&mut bert, "ALPHA")), (60, -60));
    let text = said(&mut anna, &format!("order {id}"));
    assert!(text.contains("60 done at 99.75 on average"), "{text}");
    // The order keeps its place in the queue: it is the same order, found by an older number.
    assert!(said(&mut anna, &format!("edit {id} amount=100")).contains("buy 100 ALPHA at 99.75, 60 done"));

    // Killed without a logout.
    drop(anna);
    let mut anna = venue.shell("ANNA");
    let text = said(&mut anna, "orders");
    assert!(text.contains(&id) && text.contains("99.75") && text.lines().count() == 2, "{text}");
    assert_eq!(held(&mut anna, "ALPHA"), 60);
    assert!(said(&mut anna, "trades ALPHA").contains("99.75"));
    said(&mut bert, "sell ALPHA 40 99.75");
    assert_eq!((held(&mut anna, "ALPHA"), held(&mut bert, "ALPHA")), (100, -100));
    assert_eq!(said(&mut anna, "orders"), "no open orders");

    // A close enters a new order.
    assert!(said(&mut bert, "buy ALPHA 100 99.00").contains("open"));
    let text = said(&mut anna, "close ALPHA");
    assert!(text.contains("filled: sell 100 ALPHA at the market"), "{text}");
    assert_eq!((held(&mut anna, "ALPHA"), held(&mut bert, "ALPHA")), (0, 0));
    // Bought 100 at 99.75 and sold at 99: a loss of 75, and a profit of 75 for the other side.
    assert!(said(&mut anna, "positions").contains("-75") && said(&mut bert, "positions").contains("75"));
    assert!(
        matches!(failure(&mut anna, "close ALPHA"), Failure::NotDone(why) if why.contains("no position"))
    );
    said(&mut anna, "logout");
    drop((anna, bert));
    venue.stop();
}

#[test]
fn orders_are_cancelled_one_by_one_by_text_and_all_together() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let mut anna = venue.shell("ANNA");
    let one = id_of(&said(&mut anna, "buy ALPHA 10 99"));
    for price in ["98", "97", "96"] {
        said(&mut anna, &format!("buy ALPHA 10 {price} label=grid"));
    }
    said(&mut anna, "sell BRAVO 10 25.50");
    assert!(said(&mut anna, &format!("cancel {one}")).contains("cancelled: buy 10 ALPHA"));
    assert!(
        matches!(failure(&mut anna, &format!("cancel {one}")), Failure::NotDone(why) if why.contains("not open"))
    );
    assert_eq!(said(&mut anna, "orders BRAVO").lines().count(), 2);
    assert_eq!(said(&mut anna, "order label=grid").lines().count(), 4);
    assert_eq!(said(&mut anna, "cancel label=grid"), "3 orders cancelled");
    said(&mut anna, "buy ALPHA 10 98");
    assert_eq!(said(&mut anna, "cancel_all BRAVO"), "1 order cancelled");
    assert_eq!(said(&mut anna, "cancel_all"), "1 order cancelled");
    assert_eq!(said(&mut anna, "orders"), "no open orders");
    // A fill-or-kill order.
    assert!(said(&mut anna, "buy ALPHA 10 99 tif=fok").contains("cancelled: buy 10 ALPHA"));
    drop(anna);
    venue.stop();
}

#[test]
fn an_order_whose_answer_was_lost_is_found_and_one_that_was_lost_is_not_entered() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let proxy = FaultProxy::to(venue.endpoints.order_entry);
    // SoupBinTCP data packets, selected by the type after the length.
    let lose_request = || proxy.cut_at(Direction::ToServer, |bytes| bytes.get(2) == Some(&b'U'));
    let lose_answer = || proxy.cut_at(Direction::ToClient, |bytes| bytes.get(2) == Some(&b'S'));
    let mut anna = venue.shell_by(proxy.address, "ANNA", "");
    said(&mut anna, "connect");

    lose_answer();
    let text = said(&mut anna, "buy ALPHA 100 99.50");
    assert!(text.contains("open: buy 100 ALPHA at 99.5"), "{text}");
    assert_eq!(said(&mut anna, "orders").lines().count(), 2);
    let id = id_of(&text);

    lose_request();
    let why = failure(&mut anna, "buy ALPHA 100 99.25").to_string();
    assert!(why.contains("not entered"), "{why}");
    assert_eq!(said(&mut anna, "orders").lines().count(), 2);

    lose_answer();
    assert!(said(&mut anna, &format!("edit {id} price=99.40")).contains("at 99.4"));
    lose_request();
    assert!(failure(&mut anna, &format!("edit {id} price=99.30")).to_string().contains("not entered"));
    // An executed reduction is not repeated: the order keeps its priority over later ones.
    let mut bert = venue.shell("BERT");
    said(&mut bert, "buy ALPHA 10 99.40");
    lose_answer();
    assert!(said(&mut anna, &format!("edit {id} amount=60")).contains("60 ALPHA at 99.4"));
    let text = said(&mut bert, "sell ALPHA 10 99.40 tif=ioc");
    assert!(text.contains("filled"), "{text}");
    assert!(said(&mut anna, &format!("order {id}")).contains("10 done"));
    drop(bert);
    for lose in [&lose_request as &dyn Fn(), &lose_answer] {
        let id = id_of(&said(&mut anna, "buy ALPHA 1 98"));
        lose();
        assert!(said(&mut anna, &format!("cancel {id}")).contains("cancelled"));
    }
    let text = said(&mut anna, "orders");
    assert!(text.lines().count() == 2 && text.contains("99.4"), "{text}");
    lose_request();
    assert_eq!(said(&mut anna, "cancel_all"), "1 order cancelled");
    // New numbers follow the consumed ones.
    assert!(said(&mut anna, "buy ALPHA 5 99.10").contains("open"));
    assert!(said(&mut anna, "status").contains("lost, "));
    drop(anna);
    venue.stop();
}

#[test]
fn the_venue_may_end_and_come_back_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let orders = FaultProxy::to(venue.endpoints.order_entry);
    let copies = FaultProxy::to(venue.endpoints.drop_copy.unwrap());
    let mut anna = venue.shell_by(orders.address, "ANNA", &format!("drop_copy = '{}'", copies.address));
    let id = id_of(&said(&mut anna, "buy ALPHA 100 99.50"));
    venue.stop();
    let venue = Running::start(folder.path());
    orders.redirect_to(venue.endpoints.order_entry);
    copies.redirect_to(venue.endpoints.drop_copy.unwrap());
    assert!(said(&mut anna, &format!("order {id}")).contains("open: buy 100 ALPHA"));
    assert!(said(&mut anna, &format!("cancel {id}")).contains("cancelled"));
    drop(anna);
    venue.stop();
}

#[test]
fn channels_tell_of_the_market_and_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let (mut anna, mut bert) = (venue.shell("ANNA"), venue.shell("BERT"));
    said(&mut anna, "subscribe quote.ALPHA trades.ALPHA.raw user.trades.any.any.raw user.orders.ALPHA.raw");
    said(&mut anna, "buy ALPHA 100 99.50");
    until(&mut anna, "subscriptions", |text| {
        text.contains("99.5 x 100") && text.contains("open: buy 100 ALPHA")
    });
    said(&mut bert, "sell ALPHA 30 99.50");
    said(&mut anna, "wait user.trades.any.any.raw timeout=60s");
    let is_told = |text: &str| text.contains("99.5 x 70") && text.contains("ALPHA sell 30 at 99.5");
    let text = until(&mut anna, "subscriptions", is_told);
    assert!(text.contains("buy 30 ALPHA at 99.5"), "{text}");
    // A renewed quote subscription publishes the current quote without a change.
    said(&mut anna, "unsubscribe quote.ALPHA");
    said(&mut anna, "subscribe quote.ALPHA");
    said(&mut anna, "wait quote.ALPHA timeout=60s");
    assert!(said(&mut anna, "subscriptions").contains("quote.ALPHA  #1  bid 99.5 x 70"));
    said(&mut anna, "unsubscribe all");
    // Books as at Deribit; the last price comes from the earlier trade.
    said(
        &mut anna,
        "subscribe ticker.ALPHA.100ms book.ALPHA.none.10.100ms book.ALPHA.raw trades.ALPHA.100ms",
    );
    until(&mut anna, "subscriptions", |text| {
        text.contains("bid 99.5 x 70  ask -  last 99.5")
            && text.contains("bid 99.5 x 70  ask -  levels 1/0")
            && text.contains("\"bids\":[[\"new\",99.5,70]]")
    });
    said(&mut bert, "sell ALPHA 10 99.50");
    until(&mut anna, "subscriptions", |text| {
        text.contains("\"bids\":[[\"change\",99.5,60]]") && text.contains("bid 99.5 x 60  ask -  levels 1/0")
    });
    // Subscriptions return after a logout.
    said(&mut anna, "logout");
    said(&mut anna, "auth");
    until(&mut anna, "subscriptions", |text| text.contains("bid 99.5 x 60  ask -  levels 1/0"));
    said(&mut anna, "unsubscribe all");
    for channel in [
        "perpetual.ALPHA.100ms",
        "book.ALPHA.5.10.100ms",
        "quote.BTC-PERPETUAL",
        "user.portfolio.any",
        "nonsense",
    ] {
        let why = failure(&mut anna, &format!("subscribe {channel}")).to_string();
        assert!(why.contains("no channel"), "{why}");
    }
    drop((anna, bert));
    venue.stop();
}

#[test]
fn what_cannot_be_meant_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let mut anna = venue.shell("ANNA");
    for (command, words) in [
        ("account BTC", "keeps no money"),
        ("call public/get_index_price {\"index_name\":\"btc_usd\"}", "nothing like"),
        ("buy BTC-PERPETUAL 10 5", "no instrument"),
        ("buy ALPHA 10 99 tif=gtc", "good_til_day"),
        ("buy ALPHA 10 99 reduce_only", "reduce_only"),
        ("buy ALPHA 10.5 99", "whole units"),
        ("buy ALPHA 10 99.00001", "4 decimals"),
        ("buy ALPHA 10 99 label='more than fourteen'", "14 ASCII"),
        ("sell ALPHA 10 type=stop_market trigger=last_price trigger_price=90", "no triggers"),
        ("edit nonsense 10", "no number of an order"),
        ("cancel_all BTC", "no currencies"),
    ] {
        let why = failure(&mut anna, command);
        assert!(matches!(why, Failure::Invalid(_)) && why.to_string().contains(words), "{command}: {why}");
    }
    for (command, words) in
        [("edit 77 10", "no order 77"), ("cancel 77", "no order 77"), ("order 77", "no order 77")]
    {
        let why = failure(&mut anna, command);
        assert!(matches!(why, Failure::NotDone(_)) && why.to_string().contains(words), "{command}: {why}");
    }
    for (command, code) in
        [("buy ALPHA 10 99.005", 0x1d), ("buy ALPHA 10 500", 0x06), ("buy ALPHA 2000000 99", 0x13)]
    {
        match failure(&mut anna, command) {
            Failure::Refused { code: told, .. } => assert_eq!(told, code, "{command}"),
            other => panic!("{command}: {other}"),
        }
    }
    assert_eq!(said(&mut anna, "orders"), "no open orders");
    drop(anna);
    venue.stop();
}

#[test]
fn who_may_not_is_told_so_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let connect = |mut shell: Shell| failure(&mut shell, "connect").to_string();
    let why = connect(venue.shell_of(Some(Key::new("ANNA", "wrong")), ""));
    assert!(why.contains("refuses \"ANNA\""), "{why}");
    let why = connect(venue.shell_of(None, ""));
    assert!(why.contains("user and password"), "{why}");
    let why = connect(venue.shell_of(Some(Key::new("much too long", "test")), ""));
    assert!(why.contains("6 and a password at most 10"), "{why}");
    let why = connect(venue.shell("CARL"));
    assert!(why.contains("drop_copy"), "{why}");
    // Another user reads the copies.
    let reader = "drop_copy_user = 'DESK'\ndrop_copy_password = 'test'";
    let mut carl = venue.shell_of(Some(Key::new("CARL", "test")), reader);
    let id = id_of(&said(&mut carl, "buy ALPHA 10 99"));
    assert!(said(&mut carl, "orders").contains(&id));
    drop(carl);
    venue.stop();
    let mut nobody = venue_gone(folder.path());
    let why = failure(&mut nobody, "connect").to_string();
    assert!(why.starts_with("not connected"), "{why}");
}

/// A shell at a venue that has stopped.
fn venue_gone(folder: &std::path::Path) -> Shell {
    let venue = Running::start(folder);
    let shell = venue.shell("ANNA");
    venue.stop();
    shell
}

#[test]
fn limits_hold_and_a_dry_run_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let limits = "[limits]\norder_size_max = '50'\nnotional_max = '4000'\nopen_orders_max = 1";
    let mut anna = venue.shell_limited("ANNA", limits, false);
    assert!(matches!(failure(&mut anna, "buy ALPHA 51 10"), Failure::Limit(_)));
    assert!(matches!(failure(&mut anna, "buy ALPHA 50 95"), Failure::Limit(_)));
    let id = id_of(&said(&mut anna, "buy ALPHA 40 95"));
    assert!(matches!(failure(&mut anna, "buy ALPHA 1 95"), Failure::Limit(_)));
    assert!(matches!(failure(&mut anna, &format!("edit {id} amount=49")), Failure::Limit(_)));
    drop(anna);
    let mut dry = venue.shell_limited("ANNA", "", true);
    assert!(said(&mut dry, "sell ALPHA 10 101").contains("dry run"));
    assert!(matches!(failure(&mut dry, "sell ALPHA 10 101 tif=gtc"), Failure::Invalid(_)));
    assert!(said(&mut dry, "cancel_all").contains("dry run"));
    assert_eq!(said(&mut dry, "orders").lines().count(), 2);
    drop(dry);
    venue.stop();
}

#[test]
fn a_script_reports_the_same_results_and_its_messages_are_shown_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let (path, config) = venue.config("ANNA", "");
    let commands = "buy ALPHA 10 99.5; show 3 'Enter Order' oneline; stopwatch; cancel_all; buy ALPHA 1 1";
    let options = RunOptions {
        config,
        config_file: Some(path),
        key_file: Some(venue.key_file("ANNA")),
        source: Source::Text(commands.to_owned()),
        is_dry_run: false,
        keeps_going: true,
        is_silent: true,
        is_reported: true,
        log: Vec::new(),
        has_no_pane: true,
    };
    let report = run(&options, Interrupt::default()).unwrap();
    assert_eq!(report.ended, Ended::Failed);
    let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    let status: Vec<_> =
        json["commands"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(status, ["done", "done", "done", "done", "refused"]);
    let order = &json["commands"][0]["result"]["order"];
    assert_eq!(
        (&order["price"], &order["order_state"]),
        (&serde_json::json!(99.5), &serde_json::json!("open"))
    );
    assert_eq!(json["commands"][3]["result"], 1);
    assert_eq!(json["commands"][4]["code"], 6);
    let timed = json["stopwatch"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    assert!(
        timed.clone().any(|name| name == "e2e_buy_order") && timed.clone().any(|name| name == "send_request")
    );

    let mut anna = venue.shell("ANNA");
    said(&mut anna, "buy ALPHA 10 99.5");
    let text = said(&mut anna, "show 50 oneline");
    for words in ["> {\"ouch\":\"Enter Order\"", "< {\"ouch\":\"Order Accepted\"", "\"price\":\"99.5000\""] {
        assert!(text.contains(words), "no {words} in\n{text}");
    }
    drop(anna);
    venue.stop();
}

//! The shell against a minimal venue: commands, refusals, time-outs, lost answers, limits, secrets.

#![allow(clippy::unwrap_used)]

mod cable;
mod terminal;
mod venue;

use std::os::unix::fs::PermissionsExt;

use tickpath_deribit::method::Method;
use tickpath_deribit::session::Key;
use tickpath_shell::{Ended, Failure, Interrupt, Link, RunOptions, Shell, ShellConfig, Source, run};
use tickpath_test_support::{Certificates, realtime_ns};
use venue::{CLIENT_ID, Fault, OPTION, SECRET, Venue};

fn key() -> Option<Key> {
    Some(Key::new(CLIENT_ID, SECRET))
}

fn shell_with(venue: &Venue, more: &str, key: Option<Key>, is_dry_run: bool) -> Shell {
    let text = format!("url = '{}'\n{more}", venue.url);
    let config: ShellConfig = tickpath_config::parse("shell.toml", &text).unwrap();
    let url = config.checked_url().unwrap();
    Shell::new(Link::new(config, url, key.clone()), key, is_dry_run, Interrupt::default())
}

fn shell(venue: &Venue) -> Shell {
    shell_with(venue, "", key(), false)
}

/// Executes a command and returns its text.
fn said(shell: &mut Shell, command: &str) -> String {
    match shell.execute(command) {
        Ok(done) => done.text,
        Err(failure) => panic!("{command}: {failure}"),
    }
}

/// Executes a command and returns its failure.
fn failure(shell: &mut Shell, command: &str) -> Failure {
    match shell.execute(command) {
        Ok(done) => panic!("{command} did not fail: {}", done.text),
        Err(failure) => failure,
    }
}

#[test]
fn an_order_goes_from_entry_to_cancel() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    let text = said(&mut shell, "buy BTC-PERPETUAL 10 50000 label=first");
    assert_eq!(
        text,
        "order 1 open: buy 10 BTC-PERPETUAL at 50000, 0 done, limit, good_til_cancelled, label first"
    );
    assert!(said(&mut shell, "deribit_open_orders").contains("first"));
    assert!(
        said(&mut shell, "deribit_edit 1 price=50001 amount=20").contains("buy 20 BTC-PERPETUAL at 50001")
    );
    assert!(said(&mut shell, "cancel 1").contains("order 1 cancelled"));
    assert_eq!(said(&mut shell, "orders"), "no open orders");
    let text = said(&mut shell, "sell BTC-PERPETUAL 10");
    assert!(
        text.contains("order 2 filled")
            && text.contains("\n  trade T1: sell 10 BTC-PERPETUAL at 50000.5, fee 0.00000010 BTC"),
        "{text}"
    );
    said(&mut shell, "buy BTC-PERPETUAL 10 49000");
    assert_eq!(said(&mut shell, "cancel_all"), "1 order cancelled");
    assert_eq!(failure(&mut shell, "cancel 1").kind(), "refused");
    said(&mut shell, "close BTC-PERPETUAL");
    let text = failure(&mut shell, "close BTC-PERPETUAL").to_string();
    assert_eq!(text, "there is no position in BTC-PERPETUAL (already_closed, 10010)");
    let text = failure(&mut shell, "cancel nosuch").to_string();
    assert!(text.contains("order_not_found (10004)") && text.contains("gone or was never there"), "{text}");
}

#[test]
fn market_and_account_are_shown() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    assert!(said(&mut shell, "connect").ends_with("logged in as AMANDA (connection trade:read_write)"));
    assert!(said(&mut shell, "deribit_test").starts_with("server time "));
    assert!(said(&mut shell, "deribit_order_book BTC-PERPETUAL 10").contains("49999.5"));
    assert!(said(&mut shell, "ticker BTC-PERPETUAL").contains("50000.5 x 60"));
    assert!(said(&mut shell, "instruments BTC future").contains("BTC-PERPETUAL  future   0.5     10"));
    // Digits remain as the venue wrote them.
    assert!(said(&mut shell, "positions").contains("0.00000001"));
    assert!(said(&mut shell, "account BTC").contains("1.50000001"));
    assert_eq!(said(&mut shell, "order label=none currency=BTC"), "no open orders");
    assert!(said(&mut shell, "status").contains("connected, logged in as AMANDA"));
    assert!(said(&mut shell, "call public/get_time").parse::<u64>().is_ok());
    for params in ["{\"instrument_name\": \"BTC-PERPETUAL\"}", "'{\"instrument_name\":\"BTC-PERPETUAL\"}'"] {
        assert!(
            said(&mut shell, &format!("call public/get_instrument {params}")).contains("\"tick_size\": 0.5")
        );
    }
    let text = said(&mut shell, "stopwatch");
    assert!(text.contains("e2e_auth") && text.contains("send_request") && text.contains('#'), "{text}");
    said(&mut shell, "logout");
    assert!(said(&mut shell, "status").contains("not connected, public data only"));
    assert!(said(&mut shell, "auth").contains("logged in"));
}

#[test]
fn what_cannot_be_meant_is_refused_before_it_is_sent() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    for (command, words) in [
        ("bye", "no command"),
        ("buy 'x", "no end"),
        ("book BTC-PERPETUAL 7", "depth is one of"),
        ("positions DOGE", "one of BTC"),
        ("instruments BTC shoes", "future_combo"),
        ("orders any sometimes", "trailing_all"),
        ("ticker", "which instrument"),
        ("ticker a b", "too many"),
        ("call private/buy {}", "its own command"),
        ("call public/auth {}", "its own command"),
        ("call public/get_time {", "params"),
        ("call", "METHOD"),
        ("call public/nothing", "no method"),
        ("subscribe nonsense..", "no channel"),
        ("unsubscribe ticker.X.100ms", "not subscribed"),
        ("wait ticker.X.100ms", "nor a subscribed channel"),
        ("stopwatch start", "reset"),
        ("help nothing", "no command"),
        ("auth /nowhere/keys.toml", "/nowhere/keys.toml"),
        ("connect ws://elsewhere.example/", "production = true"),
    ] {
        let failure = failure(&mut shell, command);
        assert_eq!(failure.kind(), "invalid", "{command}");
        assert!(failure.to_string().contains(words), "{command}: {failure}");
    }
    assert!(
        said(&mut shell, "help").contains("cancel_all")
            && said(&mut shell, "help deribit_buy").contains("tif=gtc")
    );
    assert_eq!(said(&mut shell, ""), "");
}

#[test]
fn without_a_key_there_is_public_data_alone() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "", None, false);
    assert!(said(&mut shell, "connect").contains("public data only"));
    assert!(said(&mut shell, "ticker BTC-PERPETUAL").contains("best bid"));
    assert!(failure(&mut shell, "positions").to_string().contains("needs a login"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    std::fs::write(&path, format!("client_id = '{CLIENT_ID}'\nclient_secret = '{SECRET}'\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    said(&mut shell, "subscribe ticker.BTC-PERPETUAL.100ms");
    assert!(said(&mut shell, &format!("auth {}", path.display())).starts_with("logged in as AMANDA"));
    assert!(said(&mut shell, "positions").contains("BTC-PERPETUAL"));
    // The login uses the same connection and keeps its subscription.
    assert!(said(&mut shell, "status").contains("0 connections lost"));
    assert_eq!(venue.seen(Method::Hello), 2);
    // The key remains in use after a logout, and at another address.
    said(&mut shell, "logout");
    assert!(said(&mut shell, "auth").starts_with("logged in as AMANDA"));
    let other = Venue::start();
    assert!(said(&mut shell, &format!("connect {}", other.url)).contains("logged in as AMANDA"));
    // An address without a listener is reported at once, whatever came before.
    assert!(failure(&mut shell, "connect ws://127.0.0.1:1/").to_string().contains("cannot connect"));
}

#[test]
fn a_logout_is_done_when_the_venue_has_closed_the_connection() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    said(&mut shell, "connect");
    assert!(said(&mut shell, "deribit_logout invalidate").starts_with("logged out"));
    said(&mut shell, "auth");
    venue.fail_once(Fault::Silent(Method::Logout));
    assert_eq!(failure(&mut shell, "logout keep_token").kind(), "timeout");
    assert!(said(&mut shell, "status").contains("not connected, public data only"));
    assert_eq!(venue.seen(Method::Logout), 2);
    assert!(failure(&mut shell, "logout perhaps").to_string().contains("keep_token"));
}

#[test]
fn a_subscription_is_over_when_the_venue_has_said_so() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    let channel = "ticker.BTC-PERPETUAL.100ms";
    said(&mut shell, &format!("subscribe {channel}"));
    venue.fail_once(Fault::Silent(Method::PrivateUnsubscribe));
    // The lost request is repeated and then answered.
    assert_eq!(said(&mut shell, &format!("unsubscribe {channel}")), "unsubscribed: 1 channel");
    assert_eq!(venue.seen(Method::PrivateUnsubscribe), 2);
    assert!(failure(&mut shell, "unsubscribe").to_string().contains("which channels"));
    // A command subscribes to all of its channels, or to none.
    assert!(
        failure(&mut shell, &format!("subscribe {channel} nonsense..")).to_string().contains("no channel")
    );
    assert_eq!(said(&mut shell, "subscriptions"), "no subscriptions");
}

#[test]
fn an_order_is_not_taken_for_another_of_the_same_label() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    assert!(said(&mut shell, "buy BTC-PERPETUAL 10 50000 label=grid").contains("order 1 open"));
    for order in ["10 50000", "10 49000", "20 50000"] {
        venue.fail_once(Fault::LoseRequest(Method::Buy));
        let failure = failure(&mut shell, &format!("buy BTC-PERPETUAL {order} label=grid"));
        assert!(failure.to_string().contains("it was not entered"), "{order}: {failure}");
    }
    venue.fail_once(Fault::LoseAnswer(Method::Buy));
    assert!(said(&mut shell, "buy BTC-PERPETUAL 10 50000 label=grid").contains("order 2 open"));
    // Another client's order under the label is not ours either; equal times leave it uncertain.
    let mut other = self::shell(&venue);
    said(&mut other, "buy BTC-PERPETUAL 10 48000 label=grid");
    venue.fail_once(Fault::LoseRequest(Method::Buy));
    let lost = failure(&mut shell, "buy BTC-PERPETUAL 10 47000 label=grid");
    assert!(["not_done", "unknown"].contains(&lost.kind()), "{lost}");
    assert_eq!(venue.order_count(), 3);
}

#[test]
fn a_position_whose_closing_was_not_answered_is_looked_at() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    said(&mut shell, "connect");
    venue.fail_once(Fault::LoseRequest(Method::ClosePosition));
    let lost = failure(&mut shell, "close BTC-PERPETUAL");
    assert_eq!(lost.kind(), "unknown");
    let text = lost.to_string();
    assert!(text.contains("the position in BTC-PERPETUAL is 20 and 0 orders are open"), "{text}");
    venue.fail_once(Fault::LoseAnswer(Method::ClosePosition));
    let text = failure(&mut shell, "close BTC-PERPETUAL").to_string();
    assert!(text.contains("the position in BTC-PERPETUAL is 0 and"), "{text}");
    assert_eq!(venue.seen(Method::ClosePosition), 2);
}

#[test]
fn the_log_tells_of_what_was_asked_for() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    assert!(failure(&mut shell, "log").to_string().contains("session"));
    assert!(failure(&mut shell, "log everything").to_string().contains("off, all"));
    said(&mut shell, "log auth orders");
    said(&mut shell, "buy BTC-PERPETUAL 10 50000");
    said(&mut shell, "ticker BTC-PERPETUAL");
    let lines: Vec<String> = std::iter::from_fn(|| shell.link().next_log()).collect();
    let modules: Vec<&str> = lines.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(modules, ["auth:", "auth:", "orders:", "orders:"], "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("TOKEN") && !line.contains(SECRET)));
    said(&mut shell, "log off");
    said(&mut shell, "buy BTC-PERPETUAL 10 50000");
    assert_eq!(shell.link().next_log(), None);
}

#[test]
fn a_wrong_key_is_told_once_and_not_tried_again() {
    let venue = Venue::start();
    let wrong = Key::new(CLIENT_ID, "guessed");
    let mut shell = shell_with(&venue, "", Some(wrong), false);
    let failure = failure(&mut shell, "positions");
    assert_eq!(failure.kind(), "not_connected");
    assert!(failure.to_string().contains("invalid_credentials"), "{failure}");
    assert!(!failure.to_string().contains("guessed"));
    assert_eq!(venue.seen(Method::Auth), 1);
}

#[test]
fn nobody_there_is_an_error_at_once() {
    // No test listens at this port.
    let config: ShellConfig = tickpath_config::parse("shell.toml", "url = 'ws://127.0.0.1:1/'").unwrap();
    let url = config.checked_url().unwrap();
    let mut shell = Shell::new(Link::new(config, url, None), None, false, Interrupt::default());
    let failure = failure(&mut shell, "connect");
    assert_eq!(failure.kind(), "not_connected");
    assert!(failure.to_string().contains("cannot connect"), "{failure}");
}

#[test]
fn an_order_whose_answer_was_lost_is_found_and_not_entered_twice() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    said(&mut shell, "connect");
    venue.fail_once(Fault::LoseAnswer(Method::Buy));
    assert!(said(&mut shell, "buy BTC-PERPETUAL 10 50000").contains("order 1 open"));
    assert_eq!((venue.order_count(), venue.seen(Method::Buy)), (1, 1));

    venue.fail_once(Fault::LoseRequest(Method::Sell));
    let failure = failure(&mut shell, "sell BTC-PERPETUAL 10 60000");
    assert_eq!(failure.kind(), "not_done");
    assert!(failure.to_string().contains("it was not entered"), "{failure}");
    assert_eq!((venue.order_count(), venue.seen(Method::Sell)), (1, 1));
}

#[test]
fn a_line_that_breaks_is_no_answer_to_a_logout() {
    let venue = Venue::start();
    let cable = cable::Cable::to(&venue.url);
    let text = format!("url = 'ws://{}/ws/api/v2'", cable.address);
    let config: ShellConfig = tickpath_config::parse("shell.toml", &text).unwrap();
    let url = config.checked_url().unwrap();
    let mut shell = Shell::new(Link::new(config, url, key()), key(), false, Interrupt::default());
    said(&mut shell, "connect");
    cable.break_next();
    assert_eq!(failure(&mut shell, "logout").kind(), "timeout");
    assert_eq!(venue.seen(Method::Logout), 0);
}

/// The time in milliseconds since 1970.
fn unix_ms() -> u64 {
    realtime_ns() / 1_000_000
}

#[test]
fn an_order_that_is_late_on_its_way_is_found_or_is_not_taken_any_more() {
    let venue = Venue::start();
    let config = "request_timeout = '5s'";
    let mut shell = shell_with(&venue, config, key(), false);
    said(&mut shell, "connect");
    let before = unix_ms();
    venue.fail_once(Fault::Hold(Method::Buy, 2_000));
    assert!(said(&mut shell, "buy BTC-PERPETUAL 10 50000").contains("order 1 open"));
    // The venue's clock is this machine's, estimated with the delay of the last answer.
    let until = venue.valid_until()[0].unwrap();
    assert!((before + 4_000..=unix_ms() + 5_000).contains(&until), "{until} {before}");
    said(&mut shell, "edit 1 amount=20");
    assert!(venue.valid_until()[1].is_some_and(|next| next > until));
    // The request arrives too late: the order is not entered, as the shell has reported.
    let mut shell = shell_with(&venue, config, key(), false);
    said(&mut shell, "connect");
    venue.fail_once(Fault::Hold(Method::Sell, 8_000));
    assert_eq!(failure(&mut shell, "sell BTC-PERPETUAL 10 60000").kind(), "not_done");
    let start = std::time::Instant::now();
    while venue.is_holding() {
        assert!(start.elapsed().as_secs() < 60, "it does not arrive");
        std::thread::yield_now();
    }
    assert_eq!(venue.order_count(), 1);
}

#[test]
fn what_is_left_of_a_market_order_is_found_as_what_it_was() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    for (order, state) in [("10 label=rests", "open"), ("10 label=mine", "filled"), ("10", "filled")] {
        said(&mut shell, "connect");
        venue.fail_once(Fault::LoseAnswer(Method::Buy));
        let text = said(&mut shell, &format!("buy BTC-PERPETUAL {order}"));
        assert!(text.contains(state), "{order}: {text}");
    }
    assert_eq!(venue.order_count(), 3);
    // A filled order cannot be cancelled, whatever happened to the request.
    venue.fail_once(Fault::LoseRequest(Method::Cancel));
    let lost = failure(&mut shell, "cancel 2");
    assert!(lost.kind() == "not_done" && lost.to_string().contains("filled"), "{lost}");
    venue.fail_twice(Fault::LoseAnswer(Method::CancelAll));
    assert_eq!(failure(&mut shell, "cancel_all").kind(), "unknown");
}

#[test]
fn the_end_of_an_order_is_not_taken_for_its_change() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    said(&mut shell, "buy BTC-PERPETUAL 10 50000 post_only");
    said(&mut shell, "edit 1 price=49000 post_only");
    venue.cancel_with_connection();
    venue.fail_once(Fault::LoseRequest(Method::Edit));
    let lost = failure(&mut shell, "edit 1 price=49500 post_only");
    assert!(lost.kind() == "not_done" && lost.to_string().contains("cancelled"), "{lost}");
}

#[test]
fn an_order_of_the_same_label_that_is_another_one_is_not_taken_for_it() {
    let venue = Venue::start();
    let config = "request_timeout = '5s'";
    let mut other = shell_with(&venue, config, key(), false);
    said(&mut other, "buy BTC-PERPETUAL 10 50000 label=grid");
    said(&mut other, "buy BTC-PERPETUAL contracts=1 price=50000 label=grid");
    // An order equal to another client's is distinguished by its entry time, by the venue's clock.
    let entered = unix_ms();
    while unix_ms() < entered + 2_000 {
        std::thread::yield_now();
    }
    let mut shell = shell_with(&venue, config, key(), false);
    said(&mut shell, "connect");
    venue.fail_once(Fault::LoseRequest(Method::Buy));
    assert_eq!(failure(&mut shell, "buy BTC-PERPETUAL 10 50000 label=grid").kind(), "not_done");
    // Each order differs from one of those above in one field.
    for order in ["10 50000 tif=good_til_day", "contracts=2 price=50000", "10 50000 post_only"] {
        let mut shell = shell_with(&venue, config, key(), false);
        said(&mut shell, "connect");
        venue.fail_once(Fault::LoseRequest(Method::Buy));
        let lost = failure(&mut shell, &format!("buy BTC-PERPETUAL {order} label=grid"));
        // The orders above may date from the same second, which leaves the outcome uncertain.
        assert!(["not_done", "unknown"].contains(&lost.kind()), "{order}: {lost}");
        venue.fail_once(Fault::LoseAnswer(Method::Buy));
        let found = said(&mut shell, &format!("buy BTC-PERPETUAL {order} label=grid"));
        assert!(found.contains("label grid"), "{order}: {found}");
    }
    assert_eq!(venue.order_count(), 5);
}

#[test]
fn changes_and_cancels_whose_answer_was_lost_are_looked_up() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    said(&mut shell, "buy BTC-PERPETUAL 10 50000");
    venue.fail_once(Fault::LoseAnswer(Method::Edit));
    assert!(said(&mut shell, "edit 1 amount=20 price=49000").contains("buy 20 BTC-PERPETUAL at 49000"));
    venue.fail_once(Fault::LoseRequest(Method::Edit));
    let lost = failure(&mut shell, "edit 1 price=48000");
    assert!(lost.kind() == "not_done" && lost.to_string().contains("at 49000"), "{lost}");
    // The order was changed before: each field of the new change is compared.
    venue.fail_once(Fault::LoseRequest(Method::Edit));
    assert_eq!(failure(&mut shell, "edit 1 trigger_price=47000").kind(), "not_done");
    venue.fail_once(Fault::LoseAnswer(Method::Edit));
    assert!(said(&mut shell, "edit 1 trigger_price=47000").contains("order 1 open"));
    venue.fail_once(Fault::LoseAnswer(Method::Edit));
    assert!(said(&mut shell, "edit 1 contracts=2").contains("order 1 open"));
    // The same change again: the earlier one must not count as the lost answer.
    venue.fail_once(Fault::LoseRequest(Method::Edit));
    let lost = failure(&mut shell, "edit 1 contracts=2");
    assert!(["not_done", "unknown"].contains(&lost.kind()), "{lost}");
    // A new shell, because each loss extends the pause before the next reconnect.
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    said(&mut shell, "connect");
    venue.fail_once(Fault::LoseRequest(Method::Cancel));
    let lost = failure(&mut shell, "cancel 1");
    assert!(lost.kind() == "unknown" && lost.to_string().contains("order 1 open"), "{lost}");
    venue.fail_once(Fault::LoseAnswer(Method::Cancel));
    assert!(said(&mut shell, "cancel 1").contains("order 1 cancelled"));
    // A mass cancel is idempotent; the count is that of the second time.
    said(&mut shell, "buy BTC-PERPETUAL 10 50000");
    venue.fail_once(Fault::LoseAnswer(Method::CancelAll));
    let text = said(&mut shell, "cancel_all");
    assert!(text.starts_with("0 orders cancelled\n") && text.contains("are not counted"), "{text}");
    assert_eq!(said(&mut shell, "orders"), "no open orders");
    said(&mut shell, "buy BTC-PERPETUAL 10 50000 label=grid");
    venue.fail_once(Fault::LoseAnswer(Method::CancelByLabel));
    let text = said(&mut shell, "cancel label=grid");
    assert!(text.starts_with("0 orders cancelled\n") && text.contains("are not counted"), "{text}");
    // Queries are repeated automatically.
    venue.fail_once(Fault::LoseAnswer(Method::GetPositions));
    assert!(said(&mut shell, "positions").contains("BTC-PERPETUAL"));
}

#[test]
fn a_time_out_is_an_error_and_an_order_is_looked_up_after_it() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "request_timeout = '5s'", key(), false);
    said(&mut shell, "connect");
    venue.fail_once(Fault::Silent(Method::GetPositions));
    assert_eq!(failure(&mut shell, "positions").kind(), "timeout");
    venue.fail_once(Fault::Silent(Method::Buy));
    assert!(said(&mut shell, "buy BTC-PERPETUAL 10 50000").contains("order 1 open"));
    assert_eq!(venue.seen(Method::Buy), 1);
}

#[test]
fn a_loss_between_two_commands_is_told() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    said(&mut shell, "buy BTC-PERPETUAL 10 50000");
    let losses = shell.link().losses();
    venue.drop_all();
    let start = std::time::Instant::now();
    while shell.link().losses() == losses {
        assert!(start.elapsed().as_secs() < 60, "the loss is not noticed");
        said(&mut shell, "orders");
    }
    said(&mut shell, "orders");
    let notes: Vec<String> = std::iter::from_fn(|| shell.link().next_note()).collect();
    assert!(notes.iter().any(|note| note.contains("the connection broke")), "{notes:?}");
    assert!(notes.iter().any(|note| note == "connected again"), "{notes:?}");
}

#[test]
fn data_of_channels_that_nobody_wants_take_no_memory() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    let channel = "ticker.BTC-PERPETUAL.100ms";
    said(&mut shell, &format!("subscribe {channel}"));
    said(&mut shell, &format!("wait {channel} 3"));
    assert_eq!(shell.link().feeds().len(), 1);
    said(&mut shell, &format!("unsubscribe {channel}"));
    venue.send_unasked("ticker.OTHER.raw");
    let start = std::time::Instant::now();
    while !said(&mut shell, "show 20").contains("ticker.OTHER.raw") {
        assert!(start.elapsed().as_secs() < 60, "nothing came");
        said(&mut shell, "positions");
    }
    assert_eq!(shell.link().feeds().len(), 0);
}

#[test]
fn subscriptions_come_back_after_a_loss() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    let channel = "ticker.BTC-PERPETUAL.100ms";
    assert_eq!(said(&mut shell, &format!("subscribe {channel}")), "subscribed: 1 channel");
    let text = failure(&mut shell, "subscribe ticker.NO-SUCH.100ms").to_string();
    assert!(text.contains("does not give ticker.NO-SUCH.100ms"), "{text}");
    // The messages since the subscription; no more will arrive.
    said(&mut shell, &format!("wait {channel} 3"));
    assert!(said(&mut shell, "subscriptions").contains("#3  bid 50000 x 100"));
    assert_eq!(failure(&mut shell, &format!("wait {channel} timeout=50ms")).kind(), "not_done");
    venue.drop_all();
    said(&mut shell, &format!("wait {channel} 3 timeout=60s"));
    assert_eq!(venue.seen(Method::PrivateSubscribe), 3);
    let notes: Vec<String> = std::iter::from_fn(|| shell.link().next_note()).collect();
    assert!(notes.iter().any(|note| note == "connected again, 1 channel"), "{notes:?}");
    assert!(shell.link().down_since_ms().is_none());
    assert!(said(&mut shell, "status").contains("1 connection lost"));
    assert_eq!(said(&mut shell, &format!("unsub {channel}")), "unsubscribed: 1 channel");
    assert_eq!(said(&mut shell, "subs"), "no subscriptions");
}

#[test]
fn limits_hold_before_anything_is_sent() {
    let venue = Venue::start();
    let limits = "[limits]\norder_size_max = '30'\nnotional_max = '25'\nopen_orders_max = 1";
    let mut shell = shell_with(&venue, limits, key(), false);
    assert!(failure(&mut shell, "buy BTC-PERPETUAL 40 50000").to_string().contains("order_size_max = 30"));
    assert!(failure(&mut shell, "buy BTC-PERPETUAL 30 50000").to_string().contains("notional_max = 25"));
    assert!(
        failure(&mut shell, "buy BTC-PERPETUAL contracts=4 price=50000")
            .to_string()
            .contains("order_size_max")
    );
    assert!(failure(&mut shell, "buy BTC-PERPETUAL 15 50000").to_string().contains("multiple of 10"));
    assert!(failure(&mut shell, "buy BTC-PERPETUAL 20 50000.2").to_string().contains("tick, 0.5"));
    assert!(
        failure(&mut shell, "buy BTC-PERPETUAL amount=20 contracts=3 price=50000")
            .to_string()
            .contains("do not agree")
    );
    assert_eq!(venue.seen(Method::Buy), 0);
    said(&mut shell, "buy BTC-PERPETUAL 20 50000");
    assert_eq!(failure(&mut shell, "buy BTC-PERPETUAL 10 50000").kind(), "limit");
    assert_eq!(failure(&mut shell, "edit 1 amount=40").kind(), "limit");
    // A contracts value that disagrees with the amount cannot bypass the limit.
    let text = failure(&mut shell, "edit 1 amount=10 contracts=400").to_string();
    assert!(text.contains("do not agree"), "{text}");
    assert_eq!((venue.seen(Method::Buy), venue.seen(Method::Edit)), (1, 0));
    // A closing order is subject to the limits too.
    let text = failure(&mut shell, "close BTC-PERPETUAL 50000").to_string();
    assert!(text.contains("open_orders_max"), "{text}");
    let mut shell = shell_with(&venue, "[limits]\nnotional_max = '19'", key(), false);
    assert!(failure(&mut shell, "close BTC-PERPETUAL").to_string().contains("notional_max"));
    let mut shell = shell_with(&venue, "[limits]\norder_size_max = '19'", key(), false);
    assert!(failure(&mut shell, "close BTC-PERPETUAL").to_string().contains("order_size_max"));
    assert_eq!(venue.seen(Method::ClosePosition), 0);
}

#[test]
fn limits_count_what_an_option_is_worth_and_not_its_price() {
    let venue = Venue::start();
    let limits = "[limits]\nnotional_max = '60000'";
    let mut shell = shell_with(&venue, limits, key(), false);
    let is_refused = |shell: &mut Shell, command: &str| {
        let text = failure(shell, command).to_string();
        assert!(text.contains("limits.notional_max = 60000"), "{command}: {text}");
    };
    is_refused(&mut shell, &format!("buy {OPTION} 1.2 0.01"));
    said(&mut shell, &format!("buy {OPTION} 1 0.01"));
    is_refused(&mut shell, "edit 1 amount=1.5");
    said(&mut shell, "edit 1 amount=1.1");
    // The position is 20.
    is_refused(&mut shell, &format!("close {OPTION}"));
    assert_eq!((venue.seen(Method::Buy), venue.seen(Method::Edit)), (1, 1));
    assert_eq!(venue.seen(Method::ClosePosition), 0);
}

#[test]
fn a_refused_login_names_the_key_and_where_it_is_from() {
    let venue = Venue::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.toml");
    std::fs::write(&path, format!("client_id = '{CLIENT_ID}'\nclient_secret = 'hunter2'\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let options = RunOptions { key_file: Some(path.clone()), ..options(&venue, "positions; positions") };
    let report = run(&options, Interrupt::default()).unwrap();
    let error = report.commands[0].error.as_deref().unwrap();
    let place = format!("the key {CLIENT_ID} is from {}", path.display());
    assert!(error.contains("login refused") && error.ends_with(&place), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    // A second attempt fails with the same message.
    let mut shell = shell_with(&venue, "", Some(Key::new(CLIENT_ID, "hunter2")), false);
    for _ in 0..2 {
        let text = failure(&mut shell, "positions").to_string();
        assert!(text.contains("login refused"), "{text}");
    }
    // Without a listener, each attempt reports the reason too.
    let gone = shell_with(&Venue::start(), "", key(), false);
    let mut shell = gone;
    for _ in 0..2 {
        let text = failure(&mut shell, "positions").to_string();
        assert!(text.contains("cannot connect"), "{text}");
    }
}

#[test]
fn a_dry_run_sends_no_order() {
    let venue = Venue::start();
    let mut shell = shell_with(&venue, "", key(), true);
    let text = said(&mut shell, "buy BTC-PERPETUAL 10 50000 label=x");
    assert!(
        text.starts_with("dry run: {\"dry_run\":\"private/buy\"") && text.contains("\"price\":50000"),
        "{text}"
    );
    assert!(text.ends_with("\"checked\":[\"instrument\",\"step\",\"tick\",\"band\"]}"), "{text}");
    for (command, words) in [
        ("buy NO-SUCH 10 50000", "refused"),
        ("buy BTC-PERPETUAL 15 50000", "multiple of 10"),
        ("buy BTC-PERPETUAL 10 50000.2", "tick, 0.5"),
        ("buy BTC-PERPETUAL 10 52000", "band, which is 49000"),
        ("sell BTC-PERPETUAL 10 48000", "band, which is 49000"),
        ("edit 7 amount=20", "order_not_found"),
    ] {
        let failure = failure(&mut shell, command).to_string();
        assert!(failure.contains(words), "{command}: {failure}");
    }
    // Far from the market on its own side, an order may rest.
    assert!(said(&mut shell, "sell BTC-PERPETUAL 10 52000").contains("band"));
    // If the venue cannot be reached, the order is shown anyway.
    let gone = Venue::start();
    let mut alone = shell_with(&gone, "", key(), true);
    drop(gone);
    let text = said(&mut alone, "buy BTC-PERPETUAL 10 50000");
    assert!(text.contains("\"checked\":[],\"not_checked\":\"not connected: "), "{text}");
    for command in ["cancel 1", "cancel_all", "cancel_all BTC", "close BTC-PERPETUAL", "cancel label=x"] {
        assert!(said(&mut shell, command).starts_with("dry run"), "{command}");
    }
    assert!(said(&mut shell, "status").contains("dry run"));
    assert_eq!(venue.order_count(), 0);
}

#[test]
fn the_history_shows_messages_without_secrets() {
    let venue = Venue::start();
    let mut shell = shell(&venue);
    said(&mut shell, "positions");
    let text = said(&mut shell, "show 1000");
    assert!(text.contains("public/auth") && text.contains("private/get_positions"), "{text}");
    for secret in [SECRET, "TOKEN-ACCESS", "TOKEN-REFRESH"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("(not shown)"));
    let text = said(&mut shell, "deribit_show get_positions sent oneline");
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("] > {\"jsonrpc\""), "{text}");
}

#[test]
fn over_tls_with_a_ca_of_ones_own() {
    let files = Certificates::new();
    let venue = Venue::start_tls(&files.certificate, &files.key);
    let mut shell = shell_with(&venue, &format!("ca_file = '{}'", files.ca.display()), key(), false);
    assert!(said(&mut shell, "buy BTC-PERPETUAL 10 50000").contains("order 1 open"));
}

fn options(venue: &Venue, commands: &str) -> RunOptions {
    let config = tickpath_config::parse("shell.toml", &format!("url = '{}'", venue.url)).unwrap();
    RunOptions {
        config,
        config_file: None,
        key_file: None,
        source: Source::Text(commands.to_owned()),
        is_dry_run: false,
        keeps_going: false,
        is_silent: true,
        is_reported: true,
        log: Vec::new(),
        has_no_pane: true,
    }
}

#[test]
fn a_script_ends_at_the_first_failure_and_its_report_keeps_digits() {
    let venue = Venue::start();
    let commands = "ticker BTC-PERPETUAL; positions; ticker BTC-PERPETUAL # not reached";
    let report = run(&options(&venue, commands), Interrupt::default()).unwrap();
    assert_eq!(report.ended, Ended::Failed);
    let status: Vec<&str> = report.commands.iter().map(|command| command.status).collect();
    assert_eq!(status, ["done", "invalid"]);
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.contains("\"best_ask_price\":50000.5") && json.contains("\"answer_ns\":"), "{json}");

    let options = RunOptions { keeps_going: true, ..options(&venue, commands) };
    let report = run(&options, Interrupt::default()).unwrap();
    assert_eq!((report.ended, report.commands.len()), (Ended::Failed, 3));
    assert!(report.stopwatch.iter().any(|figures| figures.name == "round_trip" && figures.count == 2));
}

#[test]
fn a_script_comes_from_a_file_and_quit_ends_it() {
    let venue = Venue::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    std::fs::write(&path, "# a script\nticker BTC-PERPETUAL\n\nquit\nbye\n").unwrap();
    let options = RunOptions { source: Source::Script(path), ..options(&venue, "") };
    let report = run(&options, Interrupt::default()).unwrap();
    assert_eq!((report.ended, report.commands.len()), (Ended::Done, 2));
    let options = RunOptions { source: Source::Script("/nowhere".into()), ..options };
    assert!(run(&options, Interrupt::default()).unwrap_err().to_string().contains("/nowhere"));
}

#[test]
fn what_channels_gave_and_how_the_shell_stands_is_reported() {
    let venue = Venue::start();
    let channel = "ticker.BTC-PERPETUAL.100ms";
    let commands = format!(
        "subscribe {channel}; wait {channel} 3; subscriptions; status; show 2; ticker BTC-PERPETUAL; stopwatch"
    );
    let report = run(&options(&venue, &commands), Interrupt::default()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    let result = |at: usize| &json["commands"][at]["result"];
    assert_eq!(result(1)["messages"].as_array().unwrap().len(), 3);
    assert_eq!(result(1)["messages"][2]["data"]["best_bid_price"], 50000.0);
    assert_eq!((result(2)[0]["count"].as_u64(), result(2)[0]["channel"].as_str()), (Some(3), Some(channel)));
    assert_eq!(result(3)["standing"], "connected");
    assert_eq!(result(4).as_array().unwrap().len(), 2);
    let counts = |figures: &serde_json::Value| {
        let buckets = figures["below_ns_and_count"].as_array().unwrap().iter();
        buckets.map(|bucket| bucket[1].as_u64().unwrap()).sum::<u64>()
    };
    let figures = result(6).as_array().unwrap();
    assert!(figures.iter().all(|it| Some(counts(it)) == it["count"].as_u64()), "{}", result(6));
    assert!(figures.iter().any(|it| counts(it) > 0), "{}", result(6));
    // Without a report no results are kept.
    let options = RunOptions { is_reported: false, ..options(&venue, "ticker BTC-PERPETUAL") };
    assert!(run(&options, Interrupt::default()).unwrap().commands.is_empty());
}

#[test]
fn an_interrupt_ends_a_wait() {
    let venue = Venue::start();
    let interrupt = Interrupt::default();
    let flag = interrupt.command.clone();
    let seen = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The second query follows the answer to the first, so the login is certainly complete.
            let start = std::time::Instant::now();
            while venue.seen(Method::Ticker) < 2 && start.elapsed().as_secs() < 60 {
                std::thread::yield_now();
            }
            seen.store(venue.seen(Method::Ticker) == 2, std::sync::atomic::Ordering::Relaxed);
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let commands = "connect; ticker BTC-PERPETUAL; ticker BTC-PERPETUAL; wait 10m";
        let report = run(&options(&venue, commands), interrupt).unwrap();
        assert!(seen.load(std::sync::atomic::Ordering::Relaxed));
        assert_eq!(report.ended, Ended::Interrupted);
        let status: Vec<&str> = report.commands.iter().map(|command| command.status).collect();
        assert_eq!(status[..2], ["done", "done"], "{status:?}");
    });
    // Both a running wait and a new one notice the flag.
    let interrupt = Interrupt::default();
    let flag = interrupt.command.clone();
    let config: ShellConfig =
        tickpath_config::parse("shell.toml", &format!("url = '{}'", venue.url)).unwrap();
    let url = config.checked_url().unwrap();
    let mut shell = Shell::new(Link::new(config, url, key()), key(), false, interrupt);
    said(&mut shell, "connect");
    flag.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(failure(&mut shell, "wait 10m").kind(), "interrupted");
}

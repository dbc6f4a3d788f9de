//! Scopes and lifetime of logins.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use tickpath_deribit_front::{HttpCall, Transport};

use crate::front::fix_client::Client;
use crate::front::support::{Venue, changed};

const PERPETUAL: &str = "BTC-PERPETUAL";

fn login(venue: &mut Venue, connection: u64, id: &str, scope: &str) -> Value {
    let params = json!({ "grant_type": "client_credentials", "client_id": id, "client_secret": format!("{id}-secret"), "scope": scope });
    venue.ok(connection, "public/auth", params)
}

#[test]
fn a_scope_that_asks_for_nothing_is_given_nothing() {
    let mut venue = Venue::new();
    let anna = venue.connect();
    let granted = login(&mut venue, anna, "anna", "trade:none");
    assert_eq!(granted["scope"], "connection mainaccount account:none trade:none wallet:none");
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000 });
    assert_eq!(venue.refused(anna, "private/buy", order), 13021);
}

#[test]
fn a_channel_asks_for_the_scope_of_the_methods_that_tell_the_same() {
    let narrow = changed(&[("scope = \"account:read trade:read\"", "scope = \"account:read\"")]).unwrap();
    let mut venue = Venue::of(narrow);
    let reader = venue.login("reader");
    let channels = json!({ "channels": ["user.orders.any.any.raw", "user.trades.any.any.raw", "user.changes.any.any.raw", "user.portfolio.btc", "ticker.BTC-PERPETUAL.raw"] });
    let told = venue.ok(reader, "private/subscribe", channels.clone());
    assert_eq!(told, json!(["user.portfolio.btc", "ticker.BTC-PERPETUAL.raw"]));
    let narrow = changed(&[("scope = \"account:read trade:read\"", "scope = \"trade:read\"")]).unwrap();
    let mut venue = Venue::of(narrow);
    let reader = venue.login("reader");
    let told = venue.ok(reader, "private/subscribe", channels);
    assert_eq!(told.as_array().unwrap().len(), 4, "all but the portfolio: {told}");
}

#[test]
fn a_refused_subscription_begins_nothing() {
    let mut venue = Venue::new();
    let nobody = venue.connect();
    let channels = json!({ "channels": ["quote.BTC-PERPETUAL", "book.BTC-PERPETUAL.raw"] });
    assert_eq!(venue.refused(nobody, "public/subscribe", channels), 13778);
    let anna = venue.login("anna");
    venue.ok(anna, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000 }));
    assert!(venue.news(nobody, "quote.BTC-PERPETUAL").is_empty());
}

#[test]
fn channels_joined_by_a_token_end_with_it() {
    let channel = "user.orders.any.any.raw";
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000 });
    for is_revoked in [true, false] {
        let mut venue = Venue::new();
        let (anna, watcher) = (venue.connect(), venue.connect());
        let granted = login(&mut venue, anna, "anna", "session:desk expires:60");
        let joined = json!({ "channels": [channel], "access_token": granted["access_token"] });
        assert_eq!(venue.ok(watcher, "private/subscribe", joined), json!([channel]));
        venue.ok(anna, "private/buy", order.clone());
        assert_eq!(venue.news(watcher, channel).len(), 1);
        if is_revoked {
            venue.call(anna, "private/logout", json!({ "invalidate_token": true }));
        } else {
            venue.wait(61_000_000);
        }
        let again = venue.login("anna");
        venue.ok(again, "private/buy", order.clone());
        assert!(venue.news(watcher, channel).is_empty(), "revoked: {is_revoked}");
    }
}

#[test]
fn a_renewed_login_cancels_on_disconnect_as_it_did() {
    let mut venue = Venue::new();
    let anna = venue.connect();
    let granted = login(&mut venue, anna, "anna", "");
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({ "scope": "account" }));
    venue.front.close(anna, venue.now_us);
    let renewal =
        |granted: Value| json!({ "grant_type": "refresh_token", "refresh_token": granted["refresh_token"] });
    let anna = venue.connect();
    // The tokens ended with their connection.
    assert_eq!(venue.refused(anna, "public/auth", renewal(granted)), 13009);
    let granted = login(&mut venue, anna, "anna", "");
    venue.ok(anna, "private/disable_cancel_on_disconnect", json!({ "scope": "connection" }));
    venue.ok(anna, "public/auth", renewal(granted));
    let scope = json!({ "scope": "connection" });
    assert_eq!(venue.ok(anna, "private/get_cancel_on_disconnect", scope)["enabled"], false);
}

#[test]
fn a_logout_ends_the_token_of_a_session_too() {
    let mut venue = Venue::new();
    let anna = venue.connect();
    let granted = login(&mut venue, anna, "anna", "session:desk");
    let other = venue.connect();
    let shown = json!({ "access_token": granted["access_token"] });
    venue.ok(other, "private/get_positions", shown.clone());
    venue.call(anna, "private/logout", json!({ "invalidate_token": true }));
    assert_eq!(venue.refused(other, "private/get_positions", shown.clone()), 13009);
    let renewed = json!({ "grant_type": "refresh_token", "refresh_token": granted["refresh_token"] });
    assert_eq!(venue.refused(other, "public/auth", renewed), 13009);
    let mut venue = venue.restarted(Vec::new());
    let other = venue.connect();
    assert_eq!(venue.refused(other, "private/get_positions", shown), 13009, "for ever");
}

#[test]
fn nobody_is_told_of_an_account_that_he_is_not_logged_in_to() {
    let mut venue = Venue::new();
    let connection = venue.login("anna");
    let channel = "user.orders.any.any.raw";
    let channels = json!({ "channels": [channel] });
    venue.ok(connection, "private/subscribe", channels.clone());
    login(&mut venue, connection, "bert", "trade:read");
    let anna = venue.login("anna");
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000 });
    venue.ok(anna, "private/buy", order.clone());
    assert!(venue.news(connection, channel).is_empty(), "he is another now");
    // An expired login.
    venue.ok(connection, "private/subscribe", channels.clone());
    let bert = venue.login("bert");
    venue.ok(bert, "private/buy", order.clone());
    assert_eq!(venue.news(connection, channel).len(), 1);
    for _ in 0..3 {
        venue.wait(301_000_000);
        venue.ok(bert, "public/test", json!({}));
        venue.ok(connection, "public/test", json!({}));
    }
    let bert = venue.login("bert");
    venue.ok(bert, "private/buy", order);
    assert!(venue.news(connection, channel).is_empty(), "the token was good for 15 minutes");
}

#[test]
fn tokens_are_kept_in_bounded_room() {
    let mut venue = Venue::new();
    let mut sizes = Vec::new();
    let mut last = Value::Null;
    for round in 0..3 {
        for _ in 0..600 {
            venue.now_us += 50_000;
            let number = venue.connect();
            let scope = format!("session:{round} expires:1");
            last = login(&mut venue, number, "anna", &scope);
            venue.front.close(number, venue.now_us);
            venue.keep_tokens();
        }
        venue.wait(60_000_000);
        sizes.push(venue.tokens.len());
    }
    assert!(sizes.iter().all(|size| *size < 1_500_000), "{sizes:?}");
    let number = venue.connect();
    last["access_token"] = login(&mut venue, number, "anna", "session:kept")["access_token"].clone();
    let mut venue = venue.restarted(Vec::new());
    let number = venue.connect();
    venue.ok(number, "private/get_positions", json!({ "access_token": last["access_token"] }));
    assert!(venue.tokens.len() < 10_000, "the expired are gone: {}", venue.tokens.len());
}

/// Sends an HTTP request with anna's id and secret.
fn send_basic(venue: &mut Venue) -> u64 {
    let number = venue.front.open(Transport::Http, venue.now_us);
    let path = "/api/v2/private/get_positions";
    let call = HttpCall {
        connection: 1,
        method: "GET",
        target: path,
        path,
        query: Vec::new(),
        authorization: Some("Basic YW5uYTphbm5hLXNlY3JldA=="),
        body: b"",
    };
    venue.front.handle_http(number, &call, venue.now_us);
    number
}

/// Returns the error of its reply.
fn basic(venue: &mut Venue) -> Value {
    let number = send_basic(venue);
    let reply = venue.frames(number).remove(0);
    venue.front.close(number, venue.now_us);
    reply["error"]["code"].clone()
}

fn credentials(id: &str, secret: &str) -> Value {
    json!({ "grant_type": "client_credentials", "client_id": id, "client_secret": secret })
}

/// Logs in from an address of this machine; returns null while the login is delayed.
fn guess(venue: &mut Venue, id: &str, secret: &str) -> (u64, Value) {
    let number = venue.connect();
    let reply = venue.call(number, "public/auth", credentials(id, secret));
    (number, reply["error"]["code"].clone())
}

/// Uses up the failed logins of anna that are checked without a delay.
fn fail_20_times(venue: &mut Venue) {
    for _ in 0..20 {
        assert_eq!(guess(venue, "anna", "wrong").1, json!(13_004));
    }
}

/// Interval between two checks of delayed logins.
const CHECK_US: u64 = 500_000;

#[test]
fn where_an_address_guesses_a_key_the_right_secret_waits_and_is_not_refused() {
    let mut venue = Venue::new();
    let elsewhere = Ipv4Addr::new(192, 0, 2, 1);
    let known = venue.front.open_from(elsewhere, Transport::WebSocket, venue.now_us);
    let granted = login(&mut venue, known, "anna", "session:desk");
    fail_20_times(&mut venue);
    let late = ["wrong", "anna-secret", "wrong"].map(|secret| {
        let (number, reply) = guess(&mut venue, "anna", secret);
        assert_eq!(reply, Value::Null, "put off");
        assert!(venue.front.is_login_waiting(number));
        number
    });
    let mut fix = Client::login_as(&mut venue, "anna", "late", |_| {});
    let http = send_basic(&mut venue);
    assert!(!fix.got.is_up && fix.got.logout.is_none() && venue.frames(http).is_empty());
    // Other keys on the same machine are not delayed, nor are existing logins.
    venue.login("bert");
    assert!(Client::login(&mut venue, "bert").got.is_up);
    // An address with an earlier correct login keeps its session, renews it, and logs in again.
    let again = venue.front.open_from(elsewhere, Transport::WebSocket, venue.now_us);
    login(&mut venue, again, "anna", "");
    venue.ok(known, "private/get_positions", json!({}));
    let renewal = json!({ "grant_type": "refresh_token", "refresh_token": granted["refresh_token"] });
    venue.ok(known, "public/auth", renewal);
    // Checks follow the order of arrival; after the correct secret no login is delayed.
    venue.wait(CHECK_US);
    assert_eq!(venue.frames(late[0])[0]["error"]["code"], 13_004);
    assert!(venue.front.is_login_waiting(late[1]));
    venue.wait(CHECK_US);
    assert_eq!(venue.frames(late[1])[0]["result"]["token_type"], "bearer");
    assert!(!venue.front.is_login_waiting(late[2]) && !venue.frames(late[2]).is_empty());
    fix.pump(&mut venue);
    assert!(fix.got.is_up);
    let reply = venue.frames(http).remove(0);
    assert!(reply.get("result").is_some(), "{reply}");
    venue.ok(late[1], "private/get_positions", json!({}));
    venue.login("anna");
}

#[test]
fn as_many_logins_wait_as_may_and_one_that_is_gone_gives_way() {
    let mut venue = Venue::new();
    fail_20_times(&mut venue);
    let waiting: Vec<u64> = (0..16).map(|_| guess(&mut venue, "anna", "wrong").0).collect();
    assert_eq!(guess(&mut venue, "anna", "anna-secret").1, json!(10_028));
    let mut fix = Client::login_as(&mut venue, "anna", "late", |_| {});
    fix.pump(&mut venue);
    assert_eq!(fix.got.logout.as_deref(), Some("too_many_requests"));
    for number in &waiting[1..] {
        venue.front.close(*number, venue.now_us);
    }
    let (anna, reply) = guess(&mut venue, "anna", "anna-secret");
    assert_eq!(reply, Value::Null);
    venue.wait(CHECK_US);
    venue.wait(CHECK_US);
    venue.ok(anna, "private/get_positions", json!({}));
    assert_eq!(venue.front.counters().logins_delayed.read(), 17);
}

#[test]
fn a_secret_that_was_right_before_a_restart_does_not_wait_after_it() {
    let mut venue = Venue::new();
    venue.login("anna");
    assert!(venue.front.poll_trusted().is_some() && venue.front.poll_trusted().is_none());
    let mut venue = venue.restarted(Vec::new());
    assert!(venue.front.poll_trusted().is_none(), "it is written");
    fail_20_times(&mut venue);
    assert_eq!(guess(&mut venue, "anna", "wrong").1, json!(10_028), "checked, and wrong");
    venue.login("anna");
    assert_eq!(basic(&mut venue), Value::Null);
    assert!(Client::login_as(&mut venue, "anna", "late", |_| {}).got.is_up);
}

#[test]
fn where_a_secret_was_right_it_is_accepted_whatever_others_try() {
    let mut venue = Venue::new();
    venue.login("anna");
    let wrong = json!({ "grant_type": "client_credentials", "client_id": "anna", "client_secret": "wrong" });
    let guesses: Vec<i64> = (0..22)
        .map(|_| {
            let number = venue.connect();
            venue.refused(number, "public/auth", wrong.clone())
        })
        .collect();
    assert_eq!((&guesses[..20], &guesses[20..]), (&[13_004; 20][..], &[10_028; 2][..]));
    assert_eq!(basic(&mut venue), Value::Null);
    assert!(Client::login_as(&mut venue, "anna", "late", |_| {}).got.is_up);
    venue.login("anna");
}

#[test]
fn an_address_without_credits_logs_in() {
    let mut venue = Venue::new();
    let codes: Vec<Value> = (0..101)
        .map(|_| {
            let number = venue.connect();
            venue.call(number, "public/test", json!({}))["error"]["code"].clone()
        })
        .collect();
    assert_eq!((&codes[..100], &codes[100]), (&vec![Value::Null; 100][..], &json!(10_028)));
    venue.login("anna");
    assert_eq!(basic(&mut venue), Value::Null);
    assert!(Client::login(&mut venue, "bert").got.is_up);
    // A malformed login is still charged to the address.
    let number = venue.connect();
    assert_eq!(venue.refused(number, "public/auth", json!({ "grant_type": 1 })), 10_028);
}

#[test]
fn logins_without_end_cost_the_account() {
    let mut venue = Venue::new();
    let with =
        json!({ "grant_type": "client_credentials", "client_id": "anna", "client_secret": "anna-secret" });
    let codes: Vec<Value> = (0..101)
        .map(|_| {
            let number = venue.connect();
            venue.call(number, "public/auth", with.clone())["error"]["code"].clone()
        })
        .collect();
    assert_eq!((&codes[..100], &codes[100]), (&vec![Value::Null; 100][..], &json!(10_028)));
    venue.login("bert");
}

#[test]
fn names_that_no_key_has_are_guessed_at_nobodys_cost() {
    let mut venue = Venue::new();
    for number in 0..20 {
        assert_eq!(guess(&mut venue, &format!("absent-{number}"), "x").1, json!(13_004));
    }
    let (waiting, reply) = guess(&mut venue, "another", "x");
    assert!(reply.is_null() && venue.front.is_login_waiting(waiting), "all of them together");
    venue.login("anna");
    assert_eq!(guess(&mut venue, "bert", "x").1, json!(13_004));
}

#[test]
fn a_key_that_logs_in_without_end_keeps_out_no_other() {
    let mut venue = Venue::new();
    let desk = venue.connect();
    let session = login(&mut venue, desk, "anna", "session:desk");
    // An HTTP login before each request, as some clients do: each token is valid for a quarter of an hour.
    for _ in 0..9_000 {
        venue.now_us += 50_000;
        let number = venue.front.open(Transport::Http, venue.now_us);
        let granted = login(&mut venue, number, "anna", "");
        venue.front.close(number, venue.now_us);
        venue.front.poll_tokens();
        if venue.now_us.is_multiple_of(10_000_000) {
            let number = venue.front.open(Transport::Http, venue.now_us);
            let shown = json!({ "access_token": granted["access_token"] });
            venue.ok(number, "private/get_positions", shown);
            venue.front.close(number, venue.now_us);
        }
    }
    venue.login("bert");
    venue.login("anna");
    // Tokens of a named session do not end either.
    let shown = json!({ "access_token": session["access_token"] });
    let other = venue.connect();
    venue.ok(other, "private/get_positions", shown);
}

#[test]
fn channels_stay_as_long_as_one_token_or_the_login_is_good() {
    let channel = "user.orders.any.any.raw";
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000 });
    let mut venue = Venue::new();
    let sessions = venue.connect();
    let long = login(&mut venue, sessions, "anna", "session:long expires:300");
    let short = login(&mut venue, sessions, "anna", "session:short expires:60");
    let watcher = venue.connect();
    login(&mut venue, watcher, "anna", "expires:30");
    let joined = |granted: &Value| json!({ "channels": [channel], "access_token": granted["access_token"] });
    for granted in [&long, &short] {
        assert_eq!(venue.ok(watcher, "private/subscribe", joined(granted)), json!([channel]));
    }
    let told = |venue: &mut Venue, until_s: u64| {
        let wait_us = until_s * 1_000_000 + crate::front::support::START_US - venue.now_us;
        venue.wait(wait_us);
        let trader = venue.login("anna");
        venue.ok(trader, "private/buy", order.clone());
        venue.news(watcher, channel).len()
    };
    assert_eq!(told(&mut venue, 35), 1, "its own login is over, and its tokens are good");
    assert_eq!(told(&mut venue, 65), 1, "one of them");
    assert_eq!(told(&mut venue, 305), 0, "none");
}

//! Funding, settlement, delivery and liquidation, also after a restart.

use serde_json::{Value, json};
use tickpath_deribit_front::LogStart;

use crate::front::support::{Venue, changed, settings};

const PERPETUAL: &str = "BTC-PERPETUAL";
const SECOND_US: u64 = 1_000_000;
const HOUR_US: u64 = 3_600 * SECOND_US;

fn trade(venue: &mut Venue, seller: u64, buyer: u64, name: &str, amount: Value, price: Value) {
    let params = json!({ "instrument_name": name, "amount": amount, "price": price });
    venue.ok(seller, "private/sell", params.clone());
    assert_eq!(venue.ok(buyer, "private/buy", params)["order"]["order_state"], "filled");
}

fn position(venue: &mut Venue, connection: u64, name: &str) -> Value {
    venue.ok(connection, "private/get_position", json!({ "instrument_name": name }))
}

fn summary(venue: &mut Venue, connection: u64, currency: &str) -> Value {
    venue.ok(connection, "private/get_account_summary", json!({ "currency": currency }))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Advances the clock, minute by minute.
fn pass(venue: &mut Venue, us: u64) {
    let end = venue.now_us + us;
    while venue.now_us < end {
        venue.wait((60 * SECOND_US).min(end - venue.now_us));
    }
}

#[test]
fn profit_of_futures_is_paid_at_eight_and_the_average_price_stays() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    venue.ok(bert, "private/subscribe", json!({ "channels": ["user.changes.any.any.raw"] }));
    // The index is 60 000: bert buys below it, and sells a part above.
    trade(&mut venue, anna, bert, PERPETUAL, json!(60_000), json!(58_000));
    trade(&mut venue, bert, anna, PERPETUAL, json!(30_000), json!(62_000));
    let before = summary(&mut venue, bert, "BTC");
    assert!(number(&before["session_rpl"]) > 0.0 && number(&before["session_upl"]) > 0.0, "{before}");
    let fees = 10.0 - number(&before["balance"]);
    assert!(fees > 0.0 && fees < 0.001, "profit waits for settlement: {before}");
    assert_eq!(position(&mut venue, bert, PERPETUAL)["settlement_price"], json!(0));
    let _ = venue.news(bert, "user.changes.any.any.raw");

    // The time is noon.
    pass(&mut venue, 20 * HOUR_US - 2 * SECOND_US);
    let bert = venue.login("bert");
    let waiting = summary(&mut venue, bert, "BTC");
    assert_eq!(waiting["balance"], before["balance"]);
    pass(&mut venue, 3 * SECOND_US);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let after = summary(&mut venue, bert, "BTC");
    let profit = number(&before["session_rpl"]) + number(&before["session_upl"]);
    assert!((number(&after["balance"]) - number(&before["balance"]) - profit).abs() < 1e-3, "{after}");
    assert_eq!((&after["session_rpl"], &after["equity"]), (&json!(0), &after["balance"]));
    let held = position(&mut venue, bert, PERPETUAL);
    assert_eq!((&held["average_price"], &held["size"]), (&json!(58_000), &json!(30_000)));
    assert!(number(&held["settlement_price"]) > 59_000.0);

    let history = venue.ok(bert, "private/get_settlement_history_by_currency", json!({ "currency": "BTC" }));
    let settled = &history["settlements"][0];
    assert_eq!((&settled["type"], &settled["position"]), (&json!("settlement"), &json!(30_000)));
    assert_eq!(settled["timestamp"].as_u64().unwrap() / 1_000 % 86_400 / 3_600, 8);
    let paid = number(&after["balance"]) - number(&before["balance"]);
    assert!((number(&settled["profit_loss"]) - paid).abs() < 1e-7);
    assert_eq!(history["continuation"], Value::Null);
    let of = json!({ "instrument_name": PERPETUAL, "type": "delivery" });
    assert_eq!(venue.ok(bert, "private/get_settlement_history_by_instrument", of)["settlements"], json!([]));
    let public = json!({ "instrument_name": PERPETUAL, "type": "settlement" });
    let public = venue.ok(anna, "public/get_last_settlements_by_instrument", public);
    assert_eq!(public["settlements"].as_array().unwrap().len(), 1, "{public}");
    assert!(
        venue.refused(
            bert,
            "private/get_settlement_history_by_currency",
            json!({ "currency": "BTC", "type": "x" })
        ) < 0
    );
}

#[test]
fn who_is_long_of_a_dear_perpetual_pays_the_other_to_the_last_digit() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, PERPETUAL, json!(60_000), json!(60_000));
    // The book is half a percent above the index.
    for (side, price) in [("buy", 60_300), ("sell", 60_301)] {
        venue.ok(
            anna,
            &format!("private/{side}"),
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price }),
        );
    }
    let begin_ms = venue.now_us / 1_000;
    // A client that is silent for ten minutes is disconnected.
    for _ in 0..590 {
        venue.wait(SECOND_US);
    }
    let ticker = venue.ok(anna, "public/ticker", json!({ "instrument_name": PERPETUAL }));
    assert!(number(&ticker["current_funding"]) > 0.004, "{ticker}");
    assert!(number(&ticker["funding_8h"]) > 0.0 && number(&ticker["mark_price"]) > 60_200.0);
    let (long, short) = (position(&mut venue, bert, PERPETUAL), position(&mut venue, anna, PERPETUAL));
    let paid = number(&long["realized_funding"]);
    // One bitcoin, ten minutes of eight hours, at most half a percent.
    assert!(paid < -0.00005 && paid > -0.000_11, "{paid}");
    assert_eq!(number(&short["realized_funding"]), -paid);
    let range = json!({ "instrument_name": PERPETUAL, "start_timestamp": begin_ms, "end_timestamp": venue.now_us / 1_000 });
    let rate = venue.ok(anna, "public/get_funding_rate_value", range.clone());
    assert!((number(&rate) + paid).abs() < 1e-6, "{rate} {paid}");
    assert_eq!(venue.ok(anna, "public/get_funding_rate_history", range), json!([]), "no hour is over");
    pass(&mut venue, HOUR_US);
    let anna = venue.login("anna");
    let range = json!({ "instrument_name": PERPETUAL, "start_timestamp": begin_ms, "end_timestamp": venue.now_us / 1_000 });
    let hours = venue.ok(anna, "public/get_funding_rate_history", range);
    assert!(number(&hours[0]["interest_1h"]) > 0.0 && hours[0]["index_price"] == 60_000, "{hours}");
    let other = json!({ "instrument_name": "BTC_USDC", "start_timestamp": 0, "end_timestamp": 1 });
    assert_eq!(venue.refused(anna, "public/get_funding_rate_value", other), 10031);
    let missing = json!({ "instrument_name": PERPETUAL });
    assert_eq!(venue.refused(anna, "public/get_funding_rate_value", missing), -32602);
}

/// Returns settings whose option is worth a sixth of a bitcoin at an index of 60 000 and expires in an hour.
fn expiring() -> tickpath_deribit_front::FrontSettings {
    let end_ms = crate::front::support::START_US / 1_000 + 3_600_000;
    changed(&[
        ("strike = \"60000\"", "strike = \"50000\", delivery_commission = \"0.00015\""),
        ("expiration_timestamp = 1798185600000", &format!("expiration_timestamp = {end_ms}")),
    ])
    .unwrap()
}

const OPTION: &str = "BTC-25DEC26-60000-C";

#[test]
fn what_expires_is_delivered_and_gone() {
    let mut venue = Venue::of(expiring());
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let states = "instrument.state.option.BTC";
    venue.ok(anna, "public/subscribe", json!({ "channels": [states] }));
    venue.ok(anna, "private/buy", json!({ "instrument_name": OPTION, "amount": 1, "price": 0.01 }));
    trade(&mut venue, anna, bert, OPTION, json!(2), json!(0.15));
    let premium = number(&summary(&mut venue, bert, "BTC")["balance"]);
    assert!((premium - 9.7).abs() < 1e-9, "{premium}");
    let before = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!(before.as_array().unwrap().len(), 1);
    pass(&mut venue, HOUR_US + 2 * SECOND_US);

    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})), json!([]));
    let over = venue.ok(anna, "private/get_order_state", json!({ "order_id": before[0]["order_id"] }));
    assert_eq!((&over["order_state"], &over["cancel_reason"]), (&json!("cancelled"), &json!("settlement")));
    let after = summary(&mut venue, bert, "BTC");
    // 2 x 10 000 / 60 000, less 0.00015 of each.
    assert!((number(&after["balance"]) - 9.7 - 1.0 / 3.0 + 0.0003).abs() < 1e-7, "{after}");
    assert_eq!(
        (&position(&mut venue, bert, OPTION)["size"], &after["options_value"]),
        (&json!(0), &json!(0))
    );
    let written = summary(&mut venue, anna, "BTC");
    assert!((number(&written["balance"]) - 10.3 + 1.0 / 3.0 + 0.0003).abs() < 1e-7, "{written}");
    let new = json!({ "instrument_name": OPTION, "amount": 1, "price": 0.01 });
    assert_eq!(venue.refused(anna, "private/buy", new), 10012);
    let listed = |venue: &mut Venue, expired: bool| {
        let params = json!({ "currency": "BTC", "kind": "option", "expired": expired });
        venue.ok(anna, "public/get_instruments", params)
    };
    assert_eq!(listed(&mut venue, false), json!([]));
    assert_eq!(
        (&listed(&mut venue, true)[0]["state"], &listed(&mut venue, true)[0]["is_active"]),
        (&json!("delivered"), &json!(false))
    );
    let prices = venue.ok(anna, "public/get_delivery_prices", json!({ "index_name": "btc_usd" }));
    assert_eq!(
        prices,
        json!({ "data": [{ "date": "2026-11-22", "delivery_price": 60_000 }], "records_total": 1 })
    );
    let ticker = venue.ok(anna, "public/ticker", json!({ "instrument_name": OPTION }));
    assert_eq!((&ticker["delivery_price"], &ticker["state"]), (&json!(60_000), &json!("delivered")));
    let history = json!({ "currency": "BTC", "type": "delivery" });
    let history = venue.ok(bert, "private/get_settlement_history_by_currency", history);
    assert_eq!(history["settlements"][0]["position"], 2);
}

#[test]
fn every_change_of_the_balance_is_in_the_log_of_transactions() {
    let mut venue = Venue::of(expiring());
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, PERPETUAL, json!(60_000), json!(59_500));
    trade(&mut venue, anna, bert, OPTION, json!(1), json!(0.15));
    trade(&mut venue, bert, anna, "BTC_USDC", json!(0.5), json!(60_000));
    pass(&mut venue, 21 * HOUR_US);
    for name in ["anna", "bert"] {
        let connection = venue.login(name);
        for (currency, begin) in [("BTC", 10.0), ("USDC", 100_000.0)] {
            let asked =
                json!({ "currency": currency, "start_timestamp": 0, "end_timestamp": 4_000_000_000_000_u64 });
            let log = venue.ok(connection, "private/get_transaction_log", asked);
            let logs = log["logs"].as_array().unwrap();
            let sum: f64 = logs.iter().map(|entry| number(&entry["change"])).sum();
            let now = summary(&mut venue, connection, currency);
            assert!((begin + sum - number(&now["balance"])).abs() < 1e-6, "{name} {currency}: {log}");
            assert_eq!(logs[0]["balance"], now["balance"], "the newest is first");
            if currency == "BTC" {
                let kinds: Vec<_> = logs.iter().rev().map(|entry| entry["type"].as_str().unwrap()).collect();
                assert_eq!(kinds, ["trade", "trade", "trade", "delivery", "settlement"]);
            }
        }
        let page = json!({ "currency": "BTC", "start_timestamp": 0, "end_timestamp": 4_000_000_000_000_u64, "count": 2 });
        let first = venue.ok(connection, "private/get_transaction_log", page.clone());
        let mut next = page.clone();
        next["continuation"] = first["continuation"].clone();
        let second = venue.ok(connection, "private/get_transaction_log", next);
        assert_eq!(second["logs"].as_array().unwrap().len(), 2);
        assert!(number(&second["logs"][0]["id"]) < number(&first["logs"][1]["id"]));
        let mut deliveries = page;
        deliveries["query"] = json!("delivery");
        assert_eq!(
            venue.ok(connection, "private/get_transaction_log", deliveries)["logs"].as_array().unwrap().len(),
            1
        );
    }
}

#[test]
fn an_account_without_margin_loses_its_orders_and_then_its_position() {
    let mut moving = settings();
    (moving.indices[0].2, moving.seed) = (10_000, 3);
    // Nothing else prevents the liquidation.
    moving.listings[0].contract.initial_margin_ppm = 10_000;
    moving.listings[0].contract.maintenance_margin_ppm = 5_000;
    let mut venue = Venue::of(moving);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    // 10 bitcoins of equity, a position of 900.
    trade(&mut venue, anna, bert, PERPETUAL, json!(54_000_000), json!(60_000));
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 57_500 }));
    let mut steps = 0;
    while venue.front.counters().liquidations.read() == 0 {
        steps += 1;
        assert!(steps < 5_000, "the index never moves so far");
        venue.wait(SECOND_US);
    }
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let sizes = [anna, bert].map(|own| position(&mut venue, own, PERPETUAL)["size"].as_i64().unwrap());
    assert_eq!(sizes[0], -sizes[1], "it finds no counterparty: the book is empty");
    let who = if number(&summary(&mut venue, anna, "BTC")["equity"])
        < number(&summary(&mut venue, bert, "BTC")["equity"])
    {
        0
    } else {
        1
    };
    let (loser, winner) = if who == 0 { (anna, bert) } else { (bert, anna) };
    let open = venue.ok(loser, "private/get_open_orders", json!({}));
    assert_eq!(open, json!([]), "its orders went first");
    let history = json!({ "currency": "BTC", "include_unfilled": true });
    let closed = venue.ok(loser, "private/get_order_history_by_currency", history);
    if who == 1 {
        assert!(closed.as_array().unwrap().iter().any(|order| order["cancel_reason"] == "autoliquidation"));
    }
    // The winner takes over the position as it is liquidated.
    let ticker = venue.ok(winner, "public/ticker", json!({ "instrument_name": PERPETUAL }));
    let (side, price) = if who == 1 { ("buy", &ticker["min_price"]) } else { ("sell", &ticker["max_price"]) };
    let (against, far) =
        if who == 1 { ("sell", &ticker["max_price"]) } else { ("buy", &ticker["min_price"]) };
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": far, "reduce_only": true, "type": "limit" });
    assert_eq!(venue.refused(loser, &format!("private/{against}"), order), 10009, "it would be in the way");
    let close = json!({ "instrument_name": PERPETUAL, "price": far, "type": "limit" });
    assert_eq!(venue.refused(loser, "private/close_position", close), 10009);
    venue.ok(
        winner,
        &format!("private/{side}"),
        json!({ "instrument_name": PERPETUAL, "amount": 100_000, "price": price, "reduce_only": true }),
    );
    for _ in 0..5 {
        venue.wait(SECOND_US);
    }
    let trades = json!({ "instrument_name": PERPETUAL, "count": 1000 });
    let trades = venue.ok(loser, "private/get_user_trades_by_instrument", trades);
    let forced = &trades["trades"][0];
    assert_eq!(
        (&forced["order_type"], &forced["liquidation"]),
        (&json!("liquidation"), &json!("T")),
        "{trades}"
    );
    let state = venue.ok(loser, "private/get_order_state", json!({ "order_id": forced["order_id"] }));
    assert_eq!((&state["is_liquidation"], &state["reduce_only"]), (&json!(true), &json!(true)));
    // 0.75 % of the value.
    let value = number(&forced["amount"]) / number(&forced["price"]);
    assert!((number(&forced["fee"]) - 0.0075 * value).abs() < 1e-7, "{forced}");
    let log = json!({ "currency": "BTC", "start_timestamp": 0, "end_timestamp": 4_000_000_000_000_u64, "query": "liquidation" });
    assert!(!venue.ok(loser, "private/get_transaction_log", log)["logs"].as_array().unwrap().is_empty());
}

#[test]
fn money_and_times_are_the_same_after_a_restart() {
    let mut moving = expiring();
    moving.indices[0].2 = 500;
    let mut venue = Venue::of(moving);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, PERPETUAL, json!(600_000), json!(60_000));
    trade(&mut venue, anna, bert, OPTION, json!(1), json!(0.15));
    pass(&mut venue, 30 * HOUR_US);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let bid = venue.ok(anna, "public/ticker", json!({ "instrument_name": PERPETUAL }))["min_price"].clone();
    trade(&mut venue, bert, anna, PERPETUAL, json!(10), bid);
    pass(&mut venue, 2 * HOUR_US);
    let state = |venue: &mut Venue| {
        ["anna", "bert"].map(|name| {
            let connection = venue.login(name);
            let log =
                json!({ "currency": "BTC", "start_timestamp": 0, "end_timestamp": 4_000_000_000_000_u64 });
            let trades = json!({ "currency": "BTC", "count": 100 });
            [
                summary(venue, connection, "BTC"),
                position(venue, connection, PERPETUAL),
                position(venue, connection, OPTION),
                venue.ok(connection, "private/get_transaction_log", log),
                venue.ok(connection, "private/get_user_trades_by_currency", trades),
                venue.ok(
                    connection,
                    "private/get_settlement_history_by_currency",
                    json!({ "currency": "BTC" }),
                ),
                venue.ok(connection, "public/get_delivery_prices", json!({ "index_name": "btc_usd" })),
                venue.ok(connection, "public/get_index_price", json!({ "index_name": "btc_usd" })),
            ]
        })
    };
    let before = state(&mut venue);
    assert!(before[0][3]["logs"].as_array().unwrap().len() >= 5, "{}", before[0][3]);
    let mut venue = venue.restarted(Vec::new());
    let after = state(&mut venue);
    for (before, after) in before.iter().flatten().zip(after.iter().flatten()) {
        assert_eq!(before, after);
    }
    // Settlements continue: the next one happens once.
    pass(&mut venue, 24 * HOUR_US);
    let bert = venue.login("bert");
    let history = json!({ "currency": "BTC", "type": "settlement" });
    let history = venue.ok(bert, "private/get_settlement_history_by_currency", history);
    assert_eq!(history["settlements"].as_array().unwrap().len(), 2, "{history}");
}

#[test]
fn what_clients_set_outlives_the_venue() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let stop = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_limit", "price": 59_000, "trigger": "mark_price", "trigger_price": 59_100, "label": "kept" });
    let stop = venue.ok(anna, "private/sell", stop)["order"].clone();
    let trailing = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "trailing_stop", "trigger": "index_price", "trigger_offset": 500 });
    venue.ok(anna, "private/buy", trailing.clone());
    let gone = venue.ok(anna, "private/buy", trailing)["order"]["order_id"].clone();
    venue.ok(anna, "private/cancel", json!({ "order_id": gone }));
    venue.ok(
        anna,
        "private/edit",
        json!({ "order_id": stop["order_id"], "amount": 20, "trigger_price": 59_200 }),
    );
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({ "scope": "account" }));
    let login = |scope: &str| json!({ "grant_type": "client_credentials", "client_id": "anna", "client_secret": "anna-secret", "scope": scope });
    let of_session = venue.ok(anna, "public/auth", login("session:desk trade:read"));
    let of_connection = venue.ok(anna, "public/auth", login("connection trade:read"));
    let fork = json!({ "refresh_token": of_session["refresh_token"], "session_name": "second" });
    let forked = venue.ok(anna, "public/fork_token", fork);
    assert_eq!(forked["scope"], "session:second mainaccount account:none trade:read wallet:none");
    let fork = json!({ "refresh_token": of_connection["refresh_token"], "session_name": "third" });
    assert_eq!(venue.refused(anna, "public/fork_token", fork), 13009);
    let exchange =
        |subject: u64| json!({ "refresh_token": of_session["refresh_token"], "subject_id": subject });
    assert_eq!(venue.ok(anna, "public/exchange_token", exchange(1))["token_type"], "bearer");
    assert_eq!(venue.refused(anna, "public/exchange_token", exchange(77)), 13021);
    let open = |venue: &mut Venue, connection: u64| {
        let mut open = venue.ok(connection, "private/get_open_orders", json!({ "type": "trigger_all" }));
        for order in open.as_array_mut().unwrap() {
            order["last_update_timestamp"] = json!(0);
        }
        open
    };
    let labels = vec!["kept".to_owned()];
    let before = open(&mut venue, anna);
    let records = String::from_utf8(venue.front.poll_records()).unwrap();
    assert!(!records.contains(forked["access_token"].as_str().unwrap()), "no token is written down");
    venue.records.extend(records.into_bytes());

    let mut venue = venue.restarted(labels);
    let connection = venue.connect();
    let with = |token: &Value| json!({ "access_token": token["access_token"] });
    for token in [&of_session, &forked] {
        venue.ok(connection, "private/get_open_orders", with(token));
    }
    assert_eq!(venue.refused(connection, "private/get_open_orders", with(&of_connection)), 13009);
    let anna = venue.login("anna");
    assert_eq!(open(&mut venue, anna), before);
    assert_eq!(before.as_array().unwrap().len(), 2);
    let scope = json!({ "scope": "connection" });
    assert_eq!(venue.ok(anna, "private/get_cancel_on_disconnect", scope)["enabled"], true);
    // New numbers differ from the earlier ones.
    let another = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "mark_price", "trigger_price": 59_100 });
    let another = venue.ok(anna, "private/sell", another)["order"]["order_id"].clone();
    assert!(before.as_array().unwrap().iter().all(|order| order["order_id"] != another) && another != gone);
    let refresh = json!({ "grant_type": "refresh_token", "refresh_token": of_session["refresh_token"] });
    venue.ok(connection, "public/auth", refresh.clone());
    venue.records.extend(venue.front.poll_records());
    let mut venue = venue.restarted(Vec::new());
    let connection = venue.connect();
    assert_eq!(venue.refused(connection, "public/auth", refresh), 13009, "it was used");
}

#[test]
fn records_that_cannot_be_read_say_where() {
    let mut venue = Venue::new();
    let log = LogStart::default();
    assert!(venue.front.recall(b"\n", log).is_ok());
    let lines = b"{\"after\":1,\"at_ms\":1,\"what\":\"settled\"}\n{}\n";
    let error = venue.front.recall(lines, log).unwrap_err();
    assert!(error.to_string().starts_with("line 2 is no record that "));
}

#[test]
fn settlements_of_all_come_page_by_page() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, PERPETUAL, json!(100), json!(60_000));
    trade(&mut venue, anna, bert, "ETH_USDC-PERPETUAL", json!(1), json!(3_000));
    for _ in 0..3 {
        pass(&mut venue, 24 * HOUR_US);
    }
    let nobody = venue.connect();
    let mut ask = |count: u64, continuation: Value| {
        let params = json!({ "currency": "any", "count": count, "continuation": continuation });
        venue.ok(nobody, "public/get_last_settlements_by_currency", params)
    };
    let all = ask(1_000, Value::Null);
    let all_of_them = all["settlements"].as_array().unwrap().clone();
    assert_eq!((all_of_them.len(), &all["continuation"]), (6, &Value::Null), "{all}");
    let times: Vec<u64> = all_of_them.iter().map(|one| one["timestamp"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "the newest first: {times:?}");
    for count in [1, 2, 4] {
        let (mut pages, mut next) = (Vec::new(), Value::Null);
        loop {
            let page = ask(count, next);
            let settlements = page["settlements"].as_array().unwrap();
            assert!(settlements.len() as u64 <= count);
            pages.extend(settlements.iter().cloned());
            next = page["continuation"].clone();
            if next.is_null() {
                break;
            }
        }
        assert_eq!(pages, all_of_them, "by {count}");
    }
}

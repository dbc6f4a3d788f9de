//! Limits for clients, and rarely used methods.

use serde_json::{Value, json};
use tickpath_deribit_front::{HttpCall, Transport};
use tickpath_matching::CommandKind;
use tickpath_types::SelfTradePrevention;

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";

fn order(price: u64) -> Value {
    json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price })
}

#[test]
fn the_five_hundred_and_first_channel_is_left_out() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let names: Vec<String> = (1..=167)
        .flat_map(|group| [1, 10, 20].map(|depth| format!("book.{PERPETUAL}.{group}.{depth}.100ms")))
        .collect();
    assert_eq!(names.len(), 501);
    let (first, second) = names.split_at(250);
    assert_eq!(venue.ok(anna, "public/subscribe", json!({ "channels": first })), json!(first));
    let told = venue.ok(anna, "public/subscribe", json!({ "channels": second }));
    assert_eq!(told, json!(second[..250]), "all but the last");
    // An ended subscription frees capacity for another.
    venue.ok(anna, "public/unsubscribe", json!({ "channels": [names[0]] }));
    assert_eq!(venue.ok(anna, "public/subscribe", json!({ "channels": [names[500]] })), json!([names[500]]));
    let long: Vec<String> = (0..1100).map(|number| format!("book.{PERPETUAL}.{number}.10.100ms")).collect();
    // A message that is too long is not parsed, so its rejection has no id.
    assert_eq!(venue.call(anna, "public/subscribe", json!({ "channels": long })), Value::Null);
    let refusals = venue.told.remove(&anna).unwrap_or_default();
    let codes: Vec<_> = refusals.iter().filter_map(|frame| frame["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32600]);
}

#[test]
fn what_needs_a_connection_is_refused_over_http() {
    let mut venue = Venue::new();
    for (path, query) in [
        ("/api/v2/public/subscribe", ("channels", "[\"quote.BTC-PERPETUAL\"]")),
        ("/api/v2/public/set_heartbeat", ("interval", "10")),
        ("/api/v2/public/unsubscribe_all", ("x", "1")),
        ("/api/v2/private/enable_cancel_on_disconnect", ("scope", "connection")),
    ] {
        let number = venue.front.open(Transport::Http, venue.now_us);
        let call = HttpCall {
            connection: 1,
            method: "GET",
            target: path,
            path,
            query: vec![(query.0.to_owned(), query.1.to_owned())],
            authorization: Some("Basic YW5uYTphbm5hLXNlY3JldA=="),
            body: b"",
        };
        venue.front.handle_http(number, &call, venue.now_us);
        let reply = venue.frames(number).remove(0);
        assert_eq!(reply["error"]["code"], 10030, "{path}: {reply}");
        venue.front.close(number, venue.now_us);
    }
}

#[test]
fn what_is_no_method_costs_as_well() {
    for (method, path) in [("PUT", "/api/v2/public/get_time"), ("GET", "/elsewhere")] {
        let mut venue = Venue::new();
        let mut ask = || {
            let number = venue.front.open(Transport::Http, venue.now_us);
            let call = HttpCall {
                connection: 1,
                method,
                target: path,
                path,
                query: Vec::new(),
                authorization: None,
                body: b"",
            };
            venue.front.handle_http(number, &call, venue.now_us);
            let reply = venue.frames(number).remove(0);
            venue.front.close(number, venue.now_us);
            reply["error"]["code"].clone()
        };
        let over = (0..200).position(|_| ask() == 10_028);
        assert_eq!(over, Some(100), "{method} {path}");
    }
}

#[test]
fn a_mode_is_answered_by_the_log_and_given_up_in_time() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let ask = |venue: &mut Venue, id: u64| {
        let params = json!({ "mode": "reject_taker", "extended_to_subaccounts": false });
        let frame = json!({ "id": id, "method": "private/set_self_trading_config", "params": params });
        venue.front.handle_frame(anna, frame.to_string().as_bytes(), venue.now_us);
    };
    ask(&mut venue, 1);
    let session = venue.front.poll_request().unwrap().session;
    let mode = |strategy| CommandKind::SetSelfTradePrevention { strategy, account: session };
    venue.command(session, mode(SelfTradePrevention::CancelOldest));
    assert!(venue.frames(anna).is_empty(), "that is the operator's");
    venue.command(session, mode(SelfTradePrevention::CancelNewest));
    assert_eq!(venue.frames(anna)[0]["result"], "ok");
    ask(&mut venue, 2);
    venue.now_us += 31_000_000;
    venue.front.handle_time(venue.now_us);
    let replies = venue.frames(anna);
    assert_eq!((&replies[0]["id"], &replies[0]["error"]["code"]), (&json!(2), &json!(13_888)));
}

#[test]
fn what_is_filled_is_neither_edited_nor_cancelled() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let sold = venue.ok(anna, "private/sell", order(60_000));
    venue.ok(bert, "private/buy", order(60_000));
    let id = json!({ "order_id": sold["order"]["order_id"], "amount": 20 });
    assert_eq!(venue.refused(anna, "private/edit", id.clone()), 11008);
    assert_eq!(venue.refused(anna, "private/cancel", id), 11008);
}

#[test]
fn a_market_limit_order_takes_the_best_price_and_rests_there() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let buy = json!({ "instrument_name": PERPETUAL, "amount": 30, "type": "market_limit" });
    assert_eq!(venue.refused(bert, "private/buy", buy.clone()), 11030, "an empty book");
    venue.ok(anna, "private/sell", order(60_000));
    venue.ok(anna, "private/sell", order(60_010));
    let taken = venue.ok(bert, "private/buy", buy)["order"].clone();
    assert_eq!((&taken["filled_amount"], &taken["price"]), (&json!(10), &json!(60_000)));
    assert_eq!(
        (&taken["order_state"], &taken["order_type"], &taken["original_order_type"]),
        (&json!("open"), &json!("limit"), &json!("market_limit"))
    );
}

#[test]
fn instruments_have_numbers_and_perpetuals_have_interest() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.connect());
    venue.ok(anna, "private/buy", order(59_000));
    let listed = venue.ok(bert, "public/get_instrument", json!({ "instrument_name": PERPETUAL }));
    let by_id = json!({ "instrument_id": listed["instrument_id"], "depth": 1 });
    let book = venue.ok(bert, "public/get_order_book_by_instrument_id", by_id);
    assert_eq!((&book["bids"], &book["instrument_name"]), (&json!([[59_000, 10]]), &json!(PERPETUAL)));
    let unknown = json!({ "instrument_id": 99 });
    assert_eq!(venue.refused(bert, "public/get_order_book_by_instrument_id", unknown), -32602);
    // A book contains the same values as a ticker.
    let ticker = venue.ok(bert, "public/ticker", json!({ "instrument_name": PERPETUAL }));
    for name in ["estimated_delivery_price", "current_funding", "funding_8h", "interest_value", "mark_price"]
    {
        assert!(ticker.get(name).is_some() && ticker[name] == book[name], "{name}");
    }
    assert_eq!(listed["block_trade_min_trade_amount"], listed["min_trade_amount"]);
    let pair = venue.ok(bert, "public/get_instrument", json!({ "instrument_name": "BTC_USDC" }));
    assert_eq!(pair["expiration_timestamp"], 32_503_708_800_000_u64);
    let channel = "perpetual.BTC-PERPETUAL.100ms";
    let asked = json!({ "channels": [channel, "perpetual.BTC_USDC.100ms"] });
    assert_eq!(venue.ok(bert, "public/subscribe", asked), json!([channel]));
    let told = venue.news(bert, channel).pop().unwrap();
    assert_eq!((&told["index_price"], told["interest"].is_number()), (&json!(60_000), true));
}

#[test]
fn a_second_listener_of_changes_gets_all_of_it_first() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.connect());
    let channel = "incremental_ticker.BTC-PERPETUAL";
    venue.ok(anna, "public/subscribe", json!({ "channels": [channel] }));
    venue.ok(anna, "private/buy", order(59_000));
    venue.wait(100_000);
    venue.ok(bert, "public/subscribe", json!({ "channels": [channel] }));
    let first = venue.news(bert, channel);
    assert_eq!((&first[0]["type"], &first[0]["best_bid_price"]), (&json!("snapshot"), &json!(59_000)));
    venue.ok(anna, "private/buy", order(59_500));
    venue.wait(100_000);
    let (ours, theirs) = (venue.news(anna, channel), venue.news(bert, channel));
    assert_eq!(theirs.last(), ours.last());
    assert_eq!(theirs.last().unwrap()["best_bid_price"], json!(59_500));
}

#[test]
fn orders_that_wait_are_cancelled_by_their_type() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    venue.ok(anna, "private/buy", order(59_000));
    for more in [
        json!({ "type": "stop_market", "trigger": "mark_price", "trigger_price": 61_000 }),
        json!({ "type": "stop_limit", "trigger": "mark_price", "trigger_price": 61_000, "price": 61_000 }),
        json!({ "type": "take_market", "trigger": "mark_price", "trigger_price": 59_000 }),
        json!({ "type": "trailing_stop", "trigger": "mark_price", "trigger_offset": 500 }),
    ] {
        let mut params = json!({ "instrument_name": PERPETUAL, "amount": 10 });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        venue.ok(anna, "private/buy", params);
    }
    for (filter, cancelled) in
        [("stop", 2), ("take", 1), ("trailing_stop", 1), ("trigger_all", 0), ("limit", 1)]
    {
        let params = json!({ "instrument_name": PERPETUAL, "type": filter });
        assert_eq!(venue.ok(anna, "private/cancel_all_by_instrument", params), cancelled, "{filter}");
    }
}

#[test]
fn a_full_disk_takes_no_order_that_it_would_have_to_remember() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let with = |changes: Value| {
        let mut order = order(59_000);
        order.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        order
    };
    let labelled = |label: &str| with(json!({ "label": label }));
    let waiting = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "mark_price",
                          "trigger_price": 62_000 });
    let linked = with(json!({
        "linked_order_type": "one_triggers_other", "trigger_fill_condition": "first_hit",
        "otoco_config": [{ "amount": 10, "direction": "sell", "type": "limit", "price": 61_000 }]
    }));
    venue.ok(anna, "private/buy", labelled("known"));
    let kept = venue.ok(anna, "private/buy", waiting.clone())["order"]["order_id"].clone();
    let edit = json!({ "order_id": kept, "trigger_price": 63_000 });
    venue.front.set_storage(false);
    assert_eq!(venue.refused(anna, "private/edit", edit.clone()), 13028);
    for order in [labelled("new"), waiting.clone(), linked.clone()] {
        let reply = venue.call(anna, "private/buy", order);
        assert_eq!(reply["error"]["code"], 13028, "{reply}");
        assert!(reply["error"]["data"]["reason"].as_str().unwrap().contains("disk is full"), "{reply}");
    }
    // Orders that need no storage are accepted.
    venue.ok(anna, "private/buy", labelled("known"));
    venue.ok(anna, "private/buy", order(59_000));
    assert_eq!(venue.ok(anna, "private/cancel_all", json!({})), 4);
    venue.front.set_storage(true);
    for order in [labelled("new"), waiting, linked] {
        venue.ok(anna, "private/buy", order);
    }
}

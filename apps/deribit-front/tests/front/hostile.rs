//! Requests that must be rejected with Deribit's codes, and counted.

use serde_json::{Value, json};
use tickpath_deribit::sign::client_signature;
use tickpath_matching::CommandKind;

use crate::front::support::{START_US, Venue, settings};

const PERPETUAL: &str = "BTC-PERPETUAL";

#[test]
fn what_is_no_request_is_refused() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let deep = "[".repeat(5_000);
    let long =
        format!("{{\"id\":1,\"method\":\"public/test\",\"params\":{{\"a\":\"{}\"}}}}", "x".repeat(40_000));
    for (frame, code) in [
        ("", -32700),
        ("{", -32700),
        ("\u{0}", -32700),
        (deep.as_str(), -32600),
        (long.as_str(), -32600),
        ("[]", -32600),
        ("{\"method\":\"public/test\"}", -32600),
        ("{\"id\":1,\"method\":\"public/tset\"}", -32601),
        ("{\"id\":1,\"method\":\"private/verify_block_trade\",\"params\":{}}", -32601),
        ("{\"id\":1,\"method\":\"public/test\",\"params\":[]}", -32602),
        (
            "{\"id\":1,\"method\":\"public/hello\",\"params\":{\"client_name\":5,\"client_version\":\"a\"}}",
            -32602,
        ),
        ("{\"id\":1,\"method\":\"public/set_heartbeat\",\"params\":{\"interval\":9}}", -32602),
        ("{\"id\":1,\"method\":\"public/test\",\"params\":{\"expected_result\":\"exception\"}}", 10001),
    ] {
        venue.front.handle_frame(anna, frame.as_bytes(), venue.now_us);
        let replies = venue.frames(anna);
        assert_eq!((replies.len(), replies[0]["error"]["code"].as_i64()), (1, Some(code)), "{replies:?}");
    }
    assert!(venue.front.counters().malformed.read() >= 6);
    assert!(venue.front.poll_end(anna).is_none());
}

#[test]
fn orders_out_of_range_are_refused() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    for (params, code) in [
        (json!({ "instrument_name": "BTC-NOTHING", "amount": 10, "price": 60000 }), -32602),
        (json!({ "instrument_name": PERPETUAL, "price": 60000 }), -32602),
        (json!({ "instrument_name": PERPETUAL, "amount": 10 }), -32602),
        (json!({ "instrument_name": PERPETUAL, "amount": 5, "price": 60000 }), 10002),
        (json!({ "instrument_name": PERPETUAL, "amount": -10, "price": 60000 }), 10002),
        (json!({ "instrument_name": PERPETUAL, "amount": 15, "price": 60000 }), 10021),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "contracts": 2, "price": 60000 }), 10021),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000.3 }), 10043),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000.00001 }), 10043),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 0 }), 10023),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": "60000" }), -32602),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "type": "iceberg" }), -32602),
        (
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "post_only": true, "time_in_force": "immediate_or_cancel" }),
            11055,
        ),
        (
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "label": "x".repeat(65) }),
            -32602,
        ),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "valid_until": 1 }), 13888),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "display_amount": 20 }), 10036),
        (json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "mmp": true }), 11049),
    ] {
        assert_eq!(venue.refused(anna, "private/buy", params.clone()), code, "{params}");
    }
    assert_eq!(venue.engine.open_order_count(), 0);
    assert_eq!(venue.log.len(), 4, "nothing of it went to the venue");
}

#[test]
fn who_is_not_authenticated_may_do_nothing_private() {
    let mut venue = Venue::new();
    let nobody = venue.connect();
    for method in ["private/buy", "private/get_positions", "private/subscribe", "private/logout"] {
        assert_eq!(venue.refused(nobody, method, json!({})), 13009, "{method}");
    }
    let raw = json!({ "channels": ["book.BTC-PERPETUAL.raw"] });
    assert_eq!(venue.refused(nobody, "public/subscribe", raw), 13778);
    assert_eq!(venue.refused(nobody, "private/get_positions", json!({ "access_token": "forged" })), 13009);
    let reader = venue.login("reader");
    assert_eq!(venue.ok(reader, "private/get_positions", json!({})), json!([]));
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000 });
    assert_eq!(venue.refused(reader, "private/buy", order), 13021);
    assert_eq!(venue.refused(nobody, "private/cancel", json!({ "order_id": "1" })), 13009);
}

#[test]
fn nobody_enters_an_order_that_no_limit_holds_back() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let price = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_000 });
    venue.ok(bert, "private/sell", price.clone());
    venue.ok(anna, "private/buy", price);
    let forced =
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_000, "type": "liquidation" });
    let mut stop = forced.clone();
    (stop["trigger"], stop["trigger_price"]) = (json!("mark_price"), json!(61_000));
    let with = |more: Value| {
        let mut params = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000 });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let linked =
        with(json!({ "linked_order_type": "one_triggers_other", "trigger_fill_condition": "first_hit",
        "otoco_config": [{ "direction": "sell", "type": "liquidation", "price": 61_000 }] }));
    for (method, params) in [
        ("private/buy", forced.clone()),
        ("private/sell", forced.clone()),
        ("private/buy", stop),
        ("private/close_position", forced.clone()),
        ("private/buy", linked),
    ] {
        assert_eq!(venue.refused(anna, method, params.clone()), -32602, "{method} {params}");
    }
    // Unknown params are ignored, and the order is a normal one.
    let placed = venue.ok(anna, "private/buy", with(json!({ "is_liquidation": true, "force": true })));
    let id = placed["order"]["order_id"].clone();
    venue.ok(
        anna,
        "private/edit",
        json!({ "order_id": id, "amount": 20, "price": 59_000, "type": "liquidation" }),
    );
    assert!(venue.log.iter().all(|command| !matches!(command.kind, CommandKind::Force(_))));
    assert_eq!(venue.front.counters().liquidations.read(), 0);
}

#[test]
fn signatures_are_good_once_and_for_a_minute() {
    let mut venue = Venue::new();
    let client = venue.connect();
    let now_ms = START_US / 1000;
    let signed = |secret: &str, timestamp: u64, nonce: &str| {
        let signature = client_signature(secret.as_bytes(), timestamp, nonce, "");
        json!({ "grant_type": "client_signature", "client_id": "anna", "timestamp": timestamp, "nonce": nonce,
                "data": "", "signature": signature.as_str(), "state": "s" })
    };
    let result = venue.ok(client, "public/auth", signed("anna-secret", now_ms, "once"));
    assert_eq!(result["state"], "s");
    assert_eq!(venue.refused(client, "public/auth", signed("anna-secret", now_ms, "once")), 13009);
    assert_eq!(venue.refused(client, "public/auth", signed("other", now_ms, "two")), 13009);
    assert_eq!(venue.refused(client, "public/auth", signed("anna-secret", now_ms - 60_001, "three")), 13009);
    let credentials = |id: &str, secret: &str| json!({ "grant_type": "client_credentials", "client_id": id, "client_secret": secret });
    assert_eq!(venue.refused(client, "public/auth", credentials("anna", "wrong")), 13004);
    assert_eq!(venue.refused(client, "public/auth", credentials("absent", "wrong")), 13004);
    assert_eq!(venue.refused(client, "public/auth", json!({ "grant_type": "password" })), -32602);
    assert_eq!(venue.front.counters().logins_refused.read(), 5);
}

#[test]
fn tokens_are_refreshed_and_expire() {
    let mut venue = Venue::new();
    let client = venue.connect();
    let credentials = json!({ "grant_type": "client_credentials", "client_id": "anna", "client_secret": "anna-secret", "scope": "session:desk expires:60" });
    let first = venue.ok(client, "public/auth", credentials);
    assert_eq!(
        (&first["expires_in"], first["scope"].as_str().unwrap().split(' ').next()),
        (&json!(60), Some("session:desk"))
    );
    let other = venue.connect();
    let with = |token: &Value| json!({ "access_token": token });
    venue.ok(other, "private/get_positions", with(&first["access_token"]));
    let refresh = json!({ "grant_type": "refresh_token", "refresh_token": first["refresh_token"] });
    let second = venue.ok(other, "public/auth", refresh.clone());
    assert_eq!(venue.refused(client, "private/get_positions", with(&first["access_token"])), 13009);
    assert_eq!(venue.refused(client, "public/auth", refresh), 13009);
    venue.ok(client, "private/get_positions", with(&second["access_token"]));
    venue.wait(61_000_000);
    assert_eq!(venue.refused(client, "private/get_positions", with(&second["access_token"])), 13009);
    assert_eq!(venue.call(client, "private/logout", json!({})), Value::Null);
    assert_eq!(venue.front.poll_end(client), Some("logout"));
}

#[test]
fn who_asks_too_often_is_sent_away() {
    let mut few = settings();
    few.matching = (5, 20);
    let mut venue = Venue::of(few);
    let anna = venue.login("anna");
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 });
    for _ in 0..20 {
        venue.ok(anna, "private/buy", order.clone());
    }
    assert_eq!(venue.refused(anna, "private/buy", order.clone()), 10028);
    assert_eq!(venue.front.poll_end(anna), Some("too_many_requests"));
    let again = venue.login("anna");
    venue.wait(1_000_000);
    venue.ok(again, "private/buy", order);
    let nobody = venue.connect();
    let refused = (0..200)
        .map(|_| venue.call(nobody, "public/get_time", json!({})))
        .find(|reply| reply.get("error").is_some());
    assert_eq!(refused.unwrap()["error"]["code"], 10028);
    assert_eq!(venue.front.counters().over_rate.read(), 2);
}

#[test]
fn who_does_not_read_is_sent_away() {
    let mut venue = Venue::new();
    let (anna, deaf) = (venue.login("anna"), venue.login("bert"));
    venue.ok(
        deaf,
        "public/subscribe",
        json!({ "channels": ["book.BTC-PERPETUAL.raw", "ticker.BTC-PERPETUAL.raw"] }),
    );
    for step in 0..8_000_u32 {
        let price = 59000 + step % 100;
        let placed = venue.ok(
            anna,
            "private/buy",
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price }),
        );
        venue.ok(anna, "private/cancel", json!({ "order_id": placed["order"]["order_id"] }));
        venue.now_us += 20_000;
        if venue.front.poll_end(deaf).is_some() {
            break;
        }
    }
    assert_eq!(venue.front.poll_end(deaf), Some("connection_too_slow"));
    assert_eq!(venue.front.counters().slow_clients.read(), 1);
}

#[test]
fn silence_is_asked_about_and_then_ended() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    venue.ok(anna, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 }));
    venue.ok(anna, "public/set_heartbeat", json!({ "interval": 10 }));
    venue.wait(10_100_000);
    assert_eq!(venue.frames(anna).pop().unwrap()["params"]["type"], "test_request");
    venue.ok(anna, "public/test", json!({}));
    venue.wait(5_000_000);
    assert!(venue.front.poll_end(anna).is_none());
    venue.wait(5_200_000);
    venue.wait(10_200_000);
    venue.wait(10_200_000);
    venue.frames(anna);
    assert_eq!(venue.front.poll_end(anna), Some("no sign of life"));
    venue.front.close(anna, venue.now_us);
    venue.settle();
    assert_eq!(venue.engine.open_order_count(), 0);
}

#[test]
fn damaged_requests_are_answered_and_break_nothing() {
    let mut venue = Venue::new();
    let requests = [
        json!({ "id": 1, "method": "private/buy", "params": { "instrument_name": PERPETUAL, "amount": 10, "price": 60000, "label": "a" } }),
        json!({ "id": 2, "method": "private/sell", "params": { "instrument_name": PERPETUAL, "amount": 20, "type": "market" } }),
        json!({ "id": 3, "method": "private/edit", "params": { "order_id": "5", "amount": 30, "price": 59990 } }),
        json!({ "id": 4, "method": "private/cancel_all_by_kind_or_type", "params": { "currency": ["BTC"], "kind": "future", "detailed": true } }),
        json!({ "id": "x", "method": "private/buy", "params": { "instrument_name": "ETH_USDC-PERPETUAL", "amount": 0.5, "type": "stop_limit", "price": 3010.5, "trigger": "index_price", "trigger_price": 3005 } }),
        json!({ "id": 6, "method": "private/get_user_trades_by_currency", "params": { "currency": "BTC", "count": 100, "sorting": "asc" } }),
        json!({ "id": 7, "method": "public/subscribe", "params": { "channels": ["book.BTC-PERPETUAL.none.20.100ms", "user.orders.any.any.raw"] } }),
        json!({ "id": 8, "method": "public/get_order_book", "params": { "instrument_name": PERPETUAL, "depth": 10 } }),
        json!({ "id": 9, "method": "private/get_margins", "params": { "instrument_name": "BTC_USDC", "amount": 0.5, "price": 60000 } }),
    ];
    let mut state = 11_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut connection = venue.login("anna");
    for _ in 0..6_000 {
        let mut frame = requests[random(requests.len())].to_string().into_bytes();
        for _ in 0..random(4) {
            let place = random(frame.len().max(1));
            match random(4) {
                _ if frame.is_empty() => {}
                0 => frame[place] = b"0123456789.-e\"{}[],:tfn\\ \xff"[random(25)],
                1 => frame.truncate(place.max(1)),
                2 => frame.insert(place, b"0123456789.-\"{["[random(15)]),
                _ => _ = frame.remove(place),
            }
        }
        venue.front.handle_frame(connection, &frame, venue.now_us);
        venue.settle();
        venue.wait(40_000);
        let replies = venue.frames(connection).iter().filter(|frame| frame.get("usOut").is_some()).count();
        assert_eq!(replies, 1, "{}", String::from_utf8_lossy(&frame));
        if venue.front.poll_end(connection).is_some() {
            venue.front.close(connection, venue.now_us);
            connection = venue.login("anna");
        }
    }
    let book = venue.ok(
        connection,
        "public/get_order_book",
        json!({ "instrument_name": PERPETUAL, "depth": 10_000 }),
    );
    let open = venue.ok(
        connection,
        "private/get_open_orders_by_instrument",
        json!({ "instrument_name": PERPETUAL, "type": "limit" }),
    );
    let sum =
        |side: &Value| side.as_array().unwrap().iter().map(|level| level[1].as_f64().unwrap()).sum::<f64>();
    let leaves = open
        .as_array()
        .unwrap()
        .iter()
        .map(|order| order["amount"].as_f64().unwrap() - order["filled_amount"].as_f64().unwrap())
        .sum::<f64>();
    assert!(
        (sum(&book["bids"]) + sum(&book["asks"]) - leaves).abs() < 0.001,
        "the book is the account's open orders"
    );
}

#[test]
fn an_account_has_so_many_labels_and_others_have_theirs() {
    let mut few = settings();
    few.max_labels = 3;
    let mut venue = Venue::of(few);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let order =
        |label: &str| json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "label": label });
    for label in ["a", "b", "c", "a", ""] {
        venue.ok(anna, "private/buy", order(label));
    }
    let refused = venue.call(anna, "private/buy", order("d"));
    assert_eq!(refused["error"]["code"], 11030, "{refused}");
    venue.ok(bert, "private/buy", order("d"));
    assert_eq!(venue.refused(anna, "private/buy", order("d")), 11030, "it is another's");
    let mut venue = venue.restarted(["a", "b", "c", "d"].map(str::to_owned).into());
    let anna = venue.login("anna");
    assert_eq!(venue.refused(anna, "private/buy", order("e")), 11030);
    venue.ok(anna, "private/buy", order("b"));
}

#[test]
fn a_label_that_is_lost_leaves_its_number_to_nobody() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let order =
        |label: &str| json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "label": label });
    venue.ok(anna, "private/buy", order("a"));
    venue.ok(bert, "private/buy", order("b"));
    let mut venue = venue.restarted(vec!["a".to_owned()]);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    assert_eq!(venue.ok(bert, "private/get_open_orders", json!({}))[0]["label"], "");
    venue.ok(anna, "private/buy", order("c"));
    assert_eq!(venue.ok(anna, "private/cancel_by_label", json!({ "label": "c" })), 1);
    assert_eq!(venue.ok(bert, "private/get_open_orders", json!({}))[0]["label"], "", "it is another's");
    assert_eq!(venue.ok(bert, "private/cancel_by_label", json!({ "label": "c" })), 0);
}

#[test]
fn an_answer_that_is_too_long_is_refused_and_the_connection_goes_on() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    // More than the maximum number of in-flight requests.
    venue.enter_bids(1..12_001);
    assert_eq!(venue.refused(anna, "private/get_open_orders", json!({})), 11031);
    assert_eq!(venue.front.poll_end(anna), None);
    // The reply contains only the number of cancelled orders.
    let cancelled = venue.ok(anna, "private/cancel_all", json!({ "detailed": true }));
    assert_eq!((cancelled, venue.engine.open_order_count()), (json!(12_000), 0));
}

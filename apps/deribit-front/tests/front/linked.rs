//! Linked orders: one order triggers others, or cancels the other.

use serde_json::{Value, json};
use tickpath_types::{EnterOrder, InstrumentId, OrderRequest, Price, Qty, Side, UserRefNum};

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";

fn linked(kind: &str, condition: &str, configs: Value) -> Value {
    json!({
        "instrument_name": PERPETUAL, "amount": 100, "price": 59_900, "label": "first",
        "linked_order_type": kind, "trigger_fill_condition": condition, "otoco_config": configs
    })
}

fn take() -> Value {
    json!({ "direction": "sell", "type": "limit", "price": 60_500, "amount": 100, "label": "take", "reduce_only": false })
}

fn stop() -> Value {
    json!({ "direction": "sell", "type": "stop_market", "trigger": "mark_price", "trigger_price": 59_000, "amount": 100, "label": "stop" })
}

fn sell(venue: &mut Venue, connection: u64, amount: u64, price: u64) -> Value {
    venue.ok(
        connection,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price }),
    )
}

fn state(venue: &mut Venue, connection: u64, id: &Value) -> (String, String) {
    let order = venue.ok(connection, "private/get_order_state", json!({ "order_id": id }));
    let text = |name: &str| order[name].as_str().unwrap_or("").to_owned();
    (text("order_state"), text("cancel_reason"))
}

fn labels(venue: &mut Venue, connection: u64) -> Vec<String> {
    let open = venue.ok(connection, "private/get_open_orders", json!({}));
    let mut labels: Vec<String> =
        open.as_array().unwrap().iter().map(|order| order["label"].as_str().unwrap().to_owned()).collect();
    labels.sort();
    labels
}

#[test]
fn the_first_fill_lets_both_go_and_one_of_them_cancels_the_other() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let placed = venue.ok(
        anna,
        "private/buy",
        linked("one_triggers_one_cancels_other", "first_hit", json!([take(), stop()])),
    );
    let first = &placed["order"];
    assert_eq!(
        (&first["is_primary_otoco"], first["oto_order_ids"].as_array().unwrap().len()),
        (&json!(true), 2)
    );
    let second = first["oto_order_ids"][0].clone();
    let waiting = venue.ok(anna, "private/get_order_state", json!({ "order_id": second }));
    assert_eq!(
        (&waiting["order_state"], &waiting["is_secondary_oto"], &waiting["primary_order_id"]),
        (&json!("untriggered"), &json!(true), &first["order_id"])
    );
    assert_eq!((venue.engine.open_order_count(), labels(&mut venue, anna).len()), (1, 3));
    let edit = json!({ "order_id": second, "amount": 50 });
    assert_eq!(venue.refused(anna, "private/edit", edit), 11047);

    sell(&mut venue, bert, 40, 59_900);
    assert_eq!(state(&mut venue, anna, &second).0, "triggered");
    assert_eq!(labels(&mut venue, anna), ["first", "stop", "take"]);
    let stops = venue.ok(anna, "private/get_open_orders", json!({ "type": "stop_all" }));
    assert_eq!(
        (&stops[0]["trigger_price"], &stops[0]["order_state"]),
        (&json!(59_000), &json!("untriggered"))
    );
    // The take order trades, so the stop is cancelled.
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_500 }));
    assert_eq!(labels(&mut venue, anna), ["first", "take"]);
    let closed = state(&mut venue, anna, &stops[0]["order_id"]);
    assert_eq!(closed, ("cancelled".to_owned(), "oco_other_closed".to_owned()));
}

#[test]
fn what_is_to_be_triggered_goes_with_its_primary() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let place = |venue: &mut Venue, condition: &str| {
        let params = linked("one_triggers_other", condition, json!([take()]));
        venue.ok(anna, "private/buy", params)["order"].clone()
    };
    let first = place(&mut venue, "complete_fill");
    sell(&mut venue, bert, 40, 59_900);
    let second = first["oto_order_ids"][0].clone();
    assert_eq!(state(&mut venue, anna, &second).0, "untriggered", "it is not filled");
    venue.ok(anna, "private/cancel", json!({ "order_id": first["order_id"] }));
    assert_eq!(state(&mut venue, anna, &second), ("cancelled".to_owned(), "oto_primary_closed".to_owned()));

    let first = place(&mut venue, "complete_fill");
    sell(&mut venue, bert, 100, 59_900);
    assert_eq!(state(&mut venue, anna, &first["oto_order_ids"][0]).0, "triggered");
    assert_eq!(labels(&mut venue, anna), ["take"]);
    venue.ok(anna, "private/cancel_all", json!({}));

    let first = place(&mut venue, "incremental");
    sell(&mut venue, bert, 40, 59_900);
    sell(&mut venue, bert, 10, 59_900);
    let parts =
        venue.ok(anna, "private/get_open_orders_by_label", json!({ "currency": "BTC", "label": "take" }));
    let mut amounts: Vec<_> =
        parts.as_array().unwrap().iter().filter_map(|order| order["amount"].as_u64()).collect();
    amounts.sort_unstable();
    assert_eq!(amounts, [10, 40, 100], "the whole of it still waits");
    venue.ok(anna, "private/cancel", json!({ "order_id": first["order_id"] }));
    assert_eq!(labels(&mut venue, anna), ["take", "take"], "what was let go stays");

    // Filled at once, so nothing waits.
    venue.ok(anna, "private/cancel_all", json!({}));
    sell(&mut venue, bert, 100, 59_900);
    let filled = place(&mut venue, "first_hit");
    assert_eq!(filled["order_state"], "filled");
    assert_eq!(labels(&mut venue, anna), ["take"]);
}

#[test]
fn of_two_orders_one_cancels_the_other() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let other = json!({ "direction": "buy", "type": "limit", "price": 59_800, "label": "second" });
    let pair = || linked("one_cancels_other", "first_hit", json!([other]));
    let first = venue.ok(anna, "private/buy", pair())["order"].clone();
    assert!(first["oco_ref"].is_string(), "{first}");
    assert_eq!(
        (venue.engine.open_order_count(), labels(&mut venue, anna)),
        (2, vec!["first".to_owned(), "second".to_owned()])
    );
    sell(&mut venue, bert, 10, 59_900);
    assert_eq!(labels(&mut venue, anna), ["first"], "a part of it is enough");
    venue.ok(anna, "private/cancel_all", json!({}));
    let first = venue.ok(anna, "private/buy", pair())["order"].clone();
    venue.ok(anna, "private/cancel", json!({ "order_id": first["order_id"] }));
    assert!(labels(&mut venue, anna).is_empty());
    assert_eq!(venue.engine.open_order_count(), 0);
    // With a linked stop, which fires.
    let stop = json!({ "direction": "sell", "type": "stop_market", "trigger": "last_price", "trigger_price": 59_500, "label": "stop" });
    sell(&mut venue, bert, 10, 59_890);
    venue.ok(anna, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_890 }));
    venue.ok(anna, "private/buy", linked("one_cancels_other", "first_hit", json!([stop])));
    assert_eq!(labels(&mut venue, anna), ["first", "stop"]);
    venue.ok(
        anna,
        "private/edit_by_label",
        json!({ "instrument_name": PERPETUAL, "label": "first", "amount": 100, "price": 59_000 }),
    );
    sell(&mut venue, bert, 10, 59_400);
    venue.ok(
        anna,
        "private/buy",
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_400, "label": "last" }),
    );
    assert_eq!(labels(&mut venue, anna), ["stop"], "the stop's order is in the book, and nothing beside it");
}

#[test]
fn links_that_make_no_sense_are_refused() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    for (params, code) in [
        (linked("one_triggers_all", "first_hit", json!([take()])), -32602),
        (linked("one_triggers_other", "some", json!([take()])), -32602),
        (linked("one_triggers_other", "first_hit", json!([])), -32602),
        (linked("one_triggers_other", "first_hit", json!([take(), stop()])), -32602),
        (linked("one_triggers_one_cancels_other", "first_hit", json!([take()])), -32602),
        (linked("one_triggers_other", "first_hit", json!(7)), -32602),
        (linked("one_triggers_other", "first_hit", json!([{ "type": "limit", "price": 60_000 }])), -32602),
        (
            linked("one_triggers_other", "first_hit", json!([{ "direction": "sell", "type": "limit" }])),
            -32602,
        ),
        (
            linked(
                "one_triggers_other",
                "first_hit",
                json!([{ "direction": "sell", "type": "stop_market", "trigger": "mark_price" }]),
            ),
            -32602,
        ),
        (
            linked("one_triggers_other", "first_hit", json!([{ "direction": "sell", "price": 60_000.3 }])),
            10043,
        ),
        (
            linked(
                "one_triggers_other",
                "first_hit",
                json!([{ "direction": "sell", "price": 60_000, "amount": 15 }]),
            ),
            10021,
        ),
        (
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "otoco_config": [take()] }),
            11047,
        ),
        (
            json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "mark_price", "trigger_price": 61_000, "linked_order_type": "one_triggers_other", "otoco_config": [take()] }),
            11047,
        ),
    ] {
        assert_eq!(venue.refused(anna, "private/buy", params.clone()), code, "{params}");
    }
    assert_eq!(venue.engine.open_order_count(), 0);
}

fn restarted(venue: Venue, labels: &[&str]) -> (Venue, u64, u64) {
    let mut venue = venue.restarted(labels.iter().map(|label| (*label).to_owned()).collect());
    venue.wait(1_000_001);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    (venue, anna, bert)
}

#[test]
fn links_outlive_the_venue() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let placed = venue.ok(
        anna,
        "private/buy",
        linked("one_triggers_one_cancels_other", "first_hit", json!([take(), stop()])),
    );
    let (mut venue, anna, bert) = restarted(venue, &["take", "stop", "first"]);
    assert_eq!((venue.engine.open_order_count(), labels(&mut venue, anna).len()), (1, 3));
    let first = venue.ok(anna, "private/get_order_state", json!({ "order_id": placed["order"]["order_id"] }));
    assert_eq!(first["oto_order_ids"], placed["order"]["oto_order_ids"]);
    sell(&mut venue, bert, 40, 59_900);
    assert_eq!(labels(&mut venue, anna), ["first", "stop", "take"]);
    assert_eq!(venue.engine.open_order_count(), 2, "the take is in the book");
    let (mut venue, anna, bert) = restarted(venue, &["take", "stop", "first"]);
    assert_eq!(labels(&mut venue, anna), ["first", "stop", "take"]);
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_500 }));
    assert_eq!(labels(&mut venue, anna), ["first", "take"], "and it still cancels the stop");
    let (mut venue, anna, _) = restarted(venue, &["take", "stop", "first"]);
    assert_eq!(
        (labels(&mut venue, anna), venue.engine.open_order_count()),
        (vec!["first".to_owned(), "take".to_owned()], 2)
    );
}

#[test]
fn parts_that_were_let_go_are_not_let_go_again() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    venue.ok(anna, "private/buy", linked("one_triggers_other", "incremental", json!([take()])));
    sell(&mut venue, bert, 40, 59_900);
    let sum = |venue: &mut Venue, anna: u64| -> u64 {
        let parts = json!({ "currency": "BTC", "label": "take" });
        let parts = venue.ok(anna, "private/get_open_orders_by_label", parts);
        let open = parts.as_array().unwrap().iter().filter(|order| order["order_state"] == "open");
        open.filter_map(|order| order["amount"].as_u64()).sum()
    };
    assert_eq!(sum(&mut venue, anna), 40);
    let (mut venue, anna, bert) = restarted(venue, &["take", "first", "second"]);
    assert_eq!(sum(&mut venue, anna), 40);
    sell(&mut venue, bert, 10, 59_900);
    assert_eq!(sum(&mut venue, anna), 50);
    // The venue stops while another part is in flight.
    venue.call_and_stop(
        bert,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": 50, "price": 59_900 }),
    );
    let (mut venue, anna, _) = restarted(venue, &["take", "first", "second"]);
    assert_eq!(sum(&mut venue, anna), 100, "the part that was lost, once");
    let (mut venue, anna, _) = restarted(venue, &["take", "first", "second"]);
    assert_eq!((sum(&mut venue, anna), labels(&mut venue, anna).len()), (100, 3));
}

#[test]
fn what_was_due_as_the_venue_stopped_is_done_after_the_restart() {
    // The log has the order, but nothing was published: the order that it triggers starts to wait.
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let pair = linked("one_triggers_other", "first_hit", json!([take()]));
    let frame = json!({ "jsonrpc": "2.0", "id": 0, "method": "private/buy", "params": pair }).to_string();
    venue.front.handle_frame(anna, frame.as_bytes(), venue.now_us);
    let request = venue.front.poll_request().unwrap();
    let mut records = venue.front.poll_records();
    venue.records.append(&mut records);
    venue.command(request.session, request.command());
    venue.front.poll_records();
    let (mut venue, anna, bert) = restarted(venue, &["take", "first", "second"]);
    assert_eq!(labels(&mut venue, anna), ["first", "take"]);
    // One of two orders is filled, and the other is not cancelled yet.
    sell(&mut venue, bert, 100, 59_900);
    assert_eq!(labels(&mut venue, anna), ["take"]);
    venue.ok(anna, "private/cancel_all", json!({}));
    let other = json!({ "direction": "buy", "type": "limit", "price": 59_800, "label": "second" });
    venue.ok(anna, "private/buy", linked("one_cancels_other", "first_hit", json!([other])));
    assert_eq!(venue.engine.open_order_count(), 2);
    venue.call_and_stop(
        bert,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_900 }),
    );
    assert_eq!(venue.engine.open_order_count(), 2);
    let (mut venue, anna, _) = restarted(venue, &["take", "first", "second"]);
    assert_eq!((labels(&mut venue, anna), venue.engine.open_order_count()), (vec!["first".to_owned()], 1));
}

/// Sends a request without executing the front's requests.
fn send(venue: &mut Venue, connection: u64, method: &str, params: Value) {
    let frame = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params }).to_string();
    venue.front.handle_frame(connection, frame.as_bytes(), venue.now_us);
}

/// Enters an order of bert's user on the perpetual through another port.
fn beside(venue: &mut Venue, user_ref: u32, side: Side, price: i64) {
    let enter = EnterOrder::limit(UserRefNum(user_ref), InstrumentId(1), side, Qty(1), Price(price * 10_000));
    venue.order(2, OrderRequest::Enter(enter));
}

fn post_only(kind: &str, configs: Value) -> Value {
    let mut params = linked(kind, "first_hit", configs);
    params["post_only"] = json!(true);
    params
}

#[test]
fn an_order_that_is_moved_behind_the_book_is_linked_once() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    // An offer precedes the order: the engine removes the order, and it is entered again at a lower price.
    send(&mut venue, anna, "private/buy", post_only("one_triggers_other", json!([take()])));
    beside(&mut venue, 1_000, Side::Sell, 59_900);
    venue.settle();
    assert_eq!(labels(&mut venue, anna), ["first", "take"]);
    sell(&mut venue, bert, 100, 59_890);
    assert_eq!(labels(&mut venue, anna), ["take"], "it is let go by the order that stands");
    venue.ok(anna, "private/cancel_all", json!({}));

    let other = json!({ "direction": "buy", "type": "limit", "price": 59_800, "label": "second" });
    send(&mut venue, anna, "private/buy", post_only("one_cancels_other", json!([other])));
    beside(&mut venue, 1_001, Side::Sell, 59_895);
    venue.settle();
    assert_eq!(labels(&mut venue, anna), ["first", "second"]);
    let (mut venue, anna, _) = restarted(venue, &["take", "first", "second"]);
    assert_eq!(labels(&mut venue, anna), ["first", "second"]);
}

#[test]
fn nothing_is_linked_with_an_order_that_is_refused() {
    let other = json!({ "direction": "buy", "type": "limit", "price": 59_800, "label": "second" });
    for (kind, config) in [("one_cancels_other", other), ("one_triggers_other", take())] {
        let mut venue = Venue::new();
        let anna = venue.login("anna");
        venue.ok(
            anna,
            "private/set_self_trading_config",
            json!({ "mode": "reject_taker", "extended_to_subaccounts": false }),
        );
        sell(&mut venue, anna, 10, 59_900);
        let params = linked(kind, "first_hit", json!([config.clone()]));
        assert_eq!(venue.refused(anna, "private/buy", params), 10003);
        assert_eq!((labels(&mut venue, anna).len(), venue.engine.open_order_count()), (1, 1), "{kind}");
        let (mut venue, anna, _) = restarted(venue, &["take", "first", "second"]);
        assert_eq!((labels(&mut venue, anna).len(), venue.engine.open_order_count()), (1, 1), "{kind}");

        // A post-only order that cannot be moved behind the book.
        let mut params = post_only(kind, json!([config]));
        (params["reject_post_only"], params["price"]) = (json!(true), json!(59_895));
        send(&mut venue, anna, "private/buy", params);
        beside(&mut venue, 1_000, Side::Sell, 59_890);
        venue.settle();
        assert_eq!((labels(&mut venue, anna).len(), venue.engine.open_order_count()), (1, 2), "{kind}");
    }
}

#[test]
fn what_is_on_its_way_goes_too_where_another_trades_first() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    // The first trades at once, so the other is not entered.
    sell(&mut venue, bert, 40, 59_890);
    let other = json!({ "direction": "buy", "type": "limit", "price": 59_800, "label": "second" });
    let placed = venue.ok(anna, "private/buy", linked("one_cancels_other", "first_hit", json!([other])));
    assert_eq!(placed["order"]["filled_amount"], 40);
    assert_eq!((labels(&mut venue, anna), venue.engine.open_order_count()), (vec!["first".to_owned()], 1));
    venue.ok(anna, "private/cancel_all", json!({}));

    // Both are released at once, and the first of them trades immediately.
    let bid = |price: u64| json!({ "instrument_name": PERPETUAL, "amount": 100, "price": price });
    let near = json!({ "direction": "sell", "type": "limit", "price": 59_880, "label": "near" });
    let both = json!([near, take()]);
    venue.ok(anna, "private/buy", linked("one_triggers_one_cancels_other", "complete_fill", both));
    venue.ok(bert, "private/buy", bid(59_880));
    sell(&mut venue, bert, 100, 59_900);
    assert!(labels(&mut venue, anna).is_empty());
    assert_eq!(venue.engine.open_order_count(), 0);
    let history = json!({ "currency": "BTC", "label": "take" });
    let taken = venue.ok(anna, "private/get_order_state_by_label", history);
    assert_eq!(taken.as_array().unwrap().last().unwrap()["cancel_reason"], "oco_other_closed");

    // A stop fires while the other is in flight.
    let stop = json!({ "direction": "sell", "type": "stop_market", "trigger": "last_price", "trigger_price": 59_500, "label": "stop" });
    let both = json!([take(), stop]);
    venue.ok(anna, "private/buy", linked("one_triggers_one_cancels_other", "complete_fill", both));
    let sale = json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 59_900 });
    venue.call_and_stop(bert, "private/sell", sale);
    beside(&mut venue, 1_000, Side::Buy, 59_400);
    beside(&mut venue, 1_001, Side::Sell, 59_400);
    venue.settle();
    assert_eq!(labels(&mut venue, anna), ["stop"], "what it entered rests at the end of the band");
    assert_eq!(venue.engine.open_order_count(), 1);
}

#[test]
fn orders_on_their_way_bring_no_more_that_wait_than_there_may_be() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let far = |amount: u64| {
        let mut params = linked("one_triggers_one_cancels_other", "first_hit", json!([take(), stop()]));
        (params["amount"], params["price"]) = (json!(amount), json!(59_500));
        params
    };
    (0..51).for_each(|_| send(&mut venue, anna, "private/buy", far(10)));
    // A further stop order exceeds the limit too.
    let stop = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "mark_price", "trigger_price": 61_000 });
    send(&mut venue, anna, "private/buy", stop);
    let refused: Vec<i64> =
        venue.frames(anna).iter().filter_map(|frame| frame["error"]["code"].as_i64()).collect();
    assert_eq!(refused, [13901, 11035]);
    venue.settle();
    let waiting = venue.ok(anna, "private/get_open_orders", json!({}));
    let waiting = waiting.as_array().unwrap().iter().filter(|order| order["order_state"] == "untriggered");
    assert_eq!(waiting.count(), 100);
}

#[test]
fn what_never_comes_into_the_log_is_not_counted_for_good() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let far = || linked("one_triggers_one_cancels_other", "first_hit", json!([take(), stop()]));
    (0..50).for_each(|_| send(&mut venue, anna, "private/buy", far()));
    // The venue loses them.
    while venue.front.poll_request().is_some() {}
    venue.wait(31_000_000);
    assert_eq!(venue.refused(anna, "private/buy", far()), 13901, "they may still come");
    venue.wait(600_000_000);
    let anna = venue.login("anna");
    venue.ok(anna, "private/buy", far());
}

#[test]
fn what_the_log_brings_late_is_what_was_asked_for() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let gives_up = |venue: &mut Venue, connection: u64| {
        venue.now_us += 31_000_000;
        venue.front.handle_time(venue.now_us);
        let frames = venue.frames(connection);
        assert!(frames.iter().any(|frame| frame["error"]["code"] == 13888), "{frames:?}");
    };
    // A linked order waits for it.
    send(&mut venue, anna, "private/buy", linked("one_triggers_other", "first_hit", json!([take()])));
    gives_up(&mut venue, anna);
    venue.settle();
    assert_eq!(labels(&mut venue, anna), ["first", "take"]);
    sell(&mut venue, bert, 10, 59_900);
    assert_eq!(venue.engine.open_order_count(), 2, "the take is in the book");
    venue.ok(anna, "private/cancel_all", json!({}));
    // It is cancelled with its connection, whether that ends before or after the confirmation.
    for is_gone in [false, true] {
        let quick = venue.login("anna");
        venue.ok(quick, "private/enable_cancel_on_disconnect", json!({}));
        let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "label": "first" });
        send(&mut venue, quick, "private/buy", order);
        gives_up(&mut venue, quick);
        if is_gone {
            venue.front.close(quick, venue.now_us);
            venue.now_us += 200_000;
            venue.front.handle_time(venue.now_us);
        }
        venue.settle();
        assert_eq!(venue.engine.open_order_count(), 1);
        venue.front.close(quick, venue.now_us);
        venue.wait(200_000);
        assert_eq!(venue.engine.open_order_count(), 0, "{is_gone}");
    }
}

//! Order edits, and temporary rejections of requests.

use serde_json::{Value, json};
use tickpath_deribit_front::FaultKind;
use tickpath_types::{EnterOrder, InstrumentId, OrderRequest, Price, Qty, Side, UserRefNum};

use crate::front::support::{Venue, changed};

const PERPETUAL: &str = "BTC-PERPETUAL";
const OPTION: &str = "BTC-25DEC26-60000-C";

fn place(venue: &mut Venue, connection: u64, more: Value) -> Value {
    let mut params = json!({ "instrument_name": PERPETUAL, "amount": 2000, "price": 59000, "label": "own" });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    venue.ok(connection, "private/buy", params)["order"].clone()
}

#[test]
fn what_the_book_shows_and_what_protects_an_order_are_edited() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let id = place(&mut venue, anna, json!({}))["order_id"].clone();
    let edit = |venue: &mut Venue, more: Value| {
        let mut params = json!({ "order_id": id });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        venue.call(anna, "private/edit", params)
    };
    let shown = edit(&mut venue, json!({ "display_amount": 1000 }))["result"]["order"].clone();
    assert_eq!((&shown["display_amount"], &shown["refresh_amount"]), (&json!(1000), &json!(1000)));
    assert_eq!((&shown["replaced"], &shown["order_id"]), (&json!(true), &id));
    let book = venue.ok(anna, "public/get_order_book", json!({ "instrument_name": PERPETUAL }));
    assert_eq!(book["bids"], json!([[59000, 1000]]));
    // Values that are not given remain unchanged.
    let moved = edit(&mut venue, json!({ "price": 59010 }))["result"]["order"].clone();
    assert_eq!((&moved["display_amount"], &moved["price"]), (&json!(1000), &json!(59010)));
    for (code, more) in [
        (10036, json!({ "display_amount": 5 })),
        (11047, json!({ "trigger_price": 58000 })),
        (11047, json!({ "trigger_offset": 10 })),
        (11041, json!({ "price": 5, "advanced": "usd" })),
        (11049, json!({ "mmp": true })),
    ] {
        assert_eq!(edit(&mut venue, more.clone())["error"]["code"], code, "{more}");
    }
    let protection =
        json!({ "index_name": "btc_usd", "interval": 10, "frozen_time": 1, "quantity_limit": 5 });
    venue.ok(anna, "private/set_mmp_config", protection);
    let protected = edit(&mut venue, json!({ "mmp": true }))["result"]["order"].clone();
    assert_eq!(protected["mmp"], true);
    // It stays set, even if nothing else changes.
    assert_eq!(edit(&mut venue, json!({ "amount": 2000 }))["result"]["order"]["mmp"], true);
}

#[test]
fn orders_that_wait_are_edited_by_their_label() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let trade = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60000 });
    venue.ok(anna, "private/sell", trade.clone());
    venue.ok(bert, "private/buy", trade);
    let trailing =
        json!({ "type": "trailing_stop", "trigger": "last_price", "trigger_offset": 100, "price": null });
    let mut params = json!({ "instrument_name": PERPETUAL, "amount": 10, "label": "own" });
    params.as_object_mut().unwrap().extend(trailing.as_object().unwrap().clone());
    params.as_object_mut().unwrap().remove("price");
    let placed = venue.ok(anna, "private/sell", params)["order"].clone();
    assert_eq!(placed["trigger_price"], json!(59900));
    let by_label = |more: Value| {
        let mut params = json!({ "instrument_name": PERPETUAL, "label": "own" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let edited =
        venue.ok(anna, "private/edit_by_label", by_label(json!({ "trigger_offset": 250, "amount": 30 })));
    let edited = &edited["order"];
    assert_eq!((&edited["trigger_offset"], &edited["trigger_price"]), (&json!(250), &json!(59750)));
    assert_eq!((&edited["amount"], &edited["order_state"]), (&json!(30), &json!("untriggered")));
    for (offset, code) in [(json!(54_000.5), 10035), (json!(250.3), 10044), (json!(0), 11036)] {
        let wrong = by_label(json!({ "trigger_offset": offset }));
        assert_eq!(venue.refused(anna, "private/edit_by_label", wrong), code, "{offset}");
    }
    let trigger = by_label(json!({ "trigger_price": 59000 }));
    assert_eq!(venue.refused(anna, "private/edit_by_label", trigger), 11047);
    let shown = by_label(json!({ "display_amount": 10 }));
    assert_eq!(venue.refused(anna, "private/edit_by_label", shown), 11047);
    // With a second order, the label is ambiguous.
    place(&mut venue, anna, json!({}));
    assert_eq!(venue.refused(anna, "private/edit_by_label", by_label(json!({ "amount": 20 }))), 13032);
    venue.ok(anna, "private/cancel_all", json!({}));
    assert_eq!(venue.refused(anna, "private/edit_by_label", by_label(json!({ "amount": 20 }))), 10004);
}

#[test]
fn an_order_by_volatility_is_edited_by_volatility() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let params =
        json!({ "instrument_name": OPTION, "amount": 1, "price": 30, "advanced": "implv", "label": "own" });
    let placed = venue.ok(anna, "private/buy", params)["order"].clone();
    let edit = |price: Value, way: Option<&str>| {
        let mut params = json!({ "order_id": placed["order_id"], "price": price });
        if let Some(way) = way {
            params["advanced"] = json!(way);
        }
        params
    };
    let edited = venue.ok(anna, "private/edit", edit(json!(40.5), Some("implv")))["order"].clone();
    assert_eq!((&edited["implv"], &edited["price"]), (&json!(40.5), &json!(0.048)));
    let dollars = venue.ok(anna, "private/edit", edit(json!(2100), Some("usd")))["order"].clone();
    assert_eq!((&dollars["usd"], &dollars["price"]), (&json!(2100), &json!(0.035)));
    assert!(dollars.get("implv").is_none());
    // Without `advanced` the order becomes a plain one.
    let plain = venue.ok(anna, "private/edit", edit(json!(0.03), None))["order"].clone();
    assert_eq!((&plain["price"], plain.get("advanced")), (&json!(0.03), None));
    assert_eq!(venue.refused(anna, "private/edit", edit(json!(40), Some("implv"))), 11041);
}

#[test]
fn beyond_the_band_an_order_is_at_its_end_where_the_file_says_so() {
    let clamps =
        changed(&[("matching_rate = 1000", "matching_rate = 1000\nbeyond_band = \"clamp\"")]).unwrap();
    let mut venue = Venue::of(clamps);
    let anna = venue.login("anna");
    let ticker = venue.ok(anna, "public/ticker", json!({ "instrument_name": PERPETUAL }));
    let params = |price: f64| json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price });
    let bought = venue.ok(anna, "private/buy", params(90_000.0))["order"]["price"].clone();
    assert_eq!(bought.as_f64(), ticker["max_price"].as_f64());
    venue.ok(anna, "private/cancel_all", json!({}));
    let sold = venue.ok(anna, "private/sell", params(30_000.0))["order"]["price"].clone();
    assert_eq!(sold.as_f64(), ticker["min_price"].as_f64());
    let error = changed(&[("matching_rate = 1000", "matching_rate = 1000\nbeyond_band = \"bend\"")]);
    assert!(error.unwrap_err().to_string().contains("clamp"));
}

#[test]
fn requests_are_refused_for_a_while_and_nothing_of_them_is_done() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let buy = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 });
    let mut codes = std::collections::BTreeSet::new();
    venue.front.faults().happen_next(FaultKind::Refused, 60);
    for _ in 0..60 {
        codes.insert(venue.refused(anna, "private/buy", buy.clone()));
        venue.wait(100_000);
    }
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), [10040, 10041, 10047, 10066, 11094, 13028]);
    assert_eq!(venue.front.faults().count(FaultKind::Refused), 60);
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})), json!([]));
    venue.ok(anna, "private/buy", buy);

    // The venue settles for ten seconds after 08:00 UTC.
    let settles = "matching_rate = 1000\nfaults = { settlement_for = \"10s\" }";
    let mut venue = Venue::of(changed(&[("matching_rate = 1000", settles)]).unwrap());
    let buy = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 });
    venue.wait(20 * 3_600_000_000 - 1_000_000);
    let anna = venue.login("anna");
    venue.ok(anna, "private/buy", buy.clone());
    venue.wait(1_000_000);
    assert_eq!(venue.refused(anna, "private/buy", buy.clone()), 10041);
    venue.ok(anna, "private/get_open_orders", json!({}));
    venue.wait(9_000_000);
    assert_eq!(venue.refused(anna, "private/cancel_all", json!({})), 10041);
    venue.wait(1_000_000);
    venue.ok(anna, "private/buy", buy);
}

#[test]
fn an_edit_of_what_only_reduces_does_not_turn_the_position_round() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let at =
        |amount: u64, price: u64| json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price });
    venue.ok(anna, "private/sell", at(100, 60_000));
    venue.ok(bert, "private/buy", at(100, 60_000));
    let mut reduces = at(10, 60_500);
    reduces["reduce_only"] = json!(true);
    let placed = venue.ok(bert, "private/sell", reduces)["order"].clone();
    let edit = |more: Value| {
        let mut params = json!({ "order_id": placed["order_id"] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let larger = venue.ok(bert, "private/edit", edit(json!({ "amount": 10_000 })))["order"].clone();
    assert_eq!((&larger["amount"], &larger["reduce_only"]), (&json!(100), &json!(true)));
    // After a partial fill, the order's remainder is limited to the remaining position.
    venue.ok(anna, "private/buy", at(40, 60_500));
    let larger = venue.ok(bert, "private/edit", edit(json!({ "amount": 500 })))["order"].clone();
    assert_eq!((&larger["amount"], &larger["filled_amount"]), (&json!(100), &json!(40)));
    venue.ok(bert, "private/cancel_all", json!({}));
    // A plain order that becomes reduce-only.
    let plain = venue.ok(bert, "private/sell", at(500, 60_500))["order"]["order_id"].clone();
    let becomes = json!({ "order_id": plain, "amount": 500, "price": 60_600, "reduce_only": true });
    assert_eq!(venue.ok(bert, "private/edit", becomes)["order"]["amount"], 60);
    let wrong = venue.ok(bert, "private/buy", at(20, 59_000))["order"]["order_id"].clone();
    let wrong = json!({ "order_id": wrong, "amount": 20, "reduce_only": true });
    assert_eq!(venue.refused(bert, "private/edit", wrong), 11030);

    // It waits for an in-flight order that changes the position.
    venue.ok(anna, "private/buy", at(50, 60_400));
    let mut sale = at(50, 60_400);
    sale["label"] = json!("fast");
    let larger = json!({ "order_id": plain, "amount": 400 });
    for (id, method, params) in [(1, "private/sell", sale), (2, "private/edit", larger)] {
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        venue.front.handle_frame(bert, frame.to_string().as_bytes(), venue.now_us);
    }
    venue.settle();
    let replies = venue.frames(bert);
    let edited = replies.iter().find(|frame| frame["id"] == 2).unwrap();
    assert_eq!(edited["result"]["order"]["amount"], 10, "{edited}");
}

/// Sends an edit; offers from another port reach the engine before it.
fn edit_behind_an_offer(venue: &mut Venue, connection: u64, edit: &Value, prices: &[i64]) -> Option<Value> {
    let frame = json!({ "jsonrpc": "2.0", "id": 77, "method": "private/edit", "params": edit }).to_string();
    venue.front.handle_frame(connection, frame.as_bytes(), venue.now_us);
    for (price, user_ref) in prices.iter().zip(1_000..) {
        let offer = EnterOrder::limit(
            UserRefNum(user_ref),
            InstrumentId(1),
            Side::Sell,
            Qty(1),
            Price(price * 10_000),
        );
        venue.order(2, OrderRequest::Enter(offer));
        let asked = venue.front.poll_request().expect("the edit, or the order again");
        venue.command(asked.session, asked.command());
    }
    venue.settle();
    let frames = venue.frames(connection);
    venue
        .told
        .entry(connection)
        .or_default()
        .extend(frames.iter().filter(|frame| frame["id"] != 77).cloned());
    frames.into_iter().find(|frame| frame["id"] == 77)
}

#[test]
fn a_post_only_edit_that_loses_a_race_is_moved_and_the_order_lives() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let id = place(&mut venue, anna, json!({ "post_only": true }))["order_id"].clone();
    venue.ok(bert, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 500, "price": 59_000 }));
    venue.ok(anna, "private/subscribe", json!({ "channels": ["user.orders.any.any.raw"] }));
    let edit = json!({ "order_id": id, "amount": 1500, "price": 59_500 });
    let reply = edit_behind_an_offer(&mut venue, anna, &edit, &[59_400, 59_300]).unwrap();
    let order = &reply["result"]["order"];
    assert_eq!((&order["order_id"], &order["order_state"]), (&id, &json!("open")), "{reply}");
    assert_eq!((&order["price"], &order["replaced"]), (&json!(59_299.5), &json!(true)));
    assert_eq!((&order["amount"], &order["filled_amount"]), (&json!(1500), &json!(500)));
    let told = venue.news(anna, "user.orders.any.any.raw");
    assert_eq!(told.len(), 1, "it was never over: {told:?}");
    assert_eq!((&told[0]["order_id"], &told[0]["price"]), (&id, &json!(59_299.5)));
    let book = venue.ok(anna, "public/get_order_book", json!({ "instrument_name": PERPETUAL }));
    assert_eq!(book["bids"], json!([[59_299.5, 1000]]));

    // After a restart it is the same order, and its number is valid for edits and cancels.
    let mut venue = venue.restarted(vec!["own".to_owned()]);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!(
        (open.as_array().unwrap().len(), &open[0]["order_id"], &open[0]["amount"]),
        (1, &id, &json!(1500))
    );
    assert_eq!((&open[0]["filled_amount"], &open[0]["price"]), (&json!(500), &json!(59_299.5)));
    venue.ok(bert, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 59_299.5 }));
    let state = venue.ok(anna, "private/get_order_state", json!({ "order_id": id }));
    assert_eq!((&state["filled_amount"], &state["order_state"]), (&json!(600), &json!("open")));
    assert_eq!(venue.ok(anna, "private/cancel", json!({ "order_id": id }))["order_state"], "cancelled");
}

#[test]
fn a_post_only_edit_that_must_not_be_moved_or_is_moved_too_often_ends_its_order() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let id = place(&mut venue, anna, json!({ "post_only": true }))["order_id"].clone();
    let edit = json!({ "order_id": id, "price": 59_500, "post_only": true, "reject_post_only": true });
    let reply = edit_behind_an_offer(&mut venue, anna, &edit, &[59_400]).unwrap();
    let order = &reply["result"]["order"];
    assert_eq!(
        (&order["order_state"], &order["cancel_reason"]),
        (&json!("cancelled"), &json!("edit_post_only_reject"))
    );

    let mut venue = Venue::new();
    let anna = venue.login("anna");
    venue.ok(anna, "private/subscribe", json!({ "channels": ["user.orders.any.any.raw"] }));
    let id = place(&mut venue, anna, json!({ "post_only": true }))["order_id"].clone();
    venue.news(anna, "user.orders.any.any.raw");
    let edit = json!({ "order_id": id, "price": 59_500 });
    let offers = [59_400, 59_300, 59_200, 59_100];
    let reply = edit_behind_an_offer(&mut venue, anna, &edit, &offers).unwrap();
    assert_eq!(reply["error"]["code"], 11021, "{reply}");
    let told = venue.news(anna, "user.orders.any.any.raw");
    assert_eq!((told.len(), &told[0]["order_state"]), (1, &json!("cancelled")), "{told:?}");
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})), json!([]));
    let mut venue = venue.restarted(vec!["own".to_owned()]);
    let anna = venue.login("anna");
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})), json!([]));
}

#[test]
fn a_stop_of_the_venue_between_the_two_leaves_no_order_and_no_number() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let id = place(&mut venue, anna, json!({ "post_only": true }))["order_id"].clone();
    let edit = json!({ "jsonrpc": "2.0", "id": 77, "method": "private/edit",
        "params": { "order_id": id, "price": 59_500 } });
    venue.front.handle_frame(anna, edit.to_string().as_bytes(), venue.now_us);
    let offer = EnterOrder::limit(UserRefNum(1), InstrumentId(1), Side::Sell, Qty(1), Price(594_000_000));
    venue.order(2, OrderRequest::Enter(offer));
    let asked = venue.front.poll_request().unwrap();
    venue.command(asked.session, asked.command());
    // The re-entry is recorded but never reaches the log; the next order gets its engine number.
    for _ in 0..2 {
        venue = venue.restarted(vec!["own".to_owned()]);
        let anna = venue.login("anna");
        let state = venue.ok(anna, "private/get_order_state", json!({ "order_id": id }));
        assert_eq!(state["order_state"], "cancelled");
        let other = place(&mut venue, anna, json!({}))["order_id"].clone();
        assert_ne!(other, id);
    }
}

#[test]
fn a_cancel_behind_a_change_on_its_way_finds_the_order() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let id = place(&mut venue, anna, json!({ "time_in_force": "good_til_day" }))["order_id"].clone();
    let edit = json!({ "jsonrpc": "2.0", "id": 5, "method": "private/edit",
        "params": { "order_id": id, "price": 58_000 } });
    // The day ends while the edit is in flight.
    venue.wait(20 * 3_600_000_000 - 1_000_000);
    let other_login = venue.login("anna");
    venue.front.handle_frame(other_login, edit.to_string().as_bytes(), venue.now_us);
    venue.now_us += 1_100_000;
    venue.front.handle_time(venue.now_us);
    venue.settle();
    assert_eq!(venue.engine.open_order_count(), 0, "no further second is needed");

    // If an edit is never confirmed, the order keeps its engine number, and the cancel is sent again.
    let (anna, other) = (venue.login("anna"), venue.login("anna"));
    let stays = place(&mut venue, other, json!({}))["order_id"].clone();
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    let id = place(&mut venue, anna, json!({}))["order_id"].clone();
    let edit = json!({ "jsonrpc": "2.0", "id": 6, "method": "private/edit",
        "params": { "order_id": id, "amount": 3000 } });
    venue.front.handle_frame(anna, edit.to_string().as_bytes(), venue.now_us);
    venue.front.close(anna, venue.now_us);
    let lost = venue.front.poll_request().unwrap().command();
    assert!(matches!(lost, tickpath_matching::CommandKind::Order(OrderRequest::Replace(_))));
    venue.settle();
    venue.wait(31_000_000);
    venue.wait(200_000);
    let open = venue.ok(other, "private/get_open_orders", json!({}));
    let open: Vec<&Value> = open.as_array().unwrap().iter().map(|order| &order["order_id"]).collect();
    assert_eq!(open, [&stays], "the one of the connection is gone");
}

#[test]
fn an_advanced_order_does_not_become_post_only() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let params = json!({ "instrument_name": OPTION, "amount": 1, "price": 30, "advanced": "implv" });
    let id = venue.ok(anna, "private/buy", params)["order"]["order_id"].clone();
    let edit = json!({ "order_id": id, "price": 40, "advanced": "implv", "post_only": true });
    assert_eq!(venue.refused(anna, "private/edit", edit), 11039);
    let edit = json!({ "order_id": id, "amount": 2, "post_only": true });
    assert_eq!(venue.refused(anna, "private/edit", edit), 11039);
    // A plain order may.
    let plain = json!({ "order_id": id, "price": 0.02, "post_only": true });
    assert_eq!(venue.ok(anna, "private/edit", plain)["order"]["post_only"], true);
}

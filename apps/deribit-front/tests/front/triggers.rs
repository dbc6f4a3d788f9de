//! Untriggered orders.

use serde_json::{Value, json};

use crate::front::support::{Venue, settings};

const PERPETUAL: &str = "BTC-PERPETUAL";

fn trade(venue: &mut Venue, anna: u64, bert: u64, price: f64) {
    let params = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price });
    venue.ok(anna, "private/sell", params.clone());
    venue.ok(bert, "private/buy", params);
}

fn wait_for(venue: &mut Venue, connection: u64, side: &str, terms: Value) -> Value {
    let mut params =
        json!({ "instrument_name": PERPETUAL, "amount": 20, "trigger": "last_price", "label": "wait" });
    for (name, value) in terms.as_object().unwrap() {
        params[name] = value.clone();
    }
    venue.ok(connection, &format!("private/{side}"), params)["order"].clone()
}

#[test]
fn stops_and_takes_fire_when_their_price_comes() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let early = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "last_price", "trigger_price": 60100 });
    assert_eq!(venue.refused(bert, "private/buy", early), 11036);
    trade(&mut venue, anna, bert, 60000.0);
    venue.ok(anna, "private/subscribe", json!({ "channels": ["user.orders.any.any.raw"] }));
    let stop = wait_for(&mut venue, anna, "sell", json!({ "type": "stop_market", "trigger_price": 59900 }));
    assert_eq!(
        (&stop["order_state"], &stop["price"], &stop["triggered"]),
        (&json!("untriggered"), &json!("market_price"), &json!(false))
    );
    assert!(stop.get("filled_amount").is_none() && stop["order_id"].as_str().unwrap().starts_with("SLTS-"));
    let take = wait_for(
        &mut venue,
        anna,
        "buy",
        json!({ "type": "take_limit", "trigger_price": 59800, "price": 59750 }),
    );
    assert_eq!(venue.engine.open_order_count(), 0);
    let open = venue.ok(anna, "private/get_open_orders", json!({ "type": "trigger_all" }));
    assert_eq!(open.as_array().unwrap().len(), 2);
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({ "type": "stop_limit" })), json!([]));
    trade(&mut venue, anna, bert, 59950.0);
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})).as_array().unwrap().len(), 2);
    trade(&mut venue, anna, bert, 59850.0);
    venue.settle();
    let state = venue.ok(anna, "private/get_order_state", json!({ "order_id": stop["order_id"] }));
    assert_eq!(state["order_state"], "triggered");
    let made = venue.ok(anna, "private/get_open_orders", json!({ "type": "limit" }));
    assert_eq!(
        (&made[0]["trigger_order_id"], &made[0]["original_order_type"], &made[0]["label"]),
        (&stop["order_id"], &json!("stop_market"), &json!("wait"))
    );
    // It rests at the limit of the band, where there are no bids.
    assert_eq!(made[0]["order_state"], "open");
    let states: Vec<_> = venue
        .news(anna, "user.orders.any.any.raw")
        .iter()
        .filter(|order| order["label"] == "wait")
        .map(|order| order["order_state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["untriggered", "untriggered", "triggered", "open"]);
    assert_eq!(
        venue.ok(anna, "private/cancel", json!({ "order_id": take["order_id"] }))["cancel_reason"],
        "user_request"
    );
    assert_eq!(venue.refused(anna, "private/cancel", json!({ "order_id": take["order_id"] })), 11044);
    assert_eq!(venue.ok(anna, "private/cancel_all", json!({})), 1);
}

#[test]
fn orders_that_wait_are_edited_and_cancelled() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, 60000.0);
    let id = wait_for(
        &mut venue,
        anna,
        "sell",
        json!({ "type": "stop_limit", "trigger_price": 59900, "price": 59890 }),
    )["order_id"]
        .clone();
    let edited = venue.ok(
        anna,
        "private/edit",
        json!({ "order_id": id, "amount": 30, "trigger_price": 59800, "price": 59790 }),
    );
    assert_eq!(
        (&edited["order"]["trigger_price"], &edited["order"]["amount"], &edited["order"]["order_id"]),
        (&json!(59800), &json!(30), &id)
    );
    assert_eq!(venue.refused(anna, "private/edit", json!({ "order_id": id, "trigger_price": 60200 })), 11036);
    assert_eq!(
        venue.refused(anna, "private/edit", json!({ "order_id": id, "trigger_price": 59800.3 })),
        10044
    );
    for _ in 0..99 {
        wait_for(&mut venue, anna, "buy", json!({ "type": "stop_market", "trigger_price": 60900 }));
    }
    let more = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "mark_price", "trigger_price": 61000 });
    assert_eq!(venue.refused(anna, "private/buy", more), 11035);
    assert_eq!(
        venue.ok(
            anna,
            "private/cancel_all_by_instrument",
            json!({ "instrument_name": PERPETUAL, "type": "stop" })
        ),
        100
    );
}

#[test]
fn a_trailing_stop_follows_the_market_one_way() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, 60000.0);
    let id = wait_for(&mut venue, bert, "sell", json!({ "type": "trailing_stop", "trigger_offset": 100 }))["order_id"].clone();
    let price = |venue: &mut Venue| {
        venue.ok(bert, "private/get_order_state", json!({ "order_id": id }))["trigger_price"].clone()
    };
    assert_eq!(price(&mut venue), json!(59900));
    trade(&mut venue, anna, bert, 60200.0);
    assert_eq!(price(&mut venue), json!(60100));
    trade(&mut venue, anna, bert, 60150.0);
    assert_eq!(price(&mut venue), json!(60100));
    trade(&mut venue, anna, bert, 60100.0);
    assert_eq!(
        venue.ok(bert, "private/get_order_state", json!({ "order_id": id }))["order_state"],
        "triggered"
    );
}

#[test]
fn the_index_fires_orders_too() {
    let mut moving = settings();
    moving.indices[0].2 = 5_000;
    let mut venue = Venue::of(moving);
    let anna = venue.login("anna");
    let up = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "index_price", "trigger_price": 60100 });
    let down = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "take_market", "trigger": "index_price", "trigger_price": 59900 });
    venue.ok(anna, "private/buy", up);
    venue.ok(anna, "private/buy", down);
    for _ in 0..200 {
        venue.wait(1_000_001);
    }
    let waiting = venue.ok(anna, "private/get_open_orders", json!({ "type": "trigger_all" }));
    assert!(waiting.as_array().unwrap().len() < 2, "{waiting}");
    assert!(venue.engine.open_order_count() > 0);
}

/// Creates two accounts, with a stop of the first that sells when the perpetual trades at 59 900.
fn with_a_stop() -> (Venue, u64, u64) {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, 60000.0);
    wait_for(
        &mut venue,
        anna,
        "sell",
        json!({ "type": "stop_limit", "trigger_price": 59900, "price": 59800 }),
    );
    let bid = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59900 });
    venue.ok(bert, "private/buy", bid);
    (venue, anna, bert)
}

fn waiting(venue: &mut Venue, anna: u64) -> usize {
    let open = venue.ok(anna, "private/get_open_orders", json!({ "type": "trigger_all" }));
    open.as_array().unwrap().len()
}

#[test]
fn a_stop_that_fired_as_the_venue_stopped_is_entered_after_the_restart_once() {
    let (mut venue, anna, _) = with_a_stop();
    let sale = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59900 });
    // The trade is in the log, but the order of the stop is not.
    venue.call_and_stop(anna, "private/sell", sale);
    assert_eq!(venue.engine.open_order_count(), 0);
    let mut venue = venue.restarted(vec!["wait".to_owned()]);
    let anna = venue.login("anna");
    assert_eq!((waiting(&mut venue, anna), venue.engine.open_order_count()), (1, 0));
    venue.wait(1_000_001);
    assert_eq!((waiting(&mut venue, anna), venue.engine.open_order_count()), (0, 1));
    for _ in 0..2 {
        venue = venue.restarted(vec!["wait".to_owned()]);
        venue.wait(1_000_001);
        let anna = venue.login("anna");
        assert_eq!((waiting(&mut venue, anna), venue.engine.open_order_count()), (0, 1), "and not again");
    }
    // It is lost again, and entered once.
    let (mut venue, anna, _) = with_a_stop();
    venue.call_and_stop(
        anna,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59900 }),
    );
    for _ in 0..3 {
        venue = venue.restarted(vec!["wait".to_owned()]);
        venue.now_us += 1_000_001;
        venue.front.handle_time(venue.now_us);
    }
    venue.settle();
    venue.wait(1_000_001);
    assert_eq!(venue.engine.open_order_count(), 1);
}

#[test]
fn a_stop_that_must_not_take_is_not_lost_while_it_is_moved() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, 60000.0);
    let terms = json!({ "type": "stop_limit", "trigger_price": 59900, "price": 59800, "post_only": true });
    wait_for(&mut venue, anna, "sell", terms);
    let bid = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59900 });
    venue.ok(bert, "private/buy", bid);
    venue.call_and_stop(
        anna,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59900 }),
    );
    // A bid of another user precedes the stop's order: the engine removes the order.
    let enter = tickpath_types::EnterOrder::limit(
        tickpath_types::UserRefNum(1_000),
        tickpath_types::InstrumentId(1),
        tickpath_types::Side::Buy,
        tickpath_types::Qty(1),
        tickpath_types::Price(599_000_000),
    );
    venue.order(2, tickpath_types::OrderRequest::Enter(enter));
    let made = venue.front.poll_request().unwrap();
    venue.command(made.session, made.command());
    assert_eq!(venue.engine.open_order_count(), 1, "the bid alone");
    let mut venue = venue.restarted(vec!["wait".to_owned()]);
    venue.wait(1_000_001);
    assert_eq!(venue.engine.open_order_count(), 2);
    let mut venue = venue.restarted(vec!["wait".to_owned()]);
    venue.wait(1_000_001);
    assert_eq!(venue.engine.open_order_count(), 2);
}

#[test]
fn trigger_prices_out_of_range_are_refused_with_the_range() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, 60000.0);
    let stop = |price: Value| json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_market", "trigger": "last_price", "trigger_price": price });
    for (price, code) in [
        (json!(240_000.5), 10034),
        (json!(9e9), 10034),
        (json!(0), 10035),
        (json!(-5), 10035),
        (json!(0.25), 10035),
        (json!(61_000.3), 10044),
        (json!(59_000), 11036),
    ] {
        assert_eq!(venue.refused(anna, "private/buy", stop(price.clone())), code, "{price}");
    }
    let refused = venue.call(anna, "private/buy", stop(json!(240_000.5)));
    assert_eq!(refused["error"]["message"], "trigger_price_too_high 240000");
    let trailing = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "trailing_stop", "trigger": "last_price", "trigger_offset": 60_000 });
    assert_eq!(venue.refused(anna, "private/sell", trailing), 10035);
}

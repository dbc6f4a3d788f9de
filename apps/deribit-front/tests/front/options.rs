//! Options: tick steps, volatilities and greeks, orders in dollars and by volatility.

use serde_json::{Value, json};
use tickpath_fix::MsgType;
use tickpath_fix::deribit::{SecurityList, SecurityListRequest};
use tickpath_matching::CommandKind;
use tickpath_types::OrderRequest;

use crate::front::fix_client::{Client, decimal, read};
use crate::front::support::{Venue, changed, settings};

const OPTION: &str = "BTC-25DEC26-60000-C";

/// Creates a venue with ticks of 0.0025 above a price of 0.01, and of 0.0005 below.
fn stepped() -> Venue {
    let steps = "kind = \"option\", tick_size_steps = [{ above_price = \"0.01\", tick_size = \"0.0025\" }]";
    Venue::of(changed(&[("kind = \"option\"", steps)]).unwrap())
}

fn params(amount: Value, price: Value) -> Value {
    json!({ "instrument_name": OPTION, "amount": amount, "price": price })
}

#[test]
fn above_a_price_another_tick_counts() {
    let mut venue = stepped();
    let anna = venue.login("anna");
    let listed = venue.ok(anna, "public/get_instrument", json!({ "instrument_name": OPTION }));
    assert_eq!(listed["tick_size"], json!(0.0005));
    assert_eq!(listed["tick_size_steps"], json!([{ "above_price": 0.01, "tick_size": 0.0025 }]));
    for price in [0.0105, 0.011, 0.0145] {
        assert_eq!(venue.refused(anna, "private/buy", params(json!(0.1), json!(price))), 10043, "{price}");
    }
    for price in [0.0005, 0.0095, 0.01, 0.0125, 0.015] {
        venue.ok(anna, "private/sell", params(json!(0.1), json!(price)));
        venue.ok(anna, "private/cancel_all", json!({}));
    }
    // The tick next to the other side differs on each side of the step.
    let bert = venue.login("bert");
    for (ask, moved) in [(0.0125, 0.01), (0.015, 0.0125), (0.01, 0.0095)] {
        venue.ok(bert, "private/sell", params(json!(0.1), json!(ask)));
        let mut order = params(json!(0.1), json!(0.02));
        order["post_only"] = json!(true);
        let placed = venue.ok(anna, "private/buy", order);
        assert_eq!(placed["order"]["price"], json!(moved), "before {ask}");
        venue.ok(anna, "private/cancel_all", json!({}));
        venue.ok(bert, "private/cancel_all", json!({}));
    }
    for (bid, moved) in [(0.0095, 0.01), (0.01, 0.0125)] {
        venue.ok(bert, "private/buy", params(json!(0.1), json!(bid)));
        let mut order = params(json!(0.1), json!(0.0005));
        order["post_only"] = json!(true);
        assert_eq!(venue.ok(anna, "private/sell", order)["order"]["price"], json!(moved), "before {bid}");
        venue.ok(anna, "private/cancel_all", json!({}));
        venue.ok(bert, "private/cancel_all", json!({}));
    }
}

#[test]
fn by_fix_steps_are_told_to_who_asks_for_them() {
    let mut venue = stepped();
    let mut anna = Client::login(&mut venue, "anna");
    for (asks, steps) in [(Some(true), 1), (None, 0)] {
        let request = SecurityListRequest {
            security_req_id: "s",
            request_type: 4,
            display_increment_steps: asks,
            ..SecurityListRequest::default()
        };
        anna.send(&mut venue, &request);
        let bytes = anna.next(&mut venue, MsgType::SECURITY_LIST);
        let list: SecurityList<'_> = read(&bytes);
        let option = list.securities.iter().map(Result::unwrap).find(|one| one.symbol == OPTION).unwrap();
        let rules: Vec<_> = option.tick_rules.iter().map(Result::unwrap).collect();
        assert_eq!(rules.len(), steps);
        if let [rule] = rules[..] {
            assert_eq!((rule.start_price, rule.increment), (decimal("0.01"), decimal("0.0025")));
        }
    }
}

#[test]
fn steps_that_cannot_be_are_refused() {
    for steps in [
        "[{ above_price = \"0.01\", tick_size = \"0.0007\" }]",
        "[{ above_price = \"0.011\", tick_size = \"0.0025\" }]",
        "[{ above_price = \"0.01\", tick_size = \"0.0005\" }]",
        "[{ above_price = \"0\", tick_size = \"0.001\" }]",
        "[{ above_price = \"0.02\", tick_size = \"0.001\" }, { above_price = \"0.01\", tick_size = \"0.002\" }]",
    ] {
        let with = format!("kind = \"option\", tick_size_steps = {steps}");
        let error = changed(&[("kind = \"option\"", &with)]).expect_err(steps).to_string();
        assert!(error.contains("tick_size_steps") && !error.contains('\n'), "{error}");
    }
    let error = changed(&[("kind = \"option\"", "kind = \"option\", volatility = \"0\"")]).unwrap_err();
    assert!(error.to_string().contains("volatility"), "{error}");
}

#[test]
fn volatilities_and_sensitivities_are_those_of_the_prices() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    venue.wait(1_000_000);
    let ticker = |venue: &mut Venue| venue.ok(anna, "public/ticker", json!({ "instrument_name": OPTION }));
    // 32.8 days at 60 %: 0.0717 of the underlying.
    let quiet = ticker(&mut venue);
    assert_eq!(quiet["mark_price"], json!(0.0717));
    let is_near = |value: &Value, expected: f64, by: f64| {
        assert!((value.as_f64().unwrap() - expected).abs() < by, "{value} is not {expected}");
    };
    is_near(&quiet["mark_iv"], 60.0, 0.1);
    assert_eq!((&quiet["bid_iv"], &quiet["ask_iv"]), (&json!(0.0), &json!(0.0)));
    is_near(&quiet["greeks"]["delta"], 0.5358, 0.001);
    is_near(&quiet["greeks"]["gamma"], 0.00004, 0.00001);
    is_near(&quiet["greeks"]["vega"], 71.5, 0.2);
    is_near(&quiet["greeks"]["theta"], -65.5, 0.5);
    assert!(quiet["greeks"]["rho"].as_f64().unwrap() < 0.0);
    assert_eq!(quiet["interest_rate"], json!(0));
    // Bid and ask have separate volatilities, and the mark price follows the middle.
    venue.ok(anna, "private/buy", params(json!(1), json!(0.05)));
    venue.ok(bert, "private/sell", params(json!(1), json!(0.06)));
    venue.wait(1_000_000);
    let now = ticker(&mut venue);
    let [bid, mark, ask] = ["bid_iv", "mark_iv", "ask_iv"].map(|name| now[name].as_f64().unwrap());
    assert!(0.0 < bid && bid < mark && mark < ask && ask < 60.0, "{now}");
    let book = venue.ok(anna, "public/get_order_book", json!({ "instrument_name": OPTION }));
    for name in ["mark_iv", "greeks", "underlying_price", "underlying_index", "estimated_delivery_price"] {
        assert_eq!(book[name], now[name], "{name}");
    }
    let perpetual = venue.ok(anna, "public/ticker", json!({ "instrument_name": "BTC-PERPETUAL" }));
    assert!(perpetual.get("greeks").is_none() && perpetual.get("mark_iv").is_none());
}

#[test]
fn orders_in_dollars_and_by_volatility_have_a_price_on_a_tick() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let advanced = |price: Value, way: &str| json!({ "instrument_name": OPTION, "amount": 1, "price": price, "advanced": way, "label": "adv" });
    // 3141 / 60000 = 0.05235: rounded down for a buyer, up for a seller.
    let bought = venue.ok(anna, "private/buy", advanced(json!(3141), "usd"));
    let order = &bought["order"];
    assert_eq!(
        (&order["price"], &order["usd"], &order["advanced"]),
        (&json!(0.052), &json!(3141), &json!("usd"))
    );
    assert!(order.get("implv").is_none());
    let sold = venue.ok(bert, "private/sell", advanced(json!(3141), "usd"));
    assert_eq!((&sold["order"]["price"], &sold["order"]["order_state"]), (&json!(0.0525), &json!("open")));
    let by_volatility = venue.ok(anna, "private/buy", advanced(json!(40.5), "implv"));
    let order = &by_volatility["order"];
    assert_eq!((&order["price"], &order["implv"]), (&json!(0.048), &json!(40.5)));
    let taken = venue.ok(bert, "private/sell", advanced(json!(30), "implv"));
    assert_eq!(taken["order"]["order_state"], "filled");
    assert_eq!(taken["trades"][0]["price"], json!(0.052));

    for (code, request) in [
        (11038, json!({ "instrument_name": "BTC-PERPETUAL", "amount": 10, "price": 5, "advanced": "usd" })),
        (-32602, json!({ "instrument_name": OPTION, "amount": 1, "price": 5, "advanced": "eur" })),
        (-32602, json!({ "instrument_name": OPTION, "amount": 1, "advanced": "usd" })),
        (10026, json!({ "instrument_name": OPTION, "amount": 1, "price": 0.001, "advanced": "usd" })),
        (10023, json!({ "instrument_name": OPTION, "amount": 1, "price": -5, "advanced": "implv" })),
        (
            11039,
            json!({ "instrument_name": OPTION, "amount": 1, "price": 5, "advanced": "usd", "post_only": true }),
        ),
        (11047, json!({ "instrument_name": OPTION, "amount": 1, "type": "market", "advanced": "usd" })),
    ] {
        assert_eq!(venue.refused(anna, "private/buy", request.clone()), code, "{request}");
    }
    // The price source is known after a restart.
    let labels = vec!["adv".to_owned()];
    let mut venue = venue.restarted(labels);
    let anna = venue.login("anna");
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!((&open[0]["implv"], &open[0]["price"]), (&json!(40.5), &json!(0.048)));
}

/// Creates a venue whose index moves by up to half a percent per second.
fn moving() -> Venue {
    Venue::of(changed(&[("price = \"60000\"", "price = \"60000\", step_ppm = 5000")]).unwrap())
}

#[test]
fn orders_in_dollars_and_by_volatility_follow_the_index() {
    let mut venue = moving();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let order = |price: Value, way: &str| json!({ "instrument_name": OPTION, "amount": 1, "price": price, "advanced": way });
    let bought = venue.ok(anna, "private/buy", order(json!(3141), "usd"))["order"].clone();
    assert_eq!((&bought["auto_replaced"], &bought["replaced"]), (&json!(false), &json!(false)));
    let by_volatility = venue.ok(anna, "private/buy", order(json!(40), "implv"))["order"].clone();
    let plain = venue.ok(anna, "private/buy", params(json!(1), json!(0.04)))["order"].clone();
    assert!(plain.get("auto_replaced").is_none());
    let sold = venue.ok(bert, "private/sell", order(json!(9000), "usd"))["order"].clone();
    venue.ok(anna, "private/subscribe", json!({ "channels": ["user.orders.any.any.raw"] }));
    let state = |venue: &mut Venue, client: u64, order: &Value| {
        venue.ok(client, "private/get_order_state", json!({ "order_id": order["order_id"] }))
    };
    let index = |venue: &mut Venue| {
        let index = venue.ok(anna, "public/get_index_price", json!({ "index_name": "btc_usd" }));
        index["index_price"].as_f64().unwrap()
    };
    let tick = 0.0005;
    let mut moves = 0;
    for _ in 0..60 {
        let before = state(&mut venue, anna, &bought)["price"].clone();
        venue.wait(1_000_000);
        let now = state(&mut venue, anna, &bought);
        moves += u32::from(now["price"] != before);
        let index = index(&mut venue);
        let near = |order: Value, dollars: f64, way: f64| {
            let beyond = (order["price"].as_f64().unwrap() - dollars / index) * way;
            assert!((-1e-9..tick).contains(&beyond), "{order} at {index}");
        };
        near(now, 3141.0, -1.0);
        near(state(&mut venue, bert, &sold), 9000.0, 1.0);
    }
    assert!(moves >= 5, "{moves} moves");
    let now = state(&mut venue, anna, &bought);
    assert_eq!(
        (&now["auto_replaced"], &now["replaced"], &now["usd"]),
        (&json!(true), &json!(true), &json!(3141))
    );
    assert_ne!(state(&mut venue, anna, &by_volatility)["price"], by_volatility["price"]);
    assert_eq!(state(&mut venue, anna, &plain), plain, "it was not changed");
    let told = venue.news(anna, "user.orders.any.any.raw");
    assert!(told.iter().filter(|told| told["order_id"] == bought["order_id"]).count() >= moves as usize);

    // It continues after a restart, and an edit by the client is marked as such.
    let mut venue = venue.restarted(Vec::new());
    let anna = venue.login("anna");
    assert_eq!(state(&mut venue, anna, &bought)["auto_replaced"], true);
    let edit = json!({ "order_id": bought["order_id"], "amount": 2, "price": 3000, "advanced": "usd" });
    assert_eq!(venue.ok(anna, "private/edit", edit)["order"]["auto_replaced"], false);
    let before = state(&mut venue, anna, &bought);
    let moved = (0..100).any(|_| {
        venue.wait(1_000_000);
        state(&mut venue, anna, &bought)["price"] != before["price"]
    });
    let after = state(&mut venue, anna, &bought);
    assert!(moved && after["auto_replaced"] == true && after["usd"] == 3000, "{after}");
    // A plain order keeps its price.
    let edit = json!({ "order_id": bought["order_id"], "amount": 2, "price": 0.03 });
    assert!(venue.ok(anna, "private/edit", edit)["order"].get("usd").is_none());
    venue.wait(1_000_000);
    (0..60).for_each(|_| venue.wait(1_000_000));
    assert_eq!(state(&mut venue, anna, &bought)["price"], 0.03);
}

#[test]
fn many_orders_follow_the_index_in_their_turns() {
    let mut venue = moving();
    let anna = venue.login("anna");
    for _ in 0..300 {
        let order = json!({ "instrument_name": OPTION, "amount": 0.1, "price": 1000, "advanced": "usd" });
        venue.ok(anna, "private/buy", order);
    }
    let mut most = 0;
    let mut moved = std::collections::BTreeSet::new();
    for _ in 0..2_000 {
        let before = venue.log.len();
        venue.wait(100_000);
        let replaced = venue.log[before..].iter().filter_map(|command| match command.kind {
            CommandKind::Order(OrderRequest::Replace(request)) => Some(request.user_ref),
            _ => None,
        });
        let replaced: Vec<_> = replaced.collect();
        most = most.max(replaced.len());
        moved.extend(replaced);
    }
    assert_eq!(most, 32, "no turn is longer");
    assert!(moved.len() >= 600, "all moved, and most more than once: {}", moved.len());
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    let prices: std::collections::BTreeSet<_> =
        open.as_array().unwrap().iter().map(|order| order["price"].to_string()).collect();
    assert!(
        open.as_array().unwrap().len() == 300 && prices.len() <= 2,
        "one step behind at most: {prices:?}"
    );
}

#[test]
fn orders_of_an_account_that_has_thousands_follow_one_at_a_time() {
    let mut venue = moving();
    let anna = venue.login("anna");
    for _ in 0..20 {
        let order = json!({ "instrument_name": OPTION, "amount": 0.1, "price": 9000, "advanced": "usd" });
        venue.ok(anna, "private/buy", order);
    }
    // Other orders of the account, which are visited for each of them.
    venue.enter_bids(100..11_100);
    let (mut most, mut moved) = (0, 0);
    for _ in 0..400 {
        let before = venue.log.len();
        venue.wait(100_000);
        most = most.max(venue.log.len() - before);
        moved += venue.log.len() - before;
    }
    assert!(most == 1 && moved >= 20, "{most} at a time, {moved} in all");
}

#[test]
fn quotes_are_cancelled_by_their_delta_and_stopped_by_their_vega() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let limits = json!({ "index_name": "btc_usd", "interval": 10, "frozen_time": 0, "max_quote_quantity": 5, "vega_limit": 100, "mmp_group": "g" });
    assert_eq!(venue.ok(anna, "private/set_mmp_config", limits)[0]["vega_limit"], 100);
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    let quotes = json!({ "quote_id": "q1", "mmp_group": "g", "quotes": [{
        "instrument_name": OPTION, "quote_set_id": "s1",
        "bid": { "price": 0.06, "amount": 1 }, "ask": { "price": 0.08, "amount": 3 }
    }] });
    assert_eq!(venue.ok(anna, "private/mass_quote", quotes.clone())["errors"], json!([]));
    let within = |min: f64, max: f64| json!({ "cancel_type": "delta", "min_delta": min, "max_delta": max });
    assert_eq!(venue.ok(anna, "private/cancel_quotes", within(0.9, 1.0)), 0);
    assert_eq!(
        venue.refused(anna, "private/cancel_quotes", json!({ "cancel_type": "delta", "min_delta": 0 })),
        -32602
    );
    assert_eq!(venue.ok(anna, "private/cancel_quotes", within(0.4, 0.6)), 2);

    venue.ok(anna, "private/mass_quote", quotes);
    // One has a vega of 71, two have 143.
    venue.ok(bert, "private/buy", params(json!(1), json!(0.08)));
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!((open.as_array().unwrap().len(), &open[0]["quote_set_id"]), (2, &json!("s1")));
    let trades =
        venue.ok(anna, "private/get_user_trades_by_instrument", json!({ "instrument_name": OPTION }));
    let trade = &trades["trades"][0];
    assert_eq!((&trade["quote_id"], &trade["quote_set_id"]), (&json!("q1"), &json!("s1")));
    venue.ok(bert, "private/buy", params(json!(1), json!(0.08)));
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})), json!([]));
    let status = venue.ok(anna, "private/get_mmp_status", json!({}));
    assert_eq!((&status[0]["mmp_group"], &status[0]["frozen_until"]), (&json!("g"), &json!(0)));
}

#[test]
fn orders_of_options_wait_for_a_price_of_the_index() {
    let mut moving = settings();
    moving.indices[0].2 = 5_000;
    let mut venue = Venue::of(moving);
    let anna = venue.login("anna");
    let stop = |trigger: Value| json!({ "instrument_name": OPTION, "amount": 0.1, "type": "stop_limit", "price": 0.01, "trigger": "index_price", "trigger_price": trigger });
    for (price, code) in [(json!(0), 10035), (json!(-1), 10035), (json!(60_100.000_01), 10044)] {
        assert_eq!(venue.refused(anna, "private/buy", stop(price.clone())), code, "{price}");
    }
    // The price range of the option still applies to its own prices.
    let mut own = stop(json!(60_100));
    own["trigger"] = json!("mark_price");
    assert_eq!(venue.refused(anna, "private/buy", own), 10034);
    let up = venue.ok(anna, "private/buy", stop(json!(60_100)))["order"].clone();
    assert_eq!((&up["trigger_price"], &up["trigger"]), (&json!(60_100), &json!("index_price")));
    let mut down = stop(json!(59_900));
    down["type"] = json!("take_limit");
    let down = venue.ok(anna, "private/buy", down)["order"]["order_id"].clone();
    let moved = json!({ "order_id": down, "amount": 0.1, "trigger_price": 59_950.5 });
    assert_eq!(venue.ok(anna, "private/edit", moved)["order"]["trigger_price"], 59_950.5);
    let trailing = json!({ "instrument_name": OPTION, "amount": 0.1, "type": "trailing_stop", "trigger": "index_price", "trigger_offset": 5_000 });
    let trailing = venue.ok(anna, "private/buy", trailing)["order"].clone();
    assert_eq!(trailing["trigger_price"], 65_000);
    for _ in 0..200 {
        venue.wait(1_000_001);
    }
    let waiting = venue.ok(anna, "private/get_open_orders", json!({ "type": "trigger_all" }));
    assert!(waiting.as_array().unwrap().len() < 3, "{waiting}");
    assert!(venue.engine.open_order_count() > 0);
}

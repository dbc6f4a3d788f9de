//! Market maker protection, quotes, and self-trade prevention.

use serde_json::{Value, json};
use tickpath_types::{EnterOrder, InstrumentId, OrderRequest, Price, Qty, Side, UserRefNum};

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";

fn protect(venue: &mut Venue, connection: u64, quantity: Value, frozen: u64) -> Value {
    let params = json!({ "index_name": "btc_usd", "interval": 10, "frozen_time": frozen, "max_quote_quantity": 5, "quantity_limit": quantity });
    venue.ok(connection, "private/set_mmp_config", params)
}

fn order(venue: &mut Venue, connection: u64, side: &str, amount: u64, price: u64, mmp: bool) -> Value {
    let params = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price, "mmp": mmp });
    venue.ok(connection, &format!("private/{side}"), params)
}

impl Venue {
    fn restarted_status(&mut self) -> Value {
        let anna = self.login("anna");
        self.ok(anna, "private/get_mmp_status", json!({}))
    }
}

#[test]
fn protected_orders_go_when_too_much_of_them_trades() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let protected = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_000, "mmp": true });
    assert_eq!(venue.refused(anna, "private/buy", protected.clone()), 11049, "nothing watches it");
    let config = protect(&mut venue, anna, json!(0.99), 20);
    assert_eq!((&config[0]["quantity_limit"], &config[0]["interval"]), (&json!(0.99), &json!(10)));
    let channel = "user.mmp_trigger.btc_usd";
    venue.ok(anna, "private/subscribe", json!({ "channels": [channel] }));
    for price in [60_001, 60_002, 60_003] {
        let placed = order(&mut venue, anna, "sell", 30_000, price, true);
        assert_eq!(placed["order"]["mmp"], true);
    }
    let plain = order(&mut venue, anna, "sell", 30_000, 60_004, false);
    // Half a bitcoin, and another half 11 seconds later.
    order(&mut venue, bert, "buy", 30_000, 60_004, false);
    venue.wait(11_000_000);
    order(&mut venue, bert, "buy", 30_000, 60_004, false);
    assert_eq!(venue.ok(anna, "private/get_mmp_status", json!({})), json!([]));
    assert!(venue.news(anna, channel).is_empty());
    order(&mut venue, bert, "buy", 30_010, 60_004, false);
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!((open.as_array().unwrap().len(), &open[0]["order_id"]), (1, &plain["order"]["order_id"]));
    let told = venue.news(anna, channel);
    assert_eq!((told.len(), &told[0]["index_name"]), (1, &json!("btc_usd")), "{told:?}");
    let status = venue.ok(anna, "private/get_mmp_status", json!({ "index_name": "btc_usd" }));
    assert_eq!(status[0]["frozen_until"], told[0]["frozen_until"]);
    assert_eq!(
        venue.refused(
            anna,
            "private/buy",
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "mmp": true })
        ),
        13030
    );
    venue.wait(20_000_000);
    order(&mut venue, anna, "buy", 10, 59_000, true);

    // Without a frozen time it stays frozen until a reset.
    protect(&mut venue, anna, json!(0.1), 0);
    order(&mut venue, anna, "sell", 30_000, 60_003, true);
    order(&mut venue, bert, "buy", 30_000, 60_003, false);
    venue.wait(300_000_000);
    assert_eq!(venue.ok(anna, "private/get_mmp_status", json!({}))[0]["frozen_until"], 0);
    venue.ok(anna, "private/reset_mmp", json!({ "index_name": "btc_usd" }));
    assert_eq!(venue.ok(anna, "private/get_mmp_status", json!({})), json!([]));
    // The reset persists over a restart, and so does a freeze.
    let mut venue = venue.restarted(Vec::new());
    assert_eq!(venue.restarted_status(), json!([]));
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", 30_000, 60_003, true);
    order(&mut venue, bert, "buy", 30_000, 60_003, false);
    let mut venue = venue.restarted(Vec::new());
    assert_eq!(venue.restarted_status()[0]["frozen_until"], 0);
    let anna = venue.login("anna");
    assert_eq!(
        venue.ok(anna, "private/get_mmp_config", json!({ "index_name": "btc_usd" }))[0]["quantity_limit"],
        json!(0.1)
    );
    let off = json!({ "index_name": "btc_usd", "interval": 0, "frozen_time": 0, "max_quote_quantity": 0 });
    assert_eq!(venue.ok(anna, "private/set_mmp_config", off), json!([]));
    assert_eq!(venue.ok(anna, "private/get_mmp_config", json!({})), json!([]));
    for bad in [
        json!({}),
        json!({ "index_name": "x" }),
        json!({ "index_name": "btc_usd", "interval": 90_000, "frozen_time": 1 }),
    ] {
        assert_eq!(venue.refused(anna, "private/set_mmp_config", bad), -32602);
    }
}

#[test]
fn orders_that_would_trade_with_their_own_account() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let mode = |mode: &str| json!({ "mode": mode, "extended_to_subaccounts": false });
    order(&mut venue, anna, "sell", 10, 60_000, false);
    assert_eq!(
        order(&mut venue, anna, "buy", 10, 60_000, false)["order"]["order_state"],
        "filled",
        "nothing is published"
    );
    assert_eq!(venue.ok(anna, "private/set_self_trading_config", mode("reject_taker")), "ok");
    let resting = order(&mut venue, anna, "sell", 10, 60_000, false);
    let taking = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_000 });
    assert_eq!(venue.refused(anna, "private/buy", taking.clone()), 10003);
    assert_eq!(venue.ok(anna, "private/get_open_orders", json!({})).as_array().unwrap().len(), 1);
    venue.ok(anna, "private/set_self_trading_config", mode("cancel_maker"));
    let summary = json!({ "currency": "BTC", "extended": true });
    assert_eq!(
        venue.ok(anna, "private/get_account_summary", summary)["self_trading_reject_mode"],
        "cancel_maker"
    );
    assert_eq!(venue.ok(anna, "private/buy", taking)["order"]["order_state"], "open");
    let id = json!({ "order_id": resting["order"]["order_id"] });
    assert_eq!(venue.ok(anna, "private/get_order_state", id)["order_state"], "cancelled");
    assert_eq!(venue.refused(anna, "private/set_self_trading_config", mode("trade")), -32602);
    assert_eq!(
        venue.refused(anna, "private/set_self_trading_config", json!({ "mode": "reject_taker" })),
        -32602
    );
}

fn side(amount: u64, price: f64) -> Value {
    json!({ "amount": amount, "price": price, "post_only": true, "reject_post_only": true })
}

fn quotes(quotes: &[Value]) -> Value {
    json!({ "quote_id": "q", "mmp_group": "desk", "detailed": true, "quotes": quotes })
}

#[test]
fn quotes_are_changed_many_at_once() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let both = |bid: f64, ask: f64| {
        quotes(&[
            json!({ "instrument_name": PERPETUAL, "quote_set_id": "s1", "bid": side(100, bid), "ask": side(100, ask) }),
            json!({ "instrument_name": "ETH_USDC-PERPETUAL", "quote_set_id": "s2", "bid": side(1, 2_990.0) }),
        ])
    };
    assert_eq!(venue.refused(anna, "private/mass_quote", both(59_990.0, 60_010.0)), 13042);
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    let unwatched = venue.ok(anna, "private/mass_quote", both(59_990.0, 60_010.0));
    assert_eq!(
        (&unwatched["errors_count"], &unwatched["orders_count"]),
        (&json!(3), &json!(0)),
        "{unwatched}"
    );
    for index in ["btc_usd", "eth_usd"] {
        let config = json!({ "index_name": index, "mmp_group": "desk", "interval": 10, "frozen_time": 1, "max_quote_quantity": 2, "quantity_limit": 0.01 });
        venue.ok(anna, "private/set_mmp_config", config);
    }
    let first = venue.ok(anna, "private/mass_quote", both(59_990.0, 60_010.0));
    assert_eq!((&first["errors"], &first["orders_count"]), (&json!([]), &json!(3)), "{first}");
    let bid = &first["orders"][0];
    assert_eq!(
        (&bid["quote"], &bid["quote_set_id"], &bid["mmp_group"]),
        (&json!(true), &json!("s1"), &json!("desk"))
    );
    // Again: the same orders at other prices; one is rejected alone.
    let moved = venue.ok(anna, "private/mass_quote", both(59_995.0, 59_990.0));
    assert_eq!((&moved["orders_count"], &moved["errors_count"]), (&json!(2), &json!(1)), "{moved}");
    assert_eq!(
        (&moved["errors"][0]["side"], &moved["errors"][0]["error"]["code"]),
        (&json!("ask"), &json!(11054))
    );
    let open =
        venue.ok(anna, "private/get_open_orders_by_instrument", json!({ "instrument_name": PERPETUAL }));
    let prices: Vec<_> = open.as_array().unwrap().iter().map(|order| order["price"].clone()).collect();
    assert_eq!(prices, [json!(59_995), json!(60_010)]);
    assert_eq!(open[0]["order_id"], bid["order_id"]);
    // A zero amount removes a side; a quantity above the limit is rejected.
    let one =
        |bid: Value| quotes(&[json!({ "instrument_name": PERPETUAL, "quote_set_id": "s1", "bid": bid })]);
    let gone = venue.ok(anna, "private/mass_quote", one(json!({ "amount": 0, "price": 1 })));
    assert_eq!(gone["errors"], json!([]));
    let large = venue.ok(anna, "private/mass_quote", one(side(200_000, 59_000.0)));
    assert_eq!(large["errors"][0]["error"]["code"], 10021);
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!(open.as_array().unwrap().len(), 2);
    // A trade beyond a group's limit cancels the group's other quotes on that index only.
    venue.ok(anna, "private/mass_quote", both(59_980.0, 60_010.0));
    order(&mut venue, bert, "buy", 100, 60_010, false);
    let kept = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!(kept.as_array().unwrap().len(), 2, "100 dollars are not a hundredth of a bitcoin");
    venue.ok(
        anna,
        "private/mass_quote",
        quotes(&[
            json!({ "instrument_name": PERPETUAL, "quote_set_id": "s1", "ask": side(1_000, 60_010.0) }),
        ]),
    );
    order(&mut venue, bert, "buy", 1_000, 60_010, false);
    let kept = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!(
        (kept.as_array().unwrap().len(), &kept[0]["instrument_name"]),
        (1, &json!("ETH_USDC-PERPETUAL")),
        "{kept}"
    );
    assert_eq!(
        venue.ok(anna, "private/mass_quote", one(side(10, 59_000.0)))["errors"][0]["error"]["code"],
        13030
    );

    venue.wait(1_100_000);
    venue.ok(anna, "private/mass_quote", both(59_980.0, 60_010.0));
    let cancel = |kind: &str, name: &str, value: &str| json!({ "cancel_type": kind, name: value });
    assert_eq!(venue.ok(anna, "private/cancel_quotes", cancel("quote_set_id", "quote_set_id", "s2")), 1);
    assert_eq!(
        venue.ok(anna, "private/cancel_quotes", cancel("instrument", "instrument_name", PERPETUAL)),
        2
    );
    venue.ok(anna, "private/mass_quote", both(59_980.0, 60_010.0));
    assert_eq!(venue.ok(anna, "private/cancel_quotes", cancel("currency", "currency", "BTC")), 2);
    assert_eq!(
        venue.ok(anna, "private/cancel_quotes", cancel("currency_pair", "currency_pair", "eth_usd")),
        1
    );
    venue.ok(anna, "private/mass_quote", both(59_980.0, 60_010.0));
    assert_eq!(venue.ok(anna, "private/cancel_quotes", cancel("instrument_kind", "kind", "option")), 0);
    let all = json!({ "cancel_type": "all", "freeze_quotes": true });
    assert_eq!(venue.ok(anna, "private/cancel_quotes", all), 3);
    assert_eq!(venue.refused(anna, "private/mass_quote", both(59_980.0, 60_010.0)), 13043);
    venue.wait(1_100_000);
    assert_eq!(venue.refused(anna, "private/cancel_quotes", json!({ "cancel_type": "some" })), -32602);
    assert_eq!(venue.refused(anna, "private/mass_quote", quotes(&[])), -32602);
    let many: Vec<_> = (0..101)
        .map(|_| json!({ "instrument_name": PERPETUAL, "quote_set_id": "s", "bid": side(10, 59_000.0) }))
        .collect();
    assert_eq!(venue.refused(anna, "private/mass_quote", quotes(&many)), 13903);
    let twice = venue.ok(anna, "private/mass_quote", quotes(&many[..2]));
    assert_eq!((&twice["errors_count"], &twice["orders_count"]), (&json!(1), &json!(1)));
    let at_once =
        json!({ "quote_id": "q", "mmp_group": "desk", "wait_for_response": false, "quotes": [many[0]] });
    assert_eq!(venue.ok(anna, "private/mass_quote", at_once)["errors"], json!([]));

    // Quotes end with their connection and with the venue.
    venue.front.close(anna, venue.now_us);
    venue.settle();
    assert_eq!(venue.engine.open_order_count(), 0);
    let anna = venue.login("anna");
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    venue.ok(anna, "private/mass_quote", both(59_980.0, 60_010.0));
    let mut venue = venue.restarted(Vec::new());
    venue.wait(200_000);
    assert_eq!(venue.engine.open_order_count(), 0);
}

#[test]
fn quotes_go_with_their_connection_whatever_it_says_of_its_orders() {
    let one = || {
        let bid = json!({ "amount": 10, "price": 59_000 });
        quotes(&[json!({ "instrument_name": PERPETUAL, "quote_set_id": "s", "bid": bid })])
    };
    for leaving in ["private/disable_cancel_on_disconnect", "private/logout"] {
        let mut venue = Venue::new();
        let anna = venue.login("anna");
        let watched = json!({ "index_name": "btc_usd", "mmp_group": "desk", "interval": 10, "frozen_time": 1, "max_quote_quantity": 2 });
        venue.ok(anna, "private/set_mmp_config", watched);
        venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
        order(&mut venue, anna, "buy", 10, 58_000, false);
        assert_eq!(venue.ok(anna, "private/mass_quote", one())["orders_count"], 1);
        venue.call(anna, leaving, json!({}));
        venue.wait(200_000);
        assert_eq!(venue.engine.open_order_count(), 2);
        venue.front.close(anna, venue.now_us);
        venue.settle();
        assert_eq!(venue.engine.open_order_count(), 1, "{leaving}: the order stays, the quote goes");
    }
    // A quote that is in flight when its connection ends.
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let watched = json!({ "index_name": "btc_usd", "mmp_group": "desk", "interval": 10, "frozen_time": 1, "max_quote_quantity": 2 });
    venue.ok(anna, "private/set_mmp_config", watched);
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    let frame = json!({ "jsonrpc": "2.0", "id": 0, "method": "private/mass_quote", "params": one() });
    venue.front.handle_frame(anna, frame.to_string().as_bytes(), venue.now_us);
    let frame =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "private/disable_cancel_on_disconnect", "params": {} });
    venue.front.handle_frame(anna, frame.to_string().as_bytes(), venue.now_us);
    venue.front.close(anna, venue.now_us);
    venue.settle();
    venue.wait(200_000);
    assert_eq!(venue.engine.open_order_count(), 0);
    // A quote that was open when the venue stopped: it is cancelled soon after the restart.
    let anna = venue.login("anna");
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    venue.ok(anna, "private/mass_quote", one());
    assert_eq!(venue.engine.open_order_count(), 1);
    let mut venue = venue.restarted(Vec::new());
    venue.wait(200_000);
    assert_eq!(venue.engine.open_order_count(), 0);
}

#[test]
fn quotes_whose_cancel_found_no_room_go_later() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let watched = json!({ "index_name": "btc_usd", "mmp_group": "desk", "interval": 10, "frozen_time": 1, "max_quote_quantity": 2 });
    venue.ok(anna, "private/set_mmp_config", watched);
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    let bid = json!({ "amount": 10, "price": 59_000 });
    let quote = quotes(&[json!({ "instrument_name": PERPETUAL, "quote_set_id": "s", "bid": bid })]);
    venue.ok(anna, "private/mass_quote", quote);
    // The cancels of another account's orders fill the queue.
    for number in 0..9_000 {
        let (instrument, price) = (InstrumentId(1), Price(500_000_000));
        let bid = EnterOrder::limit(UserRefNum(number + 100), instrument, Side::Buy, Qty(1), price);
        venue.order(2, OrderRequest::Enter(bid));
    }
    let all = json!({ "jsonrpc": "2.0", "id": 0, "method": "private/cancel_all", "params": {} });
    venue.front.handle_frame(bert, all.to_string().as_bytes(), venue.now_us);
    let mut asked = Vec::new();
    venue.front.close(anna, venue.now_us);
    for _ in 0..2 {
        venue.now_us += 100_000;
        venue.front.handle_time(venue.now_us);
    }
    while let Some(request) = venue.front.poll_request() {
        asked.push(request.session);
        venue.command(request.session, request.command());
        venue.now_us += 100;
        venue.front.handle_time(venue.now_us);
    }
    assert_eq!(asked.iter().filter(|session| session.0 == 1).count(), 1, "it is cancelled once");
    assert_eq!((asked.len(), venue.engine.open_order_count()), (9_001, 0));
}

#[test]
fn a_quote_has_the_texts_of_the_request_that_changed_it() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let watched = json!({ "index_name": "btc_usd", "mmp_group": "desk", "interval": 10, "frozen_time": 1, "max_quote_quantity": 2 });
    venue.ok(anna, "private/set_mmp_config", watched);
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
    let quote = |set: &str, bid: Value| {
        quotes(&[json!({ "instrument_name": PERPETUAL, "quote_set_id": set, "bid": bid })])
    };
    let set = |venue: &mut Venue| {
        let open = venue.ok(anna, "private/get_open_orders", json!({}));
        open[0]["quote_set_id"].as_str().unwrap().to_owned()
    };
    venue.ok(anna, "private/mass_quote", quote("s1", side(100, 59_000.0)));
    // Rejected: the quote is unchanged.
    for (refused, code) in [(side(100, 59_000.3), 10043), (side(100, 90_000.0), 10007)] {
        let result = venue.ok(anna, "private/mass_quote", quote("s2", refused));
        assert_eq!(
            (&result["errors"][0]["error"]["code"], &result["errors"][0]["quote_set_id"]),
            (&json!(code), &json!("s2"))
        );
        assert_eq!(set(&mut venue), "s1");
    }
    order(&mut venue, bert, "sell", 100, 60_000, false);
    let crossing = venue.ok(anna, "private/mass_quote", quote("s2", side(100, 60_000.0)));
    assert_eq!((&crossing["errors_count"], set(&mut venue).as_str()), (&json!(1), "s1"));
    // Changed, and repeated without a change.
    venue.ok(anna, "private/mass_quote", quote("s3", side(100, 59_100.0)));
    assert_eq!(set(&mut venue), "s3");
    venue.ok(anna, "private/mass_quote", quote("s4", side(100, 59_100.0)));
    assert_eq!(set(&mut venue), "s4");
    // A trade caused by the change has the new texts too.
    let taking = venue.ok(anna, "private/mass_quote", quote("s5", json!({ "amount": 50, "price": 60_000 })));
    assert_eq!(taking["trades"][0]["quote_set_id"], "s5", "{taking}");
    let trades =
        venue.ok(anna, "private/get_user_trades_by_instrument", json!({ "instrument_name": PERPETUAL }));
    assert_eq!(trades["trades"][0]["quote_set_id"], "s5");
}

#[test]
fn a_quote_that_the_engine_lets_go_is_none() {
    for (rejects, code) in [(true, 11054), (false, 11021)] {
        let mut venue = Venue::new();
        let anna = venue.login("anna");
        let watched = json!({ "index_name": "btc_usd", "mmp_group": "desk", "interval": 10, "frozen_time": 1, "max_quote_quantity": 2 });
        venue.ok(anna, "private/set_mmp_config", watched);
        venue.ok(anna, "private/enable_cancel_on_disconnect", json!({}));
        let quote = |price: u64| {
            let bid =
                json!({ "amount": 100, "price": price, "post_only": true, "reject_post_only": rejects });
            quotes(&[json!({ "instrument_name": PERPETUAL, "quote_set_id": "s", "bid": bid })])
        };
        venue.ok(anna, "private/mass_quote", quote(59_000));
        // An offer precedes the change of the quote.
        let frame =
            json!({ "jsonrpc": "2.0", "id": 77, "method": "private/mass_quote", "params": quote(59_500) });
        venue.front.handle_frame(anna, frame.to_string().as_bytes(), venue.now_us);
        let offer =
            EnterOrder::limit(UserRefNum(1_000), InstrumentId(1), Side::Sell, Qty(1), Price(594_000_000));
        venue.order(2, OrderRequest::Enter(offer));
        venue.settle();
        let frames = venue.frames(anna);
        let result = &frames.iter().find(|frame| frame["id"] == 77).unwrap()["result"];
        assert_eq!((&result["orders_count"], &result["errors_count"]), (&json!(0), &json!(1)), "{result}");
        assert_eq!(result["errors"][0]["error"]["code"], code);
        assert_eq!(venue.engine.open_order_count(), 1);
    }
}

#[test]
fn quotes_go_with_the_connection_that_keeps_them() {
    let mut venue = Venue::new();
    let (first, second) = (venue.login("anna"), venue.login("anna"));
    let limits = json!({ "index_name": "btc_usd", "interval": 10, "frozen_time": 0, "quantity_limit": 50, "mmp_group": "g" });
    venue.ok(first, "private/set_mmp_config", limits);
    let quote = |price: u64| {
        let bid = json!({ "price": price, "amount": 10 });
        let one = json!({ "instrument_name": "BTC-PERPETUAL", "quote_set_id": "s", "bid": bid });
        json!({ "quote_id": "q", "mmp_group": "g", "quotes": [one] })
    };
    for number in [first, second] {
        venue.ok(number, "private/enable_cancel_on_disconnect", json!({ "scope": "connection" }));
    }
    // Changed by the second connection, and repeated by it without a change.
    for prices in [[59_000, 59_100], [59_200, 59_200]] {
        for (number, price) in [first, second].into_iter().zip(prices) {
            assert_eq!(venue.ok(number, "private/mass_quote", quote(price))["orders_count"], 1);
        }
    }
    venue.front.close(first, venue.now_us);
    venue.settle();
    venue.wait(200_000);
    assert_eq!(venue.engine.open_order_count(), 1, "the second keeps it");
    venue.front.close(second, venue.now_us);
    venue.settle();
    venue.wait(200_000);
    assert_eq!(venue.engine.open_order_count(), 0);
}

#[test]
fn a_quote_that_comes_late_takes_nobodys_place() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let limits = json!({ "index_name": "btc_usd", "interval": 10, "frozen_time": 0, "quantity_limit": 50, "mmp_group": "g" });
    venue.ok(anna, "private/set_mmp_config", limits);
    venue.ok(anna, "private/enable_cancel_on_disconnect", json!({ "scope": "connection" }));
    let quote = |price: u64| {
        let bid = json!({ "price": price, "amount": 10 });
        let one = json!({ "instrument_name": "BTC-PERPETUAL", "quote_set_id": "s", "bid": bid });
        json!({ "quote_id": "q", "mmp_group": "g", "quotes": [one] })
    };
    let frame = json!({ "jsonrpc": "2.0", "id": 7, "method": "private/mass_quote", "params": quote(59_000) });
    venue.front.handle_frame(anna, frame.to_string().as_bytes(), venue.now_us);
    let late = venue.front.poll_request().unwrap();
    venue.wait(31_000_000);
    assert_eq!(venue.ok(anna, "private/mass_quote", quote(59_100))["orders_count"], 1);
    venue.command(late.session, late.command());
    venue.settle();
    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!((open.as_array().unwrap().len(), &open[0]["price"]), (1, &json!(59_100)));
}

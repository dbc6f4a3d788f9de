//! Orders, trades, positions and balances.

use serde_json::{Value, json};
use tickpath_deribit_front::Transport;
use tickpath_types::{OrderRequest, UserRefNum};

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";

fn order(venue: &mut Venue, connection: u64, side: &str, amount: Value, price: Value) -> Value {
    let params = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price, "label": "desk" });
    venue.ok(connection, &format!("private/{side}"), params)
}

#[test]
fn two_accounts_trade_and_each_knows_what_it_has() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let resting = order(&mut venue, anna, "sell", json!(1000), json!(60000.5));
    assert_eq!(resting["order"]["order_state"], "open");
    assert_eq!((&resting["order"]["amount"], &resting["order"]["contracts"]), (&json!(1000), &json!(100.0)));
    assert_eq!(resting["trades"], json!([]));
    let taken = order(&mut venue, bert, "buy", json!(400), json!(60500));
    assert_eq!(taken["order"]["order_state"], "filled");
    assert_eq!(taken["order"]["average_price"], json!(60000.5));
    let trade = &taken["trades"][0];
    assert_eq!(
        (&trade["price"], &trade["amount"], &trade["liquidity"]),
        (&json!(60000.5), &json!(400), &json!("T"))
    );
    assert_eq!(trade["fee_currency"], "BTC");
    // 400 / 60000.5 BTC, with a fee of 0.0005 of it.
    assert_eq!(trade["fee"], json!(0.00000333));

    let open = venue.ok(anna, "private/get_open_orders", json!({}));
    assert_eq!(
        (open[0]["filled_amount"].clone(), open[0]["order_state"].clone()),
        (json!(400), json!("open"))
    );
    assert_eq!(open[0]["label"], "desk");
    let position = venue.ok(anna, "private/get_position", json!({ "instrument_name": PERPETUAL }));
    assert_eq!((&position["size"], &position["direction"]), (&json!(-400), &json!("sell")));
    assert_eq!(position["average_price"], json!(60000.5));
    let positions = venue.ok(bert, "private/get_positions", json!({ "currency": "BTC", "kind": "future" }));
    assert_eq!((positions.as_array().unwrap().len(), &positions[0]["size"]), (1, &json!(400)));

    let mine =
        venue.ok(bert, "private/get_user_trades_by_instrument", json!({ "instrument_name": PERPETUAL }));
    assert_eq!(
        (mine["trades"][0]["trade_id"].clone(), mine["has_more"].clone()),
        (trade["trade_id"].clone(), json!(false))
    );
    let all = venue.ok(anna, "public/get_last_trades_by_instrument", json!({ "instrument_name": PERPETUAL }));
    assert_eq!((&all["trades"][0]["direction"], &all["trades"][0]["trade_seq"]), (&json!("buy"), &json!(1)));
    let by_order = json!({ "order_id": taken["order"]["order_id"] });
    assert_eq!(venue.ok(bert, "private/get_user_trades_by_order", by_order)[0]["trade_seq"], 1);
}

#[test]
fn cash_and_positions_add_up_to_what_was_traded() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    for step in 0..40 {
        let (maker, taker) = if step % 3 == 0 { (anna, bert) } else { (bert, anna) };
        let price = json!(60000 + 10 * (step % 7));
        let amount = json!(10 * (1 + step % 5));
        order(&mut venue, maker, if step % 2 == 0 { "sell" } else { "buy" }, amount.clone(), price.clone());
        let traded = order(&mut venue, taker, if step % 2 == 0 { "buy" } else { "sell" }, amount, price);
        assert_eq!(traded["order"]["order_state"], "filled", "{step}");
        venue.wait(1_100_000);
    }
    let mut sum = 0.0;
    let mut sizes = 0;
    for connection in [anna, bert] {
        let summary = venue.ok(connection, "private/get_account_summary", json!({ "currency": "BTC" }));
        let position = venue.ok(connection, "private/get_position", json!({ "instrument_name": PERPETUAL }));
        let trades = venue.ok(
            connection,
            "private/get_user_trades_by_currency",
            json!({ "currency": "BTC", "count": 1000 }),
        );
        let fees: f64 =
            trades["trades"].as_array().unwrap().iter().map(|trade| trade["fee"].as_f64().unwrap()).sum();
        sum += summary["equity"].as_f64().unwrap() + fees;
        sizes += position["size"].as_i64().unwrap();
    }
    assert_eq!(sizes, 0);
    // Amounts are displayed with eight decimals.
    assert!((sum - 20.0).abs() < 0.000_001, "{sum}");
}

#[test]
fn orders_are_edited_and_cancelled() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let id = order(&mut venue, anna, "buy", json!(1000), json!(59000))["order"]["order_id"].clone();
    let first = venue.engine.last_user_ref(tickpath_types::SessionId(1));
    let smaller = venue.ok(anna, "private/edit", json!({ "order_id": id, "amount": 600, "price": 59000 }));
    assert_eq!((&smaller["order"]["amount"], &smaller["order"]["replaced"]), (&json!(600), &json!(true)));
    assert_eq!(venue.engine.last_user_ref(tickpath_types::SessionId(1)), first, "it keeps its place");
    let moved = venue.ok(anna, "private/edit", json!({ "order_id": id, "amount": 700, "price": 59100.5 }));
    assert_eq!((&moved["order"]["order_id"], &moved["order"]["price"]), (&id, &json!(59100.5)));
    let by_label = json!({ "label": "desk", "instrument_name": PERPETUAL, "amount": 800 });
    assert_eq!(venue.ok(anna, "private/edit_by_label", by_label.clone())["order"]["amount"], 800);
    order(&mut venue, anna, "buy", json!(10), json!(58000));
    assert_eq!(venue.refused(anna, "private/edit_by_label", by_label), 13032);
    let cancelled = venue.ok(anna, "private/cancel", json!({ "order_id": id }));
    assert_eq!(
        (&cancelled["order_state"], &cancelled["cancel_reason"]),
        (&json!("cancelled"), &json!("user_request"))
    );
    assert_eq!(venue.refused(anna, "private/cancel", json!({ "order_id": id })), 11044);
    assert_eq!(venue.refused(anna, "private/cancel", json!({ "order_id": "999" })), 10004);
    let state = venue.ok(anna, "private/get_order_state", json!({ "order_id": id }));
    assert_eq!((&state["amount"], &state["order_state"]), (&json!(800), &json!("cancelled")));
    assert_eq!(venue.ok(anna, "private/cancel_all", json!({})), 1);
    assert_eq!(venue.ok(anna, "private/cancel_all", json!({})), 0);
    let history = json!({ "currency": "BTC", "include_unfilled": true });
    assert_eq!(venue.ok(anna, "private/get_order_history_by_currency", history).as_array().unwrap().len(), 2);
    assert_eq!(venue.engine.open_order_count(), 0);
}

#[test]
fn many_are_cancelled_by_what_they_are() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    for connection in [anna, bert] {
        for (name, amount, price) in [
            (PERPETUAL, 10.0, 59000.0),
            (PERPETUAL, 20.0, 59000.0),
            ("ETH_USDC-PERPETUAL", 1.0, 2990.0),
            ("BTC_USDC", 0.01, 59000.0),
        ] {
            venue.ok(
                connection,
                "private/buy",
                json!({ "instrument_name": name, "amount": amount, "price": price, "label": name }),
            );
        }
    }
    assert_eq!(venue.ok(anna, "private/cancel_by_label", json!({ "label": "BTC_USDC" })), 1);
    assert_eq!(
        venue.ok(
            anna,
            "private/cancel_all_by_kind_or_type",
            json!({ "currency": ["ETH", "USDC"], "kind": "future" })
        ),
        1
    );
    let detailed = venue.ok(
        anna,
        "private/cancel_all_by_instrument",
        json!({ "instrument_name": PERPETUAL, "detailed": true }),
    );
    assert_eq!(detailed[0]["result"].as_array().unwrap().len(), 2);
    assert_eq!(venue.ok(bert, "private/get_open_orders", json!({})).as_array().unwrap().len(), 4);
    assert_eq!(venue.ok(bert, "private/cancel_all_by_currency", json!({ "currency": "USDC" })), 2);
    assert_eq!(
        venue
            .ok(bert, "private/get_open_orders_by_currency", json!({ "currency": "BTC" }))
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn market_orders_sweep_and_what_is_left_rests_at_the_band() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", json!(100), json!(60010));
    let swept = venue.ok(
        bert,
        "private/buy",
        json!({ "instrument_name": PERPETUAL, "amount": 150, "type": "market" }),
    );
    assert_eq!(
        (&swept["order"]["filled_amount"], &swept["order"]["order_state"]),
        (&json!(100), &json!("open"))
    );
    assert_eq!(
        (&swept["order"]["order_type"], &swept["order"]["original_order_type"]),
        (&json!("limit"), &json!("market"))
    );
    assert_eq!(swept["order"]["price"], json!(63000));
    let code = venue.refused(
        anna,
        "private/buy",
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 63000.5 }),
    );
    assert_eq!(code, 10007);
    let code = venue.refused(
        anna,
        "private/sell",
        json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 56999.5 }),
    );
    assert_eq!(code, 10005);
    let closed = venue.ok(bert, "private/cancel_all", json!({}));
    assert_eq!(closed, 1);
    let refused = venue.refused(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "market", "time_in_force": "immediate_or_cancel" }));
    assert_eq!(refused, 11029);
}

#[test]
fn times_in_force() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", json!(100), json!(60010));
    let order = |time: &str, amount: u32| json!({ "instrument_name": PERPETUAL, "amount": amount, "price": 60010, "time_in_force": time });
    let killed = venue.ok(bert, "private/buy", order("fill_or_kill", 110));
    assert_eq!(
        (&killed["order"]["order_state"], &killed["order"]["filled_amount"]),
        (&json!("cancelled"), &json!(0))
    );
    let part = venue.ok(bert, "private/buy", order("immediate_or_cancel", 150));
    assert_eq!(
        (&part["order"]["order_state"], &part["order"]["filled_amount"]),
        (&json!("cancelled"), &json!(100))
    );
    let day = venue.ok(bert, "private/buy", order("good_til_day", 50));
    assert_eq!(day["order"]["order_state"], "open");
    let stop = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_limit", "price": 54000, "trigger": "mark_price", "trigger_price": 55000, "time_in_force": "good_til_day" });
    let stop = venue.ok(bert, "private/sell", stop)["order"]["order_id"].clone();
    // From noon to the next morning.
    venue.wait(19 * 3_600_000_000);
    assert_eq!(venue.engine.open_order_count(), 1);
    venue.wait(3_600_000_000 + 1);
    venue.wait(1_000_000);
    assert_eq!(venue.engine.open_order_count(), 0);
    let bert = venue.login("bert");
    let stop = venue.ok(bert, "private/get_order_state", json!({ "order_id": stop }));
    assert_eq!((&stop["order_state"], &stop["cancel_reason"]), (&json!("cancelled"), &json!("settlement")));
}

#[test]
fn post_only_orders_never_take() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", json!(100), json!(60010));
    let post = |rejects: bool| json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60020, "post_only": true, "reject_post_only": rejects });
    assert_eq!(venue.refused(bert, "private/buy", post(true)), 11054);
    let moved = venue.ok(bert, "private/buy", post(false));
    assert_eq!((&moved["order"]["price"], &moved["order"]["order_state"]), (&json!(60009.5), &json!("open")));

    // The book moves while the order is in flight.
    let frame = json!({ "jsonrpc": "2.0", "id": 77, "method": "private/buy", "params": { "instrument_name": PERPETUAL, "amount": 10, "price": 60005, "post_only": true } });
    venue.front.handle_frame(bert, frame.to_string().as_bytes(), venue.now_us);
    let instrument = tickpath_types::InstrumentId(1);
    let sale = tickpath_types::EnterOrder::limit(
        UserRefNum(1),
        instrument,
        tickpath_types::Side::Sell,
        tickpath_types::Qty(5),
        tickpath_types::Price(600_010_000 - 10_000),
    );
    let sale = tickpath_types::EnterOrder { price: tickpath_types::Price(600_000_000), ..sale };
    venue.ok(bert, "private/cancel", json!({ "order_id": moved["order"]["order_id"] }));
    venue.order(9, OrderRequest::Enter(sale));
    venue.settle();
    let _ = venue.frames(bert);
    let open = venue.ok(bert, "private/get_open_orders", json!({}));
    assert!(
        open.as_array()
            .unwrap()
            .iter()
            .all(|order| order["filled_amount"] == 0 || order["post_only"] == true)
    );
}

#[test]
fn reduce_only_orders_do_not_turn_a_position_round() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let reduce = json!({ "instrument_name": PERPETUAL, "amount": 500, "price": 60000, "reduce_only": true });
    assert_eq!(venue.refused(bert, "private/sell", reduce.clone()), 11030);
    order(&mut venue, anna, "sell", json!(100), json!(60000));
    order(&mut venue, bert, "buy", json!(100), json!(60000));
    let clipped = venue.ok(bert, "private/sell", reduce);
    assert_eq!((&clipped["order"]["amount"], &clipped["order"]["reduce_only"]), (&json!(100), &json!(true)));
    venue.ok(bert, "private/cancel_all", json!({}));
    order(&mut venue, anna, "buy", json!(100), json!(59990));
    let closed =
        venue.ok(bert, "private/close_position", json!({ "instrument_name": PERPETUAL, "type": "market" }));
    assert_eq!(closed["order"]["order_state"], "filled");
    assert_eq!(
        venue.ok(bert, "private/get_position", json!({ "instrument_name": PERPETUAL }))["direction"],
        "zero"
    );
    assert_eq!(
        venue.refused(
            bert,
            "private/close_position",
            json!({ "instrument_name": PERPETUAL, "type": "market" })
        ),
        10010
    );
}

#[test]
fn margin_is_checked_before_an_order_is_sent() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    // 10 BTC at 2 % are margin for 500 BTC, or 30 million USD at 60 000.
    assert_eq!(
        venue.refused(
            anna,
            "private/buy",
            json!({ "instrument_name": PERPETUAL, "amount": 31_000_000, "price": 60000 })
        ),
        10009
    );
    venue.ok(
        anna,
        "private/buy",
        json!({ "instrument_name": PERPETUAL, "amount": 20_000_000, "price": 60000 }),
    );
    assert_eq!(
        venue.refused(
            anna,
            "private/buy",
            json!({ "instrument_name": PERPETUAL, "amount": 11_000_000, "price": 60000 })
        ),
        10009
    );
    let summary =
        venue.ok(anna, "private/get_account_summary", json!({ "currency": "BTC", "extended": true }));
    assert!(summary["available_funds"].as_f64().unwrap() < 4.0, "{summary}");
    assert_eq!(summary["username"], "ANNA");
    // A spot order is paid at once.
    assert_eq!(
        venue.refused(
            anna,
            "private/buy",
            json!({ "instrument_name": "BTC_USDC", "amount": 2, "price": 60000 })
        ),
        10009
    );
    venue.ok(anna, "private/buy", json!({ "instrument_name": "BTC_USDC", "amount": 1, "price": 60000 }));
    let margins = venue.ok(
        anna,
        "private/get_margins",
        json!({ "instrument_name": PERPETUAL, "amount": 60000, "price": 60000 }),
    );
    assert_eq!(margins["buy"], json!(0.02));
}

#[test]
fn options_and_pairs_are_paid_when_they_trade() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let option = "BTC-25DEC26-60000-C";
    venue.ok(anna, "private/sell", json!({ "instrument_name": option, "amount": 1.5, "price": 0.05 }));
    venue.ok(bert, "private/buy", json!({ "instrument_name": option, "amount": 1.5, "price": 0.05 }));
    let balance = |venue: &mut Venue, connection, currency: &str| {
        venue.ok(connection, "private/get_account_summary", json!({ "currency": currency }))["balance"]
            .clone()
    };
    assert_eq!(balance(&mut venue, anna, "BTC"), json!(10.075));
    assert_eq!(balance(&mut venue, bert, "BTC"), json!(9.925));
    venue.ok(anna, "private/sell", json!({ "instrument_name": "BTC_USDC", "amount": 0.5, "price": 60000 }));
    venue.ok(bert, "private/buy", json!({ "instrument_name": "BTC_USDC", "amount": 0.5, "price": 60000 }));
    assert_eq!(balance(&mut venue, anna, "USDC"), json!(130000));
    assert_eq!(balance(&mut venue, bert, "BTC"), json!(10.425));
    let positions = venue.ok(bert, "private/get_positions", json!({}));
    assert_eq!(
        (positions[0]["instrument_name"].clone(), positions[0]["size"].clone()),
        (json!(option), json!(1.5))
    );
}

#[test]
fn orders_of_a_connection_that_is_gone_are_cancelled_where_it_wanted_so() {
    let mut venue = Venue::new();
    let (first, second) = (venue.login("anna"), venue.login("anna"));
    venue.ok(first, "private/enable_cancel_on_disconnect", json!({ "scope": "connection" }));
    assert_eq!(venue.ok(first, "private/get_cancel_on_disconnect", json!({}))["enabled"], true);
    order(&mut venue, first, "buy", json!(10), json!(59000));
    let stays = order(&mut venue, second, "buy", json!(20), json!(59000));
    // Another order is in flight when the connection ends.
    let frame = json!({ "jsonrpc": "2.0", "id": 5, "method": "private/buy", "params": { "instrument_name": PERPETUAL, "amount": 30, "price": 59000 } });
    venue.front.handle_frame(first, frame.to_string().as_bytes(), venue.now_us);
    venue.front.close(first, venue.now_us);
    venue.settle();
    venue.wait(200_000);
    let open = venue.ok(second, "private/get_open_orders", json!({}));
    assert_eq!((open.as_array().unwrap().len(), &open[0]["order_id"]), (1, &stays["order"]["order_id"]));
    let history = venue.ok(
        second,
        "private/get_order_history_by_currency",
        json!({ "currency": "BTC", "include_unfilled": true }),
    );
    assert_eq!(history[0]["cancel_reason"], "cancel_on_disconnect");
}

#[test]
fn a_restart_forgets_nothing_that_the_log_has() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let resting = order(&mut venue, anna, "sell", json!(1000), json!(60000.5));
    order(&mut venue, bert, "buy", json!(400), json!(60500));
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000, "post_only": true, "label": "second" }));
    let labels = venue.front.poll_labels().to_vec();
    assert_eq!(labels, ["desk", "second"]);
    let ask = |venue: &mut Venue, anna, bert| {
        let mut summary = venue.ok(bert, "private/get_account_summary", json!({ "currency": "BTC" }));
        summary["limits"] = Value::Null;
        let trades = venue.ok(bert, "private/get_user_trades_by_currency", json!({ "currency": "BTC" }));
        let trades: Vec<_> = trades["trades"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trade| (trade["trade_id"].clone(), trade["fee"].clone()))
            .collect();
        (
            venue.ok(anna, "private/get_open_orders", json!({})),
            venue.ok(bert, "private/get_open_orders", json!({})),
            venue.ok(bert, "private/get_positions", json!({})),
            venue.ok(anna, "public/get_order_book", json!({ "instrument_name": PERPETUAL }))["change_id"]
                .clone(),
            summary,
            trades,
        )
    };
    let before = ask(&mut venue, anna, bert);
    let mut venue = venue.restarted(labels);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    assert_eq!(ask(&mut venue, anna, bert), before);
    let cancelled = venue.ok(anna, "private/cancel", json!({ "order_id": resting["order"]["order_id"] }));
    assert_eq!(cancelled["order_state"], "cancelled");
    order(&mut venue, bert, "buy", json!(10), json!(59000));
}

#[test]
fn http_answers_one_request() {
    let mut venue = Venue::new();
    let anna = venue.front.open(Transport::Http, venue.now_us);
    let call = tickpath_deribit_front::HttpCall {
        connection: 1,
        method: "GET",
        target: "/api/v2/private/get_open_orders?kind=future",
        path: "/api/v2/private/get_open_orders",
        query: vec![("kind".to_owned(), "future".to_owned())],
        authorization: Some("Basic YW5uYTphbm5hLXNlY3JldA=="),
        body: b"",
    };
    venue.front.handle_http(anna, &call, venue.now_us);
    let reply = venue.frames(anna);
    assert_eq!(reply[0]["result"], json!([]));
}

#[test]
fn a_position_is_closed_once() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", json!(1_000_000), json!(60000));
    order(&mut venue, bert, "buy", json!(1_000_000), json!(60000));
    let far = json!({ "instrument_name": PERPETUAL, "type": "limit", "price": 60500 });
    let market = json!({ "instrument_name": PERPETUAL, "type": "market" });
    let first = venue.ok(bert, "private/close_position", far.clone())["order"].clone();
    assert_eq!((&first["amount"], &first["order_state"]), (&json!(1_000_000), &json!("open")));
    // The whole position is already being closed: more would open the opposite one, without margin.
    assert_eq!(venue.refused(bert, "private/close_position", far.clone()), 10010);
    // Only the rest is closed.
    venue.ok(bert, "private/edit", json!({ "order_id": first["order_id"], "amount": 300_000 }));
    let second = venue.ok(bert, "private/close_position", far.clone())["order"].clone();
    assert_eq!(second["amount"], 700_000);
    // A market order closes it now and replaces the earlier close orders.
    let third = venue.ok(bert, "private/close_position", market.clone())["order"].clone();
    assert_eq!(third["amount"], 1_000_000, "it rests at the end of the band");
    for earlier in [&first, &second] {
        let state = venue.ok(bert, "private/get_order_state", json!({ "order_id": earlier["order_id"] }));
        assert_eq!(state["order_state"], "cancelled");
    }
    let open = venue.ok(bert, "private/get_open_orders", json!({}));
    assert_eq!((open.as_array().unwrap().len(), &open[0]["order_id"]), (1, &third["order_id"]));
    venue.ok(bert, "private/cancel_all", json!({}));

    // A plain order may close it too; the close order beside it then needs normal margin.
    order(&mut venue, bert, "sell", json!(1_000_000), json!(60500));
    assert_eq!(venue.ok(bert, "private/close_position", far.clone())["order"]["amount"], 1_000_000);
    venue.ok(bert, "private/cancel_all", json!({}));
    order(&mut venue, bert, "sell", json!(29_700_000), json!(60500));
    let blocked = venue.refused(bert, "private/close_position", far);
    assert_eq!(blocked, 10009);
    venue.ok(bert, "private/cancel_all", json!({}));
    order(&mut venue, anna, "buy", json!(1_000_000), json!(59990));
    let closed = venue.ok(bert, "private/close_position", market);
    assert_eq!(closed["order"]["order_state"], "filled");
}

//! Requests with missing params or params of a wrong type are rejected without any effect.

use serde_json::{Value, json};

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";

fn open(venue: &mut Venue, connection: u64) -> usize {
    venue.ok(connection, "private/get_open_orders", json!({})).as_array().unwrap().len()
}

#[test]
fn a_cancel_without_what_it_is_about_cancels_nothing() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "label": "x" });
    venue.ok(anna, "private/buy", order);
    let cases = [
        ("cancel_by_label", json!({}), "label"),
        ("cancel_by_label", json!({ "label": 5 }), "label"),
        ("cancel_by_label", json!({ "label": "x", "currency": 7 }), "currency"),
        ("cancel_all_by_instrument", json!({}), "instrument_name"),
        ("cancel_all_by_instrument", json!({ "instrument_name": 5 }), "instrument_name"),
        ("cancel_all_by_instrument", json!({ "instrument_name": PERPETUAL, "type": "some" }), "type"),
        ("cancel_all_by_currency", json!({}), "currency"),
        ("cancel_all_by_currency", json!({ "currency": [] }), "currency"),
        ("cancel_all_by_currency", json!({ "currency": "BTC", "kind": 5 }), "kind"),
        ("cancel_all_by_currency", json!({ "currency": "BTC", "kind": "stock" }), "kind"),
        ("cancel_all_by_kind_or_type", json!({}), "currency"),
        ("cancel_all_by_kind_or_type", json!({ "currency": [5] }), "currency"),
        ("cancel_all_by_kind_or_type", json!({ "currency": ["BTC"], "type": 1 }), "type"),
        ("cancel_all_by_currency_pair", json!({}), "currency_pair"),
        ("cancel_all", json!({ "detailed": "yes" }), "detailed"),
        ("get_open_orders_by_instrument", json!({}), "instrument_name"),
        ("get_open_orders_by_currency", json!({}), "currency"),
        ("get_open_orders_by_label", json!({ "label": "x" }), "currency"),
    ];
    for (method, params, name) in cases {
        let reply = venue.call(anna, &format!("private/{method}"), params.clone());
        let error = &reply["error"];
        assert_eq!(
            (&error["code"], &error["data"]["param"]),
            (&json!(-32602), &json!(name)),
            "{method} {params}"
        );
        assert_eq!(open(&mut venue, anna), 1, "{method} {params}");
    }
    let by_list = json!({ "currency": ["ETH", "BTC"], "type": "limit" });
    assert_eq!(venue.ok(anna, "private/cancel_all_by_kind_or_type", by_list), 1);
}

#[test]
fn params_of_another_type_are_refused_by_name() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let perpetual = |name: &str, value: Value| {
        let mut params = json!({ "instrument_name": PERPETUAL, "currency": "BTC" });
        params[name] = value;
        params
    };
    let times = |name: &str, value: Value| {
        let mut params = json!({ "currency": "BTC", "start_timestamp": 0, "end_timestamp": 1 });
        params[name] = value;
        params
    };
    for (method, params, name) in [
        ("public/get_order_book", perpetual("depth", json!("5")), "depth"),
        ("public/get_last_trades_by_instrument", perpetual("count", json!("x")), "count"),
        ("public/get_last_trades_by_instrument", perpetual("sorting", json!("up")), "sorting"),
        ("public/get_last_trades_by_instrument", perpetual("start_timestamp", json!("x")), "start_timestamp"),
        ("public/get_instruments", json!({ "currency": "BTC", "expired": 1 }), "expired"),
        ("public/get_book_summary_by_currency", json!({ "currency": "BTC", "kind": 3 }), "kind"),
        ("private/get_user_trades_by_currency", perpetual("kind", json!([])), "kind"),
        ("private/get_user_trades_by_order", json!({ "order_id": "1", "sorting": "up" }), "sorting"),
        ("private/get_order_history_by_currency", perpetual("offset", json!("x")), "offset"),
        (
            "private/get_order_history_by_currency",
            perpetual("include_unfilled", json!(1)),
            "include_unfilled",
        ),
        ("private/get_transaction_log", times("continuation", json!([])), "continuation"),
        ("private/get_transaction_log", times("start_timestamp", json!("x")), "start_timestamp"),
        ("private/get_settlement_history_by_currency", times("count", json!(true)), "count"),
        (
            "private/mass_quote",
            json!({ "quote_id": "1", "mmp_group": "g", "quotes": [], "valid_until": "x" }),
            "valid_until",
        ),
        ("private/mass_quote", json!({ "quote_id": 5, "mmp_group": "g", "quotes": [] }), "quote_id"),
        ("private/mass_quote", json!({ "quote_id": "1", "mmp_group": "g" }), "quotes"),
        ("private/cancel_quotes", json!({}), "cancel_type"),
        ("private/cancel_quotes", json!({ "cancel_type": "instrument" }), "instrument_name"),
        ("private/cancel_quotes", json!({ "cancel_type": "all", "detailed": "yes" }), "detailed"),
        ("private/get_order_history_by_instrument", json!({ "currency": "BTC" }), "instrument_name"),
        ("private/get_order_history_by_currency", perpetual("continuation", json!("x")), "continuation"),
        ("private/get_transaction_log", json!({ "currency": "BTC", "end_timestamp": 1 }), "start_timestamp"),
        ("private/get_transaction_log", times("count", json!(0)), "count"),
        ("public/get_book_summary_by_currency", json!({ "instrument_name": PERPETUAL }), "currency"),
        ("public/get_book_summary_by_instrument", json!({ "currency": "BTC" }), "instrument_name"),
        ("private/set_mmp_config", json!({ "index_name": "btc_usd", "interval": "x" }), "interval"),
        (
            "private/buy",
            json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "reject_post_only": true }),
            "reject_post_only",
        ),
    ] {
        let reply = venue.call(anna, method, params.clone());
        let error = &reply["error"];
        assert_eq!(
            (&error["code"], &error["data"]["param"]),
            (&json!(-32602), &json!(name)),
            "{method} {params}"
        );
    }
    for (name, value) in [
        ("amount", json!("x")),
        ("post_only", json!(1)),
        ("reduce_only", json!("true")),
        ("price", json!({})),
    ] {
        let mut other = json!({ "direction": "sell", "type": "limit", "price": 60_500, "amount": 10 });
        other[name] = value;
        let params = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "linked_order_type": "one_triggers_other", "otoco_config": [other] });
        let reply = venue.call(anna, "private/buy", params);
        assert_eq!(reply["error"]["data"]["param"], name, "{reply}");
    }
    assert_eq!(open(&mut venue, anna), 0);
    assert_eq!(
        venue.refused(anna, "private/get_user_trades_by_order", json!({ "order_id": "ETH-5" })),
        10004
    );
}

#[test]
fn an_edit_that_would_take_ends_the_order_where_it_says_so() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    venue.ok(bert, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 60_000 }));
    let bid = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59_000, "post_only": true });
    let id = venue.ok(anna, "private/buy", bid.clone())["order"]["order_id"].clone();
    let moved = json!({ "order_id": id, "amount": 10, "price": 60_500, "post_only": true });
    let order = venue.ok(anna, "private/edit", moved)["order"].clone();
    assert_eq!(
        (&order["price"], &order["order_state"]),
        (&json!(59_999.5), &json!("open")),
        "a tick before it"
    );
    let ended =
        json!({ "order_id": id, "amount": 10, "price": 60_500, "post_only": true, "reject_post_only": true });
    let order = venue.ok(anna, "private/edit", ended)["order"].clone();
    assert_eq!(
        (&order["order_state"], &order["cancel_reason"], &order["order_id"]),
        (&json!("cancelled"), &json!("edit_post_only_reject"), &id)
    );
    assert_eq!(open(&mut venue, anna), 0);
}

#[test]
fn a_market_order_of_an_option_needs_no_more_than_it_is_worth_and_a_part_of_the_underlying() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let option = "BTC-25DEC26-60000-C";
    let order = |price: f64| json!({ "instrument_name": option, "amount": 1, "price": price });
    venue.ok(anna, "private/sell", order(0.05));
    venue.ok(bert, "private/buy", order(0.05));
    venue.wait(1_000_001);
    let ticker = venue.ok(bert, "public/ticker", json!({ "instrument_name": option }));
    assert_eq!((&ticker["min_price"], &ticker["max_price"]), (&json!(0.0005), &json!(0.1)));
    assert_eq!(venue.refused(bert, "private/buy", order(0.15)), 10007);
    venue.ok(anna, "private/sell", order(0.05));
    let bought =
        venue.ok(bert, "private/buy", json!({ "instrument_name": option, "amount": 2, "type": "market" }));
    assert_eq!((&bought["order"]["filled_amount"], &bought["order"]["price"]), (&json!(1), &json!(0.1)));
}

#[test]
fn closed_orders_come_page_by_page() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let mut ids = Vec::new();
    for price in 59_000..59_005 {
        let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price });
        let id = venue.ok(anna, "private/buy", order)["order"]["order_id"].clone();
        venue.ok(anna, "private/cancel", json!({ "order_id": id }));
        ids.insert(0, id);
    }
    let (mut found, mut next) = (Vec::new(), Value::Null);
    loop {
        let page = json!({ "instrument_name": PERPETUAL, "count": 2, "include_unfilled": true, "with_continuation": true, "continuation": next });
        let page = venue.ok(anna, "private/get_order_history_by_instrument", page);
        found.extend(page["orders"].as_array().unwrap().iter().map(|order| order["order_id"].clone()));
        next = page["continuation"].clone();
        if next.is_null() {
            break;
        }
        // Orders that close meanwhile do not move the pages.
        let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 58_000 });
        let id = venue.ok(anna, "private/buy", order)["order"]["order_id"].clone();
        venue.ok(anna, "private/cancel", json!({ "order_id": id }));
    }
    assert_eq!(found, ids);
    let plain = json!({ "currency": "BTC", "count": 3, "include_unfilled": true });
    let plain = venue.ok(anna, "private/get_order_history_by_currency", plain);
    assert_eq!(plain.as_array().unwrap().len(), 3, "without it a list");
}

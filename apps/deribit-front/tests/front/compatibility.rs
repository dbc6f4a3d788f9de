//! Compatibility with clients of the real venue: HTTP queries, members that are always present, and methods
//! besides trading.

use serde_json::{Value, json};
use tickpath_deribit_front::{HttpCall, Transport};

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";
const OPTION: &str = "BTC-25DEC26-60000-C";

/// Sends a GET with a query; returns the reply.
fn get(venue: &mut Venue, id: &str, method: &str, query: &[(&str, &str)]) -> Value {
    let number = venue.front.open(Transport::Http, venue.now_us);
    let secret = format!("{id}:{id}-secret");
    let basic = format!("Basic {}", base64(secret.as_bytes()));
    let path = format!("/api/v2/{method}");
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let authorization = method.starts_with("private/").then_some(basic.as_str());
    let call = HttpCall {
        connection: 1,
        method: "GET",
        target: &path,
        path: &path,
        query,
        authorization,
        body: b"",
    };
    venue.front.handle_http(number, &call, venue.now_us);
    venue.settle();
    let reply = venue.frames(number).pop().expect("an answer");
    venue.front.close(number, venue.now_us);
    reply
}

/// Encodes base64 without a crate, because nothing else here needs one.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let triple = |chunk: &[u8]| {
        let bits = (0..3).fold(0, |bits: u32, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        let digit = |at: usize| match at > chunk.len() {
            true => '=',
            false => char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]),
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(triple).collect()
}

#[test]
fn values_of_a_query_are_what_the_method_has_there() {
    let mut venue = Venue::new();
    let order = [
        ("instrument_name", PERPETUAL),
        ("amount", "10"),
        ("price", "59000.5"),
        ("post_only", "true"),
        ("label", "60"),
        ("type", "limit"),
    ];
    let placed = get(&mut venue, "anna", "private/buy", &order)["result"]["order"].clone();
    assert_eq!(
        (&placed["label"], &placed["amount"], &placed["price"], &placed["post_only"]),
        (&json!("60"), &json!(10), &json!(59000.5), &json!(true))
    );
    let now = (venue.now_us / 1_000).to_string();
    for resolution in ["1", "3", "5", "10", "15", "30", "60", "120", "180", "360", "720", "1D"] {
        let query = [
            ("instrument_name", PERPETUAL),
            ("start_timestamp", "0"),
            ("end_timestamp", now.as_str()),
            ("resolution", resolution),
        ];
        let chart = get(&mut venue, "anna", "public/get_tradingview_chart_data", &query);
        assert_eq!(chart["result"]["status"], "no_data", "{resolution}: {chart}");
    }
    // A label that looks like a JSON list is a text too.
    let labelled = get(&mut venue, "anna", "private/buy", &[&order[..4], &[("label", "[1]")]].concat());
    assert_eq!(labelled["result"]["order"]["label"], "[1]");
    let cancelled =
        get(&mut venue, "anna", "private/cancel_all_by_kind_or_type", &[("currency", "[\"BTC\"]")]);
    assert_eq!(cancelled["result"], 2);
    for (name, value) in
        [("amount", "ten"), ("amount", "10x"), ("amount", ""), ("post_only", "1"), ("price", "1e999")]
    {
        let mut bad = order;
        for (known, place) in &mut bad {
            if *known == name {
                *place = value;
            }
        }
        let refused = get(&mut venue, "anna", "private/buy", &bad);
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["param"]),
            (&json!(-32602), &json!(name))
        );
    }
    // In JSON messages, numbers must be numbers.
    let anna = venue.login("anna");
    let text = json!({ "instrument_name": PERPETUAL, "amount": "10", "price": 59000 });
    assert_eq!(venue.refused(anna, "private/buy", text), -32602);
}

#[test]
fn a_request_that_waits_is_read_as_the_query_that_it_is() {
    let mut venue = Venue::new();
    let query = [("instrument_name", PERPETUAL), ("amount", "10"), ("price", "59000")];
    let placed = get(&mut venue, "anna", "private/buy", &query)["result"]["order"].clone();
    let id = placed["order_id"].as_str().unwrap();
    let edited =
        get(&mut venue, "anna", "private/edit", &[("order_id", id), ("amount", "20"), ("price", "59000")]);
    assert_eq!(edited["result"]["order"]["amount"], 20, "{edited}");
}

/// The real venue always sends them, and `cryptofeed` requires them in tickers.
#[test]
fn prices_of_an_empty_side_are_there() {
    let mut venue = Venue::new();
    let bert = venue.login("bert");
    let ticker = venue.ok(bert, "public/ticker", json!({ "instrument_name": PERPETUAL }));
    let book = venue.ok(bert, "public/get_order_book", json!({ "instrument_name": PERPETUAL }));
    let channels = ["ticker.BTC-PERPETUAL.100ms", "quote.BTC-PERPETUAL", "incremental_ticker.BTC-PERPETUAL"];
    venue.ok(bert, "public/subscribe", json!({ "channels": channels }));
    let told = channels.map(|channel| venue.news(bert, channel).remove(0));
    for message in told.iter().chain([&ticker, &book]) {
        for name in ["best_bid_price", "best_bid_amount", "best_ask_price", "best_ask_amount"] {
            assert_eq!(message[name], 0, "{name} of {message}");
        }
    }
    for message in [&ticker, &book, &told[0], &told[2]] {
        assert!(message.get("last_price").is_some_and(Value::is_null), "{message}");
        for name in ["high", "low", "price_change"] {
            assert!(message["stats"].get(name).is_some_and(Value::is_null), "{name} of {message}");
        }
    }
    let params = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 });
    let anna = venue.login("anna");
    let order = venue.ok(anna, "private/buy", params)["order"].clone();
    venue.wait(150_000);
    venue.ok(anna, "private/cancel", json!({ "order_id": order["order_id"] }));
    venue.wait(150_000);
    let changes = venue.news(bert, channels[2]);
    let bids: Vec<&Value> = changes.iter().filter_map(|change| change.get("best_bid_price")).collect();
    assert_eq!(bids, [&json!(59000), &json!(0)], "a change says that the side is empty");
}

#[test]
fn a_request_without_an_id_is_no_valid_one() {
    let mut venue = Venue::new();
    let anna = venue.connect();
    for frame in ["{\"method\":\"public/test\"}", "[]", "{\"id\":null,\"method\":\"public/test\"}"] {
        venue.front.handle_frame(anna, frame.as_bytes(), venue.now_us);
        let error = &venue.frames(anna)[0]["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32600), &json!("Invalid Request")),
            "{frame}"
        );
        assert!(error["data"]["reason"].as_str().is_some_and(|reason| reason.starts_with("must ")));
    }
    let long = format!("{{\"id\":1,\"method\":\"public/test\",\"x\":\"{}\"}}", "x".repeat(40_000));
    venue.front.handle_frame(anna, long.as_bytes(), venue.now_us);
    assert_eq!(venue.frames(anna)[0]["error"]["message"], "request entity too large");
}

#[test]
fn names_dates_and_volumes_are_told() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let mut ok = |method: &str, params: Value| venue.ok(bert, method, params);
    assert_eq!(ok("public/get_index_price_names", json!({})), json!(["btc_usd", "eth_usd"]));
    let extended = ok("public/get_index_price_names", json!({ "extended": true }));
    assert_eq!(
        extended[0],
        json!({ "name": "btc_usd", "future_combo_creation_enabled": false, "option_combo_creation_enabled": false })
    );
    let dates = |currency: &str, kind: &str| json!({ "currency": currency, "kind": kind });
    assert_eq!(
        ok("public/get_expirations", dates("any", "any")),
        json!({ "future": ["PERPETUAL"], "option": ["25DEC26"] })
    );
    assert_eq!(
        ok("public/get_expirations", dates("BTC", "option")),
        json!({ "btc": { "option": ["25DEC26"] } })
    );
    assert_eq!(
        ok("public/get_expirations", dates("grouped", "future")),
        json!({ "btc": { "future": ["PERPETUAL"] }, "usdc": { "future": ["PERPETUAL"] } })
    );
    assert_eq!(ok("public/get_announcements", json!({})), json!([]));
    assert_eq!(ok("public/get_combos", json!({ "currency": "any" })), json!([]));
    assert_eq!(venue.refused(bert, "public/get_announcements", json!({ "count": 51 })), -32602);
    assert_eq!(venue.refused(bert, "public/get_expirations", dates("BTC", "spot")), -32602);
    assert_eq!(venue.refused(bert, "public/get_combos", json!({})), -32602);
    let order = json!({ "instrument_name": PERPETUAL, "amount": 60000, "price": 60000 });
    venue.ok(anna, "private/sell", order.clone());
    venue.ok(bert, "private/buy", order);
    let volumes = venue.ok(bert, "public/get_trade_volumes", json!({ "extended": true }));
    let names = [
        "futures_volume",
        "futures_volume_7d",
        "futures_volume_30d",
        "calls_volume",
        "puts_volume_7d",
        "spot_volume",
    ];
    let btc = &volumes[0];
    assert_eq!(btc["currency"], "BTC");
    assert_eq!(names.map(|name| btc[name].as_f64().unwrap()), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    let plain = venue.ok(bert, "public/get_trade_volumes", json!({}));
    assert!(plain[0].get("futures_volume_7d").is_none());
}

#[test]
fn prices_of_the_past_are_told() {
    let mut venue = Venue::new();
    let (start_ms, hours) = (venue.now_us / 1_000, 3);
    for _ in 0..hours * 60 {
        venue.wait(60_000_000);
    }
    let bert = venue.login("bert");
    let within = |method: &str, mut params: Value, venue: &mut Venue| {
        params["start_timestamp"] = json!(start_ms);
        params["end_timestamp"] = json!(venue.now_us / 1_000);
        venue.ok(bert, method, params)
    };
    let marks = within("public/get_mark_price_history", json!({ "instrument_name": OPTION }), &mut venue);
    assert_eq!(marks.as_array().unwrap().len(), 36, "each five minutes");
    assert!(marks[0][1].as_f64().unwrap() > 0.0);
    assert_eq!(
        within("public/get_mark_price_history", json!({ "instrument_name": PERPETUAL }), &mut venue),
        json!([])
    );
    for (resolution, count) in [("60", 180), ("3600", 4), ("1D", 1)] {
        let asked = json!({ "currency": "BTC", "resolution": resolution });
        let index = within("public/get_volatility_index_data", asked, &mut venue);
        let candles = index["data"].as_array().unwrap();
        assert!(candles.len().abs_diff(count) <= 1, "{resolution}: {}", candles.len());
        assert_eq!((candles[0].as_array().unwrap().len(), &index["continuation"]), (5, &Value::Null));
        // The option is priced at its volatility of 60 percent.
        assert!((59.0..61.0).contains(&candles[0][4].as_f64().unwrap()), "{candles:?}");
    }
    let asked = json!({ "currency": "BTC", "resolution": "5" });
    assert_eq!(venue.refused(bert, "public/get_volatility_index_data", asked), -32602);
    for (length, least) in [("8h", 100), ("24h", 30), ("1m", 3)] {
        let asked = json!({ "instrument_name": PERPETUAL, "length": length });
        let chart = venue.ok(bert, "public/get_funding_chart_data", asked);
        let points = chart["data"].as_array().unwrap();
        assert!(points.len() >= least && points.len() < 200, "{length}: {}", points.len());
        assert!(points[0]["index_price"].is_number() && points[0]["interest_8h"].is_number());
        assert!(chart["current_interest"].is_number() && chart["interest_8h"].is_number());
    }
    let of_option = json!({ "instrument_name": OPTION, "length": "8h" });
    assert_eq!(venue.refused(bert, "public/get_funding_chart_data", of_option), 10031);
    let past = venue.ok(bert, "public/get_historical_volatility", json!({ "currency": "BTC" }));
    assert!(
        past.as_array().unwrap().iter().all(|point| point[1].as_f64().unwrap() >= 0.0) && past[0][0].is_u64()
    );
    assert_eq!(venue.ok(bert, "public/get_historical_volatility", json!({ "currency": "EURR" })), json!([]));
}

#[test]
fn what_became_of_orders_that_waited_is_told_page_by_page() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    for (label, price) in [("one", 50000), ("two", 50001), ("three", 50002)] {
        let params = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_limit", "trigger": "mark_price",
            "trigger_price": price, "price": 49900, "label": label });
        let order = venue.ok(anna, "private/sell", params)["order"].clone();
        venue.ok(anna, "private/cancel", json!({ "order_id": order["order_id"] }));
    }
    let asked = json!({ "currency": "BTC", "count": 2 });
    let first = venue.ok(anna, "private/get_trigger_order_history", asked.clone());
    let labels = |page: &Value| -> Vec<String> {
        page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["label"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(labels(&first), ["three", "two"]);
    let entry = &first["entries"][0];
    assert_eq!(
        (
            &entry["request"],
            &entry["order_state"],
            &entry["order_type"],
            &entry["trigger_price"],
            &entry["price"]
        ),
        (&json!("cancel"), &json!("cancelled"), &json!("limit"), &json!(50002), &json!(49900))
    );
    let mut more = asked;
    more["continuation"] = first["continuation"].clone();
    let last = venue.ok(anna, "private/get_trigger_order_history", more);
    assert_eq!((labels(&last), &last["continuation"]), (vec!["one".to_owned()], &Value::Null));
}

#[test]
fn money_that_was_sent_is_where_it_was_sent_after_a_restart_too() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let accounts = venue.ok(bert, "private/get_subaccounts", json!({ "with_portfolio": true }));
    assert_eq!((&accounts[0]["username"], accounts.as_array().unwrap().len()), (&json!("BERT"), 1));
    assert_eq!(accounts[0]["portfolio"]["btc"]["balance"], 10);
    let to = &accounts[0]["id"];
    let send = |amount: Value, to: &Value| json!({ "currency": "BTC", "amount": amount, "destination": to });
    let sent = venue.ok(anna, "private/submit_transfer_to_subaccount", send(json!(2), to));
    assert_eq!(
        (&sent["state"], &sent["amount"], &sent["direction"], &sent["other_side"]),
        (&json!("confirmed"), &json!(2), &json!("payment"), &json!("BERT"))
    );
    venue.ok(anna, "private/submit_transfer_to_user", send(json!(1), &json!("BERT")));
    for (amount, to, code) in [
        (json!(1), json!("CAROL"), -32602),
        (json!(1), json!("ANNA"), -32602),
        (json!(0), json!("BERT"), -32602),
        (json!(-1), json!("BERT"), -32602),
        (json!(7.5), json!("BERT"), 10009),
    ] {
        assert_eq!(venue.refused(anna, "private/submit_transfer_to_user", send(amount, &to)), code);
    }
    let out = json!({ "currency": "BTC", "amount": 0.5, "address": "somewhere" });
    let gone = venue.ok(bert, "private/withdraw", out.clone());
    assert_eq!(
        (&gone["address"], &gone["amount"], &gone["state"]),
        (&json!("somewhere"), &json!(0.5), &json!("completed"))
    );
    let reader = venue.login("reader");
    assert_eq!(venue.refused(reader, "private/withdraw", out), 13021);
    let address = venue.ok(bert, "private/get_current_deposit_address", json!({ "currency": "BTC" }));
    assert_eq!(address["address"], "simulated-BTC-BERT");
    let ask = |venue: &mut Venue, anna: u64, bert: u64| {
        let btc = json!({ "currency": "BTC" });
        let balance = |who, venue: &mut Venue| {
            venue.ok(who, "private/get_account_summary", btc.clone())["balance"].clone()
        };
        let (of_anna, of_bert) = (balance(anna, venue), balance(bert, venue));
        [
            of_anna,
            of_bert,
            venue.ok(anna, "private/get_transfers", btc.clone()),
            venue.ok(bert, "private/get_transfers", btc.clone()),
            venue.ok(bert, "private/get_withdrawals", btc.clone()),
            venue.ok(bert, "private/get_deposits", btc.clone()),
        ]
    };
    let before = ask(&mut venue, anna, bert);
    assert_eq!((&before[0], &before[1]), (&json!(7), &json!(12.5)));
    assert_eq!((&before[2]["count"], &before[3]["data"][0]["direction"]), (&json!(2), &json!("income")));
    assert_eq!((&before[4]["data"][0]["address"], &before[5]["count"]), (&json!("somewhere"), &json!(0)));
    let mut venue = venue.restarted(Vec::new());
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    assert_eq!(ask(&mut venue, anna, bert), before);
}

/// Otherwise a cancel by label would cancel an order with another label.
#[test]
fn the_number_of_a_lost_label_is_nobody_elses() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let stop = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "stop_limit", "trigger": "mark_price",
        "trigger_price": 50000, "price": 49900, "label": "of anna" });
    let waiting = venue.ok(anna, "private/sell", stop)["order"].clone();
    let mut venue = venue.restarted(Vec::new());
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000, "label": "of bert" });
    venue.ok(bert, "private/buy", order);
    let order = venue.ok(anna, "private/get_order_state", json!({ "order_id": waiting["order_id"] }));
    assert_eq!(order["label"], "", "it is lost, and no other's");
}

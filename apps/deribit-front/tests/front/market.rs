//! Market data and channels.

use serde_json::{Value, json};

use crate::front::support::Venue;

const PERPETUAL: &str = "BTC-PERPETUAL";

/// A book built from a channel, with a continuity check.
#[derive(Default)]
struct Book {
    levels: [std::collections::BTreeMap<String, f64>; 2],
    change_id: u64,
}

impl Book {
    fn take(&mut self, data: &Value) {
        if data["type"] == "snapshot" {
            *self = Book::default();
        } else {
            assert_eq!(data["prev_change_id"].as_u64(), Some(self.change_id), "{data}");
        }
        self.change_id = data["change_id"].as_u64().unwrap();
        for (side, name) in ["bids", "asks"].iter().enumerate() {
            for level in data[name].as_array().unwrap() {
                let (action, price) = (level[0].as_str().unwrap(), level[1].to_string());
                let before = match action {
                    "delete" => self.levels[side].remove(&price),
                    _ => self.levels[side].insert(price, level[2].as_f64().unwrap()),
                };
                assert_eq!(before.is_none(), action == "new", "{data}");
            }
        }
    }

    fn is(&self, book: &Value) -> bool {
        ["bids", "asks"].iter().enumerate().all(|(side, name)| {
            let levels: std::collections::BTreeMap<String, f64> = book[name]
                .as_array()
                .unwrap()
                .iter()
                .map(|level| (level[0].to_string(), level[1].as_f64().unwrap()))
                .collect();
            levels == self.levels[side]
        })
    }
}

#[test]
fn books_of_channels_are_the_engines() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let channels = [
        format!("book.{PERPETUAL}.raw"),
        format!("book.{PERPETUAL}.100ms"),
        format!("book.{PERPETUAL}.agg2"),
    ];
    venue.ok(anna, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 59000 }));
    assert_eq!(venue.ok(anna, "public/subscribe", json!({ "channels": channels })), json!(channels));
    let mut books = [Book::default(), Book::default(), Book::default()];
    for step in 0_u32..120 {
        let side = if step % 2 == 0 { "buy" } else { "sell" };
        let price = 60000 + i64::from(step * 7 % 13) - if step % 2 == 0 { 8 } else { 4 };
        let params = json!({ "instrument_name": PERPETUAL, "amount": 10 * (1 + step % 4), "price": price });
        let placed = venue.ok(if step % 3 == 0 { anna } else { bert }, &format!("private/{side}"), params);
        if step % 5 == 0 && placed["order"]["order_state"] == "open" {
            let owner = if step % 3 == 0 { anna } else { bert };
            venue.ok(owner, "private/cancel", json!({ "order_id": placed["order"]["order_id"] }));
        }
        venue.wait(30_000);
        for (book, channel) in books.iter_mut().zip(&channels) {
            venue.news(anna, channel).iter().for_each(|data| book.take(data));
        }
        let asked =
            venue.ok(bert, "public/get_order_book", json!({ "instrument_name": PERPETUAL, "depth": 1000 }));
        assert!(books[0].is(&asked), "step {step}");
        assert_eq!(books[0].change_id, asked["change_id"].as_u64().unwrap());
        if step == 60 {
            // A new subscriber does not affect the first one.
            assert_eq!(
                venue.ok(bert, "public/subscribe", json!({ "channels": channels })).as_array().unwrap().len(),
                3
            );
        }
    }
    venue.wait(3_000_000);
    let asked =
        venue.ok(bert, "public/get_order_book", json!({ "instrument_name": PERPETUAL, "depth": 1000 }));
    for (book, channel) in books.iter_mut().zip(&channels) {
        venue.news(anna, channel).iter().for_each(|data| book.take(data));
        assert!(book.is(&asked), "{channel}");
        let mut late = Book::default();
        venue.news(bert, channel).iter().for_each(|data| late.take(data));
        assert!(late.is(&asked), "{channel}");
    }
    assert!(asked["bids"].as_array().unwrap().len() > 2);
}

#[test]
fn changes_of_all_instruments_name_the_instrument_of_each() {
    let mut venue = Venue::new();
    let anna = venue.login("anna");
    let own = ["user.changes.any.any.raw", "user.changes.any.any.100ms"];
    venue.ok(anna, "private/subscribe", json!({ "channels": own }));
    let names = [PERPETUAL, "BTC_USDC"];
    for name in names {
        venue.ok(
            anna,
            "private/buy",
            json!({ "instrument_name": name, "amount": 10, "price": 6_000, "type": "limit" }),
        );
    }
    venue.wait(100_000);
    for channel in own {
        let told = venue.news(anna, channel);
        let told: Vec<_> = told.iter().map(|change| change["instrument_name"].as_str().unwrap()).collect();
        assert_eq!(told, names, "{channel}");
    }
}

#[test]
fn users_are_told_of_their_own_orders_and_trades() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let own = [
        "user.orders.BTC-PERPETUAL.raw",
        "user.orders.any.any.100ms",
        "user.trades.future.BTC.raw",
        "user.changes.BTC-PERPETUAL.raw",
        "user.portfolio.btc",
    ];
    let subscribed = venue.ok(anna, "private/subscribe", json!({ "channels": own, "label": "mine" }));
    assert_eq!(subscribed, json!(own));
    assert!(venue.ok(bert, "public/subscribe", json!({ "channels": own })).as_array().unwrap().is_empty());
    venue.ok(anna, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 60000 }));
    venue.ok(bert, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 40, "price": 60000 }));
    let orders = venue.news(anna, own[0]);
    assert_eq!(
        orders.iter().map(|order| order["filled_amount"].as_i64().unwrap()).collect::<Vec<_>>(),
        [0, 40]
    );
    let trades = venue.news(anna, own[2]);
    assert_eq!(
        (trades.len(), &trades[0][0]["liquidity"], &trades[0][0]["amount"]),
        (1, &json!("M"), &json!(40))
    );
    let changes = venue.news(anna, own[3]);
    assert_eq!((changes.len(), &changes[1]["positions"][0]["size"]), (2, &json!(-40)));
    venue.wait(1_100_000);
    let orders = venue.news(anna, own[1]);
    assert_eq!((orders.len(), orders[0].as_array().unwrap().len()), (1, 1), "{orders:?}");
    assert!(!venue.news(anna, own[4]).is_empty());
    assert!(venue.frames(bert).is_empty());
}

#[test]
fn tickers_quotes_and_trades_are_told() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.connect());
    let channels = [
        "ticker.BTC-PERPETUAL.100ms",
        "incremental_ticker.BTC-PERPETUAL",
        "quote.BTC-PERPETUAL",
        "trades.future.any.100ms",
        "deribit_price_index.btc_usd",
        "book.BTC-PERPETUAL.none.10.100ms",
        "platform_state",
        "nonsense",
        "ticker.UNKNOWN.100ms",
    ];
    let subscribed = venue.ok(bert, "public/subscribe", json!({ "channels": channels }));
    assert_eq!(subscribed, json!(channels[..7]));
    assert_eq!(venue.news(bert, channels[2])[0]["best_bid_price"], json!(0));
    venue.ok(anna, "private/sell", json!({ "instrument_name": PERPETUAL, "amount": 100, "price": 60010 }));
    venue.ok(anna, "private/buy", json!({ "instrument_name": PERPETUAL, "amount": 30, "price": 60010 }));
    venue.wait(150_000);
    let quotes = venue.news(bert, channels[2]);
    assert_eq!((&quotes[0]["best_ask_amount"], &quotes[1]["best_ask_amount"]), (&json!(100), &json!(70)));
    let tickers = venue.news(bert, channels[0]);
    assert_eq!(tickers.last().unwrap()["last_price"], json!(60010));
    assert_eq!(tickers.last().unwrap()["stats"]["high"], json!(60010));
    let ticks = venue.news(bert, channels[1]);
    assert_eq!((&ticks[0]["type"], &ticks[1]["type"]), (&json!("snapshot"), &json!("change")));
    assert!(ticks[1].get("mark_price").is_none() && ticks[1]["best_ask_price"] == json!(60010), "{ticks:?}");
    let trades = venue.news(bert, channels[3]);
    assert_eq!((&trades[0][0]["amount"], &trades[0][0]["direction"]), (&json!(30), &json!("buy")));
    assert_eq!(venue.news(bert, channels[5]).last().unwrap()["asks"], json!([[60010, 70]]));
    assert_eq!(
        venue.ok(bert, "public/unsubscribe", json!({ "channels": [channels[2], "book.x.raw"] })),
        json!([channels[2]])
    );
    assert_eq!(venue.ok(bert, "public/unsubscribe_all", json!({})), "ok");
    venue.wait(2_000_000);
    assert!(venue.frames(bert).is_empty());
}

#[test]
fn reference_data_is_there() {
    let mut venue = Venue::new();
    let bert = venue.connect();
    let all = venue.ok(bert, "public/get_instruments", json!({ "currency": "any" }));
    assert_eq!(all.as_array().unwrap().len(), 4);
    let btc = venue.ok(bert, "public/get_instruments", json!({ "currency": "BTC", "kind": "future" }));
    assert_eq!(
        (&btc[0]["tick_size"], &btc[0]["contract_size"], &btc[0]["instrument_type"]),
        (&json!(0.5), &json!(10), &json!("reversed"))
    );
    let eth = venue.ok(bert, "public/get_instrument", json!({ "instrument_name": "ETH_USDC-PERPETUAL" }));
    assert_eq!(
        (&eth["tick_size"], &eth["min_trade_amount"], &eth["settlement_currency"]),
        (&json!(0.05), &json!(0.001), &json!("USDC"))
    );
    let index = venue.ok(bert, "public/get_index_price", json!({ "index_name": "btc_usd" }));
    assert_eq!(index["index_price"], json!(60000));
    assert_eq!(
        venue.ok(bert, "public/get_contract_size", json!({ "instrument_name": PERPETUAL }))["contract_size"],
        10
    );
    assert_eq!(
        venue
            .ok(bert, "public/get_book_summary_by_currency", json!({ "currency": "USDC" }))
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(venue.ok(bert, "public/get_time", json!({})), crate::front::support::START_US / 1000);
    let ticker = venue.ok(bert, "public/ticker", json!({ "instrument_name": PERPETUAL }));
    assert_eq!(
        (&ticker["mark_price"], &ticker["min_price"], &ticker["max_price"]),
        (&json!(60000), &json!(57000), &json!(63000))
    );
    assert_eq!(
        venue.ok(bert, "public/hello", json!({ "client_name": "a", "client_version": "b" }))["version"],
        "1.2.26"
    );
    assert!(venue.ok(bert, "public/get_currencies", json!({})).as_array().unwrap().len() >= 3);
}

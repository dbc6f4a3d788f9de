//! Displayed data: option positions, candles, mark prices, expiries and portfolios.

use serde_json::{Value, json};

use crate::front::support::{Venue, changed};

const PERPETUAL: &str = "BTC-PERPETUAL";
const OPTION: &str = "BTC-25DEC26-60000-C";

fn trade(venue: &mut Venue, buyer: u64, seller: u64, name: &str, amount: Value, price: Value) -> Value {
    let params = json!({ "instrument_name": name, "amount": amount, "price": price });
    venue.ok(seller, "private/sell", params.clone());
    venue.ok(buyer, "private/buy", params)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn is_near(value: &Value, expected: f64, by: f64) {
    assert!((number(value) - expected).abs() < by, "{value} is not {expected}");
}

#[test]
fn positions_of_options_have_sensitivities_and_values_in_dollars() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let bought = trade(&mut venue, anna, bert, OPTION, json!(2), json!(0.05));
    // 0.05 at an index of 60000 dollars corresponds to 41.8 %.
    is_near(&bought["trades"][0]["iv"], 41.8, 0.3);
    assert_eq!(bought["trades"][0]["underlying_price"], json!(60000));
    let public = venue.ok(anna, "public/get_last_trades_by_instrument", json!({ "instrument_name": OPTION }));
    assert_eq!(public["trades"][0]["iv"], bought["trades"][0]["iv"]);
    venue.wait(1_000_000);
    let ticker = venue.ok(anna, "public/ticker", json!({ "instrument_name": OPTION }));
    let [long, short] = [anna, bert]
        .map(|connection| venue.ok(connection, "private/get_position", json!({ "instrument_name": OPTION })));
    for name in ["delta", "gamma", "vega", "theta"] {
        is_near(&long[name], 2.0 * number(&ticker["greeks"][name]), 2e-3);
        is_near(&short[name], -number(&long[name]), 1e-6);
    }
    assert_eq!((&long["average_price_usd"], &short["average_price_usd"]), (&json!(3000), &json!(3000)));
    assert_eq!(long["floating_profit_loss_usd"], json!(0));
    // Half of it is sold again at a higher price.
    trade(&mut venue, bert, anna, OPTION, json!(1), json!(0.06));
    venue.wait(1_000_000);
    let long = venue.ok(anna, "private/get_position", json!({ "instrument_name": OPTION }));
    assert_eq!((&long["average_price_usd"], &long["size"]), (&json!(3000), &json!(1)));
    is_near(&long["floating_profit_loss_usd"], 600.0, 1e-6);
    let summary =
        venue.ok(anna, "private/get_account_summary", json!({ "currency": "BTC", "extended": true }));
    is_near(&summary["options_delta"], number(&long["delta"]), 1e-6);
    is_near(&summary["delta_total_map"]["btc_usd"], number(&long["delta"]), 1e-6);
    is_near(&summary["options_pl"], 0.02, 1e-9);
    assert_eq!((&summary["mmp_enabled"], &summary["fees"]), (&json!(true), &json!([])));
}

#[test]
fn a_position_says_where_it_is_liquidated_and_an_account_how_near_that_is() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, PERPETUAL, json!(1_200_000), json!(60000));
    let [long, short] = [anna, bert].map(|connection| {
        venue.ok(connection, "private/get_position", json!({ "instrument_name": PERPETUAL }))
    });
    // 10 bitcoins and a position of 20: 10 + 20 - x = 0.01 x, where x = 1 200 000 / price.
    is_near(&long["estimated_liquidation_price"], 1_200_000.0 * 1.01 / 30.0, 20.0);
    // A short position of 20 with 10 bitcoins: 10 - 20 + x = 0.01 x.
    is_near(&short["estimated_liquidation_price"], 1_200_000.0 * 0.99 / 10.0, 200.0);
    let summary = venue.ok(anna, "private/get_account_summary", json!({ "currency": "BTC" }));
    is_near(&summary["estimated_liquidation_ratio"], 0.02, 0.001);
    assert_eq!(summary["estimated_liquidation_ratio_map"]["btc_usd"], summary["estimated_liquidation_ratio"]);
    assert!(long.get("average_price_usd").is_none() && number(&long["interest_value"]) == 0.0);
    // Amount held by spot orders.
    let pair = json!({ "instrument_name": "BTC_USDC", "amount": 0.5, "price": 60000 });
    venue.ok(anna, "private/buy", pair);
    let summary = venue.ok(anna, "private/get_account_summary", json!({ "currency": "USDC" }));
    assert_eq!(summary["spot_reserve"], json!(30000));
    let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "type": "market", "reduce_only": true });
    assert_eq!(venue.ok(bert, "private/buy", order)["order"]["risk_reducing"], true);
}

#[test]
fn candles_are_of_their_minutes() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    trade(&mut venue, anna, bert, PERPETUAL, json!(60), json!(60000));
    let (minute, day) = ("chart.trades.BTC-PERPETUAL.1", "chart.trades.BTC-PERPETUAL.1D");
    let asked =
        json!({ "channels": [minute, day, "chart.trades.BTC-PERPETUAL.2", "chart.trades.NOTHING.1"] });
    assert_eq!(venue.ok(anna, "public/subscribe", asked), json!([minute, day]));
    let first = venue.news(anna, minute);
    assert_eq!(first.len(), 1, "what was before");
    assert_eq!((&first[0]["open"], &first[0]["cost"]), (&json!(60000), &json!(60)));
    assert_eq!(first[0]["volume"], json!(0.001));
    trade(&mut venue, anna, bert, PERPETUAL, json!(10), json!(60100));
    trade(&mut venue, anna, bert, PERPETUAL, json!(10), json!(59900));
    venue.wait(100_000);
    let now = venue.news(anna, minute).pop().unwrap();
    assert_eq!(
        [&now["open"], &now["high"], &now["low"], &now["close"], &now["cost"]],
        [&json!(60000), &json!(60100), &json!(59900), &json!(59900), &json!(80)]
    );
    assert_eq!(now["tick"].as_u64().unwrap() % 60_000, 0);
    venue.wait(60_000_000);
    assert!(venue.news(anna, minute).is_empty(), "nothing was traded");
    venue.news(anna, day);
    trade(&mut venue, anna, bert, PERPETUAL, json!(20), json!(60050));
    venue.wait(100_000);
    let next = venue.news(anna, minute).pop().unwrap();
    assert_eq!((&next["open"], &next["low"], &next["cost"]), (&json!(60050), &json!(60050), &json!(20)));
    assert_eq!(next["tick"].as_u64().unwrap(), now["tick"].as_u64().unwrap() + 60_000);
    let whole = venue.news(anna, day).pop().unwrap();
    assert_eq!((&whole["low"], &whole["cost"]), (&json!(59900), &json!(100)));
    // Past candles on request.
    let begin = now["tick"].as_u64().unwrap();
    let asked = |start: u64, end: u64, resolution: &str| json!({ "instrument_name": PERPETUAL, "start_timestamp": start, "end_timestamp": end, "resolution": resolution });
    let method = "public/get_tradingview_chart_data";
    let data = venue.ok(anna, method, asked(begin - 300_000, begin + 600_000, "1"));
    assert_eq!((&data["status"], &data["ticks"]), (&json!("ok"), &json!([begin, begin + 60_000])));
    assert_eq!((&data["open"], &data["close"]), (&json!([60000, 60050]), &json!([59900, 60050])));
    assert_eq!((&data["high"], &data["low"]), (&json!([60100, 60050]), &json!([59900, 60050])));
    assert_eq!(data["cost"], json!([80, 20]));
    // A minute without a trade repeats the price before it.
    venue.wait(60_000_000);
    let data = venue.ok(anna, method, asked(begin + 120_000, u64::MAX >> 11, "1"));
    assert_eq!((&data["ticks"], &data["open"]), (&json!([begin + 120_000]), &json!([60050])));
    assert_eq!((&data["low"], &data["volume"]), (&json!([60050]), &json!([0])));
    for (start, end) in [(0, begin - 1), (begin + 600_000, begin), (u64::MAX >> 11, u64::MAX >> 11)] {
        let data = venue.ok(anna, method, asked(start, end, "1"));
        assert_eq!((&data["status"], &data["ticks"]), (&json!("no_data"), &json!([])), "{start} {end}");
    }
    // The latest candles are returned if there are too many for one answer.
    venue.wait(2_000 * 60_000_000);
    let anna = venue.connect();
    let last = venue.now_us / 60_000_000 * 60_000;
    let reply = venue.ok(anna, method, asked(0, u64::MAX >> 11, "1"));
    for name in ["open", "high", "low", "volume"] {
        assert_eq!(reply[name].as_array().unwrap().len(), 1_000, "{name}");
    }
    assert_eq!(
        reply["ticks"],
        json!((0..1_000).map(|age| last - 60_000 * (999 - age)).collect::<Vec<u64>>())
    );
    assert_eq!((&reply["close"], &reply["cost"]), (&json!(vec![60050; 1_000]), &json!(vec![0; 1_000])));
    let day = venue.ok(anna, method, asked(0, begin, "1D"));
    assert_eq!((day["ticks"].as_array().unwrap().len(), &day["cost"]), (1, &json!([100])));
    for (name, value) in
        [("resolution", json!("2")), ("start_timestamp", json!("x")), ("end_timestamp", json!(null))]
    {
        let mut wrong = asked(0, begin, "1");
        wrong[name] = value;
        let error = venue.call(anna, method, wrong);
        assert_eq!(error["error"]["data"]["param"], name, "{error}");
    }
}

#[test]
fn mark_prices_of_options_and_expiries_are_told() {
    let end_ms = crate::front::support::START_US / 1_000 + 7_200_000;
    let soon = ("expiration_timestamp = 1798185600000", format!("expiration_timestamp = {end_ms}"));
    let mut venue = Venue::of(changed(&[(soon.0, &soon.1)]).unwrap());
    let anna = venue.login("anna");
    let (marks, expiry) = ("markprice.options.btc_usd", "estimated_expiration_price.btc_usd");
    let asked = json!({ "channels": [marks, expiry, "markprice.options.xrp_usd"] });
    assert_eq!(venue.ok(anna, "public/subscribe", asked), json!([marks, expiry]));
    let first = venue.news(anna, marks).pop().unwrap();
    assert_eq!((first.as_array().unwrap().len(), &first[0]["instrument_name"]), (1, &json!(OPTION)));
    is_near(&first[0]["iv"], 0.6, 0.01);
    let ticker = venue.ok(anna, "public/ticker", json!({ "instrument_name": OPTION }));
    assert_eq!(first[0]["mark_price"], ticker["mark_price"]);
    let told = venue.news(anna, expiry).pop().unwrap();
    assert_eq!((&told["is_estimated"], &told["seconds"]), (&json!(false), &json!(7200)));
    for _ in 0..10 {
        venue.wait(540_500_000);
        venue.ok(anna, "public/test", json!({}));
    }
    venue.wait(2_000_000);
    let told = venue.news(anna, expiry).pop().unwrap();
    assert_eq!(told["is_estimated"], true, "{told}");
    assert!(number(&told["seconds"]) < 1800.0);
    // An index without expiring instruments refers to the next settlement.
    venue.ok(anna, "public/subscribe", json!({ "channels": ["estimated_expiration_price.eth_usd"] }));
    let told = venue.news(anna, "estimated_expiration_price.eth_usd").pop().unwrap();
    assert_eq!(told["is_estimated"], false);
    assert!((1..=86_400).contains(&told["seconds"].as_u64().unwrap()));
}

#[test]
fn portfolios_are_told_of_each_currency() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let channels = ["user.portfolio.any", "user.portfolio.BTC", "user.portfolio.DOGE"];
    assert_eq!(venue.ok(anna, "private/subscribe", json!({ "channels": channels })), json!(channels[..2]));
    let currencies = |told: Vec<Value>| -> Vec<String> {
        let mut names: Vec<_> = told.iter().map(|one| one["currency"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(currencies(venue.news(anna, channels[0])), ["BTC", "USDC"]);
    venue.wait(2_000_000);
    venue.news(anna, channels[0]);
    trade(&mut venue, anna, bert, PERPETUAL, json!(100), json!(60000));
    venue.wait(1_000_000);
    assert_eq!(currencies(venue.news(anna, channels[0])), ["BTC"], "what changed alone");
    assert_eq!(
        venue.ok(anna, "private/unsubscribe", json!({ "channels": [channels[0]] })),
        json!([channels[0]])
    );
}

//! Changes of the configuration leave the past unchanged.

use serde_json::json;

use crate::front::support::{Venue, changed};

const PERPETUAL: &str = "BTC-PERPETUAL";
const FEE: &str = "min_trade_amount = \"10\", taker_commission = \"0.0005\"";

fn balances(venue: &mut Venue) -> Vec<String> {
    ["anna", "bert"]
        .map(|id| {
            let connection = venue.login(id);
            venue.ok(connection, "private/get_account_summary", json!({ "currency": "BTC" }))["balance"]
                .to_string()
        })
        .into()
}

fn trade(venue: &mut Venue) {
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let order = json!({ "instrument_name": PERPETUAL, "amount": 60_000, "price": 60_000 });
    venue.ok(anna, "private/sell", order.clone());
    venue.ok(bert, "private/buy", order);
}

#[test]
fn other_fees_and_balances_hold_from_the_restart_on() {
    let mut venue = Venue::new();
    trade(&mut venue);
    assert_eq!(balances(&mut venue), ["10", "9.9995"]);
    let dearer = changed(&[
        (FEE, "min_trade_amount = \"10\", taker_commission = \"0.001\""),
        ("{ user = \"ANNA\", balances = { BTC = \"10\"", "{ user = \"ANNA\", balances = { BTC = \"12.5\""),
    ])
    .unwrap();
    let mut venue = venue.restarted_as(dearer.clone(), Vec::new()).unwrap();
    assert_eq!(balances(&mut venue), ["12.5", "9.9995"], "the past has the old fee");
    trade(&mut venue);
    assert_eq!(balances(&mut venue), ["12.5", "9.9985"], "and what follows the new one");
    for _ in 0..2 {
        venue = venue.restarted_as(dearer.clone(), Vec::new()).unwrap();
        assert_eq!(balances(&mut venue), ["12.5", "9.9985"]);
    }
    let anna = venue.login("anna");
    let asked = json!({ "currency": "BTC", "start_timestamp": 0, "end_timestamp": 4_000_000_000_000_u64, "query": "deposit" });
    let log = venue.ok(anna, "private/get_transaction_log", asked)["logs"].clone();
    assert_eq!((log.as_array().unwrap().len(), &log[0]["change"]), (1, &json!(2.5)));
    // The old values again: paid out, and in force from then on.
    let mut venue = venue.restarted_as(crate::front::support::settings(), Vec::new()).unwrap();
    assert_eq!(balances(&mut venue), ["10", "9.9985"]);
}

#[test]
fn what_an_instrument_is_does_not_change() {
    for (from, to) in [
        ("min_trade_amount = \"10\"", "min_trade_amount = \"1\""),
        ("strike = \"60000\"", "strike = \"70000\""),
        ("\"BTC_USDC\", symbol", "\"BTC_USDT\", symbol"),
    ] {
        let mut venue = Venue::new();
        trade(&mut venue);
        let other = changed(&[(from, to)]).unwrap();
        let refused = venue.restarted_as(other, Vec::new()).err().unwrap().to_string();
        assert!(refused.starts_with("instrument ") && refused.contains("--new-session"), "{refused}");
    }
}

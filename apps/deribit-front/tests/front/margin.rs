//! Margin of orders, and liquidation.

use serde_json::{Value, json};
use tickpath_deribit_front::{HttpCall, Transport};
use tickpath_matching::CommandKind;
use tickpath_types::{Qty, SessionId};

use crate::front::support::{Venue, changed, settings};

const PERPETUAL: &str = "BTC-PERPETUAL";

fn order(venue: &mut Venue, connection: u64, side: &str, amount: u64, more: Value) -> Value {
    let mut params = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": 60_000 });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    venue.call(connection, &format!("private/{side}"), params)
}

fn held(venue: &mut Venue, connection: u64) -> f64 {
    let summary = venue.ok(connection, "private/get_account_summary", json!({ "currency": "BTC" }));
    let number = |name: &str| summary[name].as_f64().unwrap();
    number("projected_initial_margin") - number("initial_margin")
}

#[test]
fn orders_that_lower_a_position_hold_nothing_together_as_far_as_it_goes() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", 60_000, json!({}));
    order(&mut venue, bert, "buy", 60_000, json!({}));
    // Long 1 BTC; the margin is a fiftieth.
    let close = |venue: &mut Venue, more: Value| {
        let placed = order(venue, bert, "sell", 60_000, more);
        assert!(placed.get("error").is_none(), "{placed}");
        held(venue, bert)
    };
    assert_eq!(close(&mut venue, json!({ "price": 61_000 })), 0.0, "it closes the position");
    let two = close(&mut venue, json!({ "price": 61_000 }));
    assert!((two - 0.02 * 60.0 / 61.0).abs() < 1e-8, "the second would open another: {two}");
    let three = close(&mut venue, json!({ "price": 61_000, "reduce_only": true }));
    assert!((three - 2.0 * two).abs() < 1e-8, "whatever it is called: {three}");
    let position = venue.ok(bert, "private/get_position", json!({ "instrument_name": PERPETUAL }));
    assert!((position["open_orders_margin"].as_f64().unwrap() - three).abs() < 1e-8, "{position}");
    // 10 BTC are margin for at most 500 BTC, however the orders are split.
    for _ in 0..3 {
        order(&mut venue, bert, "sell", 9_600_000, json!({ "price": 61_000 }));
    }
    let more = order(&mut venue, bert, "sell", 9_600_000, json!({ "price": 61_000 }));
    assert_eq!(more["error"]["code"], 10009);
}

#[test]
fn who_buys_must_have_the_fee_as_well() {
    let amount = "min_trade_amount = \"0.0001\"";
    let with_fee = format!("{amount}, taker_commission = \"0.001\"");
    let mut venue = Venue::of(changed(&[(amount, &with_fee)]).unwrap());
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    let pair = |amount: f64| json!({ "instrument_name": "BTC_USDC", "amount": amount, "price": 60_000 });
    venue.ok(anna, "private/sell", pair(2.0));
    // 100 000 USDC pay for 1.6666 BTC, but not for the fee of 100 in addition.
    assert_eq!(venue.refused(bert, "private/buy", pair(1.6666)), 10009);
    venue.ok(bert, "private/buy", pair(1.665));
    let summary = venue.ok(bert, "private/get_account_summary", json!({ "currency": "USDC" }));
    let left = summary["balance"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&(left - 0.09)), "{left}");
}

#[test]
fn what_is_larger_than_the_position_holds_margin_for_the_rest() {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", 60_000, json!({}));
    order(&mut venue, bert, "buy", 60_000, json!({}));
    order(&mut venue, bert, "sell", 120_000, json!({ "price": 61_000 }));
    let one = 0.02 * 60.0 / 61.0;
    assert!((held(&mut venue, bert) - one).abs() < 1e-8);
    // An in-flight edit holds its new amount.
    let open = venue.ok(bert, "private/get_open_orders", json!({}));
    let edit = json!({ "order_id": open[0]["order_id"], "amount": 180_000, "price": 61_000 });
    venue.ok(bert, "private/edit", edit);
    assert!((held(&mut venue, bert) - 2.0 * one).abs() < 1e-8);
}

/// Creates a venue in which bert cannot keep his position, and anna has the other side.
fn short_of_margin() -> (Venue, u64) {
    let mut poor = settings();
    poor.listings[0].contract.initial_margin_ppm = 10_000;
    poor.listings[0].contract.maintenance_margin_ppm = 5_000;
    poor.indices[0].2 = 10_000;
    let mut venue = Venue::of(poor);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    order(&mut venue, anna, "sell", 48_000_000, json!({}));
    let bought = order(&mut venue, bert, "buy", 48_000_000, json!({}));
    assert!(bought.get("error").is_none(), "{bought}");
    (venue, anna)
}

#[test]
fn a_position_is_closed_whatever_the_users_limits_and_kill_switch_say() {
    let (mut venue, anna) = short_of_margin();
    let limits = CommandKind::SetLimits { open_orders: 0, order_qty: Qty(1), order_notional: 1 };
    for session in [1, 2] {
        venue.command(SessionId(session), limits);
        venue.command(SessionId(session), CommandKind::KillSession { is_killed: true });
    }
    let forced = venue.front.counters();
    for _ in 0..2_000 {
        venue.wait(1_000_001);
        if forced.liquidations.read() > 0 {
            break;
        }
    }
    assert!(forced.liquidations.read() > 0, "the index moved against somebody");
    let told = venue.log.iter().filter(|command| matches!(command.kind, CommandKind::Force(_))).count();
    assert_eq!(told as u64, forced.liquidations.read(), "the log says that the venue did it");
    // The kill switch stops both, so there are no bids; with a counterparty the liquidation order trades.
    let bert = venue.login("bert");
    for _ in 0..500 {
        if is_forced(&mut venue, anna) {
            return;
        }
        let Some((session, direction)) = short(&mut venue, &[(anna, 1), (bert, 2)]) else {
            venue.wait(1_000_001);
            continue;
        };
        let other = if session == 1 { (bert, 2) } else { (anna, 1) };
        venue.command(SessionId(other.1), CommandKind::KillSession { is_killed: false });
        let free =
            CommandKind::SetLimits { open_orders: 9, order_qty: Qty(u64::MAX), order_notional: u64::MAX };
        venue.command(SessionId(other.1), free);
        // Well within the price limit of the liquidation order, however the index moves meanwhile.
        let ticker = venue.ok(anna, "public/ticker", json!({ "instrument_name": PERPETUAL }));
        let price = (ticker["mark_price"].as_f64().unwrap() * 2.0).round() / 2.0;
        let params = json!({ "instrument_name": PERPETUAL, "amount": 1_000, "price": price });
        venue.call(other.0, &format!("private/{direction}"), params);
        venue.wait(1_000_001);
        venue.command(SessionId(other.1), CommandKind::KillSession { is_killed: true });
    }
    panic!("nothing was closed by force");
}

fn is_forced(venue: &mut Venue, connection: u64) -> bool {
    let asked = json!({ "instrument_name": PERPETUAL, "count": 1 });
    let last = venue.ok(connection, "public/get_last_trades_by_instrument", asked);
    last["trades"][0]["liquidation"] == "T"
}

/// Returns the session of the account that is short of margin, and the direction of its position.
fn short(venue: &mut Venue, accounts: &[(u64, u16)]) -> Option<(u16, String)> {
    for (connection, session) in accounts {
        let asked = json!({ "instrument_name": PERPETUAL });
        let position = venue.ok(*connection, "private/get_position", asked);
        let summary = venue.ok(*connection, "private/get_account_summary", json!({ "currency": "BTC" }));
        let number = |name: &str| summary[name].as_f64().unwrap();
        if number("equity") < number("maintenance_margin") {
            return Some((*session, position["direction"].as_str().unwrap().to_owned()));
        }
    }
    None
}

fn get<'a>(path: &'a str, authorization: Option<&'a str>) -> HttpCall<'a> {
    HttpCall { connection: 1, method: "GET", target: path, path, query: Vec::new(), authorization, body: b"" }
}

#[test]
fn requests_over_http_without_a_login_share_the_credits_of_their_address() {
    /// Replaces a code while there is no reply yet.
    const WAITS: i64 = -1;
    let mut venue = Venue::new();
    let ask = |venue: &mut Venue, peer: [u8; 4], authorization: Option<&str>| {
        let number = venue.front.open_from(peer.into(), Transport::Http, venue.now_us);
        venue.front.handle_http(number, &get("/api/v2/public/get_time", authorization), venue.now_us);
        let reply = venue.frames(number).pop();
        venue.front.close(number, venue.now_us);
        reply.map_or(WAITS, |reply| reply["error"]["code"].as_i64().unwrap_or(0))
    };
    let codes: Vec<i64> = (0..150).map(|_| ask(&mut venue, [10, 0, 0, 1], None)).collect();
    assert_eq!((codes[99], codes[100], codes[149]), (0, 10028, 10028), "a hundred at once");
    assert_eq!(ask(&mut venue, [10, 0, 0, 2], None), 0, "another address has its own");
    venue.now_us += 1_000_000;
    let later = (0..150).filter(|_| ask(&mut venue, [10, 0, 0, 1], None) == 0).count();
    assert_eq!(later, 20, "twenty a second");
    // The number of guessed secrets is limited.
    let wrong = Some("Basic YW5uYTp3cm9uZw==");
    let tried: Vec<i64> = (0..40).map(|_| ask(&mut venue, [10, 0, 0, 3], wrong)).collect();
    assert_eq!((tried[19], tried[20], tried[39]), (13004, WAITS, WAITS));
    assert!(venue.front.counters().over_rate.read() > 0);
}

#[test]
fn what_is_refused_costs_credits() {
    let mut venue = Venue::new();
    let rubbish = venue.front.open_from([10, 0, 0, 1].into(), Transport::WebSocket, venue.now_us);
    for _ in 0..200 {
        venue.front.handle_frame(rubbish, b"{\"id\":1", venue.now_us);
    }
    let frames = venue.frames(rubbish);
    assert_eq!(frames.last().unwrap()["error"]["code"], 10028);
    assert_eq!((frames.len(), venue.front.poll_end(rubbish)), (101, Some("too_many_requests")));
    let guesser = venue.front.open_from([10, 0, 0, 2].into(), Transport::WebSocket, venue.now_us);
    let codes: Vec<i64> = (0..21)
        .map(|_| venue.refused(guesser, "private/get_positions", json!({ "access_token": "guess" })))
        .collect();
    assert_eq!((codes[19], codes[20]), (13009, 10028));
    let stranger = venue.front.open_from([10, 0, 0, 3].into(), Transport::WebSocket, venue.now_us);
    let codes: Vec<i64> =
        (0..101).map(|_| venue.refused(stranger, "private/get_positions", json!({}))).collect();
    assert_eq!((codes[99], codes[100]), (13009, 10028));
}

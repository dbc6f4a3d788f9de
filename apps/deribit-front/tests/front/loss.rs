//! Restarts after an accepted loss of the end of the log.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use crate::front::support::{Venue, changed};

const PERPETUAL: &str = "BTC-PERPETUAL";
const LABELS: [&str; 4] = ["plain", "first", "take", "stop"];
/// Time for the next price update and its consequences.
const SECOND_US: u64 = 1_000_001;

fn labels() -> Vec<String> {
    LABELS.iter().map(|label| (*label).to_owned()).collect()
}

/// Creates a venue that keeps the label numbers over restarts.
fn venue() -> (Venue, u64, u64) {
    let mut venue = Venue::new();
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    for label in LABELS {
        let order = json!({ "instrument_name": PERPETUAL, "amount": 10, "price": 50_000, "label": label });
        venue.ok(anna, "private/buy", order);
    }
    venue.ok(anna, "private/cancel_all", json!({}));
    (venue, anna, bert)
}

fn lost(venue: Venue, commands: usize) -> (Venue, u64, u64) {
    with_logins(venue.restarted_with(commands, labels()))
}

fn restarted(venue: Venue) -> (Venue, u64, u64) {
    let (venue, anna, bert) = with_logins(venue.restarted(labels()));
    assert_eq!(venue.notice, None, "the loss is reported once");
    (venue, anna, bert)
}

fn with_logins(mut venue: Venue) -> (Venue, u64, u64) {
    venue.wait(SECOND_US);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    (venue, anna, bert)
}

fn buy(venue: &mut Venue, connection: u64, amount: u64, price: u64) -> Value {
    let order = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price, "label": "plain" });
    venue.ok(connection, "private/buy", order)["order"].clone()
}

fn sell(venue: &mut Venue, connection: u64, amount: u64, price: u64) {
    let order = json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price });
    venue.ok(connection, "private/sell", order);
}

/// Enters a stop order that buys once the last price reaches 59 500.
fn stop_order(venue: &mut Venue, connection: u64, amount: u64) -> Value {
    let order = json!({
        "instrument_name": PERPETUAL, "amount": amount, "type": "stop_limit", "price": 59_000, "label": "stop",
        "trigger": "last_price", "trigger_price": 59_500
    });
    venue.ok(connection, "private/buy", order)["order"].clone()
}

fn linked(venue: &mut Venue, connection: u64, kind: &str, configs: Value) -> Value {
    let order = json!({
        "instrument_name": PERPETUAL, "amount": 100, "price": 59_000, "label": "first",
        "linked_order_type": kind, "trigger_fill_condition": "first_hit", "otoco_config": configs
    });
    venue.ok(connection, "private/buy", order)["order"].clone()
}

fn take() -> Value {
    json!({ "direction": "sell", "type": "limit", "price": 60_500, "amount": 100, "label": "take" })
}

fn stop() -> Value {
    json!({
        "direction": "sell", "type": "stop_market", "trigger": "mark_price", "trigger_price": 58_000, "amount": 100,
        "label": "stop"
    })
}

/// Returns label, state and amount of each open order.
fn open(venue: &mut Venue, connection: u64) -> Vec<(String, String, u64)> {
    let open = venue.ok(connection, "private/get_open_orders", json!({}));
    let text = |order: &Value, name: &str| order[name].as_str().unwrap().to_owned();
    let open = open.as_array().unwrap().iter();
    let mut open: Vec<_> = open
        .map(|order| (text(order, "label"), text(order, "order_state"), order["amount"].as_u64().unwrap()))
        .collect();
    open.sort();
    open
}

fn entries(entries: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
    entries.iter().map(|(label, state, amount)| ((*label).to_owned(), (*state).to_owned(), *amount)).collect()
}

/// Returns the places of the records in the log, as stored in the file.
fn places(venue: &Venue) -> Vec<u64> {
    let text = std::str::from_utf8(&venue.records).unwrap();
    let after = |line: &str| serde_json::from_str::<Value>(line).unwrap()["after"].as_u64().unwrap();
    text.lines().map(after).collect()
}

#[test]
fn a_stop_that_fires_after_a_loss_is_entered_once() {
    let (mut venue, anna, bert) = venue();
    buy(&mut venue, bert, 10, 59_000);
    sell(&mut venue, anna, 10, 59_000);
    let end = venue.log.len();
    (0..20).for_each(|_| drop(buy(&mut venue, anna, 10, 58_000)));
    stop_order(&mut venue, anna, 30);

    // The stop is a decision of the front, which is not lost.
    let (mut venue, anna, bert) = lost(venue, end);
    assert!(venue.notice.as_ref().unwrap().contains(&format!("ends with command {end}, in generation 1")));
    assert_eq!(open(&mut venue, anna), entries(&[("stop", "untriggered", 30)]));
    stop_order(&mut venue, anna, 40);
    sell(&mut venue, anna, 10, 59_500);
    buy(&mut venue, bert, 10, 59_500);
    let entered = entries(&[("stop", "open", 30), ("stop", "open", 40)]);
    assert_eq!(open(&mut venue, anna), entered);
    for _ in 0..3 {
        let (next, anna, _) = restarted(venue);
        venue = next;
        assert_eq!((open(&mut venue, anna), venue.engine.open_order_count()), (entered.clone(), 2));
        assert!(places(&venue).is_sorted(), "no record has fewer commands before it than an earlier one");
    }
}

#[test]
fn a_stop_that_was_entered_by_a_lost_command_waits_again() {
    let (mut venue, anna, bert) = venue();
    sell(&mut venue, anna, 10, 59_000);
    buy(&mut venue, bert, 10, 59_000);
    stop_order(&mut venue, anna, 30);
    sell(&mut venue, anna, 10, 59_500);
    let end = venue.log.len();
    buy(&mut venue, bert, 10, 59_500);
    assert_eq!(open(&mut venue, anna), entries(&[("stop", "open", 30)]));
    // The venue stops repeatedly before its next price update.
    let mut venue = venue.restarted_with(end, labels());
    for _ in 0..2 {
        let anna = venue.login("anna");
        assert!(open(&mut venue, anna).contains(&("stop".to_owned(), "untriggered".to_owned(), 30)));
        venue = venue.restarted(labels());
    }
    // Its trigger price was reached: it is entered although the trade is lost.
    let entered = entries(&[("", "open", 10), ("stop", "open", 30)]);
    for _ in 0..3 {
        let (next, anna, _) = restarted(venue);
        venue = next;
        assert_eq!((open(&mut venue, anna), venue.engine.open_order_count()), (entered.clone(), 2));
    }
}

#[test]
fn balances_after_a_loss_are_the_same_after_every_restart() {
    let (mut venue, anna, bert) = venue();
    sell(&mut venue, anna, 10_000, 59_000);
    buy(&mut venue, bert, 10_000, 59_000);
    let end = venue.log.len();
    (0..10).for_each(|_| drop(buy(&mut venue, anna, 10, 50_000)));
    // The settlement at 08:00, after a transfer and a trade that is lost.
    while venue.now_us % 86_400_000_000 != 8 * 3_600_000_000 {
        venue.wait(600_000_000);
    }
    venue.wait(SECOND_US);
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    venue.ok(
        anna,
        "private/submit_transfer_to_user",
        json!({ "currency": "BTC", "amount": 0.5, "destination": "BERT" }),
    );
    sell(&mut venue, anna, 20_000, 61_000);
    buy(&mut venue, bert, 20_000, 61_000);
    let withdrawal = json!({ "currency": "BTC", "amount": 0.25, "address": "a" });
    venue.ok(anna, "private/withdraw", withdrawal);
    let settled = |venue: &mut Venue, connection: u64| {
        let history = json!({ "currency": "BTC", "type": "settlement" });
        venue.ok(connection, "private/get_settlement_history_by_currency", history)["settlements"].clone()
    };
    let money = |venue: &mut Venue| {
        let mut all = Vec::new();
        for name in ["anna", "bert"] {
            let connection = venue.login(name);
            let log =
                json!({ "currency": "BTC", "start_timestamp": 0, "end_timestamp": 4_000_000_000_000_u64 });
            let summary = venue.ok(connection, "private/get_account_summary", json!({ "currency": "BTC" }));
            let position = json!({ "instrument_name": PERPETUAL });
            all.push([
                summary["balance"].clone(),
                venue.ok(connection, "private/get_transaction_log", log)["logs"].clone(),
                venue.ok(connection, "private/get_position", position)["size"].clone(),
                settled(venue, connection),
            ]);
        }
        all
    };
    let mut venue = venue.restarted_with(end, labels());
    let first = money(&mut venue);
    assert_eq!(first[0][2], json!(-10_000), "the second trade is lost");
    assert_eq!(first[0][3].as_array().unwrap().len(), 1);
    for _ in 0..2 {
        venue = venue.restarted(labels());
        assert_eq!(money(&mut venue), first);
    }
    // Later trades do not move the earlier records.
    let (anna, bert) = (venue.login("anna"), venue.login("bert"));
    sell(&mut venue, anna, 20_000, 60_500);
    buy(&mut venue, bert, 20_000, 60_500);
    (0..20).for_each(|_| drop(buy(&mut venue, anna, 10, 50_000)));
    let second = money(&mut venue);
    assert_eq!(second[0][2], json!(-30_000));
    for _ in 0..2 {
        venue = venue.restarted(labels());
        assert_eq!(money(&mut venue), second);
        assert!(places(&venue).is_sorted());
    }
}

#[test]
fn links_of_lost_orders_are_no_other_orders() {
    let (mut venue, anna, _) = venue();
    let end = venue.log.len();
    let kinds = ["one_triggers_other", "one_cancels_other", "one_triggers_one_cancels_other"];
    let placed: Vec<Value> = kinds
        .iter()
        .map(|kind| match *kind {
            "one_triggers_one_cancels_other" => linked(&mut venue, anna, kind, json!([take(), stop()])),
            "one_cancels_other" => linked(&mut venue, anna, kind, json!([stop()])),
            _ => linked(&mut venue, anna, kind, json!([take()])),
        })
        .collect();
    let children: Vec<Value> = placed
        .iter()
        .flat_map(|order| order["oto_order_ids"].as_array().cloned().unwrap_or_default())
        .collect();
    assert_eq!((open(&mut venue, anna).len(), children.len()), (7, 3));

    // The first order is lost, or only its links are recorded.
    let (mut venue, anna, bert) = lost(venue, end);
    assert!(venue.notice.as_ref().unwrap().contains("linked orders were cancelled"), "{:?}", venue.notice);
    assert!(open(&mut venue, anna).is_empty(), "what is linked with a lost order ends");
    for id in &children {
        let child = venue.ok(anna, "private/get_order_state", json!({ "order_id": id }));
        assert_eq!(
            (&child["order_state"], &child["cancel_reason"]),
            (&json!("cancelled"), &json!("oto_primary_closed"))
        );
    }
    // New orders reuse the numbers of the lost ones, without their properties.
    let plain: Vec<Value> = (0..7).map(|_| buy(&mut venue, anna, 10, 59_000)["order_id"].clone()).collect();
    assert!(placed.iter().all(|order| plain.contains(&order["order_id"])));
    for round in 0..3 {
        let all = venue.ok(anna, "private/get_open_orders", json!({}));
        for order in all.as_array().unwrap() {
            for name in ["oto_order_ids", "oco_ref", "is_primary_otoco"] {
                assert!(order.get(name).is_none(), "{round}: {order}");
            }
        }
        assert_eq!(open(&mut venue, anna), vec![("plain".to_owned(), "open".to_owned(), 10); 7], "{round}");
        let (next, again, _) = restarted(venue);
        venue = next;
        assert_eq!(again, anna);
    }
    sell(&mut venue, bert, 30, 59_000);
    venue.wait(SECOND_US);
    assert_eq!(open(&mut venue, anna).len(), 4, "nothing follows from their fills");
    // The numbers of the cancelled orders are not reused.
    let stop = stop_order(&mut venue, anna, 10);
    assert!(children.iter().all(|id| number_of(id) < number_of(&stop["order_id"])), "{stop} {children:?}");
}

/// Returns the number in the id of an untriggered order.
fn number_of(id: &Value) -> u64 {
    id.as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap()
}

#[test]
fn links_are_as_they_were_at_the_end_of_the_log() {
    let (mut venue, anna, bert) = venue();
    linked(&mut venue, anna, "one_triggers_one_cancels_other", json!([take(), stop()]));
    let ids = |venue: &mut Venue, connection: u64| -> Vec<Value> {
        let open = venue.ok(connection, "private/get_open_orders", json!({}));
        open.as_array().unwrap().iter().map(|order| order["order_id"].clone()).collect()
    };
    let before = ids(&mut venue, anna);
    assert_eq!(before.len(), 3);
    let end = venue.log.len();
    // The fill that releases both is lost.
    sell(&mut venue, bert, 100, 59_000);
    assert_eq!(open(&mut venue, anna), entries(&[("stop", "untriggered", 100), ("take", "open", 100)]));
    let (mut venue, anna, bert) = lost(venue, end);
    assert_eq!(ids(&mut venue, anna), before, "they wait for the order again");
    for _ in 0..2 {
        let (next, again, _) = restarted(venue);
        venue = next;
        assert_eq!((ids(&mut venue, again), again), (before.clone(), anna));
    }
    // After the restarts `anna` and `bert` have logged in the same way.
    sell(&mut venue, bert, 100, 59_000);
    let after = entries(&[("stop", "untriggered", 100), ("take", "open", 100)]);
    assert_eq!(open(&mut venue, anna), after);
    let (mut venue, anna, bert) = restarted(venue);
    assert_eq!(open(&mut venue, anna), after);
    buy(&mut venue, bert, 100, 60_500);
    assert!(open(&mut venue, anna).is_empty(), "one cancels the other");
}

#[test]
fn links_that_were_asked_for_with_a_lost_order_are_not_the_next_orders() {
    let (mut venue, anna, _) = venue();
    // Recorded before the log has the order: the record is before the end of the log.
    linked(&mut venue, anna, "one_triggers_other", json!([take()]));
    let end = venue.log.len() - 1;
    let (mut venue, anna, bert) = lost(venue, end);
    assert!(open(&mut venue, anna).is_empty());
    buy(&mut venue, anna, 10, 59_000);
    for _ in 0..2 {
        let (next, anna, _) = restarted(venue);
        venue = next;
        assert_eq!(open(&mut venue, anna), entries(&[("plain", "open", 10)]));
    }
    sell(&mut venue, bert, 10, 59_000);
    assert!(open(&mut venue, anna).is_empty());
}

#[test]
fn tokens_from_before_a_loss_are_refused() {
    let (mut venue, anna, _) = venue();
    let login = json!({
        "grant_type": "client_credentials", "client_id": "anna", "client_secret": "anna-secret", "scope": "session:desk"
    });
    let token = venue.ok(anna, "public/auth", login.clone());
    let shown = |token: &Value| json!({ "access_token": token["access_token"] });
    let renewal =
        |token: &Value| json!({ "grant_type": "refresh_token", "refresh_token": token["refresh_token"] });
    let (mut venue, ..) = restarted(venue);
    let connection = venue.connect();
    venue.ok(connection, "private/get_open_orders", shown(&token));
    // No command is missing: the log was continued after an accepted loss, and only its generation differs.
    for is_short in [true, false] {
        let end = venue.log.len() - usize::from(is_short);
        let (next, anna, _) = lost(venue, end);
        venue = next;
        let connection = venue.connect();
        assert_eq!(venue.refused(connection, "private/get_open_orders", shown(&token)), 13009);
        assert_eq!(venue.refused(connection, "public/auth", renewal(&token)), 13009);
        let token = venue.ok(anna, "public/auth", login.clone());
        let (next, ..) = restarted(venue);
        venue = next;
        let connection = venue.connect();
        venue.ok(connection, "private/get_open_orders", shown(&token));
        venue.ok(connection, "public/auth", renewal(&token));
    }
}

#[test]
fn what_was_delivered_before_a_loss_is_not_traded_again() {
    const OPTION: &str = "BTC-25DEC26-60000-C";
    let end_ms = crate::front::support::START_US / 1_000 + 60_000;
    let expires = [("expiration_timestamp = 1798185600000", format!("expiration_timestamp = {end_ms}"))];
    let expires = expires.each_ref().map(|(from, to)| (*from, to.as_str()));
    let mut venue = Venue::of(changed(&expires).unwrap());
    let anna = venue.login("anna");
    let order = json!({ "instrument_name": OPTION, "amount": 1, "price": 0.01 });
    venue.ok(anna, "private/buy", order);
    let end = venue.log.len();
    for _ in 0..62 {
        venue.wait(SECOND_US);
    }
    assert_eq!(venue.engine.open_order_count(), 0);
    let delivered = |venue: &mut Venue, connection: u64| {
        venue.ok(connection, "public/get_delivery_prices", json!({ "index_name": "btc_usd" }))["data"].clone()
    };
    let before = delivered(&mut venue, anna);
    assert_eq!(before.as_array().unwrap().len(), 1);
    let mut venue = venue.restarted_with(end, Vec::new());
    venue.wait(SECOND_US);
    for _ in 0..2 {
        let anna = venue.login("anna");
        assert_eq!((delivered(&mut venue, anna), venue.engine.open_order_count()), (before.clone(), 0));
        let commands = venue.log.len();
        venue = venue.restarted(Vec::new());
        venue.wait(SECOND_US);
        assert_eq!(venue.log.len(), commands, "it is suspended once");
    }
}

/// Returns orders, balances and positions of both accounts, without times.
fn state(venue: &mut Venue) -> Vec<Value> {
    let mut all = Vec::new();
    for name in ["anna", "bert"] {
        let connection = venue.login(name);
        let mut open = venue.ok(connection, "private/get_open_orders", json!({}));
        for order in open.as_array_mut().unwrap() {
            order["last_update_timestamp"] = Value::Null;
        }
        let summary = venue.ok(connection, "private/get_account_summary", json!({ "currency": "BTC" }));
        let position = venue.ok(connection, "private/get_position", json!({ "instrument_name": PERPETUAL }));
        all.extend([open, summary["balance"].clone(), position["size"].clone()]);
    }
    all
}

/// Sends one random request.
fn act(venue: &mut Venue, rng: &mut Xoshiro256PlusPlus) {
    let mut below = |end: u64| rng.next_u64() % end;
    let name = ["anna", "bert"][below(2) as usize];
    let connection = venue.login(name);
    let (amount, price) = (10 + 10 * below(5), 59_000 + 100 * below(20));
    let side = ["private/buy", "private/sell"][below(2) as usize];
    let child = |price: u64| json!({ "direction": "sell", "type": "limit", "price": price, "label": "take" });
    let mut params =
        json!({ "instrument_name": PERPETUAL, "amount": amount, "price": price, "label": "plain" });
    let kind = below(8);
    if kind == 0 {
        params["linked_order_type"] = "one_triggers_one_cancels_other".into();
        params["trigger_fill_condition"] = "incremental".into();
        params["otoco_config"] = json!([child(61_000), stop()]);
    } else if kind == 1 {
        params["linked_order_type"] = "one_cancels_other".into();
        params["otoco_config"] = json!([child(61_500)]);
    } else if kind == 2 {
        params["type"] = "stop_limit".into();
        params["trigger"] = "last_price".into();
        params["trigger_price"] = (59_000 + 100 * below(20)).into();
    }
    match kind {
        6 => {
            let open = venue.ok(connection, "private/get_open_orders", json!({}));
            if let Some(order) = open.as_array().unwrap().first() {
                venue.call(connection, "private/cancel", json!({ "order_id": order["order_id"] }));
            }
        }
        7 => {
            let to = if name == "anna" { "BERT" } else { "ANNA" };
            let transfer = json!({ "currency": "BTC", "amount": 0.01, "destination": to });
            venue.ok(connection, "private/submit_transfer_to_user", transfer);
        }
        // A stop whose trigger price is already reached is rejected.
        _ => drop(venue.call(connection, side, params)),
    }
    venue.front.close(connection, venue.now_us);
    venue.wait(1_000 * below(2_000));
}

#[test]
fn the_state_after_a_loss_is_the_same_after_every_restart() {
    for seed in 0..10 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut venue, ..) = venue();
        let first = venue.log.len() as u64;
        for round in 0..3 {
            (0..30).for_each(|_| act(&mut venue, &mut rng));
            let end = first + rng.next_u64() % (venue.log.len() as u64 - first + 1);
            venue = venue.restarted_with(end as usize, labels());
            venue.wait(3 * SECOND_US);
            let lost = state(&mut venue);
            for _ in 0..2 {
                let (next, ..) = restarted(venue);
                venue = next;
                assert_eq!(state(&mut venue), lost, "seed {seed}, round {round}");
                assert!(places(&venue).is_sorted(), "seed {seed}, round {round}");
            }
            let open = [&lost[0], &lost[3]].map(|open| open.as_array().unwrap().iter());
            let in_book = open.into_iter().flatten().filter(|order| order["order_state"] == "open");
            assert_eq!(in_book.count() as u64, venue.engine.open_order_count(), "seed {seed}, round {round}");
        }
    }
}

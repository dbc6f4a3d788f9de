//! Fault injection: each fault works as documented and is counted, and none happens unless enabled.

use serde_json::{Value, json};
use tickpath_deribit_front::{FaultKind, Outage};

use crate::front::support::{Venue, changed};

const PERPETUAL: &str = "BTC-PERPETUAL";

fn buy(price: u64, label: &str) -> Value {
    json!({ "instrument_name": PERPETUAL, "amount": 10, "price": price, "label": label })
}

fn open_labels(venue: &mut Venue, connection: u64) -> Vec<String> {
    let open = venue.ok(connection, "private/get_open_orders", json!({}));
    let mut labels: Vec<String> =
        open.as_array().unwrap().iter().map(|order| order["label"].as_str().unwrap().to_owned()).collect();
    labels.sort();
    labels
}

/// Creates a venue and two connections of one user.
fn venue() -> (Venue, u64, u64) {
    let mut venue = Venue::new();
    let (anna, again) = (venue.login("anna"), venue.login("anna"));
    (venue, anna, again)
}

#[test]
fn nothing_goes_wrong_unless_it_is_wanted() {
    let (mut venue, anna, _) = venue();
    let faults = venue.front.faults();
    assert!(!faults.is_armed());
    for number in 0..50 {
        venue.ok(anna, "private/buy", buy(50_000 + number, "x"));
        venue.wait(1_000_000);
    }
    assert!(FaultKind::ALL.iter().all(|kind| faults.count(*kind) == 0));
    assert_eq!(faults.to_string(), "faults");
}

#[test]
fn a_reply_is_lost_while_its_order_lives() {
    let (mut venue, anna, again) = venue();
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::ReplyLost, 1);
    assert_eq!(venue.call(anna, "private/buy", buy(59_000, "lost")), Value::Null);
    assert_eq!(venue.front.poll_outage(anna), None);
    assert_eq!(open_labels(&mut venue, again), ["lost"]);
    venue.ok(anna, "private/buy", buy(59_001, "next"));
    assert_eq!(open_labels(&mut venue, anna), ["lost", "next"]);
    assert_eq!((faults.count(FaultKind::ReplyLost), faults.to_string().as_str()), (1, "faults reply_lost 1"));
}

#[test]
fn a_connection_is_cut_before_the_request_or_after_it() {
    let (mut venue, anna, again) = venue();
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::ReplyCut, 1);
    assert_eq!(venue.call(anna, "private/buy", buy(59_000, "done")), Value::Null);
    assert_eq!(venue.front.poll_outage(anna), Some(Outage::Cut));
    venue.front.close(anna, venue.now_us);
    assert_eq!(venue.front.poll_outage(anna), None);
    let other = venue.login("anna");
    faults.happen_next(FaultKind::RequestLost, 1);
    assert_eq!(venue.call(other, "private/buy", buy(59_001, "never")), Value::Null);
    assert_eq!(venue.front.poll_outage(other), Some(Outage::Cut));
    assert_eq!(open_labels(&mut venue, again), ["done"]);
}

#[test]
fn a_slow_reply_comes_when_its_time_is_over() {
    let plan = "matching_rate = 1000\n[faults]\nreply_delay = '2s'\n";
    let mut venue = Venue::of(tables(plan));
    let anna = venue.login("anna");
    venue.front.faults().happen_next(FaultKind::ReplySlow, 1);
    assert_eq!(venue.call(anna, "private/buy", buy(59_000, "slow")), Value::Null);
    assert_eq!(open_labels(&mut venue, anna), ["slow"]);
    venue.wait(1_900_000);
    assert!(venue.frames(anna).is_empty());
    venue.wait(200_000);
    let frames = venue.frames(anna);
    assert_eq!((frames.len(), &frames[0]["result"]["order"]["label"]), (1, &json!("slow")));
}

/// Adds `[faults]` to the settings.
fn tables(faults: &str) -> tickpath_deribit_front::FrontSettings {
    let (_, table) = faults.split_once("[faults]\n").unwrap();
    let inline: Vec<&str> = table.lines().collect();
    let change = format!("faults = {{ {} }}\nmatching_rate = 1000", inline.join(", "));
    changed(&[("matching_rate = 1000", &change)]).unwrap()
}

#[test]
fn over_the_rate_nothing_is_done() {
    let (mut venue, anna, _) = venue();
    venue.front.faults().happen_next(FaultKind::RateLimited, 2);
    assert_eq!(venue.refused(anna, "private/buy", buy(59_000, "a")), 10_028);
    assert_eq!(venue.refused(anna, "private/cancel_all", json!({})), 10_028);
    venue.ok(anna, "private/buy", buy(59_000, "b"));
    assert_eq!(open_labels(&mut venue, anna), ["b"]);
}

#[test]
fn a_token_that_is_over_is_renewed_and_one_that_is_taken_back_is_not() {
    let (mut venue, _, _) = venue();
    let connection = venue.connect();
    let login =
        json!({ "grant_type": "client_credentials", "client_id": "anna", "client_secret": "anna-secret" });
    let renew =
        |tokens: &Value| json!({ "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"] });
    let faults = venue.front.faults();

    let tokens = venue.ok(connection, "public/auth", login.clone());
    faults.happen_next(FaultKind::TokenExpired, 1);
    assert_eq!(venue.refused(connection, "private/get_positions", json!({})), 13_009);
    assert_eq!(venue.refused(connection, "private/get_positions", json!({})), 13_009);
    let tokens = venue.ok(connection, "public/auth", renew(&tokens));
    venue.ok(connection, "private/get_positions", json!({}));

    faults.happen_next(FaultKind::TokensRevoked, 1);
    assert_eq!(venue.refused(connection, "private/get_positions", json!({})), 13_009);
    assert_eq!(venue.refused(connection, "public/auth", renew(&tokens)), 13_009);
    venue.ok(connection, "public/auth", login.clone());
    venue.ok(connection, "private/get_positions", json!({}));

    // Without a fault, after the normal 900 s: the connection stays, and its login expires.
    let tokens = venue.ok(connection, "public/auth", login);
    for _ in 0..9 {
        venue.wait(100_000_000);
        venue.ok(connection, "public/test", json!({}));
    }
    assert_eq!(venue.refused(connection, "private/get_positions", json!({})), 13_009);
    venue.ok(connection, "public/auth", renew(&tokens));
    venue.ok(connection, "private/get_positions", json!({}));
}

#[test]
fn heartbeats_are_missed() {
    let (mut venue, anna, _) = venue();
    venue.ok(anna, "public/set_heartbeat", json!({ "interval": 10 }));
    venue.front.faults().set(FaultKind::HeartbeatMissed, 1_000_000);
    venue.wait(10_000_001);
    venue.wait(9_000_000);
    assert!(venue.frames(anna).is_empty());
    venue.front.faults().stop();
    venue.wait(1_100_000);
    assert_eq!(venue.frames(anna)[0]["method"], "heartbeat");
}

#[test]
fn changes_of_a_book_come_twice_out_of_order_or_not_at_all() {
    let (mut venue, anna, _) = venue();
    let channel = format!("book.{PERPETUAL}.raw");
    venue.ok(anna, "private/subscribe", json!({ "channels": [channel] }));
    let first = venue.news(anna, &channel);
    assert_eq!(first[0]["type"], "snapshot");
    let faults = venue.front.faults();
    let ids = |venue: &mut Venue, kind: Option<FaultKind>, orders: u64| -> Vec<u64> {
        kind.iter().for_each(|kind| faults.happen_next(*kind, 1));
        for number in 0..orders {
            venue.ok(anna, "private/buy", buy(59_000 - number, "x"));
        }
        venue.news(anna, &channel).iter().map(|change| change["change_id"].as_u64().unwrap()).collect()
    };
    let plain = ids(&mut venue, None, 2);
    assert!(plain.len() == 2 && plain[0] < plain[1]);
    let twice = ids(&mut venue, Some(FaultKind::BookDuplicated), 2);
    assert!(twice.len() == 3 && twice[0] == twice[1] && twice[1] < twice[2], "{twice:?}");
    let swapped = ids(&mut venue, Some(FaultKind::BookSwapped), 3);
    assert!(swapped.len() == 3 && swapped[1] < swapped[0] && swapped[0] < swapped[2], "{swapped:?}");
    assert_eq!(ids(&mut venue, Some(FaultKind::BookDropped), 3).len(), 2);
    // A snapshot is not affected.
    faults.set(FaultKind::BookDropped, 1_000_000);
    venue.ok(anna, "private/unsubscribe", json!({ "channels": [channel] }));
    venue.ok(anna, "private/subscribe", json!({ "channels": [channel] }));
    assert_eq!(venue.news(anna, &channel).len(), 1);
}

#[test]
fn cables_are_pulled_and_connections_stand_still() {
    let (mut venue, anna, again) = venue();
    let faults = venue.front.faults();
    faults.happen_next(FaultKind::HalfOpen, 1);
    venue.wait(100_001);
    for connection in [anna, again] {
        assert_eq!(venue.front.poll_outage(connection), Some(Outage::Silent));
    }
    let other = venue.login("bert");
    assert_eq!(venue.front.poll_outage(other), None);
    venue.wait(59_000_000);
    assert_eq!(venue.front.poll_outage(anna), Some(Outage::Silent));
    venue.wait(1_000_000);
    assert_eq!(venue.front.poll_outage(anna), Some(Outage::Cut));
    assert_eq!(venue.front.poll_outage(other), None);
    faults.happen_next(FaultKind::Cut, 1);
    venue.wait(100_001);
    assert_eq!(venue.front.poll_outage(other), Some(Outage::Cut));
    // By chance, in each second: half of many connections.
    faults.set(FaultKind::Cut, 500_000);
    let many: Vec<u64> = (0..200).map(|_| venue.connect()).collect();
    venue.wait(1_000_001);
    let cut = many.iter().filter(|number| venue.front.poll_outage(**number).is_some()).count();
    assert!((50..150).contains(&cut), "{cut}");
}

#[test]
fn maintenance_closes_everything_and_is_over_in_the_end() {
    let (mut venue, anna, again) = venue();
    assert!(venue.front.maintenance().is_none());
    venue.front.faults().happen_next(FaultKind::Maintenance, 1);
    venue.wait(100_001);
    for connection in [anna, again] {
        assert_eq!(venue.front.poll_end(connection), Some("system_maintenance"));
    }
    let refusal = venue.front.maintenance().unwrap();
    assert_eq!(refusal.error, Some(11_051));
    venue.wait(5_000_000);
    assert!(venue.front.maintenance().is_none());
    venue.login("anna");
}

#[test]
fn chances_are_parts_and_for_this_machine_alone() {
    let settings = |faults: &str| {
        let change = format!("faults = {{ {faults} }}\nmatching_rate = 1000");
        changed(&[("matching_rate = 1000", &change)])
    };
    let plan = settings("seed = 3, cut = '0.01', maintenance = '1', half_open_for = '3s'").unwrap().faults;
    assert_eq!((plan.ppm[FaultKind::Cut as usize], plan.half_open_us), (10_000, 3_000_000));
    for (faults, words) in [
        ("cut = '1.5'", "faults.cut"),
        ("book_dropped = '-0.1'", "0 to 1"),
        ("reply_lost = 'often'", "'often' is no number"),
        ("address = '0.0.0.0:26420'", "unknown field"),
    ] {
        let error = settings(faults).unwrap_err().to_string();
        assert!(error.contains(words), "{faults}: {error}");
    }
    let change = "address = '192.0.2.1:26420'\nfaults = { cut = '0.5' }\nmatching_rate = 1000";
    let error = changed(&[("matching_rate = 1000", change)]).unwrap_err().to_string();
    assert!(error.contains("not the loopback interface") && error.contains("remove"), "{error}");
}

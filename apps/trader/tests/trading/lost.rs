//! Orders when the connection is lost: before a request, between a request and its answer, and permanently.

use tickpath_trading::{EngineConfig, OrderChange, RECONCILE_AFTER, Refusal, StopReason};
use tickpath_types::{CancelReason, Nanos, Price, Qty, RejectReason, Side, TimeInForce, UserRefNum};

use crate::site::{QUERY, Site, buy, sell};
use crate::strategy::Action;

const UNANSWERED: RejectReason = RejectReason::Unanswered;

#[test]
fn requests_are_refused_while_disconnected() {
    let mut site = Site::new();
    let resting = site.enter(buy(10, 999_000));
    site.proxy.is_accepting = false;
    site.lose_connection();
    for action in [
        Action::Enter(buy(10, 998_000)),
        Action::Replace(UserRefNum(resting), Qty(20), Price(998_000)),
        Action::Cancel(UserRefNum(resting)),
    ] {
        assert_eq!(site.request(action), Err(Refusal::NotConnected));
    }
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.refused_disconnected), (1, 3));

    site.proxy.is_accepting = true;
    site.wait_for_login();
    assert_eq!(site.venue_view.order_server.requests.read(), 1 + QUERY, "nothing is sent late");
    assert_eq!(site.request(Action::Cancel(UserRefNum(resting))), Ok(UserRefNum(resting)));
    site.until("the cancel's answer", |site| site.script.changes_of(resting).len() == 2);
    site.enter(buy(10, 998_000));
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.unanswered, snapshot.stopped), (1, 0, None));
}

#[test]
fn a_lost_answer_arrives_once_after_the_next_login() {
    let mut site = Site::new();
    site.proxy.forwards_answers = false;
    let order = site.request(Action::Enter(buy(10, 999_000))).unwrap();
    site.until("the venue's answer", |site| site.venue_view.order_server.responses.read() == 1 + QUERY);
    site.lose_connection();
    assert_eq!(site.script.changes_of(order.0), []);
    site.wait_for_login();
    site.until("the acceptance", |site| !site.script.changes_of(order.0).is_empty());
    site.pass(RECONCILE_AFTER + RECONCILE_AFTER + RECONCILE_AFTER);
    assert_eq!(site.script.changes_of(order.0), [OrderChange::Accepted], "and it is not given up");
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.unanswered), (1, 0));
}

#[test]
fn an_undelivered_order_is_rejected_at_reconciliation() {
    let mut site = Site::new();
    site.proxy.forwards_requests = false;
    let order = site.request(Action::Enter(buy(10, 999_000))).unwrap();
    site.pass(Nanos::from_millis(10));
    site.lose_connection();
    site.wait_for_login();
    site.pass(RECONCILE_AFTER.since(Nanos::from_millis(300)));
    assert_eq!(site.snapshot().open_orders, 1, "the venue may still answer: it counts as open");
    assert_eq!(site.script.changes_of(order.0), []);
    site.until("the end of the doubt", |site| !site.script.changes_of(order.0).is_empty());
    assert_eq!(site.script.changes_of(order.0), [OrderChange::Rejected { reason: UNANSWERED }]);
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.unanswered), (0, 1));
    assert_eq!(site.venue_view.order_server.requests.read(), QUERY, "it was not sent again");
    site.enter(buy(10, 999_000));
}

#[test]
fn an_order_dropped_with_a_notice_is_rejected() {
    let mut site = Site::new();
    let resting = site.enter(buy(10, 998_000));
    site.proxy.forwards_requests = false;
    let dropped = site.request(Action::Enter(buy(10, 999_000))).unwrap();
    site.until("the request on the cable", |site| site.view.gateway.requests.read() == 2 + QUERY);
    site.proxy.drop_requests_with_notice();
    site.proxy.forwards_requests = true;
    // Later requests are answered as usual.
    let other = site.enter(buy(10, 997_000));
    site.pass(RECONCILE_AFTER.since(Nanos::from_millis(300)));
    assert_eq!(site.script.changes_of(dropped.0), [], "the venue may still answer");
    site.until("the end of the doubt", |site| !site.script.changes_of(dropped.0).is_empty());
    assert_eq!(site.script.changes_of(dropped.0), [OrderChange::Rejected { reason: UNANSWERED }]);
    assert_eq!(
        site.script.changes_of(resting).len() + site.script.changes_of(other).len(),
        2,
        "both accepted"
    );
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.unanswered), (2, 1));
    assert_eq!(site.view.gateway.disconnects.read(), 0);
}

#[test]
fn later_drops_do_not_delay_reconciliation() {
    let mut site = Site::new();
    let drop_one = |site: &mut Site| {
        let before = site.view.gateway.requests.read();
        site.proxy.forwards_requests = false;
        let dropped = site.request(Action::Enter(buy(10, 999_000))).unwrap();
        site.until("the request on the cable", |site| site.view.gateway.requests.read() > before);
        site.proxy.drop_requests_with_notice();
        site.proxy.forwards_requests = true;
        dropped.0
    };
    let first = drop_one(&mut site);
    let mut others = vec![];
    while others.len() < 12 {
        // Drop four requests per `RECONCILE_AFTER`.
        site.pass(Nanos(RECONCILE_AFTER.0 / 4));
        others.push(drop_one(&mut site));
    }
    let is_over = [OrderChange::Rejected { reason: UNANSWERED }];
    assert_eq!(site.script.changes_of(first), is_over);
    site.until("the end of every doubt", |site| {
        others.iter().all(|order| !site.script.changes_of(*order).is_empty())
    });
    assert!(others.iter().all(|order| site.script.changes_of(*order) == is_over));
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.unanswered), (0, 13));
    site.enter(buy(10, 999_000));
}

#[test]
fn an_undelivered_cancel_leaves_the_order_live() {
    let mut site = Site::new();
    let order = site.enter(buy(10, 999_000));
    site.proxy.forwards_requests = false;
    site.request(Action::Cancel(UserRefNum(order))).unwrap();
    site.pass(Nanos::from_millis(10));
    site.lose_connection();
    site.wait_for_login();
    site.until("the end of the doubt", |site| site.script.changes_of(order).len() == 2);
    assert_eq!(site.script.changes_of(order)[1], OrderChange::CancelRejected { reason: UNANSWERED });
    assert_eq!(site.snapshot().open_orders, 1);
    site.request(Action::Cancel(UserRefNum(order))).unwrap();
    site.until("the cancel's answer", |site| site.script.changes_of(order).len() == 3);
    let canceled = OrderChange::Canceled { decrement: Qty(10), reason: CancelReason::User };
    assert_eq!(site.script.changes_of(order)[2], canceled);
    assert_eq!(site.snapshot().open_orders, 0);
}

#[test]
fn the_kill_switch_cancels_after_the_reconnect() {
    let mut site = Site::new();
    site.enter(buy(10, 999_000));
    site.proxy.forwards_requests = false;
    site.request(Action::Cancel(UserRefNum(1))).unwrap();
    site.request(Action::Enter(buy(20, 998_000))).unwrap();
    site.lose_connection();
    site.kill.pull();
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.stopped), (2, Some(StopReason::Killed)));
    site.wait_for_login();
    // The venue received neither the second order nor the first cancel; the trader sends the cancel again.
    site.until("the end of all", |site| site.script.changes_of(1).len() == 3);
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.counters.unanswered), (0, 2));
    assert_eq!(site.script.changes_of(2), [OrderChange::Rejected { reason: UNANSWERED }]);
}

#[test]
fn a_lost_connection_stops_the_engine_after_its_limit() {
    let limit = Nanos::from_secs(3);
    let mut site = Site::with(&EngineConfig { disconnect_stop: Some(limit), ..EngineConfig::default() });
    site.enter(buy(10, 999_000));
    site.enter(sell(10, 1_001_000));
    site.proxy.is_accepting = false;
    site.lose_connection();
    site.pass(limit.since(Nanos::from_millis(300)));
    assert_eq!(site.snapshot().stopped, None);
    site.pass(Nanos::from_millis(300));
    let snapshot = site.snapshot();
    assert_eq!((snapshot.stopped, snapshot.open_orders), (Some(StopReason::Disconnected), 2));
    assert_eq!(site.view.gateway.disconnects.read(), 1, "a vain attempt is no connection lost");

    site.proxy.is_accepting = true;
    site.until("the cancels", |site| site.script.changes_of(2).len() == 2);
    let snapshot = site.snapshot();
    assert_eq!((snapshot.stopped, snapshot.open_orders), (Some(StopReason::Disconnected), 0));
}

#[test]
fn a_reconnect_in_time_does_not_stop_the_engine() {
    let limit = Nanos::from_secs(3);
    let mut site = Site::with(&EngineConfig { disconnect_stop: Some(limit), ..EngineConfig::default() });
    for _ in 0..3 {
        site.lose_connection();
        site.wait_for_login();
    }
    site.pass(limit + limit);
    assert_eq!(site.snapshot().stopped, None);
}

#[test]
fn a_fill_resolves_an_undelivered_cancel() {
    let mut site = Site::new();
    let order = site.enter(buy(10, 999_000));
    site.proxy.forwards_requests = false;
    site.request(Action::Cancel(UserRefNum(order))).unwrap();
    site.proxy.is_accepting = false;
    site.lose_connection();
    site.rival_enters(1, Side::Sell, 10, 999_000, TimeInForce::Ioc);
    site.proxy.is_accepting = true;
    site.wait_for_login();
    site.until("the fill", |site| site.script.changes_of(order).len() == 2);
    site.pass(RECONCILE_AFTER + RECONCILE_AFTER + RECONCILE_AFTER);
    assert!(matches!(site.script.changes_of(order)[..], [_, OrderChange::Executed { qty: Qty(10), .. }]));
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.positions[0].net_qty()), (0, 10));
    assert_eq!(snapshot.counters.unanswered, 0, "the order's end is the answer");
}

#[test]
fn a_login_beside_a_stale_session_is_retried() {
    let mut site = Site::new();
    let order = site.enter(buy(10, 999_000));
    site.proxy.cut_client_side();
    site.until("the refused login", |site| site.venue_view.order_server.logins_refused.read() > 0);
    assert_eq!(site.view.gateway.logged_in.read(), 0);
    site.cut_connection();
    site.wait_for_login();
    site.request(Action::Cancel(UserRefNum(order))).unwrap();
    site.until("the cancel's answer", |site| site.script.changes_of(order).len() == 2);
}

//! Limits of a single user.

use tickpath_exchange::{RateLimit, UserLimits, VenueSettings};
use tickpath_types::{InstrumentId, Nanos, OrderEventKind, OrderRequest, Qty, RejectReason, Side};

use crate::support::{Client, Rig, cancel, enter, ioc, order, replace, settings};

const PRICE: i64 = 1_000_000;

/// Settings in which ANNA has these limits, and the other users have none.
fn limited(limits: UserLimits) -> VenueSettings {
    let mut settings = settings();
    settings.users[0].limits = limits;
    settings
}

fn assert_accepted(rig: &mut Rig, client: &mut Client, request: &OrderRequest) {
    let answer = rig.submit(client, request);
    assert!(
        matches!(answer, OrderEventKind::Accepted { .. } | OrderEventKind::Replaced { .. }),
        "{answer:?}"
    );
}

fn assert_refused(rig: &mut Rig, client: &mut Client, request: &OrderRequest, expected: RejectReason) {
    match rig.submit(client, request) {
        OrderEventKind::Rejected { user_ref, reason, .. } => {
            assert_eq!((user_ref, reason), (request.user_ref(), expected));
        }
        answer => panic!("{answer:?} in place of a refusal"),
    }
}

#[test]
fn quantity_and_notional_are_limited_exactly() {
    let limits = UserLimits {
        order_qty: Some(Qty(100)),
        order_notional: Some(90 * 1_000_000),
        ..UserLimits::default()
    };
    let mut rig = Rig::with(&limited(limits));
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    assert_accepted(&mut rig, &mut anna, &enter(1, Side::Buy, 90, PRICE));
    assert_refused(
        &mut rig,
        &mut anna,
        &enter(2, Side::Buy, 90, PRICE + 100),
        RejectReason::NotionalAboveLimit,
    );
    assert_accepted(&mut rig, &mut anna, &enter(3, Side::Buy, 100, 900_000));
    assert_refused(&mut rig, &mut anna, &enter(4, Side::Buy, 101, 900_000), RejectReason::QtyAboveLimit);
    assert_refused(&mut rig, &mut anna, &replace(1, 5, 101, 900_000), RejectReason::QtyAboveLimit);
    assert_refused(&mut rig, &mut anna, &replace(1, 6, 91, PRICE), RejectReason::NotionalAboveLimit);
    assert_accepted(&mut rig, &mut anna, &replace(1, 7, 89, PRICE));
    assert_accepted(&mut rig, &mut bert, &enter(1, Side::Buy, 10_000, PRICE));
}

#[test]
fn open_orders_are_limited_within_one_write() {
    let mut rig = Rig::with(&limited(UserLimits { open_orders: Some(3), ..UserLimits::default() }));
    let mut anna = rig.log_in("ANNA");
    // Send all orders in one write, so that none is answered before the last is read.
    let requests =
        (1..=5).flat_map(|user_ref| crate::support::request_packet(&enter(user_ref, Side::Buy, 1, PRICE)));
    anna.send(&requests.collect::<Vec<u8>>());
    for user_ref in 1..=5 {
        match rig.receive_event(&mut anna) {
            OrderEventKind::Accepted { order, .. } => assert!(order.user_ref.0 == user_ref && user_ref <= 3),
            OrderEventKind::Rejected { user_ref: refused, reason, .. } => {
                assert!(refused.0 == user_ref && user_ref > 3);
                assert_eq!(reason, RejectReason::OpenOrdersAboveLimit);
            }
            other => panic!("{other:?}"),
        }
    }
    // A replacement adds no open order, and an IOC order never rests.
    assert_accepted(&mut rig, &mut anna, &replace(1, 6, 1, PRICE));
    assert_accepted(&mut rig, &mut anna, &ioc(7, Side::Buy, 1, PRICE));
    rig.receive_event(&mut anna);
    rig.submit(&mut anna, &cancel(2, 0));
    assert_accepted(&mut rig, &mut anna, &enter(8, Side::Buy, 1, PRICE));
    assert_refused(&mut rig, &mut anna, &enter(9, Side::Buy, 1, PRICE), RejectReason::OpenOrdersAboveLimit);
}

#[test]
fn the_rate_refuses_new_orders_and_lets_cancels_pass() {
    let rate = Some(RateLimit { per_second: 10, burst: 3 });
    let mut rig = Rig::with(&limited(UserLimits { rate, ..UserLimits::default() }));
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=3 {
        assert_accepted(&mut rig, &mut anna, &enter(user_ref, Side::Buy, 1, PRICE));
    }
    assert_refused(&mut rig, &mut anna, &enter(4, Side::Buy, 1, PRICE), RejectReason::RateAboveLimit);
    assert_refused(&mut rig, &mut anna, &replace(1, 5, 2, PRICE), RejectReason::RateAboveLimit);
    let answer = rig.submit(&mut anna, &cancel(1, 0));
    assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
    rig.advance(Nanos::from_millis(200));
    assert_accepted(&mut rig, &mut anna, &enter(6, Side::Buy, 1, PRICE));
    assert_eq!(rig.view.order_server.requests_refused.read(), 2);
    assert_eq!(rig.view.users[0].requests_refused.read(), 2);
    assert_eq!(rig.allocations_of(10), 0);
}

#[test]
fn a_user_trades_only_allowed_instruments() {
    let mut settings = settings();
    settings.users[0].instruments = Some(vec![InstrumentId(2)]);
    let mut rig = Rig::with(&settings);
    let mut anna = rig.log_in("ANNA");
    assert_refused(&mut rig, &mut anna, &enter(1, Side::Buy, 1, PRICE), RejectReason::InstrumentNotAllowed);
    let mut allowed = order(2, Side::Buy, 1, PRICE);
    allowed.instrument = InstrumentId(2);
    assert_accepted(&mut rig, &mut anna, &OrderRequest::Enter(allowed));
}

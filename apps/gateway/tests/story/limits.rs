//! Limits published by a risk manager.

use tickpath_gateway_protocol::{
    AckStatus, AckType, ErrorCode, Event, OrderAck, OrderStatus, RiskLimits, SetRiskLimits, Side,
};

use crate::support::{PERPETUAL, TestClient, TestGateway, TestVenue, fixed};

/// Error of a rejected order.
fn refusal(client: &mut TestClient, id: u64) -> ErrorCode {
    client.wait("a refusal", |own| {
        let of_order = |(_, ack): (Event, OrderAck)| {
            (ack.client_order_id == id && ack.status == AckStatus::REJECTED).then_some(ack.error)
        };
        own.all::<OrderAck>().find_map(of_order)
    })
}

/// Publishes limits; returns the error if they are rejected.
fn publish(client: &mut TestClient, account: u16, limits: &SetRiskLimits) -> ErrorCode {
    let id = client.client.request(account, 0, 0, limits).unwrap();
    client.wait("the answer to limits", |own| {
        let of_request = |(_, ack): (Event, OrderAck)| {
            (ack.request == AckType::SET_RISK_LIMITS && ack.request_id == id).then_some(ack.error)
        };
        own.all::<OrderAck>().find_map(of_request)
    })
}

#[test]
fn nothing_trades_before_limits_are_published_and_then_within_them() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let more = "[limits]\nwait_for_risk_limits = true\n\
                [users.risk]\npassword = 'test'\naccounts = ['A1']\nrisk_manager = true\nrequest_limit = 100\n";
    let gateway = TestGateway::start_with(folder.path(), venue.address, more);
    let (mut trader, mut risk) = (gateway.client("trader"), gateway.client("risk"));
    let (account, symbol) = trader.ready(PERPETUAL);
    risk.ready(PERPETUAL);
    let early = trader.create(account, symbol, Side::BUY, "100", "59000");
    assert_eq!(refusal(&mut trader, early), ErrorCode::NO_RISK_LIMITS);

    let limits = SetRiskLimits { max_order_quantity: fixed("200"), caps: 1, ..SetRiskLimits::default() };
    assert_eq!(publish(&mut trader, account, &limits), ErrorCode::NOT_PERMITTED);
    assert_eq!(publish(&mut risk, account + 1, &limits), ErrorCode::UNKNOWN_ACCOUNT);
    assert_eq!(publish(&mut risk, account, &SetRiskLimits { caps: 16, ..limits }), ErrorCode::INVALID_TERMS);
    assert_eq!(publish(&mut risk, account, &limits), ErrorCode::default());
    trader.wait("limits", |own| {
        own.all::<RiskLimits>().find(|(_, limits)| limits.max_order_quantity == fixed("200")).map(|_| ())
    });

    let within = trader.create(account, symbol, Side::BUY, "200", "59000");
    trader.wait_order(within, OrderStatus::WORKING);
    let beyond = trader.create(account, symbol, Side::BUY, "210", "59000");
    assert_eq!(refusal(&mut trader, beyond), ErrorCode::MAX_ORDER_QUANTITY);
    assert_eq!(publish(&mut risk, account, &SetRiskLimits { caps: 8, ..limits }), ErrorCode::default());
    let late = trader.create(account, symbol, Side::BUY, "100", "59000");
    assert_eq!(refusal(&mut trader, late), ErrorCode::NO_RISK_LIMITS);
    // Resting orders can still be cancelled.
    trader.cancel(account, symbol, within);
    trader.wait_order(within, OrderStatus::CANCELED);
    gateway.stop();
    venue.stop();
}

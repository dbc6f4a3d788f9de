use tickpath_types::{CancelReason, Liquidity, MarketUpdate, OrderEventKind, PriceLevel, Qty, Side};

use crate::testing::{LIMITS, Rig, canceled, executed, quote, trade};
use crate::{EngineConfig, Limits, LiquidityTaker};

/// Creates a taker that follows trades of at least half of the best quantity, in a market with quantity 100
/// at the bid of 100 and at the ask of 101.
fn rig() -> Rig<LiquidityTaker> {
    let limits = Limits { threshold: 500_000, ..LIMITS };
    let mut rig = Rig::with(EngineConfig::default(), limits, LiquidityTaker::new(2));
    assert_eq!(rig.market(quote(1, (100, 100), (101, 100))), "");
    rig
}

#[test]
fn it_follows_a_large_trade_at_the_best_that_is_left() {
    assert_eq!(rig().market(trade(1, Side::Buy, 101, 50, 7)), "#1 buy 100 @101 ioc");
    assert_eq!(rig().market(trade(1, Side::Sell, 100, 50, 7)), "#1 sell 100 @100 ioc");
    assert_eq!(rig().market(trade(1, Side::Sell, 100, 49, 7)), "", "just below the threshold");
    let little_left =
        MarketUpdate { ask: PriceLevel { price: 103, qty: 25 }, ..trade(1, Side::Buy, 101, 100, 7) };
    assert_eq!(rig().market(little_left), "#1 buy 20 @103 ioc", "whole lots of what is there");
    let nothing_left = MarketUpdate { ask: PriceLevel::default(), ..trade(1, Side::Buy, 101, 100, 7) };
    assert_eq!(rig().market(nothing_left), "");
}

#[test]
fn without_a_lot_it_sends_nothing() {
    let limits = Limits { threshold: 500_000, clip: Qty(0), ..LIMITS };
    let mut no_clip = Rig::with(EngineConfig::default(), limits, LiquidityTaker::new(2));
    let mut rig = rig();
    let no_lot_left =
        MarketUpdate { ask: PriceLevel { price: 103, qty: 9 }, ..trade(1, Side::Buy, 101, 100, 7) };
    assert_eq!(no_clip.market(trade(1, Side::Buy, 101, 50, 7)), "");
    assert_eq!(rig.market(no_lot_left), "");
    for counters in [no_clip.engine.desk().counters(), rig.engine.desk().counters()] {
        assert_eq!(counters.refused_invalid + counters.refused_risk, 0, "it was not even asked for");
    }
}

#[test]
fn executions_of_one_order_add_up_and_are_followed_once() {
    let mut rig = rig();
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 30, 7)), "");
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 30, 7)), "#1 buy 100 @101 ioc");
    rig.accept(1);
    rig.event(executed(1, 100, 101));
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 30, 7)), "");
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 30, 8)), "", "another order, and a small one");
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 80, 9)), "#2 buy 100 @101 ioc");
}

#[test]
fn one_order_is_in_flight_at_a_time() {
    let mut rig = rig();
    rig.market(trade(1, Side::Buy, 101, 60, 7));
    assert_eq!(rig.market(trade(1, Side::Sell, 100, 60, 8)), "");
    rig.accept(1);
    rig.event(canceled(1, 100, CancelReason::ImmediateOrCancel));
    assert_eq!(rig.market(trade(1, Side::Sell, 100, 60, 9)), "#2 sell 100 @100 ioc");
}

#[test]
fn it_follows_an_order_that_a_later_message_of_the_packet_hides() {
    let followed = |update| MarketUpdate { has_more: 1, ..update };
    let mut taker = rig();
    assert_eq!(taker.market(followed(trade(1, Side::Buy, 101, 60, 7))), "", "the packet has not ended");
    assert_eq!(taker.market(followed(trade(1, Side::Buy, 101, 5, 8))), "");
    assert_eq!(taker.market(quote(1, (100, 100), (102, 40))), "#1 buy 40 @102 ioc", "at the price after it");

    let mut taker = rig();
    taker.market(followed(trade(1, Side::Buy, 101, 60, 7)));
    assert_eq!(taker.market(trade(1, Side::Sell, 100, 60, 8)), "#1 sell 100 @100 ioc", "the last of two");
    taker.accept(1);
    taker.event(canceled(1, 100, CancelReason::ImmediateOrCancel));
    assert_eq!(taker.market(quote(1, (100, 100), (101, 100))), "", "each packet is followed once");
}

#[test]
fn quotes_alone_move_nothing() {
    let mut rig = rig();
    rig.market(trade(1, Side::Buy, 101, 60, 7));
    rig.accept(1);
    rig.event(executed(1, 100, 101));
    assert_eq!(rig.market(quote(1, (100, 100), (102, 100))), "");
    assert_eq!(rig.engine.desk().positions().totals().volume, Qty(100));
}

#[test]
fn it_does_not_follow_its_own_orders() {
    // The answers arrive first: the order is no longer open when its market data arrives.
    let mut rig = rig();
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 7)), "#1 buy 100 @101 ioc");
    rig.accept(1);
    rig.event_at(8, taken(1, 60));
    rig.event_at(8, canceled(1, 40, CancelReason::ImmediateOrCancel));
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 8)), "", "its own");
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 9)), "#2 buy 100 @101 ioc", "another's");

    // The first part of the market data arrives before the answers, the second part after them.
    rig.accept(2);
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 10)), "");
    rig.event_at(10, taken(2, 60));
    rig.event_at(10, taken(2, 40));
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 40, 10)), "");
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 11)), "#3 buy 100 @101 ioc");
}

#[test]
fn answers_between_the_messages_of_a_packet_make_no_order_followed() {
    let more = |update| MarketUpdate { has_more: 1, ..update };
    // A packet has both executions of the taker's own order, of which either alone is large or small.
    for first_qty in [60, 40] {
        let mut rig = rig();
        assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 7)), "#1 buy 100 @101 ioc");
        rig.accept(1);
        assert_eq!(rig.market(more(trade(1, Side::Buy, 101, first_qty, 8))), "");
        rig.event_at(8, taken(1, first_qty));
        rig.event_at(8, taken(1, 100 - first_qty));
        assert_eq!(rig.market(trade(1, Side::Buy, 101, 100 - first_qty, 8)), "", "its own");
        assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 9)), "#2 buy 100 @101 ioc");
    }
    // Another's order trades while the own one is open, and again after its end.
    for first_qty in [60, 40] {
        let mut rig = rig();
        rig.market(trade(1, Side::Buy, 101, 60, 7));
        rig.accept(1);
        assert_eq!(rig.market(more(trade(1, Side::Buy, 101, first_qty, 8))), "");
        rig.event_at(9, canceled(1, 100, CancelReason::ImmediateOrCancel));
        assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 8)), "", "traded while one was open");
        assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 10)), "#2 buy 100 @101 ioc");
    }
}

#[test]
fn recent_own_orders_are_remembered() {
    let followed_after = |orders: u64| {
        let mut rig = rig();
        for order in 1..=orders {
            let sent = rig.market(trade(1, Side::Buy, 101, 60, 100 + order));
            assert!(sent.ends_with("ioc"), "{sent}");
            rig.event_at(200 + order, taken(order as u32, 100));
        }
        rig.market(trade(1, Side::Buy, 101, 60, 201))
    };
    assert_eq!(followed_after(8), "");
    assert_eq!(followed_after(9), "#10 buy 100 @101 ioc", "the first of nine is forgotten");
}

#[test]
fn a_resting_order_that_trades_hides_no_incoming_one() {
    let mut rig = rig();
    rig.market(trade(1, Side::Buy, 101, 60, 7));
    rig.accept(1);
    rig.event_at(8, executed(1, 100, 101));
    assert_eq!(rig.market(trade(1, Side::Buy, 101, 60, 8)), "#2 buy 100 @101 ioc");
}

/// Returns an execution of an incoming own order.
fn taken(user_ref: u32, qty: u64) -> OrderEventKind {
    match executed(user_ref, qty, 101) {
        OrderEventKind::Executed { user_ref, qty, price, match_id, .. } => {
            OrderEventKind::Executed { user_ref, qty, price, match_id, liquidity: Liquidity::Removed }
        }
        other => other,
    }
}

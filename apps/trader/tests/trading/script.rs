//! A scripted strategy trades, is stopped, and stops when no market data arrives.

use tickpath_trading::{EngineConfig, Money, NewOrder, OrderChange, Refusal, StopReason};
use tickpath_types::{CancelReason, Liquidity, Nanos, Price, Qty, Side, TimeInForce, UserRefNum};

use crate::site::{QUERY, Site, buy, sell};
use crate::strategy::Action;

#[test]
fn orders_trade_and_positions_are_right() {
    let mut site = Site::new();
    site.rival_enters(1, Side::Sell, 100, 1_000_000, TimeInForce::Day);
    site.until("the offer in the strategy's book", |site| {
        site.script.log().bbo.ask == Some((Price(1_000_000), Qty(100)))
    });
    site.until("the start", |site| site.script.log().starts == 1);

    let bought = site.enter(NewOrder { time_in_force: TimeInForce::Ioc, ..buy(60, 1_000_000) });
    let resting = site.enter(sell(50, 1_000_200));
    // The remaining 40 of the rival's own offer at 100.00 trade first, so the strategy's offer sells 20.
    site.rival_enters(2, Side::Buy, 60, 1_000_200, TimeInForce::Ioc);
    site.until("the sale", |site| site.script.changes_of(resting).len() == 2);

    let taken =
        |qty, price, liquidity| OrderChange::Executed { qty: Qty(qty), price: Price(price), liquidity };
    assert_eq!(
        site.script.changes_of(bought),
        [OrderChange::Accepted, taken(60, 1_000_000, Liquidity::Removed)]
    );
    assert_eq!(
        site.script.changes_of(resting),
        [OrderChange::Accepted, taken(20, 1_000_200, Liquidity::Added)]
    );
    let snapshot = site.snapshot();
    let position = &snapshot.positions[0];
    assert_eq!((position.net_qty(), position.volume()), (40, Qty(80)));
    assert_eq!(position.realised_pnl(), Money(20 * 200));
    assert_eq!(snapshot.open_orders, 1);
    assert_eq!((snapshot.counters.enters, snapshot.counters.fills), (2, 2));
    assert_eq!((snapshot.lost_updates, snapshot.stopped), (0, None));
    assert_eq!(site.view.gateway.requests.read(), 2 + QUERY);
    assert_eq!(site.venue_view.matcher.executions.read(), 3);
}

#[test]
fn orders_are_replaced_reduced_and_cancelled() {
    let mut site = Site::new();
    let first = site.enter(buy(50, 999_000));
    site.script.enqueue(Action::Replace(UserRefNum(first), Qty(80), Price(999_500)));
    site.until("the replacement", |site| site.script.log().bbo.bid == Some((Price(999_500), Qty(80))));
    let second = site.script.log().sent[1].unwrap();
    site.until("the answer", |site| !site.script.changes_of(second.0).is_empty());
    assert_eq!(
        site.script.changes_of(second.0),
        [OrderChange::Replaced { orig_user_ref: UserRefNum(first) }]
    );
    site.script.enqueue(Action::Cancel(second));
    site.until("the empty book", |site| site.script.log().bbo.bid.is_none());
    let reason = CancelReason::User;
    site.until("the cancel's answer", |site| site.script.changes_of(second.0).len() == 2);
    assert_eq!(site.script.changes_of(second.0)[1], OrderChange::Canceled { decrement: Qty(80), reason });
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.positions[0].net_qty()), (0, 0));
    assert_eq!((snapshot.counters.replaces, snapshot.counters.cancels), (1, 1));
}

#[test]
fn an_order_beyond_a_limit_is_not_sent() {
    let mut site = Site::new();
    site.script.enqueue(Action::Enter(buy(5_000, 1_000_000)));
    site.until("the refusal", |site| site.script.log().sent.len() == 1);
    assert!(matches!(site.script.log().sent[0], Err(Refusal::Risk(_))), "{:?}", site.script.log().sent);
    assert_eq!(site.snapshot().counters.refused_risk, 1);
    assert_eq!(site.venue_view.order_server.requests.read(), QUERY);
}

#[test]
fn the_kill_switch_cancels_every_open_order_for_good() {
    let mut site = Site::new();
    for price in [999_000, 999_100, 999_200] {
        site.enter(buy(10, price));
    }
    site.enter(sell(10, 1_001_000));
    assert_eq!(site.snapshot().open_orders, 4);
    site.kill.pull();
    let snapshot = site.snapshot();
    assert_eq!((snapshot.open_orders, snapshot.stopped), (0, Some(StopReason::Killed)));
    assert_eq!(snapshot.counters.cancels, 4);
    for user_ref in 1..=4 {
        let last = site.script.changes_of(user_ref).pop().unwrap();
        assert_eq!(last, OrderChange::Canceled { decrement: Qty(10), reason: CancelReason::User });
    }
    // Nothing more is sent: the strategy is no longer called.
    let requests = site.view.gateway.requests.read();
    site.script.enqueue(Action::Enter(buy(10, 999_000)));
    site.rival_enters(1, Side::Sell, 1, 1_000_000, TimeInForce::Day);
    site.pass(Nanos::from_secs(1));
    assert_eq!(site.view.gateway.requests.read(), requests);
}

#[test]
fn a_silent_market_stops_the_engine_and_cancels_its_orders() {
    let silence = Nanos::from_secs(2);
    let mut site = Site::with(&EngineConfig { silence_stop: Some(silence), ..EngineConfig::default() });
    site.enter(buy(10, 999_000));
    for user_ref in 1..=3 {
        site.pass(Nanos::from_millis(1_500));
        assert_eq!(site.snapshot().stopped, None, "the market is not silent");
        site.rival_enters(user_ref, Side::Sell, 1, 1_000_000, TimeInForce::Day);
    }
    site.pass(silence);
    let snapshot = site.snapshot();
    assert_eq!((snapshot.stopped, snapshot.open_orders), (Some(StopReason::Silence), 0));
}

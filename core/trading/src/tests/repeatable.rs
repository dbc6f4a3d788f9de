use tickpath_types::{CancelReason, InstrumentId, Nanos, OrderId, Side, TimeInForce};

use crate::testing::{Rig, canceled, executed, quote, trade};
use crate::{LiquidityTaker, MakerConfig, MarketMaker, OwnOrder, Strategy};

/// Returns a strategy's requests in a small random market with fills. The market is the same in each call.
fn requests_of<S: Strategy>(strategy: S) -> Vec<String> {
    let mut rig = Rig::new(strategy);
    let mut state = 12_345_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut log = Vec::new();
    let mut middle = 500_i64;
    for step in 0..3_000_u64 {
        rig.now = Nanos::from_secs(1) + Nanos::from_millis(step);
        middle += below(3) as i64 - 1;
        let id = 1 + below(2) as u16;
        let (bid, ask) = ((middle - 2, 100 + below(900)), (middle + 2, 100 + below(900)));
        let update = if below(4) == 0 {
            let aggressor = Side::BOTH[below(2) as usize];
            let mut update = trade(id, aggressor, middle, 10 + below(400), step);
            (update.bid.price, update.bid.qty) = bid;
            (update.ask.price, update.ask.qty) = ask;
            update
        } else {
            quote(id, bid, ask)
        };
        log.push(rig.market(update));
        let pending: Vec<_> = open_orders(&rig);
        for order in pending {
            log.push(match order.replaces {
                Some(orig) => rig.accept_replace(orig.0, order.user_ref.0),
                None if order.order_id == OrderId(0) => rig.accept(order.user_ref.0),
                None if order.time_in_force == TimeInForce::Ioc => {
                    let traded = rig.event(executed(order.user_ref.0, 10, order.price.0));
                    let rest = order.qty.0 - 10;
                    traded + &rig.event(canceled(order.user_ref.0, rest, CancelReason::ImmediateOrCancel))
                }
                None if below(10) == 0 => rig.event(executed(order.user_ref.0, 10, order.price.0)),
                None => String::new(),
            });
        }
    }
    let desk = rig.engine.desk();
    let net: i64 = desk.positions().iter().map(|(_, position)| position.net_qty()).sum();
    log.push(format!("{net} {} {:?}", desk.positions().totals().pnl(), desk.counters()));
    assert_eq!(desk.orders().counters().unknown, 0);
    for (id, position) in desk.positions().iter() {
        assert!(position.net_qty().unsigned_abs() <= 1_000, "{id}: {}", position.net_qty());
    }
    log
}

fn open_orders<S: Strategy>(rig: &Rig<S>) -> Vec<OwnOrder> {
    let orders = rig.engine.desk().orders();
    let ids = (1..=2).map(InstrumentId);
    ids.flat_map(|id| Side::BOTH.map(|side| orders.open(id, side).copied().collect::<Vec<_>>()))
        .flatten()
        .collect()
}

#[test]
fn the_same_inputs_give_the_same_requests_within_the_limits() {
    let maker = || MarketMaker::new(MakerConfig::default());
    let log = requests_of(maker());
    assert_eq!(log, requests_of(maker()));
    assert!(log.iter().filter(|text| text.contains("->")).count() > 500);
    let boxed: Box<dyn Strategy> = Box::new(maker());
    assert_eq!(log, requests_of(boxed), "chosen at run time it does the same");

    let taker = requests_of(LiquidityTaker::new(2));
    assert_eq!(taker, requests_of(LiquidityTaker::new(2)));
    assert!(taker.iter().filter(|text| text.contains("ioc")).count() > 50);
}

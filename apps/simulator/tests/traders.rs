//! Tests of the simulator's traders: they trade, and the checkers find errors in their recorded results.
#![allow(clippy::unwrap_used)]

use tickpath_simulator::{FaultLevel, Observed, Simulation, TraderInstance, check};
use tickpath_trading::{Bbo, OwnState};
use tickpath_types::{Price, Qty, Side, UserRefNum};

fn observed(seed: u64) -> Observed {
    Simulation::new(seed, FaultLevel::Full).run().observed
}

fn fills(instance: &TraderInstance) -> u64 {
    let positions = instance.positions.iter();
    positions.map(|position| position.bought().fill_count + position.sold().fill_count).sum()
}

/// Seeds 1 to 40 give the checker `traders` enough fills, open orders and restarts to check.
#[test]
fn traders_trade_rest_and_restart() {
    let instances: Vec<TraderInstance> = (1..=40).flat_map(|seed| observed(seed).traders).collect();
    let count = |predicate: fn(&TraderInstance) -> bool| {
        instances.iter().filter(|instance| predicate(instance)).count()
    };
    let all: u64 = instances.iter().map(fills).sum();
    assert!(all > 300, "{all} fills");
    let orders: usize = instances
        .iter()
        .filter(|instance| instance.ended.is_none())
        .map(|instance| instance.orders.len())
        .sum();
    assert!(orders >= 5, "{orders} orders rest in the end");
    let counts = [
        count(|instance| instance.ended.is_some() && fills(instance) > 0),
        count(|instance| instance.ended.is_none() && fills(instance) > 0),
        count(|instance| instance.ended.is_none() && instance.markets.iter().any(Option::is_some)),
    ];
    assert!(counts.iter().all(|count| *count >= 3), "{counts:?}");
}

/// Returns a run with a trader that has a position and open orders at the end.
fn run_with_orders() -> Observed {
    let is_one = |instance: &TraderInstance| {
        instance.ended.is_none() && fills(instance) > 0 && !instance.orders.is_empty()
    };
    (1..=100).map(observed).find(|observed| observed.traders.iter().any(is_one)).unwrap()
}

#[test]
fn trader_errors_are_found() {
    let clean = run_with_orders();
    assert_eq!(check(&clean), []);
    let place = clean
        .traders
        .iter()
        .position(|instance| instance.ended.is_none() && !instance.orders.is_empty())
        .unwrap();
    let corruptions: [fn(&mut TraderInstance); 9] = [
        |instance| instance.positions[0].apply_fill(Side::Buy, Price(1_000_000), Qty(1)),
        |instance| {
            // A purchase and a sale at the same price change only the fill counts and the traded volume.
            instance.positions[0].apply_fill(Side::Buy, Price(1_000_000), Qty(1));
            instance.positions[0].apply_fill(Side::Sell, Price(1_000_000), Qty(1));
        },
        |instance| _ = instance.orders.pop(),
        |instance| {
            instance
                .orders
                .push(tickpath_trading::OwnOrder { user_ref: UserRefNum(9_999), ..instance.orders[0] })
        },
        |instance| instance.orders[0].cum_qty.0 += 1,
        |instance| instance.open_qty[0][0].0 += 1,
        |instance| instance.markets[0] = Some(Bbo { bid: Some((Price(1), Qty(1))), ask: None }),
        |instance| instance.limits.max_order_qty = Qty::ZERO,
        |instance| instance.counters.enters = 0,
    ];
    for (number, corrupt) in corruptions.into_iter().enumerate() {
        let mut corrupted = clean.clone();
        corrupt(&mut corrupted.traders[place]);
        let violations = check(&corrupted);
        assert!(violations.iter().any(|violation| violation.check == "traders"), "{number}: {violations:?}");
    }
    assert!(clean.traders[place].orders.iter().all(|order| order.state == OwnState::Live));
}

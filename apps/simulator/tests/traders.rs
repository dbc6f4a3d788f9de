//! Whole traders in the runs: they trade, and their faults are found.
#![allow(clippy::unwrap_used)]

use tickpath_simulator::{FaultLevel, Observed, Simulation, TraderLife, check};
use tickpath_trading::{Bbo, OwnState};
use tickpath_types::{Price, Qty, Side, UserRefNum};

fn observed(seed: u64) -> Observed {
    Simulation::new(seed, FaultLevel::Full).run().observed
}

fn fills(life: &TraderLife) -> u64 {
    let positions = life.positions.iter();
    positions.map(|position| position.bought().fill_count + position.sold().fill_count).sum()
}

/// Makes sure that the checkers of traders have cases to check.
#[test]
fn traders_trade_and_rest_and_die_and_come_back() {
    let lives: Vec<TraderLife> = (1..=40).flat_map(|seed| observed(seed).traders).collect();
    let count = |is_so: fn(&TraderLife) -> bool| lives.iter().filter(|life| is_so(life)).count();
    let all: u64 = lives.iter().map(fills).sum();
    assert!(all > 300, "{all} fills");
    let orders: usize = lives.iter().filter(|life| life.ended.is_none()).map(|life| life.orders.len()).sum();
    assert!(orders >= 5, "{orders} orders rest in the end");
    let counts = [
        count(|life| life.ended.is_some() && fills(life) > 0),
        count(|life| life.ended.is_none() && fills(life) > 0),
        count(|life| life.ended.is_none() && life.markets.iter().any(Option::is_some)),
    ];
    assert!(counts.iter().all(|count| *count >= 3), "{counts:?}");
}

/// Returns a run with a trader that has a position and open orders at the end.
fn run_with_orders() -> Observed {
    let is_one = |life: &TraderLife| life.ended.is_none() && fills(life) > 0 && !life.orders.is_empty();
    (1..=100).map(observed).find(|observed| observed.traders.iter().any(is_one)).unwrap()
}

#[test]
fn what_a_trader_gets_wrong_is_found() {
    let clean = run_with_orders();
    assert_eq!(check(&clean), []);
    let place =
        clean.traders.iter().position(|life| life.ended.is_none() && !life.orders.is_empty()).unwrap();
    let spoilers: [fn(&mut TraderLife); 9] = [
        |life| life.positions[0].apply_fill(Side::Buy, Price(1_000_000), Qty(1)),
        |life| {
            // Bought and sold again: only the numbers of fills and the volume differ.
            life.positions[0].apply_fill(Side::Buy, Price(1_000_000), Qty(1));
            life.positions[0].apply_fill(Side::Sell, Price(1_000_000), Qty(1));
        },
        |life| _ = life.orders.pop(),
        |life| life.orders.push(tickpath_trading::OwnOrder { user_ref: UserRefNum(9_999), ..life.orders[0] }),
        |life| life.orders[0].cum_qty.0 += 1,
        |life| life.open_qty[0][0].0 += 1,
        |life| life.markets[0] = Some(Bbo { bid: Some((Price(1), Qty(1))), ask: None }),
        |life| life.limits.max_order_qty = Qty::ZERO,
        |life| life.counters.enters = 0,
    ];
    for (number, spoil) in spoilers.into_iter().enumerate() {
        let mut spoiled = clean.clone();
        spoil(&mut spoiled.traders[place]);
        let violations = check(&spoiled);
        assert!(violations.iter().any(|violation| violation.check == "traders"), "{number}: {violations:?}");
    }
    assert!(clean.traders[place].orders.iter().all(|order| order.state == OwnState::Live));
}

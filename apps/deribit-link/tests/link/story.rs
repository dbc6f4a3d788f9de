//! Many orders under all faults: none is lost, none duplicated.

use std::collections::BTreeSet;
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_deribit::session::SessionConfig;
use tickpath_deribit_front::FaultKind;
use tickpath_test_support::{Deadline, PATIENCE};

use crate::link::faults::{compare, quick};
use crate::link::trader::{Trader, session};
use crate::running::Running;

/// Number of orders in the scenario.
const ORDERS: u32 = 400;
/// Fault probabilities in millionths: per request, per connection and second, per book update.
const CHANCES: [(FaultKind, u32); 13] = [
    (FaultKind::Cut, 100_000),
    (FaultKind::HalfOpen, 40_000),
    (FaultKind::RequestLost, 6_000),
    (FaultKind::ReplyCut, 6_000),
    (FaultKind::ReplyLost, 15_000),
    (FaultKind::ReplySlow, 15_000),
    (FaultKind::RateLimited, 5_000),
    (FaultKind::TokenExpired, 5_000),
    (FaultKind::TokensRevoked, 2_000),
    (FaultKind::BookDropped, 5_000),
    (FaultKind::BookSwapped, 5_000),
    (FaultKind::BookDuplicated, 5_000),
    (FaultKind::Maintenance, 20_000),
];

fn tell(seed: u64, cancel_on_disconnect: bool) {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| {
        quick(text).replace("seed = 7", &format!("seed = {seed}")).replace("3600s", "5s")
    });
    let session = SessionConfig { cancel_on_disconnect, ..session("anna", "test") };
    let mut trader = Trader::start(venue.address, session, 10);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for (kind, ppm) in CHANCES {
        venue.faults.set(kind, ppm);
    }
    let mut sent = BTreeSet::new();
    let mut number = 0;
    let deadline = Deadline::after(2 * PATIENCE);
    while number < ORDERS {
        assert!(!deadline.is_over(), "{number}: {}", trader.told());
        trader.turn();
        std::thread::sleep(Duration::from_millis(4));
        let price = (59_000 + random.next_u64() % 500).to_string();
        let amount = 10 * (1 + random.next_u64() as i64 % 9).abs().max(1);
        let open: Vec<String> = trader.open().into_iter().map(|(label, ..)| label).collect();
        let any = |random: &mut Xoshiro256PlusPlus| {
            open.get(random.next_u64() as usize % open.len().max(1))
                .filter(|label| !trader.is_busy(label))
                .cloned()
        };
        match random.next_u64() % 4 {
            0 | 1 => {
                let label = format!("s{number:04}");
                if trader.buy(&label, amount, &price).is_ok() {
                    sent.insert(label);
                    number += 1;
                    // Injects each fault at least once.
                    if number % 25 == 0
                        && let Some((kind, _)) = CHANCES.get(number as usize / 25 - 1)
                    {
                        venue.faults.happen_next(*kind, 1);
                    }
                }
            }
            2 => {
                if let Some(label) = any(&mut random) {
                    let _ = trader.edit(&label, amount, &price);
                }
            }
            _ => {
                if let Some(label) = any(&mut random) {
                    let _ = trader.cancel(&label);
                }
            }
        }
    }
    venue.faults.stop();
    trader.wait("rest", Trader::is_settled);
    compare(&venue, &mut trader);
    // Every order sent has exactly one outcome.
    let known: BTreeSet<String> =
        trader.mind.believed.keys().chain(trader.mind.never.keys()).cloned().collect();
    assert_eq!(known, sent);
    assert_eq!(trader.mind.believed.len() + trader.mind.never.len(), sent.len());
    for (kind, _) in CHANCES {
        assert!(venue.faults.count(kind) > 0, "{kind:?}: {}", venue.faults);
    }
    // Which way a request stays unanswered, by time-out or lost connection, depends on concurrent faults.
    let unanswered = trader.mind.late + trader.mind.lost;
    assert!(unanswered > 0 && trader.stats().losses > 1, "{}", trader.told());
    drop(trader);
    venue.stop();
}

#[test]
fn orders_that_stay() {
    tell(1, false);
}

#[test]
fn orders_that_go_with_their_connection() {
    tell(2, true);
}

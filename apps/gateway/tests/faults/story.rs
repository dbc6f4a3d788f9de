//! Many orders under all faults at once.

use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_deribit_front::FaultKind;
use tickpath_gateway_protocol::OrderStatus;
use tickpath_test_support::{Deadline, PATIENCE};

use crate::faults::Place;

/// Number of orders of a scenario that the venue accepts; those rejected without a connection do not count.
const ORDERS: usize = 120;
/// Probabilities in millionths: of requests, of connections per second, of book changes.
const CHANCES: [(FaultKind, u32); 13] = [
    (FaultKind::Cut, 30_000),
    (FaultKind::HalfOpen, 20_000),
    (FaultKind::RequestLost, 4_000),
    (FaultKind::ReplyCut, 4_000),
    (FaultKind::ReplyLost, 10_000),
    (FaultKind::ReplySlow, 10_000),
    (FaultKind::RateLimited, 5_000),
    (FaultKind::TokenExpired, 3_000),
    (FaultKind::TokensRevoked, 2_000),
    (FaultKind::BookDropped, 5_000),
    (FaultKind::BookSwapped, 5_000),
    (FaultKind::BookDuplicated, 5_000),
    (FaultKind::Maintenance, 10_000),
];

fn tell(seed: u64, of_venue: &str) {
    let faults = format!("seed = {seed}, maintenance_for = '1s', half_open_for = '2s', reply_delay = '3s'");
    let mut place = Place::with(&faults, of_venue);
    for (kind, ppm) in CHANCES {
        place.venue.faults.set(kind, ppm);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut entered, mut planted) = (0, 0);
    let deadline = Deadline::after(4 * PATIENCE);
    while entered < ORDERS {
        assert!(!deadline.is_over(), "{entered} orders, {}", place.venue.faults);
        place.drain();
        std::thread::sleep(Duration::from_millis(10));
        let price = (59_000 + random.next_u64() % 500).to_string();
        let amount = (10 * (1 + random.next_u64() % 9)).to_string();
        let believed = place.believed();
        entered = believed.values().filter(|order| order.status != OrderStatus::REJECTED).count();
        // Each fault at least once.
        if entered >= 9 * (planted + 1)
            && let Some((kind, _)) = CHANCES.get(planted)
        {
            place.venue.faults.happen_next(*kind, 1);
            planted += 1;
        }
        let open = believed.values().filter(|order| order.status == OrderStatus::WORKING);
        let open: Vec<u64> = open.map(|order| order.client_order_id).collect();
        let any = |random: &mut Xoshiro256PlusPlus| {
            open.get(random.next_u64() as usize % open.len().max(1)).copied()
        };
        match random.next_u64() % 4 {
            0 | 1 => {
                place.buy(&amount, &price);
            }
            2 => {
                if let Some(id) = any(&mut random) {
                    place.modify(id, &amount, &price);
                }
            }
            _ => {
                if let Some(id) = any(&mut random) {
                    place.cancel(id);
                }
            }
        }
    }
    for (kind, _) in CHANCES {
        let what = format!("{kind:?}");
        if place.count(kind) == 0 {
            place.venue.faults.happen_next(kind, 1);
        }
        // Faults that need an order or a book change get a few more orders.
        while place.count(kind) == 0 {
            assert!(!deadline.is_over(), "{what} does not happen: {}", place.venue.faults);
            place.buy("10", "59000");
            place.drain();
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    place.end();
}

#[test]
fn orders_that_stay() {
    tell(1, "cancel_on_disconnect = false");
}

#[test]
fn orders_that_go_with_their_connection() {
    tell(2, "cancel_on_disconnect = true");
}

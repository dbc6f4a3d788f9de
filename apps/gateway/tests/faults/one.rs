//! Each fault in isolation.

use tickpath_deribit_front::FaultKind;
use tickpath_gateway_protocol::{AckStatus, OrderAck, OrderStatus};

use crate::faults::Place;
use crate::support::fixed;

#[test]
fn a_reply_is_lost_late_or_cut_off_while_its_order_lives() {
    for kind in [FaultKind::ReplyLost, FaultKind::ReplySlow, FaultKind::ReplyCut] {
        let mut place = Place::new("reply_delay = '3s'");
        place.fail(kind);
        let id = place.buy("100", "59000");
        place.wait("the order", |place| place.count(kind) == 1 && place.is(id, OrderStatus::WORKING));
        place.wait_ready();
        place.fail(kind);
        place.modify(id, "200", "59001");
        place.wait("the change", |place| {
            place.count(kind) == 2
                && place.trader.order(id).is_some_and(|order| order.remaining_quantity == fixed("200"))
        });
        place.wait_ready();
        place.fail(kind);
        place.cancel(id);
        place.wait("the cancel", |place| place.count(kind) == 3 && place.is(id, OrderStatus::CANCELED));
        place.end();
    }
}

#[test]
fn a_request_that_is_lost_is_rejected_in_the_end_and_not_sent_again() {
    let mut place = Place::new("");
    let stays = place.buy("100", "59000");
    place.wait("the order", |place| place.is(stays, OrderStatus::WORKING));
    place.fail(FaultKind::RequestLost);
    let never = place.buy("100", "59001");
    place.wait("the rejection", |place| {
        place.trader.acks(never).contains(&AckStatus::REJECTED) || place.is(never, OrderStatus::REJECTED)
    });
    assert!(place.is(stays, OrderStatus::WORKING));
    place.end();
}

#[test]
fn connections_are_lost_and_orders_stay() {
    let mut place = Place::new("maintenance_for = '1s', half_open_for = '2s'");
    let id = place.buy("100", "59000");
    place.wait("the order", |place| place.is(id, OrderStatus::WORKING));
    for kind in [FaultKind::Cut, FaultKind::Maintenance, FaultKind::HalfOpen] {
        let before = place.gateway.view.losses.read();
        place.fail(kind);
        place.wait("the loss", |place| place.count(kind) == 1 && place.gateway.view.losses.read() > before);
        // Rejected while there is no connection, accepted after the reconnect.
        let next = loop {
            let next = place.buy("10", "59002");
            place.wait("an answer", |place| place.is(next, OrderStatus::WORKING) || place.was_refused(next));
            if place.is(next, OrderStatus::WORKING) {
                break next;
            }
        };
        assert!(place.is(id, OrderStatus::WORKING), "{kind:?}: {next}");
    }
    place.end();
}

#[test]
fn orders_go_with_the_connection_where_that_is_wanted() {
    let mut place = Place::with("", "cancel_on_disconnect = true");
    let ids: Vec<u64> = (0..5).map(|_| place.buy("100", "59000")).collect();
    for id in &ids {
        place.wait("the order", |place| place.is(*id, OrderStatus::WORKING));
    }
    place.fail(FaultKind::Cut);
    for id in ids {
        place.wait("the cancel", |place| place.is(id, OrderStatus::CANCELED));
    }
    place.end();
}

#[test]
fn a_half_open_connection_and_missed_heartbeats_are_noticed() {
    for kind in [FaultKind::HalfOpen, FaultKind::HeartbeatMissed] {
        let mut place = Place::new("half_open_for = '3600s'");
        let id = place.buy("100", "59000");
        place.wait("the order", |place| place.is(id, OrderStatus::WORKING));
        let before = place.gateway.view.losses.read();
        match kind {
            FaultKind::HalfOpen => place.fail(kind),
            // Any other message counts as a sign of life: only without one is a missing heartbeat noticed.
            _ => place.venue.faults.set(kind, 1_000_000),
        }
        place.wait("the fault", |place| place.count(kind) > 0);
        if kind == FaultKind::HalfOpen {
            let into_nothing = place.buy("100", "59001");
            place.wait("the loss", |place| place.gateway.view.losses.read() > before);
            place.wait("its fate", |place| {
                place.is(into_nothing, OrderStatus::REJECTED)
                    || place.trader.acks(into_nothing).contains(&AckStatus::REJECTED)
            });
        }
        assert!(place.is(id, OrderStatus::WORKING));
        place.end();
    }
}

#[test]
fn tokens_that_are_over_are_renewed() {
    for kind in [FaultKind::TokenExpired, FaultKind::TokensRevoked] {
        let mut place = Place::new("");
        let id = place.buy("100", "59000");
        place.wait("the order", |place| place.is(id, OrderStatus::WORKING));
        place.fail(kind);
        // This order is rejected, or entered in the end.
        let refused = place.buy("100", "59001");
        place
            .wait("an answer", |place| place.was_refused(refused) || place.is(refused, OrderStatus::WORKING));
        assert_eq!(place.count(kind), 1);
        loop {
            let next = place.buy("10", "59002");
            place.wait("an answer", |place| place.is(next, OrderStatus::WORKING) || place.was_refused(next));
            if place.is(next, OrderStatus::WORKING) {
                break;
            }
        }
        place.end();
    }
}

#[test]
fn over_the_rate_an_order_is_refused_and_the_next_is_not() {
    let mut place = Place::new("");
    place.fail(FaultKind::RateLimited);
    let refused = place.buy("100", "59000");
    place.wait("the refusal", |place| place.trader.acks(refused).contains(&AckStatus::REJECTED));
    let id = loop {
        let next = place.buy("100", "59000");
        place.wait("an answer", |place| place.is(next, OrderStatus::WORKING) || place.was_refused(next));
        if place.is(next, OrderStatus::WORKING) {
            break next;
        }
    };
    place.fail(FaultKind::RateLimited);
    place.cancel(id);
    place.wait("the refusal", |place| place.trader.acks(id).contains(&AckStatus::REJECTED));
    place.end();
}

#[test]
fn what_the_venue_refuses_is_told_with_its_words_and_not_sent_again() {
    let mut place = Place::new("");
    let stays = place.buy("100", "59000");
    place.wait("the order", |place| place.is(stays, OrderStatus::WORKING));
    let words = |place: &Place, id: u64| {
        let mut acks = place.trader.all::<OrderAck>().map(|(_, ack)| ack);
        acks.rfind(|ack| ack.client_order_id == id && ack.status != AckStatus::RECEIVED)
    };
    // One for each of the venue's rejections.
    for count in 1..=6 {
        place.fail(FaultKind::Refused);
        let refused = place.buy("100", "59001");
        place.wait("the refusal", |place| {
            place.count(FaultKind::Refused) == count && words(place, refused).is_some()
        });
        let ack = words(&place, refused).unwrap();
        if ack.status == AckStatus::REJECTED {
            place.wait("its end", |place| place.is(refused, OrderStatus::REJECTED));
            let codes = [10040, 10041, 10047, 10066, 11094, 13028];
            assert!(codes.iter().any(|code| ack.text.as_str().ends_with(&format!("({code})"))), "{ack:?}");
        } else {
            // Some rejections leave the result open: the order is queried until its status is certain.
            assert_eq!(ack.status, AckStatus::TIMEOUT, "{ack:?}");
            place.wait("its end", |place| place.is(refused, OrderStatus::REJECTED));
        }
    }
    // A rejected change leaves the order as it is, and so does a rejected cancel.
    place.fail(FaultKind::Refused);
    place.modify(stays, "200", "59000");
    place.wait("the refusal", |place| {
        let is_answer = |status: &AckStatus| [AckStatus::REJECTED, AckStatus::TIMEOUT].contains(status);
        place.count(FaultKind::Refused) == 7 && place.trader.acks(stays).iter().any(is_answer)
    });
    place.wait("the order as it was", |place| place.is(stays, OrderStatus::WORKING));
    assert_eq!(place.trader.order(stays).unwrap().remaining_quantity, fixed("100"));
    place.cancel(stays);
    place.wait("the cancel", |place| place.is(stays, OrderStatus::CANCELED));
    place.end();
}

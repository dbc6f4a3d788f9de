//! Cancel-all requests, and their combined acks.

use tickpath_deribit::method::Method;
use tickpath_deribit::session::SessionEvent;
use tickpath_gateway_protocol::{
    AckStatus, AckType, CancelAll, ErrorCode, EventHeader, EventKind, OrderAck, Origin, QuoteAck, Side,
};
use tickpath_types::Nanos;

use crate::machine::rig::{CLIENT, ENTRY, Rig, TRADING};

const RECEIVED: AckStatus = AckStatus::RECEIVED;
const ACCEPTED: AckStatus = AckStatus::ACCEPTED;
const REJECTED: AckStatus = AckStatus::REJECTED;
const TIMEOUT: AckStatus = AckStatus::TIMEOUT;

/// A rig with `count` orders, from 1001 on, and a cancel-all request for them.
fn asked_of(count: u64) -> Rig {
    let mut rig = Rig::ready();
    for id in 1001..1001 + count {
        rig.working(id);
    }
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.poll();
    assert_eq!(rig.count(Method::Cancel), count as usize);
    let first = rig.quote_acks()[0];
    assert_eq!((first.origin, first.status, first.done), (Origin::GATEWAY, RECEIVED, count as u32));
    rig
}

/// Answers the cancel of an order.
fn answer(rig: &mut Rig, id: u64, outcome: &str) {
    let is_it = |asked: &&crate::machine::rig::Asked| {
        asked.method == Method::Cancel && asked.text.contains(&format!("V-{id}"))
    };
    let asked = rig.venue.asked.iter().rev().find(is_it).unwrap().clone();
    rig.answer(&asked, outcome);
}

fn cancelled(rig: &mut Rig, id: u64) {
    let order = rig.order(id, "cancelled", 0, 7);
    answer(rig, id, &format!("\"result\":{order}"));
}

/// The acks after the gateway's own: origin, status, number done, number refused.
fn told(rig: &Rig) -> Vec<(Origin, AckStatus, u32, u32)> {
    let of = |ack: QuoteAck| {
        assert_eq!((ack.request, ack.request_id), (AckType::CANCEL_ALL, 1));
        (ack.origin, ack.status, ack.done, ack.refused)
    };
    rig.quote_acks().into_iter().skip(1).map(of).collect()
}

fn header(rig: &Rig) -> EventHeader {
    let of = rig.door.sent.iter().rev().find(|(_, event)| event.header.kind == EventKind::CANCEL_ALL_ACK);
    of.unwrap().1.header
}

#[test]
fn the_venues_answers_together_are_one_ack() {
    let mut rig = asked_of(3);
    cancelled(&mut rig, 1001);
    cancelled(&mut rig, 1003);
    assert_eq!(told(&rig), []);
    // The order update may arrive before the answer.
    let order = rig.order(1002, "cancelled", 0, 9);
    rig.changes(&order, "[]");
    assert_eq!(told(&rig), [(Origin::EXCHANGE, ACCEPTED, 3, 0)]);
    let header = header(&rig);
    assert_eq!((header.stream, header.account, header.origin_utc_ns), (TRADING as u8 + 1, 1, 9_000_000));
    cancelled(&mut rig, 1002);
    assert_eq!(told(&rig).len(), 1);
}

#[test]
fn without_an_order_the_gateways_ack_is_the_last() {
    let mut rig = Rig::ready();
    rig.working(1001);
    rig.request(CLIENT, 0, 0, &CancelAll { side: Side::SELL, ..CancelAll::default() });
    let ack = rig.quote_acks()[0];
    assert_eq!((ack.origin, ack.status, ack.done), (Origin::GATEWAY, ACCEPTED, 0));
    // Its slot is free again: 64 requests may wait, and one more is executed without an ack of the venue.
    for _ in 0..65 {
        rig.request(CLIENT, 0, 1, &CancelAll::default());
    }
    rig.poll();
    assert_eq!(rig.count(Method::Cancel), 1);
    cancelled(&mut rig, 1001);
    let answers = rig.quote_acks().into_iter().filter(|ack| ack.origin == Origin::EXCHANGE);
    assert_eq!(answers.map(|ack| ack.done).sum::<u32>(), 64);
}

#[test]
fn what_ended_otherwise_or_was_refused_is_counted() {
    let mut rig = asked_of(3);
    // One order was filled, as the venue answers to a query; one cancel is refused, and tried again.
    answer(&mut rig, 1001, r#""error":{"code":11044,"message":"not_open_order"}"#);
    assert_eq!(told(&rig), []);
    let filled = rig.order(1001, "filled", 100, 5);
    rig.reply(Method::GetOrderState, &filled);
    answer(&mut rig, 1002, r#""error":{"code":13021,"message":"forbidden"}"#);
    assert_eq!(told(&rig), []);
    cancelled(&mut rig, 1003);
    assert_eq!(told(&rig), [(Origin::EXCHANGE, ACCEPTED, 1, 2)]);
    let ack = *rig.quote_acks().last().unwrap();
    assert_eq!((ack.error, ack.text.as_str()), (ErrorCode::UNKNOWN_ORDER, "it was filled before"));
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.count(Method::Cancel), 4);

    let mut rig = asked_of(1);
    answer(&mut rig, 1001, r#""error":{"code":13021,"message":"forbidden"}"#);
    assert_eq!(told(&rig), [(Origin::EXCHANGE, REJECTED, 0, 1)]);
    assert_eq!(header(&rig).origin_utc_ns, rig.now.0);
    let ack = *rig.quote_acks().last().unwrap();
    assert_eq!((ack.error, ack.text.as_str()), (ErrorCode::VENUE, "forbidden (13021)"));
}

#[test]
fn without_an_answer_it_is_uncertain() {
    let mut rig = asked_of(2);
    cancelled(&mut rig, 1001);
    let lost = rig.last(Method::Cancel);
    rig.core.handle_unanswered(TRADING, lost.id, false, rig.now, &mut rig.door);
    assert_eq!(told(&rig), [(Origin::GATEWAY, TIMEOUT, 1, 0)]);
    assert_eq!(rig.quote_acks().last().unwrap().error, ErrorCode::TIMEOUT);
    assert_eq!(header(&rig).origin_utc_ns, 0);
    // A request that waits when the connection is lost is acked too; its orders are cancelled later.
    let mut rig = asked_of(1);
    rig.working(1002);
    rig.venue.refusal = Some(tickpath_deribit::session::RequestError::RateLimit { wait_ns: 1_000_000_000 });
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.poll();
    let sent = rig.last(Method::Cancel);
    rig.lose(&[sent.id]);
    let answers = told(&rig);
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(answers[1..].iter().all(|it| *it == (Origin::GATEWAY, TIMEOUT, 0, 0)), "{answers:?}");
    let open = [1001, 1002].map(|id| rig.order(id, "open", 0, 1));
    rig.log_in(&format!("[{}]", open.join(",")));
    rig.pass(Nanos::from_secs(2));
    for id in [1001, 1002] {
        cancelled(&mut rig, id);
    }
    assert_eq!(told(&rig).len(), 3);
}

#[test]
fn one_whose_client_went_is_told_to_nobody() {
    let mut rig = asked_of(1);
    rig.core.handle_leave(CLIENT);
    cancelled(&mut rig, 1001);
    assert_eq!(told(&rig), []);
}

#[test]
fn over_fix_it_is_the_same_and_says_when() {
    let mut rig = Rig::by_fix();
    rig.event(ENTRY, SessionEvent::Ready);
    rig.poll();
    for id in [1001, 1002] {
        rig.create(id);
        let report = rig.report(id, '0', 0, 1, "success");
        rig.says(&report.replace("35=8|", "35=8|52=20270115-08:00:01.000|"));
    }
    let acks: Vec<u64> = rig
        .door
        .sent
        .iter()
        .filter_map(|(_, event)| {
            event
                .body::<OrderAck>()
                .filter(|ack| ack.origin == Origin::EXCHANGE)
                .map(|_| event.header.origin_utc_ns)
        })
        .collect();
    assert_eq!(acks, [1_800_000_001_000_000_000; 2]);
    rig.request(CLIENT, 0, 0, &CancelAll::default());
    rig.poll();
    assert_eq!(rig.venue.fix.len(), 4);
    let report = rig.report(1001, '4', 0, 5, "success");
    rig.says(&report);
    rig.says("35=9|52=20270115-08:00:02.000|41=V-1002|11=V-1002|39=8|58=forbidden|");
    assert_eq!(told(&rig), [(Origin::EXCHANGE, ACCEPTED, 1, 1)]);
    let header = header(&rig);
    assert_eq!((header.stream, header.origin_utc_ns), (ENTRY as u8 + 1, 1_800_000_002_000_000_000));
}

//! Responses to orders, compared field by field and byte by byte.

use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, InstrumentId, Liquidity, MatchId, ModifyOrder, OrderEventKind,
    OrderId, OrderInstructions, OrderRequest, OrderState, Price, Qty, RejectReason, Side, TimeInForce,
    UserRefNum,
};

use crate::support::{Received, Rig, cancel, enter, ioc, order, packet, replace};

fn accepted(order: EnterOrder, order_id: u64) -> OrderEventKind {
    OrderEventKind::Accepted { order, order_id: OrderId(order_id), state: OrderState::Live }
}

fn canceled(user_ref: u32, decrement: u64, reason: CancelReason) -> OrderEventKind {
    OrderEventKind::Canceled { user_ref: UserRefNum(user_ref), decrement: Qty(decrement), reason }
}

fn executed(user_ref: u32, qty: u64, price: i64, liquidity: Liquidity, match_id: u64) -> OrderEventKind {
    OrderEventKind::Executed {
        user_ref: UserRefNum(user_ref),
        qty: Qty(qty),
        price: Price(price),
        liquidity,
        match_id: MatchId(match_id),
    }
}

fn rejected(user_ref: u32, reason: RejectReason) -> OrderEventKind {
    let client_order_id = ClientOrderId(*b"from-the-test ");
    OrderEventKind::Rejected { user_ref: UserRefNum(user_ref), reason, client_order_id }
}

#[test]
fn an_accepted_order_has_the_bytes_of_the_specification() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let before = rig.time_of_day();
    let mut request = b"O\0\0\0\x07B\0\0\0\x64ALPHA   ".to_vec();
    request.extend_from_slice(&1_000_000_u64.to_be_bytes());
    request.extend_from_slice(b"0YPNNfrom-the-test \0\0");
    anna.send(&packet(b'U', &request));
    let Received::Message(message) = rig.receive(&mut anna) else { panic!() };
    let after = rig.time_of_day();

    let ts = u64::from_be_bytes(message[1..9].try_into().unwrap());
    assert!((before..=after).contains(&ts), "{before} {ts} {after}");
    let mut expected = b"\0\0\0\x07B\0\0\0\x64ALPHA   ".to_vec();
    expected.extend_from_slice(&1_000_000_u64.to_be_bytes());
    expected.extend_from_slice(b"0Y\0\0\0\0\0\0\0\x01PNNLfrom-the-test \0\0");
    assert_eq!((message[0], &message[9..]), (b'A', &expected[..]));
}

#[test]
fn an_execution_is_reported_to_both_sides() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let sale = order(1, Side::Sell, 30, 1_000_000);
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(sale)), accepted(sale, 1));
    let buy = order(1, Side::Buy, 50, 1_000_100);
    bert.request(&OrderRequest::Enter(buy));
    assert_eq!(
        rig.receive_events(&mut bert),
        [accepted(buy, 2), executed(1, 30, 1_000_000, Liquidity::Removed, 1)],
        "at the price of the order that rested"
    );
    assert_eq!(rig.receive_event(&mut anna), executed(1, 30, 1_000_000, Liquidity::Added, 1));
    anna.request(&ioc(2, Side::Sell, 20, 1_000_100));
    assert_eq!(rig.receive_events::<2>(&mut anna)[1], executed(2, 20, 1_000_100, Liquidity::Removed, 2));
    assert_eq!(rig.receive_event(&mut bert), executed(1, 20, 1_000_100, Liquidity::Added, 2));
    assert_eq!(rig.view.matcher.executions.read(), 2);
    let instructions = OrderInstructions { is_hidden: true, ..OrderInstructions::default() };
    let hidden = EnterOrder { special: Some(instructions), ..order(3, Side::Sell, 5, 1_000_200) };
    rig.submit(&mut anna, &OrderRequest::Enter(hidden));
    bert.request(&ioc(2, Side::Buy, 5, 1_000_200));
    rig.receive_events::<2>(&mut bert);
    let trades = &rig.view.trades[1];
    let found = (trades.last(), trades.volume.read(), trades.count.read());
    assert_eq!(found, (Some(Price(1_000_200)), 55, 3), "hidden orders trade in public");
    assert_eq!(rig.view.trades[2].last(), None);
}

#[test]
fn matching_has_price_time_priority() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    for (user_ref, qty, price) in [(1, 10, 1_000_100), (2, 10, 1_000_000), (3, 90, 1_000_000)] {
        rig.submit(&mut anna, &enter(user_ref, Side::Sell, qty, price));
    }
    bert.request(&enter(1, Side::Buy, 105, 1_000_100));
    let [_, first, second, third] = rig.receive_events(&mut bert);
    let taken = |qty, price, match_id| executed(1, qty, price, Liquidity::Removed, match_id);
    assert_eq!(
        [first, second, third],
        [taken(10, 1_000_000, 1), taken(90, 1_000_000, 2), taken(5, 1_000_100, 3)]
    );
    let given = |user_ref, qty, price, match_id| executed(user_ref, qty, price, Liquidity::Added, match_id);
    assert_eq!(
        rig.receive_events(&mut anna),
        [given(2, 10, 1_000_000, 1), given(3, 90, 1_000_000, 2), given(1, 5, 1_000_100, 3)]
    );
}

#[test]
fn a_cancel_reduces_or_removes_and_is_reported_once() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    rig.submit(&mut anna, &enter(1, Side::Buy, 100, 1_000_000));
    assert_eq!(rig.submit(&mut anna, &cancel(1, 60)), canceled(1, 40, CancelReason::User));
    assert_eq!(rig.submit(&mut anna, &cancel(1, 0)), canceled(1, 60, CancelReason::User));
    // A cancel of a closed order has no response: the next response is to the next order.
    anna.request(&cancel(1, 0));
    let next = order(2, Side::Buy, 1, 1_000_000);
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(next)), accepted(next, 2));
}

#[test]
fn a_replacement_has_a_new_number_and_counts_executions() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let first = order(1, Side::Sell, 100, 1_000_000);
    rig.submit(&mut anna, &OrderRequest::Enter(first));
    bert.request(&ioc(1, Side::Buy, 30, 1_000_000));
    rig.receive_events::<2>(&mut bert);
    rig.receive_event(&mut anna);

    let replaced = rig.submit(&mut anna, &replace(1, 2, 80, 1_000_200));
    let order = EnterOrder {
        user_ref: UserRefNum(2),
        qty: Qty(80),
        price: Price(1_000_200),
        client_order_id: ClientOrderId(*b"replaced      "),
        ..first
    };
    let (orig_user_ref, state) = (UserRefNum(1), OrderState::Live);
    assert_eq!(
        replaced,
        OrderEventKind::Replaced { order, orig_user_ref, order_id: OrderId(3), state },
        "order 2 was the IOC"
    );
    bert.request(&ioc(2, Side::Buy, 100, 1_000_200));
    let [_, traded, rest] = rig.receive_events(&mut bert);
    assert_eq!(traded, executed(2, 50, 1_000_200, Liquidity::Removed, 2), "80 intended less 30 executed");
    assert_eq!(rest, canceled(2, 50, CancelReason::ImmediateOrCancel));

    let filled = rig.submit(&mut anna, &replace(2, 3, 80, 1_000_200));
    let client_order_id = ClientOrderId(*b"replaced      ");
    let reason = RejectReason::UnknownOrder;
    assert_eq!(
        filled,
        OrderEventKind::Executed {
            user_ref: UserRefNum(2),
            qty: Qty(50),
            price: Price(1_000_200),
            liquidity: Liquidity::Added,
            match_id: MatchId(2)
        }
    );
    let refused = rig.receive_event(&mut anna);
    assert_eq!(refused, OrderEventKind::Rejected { user_ref: UserRefNum(3), reason, client_order_id });
}

#[test]
fn a_modification_keeps_its_priority() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    rig.submit(&mut anna, &enter(1, Side::Sell, 100, 1_000_000));
    rig.submit(&mut anna, &enter(2, Side::Sell, 100, 1_000_000));
    let modify = ModifyOrder { user_ref: UserRefNum(1), side_marking: b'T', qty: Qty(40) };
    let modified = OrderEventKind::Modified { user_ref: UserRefNum(1), side_marking: b'T', qty: Qty(40) };
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Modify(modify)), modified);
    bert.request(&ioc(1, Side::Buy, 50, 1_000_000));
    rig.receive_events::<3>(&mut bert);
    assert_eq!(
        rig.receive_events(&mut anna),
        [executed(1, 40, 1_000_000, Liquidity::Added, 1), executed(2, 10, 1_000_000, Liquidity::Added, 2)]
    );
}

#[test]
fn ioc_and_post_only_orders_are_accepted_and_cancelled() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    rig.submit(&mut anna, &enter(1, Side::Sell, 10, 1_000_000));

    let take = EnterOrder { time_in_force: TimeInForce::Ioc, ..order(1, Side::Buy, 25, 1_000_000) };
    bert.request(&OrderRequest::Enter(take));
    assert_eq!(
        rig.receive_events(&mut bert),
        [
            accepted(take, 2),
            executed(1, 10, 1_000_000, Liquidity::Removed, 1),
            canceled(1, 15, CancelReason::ImmediateOrCancel)
        ]
    );

    rig.submit(&mut bert, &enter(2, Side::Buy, 10, 999_900));
    rig.receive_event(&mut anna);
    let crossing = EnterOrder { post_only: true, ..order(2, Side::Sell, 5, 999_900) };
    anna.request(&OrderRequest::Enter(crossing));
    assert_eq!(
        rig.receive_events(&mut anna),
        [accepted(crossing, 4), canceled(2, 5, CancelReason::PostOnly)]
    );
    let resting = EnterOrder { post_only: true, ..order(3, Side::Sell, 5, 1_000_000) };
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(resting)), accepted(resting, 5));

    let all_or_none = EnterOrder { min_qty: Qty(6), ..EnterOrder { qty: Qty(6), ..take } };
    let all_or_none = EnterOrder { user_ref: UserRefNum(3), ..all_or_none };
    bert.request(&OrderRequest::Enter(all_or_none));
    assert_eq!(
        rig.receive_events(&mut bert),
        [accepted(all_or_none, 6), canceled(3, 6, CancelReason::ImmediateOrCancel)]
    );
}

#[test]
fn invalid_orders_are_rejected_with_a_reason() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let good = order(1, Side::Buy, 10, 1_000_000);
    for (user_ref, bad, reason) in [
        (1, EnterOrder { price: Price(1_000_050), ..good }, RejectReason::PriceNotOnTick),
        (2, EnterOrder { price: Price(899_900), ..good }, RejectReason::PriceOutsideCollar),
        (3, EnterOrder { qty: Qty(0), ..good }, RejectReason::InvalidQty),
        (4, EnterOrder { qty: Qty(100_001), ..good }, RejectReason::InvalidQty),
        (5, EnterOrder { min_qty: Qty(5), ..good }, RejectReason::InvalidMinQty),
    ] {
        let bad = EnterOrder { user_ref: UserRefNum(user_ref), ..bad };
        assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(bad)), rejected(user_ref, reason), "{bad:?}");
    }
    // Invalid values that only an encoded message can have: an unknown symbol, side, or time in force.
    let wire = crate::support::request_packet(&OrderRequest::Enter(good));
    let mut user_ref = 5_u32;
    for (offset, bytes, reason) in [
        (3 + 10, &b"NOSUCH  "[..], RejectReason::UnknownInstrument),
        (3 + 5, b"?", RejectReason::InvalidSide),
        (3 + 26, b"E", RejectReason::TimeInForceNotOffered),
        (3 + 27, b"A", RejectReason::DisplayNotOffered),
        (3 + 30, b"O", RejectReason::CrossNotOffered),
    ] {
        user_ref += 1;
        let mut bad = wire.clone();
        bad[4..8].copy_from_slice(&user_ref.to_be_bytes());
        bad[offset..offset + bytes.len()].copy_from_slice(bytes);
        anna.send(&bad);
        assert_eq!(rig.receive_event(&mut anna), rejected(user_ref, reason));
    }
    let counters = &rig.view.order_server;
    assert_eq!((counters.requests.read(), counters.requests_refused.read()), (10, 5));
    assert_eq!(rig.view.publisher.messages.read(), 7, "the opening alone: a refusal is not public");
}

#[test]
fn a_modification_with_an_invalid_side_is_rejected_without_using_a_number() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    rig.submit(&mut anna, &enter(7, Side::Sell, 10, 1_000_000));
    let modify = ModifyOrder { user_ref: UserRefNum(7), side_marking: b'?', qty: Qty(5) };
    let (reason, client_order_id) = (RejectReason::InvalidSide, ClientOrderId::default());
    let refused = OrderEventKind::Rejected { user_ref: UserRefNum(7), reason, client_order_id };
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Modify(modify)), refused);
    // A modification of an unknown order has no response: the next response is to the next request.
    let unknown = ModifyOrder { user_ref: UserRefNum(u32::MAX), side_marking: b'S', qty: Qty(5) };
    anna.request(&OrderRequest::Modify(unknown));
    let modify = ModifyOrder { user_ref: UserRefNum(7), side_marking: b'T', qty: Qty(5) };
    let modified = OrderEventKind::Modified { user_ref: UserRefNum(7), side_marking: b'T', qty: Qty(5) };
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Modify(modify)), modified, "the order stands");
    let next = order(8, Side::Buy, 1, 999_900);
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(next)), accepted(next, 2));
    assert_eq!(rig.view.order_server.requests_refused.read(), 0, "it is the engine that refuses");
}

#[test]
fn a_used_number_is_ignored_and_a_query_returns_the_next() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    rig.submit(&mut anna, &enter(7, Side::Buy, 10, 1_000_000));
    anna.request(&enter(7, Side::Buy, 10, 1_000_000));
    anna.request(&enter(6, Side::Buy, 10, 1_000_000));
    let next = order(8, Side::Buy, 1, 1_000_000);
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(next)), accepted(next, 2));
    anna.send(&packet(b'U', b"Q"));
    let Received::Message(answer) = rig.receive(&mut anna) else { panic!() };
    assert_eq!((answer[0], &answer[9..13]), (b'Q', &9_u32.to_be_bytes()[..]));
}

#[test]
fn a_user_with_no_numbers_left_is_answered() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let last = order(u32::MAX, Side::Buy, 1, 1_000_000);
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(last)), accepted(last, 1));
    anna.send(&packet(b'U', b"Q"));
    let Received::Message(answer) = rig.receive(&mut anna) else { panic!() };
    assert_eq!((answer[0], &answer[9..13]), (b'Q', &[0; 4][..]), "there is no next number");
    for number in [1, 0] {
        let client_order_id = order(number, Side::Buy, 1, 1_000_000).client_order_id;
        let (user_ref, reason) = (UserRefNum(number), RejectReason::UserRefsExhausted);
        let rejected = OrderEventKind::Rejected { user_ref, reason, client_order_id };
        assert_eq!(rig.submit(&mut anna, &enter(number, Side::Buy, 1, 1_000_000)), rejected);
    }
}

/// A market order has no price at which a remainder could rest, so it needs time in force IOC.
#[test]
fn a_market_order_that_would_rest_is_rejected() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let market = |number, time_in_force| EnterOrder {
        time_in_force,
        price: Price::MARKET,
        ..order(number, Side::Buy, 1, 1_000_000)
    };
    let (day, ioc) = (market(1, TimeInForce::Day), market(2, TimeInForce::Ioc));
    let rejected = OrderEventKind::Rejected {
        user_ref: day.user_ref,
        reason: RejectReason::PriceOutsideCollar,
        client_order_id: day.client_order_id,
    };
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(day)), rejected);
    assert_eq!(rig.submit(&mut anna, &OrderRequest::Enter(ioc)), accepted(ioc, 1));
}

#[test]
fn queries_are_logged_and_answered_in_order() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let commands = rig.view.matcher.commands.read();
    let request = |user_ref| crate::support::request_packet(&enter(user_ref, Side::Buy, 10, 1_000_000));
    let query = packet(b'U', b"Q");
    anna.send(&[request(1), query.clone(), request(5), query].concat());
    assert_eq!(rig.receive_event(&mut anna).user_ref(), UserRefNum(1));
    let mut times = vec![];
    for next in [2_u32, 6] {
        let Received::Message(answer) = rig.receive(&mut anna) else { panic!() };
        assert_eq!((answer[0], answer.len(), &answer[9..13]), (b'Q', 13, &next.to_be_bytes()[..]));
        times.push(u64::from_be_bytes(answer[1..9].try_into().unwrap()));
        if next == 2 {
            assert_eq!(rig.receive_event(&mut anna).user_ref(), UserRefNum(5));
        }
    }
    assert!(times[1] >= times[0] + 2, "the times of the first and the third command after it: {times:?}");
    assert_eq!(rig.view.matcher.commands.read(), commands + 4);
    assert_eq!(rig.view.order_server.commands.read(), commands + 4);
}

#[test]
fn requests_of_one_write_are_answered_in_order() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let mut bytes = vec![];
    for user_ref in 1..=100 {
        bytes.extend(crate::support::request_packet(&enter(user_ref, Side::Buy, 1, 1_000_000)));
    }
    anna.send(&bytes);
    for user_ref in 1..=100 {
        assert_eq!(
            rig.receive_event(&mut anna),
            accepted(order(user_ref, Side::Buy, 1, 1_000_000), user_ref.into())
        );
    }
}

#[test]
fn instruments_have_separate_books() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    rig.submit(&mut anna, &enter(1, Side::Sell, 10, 1_000_000));
    let other = EnterOrder { instrument: InstrumentId(2), ..order(1, Side::Buy, 10, 1_000_000) };
    assert_eq!(rig.submit(&mut bert, &OrderRequest::Enter(other)), accepted(other, 2));
    rig.assert_serves(&mut bert, 2);
    assert_eq!(rig.view.matcher.executions.read(), 0);
}

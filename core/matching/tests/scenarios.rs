//! Tests of plain orders and the events that they cause; [`scenario`] describes the text format.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::common::{Event, apply, instruments, numbered, order};
use crate::scenario::check;
use tickpath_book::FastBooks;
use tickpath_matching::{CommandKind, Engine, EngineLimits, Owner};
use tickpath_types::*;

#[test]
fn a_limit_order_rests() {
    check(
        "
        s1 buy 1 100 @ 10.00: rests as #1
        s2 sell 1 50 @ 10.01: rests as #2
        ",
    );
}

#[test]
fn an_order_trades_at_the_resting_price_and_fills_the_earliest_first() {
    check(
        "
        s1 sell 1 100 @ 10.01: rests as #1
        s2 sell 1 100 @ 10.01: rests as #2
        s1 sell 2 100 @ 10.00: rests as #3
        s3 buy 1 250 @ 10.05
          accepted as #4
          s3 1 takes 100 @ 10.00 of s1 2 #3 m1
          s3 1 takes 100 @ 10.01 of s1 1 #1 m2
          s3 1 takes 50 @ 10.01 of s2 1 #2 m3
        s2 cancel 1: s2! canceled 1 -50 User; deleted #2
        ",
    );
}

#[test]
fn the_remainder_rests() {
    check(
        "
        s1 buy 1 30 @ 10.00: rests as #1
        s2 sell 1 100 @ 9.90
          accepted as #2
          s2 1 takes 30 @ 10.00 of s1 1 #1 m1
          * add #2 sell 70 @ 9.90
        ",
    );
}

#[test]
fn an_ioc_order_never_rests() {
    check(
        "
        s1 buy 1 30 @ 10.00: rests as #1
        s2 sell 1 100 @ 10.00 ioc
          accepted as #2
          s2 1 takes 30 @ 10.00 of s1 1 #1 m1
          s2 canceled 1 -70 ImmediateOrCancel
        s2 sell 2 100 @ 10.00 ioc
          accepted as #3
          s2 canceled 2 -100 ImmediateOrCancel
        ",
    );
}

#[test]
fn a_market_order_goes_as_far_as_the_collar() {
    check(
        "
        s1 buy 1 30 @ 5.00: rests as #1
        s2 sell 1 40 @ market ioc
          accepted as #2
          s2 1 takes 30 @ 5.00 of s1 1 #1 m1
          s2 canceled 1 -10 ImmediateOrCancel
        s1 sell 2 30 @ 15.00: rests as #3
        s2 buy 2 30 @ market ioc
          accepted as #4
          s2 2 takes 30 @ 15.00 of s1 2 #3 m2
        s2 buy 3 30 @ market: s2! rejected 3 PriceOutsideCollar
        ",
    );
}

#[test]
fn the_minimum_trades_on_entry_or_nothing_does() {
    check(
        "
        s1 sell 1 30 @ 10.00: rests as #1
        s1 sell 2 30 @ 10.01: rests as #2
        s2 buy 1 100 @ 10.00 ioc min 31
          accepted as #3
          s2 canceled 1 -100 ImmediateOrCancel
        s2 buy 2 61 @ 10.01 ioc min 61
          accepted as #4
          s2 canceled 2 -61 ImmediateOrCancel
        s2 buy 3 60 @ 10.01 ioc min 60
          accepted as #5
          s2 3 takes 30 @ 10.00 of s1 1 #1 m1
          s2 3 takes 30 @ 10.01 of s1 2 #2 m2
        s2 buy 4 10 @ 10.00 ioc min 11: s2! rejected 4 InvalidMinQty
        s2 buy 5 10 @ 10.00 min 5: s2! rejected 5 InvalidMinQty
        ",
    );
}

#[test]
fn a_minimum_is_a_floor_and_not_a_ceiling() {
    check(
        "
        s1 sell 1 30 @ 10.00: rests as #1
        s2 buy 1 100 @ 10.00 ioc min 20
          accepted as #2
          s2 1 takes 30 @ 10.00 of s1 1 #1 m1
          s2 canceled 1 -70 ImmediateOrCancel
        ",
    );
}

#[test]
fn a_post_only_order_does_not_take() {
    check(
        "
        s1 sell 1 30 @ 10.01: rests as #1
        s2 buy 1 10 @ 10.01 post-only
          accepted as #2
          s2 canceled 1 -10 PostOnly
        s2 buy 2 10 @ 10.00 post-only: rests as #3
        ",
    );
}

#[test]
fn orders_are_checked_against_their_instrument() {
    check(
        "
        s1 buy 1 10 @ 10.00 in 9: s1! rejected 1 UnknownInstrument
        s1 buy 2 10 @ 10.005: s1! rejected 2 PriceNotOnTick
        s1 buy 3 10 @ -1: s1! rejected 3 PriceNotOnTick
        s1 buy 4 10 @ 4.99: s1! rejected 4 PriceOutsideCollar
        s1 buy 5 10 @ 15.01: s1! rejected 5 PriceOutsideCollar
        s1 buy 6 0 @ 10.00: s1! rejected 6 InvalidQty
        s1 buy 7 10001 @ 10.00: s1! rejected 7 InvalidQty
        s1 buy 8 15 @ 10.00 in 2: s1! rejected 8 InvalidQty
        s1 buy 9 10 @ 10.00 in 0: s1! rejected 9 UnknownInstrument
        s1 buy 10 10000 @ 5.00: rests as #1
        s1 sell 11 20 @ 15.00 in 2: rests as #2
        ",
    );
}

#[test]
fn a_number_is_used_once() {
    check(
        "
        s1 buy 5 10 @ 10.00: rests as #1
        s1 buy 5 10 @ 10.00
        s1 buy 4 10 @ 10.00
        s1 buy 0 10 @ 10.00
        s1 buy 6 10 @ 99.00: s1! rejected 6 PriceOutsideCollar
        s1 buy 6 10 @ 10.00
        s1 replace 5 by 6 10 @ 10.00
        s1 refuse 6
        s1 refuse 7: s1! rejected 7 DisplayNotOffered CLIENT-ORDER-7
        s1 buy 7 10 @ 10.00
        s2 buy 5 10 @ 10.00: rests as #2
        s1 buy 4294967295 10 @ 10.00: rests as #3
        ",
    );
}

#[test]
fn a_session_without_a_number_left_is_answered() {
    check(
        "
        s1 buy 5 10 @ 10.00: rests as #1
        s1 buy 4294967295 10 @ 10.00: rests as #2
        s1 buy 6 10 @ 10.00: s1! rejected 6 UserRefsExhausted
        s1 buy 0 10 @ 10.00: s1! rejected 0 UserRefsExhausted
        s1 replace 5 by 7 10 @ 10.00: s1! rejected 7 UserRefsExhausted
        s1 buy 4294967295 10 @ 10.00
        s1 buy 5 10 @ 10.00
        s1 cancel 4294967295: s1! canceled 4294967295 -10 User; deleted #2
        s1 buy 4294967295 10 @ 10.00: s1! rejected 4294967295 UserRefsExhausted
        s1 refuse 8: s1! rejected 8 UserRefsExhausted CLIENT-ORDER-7
        ",
    );
}

#[test]
fn sessions_that_do_not_exist_may_not_trade() {
    check(
        "
        s8 buy 1 10 @ 10.00: s8! rejected 1 NotAuthorised
        s8 replace 1 by 2 10 @ 10.00: s8! rejected 2 NotAuthorised
        s8 refuse 3: s8! rejected 3 NotAuthorised CLIENT-ORDER-7
        s8 cancel 1
        s8 modify 1 B to 5
        s8 cancel-all
        s7 buy 1 10 @ 10.00: rests as #1
        ",
    );
}

#[test]
fn a_cancel_names_the_new_size_with_what_was_executed() {
    check(
        "
        s1 sell 1 100 @ 10.00: rests as #1
        s1 sell 2 100 @ 10.00: rests as #2
        s2 buy 1 30 @ 10.00
          accepted as #3
          s2 1 takes 30 @ 10.00 of s1 1 #1 m1
        s1 cancel 1 to 100
        s1 cancel 1 to 101
        s1 cancel 1 to 50: s1! canceled 1 -50 User; reduced #1 -50
        s2 buy 2 25 @ 10.00
          accepted as #4
          s2 2 takes 20 @ 10.00 of s1 1 #1 m2
          s2 2 takes 5 @ 10.00 of s1 2 #2 m3
        s1 cancel 1
        s1 cancel 2 to 5: s1! canceled 2 -95 User; deleted #2
        s1 cancel 2
        s3 cancel 2
        ",
    );
}

#[test]
fn a_size_below_what_was_executed_cancels_the_rest() {
    check(
        "
        s1 sell 1 100 @ 10.00: rests as #1
        s2 buy 1 30 @ 10.00
          accepted as #2
          s2 1 takes 30 @ 10.00 of s1 1 #1 m1
        s1 cancel 1 to 29: s1! canceled 1 -70 User; deleted #1
        ",
    );
}

#[test]
fn sizes_stay_in_lots() {
    check(
        "
        s1 sell 1 100 @ 10.00 in 2: rests as #1
        s1 cancel 1 to 55
        s1 modify 1 S to 55: s1! rejected 1 InvalidQty
        s1 replace 1 by 2 55 @ 10.00: s1! rejected 2 InvalidQty
        s1 cancel 1 to 50: s1! canceled 1 -50 User; reduced #1 -50
        ",
    );
}

#[test]
fn a_modified_order_keeps_its_place() {
    check(
        "
        s1 sell 1 100 @ 10.00: rests as #1
        s2 sell 1 100 @ 10.00: rests as #2
        s1 modify 1 T to 60: s1! modified 1 T 60; reduced #1 -40
        s1 modify 1 E to 60: s1! modified 1 E 60
        s1 modify 1 S to 61: s1! rejected 1 InvalidQty
        s1 modify 1 S to 0: s1! rejected 1 InvalidQty
        s1 modify 1 B to 50: s1! rejected 1 InvalidSide
        s1 modify 9 S to 50
        s3 buy 1 40 @ 10.00
          accepted as #3
          s3 1 takes 40 @ 10.00 of s1 1 #1 m1
        s1 modify 1 S to 50: s1! modified 1 S 50; reduced #1 -10
        s1 modify 1 S to 40: s1! canceled 1 -10 User; deleted #1
        s3 buy 2 10 @ 9.00: rests as #4
        s3 modify 2 S to 5: s3! rejected 2 InvalidSide
        s3 modify 2 B to 5: s3! modified 2 B 5; reduced #4 -5
        ",
    );
}

#[test]
fn a_replaced_order_goes_to_the_tail() {
    check(
        "
        s1 buy 1 100 @ 10.00: rests as #1
        s2 buy 1 100 @ 10.00: rests as #2
        s1 replace 1 by 2 100 @ 10.00
          s1! replaced 1 by 2 as #3 Live buy 100 @ 10.00
          * replaced #1 by #3 100 @ 10.00
        s3 sell 1 150 @ 10.00
          accepted as #4
          s3 1 takes 100 @ 10.00 of s2 1 #2 m1
          s3 1 takes 50 @ 10.00 of s1 2 #3 m2
        s1 replace 2 by 3 120 @ 9.99
          s1! replaced 2 by 3 as #5 Live buy 120 @ 9.99
          * replaced #3 by #5 70 @ 9.99
        s1 replace 2 by 4 120 @ 9.99: s1! rejected 4 UnknownOrder
        s1 replace 3 by 5 0 @ 9.99: s1! rejected 5 InvalidQty
        s1 replace 3 by 6 100 @ 99.00: s1! rejected 6 PriceOutsideCollar
        s1 cancel 3: s1! canceled 3 -70 User; deleted #5
        ",
    );
}

#[test]
fn a_replacement_that_trades_leaves_the_book_first() {
    check(
        "
        s1 buy 1 100 @ 10.00: rests as #1
        s2 sell 1 30 @ 10.02: rests as #2
        s1 replace 1 by 2 100 @ 10.02
          s1! replaced 1 by 2 as #3 Live buy 100 @ 10.02
          * deleted #1
          s1 2 takes 30 @ 10.02 of s2 1 #2 m1
          * add #3 buy 70 @ 10.02
        s1 replace 2 by 3 30 @ 10.02: s1! canceled 2 -70 User; deleted #3
        s1 replace 2 by 4 100 @ 10.02: s1! rejected 4 UnknownOrder
        ",
    );
}

#[test]
fn a_replacement_has_its_own_instructions() {
    check(
        "
        s1 buy 1 100 @ 10.00: rests as #1
        s2 sell 1 30 @ 10.02: rests as #2
        s1 replace 1 by 2 100 @ 10.02 post-only
          s1! replaced 1 by 2 as #3 Live buy 100 @ 10.02
          * deleted #1
          s1 canceled 2 -100 PostOnly
        s1 buy 3 100 @ 10.00: rests as #4
        s1 replace 3 by 4 100 @ 10.01 ioc
          s1! replaced 3 by 4 as #5 Live buy 100 @ 10.01
          * deleted #4
          s1 canceled 4 -100 ImmediateOrCancel
        s1 buy 5 100 @ 10.00: rests as #6
        s1 replace 5 by 6 100 @ 10.02 ioc min 31
          s1! replaced 5 by 6 as #7 Live buy 100 @ 10.02
          * deleted #6
          s1 canceled 6 -100 ImmediateOrCancel
        s1 buy 7 100 @ 10.00: rests as #8
        s1 replace 7 by 8 100 @ market ioc min 30
          s1! replaced 7 by 8 as #9 Live buy 100 @ market
          * deleted #8
          s1 8 takes 30 @ 10.02 of s2 1 #2 m1
          s1 canceled 8 -70 ImmediateOrCancel
        ",
    );
}

#[test]
fn earlier_executions_count_for_the_minimum() {
    check(
        "
        s1 sell 1 100 @ 10.00: rests as #1
        s2 buy 1 60 @ 10.00
          accepted as #2
          s2 1 takes 60 @ 10.00 of s1 1 #1 m1
        s1 replace 1 by 2 100 @ 9.00 ioc min 41: s1! rejected 2 InvalidMinQty
        s1 replace 1 by 3 100 @ 9.00 ioc min 40
          s1! replaced 1 by 3 as #3 Live sell 100 @ 9.00
          * deleted #1
          s1 canceled 3 -40 ImmediateOrCancel
        ",
    );
}

#[test]
fn halted_instruments_reject_orders_and_quoting_ones_only_rest_them() {
    check(
        "
        s1 sell 1 100 @ 10.00: rests as #1
        halt 1: * Halted 1
        s2 buy 1 100 @ 10.00: s2! rejected 1 Halted
        s1 replace 1 by 2 100 @ 10.00: s1! rejected 2 Halted
        s1 modify 1 S to 90: s1! modified 1 S 90; reduced #1 -10
        s1 cancel 1 to 80: s1! canceled 1 -10 User; reduced #1 -10
        quote 1: * QuotationOnly 1
        s2 buy 2 100 @ 10.00: rests as #2
        s2 buy 3 100 @ 10.00 in 2: rests as #3
        s1 cancel 1: s1! canceled 1 -80 User; deleted #1
        trade 1: * Trading 1
        s2 buy 4 100 @ 10.00: rests as #4
        ",
    );
}

#[test]
fn an_instrument_is_halted_until_it_is_opened() {
    check(
        "
        s1 buy 1 10 @ 10.00 in 3: s1! rejected 1 Halted
        open 3
          * directory 3
          * QuotationOnly 3
        trade 3: * Trading 3
        s1 buy 2 10 @ 10.00 in 3: rests as #1
        open 4
        halt 4
        halt 0
        end: * EndOfMessages
        ",
    );
}

#[test]
fn a_session_is_cancelled_in_the_order_of_entry() {
    check(
        "
        s1 buy 1 10 @ 9.00: rests as #1
        s1 sell 2 20 @ 11.00 in 2: rests as #2
        s2 buy 1 30 @ 10.00: rests as #3
        s1 buy 70000 40 @ 10.00: rests as #4
        s1 replace 1 by 4000000000 10 @ 9.50
          s1! replaced 1 by 4000000000 as #5 Live buy 10 @ 9.50
          * replaced #1 by #5 10 @ 9.50
        s1 cancel-all
          s1! canceled 2 -20 System; deleted #2
          s1 canceled 70000 -40 System; deleted #4
          s1 canceled 4000000000 -10 System; deleted #5
        s1 cancel-all
        s2 cancel 1: s2! canceled 1 -30 User; deleted #3
        ",
    );
}

#[test]
fn orders_of_one_owner_trade() {
    check(
        "
        s1 buy 1 10 @ 10.00: rests as #1
        s1 sell 2 10 @ 10.00
          accepted as #2
          s1 2 takes 10 @ 10.00 of s1 1 #1 m1
        ",
    );
}

#[test]
fn a_replacement_keeps_the_capacity_and_the_cross_type() {
    let mut engine = Engine::<FastBooks<Owner>>::new(&instruments(1), EngineLimits::default()).unwrap();
    let mut sequence = 0;
    let mut send = |kind| apply(&mut engine, &numbered(&mut sequence, 1, kind));
    send(CommandKind::OpenInstrument { instrument: InstrumentId(1), state: TradingState::Trading });
    let attributes =
        OrderAttributes { capacity: b'A', cross_type: b'C', intermarket_sweep: b'Y', ..Default::default() };
    let first = EnterOrder { attributes, ..order(1, Side::Buy, 100, 100_000) };
    send(CommandKind::Order(OrderRequest::Enter(first)));
    // Replaces twice, since the replacement must pass the attributes on too.
    for user_ref in [2, 3] {
        let replace = order(user_ref, Side::Buy, 100, 99_000).replacing(UserRefNum(user_ref - 1));
        let events = send(CommandKind::Order(OrderRequest::Replace(replace)));
        let Some(Event::Order(OrderEvent { kind: OrderEventKind::Replaced { order, .. }, .. })) =
            events.first()
        else {
            panic!("{events:?}")
        };
        let kept = OrderAttributes { intermarket_sweep: b'N', ..attributes };
        assert_eq!(order.attributes, kept, "what a replacement says is its own");
    }
}

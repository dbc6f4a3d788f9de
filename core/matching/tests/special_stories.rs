//! Hidden and reserve orders, stops, orders that end with time, trades with oneself: told as [`story`] tells them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/auditor.rs"]
mod auditor;
mod common;
#[path = "common/story.rs"]
mod story;

use story::check;

#[test]
fn a_hidden_order_trades_behind_what_is_displayed() {
    check(
        "
        s1 sell 1 50 @ 10.00 hidden
          s1! accepted 1 as #1 Live 50 @ 10.00
        s2 sell 1 30 @ 10.00
          s2! accepted 1 as #2 Live 30 @ 10.00
          * add #2 sell 30 @ 10.00
        s3 buy 1 60 @ 10.00
          s3! accepted 1 as #3 Live 60 @ 10.00
          s3 executed 1 30 @ 10.00 Removed m1
          s2 executed 1 30 @ 10.00 Added m1
          * executed #2 30 m1
          s3 executed 1 30 @ 10.00 Removed m2
          s1 executed 1 30 @ 10.00 AddedHidden m2
          * traded sell 30 @ 10.00 m2
        s3 buy 2 60 @ 10.00
          s3! accepted 2 as #4 Live 60 @ 10.00
          s3 executed 2 20 @ 10.00 Removed m3
          s1 executed 1 20 @ 10.00 AddedHidden m3
          * traded sell 20 @ 10.00 m3
          * add #4 buy 40 @ 10.00
        s1 sell 2 5 @ 9.99 hidden post-only
          s1! accepted 2 as #5 Live 5 @ 9.99
          s1 canceled 2 -5 PostOnly
        s1 sell 3 20 @ 9.99 hidden
          s1! accepted 3 as #6 Live 20 @ 9.99
          s1 executed 3 20 @ 10.00 Removed m4
          s3 executed 2 20 @ 10.00 Added m4
          * executed #4 20 m4
        ",
    );
}

#[test]
fn a_reserve_shows_its_next_part_at_the_tail() {
    check(
        "
        s1 sell 1 50 @ 10.00 show 20
          s1! accepted 1 as #1 Live 50 @ 10.00
          * add #1 sell 20 @ 10.00
        s2 sell 1 20 @ 10.00
          s2! accepted 1 as #2 Live 20 @ 10.00
          * add #2 sell 20 @ 10.00
        s3 buy 1 30 @ 10.00
          s3! accepted 1 as #3 Live 30 @ 10.00
          s3 executed 1 20 @ 10.00 Removed m1
          s1 executed 1 20 @ 10.00 Added m1
          * executed #1 20 m1
          * add #4 sell 20 @ 10.00
          s1 restated 1 as #4 showing 20
          s3 executed 1 10 @ 10.00 Removed m2
          s2 executed 1 10 @ 10.00 Added m2
          * executed #2 10 m2
        s1 cancel 1 to 45
          s1! canceled 1 -5 User
        s3 buy 2 25 @ 10.00 ioc min 25
          s3! accepted 2 as #5 Live 25 @ 10.00
          s3 executed 2 10 @ 10.00 Removed m3
          s2 executed 1 10 @ 10.00 Added m3
          * executed #2 10 m3
          s3 executed 2 15 @ 10.00 Removed m4
          s1 executed 1 15 @ 10.00 Added m4
          * executed #4 15 m4
        s1 cancel 1 to 38
          s1! canceled 1 -7 User
          * reduced #4 -2
        s1 modify 1 S to 36
          s1! modified 1 S 36
          * reduced #4 -2
        s3 buy 3 50 @ 10.00 ioc
          s3! accepted 3 as #6 Live 50 @ 10.00
          s3 executed 3 1 @ 10.00 Removed m5
          s1 executed 1 1 @ 10.00 Added m5
          * executed #4 1 m5
          s3 canceled 3 -49 ImmediateOrCancel
        s1 sell 2 50 @ 10.00 show 60
          s1! rejected 2 InvalidDisplayQty
        s1 sell 3 50 @ 10.00 show 5 ioc
          s1! rejected 3 InvalidDisplayQty
        s1 sell 4 50 @ 10.00 show 20
          s1! accepted 4 as #7 Live 50 @ 10.00
          * add #7 sell 20 @ 10.00
        s1 cancel 4
          s1! canceled 4 -50 User
          * deleted #7
        ",
    );
}

/// Fill-or-kill is IOC with the whole quantity as its minimum.
#[test]
fn fill_or_kill_counts_everything_that_it_could_trade_with() {
    check(
        "
        s1 sell 1 30 @ 10.00 show 10
          s1! accepted 1 as #1 Live 30 @ 10.00
          * add #1 sell 10 @ 10.00
        s1 sell 2 20 @ 10.01 hidden
          s1! accepted 2 as #2 Live 20 @ 10.01
        s2 sell 1 5 @ 10.02
          s2! accepted 1 as #3 Live 5 @ 10.02
          * add #3 sell 5 @ 10.02
        s3 buy 1 51 @ 10.01 ioc min 51
          s3! accepted 1 as #4 Live 51 @ 10.01
          s3 canceled 1 -51 ImmediateOrCancel
        s3 buy 2 56 @ 10.02 ioc min 56
          s3! accepted 2 as #5 Live 56 @ 10.02
          s3 canceled 2 -56 ImmediateOrCancel
        s3 buy 3 56 @ 10.02 ioc min 57
          s3! rejected 3 InvalidMinQty
        s3 buy 4 55 @ 10.02 ioc min 55
          s3! accepted 4 as #6 Live 55 @ 10.02
          s3 executed 4 10 @ 10.00 Removed m1
          s1 executed 1 10 @ 10.00 Added m1
          * executed #1 10 m1
          * add #7 sell 10 @ 10.00
          s1 restated 1 as #7 showing 10
          s3 executed 4 10 @ 10.00 Removed m2
          s1 executed 1 10 @ 10.00 Added m2
          * executed #7 10 m2
          * add #8 sell 10 @ 10.00
          s1 restated 1 as #8 showing 10
          s3 executed 4 10 @ 10.00 Removed m3
          s1 executed 1 10 @ 10.00 Added m3
          * executed #8 10 m3
          s3 executed 4 20 @ 10.01 Removed m4
          s1 executed 2 20 @ 10.01 AddedHidden m4
          * traded sell 20 @ 10.01 m4
          s3 executed 4 5 @ 10.02 Removed m5
          s2 executed 1 5 @ 10.02 Added m5
          * executed #3 5 m5
        ",
    );
}

#[test]
fn a_stop_waits_for_a_trade_and_one_triggers_the_next() {
    check(
        "
        s1 sell 1 10 @ 10.00
          s1! accepted 1 as #1 Live 10 @ 10.00
          * add #1 sell 10 @ 10.00
        s2 buy 1 10 @ market stop 10.00
          s2! accepted 1 as #2 Live 10 @ market
        s2 buy 2 10 @ 10.10 stop 10.01 gtc
          s2! accepted 2 as #3 Live 10 @ 10.10
        s2 buy 3 10 @ 10.10 stop 10.00
          s2! accepted 3 as #4 Live 10 @ 10.10
        s1 sell 2 5 @ 10.01
          s1! accepted 2 as #5 Live 5 @ 10.01
          * add #5 sell 5 @ 10.01
        s1 sell 3 50 @ 10.20
          s1! accepted 3 as #6 Live 50 @ 10.20
          * add #6 sell 50 @ 10.20
        s3 buy 1 10 @ 10.00
          s3! accepted 1 as #7 Live 10 @ 10.00
          s3 executed 1 10 @ 10.00 Removed m1
          s1 executed 1 10 @ 10.00 Added m1
          * executed #1 10 m1
          s2 triggered 1 as #8 @ 15.00
          s2 executed 1 5 @ 10.01 Removed m2
          s1 executed 2 5 @ 10.01 Added m2
          * executed #5 5 m2
          s2 executed 1 5 @ 10.20 Removed m3
          s1 executed 3 5 @ 10.20 Added m3
          * executed #6 5 m3
          s2 triggered 3 as #9 @ 10.10
          * add #9 buy 10 @ 10.10
          s2 triggered 2 as #10 @ 10.10
          * add #10 buy 10 @ 10.10
        s2 replace 3 by 4 10 @ 10.20
          s2! replaced 3 by 4 as #11 Live buy 10 @ 10.20
          * deleted #9
          s2 executed 4 10 @ 10.20 Removed m4
          s1 executed 3 10 @ 10.20 Added m4
          * executed #6 10 m4
        s3 sell 2 10 @ 10.10 stop 10.21
          s3! accepted 2 as #12 Live 10 @ 10.10
          s3 executed 2 10 @ 10.10 Removed m5
          s2 executed 2 10 @ 10.10 Added m5
          * executed #10 10 m5
        ",
    );
}

#[test]
fn a_stop_is_reduced_replaced_and_cancelled_while_it_waits() {
    check(
        "
        s1 sell 1 10 @ 9.00 stop 9.50
          s1! accepted 1 as #1 Live 10 @ 9.00
        s1 cancel 1 to 6
          s1! canceled 1 -4 User
        s1 modify 1 S to 5
          s1! modified 1 S 5
        s1 replace 1 by 2 7 @ 9.10 stop 9.40
          s1! replaced 1 by 2 as #2 Live sell 7 @ 9.10
        s1 sell 3 10 @ 9.00 stop 9.505
          s1! rejected 3 InvalidStopPrice
        s1 cancel 2
          s1! canceled 2 -7 User
        s1 sell 4 10 @ 9.00 stop 9.50
          s1! accepted 4 as #3 Live 10 @ 9.00
        s1 cancel-all
          s1! canceled 4 -10 System
        ",
    );
}

#[test]
fn orders_end_with_time_and_the_day() {
    check(
        "
        s1 buy 1 10 @ 10.00 gtt 5
          s1! accepted 1 as #1 Live 10 @ 10.00
          * add #1 buy 10 @ 10.00
        s1 buy 2 10 @ 10.00 gtt 0
          s1! rejected 2 InvalidExpireTime
        s1 buy 3 10 @ 9.00 gtc
          s1! accepted 3 as #2 Live 10 @ 9.00
          * add #2 buy 10 @ 9.00
        s1 buy 4 10 @ 9.00 gtc show 4
          s1! accepted 4 as #3 Live 10 @ 9.00
          * add #3 buy 4 @ 9.00
        s2 buy 1 10 @ 9.00
          s2! accepted 1 as #4 Live 10 @ 9.00
          * add #4 buy 10 @ 9.00
        s2 sell 2 10 @ 11.00 gtc hidden
          s2! accepted 2 as #5 Live 10 @ 11.00
        s2 buy 3 10 @ 8.00 gtt 6 show 3
          s2! accepted 3 as #6 Live 10 @ 8.00
          * add #6 buy 3 @ 8.00
        expire 4
        expire 5
          s1 canceled 1 -10 Expired
          * deleted #1
        end-day
          s2 canceled 1 -10 EndOfDay
          * deleted #4
          s2 canceled 3 -10 EndOfDay
          * deleted #6
          s1 replaced 3 by 1 as #1 Live buy 10 @ 9.00
          s1 replaced 4 by 2 as #2 Live buy 10 @ 9.00
          s2 replaced 2 by 1 as #3 Live sell 10 @ 11.00
          * deleted #2
          * deleted #3
          * add #1 buy 10 @ 9.00
          * add #2 buy 4 @ 9.00
        s2 buy 2 5 @ 9.00
          s2! accepted 2 as #4 Live 5 @ 9.00
          * add #4 buy 5 @ 9.00
        s3 sell 1 12 @ 9.00
          s3! accepted 1 as #5 Live 12 @ 9.00
          s3 executed 1 10 @ 9.00 Removed m1
          s1 executed 1 10 @ 9.00 Added m1
          * executed #1 10 m1
          s3 executed 1 2 @ 9.00 Removed m2
          s1 executed 2 2 @ 9.00 Added m2
          * executed #2 2 m2
        s1 cancel 1
        ",
    );
}

#[test]
fn an_owner_need_not_trade_with_itself() {
    check(
        "
        s1 sell 1 10 @ 10.00
          s1! accepted 1 as #1 Live 10 @ 10.00
          * add #1 sell 10 @ 10.00
        s1 sell 2 20 @ 10.00 show 5
          s1! accepted 2 as #2 Live 20 @ 10.00
          * add #2 sell 5 @ 10.00
        s2 sell 1 10 @ 10.00
          s2! accepted 1 as #3 Live 10 @ 10.00
          * add #3 sell 10 @ 10.00
        s1 prevent newest
        s1 buy 3 15 @ 10.00
          s1! accepted 3 as #4 Live 15 @ 10.00
          s1 prevented 3 -15 of 10 @ 10.00 Removed CancelNewest
        s1 prevent decrement
        s1 buy 4 15 @ 10.00 ioc
          s1! accepted 4 as #5 Live 15 @ 10.00
          s1 prevented 4 -10 of 10 @ 10.00 Removed Decrement
          s1 prevented 1 -10 of 10 @ 10.00 Added Decrement
          * deleted #1
          s1 prevented 4 -5 of 5 @ 10.00 Removed Decrement
          s1 prevented 2 -5 of 5 @ 10.00 Added Decrement
        s1 prevent oldest
        s1 buy 5 15 @ 10.00
          s1! accepted 5 as #6 Live 15 @ 10.00
          s1 prevented 2 -15 of 5 @ 10.00 Added CancelOldest
          * deleted #2
          s1 executed 5 10 @ 10.00 Removed m1
          s2 executed 1 10 @ 10.00 Added m1
          * executed #3 10 m1
          * add #6 buy 5 @ 10.00
        s2 prevent both account 1
        s1 prevent none account 1
        s2 sell 2 20 @ 10.00
          s2! accepted 2 as #7 Live 20 @ 10.00
          s2 prevented 2 -20 of 5 @ 10.00 Removed CancelBoth
          s1 prevented 5 -5 of 5 @ 10.00 Added CancelBoth
          * deleted #6
        ",
    );
}

#[test]
fn sessions_have_limits_and_kill_switches() {
    check(
        "
        s1 limits orders 1 qty 100 notional 5000000
        s1 buy 1 101 @ 10.00
          s1! rejected 1 QtyAboveLimit
        s1 buy 2 51 @ 10.00
          s1! rejected 2 NotionalAboveLimit
        s1 buy 3 50 @ 10.00
          s1! accepted 3 as #1 Live 50 @ 10.00
          * add #1 buy 50 @ 10.00
        s1 buy 4 50 @ 9.00
          s1! rejected 4 OpenOrdersAboveLimit
        s1 disable 5
          s1! order-entry 5 disabled
        s1 buy 6 1 @ 9.00
          s1! rejected 6 OrderEntryDisabled
        s1 enable 7
          s1! order-entry 7 enabled
        s1 kill
          s1! canceled 3 -50 Supervisory
          * deleted #1
        s1 buy 8 1 @ 9.00
          s1! rejected 8 Killed
        s1 unkill
        s2 buy 1 1 @ 9.00
          s2! accepted 1 as #2 Live 1 @ 9.00
          * add #2 buy 1 @ 9.00
        s1 buy 9 1 @ 9.00
          s1! accepted 9 as #3 Live 1 @ 9.00
          * add #3 buy 1 @ 9.00
        kill
          s1 canceled 9 -1 Supervisory
          * deleted #3
          s2 canceled 1 -1 Supervisory
          * deleted #2
        s2 buy 2 1 @ 9.00 ioc
          s2! rejected 2 Killed
        unkill
        s2 buy 3 1 @ 9.00
          s2! accepted 3 as #4 Live 1 @ 9.00
          * add #4 buy 1 @ 9.00
        s2 buy 4 1 @ 9.00 in 2
          s2! rejected 4 InvalidQty
        s2 sell 5 1 @ 9.50
          s2! accepted 5 as #5 Live 1 @ 9.50
          * add #5 sell 1 @ 9.50
        s2 mass-cancel 6 in 1 side buy
          s2! mass-canceled 6
          s2 canceled 3 -1 User
          * deleted #4
        s2 mass-cancel 7
          s2! mass-canceled 7
          s2 canceled 5 -1 User
          * deleted #5
        s2 mass-cancel 7
        s2 mass-cancel 8 in 9
          s2! rejected 8 UnknownInstrument
        ",
    );
}

//! Tests of hidden, reserve, stop and expiring orders, and of self-trades; [`scenario`] describes the format.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::scenario::check;

#[test]
fn a_hidden_order_trades_behind_what_is_displayed() {
    check(
        "
        s1 sell 1 50 @ 10.00 hidden: accepted as #1
        s2 sell 1 30 @ 10.00: rests as #2
        s3 buy 1 60 @ 10.00
          accepted as #3
          s3 1 takes 30 @ 10.00 of s2 1 #2 m1
          s3 1 takes 30 @ 10.00 of s1 1, a hidden sell, m2
        s3 buy 2 60 @ 10.00
          accepted as #4
          s3 2 takes 20 @ 10.00 of s1 1, a hidden sell, m3
          * add #4 buy 40 @ 10.00
        s1 sell 2 5 @ 9.99 hidden post-only
          accepted as #5
          s1 canceled 2 -5 PostOnly
        s1 sell 3 20 @ 9.99 hidden
          accepted as #6
          s1 3 takes 20 @ 10.00 of s3 2 #4 m4
        ",
    );
}

#[test]
fn a_reserve_shows_its_next_part_at_the_tail() {
    check(
        "
        s1 sell 1 50 @ 10.00 show 20: rests as #1 showing 20
        s2 sell 1 20 @ 10.00: rests as #2
        s3 buy 1 30 @ 10.00
          accepted as #3
          s3 1 takes 20 @ 10.00 of s1 1 #1 m1
          s1 1 shows 20 as #4, sell @ 10.00
          s3 1 takes 10 @ 10.00 of s2 1 #2 m2
        s1 cancel 1 to 45: s1! canceled 1 -5 User
        s3 buy 2 25 @ 10.00 ioc min 25
          accepted as #5
          s3 2 takes 10 @ 10.00 of s2 1 #2 m3
          s3 2 takes 15 @ 10.00 of s1 1 #4 m4
        s1 cancel 1 to 38: s1! canceled 1 -7 User; reduced #4 -2
        s1 modify 1 S to 36: s1! modified 1 S 36; reduced #4 -2
        s3 buy 3 50 @ 10.00 ioc
          accepted as #6
          s3 3 takes 1 @ 10.00 of s1 1 #4 m5
          s3 canceled 3 -49 ImmediateOrCancel
        s1 sell 2 50 @ 10.00 show 60: s1! rejected 2 InvalidDisplayQty
        s1 sell 3 50 @ 10.00 show 5 ioc: s1! rejected 3 InvalidDisplayQty
        s1 sell 4 50 @ 10.00 show 20: rests as #7 showing 20
        s1 cancel 4: s1! canceled 4 -50 User; deleted #7
        ",
    );
}

/// Fill-or-kill is IOC with the whole quantity as its minimum.
#[test]
fn fill_or_kill_counts_everything_that_it_could_trade_with() {
    check(
        "
        s1 sell 1 30 @ 10.00 show 10: rests as #1 showing 10
        s1 sell 2 20 @ 10.01 hidden: accepted as #2
        s2 sell 1 5 @ 10.02: rests as #3
        s3 buy 1 51 @ 10.01 ioc min 51
          accepted as #4
          s3 canceled 1 -51 ImmediateOrCancel
        s3 buy 2 56 @ 10.02 ioc min 56
          accepted as #5
          s3 canceled 2 -56 ImmediateOrCancel
        s3 buy 3 56 @ 10.02 ioc min 57: s3! rejected 3 InvalidMinQty
        s3 buy 4 55 @ 10.02 ioc min 55
          accepted as #6
          s3 4 takes 10 @ 10.00 of s1 1 #1 m1
          s1 1 shows 10 as #7, sell @ 10.00
          s3 4 takes 10 @ 10.00 of s1 1 #7 m2
          s1 1 shows 10 as #8, sell @ 10.00
          s3 4 takes 10 @ 10.00 of s1 1 #8 m3
          s3 4 takes 20 @ 10.01 of s1 2, a hidden sell, m4
          s3 4 takes 5 @ 10.02 of s2 1 #3 m5
        ",
    );
}

#[test]
fn a_stop_waits_for_a_trade_and_one_triggers_the_next() {
    check(
        "
        s1 sell 1 10 @ 10.00: rests as #1
        s2 buy 1 10 @ market stop 10.00: accepted as #2
        s2 buy 2 10 @ 10.10 stop 10.01 gtc: accepted as #3
        s2 buy 3 10 @ 10.10 stop 10.00: accepted as #4
        s1 sell 2 5 @ 10.01: rests as #5
        s1 sell 3 50 @ 10.20: rests as #6
        s3 buy 1 10 @ 10.00
          accepted as #7
          s3 1 takes 10 @ 10.00 of s1 1 #1 m1
          s2 triggered 1 as #8 @ 15.00
          s2 1 takes 5 @ 10.01 of s1 2 #5 m2
          s2 1 takes 5 @ 10.20 of s1 3 #6 m3
          s2 triggered 3 as #9 @ 10.10
          * add #9 buy 10 @ 10.10
          s2 triggered 2 as #10 @ 10.10
          * add #10 buy 10 @ 10.10
        s2 replace 3 by 4 10 @ 10.20
          s2! replaced 3 by 4 as #11 Live buy 10 @ 10.20
          * deleted #9
          s2 4 takes 10 @ 10.20 of s1 3 #6 m4
        s3 sell 2 10 @ 10.10 stop 10.21
          accepted as #12
          s3 2 takes 10 @ 10.10 of s2 2 #10 m5
        ",
    );
}

#[test]
fn a_stop_is_reduced_replaced_and_cancelled_while_it_waits() {
    check(
        "
        s1 sell 1 10 @ 9.00 stop 9.50: accepted as #1
        s1 cancel 1 to 6: s1! canceled 1 -4 User
        s1 modify 1 S to 5: s1! modified 1 S 5
        s1 replace 1 by 2 7 @ 9.10 stop 9.40: s1! replaced 1 by 2 as #2 Live sell 7 @ 9.10
        s1 sell 3 10 @ 9.00 stop 9.505: s1! rejected 3 InvalidStopPrice
        s1 cancel 2: s1! canceled 2 -7 User
        s1 sell 4 10 @ 9.00 stop 9.50: accepted as #3
        s1 cancel-all: s1! canceled 4 -10 System
        ",
    );
}

#[test]
fn orders_expire_by_time_and_at_the_end_of_the_day() {
    check(
        "
        s1 buy 1 10 @ 10.00 gtt 5: rests as #1
        s1 buy 2 10 @ 10.00 gtt 0: s1! rejected 2 InvalidExpireTime
        s1 buy 3 10 @ 9.00 gtc: rests as #2
        s1 buy 4 10 @ 9.00 gtc show 4: rests as #3 showing 4
        s2 buy 1 10 @ 9.00: rests as #4
        s2 sell 2 10 @ 11.00 gtc hidden: accepted as #5
        s2 buy 3 10 @ 8.00 gtt 6 show 3: rests as #6 showing 3
        expire 4
        expire 5: s1 canceled 1 -10 Expired; deleted #1
        end-day
          s2 canceled 1 -10 EndOfDay; deleted #4
          s2 canceled 3 -10 EndOfDay; deleted #6
          s1 replaced 3 by 1 as #1 Live buy 10 @ 9.00
          s1 replaced 4 by 2 as #2 Live buy 10 @ 9.00
          s2 replaced 2 by 1 as #3 Live sell 10 @ 11.00
          * deleted #2
          * deleted #3
          * add #1 buy 10 @ 9.00
          * add #2 buy 4 @ 9.00
        s2 buy 2 5 @ 9.00: rests as #4
        s3 sell 1 12 @ 9.00
          accepted as #5
          s3 1 takes 10 @ 9.00 of s1 1 #1 m1
          s3 1 takes 2 @ 9.00 of s1 2 #2 m2
        s1 cancel 1
        ",
    );
}

#[test]
fn self_trades_are_prevented() {
    check(
        "
        s1 sell 1 10 @ 10.00: rests as #1
        s1 sell 2 20 @ 10.00 show 5: rests as #2 showing 5
        s2 sell 1 10 @ 10.00: rests as #3
        s1 prevent newest
        s1 buy 3 15 @ 10.00
          accepted as #4
          s1 prevented 3 -15 of 10 @ 10.00 Removed CancelNewest
        s1 prevent decrement
        s1 buy 4 15 @ 10.00 ioc
          accepted as #5
          s1 prevented 4 -10 of 10 @ 10.00 Removed Decrement
          s1 prevented 1 -10 of 10 @ 10.00 Added Decrement
          * deleted #1
          s1 prevented 4 -5 of 5 @ 10.00 Removed Decrement
          s1 prevented 2 -5 of 5 @ 10.00 Added Decrement
        s1 prevent oldest
        s1 buy 5 15 @ 10.00
          accepted as #6
          s1 prevented 2 -15 of 5 @ 10.00 Added CancelOldest
          * deleted #2
          s1 5 takes 10 @ 10.00 of s2 1 #3 m1
          * add #6 buy 5 @ 10.00
        s2 prevent both account 1
        s1 prevent none account 1
        s2 sell 2 20 @ 10.00
          accepted as #7
          s2 prevented 2 -20 of 5 @ 10.00 Removed CancelBoth
          s1 prevented 5 -5 of 5 @ 10.00 Added CancelBoth
          * deleted #6
        ",
    );
}

#[test]
fn only_the_venue_kill_switch_stops_forced_orders() {
    check(
        "
        s1 limits orders 0 qty 1 notional 1
        s1 kill
        s1 buy 1 50 @ 10.00 ioc: s1! rejected 1 Killed
        s1 force-buy 2 50 @ 10.00
          s1! accepted 2 as #1 Live 50 @ 10.00
          * add #1 buy 50 @ 10.00
        s1 force-buy 2 50 @ 10.00
        kill: s1 canceled 2 -50 Supervisory; deleted #1
        s1 force-buy 3 50 @ 10.00: s1! rejected 3 Killed
        unkill
        s1 force-buy 4 50 @ 10.01
          s1! accepted 4 as #2 Live 50 @ 10.01
          * add #2 buy 50 @ 10.01
        s1 force-buy 5 0 @ 10.01: s1! rejected 5 InvalidQty
        ",
    );
}

#[test]
fn sessions_have_limits_and_kill_switches() {
    check(
        "
        s1 limits orders 1 qty 100 notional 5000000
        s1 buy 1 101 @ 10.00: s1! rejected 1 QtyAboveLimit
        s1 buy 2 51 @ 10.00: s1! rejected 2 NotionalAboveLimit
        s1 buy 3 50 @ 10.00: rests as #1
        s1 buy 4 50 @ 9.00: s1! rejected 4 OpenOrdersAboveLimit
        s1 disable 5: s1! order-entry 5 disabled
        s1 buy 6 1 @ 9.00: s1! rejected 6 OrderEntryDisabled
        s1 enable 7: s1! order-entry 7 enabled
        s1 kill: s1! canceled 3 -50 Supervisory; deleted #1
        s1 buy 8 1 @ 9.00: s1! rejected 8 Killed
        s1 unkill
        s2 buy 1 1 @ 9.00: rests as #2
        s1 buy 9 1 @ 9.00: rests as #3
        kill
          s1 canceled 9 -1 Supervisory; deleted #3
          s2 canceled 1 -1 Supervisory; deleted #2
        s2 buy 2 1 @ 9.00 ioc: s2! rejected 2 Killed
        unkill
        s2 buy 3 1 @ 9.00: rests as #4
        s2 buy 4 1 @ 9.00 in 2: s2! rejected 4 InvalidQty
        s2 sell 5 1 @ 9.50: rests as #5
        s2 mass-cancel 6 in 1 side buy
          s2! mass-canceled 6
          s2 canceled 3 -1 User; deleted #4
        s2 mass-cancel 7
          s2! mass-canceled 7
          s2 canceled 5 -1 User; deleted #5
        s2 mass-cancel 7
        s2 mass-cancel 8 in 9: s2! rejected 8 UnknownInstrument
        ",
    );
}

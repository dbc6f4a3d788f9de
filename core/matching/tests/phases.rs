//! Tests of crosses, pauses, suspensions and busted trades; [`scenario`] describes the text format.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::scenario::check;

#[test]
fn collected_orders_cross_at_one_price() {
    check(
        "
        quote 1: * QuotationOnly 1
        s1 buy 1 100 @ 10.05: rests as #1
        s1 buy 2 50 @ 10.02: rests as #2
        s2 sell 1 80 @ 9.98: rests as #3
        s2 sell 2 30 @ 10.01 hidden: accepted as #4
        s2 sell 3 40 @ 10.10: rests as #5
        s3 buy 1 10 @ 10.00 ioc
          accepted as #6
          s3 canceled 1 -10 ImmediateOrCancel
        imbalance 1: * imbalance 110 paired 40 buy @ 10.01
        uncross 1
          s1 1 and s2 1 trade 80 @ 10.01 OpeningCross m1
          * executed #1 80 m1 at 10.01
          * executed #3 80 m1 at 10.01
          s1 1 and s2 2 trade 20 @ 10.01 OpeningCross m2
          * executed #1 20 m2 at 10.01
          s1 2 and s2 2 trade 10 @ 10.01 OpeningCross m3
          * executed #2 10 m3 at 10.01
          * cross Opening 110 @ 10.01 m4
          * Trading 1
        imbalance 1: * imbalance 0 paired 0 none @ 0.00
        uncross 1
          * cross Opening 0 @ 0.00 m5
          * Trading 1
        ",
    );
}

#[test]
fn a_cross_takes_the_price_nearest_to_the_reference() {
    check(
        "
        quote 1: * QuotationOnly 1
        s1 buy 1 10 @ 10.50: rests as #1
        s2 sell 1 10 @ 9.50: rests as #2
        imbalance 1: * imbalance 10 paired 0 none @ 10.00
        s1 buy 2 10 @ 10.20: rests as #3
        imbalance 1: * imbalance 10 paired 0 none @ 10.21
        s2 sell 2 10 @ 10.21: rests as #4
        imbalance 1: * imbalance 10 paired 10 buy @ 10.00
        s2 sell 3 5 @ 9.00 show 2: rests as #5 showing 2
        imbalance 1: * imbalance 15 paired 5 buy @ 10.00
        close 1
          s1 1 and s2 3 trade 2 @ 10.00 ClosingCross m1
          * executed #1 2 m1 at 10.00
          * executed #5 2 m1 at 10.00
          s2 3 shows 2 as #6, sell @ 9.00
          s1 1 and s2 3 trade 2 @ 10.00 ClosingCross m2
          * executed #1 2 m2 at 10.00
          * executed #6 2 m2 at 10.00
          s2 3 shows 1 as #7, sell @ 9.00
          s1 1 and s2 3 trade 1 @ 10.00 ClosingCross m3
          * executed #1 1 m3 at 10.00
          * executed #7 1 m3 at 10.00
          s1 1 and s2 1 trade 5 @ 10.00 ClosingCross m4
          * executed #1 5 m4 at 10.00
          * executed #2 5 m4 at 10.00
          s1 2 and s2 1 trade 5 @ 10.00 ClosingCross m5
          * executed #3 5 m5 at 10.00
          * executed #2 5 m5 at 10.00
          * cross Closing 15 @ 10.00 m6
          * Halted 1
        ",
    );
}

#[test]
fn trading_pauses_before_a_trade_outside_the_band_and_a_cross_resumes_it() {
    check(
        "
        band 1 10.00 width 0.10: * band 10.00 9.90 10.10
        s1 sell 1 10 @ 10.05: rests as #1
        s1 sell 2 10 @ 10.15: rests as #2
        s2 buy 1 5 @ 10.16 stop 10.12: accepted as #3
        s2 buy 2 15 @ 10.20
          accepted as #4
          s2 2 takes 10 @ 10.05 of s1 1 #1 m1
          * band 10.00 9.90 10.10
          * Paused 1
          * add #4 buy 5 @ 10.20
        s3 buy 1 5 @ 10.20 ioc
          accepted as #5
          s3 canceled 1 -5 ImmediateOrCancel
        trade 1
          s2 2 and s1 2 trade 5 @ 10.15 OpeningCross m2
          * executed #4 5 m2 at 10.15
          * executed #2 5 m2 at 10.15
          * cross Halt 5 @ 10.15 m3
          * Trading 1
          s2 triggered 1 as #6 @ 10.16
          s2 1 takes 5 @ 10.15 of s1 2 #2 m4
        s3 sell 2 5 @ 10.06: rests as #7
        s3 buy 3 20 @ 10.30 ioc
          accepted as #8
          s3 3 takes 5 @ 10.06 of s3 2 #7 m5
          s3 canceled 3 -15 ImmediateOrCancel
        ",
    );
}

/// Nothing trades outside the collar, 5.00 to 15.00, and the market data cannot encode a price far beyond it.
#[test]
fn a_band_ends_where_the_collar_does() {
    check(
        "
        band 1 14.90 width 0.50: * band 14.90 14.40 15.00
        band 1 10.00 width 1000000: * band 10.00 5.00 15.00
        band 1 15.01 width 0.10
        band 1 4.99 width 0.10
        s1 sell 1 10 @ 14.00: rests as #1
        s2 buy 1 10 @ 14.00
          accepted as #2
          s2 1 takes 10 @ 14.00 of s1 1 #1 m1
        ",
    );
}

#[test]
fn instruments_are_suspended_and_trades_broken() {
    check(
        "
        s1 sell 1 10 @ 10.00: rests as #1
        s2 buy 1 4 @ 10.00
          accepted as #2
          s2 1 takes 4 @ 10.00 of s1 1 #1 m1
        break 1
          s2 broken 1 m1 Erroneous
          s1 broken 1 m1 Erroneous
          * broken m1
        break 1
        break 2
        s2 buy 2 4 @ 9.00 hidden: accepted as #3
        s2 buy 3 4 @ 9.00 in 2: s2! rejected 3 InvalidQty
        suspend 1
          * Halted 1
          s1 canceled 1 -6 Supervisory; deleted #1
          s2 canceled 2 -4 Supervisory
        s2 buy 4 4 @ 9.00: s2! rejected 4 Halted
        ",
    );
}

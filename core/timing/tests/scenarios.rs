//! Scenarios: the joiner computes the exact times of whole trades, for any interleaving of the rings.

use crate::scenario;
use crate::scenario::{ONE_TRADE, check, interleave, report, report_of, rings};
use tickpath_timing::{Hop, Pair, Span};

#[test]
fn one_trade_has_exact_times_in_any_interleaving() {
    check(
        ONE_TRADE,
        "tick_to_trade               1 1130
         tick_to_trade_software      1 130
         tick_to_trade_with_kernel   1 1330
         tick_to_ack                 1 1550
         venue_response              2 107.5
         venue_response_with_kernel  2 1397.5
         venue_publish               2 110
         order_round_trip            1 1370
         T3_T4     2 10
         T4_T5     2 32.5
         T5_T6w    2 32.5
         T6w_T6    2 475
         T6w_T7k   1 230
         T6_T7     1 -70
         T6w_T7    1 430
         T7k_T7    1 200
         T7_T8     1 40
         T8_T9     1 20
         T9_T10    1 40
         T10_T11   1 15
         T11_T12w  1 15
         T12w_T12  1 1000
         T12w_T1   1 870
         T12_T1    1 -130
         T1k_T1    2 300
         T1_T2     2 15
         T2_T3     2 20
         T3_T4t    2 30
         T4t_T5t   2 25
         T5t_T6tw  2 17.5
         T6tw_T6t  2 990
         T6tw_T7t  1 380
         T7t_T8t   1 20
         T8t_T9t   1 30
         match     2 30",
    );
}

#[test]
fn the_sum_of_hops_is_the_span() {
    let report = report(ONE_TRADE);
    let checks = report.checks.map(|check| (check.span, check.messages, check.hops_ticks, check.span_ticks));
    assert_eq!(
        checks,
        [
            (Span::TickToTrade, 1, 1_130, 1_130),
            (Span::VenueResponse, 2, 215, 215),
            (Span::OrderRoundTrip, 1, 1_370, 1_370),
        ]
    );
    let mean = |name: &str| report.row(name).unwrap().summary.mean_ns;
    let hops = ["T7_T8", "T8_T9", "T9_T10", "T10_T11", "T11_T12w", "T12w_T12"];
    let sum: f64 = hops.into_iter().map(mean).sum();
    assert!((sum - mean("tick_to_trade")).abs() < 1e-6);
}

#[test]
fn negative_times_are_counted_and_kept() {
    let report = report(ONE_TRADE);
    for (name, ns) in [("T6_T7", -70), ("T12_T1", -130)] {
        let summary = report.row(name).unwrap().summary;
        assert_eq!((summary.count, summary.negatives, summary.min_ns, summary.max_ns), (1, 1, ns, ns));
    }
    assert_eq!(report.row("T7_T8").unwrap().summary.negatives, 0);
}

#[test]
fn missing_stamps_are_counted_by_hop() {
    let counters = report(ONE_TRADE).counters;
    // No feed handler read message 6; the kernel's times are optional, as are those of an untraced client.
    assert_eq!((counters.markets.complete, counters.markets.incomplete), (1, 1));
    assert_eq!((counters.commands.complete, counters.commands.incomplete), (2, 0));
    assert_eq!((counters.tokens.complete, counters.tokens.incomplete), (2, 0));
    let missing: Vec<_> = counters.missing().collect();
    assert_eq!(missing, [(Hop::T7, 1), (Hop::T8, 1), (Hop::T9, 1)]);
    assert_eq!((counters.duplicates, counters.late, counters.orphans, counters.unrecognised), (0, 0, 0, 0));
    assert_eq!(counters.records, rings(ONE_TRADE).concat().len() as u64);
}

#[test]
fn a_lost_stamp_omits_only_its_pairs() {
    let records: Vec<_> = rings(ONE_TRADE)
        .concat()
        .into_iter()
        .filter(|stamp| *stamp != scenario::record("T11 o2.42 1615"))
        .collect();
    let report = report_of(records);
    assert_eq!(report.row("T10_T11"), None);
    assert_eq!(report.row("T11_T12w"), None);
    assert_eq!(report.row("tick_to_trade").unwrap().summary.max_ns, 1_130);
    assert_eq!(report.checks[0].messages, 0, "a chain with a gap proves nothing");
    assert_eq!(report.checks[2].messages, 1);
    assert!(report.median_trade.is_none(), "a trade with a gap is no example");
}

#[test]
fn each_engine_has_its_own_path_through_its_feed_handler() {
    check(
        "feed-0:
            T7 m8f0 100
            T8 m8f0 110
        feed-1:
            T7 m8f1 150
            T8 m8f1 190
        engine-0:
            T9 m8f0e0 115
            o1.1 <- m8f0e0
            T10 o1.1 120
        engine-1:
            T9 m8f0e1 130
            o2.1 <- m8f0e1
            T10 o2.1 150
            o2.2 <- m8f0e1
            T10 o2.2 170
        engine-3:
            T9 m8f1e3 200
            x3.7 <- m8f1e3
            T10 x3.7 240
        gateway:
            T11 o1.1 121
            T11 o2.1 152
            T11 o2.2 173
            T11 x3.7 244
            T12w o1.1 131
            T12 o1.1 141
            T12w o2.1 162
            T12 o2.1 182
            T12w o2.2 183
            T12 o2.2 213
            T12w x3.7 254
            T12 x3.7 294",
        // From T7 at each order's feed handler to T12: 41, 82 and 113 through feed 0, and 144 through feed 1.
        "tick_to_trade           4 95
         tick_to_trade_software  4 70
         T7_T8     2 25
         T8_T9     3 11.666666666666666
         T9_T10    4 26.25
         T10_T11   4 2.5
         T11_T12w  4 10
         T12w_T12  4 25",
    );
}

#[test]
fn a_cancel_does_not_collide_with_the_entry_of_its_order() {
    check(
        "gateway:
            T12w o1.5 100
            T12w x1.5 1000
            T7t o1.5 150
            T7t x1.5 1030",
        "order_round_trip 2 40",
    );
}

#[test]
fn a_second_cancel_of_an_order_does_not_take_the_first_ones_time() {
    check(
        "server:
            T1 x1.5 100
            c1 <- x1.5
            T2 c1 110
            T1 x1.5 700
            c2 <- x1.5
            T2 c2 715",
        "T1_T2 1 10",
    );
}

#[test]
fn a_range_stamps_each_of_its_messages() {
    let message_by_message = "matcher:
            T4 m1 130
            T4 m2 140
            T4 m3 145
        publisher:
            T5 m1 150
            T5 m2 150
            T5 m3 160
            T6w m1 200
            T6w m2 200
            T6w m3 200
            T6 m1 230
            T6 m2 230
            T6 m3 230";
    let by_range = "matcher:
            T4 m1 130
            T4 m2 140
            T4 m3 145
        publisher:
            T5 m1..3 150
            T5 m3..4 160
            T6w m1..4 200
            T6 m1..4 230";
    let expected = "T4_T5 3 15
         T5_T6w 3 46.666666666666664
         T6w_T6 3 30";
    check(message_by_message, expected);
    check(by_range, expected);
    // A repeated range is a duplicate of each of its messages.
    let twice = report(&format!("{by_range}\n T6 m2..4 240"));
    assert_eq!((twice.counters.duplicates, twice.row("T6w_T6").unwrap().summary.mean_ns), (2, 30.0));
}

#[test]
fn one_command_may_publish_several_messages() {
    check(
        "server:
            T1 o1.1 100
            c1 <- o1.1
            T2 c1 110
        matcher:
            T3 c1 120
            T4 m1 130
            m1 <- c1
            T4 m2 140
            m2 <- c1
        publisher:
            T5 m1 150
            T5 m2 151
            T6w m1 200
            T6w m2 200",
        "venue_publish 2 100
         T3_T4  2 15
         T4_T5  2 15.5
         T5_T6w 2 49.5
         T1_T2  1 10
         T2_T3  1 10",
    );
}

#[test]
fn a_stamp_of_another_feed_handler_fails_the_check() {
    let report = report(
        "all:
            T7 m8f0 100
            T8 m8f0 110
            T7 m8f1 103
            T8 m8f1 117
            T9 m8f1e0 120
            o1.1 <- m8f0e0
            T10 o1.1 130
            T11 o1.1 140
            T12w o1.1 150
            T12 o1.1 160",
    );
    let check = report.checks[0];
    assert_eq!((check.messages, check.mismatches), (1, 1));
    assert_eq!((check.hops_ticks, check.span_ticks), (10 + 3 + 40, 60));
    assert!(!check.holds());
    assert!(report.to_string().contains("HOPS DO NOT ADD UP for 1 of 1"));
}

#[test]
fn the_median_trade_has_a_timeline() {
    let report = report_of(interleave(rings(ONE_TRADE), 7));
    let timeline = report.median_trade.as_ref().unwrap();
    assert_eq!(timeline.total_ns, 1_550);
    assert_eq!(timeline.steps.iter().map(|step| step.duration_ns).sum::<i64>(), 1_550);
    assert_eq!(timeline.steps.len(), 14);
    assert_eq!((timeline.steps[5].pair, timeline.steps[5].start_ns), (Pair::T12wT1, 130));
    assert_eq!(timeline.trigger.unwrap().sequence().0, 5);
    assert_eq!(timeline.command.unwrap().0.0, 4);
    let text = report.to_string();
    for line in [
        "2 market data messages, 2 commands and 2 order requests in 2700ns.",
        "  session 2, order 42, triggered by market data message 5, command 4: 1.550 us in all",
        "  T12w_T1   write begins to order server's read       0.870 |   ######################             |",
        "Market data out: matcher to engine",
        "  T6_T7    send returned to feed handler's read          1    -0.070",
        "before the writer's call did: T6_T7 1 T12_T1 1",
        "tick_to_trade: hops add up to the span for each of 1 order requests (1130 ticks).",
        "Stamps missing: T7 1 T8 1 T9 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_trader_alone_has_a_timeline_to_its_write() {
    let trader: Vec<_> = rings(ONE_TRADE).split_off(3).concat();
    let report = report_of(trader);
    let steps: Vec<_> =
        report.median_trade.as_ref().unwrap().steps.iter().map(|step| step.pair.name()).collect();
    assert_eq!(steps, ["T7_T8", "T8_T9", "T9_T10", "T10_T11", "T11_T12w", "T12w_T12"]);
    assert_eq!(report.counters.orphans, 0);
    assert_eq!(report.row("venue_response"), None);
}

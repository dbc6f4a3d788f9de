//! The joiner at the limits of table capacity, age and observer numbers, and with late or repeated stamps.

use crate::scenario::{ONE_TRADE, SMALL, joiner, record, rings};
use tickpath_timing::{Calibration, ENGINES_MAX, FEEDS_MAX, Joiner, JoinerConfig, Stamp, Trace, Tracer};
use tickpath_types::Nanos;

fn take(joiner: &mut Joiner, lines: &[&str]) {
    lines.iter().for_each(|line| joiner.handle_stamp(record(line)));
}

#[test]
fn a_full_table_finalises_its_oldest_entry() {
    let mut joiner = joiner(SMALL);
    for sequence in 1..=16 {
        take(&mut joiner, &[&format!("T4 m{sequence} {sequence}")]);
    }
    assert_eq!((joiner.counters().markets.displaced, joiner.counters().markets.finalised()), (0, 0));
    take(&mut joiner, &["T4 m17 17"]);
    assert_eq!((joiner.counters().markets.displaced, joiner.counters().markets.finalised()), (1, 1));
    // Message 17 took the slot of message 1; messages 2 and 17 are still joined.
    take(&mut joiner, &["T5 m2 20", "T5 m17 30"]);
    joiner.finish();
    let report = joiner.report();
    assert_eq!(report.row("T4_T5").unwrap().summary.count, 2);
    assert_eq!(report.counters.markets.finalised(), 17);
    assert_eq!(report.counters.markets.displaced, 1);
}

#[test]
fn commands_and_tokens_have_the_same_bound() {
    let mut joiner = joiner(SMALL);
    for number in 1..=16 {
        take(&mut joiner, &[&format!("T3 c{number} 5"), &format!("T1 o1.{number} 5")]);
    }
    assert_eq!((joiner.counters().commands.displaced, joiner.counters().tokens.displaced), (0, 0));
    take(&mut joiner, &["T3 c17 6", "T1 o1.17 6"]);
    assert_eq!((joiner.counters().commands.displaced, joiner.counters().tokens.displaced), (1, 1));
}

#[test]
fn a_displaced_parent_is_counted() {
    let mut joiner = joiner(SMALL);
    take(&mut joiner, &["T7 m1f0 10", "T9 m1f0e0 20", "o1.1 <- m1f0e0", "T10 o1.1 30", "T12 o1.1 40"]);
    for sequence in 2..=17 {
        take(&mut joiner, &[&format!("T7 m{sequence}f0 50")]);
    }
    joiner.finish();
    assert_eq!(joiner.counters().orphans, 1);
    assert_eq!(joiner.report().row("tick_to_trade"), None);
}

#[test]
fn messages_finalise_at_half_the_age_and_tokens_at_the_age() {
    let mut joiner = joiner(SMALL);
    joiner.handle_timeout(10_000);
    take(&mut joiner, &["T4 m1 10000", "T3 c1 10000", "T1 o1.1 10000"]);
    let finalised = |joiner: &Joiner| {
        let counters = joiner.counters();
        (counters.markets.finalised(), counters.commands.finalised(), counters.tokens.finalised())
    };
    joiner.handle_timeout(10_500);
    assert_eq!(finalised(&joiner), (0, 0, 0));
    joiner.handle_timeout(10_501);
    assert_eq!(finalised(&joiner), (1, 1, 0));
    joiner.handle_timeout(11_000);
    assert_eq!(finalised(&joiner), (1, 1, 0));
    joiner.handle_timeout(11_001);
    assert_eq!(finalised(&joiner), (1, 1, 1));
}

#[test]
fn a_stamp_within_the_age_is_joined_and_one_after_it_is_late() {
    let mut joiner = joiner(SMALL);
    take(&mut joiner, &["T4 m1 10000", "T4 m2 10000"]);
    joiner.handle_timeout(10_500);
    take(&mut joiner, &["T5 m1 10400"]);
    joiner.handle_timeout(10_501);
    take(&mut joiner, &["T5 m2 10400", "m2 <- c1", "T6 m1 10700"]);
    joiner.finish();
    let report = joiner.report();
    assert_eq!(report.row("T4_T5").unwrap().summary.count, 1);
    assert_eq!(report.counters.late, 3);
    assert_eq!(report.counters.markets.finalised(), 2);
}

#[test]
fn the_first_of_two_stamps_counts() {
    let mut joiner = joiner(SMALL);
    take(
        &mut joiner,
        &[
            "T12w o1.1 100",
            "T7t o1.1 150",
            "T7t o1.1 900",
            "T12w o1.1 149",
            "o1.1 <- m1f0e0",
            "o1.1 <- m2f0e0",
            "T9 m1f0e0 90",
            "T9 m1f0e0 91",
            "T9 m2f0e0 50",
            "T10 o1.1 95",
        ],
    );
    joiner.finish();
    let report = joiner.report();
    assert_eq!(report.counters.duplicates, 4);
    assert_eq!(report.row("order_round_trip").unwrap().summary.max_ns, 50);
    assert_eq!(report.row("T9_T10").unwrap().summary.max_ns, 5);
}

#[test]
fn observers_beyond_the_bound_are_counted_only() {
    let mut joiner = joiner(SMALL);
    // Another program's trace can contain numbers beyond the bounds. Debug builds do not create such ids, so
    // the closure sets the bits.
    let with_observer = |feed: u64, engine: u64| {
        let Stamp([head, tsc]) = record("T9 m1f0e0 77");
        Stamp([head | feed << 48 | engine << 52, tsc])
    };
    joiner.handle_stamp(with_observer(FEEDS_MAX as u64 - 1, ENGINES_MAX as u64 - 1));
    assert_eq!(joiner.counters().unknown_observer, 0);
    joiner.handle_stamp(with_observer(FEEDS_MAX as u64, 0));
    joiner.handle_stamp(with_observer(0, ENGINES_MAX as u64));
    joiner.handle_stamp(with_observer(0xF, 0xF));
    assert_eq!(joiner.counters().unknown_observer, 3);
    assert_eq!(joiner.counters().duplicates, 0);
}

#[test]
fn unrecognised_records_and_unknown_times_are_ignored() {
    let mut joiner = joiner(SMALL);
    joiner.handle_stamp(Stamp([0, 5]));
    joiner.handle_stamp(Stamp([u64::MAX, u64::MAX]));
    take(&mut joiner, &["T7k m1f0 0", "match 18446744073709551615"]);
    joiner.finish();
    let report = joiner.report();
    assert_eq!((report.counters.unrecognised, report.counters.records), (2, 4));
    assert_eq!(report.counters.markets.finalised(), 0, "time 0 is not known");
    assert_eq!(report.row("match").unwrap().summary.above, 1);
}

#[test]
fn ids_may_restart_after_finish() {
    let mut joiner = joiner(SMALL);
    take(&mut joiner, &["T4 m1 100", "T5 m1 110"]);
    joiner.finish();
    take(&mut joiner, &["T4 m1 200", "T5 m1 230"]);
    joiner.finish();
    let report = joiner.report();
    let summary = report.row("T4_T5").unwrap().summary;
    assert_eq!((summary.count, summary.min_ns, summary.max_ns, report.counters.late), (2, 10, 30, 0));
}

#[test]
fn rings_are_drained_and_their_drops_counted() {
    let mut joiner = joiner(SMALL);
    let (mut trace, ring) = Trace::new(8);
    let (_idle, idle_ring) = Trace::new(8);
    let mut rings = [ring, idle_ring];
    let command = |number| tickpath_timing::CommandId(tickpath_types::Sequence(number));
    for number in 1..=10 {
        trace.stamp_at(tickpath_timing::Hop::T2, command(number), 100);
    }
    trace.flush();
    assert_eq!(joiner.drain(&mut rings, 5, 100), 5);
    // Three records remain in the ring: nothing is finalised before they are read, however large `now` is.
    trace.stamp_at(tickpath_timing::Hop::T3, command(1), 130);
    trace.flush();
    assert_eq!(joiner.drain(&mut rings, 3, 9_000), 3);
    assert_eq!(joiner.counters().commands.finalised(), 0);
    assert_eq!(joiner.drain(&mut rings, 3, 9_000), 1);
    assert_eq!(joiner.counters().commands.finalised(), 5, "those that were entered at 100");
    assert_eq!(joiner.counters().dropped, 2);
    joiner.finish();
    assert_eq!(joiner.report().row("T2_T3").unwrap().summary.max_ns, 30);
}

#[test]
fn the_first_round_finalises_nothing() {
    let config = JoinerConfig { age: Nanos::from_millis(250), ..SMALL };
    let mut joiner = Joiner::new(config, Calibration::identity());
    let start = 1 << 50;
    let (mut trace, ring) = Trace::new(8);
    let mut rings = [ring];
    let command = tickpath_timing::CommandId(tickpath_types::Sequence(1));
    let token =
        tickpath_timing::Token::new(tickpath_types::SessionId(1), tickpath_types::UserRefNum(1), true);
    trace.link(command, token);
    trace.flush();
    joiner.drain(&mut rings, 8, start);
    trace.stamp_at(tickpath_timing::Hop::T2, command, start);
    trace.flush();
    joiner.drain(&mut rings, 8, start + 1);
    assert_eq!((joiner.counters().late, joiner.counters().commands.finalised()), (0, 0));
}

#[test]
fn a_live_view_covers_the_time_since_the_last_view() {
    let mut joiner = joiner(JoinerConfig { age: Nanos(0), ..SMALL });
    rings(ONE_TRADE).concat().into_iter().for_each(|stamp| joiner.handle_stamp(stamp));
    joiner.handle_timeout(1_000_000_000);
    let [tick_to_trade, .., round_trip] = joiner.live();
    assert_eq!((tick_to_trade.count, tick_to_trade.p50_ns, tick_to_trade.total_count), (1, 1_130, 1));
    assert_eq!(round_trip.total_p99_ns, 1_370);
    let quiet = joiner.live()[0];
    assert_eq!((quiet.count, quiet.p50_ns, quiet.total_count, quiet.total_p50_ns), (0, 0, 1, 1_130));
}

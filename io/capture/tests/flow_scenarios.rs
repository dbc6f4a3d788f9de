//! Tests of the mapper on short recordings that are written as text.
//!
//! One line is one transaction; its events are separated by `|`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use tickpath_capture::flow::{Exclusion, FlowCounts, FlowLimits, Mapper, Role, SurveyBuilder};
use tickpath_capture::{Depth, EventKind, Level, PRICE_DECIMALS, RecordedEvent, RecordingInfo, TimeBase};
use tickpath_types::{OrderRequest, Price, Qty, Side};

const FULL: RecordingInfo = RecordingInfo {
    time_base: TimeBase::Midnight,
    depth: Depth::Full,
    sums_fills: false,
    price_decimals: PRICE_DECIMALS,
};
const CME: RecordingInfo = RecordingInfo { sums_fills: true, ..FULL };
const LEVEL_1: RecordingInfo = RecordingInfo { depth: Depth::Partial { levels: Some(1) }, ..FULL };

fn event(text: &str) -> EventKind {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let side = |at: usize| if words[at] == "buy" { Side::Buy } else { Side::Sell };
    let price = |at: usize| Price::parse(words[at]).unwrap();
    let level = |at: usize| Level { side: side(at), price: price(at + 1) };
    let optional = |at: usize| (words.len() > at).then(|| level(at));
    let order_id = words.get(1).map_or(0, |_| number(1));
    match words[0] {
        "add" => EventKind::Add { order_id, level: level(2), qty: Qty(number(4)) },
        "mod" => EventKind::Modify { order_id, level: level(2), qty: Qty(number(4)) },
        "del" => {
            let qty = (words.len() > 4).then(|| Qty(number(4)));
            EventKind::Delete { order_id, level: optional(2), qty }
        }
        "red" => EventKind::Reduce { order_id, by: Qty(number(2)), level: optional(3) },
        "rep" => {
            EventKind::Replace { order_id, new_order_id: number(2), price: price(3), qty: Qty(number(4)) }
        }
        "fill" | "auction" => EventKind::Fill {
            order_id,
            qty: Qty(number(2)),
            side: optional(3).map(|level| level.side),
            price: optional(3).map(|level| level.price),
            in_auction: words[0] == "auction",
        },
        "trade" => EventKind::Trade {
            order_id,
            price: price(3),
            qty: Qty(number(4)),
            aggressor: Some(side(2)),
            is_hidden: false,
        },
        "clear" => EventKind::Clear,
        other => panic!("{other}"),
    }
}

fn run(info: RecordingInfo, limits: FlowLimits, scenario: &str) -> (Vec<String>, FlowCounts) {
    let mut events = Vec::new();
    for (line, transaction) in scenario.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let kinds: Vec<EventKind> = transaction.split('|').map(event).collect();
        for (index, kind) in kinds.iter().enumerate() {
            let ends_transaction = index + 1 == kinds.len();
            events.push(RecordedEvent {
                ts_ns: line as u64 + 1,
                instrument: 0,
                ends_transaction,
                is_snapshot: false,
                kind: *kind,
            });
        }
    }
    let mut survey = SurveyBuilder::new(info);
    events.iter().for_each(|event| survey.handle_event(event));
    let mut mapper = Mapper::new(survey.finish(&["ABC".to_owned()]), limits);
    events.iter().for_each(|event| mapper.handle_event(event));
    mapper.finish();
    let mut steps = Vec::new();
    while let Some(step) = mapper.poll_step() {
        steps.push(match (step.role, step.request) {
            (Role::Maker, OrderRequest::Enter(o)) => {
                assert!(o.post_only);
                format!("enter {} {} {} {}", o.user_ref, o.side, o.price.0 / 10_000, o.qty)
            }
            (Role::Taker, OrderRequest::Enter(o)) => {
                let expected = step.expected.unwrap();
                assert_eq!((expected.price, expected.qty), (o.price, o.qty));
                format!("take {} {} {} of {}", o.side, o.price.0 / 10_000, o.qty, expected.resting)
            }
            (_, OrderRequest::Replace(o)) => {
                format!("replace {}>{} {} {}", o.orig_user_ref, o.user_ref, o.price.0 / 10_000, o.qty)
            }
            (_, OrderRequest::Cancel(o)) => format!("cancel {} {}", o.user_ref, o.qty),
            (_, other) => panic!("{other:?}"),
        });
    }
    (steps, mapper.counts())
}

/// Maps one added buy order per (time, is snapshot, price with nine decimals). Returns the instrument's tick
/// size and lowest permitted price, and the prices of the entered orders.
fn entered_at_nine_decimals(adds: &[(u64, bool, i64)]) -> (Price, Price, Vec<Price>) {
    let info = RecordingInfo { price_decimals: 9, ..CME };
    let event = |(place, &(ts_ns, is_snapshot, units)): (usize, &(u64, bool, i64))| {
        let level = Level { side: Side::Buy, price: Price(units) };
        let kind = EventKind::Add { order_id: place as u64 + 1, level, qty: Qty(1) };
        RecordedEvent { ts_ns, ends_transaction: true, is_snapshot, kind, ..RecordedEvent::NOTHING }
    };
    let events: Vec<RecordedEvent> = adds.iter().enumerate().map(event).collect();
    let mut survey = SurveyBuilder::new(info);
    events.iter().for_each(|event| survey.handle_event(event));
    let survey = survey.finish(&["6EH4".to_owned()]);
    let instrument = survey.instruments()[0];
    let mut mapper = Mapper::new(survey, FlowLimits::default());
    events.iter().for_each(|event| mapper.handle_event(event));
    mapper.finish();
    let prices: Vec<Price> = std::iter::from_fn(|| mapper.poll_step())
        .map(|step| match step.request {
            OrderRequest::Enter(order) => order.price,
            other => panic!("{other:?}"),
        })
        .collect();
    let excluded = mapper.counts().adds_excluded[Exclusion::PriceOutOfRange.index()];
    assert_eq!(excluded as usize + prices.len(), adds.len());
    (instrument.tick_size, instrument.collar_low, prices)
}

#[test]
fn prices_finer_than_four_decimals_are_entered_at_a_multiple() {
    // Euro futures (6E) in half pips: an order of an earlier snapshot, a new order, and one out of range.
    let euro = [(5, true, 1_084_550_000), (90, false, 1_084_600_000), (91, false, -5)];
    let (tick, low, prices) = entered_at_nine_decimals(&euro);
    assert_eq!((tick, low, prices), (Price(5), Price(108_455), vec![Price(108_455), Price(108_460)]));
}

#[test]
fn prices_that_no_multiple_brings_into_range_are_counted_in_ticks() {
    // Treasury futures in 1/256 points: orders at 102, at 102 1/256, and at a price out of range.
    let note = [(90, false, 102_000_000_000), (90, false, 102_003_906_250), (91, false, 300_000_000_000_000)];
    let (tick, low, prices) = entered_at_nine_decimals(&note);
    assert_eq!((tick, low, prices), (Price(1), Price(26_112), vec![Price(26_112), Price(26_113)]));
}

#[track_caller]
fn check(info: RecordingInfo, scenario: &str, expected: &[&str]) -> FlowCounts {
    let (steps, counts) = run(info, FlowLimits::default(), scenario);
    assert_eq!(steps, expected);
    counts
}

#[test]
fn an_execution_at_the_front_is_repeated_and_counts_in_later_sizes() {
    let counts = check(
        FULL,
        "add 1 buy 100 10\n add 2 buy 100 5\n fill 1 4\n red 1 2\n rep 1 3 101 7\n del 3",
        &[
            "enter 1 buy 100 10",
            "enter 2 buy 100 5",
            "take sell 100 4 of 1",
            "cancel 1 8",
            "replace 1>3 101 11",
            "cancel 3 0",
        ],
    );
    assert_eq!(counts.executions.eligible, 1);
}

#[test]
fn an_execution_out_of_priority_is_excluded_and_leaves_by_cancel() {
    let scenario =
        "add 1 buy 100 10\n add 2 buy 100 5\n add 3 buy 99 5\n fill 2 5\n fill 3 2\n fill 9 1\n fill 1 11";
    let entered = ["enter 1 buy 100 10", "enter 2 buy 100 5", "enter 3 buy 99 5"];
    let counts = check(FULL, scenario, &[&entered[..], &["cancel 2 0", "cancel 3 3", "cancel 1 0"]].concat());
    for reason in [
        Exclusion::NotFrontOfQueue,
        Exclusion::NotBestPrice,
        Exclusion::UnknownOrder,
        Exclusion::QtyAboveOrder,
    ] {
        assert_eq!(counts.executions.excluded[reason.index()], 1, "{reason:?}");
    }
    assert_eq!((counts.executions.seen, counts.executions.eligible), (4, 0));
}

#[test]
fn other_prices_sides_and_auctions_are_excluded() {
    let scenario = "add 1 buy 100 10\n fill 1 1 buy 99\n fill 1 1 sell 100\n auction 1 1";
    let counts = check(FULL, scenario, &["enter 1 buy 100 10", "cancel 1 9", "cancel 1 8", "cancel 1 7"]);
    for reason in [Exclusion::PriceDiffers, Exclusion::SideDiffers, Exclusion::Auction] {
        assert_eq!(counts.executions.excluded[reason.index()], 1, "{reason:?}");
    }
}

#[test]
fn a_repeated_outcome_is_ignored() {
    let scenario = "add 1 sell 100 5\n add 2 sell 100 5\n fill 1 5 sell 100 | fill 2 2 sell 100 | del 1 | mod 2 sell 100 3";
    let taken = ["take buy 100 5 of 1", "take buy 100 2 of 2"];
    let counts = check(CME, scenario, &[&["enter 1 sell 100 5", "enter 2 sell 100 5"][..], &taken].concat());
    assert_eq!((counts.executions.eligible, counts.unknown_changes), (2, 0));
}

#[test]
fn a_modification_keeps_priority_only_when_it_reduces() {
    check(
        CME,
        "add 1 buy 100 5\n mod 1 buy 100 3\n mod 1 buy 100 3\n mod 1 buy 100 4\n mod 1 buy 99 4",
        &["enter 1 buy 100 5", "cancel 1 3", "replace 1>2 100 4", "replace 2>3 99 4"],
    );
}

#[test]
fn fills_of_one_transaction_are_taken_in_priority() {
    let book = "add 1 buy 100 1\n add 2 buy 100 1\n add 3 buy 100 1\n";
    let entered = ["enter 1 buy 100 1", "enter 2 buy 100 1", "enter 3 buy 100 1"];
    let counts = check(
        CME,
        &format!("{book} fill 2 1 buy 100 | fill 1 1 buy 100"),
        &[&entered[..], &["take sell 100 1 of 1", "take sell 100 1 of 2"]].concat(),
    );
    assert_eq!(counts.executions.eligible, 2);
    // Order 2 is ahead and has no fill in the transaction, so the fill of order 3 is excluded.
    let counts = check(
        CME,
        &format!("{book} fill 3 1 buy 100 | fill 1 1 buy 100"),
        &[&entered[..], &["take sell 100 1 of 1", "cancel 3 0"]].concat(),
    );
    assert_eq!(counts.executions.excluded[Exclusion::NotFrontOfQueue.index()], 1);
}

#[test]
fn a_delete_without_a_fill_comes_before_the_fills_beside_it() {
    let counts = check(
        CME,
        "add 1 buy 100 1\n add 2 buy 100 1\n trade 9 sell 100 1 | fill 2 1 buy 100 | del 2 | del 1",
        &["enter 1 buy 100 1", "enter 2 buy 100 1", "cancel 1 0", "take sell 100 1 of 2"],
    );
    assert_eq!((counts.executions.eligible, counts.unknown_changes), (1, 0));
}

#[test]
fn a_report_about_the_incoming_order_is_not_a_resting_execution() {
    let counts = check(
        CME,
        "add 1 buy 99 2\n add 2 sell 100 2\n trade 1 buy 100 2 | fill 1 2 buy 100 | fill 2 2 sell 100 | del 1 | del 2",
        &["enter 1 buy 99 2", "enter 2 sell 100 2", "cancel 1 0", "take buy 100 2 of 2"],
    );
    assert_eq!(counts.executions.excluded[Exclusion::IncomingOrder.index()], 1);
    assert_eq!((counts.executions.seen, counts.executions.eligible), (2, 1));
}

#[test]
fn a_fill_larger_than_shown_takes_replenished_slices_after_the_others() {
    let counts = check(
        CME,
        "add 1 buy 100 6\n add 2 buy 100 2\n fill 2 2 buy 100 | fill 1 7 buy 100 | del 2 | mod 1 buy 100 25",
        &[
            "enter 1 buy 100 6",
            "enter 2 buy 100 2",
            "take sell 100 6 of 1",
            "enter 3 buy 100 1",
            "take sell 100 2 of 2",
            "take sell 100 1 of 3",
            "enter 4 buy 100 25",
        ],
    );
    assert_eq!((counts.executions.eligible, counts.replenished), (2, 2));
}

#[test]
fn a_crossed_add_waits_until_it_no_longer_crosses() {
    let counts = check(
        CME,
        "add 1 sell 100 5\n add 2 buy 101 5\n add 3 buy 101 1\n del 1",
        &["enter 1 sell 100 5", "cancel 1 0", "enter 2 buy 101 5", "enter 3 buy 101 1"],
    );
    assert_eq!((counts.adds_excluded[Exclusion::CrossedAdd.index()], counts.entered_later), (2, 2));
    let counts = check(CME, "add 1 sell 100 5\n add 2 buy 101 5\n fill 2 5 buy 101", &["enter 1 sell 100 5"]);
    assert_eq!(counts.executions.excluded[Exclusion::CrossedAdd.index()], 1);
}

#[test]
fn events_that_the_protocol_cannot_express_are_excluded() {
    let counts = check(
        FULL,
        "add 1 buy -5 1\n add 2 buy 200000 1\n add 3 buy 1 1000000\n add 4 buy 1 0\n fill 1 1",
        &[],
    );
    assert_eq!(counts.adds_excluded[Exclusion::PriceOutOfRange.index()], 2);
    assert_eq!(counts.adds_excluded[Exclusion::QtyOutOfRange.index()], 2);
    assert_eq!(counts.executions.excluded[Exclusion::PriceOutOfRange.index()], 1);
    check(FULL, "add 1 buy 1 999999", &["enter 1 buy 1 999999"]);
}

#[test]
fn a_clear_cancels_everything_and_an_order_added_twice_is_cancelled_first() {
    let counts = check(
        FULL,
        "add 1 buy 100 1\n add 1 buy 99 1\n add 2 sell 101 1\n clear",
        &[
            "enter 1 buy 100 1",
            "cancel 1 0",
            "enter 2 buy 99 1",
            "enter 3 sell 101 1",
            "cancel 2 0",
            "cancel 3 0",
        ],
    );
    assert_eq!(counts.duplicate_adds, 1);
}

#[test]
fn a_partial_recording_gets_the_orders_that_it_never_announced() {
    // Order 5 was entered between 3 and 7, but first appears when it trades.
    let counts = check(
        LEVEL_1,
        "add 3 buy 100 1\n add 7 buy 100 1\n fill 3 1 buy 100\n fill 5 1 buy 100\n del 5 buy 100 4\n fill 7 1 buy 100",
        &[
            "enter 1 buy 100 1",
            "enter 2 buy 100 5",
            "enter 3 buy 100 1",
            "take sell 100 1 of 1",
            "take sell 100 1 of 2",
            "cancel 2 0",
            "take sell 100 1 of 3",
        ],
    );
    assert_eq!((counts.executions.eligible, counts.executions.eligible_synthesised), (2, 1));
    assert_eq!((counts.synthesised, counts.executions.eligible_by_eviction), (1, 0));
}

#[test]
fn only_orders_without_later_events_are_evicted() {
    // Order 1 has a better price than the fills but no later event: it is evicted. Order 2 trades later, so
    // it stays, and the fill of order 4 is excluded.
    let scenario =
        "add 1 buy 101 1\n add 2 buy 100 1\n add 4 buy 100 1\n fill 4 1 buy 100\n fill 2 1 buy 100";
    let counts = check(
        LEVEL_1,
        scenario,
        &[
            "enter 1 buy 101 1",
            "cancel 1 0",
            "enter 2 buy 100 1",
            "enter 3 buy 100 1",
            "cancel 3 0",
            "take sell 100 1 of 2",
        ],
    );
    assert_eq!((counts.evicted_better, counts.evicted_ahead), (1, 0));
    assert_eq!(counts.executions.excluded[Exclusion::NotFrontOfQueue.index()], 1);
    // Fills are counted separately if an order at a better price, or ahead at the same price, is evicted.
    for scenario in
        ["add 1 buy 101 1\n fill 0 1 buy 100", "add 1 buy 100 1\n add 2 buy 100 1\n fill 2 1 buy 100"]
    {
        let (_, counts) = run(LEVEL_1, FlowLimits::default(), scenario);
        assert_eq!(counts.executions.eligible_by_eviction, 1, "{scenario}");
    }
    // In a full recording no order is evicted.
    let (_, counts) =
        run(FULL, FlowLimits::default(), "add 1 buy 100 1\n add 2 buy 100 1\n fill 2 1 buy 100");
    assert_eq!(counts.executions.excluded[Exclusion::NotFrontOfQueue.index()], 1);
}

#[test]
fn limits_apply_at_the_bound_and_one_beyond() {
    let limits = FlowLimits { open_order_count_max: 2, ..FlowLimits::default() };
    let (steps, counts) = run(FULL, limits, "add 1 buy 1 1\n add 2 buy 1 1");
    assert_eq!((steps.len(), counts.adds_excluded[Exclusion::TooManyOrders.index()]), (2, 0));
    let (steps, counts) = run(FULL, limits, "add 1 buy 1 1\n add 2 buy 1 1\n add 3 buy 1 1");
    assert_eq!((steps.len(), counts.adds_excluded[Exclusion::TooManyOrders.index()]), (2, 1));

    let limits = FlowLimits { held_back_count_max: 1, ..FlowLimits::default() };
    let (_, counts) = run(FULL, limits, "add 1 sell 5 1\n add 2 buy 6 1\n add 3 buy 6 1\n del 1");
    assert_eq!((counts.adds_excluded[Exclusion::CrossedAdd.index()], counts.entered_later), (2, 1));

    // A transaction longer than the maximum is mapped in parts, so the sequence of its fills matters.
    let scenario = "add 1 buy 100 1\n add 2 buy 100 1\n fill 2 1 buy 100 | fill 1 1 buy 100";
    let limits = |transaction_len_max| FlowLimits { transaction_len_max, ..FlowLimits::default() };
    assert_eq!(run(CME, limits(2), scenario).1.executions.eligible, 2);
    assert_eq!(run(CME, limits(1), scenario).1.executions.eligible, 1);
}

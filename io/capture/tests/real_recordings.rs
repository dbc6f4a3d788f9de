//! The mapper over whole real recordings, against a reference venue and the matching engine.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use common::ReferenceVenue;
use common::engine::EngineVenue;
use tickpath_capture::flow::{Exclusion, FlowCounts, FlowLimits, Mapper, survey};
use tickpath_capture::{EventKind, Format, RecordedEvent, Recording, decompress};
use tickpath_test_support::recorded;
use tickpath_types::{Price, Side};

/// Maps a whole file, has both venues check every request, and compares the books at the end.
/// `observe` sees the mapper after each event.
fn replay(path: &Path, limits: FlowLimits, mut observe: impl FnMut(&Mapper, &RecordedEvent)) -> FlowCounts {
    let survey = survey(&mut Recording::open(path).unwrap()).unwrap();
    let instruments = survey.instruments();
    let mut venue = ReferenceVenue::new(instruments.clone());
    let mut engine = EngineVenue::new(&instruments);
    let mut mapper = Mapper::new(survey, limits);
    let mut recording = Recording::open(path).unwrap();
    let mut takes = 0;
    while let Some(event) = recording.next_event().unwrap() {
        mapper.handle_event(&event);
        while let Some(step) = mapper.poll_step() {
            takes += u64::from(step.expected.is_some());
            venue.handle(&step);
            engine.handle(&step);
        }
        observe(&mapper, &event);
    }
    mapper.finish();
    while let Some(step) = mapper.poll_step() {
        venue.handle(&step);
        engine.handle(&step);
    }
    engine.assert_clean(takes);
    for (index, instrument) in instruments.iter().enumerate() {
        for side in Side::BOTH {
            let shadow: Vec<_> = mapper
                .resting(index as u32, side)
                .map(|order| (order.user_ref, order.level.price, order.qty.0))
                .collect();
            assert_eq!(shadow, venue.resting(index, side), "{instrument:?}, {side}");
            let matched: Vec<_> = shadow.iter().map(|(_, price, qty)| (*price, *qty)).collect();
            assert_eq!(matched, engine.resting(instrument.id, side), "{instrument:?}, {side}");
        }
    }
    let counts = mapper.counts();
    println!("{}\n{counts}", path.display());
    assert_eq!(counts.requests.takes, takes);
    let executions = counts.executions;
    assert_eq!(
        executions.seen,
        executions.eligible + executions.eligible_synthesised + executions.excluded_total()
    );
    counts
}

#[test]
fn every_fill_of_continuous_trading_on_cme_is_repeated() {
    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231225.mbo.dbn.zst") else { return };
    assert_eq!(Format::detect(&path).unwrap(), Format::Dbn);
    let counts = replay(&path, FlowLimits::default(), |_, _| {});
    let events = counts.events;
    assert_eq!(
        (events.adds, events.deletes, events.modifications, events.trades, events.fills, events.ignored),
        (29_216, 17_999, 12_233, 2_973, 6_371, 0)
    );
    let executions = counts.executions;
    assert_eq!((executions.seen, executions.eligible, executions.eligible_synthesised), (6_371, 6_229, 0));
    // The opening auction, and reports about the incoming order itself: no resting order's fill is left.
    assert_eq!(executions.excluded(Exclusion::Auction), 35);
    assert_eq!(executions.excluded(Exclusion::IncomingOrder), 107);
    assert_eq!(executions.excluded_total(), 142);
    assert_eq!((counts.unknown_changes, counts.duplicate_adds), (0, 0));
    assert_eq!(counts.adds_excluded(Exclusion::CrossedAdd), 53);
}

#[test]
fn a_snapshot_file_becomes_a_book() {
    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231224.mbo.dbn.zst") else { return };
    let counts = replay(&path, FlowLimits::default(), |_, _| {});
    assert_eq!((counts.events.adds, counts.requests.enters), (8_725, 8_725));
}

const AMZN: &str = "lobster/AMZN_2012-06-21_message_level1_part1.csv.gz";

#[test]
fn executions_at_the_best_level_of_nasdaq_are_repeated() {
    let Some(path) = recorded(AMZN) else { return };
    assert_eq!(Format::detect(&path).unwrap(), Format::Lobster);
    let counts = replay(&path, FlowLimits::default(), |_, _| {});
    let events = counts.events;
    assert_eq!(
        (events.adds, events.reductions, events.deletes, events.fills, events.trades),
        (12_949, 12, 8_802, 3_832, 1_125)
    );
    let executions = counts.executions;
    assert_eq!((executions.eligible, executions.eligible_synthesised), (2_556, 1_273));
    assert_eq!(executions.excluded(Exclusion::HiddenExecution), 1_125);
    assert_eq!(executions.excluded(Exclusion::NotFrontOfQueue), 3);
    assert_eq!(executions.excluded_total(), 1_128);
    assert_eq!(counts.synthesised, 2_984);
    // These follow the recording; only the others stood first by the shadow's own account.
    assert_eq!(executions.eligible_by_eviction, 369);
}

#[test]
fn without_reconstruction_a_partial_recording_shows_how_little_it_holds() {
    let Some(path) = recorded(AMZN) else { return };
    let limits = FlowLimits { reconstruct: false, ..FlowLimits::default() };
    let counts = replay(&path, limits, |_, _| {});
    assert_eq!((counts.synthesised, counts.evicted_better, counts.evicted_ahead), (0, 0, 0));
    assert_eq!(counts.executions.eligible_synthesised, 0);
    assert_eq!(counts.executions.excluded(Exclusion::UnknownOrder), 1_273);
    assert!(counts.executions.eligible < counts.executions.excluded(Exclusion::NotBestPrice));
}

/// LOBSTER's order book file says what the best prices were after each event: evidence that the
/// mapper never saw. An event may force the side that it is about into agreement by evicting, so only
/// the other side is judged. The bound is a little below what this file gives, 90.1 %.
#[test]
fn the_side_that_an_event_does_not_touch_has_the_recorded_best_price() {
    let Some(path) = recorded(AMZN) else { return };
    let Some(book) = recorded("lobster/AMZN_2012-06-21_orderbook_level1_part1.csv.gz") else { return };
    let input: Box<dyn Read> = decompress(std::fs::File::open(book).unwrap()).unwrap();
    let mut rows = BufReader::new(input).lines().skip(1).map(|line| {
        let line = line.unwrap();
        let cells: Vec<i64> = line.split(',').map(|cell| cell.trim().parse().unwrap()).collect();
        [Price(cells[2]), Price(cells[0])]
    });
    let (mut judged, mut agreed) = (0_u32, 0_u32);
    replay(&path, FlowLimits::default(), |mapper, event| {
        let row = rows.next().expect("a row for each event");
        let touched = match event.kind {
            EventKind::Add { level, .. } => Some(level.side),
            EventKind::Delete { level, .. } | EventKind::Reduce { level, .. } => {
                level.map(|level| level.side)
            }
            EventKind::Fill { side, .. } => side,
            _ => None,
        };
        if let Some(side) = touched.map(Side::opposite) {
            judged += 1;
            let best = mapper.resting(0, side).next().map(|order| order.level.price);
            agreed += u32::from(best == Some(row[side.index()]));
        }
    });
    assert!(rows.next().is_none());
    println!("the untouched side agrees after {agreed} of {judged} events");
    assert_eq!(judged, 25_595);
    assert!(agreed * 100 > judged * 89, "{agreed} of {judged}");
}

#[test]
fn an_inconsistent_sample_is_excluded_and_not_believed() {
    let Some(path) = recorded("nasdaq_itch50/ritch_ex20101224.TEST_ITCH_50.gz") else { return };
    assert_eq!(Format::detect(&path).unwrap(), Format::Itch);
    let counts = replay(&path, FlowLimits::default(), |_, _| {});
    let events = counts.events;
    assert_eq!((events.adds, events.deletes, events.fills, events.trades), (5_000, 1_745, 198, 5_000));
    assert_eq!(counts.executions.excluded(Exclusion::HiddenExecution), 5_000);
    assert!(counts.executions.eligible < 10);
}

#[test]
fn the_first_orders_of_a_nasdaq_day_are_entered() {
    let Some(path) = recorded("nasdaq_itch50/itch50_20191230_0400_first500_order_msgs.bin") else { return };
    let counts = replay(&path, FlowLimits::default(), |_, _| {});
    assert_eq!((counts.requests.enters, counts.requests.replaces, counts.requests.cancels), (495, 1, 4));
}

//! Maps whole real recordings; a reference venue and the matching engine execute the requests.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use common::ReferenceVenue;
use common::engine::EngineVenue;
use tickpath_capture::flow::{Exclusion, FlowCounts, FlowLimits, FlowStep, Mapper, Role, survey};
use tickpath_capture::{EventKind, Format, RecordedEvent, Recording, RecordingFile, decompress};
use tickpath_test_support::recorded;
use tickpath_types::{OrderRequest, Price, Side};

/// Result of a replay: events and requests counted by kind, and the counters of the mapper.
#[derive(Debug, Default)]
struct Replayed {
    counts: FlowCounts,
    events: BTreeMap<&'static str, u64>,
    requests: BTreeMap<&'static str, u64>,
}

impl Replayed {
    fn events(&self, kinds: &[&str]) -> Vec<u64> {
        kinds.iter().map(|kind| self.events.get(kind).copied().unwrap_or_default()).collect()
    }
}

const fn kind(event: &RecordedEvent) -> &'static str {
    match event.kind {
        EventKind::Add { .. } => "add",
        EventKind::Delete { .. } => "delete",
        EventKind::Reduce { .. } => "reduce",
        EventKind::Modify { .. } => "modify",
        EventKind::Fill { .. } => "fill",
        EventKind::Trade { .. } => "trade",
        EventKind::Ignored(_) => "ignored",
        _ => "other",
    }
}

const fn request(step: &FlowStep) -> &'static str {
    match (step.role, step.request) {
        (Role::Maker, OrderRequest::Enter(_)) => "enter",
        (Role::Taker, OrderRequest::Enter(_)) => "take",
        (_, OrderRequest::Replace(_)) => "replace",
        _ => "cancel",
    }
}

/// Maps a whole file, executes every request on both venues, and compares the books at the end.
/// `observe` gets the mapper after each event.
fn replay(path: &Path, mut observe: impl FnMut(&Mapper, &RecordedEvent)) -> Replayed {
    let survey = survey(&mut Recording::open(path).unwrap()).unwrap();
    let instruments = survey.instruments();
    let mut venue = ReferenceVenue::new(instruments.clone());
    let mut engine = EngineVenue::new(&instruments);
    let mut mapper = Mapper::new(survey, FlowLimits::default());
    let mut recording = Recording::open(path).unwrap();
    let mut replayed = Replayed::default();
    while let Some(event) = recording.next_event().unwrap() {
        *replayed.events.entry(kind(&event)).or_default() += 1;
        mapper.handle_event(&event);
        while let Some(step) = mapper.poll_step() {
            *replayed.requests.entry(request(&step)).or_default() += 1;
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
    engine.assert_clean(replayed.requests.get("take").copied().unwrap_or_default());
    for (index, instrument) in instruments.iter().enumerate() {
        for side in Side::BOTH {
            let shadow: Vec<_> = mapper
                .resting(index as u32, side)
                .map(|(user_ref, price, qty)| (user_ref, price, qty.0))
                .collect();
            assert_eq!(shadow, venue.resting(index, side), "{instrument:?}, {side}");
            let matched: Vec<_> = shadow.iter().map(|(_, price, qty)| (*price, *qty)).collect();
            assert_eq!(matched, engine.resting(instrument.id, side), "{instrument:?}, {side}");
        }
    }
    replayed.counts = mapper.counts();
    println!("{}\n{replayed:?}", path.display());
    let executions = replayed.counts.executions;
    assert_eq!(
        executions.seen,
        executions.eligible + executions.eligible_synthesised + executions.excluded.iter().sum::<u64>()
    );
    replayed
}

#[test]
fn every_fill_of_continuous_trading_on_cme_is_repeated() {
    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231225.mbo.dbn.zst") else { return };
    assert_eq!(RecordingFile::open(&path).unwrap().format(), Format::Dbn);
    let replayed = replay(&path, |_, _| {});
    let counts = replayed.counts;
    assert_eq!(
        replayed.events(&["add", "delete", "modify", "trade", "fill", "ignored"]),
        [29_216, 17_999, 12_233, 2_973, 6_371, 0]
    );
    let executions = counts.executions;
    assert_eq!((executions.seen, executions.eligible, executions.eligible_synthesised), (6_371, 6_229, 0));
    // Only fills of the opening auction and reports about the incoming order are excluded.
    assert_eq!(executions.excluded[Exclusion::Auction.index()], 35);
    assert_eq!(executions.excluded[Exclusion::IncomingOrder.index()], 107);
    assert_eq!(executions.excluded.iter().sum::<u64>(), 142);
    assert_eq!((counts.unknown_changes, counts.duplicate_adds), (0, 0));
    assert_eq!(counts.adds_excluded[Exclusion::CrossedAdd.index()], 53);
}

#[test]
fn a_snapshot_file_becomes_a_book() {
    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231224.mbo.dbn.zst") else { return };
    let replayed = replay(&path, |_, _| {});
    assert_eq!((replayed.events["add"], replayed.requests["enter"]), (8_725, 8_725));
}

const AMZN: &str = "lobster/AMZN_2012-06-21_message_level1_part1.csv.gz";

#[test]
fn executions_at_the_best_level_of_nasdaq_are_repeated() {
    let Some(path) = recorded(AMZN) else { return };
    assert_eq!(RecordingFile::open(&path).unwrap().format(), Format::Lobster);
    let replayed = replay(&path, |_, _| {});
    let counts = replayed.counts;
    assert_eq!(
        replayed.events(&["add", "reduce", "delete", "fill", "trade"]),
        [12_949, 12, 8_802, 3_832, 1_125]
    );
    let executions = counts.executions;
    assert_eq!((executions.eligible, executions.eligible_synthesised), (2_556, 1_273));
    assert_eq!(executions.excluded[Exclusion::HiddenExecution.index()], 1_125);
    assert_eq!(executions.excluded[Exclusion::NotFrontOfQueue.index()], 3);
    assert_eq!(executions.excluded.iter().sum::<u64>(), 1_128);
    assert_eq!(counts.synthesised, 2_984);
    // Only these fills needed an eviction; the orders of all other fills were at the front without one.
    assert_eq!(executions.eligible_by_eviction, 369);
}

/// Compares the mapper's best prices with LOBSTER's order book file, which the mapper does not read. An event
/// may evict orders from its own side, so the test compares only the other side. Its best prices are equal
/// after 90.1 % of the events of this file; the asserted minimum is a little lower.
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
    replay(&path, |mapper, event| {
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
            let best = mapper.resting(0, side).next().map(|(_, price, _)| price);
            agreed += u32::from(best == Some(row[side.index()]));
        }
    });
    assert!(rows.next().is_none());
    println!("the untouched side agrees after {agreed} of {judged} events");
    assert_eq!(judged, 25_595);
    assert!(agreed * 100 > judged * 89, "{agreed} of {judged}");
}

#[test]
fn an_inconsistent_sample_is_excluded() {
    let Some(path) = recorded("nasdaq_itch50/ritch_ex20101224.TEST_ITCH_50.gz") else { return };
    assert_eq!(RecordingFile::open(&path).unwrap().format(), Format::Itch);
    let replayed = replay(&path, |_, _| {});
    let counts = replayed.counts;
    assert_eq!(replayed.events(&["add", "delete", "fill", "trade"]), [5_000, 1_745, 198, 5_000]);
    assert_eq!(counts.executions.excluded[Exclusion::HiddenExecution.index()], 5_000);
    assert!(counts.executions.eligible < 10);
}

#[test]
fn the_first_orders_of_a_nasdaq_day_are_entered() {
    let Some(path) = recorded("nasdaq_itch50/itch50_20191230_0400_first500_order_msgs.bin") else { return };
    let replayed = replay(&path, |_, _| {});
    assert_eq!(replayed.requests, BTreeMap::from([("cancel", 4), ("enter", 495), ("replace", 1)]));
}

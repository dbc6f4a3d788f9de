//! Exported tables of captures: CSV and Parquet have the same rows.

#![cfg(feature = "parquet")]

use std::fs;
use std::path::Path;

use tickpath_agent::StopSignal;
use tickpath_iex::Feed;
use tickpath_replay::{Exports, FileReport, ReplayOptions, convert};
use tickpath_test_support::recorded;

use crate::captured::Capture;
use crate::captured_iex::{GROUP, deep_plus, level, segment};
use crate::captured_xdp::day;
use crate::support::{run, stored};

const TABLES: [&str; 4] = ["bbo", "trades", "depth", "orders"];

fn exports(folder: &Path, ending: &str, has_orders: bool) -> Exports {
    let [bbo, trades, depth, orders] = TABLES.map(|name| Some(folder.join(format!("{name}.{ending}"))));
    Exports { bbo, trades, depth, orders: orders.filter(|_| has_orders) }
}

/// Exports a capture in both formats and converts each to the other; returns the report and the text of each
/// table.
fn export(path: &Path, has_orders: bool) -> (FileReport, [String; 4]) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    let mut reports = ["csv", "parquet"].map(|ending| {
        let exports = exports(folder.path(), ending, has_orders);
        run(path, &ReplayOptions { exports, depth: 3, ..ReplayOptions::default() })
    });
    assert_eq!(reports[0].exported, reports[1].exported);
    let texts = TABLES.map(|name| {
        if name == "orders" && !has_orders {
            return String::new();
        }
        let convert = |from: &Path, to: &Path| convert(from, to, &StopSignal::new(), &mut |_| {}).unwrap();
        let (csv, parquet) = (at(format!("{name}.csv")), at(format!("{name}.parquet")));
        convert(&parquet, &at(format!("{name}.again.csv")));
        convert(&csv, &at(format!("{name}.again.parquet")));
        convert(&at(format!("{name}.again.parquet")), &at(format!("{name}.twice.csv")));
        let text = fs::read_to_string(csv).unwrap();
        for other in ["again", "twice"] {
            let other = fs::read_to_string(at(format!("{name}.{other}.csv"))).unwrap();
            let differs = text.lines().zip(other.lines()).find(|(one, other)| one != other);
            assert_eq!((differs, text.len()), (None, other.len()), "{name}");
        }
        text
    });
    let [report, _] = &mut reports;
    let rows = texts.each_ref().map(|text| text.lines().count().saturating_sub(1) as u64);
    let counted =
        [report.exported.bbo, report.exported.trades, report.exported.depth, report.exported.orders];
    assert_eq!(rows, counted.map(Option::unwrap_or_default));
    let [report, _] = reports;
    (report, texts)
}

#[test]
fn a_day_of_xdp() {
    let mut capture = Capture::new();
    for (channel, bytes) in day() {
        capture.udp(&format!("224.0.59.{}:11000", 1 + channel), &bytes);
    }
    let (_folder, path) = crate::support::file("day.pcap", &capture.bytes);
    let (report, [bbo, trades, depth, orders]) = export(&path, true);
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    let count = |text: &str, event: &str| text.lines().filter(|line| line.contains(event)).count() as u64;
    let of =
        |code: &str| report.by_type.iter().find(|entry| entry.code == code).map_or(0, |entry| entry.count);
    assert_eq!((count(&orders, ",add,"), count(&orders, ",delete,")), (of("100"), of("102")));
    assert_eq!(count(&orders, ",execute,"), of("103"));
    // A modification is exported as a replacement or as a reduction.
    assert_eq!(count(&orders, ",replace,") + count(&orders, ",reduce,"), of("101") + of("104"));
    // Each hidden trade and each cross has one row.
    assert_eq!(count(&trades, ",hidden,") + count(&trades, ",cross,"), of("110") + of("111"));
    assert!(bbo.lines().count() > 100 && depth.lines().count() > bbo.lines().count(), "{bbo}");
}

#[test]
fn orders_of_deep_plus_and_levels_of_deep() {
    let messages = deep_plus();
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut capture = Capture::new();
    capture.udp(GROUP, &segment(Feed::DeepPlus10, 1, 0, 1, &slices));
    let (_folder, path) = crate::support::file("plus.pcap", &capture.bytes);
    let (_, [_, trades, depth, orders]) = export(&path, true);
    assert_eq!(
        (trades.lines().count(), depth.lines().count(), orders.lines().count()),
        (2, 5, 5),
        "{orders}"
    );
    let mut capture = Capture::new();
    for number in 1..=20 {
        let side = if number % 2 == 0 { tickpath_types::Side::Buy } else { tickpath_types::Side::Sell };
        let change =
            level(side, true, number, 100, if number % 2 == 0 { 10_000 } else { 11_000 } - number as i64);
        capture.udp(GROUP, &segment(Feed::Deep10, number, 30 * number, number, &[&change]));
    }
    let (_folder, path) = crate::support::file("deep.pcap", &capture.bytes);
    let (_, [bbo, _, depth, _]) = export(&path, false);
    assert!(bbo.lines().count() > 5 && depth.lines().count() > 20, "{depth}");
}

#[test]
fn recorded_levels_and_quotes() {
    export(&stored("deep10_20170425_restart.pcap.gz"), false);
    export(&stored("iex_quote_update.pcap"), false);
    if let Some(path) = recorded("iex/tops16_20170710_part1.pcap.gz") {
        let (report, [bbo, trades, ..]) = export(&path, false);
        assert!(bbo.lines().count() > 1_000 && trades.lines().count() == 4_075, "{report}");
    }
}

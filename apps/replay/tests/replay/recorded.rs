//! Replays of real recordings.

use tickpath_capture::Format;
use tickpath_replay::{FileReport, ReplayOptions};
use tickpath_test_support::recorded;

use crate::support::{checked, run, stored};

fn count(report: &FileReport, code: char) -> u64 {
    report.by_type.iter().find(|entry| entry.code == code.to_string()).map_or(0, |entry| entry.count)
}

#[test]
fn the_ritch_sample_is_decoded_and_its_books_are_not_trusted() {
    let path = stored("ritch_ex20101224.TEST_ITCH_50.gz");
    let decoded = run(&path, &ReplayOptions { decode_only: true, ..ReplayOptions::default() });
    assert!(decoded.is_trustworthy(), "{:?}", decoded.contradictions);
    assert_eq!((decoded.format, decoded.messages, decoded.symbol_count), (Format::Itch, 12_012, 3));
    let counts = "SRHAFEDPUX".chars().map(|code| count(&decoded, code)).collect::<Vec<_>>();
    assert_eq!(counts, [6, 3, 3, 4_997, 3, 198, 1_745, 5_000, 12, 45]);
    assert!(decoded.books.is_none() && decoded.tops.is_empty());

    let report = run(&path, &ReplayOptions { check_every: Some(1_000), ..ReplayOptions::default() });
    assert_eq!(report.checksum, decoded.checksum);
    assert!(!report.is_trustworthy());
    assert!(report.integrity.unknown_references.count > 0);
    assert_eq!(report.integrity.time_backwards.count, 0);
    // The reference model agrees with the books.
    let model = report.model.as_ref().unwrap();
    assert_eq!((&model.difference, model.comparisons), (&None, 13));
}

#[test]
fn the_nasdaq_samples_are_read() {
    let Some(path) = recorded("nasdaq_itch50/itch50_20191230_0400_first500_order_msgs.bin") else { return };
    let report = run(&path, &checked());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!((report.messages, report.symbol_count), (500, 198));
    assert_eq!((count(&report, 'A'), count(&report, 'D'), count(&report, 'U')), (495, 4, 1));
    assert_eq!(report.integrity.orders_left, 491);

    let Some(path) = recorded("nasdaq_itch50/itch50_20191230_2_per_type.bin") else { return };
    let report = run(&path, &checked());
    assert_eq!((report.messages, report.is_trustworthy()), (12, false));
    assert!(report.integrity.unknown_references.count > 0);
}

#[test]
fn two_mbo_records_are_read() {
    let report = run(&stored("test_data.mbo.v3.dbn.zst"), &checked());
    assert_eq!((report.format, report.messages), (Format::Dbn, 2));
    assert_eq!(report.statistics[0].0, "ESH1");
}

#[test]
fn cme_books_are_consistent_over_a_day() {
    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231225.mbo.dbn.zst") else { return };
    let report = run(&path, &ReplayOptions { check_every: Some(10_000), ..ReplayOptions::default() });
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(report.messages, 68_792);
    let counts = "ACMTF".chars().map(|code| count(&report, code)).collect::<Vec<_>>();
    assert_eq!(counts, [29_216, 17_999, 12_233, 2_973, 6_371]);
    assert_eq!(report.integrity.unknown_references.count, 0);
    assert_eq!(report.integrity.orders_left, 29_216 - 17_999);
    let model = report.model.as_ref().unwrap();
    assert_eq!((&model.difference, model.comparisons), (&None, 7));

    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231224.mbo.dbn.zst") else { return };
    let report = run(&path, &checked());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!((report.messages, report.integrity.orders_left), (8_725, 8_725));
}

#[test]
fn every_determined_row_of_lobster_follows_from_its_message() {
    let Some(path) = recorded("lobster/AMZN_2012-06-21_message_level1_part1.csv.gz") else { return };
    let report = run(&path, &ReplayOptions { check_every: Some(5_000), ..ReplayOptions::default() });
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(report.messages, 26_720);
    let counts = "12345".chars().map(|code| count(&report, code)).collect::<Vec<_>>();
    assert_eq!(counts, [12_949, 12, 8_802, 3_832, 1_125]);
    let rows = report.rows.as_ref().unwrap();
    assert_eq!((rows.determined, rows.undeterminable, rows.different), (19_881, 6_839, 0));
    assert_eq!(report.model.as_ref().unwrap().difference, None);
}

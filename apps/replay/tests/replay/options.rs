//! The report covers exactly the selected messages.

use std::time::Instant;

use tickpath_agent::StopSignal;
use tickpath_replay::{EndReason, Moment, ReplayOptions, ReplayReport, Speed, replay, replay_all};

use crate::support::{Day, checked, file, run, stored, try_run};

fn moment(text: &str) -> Option<Moment> {
    Some(text.parse().unwrap())
}

#[test]
fn the_window_selects_messages_and_the_books_are_complete() {
    let (_folder, path) = file("day", &Day::small().bytes);
    // The window contains the sixth to the ninth message.
    let options = ReplayOptions { from: moment("09:30:00.006"), to: moment("09:30:00.010"), ..checked() };
    let report = run(&path, &options);
    assert_eq!((report.messages, report.messages_read, report.ended), (4, 9, Some(EndReason::Window)));
    let aaa = &report.statistics[0];
    assert_eq!((aaa.0.as_str(), aaa.1.messages, aaa.1.adds, aaa.1.volume), ("AAA", 3, 1, 47));
    // The books include the orders of the messages before the window.
    assert_eq!(report.tops[0].sides[0][0].qty.0, 60);
    assert_eq!(report.tops[0].sides[1][0].price.0, 1_000_300);
}

#[test]
fn a_window_that_is_empty_is_refused() {
    let (_folder, path) = file("day", &Day::small().bytes);
    for (from, to) in [("10:00:00", "09:00:00"), ("09:30:00", "09:30:00")] {
        let options = ReplayOptions { from: moment(from), to: moment(to), ..checked() };
        let message = try_run(&path, &options).unwrap_err().to_string();
        assert!(message.contains("--to is not after --from"), "{message}");
        let error = replay_all(&[path.clone(), path.clone()], &options, &StopSignal::new(), &mut |_| {});
        assert!(error.unwrap_err().to_string().contains("--to is not after --from"), "told once for all");
    }
}

#[test]
fn the_limit_is_of_messages_from_the_start() {
    let (_folder, path) = file("day", &Day::small().bytes);
    for (limit, ended) in [(5, Some(EndReason::Limit)), (13, Some(EndReason::Limit)), (14, None)] {
        let report = run(&path, &ReplayOptions { limit: Some(limit), ..checked() });
        assert_eq!((report.messages, report.ended), (limit.min(13), ended));
        assert_eq!(report.model.as_ref().unwrap().difference, None);
    }
}

#[test]
fn symbols_choose_statistics_and_books() {
    let (_folder, path) = file("day", &Day::small().bytes);
    let symbols = vec!["BBB".to_owned(), "NONE".to_owned()];
    let report = run(&path, &ReplayOptions { symbols, depth: 1, ..checked() });
    assert_eq!(report.messages, 13);
    let shown: Vec<&str> = report.statistics.iter().map(|(symbol, _)| symbol.as_str()).collect();
    assert_eq!(shown, ["BBB"]);
    assert_eq!((report.tops.len(), report.tops[0].symbol.as_str()), (1, "BBB"));
    assert_eq!(report.absent_symbols, ["NONE"]);
}

#[test]
fn recorded_time_paces_and_a_stop_ends_with_a_report() {
    // The thirteen messages are a millisecond apart.
    let (_folder, path) = file("day", &Day::small().bytes);
    let begin = Instant::now();
    let report = run(&path, &ReplayOptions { speed: Speed::Hundredths(20), ..checked() });
    assert!(begin.elapsed().as_millis() >= 60, "{:?}", begin.elapsed());
    assert_eq!(report.messages, 13);
    let stop = StopSignal::new();
    stop.stop();
    let report = replay(&path, &checked(), &stop, &mut |_| {}).unwrap().files.remove(0);
    assert_eq!((report.messages, report.ended), (0, Some(EndReason::Stopped)));
}

#[test]
fn dates_need_recordings_with_dates() {
    let (_folder, path) = file("day", &Day::small().bytes);
    let from = moment("2023-12-25T00:00:00");
    let error = try_run(&path, &ReplayOptions { from, ..ReplayOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("HH:MM:SS"), "{error}");
    let dbn = stored("test_data.mbo.v3.dbn.zst");
    assert_eq!(run(&dbn, &ReplayOptions { from, ..ReplayOptions::default() }).messages, 0);
    let from = moment("2020-12-28T00:00:00");
    assert_eq!(run(&dbn, &ReplayOptions { from, ..ReplayOptions::default() }).messages, 2);
}

#[test]
fn order_book_files_can_be_named() {
    let (_folder, messages) = file("AAA_message_1.csv", b"1,1,1,5,100,1\n2,1,2,6,100,1\n");
    let (_other, rows) = file("rows.csv", b"9999999999,0,100,5\n9999999999,0,100,11\n");
    let report =
        run(&messages, &ReplayOptions { order_book: Some(rows.clone()), ..ReplayOptions::default() });
    let found = report.rows.unwrap();
    assert_eq!((found.determined, found.undeterminable, found.different), (1, 1, 0));
    std::fs::write(&rows, "9999999999,0,100,5\n9999999999,0,100,12\n").unwrap();
    let report =
        run(&messages, &ReplayOptions { order_book: Some(rows.clone()), ..ReplayOptions::default() });
    assert!(report.contradictions[0].contains("message 2, line 2"), "{:?}", report.contradictions);
    let (_folder, day) = file("day", &Day::small().bytes);
    let options = ReplayOptions { order_book: Some(rows), ..ReplayOptions::default() };
    assert!(try_run(&day, &options).unwrap_err().to_string().contains("not a LOBSTER"));
}

#[test]
fn json_has_the_stable_fields() {
    let (_folder, path) = file("day", &Day::small().bytes);
    let one = run(&path, &checked());
    let json = ReplayReport { files: vec![one.clone()], ..ReplayReport::default() }.to_json();
    assert_eq!(json["messages"], 13);
    assert_eq!(json["by_type"]["A"], 4);
    assert_eq!(json["integrity"]["orders_left"], 2);
    assert_eq!(json["check"]["ok"], true);
    assert_eq!(json["ended"], serde_json::Value::Null);
    for state in
        ["before_open", "trading", "quotation_only", "halted", "after_close", "unknown", "contradictory"]
    {
        assert_eq!(json["integrity"]["crossed"][state]["count"], 0, "{state}");
    }
    assert_eq!(json["tops"][0]["symbol"], "AAA");
    assert_eq!(json["tops"][0]["bids"][0]["price"], "100.0000");
    for figure in ["decode_ns_per_message", "books_ns_per_message", "peak_rss_bytes", "seconds"] {
        assert!(json[figure].as_f64().unwrap() > 0.0, "{figure}");
    }
    let failures = vec![(path, "gone".to_owned())];
    let two = ReplayReport { files: vec![one.clone(), one], failures, ..ReplayReport::default() };
    let json = two.to_json();
    assert_eq!((&json["messages"], &json["by_type"]["A"]), (&26.into(), &8.into()));
    assert_eq!((&json["files"][1]["messages"], &json["trustworthy"]), (&13.into(), &false.into()));
    let text = two.to_string();
    assert!(
        text.contains("Sum of 3 files: 26 messages")
            && text.starts_with("FAIL: 2 of 3 files can be trusted\n"),
        "{text}"
    );
}

#[test]
fn statistics_are_exact() {
    let (_folder, path) = file("day", &Day::small().bytes);
    let report = run(&path, &checked());
    let (symbol, aaa) = &report.statistics[0];
    assert_eq!((symbol.as_str(), aaa.messages, aaa.adds, aaa.executions), ("AAA", 9, 3, 1));
    assert_eq!(
        (aaa.volume, aaa.low.unwrap().0, aaa.high.unwrap().0, aaa.last.unwrap().0),
        (47, 1_000_000, 1_000_200, 1_000_200)
    );
    // The spread is 0.03 after ask, deep bid and execution; 0.02 after replacement, cancel and delete.
    assert_eq!((aaa.spread_sum, aaa.spread_count, aaa.tick), (1_500, 6, 100));
    assert_eq!(aaa.spread_average_ticks_ppm(), Some(2_500_000));
}

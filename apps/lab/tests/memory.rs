//! The memory of the books, measured as the growth of the whole process.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_lab::{BenchOptions, Effort, bench};

#[test]
fn an_order_takes_the_length_of_its_record() {
    let options = BenchOptions {
        filter: vec!["book_record_bytes".to_owned()],
        rounds: 2,
        effort: Effort::Smoke,
        ..BenchOptions::default()
    };
    let report = bench(&options).unwrap();
    let row = report.row("book_record_bytes").unwrap();
    assert_eq!(row.values.len(), 1, "the same in every round");
    // An order and its owner fill a cache line; the tests beside this one allocate too.
    assert!((48.0..=80.0).contains(&row.values[0]), "{row:?}");
    assert!(row.note.contains("bytes of the index") && row.note.contains("of price levels"), "{}", row.note);
}

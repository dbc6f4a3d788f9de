//! The latency laboratory: measures the parts of the system on this host, and the limits of the host for the
//! same work.
//!
//! [`bench()`] measures each row in interleaved rounds, next to the physical limit that bounds it. It returns
//! a [`BenchReport`]: a text table by `Display`, JSON by [`BenchReport::to_json`]. [`BenchReport::push`] adds
//! a row that was measured elsewhere.
//!
//! ```
//! use tickpath_lab::{BenchOptions, Effort, Goal, Row, bench, row};
//!
//! let options = BenchOptions {
//!     filter: vec!["stamp".to_owned()],
//!     rounds: 1,
//!     effort: Effort::Smoke,
//!     ..BenchOptions::default()
//! };
//! let mut report = bench(&options)?;
//! let spec = row("hot_allocations", "allocations")
//!     .note("allocations of a trading thread after start-up")
//!     .goal(Goal::ValueAtMost(0.0));
//! report.push(Row { values: vec![0.0], ..Row::of(spec) });
//! assert_eq!(report.row("stamp").unwrap().spec.limit, Some("tsc_read"));
//! assert!(report.to_string().contains("hot_allocations"));
//! # Ok::<(), anyhow::Error>(())
//! ```

mod bench;
mod child;
mod compare;
mod context;
mod counted;
mod counted_books;
mod day;
mod day_file;
mod day_statistics;
mod days;
mod event_days;
mod filter;
mod host;
mod itch_books;
mod itch_orders;
mod itch_touch;
mod json;
mod lab;
mod measurement;
mod options;
mod record;
mod report;
mod row;
mod rows;
mod statistics;
mod support;
mod table;
mod textbook_books;
mod touch;

pub use bench::bench;
pub use child::run_counted;
pub use compare::{Build, Change, CompareOptions, ComparedRow, Comparison, compare};
pub use context::Effort;
pub use days::{DayView, Simulated};
pub use filter::matching_names;
pub use host::HostView;
pub use options::{BenchOptions, ROUNDS_DEFAULT};
pub use record::check_recordable;
pub use report::BenchReport;
pub use row::{Goal, Row, RowSpec, row};
pub use rows::row_names;

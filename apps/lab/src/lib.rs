//! The latency laboratory: what the parts of the system cost on this host, beside what the host itself costs.
//!
//! [`bench()`] measures each row in interleaved rounds, the physical limit next to what it bounds, and gives a
//! [`BenchReport`]: a text table by `Display`, JSON by [`BenchReport::to_json`]. A row that is measured
//! elsewhere is added by [`BenchReport::push`].
//!
//! ```
//! use tickpath_lab::{BenchOptions, Effort, Goal, Row, bench};
//!
//! let options = BenchOptions {
//!     filter: vec!["stamp".to_owned()],
//!     rounds: 1,
//!     effort: Effort::Smoke,
//!     ..BenchOptions::default()
//! };
//! let mut report = bench(&options)?;
//! report.push(Row {
//!     values: vec![0.0],
//!     goal: Some(Goal::ValueAtMost(0.0)),
//!     note: "allocations of a trading thread after start-up".to_owned(),
//!     ..Row::new("hot_allocations", "allocations")
//! });
//! assert_eq!(report.row("stamp").unwrap().limit_name.as_deref(), Some("tsc_read"));
//! assert!(report.to_string().contains("hot_allocations"));
//! # Ok::<(), anyhow::Error>(())
//! ```

mod bench;
mod context;
mod counted;
mod counted_crowd;
mod counted_fanout;
mod counted_history;
mod day;
mod day_facts;
mod day_file;
mod days;
mod deribit_venue;
mod host;
mod itch_books;
mod json;
mod lab;
mod measure;
mod record;
mod report;
mod row;
mod rows;
mod statistics;
mod table;

pub use bench::{BenchOptions, ROUNDS_DEFAULT, bench};
pub use context::Effort;
pub use counted::run_counted;
pub use days::{DayView, Simulated};
pub use host::HostView;
pub use record::check_recordable;
pub use report::BenchReport;
pub use row::{Goal, Row};
pub use rows::{names_meant, row_names};

//! Recorded markets through full order-by-order books, with the proof that the books are right.
//!
//! [`replay()`] reads one file - ITCH 5.0, DBN, a LOBSTER message file, or a capture of packets, plain or compressed -
//! builds the book of every symbol, order by order, and gives a [`FileReport`]: counts by type, what decoding
//! and the books cost per message, contradictions with where they are, statistics and books of symbols. Memory
//! is constant beyond the books. A plain twin beside ([`ReplayOptions::check_every`]), and for LOBSTER the
//! order book file, prove the books; [`Exports`] writes best prices, trades and depth as CSV or Parquet.
//!
//! ```
//! use tickpath_agent::StopSignal;
//! use tickpath_replay::{ReplayOptions, replay};
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("AMZN_message_1.csv");
//! std::fs::write(&file, "34200.5,1,11,100,2238100,1\n34201.0,4,11,40,2238100,1\n")?;
//! let options = ReplayOptions { check_every: Some(1), ..ReplayOptions::default() };
//! let report = replay(&file, &options, &StopSignal::new(), &mut |_| {})?;
//! let report = &report.files[0];
//! assert_eq!(report.messages, 2);
//! assert_eq!(report.tops[0].sides[0][0].qty.0, 60);
//! assert!(report.is_trustworthy());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod books;
mod captures;
mod check;
mod conclude;
mod cost;
mod error;
mod exports;
mod file_format;
mod fold;
mod integrity;
mod json;
mod moment;
mod options;
mod order_book_rows;
mod pace;
mod protocol;
mod protocols;
mod registry;
mod report;
mod run;
mod seen;
mod session;
mod statistics;
mod tape;
mod text;
mod updates;

pub use tickpath_capture::table::{ConvertError, ConvertProgress, Converted, convert};
pub use tickpath_config::{Date, ParseDateError, ParseZoneError, Zone};

pub use captures::{CaptureReport, ChannelReport, UnknownPackets};
pub use check::TwinReport;
pub use cost::Cost;
pub use error::ReplayError;
pub use exports::ExportedRows;
pub use fold::Fold;
pub use integrity::{Crossed, Finding, Integrity};
pub use moment::{Calendar, Moment, ParseMomentError, RecordedTime};
pub use options::{
    CHECK_EVERY_DEFAULT, DEPTH_DEFAULT, DEPTH_MAX, Exports, ORDERS_MAX_DEFAULT, Protocol, ReplayOptions,
    SYMBOLS_SHOWN, Speed,
};
pub use order_book_rows::RowsReport;
pub use registry::ParseProtocolError;
pub use report::{CheckReport, Ended, FileReport, Reliability, ReplayReport, SymbolBook, TypeCount};
pub use run::{replay, replay_all};
pub use session::Progress;
pub use statistics::SymbolStatistics;

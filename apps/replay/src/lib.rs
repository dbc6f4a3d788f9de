//! Replays recorded files into the full order-by-order books of [`tickpath_recording`], and verifies the
//! books.
//!
//! [`replay()`] reads one file: ITCH 5.0, DBN, a LOBSTER message file, or a capture of packets, plain or
//! compressed. It builds the book of every symbol, order by order, and returns a [`FileReport`]: counts by
//! type, the cost of decoding and of the books per message, contradictions with their positions, statistics
//! and books of symbols. Memory is constant except for the books. A reference model
//! ([`ReplayOptions::check_every`]), and for LOBSTER the order book file, verify the books. [`Exports`]
//! writes best prices, trades and depth as CSV or Parquet.
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

mod cost;
mod error;
mod exports;
mod file_format;
mod files;
mod json;
mod options;
mod order_book_rows;
mod pace;
mod registry;
mod report;
mod run;
mod session;
mod text;

pub use tickpath_capture::table::{ConvertError, ConvertProgress, Converted, convert};
pub use tickpath_config::{Date, ParseDateError, ParseZoneError, Zone};
pub use tickpath_recording::{
    CaptureReport, ChannelReport, Crossed, EndReason, Finding, Integrity, ModelReport, Moment,
    ORDERS_MAX_DEFAULT, ParseMomentError, ParseProtocolError, Protocol, RecordedTime, RecordingReport,
    Reliability, SYMBOLS_SHOWN, SymbolBook, SymbolStatistics, TypeCount, UnknownPackets,
};

pub use cost::Cost;
pub use error::ReplayError;
pub use exports::ExportedRows;
pub use options::{CHECK_EVERY_DEFAULT, DEPTH_DEFAULT, DEPTH_MAX, Exports, ReplayOptions, Speed};
pub use order_book_rows::RowsReport;
pub use report::{FileReport, ReplayReport};
pub use run::{replay, replay_all, replay_to};
pub use session::Progress;

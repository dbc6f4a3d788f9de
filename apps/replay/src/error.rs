//! Reasons for which a file cannot be replayed.

use tickpath_capture::CaptureError;
use tickpath_capture::table::TableError;

/// The result of a step of a replay.
pub(crate) type Result<T = ()> = std::result::Result<T, ReplayError>;

/// Why a file could not be replayed at all. What is wrong inside a recording is part of its report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It could not be opened or is no recording: see the source.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An export could not be written: see the source.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A time has a date or another zone than the exchange's, and the recording counts from midnight of a day that is not
    /// known: give the exchange's times, or the day.
    #[error(
        "the recording has times of day without dates: give --from and --to as HH:MM:SS of the exchange, or its --date"
    )]
    NoDates,
    /// The feed publishes levels or quotes, and `--orders` wants changes of orders: leave it out.
    #[error(
        "{feed} has no orders, only what rests at prices: leave out --orders, and use --depth-out or --bbo"
    )]
    NoOrders {
        /// The feed.
        feed: &'static str,
    },
    /// The schema has nothing that a table could be made of: leave its option out.
    #[error("DBN of schema {schema} has nothing for {option}: leave it out")]
    NothingFor {
        /// The schema.
        schema: &'static str,
        /// The option of the table.
        option: &'static str,
    },
    /// No packet of the capture is of a known protocol, or of the one of `--protocol`.
    #[error(
        "{file} has no market data of a known protocol ({found}): known are {known}; convert CME MDP 3.0, Cboe PITCH and others to DBN of schema mbo or mbp-10"
    )]
    NothingKnown {
        /// The capture.
        file: String,
        /// Its content, as text.
        found: String,
        /// The protocols that are known.
        known: String,
    },
    /// The end of the window is not after its start, so no message can be in it: exchange them.
    #[error("--to is not after --from: no message can be between them")]
    EmptyWindow,
    /// An order book file goes with a LOBSTER message file only.
    #[error("{file} is no LOBSTER message file: --orderbook is of no use for it")]
    NotLobster {
        /// The recording.
        file: String,
    },
}

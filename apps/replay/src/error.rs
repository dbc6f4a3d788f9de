//! Reasons for which a file cannot be replayed.

use tickpath_capture::CaptureError;
use tickpath_capture::table::TableError;

/// The result of a step of a replay.
pub(crate) type Result<T = ()> = std::result::Result<T, ReplayError>;

/// The reason why a file could not be replayed at all. Errors inside a recording are part of its report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file could not be opened or is not a recording; the source error gives the reason.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An export could not be written; the source error gives the reason.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A recording cannot be replayed with the given options; the source error gives the reason.
    #[error(transparent)]
    Recording(#[from] tickpath_recording::Error),
    /// No packet of the capture belongs to a known protocol, or to the one of `--protocol`.
    #[error(
        "{file} has no market data of a known protocol ({found}): known are {known}; convert CME MDP 3.0, Cboe PITCH and others to DBN of schema mbo or mbp-10"
    )]
    NothingKnown {
        /// Path of the capture.
        file: String,
        /// Description of the capture's contents.
        found: String,
        /// The known protocols.
        known: String,
    },
    /// `--orderbook` names an order book file, but the recording is not a LOBSTER message file.
    #[error("{file} is not a LOBSTER message file: remove --orderbook")]
    NotLobster {
        /// Path of the recording.
        file: String,
    },
}

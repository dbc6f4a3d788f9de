//! Replays one file.

use std::path::Path;
use std::time::Duration;

use tickpath_agent::StopSignal;
use tickpath_capture::table::TableError;
use tickpath_capture::{CaptureError, Format};

use crate::exports::Exporter;
use crate::options::ReplayOptions;
use crate::report::FileReport;
use crate::session::Session;
use crate::{events, itch};

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file that were read, as they are stored.
    pub bytes: u64,
    /// Size of the file in bytes; 0 when it is not known.
    pub bytes_total: u64,
    /// Messages so far.
    pub messages: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

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
    /// A time has a date, and the recording counts from midnight.
    #[error("the recording has times of day without dates: give --from and --to as HH:MM:SS")]
    NoDates,
    /// An order book file goes with a LOBSTER message file only.
    #[error("{file} is no LOBSTER message file: --orderbook is of no use for it")]
    NotLobster {
        /// The recording.
        file: String,
    },
}

/// Replays one file and reports what is in it and whether it can be trusted.
///
/// `observer` is told the progress a few times a second. `stop` ends the replay early, with a report of what
/// was read.
///
/// # Errors
/// [`ReplayError`] when there is nothing to be replayed, or an export fails.
pub fn replay(
    path: &Path,
    options: &ReplayOptions,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
) -> Result<FileReport, ReplayError> {
    let format = Format::detect(path)?;
    if options.order_book.is_some() && format != Format::Lobster {
        return Err(ReplayError::NotLobster { file: path.display().to_string() });
    }
    let exporter = Exporter::create(&options.exports, options.depth)?;
    let session = Session::new(options, exporter, stop, observer);
    match format {
        Format::Itch => itch::replay(path, session),
        _ => events::replay(path, session),
    }
}

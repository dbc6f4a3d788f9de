//! Replays one file, or several.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tickpath_agent::StopSignal;
use tickpath_capture::table::TableError;
use tickpath_capture::{CaptureError, DbnFile, Format, Recording, RecordingFile};
use tickpath_config::Date;

use crate::exports::{ExportedRows, Exporter};
use crate::options::{Exports, ReplayOptions};
use crate::report::{FileReport, ReplayReport};
use crate::session::Session;
use crate::{captures, events, itch, levels};

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the file that were read, as they are stored.
    pub bytes: u64,
    /// Size of the file in bytes; 0 when it is not known.
    pub bytes_total: u64,
    /// Messages so far.
    pub messages: u64,
    /// Time since the start of the file.
    pub elapsed: Duration,
    /// Which of the files, counted from 0.
    pub file: usize,
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
    /// A time has a date or another zone than the exchange's, and the recording counts from midnight of a day that is not
    /// known: give the exchange's times, or the day.
    #[error(
        "the recording has times of day without dates: give --from and --to as HH:MM:SS of the exchange, or its --date"
    )]
    NoDates,
    /// The feed publishes levels or quotes, and changes of orders were asked for: leave `--orders` out.
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
    /// No packet of the capture is of a known protocol, or what was asked for: see what there is.
    #[error(
        "{file} has no market data of a known protocol ({found}): known are {}; convert CME MDP 3.0, Cboe PITCH and others to DBN of schema mbo or mbp-10",
        known()
    )]
    NothingKnown {
        /// The capture.
        file: String,
        /// What is in it.
        found: String,
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

fn known() -> &'static str {
    "ITCH 5.0 in MoldUDP64 or SoupBinTCP; TOPS, DEEP and DEEP+ of IEX; the Integrated Feeds of NYSE's markets, XDP"
}

/// Replays one file and reports what is in it and whether it can be trusted: one report, and of a capture of packets
/// one for each recording in it.
///
/// `observer` is told the progress a few times a second. `stop` ends the replay early, with a report of what
/// was read; no export is then left behind, as a table that has its name is whole.
///
/// # Errors
/// [`ReplayError`] when there is nothing to be replayed, or an export fails.
pub fn replay(
    path: &Path,
    options: &ReplayOptions,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
) -> Result<ReplayReport, ReplayError> {
    let file = match RecordingFile::open_until(path, stop) {
        // It was waited for.
        Err(_) if stop.is_stopped() => {
            return Ok(ReplayReport { left_out: vec![path.to_owned()], ..ReplayReport::default() });
        }
        opened => opened?,
    };
    let contents = Contents::of(path, file.format(), options);
    let mut exporter = Exporter::create(&options.exports, options.depth, false, contents)?;
    let files = replay_into(path, file, options, &mut exporter, stop, observer)?;
    let mut report = ReplayReport { files, ..ReplayReport::default() };
    finish_exports(exporter, &mut report)?;
    Ok(report)
}

/// Completes the tables, unless the replay was stopped or nothing was replayed: then nothing is left of them.
fn finish_exports(exporter: Exporter, report: &mut ReplayReport) -> Result<(), ReplayError> {
    if report.is_stopped() || report.files.is_empty() {
        report.files.iter_mut().for_each(|file| file.exported = ExportedRows::default());
        return Ok(());
    }
    Ok(exporter.finish()?)
}

/// Replays several files, one after the other, and reports each; one that cannot be replayed is among the
/// failures. Each table of the exports has the rows of all files in this order, and their names in a first
/// column `file`; where one of them is a capture, the numbers of its recordings stand in a column `recording`. Numbers of
/// messages count from 1 in each file.
///
/// # Errors
/// [`ReplayError`] when an export fails, or the window is empty.
pub fn replay_all(
    paths: &[PathBuf],
    options: &ReplayOptions,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
) -> Result<ReplayReport, ReplayError> {
    let mut exporter =
        Exporter::create(&options.exports, options.depth, true, Contents::of_all(paths, options))?;
    let mut report = ReplayReport::default();
    for (index, path) in paths.iter().enumerate() {
        if stop.is_stopped() {
            report.left_out.push(path.clone());
            continue;
        }
        let mut observer = |progress: &Progress| observer(&Progress { file: index, ..*progress });
        let result = RecordingFile::open_until(path, stop)
            .map_err(ReplayError::from)
            .and_then(|file| replay_into(path, file, options, &mut exporter, stop, &mut observer));
        match result {
            Ok(found) => report.files.extend(found),
            Err(error @ (ReplayError::Table(_) | ReplayError::EmptyWindow)) => return Err(error),
            Err(_) if stop.is_stopped() => report.left_out.push(path.clone()),
            Err(error) => report.failures.push((path.clone(), error.to_string())),
        }
    }
    finish_exports(exporter, &mut report)?;
    Ok(report)
}

/// The kinds of the files that a table is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// One of them is a capture, which may have several recordings.
    pub(crate) has_captures: bool,
    /// The day of every file is known, so that all times are UTC.
    pub(crate) is_dated: bool,
}

impl Contents {
    fn of(path: &Path, format: Format, options: &ReplayOptions) -> Contents {
        let has_dates = matches!(format, Format::Dbn | Format::Pcap | Format::PcapNg);
        let is_dated = has_dates || session_date(path, format, options).is_some();
        Contents { has_captures: format.is_capture(), is_dated }
    }

    /// Of several files, where there are tables to tell; what is no regular file cannot be looked into.
    fn of_all(paths: &[PathBuf], options: &ReplayOptions) -> Contents {
        let mut all = Contents { has_captures: false, is_dated: true };
        if options.exports == Exports::default() {
            return all;
        }
        for path in paths {
            let format = if path.is_file() { Format::detect(path).ok() } else { None };
            let one = format.map(|format| Contents::of(path, format, options));
            all.has_captures |= one.is_some_and(|one| one.has_captures);
            all.is_dated &= one.is_none_or(|one| one.is_dated) && (path.is_file() || options.date.is_some());
        }
        all
    }
}

/// The day of a session whose messages have none: `--date`, or the one in the name of a LOBSTER file.
pub(crate) fn session_date(path: &Path, format: Format, options: &ReplayOptions) -> Option<Date> {
    let in_name = || path.file_name()?.to_str()?.split('_').nth(1)?.parse().ok();
    options.date.or_else(|| if format == Format::Lobster { in_name() } else { None })
}

/// Replays one file into tables that may have rows of others.
fn replay_into(
    path: &Path,
    file: RecordingFile,
    options: &ReplayOptions,
    exporter: &mut Exporter,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
) -> Result<Vec<FileReport>, ReplayError> {
    let format = file.format();
    if options.order_book.is_some() && format != Format::Lobster {
        return Err(ReplayError::NotLobster { file: path.display().to_string() });
    }
    exporter.start_file(path);
    let session = Session::new(options, exporter, stop, observer);
    match format {
        Format::Itch => Ok(vec![itch::replay(path, file, session)?]),
        Format::Dbn => Ok(vec![match DbnFile::of(file)? {
            DbnFile::Orders(recording) => events::replay(path, recording, session)?,
            DbnFile::Levels(file) => levels::replay(path, *file, session)?,
        }]),
        Format::Lobster => Ok(vec![events::replay(path, Recording::of(file)?, session)?]),
        Format::Pcap | Format::PcapNg => captures::replay(path, file, session),
    }
}

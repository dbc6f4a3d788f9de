//! Replays one file, or several.

use std::path::{Path, PathBuf};

use tickpath_agent::StopSignal;
use tickpath_capture::{Format, RecordingFile};
use tickpath_recording::{Error, Listener, Pass};

use crate::cost::Output;
use crate::error::ReplayError;
use crate::exports::{Contents, ExportedRows, Exporter};
use crate::files;
use crate::options::{Exports, ReplayOptions};
use crate::registry::file_format;
use crate::report::{FileReport, ReplayReport};
use crate::session::{Progress, Session};

/// Replays one file and reports its contents and whether they can be trusted. A capture of packets has a
/// report for each recording in it.
///
/// `observer` receives the progress a few times a second. `stop` ends the replay early, with a report of the
/// part that was read. All exports are then removed, so that every table under its final name is complete.
///
/// # Errors
/// [`ReplayError`] when there is nothing to replay, or an export fails.
pub fn replay(
    path: &Path,
    options: &ReplayOptions,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
) -> Result<ReplayReport, ReplayError> {
    replay_to(path, options, stop, observer, &mut ())
}

/// Does the same as [`replay()`], and passes all messages, prices and books to a listener.
///
/// # Errors
/// As [`replay()`].
pub fn replay_to(
    path: &Path,
    options: &ReplayOptions,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
    listener: &mut impl Listener,
) -> Result<ReplayReport, ReplayError> {
    let file = match RecordingFile::open_until(path, stop) {
        // A stop request ended the wait for the writer of a pipe.
        Err(_) if stop.is_stopped() => {
            return Ok(ReplayReport { left_out: vec![path.to_owned()], ..ReplayReport::default() });
        }
        opened => opened?,
    };
    let contents = Contents::of(path, file.format(), options);
    let mut exporter = Exporter::create(&options.exports, options.depth, false, contents)?;
    let files = replay_into(path, file, options, &mut exporter, stop, observer, listener)?;
    let mut report = ReplayReport { files, ..ReplayReport::default() };
    finish_exports(exporter, &mut report)?;
    Ok(report)
}

/// Completes the tables. If the replay was stopped or no file was replayed, removes them instead.
fn finish_exports(exporter: Exporter, report: &mut ReplayReport) -> Result<(), ReplayError> {
    if report.is_stopped() || report.files.is_empty() {
        report.files.iter_mut().for_each(|file| file.exported = ExportedRows::default());
        return Ok(());
    }
    Ok(exporter.finish()?)
}

/// Replays several files, one after the other, and reports on each; files that cannot be replayed are listed
/// as failures. Each exported table has the rows of all files in the order of `paths`, with the file's name
/// in the first column, `file`. If a file is a capture, a column `recording` has the recording's number in
/// it. Message numbers count from 1 in each file.
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
            .and_then(|file| replay_into(path, file, options, &mut exporter, stop, &mut observer, &mut ()));
        match result {
            Ok(found) => report.files.extend(found),
            Err(error @ (ReplayError::Table(_) | ReplayError::Recording(Error::EmptyWindow))) => {
                return Err(error);
            }
            Err(_) if stop.is_stopped() => report.left_out.push(path.clone()),
            Err(error) => report.failures.push((path.clone(), error.to_string())),
        }
    }
    finish_exports(exporter, &mut report)?;
    Ok(report)
}

impl Contents {
    fn of(path: &Path, format: Format, options: &ReplayOptions) -> Contents {
        let line = file_format(format);
        let is_dated = line.has_dates || options.date.is_some() || (line.date_in_name)(path).is_some();
        Contents { has_captures: format.is_capture(), is_dated }
    }

    /// Returns the properties of all files, if tables are requested. A pipe counts as no capture, and as
    /// undated unless `date` is set, because it cannot be examined in advance.
    fn of_all(paths: &[PathBuf], options: &ReplayOptions) -> Contents {
        let mut all = Contents { has_captures: false, is_dated: true };
        if options.exports == Exports::default() {
            return all;
        }
        for path in paths {
            let file = if path.is_file() { RecordingFile::open(path).ok() } else { None };
            let one = file.map(|file| Contents::of(path, file.format(), options));
            all.has_captures |= one.is_some_and(|one| one.has_captures);
            all.is_dated &= one.is_none_or(|one| one.is_dated) && (path.is_file() || options.date.is_some());
        }
        all
    }
}

/// Replays one file into tables that may have rows of other files.
fn replay_into(
    path: &Path,
    file: RecordingFile,
    options: &ReplayOptions,
    exporter: &mut Exporter,
    stop: &StopSignal,
    observer: &mut dyn FnMut(&Progress),
    listener: &mut impl Listener,
) -> Result<Vec<FileReport>, ReplayError> {
    let format = file_format(file.format());
    if options.order_book.is_some() && !format.has_order_book_files {
        return Err(ReplayError::NotLobster { file: path.display().to_string() });
    }
    exporter.start_file(path, file.format().is_capture());
    let pass = Pass::new(options.selection(), Output::new(exporter, listener));
    let mut session = Session::new(path, file.format(), options, stop, observer);
    let reports = files::replay(file, &mut session, pass)?;
    exporter.check()?;
    Ok(reports)
}

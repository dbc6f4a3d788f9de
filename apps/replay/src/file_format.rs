//! A format of recorded files, as listed in the registry.

use std::path::Path;

use tickpath_capture::Format;
use tickpath_config::Date;

use crate::error::Result;
use crate::report::FileReport;

/// A report for each recording in one file.
pub(crate) type Reports = Result<Vec<FileReport>>;

/// An entry of the [registry](crate::registry).
pub(crate) struct FileFormat {
    pub(crate) format: Format,
    /// Name of the format in JSON reports.
    pub(crate) json_name: &'static str,
    /// Returns the name of the format for a file's report.
    pub(crate) title: fn(&FileReport) -> String,
    /// True if the times in files of this format have dates.
    pub(crate) has_dates: bool,
    /// Extracts the day of the session from a file's name.
    pub(crate) date_in_name: fn(&Path) -> Option<Date>,
    /// True if a file may come with an order book file, as LOBSTER message files do.
    pub(crate) has_order_book_files: bool,
}

//! LOBSTER message files, with the order book file beside them.

use std::io::Read;
use std::path::Path;

use tickpath_capture::{Format, LobsterBookReader, Recording, RecordingFile, order_book_file_for};
use tickpath_config::Date;
use tickpath_recording::{Depth, Listener, Lobster, Pass};

use super::events;
use crate::cost::Output;
use crate::error::Result;
use crate::file_format::{FileFormat, Reports};
use crate::order_book_rows::RowCheck;
use crate::session::Session;

/// Registry entry of LOBSTER files.
pub(crate) static LOBSTER: FileFormat = FileFormat {
    format: Format::Lobster,
    json_name: "lobster",
    title: |report| match report.depth {
        Depth::Partial { levels: Some(levels) } => format!("LOBSTER, {levels} level(s)"),
        _ => "LOBSTER".to_owned(),
    },
    has_dates: false,
    date_in_name,
    has_order_book_files: true,
};

/// Returns the date in a file name: 2012-06-21 for `AMZN_2012-06-21_34200000_57600000_message_10.csv`.
fn date_in_name(path: &Path) -> Option<Date> {
    path.file_name()?.to_str()?.split('_').nth(1)?.parse().ok()
}

pub(super) fn replay(
    file: RecordingFile,
    session: &mut Session<'_>,
    mut pass: Pass<Output<'_, impl Listener>>,
) -> Reports {
    pass.selection.date = pass.selection.date.or_else(|| date_in_name(session.path));
    let rows = row_check(session)?;
    Ok(vec![events::replay::<Lobster>(Recording::of(file)?, rows, session, pass)?])
}

/// Returns the order book file to compare with a message file, if a check is requested and the file exists.
fn row_check(session: &Session<'_>) -> Result<Option<RowCheck<Box<dyn Read + Send>>>> {
    let options = session.options;
    if options.check_every.is_none() && options.order_book.is_none() {
        return Ok(None);
    }
    let Some(file) = options.order_book.clone().or_else(|| order_book_file_for(session.path)) else {
        return Ok(None);
    };
    let name = file.display().to_string();
    Ok(Some(RowCheck::new(LobsterBookReader::open(&file, session.stop)?, name)))
}

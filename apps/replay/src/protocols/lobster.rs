//! LOBSTER message files, with the order book file beside them.

use std::io::Read;
use std::path::Path;

use tickpath_capture::{
    Depth, EventKind, Format, LobsterBookReader, Recording, RecordingFile, order_book_beside,
};
use tickpath_config::{Date, Zone};

use super::events::{self, EventFormat};
use crate::error::Result;
use crate::file_format::FileFormat;
use crate::order_book_rows::RowCheck;
use crate::report::FileReport;
use crate::session::Session;

/// The line of the registry.
pub(crate) static FILE: FileFormat = FileFormat {
    format: Format::Lobster,
    json_name: "lobster",
    title: |report| match report.depth {
        Depth::Partial { levels: Some(levels) } => format!("LOBSTER, {levels} level(s)"),
        _ => "LOBSTER".to_owned(),
    },
    has_dates: false,
    date_in_name,
    has_order_book_files: true,
    replay,
};

/// Messages of LOBSTER.
pub(crate) struct Lobster;

impl EventFormat for Lobster {
    const ZONE: Zone = Zone::EASTERN;
    const IS_ORDERED_BY_TIME: bool = true;

    fn code(kind: &EventKind) -> u8 {
        match kind {
            EventKind::Add { .. } => b'1',
            EventKind::Reduce { .. } => b'2',
            EventKind::Delete { .. } => b'3',
            EventKind::Fill { .. } => b'4',
            EventKind::Trade { is_hidden: true, .. } => b'5',
            EventKind::Trade { .. } => b'6',
            EventKind::Status(_) => b'7',
            _ => b'?',
        }
    }

    fn name(code: u8) -> &'static str {
        match code {
            b'1' => "New limit order",
            b'2' => "Cancellation in part",
            b'3' => "Deletion",
            b'4' => "Execution",
            b'5' => "Execution of a hidden order",
            b'6' => "Cross trade",
            b'7' => "Trading halt",
            _ => "Other",
        }
    }
}

/// `AMZN_2012-06-21_34200000_57600000_message_10.csv` is of 2012-06-21.
fn date_in_name(path: &Path) -> Option<Date> {
    path.file_name()?.to_str()?.split('_').nth(1)?.parse().ok()
}

fn replay(path: &Path, file: RecordingFile, session: Session<'_>) -> Result<Vec<FileReport>> {
    let date = session.options.date.or_else(|| date_in_name(path));
    let rows = row_check(path, &session)?;
    Ok(vec![events::replay::<Lobster>(path, Recording::of(file)?, date, rows, session)?])
}

/// The order book file to hold a message file against, when a check is wanted and there is one.
fn row_check(path: &Path, session: &Session<'_>) -> Result<Option<RowCheck<Box<dyn Read + Send>>>> {
    let options = session.options;
    if options.check_every.is_none() && options.order_book.is_none() {
        return Ok(None);
    }
    let Some(file) = options.order_book.clone().or_else(|| order_book_beside(path)) else { return Ok(None) };
    let name = file.display().to_string();
    Ok(Some(RowCheck::new(LobsterBookReader::open(&file, session.stop())?, name)))
}

#[cfg(test)]
mod tests {
    use tickpath_capture::{RecordedEvent, Status};
    use tickpath_types::{SystemEventCode, TradingState};

    use super::events::Events;
    use super::*;
    use crate::moment::Calendar;
    use crate::protocol::{ORDER_BY_ORDER, RecordedProtocol, Source};

    #[test]
    fn events_publish_the_state_of_session_and_instrument() {
        let info = ORDER_BY_ORDER;
        let (zone, midnight) = (Zone::EASTERN, Zone::EASTERN);
        let calendar = Calendar { base: info.time_base, zone, midnight, date: None };
        let source = Source { format: Format::Lobster, info, calendar, symbols: &[], is_snapshot: false };
        let seen = |kind| {
            let event = RecordedEvent { ts_ns: 1, kind, ..RecordedEvent::NOTHING };
            let seen = Events::<Lobster>::see(&event, 1, source);
            (seen.state, seen.stage)
        };
        let halted = EventKind::Status(Status::Trading(TradingState::Halted));
        assert_eq!(seen(halted), (Some(TradingState::Halted), None));
        let open = EventKind::Status(Status::System(SystemEventCode::StartOfMarketHours));
        assert_eq!(seen(open), (None, Some(SystemEventCode::StartOfMarketHours)));
        assert_eq!(seen(EventKind::Clear), (None, None));
    }
}

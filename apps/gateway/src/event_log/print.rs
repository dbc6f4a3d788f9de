//! Text and JSON output of a log, one record per line.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tickpath_config::Date;
use tickpath_gateway_protocol::{Event, Request};
use tickpath_types::Nanos;
use zerocopy::FromBytes;

use super::format::{FileHeader, Record, RecordKind};

/// Maximum number of bytes of a message in a line, unless whole messages are requested.
const SHOWN_MAX: usize = 400;

/// Filter of the records to show.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Kinds of record; all when empty.
    pub kinds: Vec<RecordKind>,
    /// Client number.
    pub client: Option<u32>,
    /// Connection to the venue.
    pub stream: Option<u8>,
    /// Text that a record must contain.
    pub contains: Option<String>,
    /// Sequence number of the first record.
    pub from: u64,
    /// Maximum number of records.
    pub limit: Option<u64>,
    /// Shows whole messages, whatever their length.
    pub is_whole: bool,
}

/// Counts of a log's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Records read.
    pub read: u64,
    /// Records shown.
    pub shown: u64,
}

impl LogFilter {
    /// Whether the filter selects a record whose text is `text`.
    fn has(&self, record: &Record<'_>, text: &str) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&record.kind))
            && record.sequence >= self.from
            && self.client.is_none_or(|client| client == record.origin.client)
            && self.stream.is_none_or(|stream| stream == record.origin.stream)
            && self.contains.as_deref().is_none_or(|part| text.contains(part))
    }

    /// Formats a record as a line, if the filter selects it.
    #[must_use]
    pub fn line(&self, header: &FileHeader, record: &Record<'_>, is_json: bool) -> Option<String> {
        let text = text_of(record);
        if !self.has(record, &text) {
            return None;
        }
        if is_json {
            return Some(json_of(header, record, &text).to_string());
        }
        let mut line =
            format!("{} {:>9} {:<9}", utc(header.utc_of(record.time)), record.sequence, record.kind.name());
        let origin = record.origin;
        for (name, value) in [
            ("stream", u32::from(origin.stream)),
            ("account", origin.account.into()),
            ("client", origin.client),
        ] {
            if value != 0 {
                // Writing to a String cannot fail.
                let _ = write!(line, " {name}={value}");
            }
        }
        let shown = if self.is_whole { &text } else { cut(&text) };
        let more = if shown.len() < text.len() { " ..." } else { "" };
        let _ = write!(line, " {}{more}", shown.trim_end().replace('\n', "\n    "));
        Some(line)
    }
}

fn json_of(header: &FileHeader, record: &Record<'_>, text: &str) -> Value {
    let origin = record.origin;
    // Whole messages of the venue are JSON themselves.
    let message = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    json!({
        "sequence": record.sequence,
        "kind": record.kind.name(),
        "utc_ns": header.utc_of(record.time).0,
        "origin_ns": record.origin_time.0,
        "stream": origin.stream,
        "account": origin.account,
        "client": origin.client,
        "message": message,
    })
}

fn cut(text: &str) -> &str {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Text of a record: fields of events and requests, otherwise the payload as text, or its length if not text.
fn text_of(record: &Record<'_>) -> String {
    let payload = record.payload;
    match record.kind {
        RecordKind::Event | RecordKind::Broadcast => {
            Event::read_from_bytes(payload).map_or_else(|_| bytes(payload), |event| event.to_string())
        }
        RecordKind::Request => {
            Request::read_from_bytes(payload).map_or_else(|_| bytes(payload), |request| request.to_string())
        }
        // Terminals do not show the separator of FIX fields.
        _ if payload.starts_with(b"8=FIX") => {
            std::str::from_utf8(payload).map_or_else(|_| bytes(payload), |text| text.replace('\u{1}', "|"))
        }
        _ => std::str::from_utf8(payload).map_or_else(|_| bytes(payload), str::to_owned),
    }
}

fn bytes(payload: &[u8]) -> String {
    format!("({} bytes)", payload.len())
}

/// Formats a time since 1970 as `2026-11-22T15:46:01.123456789Z`.
fn utc(time: Nanos) -> String {
    let (seconds, nanos) = (time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z", Date::of_day(day))
}

#[cfg(test)]
mod tests {
    use tickpath_gateway_protocol::{CreateOrder, TopOfBook};
    use zerocopy::IntoBytes;

    use super::super::format::Origin;
    use super::*;

    fn header() -> FileHeader {
        let (part, session, sequence) = (0, [0; 16], 0);
        let start = Nanos(1_795_362_361_000_000_000);
        FileHeader { part, session, start, clock: Nanos(10), sequence, name: "g".to_owned() }
    }

    fn record(kind: RecordKind, payload: &[u8]) -> Record<'_> {
        let origin = Origin { stream: 1, account: 0, client: 4 };
        Record { kind, origin, sequence: 7, time: Nanos(11), origin_time: Nanos(3), payload }
    }

    fn line(filter: &LogFilter, record: &Record<'_>) -> Option<String> {
        filter.line(&header(), record, false)
    }

    #[test]
    fn a_line_says_when_what_and_whose() {
        let all = LogFilter::default();
        let found = line(&all, &record(RecordKind::VenueIn, b"{\"id\":1}")).unwrap();
        assert_eq!(found, "2026-11-22T15:46:01.000000001Z         7 venue-in  stream=1 client=4 {\"id\":1}");
        let event = Event::of(&TopOfBook { bid_price: "1.5".parse().unwrap(), ..TopOfBook::default() });
        let found = line(&all, &record(RecordKind::Broadcast, event.as_bytes())).unwrap();
        assert!(
            found.contains("broadcast") && found.contains("top_of_book") && found.contains("1.5"),
            "{found}"
        );
        let request = Request::of(&CreateOrder { price: "2.25".parse().unwrap(), ..CreateOrder::default() });
        let found = line(&all, &record(RecordKind::Request, request.as_bytes())).unwrap();
        assert!(found.contains("create_order") && found.contains("2.25"), "{found}");
        for kind in RecordKind::ALL {
            let found = line(&all, &record(kind, &[0xff; 3])).unwrap();
            assert!(found.ends_with("(3 bytes)"), "{found}");
        }
        let fix = line(&all, &record(RecordKind::VenueIn, b"8=FIX.4.4\x019=5\x0135=0\x01")).unwrap();
        assert!(fix.ends_with(" 8=FIX.4.4|9=5|35=0|"), "{fix}");
        let long = format!("{{\"x\":\"{}\"}}", "é".repeat(1_000));
        let found = line(&all, &record(RecordKind::VenueIn, long.as_bytes())).unwrap();
        assert!(found.ends_with("é ..."), "{found}");
        let whole = LogFilter { is_whole: true, ..all };
        assert!(line(&whole, &record(RecordKind::VenueIn, long.as_bytes())).unwrap().ends_with("\"}"));
    }

    #[test]
    fn a_filter_leaves_out_what_is_not_asked_for() {
        let shown = |filter: LogFilter| line(&filter, &record(RecordKind::VenueIn, b"{\"id\":1}")).is_some();
        let all = LogFilter::default();
        assert!(shown(LogFilter { kinds: vec![RecordKind::VenueIn], ..all.clone() }));
        assert!(!shown(LogFilter { kinds: vec![RecordKind::VenueOut], ..all.clone() }));
        assert!(shown(LogFilter { client: Some(4), stream: Some(1), ..all.clone() }));
        assert!(!shown(LogFilter { client: Some(3), ..all.clone() }));
        assert!(!shown(LogFilter { stream: Some(3), ..all.clone() }));
        assert!(shown(LogFilter { contains: Some("\"id\":1".to_owned()), from: 7, ..all.clone() }));
        assert!(!shown(LogFilter { contains: Some("\"id\":2".to_owned()), ..all.clone() }));
        assert!(!shown(LogFilter { from: 8, ..all }));
    }

    #[test]
    fn json_holds_the_venue_s_json() {
        let record = record(RecordKind::VenueIn, b"{\"id\":1}");
        let text = LogFilter::default().line(&header(), &record, true).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["message"]["id"], 1);
        assert_eq!((&value["kind"], &value["sequence"]), (&json!("venue-in"), &json!(7)));
        assert_eq!(value["utc_ns"], 1_795_362_361_000_000_001_u64);
    }
}

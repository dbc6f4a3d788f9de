//! The properties of the gateway's log.

use std::path::Path;

use tickpath_gateway::event_log::{LogFilter, LogReader, RecordHeader, Tail};

/// Checks a log of any bytes: reading ends with a reason; the records read encode to the same bytes and can
/// be displayed.
pub fn gateway_log(bytes: &[u8]) {
    let Ok(mut reader) = LogReader::new(bytes, Path::new("log")) else { return };
    let header = reader.header().clone();
    let mut rewritten = header.write().to_vec();
    let filter = LogFilter::default();
    let is_damaged = loop {
        match reader.next() {
            Ok(Some(record)) => {
                let (kind, origin, sequence) = (record.kind, record.origin, record.sequence);
                let (time, origin_time) = (record.time, record.origin_time);
                RecordHeader { kind, origin, sequence, time, origin_time }
                    .write(record.payload, &mut rewritten);
                for is_json in [false, true] {
                    assert!(filter.line(&header, &record, is_json).is_some());
                }
            }
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(bytes.starts_with(&rewritten), "what was read is not what is there");
    match reader.tail() {
        Tail::Unread => assert!(is_damaged, "the end was not reached"),
        Tail::Open => assert_eq!(rewritten.len(), bytes.len()),
        Tail::Torn { offset, bytes: rest } => {
            assert_eq!((offset as usize, (offset + rest) as usize), (rewritten.len(), bytes.len()));
        }
        Tail::Ended | Tail::Continued => {}
    }
}

//! The log of all messages, and its replay.

use std::path::{Path, PathBuf};

use tickpath_gateway::event_log::{LogReader, RecordKind, Tail};
use tickpath_gateway::replay::{ReplayError, replay};
use tickpath_gateway_protocol::{OrderStatus, Side};

use crate::support::{PERPETUAL, TestGateway, TestVenue};

/// All files below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Number of records of a log that contain a text.
pub fn count(file: &Path, text: &[u8]) -> usize {
    let mut reader = LogReader::open(file).unwrap();
    let mut count = 0;
    while let Some(record) = reader.next().unwrap() {
        count += usize::from(record.payload.windows(text.len()).any(|part| part == text));
    }
    count
}

/// Number of records of each kind in a log, and whether some payload contains a text.
fn read(file: &Path, text: &str) -> (Vec<usize>, bool, Tail) {
    let mut reader = LogReader::open(file).unwrap();
    let (mut counts, mut has_text) = (vec![0; 32], false);
    while let Some(record) = reader.next().unwrap() {
        counts[record.kind as usize] += 1;
        has_text |= record.payload.windows(text.len()).any(|part| part == text.as_bytes());
    }
    assert_eq!(reader.missing(), 0);
    (counts, has_text, reader.tail())
}

#[test]
fn a_run_is_logged_and_the_same_inputs_give_the_same_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let logs = folder.path().join("logs");
    let more = format!("[event_log]\nfolder = '{}'\n", logs.display());
    let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (of_maker, symbol) = maker.ready(PERPETUAL);
    let (account, _) = trader.ready(PERPETUAL);
    let resting = maker.create(of_maker, symbol, Side::SELL, "1000", "60010");
    maker.wait_order(resting, OrderStatus::WORKING);
    let taking = trader.create(account, symbol, Side::BUY, "400", "60010");
    trader.wait_order(taking, OrderStatus::COMPLETED);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
    // The remainder of the maker's order is cancelled when it disconnects.
    drop(maker);
    gateway.stop();
    venue.stop();

    let found = files(&logs);
    assert_eq!(found.len(), 1, "{found:?}");
    let (counts, has_token, tail) = read(&found[0], "access_token");
    assert!(!has_token, "tokens are not in a log");
    assert_eq!(tail, Tail::Ended);
    for kind in [
        RecordKind::Config,
        RecordKind::Start,
        RecordKind::Time,
        RecordKind::VenueIn,
        RecordKind::VenueOut,
        RecordKind::Link,
        RecordKind::Request,
        RecordKind::Event,
        RecordKind::Broadcast,
        RecordKind::Client,
    ] {
        assert!(counts[kind as usize] > 0, "no {} in the log", kind.name());
    }
    assert_eq!(counts[RecordKind::Request as usize], 4);

    let replayed = replay(&found).unwrap();
    assert_eq!(replayed.difference, None);
    assert!(!replayed.is_open);
    let outputs = [RecordKind::Event, RecordKind::Broadcast, RecordKind::VenueOut, RecordKind::Follow];
    assert_eq!(replayed.outputs as usize, outputs.iter().map(|kind| counts[*kind as usize]).sum::<usize>());

    // A truncated log replays without a difference up to its end.
    let bytes = std::fs::read(&found[0]).unwrap();
    let cut = folder.path().join("cut");
    for part in [2, 3, 5] {
        std::fs::write(&cut, &bytes[..bytes.len() - bytes.len() / part]).unwrap();
        let replayed = replay(std::slice::from_ref(&cut)).unwrap();
        assert_eq!(replayed.difference, None, "cut by 1/{part}");
        assert!(replayed.is_open && replayed.inputs > 0);
    }
    // Another answer of the venue leads to a difference.
    let from = b"\"order_state\":\"filled\"";
    let place = bytes.windows(from.len()).position(|part| part == from).unwrap();
    let forged = forge(&bytes, place, b"\"order_state\":\"open\"  ");
    std::fs::write(&cut, forged).unwrap();
    assert!(replay(std::slice::from_ref(&cut)).unwrap().difference.is_some());
    let twice = [found[0].clone(), found[0].clone()];
    assert!(matches!(replay(&twice), Err(ReplayError::Files { .. })));
}

/// A log in which one record is changed, with a matching checksum.
fn forge(bytes: &[u8], place: usize, text: &[u8]) -> Vec<u8> {
    use tickpath_gateway::event_log::RecordHeader;
    let mut out = bytes[..tickpath_gateway::event_log::FILE_HEADER_LEN].to_vec();
    let mut reader = LogReader::new(bytes, Path::new("log")).unwrap();
    let mut start = out.len();
    while let Some(record) = reader.next().unwrap() {
        let mut payload = record.payload.to_vec();
        let first = start + tickpath_gateway::event_log::RECORD_HEADER_LEN;
        if (first..first + payload.len()).contains(&place) {
            payload[place - first..place - first + text.len()].copy_from_slice(text);
        }
        let (kind, origin, sequence) = (record.kind, record.origin, record.sequence);
        let (time, origin_time) = (record.time, record.origin_time);
        let len = out.len();
        RecordHeader { kind, origin, sequence, time, origin_time }.write(&payload, &mut out);
        start += out.len() - len;
    }
    out
}

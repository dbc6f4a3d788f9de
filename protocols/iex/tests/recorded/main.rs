//! Tests with real captures: each segment is fully read, each message type is known, and no sequence number
//! is missing.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test
#![allow(clippy::disallowed_methods)] // recorded data is read from files

mod data;

use std::collections::BTreeMap;
use std::path::Path;

use data::{committed, payloads};
use tickpath_iex::{Feed, Message, Segment, SegmentBuilder};
use tickpath_test_support::recorded;
use tickpath_types::Sequence;
use zerocopy::IntoBytes;

/// Counts of the segments, messages and other items in a capture.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    segments: u64,
    heartbeats: u64,
    session_starts: u64,
    types: BTreeMap<char, u64>,
}

/// Reads all segments of a capture, which must be of one feed and have sequence numbers without gaps.
fn read(file: &Path, feed: Feed) -> Content {
    let mut content = Content::default();
    let mut next: Option<(u64, u64)> = None;
    let mut last_send_time = 0;
    for payload in payloads(file) {
        let segment = Segment::parse(&payload).unwrap();
        assert_eq!((segment.feed(), segment.channel()), (Some(feed), 1));
        content.segments += 1;
        content.heartbeats += u64::from(segment.is_heartbeat());
        let place = (segment.sequence().0, segment.stream_offset());
        if segment.is_first() && !segment.is_heartbeat() {
            assert!(segment.send_time().0 > last_send_time, "a session that restarts is newer");
            content.session_starts += 1;
        } else if let Some(next) = next.filter(|_| !segment.is_first()) {
            assert_eq!(place, next, "no gap");
        }
        last_send_time = segment.send_time().0;
        next = Some((segment.next_sequence().0, place.1 + segment.payload().len() as u64));
        let mut builder = resumed(&segment, payload.len());
        for (_, message) in segment.messages() {
            let Ok(parsed) = Message::parse(message) else { panic!("{message:?}") };
            assert!(!matches!(parsed, Message::Unknown(_)), "{parsed:?}");
            assert!(feed.has_message_type(message[0]), "{parsed:?}");
            *content.types.entry(char::from(message[0])).or_default() += 1;
            builder.push(message).unwrap();
        }
        // Encoding the segment's messages gives the same bytes.
        assert_eq!(builder.finish(segment.send_time()), payload);
    }
    content
}

fn resumed(segment: &Segment<'_>, len: usize) -> SegmentBuilder<Vec<u8>> {
    let (id, next) = (segment.header().protocol_id.get(), Sequence(segment.sequence().0));
    let buffer = vec![0; len];
    SegmentBuilder::resuming(buffer, id, segment.channel(), segment.session(), next, segment.stream_offset())
}

fn types(counts: &[(char, u64)]) -> BTreeMap<char, u64> {
    counts.iter().copied().collect()
}

#[test]
fn segments_of_every_message_of_tops_are_read_whole() {
    let cases: &[(&str, &[(char, u64)])] = &[
        ("AuctionInformationMessage", &[('A', 1)]),
        ("OfficialPriceMessage", &[('X', 1)]),
        ("OperationalHaltStatusMessage", &[('O', 1), ('H', 1), ('Q', 1), ('S', 1)]),
        ("QuoteUpdateMessage", &[('Q', 1)]),
        ("SecurityDirectoryMessage", &[('P', 13), ('O', 13), ('H', 12), ('Q', 12), ('D', 2)]),
        ("ShortSalePriceTestStatusMessage", &[('P', 1)]),
        ("SystemEventMessage", &[('S', 1)]),
        ("TradeReportMessage", &[('T', 1)]),
        ("TradingStatusMessage", &[('H', 1)]),
    ];
    for (name, counts) in cases {
        let content = read(&committed(&format!("{name}.pcap")), Feed::Tops16);
        assert_eq!(content.types, types(counts), "{name}");
    }
}

#[test]
fn a_slice_of_deep_is_read_over_a_restart() {
    let content = read(&committed("deep10_20170425_restart.pcap.gz"), Feed::Deep10);
    assert_eq!((content.segments, content.heartbeats, content.session_starts), (400, 115, 1));
    let counts = [('S', 1), ('H', 198), ('O', 198), ('P', 198), ('T', 195), ('5', 37), ('8', 34)];
    assert_eq!(content.types, types(&counts));
}

#[test]
fn the_whole_samples_of_deep_and_tops_have_the_expected_contents() {
    if let Some(file) = recorded("iex/deep10_20170425_part1.pcap.gz") {
        let content = read(&file, Feed::Deep10);
        assert_eq!((content.segments, content.heartbeats, content.session_starts), (60_000, 7_857, 12));
        let counts = [
            ('H', 93_638),
            ('O', 93_638),
            ('P', 93_636),
            ('T', 29_970),
            ('5', 9_597),
            ('8', 9_318),
            ('E', 59),
            ('S', 43),
            ('B', 37),
        ];
        assert_eq!(content.types, types(&counts));
    }
    if let Some(file) = recorded("iex/tops16_20170710_part1.pcap.gz") {
        let content = read(&file, Feed::Tops16);
        assert_eq!((content.segments, content.heartbeats), (8_000, 182));
        let counts = [
            ('Q', 17_789),
            ('H', 7_803),
            ('P', 7_800),
            ('O', 7_800),
            ('T', 4_074),
            ('A', 500),
            ('D', 10),
            ('S', 3),
            ('B', 2),
        ];
        assert_eq!(content.types, types(&counts));
    }
}

/// Encoding the known fields of each message in the committed captures gives the message's bytes.
#[test]
fn real_messages_are_written_back_to_their_bytes() {
    let mut seen = 0;
    for entry in std::fs::read_dir(committed("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        for payload in payloads(&path) {
            for (_, message) in Segment::parse(&payload).unwrap().messages() {
                let written = match Message::parse(message).unwrap() {
                    Message::SystemEvent(m) => m.as_bytes().to_vec(),
                    Message::SecurityDirectory(m) => m.as_bytes().to_vec(),
                    Message::TradingStatus(m) => m.as_bytes().to_vec(),
                    Message::OperationalHaltStatus(m) => m.as_bytes().to_vec(),
                    Message::ShortSalePriceTestStatus(m) => m.as_bytes().to_vec(),
                    Message::QuoteUpdate(m) => m.as_bytes().to_vec(),
                    Message::PriceLevelUpdate(m) => m.as_bytes().to_vec(),
                    Message::TradeReport(m) => m.as_bytes().to_vec(),
                    Message::OfficialPrice(m) => m.as_bytes().to_vec(),
                    Message::AuctionInformation(m) => m.as_bytes().to_vec(),
                    other => panic!("{other:?}"),
                };
                assert_eq!(written, message);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 861 + 63);
}

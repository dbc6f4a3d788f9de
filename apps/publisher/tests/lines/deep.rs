//! Tests of the recovery services of IEX channels: gap fill over UDP and TCP, and SNAP.

use std::io::Write;

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::iex::BookBuilder;
use tickpath_feed::{IgnoreUpdates, MessageBooks};
use tickpath_iex::gap_fill::{Range, Request};
use tickpath_iex::snap::{ErrorCode, Frame, SnapshotRequest, encode, next_frame};
use tickpath_iex::wire::Alpha;
use tickpath_iex::{Feed, Header, Segment, SegmentBuilder};
use tickpath_publisher::PublishOptions;
use tickpath_test_support::{connect, udp_socket, wait_for};
use tickpath_types::{InstrumentId, Nanos, Sequence, Side, Symbol};

use super::recordings::{SESSION, START_NS, append_udp, iex_day, iex_messages, write};
use super::{Publisher, is_closed, read_bytes};

const COUNT: usize = 3_000;

fn request(session: u32, ranges: &[Range]) -> Vec<u8> {
    let mut buffer = [0; Request::LEN_MAX];
    Request::encode(Feed::Deep10.protocol_id(), 1, session, ranges, &mut buffer).unwrap().to_vec()
}

/// Returns a publisher that has sent its whole recording, and the recorded messages.
fn published(
    feed: Feed,
    options: impl FnOnce(PublishOptions) -> PublishOptions,
) -> (Publisher, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let file = iex_day(folder.path(), feed, COUNT);
    let publisher = Publisher::start(options(super::options(&file)));
    // A snapshot that covers the last message shows that all messages were published.
    wait_for("the end of the recording", || {
        let mut snap = connect(publisher.address("snap"));
        ask_snapshot(&mut snap, SESSION, COUNT as u64).ok()
    });
    (publisher, iex_messages(feed, COUNT))
}

fn ask_snapshot(
    stream: &mut std::net::TcpStream,
    session: u32,
    minimum: u64,
) -> Result<(u64, Vec<Vec<u8>>), ErrorCode> {
    let token = Alpha::new("anybody").unwrap();
    let minimum = Sequence(minimum);
    let mut buffer = [0; 100];
    let len = encode(&Frame::Request(SnapshotRequest { token, channel: 1, session, minimum }), &mut buffer)
        .unwrap();
    stream.write_all(&buffer[..len]).unwrap();
    let (mut messages, mut bytes_total, mut bytes_seen) = (Vec::new(), 0, 0);
    loop {
        let prefix = read_bytes(stream, 2);
        let mut frame = prefix.clone();
        frame.extend(read_bytes(stream, usize::from(u16::from_le_bytes(prefix.try_into().unwrap()))));
        bytes_seen += frame.len() as u64;
        match next_frame(&frame).unwrap().unwrap().0 {
            Frame::Error(code) => return Err(code),
            Frame::Start { total_len } => bytes_total = total_len,
            Frame::Data { header, message } => {
                assert_eq!((header.message_count.get(), header.session.get()), (1, SESSION));
                messages.push(message.to_vec());
            }
            Frame::End { sequence } => {
                assert_eq!(bytes_seen, bytes_total);
                return Ok((sequence.0, messages));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn up_to_a_thousand_messages_are_resent_by_udp() {
    let (publisher, messages) = published(Feed::Deep10, |options| options);
    let socket = udp_socket();
    let server = publisher.address("gap_fill");
    let ask = |bytes: &[u8]| _ = socket.send_to(bytes, server).unwrap();
    let mut buffer = [0; 2_000];
    let mut take = |expected: &mut Vec<u64>| {
        let len = socket.recv(&mut buffer).unwrap();
        let segment = Segment::parse(&buffer[..len]).unwrap();
        assert_eq!((segment.session(), segment.feed()), (SESSION, Some(Feed::Deep10)));
        let mut offset = 0;
        for message in &messages[..segment.sequence().0 as usize - 1] {
            offset += 2 + message.len() as u64;
        }
        assert_eq!(segment.stream_offset(), offset);
        for (sequence, message) in segment.messages() {
            assert_eq!(messages[sequence.0 as usize - 1], message);
            expected.retain(|outstanding| *outstanding != sequence.0);
        }
        segment.is_heartbeat()
    };
    // Invalid requests get no answer: another session, more than a thousand messages, arbitrary bytes.
    ask(&request(SESSION + 1, &[Range::new(1, 2)]));
    ask(&request(SESSION, &[Range::new(1, 1_001)]));
    ask(b"what is this");
    let mut outstanding: Vec<u64> = (5..=900).chain(950..=960).collect();
    ask(&request(SESSION, &[Range::new(5, 900), Range::new(950, 960)]));
    while !outstanding.is_empty() {
        assert!(!take(&mut outstanding));
    }
    // A request without ranges is a test: the answer is a heartbeat. The second request includes messages
    // that do not exist yet.
    ask(&request(SESSION, &[]));
    assert!(take(&mut outstanding), "a test is answered like a heartbeat");
    ask(&request(SESSION, &[Range::new(COUNT as u64, COUNT as u64 + 50)]));
    let mut outstanding = vec![COUNT as u64];
    while !outstanding.is_empty() {
        take(&mut outstanding);
    }
    let report = publisher.stop();
    let count = |name: &str| report.channels[0].service.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!((count("gap_fill_requests"), count("gap_fill_dropped")), (6, 3));
}

#[test]
fn messages_are_resent_by_tcp_up_to_the_latest() {
    let (publisher, messages) = published(Feed::Deep10, |options| options);
    let server = publisher.text.lines().find_map(|line| line.strip_prefix("# the same over TCP: ")).unwrap();
    let mut stream = connect(server);
    // The last requested message does not exist yet.
    stream.write_all(&request(SESSION, &[Range::new(3, 4), Range::new(10, 1 << 40)])).unwrap();
    let mut given = Vec::new();
    let count = 2 + COUNT - 9;
    while given.len() < count {
        let mut bytes = read_bytes(&mut stream, Header::LEN);
        let len = u16::from_le_bytes([bytes[12], bytes[13]]);
        bytes.extend(read_bytes(&mut stream, len.into()));
        let segment = Segment::parse(&bytes).unwrap();
        given.extend(segment.messages().map(|(sequence, message)| (sequence.0, message.to_vec())));
    }
    let expected = (3..=4).chain(10..=COUNT).map(|number| (number as u64, messages[number - 1].clone()));
    assert!(given.into_iter().eq(expected));
    assert!(is_closed(&mut stream), "with the last message the connection ends");
    // A request for another session, and an invalid request, end the connection at once.
    for bytes in [request(SESSION + 1, &[Range::new(3, 4)]), vec![9; 16]] {
        let mut stream = connect(server);
        stream.write_all(&bytes).unwrap();
        assert!(is_closed(&mut stream));
    }
}

/// If a part of the requested range is no longer stored, the remaining messages are sent.
#[test]
fn messages_that_are_too_old_are_not_sent() {
    let (publisher, _) = published(Feed::Deep10, |options| PublishOptions { store_bytes: 1, ..options });
    let socket = udp_socket();
    let stored = (1 << 16) / 32;
    let oldest = (COUNT - stored + 1) as u64;
    socket
        .send_to(&request(SESSION, &[Range::new(oldest - 10, oldest + 3)]), publisher.address("gap_fill"))
        .unwrap();
    let mut buffer = [0; 2_000];
    let len = socket.recv(&mut buffer).unwrap();
    let segment = Segment::parse(&buffer[..len]).unwrap();
    assert_eq!((segment.sequence().0, segment.message_count()), (oldest, 4));
    let report = publisher.stop();
    assert_eq!(report.channels[0].stored, stored as u64);
}

/// Symbol, side, and (price, quantity) of each order of that side in priority order.
type Queue = (&'static str, Side, Vec<(i64, u64)>);

fn levels(builder: &BookBuilder<PackedBooks>) -> Vec<Queue> {
    let mut found = Vec::new();
    for symbol in ["ALPHA", "BRAVO", "CHARLIE"] {
        let id = builder.find(Symbol::new(symbol).unwrap()).unwrap();
        for side in Side::BOTH {
            let orders = builder.books().orders(id, side);
            found.push((symbol, side, orders.map(|order| (order.price.0, order.qty.0)).collect()));
        }
    }
    found
}

#[test]
fn messages_missing_in_the_recording_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let messages = iex_messages(Feed::Deep10, 8);
    let mut bytes = tickpath_flowgen::pcap_header().to_vec();
    for run in [0..3, 5..8] {
        let first = Sequence(run.start as u64 + 1);
        let id = Feed::Deep10.protocol_id();
        let mut builder = SegmentBuilder::resuming([0; 1_400], id, 1, SESSION, first, 0);
        messages[run].iter().for_each(|message| builder.push(message).unwrap());
        let to = "224.67.0.199:16642".parse().unwrap();
        append_udp(START_NS, to, builder.finish(Nanos(START_NS)), &mut bytes);
    }
    let publisher = Publisher::start(super::options(&write(folder.path(), "hole.pcap", &bytes)));
    wait_for("the end of the recording", || publisher.has_published().then_some(()));
    let socket = udp_socket();
    socket.send_to(&request(SESSION, &[Range::new(1, 8)]), publisher.address("gap_fill")).unwrap();
    let (mut buffer, mut came) = ([0; 2_000], Vec::new());
    while came.len() < 6 {
        let len = socket.recv(&mut buffer).unwrap();
        let segment = Segment::parse(&buffer[..len]).unwrap();
        for (sequence, message) in segment.messages() {
            assert_eq!(messages[sequence.0 as usize - 1], message);
            came.push(sequence.0);
        }
    }
    assert_eq!(came, [1, 2, 3, 6, 7, 8]);
}

#[test]
fn a_snapshot_leads_to_the_books_of_all_messages() {
    for feed in [Feed::Deep10, Feed::DeepPlus10] {
        let (publisher, messages) = published(feed, |options| options);
        let mut stream = connect(publisher.address("snap"));
        let books = || BookBuilder::new(feed, PackedBooks::new(BookLimits::new(InstrumentId(8), 4_096)));
        let (mut all, mut snapshot) = (books(), books());
        for (sequence, message) in (1..).zip(&messages) {
            all.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
        }
        let (last, parts) = ask_snapshot(&mut stream, SESSION, 0).unwrap();
        assert_eq!(last, COUNT as u64);
        for message in &parts {
            snapshot.handle_message(Sequence(last), message, &mut IgnoreUpdates);
        }
        assert_eq!(levels(&snapshot), levels(&all));
        assert_eq!(snapshot.counters().unknown_order + snapshot.counters().malformed, 0);
        // The server refuses these requests without closing the connection.
        let refused = |stream: &mut std::net::TcpStream, session, minimum| {
            ask_snapshot(stream, session, minimum).unwrap_err()
        };
        assert_eq!(refused(&mut stream, SESSION + 1, 0), ErrorCode::SESSION);
        assert_eq!(refused(&mut stream, SESSION, COUNT as u64 + 1), ErrorCode::NOT_YET);
        stream.write_all(&[2, 0, b'e', b'R']).unwrap();
        assert_eq!(read_bytes(&mut stream, 4), [2, 0, b'e', b'U']);
    }
}

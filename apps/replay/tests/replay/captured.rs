//! Replays of packet captures, both generated and recorded ones.

use std::net::SocketAddrV4;

use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{AddOrder, BuySell, StockTradingState};
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Session};
use tickpath_nasdaq::soupbintcp::{LoginAccepted, Packet};
use tickpath_nasdaq::wire::Stock;
use tickpath_replay::{Exports, FileReport, Reliability, ReplayOptions, ReplayReport, Speed};
use tickpath_test_support::recorded;
use tickpath_types::{Nanos, Sequence};
use zerocopy::IntoBytes;

use crate::support::{Day, OPEN_NS, checked, file, run, stored, try_run, try_run_all};

/// 2023-08-22, 13:30 UTC: 09:30 in New York.
const OPENED_NS: u64 = 1_692_711_000_000_000_000;
pub const LINE_A: &str = "233.54.12.111:26477";
pub const LINE_B: &str = "233.86.230.111:26477";

/// A pcap file under construction.
pub struct Capture {
    pub bytes: Vec<u8>,
    pub ns: u64,
}

impl Capture {
    pub fn new() -> Capture {
        let words = [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, 1];
        Capture { bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(), ns: OPENED_NS }
    }

    /// Appends a frame, captured a microsecond after the previous one.
    pub fn frame(&mut self, frame: &[u8]) -> &mut Capture {
        self.ns += 1_000;
        let (seconds, ns) = (self.ns / 1_000_000_000, self.ns % 1_000_000_000);
        for word in [seconds as u32, ns as u32, frame.len() as u32, frame.len() as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(frame);
        self
    }

    /// Appends a UDP datagram that is sent to `dst`.
    pub fn udp(&mut self, dst: &str, payload: &[u8]) -> &mut Capture {
        let header =
            [&[0x30, 0x39][..], &port(dst), &(8 + payload.len() as u16).to_be_bytes(), &[0, 0]].concat();
        let frame = ethernet(dst, 17, &[&header[..], payload].concat());
        self.frame(&frame)
    }

    /// Appends a TCP segment that is sent to `dst`.
    pub fn tcp(&mut self, dst: &str, sequence: u32, flags: u8, payload: &[u8]) -> &mut Capture {
        let mut header =
            [&[0x30, 0x39][..], &port(dst), &sequence.to_be_bytes(), &[0; 4], &[0x50, flags]].concat();
        header.extend([0; 6]);
        let frame = ethernet(dst, 6, &[&header[..], payload].concat());
        self.frame(&frame)
    }

    /// Appends a MoldUDP64 packet that is sent to the line `dst`.
    pub fn mold(&mut self, dst: &str, session: &str, sequence: u64, messages: &[&[u8]]) -> &mut Capture {
        let session = Session::new(session).unwrap();
        let mut builder = PacketBuilder::new([0; 1_400], session, Sequence(sequence));
        for message in messages {
            builder.push(message).unwrap();
        }
        let packet = builder.finish().to_vec();
        self.udp(dst, &packet)
    }

    pub fn run(&self, options: &ReplayOptions) -> FileReport {
        let (_folder, path) = file("day.pcap", &self.bytes);
        run(&path, options)
    }

    pub fn run_all(&self, options: &ReplayOptions) -> ReplayReport {
        let (_folder, path) = file("day.pcap", &self.bytes);
        try_run_all(&path, options).unwrap()
    }
}

fn port(dst: &str) -> [u8; 2] {
    dst.parse::<SocketAddrV4>().unwrap().port().to_be_bytes()
}

fn ethernet(dst: &str, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let dst: SocketAddrV4 = dst.parse().unwrap();
    let total = (20 + segment.len()) as u16;
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 9, protocol, 0, 0, 10, 0, 0, 1]);
    frame.extend(dst.ip().octets());
    frame.extend(segment);
    frame
}

/// Returns the messages of a day, without their length prefixes.
pub fn messages(day: &Day) -> Vec<&[u8]> {
    let mut rest = &day.bytes[..];
    let mut messages = Vec::new();
    while let Some((len, more)) = rest.split_first_chunk::<2>() {
        let (message, more) = more.split_at(usize::from(u16::from_be_bytes(*len)));
        messages.push(message);
        rest = more;
    }
    messages
}

/// The parts of a report that do not depend on the file format.
fn market(report: &FileReport) -> (u64, u64, String, String) {
    let integrity = &report.integrity;
    (
        report.messages,
        report.checksum,
        format!("{:?}", report.tops),
        format!("{:?} {integrity:?}", report.statistics),
    )
}

#[test]
fn numbers_beyond_their_field_are_malformed() {
    let day = Day::small();
    let all = messages(&day);
    let mut capture = Capture::new();
    capture.mold(LINE_A, "S", 1, &all[..2]);
    for first in [u64::MAX, u64::MAX - 1, u64::MAX - 2] {
        capture.mold(LINE_A, "S", first, &all[..2]);
    }
    let report = capture.mold(LINE_A, "S", 3, &all[2..3]).run(&ReplayOptions::default());
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.messages, channel.malformed, channel.gaps, channel.lost), (5, 2, 1, u64::MAX - 6));
}

#[test]
fn a_capture_gives_the_books_of_the_file() {
    let day = Day::small();
    let (_folder, path) = file("day", &day.bytes);
    let expected = run(&path, &checked());
    let messages = messages(&day);
    let mut capture = Capture::new();
    for (index, group) in messages.chunks(4).enumerate() {
        capture.mold(LINE_A, "DAY1", 1 + 4 * index as u64, group);
    }
    let report = capture.run(&checked());
    assert_eq!(market(&report), market(&expected));
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    let found = report.capture.as_ref().unwrap();
    assert_eq!((found.protocol.name(), found.name.as_str()), ("itch", "ITCH 5.0, session DAY1"));
    let channel = &found.channels[0];
    assert_eq!((channel.packets, channel.messages, channel.gaps, channel.duplicates), (4, 13, 0, 0));
    assert!(report.to_string().contains("2023-08-22 09:30:00"), "{report}");
}

/// A capture of two lines, each of which lacks packets that the other line has; it ends with a heartbeat.
fn two_lines(day: &Day) -> Capture {
    let mut capture = Capture::new();
    for (index, message) in messages(day).into_iter().enumerate() {
        let sequence = 1 + index as u64;
        if index % 3 != 1 {
            capture.mold(LINE_A, "DAY1", sequence, &[message]);
        }
        if index % 3 != 2 {
            capture.mold(LINE_B, "DAY1", sequence, &[message]);
        }
    }
    let next = Sequence(1 + messages(day).len() as u64);
    capture.udp(LINE_A, Header::heartbeat(Session::new("DAY1").unwrap(), next).as_bytes());
    capture
}

#[test]
fn two_lines_fill_each_others_gaps() {
    let day = Day::small();
    let (_folder, path) = file("day", &day.bytes);
    let report = two_lines(&day).run(&checked());
    assert_eq!(market(&report), market(&run(&path, &checked())));
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    let capture = report.capture.as_ref().unwrap();
    let [channel] = capture.channels.as_slice() else { panic!("one channel: {:?}", capture.channels) };
    assert_eq!((channel.lines.len(), channel.messages, channel.heartbeats), (2, 13, 1));
    assert_eq!((channel.gaps, channel.lost, channel.disagreements), (0, 0, 0));
    assert_eq!(channel.duplicates, 5);
}

#[test]
fn a_loss_on_both_lines_is_reported_and_not_trusted() {
    let day = Day::small();
    let messages = messages(&day);
    let mut capture = Capture::new();
    for (index, message) in messages.iter().enumerate().filter(|(index, _)| *index != 3) {
        capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
    }
    let report = capture.run(&checked());
    let text = report.contradictions.join("\n");
    assert!(text.contains("1 gap(s) on session DAY1, 1 message(s) lost"), "{text}");
    assert_eq!(report.messages, 12);
    // The loss of the last message is revealed only by the end of session, which names the next number.
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 1, &messages[..12]);
    capture.udp(LINE_A, Header::end_of_session(Session::new("DAY1").unwrap(), Sequence(14)).as_bytes());
    let report = capture.run(&checked());
    assert!(report.contradictions.join("\n").contains("1 message(s) lost"), "{:?}", report.contradictions);
}

#[test]
fn disagreeing_lines_are_reported() {
    let day = Day::small();
    let messages = messages(&day);
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 1, &messages[..1]).mold(LINE_B, "DAY1", 1, &messages[..1]);
    capture.mold(LINE_A, "DAY1", 2, &messages[1..2]).mold(LINE_B, "DAY1", 2, &messages[2..3]);
    let report = capture.run(&checked());
    assert!(report.contradictions.join("\n").contains("1 packet(s) of session DAY1 that differ"));
}

#[test]
fn numbers_that_jump_back_are_reported() {
    let day = Day::small();
    let messages = messages(&day);
    let mut capture = Capture::new();
    for (index, message) in messages.iter().enumerate() {
        capture.ns += 500_000_000;
        capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
    }
    let whole = capture.run(&checked());
    assert!(whole.is_trustworthy(), "{:?}", whole.contradictions);
    // The venue restarts its numbering without notice.
    capture.ns += 3_000_000_000;
    capture.mold(LINE_A, "DAY1", 1, &messages[..4]).mold(LINE_A, "DAY1", 5, &messages[4..6]);
    let report = capture.run(&checked());
    assert_eq!(
        report.contradictions,
        [
            "2 packet(s) of session DAY1 whose numbers jumped back without a reset: their messages were omitted"
        ]
    );
    assert_eq!(report.messages, whole.messages);
    // The new numbering continues with messages 3 to 13, then 1 to 13. The first message 13 may be a late
    // duplicate, so it does not count as a jump back. The sixteenth packet that jumps back is the second
    // message 4: there the numbering and the books restart.
    for index in (0..13).chain(0..13).skip(2) {
        capture.mold(LINE_A, "DAY1", 1 + index as u64, &messages[index..=index]);
    }
    let report = capture.run(&checked());
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!(
        (channel.restarts, channel.jumped_back, channel.gaps, channel.lost),
        (1, 15, 1, 3),
        "{report}"
    );
    assert_eq!(report.messages, whole.messages + 10);
    assert_eq!(report.model.as_ref().unwrap().difference, None);
}

#[test]
fn reused_numbers_with_other_contents_are_not_duplicates() {
    let day = Day::small();
    let messages = messages(&day);
    let mut capture = Capture::new();
    for (index, message) in messages.iter().enumerate() {
        capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
    }
    // A packet that was captured twice is a duplicate.
    capture.mold(LINE_A, "DAY1", 13, &messages[12..]);
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    assert_eq!(report.capture.as_ref().unwrap().channels[0].duplicates, 1);
    // The same numbers with other contents, or grouped in other packets, are no duplicates.
    capture.mold(LINE_A, "DAY1", 4, &messages[5..6]).mold(LINE_A, "DAY1", 1, &messages[..3]);
    let report = capture.run(&checked());
    assert_eq!(report.reliability(), Reliability::Contradicted);
    assert_eq!(
        report.contradictions,
        [
            "2 packet(s) of session DAY1 whose numbers jumped back without a reset: their messages were omitted"
        ]
    );
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.duplicates, channel.jumped_back), (1, 2));
}

#[test]
fn a_capture_that_begins_in_the_middle_is_reliable_only_in_part() {
    let day = Day::small();
    let messages = messages(&day);
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 4, &messages[3..8]);
    let report = capture.run(&checked());
    assert_eq!(report.reliability(), Reliability::Partial, "{report}");
    assert_eq!(report.reservations, ["session DAY1 begins with message 4: books lack what rested before"]);
    let text = report.to_string();
    assert!(text.contains("reliable only in part:\n  session DAY1 begins"), "{text}");
    // If a recording lacks its first messages, a crossed book shows that the books are wrong.
    let mut crossed = Day::default();
    crossed.add(1, BuySell::SELL, 100, 1_000_000);
    crossed.add(1, BuySell::BUY, 100, 1_000_100);
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 9, &self::messages(&crossed));
    let report = capture.run(&checked());
    assert!(!report.is_trustworthy());
    assert!(
        report.contradictions[0].starts_with("1 message(s) leave a book crossed, first at packet 1"),
        "{:?}",
        report.contradictions
    );
    // In a complete recording, the crossed book is no contradiction: it may precede an auction.
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 1, &self::messages(&crossed));
    let report = capture.run(&checked());
    assert!(report.is_trustworthy() && report.reliability() == Reliability::Partial, "{report}");
    assert!(report.reservations[0].contains("while no trading state was published"), "{report}");
    assert_eq!(report.to_json()["reliability"], "partial");
}

#[test]
fn times_of_a_venue_in_utc_are_shown_in_utc() {
    // The messages have times from 09:30 on: New York times if captured at 13:30 UTC, UTC if at 09:30 UTC.
    let day = Day::small();
    let captured = |ns: u64| {
        let mut capture = Capture::new();
        capture.ns = ns;
        capture.mold(LINE_A, "DAY1", 1, &messages(&day));
        capture
    };
    let folder = tempfile::tempdir().unwrap();
    let bbo = folder.path().join("b.csv");
    for (ns, opened, shown) in [
        (OPENED_NS, OPENED_NS, "2023-08-22 09:30:00.001000000 ET"),
        (
            OPENED_NS - 4 * 3_600_000_000_000,
            OPENED_NS - 4 * 3_600_000_000_000,
            "2023-08-22 09:30:00.001000000 UTC",
        ),
    ] {
        let exports = Exports { bbo: Some(bbo.clone()), ..Exports::default() };
        let report = captured(ns).run(&ReplayOptions { exports, ..checked() });
        assert_eq!(report.span.unwrap().0.to_string(), shown);
        let first = std::fs::read_to_string(&bbo).unwrap().lines().nth(1).unwrap().to_owned();
        assert!(first.starts_with(&format!("1,{},4,", opened + 4_000_000)), "{first}");
    }
    let eastern = ReplayOptions { zone: Some("ET".parse().unwrap()), ..checked() };
    let report = captured(OPENED_NS - 4 * 3_600_000_000_000).run(&eastern);
    assert_eq!(report.span.unwrap().0.to_string(), "2023-08-22 05:30:00.001000000 ET");
}

#[test]
fn a_zone_is_found_from_later_messages() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    const CLIENT: &str = "10.0.0.9:40000";
    // A Tickpath venue at 10:00 UTC: orders that have rested for half an hour have times that match no zone;
    // the time of the first live message matches UTC.
    let captured_ns = OPENED_NS - 4 * HOUR_NS + HOUR_NS / 2;
    let mut day = Day::default();
    day.state(1, StockTradingState::TRADING);
    day.add(1, BuySell::BUY, 100, 1_000_000);
    let stock = Stock::new("AAA").unwrap();
    let now = Nanos(OPEN_NS + HOUR_NS / 2);
    let live = AddOrder::new(1, 0, now, 99, BuySell::SELL, 10, stock, 1_000_100);
    let mut capture = Capture::new();
    capture.ns = captured_ns;
    capture.mold(LINE_A, "DAY1", 1, &messages(&day));
    capture.ns += 2_000_000_000;
    capture.mold(LINE_A, "DAY1", 3, &[live.as_bytes()]);
    let report = capture.run(&checked());
    assert_eq!(report.span.unwrap().1.to_string(), "2023-08-22 10:00:00.000000000 UTC");

    // The end of a snapshot identifies a Tickpath venue, although no message time is near the capture time.
    day.push(EndOfSnapshot::of(Sequence(42)).as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let orders = folder.path().join("o.csv");
    let exports = Exports { orders: Some(orders.clone()), ..Exports::default() };
    let mut capture = Capture::new();
    capture.ns = captured_ns;
    capture.tcp(CLIENT, 999, 0x12, b"").tcp(CLIENT, 1_000, 0x10, &soup(&day));
    capture.run(&ReplayOptions { exports, ..checked() });
    let first = std::fs::read_to_string(&orders).unwrap().lines().nth(1).unwrap().to_owned();
    assert!(first.starts_with(&format!("1,{},", OPENED_NS - 4 * HOUR_NS + 2_000_000)), "{first}");
}

#[test]
fn snapshots_beside_a_session_are_no_part_of_it() {
    // The snapshots have the session's name, but separate sequence numbers.
    const SNAPSHOTS: &str = "239.255.26.3:26406";
    let day = Day::small();
    let mut snapshot = Day::default();
    snapshot.state(1, StockTradingState::TRADING);
    snapshot.add(1, BuySell::BUY, 100, 1_000_000);
    snapshot.push(EndOfSnapshot::of(Sequence(4)).as_bytes());
    let mut capture = Capture::new();
    for (index, message) in messages(&day).into_iter().enumerate() {
        capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
        capture.mold(SNAPSHOTS, "DAY1", 1 + 3 * index as u64, &messages(&snapshot));
    }
    let report = capture.run(&checked());
    assert_eq!(report.reliability(), Reliability::Complete, "{report}");
    let found = report.capture.as_ref().unwrap();
    assert_eq!((report.messages, found.unknown.count), (13, 0));
    let channel = &found.channels[0];
    assert_eq!((channel.skipped, channel.duplicates, channel.gaps), (13, 0, 0));
}

#[test]
fn a_snapshot_of_several_packets_is_no_part_of_a_session() {
    const SNAPSHOTS: &str = "239.255.26.3:26406";
    let mut day = Day::default();
    day.state(1, StockTradingState::TRADING);
    for index in 0..20 {
        day.add(1, BuySell::BUY, 100, 1_000_000 - 100 * index);
    }
    let mut snapshot = Day::default();
    snapshot.now();
    snapshot.state(1, StockTradingState::TRADING);
    for index in 0..9 {
        snapshot.add(1, BuySell::BUY, 100, 1_000_000 - 100 * index);
    }
    snapshot.push(EndOfSnapshot::of(Sequence(12)).as_bytes());
    let (messages, snapshot) = (messages(&day), self::messages(&snapshot));
    // The snapshot's sequence numbers exceed or overlap the session's. The snapshot is sent before, during or
    // after the session.
    for first in [5_001, 1] {
        for place in [0, 10, messages.len()] {
            let mut capture = Capture::new();
            for index in 0..=messages.len() {
                if index == place {
                    capture.mold(SNAPSHOTS, "DAY1", first, &snapshot[..1]);
                    capture.mold(SNAPSHOTS, "DAY1", first + 1, &snapshot[1..8]);
                    capture.mold(SNAPSHOTS, "DAY1", first + 8, &snapshot[8..]);
                }
                if let Some(message) = messages.get(index) {
                    capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
                }
            }
            let report = capture.run(&checked());
            assert_eq!(report.reliability(), Reliability::Complete, "from {first} at {place}: {report}");
            let found = report.capture.as_ref().unwrap();
            assert_eq!((report.messages, found.unknown.count), (messages.len() as u64, 0));
            let channel = &found.channels[0];
            assert_eq!((channel.skipped, channel.duplicates, channel.gaps), (3, 0, 0));
        }
    }
}

#[test]
fn a_line_with_only_adds_is_identified_by_a_packet_of_its_session() {
    let mut day = Day::default();
    day.state(1, StockTradingState::TRADING);
    for index in 0..20 {
        day.add(1, BuySell::BUY, 100, 1_000_000 - 100 * index);
    }
    let mut capture = Capture::new();
    for (index, message) in messages(&day).into_iter().enumerate() {
        // From message 7 on, line A loses every third message; line B begins there and loses none.
        if index % 3 != 0 || index < 6 {
            capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
        }
        if index > 5 {
            capture.mold(LINE_B, "DAY1", 1 + index as u64, &[message]);
        }
    }
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.lines.len(), channel.messages, channel.lost), (2, 21, 0), "{report}");
    // A flow counts as a line after a second, even if its packets repeat none of the session's packets.
    let adds = messages(&day);
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 1, &adds[..10]);
    capture.mold(LINE_B, "DAY1", 11, &adds[10..12]);
    capture.ns += 1_000_000_000;
    capture.mold(LINE_B, "DAY1", 13, &adds[12..]);
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    assert_eq!(report.messages, adds.len() as u64);
}

/// A snapshot of two instruments, the orders of each sorted by time. The first book is crossed, as before an
/// opening auction.
fn snapshot_of_two() -> Day {
    let mut day = Day::default();
    for locate in [1, 2] {
        day.ns = 0;
        day.state(locate, StockTradingState::TRADING);
        day.add(locate, BuySell::BUY, 100, 1_000_000);
        day.add(locate, BuySell::SELL, 100, if locate == 1 { 999_900 } else { 1_000_100 });
    }
    day.push(EndOfSnapshot::of(Sequence(42)).as_bytes());
    day
}

#[test]
fn a_snapshot_over_tcp_is_identified_by_its_end() {
    const CLIENT: &str = "10.0.0.9:40000";
    let folder = tempfile::tempdir().unwrap();
    let [orders, bbo, depth] = ["o.csv", "b.csv", "d.csv"].map(|name| folder.path().join(name));
    let exports = Exports {
        orders: Some(orders.clone()),
        bbo: Some(bbo.clone()),
        depth: Some(depth.clone()),
        ..Exports::default()
    };
    let options = ReplayOptions { exports, ..checked() };
    let stream = soup(&snapshot_of_two());
    // Send the snapshot in many segments, and in one: no part of it is applied before its end.
    for piece in [100, stream.len()] {
        let mut capture = Capture::new();
        capture.tcp(CLIENT, 999, 0x12, b"");
        for (index, part) in stream.chunks(piece).enumerate() {
            capture.tcp(CLIENT, 1_000 + (index * piece) as u32, 0x10, part);
        }
        let report = capture.run(&options);
        assert_eq!(report.reliability(), Reliability::Complete, "{report}");
        let last = report.by_type.iter().find(|entry| entry.code == "G").unwrap();
        assert_eq!((last.name, last.count), ("End of Snapshot", 1));
        // A snapshot is the book at one moment, so its messages do not count as events.
        assert_eq!((report.messages, report.snapshot_messages), (7, 7));
        assert_eq!((report.span.is_none(), report.statistics[0].1.adds), (true, 0));
        assert_eq!(report.tops[0].sides[0][0].qty.0, 100);
        let rows = |path: &std::path::Path| std::fs::read_to_string(path).unwrap().lines().count() - 1;
        assert_eq!((rows(&orders), rows(&bbo), rows(&depth)), (4, 0, 0));
        let events = std::fs::read_to_string(&orders).unwrap();
        assert_eq!(events.matches(",snapshot,").count(), 4, "{events}");
    }
}

#[test]
fn a_stream_without_an_end_message_is_not_a_snapshot() {
    const CLIENT: &str = "10.0.0.9:40000";
    let mut day = Day::default();
    day.state(1, StockTradingState::TRADING);
    let order = day.add(1, BuySell::BUY, 100, 1_000_000);
    let (opening, opening_messages) = (soup(&day).len() - 6, 2);
    day.delete(1, order);
    let stream = soup(&day);
    for (len, messages) in [(opening, opening_messages), (stream.len(), 3)] {
        let mut capture = Capture::new();
        capture.tcp(CLIENT, 999, 0x12, b"").tcp(CLIENT, 1_000, 0x10, &stream[..len]);
        let report = capture.run(&checked());
        assert!(report.is_trustworthy(), "{report}");
        assert_eq!(
            (report.messages, report.snapshot_messages, report.statistics[0].1.adds),
            (messages, 0, 1)
        );
    }
}

#[test]
fn messages_from_before_the_first_are_no_duplicates() {
    const REQUESTED: &str = "10.0.0.9:5555";
    let day = Day::small();
    let messages = messages(&day);
    let mut capture = Capture::new();
    capture.mold(LINE_A, "DAY1", 4, &messages[3..6]);
    // Messages 2 to 5 are resent on request. Line A began with messages 4 to 6, in one packet.
    capture.mold(REQUESTED, "DAY1", 2, &messages[1..5]);
    capture.mold(LINE_A, "DAY1", 7, &messages[6..]);
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    let text = report.to_string();
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.before_first, channel.duplicates, channel.uncompared), (2, 2, 2));
    assert!(text.contains("2 message(s) before the first sequence number, skipped"), "{text}");
}

#[test]
fn sessions_are_separate_recordings_and_unknown_packets_are_counted() {
    let day = Day::small();
    let mut capture = Capture::new();
    for (index, message) in messages(&day).into_iter().enumerate() {
        capture.mold(LINE_A, "DAY1", 1 + index as u64, &[message]);
        capture.mold("233.54.12.112:26478", "DAY2", 1 + index as u64, &[message]);
        capture.udp("239.1.1.1:5353", b"something else");
    }
    capture.frame(&[0; 60]).frame(&[&[0; 12][..], &[0x86, 0xdd], &[0; 40]].concat());
    let report = capture.run_all(&checked());
    assert_eq!(report.files.len(), 2);
    assert!(report.is_trustworthy(), "{report}");
    let names: Vec<&str> =
        report.files.iter().map(|file| file.capture.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names, ["ITCH 5.0, session DAY1", "ITCH 5.0, session DAY2"]);
    assert!(report.files.iter().all(|file| (file.messages, file.messages_read) == (13, 13)));
    let found = report.files[0].capture.as_ref().unwrap();
    let frames = report.files[0].frames.unwrap();
    let skipped: Vec<_> = frames.skipped().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!((found.unknown.count, skipped), (13, vec![("not IP", 1), ("IPv6", 1)]));
    assert_eq!(found.unknown.destinations, [("239.1.1.1:5353".parse().unwrap(), 13)]);
    let text = report.to_string();
    assert_eq!(text.matches("The capture has 2 recordings").count(), 2, "{text}");
}

/// The SoupBinTCP stream of a server that sends the messages of a day.
fn soup(day: &Day) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut buffer = [0; 256];
    let session = Session::new("DAY1").unwrap();
    let accepted = Packet::LoginAccepted(LoginAccepted { session, next_sequence: Sequence(1) });
    let packets = std::iter::once(accepted)
        .chain(messages(day).into_iter().map(Packet::SequencedData))
        .chain([Packet::ServerHeartbeat, Packet::EndOfSession]);
    for packet in packets {
        let len = packet.encode(&mut buffer).unwrap();
        stream.extend(&buffer[..len]);
    }
    stream
}

#[test]
fn itch_over_tcp_is_reassembled_in_order() {
    const CLIENT: &str = "10.0.0.9:40000";
    let day = Day::small();
    let (_folder, path) = file("day", &day.bytes);
    let expected = run(&path, &checked());
    let stream = soup(&day);
    let mut capture = Capture::new();
    capture.tcp(CLIENT, 999, 0x12, b"");
    // Segments of 100 bytes; two are swapped, one is duplicated.
    let mut parts: Vec<(usize, &[u8])> = stream.chunks(100).enumerate().collect();
    parts.swap(1, 2);
    parts.insert(4, parts[3]);
    for (index, part) in parts {
        capture.tcp(CLIENT, 1_000 + 100 * index as u32, 0x10, part);
    }
    let report = capture.run(&checked());
    assert_eq!(market(&report), market(&expected));
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    let found = report.capture.as_ref().unwrap();
    assert!(
        found.name.starts_with("ITCH 5.0, session DAY1, stream 10.0.0.1:12345 to 10.0.0.9:40000"),
        "{}",
        found.name
    );
    let counts = found.channels[0].stream.unwrap();
    assert_eq!((counts.out_of_order, counts.retransmitted_bytes, counts.holes), (1, 100, 0));
}

#[test]
fn a_gap_in_a_stream_is_reported() {
    const CLIENT: &str = "10.0.0.9:40000";
    let stream = soup(&Day::small());
    let mut capture = Capture::new();
    for (index, part) in stream.chunks(100).enumerate().filter(|(index, _)| *index != 2) {
        capture.tcp(CLIENT, 1_000 + 100 * index as u32, 0x10, part);
    }
    let report = capture.run(&checked());
    let text = report.contradictions.join("\n");
    assert!(text.contains("1 hole(s) in the stream of") && text.contains("100 byte(s) lost"), "{text}");
}

#[test]
fn a_capture_of_other_protocols_is_rejected_with_its_contents() {
    let mut capture = Capture::new();
    for _ in 0..3 {
        capture.udp("239.1.1.1:5353", b"something else").frame(&[0; 60]);
    }
    let (_folder, path) = file("other.pcap", &capture.bytes);
    let text = try_run(&path, &checked()).unwrap_err().to_string();
    assert!(text.contains("6 frames, 3 of UDP") && text.contains("239.1.1.1:5353 (3)"), "{text}");
    assert!(!text.contains('\n'), "{text}");
    let (_folder, path) = file("none.pcap", &Capture::new().bytes);
    assert!(try_run(&path, &checked()).unwrap_err().to_string().contains("0 frames"));
}

#[test]
fn a_cut_or_damaged_capture_gives_the_packets_before() {
    let capture = two_lines(&Day::small());
    let whole = capture.run(&checked()).messages;
    for len in (26..capture.bytes.len()).step_by(101) {
        let (_folder, path) = file("cut.pcap", &capture.bytes[..len]);
        match try_run(&path, &checked()) {
            Ok(report) => {
                let text = report.contradictions.join("\n");
                assert!(text.contains("cut short at byte") && report.messages <= whole, "{len}: {text}");
            }
            Err(error) => assert!(error.to_string().contains("cut short at byte"), "{len}: {error}"),
        }
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut encoder, &capture.bytes).unwrap();
    let mut damaged = encoder.finish().unwrap();
    let at = damaged.len() - 6;
    damaged[at] ^= 1;
    let (_folder, path) = file("bad.pcap.gz", &damaged);
    let report = run(&path, &checked());
    assert_eq!(report.messages, whole);
    assert!(report.contradictions[0].contains("compressed data is damaged"), "{:?}", report.contradictions);
}

#[test]
fn windows_limits_and_speeds_apply_to_captures() {
    let capture = two_lines(&Day::small());
    let options = ReplayOptions { limit: Some(5), ..checked() };
    assert_eq!(capture.run(&options).messages_read, 5);
    let options = ReplayOptions {
        from: Some("2023-08-22T09:30:00.003".parse().unwrap()),
        to: Some("09:30:00.006".parse().unwrap()),
        ..checked()
    };
    let report = capture.run(&options);
    let (first, last) = report.span.unwrap();
    assert_eq!((first.ns, last.ns), (OPEN_NS + 3_000_000, OPEN_NS + 5_000_000));
    let report = capture.run(&ReplayOptions { speed: Speed::Hundredths(10_000), ..checked() });
    assert_eq!(report.messages, 13);
    let next_day = ReplayOptions { from: Some("2023-08-23T00:00:00".parse().unwrap()), to: None, ..options };
    assert_eq!(capture.run(&next_day).messages, 0);
    let other = ReplayOptions { date: Some("2023-08-24".parse().unwrap()), ..next_day };
    assert_eq!(capture.run(&other).messages, 13);
}

#[test]
fn real_packets_are_read() {
    let report = run(
        &stored("itch_multiple_packets.pcap"),
        &ReplayOptions { decode_only: true, ..ReplayOptions::default() },
    );
    // The file has packets from various positions in the session.
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.gaps, channel.lost, channel.unnumbered), (1, 4_244_620, 0), "{report}");
    assert!(channel.messages > 1 && channel.first_sequence > 1 && !report.is_trustworthy(), "{report}");
    assert_eq!(report.span.unwrap().0.calendar.date.unwrap().to_string(), "2023-08-22");
}

#[test]
fn packets_without_numbers_are_taken_in_order_of_arrival() {
    let folder = "nasdaq_itch50/omi_nasdaq_20230822";
    let mut messages = 0;
    for name in ["AddOrderNoMPID", "OrderReplace", "SystemEvent", "CrossTrade", "StockTradingAction"] {
        let Some(path) = recorded(&format!("{folder}/{name}.pcap")) else { return };
        let report = run(&path, &ReplayOptions { decode_only: true, ..ReplayOptions::default() });
        let channel = &report.capture.as_ref().unwrap().channels[0];
        assert_eq!((channel.unnumbered, channel.gaps), (report.messages, 0), "{name}");
        messages += report.messages;
    }
    assert_eq!(messages, 21);
}

//! Captures of NYSE XDP with out-of-band packets, several markets, and sequence resets.

use tickpath_nyse::{
    AddOrder, AddOrderRefresh, DeleteOrder, DeliveryFlag, ExchangeCode, Firm, PacketBuilder, RefreshHeader,
    SecurityType, SendTime, SequenceNumberReset, Side, SourceTimeReference, SymbolClear, SymbolIndexMapping,
    XdpSymbol, YesNo,
};
use tickpath_replay::{Exports, FileReport, ReplayOptions};
use zerocopy::IntoBytes;

use crate::captured::Capture;
use crate::support::checked;

/// 2023-08-22, 13:30 UTC.
const OPENED: u32 = 1_692_711_000;
const LINE: &str = "224.0.59.76:11076";
const OTHER: &str = "224.0.59.80:11080";
const RETRANSMISSIONS: &str = "224.0.59.140:12076";
const REFRESHES: &str = "224.0.59.204:13076";

fn mapping(index: u32, symbol: &str, market: u16) -> Vec<u8> {
    SymbolIndexMapping::new(
        index,
        XdpSymbol::new(symbol).unwrap(),
        0,
        market,
        1,
        ExchangeCode(b'N'),
        4,
        SecurityType(b'C'),
        100,
        0,
        0,
        0,
        YesNo(b'Y'),
        1,
        1,
        0,
    )
    .as_bytes()
    .to_vec()
}

fn second() -> Vec<u8> {
    SourceTimeReference::new(1, 0, OPENED).as_bytes().to_vec()
}

/// A bid of 100 shares.
fn add(index: u32, sequence: u32, order: u64, price: u32) -> Vec<u8> {
    AddOrder::new(5, index, sequence, order, price, 100, Side::BUY, Firm::NONE, 0).as_bytes().to_vec()
}

fn delete(index: u32, sequence: u32, order: u64) -> Vec<u8> {
    DeleteOrder::new(6, index, sequence, order, 0).as_bytes().to_vec()
}

fn refreshed(index: u32, last: u32, order: u64, price: u32) -> Vec<u8> {
    AddOrderRefresh::new(OPENED, 0, index, last, order, price, 100, Side::BUY, Firm::NONE, 0)
        .as_bytes()
        .to_vec()
}

fn header(last_seq: u32, last_symbol_seq: u32) -> Vec<u8> {
    RefreshHeader::new(1, 1, last_seq, last_symbol_seq).as_bytes().to_vec()
}

fn reset(product: u8, channel: u8) -> Vec<u8> {
    SequenceNumberReset::new(OPENED, 0, product, channel).as_bytes().to_vec()
}

/// A packet sent `sent` nanoseconds after the opening.
fn packet(flag: DeliveryFlag, sequence: u32, sent: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; 1_400], sequence);
    for message in messages {
        builder.push_bytes(message).unwrap();
    }
    builder.finish(flag, SendTime { secs: OPENED, nanos: sent }).to_vec()
}

fn original(sequence: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    packet(DeliveryFlag::ORIGINAL, sequence, sequence, messages)
}

/// Prices of the bids of a symbol.
fn bids(report: &FileReport, symbol: &str) -> Vec<i64> {
    let book = report.tops.iter().find(|book| book.symbol == symbol);
    book.unwrap().sides[0].iter().map(|level| level.price.0).collect()
}

/// A capture that lacks message 4, a bid. Message 6 comes 200 ms after message 5, so message 4 counts as
/// lost.
fn with_a_loss() -> Capture {
    let mut capture = Capture::new();
    capture.udp(LINE, &original(1, &[second(), mapping(7, "AAA", 1), add(7, 1, 1, 10_000)]));
    capture.udp(LINE, &original(5, &[add(7, 3, 3, 10_200)]));
    capture.ns += 200_000_000;
    capture.udp(LINE, &original(6, &[add(7, 4, 4, 10_300)]));
    capture
}

#[test]
fn a_refresh_recovers_a_book_and_later_messages_follow() {
    let mut capture = with_a_loss();
    let refresh_packet = |flag| {
        let orders = [refreshed(7, 3, 1, 10_000), refreshed(7, 3, 2, 10_100), refreshed(7, 3, 3, 10_200)];
        packet(flag, 1, 9, &[&[header(5, 3), mapping(7, "AAA", 1)][..], &orders].concat())
    };
    // A refresh from before the loss, one that repairs it, and one that is no longer needed.
    capture.udp(REFRESHES, &packet(DeliveryFlag::REFRESH_ONE, 1, 8, &[header(3, 1), refreshed(7, 1, 1, 1)]));
    capture
        .udp(REFRESHES, &refresh_packet(DeliveryFlag::REFRESH_ONE))
        .udp(REFRESHES, &refresh_packet(DeliveryFlag::REFRESH_START));
    capture.udp(LINE, &original(7, &[delete(7, 5, 2)]));
    let report = capture.run(&checked());
    assert_eq!(report.model.as_ref().unwrap().difference, None);
    assert_eq!(bids(&report, "AAA"), [10_300, 10_200, 10_000]);
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.recovered, channel.skipped, channel.gaps, channel.lost), (1, 3, 1, 1));
    assert_eq!(report.integrity.unknown_references.count, 0, "the refresh brought order 2");
    assert_eq!(
        report.contradictions,
        ["1 gap(s) on channel 224.0.59.76:11076, 1 message(s) lost: books may be wrong from there on; \
          refreshes recovered 1 of them"]
    );
    assert_eq!(report.messages, 6, "a refresh is no part of the sequence");
}

#[test]
fn without_a_refresh_the_loss_is_reported() {
    let mut capture = with_a_loss();
    capture.udp(LINE, &original(7, &[delete(7, 5, 2)]));
    let report = capture.run(&checked());
    assert_eq!(report.integrity.unknown_references.count, 1);
    assert_eq!(report.capture.as_ref().unwrap().channels[0].recovered, 0);
}

#[test]
fn a_late_capture_has_books_from_its_refreshes_on() {
    let mut capture = Capture::new();
    // With two channels, only the symbols identify the channel of the refresh.
    capture.udp(OTHER, &original(1, &[second(), mapping(9, "ZZZ", 1), add(9, 1, 1, 50_000)]));
    let mut line = |sequence, messages: &[Vec<u8>]| {
        // The packets span more time than a flow needs to be identified as a line.
        capture.ns += 600_000_000;
        capture.udp(LINE, &original(sequence, messages));
    };
    line(1_000, &[second()]);
    line(1_001, &[add(7, 20, 20, 10_200)]);
    line(1_002, &[delete(7, 21, 18)]);
    let orders =
        [header(1_001, 20), mapping(7, "AAA", 1), refreshed(7, 20, 18, 1), refreshed(7, 20, 20, 10_200)];
    capture.udp(REFRESHES, &packet(DeliveryFlag::REFRESH_START, 1, 9, &orders));
    // A symbol that had no message in the capture before its refresh.
    let without_loss = [header(1_001, 5), mapping(8, "BBB", 1), refreshed(8, 5, 3, 30_000)];
    capture.udp(REFRESHES, &packet(DeliveryFlag::REFRESH_END, 1, 9, &without_loss));
    capture.udp(LINE, &original(1_003, &[add(8, 6, 4, 30_100), delete(7, 22, 20), add(7, 23, 23, 10_400)]));
    let report = capture.run(&checked());
    assert_eq!(report.model.as_ref().unwrap().difference, None);
    let books = ["AAA", "BBB", "ZZZ"].map(|symbol| bids(&report, symbol));
    assert_eq!(books, [vec![10_400], vec![30_100, 30_000], vec![50_000]]);
    // The two messages about AAA before its refresh are unmapped.
    assert_eq!((report.integrity.unmapped.count, report.integrity.unknown_references.count), (2, 0));
    assert_eq!(report.integrity.symbol_gaps.count, 0);
    assert!(!report.is_trustworthy());
}

#[test]
fn a_timely_retransmission_fills_the_gap() {
    let mut capture = Capture::new();
    capture.udp(OTHER, &original(1, &[second(), mapping(9, "ZZZ", 1), add(9, 1, 1, 50_000)]));
    capture.ns += 2_000_000_000;
    let first = original(1, &[second(), mapping(7, "AAA", 1), add(7, 1, 1, 10_000)]);
    capture.udp(LINE, &first);
    capture.ns += 2_000_000_000;
    capture.udp(LINE, &original(5, &[add(7, 3, 3, 10_200)]));
    let asked = packet(DeliveryFlag::RETRANSMISSION_ONE, 4, 9, &[add(7, 2, 2, 10_100)]);
    capture.udp(RETRANSMISSIONS, &asked);
    // Another client requests messages that the line delivered long ago.
    capture.ns += 5_000_000_000;
    let known = [second(), mapping(7, "AAA", 1), add(7, 1, 1, 10_000)];
    capture.udp(RETRANSMISSIONS, &packet(DeliveryFlag::RETRANSMISSION_ONE, 1, 10, &known));
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!(bids(&report, "AAA"), [10_200, 10_100, 10_000]);
    let found = report.capture.as_ref().unwrap();
    assert_eq!((found.channels.len(), found.unknown.count), (2, 0));
    let channel = found.channels.iter().find(|channel| channel.lines[0].0.to_string() == LINE).unwrap();
    assert_eq!((channel.gaps_filled, channel.gaps, channel.duplicates, channel.jumped_back), (1, 0, 3, 0));
}

#[test]
fn markets_are_separate_recordings() {
    let mut capture = Capture::new();
    // Index 7 is a different symbol in each market. The product number identifies one market, the mappings
    // the other.
    capture.udp(LINE, &packet(DeliveryFlag::SEQUENCE_RESET, 1, 1, &[reset(11, 1)]));
    capture.udp(OTHER, &packet(DeliveryFlag::ORIGINAL, 1, 1, &[second(), mapping(7, "BBB", 3)]));
    capture.udp(LINE, &original(2, &[second(), mapping(7, "AAA", 1), add(7, 1, 1, 10_000)]));
    capture.udp(OTHER, &original(3, &[add(7, 1, 1, 10_000)]));
    let folder = tempfile::tempdir().unwrap();
    let depth = folder.path().join("depth.csv");
    let exports = Exports { depth: Some(depth.clone()), ..Exports::default() };
    let report = capture.run_all(&ReplayOptions { exports, ..checked() });
    assert!(report.is_trustworthy(), "{report}");
    // Each market has separate rows: a level is written even if the other market has the same one.
    let rows = std::fs::read_to_string(depth).unwrap();
    let rows: Vec<(&str, &str)> = rows
        .lines()
        .map(|row| (row.split(',').next().unwrap(), row.splitn(4, ',').last().unwrap()))
        .collect();
    assert_eq!(
        rows,
        [
            ("recording", "symbol,side,level,price,qty,orders"),
            ("1", "AAA,bid,1,1.0000,100,1"),
            ("2", "BBB,bid,1,1.0000,100,1")
        ]
    );
    let found: Vec<_> = report
        .files
        .iter()
        .map(|file| {
            (file.capture.as_ref().unwrap().name.as_str(), file.messages, file.tops[0].symbol.as_str())
        })
        .collect();
    assert_eq!(found, [("NYSE XDP Integrated Feed", 4, "AAA"), ("NYSE Arca XDP Integrated Feed", 3, "BBB")]);
    assert_eq!((bids(&report.files[0], "AAA"), bids(&report.files[1], "BBB")), (vec![10_000], vec![10_000]));
}

#[test]
fn a_reset_channel_has_empty_books_and_others_are_unchanged() {
    let mut capture = Capture::new();
    let begin = |index, symbol, channel| {
        [reset(11, channel), second(), mapping(index, symbol, 1), add(index, 1, 1, 10_000)]
    };
    let send = |capture: &mut Capture, line, sent: u32, messages: &[Vec<u8>]| {
        capture.ns += 10_000_000;
        capture.udp(line, &packet(DeliveryFlag::SEQUENCE_RESET, 1, sent, &messages[..1]));
        capture.udp(line, &packet(DeliveryFlag::ORIGINAL, 2, sent + 1, &messages[1..]));
    };
    send(&mut capture, LINE, 10, &begin(7, "AAA", 1));
    send(&mut capture, OTHER, 20, &begin(9, "ZZZ", 2));
    // A late repetition of the same reset is ignored.
    capture.udp(LINE, &packet(DeliveryFlag::SEQUENCE_RESET, 1, 10, &[reset(11, 1)]));
    let restarted = [reset(11, 1), second(), mapping(7, "AAA", 1), add(7, 1, 1, 10_500)];
    send(&mut capture, LINE, 30, &restarted);
    let report = capture.run(&ReplayOptions { check_every: Some(1), ..ReplayOptions::default() });
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    assert_eq!((bids(&report, "AAA"), bids(&report, "ZZZ")), (vec![10_500], vec![10_000]));
    let restarts: Vec<u64> =
        report.capture.as_ref().unwrap().channels.iter().map(|channel| channel.restarts).collect();
    assert_eq!(restarts, [1, 0]);
}

#[test]
fn a_symbol_clear_completes_a_book() {
    let mut capture = with_a_loss();
    let clear = SymbolClear::new(OPENED, 0, 7, 9).as_bytes().to_vec();
    capture.udp(LINE, &original(7, &[clear, add(7, 9, 9, 10_900)]));
    // The clear completed the book, so this refresh is ignored.
    let late_refresh = [header(6, 4), refreshed(7, 4, 1, 10_000)];
    capture.udp(REFRESHES, &packet(DeliveryFlag::REFRESH_ONE, 1, 9, &late_refresh));
    let report = capture.run(&checked());
    assert_eq!(bids(&report, "AAA"), [10_900]);
    assert_eq!(report.capture.as_ref().unwrap().channels[0].recovered, 0);
}

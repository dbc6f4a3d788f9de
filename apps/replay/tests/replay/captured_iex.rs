//! Captures of IEX: recorded ones compared with their known counts, and generated segments.

use tickpath_iex::wire::Ticker;
use tickpath_iex::{
    AddOrder, Feed, OrderDelete, OrderExecuted, PriceLevelUpdate, SaleFlags, SegmentBuilder, SystemEvent,
    SystemEventCode, TradeReport, TradingStatus,
};
use tickpath_nasdaq::wire::Alpha;
use tickpath_replay::{Exports, FileReport, Reliability, ReplayOptions};
use tickpath_test_support::recorded;
use tickpath_types::{Nanos, Price, Side};
use zerocopy::IntoBytes;

use crate::captured::Capture;
use crate::support::{Day, checked, run, stored};

pub const GROUP: &str = "233.215.21.4:10378";
/// 2023-08-22, 13:30 UTC.
const OPENED_NS: u64 = 1_692_711_000_000_000_000;

fn decode_only() -> ReplayOptions {
    ReplayOptions { decode_only: true, ..ReplayOptions::default() }
}

fn counts(report: &FileReport, codes: &str) -> Vec<u64> {
    let count = |code: char| {
        let found = report.by_type.iter().find(|entry| entry.code == code.to_string());
        found.map_or(0, |entry| entry.count)
    };
    codes.chars().map(count).collect()
}

/// A segment with these messages, sent `sent` nanoseconds after the open.
pub fn segment(feed: Feed, first: u64, offset: u64, sent: u64, messages: &[&[u8]]) -> Vec<u8> {
    let mut builder = SegmentBuilder::new([0; 1_400], feed, 1, 7);
    for message in messages {
        builder.push(message).unwrap();
    }
    let mut bytes = builder.finish(Nanos(OPENED_NS + sent)).to_vec();
    bytes[16..24].copy_from_slice(&offset.to_le_bytes());
    bytes[24..32].copy_from_slice(&first.to_le_bytes());
    bytes
}

pub fn level(side: Side, is_complete: bool, ns: u64, size: u32, price: i64) -> Vec<u8> {
    let ticker = Ticker::new("ZIEXT").unwrap();
    PriceLevelUpdate::of(side, is_complete, Nanos(OPENED_NS + ns), ticker, size, price).as_bytes().to_vec()
}

#[test]
fn an_aggressor_is_reported_only_if_the_protocol_has_it() {
    let ticker = Ticker::new("ZIEXT").unwrap();
    let trade = |ns: u64| {
        let report = TradeReport::new(SaleFlags(0), Nanos(OPENED_NS + ns), ticker, 100, 10_000, ns as i64);
        report.as_bytes().to_vec()
    };
    // A trade before any quote, and a trade after quotes of both sides.
    let messages =
        [trade(1), level(Side::Buy, true, 2, 100, 10_000), level(Side::Sell, true, 3, 9, 10_100), trade(4)];
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut capture = Capture::new();
    capture.udp(GROUP, &segment(Feed::Deep10, 1, 0, 1, &slices));
    let folder = tempfile::tempdir().unwrap();
    let trades = folder.path().join("t.csv");
    let exports = Exports { trades: Some(trades.clone()), ..Exports::default() };
    let report = capture.run(&ReplayOptions { exports, ..checked() });
    assert_eq!(report.exported.trades, Some(2), "{report}");
    let text = std::fs::read_to_string(&trades).unwrap();
    assert_eq!(text.lines().nth(1).unwrap(), format!("1,{},1,ZIEXT,1.0000,100,,trade,", OPENED_NS + 1));
    assert!(text.lines().skip(1).all(|row| row.ends_with(",100,,trade,")), "{text}");
}

#[test]
fn levels_become_books_and_only_the_end_of_a_transaction_counts() {
    let trading =
        TradingStatus::new(b'T', Nanos(OPENED_NS), Ticker::new("ZIEXT").unwrap(), Alpha::<4>::BLANK.0);
    let messages = [
        trading.as_bytes().to_vec(),
        level(Side::Buy, true, 1, 100, 10_000),
        level(Side::Sell, true, 2, 200, 10_100),
        // Between the next two messages the book is crossed, but they are one transaction.
        level(Side::Buy, false, 3, 50, 10_100),
        level(Side::Sell, true, 3, 0, 10_100),
        level(Side::Sell, true, 4, 70, 10_300),
    ];
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut capture = Capture::new();
    capture.udp(GROUP, &segment(Feed::Deep10, 1, 0, 1, &slices[..3]));
    capture.udp(GROUP, &segment(Feed::Deep10, 4, 100, 2, &slices[3..]));
    capture.udp(GROUP, &segment(Feed::Deep10, 7, 200, 3, &[]));
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    let top = &report.tops[0];
    assert_eq!(top.symbol, "ZIEXT");
    let levels = top
        .sides
        .each_ref()
        .map(|side| side.iter().map(|level| (level.price, level.qty.0)).collect::<Vec<_>>());
    assert_eq!(levels[0], [(Price(10_100), 50), (Price(10_000), 100)]);
    assert_eq!(levels[1], [(Price(10_300), 70)]);
    let found = report.capture.as_ref().unwrap();
    assert_eq!((found.protocol.name(), found.name.as_str()), ("iex", "IEX DEEP 1.0"));
    assert_eq!((found.channels[0].heartbeats, found.channels[0].messages), (1, 6));
    assert!(report.span.unwrap().0.to_string().ends_with("09:30:00.000000000 ET"));
}

#[test]
fn a_reset_session_begins_with_empty_books() {
    let mut capture = Capture::new();
    for sent in [1, 2, 3] {
        let bid = level(Side::Buy, true, sent, 10, 10_000 + sent as i64);
        let more = level(Side::Buy, true, sent, 20, 9_000);
        capture.udp(GROUP, &segment(Feed::Deep10, 1, 0, 10 * sent, &[&bid]));
        capture.udp(GROUP, &segment(Feed::Deep10, 2, 32, 10 * sent + 1, &[&more]));
        // The first segment arrives again, late: it is a duplicate, not a restart.
        capture.udp(GROUP, &segment(Feed::Deep10, 1, 0, 10 * sent, &[&bid]));
    }
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.restarts, channel.messages, channel.duplicates), (2, 6, 3));
    assert_eq!(
        report.tops[0].sides[0].iter().map(|level| level.price.0).collect::<Vec<_>>(),
        [10_003, 9_000]
    );
}

#[test]
fn a_recording_of_best_quotes_is_partial_and_may_lack_its_end() {
    let quote = run(&stored("iex_quote_update.pcap"), &checked());
    assert_eq!(quote.reliability(), Reliability::Partial, "{quote}");
    assert!(quote.reservations[0].contains("the best 1 level(s)"), "{:?}", quote.reservations);

    let bid = level(Side::Buy, true, 1, 100, 10_000);
    let end = SystemEvent::new(SystemEventCode::END_OF_MESSAGES, Nanos(OPENED_NS + 2));
    let mut capture = Capture::new();
    capture.udp(GROUP, &segment(Feed::Deep10, 1, 0, 1, &[&bid]));
    let cut = capture.run(&checked()).to_string();
    assert!(cut.contains("no loss is detected; no message ends the session\n"), "{cut}");
    capture.udp(GROUP, &segment(Feed::Deep10, 2, 32, 2, &[end.as_bytes()]));
    let whole = capture.run(&checked());
    assert_eq!(whole.reliability(), Reliability::Complete);
    assert!(whole.to_string().contains("and nothing is missing from it\n"), "{whole}");
}

/// Two orders, a partial execution of the first, and deletes of the second and of an unknown order.
pub fn deep_plus() -> Vec<Vec<u8>> {
    let ticker = Ticker::new("ZIEXT").unwrap();
    let at = |ns: u64| Nanos(OPENED_NS + ns);
    let add = |id: u64, side: u8, size: u32, price: i64| {
        AddOrder::new(side, at(id), ticker, tickpath_types::OrderId(id), size, price).as_bytes().to_vec()
    };
    vec![
        add(1, b'8', 100, 10_000),
        add(2, b'5', 50, 10_100),
        OrderExecuted::new(
            SaleFlags(0),
            at(3),
            ticker,
            tickpath_types::OrderId(1),
            40_u32,
            10_000_i64,
            9_i64,
        )
        .as_bytes()
        .to_vec(),
        OrderDelete::new(b' ', at(4), ticker, tickpath_types::OrderId(2)).as_bytes().to_vec(),
        OrderDelete::new(b' ', at(5), ticker, tickpath_types::OrderId(77)).as_bytes().to_vec(),
    ]
}

#[test]
fn orders_of_deep_plus_become_books() {
    let messages = deep_plus();
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut capture = Capture::new();
    capture.udp(GROUP, &segment(Feed::DeepPlus10, 1, 0, 1, &slices));
    let report = capture.run(&checked());
    assert_eq!(report.contradictions, ["1 reference to an unknown order, first at packet 1"]);
    assert_eq!(report.tops[0].sides[0][0].qty.0, 60);
    assert_eq!((report.statistics[0].1.executions, report.statistics[0].1.volume), (1, 40));
}

#[test]
fn a_reset_channel_leaves_the_others_unchanged() {
    let of_channel = |channel: u32, first: u64, offset: u64, sent: u64, ticker: &str, price: i64| {
        let ticker = Ticker::new(ticker).unwrap();
        let mut bytes = segment(Feed::DeepPlus10, first, offset, sent, &[]);
        let add = AddOrder::new(
            b'8',
            Nanos(OPENED_NS + sent),
            ticker,
            tickpath_types::OrderId(sent),
            10_u32,
            price,
        );
        let message = add.as_bytes();
        bytes[4..8].copy_from_slice(&channel.to_le_bytes());
        bytes[12..14].copy_from_slice(&(message.len() as u16 + 2).to_le_bytes());
        bytes[14..16].copy_from_slice(&1_u16.to_le_bytes());
        bytes.extend((message.len() as u16).to_le_bytes());
        bytes.extend(message);
        bytes
    };
    let mut capture = Capture::new();
    capture.udp(GROUP, &of_channel(1, 1, 0, 10, "AAA", 10_000));
    capture.udp("233.215.21.5:10379", &of_channel(2, 1, 0, 20, "ZZZ", 20_000));
    capture.udp(GROUP, &of_channel(1, 2, 40, 30, "AAA", 10_100));
    capture.udp(GROUP, &of_channel(1, 1, 0, 40, "AAA", 10_200));
    let report = capture.run(&checked());
    assert!(report.is_trustworthy(), "{report}");
    let bids = |symbol: &str| {
        let book = report.tops.iter().find(|book| book.symbol == symbol).unwrap();
        book.sides[0].iter().map(|level| level.price.0).collect::<Vec<_>>()
    };
    assert_eq!((bids("AAA"), bids("ZZZ")), (vec![10_200], vec![20_000]));
}

#[test]
fn two_protocols_in_one_capture_are_two_recordings() {
    let day = Day::small();
    let mut capture = Capture::new();
    for (index, message) in crate::captured::messages(&day).into_iter().enumerate() {
        let sequence = 1 + index as u64;
        capture.mold(crate::captured::LINE_A, "DAY1", sequence, &[message]);
        let bid = level(Side::Buy, true, sequence, 10 + index as u32, 10_000);
        capture.udp(GROUP, &segment(Feed::Deep10, sequence, sequence * 32, sequence, &[&bid]));
    }
    let report = capture.run_all(&checked());
    assert!(report.is_trustworthy(), "{report}");
    let names: Vec<&str> =
        report.files.iter().map(|file| file.capture.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names, ["ITCH 5.0, session DAY1", "IEX DEEP 1.0"]);
    assert!(report.files.iter().all(|file| file.messages == 13));
    assert!(report.to_string().contains(
        "The capture has 2 recordings, each with a separate report: 1 ITCH 5.0, session DAY1; 2 IEX DEEP 1.0"
    ));
    // With `--protocol`, only the named protocol is replayed.
    let only = ReplayOptions { protocol: Some("iex".parse().unwrap()), ..checked() };
    let report = capture.run_all(&only);
    assert_eq!((report.files.len(), report.files[0].capture.as_ref().unwrap().unknown.count), (1, 13));
}

#[test]
fn a_recorded_restart_is_found() {
    let report = run(&stored("deep10_20170425_restart.pcap.gz"), &decode_only());
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.restarts, channel.gaps, channel.malformed), (1, 0, 0), "{report}");
    assert!(report.is_trustworthy(), "{report}");
    let quote = run(&stored("iex_quote_update.pcap"), &checked());
    assert_eq!(quote.capture.as_ref().unwrap().name, "IEX TOPS 1.6");
    assert_eq!((counts(&quote, "Q"), quote.messages), (vec![1], 1));
}

#[test]
fn the_recorded_deep_has_its_known_contents() {
    let Some(path) = recorded("iex/deep10_20170425_part1.pcap.gz") else { return };
    let report = run(&path, &decode_only());
    assert!(report.is_trustworthy(), "{:?}", report.contradictions);
    let capture = report.capture.as_ref().unwrap();
    let (frames, channel) = (report.frames.unwrap().frames, &capture.channels[0]);
    assert_eq!((frames, channel.packets, channel.heartbeats), (60_000, 60_000, 7_857));
    assert_eq!((channel.restarts, channel.gaps, channel.lost), (11, 0, 0));
    assert_eq!(counts(&report, "HOPT58ESB"), [93_638, 93_638, 93_636, 29_970, 9_597, 9_318, 59, 43, 37]);
    assert_eq!(report.symbol_count, 7_802);
}

#[test]
fn books_of_the_recorded_deep_are_crossed_and_the_report_says_so() {
    let Some(path) = recorded("iex/deep10_20170425_part1.pcap.gz") else { return };
    let report = run(&path, &ReplayOptions { check_every: Some(50_000), ..ReplayOptions::default() });
    assert_eq!(report.model.as_ref().unwrap().difference, None);
    let text = report.contradictions.join("\n");
    assert!(text.contains("crossed") && !text.contains("gap(s)"), "{text}");
}

#[test]
fn the_recorded_tops_has_its_known_contents() {
    let Some(path) = recorded("iex/tops16_20170710_part1.pcap.gz") else { return };
    let report = run(&path, &ReplayOptions { check_every: Some(50_000), ..ReplayOptions::default() });
    let channel = &report.capture.as_ref().unwrap().channels[0];
    assert_eq!((channel.packets, channel.heartbeats, channel.gaps, channel.restarts), (8_000, 182, 0, 0));
    assert_eq!(counts(&report, "QHPOTADSB"), [17_789, 7_803, 7_800, 7_800, 4_074, 500, 10, 3, 2]);
    assert_eq!(report.integrity.crossed.contradictory.count, 0);
    assert_eq!(report.reliability(), Reliability::Partial, "{:?}", report.contradictions);
}

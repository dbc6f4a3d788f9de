//! Decodes bytes from specifications and real traffic, and checks each field.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_iex::gap_fill::{Range, Request};
use tickpath_iex::snap::{self, ErrorCode, Frame, SnapshotRequest};
use tickpath_iex::wire::{Alpha, Ticker};
use tickpath_iex::{
    AddOrder, Feed, Fields, Header, Listener, MESSAGE_TYPES, Message, PriceLevelUpdate, QuoteUpdate,
    SaleFlags, Segment, SegmentBuilder, SystemEvent, SystemEventCode, TradeReport, decode, message_len_min,
};
use tickpath_types::{MatchId, Nanos, OrderId, Price, Qty, Sequence, Side};
use zerocopy::IntoBytes;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn a_heartbeat_names_the_next_sequence_and_offset() {
    let bytes = bytes("01000480010000000000814300000000000000000000000001000000000000008352940630acb814");
    let segment = Segment::parse(&bytes).unwrap();
    assert!(segment.is_heartbeat() && segment.is_first());
    assert_eq!((segment.feed(), segment.channel(), segment.session()), (Some(Feed::Deep10), 1, 0x4381_0000));
    assert_eq!((segment.sequence(), segment.next_sequence()), (Sequence(1), Sequence(1)));
    assert_eq!((segment.stream_offset(), segment.messages().count()), (0, 0));
    assert_eq!(segment.send_time(), Nanos(0x14b8_ac30_0694_5283));
    let mut builder = SegmentBuilder::new([0; 40], Feed::Deep10, 1, 0x4381_0000);
    assert_eq!(builder.finish(segment.send_time()), bytes);
}

#[test]
fn orders_of_deep_plus_are_read_field_by_field() {
    let add = bytes("61351e7711156155fa1749424b52202020200a000000000063006400000008d4140000000000");
    let Ok(Message::AddOrder(message)) = Message::parse(&add) else { panic!() };
    assert_eq!((message.side.side(), message.symbol.as_str()), (Some(Side::Sell), "IBKR"));
    assert_eq!(message.order_id.get(), OrderId(27_866_022_694_354_954));
    assert_eq!((message.size.get(), message.price.get()), (Qty(100), Price(1_365_000)));
    let written = AddOrder::new(
        Side::Sell,
        message.timestamp,
        Ticker::new("IBKR").unwrap(),
        OrderId(27_866_022_694_354_954),
        100,
        1_365_000,
    );
    assert_eq!(written.as_bytes(), add);

    let delete = bytes("52204a97fec26155fa1749424b52202020200a00000000006300");
    let Ok(Message::OrderDelete(message)) = Message::parse(&delete) else { panic!() };
    assert_eq!((message.reserved, message.order_id.get()), (0x20, OrderId(27_866_022_694_354_954)));

    let modify = bytes("4d00ce8b8436a455fa1749424b5220202020ae00000000006300c8000000841b150000000000");
    let Ok(Message::OrderModify(message)) = Message::parse(&modify) else { panic!() };
    assert!(!message.flags.has(tickpath_iex::ModifyFlags::KEEPS_PRIORITY));
    assert_eq!(message.order_id.get(), OrderId(27_866_022_694_355_118));
    assert_eq!((message.size.get(), message.price.get()), (Qty(200), Price(1_383_300)));

    let executed =
        bytes("4c409c378e7c6855fa1749424b52202020200d0000000000630064000000a00e1500000000001800000000006300");
    let Ok(Message::OrderExecuted(message)) = Message::parse(&executed) else { panic!() };
    assert_eq!(message.order_id.get(), OrderId(27_866_022_694_354_957));
    assert_eq!((message.size.get(), message.price.get()), (Qty(100), Price(1_380_000)));
    assert_eq!(message.trade_id.get(), MatchId(27_866_022_694_354_968));
}

#[test]
fn a_level_of_deep_and_a_trade_are_read_field_by_field() {
    let level = bytes("3801ff62f0b34aacb8145a4945585420202090010000b00b030000000000");
    let Ok(Message::PriceLevelUpdate(message)) = Message::parse(&level) else { panic!() };
    assert_eq!((message.side(), message.symbol.as_str()), (Side::Buy, "ZIEXT"));
    assert_eq!((message.size.get(), message.price.get()), (Qty(400), Price(199_600)));
    assert!(message.event_flags.is_complete());
    let ticker = Ticker::new("ZIEXT").unwrap();
    let written = PriceLevelUpdate::of(Side::Buy, true, message.timestamp, ticker, 400, 199_600);
    assert_eq!(written.as_bytes(), level);

    let trade = bytes("5440ecfd4fba8a55fa1749424b52202020206400000074f41400000000009000000000006300");
    let Ok(Message::TradeReport(message)) = Message::parse(&trade) else { panic!() };
    assert_eq!(message.flags, SaleFlags::EXTENDED_HOURS);
    assert_eq!((message.size.get(), message.price.get()), (Qty(100), Price(1_373_300)));
    // A trade report of TOPS 1.5 has four more bytes, which are reserved.
    let mut longer = trade.clone();
    longer.extend([0; 4]);
    assert_eq!(Message::parse(&longer), Ok(Message::TradeReport(message)));
}

#[test]
fn longer_messages_and_unknown_types_are_no_errors_and_shorter_ones_are() {
    #[derive(Default)]
    struct ReceivedTypes(Vec<u8>, usize);
    impl Listener for ReceivedTypes {
        fn on_system_event(&mut self, message: &SystemEvent) {
            assert_eq!(message.event, SystemEventCode::END_OF_MESSAGES);
            self.0.push(message.message_type);
        }
        fn on_quote_update(&mut self, message: &QuoteUpdate) {
            self.0.push(message.message_type);
        }
        fn on_unknown(&mut self, message_type: u8, message: &[u8]) {
            self.0.push(message_type);
            self.1 += message.len();
        }
    }
    let mut received = ReceivedTypes::default();
    let mut grown = SystemEvent::new(SystemEventCode::END_OF_MESSAGES, 7).as_bytes().to_vec();
    grown.extend(b"something new");
    decode(&grown, &mut received).unwrap();
    decode(b"zoo", &mut received).unwrap();
    assert_eq!((received.0.as_slice(), received.1), (&b"Sz"[..], 3));
    assert!(decode(&[], &mut received).unwrap_err().0.contains("empty"));
    for &message_type in tickpath_iex::MESSAGE_TYPES {
        let min = message_len_min(message_type).unwrap();
        let message = vec![message_type; min];
        assert!(Message::parse(&message).is_ok());
        for len in 1..min {
            let error = decode(&message[..len], &mut received).unwrap_err();
            assert!(error.0.contains("shorter"));
            assert_eq!(Message::parse(&message[..len]), Err(error));
        }
    }
    assert_eq!(received.0, b"Sz", "no message that is too short was delivered");
}

fn three_trades() -> Vec<u8> {
    let trade = TradeReport::new(SaleFlags(0), 5, Ticker::new("A").unwrap(), 100, 10_000, 77);
    let mut builder = SegmentBuilder::new(vec![0; 199], Feed::Tops16, 1, 9);
    for _ in 0..3 {
        builder.push(trade.as_bytes()).unwrap();
    }
    assert_eq!(builder.push(trade.as_bytes()).unwrap_err().remaining, 37);
    assert_eq!((builder.next_sequence(), builder.next_offset()), (Sequence(4), 120));
    builder.finish(Nanos(99)).to_vec()
}

#[test]
fn every_cut_of_a_segment_and_every_wrong_count_is_an_error() {
    let whole = three_trades();
    for len in 0..whole.len() {
        assert!(Segment::parse(&whole[..len]).is_err(), "{len}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(Segment::parse(&longer).unwrap_err().0.contains("length"));

    let spoil = |at: usize, bytes: &[u8]| {
        let mut spoiled = whole.clone();
        spoiled[at..at + bytes.len()].copy_from_slice(bytes);
        Segment::parse(&spoiled).unwrap_err().0
    };
    assert!(spoil(0, &[2]).contains("version"));
    for count in [0_u16, 2, 4, u16::MAX] {
        assert!(spoil(14, &count.to_le_bytes()).contains("do not fill"));
    }
    assert!(spoil(40, &[39, 0]).contains("do not fill"));
    for at in [16, 24] {
        assert!(spoil(at, &(-1_i64).to_le_bytes()).contains("out of range"));
        assert!(spoil(at, &i64::MAX.to_le_bytes()).contains("out of range"));
    }
}

#[test]
fn an_empty_block_takes_a_number() {
    let mut builder = SegmentBuilder::resuming([0; 64], 0x8004, 3, 9, Sequence(41), 1_000);
    builder.push(b"").unwrap();
    builder.push(b"z").unwrap();
    let bytes = builder.finish(Nanos(1)).to_vec();
    assert_eq!(bytes.len(), Header::LEN + 5);
    let segment = Segment::parse(&bytes).unwrap();
    let messages: Vec<_> = segment.messages().collect();
    assert_eq!(messages, [(Sequence(41), &b""[..]), (Sequence(42), &b"z"[..])]);
    assert_eq!(builder.finish(Nanos(2)).len(), Header::LEN, "a heartbeat");
    assert_eq!((builder.next_sequence(), builder.next_offset()), (Sequence(43), 1_005));
}

#[test]
fn requests_for_gap_fill_are_checked_range_by_range() {
    let mut buffer = [0; Request::LEN_MAX];
    let ranges = [Range::new(5, 7), Range::new(9, 9)];
    let bytes = Request::encode(0x8004, 1, 0x4381_0000, &ranges, &mut buffer).unwrap().to_vec();
    assert_eq!(
        bytes,
        [
            &[1, 1, 4, 0x80, 1, 0, 0, 0, 0, 0, 0x81, 0x43, 2, 0, 0, 0][..],
            &[5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0],
            &[9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat()
    );
    let (request, len) = Request::parse_prefix(&bytes).unwrap().unwrap();
    assert_eq!((request.ranges, len, request.message_count()), (&ranges[..], 48, 4));
    for len in 0..bytes.len() {
        assert_eq!(Request::parse_prefix(&bytes[..len]), Ok(None));
    }
    let refused = |first: [(u64, u64); 2]| {
        let ranges = first.map(|(first, last)| Range::new(first, last));
        let mut buffer = [0; Request::LEN_MAX];
        Request::parse_prefix(Request::encode(0x8004, 1, 9, &ranges, &mut buffer).unwrap()).unwrap_err().0
    };
    assert!(refused([(5, 4), (9, 9)]).contains("ascend"));
    assert!(refused([(0, 4), (9, 9)]).contains("ascend"));
    assert!(refused([(5, 9), (9, 9)]).contains("ascend"));
    let spoil = |at: usize, byte: u8| {
        let mut spoiled = bytes.clone();
        spoiled[at] = byte;
        Request::parse_prefix(&spoiled).unwrap_err().0
    };
    assert!(spoil(0, 2).contains("version"));
    assert!(spoil(1, 2).contains("other than messages"));
    assert!(spoil(12, 65).contains("ranges"));
    // A test request has no ranges.
    let test = Request::encode(0x8004, 1, 9, &[], &mut buffer).unwrap();
    assert_eq!(Request::parse_prefix(test).unwrap().unwrap().0.message_count(), 0);
    assert_eq!(Request::encode(0x8004, 1, 9, &[Range::new(1, 1); 65], &mut [0; Request::LEN_MAX]), None);
}

fn write(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 200];
    let len = snap::encode(frame, &mut buffer).unwrap();
    buffer.truncate(len);
    buffer
}

#[test]
fn snapshot_frames_have_the_lengths_of_their_sheet() {
    let token = Alpha::new("SECRET").unwrap();
    let request = SnapshotRequest { token, channel: 1, session: 0x4381_0000, minimum: Sequence(12) };
    let bytes = write(&Frame::Request(request));
    assert_eq!((bytes.len(), &bytes[..3], &bytes[3..10]), (59, &[57, 0, b'r'][..], &b"SECRET "[..]));
    assert_eq!((&bytes[43..47], &bytes[51..59]), (&[1, 0, 0, 0][..], &12_u64.to_le_bytes()[..]));
    assert_eq!(write(&Frame::Error(ErrorCode::NOT_YET)), [2, 0, b'e', b'R']);
    assert_eq!(write(&Frame::Start { total_len: 100 }), [9, 0, b's', 100, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(write(&Frame::End { sequence: Sequence(7) }), [9, 0, b'x', 7, 0, 0, 0, 0, 0, 0, 0]);

    // Lengths in the specification's example: frame 76, payload 35, outer block 33, directory message 31.
    let whole = three_trades();
    let header = Segment::parse(&whole).unwrap().header();
    let directory = [b'D'; 31];
    let data = write(&Frame::Data { header, message: &directory });
    assert_eq!((data.len(), data[0], data[3 + 12], data[43], data[45]), (78, 76, 35, 33, 31));
    let (frame, len) = snap::next_frame(&data).unwrap().unwrap();
    let Frame::Data { header, message } = frame else { panic!() };
    assert_eq!((header.message_count.get(), message, len), (1, &directory[..], 78));

    // If the outer block has no inner length, the whole block is the message.
    let mut plain = data.clone();
    plain.drain(45..47);
    (plain[0], plain[43]) = (74, 31);
    let Ok(Some((Frame::Data { message, .. }, 76))) = snap::next_frame(&plain) else { panic!() };
    assert_eq!(message, directory);
}

#[test]
fn cut_snapshot_frames_wait_and_wrong_ones_are_errors() {
    let whole = three_trades();
    let header = Segment::parse(&whole).unwrap().header();
    let token = Alpha::new("").unwrap();
    let request = SnapshotRequest { token, channel: 1, session: 2, minimum: Sequence(0) };
    for frame in [
        Frame::Request(request),
        Frame::Error(ErrorCode::SESSION),
        Frame::Start { total_len: 22 },
        Frame::Data { header, message: b"abc" },
        Frame::End { sequence: Sequence(3) },
        Frame::Unknown { frame_type: b'?' },
    ] {
        let bytes = write(&frame);
        for len in 0..bytes.len() {
            assert_eq!(snap::next_frame(&bytes[..len]), Ok(None), "{frame:?}");
        }
        assert_eq!(write(&snap::next_frame(&bytes).unwrap().unwrap().0), bytes);
    }
    let refused = |bytes: &[u8]| snap::next_frame(bytes).unwrap_err().0;
    assert!(refused(&[0, 0, b'r']).contains("length zero"));
    assert!(refused(&[58, 0, b'r']).contains("another length"));
    let mut below = write(&Frame::End { sequence: Sequence(3) });
    below[10] = 0xff;
    assert!(refused(&below).contains("below zero"));
    let mut wrong = write(&Frame::Data { header, message: b"abc" });
    wrong[43] = 99;
    assert!(refused(&wrong).contains("another length"));
}

#[test]
fn every_byte_of_every_message_is_in_a_field() {
    let sum = |message: &[u8]| {
        let mut sum = 0_u64;
        let mut fields = Fields(|fields: &[u64]| {
            sum = fields.iter().fold(sum, |sum, field| sum.rotate_left(9).wrapping_mul(31) ^ field);
        });
        decode(message, &mut fields).unwrap();
        sum
    };
    for message_type in MESSAGE_TYPES.iter().chain(b"z") {
        let len = message_len_min(*message_type).unwrap_or(21);
        let mut message: Vec<u8> = (0..len as u8).map(|byte| byte.wrapping_mul(37) ^ 0x5a).collect();
        message[0] = *message_type;
        let plain = sum(&message);
        for byte in 1..len {
            let mut changed = message.clone();
            changed[byte] ^= 1;
            assert_ne!(sum(&changed), plain, "byte {byte} of {}", *message_type as char);
        }
    }
}

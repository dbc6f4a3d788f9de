//! Bytes of events, requests and frames; round trips; every truncation and corruption.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tickpath_gateway_protocol::frame::{
    FRAME_LEN_MAX, Frame, FrameError, Hello, Password, Refusal, RefusalReason, Welcome, frame_len,
};
use tickpath_gateway_protocol::{
    AckStatus, AckType, BookUpdate, CreateOrder, ErrorCode, Event, EventKind, ExecutionFlags, Fixed, Level,
    MarketByPrice, Money, OrderAck, OrderType, Origin, QuoteAck, Request, RequestKind, SessionId, Side, Text,
    TimeInForce, TopOfBook, flags,
};
use zerocopy::{FromBytes, IntoBytes};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_event_has_these_bytes() {
    let mut event = Event::of(&OrderAck {
        client_order_id: 1_001,
        order_id: 10_000_001,
        request_id: 7,
        external_order_id: Text::new("ETH-584849853").unwrap(),
        round_trip_ns: 30_000_000,
        origin: Origin::EXCHANGE,
        status: AckStatus::REJECTED,
        request: AckType::CREATE,
        side: Side::SELL,
        error: ErrorCode::VENUE,
        text: Text::new("not_enough_funds (10009)").unwrap(),
        ..OrderAck::default()
    });
    event.header.source = 1;
    event.header.stream = 2;
    event.header.account = 3;
    event.header.symbol = 4;
    event.header.session = SessionId([5, 6]);
    event.header.sequence = 7;
    event.header.receive_ns = 8;
    event.header.send_ns = 9;
    event.header.origin_ns = 10;
    event.header.origin_utc_ns = 11;
    let expected = concat!(
        "1e00",
        "0100",
        "01",
        "02",
        "0300",
        "04000000",
        "70000000",
        "0500000000000000",
        "0600000000000000",
        "0700000000000000",
        "0800000000000000",
        "0900000000000000",
        "0a00000000000000",
        "0b00000000000000",
        "e903000000000000",
        "8196980000000000",
        "0700000000000000",
        "4554482d3538343834393835330000000000000000000000",
        "80c3c90100000000",
        "03",
        "03",
        "01",
        "02",
        "1400",
        "0000",
        "6e6f745f656e6f7567685f66756e6473202831303030392900000000000000000000000000000000000000000000000000",
    )[..]
        .to_owned();
    let bytes = hex(event.as_bytes());
    assert_eq!(bytes.len(), 2 * 184);
    assert_eq!(&bytes[..], &expected[..2 * 184]);
    assert_eq!(Event::read_from_bytes(event.as_bytes()).unwrap(), event);
    assert_eq!(
        event.to_string(),
        "order_ack symbol=4 account=3 source=1 stream=2 sequence=7 receive_ns=8 send_ns=9 origin_ns=10 \
         origin_utc_ns=11 last_in_batch client_order_id=1001 order_id=10000001 request_id=7 \
         external_order_id=\"ETH-584849853\" round_trip_ns=30000000 origin=exchange status=rejected \
         request=create side=sell error=venue text=\"not_enough_funds (10009)\""
    );
}

#[test]
fn a_request_has_these_bytes() {
    let mut request = Request::of(&CreateOrder {
        price: "64250.5".parse().unwrap(),
        quantity: Fixed::ONE,
        side: Side::BUY,
        order_type: OrderType::LIMIT,
        time_in_force: TimeInForce::GTC,
        execution: ExecutionFlags::POST_ONLY.with(ExecutionFlags::REDUCE_ONLY),
        ..CreateOrder::default()
    });
    request.header.account = 1;
    request.header.symbol = 2;
    request.header.request_id = 3;
    request.header.client_order_id = 1_001;
    request.header.create_ns = 5;
    let expected = concat!(
        "0100",
        "0000",
        "0100",
        "0000",
        "02000000",
        "00000000",
        "0300000000000000",
        "e903000000000000",
        "0000000000000000",
        "0500000000000000",
        "80aad2f2d7050000",
        "00e1f50500000000",
        "0000000000000000",
        "0000000000000000",
        "01",
        "01",
        "01",
        "00",
        "0500",
        "0000",
    );
    assert_eq!(hex(request.as_bytes())[..expected.len()], *expected);
    assert_eq!(request.as_bytes().len(), 120);
    assert!(request.as_bytes()[expected.len() / 2..].iter().all(|byte| *byte == 0));
    assert_eq!(request.body::<CreateOrder>().unwrap().price.to_string(), "64250.5");
    assert_eq!(request.body::<tickpath_gateway_protocol::CancelOrder>(), None);
    assert_eq!(
        request.to_string(),
        "create_order symbol=2 account=1 request_id=3 client_order_id=1001 create_ns=5 price=64250.5 quantity=1 \
         stop_price=0 max_show=0 side=buy order_type=limit time_in_force=gtc execution=5"
    );
}

#[test]
fn bodies_of_another_kind_are_not_taken() {
    let event = Event::of(&TopOfBook::default());
    assert!(event.body::<OrderAck>().is_none() && event.quote_ack().is_none());
    let ack =
        Event::of_quote_ack(EventKind::CANCEL_ALL_ACK, &QuoteAck { request_id: 9, ..QuoteAck::default() });
    assert_eq!(ack.quote_ack().map(|ack| ack.request_id), Some(9));
    assert_eq!(Event::empty().to_string(), "0");
    assert!(event.is_last_in_batch() && !event.with_more().is_last_in_batch());
    assert_eq!(event.with_more().header.flags & flags::LAST_IN_BATCH, 0);
}

#[test]
fn levels_whose_counts_cannot_be_are_cut() {
    let level = Level { price: Fixed::ONE, quantity: Fixed(2) };
    let mut book = MarketByPrice { update: BookUpdate::SNAPSHOT, ..MarketByPrice::default() };
    assert!(book.push(Side::BUY, level) && book.push(Side::SELL, level));
    assert_eq!((book.bid_levels(), book.ask_levels()), (&[level][..], &[level][..]));
    for _ in 2..6 {
        assert!(book.push(Side::SELL, level));
    }
    assert!(!book.push(Side::SELL, level));
    let broken = MarketByPrice { bids: 200, asks: 200, ..book };
    assert_eq!((broken.bid_levels().len(), broken.ask_levels().len()), (6, 0));
    assert!(
        Event::of(&book).to_string().ends_with(
            "levels=0.00000002x1,0.00000002x1,0.00000002x1,0.00000002x1,0.00000002x1,0.00000002x1"
        )
    );
}

fn hello() -> Hello {
    let password = Password::new(b"correct horse").unwrap();
    Hello::new(Text::new("maker-1").unwrap(), Text::new("alice").unwrap(), password, true)
}

fn frames() -> [Frame; 3] {
    let welcome = Welcome {
        session: SessionId([1, 2]),
        client: 1,
        capabilities: 3,
        heartbeat_ns: 1_000_000_000,
        segment: Text::new("deribit").unwrap(),
        folder: Text::new("/dev/shm/tickpath-1000").unwrap(),
        ..Welcome::default()
    };
    let refusal = Refusal { reason: RefusalReason::BANNED, version: 1, retry_after_ns: 5 };
    [Frame::Hello(hello()), Frame::Welcome(welcome), Frame::Refusal(refusal)]
}

#[test]
fn frames_come_back_and_no_part_of_one_is_taken() {
    for frame in frames() {
        let mut bytes = [0; FRAME_LEN_MAX + 1];
        let len = frame.encode(&mut bytes).unwrap();
        assert_eq!(frame.encode(&mut bytes[..len - 1]), None);
        assert_eq!(frame_len(*bytes.first_chunk().unwrap()), Ok(len));
        assert_eq!(Frame::decode(&bytes), Ok(Some((frame, len))));
        for end in 0..len {
            assert_eq!(Frame::decode(&bytes[..end]), Ok(None), "{end}");
        }
    }
    let mut bytes = [0; FRAME_LEN_MAX];
    let len = frames()[2].encode(&mut bytes).unwrap();
    assert_eq!(hex(&bytes[..len]), "1000000003000000020000000100000005000000000000000"[..48].to_owned());
    let len = frames()[0].encode(&mut bytes).unwrap();
    let start =
        concat!("a0000000", "01000000", "5449434b47415445", "01000000", "01000000", "b8000000", "78000000");
    assert_eq!(hex(&bytes[..len])[..start.len()], *start);
}

#[test]
fn hellos_that_make_no_sense_are_refused() {
    let mut bytes = [0; FRAME_LEN_MAX];
    let len = Frame::Hello(hello()).encode(&mut bytes).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes;
        bytes[at] = byte;
        Frame::decode(&bytes[..len])
    };
    let malformed = Err(FrameError::Malformed);
    assert_eq!(with(0, 0xff), malformed);
    assert_eq!(with(4, 9), malformed);
    assert_eq!(with(8, 0), malformed);
    assert_eq!(with(16, 2), Err(FrameError::Version { version: 2 }));
    assert_eq!(with(24, 0), Err(FrameError::Version { version: 1 }));
    assert_eq!(with(20, 3), malformed);
    assert_eq!(with(32, 0), malformed, "a client has a name");
    assert_eq!(with(32 + 31, b'x'), malformed, "zeros follow a name");
    assert_eq!(with(64, 0x1b), malformed);
    assert_eq!(with(96, 65), malformed);
    assert_eq!(with(96 + 8 + 63, 1), malformed);
}

#[test]
fn a_password_is_never_shown() {
    assert_eq!(Password::new(&[b'x'; 65]), None);
    assert_eq!(Password::new(&[b'x'; 64]).unwrap().expose(), [b'x'; 64]);
    let shown = format!("{:?}", Frame::Hello(hello()));
    assert!(shown.contains("alice") && !shown.contains("horse"), "{shown}");
}

proptest! {
    #[test]
    fn fixed_numbers_come_back_from_their_text(units: i64) {
        let number = Fixed(units);
        prop_assert_eq!(number.to_string().parse::<Fixed>(), Ok(number));
    }

    #[test]
    fn money_comes_back_from_its_text(units: i128) {
        let money = Money::new(units);
        // Near the ends of the range the text's last digits exceed a 128-bit mantissa.
        if units.unsigned_abs() < 1 << 126 {
            prop_assert_eq!(money.to_string().parse::<Money>(), Ok(money));
        }
    }

    #[test]
    fn any_bytes_are_shown_without_harm(kind in 0_u16..50, bytes in proptest::collection::vec(any::<u8>(), 184)) {
        let mut event = Event::read_from_bytes(&bytes).unwrap();
        event.header.kind = EventKind(kind);
        prop_assert!(event.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        let mut request = Request::read_from_bytes(&bytes[..120]).unwrap();
        request.header.kind = RequestKind(kind);
        prop_assert!(request.to_string().is_ascii());
        let _ = Frame::decode(&bytes);
    }
}

#[test]
fn docs_clients_md_says_where_things_are() {
    use std::mem::offset_of;
    use tickpath_gateway_protocol::{EventHeader, RequestHeader};
    assert_eq!((size_of::<Hello>(), size_of::<Welcome>(), size_of::<Refusal>()), (160, 360, 16));
    assert_eq!([offset_of!(Hello, name), offset_of!(Hello, user), offset_of!(Hello, password)], [24, 56, 88]);
    assert_eq!([offset_of!(Welcome, broadcast_sequence), offset_of!(Welcome, segment)], [56, 64]);
    assert_eq!(
        [offset_of!(Welcome, folder), offset_of!(Welcome, gateway), offset_of!(Welcome, source)],
        [128, 288, 352]
    );
    assert_eq!([offset_of!(EventHeader, session), offset_of!(EventHeader, origin_utc_ns)], [16, 64]);
    assert_eq!([offset_of!(RequestHeader, request_id), offset_of!(RequestHeader, create_ns)], [16, 40]);
}

//! Recorded messages field by field, and the errors of invalid ones.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_fix::deribit::{
    Credentials, ExecType, ExecutionReport, FillLiquidity, LogonClock, MarketDataIncremental,
    MarketDataRequest, MdEntryType, MdUpdateAction, MdUpdateType, OrdStatus, OrdType, OrderCancelReject,
    PositionReport, QtyType, RAW_DATA_LEN_MAX, SecurityList, SideCode, SubscriptionRequestType, password,
    raw_data, timestamp_of, verify,
};
use tickpath_fix::session::{Logout, Reject};
use tickpath_fix::{
    Body, Decimal, FieldError, FrameError, Message, MsgType, Parsed, SessionRejectReason, WriteError, Writer,
    parse_time, tag,
};

/// Messages of Deribit and its clients from 2019, one per line.
const RECORDED: &[u8] = include_bytes!("data/messages.txt");

fn recorded() -> Vec<&'static [u8]> {
    let lines: Vec<_> = RECORDED.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 10);
    lines
}

#[track_caller]
fn parse(bytes: &[u8]) -> Message<'_> {
    match Message::parse(bytes) {
        Parsed::Complete { message, len } if len == bytes.len() => message,
        other => panic!("{other:?}"),
    }
}

/// Creates a message from fields separated by `|`.
fn message(fields: &str) -> Vec<u8> {
    let body = fields.replace('|', "\x01") + "\x01";
    let mut message = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
    let sum = message.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    message.extend(format!("10={sum:03}\x01").bytes());
    message
}

#[track_caller]
fn decimal(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).unwrap()
}

#[test]
fn recorded_messages_are_whole_and_written_as_they_came() {
    for line in recorded() {
        let message = parse(line);
        let mut buffer = vec![0; line.len() + 1];
        let mut writer = Writer::new(&mut buffer, message.msg_type());
        message.fields().skip(1).for_each(|field| writer.copy(field.unwrap()));
        let len = writer.finish().unwrap();
        assert_eq!(&buffer[..len], line);
        for field in message.fields() {
            assert!(tag::name(field.unwrap().tag).is_some(), "{field:?}");
        }
        assert!(message.msg_type().name().is_some());
    }
}

#[test]
fn an_execution_report_is_read_field_by_field() {
    let report = ExecutionReport::decode(&parse(recorded()[0])).unwrap();
    let expected = ExecutionReport {
        ord_status: OrdStatus::CANCELLED,
        exec_type: Some(ExecType::ORDER_STATUS),
        order_id: Some("2831903667"),
        cl_ord_id: Some("2831903667"),
        orig_cl_ord_id: Some("123"),
        side: Some(SideCode::BUY),
        transact_time: parse_time(b"20190908-17:18:38.983"),
        leaves_qty: Some(decimal("1")),
        cum_qty: Some(decimal("0")),
        order_qty: Some(decimal("1")),
        ord_type: Some(OrdType::LIMIT),
        price: Some(decimal("0.5")),
        ord_rej_reason: Some(0),
        text: Some("success"),
        security_exchange: Some("DERIBITSERVER"),
        symbol: Some("BTC-27SEP19"),
        qty_type: Some(QtyType::CONTRACTS),
        contract_multiplier: Some(decimal("10")),
        avg_px: Some(decimal("0")),
        max_show: Some(decimal("1")),
        label: Some("roq;123;345"),
        ..ExecutionReport::default()
    };
    assert_eq!(report, expected);
}

#[test]
fn fills_of_a_report_are_a_group() {
    let report = ExecutionReport::decode(&parse(recorded()[1])).unwrap();
    assert_eq!((report.ord_status, report.side), (OrdStatus::FILLED, Some(SideCode::BUY)));
    assert_eq!(report.commission, Some(decimal("-0.00000021")));
    assert_eq!((report.last_px, report.last_qty), (Some(decimal("9593.5")), Some(decimal("1"))));
    let fills: Vec<_> = report.fills.iter().map(Result::unwrap).collect();
    assert_eq!(fills.len(), 1);
    assert_eq!(fills[0].fill_exec_id, "BTC-27DEC19#2350428");
    assert_eq!((fills[0].fill_px, fills[0].fill_qty), (decimal("9593.50"), decimal("1")));
    assert_eq!(fills[0].liquidity, Some(FillLiquidity::ADDED));
}

#[test]
fn changes_of_a_book_are_a_group() {
    let one = MarketDataIncremental::decode(&parse(recorded()[2])).unwrap();
    assert_eq!((one.symbol, one.md_req_id), ("BTC-27SEP19", Some("123")));
    assert_eq!(one.mark_price, Some(decimal("10517.44")));
    let changes: Vec<_> = one.changes.iter().map(Result::unwrap).collect();
    assert_eq!(changes.len(), 1);
    let change = changes[0];
    assert_eq!((change.action, change.entry_type), (MdUpdateAction::NEW, MdEntryType::OFFER));
    assert_eq!((change.price, change.size), (Some(decimal("10523")), Some(decimal("1000"))));
    assert_eq!(change.time, parse_time(b"20190907-15:37:00.896"));

    let trades = MarketDataIncremental::decode(&parse(recorded()[3])).unwrap();
    let trades: Vec<_> = trades.changes.iter().map(Result::unwrap).collect();
    let sizes: Vec<_> = trades.iter().map(|trade| trade.size.unwrap()).collect();
    assert_eq!(sizes, ["826", "42", "42", "42", "27"].map(decimal));
    assert!(trades.iter().all(|trade| trade.entry_type == MdEntryType::TRADE));
    assert_eq!((trades[4].trade_id, trades[4].trade_seq), (Some("18254685"), Some("2889358")));
    assert_eq!(trades[0].index_price, Some(decimal("10445.93")));
}

#[test]
fn the_sessions_messages_are_read() {
    let reject = Reject::decode(&parse(recorded()[4])).unwrap();
    assert_eq!((reject.ref_seq_num, reject.ref_msg_type), (5, Some("AN")));
    assert_eq!((reject.text, reject.reason), (Some("not_implemented"), None));
    assert_eq!(parse(recorded()[5]).require(tag::TEST_REQ_ID).unwrap().value, b"anybody in there?");
    assert_eq!(Logout::decode(&parse(recorded()[6])).unwrap().text, Some("invalid_credentials"));
    let request = MarketDataRequest::decode(&parse(recorded()[7])).unwrap();
    assert_eq!((request.symbol, request.md_req_id), (Some("BTC-PERPETUAL"), "203"));
    assert_eq!(request.subscription, SubscriptionRequestType::SUBSCRIBE);
    assert_eq!((request.market_depth, request.update_type), (Some(20), Some(MdUpdateType::INCREMENTAL)));
    let types: Vec<_> = request.entry_types.iter().map(|entry| entry.unwrap().entry_type).collect();
    assert_eq!(types, [MdEntryType::BID, MdEntryType::OFFER, MdEntryType::TRADE]);
    let reject = OrderCancelReject::decode(&parse(recorded()[9])).unwrap();
    assert_eq!((reject.cl_ord_id, reject.orig_cl_ord_id), (Some("345"), Some("123")));
    assert_eq!((reject.ord_status, reject.text), (Some(OrdStatus::REJECTED), Some("not_found")));
}

#[test]
fn messages_of_the_standard_are_written_byte_by_byte() {
    let expected = [
        "8=FIX.4.4|9=62|35=0|49=CLIENT|56=DERIBITSERVER|34=2|52=20260101-00:00:00.000|10=074|",
        "8=FIX.4.4|9=69|35=1|49=DERIBITSERVER|56=CLIENT|34=7|52=20260101-00:00:01.250|112=T7|10=188|",
    ]
    .map(|text| text.replace('|', "\x01").into_bytes());
    let now = parse_time(b"20260101-00:00:00").unwrap();
    let mut buffer = [0; 128];
    let mut writer = Writer::new(&mut buffer, MsgType::HEARTBEAT);
    writer.value(49, "CLIENT");
    writer.value(56, "DERIBITSERVER");
    writer.value(34, 2_u64);
    writer.time(52, now);
    let len = writer.finish().unwrap();
    assert_eq!(&buffer[..len], expected[0]);
    let mut writer = Writer::new(&mut buffer, MsgType::TEST_REQUEST);
    writer.value(49, "DERIBITSERVER");
    writer.value(56, "CLIENT");
    writer.value(34, 7_u64);
    writer.time(52, tickpath_types::Nanos(now.0 + 1_250_000_000));
    writer.value(112, "T7");
    let len = writer.finish().unwrap();
    assert_eq!(&buffer[..len], expected[1]);
    assert!(expected.iter().all(|bytes| parse(bytes).msg_type().is_admin()));
}

#[test]
fn every_truncation_needs_more_and_every_flipped_bit_is_garbled() {
    for line in recorded() {
        for len in 0..line.len() {
            let Parsed::NeedMore { len_min } = Message::parse(&line[..len]) else { panic!("{len}") };
            assert!(len_min > len && len_min <= line.len());
        }
        for bit in 0..line.len() * 8 {
            let mut flipped = line.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped.extend(line);
            match Message::parse(&flipped) {
                Parsed::Complete { .. } => panic!("bit {bit}"),
                Parsed::NeedMore { len_min } => assert!(len_min > flipped.len()),
                // The next message is still found.
                Parsed::Garbled { skip, .. } => assert_eq!(skip, line.len()),
            }
        }
    }
}

#[test]
fn what_is_no_message_is_garbled_for_a_reason() {
    let check = |bytes: &[u8], error: FrameError| match Message::parse_within(bytes, 1000) {
        Parsed::Garbled { error: found, skip } => {
            assert_eq!(found, error);
            assert!(skip > 0 && skip <= bytes.len());
            assert_eq!(found.to_string().lines().count(), 1);
        }
        other => panic!("{other:?}"),
    };
    check(b"8=FIX.4.2\x01", FrameError::BeginString);
    check(b"9", FrameError::BeginString);
    check(b"8=FIX.4.4\x019=x", FrameError::BodyLength);
    check(b"8=FIX.4.4\x019=\x01", FrameError::BodyLength);
    check(b"8=FIX.4.4\x019=0000000001\x01", FrameError::BodyLength);
    check(b"8=FIX.4.4\x019=999999999\x01", FrameError::TooLong { len: 1_000_000_028, len_max: 1000 });
    check(b"8=FIX.4.4\x019=5\x0135=0\x0110=x63\x01", FrameError::CheckSumFormat);
    check(b"8=FIX.4.4\x019=5\x0135=0\x0110=162\x01", FrameError::CheckSum { said: 162, computed: 163 });
    check(b"8=FIX.4.4\x019=4\x0135=0\x0110=163\x01 ", FrameError::BodyLength);
    check(b"8=FIX.4.4\x019=0\x0110=163\x01", FrameError::BodyLength);
    check(&message("36=0"), FrameError::MsgType);
    check(&message("35="), FrameError::MsgType);
    check(&message("35=ABCDE"), FrameError::MsgType);
    assert_eq!(parse(&message("35= 9|34=1")).msg_type(), MsgType::ORDER_CANCEL_REJECT);
    assert_eq!(Message::parse(b""), Parsed::NeedMore { len_min: 1 });
}

#[test]
fn data_may_hold_separators_and_says_its_length() {
    let with_data = message("35=A|95=5|96=a|b|c|108=30");
    let logon = parse(&with_data);
    assert_eq!(logon.find(96).unwrap().value, b"a\x01b\x01c");
    assert_eq!(logon.find(108).unwrap().value, b"30");
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer, MsgType::LOGON);
    writer.data(95, 96, b"a\x01b\x01c");
    writer.value(108, 30_u64);
    let len = writer.finish().unwrap();
    assert_eq!(&buffer[..len], with_data);
    // Without a length it is read as text.
    assert_eq!(parse(&message("35=A|96=abc|108=30")).find(96).unwrap().value, b"abc");
    let wrong = |fields: &str, tag, reason| {
        let bytes = message(fields);
        let last = parse(&bytes).fields().last().unwrap();
        assert_eq!(last, Err(FieldError { tag, reason }), "{fields}");
    };
    wrong("35=A|95=4|96=abc|108=30", 96, SessionRejectReason::BAD_FORMAT);
    wrong("35=A|95=999999999999999999|96=abc", 96, SessionRejectReason::BAD_FORMAT);
    wrong("35=A|95=9999999999999999999|96=abc", 95, SessionRejectReason::BAD_FORMAT);
    wrong("35=A|95=x|96=abc", 95, SessionRejectReason::BAD_FORMAT);
    wrong("35=A|95=3|108=30|96=abc", 108, SessionRejectReason::TAG_ORDER);
    wrong("35=A|95=3", 96, SessionRejectReason::REQUIRED_TAG_MISSING);
    wrong("35=A|95=0|96=|108=30", 96, SessionRejectReason::NO_VALUE);
    wrong("35=A|1=", 1, SessionRejectReason::NO_VALUE);
    wrong("35=A|01=x", 0, SessionRejectReason::INVALID_TAG);
    wrong("35=A|=x", 0, SessionRejectReason::INVALID_TAG);
    wrong("35=A|1234567890=x", 123_456_789, SessionRejectReason::INVALID_TAG);
    wrong("35=A|1", 1, SessionRejectReason::INVALID_TAG);
    wrong("35=A||", 0, SessionRejectReason::INVALID_TAG);
}

#[test]
fn wrong_fields_of_a_body_are_named() {
    let wrong = |fields: &str, tag, reason| {
        let bytes = message(fields);
        let error = ExecutionReport::decode(&parse(&bytes)).unwrap_err();
        assert_eq!(error, FieldError { tag, reason }, "{fields}");
        assert!(error.to_string().contains(&tag.to_string()));
    };
    wrong("35=8|37=1", 39, SessionRejectReason::REQUIRED_TAG_MISSING);
    wrong("35=8|39=0|39=0", 39, SessionRejectReason::TAG_TWICE);
    wrong("35=8|39=00", 39, SessionRejectReason::BAD_FORMAT);
    wrong("35=8|39=0|44=1e5", 44, SessionRejectReason::BAD_FORMAT);
    wrong("35=8|39=0|60=today", 60, SessionRejectReason::BAD_FORMAT);
    wrong("35=8|39=0|9008=y", 9008, SessionRejectReason::BAD_FORMAT);
    wrong("35=8|39=0|1362=2|1363=a|1364=1|1365=1", 1362, SessionRejectReason::GROUP_COUNT);
    wrong("35=8|39=0|1362=1|1363=a|1364=1|1365=1|1363=b", 1362, SessionRejectReason::GROUP_COUNT);
    wrong("35=8|39=0|1362=1|1364=1|1363=a", 1362, SessionRejectReason::GROUP_ORDER);
    wrong("35=8|39=0|1362=1", 1362, SessionRejectReason::GROUP_COUNT);
    wrong("35=8|39=0|1362=0|1363=a", 1362, SessionRejectReason::GROUP_COUNT);
    wrong("35=8|39=0|1362=999999999999999999|1363=a", 1362, SessionRejectReason::GROUP_COUNT);
    wrong("35=8|39=0|1362=0|1362=0", 1362, SessionRejectReason::TAG_TWICE);
    // Invalid fields of an entry are found on decoding, and end the group.
    let bytes = message("35=8|39=0|1362=3|1363=a|1364=1|1365=1|1363=b|1364=x|1365=1|1363=c|1364=1|1365=1");
    let report = ExecutionReport::decode(&parse(&bytes)).unwrap();
    let entries: Vec<_> = report.fills.iter().collect();
    assert!(entries[0].is_ok());
    let error = FieldError { tag: 1364, reason: SessionRejectReason::BAD_FORMAT };
    assert_eq!(report.check(), Err(error));
    assert_eq!(entries[1..], [Err(error)]);
}

#[test]
fn unknown_fields_do_not_matter_in_any_entry() {
    let bytes = message(
        "35=8|7777=x|39=0|1362=2|1363=a|1364=1|1365=1|8888=y|1363=b|9999=z|1364=2|1365=2|9998=z|58=t",
    );
    let report = ExecutionReport::decode(&parse(&bytes)).unwrap();
    let ids: Vec<_> = report.fills.iter().map(|fill| fill.unwrap().fill_exec_id).collect();
    assert_eq!((ids, report.text), (vec!["a", "b"], Some("t")));
    assert_eq!(report.check(), Ok(()));
}

#[test]
fn groups_lie_in_groups() {
    let bytes = message(
        "35=y|320=r|322=s|560=0|146=2|\
         55=BTC-PERPETUAL|107=perp|454=2|455=7|456=101|455=8|456=102|1205=1|1206=0|1208=0.5|965=1|225=20180814|\
         55=BTC-27DEC19|541=20191227-08:00:00|1205=2|1206=0|1208=0.0005|1206=0.005|1208=0.001|58=done",
    );
    let list = SecurityList::decode(&parse(&bytes)).unwrap();
    assert_eq!((list.securities.len(), list.text), (2, Some("done")));
    let securities: Vec<_> = list.securities.iter().map(Result::unwrap).collect();
    assert_eq!((securities[0].alt_ids.len(), securities[0].tick_rules.len()), (2, 1));
    assert_eq!(securities[0].status, Some(1));
    assert_eq!(securities[0].issued_at(), parse_time(b"20180814-00:00:00"));
    assert_eq!(securities[1].expires_at(), parse_time(b"20191227-08:00:00"));
    let steps: Vec<_> = securities[1].tick_rules.iter().map(|rule| rule.unwrap().increment).collect();
    assert_eq!(steps, [decimal("0.0005"), decimal("0.001")]);
    // A nested group does not extend into the next entry.
    let bytes = message("35=y|320=r|146=2|55=X|454=2|455=a|55=Y|454=1|455=b");
    let list = SecurityList::decode(&parse(&bytes)).unwrap();
    assert_eq!(list.check(), Err(FieldError { tag: 454, reason: SessionRejectReason::GROUP_COUNT }));
}

#[test]
fn a_position_has_text_where_the_standard_has_data() {
    let bytes = message("35=AP|721=1|710=r|724=0|728=0|702=1|703=TQ|704=5|705=0|55=X|96=1.5;2.5;3.5|730=100");
    let report = PositionReport::decode(&parse(&bytes)).unwrap();
    let position = report.positions.iter().next().unwrap().unwrap();
    assert_eq!((position.raw_data, position.long_qty), (Some("1.5;2.5;3.5"), Some(decimal("5"))));
    assert_eq!(position.settl_price, Some(decimal("100")));
}

#[test]
fn a_password_is_as_deribit_computes_it() {
    let nonce: Vec<u8> = (0..32).collect();
    let mut buffer = [0; RAW_DATA_LEN_MAX];
    let raw = raw_data(1_576_074_319_000, &nonce, &mut buffer).unwrap();
    assert_eq!(raw, "1576074319000.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    let expected = b"KhEEctkx5J5L4vF9tjgS9LLvuSYpmYSXJvpzh3R/14U=";
    assert_eq!(&password(raw, b"AMANDASECRECT"), expected);
    assert!(verify(raw, b"AMANDASECRECT", expected));
    assert!(!verify(raw, b"AMANDASECRET", expected) && !verify(raw, b"AMANDASECRECT", &expected[..43]));
    assert!(!verify(raw, b"AMANDASECRECT", b""));
    assert_eq!(timestamp_of(raw), Some(1_576_074_319_000));
    for wrong in ["", "1576074319000", "1576074319000.", ".abc", "-1.abc", "x.abc"] {
        assert_eq!(timestamp_of(wrong), None, "{wrong}");
    }
    for len in [0, 31, 513] {
        assert_eq!(raw_data(1, &vec![0; len], &mut [0; RAW_DATA_LEN_MAX]).unwrap_err().len, len);
    }
    assert_eq!(raw_data(u64::MAX, &[0; 512], &mut buffer).unwrap().len(), RAW_DATA_LEN_MAX);
    let credentials = Credentials { raw_data: Some("1.abc"), username: Some("me"), ..Credentials::default() };
    let len = credentials.write_bare(&mut buffer).unwrap();
    assert_eq!(Credentials::decode(&parse(&buffer[..len])), Ok(credentials));
}

#[test]
fn logon_timestamps_grow() {
    let mut clock = LogonClock::after(10);
    assert_eq!([clock.next(5), clock.next(5), clock.next(100), clock.next(100)], [11, 12, 100, 101]);
    let mut seen = LogonClock::default();
    assert_eq!([seen.admit(5), seen.admit(5), seen.admit(4), seen.admit(6)], [true, false, false, true]);
}

#[test]
fn a_short_buffer_and_a_wrong_value_are_errors() {
    let line = recorded()[1];
    let report = ExecutionReport::decode(&parse(line)).unwrap();
    let mut buffer = [0; 1000];
    let len = report.write_bare(&mut buffer).unwrap();
    for short in 0..len {
        let error = report.write_bare(&mut buffer[..short]).unwrap_err();
        assert!(matches!(error, WriteError::BufferTooShort { .. }), "{short}");
    }
    assert_eq!(report.write_bare(&mut buffer[..len]), Ok(len));
    for text in ["", "a\x0139=2"] {
        let wrong = ExecutionReport { text: Some(text), ..report };
        assert_eq!(wrong.write_bare(&mut buffer), Err(WriteError::BadValue { tag: 58 }));
    }
    assert_eq!(ExecutionReport::default().write_bare(&mut buffer), Err(WriteError::BadValue { tag: 39 }));
}

#[test]
fn a_body_of_any_length_is_written() {
    for text_len in 1..2000 {
        let text = "x".repeat(text_len);
        let mut buffer = vec![0; 2100];
        let len = Logout { text: Some(&text), ..Logout::default() }.write_bare(&mut buffer).unwrap();
        assert_eq!(Logout::decode(&parse(&buffer[..len])).unwrap().text, Some(text.as_str()));
        let mut exact = vec![0; len + 1];
        assert_eq!(Logout { text: Some(&text), ..Logout::default() }.write_bare(&mut exact), Ok(len));
    }
}

//! Tests that encode and decode OUCH messages: accepted and refused requests, reason codes, and all answers.
#![allow(clippy::unwrap_used, reason = "functions that tests share do not count as tests")]

use tickpath_nasdaq::ouch50::{self, *};
use tickpath_nasdaq::wire::{Alpha, Stock};
use tickpath_types::{
    BrokenReason, CancelOrder, CancelReason, ClientOrderId, EnterOrder, InstrumentId, Liquidity, MassCancel,
    MatchId, ModifyOrder, Nanos, OrderAttributes, OrderEvent, OrderEventKind, OrderId, OrderInstructions,
    OrderRequest, OrderState, Price, Qty, RejectReason, SelfTradePrevention, Sequence, SessionId,
    SetOrderEntry, Side, Symbol, TimeInForce, UserRefNum,
};
use zerocopy::IntoBytes;

const ALPHA: InstrumentId = InstrumentId(1);

fn instrument_of(symbol: Symbol) -> Option<InstrumentId> {
    (symbol.as_str() == "ALPHA").then_some(ALPHA)
}

fn symbol_of(instrument: InstrumentId) -> Option<Symbol> {
    (instrument == ALPHA).then(|| Symbol::new("ALPHA").unwrap())
}

fn order() -> EnterOrder {
    EnterOrder {
        client_order_id: ClientOrderId(*b"CLIENT-ORDER-1"),
        ..EnterOrder::limit(UserRefNum(7), ALPHA, Side::Sell, Qty(100), Price(1_002_500))
    }
}

/// Encodes an Enter Order message: fixed fields that `change` modifies, followed by `options`.
fn entered(change: impl FnOnce(&mut ouch50::EnterOrder), options: &[TagValue<'_>]) -> Vec<u8> {
    let mut message = ouch50::EnterOrder::new(
        7,
        SideMarking::SELL,
        100,
        Stock::new("ALPHA").unwrap(),
        1_002_500,
        TimeInForceCode::DAY,
        Display::VISIBLE,
        Capacity::PRINCIPAL,
        YesNo::NO,
        CrossType::CONTINUOUS,
        *b"CLIENT-ORDER-1",
    );
    change(&mut message);
    with_options(&message, options)
}

fn with_options<M: IntoBytes + zerocopy::Immutable>(message: &M, options: &[TagValue<'_>]) -> Vec<u8> {
    let mut out = [0; 512];
    let len = encode_with_options(message, options, &mut out).unwrap();
    out[..len].to_vec()
}

fn refused(reason: RejectReason) -> Result<OrderRequest, RequestError> {
    let (user_ref, client_order_id) = (UserRefNum(7), ClientOrderId(*b"CLIENT-ORDER-1"));
    Err(RequestError::Refused { user_ref, reason, client_order_id })
}

#[test]
fn requests_decode_to_what_was_encoded() {
    let ioc = EnterOrder { time_in_force: TimeInForce::Ioc, price: Price::MARKET, ..order() };
    let restricted = EnterOrder { post_only: true, min_qty: Qty(50), side: Side::Buy, ..order() };
    let other = EnterOrder { user_ref: UserRefNum(8), qty: Qty(200), price: Price(1), ..restricted };
    let replace = EnterOrder { min_qty: Qty::ZERO, ..other }.replacing(UserRefNum(7));
    for (request, len) in [
        (OrderRequest::Enter(order()), 47),
        (OrderRequest::Enter(ioc), 47),
        (OrderRequest::Enter(restricted), 56),
        (OrderRequest::Replace(replace), 43),
        (OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(7), qty: Qty(0) }), 9),
        (OrderRequest::Modify(ModifyOrder { user_ref: UserRefNum(7), side_marking: b'T', qty: Qty(9) }), 10),
    ] {
        let mut out = [0xee; MESSAGE_LEN_MAX];
        assert_eq!(encode_request(&request, symbol_of, &mut out), Ok(len));
        assert_eq!(decode_request(&out[..len], instrument_of), Ok(request));
        for short in 0..len {
            let error = encode_request(&request, symbol_of, &mut out[..short]).unwrap_err();
            assert!(matches!(error, EncodeError::BufferTooShort(_)));
        }
    }
}

#[test]
fn unsupported_requests_are_rejected_with_a_reason() {
    use RejectReason::*;
    type Change = fn(&mut ouch50::EnterOrder);
    let cases: [(Change, RejectReason); 11] = [
        (|order| order.symbol = Stock::new("OMEGA").unwrap(), UnknownInstrument),
        (|order| order.symbol = Alpha([0xff; 8]), UnknownInstrument),
        (|order| order.side = SideMarking(b'X'), InvalidSide),
        (|order| order.time_in_force = TimeInForceCode::GTX, TimeInForceNotOffered),
        (|order| order.time_in_force = TimeInForceCode::AFTER_HOURS, TimeInForceNotOffered),
        (|order| order.display = Display::ATTRIBUTABLE, DisplayNotOffered),
        (|order| order.cross_type = CrossType::OPENING, CrossNotOffered),
        (|order| order.capacity = Capacity(b'?'), OptionNotOffered),
        (|order| order.intermarket_sweep = YesNo(b'?'), OptionNotOffered),
        (|order| order.price = (PRICE_MAX + 1).into(), PriceOutsideCollar),
        (|order| order.price = u64::MAX.into(), PriceOutsideCollar),
    ];
    for (change, reason) in cases {
        assert_eq!(decode_request(&entered(change, &[]), instrument_of), refused(reason));
    }
    assert!(decode_request(&entered(|order| order.price = PRICE_MAX.into(), &[]), instrument_of).is_ok());
}

#[test]
fn options_are_applied_ignored_or_rejected() {
    let decode = |options: &[TagValue<'_>]| decode_request(&entered(|_| {}, options), instrument_of);
    let honoured = EnterOrder { post_only: true, min_qty: Qty(50), ..order() };
    assert_eq!(decode(&[TagValue::MinQty(50), TagValue::PostOnly(b'P')]), Ok(OrderRequest::Enter(honoured)));
    for passed_over in [
        TagValue::PostOnly(b'N'),
        TagValue::Firm(Alpha(*b"LIME")),
        TagValue::CustomerType(b'R'),
        TagValue::SharesLocated(b'Y'),
        TagValue::LocateBroker(Alpha(*b"ABCD")),
        TagValue::PriceType(b'L'),
        TagValue::TradeNow(b'N'),
        TagValue::UserRefIndex(0),
    ] {
        assert_eq!(decode(&[passed_over]), Ok(OrderRequest::Enter(order())), "{passed_over:?}");
    }
    for option in [
        TagValue::PriceType(b'M'),
        TagValue::PostOnly(b'?'),
        TagValue::TradeNow(b'Y'),
        TagValue::DisplayQty(10),
        TagValue::RandomReserves(10),
        TagValue::UserRefIndex(1),
        TagValue::GroupId(1),
        TagValue::Route(Alpha(*b"SCAN")),
        TagValue::Unknown { tag: 99, value: b"?" },
    ] {
        assert_eq!(decode(&[option]), refused(RejectReason::OptionNotOffered), "{option:?}");
    }
}

#[test]
fn a_replacement_is_rejected_under_its_new_number() {
    let mut message = ouch50::ReplaceOrder::new(
        6,
        7,
        100,
        1_002_500,
        TimeInForceCode::DAY,
        Display::ATTRIBUTABLE,
        YesNo::NO,
        *b"CLIENT-ORDER-1",
    );
    let reason = RejectReason::DisplayNotOffered;
    assert_eq!(decode_request(&with_options(&message, &[]), instrument_of), refused(reason));
    message.display = Display::VISIBLE;
    assert!(decode_request(&with_options(&message, &[]), instrument_of).is_ok());
}

#[test]
fn a_modification_keeps_its_side_marking() {
    // The decoder accepts any side marking: only the matching engine can compare it with the order's side.
    for side_marking in [b'B', b'E', b'?'] {
        let modify = ouch50::ModifyOrder::new(u32::MAX, side_marking, 50);
        let request = ModifyOrder { user_ref: UserRefNum(u32::MAX), side_marking, qty: Qty(50) };
        assert_eq!(decode_request(modify.as_bytes(), instrument_of), Ok(OrderRequest::Modify(request)));
    }
}

#[test]
fn both_editions_are_read() {
    let cancel = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(7), qty: Qty(10) });
    for bytes in [&b"X\0\0\0\x07\0\0\0\x0a"[..], b"X\0\0\0\x07\0\0\0\x0a\0\0"] {
        assert_eq!(decode_request(bytes, instrument_of), Ok(cancel));
    }
    for bytes in [&b"Q"[..], b"Q\0\0"] {
        assert_eq!(decode_request(bytes, instrument_of), Err(RequestError::AccountQuery));
    }
    let canceled = ouch50::AiqCanceled::new(Nanos(1), 7, 40, CancelReasonCode::SELF_MATCH, 40, 5, b'A');
    for (tail, strategy) in [(&b""[..], None), (b"D", Some(b'D')), (b"D\0\0", Some(b'D'))] {
        let bytes = [canceled.as_bytes(), tail].concat();
        let Ok(Outbound::AiqCanceled(read, options)) = Outbound::parse(&bytes) else { panic!() };
        assert_eq!((read, options.aiq_strategy()), (&canceled, strategy));
    }
}

#[test]
fn a_user_ref_of_another_index_matches_no_order() {
    let cancel = ouch50::CancelOrder::new(7, 0);
    let modify = ouch50::ModifyOrder::new(7, SideMarking::SELL, 50);
    let qty = Qty(50);
    let requests = [
        OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(7), qty: Qty::ZERO }),
        OrderRequest::Modify(ModifyOrder { user_ref: UserRefNum(7), side_marking: b'S', qty }),
    ];
    for (option, index) in [
        (TagValue::UserRefIndex(0), None),
        (TagValue::Firm(Alpha(*b"FIRM")), None),
        (TagValue::UserRefIndex(1), Some(1)),
        (TagValue::UserRefIndex(255), Some(255)),
    ] {
        let options = [TagValue::UserRefIndex(0), option];
        let messages = [with_options(&cancel, &options), with_options(&modify, &options)];
        for (message, request) in messages.iter().zip(requests) {
            let expected = match index {
                None => Ok(request),
                Some(index) => Err(RequestError::OtherIndex { user_ref: UserRefNum(7), index }),
            };
            assert_eq!(decode_request(message, instrument_of), expected, "{option:?}");
        }
    }
}

#[test]
fn requests_about_many_orders_round_trip() {
    let (user_ref, firm) = (UserRefNum(7), *b"FIRM");
    let all = MassCancel { user_ref, instrument: InstrumentId(0), side: None, firm };
    let some = MassCancel { instrument: order().instrument, side: Some(Side::Sell), ..all };
    let set = |is_enabled| OrderRequest::SetOrderEntry(SetOrderEntry { user_ref, is_enabled, firm });
    let symbol = symbol_of(order().instrument).unwrap().0;
    for (request, expected) in [
        (OrderRequest::MassCancel(all), b"C\0\0\0\x07FIRM        \0\0".to_vec()),
        (OrderRequest::MassCancel(some), [&b"C\0\0\0\x07FIRM"[..], &symbol, b"\0\x03\x02\x1bS"].concat()),
        (set(false), b"D\0\0\0\x07FIRM\0\0".to_vec()),
        (set(true), b"E\0\0\0\x07FIRM\0\0".to_vec()),
    ] {
        let mut wire = [0; ouch50::MESSAGE_LEN_MAX];
        let len = ouch50::encode_request(&request, symbol_of, &mut wire).unwrap();
        assert_eq!(wire[..len], expected);
        assert_eq!(decode_request(&wire[..len], instrument_of), Ok(request));
        // An empty list of options may be omitted.
        if len == expected.len() && expected.ends_with(&[0, 0]) {
            assert_eq!(decode_request(&wire[..len - 2], instrument_of), Ok(request));
        }
    }
}

#[test]
fn special_orders_round_trip() {
    let special =
        OrderInstructions { display_qty: Qty(20), expire_at: 57_600, ..OrderInstructions::default() };
    let reserve = EnterOrder { time_in_force: TimeInForce::Gtt, special: Some(special), ..order() };
    let hidden = OrderInstructions { is_hidden: true, ..OrderInstructions::default() };
    let attributes = OrderAttributes { display: b'N', ..order().attributes };
    let hidden = EnterOrder { special: Some(hidden), attributes, ..order() };
    let mut wire = [0; ouch50::MESSAGE_LEN_MAX];
    for (order, time_in_force, display, options) in [
        (reserve, b'6', b'Y', &b"\0\x0c\x05\x05\0\0\0\x14\x05\x0f\0\0\xe1\0"[..]),
        (hidden, b'0', b'N', &b"\0\0"[..]),
    ] {
        let request = OrderRequest::Enter(order);
        let len = ouch50::encode_request(&request, symbol_of, &mut wire).unwrap();
        assert_eq!((wire[26], wire[27], &wire[45..len]), (time_in_force, display, options));
        assert_eq!(decode_request(&wire[..len], instrument_of), Ok(request));
        let state = OrderState::Live;
        round_trip(&event(OrderEventKind::Accepted { order, order_id: OrderId(3), state }));
    }
    let stop = OrderInstructions { stop_price: Price(100), ..OrderInstructions::default() };
    for order in [
        EnterOrder { special: Some(stop), ..order() },
        EnterOrder { time_in_force: TimeInForce::Gtc, ..order() },
    ] {
        let error = ouch50::encode_request(&OrderRequest::Enter(order), symbol_of, &mut wire).unwrap_err();
        assert_eq!(error, ouch50::EncodeError::NotInOuch);
    }
}

fn round_trip(event: &OrderEvent) -> Vec<u8> {
    let mut wire = [0; ouch50::MESSAGE_LEN_MAX];
    let len = ouch50::encode_event(event, symbol_of, &mut wire).unwrap();
    let Ok(Answer::Order(answer)) = ouch50::decode_event(&wire[..len], instrument_of) else { panic!() };
    assert_eq!((answer.ts, answer.kind, answer.is_exact), (event.ts, event.kind, true));
    wire[..len].to_vec()
}

#[test]
fn rare_answers_round_trip() {
    let (user_ref, firm) = (UserRefNum(7), *b"FIRM");
    let all = MassCancel { user_ref, instrument: InstrumentId(0), side: None, firm };
    for (kind, tail) in [
        (
            OrderEventKind::SelfTradePrevented {
                user_ref,
                decrement: Qty(5),
                prevented: Qty(6),
                price: Price(257),
                liquidity: Liquidity::Added,
                strategy: SelfTradePrevention::CancelOldest,
            },
            &b"\0\0\0\x05Q\0\0\0\x06\0\0\0\0\0\0\x01\x01AO"[..],
        ),
        (
            OrderEventKind::Restated { user_ref, order_id: OrderId(9), display_qty: Qty(20) },
            &b"R\0\x10\x09\x01\0\0\0\0\0\0\0\x09\x05\x16\0\0\0\x14"[..],
        ),
        (
            OrderEventKind::Triggered { user_ref, order_id: OrderId(9), price: Price(257) },
            &b"\0\0\0\0\0\0\x01\x01Y\0\0\0\0\0\0\0\x09"[..],
        ),
        (
            OrderEventKind::Broken { user_ref, match_id: MatchId(3), reason: BrokenReason::Consent },
            &b"\0\0\0\0\0\0\0\x03C              "[..],
        ),
        (OrderEventKind::MassCanceled(all), &b"FIRM        \0\0"[..]),
        (
            OrderEventKind::OrderEntrySet(SetOrderEntry { user_ref, is_enabled: false, firm }),
            &b"FIRM\0\0"[..],
        ),
        (OrderEventKind::OrderEntrySet(SetOrderEntry { user_ref, is_enabled: true, firm }), &b"FIRM\0\0"[..]),
    ] {
        let bytes = round_trip(&event(kind));
        assert_eq!(bytes[9..], [&b"\0\0\0\x07"[..], tail].concat(), "{kind:?}");
    }
    for liquidity in [Liquidity::AddedHidden, Liquidity::OpeningCross, Liquidity::ClosingCross] {
        let (qty, price, match_id) = (Qty(1), Price(2), MatchId(3));
        round_trip(&event(OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id }));
    }
}

#[test]
fn unsupported_messages_are_distinguished_from_invalid_ones() {
    assert_eq!(decode_request(b"", instrument_of), Err(ParseError::Empty.into()));
    assert_eq!(
        decode_request(b"z", instrument_of),
        Err(ParseError::UnknownType { message_type: b'z' }.into())
    );
    let bytes = entered(|_| {}, &[TagValue::MinQty(50)]);
    for len in 0..bytes.len() {
        let error = decode_request(&bytes[..len], instrument_of).unwrap_err();
        assert!(matches!(error, RequestError::Malformed(_)), "cut to {len}: {error}");
    }
}

fn event(kind: OrderEventKind) -> OrderEvent {
    OrderEvent {
        command: Sequence(1),
        session: SessionId(1),
        ts: Nanos(34_200_000_000_123),
        is_reply: true,
        kind,
    }
}

fn answered(message: &[u8]) -> OrderAnswer {
    match decode_event(message, instrument_of) {
        Ok(Answer::Order(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_decode_to_what_was_encoded() {
    let restricted = EnterOrder { post_only: true, min_qty: Qty(50), ..order() };
    let special =
        OrderInstructions { display_qty: Qty(20), expire_at: 57_600, ..OrderInstructions::default() };
    let restricted_special = EnterOrder { special: Some(special), ..restricted };
    let (user_ref, client_order_id) = (UserRefNum(7), ClientOrderId(*b"CLIENT-ORDER-1"));
    for (kind, len) in [
        (OrderEventKind::Accepted { order: order(), order_id: OrderId(9), state: OrderState::Live }, 64),
        (OrderEventKind::Accepted { order: restricted, order_id: OrderId(9), state: OrderState::Dead }, 73),
        (
            OrderEventKind::Replaced {
                order: restricted_special,
                orig_user_ref: UserRefNum(6),
                order_id: OrderId(10),
                state: OrderState::Live,
            },
            MESSAGE_LEN_MAX,
        ),
        (OrderEventKind::Canceled { user_ref, decrement: Qty(40), reason: CancelReason::PostOnly }, 18),
        (OrderEventKind::Modified { user_ref, side_marking: b'T', qty: Qty(60) }, 18),
        (
            OrderEventKind::Executed {
                user_ref,
                qty: Qty(60),
                price: Price(1_002_500),
                liquidity: Liquidity::Added,
                match_id: MatchId(3),
            },
            36,
        ),
        (OrderEventKind::Rejected { user_ref, reason: RejectReason::Halted, client_order_id }, 29),
    ] {
        let mut out = [0xee; MESSAGE_LEN_MAX];
        assert_eq!(encode_event(&event(kind), symbol_of, &mut out), Ok(len));
        let answer = answered(&out[..len]);
        assert_eq!((answer.kind, answer.ts, answer.is_exact), (kind, Nanos(34_200_000_000_123), true));
        for cut in 0..len {
            assert!(decode_event(&out[..cut], instrument_of).is_err(), "{kind:?} cut to {cut}");
            assert!(encode_event(&event(kind), symbol_of, &mut out[..cut]).is_err());
        }
        let len = encode_event(&event(kind), symbol_of, &mut out).unwrap();
        assert!(len <= MESSAGE_LEN_MAX);
    }
}

#[test]
fn an_executed_message_is_laid_out_as_the_fact_sheet_says() {
    let kind = OrderEventKind::Executed {
        user_ref: UserRefNum(7),
        qty: Qty(60),
        price: Price(1_002_500),
        liquidity: Liquidity::Removed,
        match_id: MatchId(3),
    };
    let mut out = [0; 36];
    encode_event(&event(kind), symbol_of, &mut out).unwrap();
    assert_eq!(
        out,
        *b"E\0\0\x1f\x1a\xce\xd9\xf0\x7b\0\0\0\x07\0\0\0\x3c\0\0\0\0\0\x0f\x4c\x04R\0\0\0\0\0\0\0\x03\0\0"
    );
}

#[test]
fn codes_of_other_venues_become_the_nearest_value() {
    let canceled = ouch50::Canceled::new(Nanos(1), 7, 40, CancelReasonCode::REGULATORY);
    let answer = answered(canceled.as_bytes());
    assert!(!answer.is_exact);
    assert!(matches!(
        answer.kind,
        OrderEventKind::Canceled { decrement: Qty(40), reason: CancelReason::System, .. }
    ));

    let rejected = ouch50::Rejected::new(Nanos(1), 7, RejectCode::from(0x777), Alpha::BLANK);
    let answer = answered(rejected.as_bytes());
    assert_eq!((answer.is_exact, answer.reject), (false, Some(RejectCode::from(0x777))));

    let executed =
        ouch50::Executed::new(Nanos(1), 7, 40, 5_u64, LiquidityFlag::OPENING_CROSS_MARKET, MatchId(1));
    let answer = answered(&with_options(&executed, &[]));
    assert!(!answer.is_exact);
    assert!(matches!(answer.kind, OrderEventKind::Executed { liquidity: Liquidity::Removed, .. }));

    let aiq = ouch50::AiqCanceled::new(Nanos(1), 7, 40, CancelReasonCode::SELF_MATCH, 40, 5, b'A');
    assert!(matches!(
        answered(aiq.as_bytes()).kind,
        OrderEventKind::SelfTradePrevented { user_ref: UserRefNum(7), decrement: Qty(40), .. }
    ));
}

#[test]
fn answers_without_an_equivalent_are_passed_on_unchanged() {
    let query = QueryResponse::new(Nanos(1), 42);
    match decode_event(query.as_bytes(), instrument_of) {
        Ok(Answer::Other(Outbound::QueryResponse(response, _))) => {
            assert_eq!(response.next_user_ref.get(), UserRefNum(42));
        }
        other => panic!("{other:?}"),
    }
    let day = SystemEvent::new(Nanos(1), EventCode::END_OF_DAY);
    assert!(matches!(
        decode_event(day.as_bytes(), instrument_of),
        Ok(Answer::Other(Outbound::SystemEvent(..)))
    ));
}

#[test]
fn answers_about_unknown_symbols_and_sides_are_errors() {
    let kind = OrderEventKind::Accepted { order: order(), order_id: OrderId(9), state: OrderState::Live };
    let mut out = [0; MESSAGE_LEN_MAX];
    let len = encode_event(&event(kind), symbol_of, &mut out).unwrap();
    let symbol = Symbol::new("ALPHA").unwrap();
    assert_eq!(decode_event(&out[..len], |_| None), Err(EventError::UnknownSymbol(symbol)));
    out[13] = b'?';
    assert_eq!(decode_event(&out[..len], instrument_of), Err(EventError::UnknownSide { side: b'?' }));
    assert_eq!(encode_event(&event(kind), |_| None, &mut out), Err(EncodeError::UnknownInstrument(ALPHA)));
    let huge = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(1), qty: Qty(1 << 32) });
    assert!(matches!(encode_request(&huge, symbol_of, &mut out), Err(EncodeError::OutOfRange(_))));
}

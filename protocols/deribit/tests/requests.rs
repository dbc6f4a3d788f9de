//! Both ends together: a venue decodes what a client encodes, and rejects invalid requests as the real one
//! does.
#![allow(clippy::unwrap_used)]

use serde_json::{Value as Json, json};
use tickpath_deribit::codes::{OrderFilter, OrderType, TimeInForce};
use tickpath_deribit::envelope::{Id, Inbound, ServerTime, write_request};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    Auth, Book, BookLevel, BookUpdateKind, CancelAllByCurrency, GetInstruments, LevelAction, NoParams,
    PlaceOrder, SetHeartbeat, Subscribe,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::{
    REQUEST_LEN_MAX, Refusal, Request, write_heartbeat, write_notification, write_refusal,
    write_refusal_with_limit, write_test_request,
};
use tickpath_deribit::text::Text;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn written<'a>(method: Method, params: &impl Field<'a>) -> Vec<u8> {
    let mut frame = Vec::new();
    write_request(Id::Number(7), method, params, &mut frame);
    frame
}

fn refused(frame: &str) -> (i64, &'static str) {
    let refusal = Request::parse(frame.as_bytes()).unwrap_err();
    (refusal.code.code(), refusal.reason)
}

#[test]
fn an_order_goes_from_client_to_venue() {
    let order = PlaceOrder {
        label: Some(Text::new("a\"b")),
        time_in_force: Some(TimeInForce::GoodTilCancelled),
        post_only: true,
        ..PlaceOrder::limit("BTC-PERPETUAL", decimal("10"), decimal("95000.5"))
    };
    let frame = written(Method::Buy, &order);
    let json: Json = serde_json::from_slice(&frame).unwrap();
    assert_eq!(
        json,
        json!({"jsonrpc": "2.0", "id": 7, "method": "private/buy", "params": {
            "instrument_name": "BTC-PERPETUAL", "amount": 10, "type": "limit", "price": 95000.5, "label": "a\"b",
            "time_in_force": "good_til_cancelled", "post_only": true, "reject_post_only": false,
            "reduce_only": false, "mmp": false}})
    );
    let request = Request::parse(&frame).unwrap();
    assert_eq!((request.id, request.method), (Id::Number(7), Method::Buy));
    assert_eq!(request.params::<PlaceOrder<'_>>(), Ok(order));
}

/// An HTTP query has only texts; the method determines their types.
#[test]
fn a_text_of_a_query_is_a_number_where_the_method_has_one() {
    const QUERY: &str = r#"{"id":0,"method":"private/buy","params":{"instrument_name":"BTC-PERPETUAL","amount":"10","price":"95000.50","label":"60","post_only":"true","mmp":"false"}}"#;
    let order = PlaceOrder {
        label: Some(Text::new("60")),
        post_only: true,
        ..PlaceOrder::limit("BTC-PERPETUAL", decimal("10"), decimal("95000.50"))
    };
    let request = Request::parse_query(QUERY.as_bytes()).unwrap();
    let read: PlaceOrder<'_> = request.params().unwrap();
    let seen = (read.instrument_name, read.amount, read.price, read.label, read.post_only, read.mmp);
    let expected =
        (order.instrument_name, order.amount, order.price, order.label, order.post_only, order.mmp);
    assert_eq!(seen, expected);
    // The same request as a JSON message is rejected.
    assert!(Request::parse(QUERY.as_bytes()).unwrap().params::<PlaceOrder<'_>>().is_err());
    for (good, bad) in
        [("\"10\"", "\"1O\""), ("\"10\"", "\"10 \""), ("\"true\"", "\"1\""), ("\"10\"", "[10]")]
    {
        let frame = QUERY.replace(good, bad);
        let refusal = Request::parse_query(frame.as_bytes()).unwrap().params::<PlaceOrder<'_>>().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::InvalidParams, "{frame}");
    }
    let listed = r#"{"id":0,"method":"public/subscribe","params":{"channels":["a","b"]}}"#;
    let channels: Subscribe<'_> = Request::parse_query(listed.as_bytes()).unwrap().params().unwrap();
    assert_eq!(
        channels.channels.iter().map(Result::unwrap).collect::<Vec<_>>(),
        [Text::new("a"), Text::new("b")]
    );
}

#[test]
fn other_params_are_read_with_their_defaults() {
    let request =
        Request::parse(br#"{"id":"x","method":"public\/get_instruments","params":{"currency":"BTC"}}"#);
    let request = request.unwrap();
    assert_eq!(request.id, Id::Text(Text::new("x")));
    let params: GetInstruments<'_> = request.params().unwrap();
    assert_eq!((params.kind, params.expired), (None, false));
    let params = CancelAllByCurrency {
        currency: Text::new("BTC"),
        kind: None,
        order_type: Some(OrderFilter::TriggerAll),
        detailed: false,
        freeze_quotes: false,
    };
    let frame = written(Method::CancelAllByCurrency, &params);
    assert_eq!(Request::parse(&frame).unwrap().params(), Ok(params));
    let channels = [Text::new("book.BTC-PERPETUAL.raw"), Text::new("user.lock")];
    let subscribe = Subscribe { channels: List::new(&channels) };
    let frame = written(Method::PublicSubscribe, &subscribe);
    assert_eq!(Request::parse(&frame).unwrap().params(), Ok(subscribe));
    for auth in [Auth::credentials("id", "s"), Auth::refresh("t"), Auth::signature("id", 5, "n", "00")] {
        let frame = written(Method::Auth, &auth);
        assert_eq!(Request::parse(&frame).unwrap().params::<Auth<'_>>().unwrap(), auth);
        let shown = format!("{auth:?}");
        assert!(
            shown.contains("[secret]") && !shown.contains("\"s\"") && !shown.contains("\"00\""),
            "{shown}"
        );
    }
    for frame in [
        &br#"{"id":1,"method":"private/get_positions"}"#[..],
        br#"{"id":1,"method":"public/get_time","params":null}"#,
    ] {
        assert_eq!(Request::parse(frame).unwrap().params(), Ok(NoParams {}));
    }
}

#[test]
fn frames_are_refused_with_the_codes_of_the_venue() {
    assert_eq!(refused("{"), (-32700, ""));
    assert_eq!(refused(""), (-32700, ""));
    assert_eq!(refused("{\"id\":1,}"), (-32700, ""));
    assert_eq!(refused(&"[".repeat(100)).0, -32600);
    assert_eq!(Request::parse(b"[]").unwrap_err().code.message(), "Invalid Request");
    assert_eq!(refused("[]"), (-32600, "must be one object: batches are not supported"));
    assert_eq!(
        refused("{\"method\":\"public/test\"}"),
        (-32600, "must have an id, a whole number or a string")
    );
    assert_eq!(refused("{\"id\":1.5,\"method\":\"public/test\"}").0, -32600);
    assert_eq!(refused("{\"id\":null,\"method\":\"public/test\"}").0, -32600);
    assert_eq!(refused("{\"id\":1,\"method\":\"public/Test\"}"), (-32601, ""));
    assert_eq!(refused("{\"id\":1,\"method\":5}"), (-32601, ""));
    assert_eq!(refused("{\"id\":1}"), (-32601, ""));
    assert_eq!(
        refused("{\"id\":1,\"method\":\"public/test\",\"params\":[]}"),
        (-32602, "params must be an object")
    );
    let sized = |len: usize| {
        let start = "{\"id\":1,\"method\":\"public/test\",\"params\":{\"a\":\"";
        format!("{start}{}\"}}}}", "x".repeat(len - start.len() - 3))
    };
    assert!(Request::parse(sized(REQUEST_LEN_MAX).as_bytes()).is_ok());
    assert_eq!(refused(&sized(REQUEST_LEN_MAX + 1)), (-32600, ""));
}

#[test]
fn params_are_refused_by_name() {
    let refuse = |params: &str| {
        let frame = format!("{{\"id\":1,\"method\":\"private/buy\"{params}}}");
        let request = Request::parse(frame.as_bytes()).unwrap();
        let refusal = request.params::<PlaceOrder<'_>>().unwrap_err();
        (refusal.code.code(), refusal.reason, refusal.param)
    };
    assert_eq!(refuse(""), (-32000, "", ""));
    assert_eq!(refuse(",\"params\":{}"), (-32602, "value required", "instrument_name"));
    assert_eq!(
        refuse(",\"params\":{\"instrument_name\":5}"),
        (-32602, "value has the wrong type", "instrument_name")
    );
    let unknown = ",\"params\":{\"instrument_name\":\"A\",\"type\":\"limitless\"}";
    assert_eq!(refuse(unknown), (-32602, "value is not one of those allowed", "type"));
    let fine = ",\"params\":{\"instrument_name\":\"A\",\"price\":0.0000000000000000001}";
    assert_eq!(refuse(fine), (-32602, "value is out of range or has too many digits", "price"));
    let request =
        Request::parse(b"{\"id\":1,\"method\":\"public/set_heartbeat\",\"params\":{\"interval\":-1}}")
            .unwrap();
    assert_eq!(request.params::<SetHeartbeat>().unwrap_err().param, "interval");
}

#[test]
fn refusals_are_replies_that_a_client_reads() {
    let server_time = ServerTime { us_in: 100, us_out: 130 };
    let refusal = Refusal {
        id: Some(Id::Text(Text::new("a"))),
        code: ErrorCode::InvalidParams,
        reason: "value required",
        param: "amount",
    };
    let mut frame = Vec::new();
    write_refusal(&refusal, server_time, true, &mut frame);
    assert_eq!(
        serde_json::from_slice::<Json>(&frame).unwrap(),
        json!({"jsonrpc": "2.0", "id": "a", "error": {"code": -32602, "message": "Invalid params",
            "data": {"reason": "value required", "param": "amount"}},
            "usIn": 100, "usOut": 130, "usDiff": 30, "testnet": true})
    );
    frame.clear();
    let refusal = Refusal::new(Id::Number(5), ErrorCode::PriceTooHigh);
    write_refusal_with_limit(&refusal, decimal("43666.5"), server_time, false, &mut frame);
    let Ok(Inbound::Response(response)) = Inbound::parse(&frame) else { panic!("a response") };
    let error = response.outcome.unwrap_err();
    assert_eq!(error.error_code(), Some(ErrorCode::PriceTooHigh));
    assert_eq!(error.message, "price_too_high 43666.5");
    frame.clear();
    write_refusal(&Request::parse(b"{").unwrap_err(), server_time, false, &mut frame);
    assert!(matches!(Inbound::parse(&frame), Ok(Inbound::Response(response)) if response.id.is_none()));
}

#[test]
fn notifications_are_read_as_they_were_written() {
    let level = |action, price, amount| BookLevel { action, price: decimal(price), amount: decimal(amount) };
    let bids = [level(LevelAction::Delete, "5041.94", "0"), level(LevelAction::Change, "5042", "950")];
    let book = Book {
        kind: Some(BookUpdateKind::Change),
        timestamp: 5,
        prev_change_id: Some(297_217),
        instrument_name: Text::new("BTC-PERPETUAL"),
        change_id: 297_218,
        bids: List::new(&bids),
        asks: List::default(),
    };
    let mut frame = Vec::new();
    write_notification("book.BTC-PERPETUAL.raw", &book, Some("mine"), &mut frame);
    assert_eq!(
        std::str::from_utf8(&frame).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{\"channel\":\"book.BTC-PERPETUAL.raw\",\"data\":\
         {\"type\":\"change\",\"timestamp\":5,\"prev_change_id\":297217,\"instrument_name\":\"BTC-PERPETUAL\",\
         \"change_id\":297218,\"bids\":[[\"delete\",5041.94,0],[\"change\",5042,950]],\"asks\":[]},\"label\":\"mine\"}}"
    );
    let Ok(Inbound::Notification(notification)) = Inbound::parse(&frame) else { panic!("a notification") };
    assert_eq!(notification.data.parse::<Book<'_>>().unwrap(), book);
    assert_eq!(notification.label, Some(Text::new("mine")));
    for (write, expected) in [
        (write_heartbeat as fn(&mut Vec<u8>), Inbound::Heartbeat),
        (write_test_request, Inbound::TestRequest),
    ] {
        let mut frame = Vec::new();
        write(&mut frame);
        assert_eq!(Inbound::parse(&frame), Ok(expected));
    }
    assert_eq!(OrderType::from_text("stop_limit"), OrderType::StopLimit);
}

//! The properties of `tickpath-deribit`'s readers. They accept the same JSON as an independent reader, within
//! their bounds. They read their own output back unchanged.

use serde::de::IgnoredAny;
use tickpath_deribit::channel::Channel;
use tickpath_deribit::envelope::{Id, Inbound, Response, Visitor, write_request};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    AccessLog, AccountSummaries, AccountSummary, Auth, Book, BookLevels, BookSummary, BookUpdate,
    CancelAllByKindOrType, CancelQuotes, CancelReport, Candle, ChartData, Currency, DeliveryPrices,
    EditByLabel, EditOrder, EstimatedExpirationPrice, FundingRate, GetOrderHistoryByCurrency,
    GetSettlementsByCurrency, GetTransactionLog, GetUserTradesByInstrument, Instrument, Links, Margins,
    MassQuote, MassQuoteResult, MmpConfig, MmpStatus, OptionMarkPrice, Order, OrderBook, OrderHistory,
    OrderReply, PerpetualState, PlaceOrder, Position, PublicTrade, Quote, SetMmpConfig, Settlements, Status,
    Subscribe, Ticker, TransactionLog, UserChanges, UserLock, UserTrade,
};
use tickpath_deribit::number::{Decimal, NumberError};
use tickpath_deribit::request::{REQUEST_LEN_MAX, Request};
use tickpath_deribit::scan::{ScanError, ScanErrorKind, Scanner, Value, check};
use tickpath_deribit::text::Text;

/// Whether a frame is JSON to an independent reader.
fn is_json(data: &[u8]) -> bool {
    std::str::from_utf8(data).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// Reads a value as a message. A message that was read is unchanged after it is written and read again.
fn message<'a, T: Field<'a> + PartialEq + std::fmt::Debug>(value: Value<'a>, out: &'a mut Vec<u8>) {
    let Ok(message) = value.parse::<T>() else { return };
    message.write(out);
    let written = std::str::from_utf8(out).expect("messages are UTF-8");
    assert!(is_json(out), "{written}");
    let _ = format!("{message:?}");
    if !written.contains("\"other\"") {
        assert_eq!(T::read(&mut Scanner::new(written)).as_ref(), Ok(&message), "{written}");
    }
}

fn messages(value: Value<'_>) {
    let mut out = [const { Vec::new() }; 35];
    let mut next = out.iter_mut();
    let mut out = || next.next().expect("there is one for each message");
    message::<OrderReply<'_>>(value, out());
    message::<Order<'_>>(value, out());
    message::<UserTrade<'_>>(value, out());
    message::<UserChanges<'_>>(value, out());
    message::<Position<'_>>(value, out());
    message::<AccountSummary<'_>>(value, out());
    message::<Instrument<'_>>(value, out());
    message::<Ticker<'_>>(value, out());
    message::<Quote<'_>>(value, out());
    message::<OrderBook<'_>>(value, out());
    message::<Book<'_>>(value, out());
    message::<List<'_, PublicTrade<'_>>>(value, out());
    message::<List<'_, Order<'_>>>(value, out());
    message::<List<'_, Text<'_>>>(value, out());
    message::<Status<'_>>(value, out());
    message::<List<'_, Currency<'_>>>(value, out());
    message::<List<'_, BookSummary<'_>>>(value, out());
    message::<List<'_, FundingRate<'_>>>(value, out());
    message::<DeliveryPrices<'_>>(value, out());
    message::<Settlements<'_>>(value, out());
    message::<TransactionLog<'_>>(value, out());
    message::<Margins<'_>>(value, out());
    message::<AccountSummaries<'_>>(value, out());
    message::<MassQuoteResult<'_>>(value, out());
    message::<List<'_, MmpConfig<'_>>>(value, out());
    message::<MmpStatus<'_>>(value, out());
    message::<OrderHistory<'_>>(value, out());
    message::<List<'_, CancelReport<'_>>>(value, out());
    message::<PerpetualState<'_>>(value, out());
    message::<Candle<'_>>(value, out());
    message::<ChartData<'_>>(value, out());
    message::<EstimatedExpirationPrice<'_>>(value, out());
    message::<List<'_, OptionMarkPrice<'_>>>(value, out());
    message::<UserLock<'_>>(value, out());
    message::<AccessLog<'_>>(value, out());
    let mut levels = BookLevels::default();
    let _ = BookUpdate::read(&mut value.scanner(), &mut levels);
    if let Ok(text) = value.parse::<Text<'_>>() {
        let expected: Result<String, _> = serde_json::from_str(value.text());
        // A lone escaped surrogate is an error for serde_json, and U+FFFD here.
        assert!(expected.is_err() || expected.is_ok_and(|expected| expected == text.to_string()));
    }
}

/// Reads books and orders in the same pass as their envelope.
#[derive(Default)]
struct OnePass {
    levels: BookLevels,
}

impl<'a> Visitor<'a> for OnePass {
    fn on_result(&mut self, _: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        OrderReply::read(result).map(drop)
    }
    fn on_data(&mut self, _: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        BookUpdate::read(data, &mut self.levels).map(drop)
    }
}

/// Checks a frame from the server: only JSON is accepted, an error is one line about a position in the frame,
/// and the one-pass reader agrees.
pub fn deribit_inbound(data: &[u8]) {
    match check(data) {
        Ok(_) => assert!(is_json(data)),
        Err(error) => {
            assert!(error.is_syntax() && error.at as usize <= data.len());
            assert!(error.kind == ScanErrorKind::TooDeep || !is_json(data), "{error}");
        }
    }
    let inbound = Inbound::parse(data);
    if let Err(error) = inbound {
        assert!(error.at as usize <= data.len() && error.to_string().lines().count() == 1);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let one_pass = Inbound::parse_with(text, &mut OnePass::default());
        assert!(one_pass.is_err() || one_pass == inbound);
        numbers(text);
    }
    match inbound {
        Ok(Inbound::Response(Response { outcome: Ok(result), .. })) => messages(result),
        Ok(Inbound::Notification(notification)) => {
            if let Some(Ok(channel)) = notification.channel.plain().map(Channel::parse) {
                assert_eq!(notification.channel, *channel.to_string());
            }
            messages(notification.data);
        }
        _ => {}
    }
}

/// Checks that each number in `text` is JSON too, and has the value that the standard parser reads.
fn numbers(text: &str) {
    for part in
        text.split(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).filter(|part| part.len() < 64)
    {
        match part.parse::<Decimal>() {
            Ok(decimal) => {
                assert!(is_json(part.as_bytes()), "{part}");
                assert_eq!(decimal.to_string().parse(), Ok(decimal));
                assert_eq!(decimal.to_string().parse::<f64>(), part.parse::<f64>().map(|value| value + 0.0));
            }
            Err(NumberError::NotANumber) => assert!(!is_json(part.as_bytes()), "{part}"),
            Err(_) => assert!(is_json(part.as_bytes()), "{part}"),
        }
    }
}

/// Checks a client's frame: only JSON is accepted, and a request with valid parameters survives a round trip.
pub fn deribit_request(data: &[u8]) {
    if let Ok(query) = Request::parse_query(data) {
        let _ = query.params::<PlaceOrder<'_>>();
        let _ = query.params::<Subscribe<'_>>();
    }
    let request = match Request::parse(data) {
        Ok(request) => request,
        // A frame that is too long or nested too deeply is not read to its end.
        Err(refusal) if refusal.reason == "nested too deeply" || data.len() > REQUEST_LEN_MAX => {
            assert_eq!(refusal.code, ErrorCode::RequestTooLarge);
            return;
        }
        Err(refusal) => {
            assert_eq!(refusal.code == ErrorCode::ParseError, !is_json(data));
            return;
        }
    };
    assert!(is_json(data));
    let Id::Number(_) = request.id else { return };
    macro_rules! params {
        ($($params:ty),*) => { $(
            match request.params::<$params>() {
                Ok(params) => {
                    let mut out = Vec::new();
                    write_request(request.id, request.method, &params, &mut out);
                    if let Ok(reparsed) = Request::parse(&out) {
                        assert_eq!((reparsed.id, reparsed.method), (request.id, request.method));
                        assert_eq!(reparsed.params().as_ref(), Ok(&params));
                    }
                }
                Err(refusal) => {
                    assert!(matches!(refusal.code, ErrorCode::InvalidParams | ErrorCode::MissingParams));
                }
            }
        )* };
    }
    params!(PlaceOrder<'_>, EditOrder<'_>, Auth<'_>, Subscribe<'_>, GetUserTradesByInstrument<'_>);
    params!(EditByLabel<'_>, Links<'_>, MassQuote<'_>, CancelQuotes<'_>, SetMmpConfig<'_>);
    params!(GetTransactionLog<'_>, GetSettlementsByCurrency<'_>, GetOrderHistoryByCurrency<'_>);
    let _ = request.params::<CancelAllByKindOrType<'_>>();
}

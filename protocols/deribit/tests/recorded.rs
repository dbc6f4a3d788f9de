//! Messages of the real venue, compared with the output of an independent JSON reader.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use serde_json::Value as Json;
use tickpath_deribit::channel::{Channel, Interval};
use tickpath_deribit::codes::{CancelReason, Direction, Kind, Liquidity, OrderState, OrderType, Trigger};
use tickpath_deribit::envelope::{Id, Inbound, Notification, Response, Visitor};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    AccountSummary, Book, BookLevels, BookUpdate, BookUpdateKind, GroupedBook, Instrument, Order, OrderBook,
    OrderPrice, OrderReply, PlatformState, PublicTrade, PublicTrades, Quote, Ticker, UserChanges, UserTrade,
};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_deribit::scan::{ScanError, Scanner};
use tickpath_deribit::text::Text;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn response(frame: &str) -> Response<'_> {
    match Inbound::parse(frame.as_bytes()).unwrap() {
        Inbound::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

fn notification(frame: &str) -> Notification<'_> {
    match Inbound::parse(frame.as_bytes()).unwrap() {
        Inbound::Notification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

/// Decodes, encodes and decodes a message: results are equal, and every written member was in the original.
fn round_trip<'a, T: Field<'a> + PartialEq + std::fmt::Debug>(text: &'a str, written: &'a mut Vec<u8>) -> T {
    let message = T::read(&mut Scanner::new(text)).unwrap_or_else(|error| panic!("{error} in {text}"));
    message.write(written);
    let written = std::str::from_utf8(written).unwrap();
    assert_eq!(T::read(&mut Scanner::new(written)).unwrap(), message);
    let (original, written) =
        (serde_json::from_str::<Json>(text).unwrap(), serde_json::from_str(written).unwrap());
    assert_subset(&written, &original);
    message
}

/// Checks that every member of `part` is in `whole` with the same value; unset flags may be missing.
fn assert_subset(part: &Json, whole: &Json) {
    match (part, whole) {
        (Json::Object(part), Json::Object(whole)) => {
            for (name, value) in part {
                match whole.get(name) {
                    Some(other) => assert_subset(value, other),
                    None => assert_eq!(value, &Json::Bool(false), "{name}"),
                }
            }
        }
        (Json::Array(part), Json::Array(whole)) => {
            assert_eq!(part.len(), whole.len());
            part.iter().zip(whole).for_each(|(part, whole)| assert_subset(part, whole));
        }
        (Json::Number(part), Json::Number(whole)) => assert_eq!(part.as_f64(), whole.as_f64()),
        _ => assert_eq!(part, whole),
    }
}

#[test]
fn order_replies() {
    let response = response(include_str!("data/ws_order_buy_response.json"));
    assert_eq!(response.id, Some(Id::Number(3)));
    assert_eq!(response.server_time.us_out - response.server_time.us_in, 9_775);
    assert!(!response.testnet);
    let mut buffer = Vec::new();
    let result = response.outcome.unwrap();
    let reply: OrderReply<'_> = round_trip(result.text(), &mut buffer);
    assert_eq!(reply.order.price, Some(OrderPrice::Limit(decimal("2973.55"))));
    assert_eq!((reply.order.amount, reply.order.filled()), (decimal("0.001"), Decimal::ZERO));
    assert_eq!(reply.order.order_id, "USDC-104819327443");
    assert_eq!((reply.order.order_state, reply.order.post_only), (OrderState::Open, true));
    assert_eq!(reply.trades.count(), 0);
}

#[test]
fn a_cancel_reply_is_the_order_itself() {
    let response = response(include_str!("data/ws_order_cancel_response.json"));
    let order: Order<'_> = response.outcome.unwrap().parse().unwrap();
    assert_eq!(
        (order.order_state, order.cancel_reason),
        (OrderState::Cancelled, Some(CancelReason::UserRequest))
    );
    assert!(order.replaced && order.order_state.is_terminal());
}

#[test]
fn a_stop_order_has_no_price_and_no_filled_amount() {
    let response = response(include_str!("data/ws_order_stop_market_no_filled_amount.json"));
    let mut buffer = Vec::new();
    let reply: OrderReply<'_> = round_trip(response.outcome.unwrap().text(), &mut buffer);
    let order = reply.order;
    assert_eq!(
        (order.price, order.filled_amount, order.filled()),
        (Some(OrderPrice::Market), None, Decimal::ZERO)
    );
    assert_eq!((order.trigger, order.trigger_price), (Some(Trigger::MarkPrice), Some(decimal("2228"))));
    assert_eq!((order.order_type, order.order_state), (OrderType::StopMarket, OrderState::Untriggered));
    assert!(response.testnet);
}

#[test]
fn errors_and_subscribe_replies() {
    let refused = response(include_str!("data/ws_error.json")).outcome.unwrap_err();
    assert_eq!(refused.error_code(), Some(ErrorCode::TooManyRequests));
    let subscribed = response(include_str!("data/ws_subscribe_response.json")).outcome.unwrap();
    let channels: List<'_, Text<'_>> = subscribed.parse().unwrap();
    let names: Vec<_> = channels.iter().map(|name| name.unwrap().to_string()).collect();
    assert_eq!(names, ["trades.BTC-PERPETUAL.100ms", "book.BTC-PERPETUAL.100ms"]);
}

#[test]
fn market_data_requests() {
    let mut buffers = [const { Vec::new() }; 4];
    let [one, two, three, four] = &mut buffers;
    let perpetual = response(include_str!("data/http_get_instrument.json")).outcome.unwrap();
    let perpetual: Instrument<'_> = round_trip(perpetual.text(), one);
    assert_eq!((perpetual.tick_size, perpetual.min_trade_amount), (decimal("0.5"), decimal("10")));
    assert_eq!((perpetual.kind, perpetual.tick_at(decimal("90000"))), (Kind::Future, decimal("0.5")));
    let option = response(include_str!("data/http_get_instrument_option.json")).outcome.unwrap();
    let option: Instrument<'_> = round_trip(option.text(), two);
    assert_eq!(option.strike, Some(decimal("100000")));
    let book = response(include_str!("data/http_get_order_book.json")).outcome.unwrap();
    let book: OrderBook<'_> = round_trip(book.text(), three);
    let best = book.bids.iter().next().unwrap().unwrap();
    assert_eq!((Some(best.price), Some(best.amount)), (book.best_bid_price, book.best_bid_amount));
    let trades = include_str!("data/http_get_last_trades_perpetual_with_combo_tags.json");
    // This reply was recorded without its id.
    let with_id = trades.replacen('{', "{\"id\":1,", 1);
    let trades = response(&with_id).outcome.unwrap();
    let trades: PublicTrades<'_> = round_trip(trades.text(), four);
    assert!(trades.trades.iter().all(|trade| trade.unwrap().combo_trade_id.is_some()));
}

#[test]
fn steps_change_the_tick_above_their_price() {
    let text = r#"{"kind":"option","instrument_name":"A","is_active":true,"tick_size":0.0001,"min_trade_amount":0.1,
        "base_currency":"BTC","quote_currency":"BTC","tick_size_steps":[{"above_price":0.005,"tick_size":0.0005}]}"#;
    let option = Instrument::read(&mut Scanner::new(text)).unwrap();
    assert_eq!(option.tick_at(decimal("0.005")), decimal("0.0001"));
    assert_eq!(option.tick_at(decimal("0.0051")), decimal("0.0005"));
}

#[test]
fn public_channels() {
    let mut kinds = HashMap::new();
    let singles = [
        include_str!("data/ws_quote.json"),
        include_str!("data/ws_ticker.json"),
        include_str!("data/ws_trades.json"),
    ];
    let lines = include_str!("data/channels.jsonl")
        .lines()
        .chain(include_str!("data/recorded_options.jsonl").lines());
    for line in singles.into_iter().chain(lines) {
        let notification = notification(line);
        let text = notification.data.text();
        let mut buffer = Vec::new();
        let name = notification.channel.plain().unwrap();
        *kinds.entry(name.split('.').next().unwrap()).or_insert(0) += 1;
        match Channel::parse(name).unwrap() {
            Channel::Book { instrument, .. } => {
                let book: Book<'_> = round_trip(text, &mut buffer);
                assert_eq!(book.instrument_name, instrument);
                let (mut levels, mut scanner) = (BookLevels::default(), Scanner::new(text));
                let update = BookUpdate::read(&mut scanner, &mut levels).unwrap();
                assert_eq!((update.change_id, update.prev_change_id), (book.change_id, book.prev_change_id));
                assert!(book.bids.iter().map(Result::unwrap).eq(levels.bids));
                assert!(book.asks.iter().map(Result::unwrap).eq(levels.asks));
            }
            Channel::GroupedBook { depth, .. } => {
                let book: GroupedBook<'_> = round_trip(text, &mut buffer);
                assert!(book.bids.count() <= depth as usize);
                let mut levels = BookLevels::default();
                let update = BookUpdate::read(&mut Scanner::new(text), &mut levels).unwrap();
                assert_eq!((update.kind, levels.bids.len()), (BookUpdateKind::Snapshot, book.bids.count()));
            }
            Channel::Ticker { instrument, .. } => {
                let ticker: Ticker<'_> = round_trip(text, &mut buffer);
                assert_eq!(ticker.instrument_name, instrument);
            }
            Channel::Quote { .. } => {
                let quote: Quote<'_> = round_trip(text, &mut buffer);
                assert!(quote.best_bid_price < quote.best_ask_price);
            }
            Channel::Trades { .. } => {
                let trades: List<'_, PublicTrade<'_>> = round_trip(text, &mut buffer);
                assert!(trades.count() > 0);
            }
            Channel::ChartTrades { .. } => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(kinds["book"], 46 + 8);
}

#[test]
fn private_channels() {
    let mut trades_seen = 0;
    for line in include_str!("data/user_channels.jsonl").lines().filter(|line| line.contains("subscription"))
    {
        let notification = notification(line);
        let text = notification.data.text();
        let mut buffer = Vec::new();
        match Channel::parse(notification.channel.plain().unwrap()).unwrap() {
            Channel::UserChanges { interval, .. } => {
                assert_eq!(interval, Interval::Raw);
                let changes: UserChanges<'_> = round_trip(text, &mut buffer);
                assert_eq!((changes.orders.count(), changes.positions.count()), (1, 1));
                for trade in changes.trades.iter().map(Result::unwrap) {
                    assert_eq!((trade.liquidity, trade.direction), (Some(Liquidity::Taker), Direction::Buy));
                }
            }
            Channel::UserOrders { .. } => {
                let order: Order<'_> = round_trip(text, &mut buffer);
                assert_eq!((order.order_state, order.filled()), (OrderState::Filled, order.amount));
            }
            Channel::UserTrades { .. } => {
                let trades: List<'_, UserTrade<'_>> = round_trip(text, &mut buffer);
                let trade = trades.iter().next().unwrap().unwrap();
                assert_eq!(trade.fee.map(Number::decimal), Some(Ok(decimal("0.00000005"))));
                trades_seen += 1;
            }
            Channel::PlatformState => {
                let state: PlatformState<'_> = round_trip(text, &mut buffer);
                assert!(!state.locked && !state.maintenance);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(trades_seen, 1);
    let portfolio = notification(include_str!("data/ws_portfolio.json"));
    let mut buffer = Vec::new();
    let summary: AccountSummary<'_> = round_trip(portfolio.data.text(), &mut buffer);
    assert_eq!(summary.available_funds.decimal(), Ok(decimal("53.868247")));
}

#[test]
fn a_recorded_book_follows_its_numbers() {
    let mut last = HashMap::new();
    let (mut snapshots, mut changes) = (0, 0);
    let mut levels = BookLevels::with_capacity(16);
    for line in include_str!("data/recorded_options.jsonl").lines() {
        let notification = notification(line);
        if !notification.channel.plain().unwrap().starts_with("book.") {
            continue;
        }
        let update = BookUpdate::read(&mut notification.data.scanner(), &mut levels).unwrap();
        let before = last.insert(update.instrument_name.to_string(), update.change_id);
        match update.kind {
            BookUpdateKind::Snapshot => snapshots += 1,
            _ => {
                assert_eq!(update.prev_change_id, before);
                changes += 1;
            }
        }
    }
    assert_eq!((snapshots, changes), (10, 36));
}

#[test]
fn empty_sides_of_old_servers_are_read() {
    let text = r#"{"timestamp":1,"instrument_name":"A","best_bid_price":"","best_bid_amount":null,"best_ask_price":0.5,
        "best_ask_amount":0,"stats":{"high":null},"interest_value":0.0028213400122472977}"#;
    let ticker = Ticker::read(&mut Scanner::new(text)).unwrap();
    assert_eq!((ticker.best_bid_price, ticker.best_bid_amount), (None, None));
    assert_eq!((ticker.best_ask_price, ticker.best_ask_amount), (Some(decimal("0.5")), Some(Decimal::ZERO)));
    let interest = ticker.interest_value.unwrap();
    assert_eq!(interest.text(), "0.0028213400122472977");
    assert!(interest.decimal().is_err());
    let error = Ticker::read(&mut Scanner::new(r#"{"timestamp":1,"best_bid_price":"x"}"#)).unwrap_err();
    assert_eq!((error.member, error.at), ("best_bid_price", 32));
}

/// Decodes results and data of one frame in one pass.
#[derive(Default)]
struct OnePass<'a> {
    reply: Option<(Option<Id<'a>>, OrderReply<'a>)>,
    book: Option<BookUpdate<'a>>,
    levels: BookLevels,
}

impl<'a> Visitor<'a> for OnePass<'a> {
    fn on_result(&mut self, id: Option<Id<'a>>, result: &mut Scanner<'a>) -> Result<(), ScanError> {
        self.reply = Some((id, OrderReply::read(result)?));
        Ok(())
    }

    fn on_data(&mut self, channel: Text<'a>, data: &mut Scanner<'a>) -> Result<(), ScanError> {
        assert!(Channel::parse(channel.plain().unwrap()).is_ok());
        self.book = Some(BookUpdate::read(data, &mut self.levels)?);
        Ok(())
    }
}

#[test]
fn one_pass_and_two_passes_read_the_same() {
    let frame = include_str!("data/ws_order_buy_response.json");
    let mut visitor = OnePass::default();
    let inbound = Inbound::parse_with(frame, &mut visitor).unwrap();
    assert_eq!(Ok(inbound), Inbound::parse(frame.as_bytes()));
    let Inbound::Response(Response { id, outcome, .. }) = inbound else { panic!("a response") };
    assert_eq!(visitor.reply, Some((id, outcome.unwrap().parse().unwrap())));

    // The member that identifies a value may also follow it.
    let book = include_str!("data/channels.jsonl").lines().find(|line| line.contains("\"book.")).unwrap();
    let data = notification(book).data.text();
    let channel = notification(book).channel.plain().unwrap();
    let swapped =
        format!("{{\"params\":{{\"data\":{data},\"channel\":\"{channel}\"}},\"method\":\"subscription\"}}");
    for frame in [book, &swapped] {
        let mut visitor = OnePass::default();
        Inbound::parse_with(frame, &mut visitor).unwrap();
        assert_eq!(visitor.book.map(|book| book.change_id), Some(31_479_219_781));
        assert_eq!(visitor.levels.bids.len(), 3);
    }
    let swapped = format!("{{\"result\":{},\"id\":\"x\"}}", outcome.unwrap().text());
    let mut visitor = OnePass::default();
    Inbound::parse_with(&swapped, &mut visitor).unwrap();
    assert_eq!(visitor.reply.map(|(id, _)| id), Some(Some(Id::Text(Text::new("x")))));
}

#[test]
fn heartbeats_and_unknown_notifications() {
    let parse = |frame: &'static str| Inbound::parse(frame.as_bytes());
    let heartbeat = r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"heartbeat"}}"#;
    assert_eq!(parse(heartbeat), Ok(Inbound::Heartbeat));
    let test_request = r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#;
    assert_eq!(parse(test_request), Ok(Inbound::TestRequest));
    assert_eq!(parse(r#"{"method":"new"}"#), Ok(Inbound::Unknown { method: Text::new("new") }));
    for (frame, member) in [
        ("{}", "result"),
        (r#"{"result":1}"#, "id"),
        (r#"{"id":1}"#, "result"),
        (r#"{"method":"subscription","params":{"data":1}}"#, "channel"),
        (r#"{"method":"heartbeat"}"#, "type"),
        (r#"{"id":1,"error":{"code":1}}"#, "message"),
    ] {
        let error = parse(frame).unwrap_err();
        assert_eq!((error.member, error.is_syntax()), (member, false), "{frame}");
    }
    let unread = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
    assert_eq!(response(unread).id, None);
}

#[test]
fn every_truncation_is_an_error() {
    let frames = [
        include_str!("data/ws_order_buy_response.json"),
        include_str!("data/ws_ticker.json"),
        include_str!("data/user_channels.jsonl").lines().next().unwrap(),
        include_str!("data/channels.jsonl").lines().next().unwrap(),
    ];
    for frame in frames.map(str::trim_end) {
        for len in 0..frame.len() {
            let error = Inbound::parse(&frame.as_bytes()[..len]).unwrap_err();
            assert!(error.is_syntax() && error.at as usize <= len, "{len}: {error}");
        }
    }
}

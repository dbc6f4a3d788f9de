//! Market data.

use tickpath_deribit::method::Method;
use tickpath_gateway_protocol::{
    BookUpdate, EventKind, MarketByPrice, MarketState, MarketStatus, ReferenceData, Statistics, TopOfBook,
    TradeSummary, UpdateKind,
};

use tickpath_types::Nanos;

use crate::machine::rig::Rig;

const BOOK: &str = "book.BTC-PERPETUAL.raw";

fn book(kind: &str, prev: &str, id: u64, bids: &str, asks: &str) -> String {
    format!(
        r#"{{"type":"{kind}","timestamp":7,{prev}"instrument_name":"BTC-PERPETUAL","change_id":{id},"bids":[{bids}],"asks":[{asks}]}}"#
    )
}

#[test]
fn a_book_is_told_from_its_snapshot_on_and_begun_anew_after_a_gap() {
    let mut rig = Rig::ready();
    assert!(rig.venue.subscribed.iter().any(|channel| channel == BOOK));
    let from = rig.door.broadcast.len();
    rig.news(
        0,
        BOOK,
        &book("snapshot", "", 5, r#"["new",59000,10]"#, r#"["new",59001,20],["new",59002,30]"#),
    );
    rig.news(0, BOOK, &book("change", "\"prev_change_id\":5,", 6, r#"["change",59000,15]"#, ""));
    let events = &rig.door.broadcast[from..];
    let books: Vec<MarketByPrice> = events.iter().filter_map(|event| event.body()).collect();
    assert_eq!((books[0].update, books[0].bids, books[0].asks), (BookUpdate::SNAPSHOT, 1, 2));
    assert_eq!((books[1].update, books[1].bids, books[1].asks), (BookUpdate::INCREMENTAL, 1, 0));
    let tops: Vec<TopOfBook> = events.iter().filter_map(|event| event.body()).collect();
    assert_eq!((tops.len(), tops[1].bid_quantity.to_string()), (2, "15".to_owned()));
    assert_eq!(events.iter().filter(|event| event.header.kind == EventKind::READY).count(), 1);

    let from = rig.door.broadcast.len();
    rig.news(0, BOOK, &book("change", "\"prev_change_id\":9,", 10, r#"["delete",59000,0]"#, ""));
    rig.news(0, BOOK, &book("change", "\"prev_change_id\":10,", 11, "", ""));
    assert_eq!(rig.venue.resubscribed, [BOOK]);
    let events = &rig.door.broadcast[from..];
    let stale: Vec<TopOfBook> = events.iter().filter_map(|event| event.body()).collect();
    assert_eq!((stale.len(), stale[0].update, stale[0].bid_quantity.0), (1, UpdateKind::STALE, 0));
    let from = rig.door.broadcast.len();
    rig.news(0, BOOK, &book("snapshot", "", 20, "", r#"["new",59009,1]"#));
    let books: Vec<MarketByPrice> =
        rig.door.broadcast[from..].iter().filter_map(|event| event.body()).collect();
    assert_eq!((books.len(), books[0].update, books[0].asks), (1, BookUpdate::SNAPSHOT, 1));
    assert_eq!(rig.core.counters().books_lost, 1);
}

#[test]
fn a_lost_connection_makes_its_books_stale() {
    let mut rig = Rig::ready();
    rig.news(0, BOOK, &book("snapshot", "", 5, r#"["new",59000,10]"#, ""));
    let from = rig.door.broadcast.len();
    rig.core.handle_lost(0, rig.now, &mut rig.door);
    let stale: Vec<TopOfBook> = rig.door.broadcast[from..].iter().filter_map(|event| event.body()).collect();
    assert_eq!((stale.len(), stale[0].update), (1, UpdateKind::STALE));
    // The list of instruments is requested again; instruments no longer in it have ended.
    rig.event(0, tickpath_deribit::session::SessionEvent::Ready);
    rig.poll();
    assert_eq!(rig.count(Method::GetInstruments), 2);
    let from = rig.door.broadcast.len();
    rig.reply(Method::GetInstruments, "[]");
    let states: Vec<MarketStatus> =
        rig.door.broadcast[from..].iter().filter_map(|event| event.body()).collect();
    assert_eq!(states.iter().map(|body| body.state).collect::<Vec<_>>(), [MarketState::CLOSED; 2]);
    assert!(rig.venue.subscribed.iter().all(|channel| channel != BOOK));
}

#[test]
fn tickers_and_trades_are_told_and_what_does_not_fit_is_counted() {
    let mut rig = Rig::ready();
    let from = rig.door.broadcast.len();
    rig.news(
        0,
        "ticker.BTC-PERPETUAL.100ms",
        r#"{"timestamp":9,"state":"halted","instrument_name":"BTC-PERPETUAL","mark_price":59000.25,"index_price":59001}"#,
    );
    let trade = |id: &str, price: &str| {
        format!(
            r#"{{"timestamp":9,"price":{price},"amount":10,"direction":"sell","instrument_name":"BTC-PERPETUAL","trade_seq":4,"trade_id":"{id}","tick_direction":2}}"#
        )
    };
    rig.news(0, "trades.BTC-PERPETUAL.raw", &format!("[{},{}]", trade("1", "59000"), trade("2", "59000.5")));
    let events = &rig.door.broadcast[from..];
    let figures: Vec<Statistics> = events.iter().filter_map(|event| event.body()).collect();
    assert_eq!((figures.len(), figures[0].count), (1, 2));
    let states: Vec<MarketStatus> = events.iter().filter_map(|event| event.body()).collect();
    assert_eq!(states[0].state, MarketState::HALTED);
    let trades: Vec<_> =
        events.iter().filter(|event| event.header.kind == EventKind::TRADE_SUMMARY).collect();
    assert_eq!(trades.iter().map(|event| event.is_last_in_batch()).collect::<Vec<_>>(), [false, true]);
    assert_eq!(trades[1].body::<TradeSummary>().unwrap().price.to_string(), "59000.5");
    rig.news(0, "trades.BTC-PERPETUAL.raw", &format!("[{}]", trade("3", "99999999999")));
    assert_eq!(rig.core.counters().faults, 1);
}

#[test]
fn an_instrument_that_comes_later_is_told_to_who_is_there() {
    let mut rig = Rig::ready();
    let before = rig.all::<ReferenceData>().count();
    assert_eq!((before, rig.door.followed.len()), (2, 2));
    rig.news(
        0,
        "instrument.state.any.any",
        r#"{"timestamp":9,"state":"created","instrument_name":"BTC-1JAN27"}"#,
    );
    let listing = r#"[{"instrument_name":"BTC-1JAN27","kind":"future","settlement_period":"month","instrument_type":"reversed",
        "base_currency":"BTC","quote_currency":"USD","settlement_currency":"BTC","tick_size":2.5,"min_trade_amount":10,
        "contract_size":10,"is_active":true,"state":"open","expiration_timestamp":1798790400000}]"#;
    rig.reply(Method::GetInstruments, listing);
    let last: ReferenceData = rig.all().last().unwrap();
    assert_eq!((last.name.as_str(), rig.door.followed.last()), ("BTC-1JAN27", Some(&(1, 3))));
    assert!(rig.venue.subscribed.iter().any(|channel| channel == "book.BTC-1JAN27.raw"));
}

#[test]
fn an_instrument_that_comes_while_the_list_is_asked_for_is_not_forgotten() {
    let mut rig = Rig::ready();
    let created = |name: &str| format!(r#"{{"timestamp":9,"state":"created","instrument_name":"{name}"}}"#);
    rig.news(0, "instrument.state.any.any", &created("BTC-1JAN27"));
    assert_eq!(rig.count(Method::GetInstruments), 2);
    rig.news(0, "instrument.state.any.any", &created("BTC-2JAN27"));
    rig.reply(Method::GetInstruments, "[]");
    assert_eq!(rig.count(Method::GetInstruments), 3);
    rig.reply(Method::GetInstruments, "[]");
    assert_eq!(rig.count(Method::GetInstruments), 3);
}

#[test]
fn a_book_that_is_lost_again_at_once_is_not_asked_for_without_end() {
    let mut rig = Rig::ready();
    let snapshot = book("snapshot", "", 5, r#"["new",59000,10]"#, r#"["new",58000,20]"#);
    rig.news(0, BOOK, &snapshot);
    assert_eq!(rig.venue.resubscribed.len(), 1, "the first renewal is at once");
    for (asked, pause_ms) in [(1, 250), (2, 500)] {
        // The book is crossed again.
        rig.news(0, BOOK, &snapshot);
        rig.pass(Nanos::from_millis(pause_ms - 10));
        assert_eq!(rig.venue.resubscribed.len(), asked, "the next one waits");
        rig.pass(Nanos::from_millis(20));
        assert_eq!(rig.venue.resubscribed.len(), asked + 1);
    }
    assert_eq!(rig.core.counters().books_lost, 3);
    // Meanwhile clients only receive that it is stale.
    assert!(
        rig.door
            .broadcast
            .iter()
            .filter_map(|event| event.body::<MarketByPrice>())
            .all(|book| book.update == BookUpdate::STALE)
    );
}

#[test]
fn a_book_that_does_not_come_is_asked_for_anew() {
    let mut rig = Rig::ready();
    rig.news(0, BOOK, &book("snapshot", "", 5, r#"["new",59000,10]"#, ""));
    rig.pass(Nanos::from_secs(89));
    assert_eq!(rig.venue.resubscribed.len(), 0);
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.venue.resubscribed, ["book.ETH_USDC-PERPETUAL.raw"], "the other one is there");
    rig.pass(Nanos::from_secs(91));
    assert_eq!((rig.venue.resubscribed.len(), rig.core.counters().books_lost), (2, 2));
}

#[test]
fn without_books_the_best_prices_are_those_of_tickers() {
    let mut rig =
        Rig::with_venue("ticker_interval = 'agg2'\nbook_interval = '100ms'\n[venue.feeds]\nbook = false\n");
    rig.bring_up("[]");
    assert!(rig.venue.subscribed.iter().all(|channel| !channel.starts_with("book.")));
    for channel in ["ticker.BTC-PERPETUAL.agg2", "trades.BTC-PERPETUAL.100ms"] {
        assert!(rig.venue.subscribed.iter().any(|known| known == channel), "{channel}");
    }
    let ticker = r#"{"timestamp":9,"instrument_name":"BTC-PERPETUAL","mark_price":59000,"index_price":59000,
        "best_bid_price":58999.5,"best_bid_amount":10,"best_ask_price":59000,"best_ask_amount":0}"#;
    rig.news(0, "ticker.BTC-PERPETUAL.agg2", ticker);
    rig.news(0, "ticker.BTC-PERPETUAL.agg2", ticker);
    let tops: Vec<TopOfBook> = rig.door.broadcast.iter().filter_map(|event| event.body()).collect();
    assert_eq!(
        (tops.len(), tops[0].bid_price.to_string(), tops[0].ask_quantity.0),
        (1, "58999.5".to_owned(), 0)
    );
    rig.join(2, "trader", true);
    let told = rig
        .door
        .sent
        .iter()
        .filter(|(client, _)| *client == 2)
        .filter_map(|(_, event)| event.body::<TopOfBook>());
    assert_eq!(told.count(), 1);
    rig.core.handle_lost(0, rig.now, &mut rig.door);
    let last: TopOfBook = rig.door.broadcast.iter().rev().find_map(|event| event.body()).unwrap();
    assert_eq!(last.update, UpdateKind::STALE);
}

#[test]
fn of_one_message_the_last_event_alone_is_the_last() {
    let mut rig = Rig::ready();
    let snapshot = book("snapshot", "", 5, r#"["new",59000,10]"#, r#"["new",59001,20]"#);
    let ticker = r#"{"timestamp":9,"state":"halted","instrument_name":"BTC-PERPETUAL","mark_price":59000.25,"index_price":59001,
        "last_price":1,"open_interest":2,"current_funding":3,"funding_8h":4,"interest_value":5,"min_price":6,"max_price":7}"#;
    for (channel, data) in [(BOOK, snapshot.as_str()), ("ticker.BTC-PERPETUAL.100ms", ticker)] {
        let from = rig.door.broadcast.len();
        rig.news(0, channel, data);
        let flags: Vec<bool> =
            rig.door.broadcast[from..].iter().map(|event| event.is_last_in_batch()).collect();
        assert!(flags.len() > 1 && flags.last() == Some(&true), "{channel} {flags:?}");
        assert_eq!(flags.iter().filter(|is_last| **is_last).count(), 1, "{channel}");
    }
    rig.create(1001);
    let (order, trade) = (
        rig.order(1001, "open", 40, 2),
        crate::machine::rig::trade_text(&rig.label(1001), "V-1001", "T-1", 40),
    );
    let from = rig.door.sent.len();
    rig.changes(&order, &format!("[{trade}]"));
    let flags: Vec<bool> = rig.door.sent[from..].iter().map(|(_, event)| event.is_last_in_batch()).collect();
    assert_eq!(flags, [false, true]);
}

#[test]
fn an_instrument_that_closes_makes_room_for_another() {
    // Two channels per instrument: one instrument on each of 16 connections.
    let mut rig =
        Rig::with_venue("subscriptions_max = 3\nsubscribe_batch = 3\n[venue.feeds]\nticker = false\n");
    rig.bring_up("[]");
    let one = |name: &str| {
        format!(
            r#"{{"instrument_name":"{name}","kind":"future","settlement_period":"month","instrument_type":"reversed",
            "base_currency":"BTC","quote_currency":"USD","settlement_currency":"BTC","tick_size":2.5,"min_trade_amount":10,
            "contract_size":10,"is_active":true,"state":"open","expiration_timestamp":1798790400000}}"#
        )
    };
    let list = |from: usize, count: usize| {
        let all: Vec<String> = (from..from + count).map(|at| one(&format!("BTC-{at}"))).collect();
        format!("[{}]", all.join(","))
    };
    let has = |rig: &Rig, name: &str| rig.venue.subscribed.iter().any(|it| *it == format!("book.{name}.raw"));
    let listed = |rig: &mut Rig, text: &str| {
        let news = r#"{"timestamp":9,"state":"created","instrument_name":"BTC-NEW"}"#;
        rig.news(0, "instrument.state.any.any", news);
        rig.reply(Method::GetInstruments, text);
        rig.poll();
    };
    // The two earlier instruments are removed; one of the seventeen has no place.
    listed(&mut rig, &list(100, 17));
    assert!(!has(&rig, "BTC-PERPETUAL") && has(&rig, "BTC-100") && has(&rig, "BTC-115"));
    assert_eq!((has(&rig, "BTC-116"), rig.core.counters().instruments_left_out), (false, 1));
    listed(&mut rig, &list(101, 17));
    assert!(!has(&rig, "BTC-100") && has(&rig, "BTC-116") && !has(&rig, "BTC-117"));
    assert_eq!(rig.core.counters().instruments_left_out, 2);
    // A list that is only partly readable does not bring removed instruments back.
    listed(&mut rig, &list(101, 3).replace(']', ",7]"));
    assert!(!has(&rig, "BTC-PERPETUAL") && !has(&rig, "BTC-100") && has(&rig, "BTC-116"));
}

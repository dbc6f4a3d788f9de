//! Market data.

use tickpath_deribit::method::Method;
use tickpath_gateway_protocol::{
    BookUpdate, EventKind, MarketByPrice, MarketState, MarketStatus, ReferenceData, Statistics, TopOfBook,
    TradeSummary, UpdateKind,
};

use crate::rig::Rig;

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
    // The list of instruments is read anew; what is no longer in it has ended.
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

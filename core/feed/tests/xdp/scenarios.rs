//! Scenarios of each XDP message and its effect on the book.

use tickpath_feed::MessageBooks;
use tickpath_nyse as xdp;
use tickpath_nyse::{HaltCondition, MarketState, PositionChange, SecurityStatusCode};
use tickpath_types::{BookHealth, InstrumentId, Side, SuspectReason, TradingState, UpdateKind};

use crate::xdp::support::{
    CHANNEL, Feed, INDEX, MIDNIGHT_SECS, add, add_of, delete, execution, halted, mapping, modify, replace,
    status,
};

const ALPHA: InstrumentId = InstrumentId(1);

#[track_caller]
fn check_health(feed: &Feed, health: BookHealth, reason: Option<SuspectReason>) {
    let state = feed.builder.instruments().instrument(ALPHA).unwrap();
    assert_eq!((state.health, state.reason), (health, reason));
}

#[track_caller]
fn check_suspect(feed: &Feed, reason: SuspectReason) {
    check_health(feed, BookHealth::Suspect, Some(reason));
    assert_eq!(feed.last().health(), BookHealth::Suspect, "and it is published");
}

#[test]
fn orders_rest_in_the_order_in_which_they_came() {
    let mut feed = Feed::trading();
    feed.send(&xdp::SourceTimeReference::new(1, 0, MIDNIGHT_SECS + 34_200));
    feed.send(&add(2, 10, Side::Buy, 100_000, 300));
    feed.send(&add(3, 11, Side::Buy, 100_000, 200));
    feed.send(&add(4, 12, Side::Sell, 100_100, 100));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_000, 300), (11, 100_000, 200)]);
    let last = feed.last();
    assert_eq!((last.kind(), last.order_id, last.instrument()), (Some(UpdateKind::Add), 12, ALPHA));
    assert_eq!((last.bid().unwrap().1.0, last.ask().unwrap().0.0), (500, 100_100));
    assert_eq!(last.ts_event, 34_200_000_000_007);
    check_health(&feed, BookHealth::Live, None);
}

#[test]
fn a_modification_keeps_the_place_unless_the_price_or_the_flag_says_otherwise() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 300));
    feed.send(&add(3, 11, Side::Buy, 100_000, 200));
    feed.send(&modify(4, 10, 100_000, 250, PositionChange::KEPT));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_000, 250), (11, 100_000, 200)]);
    assert_eq!((feed.last().kind(), feed.last().qty), (Some(UpdateKind::Reduce), 50));
    feed.send(&modify(5, 10, 100_000, 400, PositionChange::KEPT));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_000, 400), (11, 100_000, 200)]);
    assert_eq!((feed.last().kind(), feed.last().qty), (Some(UpdateKind::Replace), 400));
    feed.send(&modify(6, 10, 100_000, 400, PositionChange::LOST));
    assert_eq!(feed.orders(1, Side::Buy), [(11, 100_000, 200), (10, 100_000, 400)]);
    feed.send(&modify(7, 11, 99_900, 200, PositionChange::KEPT));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_000, 400), (11, 99_900, 200)]);
    check_health(&feed, BookHealth::Live, None);
}

#[test]
fn executions_reduce_orders_at_the_trade_price() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Sell, 100_000, 300));
    feed.send(&execution(3, 10, 99_950, 100));
    assert_eq!(feed.orders(1, Side::Sell), [(10, 100_000, 200)]);
    assert_eq!(
        (feed.last().kind(), feed.last().price, feed.last().qty),
        (Some(UpdateKind::Trade), 99_950, 100)
    );
    feed.send(&execution(4, 10, 100_000, 200));
    assert_eq!(feed.orders(1, Side::Sell), []);
    check_health(&feed, BookHealth::Live, None);
    feed.send(&add(5, 11, Side::Sell, 100_000, 10));
    feed.send(&execution(6, 11, 100_000, 11));
    assert_eq!(feed.orders(1, Side::Sell), []);
    check_suspect(&feed, SuspectReason::BeyondQty);
}

#[test]
fn a_replacement_is_another_order_at_the_tail() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 300));
    feed.send(&add(3, 11, Side::Buy, 100_000, 200));
    feed.send(&replace(4, 10, 12, 100_000, 250));
    assert_eq!(feed.orders(1, Side::Buy), [(11, 100_000, 200), (12, 100_000, 250)]);
    feed.send(&delete(5, 11));
    assert_eq!(feed.orders(1, Side::Buy), [(12, 100_000, 250)]);
    check_health(&feed, BookHealth::Live, None);
    feed.send(&delete(6, 11));
    check_suspect(&feed, SuspectReason::UnknownOrder);
}

#[test]
fn invalid_messages_make_the_book_suspect() {
    for (message, reason) in [
        (add(2, 10, Side::Buy, 100_000, 0), SuspectReason::Refused),
        (xdp::AddOrder { side: xdp::Side(b'X'), ..add(2, 10, Side::Buy, 1, 1) }, SuspectReason::Refused),
        (add(4, 10, Side::Buy, 100_000, 1), SuspectReason::SymbolGap),
    ] {
        let mut feed = Feed::trading();
        feed.send(&message);
        check_suspect(&feed, reason);
    }
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 1));
    feed.send(&add(3, 10, Side::Buy, 99_000, 1));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_000, 1)]);
    check_suspect(&feed, SuspectReason::DuplicateOrder);

    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 1));
    feed.send(&add(3, 11, Side::Sell, 100_000, 1));
    check_suspect(&feed, SuspectReason::Crossed);

    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 5));
    feed.send(&modify(3, 10, 100_000, 0, PositionChange::KEPT));
    assert_eq!(feed.orders(1, Side::Buy), []);
    check_suspect(&feed, SuspectReason::Refused);
}

#[test]
fn a_damaged_message_makes_the_book_suspect_that_it_names() {
    let mut feed = Feed::trading();
    let mut bytes = zerocopy::IntoBytes::as_bytes(&add(2, 10, Side::Buy, 100_000, 1)).to_vec();
    bytes.truncate(30);
    bytes[0] = 30;
    feed.send_bytes(&bytes);
    check_suspect(&feed, SuspectReason::Malformed);
    let beta = feed.builder.instruments().instrument(InstrumentId(2)).unwrap();
    assert_eq!(beta.health, BookHealth::Live);
    // A message that names no symbol may concern any book.
    feed.send_bytes(&[9]);
    let beta = feed.builder.instruments().instrument(InstrumentId(2)).unwrap();
    assert_eq!((beta.health, beta.reason), (BookHealth::Suspect, Some(SuspectReason::Malformed)));
}

#[test]
fn an_index_that_was_never_mapped_is_counted() {
    let mut feed = Feed::trading();
    feed.send(&add_of(9, 1, 10, Side::Buy, 100_000, 1));
    assert_eq!(feed.builder.instruments().counters().unmapped, 1);
    check_health(&feed, BookHealth::Live, None);
    // The books have no capacity for a third symbol.
    feed.send(&mapping(2, "GAMMA", 4));
    feed.send(&add_of(2, 1, 10, Side::Buy, 100_000, 1));
    assert_eq!(feed.builder.instruments().counters().unmapped, 2);
    assert_eq!(feed.builder.find(INDEX + 1), Some(InstrumentId(2)));
    assert_eq!(feed.builder.symbol_index(InstrumentId(2)), Some(INDEX + 1));
    assert_eq!((feed.builder.find(INDEX + 2), feed.builder.symbol_index(InstrumentId(3))), (None, None));
}

#[test]
fn an_index_that_means_another_symbol_makes_the_book_suspect() {
    let mut feed = Feed::trading();
    feed.send(&mapping(0, "ALPHA", 4));
    check_health(&feed, BookHealth::Live, None);
    feed.send(&mapping(0, "OMEGA", 4));
    check_suspect(&feed, SuspectReason::OtherSymbol);
    let mut feed = Feed::trading();
    feed.send(&mapping(0, "ALPHA", 6));
    check_suspect(&feed, SuspectReason::OtherSymbol);
    let mut feed = Feed::trading();
    feed.send(&mapping(0, "ALPHA", 9));
    check_suspect(&feed, SuspectReason::Refused);
}

#[test]
fn prices_are_those_of_the_scale_exactly() {
    let mut feed = Feed::new(2);
    feed.send(&mapping(0, "ALPHA", 6));
    feed.send(&add(1, 10, Side::Buy, 10_010_000, 1_200));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_100, 1_200)]);
    check_health(&feed, BookHealth::Live, None);
    // A trade at a price with more than four decimals changes the order, but no update states its price.
    feed.send(&execution(2, 10, 10_010_050, 200));
    assert_eq!((feed.last().kind(), feed.last().qty), (Some(UpdateKind::Reduce), 200));
    check_health(&feed, BookHealth::Live, None);
    feed.send(&add(3, 11, Side::Buy, 10_010_001, 1));
    check_suspect(&feed, SuspectReason::Refused);
    feed.send(&mapping(1, "TWOPLACES", 2));
    feed.send(&add_of(1, 1, 10, Side::Buy, 2_756, 1));
    assert_eq!(feed.orders(2, Side::Buy)[0].1, 275_600);
}

#[test]
fn numbers_of_orders_are_a_symbols_own() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 1));
    feed.send(&add_of(1, 2, 10, Side::Buy, 50_000, 2));
    feed.send(&xdp::DeleteOrder::new(7, INDEX + 1, 3, 10, 0));
    assert_eq!((feed.orders(1, Side::Buy).len(), feed.orders(2, Side::Buy).len()), (1, 0));
    assert_eq!(feed.last().order_id, 10, "the venue's number is published");
    feed.send(&add_of(1, 4, 10, Side::Buy, 50_000, 2));
    feed.send(&delete(3, 10));
    // BETA's order 10 rests under a substitute id. A second one is a duplicate, although id 10 is now free.
    feed.send(&add_of(1, 5, 10, Side::Buy, 50_000, 2));
    assert_eq!(feed.builder.instruments().counters().duplicate_order, 1);
    feed.send(&xdp::OrderExecution::new(
        7,
        INDEX + 1,
        6,
        10,
        1,
        50_000,
        2,
        xdp::PrintableFlag::PRINTED,
        0,
        [xdp::TradeCondition::NONE; 4],
    ));
    assert_eq!(feed.orders(2, Side::Buy), []);
    assert_eq!(feed.builder.instruments().counters().unknown_order, 0);
}

#[test]
fn states_follow_the_status() {
    let mut feed = Feed::trading();
    let mut seq = 1;
    let mut check = |code, market, halt, expected| {
        seq += 1;
        feed.send(&halted(0, seq, code, market, halt));
        let trading = feed.builder.instruments().instrument(ALPHA).unwrap().trading;
        assert_eq!(trading, Some(expected), "{code:?} {market:?} {halt:?}");
        assert_eq!(feed.last().kind(), Some(UpdateKind::Status));
    };
    let (core, none) = (MarketState::CORE, HaltCondition::NONE);
    check(SecurityStatusCode::PRE_OPENING, MarketState::PRE_OPENING, none, TradingState::QuotationOnly);
    check(SecurityStatusCode::EARLY, MarketState::EARLY, none, TradingState::Trading);
    check(SecurityStatusCode::HALT, core, HaltCondition::LULD, TradingState::Paused);
    check(SecurityStatusCode::HALT_INDICATION, core, HaltCondition::LULD, TradingState::Paused);
    check(SecurityStatusCode::RESUME, core, none, TradingState::Trading);
    check(SecurityStatusCode::HALT, core, HaltCondition::NEWS_PENDING, TradingState::Halted);
    check(SecurityStatusCode::SSR_DAY_1, core, HaltCondition::NEWS_PENDING, TradingState::Halted);
    check(SecurityStatusCode::LATE, MarketState::LATE, HaltCondition::NEWS_PENDING, TradingState::Halted);
    check(SecurityStatusCode::RESUME, MarketState::PRE_OPENING, none, TradingState::QuotationOnly);
    check(SecurityStatusCode::CLOSED, MarketState::CLOSED, none, TradingState::Halted);
    check_health(&feed, BookHealth::Live, None);
}

#[test]
fn the_close_empties_the_book_and_a_halt_does_not() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 1));
    feed.send(&halted(0, 3, SecurityStatusCode::HALT, MarketState::CORE, HaltCondition::NEWS_PENDING));
    assert_eq!(feed.orders(1, Side::Buy).len(), 1);
    feed.send(&status(0, 4, SecurityStatusCode::CLOSED, MarketState::CLOSED));
    assert_eq!(feed.orders(1, Side::Buy), []);
    assert_eq!(feed.last().bid(), None);
    check_health(&feed, BookHealth::Live, None);
}

#[test]
fn lost_messages_make_the_books_stale_until_a_refresh() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 1));
    feed.builder.handle_lost_on(CHANNEL, &mut feed.updates);
    check_health(&feed, BookHealth::Stale, None);
    assert_eq!(feed.last().health(), BookHealth::Stale);
    // In a stale book, a gap in the symbol's own sequence numbers is not counted.
    feed.send(&add(5, 12, Side::Buy, 99_000, 1));
    check_health(&feed, BookHealth::Stale, None);
    assert_eq!(feed.builder.instruments().counters().symbol_gaps, 0);
    feed.send(&xdp::SymbolClear::new(MIDNIGHT_SECS, 0, INDEX, 6));
    assert_eq!(feed.orders(1, Side::Buy), []);
    check_health(&feed, BookHealth::Live, None);
    let firm = xdp::Firm::NONE;
    feed.send(&xdp::AddOrderRefresh::new(
        MIDNIGHT_SECS,
        0,
        INDEX,
        5,
        12_u64,
        99_000,
        1,
        xdp::Side::BUY,
        firm,
        0,
    ));
    feed.send(&add(6, 13, Side::Buy, 99_000, 1));
    assert_eq!(feed.orders(1, Side::Buy), [(12, 99_000, 1), (13, 99_000, 1)]);
    check_health(&feed, BookHealth::Live, None);
}

#[test]
fn off_book_trades_are_published_and_change_nothing() {
    let mut feed = Feed::trading();
    feed.send(&add(2, 10, Side::Buy, 100_000, 1));
    let conditions = [xdp::TradeCondition::NONE; 4];
    let printed = xdp::PrintableFlag::PRINTED;
    feed.send(&xdp::NonDisplayedTrade::new(7, INDEX, 3, 5, 100_050, 40, printed, conditions));
    assert_eq!((feed.last().kind(), feed.last().order_id, feed.last().qty), (Some(UpdateKind::Trade), 0, 40));
    assert_eq!(feed.last().aggressor(), None, "XDP does not state it");
    feed.send(&xdp::CrossTrade::new(7, INDEX, 4, 6, 100_050, 900, xdp::CrossType::OPENING));
    assert_eq!((feed.last().price, feed.last().qty), (100_050, 900));
    feed.send(&xdp::TradeCancel::new(7, INDEX, 5, 5));
    feed.send(&xdp::CrossCorrection::new(7, INDEX, 6, 6, 800));
    feed.send(&xdp::RetailPriceImprovement::new(7, INDEX, 7, xdp::RpiIndicator::BID));
    feed.send_bytes(&[5, 0, 140, 0, 1]);
    // The order's SymbolSeqNum follows that of the retail price improvement message.
    feed.send(&add(8, 11, Side::Buy, 99_000, 1));
    let counters = feed.builder.instruments().counters();
    assert_eq!((counters.unknown_type, counters.symbol_gaps), (1, 0));
    assert_eq!(feed.orders(1, Side::Buy), [(10, 100_000, 1), (11, 99_000, 1)]);
    check_health(&feed, BookHealth::Live, None);
}

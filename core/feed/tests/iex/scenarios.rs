//! Scenarios of each kind of IEX message, and of messages that make a book suspect.

use tickpath_book::BooksById;
use tickpath_feed::MessageBooks;
use tickpath_iex::{
    AddOrder, ClearBook, Feed, ModifyFlags, OperationalHalt, OrderDelete, OrderExecuted, OrderModify,
    PriceLevelUpdate, QuoteFlags, QuoteUpdate, SaleFlags, SystemEvent, SystemEventCode, TradeBreak,
    TradeReport, TradingCode, TradingStatus, wire::Alpha,
};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, OrderId, Price, Qty, Side, SuspectReason, Symbol,
    TradingState, UpdateKind,
};
use zerocopy::IntoBytes;

use super::{Channel, ticker};

fn level(side: Side, is_complete: bool, size: u32, price: i64) -> PriceLevelUpdate {
    PriceLevelUpdate::of(side, is_complete, Nanos(7), ticker("ALPHA"), size, price)
}

fn trade(size: u32, price: i64) -> TradeReport {
    TradeReport::new(SaleFlags(0), Nanos(8), ticker("ALPHA"), size, price, 1)
}

fn best(update: &MarketUpdate) -> (Option<i64>, Option<i64>) {
    (update.bid().map(|(price, _)| price.0), update.ask().map(|(price, _)| price.0))
}

#[test]
fn a_level_is_replaced_and_size_zero_removes_it() {
    let mut deep = Channel::trading(Feed::Deep10);
    let seen = |updates: Vec<MarketUpdate>| {
        let [update] = updates[..] else { panic!("one update: {updates:?}") };
        (update.kind().unwrap(), update.qty, update.bid())
    };
    let bid = |qty| Some((Price(100), Qty(qty)));
    assert_eq!(seen(deep.send(&level(Side::Buy, true, 400, 100))), (UpdateKind::Add, 400, bid(400)));
    assert_eq!(seen(deep.send(&level(Side::Buy, true, 500, 100))), (UpdateKind::Add, 100, bid(500)));
    assert_eq!(seen(deep.send(&level(Side::Buy, true, 150, 100))), (UpdateKind::Reduce, 350, bid(150)));
    assert_eq!(seen(deep.send(&level(Side::Buy, true, 0, 100))), (UpdateKind::Delete, 150, None));
    // Removal of a level that does not exist is no contradiction.
    assert_eq!(seen(deep.send(&level(Side::Buy, true, 0, 100))), (UpdateKind::Reduce, 0, None));
    assert_eq!(deep.health("ALPHA"), BookHealth::Live);
}

#[test]
fn best_prices_change_when_the_last_level_of_a_change_came() {
    let mut deep = Channel::trading(Feed::Deep10);
    deep.send(&level(Side::Buy, true, 100, 100));
    deep.send(&level(Side::Sell, true, 100, 110));
    // A trade removes the bid, then the ask moves down. The books between these messages never existed in the
    // market, so no update states their best prices.
    let update = deep.send(&level(Side::Buy, false, 0, 100))[0];
    assert_eq!((update.kind(), best(&update)), (Some(UpdateKind::Delete), (Some(100), Some(110))));
    assert_eq!(best(&deep.send(&level(Side::Buy, false, 50, 90))[0]), (Some(100), Some(110)));
    assert_eq!(best(&deep.send(&trade(10, 100))[0]), (Some(100), Some(110)));
    assert_eq!(best(&deep.halt("ALPHA", OperationalHalt::HALTED)[0]), (Some(100), Some(110)));
    let update = deep.send(&level(Side::Sell, true, 70, 95))[0];
    assert_eq!((best(&update), update.ask.qty), ((Some(90), Some(95)), 70));
}

#[test]
fn a_book_that_is_crossed_while_it_trades_is_suspect_and_one_that_passes_through_is_not() {
    let mut deep = Channel::trading(Feed::Deep10);
    deep.send(&level(Side::Buy, true, 100, 100));
    deep.send(&level(Side::Sell, false, 100, 95));
    deep.send(&level(Side::Buy, true, 0, 100));
    assert_eq!((deep.health("ALPHA"), deep.builder.counters().crossed), (BookHealth::Live, 0));
    let updates = deep.send(&level(Side::Buy, true, 100, 95));
    let published: Vec<_> = updates.iter().map(|update| (update.kind().unwrap(), update.reason())).collect();
    assert_eq!(published, [(UpdateKind::Add, None), (UpdateKind::Status, Some(SuspectReason::Crossed))]);
    assert_eq!(deep.health("ALPHA"), BookHealth::Suspect);
    // Each change that leaves the book crossed is counted; the book's health is reported once.
    assert_eq!(deep.send(&level(Side::Buy, true, 100, 96)).len(), 1);
    assert_eq!(deep.builder.counters().crossed, 2);
}

#[test]
fn the_trading_state_combines_both_halts() {
    let mut deep = Channel::new(Feed::Deep10);
    let states = |updates: Vec<MarketUpdate>| {
        updates.iter().map(|update| update.trading().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(states(deep.status("ALPHA", TradingCode::TRADING)), [TradingState::Trading]);
    assert_eq!(states(deep.status("ALPHA", TradingCode::TRADING)), [], "said once");
    assert_eq!(states(deep.halt("ALPHA", OperationalHalt::NOT_HALTED)), []);
    assert_eq!(states(deep.halt("ALPHA", OperationalHalt::HALTED)), [TradingState::Halted]);
    assert_eq!(states(deep.status("ALPHA", TradingCode::ORDER_ACCEPTANCE)), []);
    assert_eq!(states(deep.halt("ALPHA", OperationalHalt::NOT_HALTED)), [TradingState::QuotationOnly]);
    // A crossed book before trading is no contradiction; one at the start of trading is.
    deep.send(&level(Side::Buy, true, 100, 100));
    deep.send(&level(Side::Sell, true, 100, 99));
    assert_eq!(deep.health("ALPHA"), BookHealth::Live);
    deep.status("ALPHA", TradingCode::TRADING);
    assert_eq!(deep.health("ALPHA"), BookHealth::Suspect);
}

#[test]
fn trades_change_no_level_and_state_no_side() {
    let mut deep = Channel::trading(Feed::Deep10);
    let seen = |updates: Vec<MarketUpdate>| {
        let [update] = updates[..] else { panic!("one update: {updates:?}") };
        (update.kind().unwrap(), update.price, update.aggressor())
    };
    assert_eq!(seen(deep.send(&trade(5, 100))), (UpdateKind::Trade, 100, None), "nothing rests");
    deep.send(&level(Side::Buy, true, 100, 100));
    deep.send(&level(Side::Sell, true, 100, 110));
    for price in [100, 104, 110, 200] {
        assert_eq!(seen(deep.send(&trade(5, price))), (UpdateKind::Trade, price, None));
    }
    deep.send(&TradeBreak::new(SaleFlags(0), Nanos(9), ticker("ALPHA"), 5, 110, 1));
    assert_eq!((deep.builder.books().order_count(), deep.health("ALPHA")), (2, BookHealth::Live));
}

#[test]
fn a_quote_replaces_both_sides_and_recovers_its_book() {
    let mut tops = Channel::trading(Feed::Tops16);
    let quote = |bid: (u32, i64), ask: (u32, i64)| {
        QuoteUpdate::new(QuoteFlags(0), Nanos(7), ticker("ALPHA"), bid.0, bid.1, ask.1, ask.0)
    };
    let updates = tops.send(&quote((100, 90), (200, 95)));
    assert_eq!(updates.len(), 2);
    assert!(updates.iter().all(|update| best(update) == (Some(90), Some(95))));
    assert_eq!(tops.send(&quote((100, 90), (200, 95))), [], "nothing changed");
    let updates = tops.send(&quote((100, 90), (0, 0)));
    assert_eq!((updates[0].kind(), best(&updates[0])), (Some(UpdateKind::Delete), (Some(90), None)));
    let updates = tops.send(&quote((100, 91), (0, 0)));
    assert_eq!((updates[0].kind(), best(&updates[0])), (Some(UpdateKind::Replace), (Some(91), None)));

    tops.updates.0.clear();
    tops.builder.handle_lost(&mut tops.updates);
    assert_eq!(tops.health("ALPHA"), BookHealth::Stale);
    assert_eq!(tops.send(&quote((100, 92), (0, 0)))[0].health(), BookHealth::Live);
    tops.send(&quote((100, 92), (100, 92)));
    assert_eq!(tops.health("ALPHA"), BookHealth::Suspect);
    tops.send(&quote((100, 92), (100, 93)));
    assert_eq!(tops.health("ALPHA"), BookHealth::Live);
}

fn add(id: u64, side: Side, size: u32, price: i64) -> AddOrder {
    AddOrder::new(side, Nanos(7), ticker("ALPHA"), OrderId(id), size, price)
}

fn modify(id: u64, flags: u8, size: u32, price: i64) -> OrderModify {
    OrderModify::new(ModifyFlags(flags), Nanos(7), ticker("ALPHA"), OrderId(id), size, price)
}

fn queue(channel: &Channel) -> Vec<(u64, i64, u64)> {
    let orders = channel.builder.books().orders(channel.id("ALPHA"), Side::Buy);
    orders.map(|order| (order.id.0, order.price.0, order.qty.0)).collect()
}

#[test]
fn the_flag_decides_whether_orders_keep_priority() {
    let mut deep = Channel::trading(Feed::DeepPlus10);
    for id in [1, 2, 3] {
        deep.send(&add(id, Side::Buy, 100, 50));
    }
    deep.send(&modify(1, 0x01, 60, 50));
    assert_eq!(queue(&deep), [(1, 50, 60), (2, 50, 100), (3, 50, 100)]);
    deep.send(&modify(1, 0x80, 60, 50));
    deep.send(&modify(2, 0x00, 40, 50));
    assert_eq!(queue(&deep), [(1, 50, 60), (3, 50, 100), (2, 50, 40)]);
    deep.send(&modify(3, 0x01, 100, 51));
    deep.send(&modify(1, 0x01, 70, 50));
    assert_eq!(queue(&deep), [(3, 51, 100), (2, 50, 40), (1, 50, 70)]);
    // An execution reduces the order at its level, whatever the trade price.
    let executed = OrderExecuted::new(SaleFlags(0), Nanos(9), ticker("ALPHA"), OrderId(3), 30, 52, 9);
    let update = deep.send(&executed)[0];
    assert_eq!((update.kind(), update.price, update.qty), (Some(UpdateKind::Trade), 52, 30));
    deep.send(&OrderExecuted::new(SaleFlags(0), Nanos(9), ticker("ALPHA"), OrderId(3), 70, 51, 9));
    deep.send(&OrderDelete::new(b' ', Nanos(9), ticker("ALPHA"), OrderId(2)));
    deep.send(&modify(1, 0x00, 0, 50));
    assert_eq!((queue(&deep), deep.health("ALPHA")), (vec![], BookHealth::Live));
    // The id of a removed order may be used again.
    deep.send(&add(2, Side::Buy, 5, 49));
    assert_eq!((queue(&deep), deep.health("ALPHA")), (vec![(2, 49, 5)], BookHealth::Live));
}

/// Messages of one event arrive together: updates omit the best prices between them, which never existed.
#[test]
fn messages_of_one_time_change_the_best_prices_together() {
    let mut deep = Channel::trading(Feed::DeepPlus10);
    deep.send(&add(1, Side::Buy, 100, 50));
    deep.send(&add(2, Side::Sell, 100, 60));
    let symbol = ticker("ALPHA");
    let executed = OrderExecuted::new(SaleFlags(0), Nanos(9), symbol, OrderId(1), 100, 50, 9);
    let behind = AddOrder::new(Side::Sell, Nanos(9), symbol, OrderId(3), 40, 50);
    let updates = deep.send_together(&[executed.as_bytes(), behind.as_bytes()]);
    let published: Vec<_> = updates.iter().map(|update| (update.kind().unwrap(), best(update))).collect();
    assert_eq!(published, [(UpdateKind::Trade, (Some(50), Some(60))), (UpdateKind::Add, (None, Some(50)))]);
    // A message with another time, symbol or kind begins a separate event.
    let later = AddOrder::new(Side::Buy, Nanos(10), symbol, OrderId(4), 5, 40);
    let other = AddOrder::new(Side::Buy, Nanos(11), ticker("BRAVO"), OrderId(5), 5, 41);
    let status = TradingStatus::new(TradingCode::TRADING, Nanos(11), ticker("BRAVO"), Alpha(*b"    "));
    let updates = deep.send_together(&[later.as_bytes(), other.as_bytes(), status.as_bytes()]);
    let bests: Vec<_> = updates.iter().map(|update| best(update).0).collect();
    assert_eq!(bests, [Some(40), Some(41), Some(41)]);
}

#[test]
fn a_book_crossed_within_an_event_is_checked_after_it() {
    for (size_taken, health) in [(100, BookHealth::Live), (99, BookHealth::Suspect)] {
        let mut deep = Channel::trading(Feed::DeepPlus10);
        deep.send(&add(1, Side::Buy, 100, 50));
        let symbol = ticker("ALPHA");
        let crossing = AddOrder::new(Side::Sell, Nanos(9), symbol, OrderId(2), 40, 50);
        let taken = OrderExecuted::new(SaleFlags(0), Nanos(9), symbol, OrderId(1), size_taken, 50, 9);
        let updates = deep.send_together(&[crossing.as_bytes(), taken.as_bytes()]);
        assert_eq!(updates[0].health(), BookHealth::Live);
        assert_eq!((deep.health("ALPHA"), updates.last().unwrap().health()), (health, health));
    }
}

#[test]
fn an_event_that_ends_in_a_contradiction_is_published() {
    let mut deep = Channel::trading(Feed::DeepPlus10);
    deep.send(&add(1, Side::Buy, 100, 50));
    let delete = |id| OrderDelete::new(b' ', Nanos(9), ticker("ALPHA"), OrderId(id));
    deep.send(&delete(8));
    assert_eq!(deep.health("ALPHA"), BookHealth::Suspect);
    let updates = deep.send_together(&[delete(1).as_bytes(), delete(7).as_bytes()]);
    let published: Vec<_> = updates.iter().map(|update| (update.kind().unwrap(), best(update).0)).collect();
    assert_eq!(published, [(UpdateKind::Delete, Some(50)), (UpdateKind::Status, None)]);
}

#[test]
fn contradictions_make_the_book_suspect_until_it_is_cleared() {
    type Act = fn(&mut Channel);
    let cases: &[(SuspectReason, Act)] = &[
        (SuspectReason::UnknownOrder, |deep| {
            _ = deep.send(&OrderDelete::new(b' ', Nanos(9), ticker("ALPHA"), OrderId(9)));
        }),
        (SuspectReason::UnknownOrder, |deep| _ = deep.send(&modify(9, 0, 1, 1))),
        (SuspectReason::BeyondQty, |deep| {
            let symbol = ticker("ALPHA");
            _ = deep.send(&OrderExecuted::new(SaleFlags(0), Nanos(9), symbol, OrderId(1), 101, 50, 9));
        }),
        (SuspectReason::DuplicateOrder, |deep| {
            deep.send(&add(1, Side::Buy, 7, 49));
            assert_eq!(queue(deep), [(1, 49, 7)], "the later one is right");
        }),
        (SuspectReason::Crossed, |deep| _ = deep.send(&add(2, Side::Sell, 7, 50))),
        (SuspectReason::Refused, |deep| _ = deep.send(&AddOrder::new(b'?', 1, ticker("ALPHA"), 3, 1, 1))),
        (SuspectReason::Malformed, |deep| {
            _ = deep.send_bytes(&add(2, Side::Buy, 1, 1).as_bytes()[..37]);
        }),
    ];
    for (reason, act) in cases {
        let mut deep = Channel::trading(Feed::DeepPlus10);
        deep.send(&add(1, Side::Buy, 100, 50));
        assert_eq!(deep.health("ALPHA"), BookHealth::Live);
        act(&mut deep);
        let id = deep.id("ALPHA");
        assert_eq!(
            (deep.health("ALPHA"), deep.builder.instrument(id).unwrap().reason),
            (BookHealth::Suspect, Some(*reason))
        );
        deep.send(&ClearBook::new(b' ', Nanos(9), ticker("ALPHA")));
        assert_eq!((deep.health("ALPHA"), queue(&deep)), (BookHealth::Live, vec![]));
    }
}

#[test]
fn levels_that_no_book_holds_are_refused() {
    for price in [0, -1, 1 << 47, i64::MAX] {
        let mut deep = Channel::trading(Feed::Deep10);
        deep.send(&level(Side::Buy, true, 1, price));
        assert_eq!((deep.health("ALPHA"), deep.builder.counters().refused), (BookHealth::Suspect, 1));
    }
    let mut deep = Channel::trading(Feed::Deep10);
    (1..=17).for_each(|price| _ = deep.send(&level(Side::Buy, true, 1, price)));
    assert_eq!((deep.health("ALPHA"), deep.builder.counters().refused), (BookHealth::Suspect, 1));
}

#[test]
fn unknown_messages_are_counted_and_skipped() {
    let mut deep = Channel::trading(Feed::Deep10);
    deep.send(&add(1, Side::Buy, 100, 50));
    deep.send_bytes(b"zzz");
    deep.send_bytes(&[]);
    assert_eq!(deep.builder.counters().unknown_type, 2);
    assert_eq!(deep.health("ALPHA"), BookHealth::Live);
    // A message longer than its type's known length is not malformed.
    let mut grown = level(Side::Buy, true, 5, 50).as_bytes().to_vec();
    grown.extend([1, 2, 3]);
    deep.send_bytes(&grown);
    assert_eq!(deep.builder.books().order_count(), 1);
    // A damaged message without a symbol may concern any book.
    deep.status("BRAVO", TradingCode::TRADING);
    deep.send_bytes(&level(Side::Buy, true, 5, 50).as_bytes()[..17]);
    assert_eq!([deep.health("ALPHA"), deep.health("BRAVO")], [BookHealth::Suspect; 2]);
}

#[test]
fn symbols_take_books_in_their_order_and_those_beyond_the_bound_have_none() {
    let mut deep = Channel::new(Feed::Deep10);
    for symbol in ["A", "B", "C", "D"] {
        deep.status(symbol, TradingCode::TRADING);
    }
    assert_eq!(["A", "B", "C"].map(|symbol| deep.id(symbol)), [1, 2, 3].map(InstrumentId));
    assert_eq!(deep.builder.find(Symbol::new("D").unwrap()), None);
    assert_eq!((deep.builder.instruments().is_complete(), deep.builder.symbol_count()), (false, 3));
}

#[test]
fn a_restart_and_the_end_of_the_day_empty_the_books() {
    let mut deep = Channel::trading(Feed::Deep10);
    deep.send(&level(Side::Buy, true, 100, 100));
    deep.send(&level(Side::Sell, true, 100, 99));
    assert_eq!(deep.health("ALPHA"), BookHealth::Suspect);
    deep.updates.0.clear();
    deep.builder.handle_restart(&mut deep.updates);
    let update = deep.updates.0.pop().unwrap();
    assert_eq!((update.health(), update.trading(), best(&update)), (BookHealth::Live, None, (None, None)));
    deep.send(&level(Side::Buy, true, 100, 100));
    let updates = deep.send(&SystemEvent::new(SystemEventCode::END_OF_MESSAGES, 5));
    assert_eq!((updates.len(), best(&updates[0])), (1, (None, None)));
    assert_eq!(deep.builder.books().order_count(), 0);
}

#[test]
fn times_are_since_the_midnight_that_is_given() {
    let books = tickpath_book::Indexed::<tickpath_reference::ReferenceBooks>::new(
        tickpath_book::BookLimits::new(InstrumentId(1), 4),
    );
    let midnight = Nanos(1_493_092_800_000_000_000);
    let mut builder = tickpath_feed::iex::BookBuilder::new(Feed::Deep10, books).since(midnight);
    let mut updates = super::Updates::default();
    let message = PriceLevelUpdate::of(Side::Buy, true, Nanos(midnight.0 + 55), ticker("A"), 1, 1);
    builder.handle_message(tickpath_types::Sequence(1), message.as_bytes(), &mut updates);
    assert_eq!(updates.0[0].ts_event, 55);
}

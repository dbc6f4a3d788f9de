//! The gateway between clients and the venue's own Deribit front.
#![allow(clippy::unwrap_used)]

mod support;

use support::{PERPETUAL, TestGateway, TestVenue, fixed};
use tickpath_gateway_protocol::{
    AckStatus, Event, MarketByPrice, OrderStatus, PositionUpdate, Side, TopOfBook, TradeUpdate,
};

#[test]
fn an_order_lives_and_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start(folder.path(), venue.address);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    assert_eq!(id, 1001);
    let working = trader.wait_order(id, OrderStatus::WORKING);
    assert_eq!(trader.acks(id), [AckStatus::FORWARDED, AckStatus::ACCEPTED]);
    assert_eq!(
        (working.order_id, working.price, working.remaining_quantity),
        (10_000_001, fixed("59000"), fixed("100"))
    );
    assert!(!working.external_order_id.is_empty());
    trader.wait("the order in the book", |own| {
        own.all::<TopOfBook>()
            .any(|(_, top)| top.bid_price == fixed("59000") && top.bid_quantity == fixed("100"))
            .then_some(())
    });
    trader.cancel(account, symbol, id);
    let canceled = trader.wait_order(id, OrderStatus::CANCELED);
    assert_eq!(canceled.remaining_quantity, fixed("0"));
    trader.wait("the last ack", |own| (own.acks(id).len() == 4).then_some(()));
    assert_eq!(
        trader.acks(id),
        [AckStatus::FORWARDED, AckStatus::ACCEPTED, AckStatus::FORWARDED, AckStatus::ACCEPTED]
    );
    assert_eq!(trader.statuses(id), [OrderStatus::WORKING, OrderStatus::CANCELED]);
    gateway.stop();
    venue.stop();
}

#[test]
fn two_clients_trade_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start(folder.path(), venue.address);
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (of_maker, symbol) = maker.ready(PERPETUAL);
    let (account, _) = trader.ready(PERPETUAL);
    assert_ne!(account, of_maker);
    let resting = maker.create(of_maker, symbol, Side::SELL, "1000", "60010");
    maker.wait_order(resting, OrderStatus::WORKING);
    let taking = trader.create(account, symbol, Side::BUY, "400", "60010");
    let filled = trader.wait_order(taking, OrderStatus::COMPLETED);
    assert_eq!((filled.traded_quantity, filled.average_price), (fixed("400"), fixed("60010")));
    let of_trade = |(_, trade): (Event, TradeUpdate)| (trade.client_order_id, trade.price, trade.quantity);
    trader.wait("the trade", |own| own.all::<TradeUpdate>().next().map(|_| ()));
    maker.wait("the maker's trade", |own| own.all::<TradeUpdate>().next().map(|_| ()));
    assert_eq!(trader.all().map(of_trade).collect::<Vec<_>>(), [(taking, fixed("60010"), fixed("400"))]);
    assert_eq!(maker.all().map(of_trade).collect::<Vec<_>>(), [(resting, fixed("60010"), fixed("400"))]);
    trader.wait("the position", |own| {
        own.all::<PositionUpdate>().any(|(_, position)| position.quantity == fixed("400")).then_some(())
    });
    let rest =
        maker.wait("what is left", |own| own.order(resting).filter(|it| it.traded_quantity == fixed("400")));
    assert_eq!((rest.status, rest.remaining_quantity), (OrderStatus::WORKING, fixed("600")));
    trader.wait("the book", |own| {
        let is_rest = |(_, book): (Event, MarketByPrice)| {
            book.ask_levels()
                .iter()
                .any(|level| (level.price, level.quantity) == (fixed("60010"), fixed("600")))
        };
        own.all().any(is_rest).then_some(())
    });
    gateway.stop();
    venue.stop();
}

//! The gateway between clients and the venue's own Deribit front.
#![allow(clippy::unwrap_used)]

mod candles;
mod fix;
mod limits;
mod log;
mod quotes;
mod slow;
mod standing;
mod stop;
mod tls;
mod ways;

use crate::support;
use std::time::Duration;

use tickpath_agent::{Agent, TscClock, thread_allocations};
use tickpath_test_support::{Deadline, wait_until};

use crate::support::{Killable, PERPETUAL, TestGateway, TestVenue, fixed};
use tickpath_gateway_protocol::{
    AckStatus, Event, MarketByPrice, OrderStatus, PositionUpdate, Ready, ReadyScope, ReferenceData, Side,
    StreamStatus, TopOfBook, TradeUpdate,
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
    assert_eq!(trader.acks(id), [AckStatus::RECEIVED, AckStatus::ACCEPTED]);
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
        [AckStatus::RECEIVED, AckStatus::ACCEPTED, AckStatus::RECEIVED, AckStatus::ACCEPTED]
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

#[test]
fn a_restarted_gateway_finds_the_orders_of_its_earlier_life() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let kept = "cancel_on_disconnect = false";
    let gateway = Killable::start(folder.path(), venue.address, kept);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    let before = trader.wait_order(id, OrderStatus::WORKING);
    // The client keeps running and reconnects.
    gateway.kill();
    let gateway = TestGateway::start_with(folder.path(), venue.address, kept);
    trader.events.clear();
    let (account, symbol) = trader.ready(PERPETUAL);
    let after = trader.wait_order(id, OrderStatus::WORKING);
    assert_eq!(before.external_order_id, after.external_order_id);
    assert!(trader.client.next_order_id() > id);
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
    gateway.stop();
    venue.stop();
}

#[test]
fn the_venue_may_go_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start(folder.path(), venue.address);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    let address = venue.address;
    venue.stop();
    trader.wait("the loss", |own| {
        own.all::<StreamStatus>()
            .any(|(event, body)| body.losses > 0 && event.header.stream > 16)
            .then_some(())
    });
    let refused = trader.create(account, symbol, Side::BUY, "100", "58000");
    trader.wait("the refusal", |own| (own.acks(refused) == [AckStatus::REJECTED]).then_some(()));
    let venue = TestVenue::start_at(folder.path(), address, None);
    trader.wait("a second ready account", |own| {
        let ready = own
            .all::<Ready>()
            .filter(|(event, body)| body.scope == ReadyScope::ACCOUNT && event.header.account == account);
        (ready.count() >= 2).then_some(())
    });
    // Orders outlive the venue's restart, and the gateway knows that this one did.
    assert_eq!(trader.order(id).unwrap().status, OrderStatus::WORKING);
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
    gateway.stop();
    venue.stop();
}

#[test]
fn the_duty_cycle_does_not_allocate() {
    duty_cycles_do_not_allocate(|_| String::new());
}

#[test]
fn the_duty_cycle_does_not_allocate_with_orders_by_fix() {
    duty_cycles_do_not_allocate(|venue| fix::by_fix(venue.fix));
}

/// Number of orders entered at once, and the minimum number of bytes of the venue's answers to them.
const BURST: usize = 200;
const BURST_LEN_MIN: u64 = 40 << 10;

/// Maximum number of bytes waiting in a socket connected to a port of this machine, from `/proc/net/tcp`.
fn waiting_bytes(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let of_line = |line: &str| {
        let mut fields = line.split_whitespace().skip(2);
        let (remote, queues) = (fields.next()?, fields.nth(1)?);
        let is_it = u16::from_str_radix(remote.split(':').nth(1)?, 16) == Ok(port);
        u64::from_str_radix(queues.split(':').nth(1)?, 16).ok().filter(|_| is_it)
    };
    table.lines().filter_map(of_line).max().unwrap_or(0)
}

fn duty_cycles_do_not_allocate(keys: impl Fn(&TestVenue) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    // Recording is on, too.
    let log = format!("{}[event_log]\nfolder = '{}'\n", keys(&venue), folder.path().join("logs").display());
    let (_, mut gateway, socket) = support::build(folder.path(), venue.address, &log);
    let clock = TscClock::shared();
    let connecting = std::thread::spawn(move || {
        let mut trader = support::client(&socket, "trader");
        trader.wait("a connection", |own| own.client.is_connected().then_some(()));
        trader
    });
    let mut allocated = 0;
    let mut cycle = |agent: &mut dyn Agent| {
        let before = thread_allocations();
        agent.do_work(clock.now()).unwrap();
        allocated += thread_allocations() - before;
        std::mem::take(&mut allocated)
    };
    while !connecting.is_finished() {
        cycle(&mut gateway.agent);
    }
    let mut trader = connecting.join().unwrap();
    let deadline = Deadline::start();
    let mut until = |trader: &mut support::TestClient, is_so: &dyn Fn(&support::TestClient) -> bool| {
        let mut sum = 0;
        while !is_so(trader) {
            assert!(!deadline.is_over(), "{}", trader.story());
            sum += cycle(&mut gateway.agent);
            while let Some(event) = trader.client.poll() {
                trader.events.push(event);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        sum
    };
    until(&mut trader, &|own| own.all::<Ready>().any(|(_, body)| body.scope == ReadyScope::ACCOUNT));
    let symbol = trader
        .all::<ReferenceData>()
        .find(|(_, body)| body.name.as_str() == PERPETUAL)
        .unwrap()
        .0
        .header
        .symbol;
    // The codec's buffer grows to the largest burst, so the test first lets many bytes wait in the socket.
    let ids: Vec<u64> = (0..BURST).map(|_| trader.create(1, symbol, Side::BUY, "100", "59000")).collect();
    until(&mut trader, &|own| own.acks(ids[BURST - 1]).contains(&AckStatus::RECEIVED));
    wait_until("the venue's answers", || waiting_bytes(venue.address.port()) >= BURST_LEN_MIN);
    until(&mut trader, &|own| own.order(ids[BURST - 1]).is_some_and(|it| it.status == OrderStatus::WORKING));
    let mut sums = Vec::new();
    for _ in 0..20 {
        let id = trader.create(1, symbol, Side::BUY, "100", "59000");
        let mut sum =
            until(&mut trader, &|own| own.order(id).is_some_and(|it| it.status == OrderStatus::WORKING));
        trader.cancel(1, symbol, id);
        sum += until(&mut trader, &|own| own.order(id).is_some_and(|it| it.status == OrderStatus::CANCELED));
        sums.push(sum);
    }
    assert_eq!(sums[5..].iter().sum::<u64>(), 0, "allocations of each order's way: {sums:?}");
    drop(gateway);
    venue.stop();
}

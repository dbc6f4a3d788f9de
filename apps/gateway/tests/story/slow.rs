//! A client that reads market data too slowly.

use tickpath_gateway_protocol::{
    CustomMessage, CustomRequest, Event, Lapped, OrderStatus, Ready, ReadyScope, Side, TopOfBook,
};

use crate::support::{self, PERPETUAL, TestClient, TestGateway, TestVenue, fixed};

/// Number of broadcast events that a client may lag behind.
const RING: usize = 64;
/// More than the user's request limit.
const LAPS: usize = 12;

/// Broadcasts enough to overrun the ring of every client that does not read.
fn lap_the_others(client: &mut TestClient) {
    for _ in 0..=RING / 16 {
        client.events.clear();
        for _ in 0..16 {
            client.client.request(0, 0, 0, &CustomRequest::default()).unwrap();
        }
        // If this client is overrun itself, the others, which are further behind, are as well.
        client.wait("its own messages", |own| {
            let is_lapped = own.all::<Lapped>().next().is_some();
            (is_lapped || own.all::<CustomMessage>().count() == 16).then_some(())
        });
    }
}

#[test]
fn a_client_that_is_lapped_again_and_again_sees_the_market_and_its_user_trades() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let (text, socket) = support::config_text(folder.path(), venue.address, "");
    let text = text.replacen("request_limit = 10000", "request_limit = 10", 1)
        + &format!("[clients]\nmarket_data_max = {RING}\n");
    let gateway = TestGateway::of(folder.path(), &text, socket);
    let (mut slow, mut trader) = (gateway.client("trader"), gateway.client("trader"));
    let mut maker = gateway.client("maker");
    let (account, symbol) = trader.ready(PERPETUAL);
    slow.ready(PERPETUAL);
    let (of_maker, _) = maker.ready(PERPETUAL);
    for lap in 1..=LAPS {
        slow.events.clear();
        lap_the_others(&mut maker);
        slow.wait(&format!("the instrument after lap {lap}"), |own| {
            let lapped = own.events.iter().position(|event| event.body::<Lapped>().is_some())?;
            let is_told = |event: &Event| {
                event.header.symbol == symbol
                    && event.body::<Ready>().is_some_and(|ready| ready.scope == ReadyScope::INSTRUMENT)
            };
            own.events[lapped..].iter().any(is_told).then_some(())
        });
    }
    slow.events.clear();
    let resting = maker.create(of_maker, symbol, Side::BUY, "100", "59000");
    slow.wait("what changes now", |own| {
        own.all::<TopOfBook>().find(|(_, top)| top.bid_price == fixed("59000")).map(|_| ())
    });
    maker.wait_order(resting, OrderStatus::WORKING);
    let id = trader.create(account, symbol, Side::BUY, "100", "58000");
    trader.wait_order(id, OrderStatus::WORKING);
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
    gateway.stop();
    venue.stop();
}

//! A market maker's day: both sides quoted, moved, filled, cancelled, and removed with their client.

use std::io::{Read, Write};
use std::net::SocketAddrV4;

use tickpath_gateway_protocol::{
    AckStatus, AckType, CancelQuotes, ErrorCode, Event, ExecutionFlags, MassQuote, OrderStatus, OrderUpdate,
    Origin, QuoteAck, Side, TopOfBook, TradeUpdate,
};
use tickpath_test_support::connect;

use crate::support::{PERPETUAL, TestClient, TestGateway, TestVenue, config_text, fixed};

/// Makes the venue watch a group of the account `anna`.
fn watch_group(venue: SocketAddrV4, group: &str) {
    let mut stream = connect(venue);
    let params = format!(
        "index_name=btc_usd&mmp_group={group}&interval=10&frozen_time=1&max_quote_quantity=5&quantity_limit=5"
    );
    let head = "Host: x\r\nAuthorization: Basic YW5uYTp0ZXN0\r\nConnection: close\r\n\r\n";
    write!(stream, "GET /api/v2/private/set_mmp_config?{params} HTTP/1.1\r\n{head}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn quote(bid: &str, ask: &str) -> MassQuote {
    MassQuote {
        quote_set: 7,
        bid_price: fixed(bid),
        bid_quantity: fixed("100"),
        ask_price: fixed(ask),
        ask_quantity: fixed("200"),
        execution: ExecutionFlags::POST_ONLY,
        ..MassQuote::default()
    }
}

/// The venue's answer to a request.
fn answer(client: &mut TestClient, request: AckType, id: u64) -> QuoteAck {
    client.wait("the venue's answer", |own| {
        let acks = own.events.iter().filter_map(|event| event.quote_ack());
        let of_venue = |ack: &QuoteAck| ack.origin == Origin::EXCHANGE || ack.status != AckStatus::RECEIVED;
        acks.filter(of_venue).find(|ack| ack.request == request && ack.request_id == id)
    })
}

fn wait_side(client: &mut TestClient, side: Side, status: OrderStatus, price: &str) -> OrderUpdate {
    client.wait(&format!("a quote at {price} {status}"), |own| {
        let last = own.all::<OrderUpdate>().rev().map(|(_, it)| it).find(|it| it.side == side);
        last.filter(|it| it.status == status && it.price == fixed(price))
    })
}

fn wait_top(client: &mut TestClient, bid: &str, ask: &str) {
    client.wait(&format!("{bid} to {ask}"), |own| {
        let is_it = |(_, top): (Event, TopOfBook)| top.bid_price == fixed(bid) && top.ask_price == fixed(ask);
        own.all().any(is_it).then_some(())
    });
}

#[test]
fn a_market_maker_quotes_and_is_hit_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let (text, socket) = config_text(folder.path(), venue.address, "");
    let text = text.replace("[users.trader]\n", "[users.trader]\nmmp_group = 'desk'\n");
    let gateway = TestGateway::of(folder.path(), &text, socket);
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (account, symbol) = trader.ready(PERPETUAL);
    let (of_maker, _) = maker.ready(PERPETUAL);

    // The venue does not watch the group yet: it rejects both sides, with a text.
    let id = trader.client.request(account, symbol, 0, &quote("59900", "60100")).unwrap();
    let ack = answer(&mut trader, AckType::MASS_QUOTE, id);
    assert_eq!((ack.status, ack.refused, ack.done), (AckStatus::REJECTED, 2, 0), "{ack:?}");
    assert!(ack.error != ErrorCode::default() && !ack.text.is_empty(), "{ack:?}");
    watch_group(venue.address, "desk");

    let id = trader.client.request(account, symbol, 0, &quote("59900", "60100")).unwrap();
    let ack = answer(&mut trader, AckType::MASS_QUOTE, id);
    assert_eq!((ack.status, ack.done, ack.refused, ack.quote_set), (AckStatus::ACCEPTED, 2, 0, 7), "{ack:?}");
    let bid = wait_side(&mut trader, Side::BUY, OrderStatus::WORKING, "59900");
    let ask = wait_side(&mut trader, Side::SELL, OrderStatus::WORKING, "60100");
    assert!(bid.client_order_id == 0 && bid.order_id != ask.order_id, "{bid:?} {ask:?}");
    wait_top(&mut maker, "59900", "60100");

    // Quotes are changed in place.
    let id = trader.client.request(account, symbol, 0, &quote("59950", "60050")).unwrap();
    assert_eq!(answer(&mut trader, AckType::MASS_QUOTE, id).done, 2);
    let moved = wait_side(&mut trader, Side::BUY, OrderStatus::WORKING, "59950");
    assert_eq!((moved.order_id, moved.external_order_id), (bid.order_id, bid.external_order_id));
    wait_side(&mut trader, Side::SELL, OrderStatus::WORKING, "60050");
    wait_top(&mut maker, "59950", "60050");

    // Another account trades with a quote.
    let hit = maker.create(of_maker, symbol, Side::BUY, "200", "60050");
    maker.wait_order(hit, OrderStatus::COMPLETED);
    let done = wait_side(&mut trader, Side::SELL, OrderStatus::COMPLETED, "60050");
    assert_eq!((done.order_id, done.traded_quantity), (ask.order_id, fixed("200")));
    let trade = trader.wait("the trade", |own| own.all::<TradeUpdate>().next().map(|(_, trade)| trade));
    assert_eq!((trade.order_id, trade.price, trade.quantity), (ask.order_id, fixed("60050"), fixed("200")));

    // Quotes are cancelled by their set.
    let id = trader.client.request(account, 0, 0, &CancelQuotes { quote_set: 7 }).unwrap();
    let ack = answer(&mut trader, AckType::CANCEL_QUOTES, id);
    assert_eq!((ack.status, ack.done), (AckStatus::ACCEPTED, 1), "{ack:?}");
    wait_side(&mut trader, Side::BUY, OrderStatus::CANCELED, "59950");

    // Quoted again, and removed with the client.
    let id = trader.client.request(account, symbol, 0, &quote("59800", "60200")).unwrap();
    assert_eq!(answer(&mut trader, AckType::MASS_QUOTE, id).done, 2);
    wait_top(&mut maker, "59800", "60200");
    let mut watcher = gateway.client("trader");
    watcher.ready(PERPETUAL);
    drop(trader);
    watcher.wait("the end of both quotes", |own| {
        let ended = |(_, it): &(Event, OrderUpdate)| it.status == OrderStatus::CANCELED;
        (own.all::<OrderUpdate>().filter(ended).count() == 2).then_some(())
    });
    gateway.stop();
    venue.stop();
}

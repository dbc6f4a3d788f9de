//! Candles from the venue's own front.

use std::collections::BTreeMap;

use tickpath_gateway::replay::replay;
use tickpath_gateway_protocol::{
    Event, Fixed, OrderStatus, Ready, ReadyScope, ReferenceData, Side, TimeSeries, UpdateKind,
};

use crate::story::log::files;
use crate::support::{TestClient, TestGateway, TestVenue, fixed};

const NAME: &str = "ETH-PERPETUAL";
const LENGTHS: [u32; 2] = [60, 86_400];
/// One instrument per connection.
const FEEDS: &str = "subscriptions_max = 6\nsubscribe_batch = 6\n[venue.feeds]\ntime_series = ['1', '1D']\n";

/// Candles by their start.
type View = BTreeMap<u64, TimeSeries>;

/// The client's view of the candles of an instrument and a length.
fn view_of(client: &TestClient, symbol: u32, period_secs: u32) -> View {
    let mut view = View::new();
    for (event, candle) in client.all::<TimeSeries>() {
        if (event.header.symbol, candle.period_secs) != (symbol, period_secs) {
            continue;
        }
        if candle.update == UpdateKind::STALE {
            view.clear();
        } else {
            let update = UpdateKind::SNAPSHOT;
            view.insert(candle.begin_utc_ns, TimeSeries { update, ..candle });
        }
    }
    view
}

/// Traded amount of the quote currency, and the last price.
fn traded(view: &View) -> Option<(Fixed, Fixed)> {
    let cost = view.values().map(|candle| candle.cost.0).sum();
    view.values().next_back().map(|last| (Fixed(cost), last.close))
}

/// The maker sells to the trader.
fn trade(maker: &mut TestClient, trader: &mut TestClient, [of_maker, of_trader]: [u16; 2], price: &str) {
    let symbol = number_of(trader);
    let resting = maker.create(of_maker, number_of(maker), Side::SELL, "100", price);
    maker.wait_order(resting, OrderStatus::WORKING);
    let taking = trader.create(of_trader, symbol, Side::BUY, "100", price);
    trader.wait_order(taking, OrderStatus::COMPLETED);
}

fn number_of(client: &TestClient) -> u32 {
    let found = client.all::<ReferenceData>().find(|(_, body)| body.name.as_str() == NAME);
    found.unwrap().0.header.symbol
}

fn wait_traded(client: &mut TestClient, symbol: u32, cost: &str, close: &str) {
    for period_secs in LENGTHS {
        client.wait(&format!("{cost} in candles of {period_secs} s"), |own| {
            let is_it = traded(&view_of(own, symbol, period_secs)) == Some((fixed(cost), fixed(close)));
            is_it.then_some(())
        });
    }
}

/// Waits until a client has received the market data.
fn wait_market(client: &mut TestClient) {
    client.wait("the market", |own| {
        own.all::<Ready>().any(|(_, ready)| ready.scope == ReadyScope::MARKET_DATA).then_some(())
    });
}

#[test]
fn candles_are_told_to_all_and_asked_for_anew_when_the_venue_was_gone() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let logs = folder.path().join("logs");
    let more = format!("{FEEDS}[event_log]\nfolder = '{}'\n", logs.display());
    let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (of_trader, symbol) = trader.ready(NAME);
    let (of_maker, _) = maker.ready(NAME);
    let accounts = [of_maker, of_trader];
    trade(&mut maker, &mut trader, accounts, "3000");
    trade(&mut maker, &mut trader, accounts, "3001");
    wait_traded(&mut trader, symbol, "200", "3001");
    // The channel is not on the first connection, which requests the past candles.
    let of_symbol = |(event, _): (Event, TimeSeries)| (event.header.symbol == symbol).then_some(event);
    assert!(trader.all().find_map(of_symbol).unwrap().header.stream > 1);
    // A new client has the same candles.
    let mut late = gateway.client("trader");
    wait_market(&mut late);
    wait_traded(&mut late, symbol, "200", "3001");

    let address = venue.address;
    venue.stop();
    for client in [&mut trader, &mut late] {
        client.wait("the loss", |own| {
            LENGTHS.iter().all(|length| view_of(own, symbol, *length).is_empty()).then_some(())
        });
    }
    let mut meanwhile = gateway.client("trader");
    wait_market(&mut meanwhile);
    assert!(LENGTHS.iter().all(|length| view_of(&meanwhile, symbol, *length).is_empty()));

    let venue = TestVenue::start_at(folder.path(), address, None);
    let again = |client: &mut TestClient, account: u16, count: usize| {
        client.wait("the account once more", |own| {
            let is_it = |(event, ready): &(Event, Ready)| {
                ready.scope == ReadyScope::ACCOUNT && event.header.account == account
            };
            (own.all::<Ready>().filter(is_it).count() > count).then_some(())
        });
    };
    again(&mut trader, of_trader, 1);
    again(&mut maker, of_maker, 1);
    trade(&mut maker, &mut trader, accounts, "3002");
    // The candles cover all trades, also those before the venue stopped, for every client.
    for client in [&mut trader, &mut late, &mut meanwhile] {
        wait_traded(client, symbol, "300", "3002");
    }
    let mut last = gateway.client("trader");
    wait_market(&mut last);
    wait_traded(&mut last, symbol, "300", "3002");
    for length in LENGTHS {
        let (told, followed) = (view_of(&last, symbol, length), view_of(&trader, symbol, length));
        assert_eq!(told, followed, "{}", trader.story());
    }
    gateway.stop();
    venue.stop();
    // The same inputs give the same candles.
    let replayed = replay(&files(&logs)).unwrap();
    assert_eq!((replayed.difference, replayed.is_open), (None, false));
}

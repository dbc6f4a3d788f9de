//! Tests of the messages that subscribers receive.

use tickpath_ticks::message::{EndReason, Scope, TickKind};
use tickpath_ticks_app::server::{ServeSettings, TickRate};
use tickpath_types::Nanos;

use super::harness::{Client, Server, settings};

#[test]
fn a_subscriber_of_all_gets_every_tick_and_the_end() {
    let settings = settings();
    let server = Server::start(&settings);
    let mut client = Client::subscribe(&server, &[]);
    client.listen_for(5_000);
    server.request_stop();
    client.listen_to_the_end();
    let counters = server.stop();

    let received = &client.received;
    assert_eq!(received.ends, [EndReason::ServerStops]);
    assert_eq!((received.gaps.len(), received.corrupt, received.skipped.len()), (0, 0, 0));
    assert_eq!(received.subscribed[0].scope(), Scope::All);
    let names: Vec<_> = received.symbols.iter().map(|symbol| symbol.symbol().unwrap()).collect();
    let expected: Vec<_> = settings.market.symbols.iter().map(|symbol| symbol.name).collect();
    assert_eq!(names, expected);
    assert_eq!(counters.ticks_sent, received.ticks.len() as u64);
    let first = received.ticks[0].header.sequence.get();
    for (tick, sequence) in received.ticks.iter().zip(first..) {
        assert_eq!(tick.header.sequence.get(), sequence);
        match tick.kind() {
            Some(TickKind::Quote(quote)) => {
                let (bid, ask) = (quote.bid().unwrap(), quote.ask().unwrap());
                assert!(bid.0 < ask.0 && bid.0.0 % 100 == 0 && bid.1 > 0 && ask.1 > 0);
            }
            Some(TickKind::Trade(trade)) => assert!(trade.volume.get() >= trade.qty.get().into()),
            _ => panic!("no quote and no trade: {tick:?}"),
        }
    }
}

#[test]
fn ticks_follow_the_schedule_of_the_rate() {
    let server = Server::start(&ServeSettings { rate: TickRate::PerSecond(7_000), ..settings() });
    let mut client = Client::subscribe(&server, &[]);
    client.listen_for(3_000);
    server.stop();
    let times: Vec<_> = client.received.ticks.iter().map(|tick| tick.ts_generate.get()).collect();
    for pair in times.windows(2) {
        // If the machine pauses for more than a second, the server drops the late ticks.
        let interval = pair[1] - pair[0];
        assert!((142_857..=142_858).contains(&interval) || interval > 900_000_000, "{interval}");
    }
}

#[test]
fn a_subscriber_of_listed_symbols_gets_only_these() {
    let settings = settings();
    let server = Server::start(&settings);
    let wanted = [2, 7, 9].map(|at: usize| settings.market.symbols[at].name);
    let mut client = Client::subscribe(&server, &wanted);
    client.listen_for(2_000);
    let received = &client.received;
    assert_eq!(received.subscribed[0].scope(), Scope::Listed);
    assert_eq!((received.symbols.len(), received.gaps.len()), (3, 0));
    let mut next: Vec<_> = received
        .symbols
        .iter()
        .map(|symbol| (symbol.header.instrument.get(), symbol.header.symbol_sequence.get()))
        .collect();
    assert_eq!(next.iter().map(|(instrument, _)| *instrument).collect::<Vec<_>>(), [3, 8, 10]);
    for tick in &received.ticks {
        let instrument = tick.header.instrument.get();
        let (_, next) = next.iter_mut().find(|(wanted, _)| *wanted == instrument).unwrap();
        assert_eq!(tick.header.symbol_sequence.get(), *next);
        *next += 1;
    }
    server.stop();
}

#[test]
fn a_later_request_replaces_the_subscription() {
    let settings = settings();
    let server = Server::start(&settings);
    let mut client = Client::subscribe(&server, &[settings.market.symbols[0].name]);
    client.listen_for(50);
    client.request_symbols(2, &[]);
    client.listen_until("the second subscription", |client| client.received.subscribed.len() == 2);
    let before = client.received.ticks.len();
    client.listen_for(before + 1_000);
    assert_eq!(client.received.subscribed[1].request.get(), 2);
    assert_eq!(client.received.subscribed[1].scope(), Scope::All);
    assert_eq!(client.received.gaps.len(), 0);
    let last: std::collections::BTreeSet<_> =
        client.received.ticks[before..].iter().map(|tick| tick.header.instrument.get()).collect();
    assert_eq!(last.len(), 10);
    server.stop();
}

#[test]
fn two_hundred_subscribers_get_the_same_bytes() {
    const CLIENTS: usize = 200;
    let server = Server::start(&ServeSettings { rate: TickRate::PerSecond(2_000), ..settings() });
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::subscribe(&server, &[])).collect();
    for client in &mut clients {
        client.listen_until("its first tick", |client| !client.received.ticks.is_empty());
    }
    let from = clients.iter().map(|client| client.received.ticks[0].header.sequence.get()).max().unwrap();
    let to = from + 500;
    for client in &mut clients {
        client.listen_until("the same ticks", |client| {
            client.received.ticks.last().is_some_and(|tick| tick.header.sequence.get() >= to)
        });
        assert_eq!((client.received.gaps.len(), client.received.skipped.len()), (0, 0));
    }
    let cut = |client: &Client| {
        let first = client.received.ticks[0].header.sequence.get();
        client.received.ticks[(from - first) as usize..=(to - first) as usize].to_vec()
    };
    let expected = cut(&clients[0]);
    assert!(clients.iter().all(|client| cut(client) == expected));
    drop(clients);
    let counters = server.stop();
    assert_eq!(counters.subscriptions, CLIENTS as u64);
}

#[test]
fn at_the_highest_rate_the_server_waits_for_its_subscriber() {
    let server = Server::start(&ServeSettings {
        rate: TickRate::Max,
        threads: 2,
        backlog: 1 << 14,
        coalesce: Nanos::ZERO,
        ..settings()
    });
    let mut client = Client::subscribe(&server, &[]);
    client.listen_for(300_000);
    assert_eq!((client.received.gaps.len(), client.received.skipped.len()), (0, 0));
    assert!(
        client.received.ticks.iter().zip(1..).all(|(tick, sequence)| tick.header.sequence.get() == sequence)
    );
    drop(client);
    let counters = server.stop();
    assert_eq!(counters.skipped, 0);
}

#[test]
fn a_write_is_limited_to_a_part_of_the_backlog() {
    let server = Server::start(&ServeSettings {
        rate: TickRate::Max,
        backlog: 1 << 12,
        fill_bytes: 1 << 30,
        coalesce: Nanos::from_secs(1_000),
        ..settings()
    });
    let mut client = Client::subscribe(&server, &[]);
    client.listen_for(100_000);
    assert_eq!((client.received.gaps.len(), client.received.skipped.len()), (0, 0));
    drop(client);
    server.stop();
}

#[test]
fn a_quiet_stream_has_heartbeats() {
    // Ticks are a second apart, so the server sends heartbeats between them.
    let server =
        Server::start(&ServeSettings { rate: TickRate::PerSecond(1), heartbeat_ms: 300, ..settings() });
    let mut client = Client::subscribe(&server, &[]);
    client.listen_until("three heartbeats", |client| client.received.heartbeats >= 3);
    assert_eq!(client.received.gaps.len(), 0);
    server.stop();
}

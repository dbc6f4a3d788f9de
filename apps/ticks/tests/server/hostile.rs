//! Clients that violate the protocol, stay silent, or are too many.

use std::net::Ipv4Addr;

use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{EndReason, Hello, RefusedReason};
use tickpath_ticks::request::encode_subscribe;
use tickpath_ticks_app::server::ServeSettings;
use tickpath_types::{Nanos, Symbol};
use zerocopy::IntoBytes;

use super::harness::{Client, Server, settings};

/// Checks that the server still serves a new client.
fn check_that_it_serves(server: &Server) {
    let mut client = Client::subscribe(server, &[]);
    client.listen_for(100);
    assert_eq!(client.received.gaps.len(), 0);
}

#[test]
fn garbage_is_refused_and_the_connection_closed() {
    let server = Server::start(&settings());
    for garbage in [&b"GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n"[..], &[0; 100], &[0xff; 5_000]] {
        let mut client = Client::connect(&server);
        client.send(garbage);
        client.listen_to_the_end();
        assert!(client.received.hello.is_some());
        assert_eq!(client.received.refused, [(0, RefusedReason::Malformed, 0)]);
    }
    check_that_it_serves(&server);
    assert_eq!(server.stop().refused_malformed, 3);
}

#[test]
fn a_damaged_request_is_refused() {
    let server = Server::start(&settings());
    let mut bytes = with_checksum(Hello::client(0, Nanos(1))).as_bytes().to_vec();
    encode_subscribe(1, &[], &mut bytes);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let mut client = Client::connect(&server);
    client.send(&bytes);
    client.listen_to_the_end();
    assert_eq!(client.received.refused, [(0, RefusedReason::Malformed, 0)]);
    server.stop();
}

#[test]
fn another_version_is_refused_with_the_supported_one() {
    let server = Server::start(&settings());
    let mut hello = Hello::client(0, Nanos(1));
    hello.version = 2.into();
    let mut client = Client::connect(&server);
    client.send(with_checksum(hello).as_bytes());
    client.listen_to_the_end();
    assert_eq!(client.received.refused, [(0, RefusedReason::Version, 1)]);
    assert_eq!(server.stop().refused_version, 1);
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let settings = settings();
    let server = Server::start(&settings);
    let mut bytes = with_checksum(Hello::client(0, Nanos(1))).as_bytes().to_vec();
    encode_subscribe(1, &[settings.market.symbols[3].name], &mut bytes);
    let mut client = Client::connect(&server);
    client.stream.set_nodelay(true).unwrap();
    for byte in bytes {
        client.send(&[byte]);
        client.listen_once();
    }
    client.listen_for(10);
    server.stop();
}

#[test]
fn half_a_message_and_then_the_end_is_harmless() {
    let server = Server::start(&settings());
    for len in [1, 15, 16, 55] {
        let mut client = Client::connect(&server);
        client.send(&with_checksum(Hello::client(0, Nanos(1))).as_bytes()[..len]);
        drop(client);
    }
    check_that_it_serves(&server);
    let counters = server.stop();
    assert_eq!((counters.accepted, counters.closed, counters.refused_malformed), (5, 5, 0));
}

#[test]
fn a_million_symbols_are_refused_and_a_new_request_is_granted() {
    let settings = settings();
    let server = Server::start(&settings);
    let names: Vec<_> = (0..1_000_000).map(|at| Symbol::new(&format!("S{at}")).unwrap()).collect();
    let mut client = Client::subscribe(&server, &names);
    client.listen_until("an answer", |client| !client.received.refused.is_empty());
    assert_eq!(client.received.refused, [(1, RefusedReason::TooManySymbols, 10)]);
    client.request_symbols(2, &[settings.market.symbols[0].name]);
    client.listen_for(10);
    assert_eq!(server.stop().refused_symbols, 1);
}

#[test]
fn an_unknown_symbol_is_refused_and_the_subscription_stays() {
    let settings = settings();
    let server = Server::start(&settings);
    let mut client = Client::subscribe(&server, &[settings.market.symbols[0].name]);
    client.listen_for(10);
    client.request_symbols(7, &[settings.market.symbols[1].name, Symbol::new("NOTHERE").unwrap()]);
    client.listen_until("an answer", |client| !client.received.refused.is_empty());
    assert_eq!(client.received.refused, [(7, RefusedReason::UnknownSymbol, 0)]);
    let before = client.received.ticks.len();
    client.listen_for(before + 100);
    assert!(client.received.ticks.iter().all(|tick| tick.header.instrument.get() == 1));
    server.stop();
}

/// If one address holds all connections, the server closes the oldest of them to admit another address, and
/// keeps the others open.
#[test]
fn one_address_cannot_exclude_others() {
    let server = Server::start(&ServeSettings { clients_max: 3, ..settings() });
    let mut crowd: Vec<Client> = (0..3).map(|_| Client::subscribe(&server, &[])).collect();
    crowd.iter_mut().for_each(|client| client.listen_for(10));
    let other = || Client::connect_from(&server, Ipv4Addr::new(127, 0, 0, 2));
    let mut newcomer = other().subscribed(&[]);
    newcomer.listen_for(10);
    crowd[0].listen_to_the_end();
    let mut second = other();
    second.listen_to_the_end();
    assert_eq!(second.received.refused, [(0, RefusedReason::ClientsFull, 0)]);
    for client in crowd[1..].iter_mut().chain([&mut newcomer]) {
        let before = client.received.ticks.len();
        client.listen_for(before + 10);
    }
    server.stop();
}

#[test]
fn one_client_too_many_is_refused() {
    let server = Server::start(&ServeSettings { clients_max: 2, ..settings() });
    let mut first = Client::subscribe(&server, &[]);
    first.listen_for(10);
    let mut second = Client::subscribe(&server, &[]);
    second.listen_for(10);
    let mut third = Client::connect(&server);
    third.listen_to_the_end();
    assert_eq!(third.received.refused, [(0, RefusedReason::ClientsFull, 0)]);
    drop(first);
    // The server frees the slot of the closed connection when it detects the close, so retry until then.
    loop {
        let mut another = Client::subscribe(&server, &[]);
        another.listen_until("ticks or a refusal", |client| {
            !client.received.ticks.is_empty() || client.is_closed
        });
        if !another.is_closed {
            break;
        }
    }
    let before = second.received.ticks.len();
    second.listen_for(before + 10);
    server.stop();
}

#[test]
fn silent_connections_displace_no_subscriber() {
    let server = Server::start(&ServeSettings { clients_max: 2, ..settings() });
    let _silent: Vec<Client> = (0..20).map(|_| Client::connect(&server)).collect();
    let mut first = Client::subscribe(&server, &[]);
    first.listen_for(10);
    let _more: Vec<Client> = (0..20).map(|_| Client::connect(&server)).collect();
    let mut second = Client::subscribe(&server, &[]);
    second.listen_for(10);
    first.listen_for(100);
    assert!(server.stop().evicted >= 20);
}

#[test]
fn a_silent_client_is_disconnected_with_the_reason() {
    let server = Server::start(&ServeSettings { heartbeat_ms: 20, ..settings() });
    let mut client = Client::connect(&server);
    // The client sends heartbeats only each half second; the server's limit is 100 ms.
    client.listen_until("the end", |client| client.is_closed || !client.received.ends.is_empty());
    assert_eq!(client.received.ends, [EndReason::Silent]);
    assert_eq!(server.stop().silent, 1);
}

#[test]
fn a_client_that_requests_without_reading_is_disconnected() {
    let settings = ServeSettings { send_buffer: Some(4 << 10), heartbeat_ms: 60_000, ..settings() };
    let server = Server::start(&settings);
    let mut client = Client::connect(&server);
    client.stream.set_nonblocking(false).unwrap();
    client.stream.set_write_timeout(Some(tickpath_test_support::PATIENCE)).unwrap();
    client.send(with_checksum(Hello::client(0, Nanos(1))).as_bytes());
    let mut requests = Vec::new();
    (1..2_000).for_each(|request| encode_subscribe(request, &[], &mut requests));
    let is_cut = |client: &Client| {
        use std::io::Write;
        (0..200).any(|_| (&client.stream).write_all(&requests).is_err())
    };
    assert!(is_cut(&client), "it may ask for ever");
    check_that_it_serves(&server);
    assert!(server.stop().slow_disconnected >= 1);
}

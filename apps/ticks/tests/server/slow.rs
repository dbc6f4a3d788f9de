//! Clients that read more slowly than ticks arrive, under each [`SlowClient`] policy.

use std::time::Duration;

use tickpath_test_support::Deadline;
use tickpath_ticks::message::EndReason;
use tickpath_ticks_app::server::SlowClient;

use super::harness::{Client, Server, slow};

/// Reads the first ticks of `client`, and then nothing until the server has generated 400,000 more.
fn fall_behind(server: &Server, client: &mut Client) {
    client.listen_until("its first ticks", |client| client.received.ticks.len() > 10);
    let behind = client.received.ticks.last().unwrap().header.sequence.get() + 400_000;
    let deadline = Deadline::start();
    loop {
        // The hello that a new client receives has the session's next sequence number.
        let mut witness = Client::connect(server);
        witness.listen_until("a hello", |witness| witness.received.hello.is_some());
        if witness.received.hello.unwrap().header.sequence.get() > behind {
            return;
        }
        assert!(!deadline.is_over(), "the server does not continue");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of ticks that the server has reported to the client as omitted.
fn skipped(client: &Client) -> u64 {
    client.received.skipped.iter().map(|skipped| skipped.count.get()).sum()
}

#[test]
fn dropped_ticks_are_reported_and_the_newest_follow() {
    let server = Server::start(&slow(SlowClient::Drop));
    let mut client = Client::subscribe(&server, &[]);
    fall_behind(&server, &mut client);
    client.listen_until("what was left out", |client| skipped(client) > 10_000);
    let before = client.received.ticks.len();
    client.listen_for(before + 100);
    let received = &client.received;
    assert_eq!((received.gaps.len(), received.corrupt), (0, 0), "an announced loss is no gap");
    // Every tick from the first to the last received one was either received or reported as skipped.
    let first = received.ticks[0].header.sequence.get();
    let last = received.ticks.last().unwrap().header.sequence.get();
    let skipped = skipped(&client);
    assert_eq!(received.ticks.len() as u64 + skipped, last - first + 1);
    let counters = server.stop();
    assert!(counters.skipped >= skipped && counters.slow >= 1);
}

#[test]
fn dropped_ticks_of_listed_symbols_are_reported() {
    let settings = slow(SlowClient::Drop);
    let server = Server::start(&settings);
    let names = [0, 5].map(|at: usize| settings.market.symbols[at].name);
    let mut client = Client::subscribe(&server, &names);
    fall_behind(&server, &mut client);
    client.listen_until("what was left out", |client| skipped(client) > 10_000);
    let before = client.received.ticks.len();
    client.listen_for(before + 100);
    let received = &client.received;
    assert_eq!((received.gaps.len(), received.corrupt), (0, 0));
    let skipped = skipped(&client);
    let passed = |instrument: u16| {
        let of_it = || received.ticks.iter().filter(|tick| tick.header.instrument.get() == instrument);
        let first = of_it().next().unwrap().header.symbol_sequence.get();
        u64::from(of_it().next_back().unwrap().header.symbol_sequence.get() - first + 1)
    };
    let passed: u64 = passed(1) + passed(6);
    // Both are equal unless ticks were omitted before the first or after the last received tick of a symbol.
    assert!(
        (received.ticks.len() as u64 + skipped).abs_diff(passed) <= 2,
        "{} {skipped} {passed}",
        received.ticks.len()
    );
    server.stop();
}

#[test]
fn a_sample_has_the_latest_quote_of_each_symbol() {
    let server = Server::start(&slow(SlowClient::Sample));
    let mut client = Client::subscribe(&server, &[]);
    fall_behind(&server, &mut client);
    client.listen_until("what was left out", |client| client.received.skipped.len() >= 10);
    let before = client.received.ticks.len();
    client.listen_for(before + 100);
    let received = &client.received;
    assert_eq!((received.gaps.len(), received.corrupt), (0, 0), "an announced loss is no gap");
    let first = received.ticks[0].header.sequence.get();
    let last = received.ticks.last().unwrap().header.sequence.get();
    let skipped = skipped(&client);
    // Count only up to the last received tick: omissions after it may not be reported yet.
    assert_eq!(received.ticks.len() as u64 + skipped, last - first + 1);
    // The symbols of the sampled quotes, which are the ticks that directly follow omitted ones.
    let jumps: Vec<_> = received
        .ticks
        .windows(2)
        .filter(|pair| pair[1].header.sequence.get() != pair[0].header.sequence.get() + 1)
        .map(|pair| pair[1].header.instrument.get())
        .collect();
    assert!(jumps.len() >= 5, "{jumps:?}");
    server.stop();
}

#[test]
fn a_slow_client_is_disconnected_with_the_reason() {
    let server = Server::start(&slow(SlowClient::Disconnect));
    let mut client = Client::subscribe(&server, &[]);
    // The client reads, but too slowly. The server queues the reason and closes the connection two seconds
    // later.
    client.listen_until("its first ticks", |client| client.received.ticks.len() > 10);
    let mut other = Client::subscribe(&server, &[]);
    let deadline = Deadline::start();
    while !client.is_closed && client.received.ends.is_empty() {
        assert!(!deadline.is_over(), "it was not disconnected");
        // One read takes at most 16 KiB each 20 ms, but the server generates 56 MB a second.
        std::thread::sleep(Duration::from_millis(20));
        client.listen_once();
        other.listen_once();
    }
    // The reason arrives only if the kernel still has buffer space for it.
    assert!(client.received.ends.iter().all(|reason| *reason == EndReason::TooSlow));
    let counters = server.stop();
    assert!(counters.slow_disconnected >= 1);
}

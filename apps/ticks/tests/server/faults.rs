//! Effects of injected faults on a client.

use tickpath_ticks_app::server::{FaultSettings, ServeSettings};

use super::harness::{Client, Server, settings};

fn server(faults: &str) -> (Server, ServeSettings) {
    let faults: FaultSettings = faults.parse().unwrap();
    let settings = ServeSettings { faults, ..settings() };
    (Server::start(&settings), settings)
}

#[test]
fn injected_gaps_are_detected() {
    let (server, settings) = server("gaps=1%");
    let mut all = Client::subscribe(&server, &[]);
    all.listen_until("twenty gaps", |client| client.received.gaps.len() >= 20);
    assert!(all.received.gaps.iter().all(|gap| (1..=10).contains(&gap.lost)), "{:?}", all.received.gaps);
    assert_eq!((all.received.corrupt, all.received.skipped.len()), (0, 0));
    let mut some = Client::subscribe(&server, &[settings.market.symbols[4].name]);
    some.listen_until("three gaps", |client| client.received.gaps.len() >= 3);
    assert!(server.stop().fault_gaps >= 23);
}

#[test]
fn only_damaged_ticks_are_lost() {
    let (server, _) = server("corrupt=1%");
    let mut client = Client::subscribe(&server, &[]);
    client.listen_until("twenty damaged ticks", |client| client.received.corrupt >= 20);
    let stats = *client.parser.stats();
    assert_eq!(
        (stats.lost, client.received.skipped.len()),
        (client.received.gaps.iter().map(|gap| gap.lost).sum(), 0)
    );
    // If the last tick is damaged, its gap is not detected yet.
    assert!(stats.lost.abs_diff(stats.corrupt) <= 1, "{stats:?}");
    assert!(server.stop().fault_corrupt >= 20);
}

#[test]
fn a_stall_loses_no_ticks() {
    let (server, _) = server("stall=50ms");
    let mut client = Client::subscribe(&server, &[]);
    client.listen_for(30_000);
    assert_eq!((client.received.corrupt, client.received.gaps.len()), (0, 0));
    assert!(server.stop().fault_stalls >= 1);
}

#[test]
fn a_cut_connection_ends_without_a_message() {
    let (server, _) = server("disconnect=50ms");
    for _ in 0..3 {
        let mut client = Client::subscribe(&server, &[]);
        client.listen_until("the cut", |client| client.is_closed);
        assert_eq!(client.received.ends.len(), 0);
    }
    assert!(server.stop().fault_disconnects >= 3);
}

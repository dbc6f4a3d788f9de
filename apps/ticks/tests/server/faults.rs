//! Injected faults from a client's view.

use tickpath_ticks_app::server::{FaultSettings, ServeSettings};

use super::harness::{Client, Server, settings};

fn server(faults: &str) -> (Server, ServeSettings) {
    let faults: FaultSettings = faults.parse().unwrap();
    let settings = ServeSettings { faults, ..settings() };
    (Server::start(&settings), settings)
}

#[test]
fn gaps_are_seen_as_gaps() {
    let (server, settings) = server("gaps=1%");
    let mut all = Client::subscribe(&server, &[]);
    all.listen_until("twenty gaps", |client| client.heard.gaps.len() >= 20);
    assert!(all.heard.gaps.iter().all(|gap| (1..=10).contains(&gap.lost)), "{:?}", all.heard.gaps);
    assert_eq!((all.heard.corrupt, all.heard.skipped.len()), (0, 0));
    let mut some = Client::subscribe(&server, &[settings.market.symbols[4].name]);
    some.listen_until("three gaps", |client| client.heard.gaps.len() >= 3);
    assert!(server.stop().fault_gaps >= 23);
}

#[test]
fn damaged_ticks_fail_their_checksums_and_nothing_else_is_lost() {
    let (server, _) = server("corrupt=1%");
    let mut client = Client::subscribe(&server, &[]);
    client.listen_until("twenty damaged ticks", |client| client.heard.corrupt >= 20);
    let stats = *client.parser.stats();
    assert_eq!(
        (stats.lost, client.heard.skipped.len()),
        (client.heard.gaps.iter().map(|gap| gap.lost).sum(), 0)
    );
    // The last one may be damaged, and its gap not yet detected.
    assert!(stats.lost.abs_diff(stats.corrupt) <= 1, "{stats:?}");
    assert!(server.stop().fault_corrupt >= 20);
}

#[test]
fn a_stall_is_made_up_for() {
    let (server, _) = server("stall=50ms");
    let mut client = Client::subscribe(&server, &[]);
    client.listen_for(30_000);
    assert_eq!((client.heard.corrupt, client.heard.gaps.len()), (0, 0));
    assert!(server.stop().fault_stalls >= 1);
}

#[test]
fn a_connection_that_is_cut_ends_without_a_word() {
    let (server, _) = server("disconnect=50ms");
    for _ in 0..3 {
        let mut client = Client::subscribe(&server, &[]);
        client.listen_until("the cut", |client| client.is_closed);
        assert_eq!(client.heard.ends.len(), 0);
    }
    assert!(server.stop().fault_disconnects >= 3);
}

//! Tests of the client against a scripted server.
#![allow(clippy::unwrap_used)]

mod support;

use support::*;
use tickpath_shm::{Folder, SegmentName, SegmentReader};
use tickpath_test_support::wait_until;
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{EndOfStream, EndReason, Refused, RefusedReason, Skipped};
use tickpath_ticks::parser::StreamError;
use tickpath_ticks_app::client::{
    Client, ClientError, Count, CsvFile, LinkState, MarketRow, SegmentPlace, Span,
};
use tickpath_types::{BookHealth, Price, Qty, Symbol};
use zerocopy::IntoBytes;

fn rows(client: &Client) -> Vec<MarketRow> {
    let mut rows = Vec::new();
    client.shared().market().read_into(&mut rows);
    rows
}

#[test]
fn ticks_come_into_the_cache() {
    let server = Server::start();
    let client = client(&server);
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&[quote(1, 1), quote(2, 2), trade(3, 2, 700)].concat());
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 3);
    assert_eq!((counts.of(Count::Trades), counts.of(Count::Gaps), counts.reconnects()), (1, 0, 0));
    wait_for_state(client.shared(), LinkState::Live);
    let rows = rows(&client);
    let names: Vec<&str> = rows.iter().map(|row| row.attributes.symbol.as_str()).collect();
    assert_eq!(names, SYMBOLS);
    assert_eq!(rows[0].top.bid(), Some((Price(1_000_100), Qty(300))));
    assert_eq!((rows[1].top.last(), rows[1].volume), (Some((Price(1_000_300), Qty(100))), 700));
    assert_eq!((rows[2].top.bid(), rows[2].ticks), (None, 0));
    assert!(client.shared().latencies().percentiles(Span::Total).count >= 3);
    client.finish().unwrap();
    peer.wait_for_close();
}

#[test]
fn listed_symbols_are_requested() {
    let server = Server::start();
    let symbols = ["ALPHA", "CHARLIE"].map(|name| Symbol::new(name).unwrap()).to_vec();
    let config = tickpath_ticks_app::client::ClientConfig { symbols, ..config(server.address()) };
    let client = Client::start(config, None).unwrap();
    let mut peer = server.accept_subscribed(9, 1);
    assert_eq!(peer.messages.names, ["ALPHA", "CHARLIE"]);
    // Messages of other symbols leave gaps in the session's sequence numbers, but not in a symbol's.
    let numbered = |sequence, symbol_sequence| {
        let mut bytes = quote(sequence, 1);
        bytes[4..8].copy_from_slice(&u32::to_le_bytes(symbol_sequence));
        let checksum = tickpath_lockfree::crc32c::checksum(&bytes[..52]);
        bytes[52..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    peer.send(&[numbered(10, 1), numbered(20, 2), numbered(30, 4)].concat());
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 3);
    assert_eq!((counts.of(Count::Gaps), counts.of(Count::Lost)), (1, 1));
    client.finish().unwrap();
}

#[test]
fn losses_are_counted_and_make_rows_stale() {
    let server = Server::start();
    let client = client(&server);
    let mut peer = server.accept_subscribed(9, 1);
    let mut damaged = quote(4, 2);
    damaged[30] ^= 0x10;
    peer.send(&[quote(1, 1), quote(2, 2), quote(3, 3), damaged, quote(5, 2)].concat());
    wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 4);
    let health = || rows(&client).iter().map(|row| row.top.health()).collect::<Vec<_>>();
    assert_eq!(health(), [BookHealth::Stale, BookHealth::Live, BookHealth::Stale]);
    peer.send(
        &[quote(6, 1), quote(6, 1), quote(7, 3), with_checksum(Skipped::new(20, 11)).as_bytes().to_vec()]
            .concat(),
    );
    peer.send(&[quote(20, 3), quote(30, 3)].concat());
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 8);
    let found = [Count::Corrupt, Count::Gaps, Count::Lost, Count::Duplicates, Count::Skipped];
    assert_eq!(found.map(|count| counts.of(count)), [1, 2, 10, 1, 11]);
    assert_eq!(health(), [BookHealth::Stale, BookHealth::Stale, BookHealth::Live]);
    client.finish().unwrap();
}

#[test]
fn a_reconnect_counts_the_missed_messages() {
    let server = Server::start();
    let client = client(&server);
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&quote(1, 1));
    wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 1);
    drop(peer);
    // The client reconnects; the server continues the same session with sequence number 5.
    let mut peer = server.accept_subscribed(9, 5);
    assert_eq!(rows(&client)[0].top.health(), BookHealth::Stale);
    peer.send(&quote(5, 1));
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 2);
    assert_eq!((counts.of(Count::Missed), counts.of(Count::Gaps), counts.reconnects()), (3, 0, 1));
    assert_eq!(rows(&client)[0].top.health(), BookHealth::Live);
    peer.send(&end_of_stream(6));
    wait_until("the trouble", || {
        client.shared().last_error().is_some_and(|text| text.ends_with("the server stopped"))
    });
    drop(peer);
    // A new session begins with sequence number 1: the client missed none of its messages, and shows nothing
    // of the old session.
    let mut peer = server.accept_subscribed(10, 1);
    peer.send(&quote(1, 2));
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 3);
    assert_eq!((counts.of(Count::Missed), counts.of(Count::Gaps), counts.reconnects()), (3, 0, 2));
    assert_eq!((rows(&client)[0].ticks, rows(&client)[1].ticks), (0, 1));
    client.finish().unwrap();
}

#[test]
fn only_missed_messages_of_listed_symbols_count() {
    let server = Server::start();
    let symbols = ["ALPHA", "BRAVO", "CHARLIE"].map(|name| Symbol::new(name).unwrap()).to_vec();
    let config = tickpath_ticks_app::client::ClientConfig { symbols, ..config(server.address()) };
    let client = Client::start(config, None).unwrap();
    // Each symbol's sequence numbers begin with 1.
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&[quote(1, 1), quote(1, 2)].concat());
    wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 2);
    drop(peer);
    // Each symbol's next sequence number is now 5: the client missed three messages of each of the first two
    // symbols, and four of the third.
    let mut peer = server.accept_subscribed(9, 5);
    peer.send(&quote(5, 3));
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 3);
    assert_eq!((counts.of(Count::Missed), counts.of(Count::Gaps)), (10, 0));
    drop(peer);
    // The client missed no message of this session, which it joins for the first time.
    let mut peer = server.accept_subscribed(10, 50);
    peer.send(&quote(50, 1));
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 4);
    assert_eq!((counts.of(Count::Missed), counts.of(Count::Gaps)), (10, 0));
    client.finish().unwrap();
}

#[test]
fn a_missing_server_is_retried() {
    let server = Server::start();
    let address = server.address();
    drop(server);
    let client = Client::start(config(address), None).unwrap();
    wait_for_counts(client.shared(), |counts| counts.of(Count::Failures) >= 3);
    assert!(client.shared().last_error().is_some_and(|text| text.contains("cannot connect")));
    client.reconnect();
    client.finish().unwrap();
}

#[test]
fn without_reconnects_the_first_failure_ends_the_client() {
    let server = Server::start();
    let config = tickpath_ticks_app::client::ClientConfig { reconnects: false, ..config(server.address()) };
    let client = Client::start(config, None).unwrap();
    drop(server.accept_subscribed(1, 1));
    wait_until("the end", || client.has_ended());
    assert!(matches!(client.finish(), Err(ClientError::ConnectionLost(_))));
}

#[test]
fn a_requested_reconnect_is_immediate() {
    let server = Server::start();
    let client = client(&server);
    let peer = server.accept_subscribed(9, 1);
    wait_for_state(client.shared(), LinkState::Live);
    client.reconnect();
    peer.wait_for_close();
    let _peer = server.accept_subscribed(9, 1);
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Subscriptions) == 2);
    assert_eq!(counts.of(Count::Failures), 0);
    client.finish().unwrap();
}

#[test]
fn another_protocol_is_reported_at_once() {
    let server = Server::start();
    let client = client(&server);
    server.accept().send(b"SSH-2.0-OpenSSH_9.6 and more than a header\r\n");
    wait_until("the end", || client.has_ended());
    let error = client.finish().unwrap_err();
    assert!(matches!(error, ClientError::Stream { error: StreamError::NotTicks, .. }), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
}

#[test]
fn garbage_from_a_known_server_causes_a_reconnect() {
    let server = Server::start();
    let client = client(&server);
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&vec![0x55; 100_000]);
    peer.wait_for_close();
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&quote(1, 1));
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 1);
    assert_eq!((counts.of(Count::Corrupt), counts.reconnects()), (1, 1));
    client.finish().unwrap();
}

#[test]
fn permanent_refusals_end_the_client_and_others_are_retried() {
    let refused = |reason, limit| with_checksum(Refused::new(1, 1, reason, limit)).as_bytes().to_vec();
    for (reason, words) in [
        (RefusedReason::UnknownSymbol, "there is no such symbol"),
        (RefusedReason::TooManySymbols, "more symbols were requested than the limit (1,000)"),
    ] {
        let server = Server::start();
        let client = client(&server);
        let mut peer = server.accept();
        peer.hello(1, 1);
        peer.read_until(|messages| messages.requests > 0);
        peer.send(&refused(reason, if reason == RefusedReason::TooManySymbols { 1000 } else { 0 }));
        wait_until("the end", || client.has_ended());
        let error = client.finish().unwrap_err().to_string();
        assert_eq!(error, format!("{} refuses: {words}", server.address()));
    }
    let server = Server::start();
    let client = client(&server);
    server.accept().send(&refused(RefusedReason::ClientsFull, 0));
    let mut peer = server.accept_subscribed(1, 1);
    peer.send(&quote(1, 1));
    wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 1);
    client.finish().unwrap();
}

#[test]
fn partial_messages_wait_for_their_rest() {
    let server = Server::start();
    let client = client(&server);
    let mut peer = server.accept_subscribed(9, 1);
    let stream: Vec<u8> = (1..=40).flat_map(|sequence| quote(sequence, 1)).collect();
    for (index, piece) in stream.chunks(33).enumerate() {
        peer.send(piece);
        // Wait until the pieces sent so far were read, so that they do not arrive together with later ones.
        if index % 10 == 0 {
            let whole = (index + 1) * 33 / 56;
            wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) >= whole as u64);
        }
    }
    let counts = wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 40);
    assert_eq!((counts.of(Count::Corrupt), counts.of(Count::Gaps)), (0, 0));
    client.finish().unwrap();
}

#[test]
fn a_silent_server_is_abandoned_and_a_client_sends_heartbeats() {
    let server = Server::start_impatient();
    let client = client(&server);
    let mut peer = server.accept_subscribed(9, 1);
    peer.read_until(|messages| messages.heartbeats >= 2);
    wait_until("the trouble", || {
        client.shared().last_error().is_some_and(|text| text.contains("no data received for"))
    });
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(with_checksum(EndOfStream::new(1, EndReason::TooSlow, now())).as_bytes());
    wait_until("the reason", || {
        client.shared().last_error().is_some_and(|text| text.contains("reads too slowly"))
    });
    client.finish().unwrap();
}

#[test]
fn the_shared_cache_shows_when_its_writer_has_ended() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let name = SegmentName::new("ticks").unwrap();
    let segment = SegmentPlace { folder: place.path().join("shm"), name: name.clone() };
    let config = tickpath_ticks_app::client::ClientConfig {
        segment: Some(segment.clone()),
        ..config(server.address())
    };
    let client = Client::start(config.clone(), None).unwrap();
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&[quote(1, 2), trade(2, 2, 5)].concat());
    wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 2);
    let folder = Folder::open(&segment.folder).unwrap();
    let reader = SegmentReader::open(&folder, &name).unwrap();
    let row = reader.find("BRAVO").unwrap();
    let top = reader.try_read(row).unwrap();
    assert_eq!(
        (row, top.bid(), top.last()),
        (2, Some((Price(1_000_100), Qty(300))), Some((Price(1_000_200), Qty(100))))
    );
    // A second client cannot write into the same segment.
    let second = Client::start(config, None).unwrap();
    let _peer = {
        let mut peer = server.accept();
        peer.hello(9, 1);
        peer
    };
    wait_until("the end", || second.has_ended());
    assert!(matches!(second.finish(), Err(ClientError::Local(_))));
    client.finish().unwrap();
    assert_eq!(reader.writer_state(), tickpath_shm::WriterState::Closed);
}

#[test]
fn every_tick_is_a_line_of_csv() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("ticks.csv");
    let mut csv = CsvFile::create(&path).unwrap();
    let client = Client::start(config(server.address()), Some(&mut csv)).unwrap();
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&[quote(1, 2), trade(2, 3, 900)].concat());
    wait_for_counts(client.shared(), |counts| counts.of(Count::Ticks) == 2);
    client.finish().unwrap();
    assert_eq!(csv.finish().unwrap(), 2);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
    assert!(lines[1].ends_with(",BRAVO,1,1,quote,300,100.0100,100.0300,200,,,,,"), "{text}");
    assert!(lines[2].ends_with(",CHARLIE,2,2,trade,,,,,100.0200,100,B,900,"), "{text}");
}

#[test]
fn a_full_disk_is_one_error_line() {
    let server = Server::start();
    let mut csv = CsvFile::create(std::path::Path::new("/dev/full")).unwrap();
    let client = Client::start(config(server.address()), Some(&mut csv)).unwrap();
    let mut peer = server.accept_subscribed(9, 1);
    peer.send(&quote(1, 2));
    wait_until("the end of the writer", || csv.has_ended());
    client.finish().unwrap();
    let error = format!("{:#}", csv.finish().unwrap_err());
    assert!(error.starts_with("cannot write /dev/full: ") && error.lines().count() == 1, "{error}");
}

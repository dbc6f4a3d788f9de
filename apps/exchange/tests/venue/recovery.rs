//! Market data recovery for late joiners and clients that lost messages: snapshots, and the journal.

use std::net::Ipv4Addr;

use tickpath_book::{BookLimits, BooksById, FastBooks, Indexed};
use tickpath_exchange::{MarketRecoverySettings, PreLoginLimits, RateLimit, SnapshotSettings, VenueSettings};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_journal::{DiskFaults, FaultyDisk, Policy};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::moldudp64::{Kind, Packet};
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_net::free_multicast_group;
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, Sequence, Side};
use zerocopy::FromBytes;

use crate::market_data::{Line, RetransmissionClient, describe, read_lines, with_lines};
use crate::support::{
    Client, PASSWORD, Received, Rig, build_on, cancel, enter, ioc, journal, login, packet, replace, settings,
};

const INTERVAL: Nanos = Nanos::from_millis(1);

fn with_snapshots(change: impl FnOnce(&mut SnapshotSettings)) -> VenueSettings {
    let group = free_multicast_group().unwrap();
    let mut snapshots = SnapshotSettings { interval: INTERVAL, ..SnapshotSettings::new(group) };
    change(&mut snapshots);
    let market_recovery =
        MarketRecoverySettings { snapshots: Some(snapshots), ..MarketRecoverySettings::default() };
    VenueSettings { market_recovery, ..settings() }
}

/// Logs a user in, with new messages only.
fn log_in_for_new(rig: &mut Rig, user: &str) -> Client {
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(&login(user, PASSWORD, "", 0));
    assert!(matches!(rig.receive(&mut client), Received::LoginAccepted { .. }));
    client
}

/// Sends orders on both sides, of which some trade, and some are reduced, replaced or cancelled.
fn trade(rig: &mut Rig, from: u32) {
    let mut anna = log_in_for_new(rig, "ANNA");
    for user_ref in (from..from + 40).step_by(2) {
        let price = 1_000_000 + i64::from(user_ref % 7) * 100;
        rig.submit(&mut anna, &enter(user_ref, Side::Sell, 10 + u64::from(user_ref % 5), price));
        rig.submit(&mut anna, &enter(user_ref + 1, Side::Buy, 7, price - 1_000));
    }
    rig.submit(&mut anna, &cancel(from, 3));
    rig.submit(&mut anna, &cancel(from + 1, 0));
    rig.submit(&mut anna, &replace(from + 2, from + 40, 5, 1_000_500));
    let mut bert = log_in_for_new(rig, "BERT");
    rig.submit(&mut bert, &ioc(from, Side::Buy, 25, 1_000_000));
}

/// Digest of the books that the messages build.
fn books<'a>(messages: impl IntoIterator<Item = &'a Vec<u8>>) -> u64 {
    let limits = BookLimits::new(InstrumentId(2), 1_024);
    let mut builder = BookBuilder::new(Indexed::<FastBooks<()>>::new(limits));
    for message in messages {
        builder.handle_message(Sequence(1), message, &mut IgnoreUpdates);
    }
    let counters = builder.counters();
    assert_eq!(
        counters.malformed + counters.unknown_order + counters.duplicate_order + counters.refused,
        0,
        "{counters:?}"
    );
    builder.books().state_hash()
}

/// Receives a GLIMPSE snapshot. Returns its messages, and the sequence number of the first message after it.
fn glimpse(rig: &mut Rig) -> (Vec<Vec<u8>>, usize) {
    let mut client = Client::connect(rig.endpoints.glimpse.unwrap());
    client.keeps_system_events = true;
    client.send(&login("ANYONE", "whatever", "", 1));
    assert_eq!(rig.receive(&mut client), Received::LoginAccepted { session: "TODAY".into(), next: 1 });
    let mut messages = vec![];
    loop {
        match rig.receive(&mut client) {
            Received::Message(message) => messages.push(message),
            Received::Heartbeat => {}
            Received::EndOfSession => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rig.receive(&mut client), Received::Closed);
    let next = end_of(&messages.pop().unwrap());
    (messages, next)
}

fn end_of(message: &[u8]) -> usize {
    EndOfSnapshot::ref_from_bytes(message).unwrap().sequence().unwrap().0 as usize
}

/// Waits until snapshots cover all published messages.
fn wait_for_snapshots(rig: &mut Rig) {
    rig.until_true("the copies", |rig| {
        rig.view.market_recovery.next_sequence.read() == rig.view.publisher.messages.read() + 1
            && rig.view.matcher.market_events.read() == rig.view.publisher.messages.read()
    });
}

#[test]
fn a_snapshot_lists_everything_in_priority_order() {
    let mut rig = Rig::with(&with_snapshots(|_| {}));
    let mut anna = rig.log_in("ANNA");
    for (user_ref, side, qty, price) in [
        (1, Side::Sell, 30, 1_000_100),
        (2, Side::Sell, 20, 1_000_000),
        (3, Side::Sell, 10, 1_000_100),
        (4, Side::Buy, 5, 999_000),
        (5, Side::Buy, 6, 999_500),
    ] {
        rig.submit(&mut anna, &enter(user_ref, side, qty, price));
    }
    rig.submit(&mut anna, &cancel(1, 25));
    wait_for_snapshots(&mut rig);
    let (messages, next) = glimpse(&mut rig);
    let described: Vec<String> = messages.iter().map(|message| describe(message)).collect();
    let expected = [
        "system O",
        "system S",
        "system Q",
        "directory 1 ALPHA",
        "trading 1 T",
        "add 1 5 B 6 ALPHA 99.9500",
        "add 1 4 B 5 ALPHA 99.9000",
        "add 1 2 S 20 ALPHA 100.0000",
        "add 1 1 S 25 ALPHA 100.0100",
        "add 1 3 S 10 ALPHA 100.0100",
        "directory 2 BRAVO",
        "trading 2 T",
    ];
    assert_eq!(described, expected);
    assert_eq!(next as u64, rig.view.publisher.messages.read() + 1);
    assert_eq!(rig.view.market_recovery.glimpse_snapshots.read(), 1);
}

#[test]
fn a_snapshot_and_later_messages_build_the_same_books() {
    let settings = with_snapshots(|_| {});
    let (mut rig, mut a, mut b) = with_lines(&settings);
    trade(&mut rig, 1);
    let (snapshot, next) = glimpse(&mut rig);
    trade(&mut rig, 101);
    wait_for_snapshots(&mut rig);
    let count = rig.view.publisher.messages.read() as usize;
    read_lines(&mut rig, &mut a, &mut b, count);
    let all = a.messages();
    assert!(next > 40 && next <= all.len());
    assert_eq!(books(snapshot.iter().chain(&all[next - 1..])), books(&all));
}

#[test]
fn snapshots_are_the_same_after_a_restart() {
    let disk = FaultyDisk::new(1, DiskFaults::default());
    let (settings, journal) = (with_snapshots(|_| {}), journal(Policy::Async));
    let mut rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    trade(&mut rig, 1);
    wait_for_snapshots(&mut rig);
    let before = glimpse(&mut rig);
    disk.kill();
    drop(rig);
    let mut rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    let after = glimpse(&mut rig);
    assert_eq!(after.1, before.1);
    let describe_all =
        |messages: &[Vec<u8>]| messages.iter().map(|message| describe(message)).collect::<Vec<_>>();
    assert_eq!(describe_all(&after.0), describe_all(&before.0));
    trade(&mut rig, 101);
    wait_for_snapshots(&mut rig);
    let later = glimpse(&mut rig);
    assert!(later.1 > after.1 && rig.view.market_recovery.is_behind.read() == 0);
}

#[test]
fn multicast_snapshots_have_one_instrument_and_its_sequence_each() {
    let settings = with_snapshots(|_| {});
    let group = settings.market_recovery.snapshots.clone().unwrap().group;
    let mut channel = Line::join(group);
    let (mut rig, mut a, mut b) = with_lines(&settings);
    trade(&mut rig, 1);
    wait_for_snapshots(&mut rig);
    let sent = rig.view.market_recovery.channel_snapshots.read();
    for round in 1..=4 {
        rig.advance(INTERVAL);
        rig.turn();
        assert_eq!(rig.view.market_recovery.channel_snapshots.read(), sent + round, "one an interval");
    }
    trade(&mut rig, 101);
    wait_for_snapshots(&mut rig);
    rig.until("the packets", |_| {
        channel.read();
        (channel.messages().iter().filter(|message| message[0] == b'G').count() as u64 >= sent + 4)
            .then_some(())
    });
    let count = rig.view.publisher.messages.read() as usize;
    read_lines(&mut rig, &mut a, &mut b, count);
    let (all, channel_messages) = (a.messages(), channel.messages());
    let snapshots: Vec<&[Vec<u8>]> = channel_messages.split_inclusive(|message| message[0] == b'G').collect();
    assert!(snapshots.iter().all(|snapshot| snapshot[0][0] == b'R'));
    let latest = |name: &str| {
        let is_of = |snapshot: &&&[Vec<u8>]| describe(&snapshot[0]) == name;
        let snapshot = snapshots.iter().take(sent as usize + 4).rev().find(is_of).unwrap();
        (&snapshot[..snapshot.len() - 1], end_of(snapshot.last().unwrap()))
    };
    let ((alpha, next), (bravo, _)) = (latest("directory 1 ALPHA"), latest("directory 2 BRAVO"));
    assert_eq!(bravo.len(), 2);
    assert_eq!(books(alpha.iter().chain(&all[next - 1..])), books(&all));
    let first = Packet::parse(&channel.datagrams[0]).unwrap();
    assert_eq!((first.kind(), first.sequence()), (Kind::Heartbeat, Sequence(1)), "before there is anything");
}

#[test]
fn excess_slow_and_malformed_clients_are_disconnected() {
    let mut rig = Rig::with(&with_snapshots(|settings| {
        settings.max_connections = 2;
        settings.time_max = Nanos::from_secs(5);
    }));
    let address = rig.endpoints.glimpse.unwrap();
    let counters = rig.view.market_recovery.clone();
    let [mut silent, mut monday] = [(); 2].map(|()| Client::connect(address));
    monday.send(&login("ANNA", "", "MONDAY", 1));
    let not_available = LoginRejectReason::SESSION_NOT_AVAILABLE;
    assert_eq!(rig.receive(&mut monday), Received::LoginRejected(not_available));
    assert_eq!(rig.receive(&mut monday), Received::Closed);
    assert_eq!(counters.glimpse_refused.read(), 1);
    for (count, bytes) in [&[0, 0][..], b"GET / HTTP/1.1\r\n\r\n", &packet(b'U', b"order"), &[0xff; 600]]
        .into_iter()
        .enumerate()
    {
        let mut client = Client::connect(address);
        client.send(bytes);
        assert_eq!(rig.receive(&mut client), Received::Closed);
        assert_eq!(counters.glimpse_malformed.read(), count as u64 + 1);
    }
    rig.advance(Nanos::from_secs(5));
    rig.until_true("the silent one", |_| counters.glimpse_evicted.read() + counters.glimpse_slow.read() == 1);
    assert_eq!(rig.receive(&mut silent), Received::Closed);
    let (_, next) = glimpse(&mut rig);
    assert_eq!(next, 8, "others are served");
}

/// One address opens many silent connections, and then logs in with three clients that read nothing.
#[test]
fn one_address_does_not_block_others() {
    let flood_from = Ipv4Addr::new(127, 0, 0, 2);
    let mut settings = with_snapshots(|settings| settings.max_connections = 3);
    settings.pre_login = PreLoginLimits { connections: 8, per_address: 4, deadline: Nanos::from_secs(5) };
    let mut rig = Rig::with(&settings);
    let address = rig.endpoints.glimpse.unwrap();
    let counters = rig.view.market_recovery.clone();
    let mut flood: Vec<_> = (0..20).map(|_| Client::connect_from(flood_from, address)).collect();
    rig.until_true("the flood", |_| counters.glimpse_evicted.read() == 16);
    let (_, next) = glimpse(&mut rig);
    assert_eq!(next, 8);
    flood.extend((0..3).map(|_| Client::connect_from(flood_from, address)));
    flood[20..].iter_mut().for_each(|client| client.send(&login("X", "", "", 1)));
    let logins = counters.glimpse_logins.read();
    rig.until_true("the logins", |_| counters.glimpse_logins.read() == logins + 3);
    let (_, next) = glimpse(&mut rig);
    assert_eq!(next, 8);
}

/// The GLIMPSE server's receive buffer has 1 KiB.
#[test]
fn a_packet_with_an_excessive_length_closes_the_connection_at_once() {
    const BUFFER_LEN: usize = 1 << 10;
    let mut rig = Rig::with(&with_snapshots(|_| {}));
    let counters = rig.view.market_recovery.clone();
    let mut client = Client::connect(rig.endpoints.glimpse.unwrap());
    // Send a packet that fills the buffer, and then only the length of one that needs one byte more.
    client.send(&packet(b'+', &[b'x'; BUFFER_LEN - 3]));
    (0..50).for_each(|_| _ = rig.turn());
    assert_eq!((client.try_receive(), counters.glimpse_malformed.read()), (None, 0), "at the bound");
    client.send(&(BUFFER_LEN as u16 - 1).to_be_bytes());
    assert_eq!(rig.receive(&mut client), Received::Closed);
    assert_eq!((counters.glimpse_malformed.read(), counters.glimpse_slow.read()), (1, 0));
}

#[test]
fn a_malformed_client_is_counted_once_and_a_logout_is_not() {
    let mut rig = Rig::with(&with_snapshots(|_| {}));
    let counters = rig.view.market_recovery.clone();
    let send_until_closed = |rig: &mut Rig, bytes: &[u8]| {
        let mut client = Client::connect(rig.endpoints.glimpse.unwrap());
        client.send(&[&login("ANYONE", "", "", 1)[..], bytes].concat());
        while rig.receive(&mut client) != Received::Closed {}
    };
    send_until_closed(&mut rig, &packet(b'O', b""));
    assert_eq!((counters.glimpse_logins.read(), counters.glimpse_malformed.read()), (1, 0), "a logout");
    send_until_closed(&mut rig, &[packet(b'U', b"order"), packet(b'U', b"another")].concat());
    assert_eq!(counters.glimpse_malformed.read(), 1);
}

/// The kernel and the server each buffer 64 KiB per connection, and the snapshot has 240 KiB.
#[test]
fn stalled_clients_are_bounded_and_delay_no_other() {
    let mut settings = with_snapshots(|_| {});
    settings.limits.max_open_orders = 8_192;
    settings.limits.max_open_orders_per_session = 8_192;
    let mut rig = Rig::with(&settings);
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=6_000 {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 900_000 + i64::from(user_ref % 900) * 100));
    }
    wait_for_snapshots(&mut rig);
    let (address, counters) = (rig.endpoints.glimpse.unwrap(), rig.view.market_recovery.clone());
    let mut stuck: Vec<Client> = (0..2).map(|_| Client::connect_narrow(address)).collect();
    for (client, count) in stuck.iter_mut().zip(1..) {
        client.send(&login("SLOW", "", "TODAY", 1));
        rig.until_true("its snapshot", |_| counters.glimpse_snapshots.read() == count);
    }
    rig.assert_serves(&mut anna, 6_001);
    let mut prompt = Client::connect(address);
    prompt.send(&login("PROMPT", "", "", 1));
    assert!(matches!(rig.receive(&mut prompt), Received::LoginAccepted { .. }));
    (0..1_000).for_each(|_| _ = rig.turn());
    assert_eq!(counters.glimpse_connections.read(), 3, "neither could be sent everything");
    assert_eq!((counters.glimpse_snapshots.read(), counters.glimpse_slow.read()), (2, 0), "the bound");
    rig.advance(Nanos::from_secs(2));
    rig.until_true("room", |_| counters.glimpse_snapshots.read() == 3);
    assert_eq!(counters.glimpse_slow.read(), 2, "they have had their turn");
    let mut orders = 0;
    loop {
        match rig.receive(&mut prompt) {
            Received::Message(message) => orders += u64::from(message[0] == b'A'),
            Received::Heartbeat => {}
            other => break assert_eq!(other, Received::EndOfSession),
        }
    }
    assert_eq!(orders, 6_000);
    drop(prompt);
    rig.until_true("the end of all", |_| counters.glimpse_connections.read() == 0);
}

/// Data that a client sends at the end of its snapshot must not cause the loss of data in flight to it.
#[test]
fn a_slow_client_receives_its_whole_snapshot() {
    const ORDERS: u32 = 2_500;
    let mut settings = with_snapshots(|_| {});
    settings.limits.max_open_orders = 8_192;
    settings.limits.max_open_orders_per_session = 8_192;
    let mut rig = Rig::with(&settings);
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=ORDERS {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 900_000 + i64::from(user_ref % 900) * 100));
    }
    wait_for_snapshots(&mut rig);
    let counters = rig.view.market_recovery.clone();
    let mut client = Client::connect_narrow(rig.endpoints.glimpse.unwrap());
    client.send(&login("SLOW", "", "", 1));
    rig.until_true("its snapshot", |_| counters.glimpse_snapshots.read() == 1);
    (0..100).for_each(|_| _ = rig.turn());
    let (mut orders, mut count) = (0, 0);
    loop {
        match rig.receive(&mut client) {
            Received::Message(message) => orders += u32::from(message[0] == b'A'),
            Received::LoginAccepted { .. } | Received::Heartbeat => {}
            other => break assert_eq!(other, Received::EndOfSession, "after {orders} orders"),
        }
        count += 1;
        if count % 100 == 0 && counters.glimpse_connections.read() == 1 {
            client.try_send(&packet(b'R', b""));
            rig.turn();
        }
    }
    assert_eq!(orders, ORDERS);
    assert_eq!(rig.receive(&mut client), Received::Closed);
    drop(client);
    rig.until_true("the end", |_| counters.glimpse_connections.read() == 0);
    assert_eq!((counters.glimpse_slow.read(), counters.glimpse_malformed.read()), (0, 0));
}

#[test]
fn copies_for_snapshots_do_not_allocate_even_without_a_reader() {
    let mut rig = Rig::with(&with_snapshots(|_| {}));
    rig.market_recovery = None;
    let mut anna = rig.log_in("ANNA");
    assert!(tickpath_agent::counts_allocations());
    for user_ref in 1..=50 {
        anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
        assert_eq!(rig.allocations_of(5), 0);
    }
}

/// Messages from the journal and messages from memory form one stream.
#[test]
fn old_messages_come_from_the_journal_also_after_a_restart() {
    let disk = FaultyDisk::new(1, DiskFaults::default());
    let (settings, mut journal) =
        (VenueSettings { retained_messages: 16, ..settings() }, journal(Policy::Async));
    journal.keep_snapshots = 100;
    let (mut a, mut b) = (Line::join(settings.line_a), Line::join(settings.line_b));
    let mut rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    trade(&mut rig, 1);
    trade(&mut rig, 101);
    rig.until_true("the snapshots", |rig| rig.view.journal.snapshots.read() >= 1);
    let count = rig.view.publisher.messages.read() as usize;
    read_lines(&mut rig, &mut a, &mut b, count);
    let all = a.messages();
    for restarts in 0..2 {
        let mut requester = RetransmissionClient::new(&rig);
        for (first, count) in [(1, 5), (1, 40), (70, 10), (3, 1)] {
            requester.request("TODAY", first, count);
            rig.advance(Nanos::from_millis(200));
            let expected = all[first as usize - 1..][..usize::from(count)].to_vec();
            assert_eq!(
                requester.receive(&mut rig, count.into()),
                (first, expected),
                "after {restarts} restarts"
            );
        }
        assert!(rig.view.market_recovery.archive_answers.read() >= 4);
        disk.kill();
        drop(rig);
        rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    }
}

#[test]
fn old_messages_are_read_with_one_rewind() {
    let disk = FaultyDisk::new(1, DiskFaults::default());
    let (settings, mut journal) =
        (VenueSettings { retained_messages: 16, ..settings() }, journal(Policy::Async));
    journal.keep_snapshots = 100;
    let (mut a, mut b) = (Line::join(settings.line_a), Line::join(settings.line_b));
    let mut rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    (0..4).for_each(|round| trade(&mut rig, 1 + 100 * round));
    rig.until_true("the snapshots", |rig| rig.view.journal.snapshots.read() >= 3);
    let count = rig.view.publisher.messages.read() as usize;
    read_lines(&mut rig, &mut a, &mut b, count);
    let mut requester = RetransmissionClient::new(&rig);
    let mut received = vec![];
    while received.len() + 16 < count {
        requester.request("TODAY", received.len() as u64 + 1, 10);
        received.extend(requester.receive(&mut rig, 10).1);
    }
    assert_eq!(received, a.messages()[..received.len()]);
    assert_eq!(rig.view.market_recovery.archive_rewinds.read(), 1, "one snapshot leads to all");
}

/// The ring from the publisher to the snapshots has 4,096 slots, and the publisher's store keeps 16 messages.
#[test]
fn overtaken_snapshots_recover_from_the_journal() {
    let disk = FaultyDisk::new(1, DiskFaults::default());
    let settings = VenueSettings { retained_messages: 16, ..with_snapshots(|_| {}) };
    let journal = journal(Policy::Async);
    let mut rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    let recovery = rig.market_recovery.take();
    let mut anna = log_in_for_new(&mut rig, "ANNA");
    for user_ref in 1..=2_200 {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 5, 900_000 + i64::from(user_ref % 90) * 100));
        if user_ref % 50 > 0 {
            rig.submit(&mut anna, &cancel(user_ref, 0));
        }
    }
    assert!(rig.view.publisher.messages.read() > 4_096 + 16);
    rig.market_recovery = recovery;
    rig.until_true("the gap", |rig| rig.view.market_recovery.is_behind.read() == 1);
    rig.until_true("another state", |rig| rig.view.market_recovery.is_behind.read() == 0);
    assert_eq!(rig.view.market_recovery.renewals.read(), 1);
    drop(anna);
    trade(&mut rig, 3_001);
    wait_for_snapshots(&mut rig);
    let (snapshot, _) = glimpse(&mut rig);
    rig.close();
    let engine = rig.view.engine.lock().unwrap().take().unwrap();
    assert_eq!(books(&snapshot), tickpath_book::OrderBooks::state_hash(engine.books()));
}

#[test]
fn removed_messages_have_no_answer_and_the_archive_queue_is_bounded() {
    let disk = FaultyDisk::new(1, DiskFaults::default());
    let (settings, mut journal) =
        (VenueSettings { retained_messages: 16, ..settings() }, journal(Policy::Async));
    journal.keep_snapshots = 1;
    let mut rig = Rig::of(build_on(&settings, &journal, &disk).unwrap());
    trade(&mut rig, 1);
    trade(&mut rig, 101);
    rig.until_true("the snapshots", |rig| rig.view.journal.snapshots.read() >= 1);
    let mut requester = RetransmissionClient::new(&rig);
    for count in 1..=2 {
        requester.request("TODAY", 1, 5);
        rig.advance(Nanos::from_millis(200));
        rig.until_true("the refusal", |rig| rig.view.market_recovery.archive_too_old.read() == count);
    }
    assert_eq!(rig.view.market_recovery.archive_rewinds.read(), 1, "it is known by then");
    assert!(requester.try_receive().is_none());

    /// Capacity of the archive's ring of requests.
    const WAITING: u64 = 16;
    let archive = rig.market_recovery.take();
    for _ in 0..=WAITING {
        requester.request("TODAY", 40, 5);
    }
    rig.until_true("the requests", |rig| rig.view.publisher.requests.read() == 2 + WAITING + 1);
    assert_eq!(rig.view.publisher.requests_dropped.read(), 1, "one beyond the bound");
    assert_eq!(rig.view.publisher.requests_archived.read(), 2 + WAITING + 1);
    drop(archive);
}

#[test]
fn unanswered_requests_are_counted_by_kind() {
    let requests = RateLimit { per_second: 1, burst: 3 };
    let market_recovery = MarketRecoverySettings { requests, ..MarketRecoverySettings::default() };
    let settings = VenueSettings { market_recovery, ..settings() };
    let (mut rig, mut a, mut b) = with_lines(&settings);
    read_lines(&mut rig, &mut a, &mut b, 7);
    let mut requester = RetransmissionClient::new(&rig);
    requester.request("MONDAY", 1, 1);
    requester.request("TODAY", 1, 0);
    requester.request("TODAY", 8, 1); // not published yet
    requester.request("TODAY", u64::MAX - 70_000, 60_000);
    requester.request("TODAY", 1, 65_534); // all messages
    requester.request("TODAY", 1, 1); // above the rate
    let publisher = rig.view.publisher.clone();
    rig.until_true("the requests", |_| publisher.requests.read() == 6);
    assert_eq!(requester.receive(&mut rig, 7).0, 1);
    assert_eq!(publisher.requests_foreign.read(), 1);
    assert_eq!(publisher.requests_malformed.read(), 1);
    assert_eq!(publisher.requests_unknown.read(), 2);
    assert_eq!(publisher.requests_limited.read(), 1);
    assert_eq!(publisher.requests_dropped.read(), 3);
    assert_eq!(publisher.retransmitted.read(), 7);
    rig.advance(Nanos::from_secs(1));
    requester.request("TODAY", 2, 1);
    assert_eq!(requester.receive(&mut rig, 1).0, 2, "a second later");
}

#[test]
fn reference_books_agree_with_the_snapshot() {
    let mut rig = Rig::with(&with_snapshots(|_| {}));
    trade(&mut rig, 1);
    wait_for_snapshots(&mut rig);
    let (snapshot, _) = glimpse(&mut rig);
    let limits = BookLimits::new(InstrumentId(2), 1_024);
    let mut builder = BookBuilder::new(Indexed::<ReferenceBooks<()>>::new(limits));
    for message in &snapshot {
        builder.handle_message(Sequence(1), message, &mut IgnoreUpdates);
    }
    assert_eq!(builder.books().state_hash(), books(&snapshot));
    rig.close();
    let engine = rig.view.engine.lock().unwrap().take().unwrap();
    let displayed = tickpath_book::OrderBooks::state_hash(engine.books());
    assert_eq!(books(&snapshot), displayed);
}

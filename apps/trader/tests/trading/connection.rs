//! Lost connections, and venues that refuse logins.

use std::io::{BufReader, Read, Write};
use std::net::SocketAddrV4;

use tickpath_agent::TscClock;
use tickpath_nasdaq::soupbintcp::{HEARTBEAT_INTERVAL, LoginRejectReason, PEER_TIMEOUT};
use tickpath_test_support::{REFUSING, listen};
use tickpath_trader::{OrderEntry, OrderEntryError};
use tickpath_types::{EnterOrder, Nanos, OrderRequest, Price, Qty, Side, TimeInForce, UserRefNum};

use crate::site::{ALPHA, QUERY, Site, buy, instruments, sell};

/// Length of a login packet.
const LOGIN_LEN: usize = 49;
/// The gateway's wait before it reconnects.
const RECONNECT: Nanos = Nanos::from_secs(1);

#[test]
fn events_during_a_disconnect_arrive_once_after_it() {
    let mut site = Site::new();
    let first = site.enter(sell(100, 1_000_000));
    site.lose_connection();
    assert_eq!(site.view.gateway.disconnects.read(), 1);
    for user_ref in 1..=3 {
        site.rival_enters(user_ref, Side::Buy, 10, 1_000_000, TimeInForce::Ioc);
    }
    assert_eq!(site.script.changes_of(first).len(), 1, "nothing is received yet");

    site.pass(RECONNECT);
    site.until("the new login", |site| site.view.gateway.logged_in.read() == 1);
    site.until("what was missed", |site| site.script.changes_of(first).len() >= 4);
    let snapshot = site.snapshot();
    assert_eq!(site.script.changes_of(first).len(), 4, "and nothing twice");
    assert_eq!((snapshot.positions[0].net_qty(), snapshot.counters.fills), (-30, 3));
    assert_eq!(snapshot.open_orders, 1);
    assert_eq!(site.script.log().starts, 1, "the strategy continues");

    site.enter(buy(30, 1_000_500));
    let snapshot = site.snapshot();
    assert_eq!(
        (snapshot.open_orders, snapshot.positions[0].net_qty()),
        (1, -30),
        "it traded with its own order"
    );
    let last = site.view.gateway.last_sequence.read();
    assert_eq!(
        last,
        1 + QUERY + 2 + 5,
        "the start of the day, the first number, two acceptances, five executions"
    );
}

#[test]
fn the_trader_survives_repeated_disconnects() {
    let mut site = Site::new();
    for round in 1..=5 {
        site.enter(buy(1, 999_000));
        site.cut_connection();
        site.until("the loss", |site| site.view.gateway.disconnects.read() == round);
        site.until("the new login", |site| site.view.gateway.logged_in.read() == 1);
    }
    assert_eq!(site.snapshot().open_orders, 5);
    assert_eq!(site.venue_view.order_server.logins.read(), 1 + 1 + 5);
}

#[test]
fn a_stopped_venue_is_a_lost_connection() {
    let mut site = Site::new();
    site.enter(buy(10, 999_000));
    site.close_venue();
    site.until("the loss", |site| site.view.gateway.disconnects.read() == 1);
    assert_eq!(site.view.gateway.logged_in.read(), 0);
    site.close_trader();
    assert_eq!(site.view.snapshot().unwrap().open_orders, 1, "as far as the engine knows");
}

fn connect(address: SocketAddrV4, user: &str, password: &str) -> Result<OrderEntry, OrderEntryError> {
    OrderEntry::connect(address, user, password, instruments(), TscClock::system().now())
}

#[test]
fn invalid_credentials_are_refused_before_connecting() {
    for (user, password) in [("TOOLONG", "x"), ("A", "elevenchars"), ("\u{e4}", "x")] {
        let error = connect(REFUSING, user, password).err().unwrap();
        assert!(matches!(error, OrderEntryError::Credentials { .. }), "{error}");
    }
    let error = connect(REFUSING, "A", "x").err().unwrap();
    assert!(matches!(error, OrderEntryError::Connect(_)), "{error}");
}

#[test]
fn a_wrong_password_is_reported() {
    let mut site = Site::new();
    let now = TscClock::system().now();
    let mut entry = connect(site.endpoints.order_entry, "RIVAL", "wrong").unwrap();
    let mut error = None;
    site.until("the refusal", |_| {
        error = entry.poll(now, &mut (), |_| {}, |_, _| {}).err();
        error.is_some()
    });
    let Some(OrderEntryError::LoginRejected { name, reason }) = error else { panic!("{error:?}") };
    assert_eq!((name.as_str(), reason), ("RIVAL", LoginRejectReason::NOT_AUTHORIZED));
}

#[test]
fn a_silent_venue_is_disconnected() {
    // This listener accepts the connection and never sends anything.
    let (_listener, address) = listen();
    let now = TscClock::system().now();
    let mut entry = OrderEntry::connect(address, "A", "x", instruments(), now).unwrap();
    let mut poll = |now| entry.poll(now, &mut (), |_| {}, |_, _| {});
    assert!(poll(now).is_ok());
    assert!(poll(now + PEER_TIMEOUT).is_ok());
    let error = poll(now + PEER_TIMEOUT + PEER_TIMEOUT).err().unwrap();
    assert!(matches!(error, OrderEntryError::Disconnected { .. }), "{error}");
}

#[test]
fn a_heartbeat_that_finds_the_buffers_full_waits() {
    let (listener, address) = listen();
    let now = TscClock::system().now();
    let mut entry = OrderEntry::connect(address, "A", "x", instruments(), now).unwrap();
    let (mut venue, _) = listener.accept().unwrap();
    entry.poll(now, &mut (), |_| {}, |_, _| {}).unwrap();
    venue.read_exact(&mut [0; LOGIN_LEN]).unwrap();
    venue.write_all(format!("\0\u{1f}A{:<10}{:>20}", "SESSION", 1).as_bytes()).unwrap();
    while !entry.is_active() {
        entry.poll(now, &mut (), |_| {}, |_, _| {}).unwrap();
    }
    // While the venue reads nothing, fill the TCP buffers of both sides, and then the client's queue.
    let mut user_ref = 0;
    let mut queue = |entry: &mut OrderEntry| {
        let user_ref_num = UserRefNum(user_ref + 1);
        let order = EnterOrder::limit(user_ref_num, ALPHA, Side::Buy, Qty(1), Price(999_000));
        let queued = entry.queue(&OrderRequest::Enter(order));
        user_ref += u32::from(queued.is_ok());
        queued
    };
    while entry.flush(now).is_ok() {
        (0..100).for_each(|_| queue(&mut entry).unwrap());
    }
    let full = |result| matches!(result, Err(OrderEntryError::Backpressured));
    assert!(full(entry.flush(now)));
    while queue(&mut entry).is_ok() {}
    assert!(full(queue(&mut entry)));
    let later = now + HEARTBEAT_INTERVAL + HEARTBEAT_INTERVAL;
    assert_eq!(entry.poll(later, &mut (), |_| {}, |_, _| {}).unwrap(), 0);

    let reader = std::thread::spawn(move || {
        let mut kinds = Vec::new();
        let mut venue = BufReader::new(venue);
        while kinds.len() < user_ref as usize {
            let mut length = [0; 2];
            venue.read_exact(&mut length).unwrap();
            let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
            venue.read_exact(&mut packet).unwrap();
            kinds.push(packet[0]);
        }
        (kinds, venue)
    });
    while !reader.is_finished() {
        let flushed = entry.flush(later);
        assert!(flushed.is_ok() || full(flushed));
        entry.poll(later, &mut (), |_| {}, |_, _| {}).unwrap();
    }
    let (kinds, _venue) = reader.join().unwrap();
    assert!(kinds.iter().all(|kind| *kind == b'U'), "no request is lost or torn");
}

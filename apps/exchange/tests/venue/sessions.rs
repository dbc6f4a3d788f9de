//! Logins, logouts, timeouts, and reconnects.

use tickpath_exchange::PreLoginLimits;
use tickpath_nasdaq::soupbintcp::{HEARTBEAT_INTERVAL, LoginRejectReason, PEER_TIMEOUT};
use tickpath_types::{Nanos, OrderEventKind, Side};

use crate::support::{Client, PASSWORD, Received, Rig, enter, login, packet, settings};

const NOT_AUTHORIZED: Received = Received::LoginRejected(LoginRejectReason::NOT_AUTHORIZED);
const NOT_AVAILABLE: Received = Received::LoginRejected(LoginRejectReason::SESSION_NOT_AVAILABLE);
const MOMENT: Nanos = Nanos::from_millis(50);

/// Sends a login; returns the response and the client.
fn try_login(rig: &mut Rig, bytes: &[u8]) -> (Received, Client) {
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(bytes);
    let received = rig.receive(&mut client);
    (received, client)
}

#[test]
fn a_login_is_accepted_or_rejected_with_a_reason() {
    let mut rig = Rig::new();
    let accepted = Received::LoginAccepted { session: "TODAY".into(), next: 2 };
    for (user, password, session, sequence, expected) in [
        ("ANNA", "wrong", "", 1, &NOT_AUTHORIZED),
        ("ABSENT", PASSWORD, "", 1, &NOT_AUTHORIZED),
        ("", "", "", 1, &NOT_AUTHORIZED),
        ("ANNA", PASSWORD, "MONDAY", 1, &NOT_AVAILABLE),
        ("ANNA", PASSWORD, "TODAY", 3, &NOT_AVAILABLE),
        ("ANNA", PASSWORD, "TODAY", u64::MAX, &NOT_AVAILABLE),
        ("ANNA", PASSWORD, "", 2, &accepted),
        ("BERT", PASSWORD, "TODAY", 0, &accepted),
        ("cleo", "SECRET", "today", 1, &NOT_AVAILABLE),
        ("cleo", "SECRET", "TODAY", 2, &accepted),
    ] {
        let (received, mut client) = try_login(&mut rig, &login(user, password, session, sequence));
        assert_eq!(received, *expected, "{user} {password} {session} {sequence}");
        if received != accepted {
            assert_eq!(rig.receive(&mut client), Received::Closed);
        }
    }
    let counters = &rig.view.order_server;
    assert_eq!((counters.logins.read(), counters.logins_refused.read()), (3, 7));
}

#[test]
fn a_second_login_of_a_user_is_rejected() {
    let mut rig = Rig::new();
    let mut first = rig.log_in("ANNA");
    let (received, mut second) = try_login(&mut rig, &login("ANNA", PASSWORD, "", 1));
    assert_eq!(received, NOT_AVAILABLE);
    assert_eq!(rig.receive(&mut second), Received::Closed);
    rig.assert_serves(&mut first, 1);
}

#[test]
fn logging_out_ends_the_connection_and_frees_the_user() {
    let mut rig = Rig::new();
    let mut client = rig.log_in("ANNA");
    client.send(&packet(b'O', b""));
    assert_eq!(rig.receive(&mut client), Received::Closed);
    let mut again = rig.log_in("ANNA");
    rig.assert_serves(&mut again, 1);
    assert_eq!(rig.view.order_server.disconnects.read(), 1);
}

#[test]
fn a_second_login_on_one_connection_closes_it() {
    let mut rig = Rig::new();
    let mut client = rig.log_in("ANNA");
    client.send(&login("BERT", PASSWORD, "", 1));
    assert_eq!(rig.receive(&mut client), Received::Closed);
    rig.log_in("ANNA");
    rig.log_in("BERT");
}

#[test]
fn a_connection_without_a_login_is_closed_by_the_time_out() {
    let mut rig = Rig::new();
    let mut silent = Client::connect(rig.endpoints.order_entry);
    let mut slow = Client::connect(rig.endpoints.order_entry);
    slow.send(&login("ANNA", PASSWORD, "", 1)[..20]);
    rig.until_true("two connections", |rig| rig.view.order_server.connections.read() == 2);
    rig.advance(PreLoginLimits::default().deadline - MOMENT);
    assert_eq!((silent.try_receive(), slow.try_receive()), (None, None));
    assert_eq!(rig.view.order_server.disconnects.read(), 0);
    rig.advance(MOMENT);
    assert_eq!(rig.receive(&mut silent), Received::Closed);
    assert_eq!(rig.receive(&mut slow), Received::Closed);
    assert_eq!(rig.view.order_server.disconnects.read(), 2);
}

#[test]
fn a_login_may_arrive_byte_by_byte() {
    let mut rig = Rig::new();
    let mut client = Client::connect(rig.endpoints.order_entry);
    for byte in login("ANNA", PASSWORD, "", 1) {
        client.send(&[byte]);
        rig.turn();
    }
    assert!(matches!(rig.receive(&mut client), Received::LoginAccepted { .. }));
}

#[test]
fn the_venue_sends_a_heartbeat_every_second() {
    let mut rig = Rig::new();
    let mut client = rig.log_in("ANNA");
    rig.advance(HEARTBEAT_INTERVAL - MOMENT);
    assert_eq!(client.try_receive(), None);
    for _ in 0..3 {
        rig.advance(MOMENT);
        assert_eq!(rig.receive(&mut client), Received::Heartbeat);
        rig.advance(HEARTBEAT_INTERVAL - MOMENT);
        assert_eq!(client.try_receive(), None);
    }
}

#[test]
fn silence_ends_a_session_and_a_heartbeat_keeps_it() {
    let mut rig = Rig::new();
    let (mut silent, mut alive) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    for _ in 0..4 {
        alive.send(&packet(b'R', b""));
        rig.turn();
        rig.advance(Nanos(PEER_TIMEOUT.0 / 4));
    }
    rig.advance(MOMENT);
    let last =
        rig.until("the end", |_| silent.try_receive().filter(|received| *received != Received::Heartbeat));
    assert_eq!(last, Received::Closed);
    rig.assert_serves(&mut alive, 1);
    rig.log_in("ANNA");
}

#[test]
fn a_returning_user_receives_missed_messages_once() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let mut received = vec![];
    for user_ref in 1..=3 {
        anna.request(&enter(user_ref, Side::Sell, 10, 1_000_000));
        received.push(rig.receive(&mut anna));
    }
    drop(anna);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 1);
    for user_ref in 1..=3 {
        bert.request(&enter(user_ref, Side::Buy, 5, 1_000_000));
        let [_, executed] = rig.receive_events(&mut bert);
        assert!(matches!(executed, OrderEventKind::Executed { .. }), "{executed:?}");
    }

    let mut anna = rig.log_in_from("ANNA", received.len() as u64 + 1);
    let missed: Vec<_> = (0..3).map(|_| rig.receive(&mut anna)).collect();
    for message in &missed {
        let Received::Message(message) = message else { panic!("{message:?}") };
        assert_eq!(message[0], b'E');
    }
    received.extend(missed);
    rig.assert_serves(&mut anna, 4);
    drop(anna);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 2);

    let mut anna = rig.log_in_from("ANNA", 1);
    let again: Vec<_> = (0..received.len()).map(|_| rig.receive(&mut anna)).collect();
    assert_eq!(again, received, "the same bytes");
}

#[test]
fn a_client_receives_thousands_of_missed_messages() {
    const COUNT: u32 = 2_000;
    let mut rig = Rig::with(&tickpath_exchange::VenueSettings { retained_responses: 1 << 13, ..settings() });
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=COUNT {
        anna.request(&crate::support::ioc(user_ref, Side::Buy, 1, 1_000_000));
        rig.receive_events::<2>(&mut anna);
    }
    drop(anna);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 1);
    let mut anna = rig.log_in_from("ANNA", 1);
    for user_ref in 1..=COUNT {
        // The messages do not fit into one write, so some are sent in later duty cycles.
        let [accepted, canceled] = std::array::from_fn(|_| {
            rig.until("the next message", |rig| {
                rig.advance(Nanos::from_millis(1));
                anna.try_receive()
            })
        });
        for received in [accepted, canceled] {
            let Received::Message(message) = received else { panic!("{received:?}") };
            assert_eq!(crate::support::event(&message).user_ref().0, user_ref);
        }
    }
}

#[test]
fn short_connections_do_not_allocate() {
    const TURNS: usize = 20;
    let pre_login = PreLoginLimits { connections: 2, per_address: 1, ..PreLoginLimits::default() };
    let mut rig = Rig::with(&tickpath_exchange::VenueSettings { pre_login, ..settings() });
    let mut anna = rig.log_in("ANNA");
    assert!(tickpath_agent::counts_allocations());
    for round in 1..=10 {
        // The last connection stays, the others are evicted.
        let clients: Vec<_> = (0..6).map(|_| Client::connect(rig.endpoints.order_entry)).collect();
        assert_eq!(rig.allocations_of(TURNS), 0);
        assert_eq!(rig.view.order_server.pre_login_evicted.read(), round * 5);
        drop(clients);
        assert_eq!(rig.allocations_of(TURNS), 0);
        assert_eq!(rig.view.order_server.disconnects.read(), round * 6);
    }
    rig.assert_serves(&mut anna, 1);
}

#[test]
fn connections_are_limited() {
    let mut rig = Rig::with(&tickpath_exchange::VenueSettings { max_connections: 2, ..settings() });
    let (mut anna, bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let mut third = Client::connect(rig.endpoints.order_entry);
    third.send(&login("CLEO", PASSWORD, "", 1));
    assert_eq!(rig.receive(&mut third), Received::Closed);
    assert_eq!(rig.view.order_server.connections_refused.read(), 1);
    rig.assert_serves(&mut anna, 1);
    drop(bert);
    rig.until_true("room", |rig| rig.view.order_server.disconnects.read() == 2);
    rig.log_in("CLEO");
}

#[test]
fn shutdown_ends_every_session() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    anna.request(&enter(1, Side::Buy, 1, 1_000_000));
    let answer = rig.receive_event(&mut anna);
    assert!(matches!(answer, OrderEventKind::Accepted { .. }));
    rig.close();
    let received = loop {
        if let Some(received) = anna.try_receive() {
            break received;
        }
    };
    assert_eq!(received, Received::EndOfSession);
}

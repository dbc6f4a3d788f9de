//! Misbehaving clients: the venue counts them, disconnects them as the protocol requires, and serves others.

use std::net::Ipv4Addr;

use tickpath_exchange::{PreLoginLimits, VenueSettings, hash_password, hashed_password};
use tickpath_types::{Nanos, OrderEventKind, OrderRequest, Side};

use crate::support::{
    Client, PASSWORD, Received, Rig, enter, ioc, login, order, packet, request_packet, settings,
};

/// Number of invalid messages after which the venue closes a connection.
const MALFORMED_MAX: u32 = 16;

/// Byte sequences after which the venue must close a connection, before and after a login.
fn invalid_packets() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("text", b"GET / HTTP/1.1\r\nHost: venue\r\n\r\n".to_vec()),
        ("all ones", vec![0xff; 64]),
        ("a length of zero", vec![0, 0]),
        ("an unknown type", packet(b'?', b"what")),
        ("a heartbeat with a lying length", [&[0, 100, b'R'][..], &[0; 99]].concat()),
        ("a login with a lying length", [&[0, 20, b'L'][..], &[b' '; 19]].concat()),
        ("a packet that only a server sends", packet(b'S', b"message")),
        ("an acceptance", packet(b'A', &[b' '; 30])),
        ("a message longer than the venue reads", [&[0xff, 0xff, b'U'][..], &[0; 32 * 1024]].concat()),
        ("a text longer than the venue reads", [&[0xff, 0xff, b'+'][..], &[0; 32 * 1024]].concat()),
    ]
}

/// The venue's receive buffer has 16 KiB.
#[test]
fn a_packet_with_an_excessive_length_closes_the_connection_at_once() {
    const BUFFER_LEN: usize = 16 << 10;
    let mut rig = Rig::new();
    let mut client = rig.log_in("ANNA");
    let malformed = |rig: &Rig| rig.view.order_server.malformed.read();
    send_in_pieces(&mut rig, &mut client, &packet(b'+', &[b'x'; BUFFER_LEN - 3]));
    rig.assert_serves(&mut client, 1);
    assert_eq!(malformed(&rig), 0, "at the bound");
    client.send(&(BUFFER_LEN as u16 - 1).to_be_bytes());
    assert_eq!(rig.receive(&mut client), Received::Closed);
    assert_eq!(malformed(&rig), 1);
}

#[test]
fn data_behind_a_login_waits_for_the_password_check() {
    let mut settings = settings();
    settings.users[0].password = hashed_password(&hash_password(PASSWORD).unwrap()).unwrap();
    let mut rig = Rig::with(&settings);
    let mut client = Client::connect(rig.endpoints.order_entry);
    // While the password is checked, send more than fits into the venue's receive buffer.
    let heartbeats = packet(b'R', b"").repeat(8_000);
    let order = request_packet(&enter(1, Side::Buy, 1, 1_000_000));
    let bytes = [login("ANNA", PASSWORD, "", 1), heartbeats, order].concat();
    for piece in bytes.chunks(4_096) {
        client.send(piece);
        rig.turn();
    }
    assert!(matches!(rig.receive(&mut client), Received::LoginAccepted { .. }));
    let answer = rig.receive_event(&mut client);
    assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
    assert_eq!(rig.view.order_server.malformed.read(), 0);
}

/// Sends `bytes` in pieces, because the venue may disconnect the client before the end.
fn send_in_pieces(rig: &mut Rig, client: &mut Client, bytes: &[u8]) {
    for piece in bytes.chunks(4_096) {
        if !client.try_send(piece) {
            return;
        }
        rig.turn();
    }
}

#[test]
fn invalid_packets_close_the_connection() {
    let mut rig = Rig::new();
    let mut witness = rig.log_in("ANNA");
    let mut user_ref = 1;
    for (what, bytes) in invalid_packets() {
        for is_logged_in in [false, true] {
            let mut client =
                if is_logged_in { rig.log_in("BERT") } else { Client::connect(rig.endpoints.order_entry) };
            let before = rig.view.order_server.malformed.read();
            send_in_pieces(&mut rig, &mut client, &bytes);
            assert_eq!(rig.receive(&mut client), Received::Closed, "{what}");
            assert_eq!(rig.view.order_server.malformed.read(), before + 1, "{what}");
            rig.assert_serves(&mut witness, user_ref);
            user_ref += 1;
        }
    }
}

#[test]
fn an_order_before_the_login_closes_the_connection() {
    let mut rig = Rig::new();
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.request(&enter(1, Side::Buy, 1, 1_000_000));
    assert_eq!(rig.receive(&mut client), Received::Closed);
    assert_eq!(rig.view.order_server.requests.read(), 0);
}

#[test]
fn a_login_with_an_invalid_number_closes_the_connection() {
    let mut rig = Rig::new();
    let mut client = Client::connect(rig.endpoints.order_entry);
    let mut bytes = login("ANNA", PASSWORD, "", 1);
    bytes[3 + 30] = b'x';
    client.send(&bytes);
    assert_eq!(rig.receive(&mut client), Received::Closed);
    rig.log_in("ANNA");
}

#[test]
fn invalid_messages_are_dropped_and_too_many_close_the_connection() {
    let mut rig = Rig::new();
    let (mut witness, mut client) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let order = request_packet(&enter(1, Side::Buy, 1, 1_000_000));
    let bad: [&[u8]; 8] = [
        b"",
        b"O",
        &order[3..order.len() - 10],
        b"X\0\0\0\x01",
        b"?unknown",
        b"C\0\0\0\x01",
        b"\0",
        b"M\0\0\0\x01B",
    ];
    for round in 0..2 {
        for message in bad {
            if round == 1 && message == bad[7] {
                break;
            }
            client.send(&packet(b'U', message));
        }
    }
    let count = u64::from(MALFORMED_MAX) - 1;
    rig.until_true("the drops", |rig| rig.view.order_server.malformed.read() == count);
    rig.assert_serves(&mut client, 1);
    client.send(&packet(b'U', b"?one more"));
    assert_eq!(rig.receive(&mut client), Received::Closed);
    rig.assert_serves(&mut witness, 1);
    assert_eq!(rig.view.order_server.malformed.read(), count + 1);
    rig.log_in_from("BERT", 3);
}

#[test]
fn a_message_with_surplus_bytes_is_dropped() {
    let mut rig = Rig::new();
    let mut client = rig.log_in("BERT");
    let mut long = request_packet(&OrderRequest::Enter(order(1, Side::Buy, 1, 1_000_000)));
    long.push(7);
    let len = long.len() as u16 - 2;
    long[..2].copy_from_slice(&len.to_be_bytes());
    client.send(&long);
    rig.until_true("the drop", |rig| rig.view.order_server.malformed.read() == 1);
    rig.assert_serves(&mut client, 1);
}

#[test]
fn a_stalled_client_is_disconnected_when_its_messages_are_overwritten() {
    const BURST: u32 = 20;
    let mut rig = Rig::with(&VenueSettings { retained_responses: 256, ..settings() });
    let mut witness = rig.log_in("ANNA");
    let mut slow = Client::connect_narrow(rig.endpoints.order_entry);
    slow.send(&login("BERT", PASSWORD, "", 1));
    assert!(matches!(rig.receive(&mut slow), Received::LoginAccepted { .. }));
    for burst in 0.. {
        let first = burst * BURST + 1;
        assert!(first < 400_000, "the kernel takes no end of answers");
        let requests: Vec<u8> = (first..first + BURST)
            .flat_map(|user_ref| request_packet(&ioc(user_ref, Side::Buy, 1, 1_000_000)))
            .collect();
        if !slow.try_send(&requests) {
            break;
        }
        rig.advance(Nanos::from_micros(100));
        if burst % 50 == 0 {
            rig.assert_serves(&mut witness, burst + 1);
        }
    }
    assert_eq!(rig.view.order_server.slow_clients.read(), 1);
    assert_eq!(rig.view.order_server.disconnects.read(), 1);
    rig.assert_serves(&mut witness, u32::MAX - 1);

    // The user cannot receive the overwritten messages any more, but may continue with new messages.
    let mut again = Client::connect(rig.endpoints.order_entry);
    again.send(&login("BERT", PASSWORD, "", 0));
    assert!(matches!(rig.receive(&mut again), Received::LoginAccepted { .. }));
    rig.assert_serves(&mut again, u32::MAX);
}

#[test]
fn one_order_with_many_answers_does_not_make_a_client_slow() {
    const RESTING: u32 = 400;
    let mut rig = Rig::with(&VenueSettings { retained_responses: 1, ..settings() });
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    for user_ref in 1..=RESTING {
        rig.submit(&mut anna, &enter(user_ref, Side::Sell, 1, 1_000_000));
    }
    bert.request(&ioc(1, Side::Buy, RESTING.into(), 1_000_000));
    for _ in 0..=RESTING {
        rig.receive_event(&mut bert);
    }
    for user_ref in 1..=RESTING {
        assert_eq!(rig.receive_event(&mut anna).user_ref().0, user_ref);
    }
}

#[test]
fn ten_thousand_connections_do_not_allocate_or_disturb_others() {
    const ROUNDS: usize = 100;
    const EACH: usize = 100;
    let mut rig = Rig::with(&VenueSettings { pre_login: FEW, ..settings() });
    let mut witness = rig.log_in("ANNA");
    assert!(tickpath_agent::counts_allocations());
    for round in 1..=ROUNDS {
        let clients: Vec<_> = (0..EACH).map(|_| Client::connect(rig.endpoints.order_entry)).collect();
        let seen = (round * EACH) as u64 + 1;
        let mut allocated = 0;
        let counted = |rig: &Rig| rig.view.order_server.connections.read();
        while counted(&rig) < seen {
            allocated += rig.allocations_of(10);
        }
        drop(clients);
        allocated += rig.allocations_of(20);
        assert_eq!(allocated, 0, "round {round}");
        rig.assert_serves(&mut witness, round as u32);
    }
    let server = &rig.view.order_server;
    assert!(server.pre_login_evicted.read() >= (ROUNDS * (EACH - FEW.per_address)) as u64);
}

/// Source address of silent connections.
const FLOOD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Limits on connections before login that are small, so that a test reaches them quickly.
const FEW: PreLoginLimits = PreLoginLimits { connections: 8, per_address: 4, deadline: Nanos::from_secs(5) };

#[test]
fn silent_connections_do_not_block_clients() {
    let mut rig = Rig::with(&VenueSettings { pre_login: FEW, ..settings() });
    let server = rig.view.order_server.clone();
    let mut flood = Vec::new();
    for round in 1..=5 {
        // More silent connections than allowed arrive before and after the client, which logs in last.
        flood.extend((0..20).map(|_| Client::connect_from(FLOOD, rig.endpoints.order_entry)));
        let mut client = Client::connect(rig.endpoints.order_entry);
        flood.extend((0..20).map(|_| Client::connect_from(FLOOD, rig.endpoints.order_entry)));
        rig.until_true("all of them", |_| server.connections.read() == round * 45 - 4);
        client.send(&login("ANNA", PASSWORD, "", 1));
        let response = rig.receive(&mut client);
        assert!(matches!(response, Received::LoginAccepted { .. }), "round {round}: {response:?}");
        // A client at the address of the silent connections is accepted if it logs in at once.
        let mut beside = Client::connect_from(FLOOD, rig.endpoints.order_entry);
        beside.send(&login("BERT", PASSWORD, "", 1));
        flood.extend((0..3).map(|_| Client::connect_from(FLOOD, rig.endpoints.order_entry)));
        let response = rig.receive(&mut beside);
        assert!(matches!(response, Received::LoginAccepted { .. }), "round {round}: {response:?}");
        rig.until_true("all of them", |_| server.connections.read() == round * 45);
        rig.assert_serves(&mut client, round as u32);
        drop((client, beside));
        let disconnects_before = server.disconnects.read();
        rig.until_true("the hang-ups", |_| server.disconnects.read() >= disconnects_before + 2);
    }
    let evicted = server.pre_login_evicted.read();
    assert!(evicted >= 5 * 43 - FEW.per_address as u64, "{evicted}");
    assert_eq!(server.logins_refused.read(), 0);
    let closed = flood
        .iter_mut()
        .filter_map(Client::try_receive)
        .filter(|response| *response == Received::Closed)
        .count();
    assert!(closed >= flood.len() - FEW.per_address, "{closed}");
    rig.advance(FEW.deadline);
    let ended = || server.pre_login_evicted.read() + server.pre_login_expired.read();
    rig.until_true("their end", |_| ended() == flood.len() as u64);
}

#[test]
fn one_byte_per_second_does_not_prevent_the_time_out() {
    let mut rig = Rig::new();
    let mut witness = rig.log_in("ANNA");
    let (mut before, mut after) = (Client::connect(rig.endpoints.order_entry), rig.log_in("BERT"));
    let (to_log_in, to_enter) =
        (login("CLEO", PASSWORD, "", 1), request_packet(&enter(1, Side::Buy, 1, 1_000_000)));
    let (mut closed_before, mut closed_after) = (None, None);
    for second in 0..40 {
        before.try_send(&to_log_in[second..=second]);
        after.try_send(&to_enter[second..=second]);
        witness.send(&packet(b'R', b""));
        rig.turn();
        rig.advance(Nanos::from_secs(1));
        for (client, closed) in [(&mut before, &mut closed_before), (&mut after, &mut closed_after)] {
            while let Some(response) = client.try_receive().filter(|_| closed.is_none()) {
                if response == Received::Closed {
                    *closed = Some(second + 1);
                }
            }
        }
    }
    // A login has a deadline of 5 s; after the login, incomplete packets do not reset the timeout of 15 s.
    assert_eq!((closed_before, closed_after), (Some(5), Some(15)));
    assert_eq!(rig.view.order_server.requests.read(), 0);
    rig.assert_serves(&mut witness, 1);
}

#[test]
fn a_repeated_login_closes_the_connection_and_is_counted() {
    let mut rig = Rig::new();
    let mut client = rig.log_in("ANNA");
    client.send(&login("ANNA", PASSWORD, "", 1));
    assert_eq!(rig.receive(&mut client), Received::Closed);
    assert_eq!(rig.view.order_server.malformed.read(), 1);
    // On a separate connection a second login is valid, but rejected: a user can be logged in only once.
    let mut first = rig.log_in("ANNA");
    let mut second = Client::connect(rig.endpoints.order_entry);
    second.send(&login("ANNA", PASSWORD, "", 1));
    assert!(matches!(rig.receive(&mut second), Received::LoginRejected(_)));
    rig.assert_serves(&mut first, 1);
    assert_eq!(rig.view.order_server.logins_refused.read(), 1);
}

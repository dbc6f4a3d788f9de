//! The shutdown of a venue under load: it answers and publishes all requests read, then ends the sessions.

use std::net::Ipv4Addr;

use tickpath_agent::{FINISH_TIMEOUT, IdleStrategy};
use tickpath_nasdaq::moldudp64::{Kind, Packet};
use tickpath_net::MulticastReceiver;
use tickpath_test_support::{Deadline, wait_for};
use tickpath_test_venue::{RunningVenue, on_own_threads};
use tickpath_types::{OrderEventKind, Side};

use crate::support::{
    Client, PASSWORD, Received, Rig, build, enter, event, ioc, login, packet, request_packet, settings,
};

/// Returns the client's packets, without heartbeats, until the connection is closed. Runs `between` while
/// none is available.
fn receive_all(client: &mut Client, mut between: impl FnMut()) -> Vec<Received> {
    let mut received = vec![];
    let deadline = Deadline::start();
    while received.last() != Some(&Received::Closed) {
        assert!(!deadline.is_over(), "no end after {} messages", received.len());
        match client.try_receive() {
            Some(Received::Heartbeat) => {}
            Some(more) => received.push(more),
            None => between(),
        }
    }
    received
}

/// Returns the UserRefNums of the accepted orders. Asserts that there are no other messages before the end.
fn accepted(received: &[Received]) -> Vec<u32> {
    let [answers @ .., Received::EndOfSession, Received::Closed] = received else {
        panic!("{:?} in place of the end of the session", received.last_chunk::<2>())
    };
    let user_ref = |answer: &Received| match answer {
        Received::Message(message) => match event(message) {
            OrderEventKind::Accepted { order, .. } => order.user_ref.0,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    answers.iter().map(user_ref).collect()
}

fn orders(count: u32) -> Vec<u8> {
    (1..=count).flat_map(|user_ref| request_packet(&enter(user_ref, Side::Buy, 1, 900_000))).collect()
}

/// Reads a market data line until the end of the session, and asserts that no sequence number is missing.
/// Returns the number of messages, and the next sequence number that the end-of-session packet announces.
fn read_line(line: &mut MulticastReceiver) -> (u64, u64) {
    let mut bytes = [0; 2_048];
    let mut messages = 0;
    let deadline = Deadline::start();
    loop {
        assert!(!deadline.is_over(), "no end of the session after {messages} messages");
        let Some(received) = line.recv(&mut bytes).unwrap() else { continue };
        let packet = Packet::parse(&bytes[..received.len]).unwrap();
        for (sequence, _) in packet.messages() {
            assert_eq!(sequence.0, messages + 1);
            messages += 1;
        }
        if packet.kind() == Kind::EndOfSession {
            return (messages, packet.sequence().0);
        }
    }
}

#[test]
fn every_read_request_is_answered_before_the_end_of_session() {
    const COUNT: u32 = 500;
    let settings = settings();
    let mut line = MulticastReceiver::join(settings.line_a, Ipv4Addr::LOCALHOST).unwrap();
    let mut rig = Rig::with(&settings);
    let mut anna = rig.log_in("ANNA");
    anna.send(&orders(COUNT));
    // One read has more requests than the matcher applies in one duty cycle.
    rig.until_true("the first read", |rig| rig.view.order_server.requests.read() > 0);
    let read = rig.view.order_server.requests.read();
    let applied = rig.view.matcher.commands.read();
    assert!(read > 100 && applied < read && read < COUNT.into(), "{read} read, {applied} applied");

    rig.close();
    assert_eq!(rig.view.order_server.requests.read(), read, "nothing more is read");
    let answered = accepted(&receive_all(&mut anna, || ()));
    assert_eq!(answered, (1..=read as u32).collect::<Vec<_>>());
    let counters = &rig.view.matcher;
    assert_eq!(counters.commands.read(), rig.view.order_server.commands.read());
    let (messages, next) = read_line(&mut line);
    assert_eq!(
        (messages, next),
        (counters.market_events.read(), messages + 1),
        "the end after the last event"
    );
    assert_eq!(rig.view.engine.lock().unwrap().as_ref().unwrap().last_market().0, messages);
}

/// Number of IOC orders. If left unread, their responses, two per order, exceed the kernel's buffers.
const UNREAD_ORDERS: u32 = 60_000;

/// Returns a venue and a client that has many unread responses.
fn with_unread_answers() -> (Rig, Client) {
    const BURST: u32 = 20;
    let mut rig = Rig::with(&tickpath_exchange::VenueSettings { retained_responses: 1 << 17, ..settings() });
    let mut slow = Client::connect_narrow(rig.endpoints.order_entry);
    slow.send(&login("BERT", PASSWORD, "", 1));
    assert!(matches!(rig.receive(&mut slow), Received::LoginAccepted { .. }));
    for first in (1..UNREAD_ORDERS).step_by(BURST as usize) {
        let requests: Vec<u8> = (first..first + BURST)
            .flat_map(|user_ref| request_packet(&ioc(user_ref, Side::Buy, 1, 1_000_000)))
            .collect();
        slow.send(&requests);
        rig.turn();
    }
    rig.until_true("the reads", |rig| rig.view.order_server.requests.read() == u64::from(UNREAD_ORDERS));
    (rig, slow)
}

#[test]
fn a_client_receives_pending_bytes_before_the_end_of_session() {
    let (mut rig, mut slow) = with_unread_answers();
    // Run for half a second of simulated time.
    (0..5_000).for_each(|_| assert!(!rig.finish_turn(), "it waits for the client"));
    let received = receive_all(&mut slow, || _ = rig.finish_turn());
    let [answers @ .., Received::EndOfSession, Received::Closed] = &received[..] else {
        panic!("{:?}", received.last())
    };
    assert_eq!(answers.len(), 2 * UNREAD_ORDERS as usize);
    drop(slow);
    rig.until("the end", |rig| rig.finish_turn().then_some(()));
}

#[test]
fn a_stalled_client_delays_shutdown_only_until_the_time_out() {
    let (mut rig, _slow) = with_unread_answers();
    let mut anna = rig.log_in("ANNA");
    let until = rig.time_of_day() + FINISH_TIMEOUT.0;
    rig.close();
    assert!(rig.time_of_day() >= until);
    assert_eq!(receive_all(&mut anna, || ()), [Received::EndOfSession, Received::Closed]);
}

#[test]
fn requests_after_the_end_of_session_are_not_read() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let _silent = Client::connect(rig.endpoints.order_entry);
    rig.until_true("both", |rig| rig.view.order_server.connections.read() == 2);
    assert!(!rig.finish_turn());
    anna.send(&packet(b'U', b"Q"));
    while !rig.finish_turn() {}
    assert_eq!(receive_all(&mut anna, || ()), [Received::EndOfSession, Received::Closed]);
    assert_eq!(rig.view.order_server.requests.read(), 0);
}

#[test]
fn agents_on_separate_threads_stop_in_order() {
    let settings = settings();
    let mut line = MulticastReceiver::join(settings.line_a, Ipv4Addr::LOCALHOST).unwrap();
    for round in 0..5 {
        let idle = if round % 2 == 0 { IdleStrategy::Yield } else { IdleStrategy::Park };
        let mut venue = RunningVenue::of(build(&settings).unwrap(), |agents| on_own_threads(agents, idle));
        let mut anna = Client::connect(venue.endpoints.order_entry);
        anna.send(&login("ANNA", PASSWORD, "", 1));
        let view = venue.view.clone();
        wait_for("the login", || (view.order_server.logins.read() > 0).then_some(()));
        anna.send(&orders(500));
        wait_for("the requests", || (view.order_server.requests.read() > round * 100).then_some(()));
        venue.begin_to_stop();
        let received = receive_all(&mut anna, std::thread::yield_now);
        assert!(matches!(received[0], Received::LoginAccepted { .. }));
        let answered = accepted(&received[1..]);
        drop(anna);
        venue.stop();
        let read = view.order_server.requests.read();
        assert_eq!(answered, (1..=read as u32).collect::<Vec<_>>());
        let (messages, next) = read_line(&mut line);
        assert_eq!((messages, next), (view.matcher.market_events.read(), messages + 1));
        // Skip the three end-of-session packets, because the next venue uses the same lines.
        let mut bytes = [0; 2_048];
        while line.recv(&mut bytes).unwrap().is_some() {}
    }
}

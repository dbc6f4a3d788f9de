//! Tests of the client port: logins, refusals, disconnects, and the events that each client receives.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::support::{
    Site, connecting, is_quiet, let_in, login, message, next, next_leave, next_request, refuse, said, top,
    until,
};
use tickpath_admission::PreLoginLimits;
use tickpath_gateway_io::{
    ClientPort, ClientPortEvent, ConnectError, DoorError, LeaveReason, SendError, monotonic,
};
use tickpath_gateway_protocol::frame::{
    FRAME_LEN_MAX, Frame, Hello, Password, Refusal, RefusalReason, VERSION,
};
use tickpath_gateway_protocol::{
    CustomMessage, CustomRequest, EventKind, Lapped, Ping, Pong, Request, RequestKind, Text, TopOfBook, flags,
};
use tickpath_shm::channel::ChannelError;
use tickpath_shm::{Reclaimed, SegmentName, ShmError, reclaim};
use tickpath_test_support::PATIENCE;
use tickpath_types::Nanos;

#[test]
fn two_clients_are_served_each_by_itself_and_hear_the_market_together() {
    let site = Site::new();
    let mut door = site.open();
    let (mut anna, anna_id) = let_in(&mut door, site.client("anna"));
    let (mut bert, bert_id) = let_in(&mut door, site.client("bert"));
    assert_eq!((anna_id.number(), bert_id.number(), door.client_count()), (1, 2, 2));
    let welcome = *anna.welcome().unwrap();
    assert_eq!((welcome.session, welcome.source, welcome.exchange.as_str()), (door.session(), 1, "deribit"));

    for (is_anna, number) in [(true, 7), (false, 8), (true, 9)] {
        let (client, id) = if is_anna { (&mut anna, anna_id) } else { (&mut bert, bert_id) };
        let sent = client.request(1, 2, 3, &said(number)).unwrap();
        let (from, request) = next_request(&mut door);
        assert_eq!((from, request.header.request_id, request.header.account), (id, sent, 1));
        assert_eq!(request.body::<CustomRequest>().unwrap().data, [number; 8]);
        assert!(request.header.create_ns <= monotonic().0);
        assert!(door.send(id, &mut message(number)));
    }
    for (client, numbers) in [(&mut anna, &[7, 9][..]), (&mut bert, &[8][..])] {
        for number in numbers {
            let event = next(client);
            assert_eq!(event.body::<CustomMessage>().unwrap().data, [*number; 8]);
            assert_eq!((event.header.session, event.header.source), (welcome.session, 1));
        }
        assert!(is_quiet(client));
    }

    for id in [anna_id, bert_id] {
        assert!(door.send_instrument_ready(id, 5));
    }
    for number in 1..=20 {
        door.broadcast(&mut top(5, number));
    }
    for client in [&mut anna, &mut bert] {
        assert_eq!(next(client).header.kind, EventKind::READY);
        for number in 1..=20 {
            let event = next(client);
            assert_eq!(
                (event.body::<TopOfBook>().unwrap().change_id, event.header.sequence),
                (number, number)
            );
            assert_ne!(event.header.flags & flags::BROADCAST, 0);
        }
        assert!(is_quiet(client));
    }
}

#[test]
fn what_was_broadcast_before_the_download_is_not_given_out_after_it() {
    let site = Site::new();
    let mut door = site.open();
    door.broadcast(&mut top(5, 1));
    let (mut client, id) = let_in(&mut door, site.client("anna"));
    // Market data continues during the download.
    door.broadcast(&mut top(5, 2));
    door.broadcast(&mut top(6, 2));
    assert!(is_quiet(&mut client), "nothing of an instrument before its state");
    door.broadcast(&mut top(5, 3));
    door.send(id, &mut top(5, 3));
    door.send_instrument_ready(id, 5);
    door.broadcast(&mut top(6, 3));
    door.broadcast(&mut top(5, 4));
    door.broadcast(&mut top(0, 9));
    let seen: Vec<_> = (0..4).map(|_| next(&mut client)).collect();
    let seen: Vec<_> =
        seen.iter().map(|it| (it.header.symbol, it.body::<TopOfBook>().map(|top| top.change_id))).collect();
    assert_eq!(seen, [(5, Some(3)), (5, None), (5, Some(4)), (0, Some(9))]);
    assert!(is_quiet(&mut client));
}

#[test]
fn who_is_refused_is_told_why() {
    let site = Site::new();
    let mut door = site.open();
    let error = refuse(&mut door, site.client("anna"), RefusalReason::CREDENTIALS, Nanos::ZERO);
    assert_eq!(error.to_string(), "the gateway refuses: wrong user or password");
    assert!(!error.is_temporary());
    let error = refuse(&mut door, site.client("anna"), RefusalReason::BANNED, Nanos(1_500_000_000));
    assert!(error.to_string().ends_with("try again later (for 2 s)") && error.is_temporary(), "{error}");
    assert_eq!((door.counters().refused, door.counters().admitted, door.client_count()), (2, 0, 0));
    let error = connecting(site.client("anna"));
    let _ = login(&mut door);
    door.stop();
    let error = error.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("stopping"), "{error}");
    let gone = tickpath_gateway_io::Client::connect(site.client("anna")).unwrap_err();
    assert!(
        matches!(gone, ConnectError::Call { .. }) && gone.to_string().contains("is it running?"),
        "{gone}"
    );
}

#[test]
fn no_more_come_in_than_there_is_room_for() {
    let mut site = Site::new();
    site.config.clients_max = 1;
    let mut door = site.open();
    let (anna, _) = let_in(&mut door, site.client("anna"));
    let (second, third) = (connecting(site.client("bert")), connecting(site.client("carl")));
    for _ in 0..2 {
        let login = login(&mut door);
        assert_eq!(door.admit(login.id, 0), None);
    }
    for refused in [second, third] {
        let error = refused.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("raise its clients_max"), "{error}");
    }
    drop(anna);
    assert_eq!(next_leave(&mut door).1, LeaveReason::Closed);
    let (_dora, id) = let_in(&mut door, site.client("dora"));
    assert_eq!((id.number(), id.slot(), door.client_count()), (2, 0, 1));
}

#[test]
fn a_caller_that_says_nothing_is_closed_after_a_time() {
    let mut site = Site::new();
    site.config.pre_login.deadline = Nanos(1_000_000);
    let mut door = site.open();
    let mut silent = UnixStream::connect(site.socket()).unwrap();
    until(&mut door, |door, _| (door.counters().timed_out == 1).then_some(()));
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent.read(&mut [0; 8]).unwrap(), 0);
}

/// The callers belong to the same process as the client, which is the worst case.
#[test]
fn silent_callers_keep_nobody_out() {
    let mut site = Site::new();
    site.config.pre_login = PreLoginLimits { connections: 8, per_address: 4, ..site.config.pre_login };
    let mut door = site.open();
    let mut silent: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(site.socket()).unwrap()).collect();
    let anna = connecting(site.client("anna"));
    let login = login(&mut door);
    silent.extend((0..300).map(|_| UnixStream::connect(site.socket()).unwrap()));
    until(&mut door, |door, _| (door.counters().calls == 304).then_some(()));
    assert_eq!(door.counters().evicted, 300, "the caller with a hello stays");
    assert!(door.admit(login.id, 0).is_some());
    let _anna = anna.join().unwrap().unwrap();
    let (_bert, _) = let_in(&mut door, site.client("bert"));
}

fn hello() -> Vec<u8> {
    let password = Password::new(b"secret").unwrap();
    let hello = Hello::new(Text::new("raw").unwrap(), Text::new("alice").unwrap(), password, false);
    let mut bytes = vec![0; FRAME_LEN_MAX];
    let len = Frame::Hello(hello).encode(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

/// Returns the gateway's answer to these bytes; none if it closes the connection.
fn answer_to(door: &mut ClientPort, site: &Site, bytes: &[u8]) -> Option<Refusal> {
    let mut raw = UnixStream::connect(site.socket()).unwrap();
    raw.write_all(bytes).unwrap();
    let before = door.counters().malformed;
    until(door, |door, _| (door.counters().malformed > before).then_some(()));
    raw.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    // Unread garbage at the gateway resets the connection after the answer.
    let _ = raw.read_to_end(&mut answer);
    match Frame::decode(&answer).unwrap()?.0 {
        Frame::Refusal(refusal) => Some(refusal),
        other => panic!("{other:?}"),
    }
}

#[test]
fn garbage_on_the_socket_is_answered_counted_and_closed() {
    let site = Site::new();
    let mut door = site.open();
    let good = hello();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, reason) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), RefusalReason::MALFORMED),
        (vec![0xff; 4_096], RefusalReason::MALFORMED),
        (with(16, 9), RefusalReason::VERSION),
        (with(8, 9), RefusalReason::MALFORMED),
        (with(32, 0x1b), RefusalReason::MALFORMED),
        ([&good[..], b"more"].concat(), RefusalReason::MALFORMED),
    ] {
        let refusal = answer_to(&mut door, &site, &bytes).unwrap();
        assert_eq!((refusal.reason, refusal.version), (reason, VERSION));
    }
    // A caller that disconnects in the middle of its hello, and one whose hello comes in pieces.
    let mut raw = UnixStream::connect(site.socket()).unwrap();
    raw.write_all(&good[..20]).unwrap();
    drop(raw);
    until(&mut door, |door, _| (door.counters().gave_up == 1).then_some(()));
    let mut raw = UnixStream::connect(site.socket()).unwrap();
    for byte in &good {
        raw.write_all(&[*byte]).unwrap();
        while let Some(event) = door.poll(monotonic()) {
            assert!(matches!(event, ClientPortEvent::Login(_)), "{event:?}");
        }
    }
    until(&mut door, |door, _| (door.counters().calls == 8).then_some(()));
    drop(raw);
    until(&mut door, |door, _| (door.counters().gave_up == 2).then_some(()));
}

#[test]
fn a_client_that_does_not_read_is_cut_off_and_nobody_else_notices() {
    let site = Site::new();
    let mut door = site.open();
    let (mut stuck, stuck_id) = let_in(&mut door, site.client("stuck"));
    let (mut other, other_id) = let_in(&mut door, site.client("other"));
    assert_eq!(door.events_max(), 64);
    stuck.request(0, 0, 0, &said(1)).unwrap();
    let mut sent = 0;
    while door.send(stuck_id, &mut message(sent)) {
        sent += 1;
        assert!(sent <= 64);
        assert!(door.send(other_id, &mut message(sent)));
        assert_eq!(next(&mut other).body::<CustomMessage>().unwrap().data, [sent; 8]);
    }
    assert!(sent >= 60, "pings take some of the room");
    assert!(!door.is_in(stuck_id) && door.room(stuck_id) == 0 && !door.send(stuck_id, &mut message(0)));
    // The queued requests of a disconnected client are dropped.
    assert_eq!(next_leave(&mut door), (stuck_id, LeaveReason::TooSlow));
    assert_eq!((door.counters().too_slow, door.client_count()), (1, 1));
    // It still receives the events sent before, and then the disconnect.
    assert_eq!(next(&mut stuck).body::<CustomMessage>().unwrap().data, [0; 8]);
    for _ in 1..sent {
        next(&mut stuck);
    }
    assert_eq!(next(&mut stuck).header.kind, EventKind::DISCONNECTED);
    assert_eq!(stuck.request(0, 0, 0, &said(1)), Err(SendError::NotConnected));
    assert!(door.send(other_id, &mut message(5)));
    next(&mut other);
}

#[test]
fn requests_wait_up_to_a_bound_and_are_told_before_their_sender_leaves() {
    let site = Site::new();
    let mut door = site.open();
    let (mut client, id) = let_in(&mut door, site.client("anna"));
    let mut sent = 0;
    let full = loop {
        match client.request(0, 0, 0, &said(sent)) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    // The answer to the first ping may take a slot.
    assert!(full == SendError::Full && (63..=64).contains(&sent), "{sent}");
    client.stop();
    assert_eq!(client.poll().map(|event| event.header.kind), Some(EventKind::STOP));
    assert!(client.is_finished());
    for number in 0..sent {
        let (from, request) = next_request(&mut door);
        assert_eq!((from, request.body::<CustomRequest>().unwrap().data), (id, [number; 8]));
    }
    assert_eq!(next_leave(&mut door), (id, LeaveReason::Closed));
    assert!(!door.is_in(id));
}

#[test]
fn who_is_lapped_is_told_and_asks_for_the_market_anew() {
    let site = Site::new();
    let mut door = site.open();
    let (mut client, id) = let_in(&mut door, site.client("anna"));
    door.send_instrument_ready(id, 5);
    assert_eq!(next(&mut client).header.kind, EventKind::READY);
    for number in 1..=100 {
        door.broadcast(&mut top(5, number));
    }
    let event = next(&mut client);
    assert_eq!((event.body::<Lapped>(), event.header.source), (Some(Lapped { lost: 36 }), 0));
    assert!(is_quiet(&mut client), "books are stale until they are sent again");
    let (from, request) = next_request(&mut door);
    assert_eq!((from, request.header.kind), (id, RequestKind::DOWNLOAD_MARKET_DATA));
    door.send(id, &mut top(5, 100));
    door.send_instrument_ready(id, 5);
    door.broadcast(&mut top(5, 101));
    let numbers: Vec<_> =
        (0..3).map(|_| next(&mut client).body::<TopOfBook>().map(|top| top.change_id)).collect();
    assert_eq!(numbers, [Some(100), None, Some(101)]);
}

#[test]
fn pings_are_answered_and_measured_and_wrong_answers_are_counted() {
    let mut site = Site::new();
    site.config.heartbeat = Nanos(1_000_000);
    let mut door = site.open();
    let (mut client, id) = let_in(&mut door, site.client("anna"));
    let mut measured = 0;
    let mut pings = Vec::new();
    until(&mut door, |_, event| {
        pings.extend(client.poll().and_then(|event| event.body::<Ping>()));
        if let Some(ClientPortEvent::Heartbeat(from, heartbeat)) = event {
            assert_eq!(from, id);
            assert!(heartbeat.to_client_ns < PATIENCE.as_nanos() as u64);
            measured += 1;
        }
        // On a loaded machine the first pings may be answered after later ones, and measure nothing.
        let tells = |ping: &Ping| (ping.to_client_ns, ping.to_gateway_ns) != (0, 0);
        (measured >= 3 && pings.iter().any(tells)).then_some(())
    });
    assert!(pings.len() >= 3 && pings[2].number == 3);
    // Answers to a ping that was never sent, and to one from the future.
    let before = door.counters().wrong_pongs;
    client.request(0, 0, 0, &Pong { number: 999, ping_ns: 1, received_ns: 2 }).unwrap();
    client.request(0, 0, 0, &Pong { number: pings[2].number, ping_ns: u64::MAX, received_ns: 0 }).unwrap();
    until(&mut door, |door, _| (door.counters().wrong_pongs >= before + 2).then_some(()));
}

#[test]
fn a_second_gateway_is_kept_out_of_the_name_and_of_the_socket() {
    let site = Site::new();
    let mut door = site.open();
    let mut other = site.config.clone();
    other.socket = site.place.path().join("other.sock");
    let error = ClientPort::open(other.clone()).unwrap_err();
    assert!(matches!(error, DoorError::Segment(ShmError::InUse { pid: Some(_), .. })), "{error}");
    other.segment = SegmentName::new("other").unwrap();
    other.socket = site.socket();
    let error = ClientPort::open(other).unwrap_err();
    assert!(matches!(error, DoorError::Socket(ChannelError::Listen(_))), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
    // The first gateway is not affected: the second one's probe counts as a caller that gave up.
    let (_client, _) = {
        until(&mut door, |door, _| (door.counters().gave_up == 1).then_some(()));
        let_in(&mut door, site.client("anna"))
    };
    assert_eq!(reclaim(&site.config.folder, &site.config.segment).unwrap(), Reclaimed::Kept);
}

#[test]
fn a_gateway_that_starts_again_finds_its_clients_again() {
    let site = Site::new();
    let mut door = site.open();
    let session = door.session();
    let (mut client, id) = let_in(&mut door, site.client("anna"));
    door.send(id, &mut message(1));
    drop(door);
    // Events sent before the end come first.
    assert_eq!(next(&mut client).header.kind, EventKind::CUSTOM_MESSAGE);
    assert_eq!(next(&mut client).header.kind, EventKind::DISCONNECTED);
    assert!(!client.is_connected() && !client.is_finished());

    let mut door = site.open();
    assert_ne!(door.session(), session);
    let thread = std::thread::spawn(move || (next(&mut client), client));
    let login = login(&mut door);
    door.admit(login.id, 0).unwrap();
    let (event, client) = thread.join().unwrap();
    assert_eq!((event.header.kind, event.header.session), (EventKind::CONNECTED, door.session()));
    assert_eq!(client.welcome().unwrap().session, door.session());
    // A port that ends leaves no segment behind.
    assert_eq!(site.config.folder.names().unwrap(), std::slice::from_ref(&site.config.segment));
    drop(door);
    assert!(site.config.folder.names().unwrap().is_empty());
}

#[test]
fn requests_of_unknown_kinds_are_the_owners_to_judge() {
    let site = Site::new();
    let mut door = site.open();
    let (mut client, id) = let_in(&mut door, site.client("anna"));
    let mut request = Request::empty();
    request.header.kind = RequestKind(999);
    request.raw = [u64::MAX; 9];
    client.send(&mut request).unwrap();
    let (from, taken) = next_request(&mut door);
    assert_eq!((from, taken.header.kind, taken.raw), (id, RequestKind(999), [u64::MAX; 9]));
    door.disconnect(id);
    assert_eq!(next_leave(&mut door), (id, LeaveReason::Dismissed));
    assert_eq!(next(&mut client).header.kind, EventKind::DISCONNECTED);
}

#[test]
fn a_client_that_never_stops_asking_keeps_nobody_else_away() {
    let site = Site::new();
    let mut door = site.open();
    let (mut flood, flood_id) = let_in(&mut door, site.client("flood"));
    let connecting = connecting(site.client("anna"));
    let (mut taken, mut admitted) = (0, None);
    let anna = until(&mut door, |door, event| {
        // Its ring is never empty.
        while flood.request(0, 0, 0, &said(0)).is_ok() {}
        match event {
            Some(ClientPortEvent::Request(from, _)) => {
                assert_eq!(from, flood_id);
                taken += 1;
            }
            Some(ClientPortEvent::Login(login)) => admitted = Some(door.admit(login.id, 0).unwrap()),
            _ => {}
        }
        admitted.filter(|_| taken > 0)
    });
    let mut client = connecting.join().unwrap().unwrap();
    client.request(0, 0, 0, &said(7)).unwrap();
    // The other client's requests are served in turn, whatever the load.
    let mut others = 0;
    until(&mut door, |_, event| {
        while flood.request(0, 0, 0, &said(0)).is_ok() {}
        match event {
            Some(ClientPortEvent::Request(from, _)) if from == anna => Some(()),
            Some(ClientPortEvent::Request(..)) => {
                others += 1;
                assert!(others <= 2, "one of each in turn");
                None
            }
            _ => None,
        }
    });
}

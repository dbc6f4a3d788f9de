//! Drop copies equal the users' messages, byte for byte. A slow reader delays no other client.

use std::net::Ipv4Addr;

use tickpath_exchange::{
    AdminCommand, AdminOutcome, DropCopy, DropCopySettings, Password, PreLoginLimits, UserPorts, UserSettings,
};
use tickpath_journal::{Policy, Storage};
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_types::{Nanos, SessionId, Side};

use crate::journal::{Site, receive_messages, trade};
use crate::support::{Client, PASSWORD, Received, Rig, USERS, cancel, enter, login, packet};

/// A drop copy as received by a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReceivedCopy {
    user: String,
    number: u64,
    message: Vec<u8>,
}

fn parse_copies(copies: &[Vec<u8>]) -> Vec<ReceivedCopy> {
    let parse = |bytes: &Vec<u8>| {
        let DropCopy { user, number, message } = DropCopy::parse(bytes).unwrap();
        ReceivedCopy { user: user.to_owned(), number, message: message.to_vec() }
    };
    copies.iter().map(parse).collect()
}

/// Number of copies at the beginning of a session: a start-of-day message for each of the five users.
const START_COPIES: usize = 5;

/// A venue with two readers: `DESK` receives copies for all users, `CLERK` only for ANNA.
fn site(policy: Policy, retained_messages: usize) -> Site {
    let mut site = Site::new(policy);
    let ports = UserPorts { order_entry: false, drop_copy: true, deribit: false };
    let reader = |name| UserSettings { ports, ..UserSettings::new(name, Password::plain(PASSWORD)) };
    let clerk = UserSettings { copies_of: Some(vec!["anna".to_owned()]), ..reader("CLERK") };
    site.settings.users.extend([reader("DESK"), clerk]);
    site.settings.limits.max_sessions = 8;
    site.journal.keep_snapshots = 1_000;
    site.journal.drop_copy = Some(DropCopySettings {
        address: "127.0.0.1:0".parse().unwrap(),
        max_connections: 3,
        retained_messages,
    });
    site
}

fn try_login(rig: &mut Rig, user: &str, number: u64) -> (Client, Received) {
    let mut client = Client::connect(rig.endpoints.drop_copy.unwrap());
    client.send(&login(user, PASSWORD, "", number));
    let received = rig.receive(&mut client);
    (client, received)
}

/// Logs a reader in, with copies from `number` on.
fn log_in(rig: &mut Rig, user: &str, number: u64) -> Client {
    let (client, received) = try_login(rig, user, number);
    assert_eq!(received, Received::LoginAccepted { session: "TODAY".into(), next: number }, "{user}");
    client
}

fn disconnect(rig: &mut Rig, client: Client) {
    let before = rig.view.drop_copy.disconnects.read();
    drop(client);
    rig.until_true("the hang-up", |rig| rig.view.drop_copy.disconnects.read() > before);
}

/// All copies of a reader from `number` on.
fn copies_from(rig: &mut Rig, user: &str, number: u64) -> Vec<Vec<u8>> {
    let mut client = log_in(rig, user, number);
    let copies = receive_messages(rig, &mut client);
    disconnect(rig, client);
    copies
}

#[test]
fn copies_equal_the_users_messages_from_any_number_across_restarts() {
    for policy in Policy::ALL {
        let site = site(policy, 64);
        let mut rig = site.start();
        let (mut desk, mut clerk) = (log_in(&mut rig, "DESK", 1), log_in(&mut rig, "CLERK", 1));
        let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
        let received = trade(&mut rig, [&mut anna, &mut bert], 1);
        let (all, of_anna) = (receive_messages(&mut rig, &mut desk), receive_messages(&mut rig, &mut clerk));
        assert_eq!(rig.view.drop_copy.slow_readers.read(), 0, "{policy}");
        assert!(all.len() > 150, "{policy}: more than is kept");
        assert_eq!(all.len(), START_COPIES + received[0].len() + received[1].len(), "{policy}");
        for (user, received) in USERS.iter().zip(&received) {
            let of_user: Vec<ReceivedCopy> =
                parse_copies(&all).into_iter().filter(|copy| copy.user == *user).collect();
            let numbers: Vec<u64> = of_user.iter().map(|copy| copy.number).collect();
            let of_user = &of_user[1..];
            assert_eq!(numbers, (1..=received.len() as u64 + 1).collect::<Vec<_>>(), "{policy}: {user}");
            assert!(
                of_user.iter().zip(received).all(|(copy, received)| copy.message == *received),
                "{policy}: {user}"
            );
        }
        let anna_in_all: Vec<ReceivedCopy> =
            parse_copies(&all).into_iter().filter(|copy| copy.user == "ANNA").collect();
        assert_eq!(parse_copies(&of_anna), anna_in_all, "{policy}");
        drop((anna, bert, desk, clerk));

        let rewinds = rig.view.drop_copy.rewinds.read();
        for round in 0..3 {
            rig = site.restart(rig);
            for from in [1, 2, 57, all.len() - 70, all.len() - 1, all.len(), all.len() + 1] {
                let again = copies_from(&mut rig, "DESK", from as u64);
                assert_eq!(again, all[from - 1..], "{policy}: start {round}, from {from}");
            }
            assert_eq!(copies_from(&mut rig, "CLERK", 9), of_anna[8..], "{policy}: {round}");
        }
        assert!(rig.view.drop_copy.rewinds.read() > rewinds, "{policy}: the log was read again");

        // Numbering continues after the last copy, and a login from 0 receives only new copies.
        let (mut new, received) = try_login(&mut rig, "DESK", 0);
        let next = all.len() as u64 + 1;
        assert_eq!(received, Received::LoginAccepted { session: "TODAY".into(), next });
        let mut anna = rig.log_in_from("ANNA", of_anna.len() as u64);
        rig.submit(&mut anna, &enter(5_000, Side::Sell, 1, 1_100_000));
        let more = parse_copies(&receive_messages(&mut rig, &mut new));
        assert_eq!((more.len(), more[0].number), (1, of_anna.len() as u64 + 1), "{policy}");
    }
}

#[test]
fn silent_connections_do_not_block_readers() {
    let mut site = site(Policy::Async, 64);
    site.settings.pre_login =
        PreLoginLimits { connections: 8, per_address: 4, deadline: Nanos::from_secs(5) };
    let mut rig = site.start();
    let address = rig.endpoints.drop_copy.unwrap();
    let mut reader = Client::connect(address);
    let _flood: Vec<_> =
        (0..20).map(|_| Client::connect_from(Ipv4Addr::new(127, 0, 0, 2), address)).collect();
    rig.until_true("the flood", |rig| rig.view.drop_copy.connections.read() == 21);
    assert_eq!(rig.view.drop_copy.pre_login_evicted.read(), 16);
    reader.send(&login("DESK", PASSWORD, "", 1));
    assert!(matches!(rig.receive(&mut reader), Received::LoginAccepted { .. }));
    log_in(&mut rig, "CLERK", 1);
}

#[test]
fn unauthorised_readers_and_unavailable_numbers_are_refused() {
    let mut site = site(Policy::Async, 64);
    site.journal.keep_snapshots = 1;
    let mut rig = site.start();
    let refused = |rig: &mut Rig, user: &str, number| {
        let (client, received) = try_login(rig, user, number);
        drop(client);
        match received {
            Received::LoginRejected(reason) => reason,
            other => panic!("{user} from {number}: {other:?}"),
        }
    };
    let (not_authorized, not_available) =
        (LoginRejectReason::NOT_AUTHORIZED, LoginRejectReason::SESSION_NOT_AVAILABLE);
    assert_eq!(refused(&mut rig, "ANNA", 1), not_authorized, "another endpoint");
    assert_eq!(refused(&mut rig, "ABSENT", 1), not_authorized);
    assert_eq!(refused(&mut rig, "DESK", START_COPIES as u64 + 2), not_available, "not there yet");
    let desk = log_in(&mut rig, "DESK", 1);
    assert_eq!(refused(&mut rig, "DESK", 1), not_available, "logged in already");
    disconnect(&mut rig, desk);
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    trade(&mut rig, [&mut anna, &mut bert], 1);
    let oldest = rig.view.journal.snapshot_sequence.read();
    assert!(oldest > 50, "{oldest}");
    assert_eq!(refused(&mut rig, "DESK", 1), not_available, "the log begins later");
    let mut wrong = Client::connect(rig.endpoints.drop_copy.unwrap());
    wrong.send(&login("DESK", "guess", "", 1));
    assert_eq!(rig.receive(&mut wrong), Received::LoginRejected(not_authorized));
    assert_eq!(rig.view.drop_copy.wrong_passwords.read(), 2);
    assert_eq!(rig.view.drop_copy.logins_refused.read(), 6);

    // A reader that sends a message is disconnected.
    let (mut clerk, received) = try_login(&mut rig, "CLERK", 0);
    assert!(matches!(received, Received::LoginAccepted { .. }), "{received:?}");
    clerk.send(&packet(b'U', b"hello"));
    assert_eq!(rig.receive(&mut clerk), Received::Closed);
    assert_eq!(rig.view.drop_copy.malformed.read(), 1);
}

#[test]
fn readers_above_the_limit_are_refused() {
    let mut site = site(Policy::Async, 64);
    let drop_copy = site.journal.drop_copy.as_mut().unwrap();
    drop_copy.max_connections = 1;
    let mut rig = site.start();
    let _desk = log_in(&mut rig, "DESK", 1);
    let (_clerk, received) = try_login(&mut rig, "CLERK", 1);
    assert_eq!(received, Received::LoginRejected(LoginRejectReason::SESSION_NOT_AVAILABLE));
}

/// Enters and cancels orders until a reader that reads nothing is disconnected. Returns Anna's message count.
fn until_overtaken(rig: &mut Rig, anna: &mut Client, first_ref: u32) -> u32 {
    let mut user_ref = first_ref;
    while rig.view.drop_copy.slow_readers.read() == 0 {
        for _ in 0..50 {
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            anna.request(&cancel(user_ref, 0));
            user_ref += 1;
        }
        // Each order is answered, so the slow reader does not delay Anna.
        for _ in 0..100 {
            rig.receive_event(anna);
        }
        assert!(user_ref < 200_000, "the reader is never overtaken");
    }
    2 * (user_ref - first_ref)
}

#[test]
fn a_stalled_reader_is_disconnected_and_resumes_later() {
    let mut site = site(Policy::Async, 256);
    site.journal.segment_len = 1 << 20;
    site.journal.snapshot_every = 5_000;
    let mut rig = site.start();
    let mut slow = Client::connect_narrow(rig.endpoints.drop_copy.unwrap());
    slow.send(&login("DESK", PASSWORD, "", 1));
    rig.until_true("the login", |rig| rig.view.drop_copy.logins.read() == 1);
    let mut clerk = log_in(&mut rig, "CLERK", 1);
    let mut anna = rig.log_in("ANNA");
    let mut clerk_messages = 0;
    while rig.view.drop_copy.slow_readers.read() == 0 && clerk_messages < 2_000 {
        rig.assert_serves(&mut anna, clerk_messages / 2 + 1);
        clerk_messages += 2;
    }
    assert_eq!(
        receive_messages(&mut rig, &mut clerk).len() as u32,
        clerk_messages + 1,
        "others are not delayed"
    );
    disconnect(&mut rig, clerk);
    let count = clerk_messages + until_overtaken(&mut rig, &mut anna, clerk_messages / 2 + 1);
    let mut copies = 0;
    while let Some(received) = slow.try_receive().filter(|received| *received != Received::Closed) {
        copies += u64::from(matches!(received, Received::Message(_)));
    }
    assert!(copies < u64::from(count));
    let rest = parse_copies(&copies_from(&mut rig, "DESK", copies + 1));
    let numbers: Vec<u64> = rest.iter().map(|copy| copy.number).collect();
    // Four copies are the other users' start of day, so Anna's message numbers are 4 below the copy numbers.
    assert_eq!(numbers, (copies - 3..=u64::from(count) + 1).collect::<Vec<_>>(), "nothing is missing");
}

#[test]
fn the_log_is_rewound_for_one_reader_at_a_time_and_a_stalled_one_is_disconnected() {
    let mut site = site(Policy::Async, 8);
    site.journal.segment_len = 1 << 20;
    site.journal.snapshot_every = 0;
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=30_000 {
        anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
        anna.request(&cancel(user_ref, 0));
        rig.receive_events::<2>(&mut anna);
    }
    let mut first = Client::connect_narrow(rig.endpoints.drop_copy.unwrap());
    first.send(&login("DESK", PASSWORD, "", 1));
    rig.until_true("the first's login", |rig| rig.view.drop_copy.logins.read() == 1);
    let mut second = Client::connect(rig.endpoints.drop_copy.unwrap());
    second.send(&login("CLERK", PASSWORD, "", 59_000));
    for _ in 0..500 {
        rig.turn();
    }
    assert_eq!((rig.view.drop_copy.rewinds.read(), second.try_receive()), (1, None), "it waits");
    rig.advance(Nanos::from_secs(10));
    assert_eq!(rig.receive(&mut second), Received::LoginAccepted { session: "TODAY".into(), next: 59_000 });
    assert_eq!(rig.view.drop_copy.slow_readers.read(), 1);
    let numbers: Vec<u64> =
        parse_copies(&receive_messages(&mut rig, &mut second)).iter().map(|copy| copy.number).collect();
    assert_eq!(numbers, (59_000..=60_001).collect::<Vec<_>>());
}

/// The reader needs messages from the log, but a segment that contains some of them was removed.
#[test]
fn a_reader_that_needs_a_removed_log_is_disconnected_alone() {
    let site = site(Policy::Async, 64);
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    (0..4).for_each(|round| _ = trade(&mut rig, [&mut anna, &mut bert], 1 + 1_000 * round));
    let is_segment = |name: &String| name.ends_with(".journal");
    let mut segments: Vec<String> = site.disk.list().unwrap().into_iter().filter(is_segment).collect();
    segments.sort();
    assert!(segments.len() > 2, "{segments:?}");
    let (mut clerk, received) = try_login(&mut rig, "CLERK", 0);
    assert!(matches!(received, Received::LoginAccepted { .. }), "{received:?}");
    let mut desk = Client::connect(rig.endpoints.drop_copy.unwrap());
    desk.send(&login("DESK", PASSWORD, "", 1));
    rig.until_true("its turn", |rig| rig.view.drop_copy.rewinds.read() == 1);
    site.disk.remove(&segments[1]).unwrap();
    while rig.receive(&mut desk) != Received::Closed {}
    assert_eq!(rig.view.drop_copy.rewinds_failed.read(), 1);
    rig.submit(&mut anna, &enter(9_000, Side::Sell, 1, 1_100_000));
    assert_eq!(receive_messages(&mut rig, &mut clerk).len(), 1, "others receive what is new");
    assert_eq!((rig.view.drop_copy.has_failed.read(), rig.view.drop_copy.slow_readers.read()), (0, 0));
    let (_desk, received) = try_login(&mut rig, "DESK", 0);
    assert!(matches!(received, Received::LoginAccepted { .. }), "{received:?}");
}

/// The log has more commands between two of the reader's messages than one run of the endpoint reads.
#[test]
fn a_reader_without_pending_messages_keeps_its_rewind() {
    const OTHERS: u32 = 3_000;
    let mut site = site(Policy::Async, 8);
    site.journal.segment_len = 1 << 20;
    site.journal.snapshot_every = 0;
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    rig.assert_serves(&mut anna, 1);
    for user_ref in 1..=OTHERS {
        bert.request(&enter(user_ref, Side::Buy, 1, 900_000));
        bert.request(&cancel(user_ref, 0));
        rig.receive_events::<2>(&mut bert);
    }
    rig.assert_serves(&mut anna, 2);
    for user_ref in OTHERS + 1..=OTHERS + 10 {
        rig.assert_serves(&mut bert, user_ref);
    }
    let mut clerk = Client::connect(rig.endpoints.drop_copy.unwrap());
    clerk.send(&login("CLERK", PASSWORD, "", 1));
    rig.until_true("its turn", |rig| rig.view.drop_copy.rewinds.read() == 1);
    rig.turn();
    let before = rig.view.drop_copy.copies.read();
    // The reader only waits for the log: it has read all copies sent, so it does not count as stalled.
    rig.advance(Nanos::from_secs(11));
    assert_eq!(rig.receive(&mut clerk), Received::LoginAccepted { session: "TODAY".into(), next: 1 });
    let copies = receive_messages(&mut rig, &mut clerk).len() as u64;
    assert_eq!((before, copies), (3, 5), "in two runs");
    assert_eq!((rig.view.drop_copy.rewinds.read(), rig.view.drop_copy.slow_readers.read()), (1, 0));
}

#[test]
fn a_reader_that_keeps_up_is_never_overtaken() {
    const ORDERS: u32 = 25;
    let site = site(Policy::Group, 8);
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    let mut desk = log_in(&mut rig, "DESK", 1);
    // The disk stalls, and then more messages become durable at once than are retained.
    rig.is_disk_stuck = true;
    for user_ref in 1..=ORDERS {
        anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
        anna.request(&cancel(user_ref, 0));
    }
    (0..200).for_each(|_| _ = rig.turn());
    rig.is_disk_stuck = false;
    let copies = receive_messages(&mut rig, &mut desk);
    assert_eq!(copies.len(), START_COPIES + 2 * ORDERS as usize);
    assert_eq!((rig.view.drop_copy.slow_readers.read(), rig.view.drop_copy.rewinds.read()), (0, 0));
}

/// Killing a user cancels all of the user's orders in one command.
#[test]
fn a_command_with_more_messages_than_retained_overtakes_no_reader() {
    const ORDERS: u32 = 25;
    let site = site(Policy::Group, 8);
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    let mut desk = log_in(&mut rig, "DESK", 1);
    for user_ref in 1..=ORDERS {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 900_000));
    }
    assert_eq!(receive_messages(&mut rig, &mut desk).len(), START_COPIES + ORDERS as usize);
    assert_eq!(rig.command(AdminCommand::Kill(Some(SessionId(1)))), AdminOutcome::Done { commands: 1 });
    let copies = parse_copies(&receive_messages(&mut rig, &mut desk));
    assert_eq!(copies.len(), ORDERS as usize);
    assert!(copies.iter().all(|copy| copy.user == "ANNA" && copy.message[0] == b'C'));
    assert_eq!((rig.view.drop_copy.slow_readers.read(), rig.view.drop_copy.rewinds.read()), (0, 0));
    assert_eq!(rig.view.drop_copy.commands.read(), rig.view.order_server.commands.read());
}

#[test]
fn the_drop_copy_thread_sends_all_copies_before_shutdown() {
    let site = site(Policy::Group, 1_024);
    let mut rig = site.start();
    let threads = rig.journal.take().unwrap().start().unwrap();
    rig.until_true("the start of the day", |rig| rig.view.journal.durable.read() >= 5);
    rig.turn();
    let mut desk = log_in(&mut rig, "DESK", 1);
    let mut anna = rig.log_in("ANNA");
    rig.assert_serves(&mut anna, 1);
    let mut received = 0;
    while received < START_COPIES + 2 {
        received += usize::from(matches!(rig.receive(&mut desk), Received::Message(_)));
    }
    for user_ref in 2..=100 {
        rig.assert_serves(&mut anna, user_ref);
    }
    rig.close();
    drop(threads);
    while let Some(next) = desk.try_receive().filter(|next| *next != Received::Closed) {
        received += usize::from(matches!(next, Received::Message(_)));
    }
    assert_eq!(received, START_COPIES + 200);
}

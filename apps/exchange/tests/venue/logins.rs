//! Logins with hashed passwords, and delays that slow down password guessing.

use std::net::Ipv4Addr;

use tickpath_exchange::{PreLoginLimits, UserPorts, VenueSettings, hash_password, hashed_password};
use tickpath_journal::{FaultyDisk, Policy, Storage as _, StorageFile as _};
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_types::{Nanos, Side};

use crate::support::{
    Client, PASSWORD, Received, Rig, build_on, enter, journal, login, request_packet, settings,
};

const NOT_AUTHORIZED: Received = Received::LoginRejected(LoginRejectReason::NOT_AUTHORIZED);
const NOT_AVAILABLE: Received = Received::LoginRejected(LoginRejectReason::SESSION_NOT_AVAILABLE);
const ACCEPTED: &str = "TODAY";

/// Settings in which ANNA and BERT have hashed passwords, and CLEO a plain one.
fn hashed() -> VenueSettings {
    let mut settings = settings();
    for user in &mut settings.users[..2] {
        user.password = hashed_password(&hash_password(PASSWORD).unwrap()).unwrap();
    }
    settings
}

fn try_login(rig: &mut Rig, user: &str, password: &str) -> (Received, Client) {
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(&login(user, password, "", 1));
    let response = rig.receive(&mut client);
    (response, client)
}

fn is_accepted(response: &Received) -> bool {
    matches!(response, Received::LoginAccepted { session, .. } if session == ACCEPTED)
}

#[test]
fn hashed_passwords_are_checked() {
    let mut rig = Rig::with(&hashed());
    for (user, password) in [("ANNA", "wrong"), ("ABSENT", PASSWORD), ("ANNA", "")] {
        assert_eq!(try_login(&mut rig, user, password).0, NOT_AUTHORIZED, "{user}");
    }
    let (response, mut anna) = try_login(&mut rig, "anna", "SECRET");
    assert!(is_accepted(&response), "{response:?}");
    rig.assert_serves(&mut anna, 1);
    let (response, _cleo) = try_login(&mut rig, "CLEO", PASSWORD);
    assert!(is_accepted(&response), "{response:?}");
    let server = &rig.view.order_server;
    assert_eq!(
        (server.logins.read(), server.wrong_passwords.read(), server.checks_dropped.read()),
        (2, 3, 0)
    );
    assert_eq!(rig.view.users[0].wrong_passwords.read(), 2);
}

#[test]
fn requests_behind_a_login_are_answered_after_it() {
    let mut rig = Rig::with(&hashed());
    let mut client = Client::connect(rig.endpoints.order_entry);
    let mut bytes = login("ANNA", PASSWORD, "", 1);
    bytes.extend(request_packet(&enter(1, Side::Buy, 1, 950_000)));
    client.send(&bytes);
    let response = rig.receive(&mut client);
    assert!(is_accepted(&response), "{response:?}");
    rig.receive_event(&mut client);
    rig.assert_serves(&mut client, 2);
}

#[test]
fn of_two_simultaneous_logins_one_is_accepted() {
    let mut rig = Rig::with(&hashed());
    let mut clients = [(); 2].map(|()| Client::connect(rig.endpoints.order_entry));
    for client in &mut clients {
        client.send(&login("ANNA", PASSWORD, "", 1));
    }
    let response = clients.each_mut().map(|client| rig.receive(client));
    assert_eq!(response.iter().filter(|response| is_accepted(response)).count(), 1, "{response:?}");
    assert!(response.contains(&NOT_AVAILABLE), "{response:?}");
}

#[test]
fn a_client_that_disconnects_during_its_check_does_not_affect_others() {
    let mut settings = hashed();
    settings.pre_login.connections = 1;
    let mut rig = Rig::with(&settings);
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(&login("ANNA", PASSWORD, "", 1));
    drop(client);
    // The next connection reuses the index of this one, but must not receive the response to this login.
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 1);
    let (response, mut bert) = try_login(&mut rig, "BERT", PASSWORD);
    assert!(is_accepted(&response), "{response:?}");
    assert_eq!(rig.view.order_server.checks_dropped.read(), 1);
    rig.assert_serves(&mut bert, 1);
    assert_eq!(rig.view.users[0].logins.read(), 0);
}

#[test]
fn password_checks_delay_no_client_and_do_not_allocate() {
    let mut rig = Rig::with(&hashed());
    let mut cleo = rig.log_in("CLEO");
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(&login("ANNA", PASSWORD, "", 1));
    rig.assert_serves(&mut cleo, 1);
    assert!(tickpath_agent::counts_allocations());
    let mut allocated = 0;
    let response = loop {
        allocated += rig.allocations_of(1);
        if let Some(response) = client.try_receive() {
            break response;
        }
    };
    assert!(is_accepted(&response), "{response:?}");
    assert_eq!(allocated, 0);
}

#[test]
fn a_user_logs_in_only_at_its_endpoints() {
    let mut settings = settings();
    settings.users[0].ports = UserPorts { order_entry: false, drop_copy: true, deribit: false };
    let mut rig = Rig::with(&settings);
    assert_eq!(try_login(&mut rig, "ANNA", PASSWORD).0, NOT_AUTHORIZED);
    assert_eq!(rig.view.order_server.wrong_passwords.read(), 0);
}

#[test]
fn guesses_are_delayed_progressively_and_others_are_not() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        assert_eq!(try_login(&mut rig, "ANNA", "guess").0, NOT_AUTHORIZED);
    }
    for (delay, password) in [(100, "guess"), (200, "guess"), (400, "guess"), (800, PASSWORD)] {
        let mut client = Client::connect(rig.endpoints.order_entry);
        client.send(&login("ANNA", password, "", 1));
        let delayed = rig.view.order_server.logins_delayed.read();
        rig.until_true("the login", |rig| rig.view.order_server.logins_delayed.read() > delayed);
        rig.advance(Nanos::from_millis(delay - 20));
        assert_eq!(client.try_receive(), None, "put off");
        // A login of another user from the same address is not delayed.
        let (response, bert) = try_login(&mut rig, "BERT", PASSWORD);
        assert!(is_accepted(&response), "{response:?}");
        let disconnects_before = rig.view.order_server.disconnects.read();
        drop(bert);
        rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() > disconnects_before);
        rig.advance(Nanos::from_millis(40));
        let response = rig.receive(&mut client);
        assert_eq!(is_accepted(&response), password == PASSWORD, "{response:?}");
    }
    let server = &rig.view.order_server;
    assert_eq!((server.wrong_passwords.read(), server.logins_refused.read()), (6, 6));
}

/// Wrong passwords come from more addresses than the login guard remembers.
#[test]
fn guesses_never_lock_out_a_trusted_address() {
    let mut settings = settings();
    settings.login.records_max = 8;
    let mut rig = Rig::with(&settings);
    drop(rig.log_in("ANNA"));
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 1);
    for last in 1..=20 {
        let mut client = Client::connect_from(Ipv4Addr::new(127, 0, 0, last), rig.endpoints.order_entry);
        client.send(&login("ANNA", "guess", "", 1));
        assert_eq!(rig.receive(&mut client), NOT_AUTHORIZED);
    }
    // Guesses also come from ANNA's own address, but her login has only the shortest delay.
    let mut guesses: Vec<Client> = (0..12).map(|_| Client::connect(rig.endpoints.order_entry)).collect();
    guesses.iter_mut().for_each(|client| client.send(&login("ANNA", "guess", "", 1)));
    let mut anna = Client::connect(rig.endpoints.order_entry);
    anna.send(&login("ANNA", PASSWORD, "", 1));
    rig.until_true("all logins", |rig| rig.view.order_server.logins_delayed.read() == 10);
    rig.advance(settings.login.delay);
    rig.advance(Nanos::from_millis(40));
    let response = rig.receive(&mut anna);
    assert!(is_accepted(&response), "{response:?}");
    assert_eq!(rig.view.users[0].wrong_passwords.read(), 32);
}

#[test]
fn simultaneous_guesses_are_delayed_like_sequential_ones() {
    let mut rig = Rig::with(&hashed());
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(rig.endpoints.order_entry)).collect();
    for client in &mut clients {
        client.send(&login("ANNA", "guess", "", 1));
    }
    let server = rig.view.order_server.clone();
    rig.until_true("three answers", |_| server.wrong_passwords.read() == 3);
    assert_eq!(server.logins_delayed.read(), 5);
    for more in 4..=8 {
        // The delays of the next checks are 100, 200, 400, 800 and 1,600 ms.
        rig.advance(Nanos::from_millis(100 << (more - 4)));
        rig.advance(Nanos::from_millis(40));
        rig.until_true("one more", |_| server.wrong_passwords.read() >= more);
    }
    assert_eq!((server.wrong_passwords.read(), server.logins_refused.read()), (8, 8));
}

/// Logins beyond the capacity of the checker's queue are not refused; they are checked later.
#[test]
fn logins_above_the_queue_capacity_are_checked_later() {
    const MANY: u64 = 90;
    let mut settings = hashed();
    settings.pre_login = PreLoginLimits { connections: 128, per_address: 128, ..settings.pre_login };
    let mut rig = Rig::with(&settings);
    let connect = |index: u64| {
        let from = Ipv4Addr::new(127, 0, 1, (index / 3) as u8 + 1);
        Client::connect_from(from, rig.endpoints.order_entry)
    };
    let mut clients: Vec<Client> = (0..MANY).map(connect).collect();
    for client in &mut clients {
        client.send(&login("ANNA", "guess", "", 1));
    }
    let server = rig.view.order_server.clone();
    rig.until_true("as many checks as wait", |_| server.logins_delayed.read() > 0);
    // Checks take real time; waiting logins are retried in simulated time.
    for _ in 0..2 {
        let answered = server.wrong_passwords.read();
        rig.until_true("answers", |_| server.wrong_passwords.read() >= (answered + 45).min(MANY));
        rig.advance(Nanos::from_millis(20));
    }
    rig.until_true("all answers", |_| server.wrong_passwords.read() == MANY);
    assert!(server.logins_delayed.read() > 0);
    assert_eq!(server.logins_refused.read(), MANY);
}

#[test]
fn a_flood_of_logins_does_not_allocate_or_disturb_others() {
    let mut rig = Rig::new();
    let mut witness = rig.log_in("CLEO");
    assert!(tickpath_agent::counts_allocations());
    for round in 0..50 {
        let mut clients: Vec<_> = (0..4).map(|_| Client::connect(rig.endpoints.order_entry)).collect();
        for client in &mut clients {
            client.send(&login(&format!("U{round}"), "guess", "", 1));
        }
        assert_eq!(rig.allocations_of(10), 0);
        rig.advance(Nanos::from_millis(200));
        drop(clients);
        assert_eq!(rig.allocations_of(10), 0);
        if round % 10 == 0 {
            rig.assert_serves(&mut witness, round + 1);
        }
    }
    assert!(rig.view.order_server.logins_delayed.read() > 150);
}

#[test]
fn a_delayed_login_ends_with_its_connection() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        try_login(&mut rig, "ANNA", "guess");
    }
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.send(&login("ANNA", "guess", "", 1));
    rig.until_true("the guess", |rig| rig.view.order_server.logins_delayed.read() == 1);
    drop(client);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 4);
    rig.advance(Nanos::from_secs(1));
    rig.log_in("ANNA");
}

/// While a login is delayed, 100 silent connections arrive, each from another address.
#[test]
fn a_delayed_trusted_login_survives_a_flood() {
    let mut settings = settings();
    settings.pre_login.connections = 8;
    let mut rig = Rig::with(&settings);
    drop(rig.log_in("ANNA"));
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 1);
    for _ in 0..3 {
        assert_eq!(try_login(&mut rig, "ANNA", "guess").0, NOT_AUTHORIZED);
    }
    let mut anna = Client::connect(rig.endpoints.order_entry);
    anna.send(&login("ANNA", PASSWORD, "", 1));
    let server = rig.view.order_server.clone();
    rig.until_true("the login", |_| server.logins_delayed.read() == 1);
    let (mut silent, connected) = (Vec::new(), server.connections.read());
    for last in 1..=100 {
        silent.push(Client::connect_from(Ipv4Addr::new(127, 0, 1, last), rig.endpoints.order_entry));
    }
    rig.until_true("the flood", |_| server.connections.read() == connected + 100);
    assert_eq!(server.pre_login_evicted.read(), 93);
    rig.advance(settings.login.delay);
    rig.advance(Nanos::from_millis(40));
    let response = rig.receive(&mut anna);
    assert!(is_accepted(&response), "{response:?}");
}

/// After a restart, ANNA's password is guessed from her own address. Her login has the shortest delay, as
/// before the restart, but a longer one if the file of trusted logins is missing or damaged.
#[test]
fn trusted_logins_survive_a_restart() {
    const FILE: &str = "trusted-logins";
    let disk = FaultyDisk::new(1, Default::default());
    let (settings, journal) = (settings(), journal(Policy::Async));
    let start = || {
        let venue = build_on(&settings, &journal, &disk).unwrap();
        let notices: Vec<String> =
            venue.notices.iter().filter(|notice| notice.contains(FILE)).cloned().collect();
        (Rig::of(venue), notices)
    };
    let end = |mut rig: Rig| rig.close();
    let has_short_delay = |rig: &mut Rig| {
        let server = rig.view.order_server.clone();
        let mut guesses: Vec<Client> = (0..5).map(|_| Client::connect(rig.endpoints.order_entry)).collect();
        guesses.iter_mut().for_each(|client| client.send(&login("ANNA", "guess", "", 1)));
        rig.until_true("two delayed guesses", |_| server.logins_delayed.read() == 2);
        let mut anna = Client::connect(rig.endpoints.order_entry);
        anna.send(&login("ANNA", PASSWORD, "", 0));
        rig.until_true("the delayed login", |_| server.logins_delayed.read() == 3);
        rig.advance(settings.login.delay);
        rig.advance(Nanos::from_millis(40));
        let has_answered = server.logins.read() == 1;
        rig.advance(Nanos::from_millis(300));
        rig.advance(Nanos::from_millis(40));
        assert!(matches!(rig.receive(&mut anna), Received::LoginAccepted { .. }));
        has_answered
    };
    let (mut rig, notices) = start();
    assert_eq!(notices, [""; 0], "a new journal has no file");
    rig.log_in("ANNA");
    end(rig);
    let (mut rig, notices) = start();
    assert_eq!(notices, [""; 0]);
    assert!(has_short_delay(&mut rig));
    end(rig);
    for (damage, state) in [(true, "is damaged"), (false, "is missing")] {
        if damage {
            disk.open(FILE).unwrap().write_all_at(b"X", 40).unwrap();
        } else {
            disk.remove(FILE).unwrap();
        }
        let (mut rig, notices) = start();
        assert_eq!(notices.len(), 1);
        assert!(notices[0].contains(state) && notices[0].lines().count() == 1, "{notices:?}");
        assert!(!has_short_delay(&mut rig), "{state}");
        end(rig);
        let (rig, notices) = start();
        assert_eq!(notices, [""; 0], "it is written again");
        end(rig);
    }
}

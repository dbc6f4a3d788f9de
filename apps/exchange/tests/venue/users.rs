//! Users added while the venue runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tickpath_agent::thread_allocations;
use tickpath_exchange::{
    AddUserError, AdminAnswer, AdminCommand, AdminOutcome, DropCopySettings, Password, Phase, RegisterError,
    UserLimits, UserPorts, UserSettings, hash_password, hashed_password,
};
use tickpath_journal::Policy;
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_types::{Nanos, OrderEventKind, Qty, RejectReason, SelfTradePrevention, SessionId, Side};

use crate::admin::AdminFixture;
use crate::journal::{Site, receive_messages, trade};
use crate::support::{Client, PASSWORD, Received, Rig, USERS, build, enter, login, settings};

const MOMENT: Nanos = Nanos::from_millis(20);
const DORA: SessionId = SessionId(4);
/// Number of commands that add [`dora`]: user, limits, record of the configuration, self-trade prevention.
const COMMANDS: u32 = 4;

fn limits() -> UserLimits {
    UserLimits { order_qty: Some(Qty(50)), ..UserLimits::default() }
}

/// Settings of a user with a hashed password, limits and self-trade prevention.
fn dora() -> UserSettings {
    UserSettings {
        limits: limits(),
        self_trade_prevention: SelfTradePrevention::CancelNewest,
        ..UserSettings::new("DORA", hashed_password(&hash_password(PASSWORD).unwrap()).unwrap())
    }
}

/// A venue's settings with capacity for two more users, and its disk.
fn site(policy: Policy) -> Site {
    let mut site = Site::new(policy);
    site.settings.limits.max_sessions = 6;
    site.journal.keep_snapshots = 1_000;
    site
}

fn add(rig: &mut Rig, user: &UserSettings) -> AdminOutcome {
    let mut admin = rig.admin.take().unwrap();
    let id = admin.submit_user(user).unwrap();
    rig.advance(MOMENT);
    let AdminAnswer { id: of, outcome } = rig.until("an answer", |_| admin.poll());
    assert_eq!(of, id);
    rig.admin = Some(admin);
    outcome
}

fn try_login(rig: &mut Rig, user: &str, password: &str) -> (Client, Received) {
    let mut client = Client::connect(rig.endpoints.order_entry);
    client.keeps_system_events = true;
    client.send(&login(user, password, "", 1));
    let received = rig.receive(&mut client);
    (client, received)
}

/// Logs a client in; it receives all messages of the user from the first one on.
fn log_in(rig: &mut Rig, user: &str) -> Client {
    let (client, received) = try_login(rig, user, PASSWORD);
    assert_eq!(received, Received::LoginAccepted { session: "TODAY".into(), next: 1 }, "{user}");
    client
}

fn disconnect(rig: &mut Rig, client: Client) {
    let before = rig.view.order_server.disconnects.read();
    drop(client);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() > before);
}

fn stream(rig: &mut Rig, user: &str) -> Vec<Vec<u8>> {
    let mut client = log_in(rig, user);
    let messages = receive_messages(rig, &mut client);
    disconnect(rig, client);
    messages
}

fn refusal(answer: OrderEventKind) -> Option<RejectReason> {
    match answer {
        OrderEventKind::Rejected { reason, .. } => Some(reason),
        _ => None,
    }
}

#[test]
fn an_added_user_logs_in_and_survives_restarts() {
    for policy in [Policy::Async, Policy::Group, Policy::Sync] {
        let mut site = site(policy);
        let mut rig = site.start();
        let refused = Received::LoginRejected(LoginRejectReason::NOT_AUTHORIZED);
        assert_eq!(try_login(&mut rig, "DORA", PASSWORD).1, refused, "{policy}: not there yet");
        assert_eq!(add(&mut rig, &dora()), AdminOutcome::Done { commands: COMMANDS });
        assert_eq!((rig.view.users.len(), rig.view.users[3].name()), (4, "DORA"));
        assert_eq!(rig.view.users[3].limits.read(), limits());
        assert_eq!(try_login(&mut rig, "DORA", "guess").1, refused);
        assert_eq!(rig.view.users[3].wrong_passwords.read(), 1);

        let mut client = log_in(&mut rig, "DORA");
        let too_much = rig.submit(&mut client, &enter(1, Side::Buy, 51, 900_000));
        assert_eq!(refusal(too_much), Some(RejectReason::QtyAboveLimit), "the limit of its settings");
        rig.submit(&mut client, &enter(2, Side::Buy, 50, 900_000));
        disconnect(&mut rig, client);
        let of_dora = stream(&mut rig, "DORA");
        assert_eq!(of_dora.len(), 2, "{policy}: nothing of before it came");

        // The configuration must list the added user now. Otherwise the venue refuses to start.
        assert!(site.journal.session.is_none());
        site.disk.kill();
        drop(rig);
        let reason = site.refusal();
        assert!(reason.contains("ANNA, BERT, CLEO, DORA: keep them in this order"), "{reason}");
        site.settings.users.push(dora());
        let mut rig = site.start();
        let mut expected = of_dora;
        for round in 0..3 {
            let recovery = rig.journal.as_ref().unwrap().recovery.clone();
            assert_eq!(recovery.snapshot.is_some(), round > 0, "{policy}: {recovery}");
            assert_eq!(rig.view.users[3].limits.read(), limits());
            assert_eq!(stream(&mut rig, "DORA"), expected, "{policy}: {round}");
            let commands = rig.view.order_server.commands.read();
            rig.advance(MOMENT);
            assert_eq!(rig.view.order_server.commands.read(), commands, "nothing is logged again");

            // Run an end of the day, and enough commands for a snapshot.
            for phase in [Phase::EndOfDay, Phase::Start, Phase::Open] {
                rig.command(AdminCommand::Phase { phase, instrument: None });
            }
            let mut client = log_in(&mut rig, "DORA");
            let mut anna = rig.log_in("ANNA");
            receive_messages(&mut rig, &mut anna);
            receive_messages(&mut rig, &mut client);
            trade(&mut rig, [&mut client, &mut anna], 1);
            disconnect(&mut rig, client);
            disconnect(&mut rig, anna);
            let before = expected.len();
            expected = stream(&mut rig, "DORA");
            assert!(expected.len() > before + 60, "{policy}: {}", expected.len());
            rig = site.restart(rig);
        }
        assert_eq!(stream(&mut rig, "DORA"), expected);
        rig.command(AdminCommand::Kill(Some(DORA)));
        let mut client = log_in(&mut rig, "DORA");
        receive_messages(&mut rig, &mut client);
        let killed = rig.submit(&mut client, &enter(1_000, Side::Buy, 1, 900_000));
        assert_eq!(refusal(killed), Some(RejectReason::Killed));
    }
}

#[test]
fn an_interrupted_addition_is_finished_at_the_start() {
    // In each round, power is lost after `changes` disk changes by the command.
    for changes in 0..12 {
        let mut site = site(Policy::Sync);
        let mut rig = site.start();
        rig.until_true("the opening", |rig| rig.view.publisher.messages.read() > 0);
        site.disk.crash_after(changes);
        let user = UserSettings { password: Password::plain(PASSWORD), ..dora() };
        rig.admin.as_mut().unwrap().submit_user(&user).unwrap();
        for _ in 0..100 {
            if rig.try_advance(MOMENT).is_err() {
                break;
            }
        }
        site.disk.crash();
        drop(rig);
        site.settings.users.push(user);
        for _ in 0..2 {
            rig = site.start();
            for _ in 0..20 {
                rig.advance(MOMENT);
            }
            let mut client = log_in(&mut rig, "DORA");
            receive_messages(&mut rig, &mut client);
            let number = 1 + rig.view.order_server.commands.read() as u32;
            let too_much = rig.submit(&mut client, &enter(number, Side::Buy, 51, 900_000));
            assert_eq!(refusal(too_much), Some(RejectReason::QtyAboveLimit), "{changes}");
            let open = rig.submit(&mut client, &enter(number + 1, Side::Buy, 50, 900_000));
            assert_eq!(refusal(open), None, "{changes}");
            site.disk.kill();
            drop(rig);
        }
    }
}

#[test]
fn an_invalid_user_is_refused_without_changes() {
    let mut settings = settings();
    settings.limits.max_sessions = 5;
    let mut rig = Rig::with(&settings);
    let mut refused = |name: &str| {
        let user = UserSettings::new(name, Password::plain(PASSWORD));
        rig.admin.as_mut().unwrap().submit_user(&user).unwrap_err()
    };
    assert!(matches!(refused("anna"), AddUserError::Register(RegisterError::Taken(_))));
    for name in ["", "SEVENCH", " DORA", "\u{d6}"] {
        assert!(matches!(refused(name), AddUserError::Register(RegisterError::Name(_))), "{name}");
    }
    assert_eq!(rig.view.users.len(), 3);
    // Add the only user for whom there is capacity, and then one more.
    assert_eq!(add(&mut rig, &dora()), AdminOutcome::Done { commands: COMMANDS });
    let emil = UserSettings::new("EMIL", Password::plain(PASSWORD));
    let full = rig.admin.as_mut().unwrap().submit_user(&emil).unwrap_err();
    assert!(matches!(full, AddUserError::Register(RegisterError::Full(4))), "{full}");
    let mut client = log_in(&mut rig, "DORA");
    rig.assert_serves(&mut client, 1);
}

#[test]
fn adding_users_is_queued_and_does_not_allocate() {
    let mut settings = settings();
    settings.limits.max_sessions = 200;
    let mut rig = Rig::with(&settings);
    let mut admin = rig.admin.take().unwrap();
    rig.advance(MOMENT);
    let users = (0..65).map(|number| UserSettings::new(format!("N{number}"), Password::plain(PASSWORD)));
    let outcomes: Vec<bool> = users.map(|user| admin.submit_user(&user).is_ok()).collect();
    assert_eq!(outcomes.iter().filter(|is_taken| **is_taken).count(), 64);
    assert!(!outcomes[64], "as many wait as may");
    let before = thread_allocations();
    for _ in 0..400 {
        rig.advance(MOMENT);
    }
    assert_eq!(thread_allocations() - before, 0);
    assert_eq!(std::iter::from_fn(|| admin.poll()).count(), 64);
    assert_eq!(rig.view.users.len(), 3 + 64);
    let mut last = log_in(&mut rig, "N63");
    rig.assert_serves(&mut last, 1);
}

#[test]
fn kill_all_and_drain_apply_to_added_users() {
    let mut settings = settings();
    settings.limits.max_sessions = 6;
    let mut rig = Rig::with(&settings);
    rig.command(AdminCommand::Kill(None));
    add(&mut rig, &dora());
    let mut client = log_in(&mut rig, "DORA");
    let killed = rig.submit(&mut client, &enter(1, Side::Buy, 1, 900_000));
    assert_eq!(refusal(killed), Some(RejectReason::Killed));
    rig.command(AdminCommand::Unkill(None));
    rig.assert_serves(&mut client, 2);
    rig.command(AdminCommand::Drain);
    let emil = UserSettings::new("EMIL", Password::plain(PASSWORD));
    add(&mut rig, &emil);
    let mut client = log_in(&mut rig, "EMIL");
    let halted = rig.submit(&mut client, &enter(1, Side::Buy, 1, 900_000));
    assert_eq!(refusal(halted), Some(RejectReason::Halted));
}

/// The drop copies of a reader from the number `from` on.
fn copies(rig: &mut Rig, reader: &str, from: u64) -> Vec<Vec<u8>> {
    let mut client = Client::connect(rig.endpoints.drop_copy.unwrap());
    client.send(&login(reader, PASSWORD, "", from));
    let received = rig.receive(&mut client);
    assert_eq!(received, Received::LoginAccepted { session: "TODAY".into(), next: from }, "{reader}");
    let copies = receive_messages(rig, &mut client);
    let before = rig.view.drop_copy.disconnects.read();
    drop(client);
    rig.until_true("the hang-up", |rig| rig.view.drop_copy.disconnects.read() > before);
    copies
}

#[test]
fn drop_copies_include_added_users_and_added_readers() {
    let mut site = site(Policy::Group);
    site.settings.limits.max_sessions = 8;
    let ports = UserPorts { order_entry: false, drop_copy: true, deribit: false };
    let reader = |name: &str| UserSettings { ports, ..UserSettings::new(name, dora().password) };
    site.settings.users.push(reader("DESK"));
    site.journal.drop_copy = Some(DropCopySettings {
        address: "127.0.0.1:0".parse().unwrap(),
        max_connections: 3,
        retained_messages: 64,
    });
    let mut rig = site.start();
    let mut live = Client::connect(rig.endpoints.drop_copy.unwrap());
    live.send(&login("DESK", PASSWORD, "", 1));
    assert!(matches!(rig.receive(&mut live), Received::LoginAccepted { next: 1, .. }));
    let mut all_copies = receive_messages(&mut rig, &mut live);
    assert_eq!(all_copies.len(), 4, "the day starts");
    let only_dora = UserSettings { copies_of: Some(vec!["dora".to_owned()]), ..reader("CLERK") };
    for user in [dora(), reader("AUDIT"), only_dora] {
        assert!(matches!(add(&mut rig, &user), AdminOutcome::Done { .. }));
        site.settings.users.push(user);
    }
    let mut client = log_in(&mut rig, "DORA");
    let mut bert = rig.log_in("BERT");
    let [of_dora, of_bert] = trade(&mut rig, [&mut client, &mut bert], 1);
    drop((client, bert));
    all_copies.extend(receive_messages(&mut rig, &mut live));
    assert_eq!(all_copies.len(), 4 + of_dora.len() + of_bert.len());
    drop(live);
    for round in 0..3 {
        assert_eq!(copies(&mut rig, "AUDIT", 1), all_copies, "{round}: from the first on");
        assert_eq!(copies(&mut rig, "DESK", 3), all_copies[2..], "{round}");
        let last = all_copies.len() as u64;
        assert_eq!(copies(&mut rig, "DESK", last), all_copies[all_copies.len() - 1..], "{round}");
        assert_eq!(copies(&mut rig, "CLERK", 1).len(), of_dora.len(), "{round}");
        rig = site.restart(rig);
    }
}

/// Writes a venue's configuration with the users of [`settings`] and then the text `more`.
fn write_config(folder: &Path, more: &str) -> PathBuf {
    let instruments = "[[instrument]]\nsymbol = 'BRAVO'\nreference_price = '100.00'\n\
                       [[instrument]]\nsymbol = 'ALPHA'\nreference_price = '100.00'\n\
                       [[instrument]]\nsymbol = 'GAMMA'\nreference_price = '100.00'\n";
    std::fs::write(folder.join("instruments.toml"), instruments).unwrap();
    let user = |name: &&str| format!("[[order_entry.user]]\nname = '{name}'\npassword = '{PASSWORD}'\n");
    let users: String = USERS.iter().map(user).collect();
    let config = folder.join("venue.toml");
    std::fs::write(&config, format!("instruments = 'instruments.toml'\n{users}{more}")).unwrap();
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o600)).unwrap();
    config
}

#[test]
fn reload_adds_new_users_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = write_config(folder.path(), "");
    let mut settings = settings();
    settings.limits.max_sessions = 6;
    let mut fixture =
        AdminFixture::of(Rig::of(build(&settings).unwrap()), |socket| socket.with_config(&config));
    let mut console = fixture.connect();
    let none = serde_json::json!({ "ok": true, "commands": 0, "added": [] });
    assert_eq!(fixture.execute(&mut console, "reload-users"), none);

    let user = |name: &str, rest: &str| format!("[[order_entry.user]]\nname = '{name}'\n{rest}\n");
    let plain = format!("password = '{PASSWORD}'");
    for (more, expected) in [
        (user("anna", &plain), "'anna' is named twice"),
        (user("SEVENCH", &plain), "1 to 6 ASCII"),
        (user("DORA ", &plain), "without spaces around"),
        (user("DORA", "password_hash = '$argon2id$'"), "tickpath admin hash-password"),
        (user("DORA", &format!("{plain}\ninstruments = ['GAMMA']")), "no instrument 'GAMMA' yet"),
        (["DORA", "EMIL", "FRED"].map(|name| user(name, &plain)).concat(), "limited to 5 users"),
        ("nonsense = 1".to_owned(), "unknown field"),
    ] {
        write_config(folder.path(), &more);
        let answer = fixture.execute(&mut console, "reload-users");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(expected)), "{more}: {answer}");
    }
    write_config(folder.path(), "");
    let text = std::fs::read_to_string(&config).unwrap().replace("'BERT'", "'DORA'");
    std::fs::write(&config, text).unwrap();
    let answer = fixture.execute(&mut console, "reload-users");
    assert!(
        answer["error"].as_str().unwrap().contains("ANNA, BERT, CLEO: keep them in this order"),
        "{answer}"
    );
    assert_eq!((fixture.rig.view.users.len(), fixture.executed.len()), (3, 0), "nothing was changed");

    let hash = hash_password("emil's").unwrap();
    let dora = user(
        "DORA",
        &format!(
            "{plain}\ninstruments = ['ALPHA']\nlimits = {{ order_qty = 9, burst = 3, messages_per_second = 2 }}"
        ),
    );
    let emil = user("EMIL", &format!("password_hash = '{hash}'"));
    write_config(folder.path(), &(dora + &emil));
    let added = serde_json::json!({ "ok": true, "commands": 5, "added": ["DORA", "EMIL"] });
    assert_eq!(fixture.execute(&mut console, "reload-users"), added);
    assert_eq!(fixture.executed.last().unwrap().1, "reload-users: DORA, EMIL");
    assert_eq!(fixture.execute(&mut console, "reload-users"), none, "once");
    let users = fixture.execute(&mut console, "users");
    assert_eq!(
        (&users["users"][3]["name"], &users["users"][3]["limits"]["order_qty"]),
        (&"DORA".into(), &9.into())
    );

    let mut client = log_in(&mut fixture.rig, "DORA");
    let allowed = fixture.rig.submit(&mut client, &enter(1, Side::Buy, 1, 950_000));
    assert_eq!(refusal(allowed), None, "the venue's ALPHA, whatever its place in the file");
    assert_eq!(fixture.execute(&mut console, "disconnect dora")["ok"], true);
    let (_emil, received) = try_login(&mut fixture.rig, "EMIL", "EMIL'S");
    assert!(matches!(received, Received::LoginAccepted { next: 1, .. }), "{received:?}");
}

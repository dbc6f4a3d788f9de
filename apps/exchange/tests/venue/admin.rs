//! Administrator commands to a running venue, through `AdminClient` and the admin socket.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use tickpath_admin::ListenError;
use tickpath_exchange::{AdminCommand, AdminOutcome, AdminSocket, DrainWatch};
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_types::{
    CancelReason, Nanos, OrderEventKind, OrderRequest, RejectReason, SessionId, Side, TradingState,
};

use crate::support::{ALPHA, Client, PASSWORD, Received, Rig, cancel, enter, instruments, login, replace};

const ANNA: SessionId = SessionId(1);
const DONE: AdminOutcome = AdminOutcome::Done { commands: 1 };
const MOMENT: Nanos = Nanos::from_millis(20);

fn reject_reason(rig: &mut Rig, client: &mut Client, request: &OrderRequest) -> RejectReason {
    match rig.submit(client, request) {
        OrderEventKind::Rejected { reason, .. } => reason,
        other => panic!("{other:?} in place of a refusal"),
    }
}

fn assert_killed(rig: &mut Rig, client: &mut Client, open: u32) {
    let answer = rig.receive_event(client);
    assert!(
        matches!(answer, OrderEventKind::Canceled { user_ref, reason: CancelReason::Supervisory, .. } if user_ref.0 == open),
        "{answer:?}"
    );
    assert_eq!(reject_reason(rig, client, &enter(open + 1, Side::Buy, 1, 950_000)), RejectReason::Killed);
}

#[test]
fn kill_cancels_and_blocks_a_user_until_unkill() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    rig.submit(&mut anna, &enter(1, Side::Buy, 1, 950_000));
    rig.submit(&mut bert, &enter(1, Side::Buy, 1, 950_000));
    assert_eq!(rig.command(AdminCommand::Kill(Some(ANNA))), DONE);
    assert_killed(&mut rig, &mut anna, 1);
    assert_eq!(rig.view.users[0].is_killed.read(), 1);
    rig.assert_serves(&mut bert, 2);
    assert_eq!(rig.command(AdminCommand::Unkill(Some(ANNA))), DONE);
    rig.assert_serves(&mut anna, 3);
    assert_eq!(rig.view.users[0].is_killed.read(), 0);
}

#[test]
fn kill_all_and_unkill_all_leave_single_kills() {
    let mut rig = Rig::new();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    rig.submit(&mut anna, &enter(1, Side::Buy, 1, 950_000));
    rig.submit(&mut bert, &enter(1, Side::Buy, 1, 950_000));
    assert_eq!(rig.command(AdminCommand::Kill(None)), DONE);
    assert_killed(&mut rig, &mut anna, 1);
    assert_killed(&mut rig, &mut bert, 1);
    assert_eq!(rig.command(AdminCommand::Kill(Some(ANNA))), DONE);
    assert_eq!(rig.command(AdminCommand::Unkill(None)), DONE);
    assert_eq!(reject_reason(&mut rig, &mut anna, &enter(3, Side::Buy, 1, 950_000)), RejectReason::Killed);
    rig.assert_serves(&mut bert, 3);
}

#[test]
fn halt_and_resume() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let halt = |state| AdminCommand::SetTradingState { instrument: ALPHA, state };
    let market_events = rig.view.matcher.market_events.read();
    assert_eq!(rig.command(halt(TradingState::Halted)), DONE);
    assert_eq!(reject_reason(&mut rig, &mut anna, &enter(1, Side::Buy, 1, 950_000)), RejectReason::Halted);
    assert_eq!(rig.command(halt(TradingState::Trading)), DONE);
    rig.assert_serves(&mut anna, 2);
    assert!(rig.view.matcher.market_events.read() >= market_events + 2, "published");
}

#[test]
fn a_disconnected_user_can_log_in() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let command = AdminCommand::Disconnect(ANNA);
    assert_eq!(rig.command(command), AdminOutcome::Done { commands: 0 });
    assert_eq!(rig.receive(&mut anna), Received::Closed);
    assert_eq!(rig.command(command), AdminOutcome::NotConnected);
    assert_eq!(rig.command(AdminCommand::Disconnect(SessionId(4))), AdminOutcome::UnknownUser);
    assert_eq!(rig.command(AdminCommand::Kill(Some(SessionId(0)))), AdminOutcome::UnknownUser);
    rig.log_in("ANNA");
    assert_eq!(rig.view.order_server.admin_commands.read(), 1);
}

#[test]
fn unlock_resets_wrong_passwords() {
    let mut rig = Rig::new();
    let try_login = |rig: &mut Rig, password: &str| {
        let mut client = Client::connect(rig.endpoints.order_entry);
        client.send(&login("ANNA", password, "", 1));
        (0..20).for_each(|_| _ = rig.turn());
        (client.try_receive(), client)
    };
    let refused = Some(Received::LoginRejected(LoginRejectReason::NOT_AUTHORIZED));
    for _ in 0..3 {
        assert_eq!(try_login(&mut rig, "guess").0, refused);
    }
    assert_eq!(try_login(&mut rig, PASSWORD).0, None, "put off");
    rig.command(AdminCommand::Unlock(ANNA));
    let (response, _anna) = try_login(&mut rig, PASSWORD);
    assert!(matches!(response, Some(Received::LoginAccepted { .. })), "{response:?}");
}

#[test]
fn a_draining_venue_accepts_only_cancels() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    rig.submit(&mut anna, &enter(1, Side::Buy, 5, 950_000));
    let mut watch = DrainWatch::new(Nanos::from_secs(10));
    assert!(!watch.is_over(&rig.view, rig.now()));
    rig.command(AdminCommand::Drain);
    for request in [enter(2, Side::Buy, 1, 950_000), replace(1, 3, 2, 950_000)] {
        assert_eq!(reject_reason(&mut rig, &mut anna, &request), RejectReason::Halted);
    }
    let answer = rig.submit(&mut anna, &cancel(1, 0));
    assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
    assert!(!watch.is_over(&rig.view, rig.now()), "a client is there");
    drop(anna);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() == 1);
    assert!(watch.is_over(&rig.view, rig.now()));
    rig.close();
}

#[test]
fn commands_do_not_allocate() {
    let mut rig = Rig::new();
    let _anna = rig.log_in("ANNA");
    let mut admin = rig.admin.take().unwrap();
    assert!(tickpath_agent::counts_allocations());
    for command in [
        AdminCommand::Kill(None),
        AdminCommand::Unkill(None),
        AdminCommand::Kill(Some(ANNA)),
        AdminCommand::Unlock(ANNA),
        AdminCommand::Disconnect(ANNA),
        AdminCommand::SetTradingState { instrument: ALPHA, state: TradingState::Halted },
        AdminCommand::AllowInstrument { session: ANNA, instrument: ALPHA, is_allowed: false },
        AdminCommand::AllowInstrument { session: ANNA, instrument: ALPHA, is_allowed: true },
        AdminCommand::Drain,
    ] {
        admin.submit(command).unwrap();
        rig.advance(MOMENT);
        assert_eq!(rig.allocations_of(3), 0, "{command:?}");
        assert!(admin.poll().is_some(), "{command:?}");
    }
    // A full ring refuses the next command; the commands in the ring are still executed.
    let count = std::iter::from_fn(|| admin.submit(AdminCommand::Unlock(ANNA))).count();
    assert_eq!(count, 64);
    rig.advance(MOMENT);
    assert_eq!(std::iter::from_fn(|| admin.poll()).count(), count);
}

/// A client's connection to the admin socket.
pub struct Console {
    stream: UnixStream,
    received: String,
}

/// A venue and its admin socket.
pub struct AdminFixture {
    pub rig: Rig,
    socket: AdminSocket,
    /// Executed commands, each with the id of the user who sent it.
    pub executed: Vec<(u32, String)>,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl AdminFixture {
    fn new() -> AdminFixture {
        AdminFixture::of(Rig::new(), |socket| socket)
    }

    pub fn of(mut rig: Rig, prepare: impl FnOnce(AdminSocket) -> AdminSocket) -> AdminFixture {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("venue.sock");
        let client = rig.admin.take().unwrap();
        let socket = AdminSocket::open(&path, client, instruments(), rig.view.clone()).unwrap();
        AdminFixture { rig, socket: prepare(socket), executed: vec![], path, _folder: folder }
    }

    pub fn connect(&self) -> Console {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_nonblocking(true).unwrap();
        Console { stream, received: String::new() }
    }

    fn poll(&mut self) {
        self.rig.advance(MOMENT);
        let executed = &mut self.executed;
        self.socket.poll(self.rig.now(), |uid, line| executed.push((uid, line.to_owned())));
    }

    pub fn execute(&mut self, console: &mut Console, line: &str) -> serde_json::Value {
        console.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        serde_json::from_str(&self.receive(console).unwrap()).unwrap()
    }

    /// Returns the next line; `None` once the connection is closed.
    fn receive(&mut self, console: &mut Console) -> Option<String> {
        for _ in 0..1_000 {
            self.poll();
            if let Some(end) = console.received.find('\n') {
                return Some(console.received.drain(..=end).collect());
            }
            let mut bytes = [0; 4_096];
            match console.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => console.received.push_str(std::str::from_utf8(&bytes[..count]).unwrap()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        panic!("no answer")
    }
}

#[test]
fn the_socket_answers_lines_in_order() {
    let mut fixture = AdminFixture::new();
    assert_eq!(std::fs::metadata(&fixture.path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut anna = fixture.rig.log_in("ANNA");
    let mut console = fixture.connect();
    let status = fixture.execute(&mut console, "status");
    assert_eq!((&status["ok"], &status["users_connected"]), (&true.into(), &1.into()));
    assert_eq!(status["is_killed"], false);
    assert_eq!(fixture.execute(&mut console, "kill anna"), serde_json::json!({ "ok": true, "commands": 1 }));
    let users = fixture.execute(&mut console, "users");
    assert_eq!(users["users"][0]["is_killed"], true);
    assert_eq!(users["users"][1]["is_connected"], false);
    assert_eq!(users["users"][1]["limits"]["open_orders"], serde_json::Value::Null);
    assert_eq!(fixture.execute(&mut console, "limits bert messages=50/5 notional=250000.00")["commands"], 2);
    let limits = serde_json::json!({
        "messages_per_second": 50, "burst": 5, "open_orders": null, "order_qty": null, "order_notional": "250000.0000"
    });
    assert_eq!(fixture.execute(&mut console, "users")["users"][1]["limits"], limits);
    fixture.execute(&mut console, "unkill ANNA");
    // Several commands in one write.
    console.stream.write_all(b"halt alpha\r\nstatus\nresume ALPHA\n").unwrap();
    let lines: Vec<_> = (0..3).map(|_| fixture.receive(&mut console).unwrap()).collect();
    assert!(lines[0].contains("commands") && lines[1].contains("logins") && lines[2].contains("commands"));
    fixture.rig.assert_serves(&mut anna, 1);
    let commands: Vec<&str> = fixture.executed.iter().map(|(_, line)| line.as_str()).collect();
    let limits = "limits bert messages=50/5 notional=250000.00";
    assert_eq!(commands, ["kill anna", limits, "unkill ANNA", "halt alpha", "resume ALPHA"]);
}

#[test]
fn invalid_commands_get_a_helpful_error() {
    let mut fixture = AdminFixture::new();
    let mut console = fixture.connect();
    for (line, expected) in [
        ("", "use one of status"),
        ("launch", "no command 'launch'"),
        ("kill", "needs the name of a user"),
        ("kill ABSENT", "no user 'ABSENT'"),
        ("kill ANNA BERT", "one word at most"),
        ("halt", "needs the symbol"),
        ("halt CHARLIE", "no instrument 'CHARLIE'"),
        ("halt MUCHTOOLONGFORASYMBOL", "no instrument"),
        ("drain now", "takes no argument"),
        ("\u{fffd}\0", "no command"),
        ("disconnect ANNA", "not connected"),
        ("allow", "needs the name of a user"),
        ("allow ABSENT ALPHA", "no user 'ABSENT'"),
        ("allow ANNA", "needs the symbol"),
        ("disallow ANNA CHARLIE", "no instrument 'CHARLIE'"),
        ("allow ANNA ALPHA BRAVO", "does not take 'BRAVO'"),
        ("limits ANNA messages=10000001", "above 10000000"),
        ("limits ANNA open-orders=4194305", "above 4194304"),
        ("reload-users now", "takes no argument"),
        ("reload-users", "not started from a configuration file"),
    ] {
        let answer = fixture.execute(&mut console, line);
        assert_eq!(answer["ok"], false, "{line}");
        assert!(answer["error"].as_str().unwrap().contains(expected), "{line}: {answer}");
    }
    assert_eq!(fixture.rig.view.order_server.admin_commands.read(), 0);
}

#[test]
fn long_lines_and_excess_connections_are_closed() {
    let mut fixture = AdminFixture::new();
    let mut console = fixture.connect();
    console.stream.write_all(&[b'x'; 300]).unwrap();
    assert!(fixture.receive(&mut console).unwrap().contains("too long"));
    assert_eq!(fixture.receive(&mut console), None);
    let mut consoles: Vec<_> = (0..9).map(|_| fixture.connect()).collect();
    fixture.poll();
    assert_eq!(fixture.socket.refused(), 1);
    assert_eq!(fixture.receive(&mut consoles[0]), None, "the oldest");
    assert_eq!(fixture.execute(&mut consoles[8], "status")["admin_refused"], 1);
    drop(consoles);
    fixture.poll();
    let mut console = fixture.connect();
    assert_eq!(fixture.execute(&mut console, "status")["ok"], true);
}

#[test]
fn a_half_closed_client_receives_its_answers() {
    let mut fixture = AdminFixture::new();
    let mut console = fixture.connect();
    console.stream.write_all(b"kill-all\nstatus\n").unwrap();
    console.stream.shutdown(Shutdown::Write).unwrap();
    let executed = &mut fixture.executed;
    fixture.socket.poll(fixture.rig.now(), |uid, line| executed.push((uid, line.to_owned())));
    assert!(fixture.socket.is_waiting());
    assert!(fixture.receive(&mut console).unwrap().contains("commands"));
    assert!(fixture.receive(&mut console).unwrap().contains("\"is_killed\":true"));
    assert_eq!(fixture.receive(&mut console), None);
    assert!(!fixture.socket.is_waiting());
}

#[test]
fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
    let open = |fixture: &mut AdminFixture| {
        let mut other = Rig::new();
        let client = other.admin.take().unwrap();
        AdminSocket::open(&fixture.path, client, instruments(), other.view.clone()).err()
    };
    let mut fixture = AdminFixture::new();
    let error = open(&mut fixture).unwrap();
    assert!(matches!(error, ListenError::InUse(_)), "{error}");
    let AdminFixture { rig: _rig, socket, path, _folder, .. } = fixture;
    drop(socket);
    assert!(!path.exists(), "removed at the end");

    let mut fixture = AdminFixture::new();
    let stale = fixture.path.with_file_name("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    fixture.path = stale.clone();
    assert!(open(&mut fixture).is_none(), "a socket left behind is replaced");
    std::fs::write(&stale, "precious").unwrap();
    let error = open(&mut fixture).unwrap();
    assert!(matches!(error, ListenError::NotASocket(_)), "{error}");
    fixture.path = stale.with_file_name("nowhere").join("x.sock");
    assert!(matches!(open(&mut fixture), Some(ListenError::Io { .. })));
}

//! A client port in a temporary place, and clients that are admitted.
#![allow(dead_code, clippy::unwrap_used)] // each test program uses some of it

use std::path::PathBuf;
use std::thread;

use tempfile::TempDir;
use tickpath_gateway_io::{
    Client, ClientConfig, ClientId, ClientPort, ClientPortConfig, ClientPortEvent, ConnectError, LeaveReason,
    Login, monotonic,
};
use tickpath_gateway_protocol::frame::{Password, RefusalReason, capability};
use tickpath_gateway_protocol::{CustomMessage, CustomRequest, Event, EventKind, Request, Text, TopOfBook};
use tickpath_shm::{Folder, SegmentName};
use tickpath_test_support::{Deadline, PATIENCE, wait_for};
use tickpath_types::Nanos;

pub struct Site {
    pub place: TempDir,
    pub config: ClientPortConfig,
}

impl Site {
    pub fn new() -> Site {
        let place = tempfile::tempdir().unwrap();
        let config = Site::config_at(place.path());
        Site { place, config }
    }

    pub fn config_at(path: &std::path::Path) -> ClientPortConfig {
        let folder = Folder::create(&path.join("shm")).unwrap();
        let mut config =
            ClientPortConfig::new(&path.join("deribit.sock"), folder, SegmentName::new("deribit").unwrap());
        config.exchange = Text::cut("deribit");
        config.clients_max = 4;
        (config.requests_max, config.events_max, config.broadcasts_max) = (64, 64, 64);
        // A loaded machine may be slow.
        config.pre_login.deadline = Nanos::from_secs(120);
        config
    }

    /// Opens the port once the names are free: a process started by another test briefly inherits this one's
    /// files, and with them the locks of ended gateways.
    pub fn open(&self) -> ClientPort {
        wait_for("the endpoint", || ClientPort::open(self.config.clone()).ok())
    }

    pub fn socket(&self) -> PathBuf {
        self.config.socket.clone()
    }

    pub fn client(&self, name: &str) -> ClientConfig {
        client_config(self.socket(), name)
    }
}

pub fn client_config(socket: PathBuf, name: &str) -> ClientConfig {
    let password = Password::new(b"secret").unwrap();
    let mut config = ClientConfig::new(&socket, Text::new("alice").unwrap(), password);
    config.name = Text::new(name).unwrap();
    config.timeout = PATIENCE;
    config.backoff = Nanos(1_000_000);
    config.backoff_max = Nanos(10_000_000);
    config
}

/// Polls the port until `wanted` returns a value.
pub fn until<T>(
    door: &mut ClientPort,
    mut wanted: impl FnMut(&mut ClientPort, Option<ClientPortEvent>) -> Option<T>,
) -> T {
    let deadline = Deadline::start();
    loop {
        let event = door.poll(monotonic());
        let is_idle = event.is_none();
        if let Some(found) = wanted(door, event) {
            return found;
        }
        assert!(!deadline.is_over(), "no event at the endpoint: {:?}", door.counters());
        if is_idle {
            thread::yield_now();
        }
    }
}

/// Polls the port until a caller sends a login.
pub fn login(door: &mut ClientPort) -> Login {
    until(door, |_, event| match event {
        Some(ClientPortEvent::Login(login)) => Some(login),
        Some(ClientPortEvent::Heartbeat(..)) | None => None,
        other => panic!("{other:?}"),
    })
}

/// Connects on a separate thread.
pub fn connecting(config: ClientConfig) -> thread::JoinHandle<Result<Client, ConnectError>> {
    thread::spawn(move || Client::connect(config))
}

/// Admits a client.
pub fn let_in(door: &mut ClientPort, config: ClientConfig) -> (Client, ClientId) {
    let connecting = connecting(config);
    let login = login(door);
    assert_eq!(login.hello.password.expose(), b"secret");
    let id = door.admit(login.id, capability::TRADING).unwrap();
    let mut client = connecting.join().unwrap().unwrap();
    assert_eq!(client.poll().unwrap().header.kind, EventKind::START);
    assert_eq!(client.poll().unwrap().header.kind, EventKind::CONNECTED);
    (client, id)
}

pub fn refuse(
    door: &mut ClientPort,
    config: ClientConfig,
    reason: RefusalReason,
    after: Nanos,
) -> ConnectError {
    let connecting = connecting(config);
    let login = login(door);
    door.refuse(login.id, reason, after);
    connecting.join().unwrap().unwrap_err()
}

/// Returns the next event that is not a ping.
pub fn next(client: &mut Client) -> Event {
    wait_for("an event", || client.poll().filter(|event| event.header.kind != EventKind::PING))
}

/// Whether there is no event except pings at the moment.
pub fn is_quiet(client: &mut Client) -> bool {
    loop {
        match client.poll() {
            Some(event) if event.header.kind != EventKind::PING => return false,
            Some(_) => {}
            None => return true,
        }
    }
}

pub fn next_request(door: &mut ClientPort) -> (ClientId, Request) {
    until(door, |_, event| match event {
        Some(ClientPortEvent::Request(client, request)) => Some((client, request)),
        Some(ClientPortEvent::Heartbeat(..)) | None => None,
        other => panic!("{other:?}"),
    })
}

pub fn next_leave(door: &mut ClientPort) -> (ClientId, LeaveReason) {
    until(door, |_, event| match event {
        Some(ClientPortEvent::Left(client, reason)) => Some((client, reason)),
        _ => None,
    })
}

pub fn message(number: u64) -> Event {
    Event::of(&CustomMessage { client: 0, topic: 1, len: 64, data: [number; 8] })
}

pub fn said(number: u64) -> CustomRequest {
    CustomRequest { topic: 1, len: 64, data: [number; 8], ..CustomRequest::default() }
}

pub fn top(symbol: u32, number: u64) -> Event {
    let mut event = Event::of(&TopOfBook { change_id: number, ..TopOfBook::default() });
    event.header.symbol = symbol;
    event
}

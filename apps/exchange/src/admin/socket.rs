//! The Unix socket by which a running venue is commanded.

use std::io::{ErrorKind, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::Counter;
use tickpath_net::{UnixCaller, UnixDoor, UnixDoorError};
use tickpath_types::{InstrumentTable, Nanos};
use tickpath_venue::{AdminAnswer, AdminOutcome};

use super::AdminClient;
use super::parse::parse;
use super::protocol::{self, Request};
use super::reload::{Reloaded, reload_users};
use crate::VenueView;

/// Connections at a time, and of one process; for a further one the oldest is closed, those that have given no command
/// first. One that gives none is closed after a while.
const CONNECTIONS: PreLoginLimits =
    PreLoginLimits { connections: 16, per_address: 8, deadline: Nanos::from_secs(5) };
/// Longest time that one with a command may stay.
const STAY_MAX: Nanos = Nanos::from_secs(24 * 3_600);
/// Connections accepted in one poll.
const ACCEPTS_PER_POLL: usize = 64;
/// Longest line of a client, its end included; a longer one closes the connection.
const LINE_LEN_MAX: usize = 256;
/// Longest that an answer may wait to be read; beyond it the connection is closed.
const UNREAD_MAX: usize = 1 << 20;

/// Serves the admin socket whenever it is [polled](Self::poll), beside the venue's duty cycles and never in one.
///
/// A command that changes something goes to the order server by a ring, and from there into the log.
pub struct AdminSocket {
    door: UnixDoor,
    connections: Vec<Connection>,
    /// Those, by their numbers and processes.
    places: PreLogin<u32>,
    next_connection: u64,
    client: AdminClient,
    /// Commands that the order server has, oldest first.
    pending: Vec<Pending>,
    instruments: InstrumentTable,
    view: VenueView,
    /// The venue's configuration, where new users are named.
    config: Option<PathBuf>,
    refused: Counter,
}

struct Connection {
    id: u64,
    uid: u32,
    stream: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
    /// True while a command of it waits: its lines are answered in their order.
    is_waiting: bool,
    /// True once the client has said all that it will: its last answers are still sent.
    has_ended: bool,
    is_closed: bool,
}

struct Pending {
    /// Those that are answered together.
    ids: RangeInclusive<u64>,
    connection: u64,
    /// Of those of them that are done.
    commands: u32,
    /// Names of the users that they add, if they do.
    added: Option<Vec<String>>,
}

impl Pending {
    fn new(ids: RangeInclusive<u64>, connection: &mut Connection) -> Pending {
        connection.is_waiting = true;
        Pending { ids, connection: connection.id, commands: 0, added: None }
    }
}

impl AdminSocket {
    /// Opens the socket at `path`, in place of one that nobody serves any more.
    ///
    /// # Errors
    /// [`UnixDoorError`] when another venue serves it or the system refuses.
    pub fn open(
        path: &Path,
        client: AdminClient,
        instruments: InstrumentTable,
        view: VenueView,
    ) -> Result<AdminSocket, UnixDoorError> {
        Ok(AdminSocket {
            door: UnixDoor::open(path)?,
            connections: Vec::new(),
            places: PreLogin::new(CONNECTIONS),
            next_connection: 1,
            client,
            pending: Vec::new(),
            instruments,
            view,
            config: None,
            refused: Counter::default(),
        })
    }

    /// The same with the venue's configuration: users that come to stand there behind the others can be added.
    #[must_use]
    pub fn with_config(mut self, path: &Path) -> AdminSocket {
        self.config = Some(path.to_owned());
        self
    }

    /// Connections refused: of another user of the machine, without a command in time, or more than there may be.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.read()
    }

    /// True while a command is with the venue and its answer is still to be sent.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes what came and sends what is due; never waits. `on_command` hears each command that is carried out, with
    /// the user id of whoever gave it.
    pub fn poll(&mut self, now: Nanos, mut on_command: impl FnMut(u32, &str)) {
        self.accept(now);
        while let Some(answer) = self.client.poll() {
            self.hand_back(answer);
        }
        for place in 0..self.connections.len() {
            self.serve(place, now, &mut on_command);
        }
        while let Some(id) = self.places.expired(now) {
            self.close(id);
        }
        let AdminSocket { connections, places, .. } = self;
        connections.retain(|connection| {
            if connection.is_closed {
                places.remove(connection.id);
            }
            !connection.is_closed
        });
    }

    fn close(&mut self, id: u64) {
        self.refused.add(1);
        self.places.remove(id);
        if let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == id) {
            connection.is_closed = true;
        }
    }

    fn accept(&mut self, now: Nanos) {
        for _ in 0..ACCEPTS_PER_POLL {
            let Ok(caller) = self.door.accept() else { return };
            let Some(UnixCaller { stream, user: uid, process }) = caller else {
                self.refused.add(1);
                continue;
            };
            if let Some(id) = self.places.victim(process) {
                self.close(id);
            }
            self.places.admit(now, self.next_connection, process);
            self.connections.push(Connection {
                id: self.next_connection,
                uid,
                stream,
                received: Vec::new(),
                unsent: Vec::new(),
                is_waiting: false,
                has_ended: false,
                is_closed: false,
            });
            self.next_connection += 1;
        }
    }

    fn hand_back(&mut self, answer: AdminAnswer) {
        let AdminAnswer { id, outcome } = answer;
        let Some(place) = self.pending.iter().position(|pending| pending.ids.contains(&id)) else { return };
        let pending = &mut self.pending[place];
        let outcome = match outcome {
            AdminOutcome::Done { commands } => {
                pending.commands += commands;
                AdminOutcome::Done { commands: pending.commands }
            }
            other => other,
        };
        if id < *pending.ids.end() {
            return;
        }
        let Pending { connection, added, .. } = self.pending.remove(place);
        if let Some(connection) = self.connections.iter_mut().find(|known| known.id == connection) {
            connection.is_waiting = false;
            connection.answer(&match (outcome, added) {
                (AdminOutcome::Done { commands }, Some(names)) => protocol::added(&names, commands),
                (outcome, _) => protocol::outcome(outcome),
            });
        }
    }

    fn serve(&mut self, place: usize, now: Nanos, on_command: &mut impl FnMut(u32, &str)) {
        let connection = &mut self.connections[place];
        connection.receive();
        while !connection.is_waiting
            && let Some(line) = connection.take_line()
        {
            self.places.postpone(connection.id, now + STAY_MAX);
            match parse(&line, &self.instruments, &self.view) {
                Ok(Request::Status) => {
                    let mut status = protocol::status(&self.view, &self.instruments);
                    status["admin_refused"] = self.refused.read().into();
                    connection.answer(&status);
                }
                Ok(Request::Users) => connection.answer(&protocol::users(&self.view)),
                Ok(Request::ReloadUsers) => {
                    let config = self.config.as_deref();
                    match reload_users(config, &mut self.client, &self.view.users, &self.instruments) {
                        Ok(None) => connection.answer(&protocol::added(&[], 0)),
                        Ok(Some(Reloaded { ids, added })) => {
                            on_command(connection.uid, &format!("{}: {}", line.trim(), added.join(", ")));
                            self.pending
                                .push(Pending { added: Some(added), ..Pending::new(ids, connection) });
                        }
                        Err(message) => connection.answer(&protocol::error(&message)),
                    }
                }
                Ok(Request::Command(command)) => match self.client.submit(command) {
                    Some(id) => {
                        on_command(connection.uid, line.trim());
                        self.pending.push(Pending::new(id..=id, connection));
                    }
                    None => connection.answer(&protocol::error("the venue is busy: try again")),
                },
                Err(message) => connection.answer(&protocol::error(&message)),
            }
        }
        connection.send();
        connection.is_closed |=
            connection.has_ended && !connection.is_waiting && connection.unsent.is_empty();
    }
}

impl Connection {
    fn receive(&mut self) {
        let mut bytes = [0; LINE_LEN_MAX];
        // What does not fit waits in the kernel until the lines before it are answered.
        while self.received.len() < LINE_LEN_MAX {
            let room = LINE_LEN_MAX - self.received.len();
            match self.stream.read(&mut bytes[..room]) {
                Ok(0) => {
                    self.has_ended = true;
                    return;
                }
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    /// The next whole line; a line without end closes the connection.
    fn take_line(&mut self) -> Option<String> {
        let Some(end) = self.received.iter().position(|byte| *byte == b'\n') else {
            if self.received.len() >= LINE_LEN_MAX {
                self.answer(&protocol::error("the line is too long"));
                self.send();
                self.is_closed = true;
            }
            return None;
        };
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn answer(&mut self, answer: &Value) {
        self.unsent.extend_from_slice(answer.to_string().as_bytes());
        self.unsent.push(b'\n');
    }

    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_closed |= self.unsent.len() > UNREAD_MAX;
                    return;
                }
                Err(_) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }
}

//! The venue's admin socket.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tickpath_admin::{Line, LineLimits, LineServer, ListenError, error_answer};
use tickpath_admission::PreLoginLimits;
use tickpath_types::{InstrumentTable, Nanos};
use tickpath_venue::{AdminAnswer, AdminOutcome, VenueView};

use super::AdminClient;
use super::parse::{Request, parse};
use super::protocol;
use super::reload::reload_users;

const LIMITS: LineLimits = LineLimits {
    connections: PreLoginLimits { connections: 16, per_address: 8, deadline: Nanos::from_secs(5) },
    stay_max: Nanos::from_secs(24 * 3_600),
    line_len_max: 256,
    has_many_lines: true,
};

/// The server of the admin socket. It works only when [polled](Self::poll), outside the venue's duty cycles.
///
/// Commands that change state go to the order server through a ring, and from there into the log.
pub struct AdminSocket {
    server: LineServer,
    client: AdminClient,
    /// Commands that the order server has not answered yet, oldest first.
    pending: Vec<Pending>,
    instruments: InstrumentTable,
    view: VenueView,
    /// The venue's configuration file, from which `reload-users` adds users.
    config: Option<PathBuf>,
}

struct Pending {
    /// Ids of the commands that get one answer together.
    ids: RangeInclusive<u64>,
    connection: u64,
    /// Number of log commands sequenced so far for these commands.
    commands: u32,
    /// Names of the users that the commands add, if any.
    added: Option<Vec<String>>,
}

impl AdminSocket {
    /// Opens the socket at `path`. Replaces a stale socket that no program serves.
    ///
    /// # Errors
    /// [`ListenError`] when another venue serves the socket, or the system refuses to open it.
    pub fn open(
        path: &Path,
        client: AdminClient,
        instruments: InstrumentTable,
        view: VenueView,
    ) -> Result<AdminSocket, ListenError> {
        let server = LineServer::open(path, LIMITS)?;
        Ok(AdminSocket { server, client, pending: Vec::new(), instruments, view, config: None })
    }

    /// Sets the configuration file whose new users `reload-users` adds.
    #[must_use]
    pub fn with_config(mut self, path: &Path) -> AdminSocket {
        self.config = Some(path.to_owned());
        self
    }

    /// Number of refused connections: of other system users, without a command in time, or above the maximum.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.server.refused()
    }

    /// True while a command waits for the order server's answer.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Receives commands and sends answers, without blocking. For each command that is passed to the order
    /// server, calls `on_command` with the client's system user id and the command line.
    pub fn poll(&mut self, now: Nanos, mut on_command: impl FnMut(u32, &str)) {
        self.server.receive(now);
        while let Some(answer) = self.client.poll() {
            self.handle_answer(answer);
        }
        while let Some(line) = self.server.next_line() {
            match self.execute(&line, &mut on_command) {
                Ok(Some(answer)) => self.server.answer(line.connection, &answer),
                Ok(None) => {}
                Err(message) => self.server.answer(line.connection, &error_answer(&message)),
            }
        }
    }

    fn handle_answer(&mut self, answer: AdminAnswer) {
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
        let answer = match (outcome, added) {
            (AdminOutcome::Done { commands }, Some(names)) => protocol::added(&names, commands),
            (outcome, _) => protocol::outcome(outcome),
        };
        self.server.answer(connection, &answer);
    }

    /// Executes a command line. Returns the answer, or `None` if the order server will give it.
    fn execute(
        &mut self,
        line: &Line,
        on_command: &mut impl FnMut(u32, &str),
    ) -> Result<Option<Value>, String> {
        let (ids, added) = match parse(&line.text, &self.instruments, &self.view)? {
            Request::Status => {
                let mut status = protocol::status(&self.view, &self.instruments);
                status["admin_refused"] = self.refused().into();
                return Ok(Some(status));
            }
            Request::Users => return Ok(Some(protocol::users(&self.view))),
            Request::ReloadUsers => {
                let config = self.config.as_deref();
                let reloaded = reload_users(config, &mut self.client, &self.view.users, &self.instruments)?;
                let Some((ids, added)) = reloaded else {
                    return Ok(Some(protocol::added(&[], 0)));
                };
                on_command(line.user, &format!("{}: {}", line.text, added.join(", ")));
                (ids, Some(added))
            }
            Request::Command(command) => {
                let id = self.client.submit(command).ok_or("the venue is busy: try again")?;
                on_command(line.user, &line.text);
                (id..=id, None)
            }
        };
        self.pending.push(Pending { ids, connection: line.connection, commands: 0, added });
        Ok(None)
    }
}

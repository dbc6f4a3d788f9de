//! Logins of clients, and the end of connections.

use tickpath_admin::CheckResult;
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest};
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::Nanos;
use tickpath_venue::LoginStep;

use super::{OrderServer, REQUESTS_PER_READ_MAX};
use crate::soup_link::DisconnectReason;

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Starts the check of a login, and answers the login if the check completes at once.
    #[cold]
    pub(super) fn begin_login(&mut self, place: usize, request: &LoginRequest, now: Nanos) {
        let Some(connection) = self.connections.get(place) else { return };
        let peer = *connection.link.tcp.peer_address().ip();
        let (logins, users) = (&mut self.entry.logins, &mut self.entry.users);
        let step = logins.handle_login(now, place, peer, request, users, &mut self.links.checker);
        self.answer_login(place, step, now);
    }

    /// Continues logins whose password check is done; returns their number.
    #[cold]
    pub(super) fn take_checked_logins(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        // A client may have sent requests after its login. They are read now, so the batch needs capacity.
        while self.entry.sequencer.remaining_capacity() >= REQUESTS_PER_READ_MAX
            && let Some(answer) = self.links.checker.poll()
        {
            count += 1;
            let CheckResult { id, key: place, is_right, .. } = answer;
            match self.entry.logins.handle_checked(now, place, id, is_right, &mut self.entry.users) {
                Some(step) => {
                    self.answer_login(place, step, now);
                    self.resume_reading(place, now);
                }
                None => self.counters.checks_dropped.add(1),
            }
        }
        count
    }

    /// Continues a postponed login once it is due.
    pub(super) fn check_if_due(&mut self, place: usize, now: Nanos) {
        if self.entry.sequencer.remaining_capacity() < REQUESTS_PER_READ_MAX {
            return;
        }
        let (logins, users) = (&mut self.entry.logins, &mut self.entry.users);
        if let Some(step) = logins.handle_timeout(now, place, users, &mut self.links.checker) {
            self.answer_login(place, step, now);
            self.resume_reading(place, now);
        }
    }

    /// Handles the messages that a client sent after its login, and sends the client its pending messages.
    fn resume_reading(&mut self, place: usize, now: Nanos) {
        let read_at = self.tracer.now();
        let taken = self.take_messages(place, read_at, now);
        if let Err(reason) = taken.and_then(|()| self.transmit(place, now)) {
            self.disconnect(place, reason, now);
        }
    }

    /// Counts the result of a login step, and answers the login if it is decided.
    fn answer_login(&mut self, place: usize, step: LoginStep, now: Nanos) {
        if let Some((user, peer)) = self.entry.logins.poll_trusted()
            && let Some(trusted) = &mut self.links.trusted
        {
            // If the ring is full, this login is trusted only until the venue stops.
            let _ = trusted.try_push((user as u32, peer));
        }
        let Some(connection) = self.connections.get_mut(place) else { return };
        match step {
            LoginStep::Checking | LoginStep::Busy => {}
            LoginStep::Postponed => self.counters.logins_delayed.add(1),
            LoginStep::Wrong { user } => {
                self.counters.wrong_passwords.add(1);
                if let Some(user) = user {
                    self.registry[user].wrong_passwords.add(1);
                }
                self.refuse_login(place, LoginRejectReason::NOT_AUTHORIZED);
            }
            LoginStep::Rejected(reason) => self.refuse_login(place, reason),
            LoginStep::Full => {
                self.counters.connections_refused.add(1);
                self.close(place, now);
            }
            LoginStep::Accepted { user, next } => {
                self.counters.logins.add(1);
                self.registry[user].logins.add(1);
                self.registry[user].is_connected.set(1);
                connection.link.soup.accept(self.config.session, next);
                connection.user = Some(user);
                self.connections.note_message(place, None);
            }
        }
    }

    fn refuse_login(&mut self, place: usize, reason: LoginRejectReason) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        self.counters.logins_refused.add(1);
        connection.link.soup.reject(reason);
        self.connections.note_message(place, None);
    }

    /// Writes due data to a connection; closes the connection if that fails.
    pub(super) fn transmit_or_close(&mut self, place: usize, now: Nanos) {
        if let Err(reason) = self.transmit(place, now) {
            self.disconnect(place, reason, now);
        }
    }

    pub(super) fn transmit(&mut self, place: usize, now: Nanos) -> Result<(), DisconnectReason> {
        let OrderServer { connections, entry, counters, tracer, .. } = self;
        connections.transmit(place, now, &entry.users, counters, tracer)
    }

    /// Closes a connection and counts the reason.
    #[cold]
    pub(super) fn disconnect(&mut self, place: usize, reason: DisconnectReason, now: Nanos) {
        match reason {
            DisconnectReason::Malformed => self.counters.malformed.add(1),
            DisconnectReason::Slow => self.counters.slow_clients.add(1),
            DisconnectReason::Closed | DisconnectReason::TimedOut => {}
        }
        self.close(place, now);
    }

    /// Closes a connection and logs its user out; the user may reconnect.
    pub(super) fn close(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.connections.remove(place) else { return };
        self.entry.logins.handle_close(place);
        if let Some(user) = connection.user {
            self.registry[user].is_connected.set(0);
            self.entry.users.log_out(user, now);
        }
        self.listener.take_back(connection.link.tcp, place);
        self.counters.disconnects.add(1);
    }

    /// Advances the shutdown of all sessions; true when all have ended.
    pub(super) fn end_sessions(&mut self, now: Nanos) -> bool {
        let open = (0..self.connections.place_count()).filter(|place| !self.end_session(*place, now));
        open.count() == 0
    }

    /// Sends the user's unsent messages and ends the session; later calls check if the client has closed its
    /// side. True when the connection has ended.
    fn end_session(&mut self, place: usize, now: Nanos) -> bool {
        if self.connections.get(place).is_some_and(|connection| connection.is_open()) {
            self.transmit_or_close(place, now);
        }
        let is_over = self.connections.end_session(place, now, self.config.is_session_kept);
        if is_over {
            self.close(place, now);
        }
        is_over
    }
}

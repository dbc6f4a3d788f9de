//! Users who log in.

use tickpath_faults::{Fault, is_planted};
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest};
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::Nanos;

use super::{OrderServer, REQUESTS_PER_READ_MAX};
use crate::login::Queue;

/// A login that has no answer yet.
pub(super) struct PendingLogin {
    request: LoginRequest,
    /// The user of that name.
    user: Option<usize>,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    /// The password is being checked, under this number.
    Checked(u64),
    /// The password is checked from this time on.
    PutOff(Nanos),
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Begins to check a login, at once or later.
    ///
    /// A wrong name and a wrong password look the same from outside: where passwords take time to check, so does
    /// the name of nobody.
    #[cold]
    pub(super) fn begin_login(&mut self, place: usize, request: &LoginRequest, now: Nanos) {
        let Some(connection) = self.connections[place].as_ref() else { return };
        let user = self.users.find(&request.username);
        let delay = self.guard.delay(now, user, *connection.link.tcp.peer_address().ip());
        if delay == Nanos::ZERO {
            self.check_login(place, user, request, now);
        } else {
            self.counters.logins_delayed.add(1);
            self.await_check(place, user, request, Stage::PutOff(now + delay), now + delay);
        }
    }

    fn check_login(&mut self, place: usize, user: Option<usize>, request: &LoginRequest, now: Nanos) {
        let known = user.map(|user| &self.users.get(user).password);
        let verdict = match known.map(|known| known.matches_at_once(&request.password)) {
            Some(verdict) => verdict,
            None if self.checker.is_used() => None,
            None => Some(false),
        };
        match verdict {
            Some(is_right) => self.settle_login(place, user, request, is_right, now),
            None => {
                let Some(connection) = self.connections[place].as_ref() else { return };
                let is_trusted = self.guard.is_trusted(user, *connection.link.tcp.peer_address().ip());
                let queue = if is_trusted { Queue::Trusted } else { Queue::Other };
                let stage = match self.checker.submit(place, user, queue, &request.password) {
                    Some(id) => Stage::Checked(id),
                    None => {
                        self.counters.logins_delayed.add(1);
                        Stage::PutOff(now)
                    }
                };
                self.await_check(place, user, request, stage, now);
            }
        }
    }

    fn await_check(
        &mut self,
        place: usize,
        user: Option<usize>,
        request: &LoginRequest,
        stage: Stage,
        at: Nanos,
    ) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        connection.login = Some(PendingLogin { request: *request, user, stage });
        let is_trusted = self.guard.is_trusted(user, *connection.link.tcp.peer_address().ip());
        self.pre_login.postpone_login(place as u64, user, at, is_trusted);
    }

    /// Continues with logins whose passwords were checked; returns how many.
    #[cold]
    pub(super) fn take_checked_logins(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        // What a client sent behind its login is taken at once.
        while self.sequencer.room() >= REQUESTS_PER_READ_MAX
            && let Some(answer) = self.checker.poll()
        {
            count += 1;
            let connection = self.connections.get_mut(answer.place).and_then(Option::as_mut);
            let pending = connection.and_then(|connection| {
                connection.login.take_if(|login| matches!(login.stage, Stage::Checked(id) if id == answer.id))
            });
            let Some(PendingLogin { request, user, .. }) = pending else {
                self.counters.checks_dropped.add(1);
                continue;
            };
            self.settle_login(answer.place, user, &request, answer.is_right, now);
            self.resume_reading(answer.place, now);
        }
        count
    }

    /// Checks a password that was put off, once it is time.
    pub(super) fn check_if_due(&mut self, place: usize, now: Nanos) {
        let has_room = self.sequencer.room() >= REQUESTS_PER_READ_MAX;
        let Some(connection) = self.connections[place].as_mut().filter(|_| has_room) else { return };
        let is_due = |login: &mut PendingLogin| matches!(login.stage, Stage::PutOff(at) if now >= at);
        if let Some(PendingLogin { request, user, .. }) = connection.login.take_if(is_due) {
            self.check_login(place, user, &request, now);
            self.resume_reading(place, now);
        }
    }

    /// Takes what a client sent behind its login, and sends what there is for it.
    fn resume_reading(&mut self, place: usize, now: Nanos) {
        let read_at = self.tracer.now();
        let taken = self.take_messages(place, read_at, now);
        if let Err(hangup) = taken.and_then(|()| self.transmit(place, now)) {
            self.hang_up(place, hangup, now);
        }
    }

    /// The password is known to be right or wrong.
    fn settle_login(
        &mut self,
        place: usize,
        user: Option<usize>,
        request: &LoginRequest,
        is_right: bool,
        now: Nanos,
    ) {
        let Some(connection) = self.connections[place].as_ref() else { return };
        let peer = *connection.link.tcp.peer_address().ip();
        // The answer is still to be sent.
        self.pre_login.postpone_login(place as u64, user, now, is_right);
        let Some(known) = user.filter(|_| is_right) else {
            self.counters.wrong_passwords.add(1);
            if let Some(user) = user {
                self.registry[user].wrong_passwords.add(1);
            }
            return self.refuse_login(place, LoginRejectReason::NOT_AUTHORIZED);
        };
        if self.guard.record_success(known, peer)
            && let Some(trusted) = &mut self.trusted
        {
            // One that finds no room is trusted until the venue stops.
            let _ = trusted.try_push((known as u32, peer));
        }
        match self.users.admit(known, request, self.config.session) {
            Ok(_) if self.clients.len() >= self.config.max_connections => {
                // Without an answer: a rejection is final to clients, and this is not.
                self.counters.connections_refused.add(1);
                self.close(place, now);
            }
            Ok(next) => self.accept_login(place, known, next),
            Err(reason) => self.refuse_login(place, reason),
        }
    }

    fn accept_login(&mut self, place: usize, user: usize, next: tickpath_types::Sequence) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        self.counters.logins.add(1);
        self.registry[user].logins.add(1);
        self.registry[user].is_connected.set(1);
        connection.link.soup.accept(self.config.session, next);
        connection.user = Some(user);
        connection.is_behind = true;
        self.pre_login.remove(place as u64);
        self.clients.push(place);
        let user = self.users.get_mut(user);
        user.connection = Some(place);
        // Back in time: nothing is cancelled.
        if !is_planted(Fault::CancelWhileConnected) {
            user.cancel_at = None;
        }
    }

    fn refuse_login(&mut self, place: usize, reason: LoginRejectReason) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        self.counters.logins_refused.add(1);
        connection.link.soup.reject(reason);
        connection.is_behind = true;
    }
}

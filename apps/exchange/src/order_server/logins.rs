//! Users who log in.

use tickpath_faults::{Fault, is_planted};
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest};
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::Nanos;

use super::{OrderServer, REQUESTS_PER_READ_MAX};

/// A login that has no answer yet.
pub(super) struct PendingLogin {
    request: LoginRequest,
    /// Whose name it bears.
    user: Option<usize>,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    /// The password is being checked, under this number.
    Checked(u64),
    /// It was wrong, and that is said later.
    RefusedAt(Nanos),
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Answers a login, or has its password checked first.
    ///
    /// A wrong name and a wrong password look the same from outside: where passwords take time to check, so does
    /// the name of nobody.
    #[cold]
    pub(super) fn begin_login(&mut self, place: usize, request: &LoginRequest, now: Nanos) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        let user = self.users.find(&request.username);
        if self.guard.is_locked(now, user, *connection.link.tcp.peer_address().ip()) {
            return self.refuse_unseen(place);
        }
        let known = user.map(|user| &self.users.get(user).password);
        let verdict = match known.map(|known| known.matches_at_once(&request.password)) {
            Some(verdict) => verdict,
            None if self.checker.is_used() => None,
            None => Some(false),
        };
        match verdict {
            Some(is_right) => self.settle_login(place, user, request, is_right, now),
            None => match self.checker.submit(place, user, &request.password) {
                Some(id) => {
                    connection.login =
                        Some(PendingLogin { request: *request, user, stage: Stage::Checked(id) });
                }
                None => {
                    self.counters.logins_unchecked.add(1);
                    self.refuse_login(place, LoginRejectReason::SESSION_NOT_AVAILABLE);
                }
            },
        }
    }

    /// Goes on with logins whose passwords were checked; returns how many.
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
            self.settle_checked(answer.place, user, &request, answer.is_right, now);
            let read_at = self.tracer.now();
            let went_on = self.take_messages(answer.place, read_at, now);
            if let Err(hangup) = went_on.and_then(|()| self.transmit(answer.place, now)) {
                self.hang_up(answer.place, hangup, now);
            }
        }
        count
    }

    /// The check of a password took its time. When too many others were wrong meanwhile nobody hears what came of it:
    /// however many logins come at once, no more passwords are tried than may be.
    fn settle_checked(
        &mut self,
        place: usize,
        user: Option<usize>,
        request: &LoginRequest,
        is_right: bool,
        now: Nanos,
    ) {
        let Some(connection) = &self.connections[place] else { return };
        if self.guard.is_locked(now, user, *connection.link.tcp.peer_address().ip()) {
            return self.refuse_unseen(place);
        }
        self.settle_login(place, user, request, is_right, now);
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
        match user.filter(|_| is_right) {
            Some(user) => {
                self.guard.record_success(user);
                self.user_views[user].locked_until.set(0);
                match self.users.admit(user, request, self.config.session) {
                    Ok(next) => self.accept_login(place, user, next),
                    Err(reason) => self.refuse_login(place, reason),
                }
            }
            None => self.count_wrong_password(place, user, request, now),
        }
    }

    fn accept_login(&mut self, place: usize, user: usize, next: tickpath_types::Sequence) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        self.counters.logins.add(1);
        self.user_views[user].logins.add(1);
        self.user_views[user].is_connected.set(1);
        connection.link.soup.accept(self.config.session, next);
        connection.user = Some(user);
        connection.is_behind = true;
        let user = self.users.get_mut(user);
        user.connection = Some(place);
        // Back in time: nothing is cancelled.
        if !is_planted(Fault::CancelWhileConnected) {
            user.cancel_at = None;
        }
    }

    /// During the pause after too many wrong passwords.
    fn refuse_unseen(&mut self, place: usize) {
        self.counters.logins_locked_out.add(1);
        self.refuse_login(place, LoginRejectReason::NOT_AUTHORIZED);
    }

    fn refuse_login(&mut self, place: usize, reason: LoginRejectReason) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        self.counters.logins_refused.add(1);
        connection.link.soup.reject(reason);
        connection.is_behind = true;
    }

    fn count_wrong_password(
        &mut self,
        place: usize,
        user: Option<usize>,
        request: &LoginRequest,
        now: Nanos,
    ) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        self.counters.wrong_passwords.add(1);
        let address = *connection.link.tcp.peer_address().ip();
        let verdict = self.guard.record_failure(now, user, address);
        self.counters.lockouts.add(verdict.is_lockout.into());
        if let Some(user) = user {
            self.user_views[user].wrong_passwords.add(1);
            if self.guard.is_user_locked(now, user) {
                self.user_views[user].locked_until.set((now + self.config.login.lockout).0);
            }
        }
        if verdict.delay == Nanos::ZERO {
            return self.refuse_login(place, LoginRejectReason::NOT_AUTHORIZED);
        }
        self.counters.logins_delayed.add(1);
        let stage = Stage::RefusedAt(now + verdict.delay);
        connection.login = Some(PendingLogin { request: *request, user, stage });
    }

    /// Says what was held back, once it is time.
    pub(super) fn refuse_if_due(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        let is_due = |login: &mut PendingLogin| matches!(login.stage, Stage::RefusedAt(at) if now >= at);
        if connection.login.take_if(is_due).is_some() {
            self.refuse_login(place, LoginRejectReason::NOT_AUTHORIZED);
        }
    }
}

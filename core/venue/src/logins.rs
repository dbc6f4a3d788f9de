//! Logins at the port of order entry: passwords, bounds of connections, and what a login is answered.

use tickpath_admission::{LoginGuard, PreLogin, PreLoginLimits};
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest, Password, Session};
use tickpath_types::{Nanos, Sequence};

use crate::users::Users;

/// The queue of a check. Trusted logins have their own, so that guesses do not delay them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckQueue {
    /// The user's password was right from that peer before.
    Trusted,
    /// All others.
    Other,
}

/// The answer to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckAnswer {
    /// The number of the check, as [`PasswordChecks::submit`] gave it.
    pub id: u64,
    /// The place of the connection, as submitted.
    pub place: usize,
    /// Its queue.
    pub queue: CheckQueue,
    /// True when the password was the user's.
    pub is_right: bool,
}

/// Checks of passwords against hashes. They take milliseconds, so another thread does them.
pub trait PasswordChecks {
    /// True when some user has a hash: then an unknown name takes as long to refuse.
    fn is_used(&self) -> bool;
    /// Has a password checked, against the hash of `user` or against one that no password has; the number of the check.
    /// `None` when as many wait in that queue as may.
    fn submit(
        &mut self,
        place: usize,
        user: Option<usize>,
        queue: CheckQueue,
        password: &Password,
    ) -> Option<u64>;
}

/// The progress of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// Its password is being checked.
    Checking,
    /// Its check is put off: passwords were wrong before, or too many checks wait.
    PutOff,
    /// The password is wrong, or the name unknown; the login is rejected.
    Wrong {
        /// The user of that name.
        user: Option<usize>,
    },
    /// The login is rejected.
    Rejected(LoginRejectReason),
    /// As many clients are logged in as may be: the connection is closed without an answer, for a rejection is final to
    /// clients, and this is not.
    Full,
    /// The user is logged in.
    Accepted {
        /// The user's place.
        user: usize,
        /// The first message to be sent.
        next: Sequence,
    },
}

/// A login that has no answer yet.
struct PendingLogin<P> {
    request: LoginRequest,
    peer: P,
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

/// The connections of one port that log in or are logged in, by their places; `P` is the address of a peer.
///
/// A wrong name and a wrong password look the same from outside: where passwords take time to check, an unknown name takes
/// as long.
pub struct Logins<P> {
    session: Session,
    clients_max: usize,
    /// Connections that have not logged in.
    pre_login: PreLogin<P>,
    guard: LoginGuard<P>,
    /// By the places of the connections.
    pending: Box<[Option<PendingLogin<P>>]>,
    /// Places of the connections that are logged in.
    clients: Vec<usize>,
    /// A pair of user and peer that is trusted from now on.
    new_trust: Option<(usize, P)>,
}

impl<P: Copy + Eq> Logins<P> {
    /// Logins to `session` of at most `clients_max` clients at a time.
    #[must_use]
    pub fn new(
        session: Session,
        clients_max: usize,
        limits: PreLoginLimits,
        guard: LoginGuard<P>,
    ) -> Logins<P> {
        Logins {
            session,
            clients_max,
            pre_login: PreLogin::new(limits),
            guard,
            pending: (0..clients_max + limits.connections).map(|_| None).collect(),
            clients: Vec::with_capacity(clients_max),
            new_trust: None,
        }
    }

    /// Takes note of a new connection.
    pub fn handle_connection(&mut self, now: Nanos, place: usize, peer: P) {
        self.pre_login.admit(now, place as u64, peer);
    }

    /// Takes note of a closed connection; true when it was logged in.
    pub fn handle_close(&mut self, place: usize) -> bool {
        self.pre_login.remove(place as u64);
        self.pending[place] = None;
        let count = self.clients.len();
        self.clients.retain(|client| *client != place);
        self.clients.len() < count
    }

    /// The connection to be closed where another one of `peer` finds no capacity.
    #[must_use]
    pub fn victim(&self, peer: P) -> Option<usize> {
        self.pre_login.victim(peer).map(|place| place as usize)
    }

    /// A connection whose time for its login is over.
    #[must_use]
    pub fn poll_expired(&self, now: Nanos) -> Option<usize> {
        self.pre_login.expired(now).map(|place| place as usize)
    }

    /// A pair of user and peer that is trusted from now on, for the file that outlasts a restart.
    pub fn poll_trusted(&mut self) -> Option<(usize, P)> {
        self.new_trust.take()
    }

    /// The place of a client, in the order of the logins.
    #[inline]
    #[must_use]
    pub fn client(&self, index: usize) -> Option<usize> {
        self.clients.get(index).copied()
    }

    /// Wrong passwords of a user, from all peers, are forgiven.
    pub fn forgive(&mut self, user: usize) {
        self.guard.forgive(user);
    }

    /// Begins to check a login, at once or later.
    pub fn handle_login(
        &mut self,
        now: Nanos,
        place: usize,
        peer: P,
        request: &LoginRequest,
        users: &mut Users,
        checks: &mut impl PasswordChecks,
    ) -> LoginStep {
        let user = users.find(&request.username);
        let delay = self.guard.delay(now, user, peer);
        let stage = Stage::PutOff(now + delay);
        let login = PendingLogin { request: *request, peer, user, stage };
        if delay == Nanos::ZERO {
            return self.check(now, place, login, users, checks);
        }
        self.keep(place, login, now + delay);
        LoginStep::PutOff
    }

    /// Continues a login whose password was checked; `None` when its connection is closed.
    pub fn handle_checked(
        &mut self,
        now: Nanos,
        answer: &CheckAnswer,
        users: &mut Users,
    ) -> Option<LoginStep> {
        let is_it =
            |login: &mut PendingLogin<P>| matches!(login.stage, Stage::Checked(id) if id == answer.id);
        let login = self.pending.get_mut(answer.place)?.take_if(is_it)?;
        Some(self.settle(now, answer.place, &login, answer.is_right, users))
    }

    /// Checks a password that was put off, once it is time.
    pub fn handle_timeout(
        &mut self,
        now: Nanos,
        place: usize,
        users: &mut Users,
        checks: &mut impl PasswordChecks,
    ) -> Option<LoginStep> {
        let is_due = |login: &mut PendingLogin<P>| matches!(login.stage, Stage::PutOff(at) if now >= at);
        let login = self.pending[place].take_if(is_due)?;
        Some(self.check(now, place, login, users, checks))
    }

    fn check(
        &mut self,
        now: Nanos,
        place: usize,
        login: PendingLogin<P>,
        users: &mut Users,
        checks: &mut impl PasswordChecks,
    ) -> LoginStep {
        let PendingLogin { request, peer, user, .. } = login;
        let known = user.map(|user| &users.get(user).password);
        let verdict = match known.map(|known| known.matches_at_once(&request.password)) {
            Some(verdict) => verdict,
            None if checks.is_used() => None,
            None => Some(false),
        };
        if let Some(is_right) = verdict {
            return self.settle(now, place, &login, is_right, users);
        }
        let is_trusted = self.guard.is_trusted(user, peer);
        let queue = if is_trusted { CheckQueue::Trusted } else { CheckQueue::Other };
        let (stage, step) = match checks.submit(place, user, queue, &request.password) {
            Some(id) => (Stage::Checked(id), LoginStep::Checking),
            None => (Stage::PutOff(now), LoginStep::PutOff),
        };
        self.keep(place, PendingLogin { stage, ..login }, now);
        step
    }

    fn keep(&mut self, place: usize, login: PendingLogin<P>, at: Nanos) {
        let is_trusted = self.guard.is_trusted(login.user, login.peer);
        self.pre_login.postpone_login(place as u64, login.user, at, is_trusted);
        self.pending[place] = Some(login);
    }

    /// The password is known to be right or wrong.
    fn settle(
        &mut self,
        now: Nanos,
        place: usize,
        login: &PendingLogin<P>,
        is_right: bool,
        users: &mut Users,
    ) -> LoginStep {
        let PendingLogin { request, peer, user, .. } = login;
        // The answer is still to be sent.
        self.pre_login.postpone_login(place as u64, *user, now, is_right);
        let Some(user) = user.filter(|_| is_right) else { return LoginStep::Wrong { user: *user } };
        if self.guard.record_success(user, *peer) {
            self.new_trust = Some((user, *peer));
        }
        match users.admit(user, request, self.session) {
            Ok(_) if self.clients.len() >= self.clients_max => LoginStep::Full,
            Ok(next) => {
                self.pre_login.remove(place as u64);
                self.clients.push(place);
                users.log_in(user, place);
                LoginStep::Accepted { user, next }
            }
            Err(reason) => LoginStep::Rejected(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_admission::LoginPolicy;
    use tickpath_nasdaq::soupbintcp::Username;
    use tickpath_types::InstrumentTable;

    use super::*;
    use crate::entitlements::{Entitlements, ReplayedUser};
    use crate::message_log::SessionLog;
    use crate::user_settings::UserSettings;

    const NOW: Nanos = Nanos::from_secs(100);
    const PEER: u32 = 7;

    /// Checks that wait until the test answers them, two at a time.
    #[derive(Default)]
    struct Checks {
        queues: Vec<CheckQueue>,
    }

    impl PasswordChecks for Checks {
        fn is_used(&self) -> bool {
            true
        }

        fn submit(&mut self, _: usize, _: Option<usize>, queue: CheckQueue, _: &Password) -> Option<u64> {
            self.queues.push(queue);
            (self.queues.len() <= 2).then_some(self.queues.len() as u64)
        }
    }

    /// ANNA has a password, BERT a hash.
    fn users() -> Users {
        let anna = UserSettings::new("ANNA", crate::Password::plain("secret"));
        let settings = [anna, UserSettings::new("BERT", crate::Password::of_hash("$argon2id$"))];
        let entitlements = settings.each_ref().map(|user| Entitlements::new(user, &ReplayedUser::default()));
        Users::new(&settings, &entitlements, [2, 2].map(SessionLog::new), &InstrumentTable::new(&[]), 2)
    }

    fn logins() -> Logins<u32> {
        let session = Session::new("TODAY").unwrap();
        Logins::new(session, 1, PreLoginLimits::default(), LoginGuard::new(LoginPolicy::default(), 2))
    }

    fn request(name: &str, password: &str) -> LoginRequest {
        LoginRequest {
            username: Username::new(name).unwrap(),
            password: Password::new(password).unwrap(),
            session: Session::BLANK,
            sequence: Sequence(0),
            heartbeat_timeout: None,
        }
    }

    #[test]
    fn one_client_logs_in_and_the_next_finds_the_port_full() {
        let (mut users, mut logins, mut checks) = (users(), logins(), Checks::default());
        (0..2).for_each(|place| logins.handle_connection(NOW, place, PEER));
        let mut login = |logins: &mut Logins<u32>, place, name| {
            logins.handle_login(NOW, place, PEER, &request(name, "secret"), &mut users, &mut checks)
        };
        let accepted = LoginStep::Accepted { user: 0, next: Sequence(1) };
        assert_eq!(login(&mut logins, 0, "ANNA"), accepted);
        assert_eq!((logins.client(0), logins.client(1)), (Some(0), None));
        assert_eq!((logins.poll_trusted(), logins.poll_trusted()), (Some((0, PEER)), None));
        assert_eq!(login(&mut logins, 1, "BERT"), LoginStep::Checking);
        let answer = CheckAnswer { id: 1, place: 1, queue: CheckQueue::Other, is_right: true };
        assert_eq!(logins.handle_checked(NOW, &answer, &mut users), Some(LoginStep::Full));
        assert!(logins.handle_close(0) && !logins.handle_close(1));
        assert_eq!(logins.handle_checked(NOW, &answer, &mut users), None, "its connection is closed");
    }

    #[test]
    fn a_check_that_finds_no_room_is_put_off_and_comes_later() {
        let (mut users, mut logins, mut checks) = (users(), logins(), Checks::default());
        let login = request("BERT", "secret");
        (0..3).for_each(|place| logins.handle_connection(NOW, place, PEER + place as u32));
        let steps = [0, 1, 2].map(|place| {
            logins.handle_login(NOW, place, PEER + place as u32, &login, &mut users, &mut checks)
        });
        assert_eq!(steps, [LoginStep::Checking, LoginStep::Checking, LoginStep::PutOff]);
        assert_eq!(logins.handle_timeout(NOW, 0, &mut users, &mut checks), None, "it is being checked");
        checks.queues.clear();
        let later = logins.handle_timeout(NOW, 2, &mut users, &mut checks);
        assert_eq!((later, &checks.queues[..]), (Some(LoginStep::Checking), &[CheckQueue::Other][..]));
    }

    #[test]
    fn wrong_passwords_and_unknown_names_are_rejected_and_delayed() {
        let (mut users, mut logins, mut checks) = (users(), logins(), Checks::default());
        logins.handle_connection(NOW, 0, PEER);
        let wrong = logins.handle_login(NOW, 0, PEER, &request("ANNA", "x"), &mut users, &mut checks);
        assert_eq!(wrong, LoginStep::Wrong { user: Some(0) });
        let unknown = logins.handle_login(NOW, 0, PEER, &request("EVE", "x"), &mut users, &mut checks);
        assert_eq!(unknown, LoginStep::Checking, "as a name with a hash");
        let answer = CheckAnswer { id: 1, place: 0, queue: CheckQueue::Other, is_right: false };
        let settled = logins.handle_checked(NOW, &answer, &mut users);
        assert_eq!(settled, Some(LoginStep::Wrong { user: None }));
    }
}

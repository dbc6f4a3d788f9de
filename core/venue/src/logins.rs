//! Logins at a port: password checks, bounds on connections, and responses to logins.

use tickpath_admission::{LoginGuard, PreLogin, PreLoginLimits};
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest, Password, Session, Username};
use tickpath_types::{Nanos, Sequence};

/// The state of a password check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The check is done.
    Done {
        /// True when the password is the user's.
        is_right: bool,
    },
    /// The check is pending; its result is reported under this number.
    Waiting(u64),
    /// The check was not accepted, because the queue is full.
    Full,
}

/// Checks of passwords against hashes, each taking milliseconds.
pub trait PasswordChecks {
    /// True when some user's password is a hash: refusing an unknown name must then take as long as a check.
    fn is_used(&self) -> bool;
    /// Queues a password check for the connection `place`: against the hash of `user` or, if `None`, against
    /// a hash that no password matches. Trusted logins, whose user has logged in from that peer before, have
    /// a separate queue, so that guesses do not delay them.
    fn submit(&mut self, place: usize, user: Option<usize>, is_trusted: bool, password: &Password) -> Check;
}

/// The users that may log in at a port, identified by index.
pub trait LoginUsers {
    /// The user of this name, if any.
    fn find(&self, name: &Username) -> Option<usize>;
    /// The password of a user.
    fn password(&self, user: usize) -> &crate::Password;
    /// Logs in an authenticated user on the connection at `place`; returns the sequence number of the first
    /// message to send. `is_full` is true when the port has its maximum number of clients.
    ///
    /// # Errors
    /// [`Denial`] when the user is not logged in.
    fn log_in(
        &mut self,
        now: Nanos,
        place: usize,
        user: usize,
        login: &LoginRequest,
        is_full: bool,
    ) -> Result<Sequence, Denial>;
}

/// The reason why an authenticated user is not logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The login is rejected.
    Rejected(LoginRejectReason),
    /// The port is full for now: the connection is closed without a rejection, because clients take a
    /// rejection as final.
    Full,
    /// The login cannot be answered yet: retry it. The connection's login timeout is counted from this time.
    Busy(Nanos),
}

/// True when a login names `session`, or leaves the session blank to accept any.
#[must_use]
pub fn is_for_session(login: &LoginRequest, session: Session) -> bool {
    login.session == Session::BLANK || login.session == session
}

/// The progress of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// The password is being checked.
    Checking,
    /// The password check is postponed: this user and peer sent wrong passwords, or the check queue is full.
    Postponed,
    /// The password is right, but the login is to be retried, as for [`Denial::Busy`].
    Busy,
    /// The password is wrong, or the name unknown; the login is rejected.
    Wrong {
        /// The user with that name, if it exists.
        user: Option<usize>,
    },
    /// The login is rejected.
    Rejected(LoginRejectReason),
    /// The connection is to be closed without a response, as for [`Denial::Full`].
    Full,
    /// The user is logged in.
    Accepted {
        /// Index of the user.
        user: usize,
        /// Sequence number of the first message to send.
        next: Sequence,
    },
}

/// A login that has not been answered yet.
struct PendingLogin<P> {
    request: LoginRequest,
    peer: P,
    /// The user with that name, if it exists.
    user: Option<usize>,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    /// The password is being checked; the check has this number.
    Checked(u64),
    /// The password check is postponed to this time.
    Postponed(Nanos),
    /// The password is right, and the login waits to be retried.
    Right,
}

/// The connections of one port, before and after login, by index; `P` is the address of a peer.
///
/// A client cannot tell an unknown name from a wrong password, not even by the time until its rejection.
pub struct Logins<P> {
    clients_max: usize,
    /// Connections that have not logged in yet.
    pre_login: PreLogin<P>,
    guard: LoginGuard<P>,
    /// Unanswered logins, indexed by connection.
    pending: Box<[Option<PendingLogin<P>>]>,
    /// Connection indexes of the logged-in clients, in the order of their logins.
    clients: Vec<usize>,
    /// The latest pair of user and peer that became trusted; `None` once polled.
    new_trust: Option<(usize, P)>,
}

impl<P: Copy + Eq> Logins<P> {
    /// Creates the login state for at most `clients_max` logged-in clients.
    #[must_use]
    pub fn new(clients_max: usize, limits: PreLoginLimits, guard: LoginGuard<P>) -> Logins<P> {
        Logins {
            clients_max,
            pre_login: PreLogin::new(limits),
            guard,
            pending: (0..clients_max + limits.connections).map(|_| None).collect(),
            clients: Vec::with_capacity(clients_max),
            new_trust: None,
        }
    }

    /// Registers a new connection.
    pub fn handle_connection(&mut self, now: Nanos, place: usize, peer: P) {
        self.pre_login.admit(now, place as u64, peer);
    }

    /// Handles a closed connection; true when it was logged in.
    pub fn handle_close(&mut self, place: usize) -> bool {
        self.pre_login.remove(place as u64);
        self.pending[place] = None;
        let count = self.clients.len();
        self.clients.retain(|client| *client != place);
        self.clients.len() < count
    }

    /// The connection to close before a new one of `peer` is accepted; `None` if there is capacity.
    #[must_use]
    pub fn victim(&self, peer: P) -> Option<usize> {
        self.pre_login.victim(peer).map(|place| place as usize)
    }

    /// A connection whose time to log in has expired, if any.
    #[must_use]
    pub fn poll_expired(&self, now: Nanos) -> Option<usize> {
        self.pre_login.expired(now).map(|place| place as usize)
    }

    /// Takes the latest pair of user and peer that became trusted, to be saved in the file of trusted logins.
    pub fn poll_trusted(&mut self) -> Option<(usize, P)> {
        self.new_trust.take()
    }

    /// Resets a user's count of wrong passwords, for all peers.
    pub fn forgive(&mut self, user: usize) {
        self.guard.forgive(user);
    }

    /// Handles a login: starts the check of its password, or postpones it.
    pub fn handle_login(
        &mut self,
        now: Nanos,
        place: usize,
        peer: P,
        request: &LoginRequest,
        users: &mut impl LoginUsers,
        checks: &mut impl PasswordChecks,
    ) -> LoginStep {
        let user = users.find(&request.username);
        let delay = self.guard.delay(now, user, peer);
        let stage = Stage::Postponed(now + delay);
        let login = PendingLogin { request: *request, peer, user, stage };
        if delay == Nanos::ZERO {
            return self.check(now, place, login, users, checks);
        }
        self.keep(place, login, now + delay);
        LoginStep::Postponed
    }

    /// Continues a login whose password check is done; `None` when its connection was closed.
    pub fn handle_checked(
        &mut self,
        now: Nanos,
        place: usize,
        check: u64,
        is_right: bool,
        users: &mut impl LoginUsers,
    ) -> Option<LoginStep> {
        let is_it = |login: &mut PendingLogin<P>| matches!(login.stage, Stage::Checked(id) if id == check);
        let login = self.pending.get_mut(place)?.take_if(is_it)?;
        Some(self.on_password_checked(now, place, login, is_right, users))
    }

    /// Checks a postponed password when due, or retries a login that had to wait; `None` if not due.
    pub fn handle_timeout(
        &mut self,
        now: Nanos,
        place: usize,
        users: &mut impl LoginUsers,
        checks: &mut impl PasswordChecks,
    ) -> Option<LoginStep> {
        let is_due = |login: &mut PendingLogin<P>| match login.stage {
            Stage::Checked(_) => false,
            Stage::Postponed(at) => now >= at,
            Stage::Right => true,
        };
        let login = self.pending[place].take_if(is_due)?;
        Some(match login.stage {
            Stage::Right => self.log_in(now, place, login, users),
            _ => self.check(now, place, login, users, checks),
        })
    }

    fn check(
        &mut self,
        now: Nanos,
        place: usize,
        login: PendingLogin<P>,
        users: &mut impl LoginUsers,
        checks: &mut impl PasswordChecks,
    ) -> LoginStep {
        let PendingLogin { request, peer, user, .. } = login;
        let known = user.map(|user| users.password(user).matches_at_once(&request.password));
        let check = match known {
            Some(Some(is_right)) => Check::Done { is_right },
            None if !checks.is_used() => Check::Done { is_right: false },
            _ => checks.submit(place, user, self.guard.is_trusted(user, peer), &request.password),
        };
        let (stage, step) = match check {
            Check::Done { is_right } => return self.on_password_checked(now, place, login, is_right, users),
            Check::Waiting(id) => (Stage::Checked(id), LoginStep::Checking),
            Check::Full => (Stage::Postponed(now), LoginStep::Postponed),
        };
        self.keep(place, PendingLogin { stage, ..login }, now);
        step
    }

    fn keep(&mut self, place: usize, login: PendingLogin<P>, at: Nanos) {
        let is_trusted = self.guard.is_trusted(login.user, login.peer);
        self.pre_login.postpone_login(place as u64, login.user, at, is_trusted);
        self.pending[place] = Some(login);
    }

    /// Handles the result of a password check.
    fn on_password_checked(
        &mut self,
        now: Nanos,
        place: usize,
        login: PendingLogin<P>,
        is_right: bool,
        users: &mut impl LoginUsers,
    ) -> LoginStep {
        // Count the login timeout from now: the login is still to be answered, and may have to be retried.
        self.pre_login.postpone_login(place as u64, login.user, now, is_right);
        let Some(user) = login.user.filter(|_| is_right) else {
            return LoginStep::Wrong { user: login.user };
        };
        if self.guard.record_success(user, login.peer) {
            self.new_trust = Some((user, login.peer));
        }
        self.log_in(now, place, login, users)
    }

    fn log_in(
        &mut self,
        now: Nanos,
        place: usize,
        login: PendingLogin<P>,
        users: &mut impl LoginUsers,
    ) -> LoginStep {
        let Some(user) = login.user else { return LoginStep::Wrong { user: None } };
        let is_full = self.clients.len() >= self.clients_max;
        match users.log_in(now, place, user, &login.request, is_full) {
            Ok(next) => {
                self.pre_login.remove(place as u64);
                self.clients.push(place);
                LoginStep::Accepted { user, next }
            }
            Err(Denial::Rejected(reason)) => LoginStep::Rejected(reason),
            Err(Denial::Full) => LoginStep::Full,
            Err(Denial::Busy(until)) => {
                self.pre_login.postpone_login(place as u64, Some(user), until, true);
                self.pending[place] = Some(PendingLogin { stage: Stage::Right, ..login });
                LoginStep::Busy
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_admission::LoginPolicy;
    use tickpath_types::InstrumentTable;

    use super::*;
    use crate::user_settings::UserSettings;
    use crate::users::Users;

    const NOW: Nanos = Nanos::from_secs(100);
    const PEER: u32 = 7;

    /// Password checks: the first two stay pending until the test answers them; later ones return `Full`.
    #[derive(Default)]
    struct Checks {
        trusted: Vec<bool>,
    }

    impl PasswordChecks for Checks {
        fn is_used(&self) -> bool {
            true
        }

        fn submit(&mut self, _: usize, _: Option<usize>, is_trusted: bool, _: &Password) -> Check {
            self.trusted.push(is_trusted);
            let count = self.trusted.len() as u64;
            if count <= 2 { Check::Waiting(count) } else { Check::Full }
        }
    }

    /// ANNA has a plain-text password, BERT a hashed one.
    fn users() -> Users {
        let anna = UserSettings::new("ANNA", crate::Password::plain("secret"));
        let settings = [anna, UserSettings::new("BERT", crate::Password::of_hash("$argon2id$"))];
        Users::for_test(&settings, &InstrumentTable::new(&[]))
    }

    fn logins() -> Logins<u32> {
        Logins::new(1, PreLoginLimits::default(), LoginGuard::new(LoginPolicy::default(), 2))
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
    fn a_full_port_refuses_the_next_client() {
        let (mut users, mut logins, mut checks) = (users(), logins(), Checks::default());
        (0..2).for_each(|place| logins.handle_connection(NOW, place, PEER));
        let mut login = |logins: &mut Logins<u32>, place, name| {
            logins.handle_login(NOW, place, PEER, &request(name, "secret"), &mut users, &mut checks)
        };
        let accepted = LoginStep::Accepted { user: 0, next: Sequence(1) };
        assert_eq!(login(&mut logins, 0, "ANNA"), accepted);
        assert_eq!(logins.clients, [0]);
        assert_eq!((logins.poll_trusted(), logins.poll_trusted()), (Some((0, PEER)), None));
        assert_eq!(login(&mut logins, 1, "BERT"), LoginStep::Checking);
        assert_eq!(logins.handle_checked(NOW, 1, 1, true, &mut users), Some(LoginStep::Full));
        assert!(logins.handle_close(0) && !logins.handle_close(1));
        assert_eq!(logins.handle_checked(NOW, 1, 1, true, &mut users), None, "its connection is closed");
    }

    #[test]
    fn a_check_without_capacity_is_postponed() {
        let (mut users, mut logins, mut checks) = (users(), logins(), Checks::default());
        let login = request("BERT", "secret");
        (0..3).for_each(|place| logins.handle_connection(NOW, place, PEER + place as u32));
        let steps = [0, 1, 2].map(|place| {
            logins.handle_login(NOW, place, PEER + place as u32, &login, &mut users, &mut checks)
        });
        assert_eq!(steps, [LoginStep::Checking, LoginStep::Checking, LoginStep::Postponed]);
        assert_eq!(logins.handle_timeout(NOW, 0, &mut users, &mut checks), None, "it is being checked");
        checks.trusted.clear();
        let later = logins.handle_timeout(NOW, 2, &mut users, &mut checks);
        assert_eq!((later, &checks.trusted[..]), (Some(LoginStep::Checking), &[false][..]));
    }

    #[test]
    fn wrong_passwords_and_unknown_names_are_rejected_and_delayed() {
        let (mut users, mut logins, mut checks) = (users(), logins(), Checks::default());
        logins.handle_connection(NOW, 0, PEER);
        let wrong = logins.handle_login(NOW, 0, PEER, &request("ANNA", "x"), &mut users, &mut checks);
        assert_eq!(wrong, LoginStep::Wrong { user: Some(0) });
        let unknown = logins.handle_login(NOW, 0, PEER, &request("EVE", "x"), &mut users, &mut checks);
        assert_eq!(unknown, LoginStep::Checking, "as a name with a hash");
        let rejected = logins.handle_checked(NOW, 0, 1, false, &mut users);
        assert_eq!(rejected, Some(LoginStep::Wrong { user: None }));
    }
}

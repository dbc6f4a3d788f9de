//! The users of order entry and their sessions.

use std::ops::{Deref, DerefMut};

use arrayvec::ArrayVec;
use tickpath_faults::failpoint;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest, Session, Username};
use tickpath_types::{
    InstrumentId, InstrumentTable, Nanos, RejectReason, SelfTradePrevention, Sequence, SessionId, UserName,
};

use crate::day::commands_max;
use crate::entitlements::{Entitlements, ReplayedUser};
use crate::log_command::{LogCommandKind, VenueCommandKind};
use crate::logins::{Denial, LoginUsers, is_for_session};
use crate::message_log::SessionLog;
use crate::password::Password;
use crate::request_filter::RequestFilter;
use crate::user_limits::UserLimits;
use crate::user_settings::UserSettings;

/// A user of the venue, with its order entry session.
pub struct User {
    /// The name as configured.
    pub name: String,
    /// The password.
    pub password: Password,
    may_enter_orders: bool,
    /// Id of the user's session in the log.
    pub session: SessionId,
    /// Messages to the user; the newest are kept.
    pub log: SessionLog,
    /// Index of the logged-in connection; `None` while disconnected.
    pub connection: Option<usize>,
    /// The user's current limits.
    pub limits: UserLimits,
    /// Checks of the user's requests before they are logged.
    pub filter: RequestFilter,
    /// Time from disconnect until open orders are cancelled; `None` keeps them.
    pub cancel_on_disconnect: Option<Nanos>,
    /// Time at which open orders will be cancelled; `None` when no cancel is pending.
    pub cancel_at: Option<Nanos>,
}

/// Maximum number of log commands that record a new user.
const NEW_USER_COMMANDS_MAX: usize = 5;

// A user is added once the batch has capacity for one phase's commands, so those of a user must fit too.
const _: () = assert!(NEW_USER_COMMANDS_MAX <= commands_max(InstrumentId(0)));

/// A new user, allocated by another thread so that the order server adds it without allocating.
pub struct NewUser {
    /// The user to add.
    pub user: User,
    /// The log commands that record the user.
    pub commands: ArrayVec<LogCommandKind, NEW_USER_COMMANDS_MAX>,
}

impl NewUser {
    /// Creates a user with a new session.
    #[must_use]
    pub fn new(
        settings: &UserSettings,
        name: UserName,
        session: SessionId,
        log: SessionLog,
        instruments: &InstrumentTable,
    ) -> NewUser {
        let before = ReplayedUser::default();
        let entitlements = Entitlements::new(settings, &before);
        let strategy = settings.self_trade_prevention;
        let prevention = (strategy != SelfTradePrevention::None)
            .then_some(CommandKind::SetSelfTradePrevention { strategy, account: session }.into());
        NewUser {
            user: User::new(settings, session, &entitlements, log, instruments),
            commands: std::iter::once(VenueCommandKind::AddUser { name }.into())
                .chain(entitlements.commands(&before))
                .chain(prevention)
                .collect(),
        }
    }
}

impl User {
    /// Creates a user with these initial entitlements.
    fn new(
        settings: &UserSettings,
        session: SessionId,
        entitlements: &Entitlements,
        log: SessionLog,
        instruments: &InstrumentTable,
    ) -> User {
        User {
            name: settings.name.clone(),
            password: settings.password.clone(),
            may_enter_orders: settings.ports.order_entry,
            session,
            log,
            connection: None,
            limits: entitlements.limits,
            filter: entitlements.filter(settings.instruments.as_deref(), instruments),
            cancel_on_disconnect: settings.cancel_on_disconnect,
            cancel_at: None,
        }
    }

    /// Registers a logged-in connection, and stops the timer that would cancel open orders.
    pub(crate) fn connect(&mut self, connection: usize) {
        self.connection = Some(connection);
        failpoint!(CancelWhileConnected => return);
        self.cancel_at = None;
    }
}

const NEVER: Nanos = Nanos(u64::MAX);

/// All users, in the order of their sessions.
pub struct Users {
    session: Session,
    /// The users in session order; the capacity is the maximum number of users.
    users: Vec<User>,
    /// Earliest time at which a user's open orders may have to be cancelled; `NEVER` if no timer runs.
    next_cancel: Nanos,
}

impl Users {
    /// Creates the users with sessions 1, 2, 3 ... in order, each with its log and its entitlements.
    /// Allocates for `max` users. A login must name `session` or leave it blank.
    pub fn new(
        session: Session,
        settings: &[UserSettings],
        entitlements: &[Entitlements],
        logs: impl IntoIterator<Item = SessionLog>,
        instruments: &InstrumentTable,
        max: usize,
    ) -> Users {
        let mut users = Vec::with_capacity(max.max(settings.len()));
        let sessions = (1..).map(SessionId);
        for (((user, entitlements), log), id) in settings.iter().zip(entitlements).zip(logs).zip(sessions) {
            users.push(User::new(user, id, entitlements, log, instruments));
        }
        Users { session, users, next_cancel: NEVER }
    }

    /// Users of the session TODAY without messages; capacity for one more user and for two messages per user.
    #[cfg(test)]
    pub(crate) fn for_test(settings: &[UserSettings], table: &InstrumentTable) -> Users {
        let entitled = |user| Entitlements::new(user, &ReplayedUser::default());
        let entitlements: Vec<_> = settings.iter().map(entitled).collect();
        let logs = settings.iter().map(|_| SessionLog::new(2));
        let today = Session::new("TODAY").expect("a name");
        Users::new(today, settings, &entitlements, logs, table, settings.len() + 1)
    }

    /// Adds the user of the next session. There must be capacity for it.
    pub fn add(&mut self, user: User) {
        debug_assert!(self.users.len() < self.users.capacity(), "the registry has no more room than this");
        self.users.push(user);
    }

    /// Handles the close of a user's connection; starts the timer, if any, that cancels its open orders.
    pub fn log_out(&mut self, place: usize, now: Nanos) {
        let user = &mut self.users[place];
        user.connection = None;
        if let Some(grace) = user.cancel_on_disconnect {
            failpoint!(CancelOnDisconnectForgotten => return);
            let at = now + grace;
            user.cancel_at = Some(at);
            self.next_cancel = self.next_cancel.min(at);
        }
    }

    /// Starts the cancel-on-disconnect timers of users who had messages before the venue's start.
    pub(crate) fn begin_grace(&mut self, now: Nanos) {
        for user in self.users.iter_mut().filter(|user| user.log.next_sequence() > 1) {
            user.cancel_at = user.cancel_on_disconnect.map(|grace| now + grace);
            self.next_cancel = self.next_cancel.min(user.cancel_at.unwrap_or(NEVER));
        }
    }

    /// Earliest time at which a user's open orders may have to be cancelled; `u64::MAX` ns if no timer runs.
    #[inline]
    #[must_use]
    pub fn next_cancel(&self) -> Nanos {
        self.next_cancel
    }

    /// Calls `cancel` for each user whose timer has expired; a later call retries if `cancel` returns false.
    pub(crate) fn poll_absent(&mut self, now: Nanos, mut cancel: impl FnMut(SessionId) -> bool) {
        self.next_cancel = NEVER;
        for user in &mut self.users {
            let Some(at) = user.cancel_at else { continue };
            if at > now || !cancel(user.session) {
                self.next_cancel = self.next_cancel.min(at);
            } else {
                user.cancel_at = None;
            }
        }
    }

    /// Refuses the new orders of all users for this reason; `None` accepts them again.
    pub(crate) fn refuse_new_orders(&mut self, reason: Option<RejectReason>) {
        self.users.iter_mut().for_each(|user| user.filter.set_refusal(reason));
    }

    /// Refuses the new orders of all users until the venue stops.
    pub(crate) fn drain(&mut self) {
        self.users.iter_mut().for_each(|user| user.filter.set_draining());
    }

    /// Index of the user with this session.
    #[must_use]
    pub fn place_of(&self, session: SessionId) -> Option<usize> {
        usize::from(session.0).checked_sub(1).filter(|place| *place < self.users.len())
    }

    /// The user with this session.
    #[inline]
    pub fn of_session(&mut self, session: SessionId) -> Option<&mut User> {
        self.users.get_mut(usize::from(session.0).checked_sub(1)?)
    }
}

/// The users, indexed in session order.
impl Deref for Users {
    type Target = [User];

    #[inline]
    fn deref(&self) -> &[User] {
        &self.users
    }
}

impl DerefMut for Users {
    #[inline]
    fn deref_mut(&mut self) -> &mut [User] {
        &mut self.users
    }
}

impl LoginUsers for Users {
    fn find(&self, name: &Username) -> Option<usize> {
        self.users.iter().position(|user| name.matches(&user.name))
    }

    fn password(&self, user: usize) -> &Password {
        &self.users[user].password
    }

    /// Rejects with `SESSION_NOT_AVAILABLE` if the user is already logged in, if the login names another
    /// session, or if the requested messages are overwritten or do not exist yet.
    fn log_in(
        &mut self,
        _now: Nanos,
        place: usize,
        user: usize,
        login: &LoginRequest,
        is_full: bool,
    ) -> Result<Sequence, Denial> {
        let user = &mut self.users[user];
        if !user.may_enter_orders {
            return Err(Denial::Rejected(LoginRejectReason::NOT_AUTHORIZED));
        }
        let not_available = Denial::Rejected(LoginRejectReason::SESSION_NOT_AVAILABLE);
        if !is_for_session(login, self.session) || user.connection.is_some() {
            return Err(not_available);
        }
        let next = match (login.sequence.0, user.log.next_sequence()) {
            (0, next) => next,
            (from, next) if from == next || user.log.holds(from) => {
                failpoint!(LoginSkipsMessage: from = from + u64::from(from < next));
                from
            }
            _ => return Err(not_available),
        };
        if is_full {
            return Err(Denial::Full);
        }
        user.connect(place);
        Ok(Sequence(next))
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nasdaq::soupbintcp;

    use super::*;
    use crate::user_settings::UserPorts;

    fn login(session: &str, sequence: u64) -> LoginRequest {
        LoginRequest {
            username: Username::new("MAKER").unwrap(),
            password: soupbintcp::Password::new("secret").unwrap(),
            session: Session::new(session).unwrap(),
            sequence: Sequence(sequence),
            heartbeat_timeout: None,
        }
    }

    #[test]
    fn logins_are_accepted_or_denied_with_a_reason() {
        let maker = UserSettings::new("MAKER", Password::plain("secret"));
        let clerk = UserSettings {
            ports: UserPorts { order_entry: false, drop_copy: true, deribit: false },
            ..UserSettings::new("CLERK", Password::plain("secret"))
        };
        let settings = [maker, clerk];
        let mut users = Users::for_test(&settings, &InstrumentTable::new(&[]));
        let found = |name| users.find(&Username::new(name).unwrap());
        assert_eq!([found("maker"), found("CLERK"), found("OTHER")], [Some(0), Some(1), None]);
        for byte in 1..=3 {
            users[0].log.append(&[byte]);
        }
        let mut verdict = |place: usize, session, sequence, is_full| {
            let verdict = users.log_in(Nanos(1), 7, place, &login(session, sequence), is_full);
            assert_eq!(users[place].connection.take().is_some(), verdict.is_ok());
            verdict
        };
        let not_available = Err(Denial::Rejected(LoginRejectReason::SESSION_NOT_AVAILABLE));
        assert_eq!(verdict(0, "", 0, false), Ok(Sequence(4)), "new messages alone");
        assert_eq!(verdict(0, "TODAY", 2, false), Ok(Sequence(2)));
        assert_eq!(verdict(0, "TODAY", 2, true), Err(Denial::Full));
        assert_eq!(verdict(0, "", 4, false), Ok(Sequence(4)));
        assert_eq!(verdict(0, "", 1, true), not_available, "overwritten");
        assert_eq!(verdict(0, "", 5, false), not_available, "not there yet");
        assert_eq!(verdict(0, "MONDAY", 2, false), not_available);
        let other_port = Err(Denial::Rejected(LoginRejectReason::NOT_AUTHORIZED));
        assert_eq!(verdict(1, "", 0, false), other_port);
        users[0].connection = Some(7);
        assert_eq!(users.log_in(Nanos(1), 8, 0, &login("", 2), false), not_available, "logged in already");
    }
}

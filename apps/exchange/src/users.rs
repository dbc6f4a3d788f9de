//! Who may log in, and what was sent to them.

use arrayvec::ArrayVec;
use tickpath_faults::{Fault, is_planted};
use tickpath_matching::CommandKind;
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest, Session, Username};
use tickpath_types::{
    InstrumentId, InstrumentTable, Nanos, SelfTradePrevention, Sequence, SessionId, UserName,
};

use crate::day::commands_max;
use crate::gate::{Gate, UserLimits};
use crate::login::{CheckerThread, Password};
use crate::session_log::SessionLog;
use crate::standing::{Standing, UserFacts};

/// One user of the venue: one session of order entry.
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Password,
    may_enter_orders: bool,
    /// The session that the log knows the user by.
    pub(crate) session: SessionId,
    /// Everything sent to the user.
    pub(crate) log: SessionLog,
    /// The connection that is logged in.
    pub(crate) connection: Option<usize>,
    /// What the user may do at most, at present.
    pub(crate) limits: UserLimits,
    /// What of the user's requests is refused before the log.
    pub(crate) gate: Gate,
    /// How long after the connection is gone the user's open orders are cancelled, if they are.
    pub(crate) cancel_on_disconnect: Option<Nanos>,
    /// When they are, while the connection is gone.
    pub(crate) cancel_at: Option<Nanos>,
}

/// Which doors a user may come in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doors {
    /// Order entry.
    pub order_entry: bool,
    /// The executions of users, as copies.
    pub drop_copy: bool,
    /// The Deribit front, and no other door that takes orders: their numbers would be used twice.
    pub deribit: bool,
}

impl Default for Doors {
    /// Order entry alone.
    fn default() -> Self {
        Doors { order_entry: true, drop_copy: false, deribit: false }
    }
}

/// A user as the configuration describes it.
#[derive(Clone, Debug)]
pub struct UserSettings {
    /// At most 6 characters.
    pub name: String,
    /// At most 10 characters, or the hash of those.
    pub password: Password,
    /// Where the user may log in.
    pub doors: Doors,
    /// What the user may trade; everything when `None`.
    pub instruments: Option<Vec<InstrumentId>>,
    /// What the user may do at most.
    pub limits: UserLimits,
    /// What happens when an order of the user would trade with another of its own.
    pub self_trade_prevention: SelfTradePrevention,
    /// The open orders are cancelled so long after the connection is gone, unless the user is back by then; they
    /// stay when `None`.
    pub cancel_on_disconnect: Option<Nanos>,
    /// Names of the users whose drop copies this one gets; everybody's when `None`.
    pub copies_of: Option<Vec<String>>,
}

impl UserSettings {
    /// A user that may trade everything without limits of its own.
    pub fn new(name: impl Into<String>, password: Password) -> UserSettings {
        UserSettings {
            name: name.into(),
            password,
            doors: Doors::default(),
            instruments: None,
            limits: UserLimits::default(),
            self_trade_prevention: SelfTradePrevention::None,
            cancel_on_disconnect: None,
            copies_of: None,
        }
    }
}

/// Commands that tell the log of a user at most.
const NEW_USER_COMMANDS_MAX: usize = 5;

// What whoever runs the venue commands at once has that much room at least.
const _: () = assert!(NEW_USER_COMMANDS_MAX <= commands_max(InstrumentId(0)));

/// A user on its way to the order server, which adds it without an allocation of its own.
pub(crate) struct NewUser {
    pub(crate) user: User,
    /// What the log is told of it.
    pub(crate) commands: ArrayVec<CommandKind, NEW_USER_COMMANDS_MAX>,
    /// The thread that checks hashed passwords, if this is the first user who has one.
    pub(crate) checker: Option<CheckerThread>,
}

impl NewUser {
    /// The user of a session that had none, under the name of its settings.
    pub(crate) fn new(
        settings: &UserSettings,
        name: UserName,
        session: SessionId,
        log: SessionLog,
        instruments: &InstrumentTable,
    ) -> NewUser {
        let before = UserFacts::default();
        let standing = Standing::new(settings, &before);
        let strategy = settings.self_trade_prevention;
        let prevention = (strategy != SelfTradePrevention::None)
            .then_some(CommandKind::SetSelfTradePrevention { strategy, account: session });
        NewUser {
            user: User::new(settings, session, &standing, log, instruments),
            commands: std::iter::once(CommandKind::AddUser { name })
                .chain(standing.commands(&before))
                .chain(prevention)
                .collect(),
            checker: None,
        }
    }
}

impl User {
    /// What it may do at first is in `standing`.
    fn new(
        settings: &UserSettings,
        session: SessionId,
        standing: &Standing,
        log: SessionLog,
        instruments: &InstrumentTable,
    ) -> User {
        User {
            name: settings.name.clone(),
            password: settings.password.clone(),
            may_enter_orders: settings.doors.order_entry,
            session,
            log,
            connection: None,
            limits: standing.limits,
            gate: standing.gate(settings.instruments.as_deref(), instruments),
            cancel_on_disconnect: settings.cancel_on_disconnect,
            cancel_at: None,
        }
    }
}

pub(crate) struct Users {
    /// With room for all that there may be.
    users: Vec<User>,
}

impl Users {
    /// Users get the sessions 1, 2, 3 ... in order, and each its log; what they may do at first is in `standings`. There may
    /// be `max` of them.
    pub(crate) fn new(
        settings: &[UserSettings],
        standings: &[Standing],
        logs: impl IntoIterator<Item = SessionLog>,
        instruments: &InstrumentTable,
        max: usize,
    ) -> Users {
        let mut users = Vec::with_capacity(max.max(settings.len()));
        let sessions = (1..).map(SessionId);
        for (((user, standing), log), session) in settings.iter().zip(standings).zip(logs).zip(sessions) {
            users.push(User::new(user, session, standing, log, instruments));
        }
        Users { users }
    }

    /// Adds the user of the next session, for which there is room.
    pub(crate) fn add(&mut self, user: User) {
        debug_assert!(self.users.len() < self.users.capacity(), "the roster has no more room than this");
        self.users.push(user);
    }

    /// The place of the user of this name.
    pub(crate) fn find(&self, name: &Username) -> Option<usize> {
        self.users.iter().position(|user| name.matches(&user.name))
    }

    /// The first message to be sent to a user that has shown its password, or why it may not log in.
    ///
    /// A session is not available when its user is logged in already, when it is not today's, and when the messages
    /// asked for are no longer kept.
    pub(crate) fn admit(
        &self,
        place: usize,
        login: &LoginRequest,
        current: Session,
    ) -> Result<Sequence, LoginRejectReason> {
        let user = &self.users[place];
        if !user.may_enter_orders {
            return Err(LoginRejectReason::NOT_AUTHORIZED);
        }
        let is_current = login.session == Session::BLANK || login.session == current;
        if !is_current || user.connection.is_some() {
            return Err(LoginRejectReason::SESSION_NOT_AVAILABLE);
        }
        let next = user.log.next_sequence();
        match login.sequence.0 {
            0 => Ok(Sequence(next)),
            from if from == next || user.log.holds(from) => {
                let is_short = is_planted(Fault::LoginSkipsMessage) && from < next;
                Ok(Sequence(from + u64::from(is_short)))
            }
            _ => Err(LoginRejectReason::SESSION_NOT_AVAILABLE),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.users.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &User> {
        self.users.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut User> {
        self.users.iter_mut()
    }

    pub(crate) fn get(&self, place: usize) -> &User {
        &self.users[place]
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> &mut User {
        &mut self.users[place]
    }

    /// The user of a session, and its place.
    #[inline]
    pub(crate) fn of_session(&mut self, session: SessionId) -> Option<&mut User> {
        self.users.get_mut(usize::from(session.0).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nasdaq::soupbintcp;

    use super::*;

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
    fn users_are_let_in_or_told_why_not() {
        let maker = UserSettings::new("MAKER", Password::plain("secret"));
        let clerk = UserSettings {
            doors: Doors { order_entry: false, drop_copy: true, deribit: false },
            ..UserSettings::new("CLERK", Password::plain("secret"))
        };
        let settings = [maker, clerk];
        let standings = settings.each_ref().map(|user| Standing::new(user, &UserFacts::default()));
        let table = InstrumentTable::new(&[]);
        let mut users = Users::new(&settings, &standings, [2, 2].map(SessionLog::new), &table, 2);
        let found = |name| users.find(&Username::new(name).unwrap());
        assert_eq!([found("maker"), found("CLERK"), found("OTHER")], [Some(0), Some(1), None]);
        for byte in 1..=3 {
            users.get_mut(0).log.append(|out| {
                out[0] = byte;
                1
            });
        }
        let today = Session::new("TODAY").unwrap();
        let verdict = |place, session, sequence| users.admit(place, &login(session, sequence), today);
        let not_available = Err(LoginRejectReason::SESSION_NOT_AVAILABLE);
        assert_eq!(verdict(0, "", 0), Ok(Sequence(4)), "new messages alone");
        assert_eq!(verdict(0, "TODAY", 2), Ok(Sequence(2)));
        assert_eq!(verdict(0, "", 4), Ok(Sequence(4)));
        assert_eq!(verdict(0, "", 1), not_available, "overwritten");
        assert_eq!(verdict(0, "", 5), not_available, "not there yet");
        assert_eq!(verdict(0, "MONDAY", 2), not_available);
        assert_eq!(verdict(1, "", 0), Err(LoginRejectReason::NOT_AUTHORIZED), "another door");
        users.get_mut(0).connection = Some(7);
        assert_eq!(users.admit(0, &login("", 2), today), not_available, "logged in already");
    }
}

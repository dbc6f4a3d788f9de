//! Who may log in, and what was sent to them.

use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest, Session};
use tickpath_types::{Sequence, SessionId};

use crate::session_log::SessionLog;

/// One user of the venue: one session of order entry.
pub(crate) struct User {
    pub(crate) name: String,
    password: String,
    /// The session that the log knows the user by.
    pub(crate) session: SessionId,
    /// Everything sent to the user.
    pub(crate) log: SessionLog,
    /// The connection that is logged in.
    pub(crate) connection: Option<usize>,
}

/// Name and password of a user, as the configuration gives them.
#[derive(Clone)]
pub struct Credentials {
    /// At most 6 characters.
    pub name: String,
    /// At most 10 characters.
    pub password: String,
}

pub(crate) struct Users {
    users: Vec<User>,
}

impl Users {
    /// Users get the sessions 1, 2, 3 ... in order.
    pub(crate) fn new(credentials: &[Credentials], retained_messages: usize) -> Users {
        let user = |(place, credentials): (usize, &Credentials)| User {
            name: credentials.name.clone(),
            password: credentials.password.clone(),
            session: SessionId(place as u16 + 1),
            log: SessionLog::new(retained_messages),
            connection: None,
        };
        Users { users: credentials.iter().enumerate().map(user).collect() }
    }

    /// The user that logs in and the first message to be sent, or why not.
    ///
    /// A wrong name and a wrong password look the same from outside. A session is not available when its
    /// user is logged in already, when it is not today's, and when the messages asked for are no longer kept.
    pub(crate) fn login(
        &self,
        login: &LoginRequest,
        current: Session,
    ) -> Result<(usize, Sequence), LoginRejectReason> {
        let place = self
            .users
            .iter()
            .position(|user| login.username.matches(&user.name) && login.password.matches(&user.password))
            .ok_or(LoginRejectReason::NOT_AUTHORIZED)?;
        let user = &self.users[place];
        let is_current = login.session == Session::BLANK || login.session == current;
        if !is_current || user.connection.is_some() {
            return Err(LoginRejectReason::SESSION_NOT_AVAILABLE);
        }
        let next = user.log.next_sequence();
        match login.sequence.0 {
            0 => Ok((place, Sequence(next))),
            from if from == next || user.log.holds(from) => Ok((place, Sequence(from))),
            _ => Err(LoginRejectReason::SESSION_NOT_AVAILABLE),
        }
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
    use tickpath_nasdaq::soupbintcp::{Password, Username};

    use super::*;

    fn login(name: &str, password: &str, session: &str, sequence: u64) -> LoginRequest {
        LoginRequest {
            username: Username::new(name).unwrap(),
            password: Password::new(password).unwrap(),
            session: Session::new(session).unwrap(),
            sequence: Sequence(sequence),
            heartbeat_timeout: None,
        }
    }

    #[test]
    fn logins_are_let_in_or_told_why_not() {
        let credentials = Credentials { name: "MAKER".into(), password: "secret".into() };
        let mut users = Users::new(&[credentials], 2);
        for byte in 1..=3 {
            users.get_mut(0).log.append(|out| {
                out[0] = byte;
                1
            });
        }
        let today = Session::new("TODAY").unwrap();
        let verdict =
            |name, password, session, sequence| users.login(&login(name, password, session, sequence), today);
        let not_authorised = Err(LoginRejectReason::NOT_AUTHORIZED);
        let not_available = Err(LoginRejectReason::SESSION_NOT_AVAILABLE);
        assert_eq!(verdict("MAKER", "wrong", "", 1), not_authorised);
        assert_eq!(verdict("OTHER", "secret", "", 1), not_authorised);
        assert_eq!(verdict("maker", "SECRET", "", 0), Ok((0, Sequence(4))), "case does not matter");
        assert_eq!(verdict("MAKER", "secret", "TODAY", 2), Ok((0, Sequence(2))));
        assert_eq!(verdict("MAKER", "secret", "", 4), Ok((0, Sequence(4))));
        assert_eq!(verdict("MAKER", "secret", "", 1), not_available, "overwritten");
        assert_eq!(verdict("MAKER", "secret", "", 5), not_available, "not there yet");
        assert_eq!(verdict("MAKER", "secret", "MONDAY", 2), not_available);
        users.get_mut(0).connection = Some(7);
        assert_eq!(users.login(&login("MAKER", "secret", "", 2), today), not_available, "logged in already");
    }
}

//! Logins of users: their passwords are checked beside the duty cycle.

pub use tickpath_admin::CHECKS_MAX;
use tickpath_admin::PasswordChecker;
use tickpath_gateway_protocol::frame::Password;

use super::UserPassword;

/// The answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckAnswer {
    /// As [submitted](LoginChecker::submit).
    pub id: u64,
    /// The caller, as submitted.
    pub caller: u32,
    /// The user's number, when the password is its own. A wrong name and a wrong password are one answer.
    pub user: Option<u16>,
}

/// Has passwords checked on a thread of its own, which ends when this is dropped. Neither submitting nor taking answers
/// waits or allocates.
pub struct LoginChecker {
    names: Vec<String>,
    /// By the caller and the number of the user.
    checker: PasswordChecker<(u32, Option<u16>)>,
}

impl LoginChecker {
    /// For these users, in the order of their numbers.
    ///
    /// # Errors
    /// The system refused a thread.
    pub fn start(users: Vec<(String, UserPassword)>) -> std::io::Result<LoginChecker> {
        let (names, passwords): (Vec<String>, Vec<UserPassword>) = users.into_iter().unzip();
        let checker = PasswordChecker::start(move |user, password| is_right(&passwords, user, password))?;
        Ok(LoginChecker { names, checker })
    }

    /// The number of a user.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<u16> {
        self.names.iter().position(|known| known == name).and_then(|place| u16::try_from(place).ok())
    }

    /// Has the password of a user that may not be there checked, which takes as long; the number of the check. `None`
    /// when as many wait as may.
    pub fn submit(&mut self, caller: u32, user: &str, password: &Password) -> Option<u64> {
        let user = self.user(user);
        self.checker.submit((caller, user), user.map(usize::from), false, password.expose())
    }

    /// The next answer, if there is one.
    pub fn poll(&mut self) -> Option<CheckAnswer> {
        let checked = self.checker.poll()?;
        let (caller, user) = checked.key;
        Some(CheckAnswer { id: checked.id, caller, user: user.filter(|_| checked.is_right) })
    }

    /// True while answers are to come.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.checker.is_waiting()
    }
}

/// An unknown name takes as long as a user's: it is checked against a hash where there is one.
fn is_right(users: &[UserPassword], user: Option<usize>, guess: &[u8]) -> bool {
    let known = user.and_then(|user| users.get(user));
    let tried = known.or_else(|| users.iter().find(|user| user.is_hashed()));
    tried.is_some_and(|password| password.is(guess)) && known.is_some()
}

#[cfg(test)]
mod tests {
    use tickpath_test_support::until;

    use super::*;
    use crate::users::password::tests::cheap_hash;

    fn checker() -> LoginChecker {
        let user = |name: &str, text: &str| (name.to_owned(), UserPassword::new(text).unwrap());
        LoginChecker::start(vec![user("anna", &cheap_hash("secret")), user("bert", "plain")]).unwrap()
    }

    #[test]
    fn each_password_is_checked_against_its_user_s() {
        let mut checker = checker();
        let cases = [
            ("anna", "secret", Some(0)),
            ("anna", "Secret", None),
            ("bert", "plain", Some(1)),
            ("bert", "secret", None),
            ("carl", "secret", None),
            ("", "", None),
        ];
        for (caller, (user, password, _)) in cases.iter().enumerate() {
            let password = Password::new(password.as_bytes()).unwrap();
            assert!(checker.submit(caller as u32, user, &password).is_some());
        }
        assert_eq!(cases.map(|_| until(|| checker.poll()).user), cases.map(|(_, _, user)| user));
        assert!(!checker.is_waiting());
    }
}

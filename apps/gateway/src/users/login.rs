//! Logins of users, with password checks outside the duty cycle.

pub use tickpath_admin::CHECKS_MAX;
use tickpath_admin::PasswordChecker;
use tickpath_gateway_protocol::frame::Password;

use super::UserPassword;

/// Result of a password check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckAnswer {
    /// Number of the check, as [submitted](LoginChecker::submit).
    pub id: u64,
    /// The caller, as submitted.
    pub caller: u32,
    /// The user's number if the password is correct. Unknown user and wrong password are not distinguished.
    pub user: Option<u16>,
}

/// Checks passwords on a separate thread, which ends when this is dropped. Neither submitting nor polling
/// blocks or allocates.
pub struct LoginChecker {
    names: Vec<String>,
    /// Checker, keyed by the caller and the user's number.
    checker: PasswordChecker<(u32, Option<u16>)>,
}

impl LoginChecker {
    /// Starts the checker for these users, whose indices are their numbers.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(users: Vec<(String, UserPassword)>) -> std::io::Result<LoginChecker> {
        let (names, passwords): (Vec<String>, Vec<UserPassword>) = users.into_iter().unzip();
        let checker = PasswordChecker::start(move |user, password| is_right(&passwords, user, password))?;
        Ok(LoginChecker { names, checker })
    }

    /// Returns the number of a user.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<u16> {
        self.names.iter().position(|known| known == name).and_then(|place| u16::try_from(place).ok())
    }

    /// Submits a password for checking, which takes equally long if the user does not exist. Returns the
    /// check's number; `None` if the queue is full.
    pub fn submit(&mut self, caller: u32, user: &str, password: &Password) -> Option<u64> {
        let user = self.user(user);
        self.checker.submit((caller, user), user.map(usize::from), false, password.expose())
    }

    /// Returns the next result, if any.
    pub fn poll(&mut self) -> Option<CheckAnswer> {
        let checked = self.checker.poll()?;
        let (caller, user) = checked.key;
        Some(CheckAnswer { id: checked.id, caller, user: user.filter(|_| checked.is_right) })
    }

    /// Whether results are pending.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.checker.is_waiting()
    }
}

/// Checks a password; takes as long for an unknown name, which is checked against any hash there is.
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

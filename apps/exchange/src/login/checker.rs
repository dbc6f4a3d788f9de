//! Password checks of order entry logins; another thread checks hashed passwords.

use tickpath_admin::{CheckResult, PasswordChecker};
use tickpath_lockfree::wake::Waker;
use tickpath_nasdaq::soupbintcp::Password;
use tickpath_venue::{Check, PasswordChecks, UserRegistry};

use super::password::{UNKNOWN_HASH, has_hash};

/// The thread that compares passwords with the users' hashes. It identifies a login by its connection index.
pub(crate) type HashChecker = PasswordChecker<usize>;

/// Starts the thread that checks passwords of the users in the registry and of those added later.
///
/// # Errors
/// The system could not start a thread.
pub(crate) fn start_hash_checker(users: UserRegistry) -> std::io::Result<HashChecker> {
    PasswordChecker::start(move |user, password| is_right(&users, user, password))
}

/// True if `password`, lower-case and padded, is that of `user`; without a user, false after an equal time.
fn is_right(users: &UserRegistry, user: Option<usize>, password: &[u8]) -> bool {
    let hash = user.and_then(|user| users.get(user)?.settings.password.hash());
    has_hash(password, hash.unwrap_or(UNKNOWN_HASH)) && hash.is_some()
}

/// Checks passwords against the users' hashes on the calling thread. Too slow for a duty cycle.
pub(crate) struct HashChecks(pub(crate) UserRegistry);

impl PasswordChecks for HashChecks {
    fn is_used(&self) -> bool {
        self.0.has_hashes()
    }

    fn submit(&mut self, _: usize, user: Option<usize>, _: bool, password: &Password) -> Check {
        Check::Done { is_right: is_right(&self.0, user, &password.to_lowercase()) }
    }
}

/// Passes passwords to the [`HashChecker`] thread, which is started for the first user with a hash.
pub(crate) struct LoginChecker {
    checker: Option<HashChecker>,
    /// Wakes the thread that polls for results.
    waker: Option<Waker>,
}

impl LoginChecker {
    /// Creates the checker; starts its thread if any of these users has a hash.
    ///
    /// # Errors
    /// The system could not start a thread.
    pub(crate) fn start(users: &UserRegistry) -> std::io::Result<LoginChecker> {
        let checker = users.has_hashes().then(|| start_hash_checker(users.clone())).transpose()?;
        Ok(LoginChecker { checker, waker: None })
    }

    /// Sets the thread that was started for the first user with a hash.
    pub(crate) fn attach(&mut self, checker: HashChecker) {
        debug_assert!(self.checker.is_none(), "only the first user with a hash attaches it");
        if let Some(waker) = &self.waker {
            checker.wake_by(waker);
        }
        self.checker = Some(checker);
    }

    /// Makes each later result wake the thread of `waker`.
    pub(crate) fn wake_by(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
        if let Some(checker) = &self.checker {
            checker.wake_by(waker);
        }
    }

    /// True while a submitted password has no result yet.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.checker.as_ref().is_some_and(PasswordChecker::is_waiting)
    }

    /// Returns the next result, if any.
    pub(crate) fn poll(&mut self) -> Option<CheckResult<usize>> {
        self.checker.as_mut()?.poll()
    }
}

impl PasswordChecks for LoginChecker {
    fn is_used(&self) -> bool {
        self.checker.is_some()
    }

    fn submit(&mut self, place: usize, user: Option<usize>, is_trusted: bool, password: &Password) -> Check {
        let checker = self.checker.as_mut();
        let id = checker.and_then(|it| it.submit(place, user, is_trusted, &password.to_lowercase()));
        id.map_or(Check::Full, Check::Waiting)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_test_support::until;
    use tickpath_venue::UserSettings;

    use super::*;
    use crate::login::hashed_password;

    /// A hash of `secret` that is cheap to check.
    fn cheap_hash() -> String {
        use argon2::password_hash::PasswordHasher;
        let params = argon2::Params::new(8, 1, 1, None).unwrap();
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        argon2.hash_password(b"secret").unwrap().to_string()
    }

    /// Returns a registry of users with these hashes, or a plain password for `None`, that can take one more.
    fn registry(hashes: &[Option<String>]) -> UserRegistry {
        let password = |hash: &Option<String>| match hash {
            Some(hash) => hashed_password(hash).unwrap(),
            None => tickpath_venue::Password::plain("secret"),
        };
        let user = |(place, hash)| UserSettings::new(format!("U{place}"), password(hash));
        let users: Vec<UserSettings> = hashes.iter().enumerate().map(user).collect();
        UserRegistry::new(&users, users.len() + 1)
    }

    /// Checks each password against the hash of its user, in order; returns the results.
    fn checked<const N: usize>(checker: &mut LoginChecker, logins: [(Option<usize>, &str); N]) -> [bool; N] {
        let ids = logins.map(|(user, text)| checker.submit(9, user, false, &Password::new(text).unwrap()));
        ids.map(|id| {
            let answer = until(|| checker.poll());
            assert_eq!((Check::Waiting(answer.id), answer.key, answer.is_trusted), (id, 9, false));
            answer.is_right
        })
    }

    #[test]
    fn passwords_are_checked_in_order_against_the_user_s_hash() {
        let mut checker = LoginChecker::start(&registry(&[None, Some(cheap_hash())])).unwrap();
        let logins = [(Some(1), "SECRET"), (Some(1), "wrong"), (None, "secret"), (None, "*unknown*")];
        assert_eq!(checked(&mut checker, logins), [true, false, false, false]);
    }

    #[test]
    fn without_hashes_no_thread_runs() {
        let mut checker = LoginChecker::start(&registry(&[None])).unwrap();
        assert!(!checker.is_used());
        assert_eq!(checker.submit(0, Some(0), false, &Password::new("x").unwrap()), Check::Full);
        assert_eq!(checker.poll(), None);
    }

    #[test]
    fn an_added_user_with_a_hash_starts_the_thread() {
        let users = registry(&[None]);
        let mut checker = LoginChecker::start(&users).unwrap();
        let thread = start_hash_checker(users.clone()).unwrap();
        let hashed = hashed_password(&cheap_hash()).unwrap();
        users.add(UserSettings::new("LATER", hashed)).unwrap();
        checker.attach(thread);
        assert!(checker.is_used());
        let logins = [(Some(1), "secret"), (Some(1), "wrong"), (Some(0), "secret")];
        assert_eq!(checked(&mut checker, logins), [true, false, false]);
    }
}

//! Password checks outside the duty cycle, because a check against a hash takes milliseconds.

use std::time::Duration;

use tickpath_agent::{BackgroundThread, StopSignal, Waker};
use tickpath_lockfree::spsc;

/// Maximum number of unfinished checks. It applies separately to trusted logins and to all others;
/// [`PasswordChecker::submit`] refuses a check beyond it.
pub const CHECKS_MAX: usize = 64;
/// Maximum password length, in bytes.
const PASSWORD_LEN_MAX: usize = 64;
/// Maximum time that the thread sleeps unless a check wakes it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A password to check.
#[derive(Clone, Copy)]
struct Check<K> {
    id: u64,
    key: K,
    user: Option<usize>,
    is_trusted: bool,
    len: u8,
    password: [u8; PASSWORD_LEN_MAX],
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckResult<K> {
    /// Id of the check.
    pub id: u64,
    /// The caller's key, as submitted.
    pub key: K,
    /// True if the login is trusted, as submitted.
    pub is_trusted: bool,
    /// True when the password is right.
    pub is_right: bool,
}

/// Checks passwords on another thread, which ends on drop. Submitting checks and taking results neither
/// blocks nor allocates. `K` is the caller's key of a login.
///
/// A login is trusted if the user's password was right from the same address before. Trusted logins have a
/// separate queue and are checked first, so that password guesses do not delay them.
pub struct PasswordChecker<K> {
    /// Queues of the checks of trusted logins (index 0) and of all other logins (1).
    checks: [spsc::Producer<Check<K>>; 2],
    waiting: [usize; 2],
    answers: spsc::Consumer<CheckResult<K>>,
    next_id: u64,
    thread: BackgroundThread,
}

impl<K: Copy + Send + 'static> PasswordChecker<K> {
    /// Starts the thread. `is_right` compares a password with that of a user. Without a user (`None`) it must
    /// take equally long and return false.
    ///
    /// # Errors
    /// The system could not start a thread.
    pub fn start(
        is_right: impl FnMut(Option<usize>, &[u8]) -> bool + Send + 'static,
    ) -> std::io::Result<PasswordChecker<K>> {
        let (trusted, trusted_checks) = spsc::channel(CHECKS_MAX);
        let (other, other_checks) = spsc::channel(CHECKS_MAX);
        let (answer, answers) = spsc::channel(2 * CHECKS_MAX);
        let to_check = [trusted_checks, other_checks];
        let thread = BackgroundThread::start("login-checker", move |stop| {
            check_all(to_check, answer, is_right, stop);
        })?;
        Ok(PasswordChecker { checks: [trusted, other], waiting: [0; 2], answers, next_id: 1, thread })
    }

    /// Makes each result wake the thread of `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.answers.wake_by(waker);
    }

    /// Submits a check of `password` against that of `user`; without a user (`None`) the check fails. Returns
    /// the id of the check, or `None` when the queue is full.
    ///
    /// # Panics
    /// If the password has more than 64 bytes.
    pub fn submit(&mut self, key: K, user: Option<usize>, is_trusted: bool, password: &[u8]) -> Option<u64> {
        let queue = usize::from(!is_trusted);
        if self.waiting[queue] >= CHECKS_MAX {
            return None;
        }
        let mut bytes = [0; PASSWORD_LEN_MAX];
        bytes[..password.len()].copy_from_slice(password);
        let id = self.next_id;
        let check = Check { id, key, user, is_trusted, len: password.len() as u8, password: bytes };
        self.checks[queue].try_push(check).ok()?;
        self.thread.wake();
        self.waiting[queue] += 1;
        self.next_id += 1;
        Some(id)
    }

    /// Returns the next result, if any.
    pub fn poll(&mut self) -> Option<CheckResult<K>> {
        let answer = self.answers.try_pop()?;
        self.waiting[usize::from(!answer.is_trusted)] -= 1;
        Some(answer)
    }

    /// True while a submitted check has a result that was not yet [taken](PasswordChecker::poll).
    #[inline]
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting != [0; 2]
    }
}

/// Returns the next check, if any; trusted ones first.
fn next_check<K: Copy + Send>([trusted, other]: &mut [spsc::Consumer<Check<K>>; 2]) -> Option<Check<K>> {
    trusted.try_pop().or_else(|| other.try_pop())
}

fn check_all<K: Copy + Send>(
    mut to_check: [spsc::Consumer<Check<K>>; 2],
    mut answers: spsc::Producer<CheckResult<K>>,
    mut is_right: impl FnMut(Option<usize>, &[u8]) -> bool,
    stop: &StopSignal,
) {
    // Checks that are still queued when the thread stops are dropped, as nothing reads their results.
    while !stop.is_stopped() {
        let Some(Check { id, key, user, is_trusted, len, password }) = next_check(&mut to_check) else {
            std::thread::park_timeout(SLEEP_MAX);
            continue;
        };
        let is_right = is_right(user, &password[..usize::from(len)]);
        // The ring has capacity for the results of all queued checks.
        let _ = answers.try_push(CheckResult { id, key, is_trusted, is_right });
    }
}

#[cfg(test)]
mod tests {
    use tickpath_test_support::until;

    use super::*;

    /// A checker in which the password of user 0 is `secret0`, of user 1 `secret1`, and so on.
    fn checker() -> PasswordChecker<char> {
        let is_right = |user: Option<usize>, password: &[u8]| {
            user.is_some_and(|user| password == format!("secret{user}").as_bytes())
        };
        PasswordChecker::start(is_right).unwrap()
    }

    fn answers(checker: &mut PasswordChecker<char>) -> Vec<CheckResult<char>> {
        let mut answers = vec![];
        while checker.is_waiting() {
            answers.push(until(|| checker.poll()));
        }
        answers
    }

    #[test]
    fn passwords_are_checked_in_order() {
        let mut checker = checker();
        let cases = [
            ('a', Some(0), "secret0", true),
            ('b', Some(1), "secret0", false),
            ('c', Some(1), "secret1", true),
            ('d', None, "secret0", false),
        ];
        let submit = |(key, user, password, is_right): (char, Option<usize>, &str, bool)| {
            let id = checker.submit(key, user, false, password.as_bytes()).unwrap();
            CheckResult { id, key, is_trusted: false, is_right }
        };
        let expected = cases.map(submit);
        assert_eq!(answers(&mut checker), expected);
    }

    #[test]
    fn full_queues_refuse_a_check() {
        let mut checker = checker();
        for is_trusted in [false, true] {
            for _ in 0..CHECKS_MAX {
                assert!(checker.submit('a', Some(0), is_trusted, b"secret0").is_some());
            }
            assert_eq!(checker.submit('a', Some(0), is_trusted, b"secret0"), None);
        }
        assert_eq!(answers(&mut checker).len(), 2 * CHECKS_MAX);
        assert!(checker.submit('a', Some(0), false, b"secret0").is_some());
    }

    #[test]
    fn trusted_logins_are_checked_before_others() {
        let ((mut trusted, trusted_checks), (mut other, other_checks)) = (spsc::channel(8), spsc::channel(8));
        let check = |id, is_trusted| Check { id, key: (), user: None, is_trusted, len: 0, password: [0; 64] };
        for id in 1..=3 {
            other.try_push(check(id, false)).ok().unwrap();
        }
        trusted.try_push(check(4, true)).ok().unwrap();
        let mut to_check = [trusted_checks, other_checks];
        let order: Vec<u64> =
            std::iter::from_fn(|| next_check(&mut to_check)).map(|check| check.id).collect();
        assert_eq!(order, [4, 1, 2, 3]);
    }
}

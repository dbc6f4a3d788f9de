//! Passwords are checked beside the duty cycle.

use std::thread::JoinHandle;
use std::time::Duration;

use tickpath_gateway_protocol::frame::{PASSWORD_LEN_MAX, Password};
use tickpath_lockfree::spsc;

use super::UserPassword;

/// Logins that may wait to be checked; a further one is put off until there is room.
pub const CHECKS_MAX: usize = 64;
/// How long the thread sleeps at most when nobody wakes it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A password to be checked.
#[derive(Clone, Copy)]
struct Check {
    id: u64,
    caller: u32,
    /// The user's number; `None` for a name that nobody has.
    user: Option<u16>,
    len: u8,
    password: [u8; PASSWORD_LEN_MAX],
}

/// What became of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckAnswer {
    /// As [submitted](LoginChecker::submit).
    pub id: u64,
    /// Who called, as submitted.
    pub caller: u32,
    /// The user's number, when the password is its own. A wrong name and a wrong password are one answer.
    pub user: Option<u16>,
}

/// Has passwords checked on a thread of its own, which ends when this is dropped. Neither submitting nor taking answers
/// waits or allocates.
pub struct LoginChecker {
    names: Vec<String>,
    rings: Option<(spsc::Producer<Check>, spsc::Consumer<CheckAnswer>)>,
    thread: Option<JoinHandle<()>>,
    waiting: usize,
    next_id: u64,
}

impl LoginChecker {
    /// For these users, in the order of their numbers.
    ///
    /// # Errors
    /// The system's, when there can be no thread.
    pub fn start(users: Vec<(String, UserPassword)>) -> std::io::Result<LoginChecker> {
        let (checks, to_check) = spsc::channel(CHECKS_MAX);
        let (answer, answers) = spsc::channel(CHECKS_MAX);
        let (names, passwords): (Vec<String>, Vec<UserPassword>) = users.into_iter().unzip();
        let thread = std::thread::Builder::new()
            .name("login-checker".to_owned())
            .spawn(move || check_all(&passwords, to_check, answer))?;
        Ok(LoginChecker {
            names,
            rings: Some((checks, answers)),
            thread: Some(thread),
            waiting: 0,
            next_id: 1,
        })
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
        let (checks, _) = self.rings.as_mut().filter(|_| self.waiting < CHECKS_MAX)?;
        let guess = password.expose();
        let mut bytes = [0; PASSWORD_LEN_MAX];
        bytes[..guess.len()].copy_from_slice(guess);
        let check = Check { id: self.next_id, caller, user, len: guess.len() as u8, password: bytes };
        checks.try_push(check).ok()?;
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
        self.waiting += 1;
        self.next_id += 1;
        Some(check.id)
    }

    /// The next answer, if there is one.
    pub fn poll(&mut self) -> Option<CheckAnswer> {
        let (_, answers) = self.rings.as_mut()?;
        let answer = answers.try_pop()?;
        self.waiting -= 1;
        Some(answer)
    }

    /// True while answers are to come.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }
}

impl Drop for LoginChecker {
    fn drop(&mut self) {
        self.rings = None;
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // A thread that panicked has said so; nothing is left to be done about it here.
        let _ = thread.join();
    }
}

fn check_all(
    users: &[UserPassword],
    mut to_check: spsc::Consumer<Check>,
    mut answers: spsc::Producer<CheckAnswer>,
) {
    loop {
        // In this order: what came before the end of the ring is still there.
        let has_ended = to_check.is_disconnected();
        let Some(check) = to_check.try_pop() else {
            if has_ended {
                return;
            }
            std::thread::park_timeout(SLEEP_MAX);
            continue;
        };
        if has_ended {
            // Nobody waits for answers any more.
            return;
        }
        // As many as may wait fit, so it fails only when nobody reads any more.
        if answers.try_push(answer(users, &check)).is_err() {
            return;
        }
    }
}

/// A name that nobody has takes as long as one that somebody has: it is checked against a hash where there is one.
fn answer(users: &[UserPassword], check: &Check) -> CheckAnswer {
    let guess = &check.password[..usize::from(check.len)];
    let known = check.user.and_then(|user| users.get(usize::from(user)));
    let tried = known.or_else(|| users.iter().find(|user| user.is_hashed()));
    let is_right = tried.is_some_and(|password| password.is(guess)) && known.is_some();
    CheckAnswer { id: check.id, caller: check.caller, user: check.user.filter(|_| is_right) }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::users::password::tests::cheap_hash;

    fn checker() -> LoginChecker {
        let user = |name: &str, text: &str| (name.to_owned(), UserPassword::new(text).unwrap());
        LoginChecker::start(vec![user("anna", &cheap_hash("secret")), user("bert", "plain")]).unwrap()
    }

    fn answers(checker: &mut LoginChecker) -> Vec<CheckAnswer> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut answers = vec![];
        while checker.is_waiting() {
            assert!(Instant::now() < deadline, "no answer");
            match checker.poll() {
                Some(answer) => answers.push(answer),
                None => std::thread::yield_now(),
            }
        }
        answers
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
        let found: Vec<Option<u16>> = answers(&mut checker).iter().map(|answer| answer.user).collect();
        assert_eq!(found, cases.map(|(_, _, user)| user));
    }

    #[test]
    fn as_many_wait_as_may_and_one_more_is_not_taken() {
        let mut checker = checker();
        let password = Password::new(b"secret").unwrap();
        for caller in 0..CHECKS_MAX as u32 {
            assert!(checker.submit(caller, "anna", &password).is_some());
        }
        assert_eq!(checker.submit(99, "anna", &password), None);
        let answers = answers(&mut checker);
        assert!(answers.iter().enumerate().all(|(place, answer)| answer.caller == place as u32));
        assert_eq!(answers.len(), CHECKS_MAX);
        assert!(checker.submit(0, "anna", &password).is_some());
    }
}

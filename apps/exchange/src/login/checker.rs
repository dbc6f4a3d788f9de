//! Hashed passwords are checked beside the duty cycle.

use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use tickpath_lockfree::spsc;
use tickpath_nasdaq::soupbintcp::Password;

use super::password::{has_hash, hash_password};

/// Logins that may wait to be checked; a further one is refused and may be tried again.
pub(crate) const QUEUE_CAPACITY: usize = 64;
/// How long the thread sleeps at most when nobody wakes it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A password to be checked.
#[derive(Clone, Copy)]
struct Check {
    id: u64,
    place: u32,
    /// Index of the user's hash; the one of nobody for a user that there is not.
    hash: u32,
    password: [u8; 10],
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckAnswer {
    /// As [submitted](LoginChecker::submit).
    pub(crate) id: u64,
    /// The connection, as submitted.
    pub(crate) place: usize,
    /// Whether the password was the user's.
    pub(crate) is_right: bool,
}

/// A thread that checks passwords against their hashes, and the two rings to it and back.
///
/// The thread starts with the first user that has a hash and ends when this is dropped. Neither submitting nor
/// taking answers waits or allocates.
pub(crate) struct LoginChecker {
    /// Index of each user's hash, by the user's place.
    hash_of_user: Box<[Option<u32>]>,
    hash_of_nobody: u32,
    worker: Option<Worker>,
    waiting: usize,
    next_id: u64,
}

struct Worker {
    checks: spsc::Producer<Check>,
    answers: spsc::Consumer<CheckAnswer>,
    thread: Thread,
    handle: JoinHandle<()>,
}

impl LoginChecker {
    /// For users with these hashes, `None` for those that have a password.
    ///
    /// # Errors
    /// The system's, when there can be no thread.
    pub(crate) fn start<'a>(hashes: impl Iterator<Item = Option<&'a str>>) -> std::io::Result<LoginChecker> {
        let mut known: Vec<String> = Vec::new();
        let hash_of_user = hashes
            .map(|hash| {
                hash.map(|hash| {
                    known.push(hash.to_owned());
                    known.len() as u32 - 1
                })
            })
            .collect();
        let hash_of_nobody = known.len() as u32;
        let worker = if known.is_empty() { None } else { Some(start_worker(known)?) };
        Ok(LoginChecker { hash_of_user, hash_of_nobody, worker, waiting: 0, next_id: 1 })
    }

    /// True when some user has a hash: then a name that nobody has takes as long to refuse.
    pub(crate) fn is_used(&self) -> bool {
        self.worker.is_some()
    }

    /// Has a password checked, against the hash of `user` or against none that anybody has; the number of the
    /// check. `None` when as many wait as may.
    pub(crate) fn submit(&mut self, place: usize, user: Option<usize>, password: &Password) -> Option<u64> {
        let worker = self.worker.as_mut().filter(|_| self.waiting < QUEUE_CAPACITY)?;
        let hash = user.and_then(|user| self.hash_of_user[user]).unwrap_or(self.hash_of_nobody);
        let check = Check { id: self.next_id, place: place as u32, hash, password: password.to_lowercase() };
        worker.checks.try_push(check).ok()?;
        worker.thread.unpark();
        self.waiting += 1;
        self.next_id += 1;
        Some(check.id)
    }

    /// True while answers are to come.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The next answer, if there is one.
    pub(crate) fn poll(&mut self) -> Option<CheckAnswer> {
        let answer = self.worker.as_mut()?.answers.try_pop()?;
        self.waiting -= 1;
        Some(answer)
    }
}

impl Drop for LoginChecker {
    fn drop(&mut self) {
        let Some(Worker { checks, answers, thread, handle }) = self.worker.take() else { return };
        drop((checks, answers));
        thread.unpark();
        // A thread that panicked has said so; nothing is left to be done about it here.
        let _ = handle.join();
    }
}

fn start_worker(hashes: Vec<String>) -> std::io::Result<Worker> {
    let (checks, to_check) = spsc::channel(QUEUE_CAPACITY);
    let (answer, answers) = spsc::channel(QUEUE_CAPACITY);
    let handle = std::thread::Builder::new()
        .name("login-checker".to_owned())
        .spawn(move || check_all(hashes, to_check, answer))?;
    Ok(Worker { checks, answers, thread: handle.thread().clone(), handle })
}

fn check_all(
    mut hashes: Vec<String>,
    mut to_check: spsc::Consumer<Check>,
    mut answers: spsc::Producer<CheckAnswer>,
) {
    // A hash that no password can have, so long as it is, and that takes as long to check as a user's.
    hashes.push(hash_password("*nobody*").expect("eight ASCII characters are a password"));
    loop {
        // In this order: what came before the end of the ring is still there.
        let has_ended = to_check.is_disconnected();
        let Some(Check { id, place, hash, password }) = to_check.try_pop() else {
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
        let is_nobody = hash as usize == hashes.len() - 1;
        let is_right = has_hash(&password, &hashes[hash as usize]) && !is_nobody;
        let answer = CheckAnswer { id, place: place as usize, is_right };
        // As many as may wait fit, so it fails only when nobody reads any more.
        if answers.try_push(answer).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A hash that is quickly checked, of `secret`.
    fn cheap_hash() -> String {
        use argon2::password_hash::PasswordHasher;
        let params = argon2::Params::new(8, 1, 1, None).unwrap();
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        argon2.hash_password(b"secret").unwrap().to_string()
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
    fn passwords_are_checked_in_order_against_the_user_s_hash() {
        let hash = cheap_hash();
        let mut checker = LoginChecker::start([None, Some(hash.as_str())].into_iter()).unwrap();
        let password = |text| Password::new(text).unwrap();
        let ids: Vec<u64> = [(Some(1), "SECRET"), (Some(1), "wrong"), (None, "secret"), (None, "*nobody*")]
            .into_iter()
            .map(|(user, text)| checker.submit(9, user, &password(text)).unwrap())
            .collect();
        let expected = [true, false, false, false];
        let expected: Vec<CheckAnswer> = ids
            .into_iter()
            .zip(expected)
            .map(|(id, is_right)| CheckAnswer { id, place: 9, is_right })
            .collect();
        assert_eq!(answers(&mut checker), expected);
    }

    #[test]
    fn as_many_wait_as_may_and_one_more_is_not_taken() {
        let hash = cheap_hash();
        let mut checker = LoginChecker::start(std::iter::once(Some(hash.as_str()))).unwrap();
        let password = Password::new("secret").unwrap();
        for _ in 0..QUEUE_CAPACITY {
            assert!(checker.submit(0, Some(0), &password).is_some());
        }
        assert_eq!(checker.submit(0, Some(0), &password), None);
        assert_eq!(answers(&mut checker).len(), QUEUE_CAPACITY);
        assert!(checker.submit(0, Some(0), &password).is_some());
    }

    #[test]
    fn without_hashes_there_is_no_thread() {
        let mut checker = LoginChecker::start(std::iter::once(None)).unwrap();
        assert!(!checker.is_used());
        assert_eq!(checker.submit(0, Some(0), &Password::new("x").unwrap()), None);
        assert_eq!(checker.poll(), None);
    }
}

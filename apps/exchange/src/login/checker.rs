//! Hashed passwords are checked beside the duty cycle.

use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use tickpath_lockfree::spsc;
use tickpath_lockfree::wake::Waker;
use tickpath_nasdaq::soupbintcp::Password;
use tickpath_venue::{CheckAnswer, CheckQueue, PasswordChecks, UserRegistry};

use super::password::{has_hash, hash_password};

/// Logins that may wait to be checked, trusted ones and others each; a further one is put off until there is room.
pub(crate) const QUEUE_CAPACITY: usize = 64;
/// How long the thread sleeps at most when nobody wakes it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A password to be checked.
#[derive(Clone, Copy)]
struct Check {
    id: u64,
    place: u32,
    /// The user's place in the roster; `None` for one that there is not.
    user: Option<u32>,
    queue: CheckQueue,
    password: [u8; 10],
}

/// Has passwords checked against their hashes on a thread of its own.
///
/// The thread is there from the first user on who has a hash, and ends when this is dropped. Neither submitting nor
/// taking answers waits or allocates.
pub(crate) struct LoginChecker {
    thread: Option<CheckerThread>,
    /// In each queue.
    waiting: [usize; 2],
    next_id: u64,
    /// Wakes the thread that takes the answers, where it sleeps.
    waker: Option<Waker>,
}

/// The thread, the rings of both queues to it, and one back. Where it never gets to a [`LoginChecker`] it ends by itself.
pub(crate) struct CheckerThread {
    checks: [spsc::Producer<Check>; 2],
    answers: spsc::Consumer<CheckAnswer>,
    thread: Thread,
    handle: JoinHandle<()>,
}

impl LoginChecker {
    /// For these users, also for those who come later.
    ///
    /// # Errors
    /// The system's, when there can be no thread.
    pub(crate) fn start(users: &UserRegistry) -> std::io::Result<LoginChecker> {
        let thread = users.has_hashes().then(|| CheckerThread::start(users.clone())).transpose()?;
        Ok(LoginChecker { thread, waiting: [0; 2], next_id: 1, waker: None })
    }

    /// Goes on with a thread, where there is none yet.
    pub(crate) fn engage(&mut self, thread: CheckerThread) {
        debug_assert!(self.thread.is_none(), "the first user who has a hash brings it");
        if let Some(waker) = &self.waker {
            thread.answers.wake_by(waker);
        }
        self.thread = Some(thread);
    }

    /// Has each answer wake the thread behind `waker`.
    pub(crate) fn wake_by(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
        if let Some(thread) = &self.thread {
            thread.answers.wake_by(waker);
        }
    }

    /// True while answers are to come.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting != [0; 2]
    }

    /// The next answer, if there is one.
    pub(crate) fn poll(&mut self) -> Option<CheckAnswer> {
        let answer = self.thread.as_mut()?.answers.try_pop()?;
        self.waiting[answer.queue as usize] -= 1;
        Some(answer)
    }
}

impl PasswordChecks for LoginChecker {
    fn is_used(&self) -> bool {
        self.thread.is_some()
    }

    fn submit(
        &mut self,
        place: usize,
        user: Option<usize>,
        queue: CheckQueue,
        password: &Password,
    ) -> Option<u64> {
        let waiting = &mut self.waiting[queue as usize];
        let thread = self.thread.as_mut().filter(|_| *waiting < QUEUE_CAPACITY)?;
        let (user, password) = (user.map(|user| user as u32), password.to_lowercase());
        let check = Check { id: self.next_id, place: place as u32, user, queue, password };
        thread.checks[queue as usize].try_push(check).ok()?;
        thread.thread.unpark();
        *waiting += 1;
        self.next_id += 1;
        Some(check.id)
    }
}

impl Drop for LoginChecker {
    fn drop(&mut self) {
        let Some(CheckerThread { checks, answers, thread, handle }) = self.thread.take() else { return };
        drop((checks, answers));
        thread.unpark();
        // A thread that panicked has said so; nothing is left to be done about it here.
        let _ = handle.join();
    }
}

impl CheckerThread {
    /// Starts it.
    ///
    /// # Errors
    /// The system's, when there can be none.
    pub(crate) fn start(users: UserRegistry) -> std::io::Result<CheckerThread> {
        let (trusted, trusted_checks) = spsc::channel(QUEUE_CAPACITY);
        let (other, other_checks) = spsc::channel(QUEUE_CAPACITY);
        let (answer, answers) = spsc::channel(2 * QUEUE_CAPACITY);
        let (checks, to_check) = ([trusted, other], [trusted_checks, other_checks]);
        let handle = std::thread::Builder::new()
            .name("login-checker".to_owned())
            .spawn(move || check_all(&users, to_check, answer))?;
        Ok(CheckerThread { checks, answers, thread: handle.thread().clone(), handle })
    }
}

/// The next check: of the queue of trusted logins, where there is one.
fn next_check([trusted, other]: &mut [spsc::Consumer<Check>; 2]) -> Option<Check> {
    trusted.try_pop().or_else(|| other.try_pop())
}

fn check_all(
    users: &UserRegistry,
    mut to_check: [spsc::Consumer<Check>; 2],
    mut answers: spsc::Producer<CheckAnswer>,
) {
    // A hash that no password can have, so long as it is, and that takes as long to check as a user's.
    let nobody = hash_password("*nobody*").expect("eight ASCII characters are a password");
    loop {
        // In this order: what came before the end of the ring is still there.
        let has_ended = to_check.iter().any(spsc::Consumer::is_disconnected);
        let Some(Check { id, place, user, queue, password }) = next_check(&mut to_check) else {
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
        let hash = user.and_then(|user| users.get(user as usize)?.settings.password.hash());
        let is_right = has_hash(&password, hash.unwrap_or(&nobody)) && hash.is_some();
        let answer = CheckAnswer { id, place: place as usize, queue, is_right };
        // As many as may wait fit, so it fails only when nobody reads any more.
        if answers.try_push(answer).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tickpath_venue::UserSettings;

    use super::*;
    use crate::login::hashed_password;

    /// A hash that is quickly checked, of `secret`.
    fn cheap_hash() -> String {
        use argon2::password_hash::PasswordHasher;
        let params = argon2::Params::new(8, 1, 1, None).unwrap();
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        argon2.hash_password(b"secret").unwrap().to_string()
    }

    /// Users with these hashes, with a password where there is none, and room for one more.
    fn registry(hashes: &[Option<String>]) -> UserRegistry {
        let password = |hash: &Option<String>| match hash {
            Some(hash) => hashed_password(hash).unwrap(),
            None => tickpath_venue::Password::plain("secret"),
        };
        let user = |(place, hash)| UserSettings::new(format!("U{place}"), password(hash));
        let users: Vec<UserSettings> = hashes.iter().enumerate().map(user).collect();
        UserRegistry::new(&users, users.len() + 1)
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
        let mut checker = LoginChecker::start(&registry(&[None, Some(cheap_hash())])).unwrap();
        let password = |text| Password::new(text).unwrap();
        let ids: Vec<u64> = [(Some(1), "SECRET"), (Some(1), "wrong"), (None, "secret"), (None, "*nobody*")]
            .into_iter()
            .map(|(user, text)| checker.submit(9, user, CheckQueue::Other, &password(text)).unwrap())
            .collect();
        let expected = [true, false, false, false];
        let expected: Vec<CheckAnswer> = ids
            .into_iter()
            .zip(expected)
            .map(|(id, is_right)| CheckAnswer { id, place: 9, queue: CheckQueue::Other, is_right })
            .collect();
        assert_eq!(answers(&mut checker), expected);
    }

    #[test]
    fn as_many_wait_as_may_and_one_more_is_not_taken() {
        let mut checker = LoginChecker::start(&registry(&[Some(cheap_hash())])).unwrap();
        let password = Password::new("secret").unwrap();
        for queue in [CheckQueue::Other, CheckQueue::Trusted] {
            for _ in 0..QUEUE_CAPACITY {
                assert!(checker.submit(0, Some(0), queue, &password).is_some());
            }
            assert_eq!(checker.submit(0, Some(0), queue, &password), None);
        }
        assert_eq!(answers(&mut checker).len(), 2 * QUEUE_CAPACITY);
        assert!(checker.submit(0, Some(0), CheckQueue::Other, &password).is_some());
    }

    #[test]
    fn trusted_logins_are_checked_before_others() {
        let ((mut trusted, trusted_checks), (mut other, other_checks)) = (spsc::channel(8), spsc::channel(8));
        let check = |id, queue| Check { id, place: 0, user: None, queue, password: [b' '; 10] };
        for id in 1..=3 {
            other.try_push(check(id, CheckQueue::Other)).ok().unwrap();
        }
        trusted.try_push(check(4, CheckQueue::Trusted)).ok().unwrap();
        let mut to_check = [trusted_checks, other_checks];
        let order: Vec<u64> =
            std::iter::from_fn(|| next_check(&mut to_check)).map(|check| check.id).collect();
        assert_eq!(order, [4, 1, 2, 3]);
    }

    #[test]
    fn without_hashes_there_is_no_thread() {
        let mut checker = LoginChecker::start(&registry(&[None])).unwrap();
        assert!(!checker.is_used());
        assert_eq!(checker.submit(0, Some(0), CheckQueue::Other, &Password::new("x").unwrap()), None);
        assert_eq!(checker.poll(), None);
    }

    #[test]
    fn a_user_that_comes_later_brings_the_thread_and_is_checked_by_its_hash() {
        let users = registry(&[None]);
        let mut checker = LoginChecker::start(&users).unwrap();
        let thread = CheckerThread::start(users.clone()).unwrap();
        let hashed = hashed_password(&cheap_hash()).unwrap();
        users.add(UserSettings::new("LATER", hashed)).unwrap();
        checker.engage(thread);
        assert!(checker.is_used());
        for (user, text, is_right) in [(1, "secret", true), (1, "wrong", false), (0, "secret", false)] {
            let queue = CheckQueue::Trusted;
            let id = checker.submit(3, Some(user), queue, &Password::new(text).unwrap()).unwrap();
            assert_eq!(answers(&mut checker), [CheckAnswer { id, place: 3, queue, is_right }]);
        }
    }
}

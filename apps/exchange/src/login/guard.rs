//! Wrong passwords are counted by user and by address: answers come later and later, then there is a pause.

use std::net::Ipv4Addr;

use tickpath_types::Nanos;

/// Wrong passwords in a row that are answered at once: people mistype.
const PROMPT_REFUSALS: u32 = 3;
/// How often the delay doubles at most.
const DOUBLINGS_MAX: u32 = 5;

/// How wrong passwords are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginPolicy {
    /// Wrong passwords of one user or from one address after which further logins are refused unseen.
    pub attempts_max: u32,
    /// How long the answer to the fourth wrong password in a row is held back; each further one twice as long, up to
    /// 32 times this.
    pub delay: Nanos,
    /// How long logins are refused unseen; also after how long without a wrong password all are forgiven.
    pub lockout: Nanos,
    /// Addresses that are remembered; the one whose latest wrong password is the oldest gives way to a new one.
    pub addresses_max: usize,
}

impl Default for LoginPolicy {
    /// Ten attempts, 100 ms, a minute, and 1024 addresses.
    fn default() -> Self {
        LoginPolicy {
            attempts_max: 10,
            delay: Nanos::from_millis(100),
            lockout: Nanos::from_secs(60),
            addresses_max: 1_024,
        }
    }
}

/// What to do about a wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How long to hold the answer back.
    pub(crate) delay: Nanos,
    /// True when this one was one too many and a pause begins.
    pub(crate) is_lockout: bool,
}

/// The wrong passwords of one user or address.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    failures: u32,
    latest: Nanos,
}

impl Record {
    fn is_locked(&self, now: Nanos, policy: &LoginPolicy) -> bool {
        self.failures >= policy.attempts_max && now < self.latest + policy.lockout
    }

    /// One more, unless the others are forgiven meanwhile; how many there are.
    fn fail(&mut self, now: Nanos, policy: &LoginPolicy) -> u32 {
        if now >= self.latest + policy.lockout {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.latest = now;
        self.failures
    }
}

/// Counts wrong passwords.
pub(crate) struct LoginGuard {
    policy: LoginPolicy,
    users: Box<[Record]>,
    /// Never more than the policy's bound; looked through when a password is wrong or a client logs in.
    addresses: Vec<(Ipv4Addr, Record)>,
}

impl LoginGuard {
    pub(crate) fn new(policy: LoginPolicy, users: usize) -> LoginGuard {
        LoginGuard {
            policy,
            users: vec![Record::default(); users].into_boxed_slice(),
            addresses: Vec::with_capacity(policy.addresses_max.max(1)),
        }
    }

    /// True when a login is to be refused without a look at its password.
    pub(crate) fn is_locked(&self, now: Nanos, user: Option<usize>, address: Ipv4Addr) -> bool {
        user.is_some_and(|user| self.is_user_locked(now, user))
            || self
                .addresses
                .iter()
                .any(|(known, record)| *known == address && record.is_locked(now, &self.policy))
    }

    pub(crate) fn is_user_locked(&self, now: Nanos, user: usize) -> bool {
        self.users[user].is_locked(now, &self.policy)
    }

    /// A wrong password, or the name of nobody.
    pub(crate) fn record_failure(&mut self, now: Nanos, user: Option<usize>, address: Ipv4Addr) -> Verdict {
        let policy = self.policy;
        let of_user = user.map_or(0, |user| self.users[user].fail(now, &policy));
        let failures = of_user.max(self.record_of(address).fail(now, &policy));
        let doublings = failures.saturating_sub(PROMPT_REFUSALS + 1).min(DOUBLINGS_MAX);
        let delay = if failures > PROMPT_REFUSALS { Nanos(policy.delay.0 << doublings) } else { Nanos::ZERO };
        Verdict { delay, is_lockout: failures == policy.attempts_max }
    }

    /// The right password: the user's wrong ones are forgiven. Those of the address are not, or whoever has one
    /// password could try those of others without end.
    pub(crate) fn record_success(&mut self, user: usize) {
        self.users[user] = Record::default();
    }

    /// Ends a user's pause, and with it those of all addresses: which of them the user comes from is not known.
    pub(crate) fn unlock(&mut self, user: usize) {
        self.users[user] = Record::default();
        self.addresses.clear();
    }

    fn record_of(&mut self, address: Ipv4Addr) -> &mut Record {
        let place = match self.addresses.iter().position(|(known, _)| *known == address) {
            Some(place) => place,
            None if self.addresses.len() < self.policy.addresses_max.max(1) => {
                self.addresses.push((address, Record::default()));
                self.addresses.len() - 1
            }
            None => {
                let oldest = (0..self.addresses.len()).min_by_key(|place| self.addresses[*place].1.latest);
                let place = oldest.expect("at the bound there is an address");
                self.addresses[place] = (address, Record::default());
                place
            }
        };
        &mut self.addresses[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: LoginPolicy = LoginPolicy {
        attempts_max: 10,
        delay: Nanos::from_millis(100),
        lockout: Nanos::from_secs(60),
        addresses_max: 3,
    };
    const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
    const NOW: Nanos = Nanos::from_secs(1_000);

    fn address(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    #[test]
    fn answers_come_later_and_later_until_there_is_a_pause() {
        let mut guard = LoginGuard::new(POLICY, 1);
        let delays: Vec<u64> = (0..9)
            .map(|_| {
                let verdict = guard.record_failure(NOW, Some(0), HERE);
                assert!(!verdict.is_lockout && !guard.is_locked(NOW, Some(0), HERE));
                verdict.delay.0 / 1_000_000
            })
            .collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 400, 800, 1_600, 3_200]);
        assert_eq!(
            guard.record_failure(NOW, Some(0), HERE),
            Verdict { delay: Nanos::from_millis(3_200), is_lockout: true }
        );
        let end = NOW + POLICY.lockout;
        for (user, address) in [(Some(0), address(1)), (None, HERE)] {
            assert!(guard.is_locked(Nanos(end.0 - 1), user, address));
            assert!(!guard.is_locked(end, user, address), "the pause is over");
        }
        assert!(!guard.is_locked(NOW, None, address(1)));
        assert_eq!(guard.record_failure(end, Some(0), HERE).delay, Nanos::ZERO, "forgiven");
    }

    #[test]
    fn the_right_password_forgives_the_user_and_not_the_address() {
        let mut guard = LoginGuard::new(POLICY, 2);
        for _ in 0..9 {
            guard.record_failure(NOW, Some(0), HERE);
        }
        guard.record_success(0);
        assert!(guard.record_failure(NOW, Some(1), HERE).is_lockout, "the tenth from this address");
        assert!(guard.is_locked(NOW, Some(0), HERE) && !guard.is_locked(NOW, Some(0), address(1)));
        guard.unlock(0);
        assert!(!guard.is_locked(NOW, Some(0), HERE));
    }

    #[test]
    fn at_the_bound_the_oldest_address_gives_way() {
        let mut guard = LoginGuard::new(POLICY, 0);
        for last in 1..=3 {
            for _ in 0..10 {
                guard.record_failure(NOW + Nanos(last.into()), None, address(last));
            }
        }
        let is_locked =
            |guard: &LoginGuard| [1, 2, 3, 4].map(|last| guard.is_locked(NOW, None, address(last)));
        assert_eq!(is_locked(&guard), [true, true, true, false]);
        guard.record_failure(NOW + Nanos(9), None, address(4));
        assert_eq!(is_locked(&guard), [false, true, true, false]);
        assert_eq!(guard.addresses.len(), POLICY.addresses_max);
        assert_eq!(guard.addresses.capacity(), POLICY.addresses_max);
    }
}

//! Delays password checks after several login attempts of one user from one peer.

use tickpath_types::Nanos;

use crate::TrustedPeers;

/// Number of consecutive attempts that are checked without delay, to allow for typing errors.
const UNDELAYED_ATTEMPTS: u32 = 3;
/// Maximum number of doublings of the delay.
const DOUBLINGS_MAX: u32 = 5;

/// Delays after wrong passwords; they increase, but a right password is never refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginPolicy {
    /// Delay of the check after the third wrong password in a row. Each further one doubles it, up to 32
    /// times this value. From a peer where the user's password was right before, the delay does not exceed
    /// this value.
    pub delay: Nanos,
    /// Time without an attempt after which the count of attempts is reset.
    pub forgive_after: Nanos,
    /// Maximum number of pairs of user and peer that are remembered. A new pair replaces the one whose latest
    /// attempt is the oldest.
    pub records_max: usize,
}

impl Default for LoginPolicy {
    /// Delay of 100 ms, reset after a minute, and 4096 pairs.
    fn default() -> Self {
        LoginPolicy {
            delay: Nanos::from_millis(100),
            forgive_after: Nanos::from_secs(60),
            records_max: 4_096,
        }
    }
}

/// Login attempts of one user from one peer since the last successful one.
#[derive(Clone, Copy, Debug)]
struct Record<P> {
    /// Index of the user; `None` for all unknown names together.
    user: Option<usize>,
    peer: P,
    attempts: u32,
    latest: Nanos,
}

/// Counts login attempts for each pair of user and peer, and returns the delays.
///
/// An attempt counts when it [begins](LoginGuard::delay), so that parallel attempts cannot avoid the delay.
#[derive(Clone, Debug)]
pub struct LoginGuard<P> {
    policy: LoginPolicy,
    /// At most `policy.records_max` records; searched at each login.
    records: Vec<Record<P>>,
    trusted: TrustedPeers<P>,
}

impl<P: Copy + Eq> LoginGuard<P> {
    /// Creates a guard for at most `users` users.
    #[must_use]
    pub fn new(policy: LoginPolicy, users: usize) -> LoginGuard<P> {
        LoginGuard::with_trusted(policy, TrustedPeers::new(users))
    }

    /// Creates a guard with the peers that were trusted before a restart.
    #[must_use]
    pub fn with_trusted(policy: LoginPolicy, trusted: TrustedPeers<P>) -> LoginGuard<P> {
        let policy = LoginPolicy { records_max: policy.records_max.max(1), ..policy };
        LoginGuard { policy, records: Vec::with_capacity(policy.records_max), trusted }
    }

    /// Counts a login attempt of `user` (`None`: an unknown name); returns the delay of its password check.
    pub fn delay(&mut self, now: Nanos, user: Option<usize>, peer: P) -> Nanos {
        let LoginPolicy { delay, forgive_after, .. } = self.policy;
        let record = self.record_of(now, user, peer);
        if now >= record.latest + forgive_after {
            record.attempts = 0;
        }
        let before = record.attempts;
        record.attempts = before.saturating_add(1);
        record.latest = now;
        let Some(doublings) = before.checked_sub(UNDELAYED_ATTEMPTS) else { return Nanos::ZERO };
        if self.is_trusted(user, peer) {
            return delay;
        }
        Nanos(delay.0.saturating_mul(1 << doublings.min(DOUBLINGS_MAX)))
    }

    /// Records a right password: resets the count of this user from this peer, and trusts the peer. Returns
    /// true if the peer was not trusted before.
    pub fn record_success(&mut self, user: usize, peer: P) -> bool {
        self.records.retain(|record| !(record.user == Some(user) && record.peer == peer));
        self.trusted.record(user, peer)
    }

    /// Resets the counts of a user from all peers.
    pub fn forgive(&mut self, user: usize) {
        self.records.retain(|record| record.user != Some(user));
    }

    /// True if this peer is one of the latest 16 from which the user sent the right password.
    #[must_use]
    pub fn is_trusted(&self, user: Option<usize>, peer: P) -> bool {
        user.is_some_and(|user| self.trusted.contains(user, peer))
    }

    fn record_of(&mut self, now: Nanos, user: Option<usize>, peer: P) -> &mut Record<P> {
        let new = Record { user, peer, attempts: 0, latest: now };
        let known = self.records.iter().position(|record| record.user == user && record.peer == peer);
        let place = match known {
            Some(place) => place,
            None if self.records.len() < self.policy.records_max => {
                self.records.push(new);
                self.records.len() - 1
            }
            None => {
                let oldest = (0..self.records.len()).min_by_key(|place| self.records[*place].latest);
                let place = oldest.expect("at the bound there is a record");
                self.records[place] = new;
                place
            }
        };
        &mut self.records[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: LoginPolicy =
        LoginPolicy { delay: Nanos::from_millis(100), forgive_after: Nanos::from_secs(60), records_max: 3 };
    const NOW: Nanos = Nanos::from_secs(1_000);
    const ANNA: Option<usize> = Some(0);
    const BERT: Option<usize> = Some(1);

    /// Delays of consecutive attempts, in milliseconds.
    fn delays(
        guard: &mut LoginGuard<u8>,
        now: Nanos,
        user: Option<usize>,
        peer: u8,
        count: usize,
    ) -> Vec<u64> {
        (0..count).map(|_| guard.delay(now, user, peer).0 / 1_000_000).collect()
    }

    #[test]
    fn delays_increase_and_are_forgiven_after_a_while() {
        let mut guard = LoginGuard::new(POLICY, 2);
        let expected = [0, 0, 0, 100, 200, 400, 800, 1_600, 3_200, 3_200];
        assert_eq!(delays(&mut guard, NOW, ANNA, 1, 10), expected);
        assert_eq!(
            guard.delay(Nanos((NOW + POLICY.forgive_after).0 - 1), ANNA, 1),
            Nanos::from_millis(3_200)
        );
        let later = NOW + POLICY.forgive_after + POLICY.forgive_after;
        assert_eq!(delays(&mut guard, later, ANNA, 1, 4), [0, 0, 0, 100]);
    }

    #[test]
    fn other_users_and_peers_are_not_delayed() {
        let mut guard = LoginGuard::new(POLICY, 2);
        delays(&mut guard, NOW, ANNA, 1, 14);
        assert_eq!(guard.delay(NOW, BERT, 1), Nanos::ZERO, "the same peer");
        assert_eq!(guard.delay(NOW, ANNA, 2), Nanos::ZERO, "the same user");
    }

    #[test]
    fn trusted_peers_have_short_delays() {
        let mut guard = LoginGuard::new(POLICY, 2);
        guard.delay(NOW, ANNA, 1);
        guard.record_success(0, 1);
        assert_eq!(delays(&mut guard, NOW, ANNA, 1, 6), [0, 0, 0, 100, 100, 100]);
        assert_eq!(delays(&mut guard, NOW, BERT, 1, 5)[4], 200, "that is of one user alone");
        guard.record_success(0, 1);
        assert_eq!(guard.delay(NOW, ANNA, 1), Nanos::ZERO, "forgiven");
        guard.record_success(0, 1);
        // Sixteen later peers replace peer 1.
        for peer in 2..=17 {
            guard.record_success(0, peer);
        }
        assert_eq!(delays(&mut guard, NOW, ANNA, 1, 6)[5], 400);
        assert_eq!(delays(&mut guard, NOW, ANNA, 2, 6)[5], 100);
    }

    #[test]
    fn at_the_bound_the_oldest_pair_is_replaced() {
        let mut guard = LoginGuard::new(POLICY, 2);
        for peer in 1..=3 {
            delays(&mut guard, NOW + Nanos(peer.into()), None, peer, 5);
        }
        guard.delay(NOW + Nanos(4), ANNA, 9);
        assert_eq!(guard.delay(NOW + Nanos(5), None, 2).0, 400_000_000, "kept");
        assert_eq!(guard.delay(NOW + Nanos(6), None, 1), Nanos::ZERO, "gave way");
        assert_eq!((guard.records.len(), guard.records.capacity()), (3, 3));
        guard.forgive(0);
        assert_eq!(guard.records.len(), 2);
    }
}

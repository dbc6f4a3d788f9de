//! Rate limits of users, and bans of those who exceed them.
//!
//! Requests are counted exactly over a sliding window, which keeps the times of each user's latest ones. One
//! more than the limit starts a ban. The check in the duty cycle is one comparison, without allocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickpath_types::Nanos;

use super::settings::RequestLimit;

/// Decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is executed.
    Pass,
    /// The request is executed, since it reduces risk, and the user is banned until this time.
    PassAndBan(Nanos),
    /// The request exceeds the limit: it is rejected, and the user is banned until this time.
    Ban(Nanos),
    /// The user is banned until this time.
    Banned(Nanos),
}

/// End of each user's ban: written by the duty cycle, read by the login check.
#[derive(Clone, Debug)]
pub struct Bans(Arc<[AtomicU64]>);

impl Bans {
    fn new(users: usize) -> Bans {
        Bans((0..users).map(|_| AtomicU64::new(0)).collect())
    }

    /// End of the user's ban; `None` if the user is not banned.
    #[must_use]
    pub fn until(&self, now: Nanos, user: usize) -> Option<Nanos> {
        let until = Nanos(self.0.get(user)?.load(Ordering::Relaxed));
        (now < until).then_some(until)
    }

    fn set(&self, user: usize, until: Nanos) {
        if let Some(place) = self.0.get(user) {
            place.store(until.0, Ordering::Relaxed);
        }
    }

    /// Number of banned users.
    #[must_use]
    pub fn count(&self, now: Nanos) -> usize {
        (0..self.0.len()).filter(|user| self.until(now, *user).is_some()).count()
    }
}

/// The latest requests of one user.
#[derive(Clone, Debug)]
struct Window {
    /// Ring of the times of the latest requests, as many as the limit.
    times: Box<[Nanos]>,
    /// Index of the oldest time.
    next: usize,
    monitor_period: Nanos,
    ban_period: Nanos,
}

/// Rate limits of all users, by user number.
#[derive(Clone, Debug)]
pub struct RequestLimits {
    windows: Box<[Window]>,
    bans: Bans,
    refused: u64,
    banned: u64,
}

impl RequestLimits {
    /// Creates the limits for users in the order of their numbers.
    #[must_use]
    pub fn new(users: impl Iterator<Item = RequestLimit>) -> RequestLimits {
        let window = |user: RequestLimit| Window {
            // Zero means never: it is outside the window of the first requests.
            times: vec![Nanos::ZERO; user.max.max(1) as usize].into_boxed_slice(),
            next: 0,
            monitor_period: user.monitor_period,
            ban_period: user.ban_period,
        };
        let windows: Box<[Window]> = users.map(window).collect();
        let bans = Bans::new(windows.len());
        RequestLimits { windows, bans, refused: 0, banned: 0 }
    }

    /// Current bans, for the login check.
    #[must_use]
    pub fn bans(&self) -> Bans {
        self.bans.clone()
    }

    /// End of a user's ban; none if the user is not banned.
    #[must_use]
    pub fn banned_until(&self, now: Nanos, user: usize) -> Option<Nanos> {
        self.bans.until(now, user)
    }

    /// Number of requests rejected, and number of bans started.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.refused, self.banned)
    }

    /// Number of requests available to the user now, their maximum, and its period. A banned user has none.
    #[must_use]
    pub fn left(&self, now: Nanos, user: usize) -> (u32, u32, Nanos) {
        let Some(window) = self.windows.get(user) else { return (0, 0, Nanos::ZERO) };
        let count = window.times.len();
        let is_free =
            |time: Nanos| time == Nanos::ZERO || now.0.saturating_sub(time.0) >= window.monitor_period.0;
        // Binary search: the free entries come first, starting with the oldest.
        let (mut from, mut to) = (0, count);
        while from < to {
            let middle = from.midpoint(to);
            let time = window.times[(window.next + middle) % count];
            if is_free(time) { from = middle + 1 } else { to = middle }
        }
        let left = if self.bans.until(now, user).is_some() { 0 } else { from };
        (left as u32, count as u32, window.monitor_period)
    }

    /// Records a request and decides on it. Two at the same time both count; a time of zero means never.
    ///
    /// A request that reduces risk passes even as the one that exceeds the limit: otherwise its user could
    /// not cancel the order.
    #[inline]
    pub fn admit(&mut self, now: Nanos, user: usize, takes_risk_away: bool) -> Verdict {
        if let Some(until) = self.bans.until(now, user) {
            self.refused += 1;
            return Verdict::Banned(until);
        }
        let Some(window) = self.windows.get_mut(user) else {
            debug_assert!(false, "every user has a window");
            return Verdict::Pass;
        };
        let oldest = &mut window.times[window.next];
        let is_within = *oldest != Nanos::ZERO && now.0.saturating_sub(oldest.0) < window.monitor_period.0;
        *oldest = now;
        window.next = if window.next + 1 == window.times.len() { 0 } else { window.next + 1 };
        if !is_within {
            return Verdict::Pass;
        }
        let until = now + window.ban_period;
        self.bans.set(user, until);
        self.banned += 1;
        if takes_risk_away {
            Verdict::PassAndBan(until)
        } else {
            self.refused += 1;
            Verdict::Ban(until)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(max: u32, monitor_s: u64, ban_s: u64) -> RequestLimit {
        RequestLimit { max, monitor_period: Nanos::from_secs(monitor_s), ban_period: Nanos::from_secs(ban_s) }
    }

    fn at(seconds: u64) -> Nanos {
        Nanos::from_secs(1_000 + seconds)
    }

    #[test]
    fn one_more_than_the_limit_within_the_period_begins_a_ban() {
        let users = [user(3, 60, 300), user(1, 1, 1)];
        let mut limits = RequestLimits::new(users.into_iter());
        let bans = limits.bans();
        for second in [0, 30, 59] {
            assert_eq!(limits.admit(at(second), 0, false), Verdict::Pass);
        }
        assert_eq!(limits.left(at(59), 0), (0, 3, Nanos::from_secs(60)));
        assert_eq!(
            (limits.left(at(60), 0).0, limits.left(at(90), 0).0, limits.left(at(200), 0).0),
            (1, 2, 3)
        );
        // The first request has just left the window.
        assert_eq!(limits.admit(at(60), 0, false), Verdict::Pass);
        assert_eq!(bans.until(at(60), 0), None);
        let until = at(389);
        assert_eq!(limits.admit(at(89), 0, false), Verdict::Ban(until));
        assert_eq!((bans.until(at(89), 0), bans.count(at(89))), (Some(until), 1));
        assert_eq!(limits.admit(at(388), 0, false), Verdict::Banned(until));
        assert_eq!(limits.counts(), (2, 1));
        assert_eq!(limits.left(at(388), 0).0, 0, "banned");
        // Another user has a separate limit.
        assert_eq!(limits.admit(at(388), 1, false), Verdict::Pass);
        assert_eq!((bans.until(until, 0), limits.admit(until, 0, false)), (None, Verdict::Pass));
    }

    #[test]
    fn a_cancel_that_is_one_too_many_is_still_carried_out() {
        let users = [user(2, 10, 5)];
        let mut limits = RequestLimits::new(users.into_iter());
        assert_eq!(limits.admit(at(0), 0, false), Verdict::Pass);
        assert_eq!(limits.admit(at(0), 0, true), Verdict::Pass, "two at one time both count");
        assert_eq!(limits.admit(at(1), 0, true), Verdict::PassAndBan(at(6)));
        assert_eq!(limits.admit(at(1), 0, true), Verdict::Banned(at(6)), "once");
    }

    #[test]
    fn a_steady_rate_at_the_limit_is_never_banned() {
        let users = [user(10, 60, 300)];
        let mut limits = RequestLimits::new(users.into_iter());
        assert!((0..10_000).all(|request| limits.admit(at(request * 6), 0, false) == Verdict::Pass));
        assert_eq!(limits.admit(at(9_999 * 6), 0, false), Verdict::Ban(at(9_999 * 6 + 300)));
    }

    #[test]
    fn a_clock_that_went_back_opens_nothing() {
        let users = [user(1, 10, 5)];
        let mut limits = RequestLimits::new(users.into_iter());
        assert_eq!(limits.admit(at(50), 0, false), Verdict::Pass);
        assert!(matches!(limits.admit(at(0), 0, false), Verdict::Ban(_)));
    }
}

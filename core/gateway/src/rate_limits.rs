//! What is left of limits on requests, and when one was hit, as clients are told.

use tickpath_gateway_protocol::{
    ErrorCode, RateLimitKind, RateLimitReason, RateLimitTrigger, RateLimitsUpdate,
};
use tickpath_types::Nanos;

use super::Core;
use super::out::{About, Cause, Door, Venue};

/// How often it is told what is left, where that has changed.
const INTERVAL: Nanos = Nanos::from_secs(1);

impl Core {
    /// Tells what is left of the venue's credits of each account and of each user's own limit, where that has changed.
    pub(super) fn poll_rate_limits(&mut self, now: Nanos, door: &mut impl Door, venue: &impl Venue) -> usize {
        if now < self.rates_at || self.clients.all().is_empty() {
            return 0;
        }
        self.rates_at = now + INTERVAL;
        for account in 0..self.accounts.len() as u16 {
            self.tell_credits(now, account, door, venue);
        }
        for user in 0..self.users.len() as u16 {
            self.tell_requests_left(now, user, door);
        }
        1
    }

    fn tell_credits(&mut self, now: Nanos, account: u16, door: &mut impl Door, venue: &impl Venue) {
        let (rate, burst) = self.settings.matching;
        let place = usize::from(account);
        let Some(left) = venue.requests_left(self.accounts[place].order_stream(), now) else { return };
        let update = RateLimitsUpdate {
            limit: RateLimitKind::VENUE,
            available: u32::try_from(left).unwrap_or(u32::MAX).min(burst),
            maximum: burst,
            period_ns: u64::from(burst) * INTERVAL.0 / u64::from(rate.max(1)),
            ..RateLimitsUpdate::default()
        };
        if self.accounts[place].told_left != update {
            self.accounts[place].told_left = update;
            self.tell_account(account, &update, self.about_account(account), Cause::default(), door);
        }
    }

    fn tell_requests_left(&mut self, now: Nanos, user: u16, door: &mut impl Door) {
        let (available, maximum, period) = self.policy.requests_left(now, user);
        let update = RateLimitsUpdate {
            limit: RateLimitKind::USER,
            available,
            maximum,
            period_ns: period.0,
            ..RateLimitsUpdate::default()
        };
        if self.users[usize::from(user)].told_left == update {
            return;
        }
        self.users[usize::from(user)].told_left = update;
        let event = self.stamp.event(&update, About::default(), Cause::default());
        for client in self.clients.all().iter().filter(|client| client.user == user) {
            door.send(client.number, event);
        }
    }

    /// Tells whoever has an account that the venue's limit refused a request of it: `reason` says who did.
    pub(super) fn tell_venue_limit(
        &self,
        now: Nanos,
        account: u16,
        error: ErrorCode,
        reason: RateLimitReason,
        door: &mut impl Door,
    ) {
        if error != ErrorCode::VENUE_RATE_LIMITED || usize::from(account) >= self.accounts.len() {
            return;
        }
        // By then there is a credit for one request more.
        let wait = INTERVAL.0 / u64::from(self.settings.matching.0.max(1));
        let body = RateLimitTrigger {
            limit: RateLimitKind::VENUE,
            reason,
            until_ns: self.stamp.monotonic(now + Nanos(wait)),
            ..RateLimitTrigger::default()
        };
        self.tell_account(account, &body, self.about_account(account), Cause::default(), door);
    }
}

//! Rate limit events for clients: remaining capacity, and limits that were exceeded.

use tickpath_gateway_protocol::{
    ErrorCode, RateLimitKind, RateLimitReason, RateLimitTrigger, RateLimitsUpdate,
};
use tickpath_types::Nanos;

use super::Core;
use super::out::{About, Cause, EventSink, Venue};

/// Minimum interval between updates of the remaining capacity.
const INTERVAL: Nanos = Nanos::from_secs(1);

impl Core {
    /// Sends the remaining venue credits of each account and requests of each user, if they have changed.
    pub(super) fn poll_rate_limits(
        &mut self,
        now: Nanos,
        door: &mut impl EventSink,
        venue: &impl Venue,
    ) -> usize {
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

    fn tell_credits(&mut self, now: Nanos, account: u16, door: &mut impl EventSink, venue: &impl Venue) {
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

    fn tell_requests_left(&mut self, now: Nanos, user: u16, door: &mut impl EventSink) {
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

    /// Reports a request rejected by the venue's limit to the account's clients; `reason` says by whom.
    pub(super) fn tell_venue_limit(
        &self,
        now: Nanos,
        account: u16,
        error: ErrorCode,
        reason: RateLimitReason,
        door: &mut impl EventSink,
    ) {
        if error != ErrorCode::VENUE_RATE_LIMITED || usize::from(account) >= self.accounts.len() {
            return;
        }
        // By then one more request has a credit.
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

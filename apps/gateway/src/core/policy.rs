//! What decides whether a client may do what it asks for: the user's limit of requests, the caps of the account, the kill
//! switch.

use tickpath_gateway_protocol::{Event, RateLimitKind, RateLimitReason, RateLimitTrigger};
use tickpath_types::Nanos;

use super::Core;
use super::out::{About, Cause, Door};
use crate::config::GatewayConfig;
use crate::safety::{Control, Exposure, SafetyChecks};
use crate::users::{Bans, RequestLimits, Verdict};
use tickpath_gateway_protocol::ErrorCode;

/// Units of a value for one unit of a quantity: values are in 10^-16.
const VALUE_UNITS: i128 = 100_000_000;

/// What decides whether a client may do what it asks for.
#[derive(Debug)]
pub struct Policy {
    safety: SafetyChecks,
    limits: RequestLimits,
}

/// What an order is worth follows from these; prices and quantities in units of 10^-8.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderFacts {
    pub(super) account: u16,
    /// The price that it trades at; 0 when it is not known.
    pub(super) price: i64,
    /// What it may still trade, all of it.
    pub(super) quantity: i64,
    /// The index; 0 when it is not known.
    pub(super) index_price: i64,
    pub(super) worth: Worth,
    /// Orders of the account that are not over, with this one.
    pub(super) open_orders: u32,
}

/// How the value of an order follows from its quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// It is the quantity, which is in the currency of the price.
    Quantity,
    /// Quantity times price.
    Price,
    /// Quantity times index: the price is in the base currency.
    Index,
}

impl Policy {
    /// As a configuration says; and the end that turns the kill switch and publishes limits.
    #[must_use]
    pub fn new(config: &GatewayConfig) -> (Policy, Control) {
        let (safety, control) = SafetyChecks::new(config);
        (Policy { safety, limits: RequestLimits::new(config.users.values()) }, control)
    }

    /// Who is banned, for whoever answers logins.
    #[must_use]
    pub fn bans(&self) -> Bans {
        self.limits.bans()
    }

    /// Requests that were refused for their number, and bans that began.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.limits.counts()
    }

    pub(super) fn is_killed(&self) -> bool {
        self.safety.is_killed()
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.safety.is_dry_run()
    }

    pub(super) fn check(&self, facts: &OrderFacts) -> Result<(), ErrorCode> {
        let times = |price: i64| (price != 0).then(|| i128::from(facts.quantity) * i128::from(price));
        let value = match facts.worth {
            Worth::Quantity => Some(i128::from(facts.quantity) * VALUE_UNITS),
            Worth::Price => times(facts.price),
            Worth::Index => times(facts.index_price),
        };
        let exposure = Exposure { quantity: facts.quantity, value, open_orders: facts.open_orders };
        self.safety.check(usize::from(facts.account), &exposure)
    }
}

impl Core {
    /// Whether a user may ask for something now. `takes_risk_away` is for cancellations.
    pub(super) fn admit(
        &mut self,
        now: Nanos,
        user: u16,
        takes_risk_away: bool,
        door: &mut impl Door,
    ) -> Result<(), ErrorCode> {
        let verdict = self.policy.limits.admit(now, usize::from(user), takes_risk_away);
        let (until, outcome) = match verdict {
            Verdict::Pass => return Ok(()),
            Verdict::Banned(_) => return Err(ErrorCode::BANNED),
            Verdict::PassAndBan(until) => (until, Ok(())),
            Verdict::Ban(until) => (until, Err(ErrorCode::RATE_LIMITED)),
        };
        let body = RateLimitTrigger {
            limit: RateLimitKind::USER,
            reason: RateLimitReason::BANNED,
            until_ns: self.stamp.monotonic(until),
            ..RateLimitTrigger::default()
        };
        let event: Event = self.stamp.event(&body, About::default(), Cause::default());
        for client in self.clients.all().iter().filter(|client| client.user == user) {
            door.send(client.number, event);
        }
        outcome
    }
}

//! Policy for client requests: the user's rate limit, the account's risk limits, and the kill switch.

use tickpath_gateway_protocol::{
    Event, Fixed, Money, RateLimitKind, RateLimitReason, RateLimitTrigger, RiskLimits, SetRiskLimits,
};
use tickpath_types::Nanos;

use super::caps::{Exposure, RiskLimit};
use super::control::{Control, SafetyChecks};
use super::out::{About, Cause, EventSink};
use super::request_limits::{Bans, RequestLimits, Verdict};
use super::settings::Settings;
use super::{AdminCommand, Core};
use tickpath_gateway_protocol::ErrorCode;

/// Units of a value for one unit of a quantity: values are in 10^-16.
const VALUE_UNITS: i128 = 100_000_000;

/// Units of money (10^-18) per 10^-8.
const MONEY_UNITS: i128 = 10_000_000_000;
/// Bits of [`SetRiskLimits::caps`].
const CAP_SIZE: u16 = 1;
const CAP_NOTIONAL: u16 = 2;
const CAP_ORDERS: u16 = 4;
const CAP_WITHDRAW: u16 = 8;
const CAPS_ALL: u16 = 15;

/// Policy that decides on client requests.
#[derive(Debug)]
pub struct Policy {
    safety: SafetyChecks,
    limits: RequestLimits,
    /// Users that may publish limits, by index.
    managers: Box<[bool]>,
}

/// Inputs of an order's notional; prices and quantities in units of 10^-8.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderFacts {
    pub(super) account: u16,
    /// Price at which the order trades; 0 if unknown.
    pub(super) price: i64,
    /// Total quantity that can still trade.
    pub(super) quantity: i64,
    /// Index price; 0 if unknown.
    pub(super) index_price: i64,
    pub(super) worth: Worth,
    /// Open orders of the account, including external ones and this one.
    pub(super) open_orders: u32,
}

/// Basis of an order's notional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// The quantity itself, which is in the currency of the price.
    Quantity,
    /// Quantity times price.
    Price,
    /// Quantity times index: the price is in the base currency.
    Index,
}

impl Policy {
    /// Creates the policy from the settings, and the controls for the kill switch and published limits.
    #[must_use]
    pub fn new(settings: &Settings) -> (Policy, Control) {
        let (safety, control) = SafetyChecks::new(&settings.accounts, settings.is_dry_run);
        let limits = RequestLimits::new(settings.users.iter().map(|user| user.requests));
        let managers = settings.users.iter().map(|user| user.is_risk_manager).collect();
        (Policy { safety, limits, managers }, control)
    }

    /// Current bans, for the login check.
    #[must_use]
    pub fn bans(&self) -> Bans {
        self.limits.bans()
    }

    /// Number of requests rejected by the rate limit, and number of bans started.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.limits.counts()
    }

    /// Publishes or withdraws limits for an account on behalf of a user.
    pub(super) fn publish(&self, user: u16, account: u16, body: &SetRiskLimits) -> Result<(), ErrorCode> {
        if !self.managers.get(usize::from(user)).copied().unwrap_or(false) {
            return Err(ErrorCode::NOT_PERMITTED);
        }
        let has = |bit: u16| body.caps & bit != 0;
        let (size, value) = (body.max_order_quantity.0, body.max_order_notional.0);
        if body.caps & !CAPS_ALL != 0 || has(CAP_SIZE) && size < 0 || has(CAP_NOTIONAL) && value < 0 {
            return Err(ErrorCode::INVALID_TERMS);
        }
        let limit = RiskLimit {
            order_size_max: has(CAP_SIZE).then_some(size),
            notional_max: has(CAP_NOTIONAL).then_some(value),
            open_orders_max: has(CAP_ORDERS).then_some(body.max_open_orders),
        };
        let published = (!has(CAP_WITHDRAW)).then_some(&limit);
        let is_there = self.safety.control().publish(usize::from(account), published);
        if is_there { Ok(()) } else { Err(ErrorCode::UNKNOWN_ACCOUNT) }
    }

    /// Effective limits of an account.
    pub(super) fn limits_of(&self, account: u16, open_orders: u32) -> RiskLimits {
        let limit = self.safety.limit_of(usize::from(account));
        let bit = |is_there: bool, bit: u16| if is_there { bit as u8 } else { 0 };
        RiskLimits {
            caps: bit(limit.order_size_max.is_some(), CAP_SIZE)
                | bit(limit.notional_max.is_some(), CAP_NOTIONAL)
                | bit(limit.open_orders_max.is_some(), CAP_ORDERS),
            max_order_quantity: Fixed(limit.order_size_max.unwrap_or(0)),
            max_order_notional: Money::new(i128::from(limit.notional_max.unwrap_or(0)) * MONEY_UNITS),
            max_open_orders: limit.open_orders_max.unwrap_or(0),
            open_orders,
            is_killed: u8::from(self.is_killed()),
            ..RiskLimits::default()
        }
    }

    /// Number of requests available to a user now, their maximum, and its period.
    pub(super) fn requests_left(&self, now: Nanos, user: u16) -> (u32, u32, Nanos) {
        self.limits.left(now, usize::from(user))
    }

    /// End of a user's ban; none if the user is not banned.
    pub(super) fn banned_until(&self, now: Nanos, user: u16) -> Option<Nanos> {
        self.limits.banned_until(now, usize::from(user))
    }

    /// Effective limits of an account, and its published limits.
    pub(super) fn caps_of(&self, account: u16) -> (RiskLimit, RiskLimit) {
        let place = usize::from(account);
        let published = self.safety.control().published(place).unwrap_or_default();
        (self.safety.limit_of(place), published)
    }

    pub(super) fn is_killed(&self) -> bool {
        self.safety.is_killed()
    }

    #[inline]
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
    /// Executes an operator's command; clients receive their account's new limits.
    pub fn handle_admin(&mut self, command: &AdminCommand, control: &Control, door: &mut impl EventSink) {
        command.carry_out(control);
        // The state of the kill switch is published after its cancellations are requested.
        if let AdminCommand::SetLimits(account, _) = command
            && *account < self.accounts.len()
        {
            self.tell_limits(*account as u16, door);
        }
    }

    /// Current effective limits of an account.
    pub(super) fn limits_of(&self, account: u16) -> RiskLimits {
        self.policy.limits_of(account, self.accounts[usize::from(account)].all_open_orders())
    }

    /// Sends an account's limits to its clients.
    pub(super) fn tell_limits(&self, account: u16, door: &mut impl EventSink) {
        let limits = self.limits_of(account);
        self.tell_account(account, &limits, self.about_account(account), Cause::default(), door);
    }

    /// Checks a user's rate limit. `takes_risk_away` is for cancellations.
    pub(super) fn admit(
        &mut self,
        now: Nanos,
        user: u16,
        takes_risk_away: bool,
        door: &mut impl EventSink,
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

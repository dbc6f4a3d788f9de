//! Runtime controls: the kill switch, and limits that a risk manager publishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tickpath_gateway_protocol::ErrorCode;

use super::caps::{Exposure, RiskLimit};
use super::settings::AccountSettings;

/// Encodes no limit, also before limits are published.
const NONE: i64 = -1;

/// Published limits of one account. One thread writes them between two orders, so no order sees a partial
/// update; other threads may read them.
#[derive(Debug)]
struct Published {
    has_limits: AtomicBool,
    order_size_max: AtomicI64,
    notional_max: AtomicI64,
    open_orders_max: AtomicI64,
}

impl Default for Published {
    fn default() -> Published {
        let none = || AtomicI64::new(NONE);
        Published {
            has_limits: AtomicBool::new(false),
            order_size_max: none(),
            notional_max: none(),
            open_orders_max: none(),
        }
    }
}

impl Published {
    fn set(&self, limit: Option<&RiskLimit>) {
        let limits = limit.copied().unwrap_or_default();
        let put =
            |place: &AtomicI64, value: Option<i64>| place.store(value.unwrap_or(NONE), Ordering::Relaxed);
        put(&self.order_size_max, limits.order_size_max);
        put(&self.notional_max, limits.notional_max);
        put(&self.open_orders_max, limits.open_orders_max.map(i64::from));
        self.has_limits.store(limit.is_some(), Ordering::Relaxed);
    }

    #[inline]
    fn get(&self) -> Option<RiskLimit> {
        if !self.has_limits.load(Ordering::Relaxed) {
            return None;
        }
        let read = |place: &AtomicI64| Some(place.load(Ordering::Relaxed)).filter(|value| *value >= 0);
        Some(RiskLimit {
            order_size_max: read(&self.order_size_max),
            notional_max: read(&self.notional_max),
            open_orders_max: read(&self.open_orders_max).and_then(|value| u32::try_from(value).ok()),
        })
    }
}

#[derive(Debug)]
struct Shared {
    is_killed: AtomicBool,
    accounts: Box<[Published]>,
}

/// Operates the kill switch and publishes limits. Only the duty cycle's thread uses it, so that the order of
/// changes and orders is well defined; other threads may read.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

impl Control {
    /// Creates the controls for a number of accounts.
    #[must_use]
    pub fn new(accounts: usize) -> Control {
        let accounts = (0..accounts).map(|_| Published::default()).collect();
        Control(Arc::new(Shared { is_killed: AtomicBool::new(false), accounts }))
    }

    /// Turns the kill switch on or off: no new order leaves while it is on.
    pub fn set_killed(&self, is_killed: bool) {
        self.0.is_killed.store(is_killed, Ordering::Relaxed);
    }

    /// Whether the kill switch is on.
    #[inline]
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.0.is_killed.load(Ordering::Relaxed)
    }

    /// Publishes limits for an account, by its index, in addition to those of the configuration; `None`
    /// withdraws them. Returns false if there is no such account.
    pub fn publish(&self, account: usize, limit: Option<&RiskLimit>) -> bool {
        self.0.accounts.get(account).map(|place| place.set(limit)).is_some()
    }

    /// Returns the published limits of an account.
    #[must_use]
    pub fn published(&self, account: usize) -> Option<RiskLimit> {
        self.0.accounts.get(account)?.get()
    }
}

/// Configured checks of one account.
#[derive(Clone, Copy, Debug)]
struct Held {
    caps: RiskLimit,
    waits_for_limits: bool,
}

/// Checks for each order.
#[derive(Clone, Debug)]
pub struct SafetyChecks {
    accounts: Box<[Held]>,
    control: Control,
    is_dry_run: bool,
}

impl SafetyChecks {
    /// Creates the checks from a configuration, for accounts in the order of their names, and their controls.
    #[must_use]
    pub fn new(accounts: &[AccountSettings], is_dry_run: bool) -> (SafetyChecks, Control) {
        let control = Control::new(accounts.len());
        let held = |account: &AccountSettings| Held {
            caps: account.caps,
            waits_for_limits: account.waits_for_limits,
        };
        let accounts = accounts.iter().map(held).collect();
        (SafetyChecks { accounts, control: control.clone(), is_dry_run }, control)
    }

    /// Whether the kill switch is on.
    #[inline]
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.control.is_killed()
    }

    /// Whether this is a dry run, in which no order leaves.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Effective limits of an account, by its index: the stricter of configured and published ones.
    #[must_use]
    pub fn limit_of(&self, account: usize) -> RiskLimit {
        let caps = self.accounts.get(account).map(|held| held.caps).unwrap_or_default();
        caps.and(&self.control.published(account).unwrap_or_default())
    }

    /// The controls of these checks.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Checks whether an order of an account, by its index, may leave.
    ///
    /// # Errors
    /// The reason of the rejection.
    #[inline]
    pub fn check(&self, account: usize, order: &Exposure) -> Result<(), ErrorCode> {
        if self.is_killed() {
            return Err(ErrorCode::KILLED);
        }
        let held = self.accounts.get(account).ok_or(ErrorCode::UNKNOWN_ACCOUNT)?;
        held.caps.check(order)?;
        match self.control.published(account) {
            Some(limit) => limit.check(order),
            None if held.waits_for_limits => Err(ErrorCode::NO_RISK_LIMITS),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Matcher;

    const ORDER: Exposure = Exposure { quantity: 500, value: None, open_orders: 1 };

    fn checks() -> (SafetyChecks, Control) {
        let account = |name: &str, order_size_max, waits_for_limits| AccountSettings {
            name: name.to_owned(),
            symbols: Matcher::default(),
            caps: RiskLimit { order_size_max, ..RiskLimit::default() },
            waits_for_limits,
        };
        SafetyChecks::new(&[account("A1", Some(1_000), false), account("A2", None, true)], false)
    }

    #[test]
    fn the_kill_switch_is_before_everything() {
        let (checks, control) = checks();
        assert_eq!(checks.check(0, &ORDER), Ok(()));
        control.set_killed(true);
        assert!(checks.is_killed());
        assert_eq!(checks.check(0, &ORDER), Err(ErrorCode::KILLED));
        assert_eq!(checks.check(1, &ORDER), Err(ErrorCode::KILLED));
        control.set_killed(false);
        assert_eq!(checks.check(0, &ORDER), Ok(()));
    }

    #[test]
    fn without_limits_nothing_leaves_where_they_are_waited_for() {
        let (checks, control) = checks();
        assert_eq!(checks.check(1, &ORDER), Err(ErrorCode::NO_RISK_LIMITS));
        let limit = RiskLimit { order_size_max: Some(400), ..RiskLimit::default() };
        assert!(control.publish(1, Some(&limit)));
        assert_eq!(control.published(1), Some(limit));
        assert_eq!(checks.check(1, &ORDER), Err(ErrorCode::MAX_ORDER_QUANTITY));
        control.publish(1, Some(&RiskLimit::default()));
        assert_eq!(checks.check(1, &ORDER), Ok(()));
        control.publish(1, None);
        assert_eq!(checks.check(1, &ORDER), Err(ErrorCode::NO_RISK_LIMITS));
    }

    #[test]
    fn published_limits_hold_beside_those_of_the_configuration() {
        let (checks, control) = checks();
        let wide = RiskLimit { order_size_max: Some(5_000), ..RiskLimit::default() };
        control.publish(0, Some(&wide));
        let order = |quantity| Exposure { quantity, ..ORDER };
        assert_eq!(checks.check(0, &order(1_000)), Ok(()));
        assert_eq!(checks.check(0, &order(1_001)), Err(ErrorCode::MAX_ORDER_QUANTITY));
        control.publish(0, Some(&RiskLimit { order_size_max: Some(10), ..wide }));
        assert_eq!(checks.check(0, &order(11)), Err(ErrorCode::MAX_ORDER_QUANTITY));
        assert_eq!(checks.limit_of(0).order_size_max, Some(10));
        control.publish(0, Some(&wide));
        assert_eq!(checks.limit_of(0).order_size_max, Some(1_000), "the lesser of the two");
        assert_eq!(checks.check(2, &ORDER), Err(ErrorCode::UNKNOWN_ACCOUNT));
        assert!(!control.publish(2, None));
    }
}

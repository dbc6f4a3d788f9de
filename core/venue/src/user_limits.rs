//! The limits of one user, and changes to them.

use tickpath_matching::CommandKind;
use tickpath_types::Qty;

use crate::log_command::VenueCommandKind;
use crate::token_bucket::RateLimit;

/// The limits of one user. `None` means that only the engine's general limits apply.
///
/// The [`RequestFilter`](crate::RequestFilter) checks the rate before a request is logged. The engine checks
/// all other limits: a command in the log sets them, so they also apply to requests sent before it but
/// sequenced after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Message rate. Above it, new orders and replacements are rejected with `RateAboveLimit`; cancels,
    /// modifications and queries pass, and count towards the rate.
    pub rate: Option<RateLimit>,
    /// Maximum number of open orders; a further order that may rest is rejected with `OpenOrdersAboveLimit`.
    pub open_orders: Option<u32>,
    /// Maximum quantity of one order; a larger one is rejected with `QtyAboveLimit`.
    pub order_qty: Option<Qty>,
    /// Maximum notional (price x qty) of one order, in units of 10^-4; an order above it is rejected with
    /// `NotionalAboveLimit`.
    pub order_notional: Option<u64>,
}

/// Encoding in the log for a user without a message rate limit.
const NO_RATE: RateLimit = RateLimit { per_second: 0, burst: 0 };

impl UserLimits {
    /// Sets the engine's limits from their encoding in the log, where the maximum value means no limit.
    pub(crate) fn with_engine(self, open_orders: u32, order_qty: Qty, order_notional: u64) -> UserLimits {
        UserLimits {
            rate: self.rate,
            open_orders: Some(open_orders).filter(|limit| *limit != u32::MAX),
            order_qty: Some(order_qty).filter(|limit| *limit != Qty(u64::MAX)),
            order_notional: Some(order_notional).filter(|limit| *limit != u64::MAX),
        }
    }

    /// The engine's limits as encoded in the log: open orders, then quantity and notional of one order.
    pub(crate) fn engine_numbers(&self) -> (u32, Qty, u64) {
        let open_orders = self.open_orders.unwrap_or(u32::MAX);
        let order_qty = self.order_qty.unwrap_or(Qty(u64::MAX));
        (open_orders, order_qty, self.order_notional.unwrap_or(u64::MAX))
    }

    /// The command that sets the engine's limits.
    #[must_use]
    pub fn as_command(&self) -> CommandKind {
        let (open_orders, order_qty, order_notional) = self.engine_numbers();
        CommandKind::SetLimits { open_orders, order_qty, order_notional }
    }

    /// The command that records the message rate in the log.
    #[must_use]
    pub fn rate_command(&self) -> VenueCommandKind {
        let (per_second, burst) = self.rate_numbers();
        VenueCommandKind::SetMessageRate { per_second, burst }
    }

    /// Messages per second and burst, as encoded in the log.
    pub(crate) fn rate_numbers(&self) -> (u32, u32) {
        let RateLimit { per_second, burst } = self.rate.unwrap_or(NO_RATE);
        (per_second, burst)
    }
}

/// Decodes a message rate limit from the log; `None` if the user has none.
pub(crate) fn rate(per_second: u32, burst: u32) -> Option<RateLimit> {
    (per_second > 0).then_some(RateLimit { per_second, burst })
}

/// A change to a user's limits. `None` leaves a limit unchanged, `Some(None)` removes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsChange {
    /// Message rate.
    pub rate: Option<Option<RateLimit>>,
    /// Maximum number of open orders.
    pub open_orders: Option<Option<u32>>,
    /// Maximum quantity of one order.
    pub order_qty: Option<Option<Qty>>,
    /// Maximum notional (price x qty) of one order, in units of 10^-4.
    pub order_notional: Option<Option<u64>>,
}

impl LimitsChange {
    /// Returns `limits` with this change applied.
    #[must_use]
    pub fn applied_to(&self, limits: UserLimits) -> UserLimits {
        UserLimits {
            rate: self.rate.unwrap_or(limits.rate),
            open_orders: self.open_orders.unwrap_or(limits.open_orders),
            order_qty: self.order_qty.unwrap_or(limits.order_qty),
            order_notional: self.order_notional.unwrap_or(limits.order_notional),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_receives_all_limits_except_the_rate() {
        let rate = Some(RateLimit { per_second: 1, burst: 1 });
        let rate_alone = UserLimits { rate, ..UserLimits::default() };
        assert_eq!(rate_alone.as_command(), UserLimits::default().as_command(), "without the rate");
        let limits = UserLimits { open_orders: Some(5), order_notional: Some(7), ..UserLimits::default() };
        let command = CommandKind::SetLimits { open_orders: 5, order_qty: Qty(u64::MAX), order_notional: 7 };
        assert_eq!(limits.as_command(), command);
    }
}

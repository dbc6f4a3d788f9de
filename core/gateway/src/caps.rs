//! Limits on the size of orders.

use tickpath_gateway_protocol::ErrorCode;

use super::book::SCALE;

/// Units of a value for one unit of an amount: values are in 10^-16, as products of two 10^-8 numbers.
const VALUE_UNITS: i128 = 10_i128.pow(SCALE as u32);

/// Exposure that an order would add.
#[derive(Clone, Copy, Debug)]
pub struct Exposure {
    /// Quantity of the order, in 10^-8.
    pub quantity: i64,
    /// Notional of the order, in 10^-16; `None` if it cannot be computed.
    pub value: Option<i128>,
    /// Open orders of the account, including this one.
    pub open_orders: u32,
}

/// Limits for each order of an account; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RiskLimit {
    /// Maximum quantity of an order, in 10^-8.
    pub order_size_max: Option<i64>,
    /// Maximum notional of an order, in 10^-8.
    pub notional_max: Option<i64>,
    /// Maximum number of open orders, including the new one.
    pub open_orders_max: Option<u32>,
}

impl RiskLimit {
    /// Returns the stricter value of each limit.
    #[must_use]
    pub fn and(&self, other: &RiskLimit) -> RiskLimit {
        fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        RiskLimit {
            order_size_max: least(self.order_size_max, other.order_size_max),
            notional_max: least(self.notional_max, other.notional_max),
            open_orders_max: least(self.open_orders_max, other.open_orders_max),
        }
    }

    /// Checks an order against the limits.
    ///
    /// # Errors
    /// The limit that the order exceeds; [`ErrorCode::NO_REFERENCE_PRICE`] if a limited notional is unknown.
    #[inline]
    pub fn check(&self, order: &Exposure) -> Result<(), ErrorCode> {
        if self.order_size_max.is_some_and(|most| order.quantity > most) {
            return Err(ErrorCode::MAX_ORDER_QUANTITY);
        }
        if let Some(most) = self.notional_max {
            let value = order.value.ok_or(ErrorCode::NO_REFERENCE_PRICE)?;
            if value > i128::from(most) * VALUE_UNITS {
                return Err(ErrorCode::MAX_ORDER_NOTIONAL);
            }
        }
        if self.open_orders_max.is_some_and(|most| order.open_orders > most) {
            return Err(ErrorCode::MAX_OPEN_ORDERS);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cap_holds_at_the_bound_and_not_one_beyond() {
        let limit = RiskLimit { order_size_max: Some(10), notional_max: Some(7), open_orders_max: Some(3) };
        let order = Exposure { quantity: 10, value: Some(700_000_000), open_orders: 3 };
        let is = |order: Exposure| limit.check(&order);
        assert_eq!(is(order), Ok(()));
        assert_eq!(is(Exposure { quantity: 11, ..order }), Err(ErrorCode::MAX_ORDER_QUANTITY));
        assert_eq!(is(Exposure { value: Some(700_000_001), ..order }), Err(ErrorCode::MAX_ORDER_NOTIONAL));
        assert_eq!(is(Exposure { value: None, ..order }), Err(ErrorCode::NO_REFERENCE_PRICE));
        assert_eq!(is(Exposure { open_orders: 4, ..order }), Err(ErrorCode::MAX_OPEN_ORDERS));
        let huge = Exposure { quantity: i64::MAX, value: Some(i128::MAX), open_orders: u32::MAX };
        assert_eq!(RiskLimit::default().check(&huge), Ok(()));
        let none = RiskLimit { order_size_max: Some(0), ..RiskLimit::default() };
        assert!(none.check(&Exposure { quantity: 1, value: None, open_orders: 1 }).is_err(), "zero is a cap");
    }
}

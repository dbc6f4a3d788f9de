//! Checks of an order's parameters against its instrument, with the reason for each refusal.

use tickpath_faults::failpoint;
use tickpath_types::{
    EnterOrder, Nanos, OrderInstructions, Price, Qty, RejectReason, Side, TimeInForce, TradingState,
};

use super::listing::Listing;
use super::special::expiry;

impl Listing {
    /// Checks an order's parameters; `leaves` is its open quantity. Returns the limit price for matching.
    pub(super) fn check_parameters(
        &self,
        order: &EnterOrder,
        leaves: Qty,
        now: Nanos,
    ) -> Result<Price, RejectReason> {
        let state = self.state;
        failpoint!(HaltIgnored: state = TradingState::Trading);
        if state == TradingState::Halted {
            return Err(RejectReason::Halted);
        }
        if !self.instrument.is_tradable_qty(order.qty) {
            return Err(RejectReason::InvalidQty);
        }
        let is_ioc = order.time_in_force == TimeInForce::Ioc;
        if !order.min_qty.is_zero() && (!is_ioc || order.min_qty > leaves) {
            return Err(RejectReason::InvalidMinQty);
        }
        self.check_special(order, now)?;
        if order.price == Price::MARKET && (is_ioc || is_stop(order)) {
            return Ok(self.limit_of(order.price, order.side));
        }
        self.check_price(order.price).map(|()| order.price)
    }

    /// Limit price for matching an order with this price: the collar's limit for a market order.
    pub(super) fn limit_of(&self, price: Price, side: Side) -> Price {
        match (price, side) {
            (Price::MARKET, Side::Buy) => self.instrument.collar_high,
            (Price::MARKET, Side::Sell) => self.instrument.collar_low,
            (price, _) => price,
        }
    }

    fn check_price(&self, price: Price) -> Result<(), RejectReason> {
        if price <= Price(0) {
            return Err(RejectReason::PriceNotOnTick);
        }
        if !self.instrument.is_within_collar(price) {
            return Err(RejectReason::PriceOutsideCollar);
        }
        if !self.instrument.is_on_tick(price) {
            return Err(RejectReason::PriceNotOnTick);
        }
        Ok(())
    }

    fn check_special(&self, order: &EnterOrder, now: Nanos) -> Result<(), RejectReason> {
        let instructions = order.special.unwrap_or_default();
        let OrderInstructions { stop_price, display_qty, expire_at, is_hidden } = instructions;
        let is_gtt = order.time_in_force == TimeInForce::Gtt;
        if is_gtt != (expire_at != 0) || is_gtt && expiry(&instructions) <= now {
            return Err(RejectReason::InvalidExpireTime);
        }
        if !display_qty.is_zero()
            && (is_hidden
                || !can_rest(order)
                || display_qty > order.qty
                || !display_qty.0.is_multiple_of(self.instrument.lot_size.0))
        {
            return Err(RejectReason::InvalidDisplayQty);
        }
        if is_stop(order) && (self.check_price(stop_price).is_err() || !order.min_qty.is_zero()) {
            return Err(RejectReason::InvalidStopPrice);
        }
        Ok(())
    }
}

/// True for an order that waits until a trade reaches its stop price.
pub(super) fn is_stop(order: &EnterOrder) -> bool {
    order.special.is_some_and(|special| special.stop_price != Price(0))
}

/// True when an order may rest, or may wait for its stop price.
pub(super) fn can_rest(order: &EnterOrder) -> bool {
    is_stop(order) || may_rest(order)
}

/// True when an order's untraded remainder may rest.
pub(super) fn may_rest(order: &EnterOrder) -> bool {
    order.time_in_force.may_rest() && order.price != Price::MARKET
}

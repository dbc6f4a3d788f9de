//! What the plain engine refuses, and why.

use tickpath_matching::CommandKind;
use tickpath_types::*;

use super::{Open, ReferenceEngine};

impl ReferenceEngine {
    /// The limit to match a new order at, or why it is refused. `leaves` is what of its quantity is not executed, `old`
    /// the order that it replaces.
    pub(super) fn check(
        &self,
        order: &EnterOrder,
        leaves: u64,
        old: Option<&Open>,
    ) -> Result<Price, RejectReason> {
        use RejectReason as Reason;
        let refuse = |is_wrong: bool, reason| if is_wrong { Err(reason) } else { Ok(()) };
        let listing = self.instruments.get(&order.instrument).ok_or(Reason::UnknownInstrument)?;
        let Instrument { tick_size, lot_size, max_qty, collar_low, collar_high, .. } = listing.instrument;
        refuse(listing.state == TradingState::Halted, Reason::Halted)?;
        let is_qty = |qty: Qty| qty.0.is_multiple_of(lot_size.0) && qty <= max_qty;
        refuse(order.qty.0 == 0 || !is_qty(order.qty), Reason::InvalidQty)?;
        let is_ioc = order.time_in_force == TimeInForce::Ioc;
        refuse(order.min_qty.0 > 0 && (!is_ioc || order.min_qty.0 > leaves), Reason::InvalidMinQty)?;
        let terms = order.special.unwrap_or_default();
        let is_gtt = order.time_in_force == TimeInForce::Gtt;
        let is_late = Nanos::from_secs(terms.expire_at.into()) <= self.command.ts;
        let wrong_time = if is_gtt { terms.expire_at == 0 || is_late } else { terms.expire_at != 0 };
        refuse(wrong_time, Reason::InvalidExpireTime)?;
        let shown = terms.display_qty;
        let can_be_shown = !terms.is_hidden && can_rest(order) && shown <= order.qty;
        refuse(shown.0 > 0 && !(can_be_shown && is_qty(shown)), Reason::InvalidDisplayQty)?;
        let check_price = |price: Price| {
            refuse(price.0 <= 0, Reason::PriceNotOnTick)?;
            refuse(price < collar_low || price > collar_high, Reason::PriceOutsideCollar)?;
            refuse(price.0 % tick_size.0 != 0, Reason::PriceNotOnTick)
        };
        let is_stop = terms.stop_price != Price(0);
        let wrong_stop = check_price(terms.stop_price).is_err() || order.min_qty.0 > 0;
        refuse(is_stop && wrong_stop, Reason::InvalidStopPrice)?;
        if order.price != Price::MARKET || !(is_ioc || is_stop) {
            check_price(order.price)?;
        }
        let limit = self.limit_of(order);
        refuse(self.is_killed, Reason::Killed)?;
        if self.is_forced() {
            return if can_rest(order) { self.check_room(order, old).map(|()| limit) } else { Ok(limit) };
        }
        let rules = &self.sessions[usize::from(self.command.session.0)];
        refuse(rules.is_killed, Reason::Killed)?;
        refuse(rules.is_disabled, Reason::OrderEntryDisabled)?;
        refuse(order.qty > rules.max_qty, Reason::QtyAboveLimit)?;
        let notional = i128::from(limit.0) * i128::from(order.qty.0);
        let is_bounded = rules.max_notional != u64::MAX;
        refuse(is_bounded && notional > i128::from(rules.max_notional), Reason::NotionalAboveLimit)?;
        if can_rest(order) {
            self.check_room(order, old)?;
        }
        Ok(limit)
    }

    /// True for the venue's own order, for which the session's rules do not hold.
    fn is_forced(&self) -> bool {
        matches!(self.command.kind, CommandKind::Force(_))
    }

    fn check_room(&self, order: &EnterOrder, old: Option<&Open>) -> Result<(), RejectReason> {
        let session = self.command.session;
        let taken: u64 = self.orders.iter().map(|open| open.parts).sum();
        let needed = if is_special(order) { parts_of(order) } else { 0 };
        let freed = old.map_or(0, |old| old.parts);
        let has_parts =
            needed <= freed || taken + needed - freed <= u64::from(self.limits.max_special_orders);
        if old.is_none() {
            let own = self.orders.iter().filter(|open| open.session == session).count();
            let max_own = self.sessions[usize::from(session.0)].max_open_orders as usize;
            if !self.is_forced() && own >= max_own {
                return Err(RejectReason::OpenOrdersAboveLimit);
            }
            let shown = self.orders.iter().filter(|open| open.shown > 0).count();
            if shown >= self.limits.max_open_orders as usize
                || own >= self.limits.max_open_orders_per_session as usize
            {
                return Err(RejectReason::BookFull);
            }
        }
        if has_parts { Ok(()) } else { Err(RejectReason::BookFull) }
    }

    /// An order at the market takes what the collar allows.
    pub(super) fn limit_of(&self, order: &EnterOrder) -> Price {
        let instrument = &self.instruments[&order.instrument].instrument;
        match (order.price, order.side) {
            (Price::MARKET, Side::Buy) => instrument.collar_high,
            (Price::MARKET, Side::Sell) => instrument.collar_low,
            (price, _) => price,
        }
    }
}

pub(super) fn may_rest(order: &EnterOrder) -> bool {
    order.time_in_force != TimeInForce::Ioc && order.price != Price::MARKET
}

pub(super) fn can_rest(order: &EnterOrder) -> bool {
    may_rest(order) || order.special.is_some_and(|terms| terms.stop_price != Price(0))
}

pub(super) fn is_special(order: &EnterOrder) -> bool {
    order.special.is_some() || matches!(order.time_in_force, TimeInForce::Gtt | TimeInForce::Gtc)
}

/// Places in the limit of special orders.
pub(super) fn parts_of(order: &EnterOrder) -> u64 {
    match order.special.unwrap_or_default().display_qty.0 {
        0 => 1,
        shown => 1 + order.qty.0.div_ceil(shown),
    }
}

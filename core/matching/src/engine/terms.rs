//! What is checked of a new order before it is accepted, with the reason for each refusal.

use tickpath_book::OrderBooks;
use tickpath_faults::failpoint;
use tickpath_types::{
    EnterOrder, Nanos, Price, Qty, RejectReason, SessionId, Side, SpecialTerms, TimeInForce, TradingState,
};

use super::Engine;
use super::listing::Listing;
use super::owner::{Owner, order_key};
use super::sessions::Session;
use super::special::expiry;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// The limit to match at, for an order of which nothing needs a second look: a visible day or IOC order,
    /// in an instrument that trades without a price band and in which nothing undisplayed rests, of a session without rules of its
    /// own. `None` sends it to [`Engine::check_entry`], which accepts or refuses all others.
    #[inline(always)]
    pub(super) fn check_plain(
        &self,
        session: SessionId,
        owner: &Session,
        order: &EnterOrder,
    ) -> Option<Price> {
        let listing = self.listing(order.instrument)?;
        // Day and IOC are the first two.
        if !listing.is_plain
            || order.special.is_some()
            || order.time_in_force as u8 > TimeInForce::Ioc as u8
            || !listing.grid.has_qty(order.qty)
        {
            return None;
        }
        let is_ioc = order.time_in_force == TimeInForce::Ioc;
        if !(order.min_qty.is_zero() || is_ioc && order.min_qty <= order.qty) {
            return None;
        }
        if owner.open_orders >= owner.max_plain_orders {
            return None;
        }
        if is_ioc {
            if order.price == Price::MARKET {
                return Some(market_limit(listing, order.side));
            }
        } else if self.resting.books.order_count() >= self.limits.max_open_orders
            || !self.resting.index.has_room(order_key(session, order.user_ref))
        {
            return None;
        }
        listing.grid.has_price(order.price).then_some(order.price)
    }

    /// The limit to match at, or why the order is refused.
    pub(super) fn check_entry(
        &self,
        session: SessionId,
        order: &EnterOrder,
        now: Nanos,
    ) -> Result<Price, RejectReason> {
        let limit = self.check_terms(order, order.qty, now)?;
        self.sessions.check(session, order, limit)?;
        let owner = self.sessions.session(session);
        let max_open_orders = self.sessions.rules(session).max_open_orders;
        if can_rest(order) && owner.open_orders >= max_open_orders {
            return Err(RejectReason::OpenOrdersAboveLimit);
        }
        self.check_room(session, order).map(|()| limit)
    }

    /// The same of an order of the venue's own, for which the rules of the session do not hold.
    pub(super) fn check_forced(
        &self,
        session: SessionId,
        order: &EnterOrder,
        now: Nanos,
    ) -> Result<Price, RejectReason> {
        let limit = self.check_terms(order, order.qty, now)?;
        if self.sessions.is_killed {
            return Err(RejectReason::Killed);
        }
        self.check_room(session, order).map(|()| limit)
    }

    /// Whether there is room for what may be left of an order.
    fn check_room(&self, session: SessionId, order: &EnterOrder) -> Result<(), RejectReason> {
        let owner = self.sessions.session(session);
        if !can_rest(order) {
            return Ok(());
        }
        if self.resting.books.order_count() >= self.limits.max_open_orders
            || owner.open_orders >= self.limits.max_open_orders_per_session
            || !self.resting.has_room(session, order)
        {
            return Err(RejectReason::BookFull);
        }
        Ok(())
    }

    /// Checks what is said of an order against its instrument; `leaves` is what of its quantity has not
    /// been executed. Returns the limit to match at.
    pub(super) fn check_terms(
        &self,
        order: &EnterOrder,
        leaves: Qty,
        now: Nanos,
    ) -> Result<Price, RejectReason> {
        let listing = self.listing(order.instrument).ok_or(RejectReason::UnknownInstrument)?;
        let instrument = &listing.instrument;
        let state = listing.state;
        failpoint!(HaltIgnored: state = TradingState::Trading);
        if state == TradingState::Halted {
            return Err(RejectReason::Halted);
        }
        if !instrument.is_tradable_qty(order.qty) {
            return Err(RejectReason::InvalidQty);
        }
        let is_ioc = order.time_in_force == TimeInForce::Ioc;
        if !order.min_qty.is_zero() && (!is_ioc || order.min_qty > leaves) {
            return Err(RejectReason::InvalidMinQty);
        }
        check_special(listing, order, now)?;
        if order.price == Price::MARKET && (is_ioc || is_stop(order)) {
            return Ok(market_limit(listing, order.side));
        }
        check_price(listing, order.price)
    }
}

/// The limit of an order at the market: the collar's.
fn market_limit(listing: &Listing, side: Side) -> Price {
    match side {
        Side::Buy => listing.instrument.collar_high,
        Side::Sell => listing.instrument.collar_low,
    }
}

fn check_price(listing: &Listing, price: Price) -> Result<Price, RejectReason> {
    if price <= Price(0) {
        return Err(RejectReason::PriceNotOnTick);
    }
    if !listing.instrument.is_within_collar(price) {
        return Err(RejectReason::PriceOutsideCollar);
    }
    if !listing.instrument.is_on_tick(price) {
        return Err(RejectReason::PriceNotOnTick);
    }
    Ok(price)
}

fn check_special(listing: &Listing, order: &EnterOrder, now: Nanos) -> Result<(), RejectReason> {
    let terms = order.special.unwrap_or_default();
    let SpecialTerms { stop_price, display_qty, expire_at, is_hidden } = terms;
    let is_gtt = order.time_in_force == TimeInForce::Gtt;
    if is_gtt != (expire_at != 0) || is_gtt && expiry(&terms) <= now {
        return Err(RejectReason::InvalidExpireTime);
    }
    if !display_qty.is_zero()
        && (is_hidden
            || !can_rest(order)
            || display_qty > order.qty
            || !display_qty.0.is_multiple_of(listing.instrument.lot_size.0))
    {
        return Err(RejectReason::InvalidDisplayQty);
    }
    let is_stop = stop_price != Price(0);
    if is_stop && (check_price(listing, stop_price).is_err() || !order.min_qty.is_zero()) {
        return Err(RejectReason::InvalidStopPrice);
    }
    Ok(())
}

/// True for an order that waits until a trade reaches its stop price.
pub(super) fn is_stop(order: &EnterOrder) -> bool {
    order.special.is_some_and(|special| special.stop_price != Price(0))
}

/// True when what does not trade of an order may rest, or the order may wait.
pub(super) fn can_rest(order: &EnterOrder) -> bool {
    is_stop(order) || may_rest(order)
}

/// True when what does not trade of an order that was worked may rest.
pub(super) fn may_rest(order: &EnterOrder) -> bool {
    order.time_in_force.may_rest() && order.price != Price::MARKET
}

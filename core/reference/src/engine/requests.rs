//! Client requests, and the checks that reject them.

use tickpath_matching::CommandKind;
use tickpath_types::*;

use super::ReferenceEngine;
use super::state::{Incoming, ReferenceOrder};

impl ReferenceEngine {
    pub(super) fn handle_request(&mut self, request: OrderRequest) {
        match request {
            OrderRequest::Enter(order) => self.enter(order),
            OrderRequest::Replace(request) => self.replace(request),
            OrderRequest::Cancel(request) => self.cancel(request),
            OrderRequest::Modify(request) => self.modify(request),
            OrderRequest::MassCancel(request) => self.mass_cancel(request),
            OrderRequest::SetOrderEntry(request) => self.set_order_entry(request),
        }
    }

    /// Records a request's `UserRefNum` as used. Returns false if the request is rejected or a duplicate.
    pub(super) fn use_number(&mut self, user_ref: UserRefNum, client_order_id: ClientOrderId) -> bool {
        match self.sessions.get_mut(usize::from(self.command.session.0)) {
            None => {
                self.reject(user_ref, RejectReason::NotAuthorised, client_order_id);
                false
            }
            Some(session) if user_ref <= session.last_user_ref => {
                let is_exhausted = session.last_user_ref.0 == u32::MAX;
                if is_exhausted && self.find(self.command.session, user_ref).is_none() {
                    self.reject(user_ref, RejectReason::UserRefsExhausted, client_order_id);
                } else {
                    self.duplicates += 1;
                }
                false
            }
            Some(session) => {
                session.last_user_ref = user_ref;
                true
            }
        }
    }

    pub(super) fn enter(&mut self, order: EnterOrder) {
        if !self.use_number(order.user_ref, order.client_order_id) {
            return;
        }
        let limit = match self.check(&order, order.qty.0, None) {
            Ok(limit) => limit,
            Err(reason) => return self.reject(order.user_ref, reason, order.client_order_id),
        };
        let id = self.next_id();
        self.reply(OrderEventKind::Accepted { order, order_id: id, state: OrderState::Live });
        let (session, leaves) = (self.command.session, order.qty.0);
        self.work(Incoming { order, session, id, limit, leaves, executed: 0, replaced: None, entry: None });
    }

    fn replace(&mut self, request: ReplaceOrder) {
        if !self.use_number(request.user_ref, request.client_order_id) {
            return;
        }
        let session = self.command.session;
        let Some(at) = self.find(session, request.orig_user_ref) else {
            let reason = RejectReason::UnknownOrder;
            return self.reject(request.user_ref, reason, request.client_order_id);
        };
        let old = self.orders[at];
        let EnterOrder { instrument, side, attributes, .. } = old.order;
        let order = request.entered(instrument, side, attributes.capacity, attributes.cross_type);
        let leaves = request.qty.0.saturating_sub(old.executed);
        let limit = match self.check(&order, leaves, Some(&old)) {
            Ok(limit) => limit,
            Err(reason) => return self.reject(request.user_ref, reason, request.client_order_id),
        };
        if leaves == 0 {
            return self.close(at, true, CancelReason::User);
        }
        self.orders.remove(at);
        let id = self.next_id();
        let (orig_user_ref, state) = (request.orig_user_ref, OrderState::Live);
        self.reply(OrderEventKind::Replaced { order, orig_user_ref, order_id: id, state });
        let replaced = (old.shown > 0).then_some(old.id);
        self.work(Incoming {
            order,
            session,
            id,
            limit,
            leaves,
            executed: old.executed,
            replaced,
            entry: None,
        });
    }

    fn cancel(&mut self, CancelOrder { user_ref, qty }: CancelOrder) {
        let Some(at) = self.find(self.command.session, user_ref) else { return };
        let open = self.orders[at];
        let size = open.executed + open.leaves();
        if qty.0 <= open.executed {
            return self.close(at, true, CancelReason::User);
        }
        if qty.0 < size && self.is_in_lots(&open, qty) {
            let decrement = Qty(size - qty.0);
            self.reply(OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::User });
            self.reduce(at, decrement.0);
        }
    }

    fn modify(&mut self, ModifyOrder { user_ref, side_marking, qty }: ModifyOrder) {
        let nothing = ClientOrderId::default();
        let Some(at) = self.find(self.command.session, user_ref) else { return };
        let open = self.orders[at];
        let size = open.executed + open.leaves();
        let markings: &[u8] = if open.order.side == Side::Buy { b"B" } else { b"STE" };
        if !markings.contains(&side_marking) {
            return self.reject(user_ref, RejectReason::InvalidSide, nothing);
        }
        if qty.is_zero() || qty.0 > size || !self.is_in_lots(&open, qty) {
            return self.reject(user_ref, RejectReason::InvalidQty, nothing);
        }
        if qty.0 <= open.executed {
            return self.close(at, true, CancelReason::User);
        }
        self.reply(OrderEventKind::Modified { user_ref, side_marking, qty });
        if qty.0 < size {
            self.reduce(at, size - qty.0);
        }
    }

    fn mass_cancel(&mut self, request: MassCancel) {
        let MassCancel { user_ref, instrument, side, .. } = request;
        if !self.use_number(user_ref, ClientOrderId::default()) {
            return;
        }
        let is_all = instrument == InstrumentId(0);
        if !is_all && !self.instruments.contains_key(&instrument) {
            return self.reject(user_ref, RejectReason::UnknownInstrument, ClientOrderId::default());
        }
        self.reply(OrderEventKind::MassCanceled(request));
        self.cancel_all(self.command.session, false, CancelReason::User, |open| {
            (is_all || open.order.instrument == instrument) && side.is_none_or(|side| open.order.side == side)
        });
    }

    fn set_order_entry(&mut self, request: SetOrderEntry) {
        if self.use_number(request.user_ref, ClientOrderId::default()) {
            self.sessions[usize::from(self.command.session.0)].is_disabled = !request.is_enabled;
            self.reply(OrderEventKind::OrderEntrySet(request));
        }
    }

    /// Reduces an open order by `qty`, which is less than its open quantity; reduces hidden quantity first.
    pub(super) fn reduce(&mut self, at: usize, qty: u64) {
        let open = &mut self.orders[at];
        let hidden = qty.min(open.hidden);
        open.hidden -= hidden;
        open.shown -= qty - hidden;
        let (instrument, order_id) = (open.order.instrument, open.id);
        if qty > hidden {
            self.publish(instrument, MarketEventKind::Reduced { order_id, qty: Qty(qty - hidden) });
        }
    }

    pub(super) fn close(&mut self, at: usize, is_reply: bool, reason: CancelReason) {
        let removed = self.orders.remove(at);
        let (user_ref, decrement) = (removed.order.user_ref, Qty(removed.leaves()));
        self.report(removed.session, is_reply, OrderEventKind::Canceled { user_ref, decrement, reason });
        self.delete(&removed);
    }

    /// Cancels the selected orders of a session, by ascending `UserRefNum`.
    pub(super) fn cancel_all(
        &mut self,
        session: SessionId,
        mut is_reply: bool,
        reason: CancelReason,
        is_selected: impl Fn(&ReferenceOrder) -> bool,
    ) {
        loop {
            let places = 0..self.orders.len();
            let selected =
                places.filter(|&at| self.orders[at].session == session && is_selected(&self.orders[at]));
            let Some(at) = selected.min_by_key(|at| self.orders[*at].order.user_ref) else { return };
            self.close(at, is_reply, reason);
            is_reply = false;
        }
    }

    /// Cancels the selected orders of all sessions, session by session.
    pub(super) fn cancel_where(
        &mut self,
        reason: CancelReason,
        is_selected: impl Fn(&ReferenceOrder) -> bool,
    ) {
        for session in (0..self.limits.max_sessions).map(SessionId) {
            self.cancel_all(session, false, reason, &is_selected);
        }
    }

    fn is_in_lots(&self, open: &ReferenceOrder, qty: Qty) -> bool {
        qty.0.is_multiple_of(self.instruments[&open.order.instrument].instrument.lot_size.0)
    }

    /// Checks an order that has open quantity `leaves` and replaces `old`, if given. Returns its limit price
    /// for matching.
    fn check(
        &self,
        order: &EnterOrder,
        leaves: u64,
        old: Option<&ReferenceOrder>,
    ) -> Result<Price, RejectReason> {
        use RejectReason as Reason;
        let reject_if = |is_wrong: bool, reason| if is_wrong { Err(reason) } else { Ok(()) };
        let listing = self.instruments.get(&order.instrument).ok_or(Reason::UnknownInstrument)?;
        let Instrument { tick_size, lot_size, max_qty, collar_low, collar_high, .. } = listing.instrument;
        reject_if(listing.state == TradingState::Halted, Reason::Halted)?;
        let is_qty = |qty: Qty| qty.0.is_multiple_of(lot_size.0) && qty <= max_qty;
        reject_if(order.qty.0 == 0 || !is_qty(order.qty), Reason::InvalidQty)?;
        let is_ioc = order.time_in_force == TimeInForce::Ioc;
        reject_if(order.min_qty.0 > 0 && (!is_ioc || order.min_qty.0 > leaves), Reason::InvalidMinQty)?;
        let instructions = order.special.unwrap_or_default();
        let is_gtt = order.time_in_force == TimeInForce::Gtt;
        let is_expired = Nanos::from_secs(instructions.expire_at.into()) <= self.command.ts;
        let wrong_time =
            if is_gtt { instructions.expire_at == 0 || is_expired } else { instructions.expire_at != 0 };
        reject_if(wrong_time, Reason::InvalidExpireTime)?;
        let shown = instructions.display_qty;
        let can_be_shown = !instructions.is_hidden && can_rest(order) && shown <= order.qty;
        reject_if(shown.0 > 0 && !(can_be_shown && is_qty(shown)), Reason::InvalidDisplayQty)?;
        let check_price = |price: Price| {
            reject_if(price.0 <= 0, Reason::PriceNotOnTick)?;
            reject_if(price < collar_low || price > collar_high, Reason::PriceOutsideCollar)?;
            reject_if(price.0 % tick_size.0 != 0, Reason::PriceNotOnTick)
        };
        let is_stop = instructions.stop_price != Price(0);
        let wrong_stop = check_price(instructions.stop_price).is_err() || order.min_qty.0 > 0;
        reject_if(is_stop && wrong_stop, Reason::InvalidStopPrice)?;
        if order.price != Price::MARKET || !(is_ioc || is_stop) {
            check_price(order.price)?;
        }
        let limit = self.limit_of(order);
        reject_if(self.is_killed, Reason::Killed)?;
        if self.is_forced() {
            return if can_rest(order) { self.check_capacity(order, old).map(|()| limit) } else { Ok(limit) };
        }
        let rules = &self.sessions[usize::from(self.command.session.0)];
        reject_if(rules.is_killed, Reason::Killed)?;
        reject_if(rules.is_disabled, Reason::OrderEntryDisabled)?;
        reject_if(order.qty > rules.max_qty, Reason::QtyAboveLimit)?;
        let notional = i128::from(limit.0) * i128::from(order.qty.0);
        let is_bounded = rules.max_notional != u64::MAX;
        reject_if(is_bounded && notional > i128::from(rules.max_notional), Reason::NotionalAboveLimit)?;
        if can_rest(order) {
            self.check_capacity(order, old)?;
        }
        Ok(limit)
    }

    /// Returns true if the current command is an order of the venue, which is exempt from the session's
    /// rules.
    fn is_forced(&self) -> bool {
        matches!(self.command.kind, CommandKind::Force(_))
    }

    fn check_capacity(&self, order: &EnterOrder, old: Option<&ReferenceOrder>) -> Result<(), RejectReason> {
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

    /// Returns the limit price for matching; for a market order it is a bound of the price collar.
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
    may_rest(order) || order.special.is_some_and(|instructions| instructions.stop_price != Price(0))
}

pub(super) fn is_special(order: &EnterOrder) -> bool {
    order.special.is_some() || matches!(order.time_in_force, TimeInForce::Gtt | TimeInForce::Gtc)
}

/// Units of `max_special_orders` that an order takes: 1, plus 1 per displayed part of an order with a
/// display quantity.
pub(super) fn parts_of(order: &EnterOrder) -> u64 {
    match order.special.unwrap_or_default().display_qty.0 {
        0 => 1,
        shown => 1 + order.qty.0.div_ceil(shown),
    }
}

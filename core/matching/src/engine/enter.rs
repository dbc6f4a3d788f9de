//! Entry and replacement of orders, with the fast path for plain orders. `matcher` has the slow path.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, Liquidity, MarketEventKind, Nanos, OrderEventKind, OrderId,
    OrderState, Price, Qty, RejectReason, ReplaceOrder, SessionId, TimeInForce, UserRefNum,
};

use super::context::Context;
use super::matcher::{InFlightOrder, Matcher};
use super::order_checks::can_rest;
use super::orders::{OpenOrder, OpenOrders};
use super::owner::{Owner, order_key};
use super::sessions::Session;
use super::special::is_special;
use crate::EventListener;

/// An accepted order in flight: it does not rest yet, and has not ended.
///
/// `take` gets the fields as separate arguments, so an order that rests at once never leaves the registers.
#[derive(Clone, Copy, Debug)]
struct Incoming<'a> {
    order: &'a EnterOrder,
    id: OrderId,
    /// Limit price for matching: the collar's limit in place of [`Price::MARKET`].
    limit: Price,
    /// Executed quantity of the order and of those that it replaced.
    executed: u64,
    /// Id of the displayed order that this order replaces; `None` once the old order's deletion is published.
    replaced: Option<OrderId>,
}

impl Incoming<'_> {
    #[inline]
    fn leaves(&self) -> Qty {
        Qty(self.order.qty.0 - self.executed)
    }
}

impl<B: OrderBooks<Owner>> Matcher<B> {
    #[inline(always)]
    pub(super) fn enter(&mut self, order: &EnterOrder, context: &mut Context<impl EventListener>) {
        let session = context.command.session;
        let Some(owner) = self.orders.use_number(order.user_ref, &order.client_order_id, context) else {
            return;
        };
        match self.check_plain(session, &owner, order) {
            Some(limit) => {
                debug_assert_eq!(self.check_entry(session, order, context.command.ts), Ok(limit));
                let id = context.next_order_id();
                let state = OrderState::Live;
                context.reply(OrderEventKind::Accepted { order: *order, order_id: id, state });
                self.work(Incoming { order, id, limit, executed: 0, replaced: None }, context);
            }
            None => self.enter_special(order, &mut context.reborrow()),
        }
    }

    /// Accepts or refuses an order for which [`Matcher::check_plain`] returned `None`.
    #[cold]
    #[inline(never)]
    fn enter_special(&mut self, order: &EnterOrder, context: &mut Context<impl EventListener>) {
        let checked = self.check_entry(context.command.session, order, context.command.ts);
        self.enter_checked(order, checked, context);
    }

    /// Enters the venue's own order for the session. The session's rules do not apply to it.
    #[cold]
    pub(super) fn force(&mut self, order: &EnterOrder, context: &mut Context<impl EventListener>) {
        let session = context.command.session;
        if self.orders.use_number(order.user_ref, &order.client_order_id, context).is_none() {
            return;
        }
        let checked = self.check_parameters(order, order.qty, context.command.ts).and_then(|limit| {
            if self.orders.sessions.is_killed {
                return Err(RejectReason::Killed);
            }
            self.check_capacity(session, order).map(|()| limit)
        });
        self.enter_checked(order, checked, context);
    }

    fn enter_checked(
        &mut self,
        order: &EnterOrder,
        checked: Result<Price, RejectReason>,
        context: &mut Context<impl EventListener>,
    ) {
        match checked {
            Ok(limit) => {
                let id = context.next_order_id();
                let state = OrderState::Live;
                context.reply(OrderEventKind::Accepted { order: *order, order_id: id, state });
                self.work_special(InFlightOrder::new(*order, context.command.session, id, limit, 0), context);
            }
            Err(reason) => context.reject(order.user_ref, reason, order.client_order_id),
        }
    }

    /// Rejects an order that the gateway refused. There is no response if its `UserRefNum` is already
    /// used: the response would seem to end the earlier order.
    #[cold]
    pub(super) fn reject_for_gateway(
        &mut self,
        user_ref: UserRefNum,
        reason: RejectReason,
        client_order_id: ClientOrderId,
        context: &mut Context<impl EventListener>,
    ) {
        if self.orders.use_number(user_ref, &client_order_id, context).is_some() {
            context.reject(user_ref, reason, client_order_id);
        }
    }

    /// Replaces an order. The new order keeps the side, instrument, capacity and cross type, gets a new id,
    /// and goes to the tail of its level.
    ///
    /// The old order's executed quantity counts towards the new order's size. If it reaches that size, the
    /// old order is cancelled and no new one is entered.
    #[inline(never)]
    pub(super) fn replace(&mut self, request: &ReplaceOrder, context: &mut Context<impl EventListener>) {
        let session = context.command.session;
        let Some(owner) = self.orders.use_number(request.user_ref, &request.client_order_id, context) else {
            return;
        };
        let reject = |reason, context: &mut Context<_>| {
            context.reject(request.user_ref, reason, request.client_order_id);
        };
        let Some(old) = self.orders.open_order(session, request.orig_user_ref) else {
            return reject(RejectReason::UnknownOrder, context);
        };
        let order = request.entered(old.instrument, old.side, old.capacity, old.cross_type);
        let leaves = Qty(request.qty.0.saturating_sub(old.executed));
        let mut plain_limit = None;
        if owner.max_plain_orders > 0 {
            plain_limit = self.plain_limit(session, &order, leaves);
        }
        let limit = match plain_limit {
            Some(limit) => {
                debug_assert_eq!(
                    self.check_replacement(session, &old, &order, leaves, context.command.ts),
                    Ok(limit)
                );
                limit
            }
            None => match self.check_replacement(session, &old, &order, leaves, context.command.ts) {
                Ok(limit) => limit,
                Err(reason) => return reject(reason, context),
            },
        };
        if leaves.is_zero() {
            return self.orders.cancel_whole((session, old.user_ref), true, CancelReason::User, context);
        }
        self.replace_with(&old, &order, limit, plain_limit.is_some(), context);
    }

    fn replace_with(
        &mut self,
        old: &OpenOrder,
        order: &EnterOrder,
        limit: Price,
        is_plain: bool,
        context: &mut Context<impl EventListener>,
    ) {
        let session = context.command.session;
        self.orders.remove_from_index(session, old.user_ref);
        let removed = self.orders.remove(old.handle);
        let order_id = context.next_order_id();
        context.reply(OrderEventKind::Replaced {
            order: *order,
            orig_user_ref: old.user_ref,
            order_id,
            state: OrderState::Live,
        });
        let executed = old.executed;
        failpoint!(ReplaceForgetsExecuted: executed = 0);
        let replaced = removed.displayed;
        // A removed special order may have made its instrument plain; the slow path gives the same results.
        if is_plain && replaced.is_some() {
            return self.work(Incoming { order, id: order_id, limit, executed, replaced }, context);
        }
        let in_flight = InFlightOrder::new(*order, session, order_id, limit, executed);
        self.work_special(InFlightOrder { replaced, ..in_flight }, context);
    }

    /// Returns the limit price for matching a plain order: a visible day or IOC order of a session without
    /// rules, in an instrument that trades without a price band and without undisplayed resting orders.
    /// `None` sends the order to [`Matcher::check_entry`], which accepts or refuses all others.
    #[inline(always)]
    fn check_plain(&self, session: SessionId, owner: &Session, order: &EnterOrder) -> Option<Price> {
        if owner.open_orders >= owner.max_plain_orders
            || order.time_in_force != TimeInForce::Ioc
                && self.orders.books.order_count() >= self.orders.limits.max_open_orders
        {
            return None;
        }
        self.plain_limit(session, order, order.qty)
    }

    /// As [`Matcher::check_plain`], for a session without rules, with open quantity `leaves`. Does not check
    /// whether the books have capacity.
    #[inline(always)]
    fn plain_limit(&self, session: SessionId, order: &EnterOrder, leaves: Qty) -> Option<Price> {
        let listing = self.orders.listings.find(order.instrument)?;
        // `Day` and `Ioc` are the first two variants.
        if !listing.is_plain
            || order.special.is_some()
            || order.time_in_force as u8 > TimeInForce::Ioc as u8
            || !listing.grid.has_qty(order.qty)
        {
            return None;
        }
        let is_ioc = order.time_in_force == TimeInForce::Ioc;
        if !(order.min_qty.is_zero() || is_ioc && order.min_qty <= leaves) {
            return None;
        }
        if is_ioc {
            if order.price == Price::MARKET {
                return Some(listing.limit_of(order.price, order.side));
            }
        } else if !self.orders.index.has_capacity(order_key(session, order.user_ref)) {
            return None;
        }
        listing.grid.has_price(order.price).then_some(order.price)
    }

    /// Checks a new order; returns the limit price for matching, or the reason for a refusal.
    fn check_entry(&self, session: SessionId, order: &EnterOrder, now: Nanos) -> Result<Price, RejectReason> {
        let limit = self.check_parameters(order, order.qty, now)?;
        let sessions = &self.orders.sessions;
        sessions.check(session, order, limit)?;
        if can_rest(order) && sessions.session(session).open_orders >= sessions.rules(session).max_open_orders
        {
            return Err(RejectReason::OpenOrdersAboveLimit);
        }
        self.check_capacity(session, order).map(|()| limit)
    }

    /// Checks a replacement of `old`; `leaves` is the open quantity of the new order. Returns its limit price for
    /// matching.
    #[inline(never)]
    fn check_replacement(
        &self,
        session: SessionId,
        old: &OpenOrder,
        order: &EnterOrder,
        leaves: Qty,
        now: Nanos,
    ) -> Result<Price, RejectReason> {
        let limit = self.check_parameters(order, leaves, now)?;
        self.orders.sessions.check(session, order, limit)?;
        if can_rest(order) && !self.orders.has_capacity(session, order, Some(old)) {
            return Err(RejectReason::BookFull);
        }
        Ok(limit)
    }

    fn check_parameters(&self, order: &EnterOrder, leaves: Qty, now: Nanos) -> Result<Price, RejectReason> {
        let listing = self.orders.listings.find(order.instrument);
        listing.ok_or(RejectReason::UnknownInstrument)?.check_parameters(order, leaves, now)
    }

    /// Checks that there is capacity for an order that may rest. Other orders need none.
    fn check_capacity(&self, session: SessionId, order: &EnterOrder) -> Result<(), RejectReason> {
        let OpenOrders { limits, sessions, books, .. } = &self.orders;
        if can_rest(order)
            && (books.order_count() >= limits.max_open_orders
                || sessions.session(session).open_orders >= limits.max_open_orders_per_session
                || !self.orders.has_capacity(session, order, None))
        {
            return Err(RejectReason::BookFull);
        }
        Ok(())
    }

    /// Matches an accepted order or replacement, and rests or cancels the remainder.
    #[inline(always)]
    fn work(&mut self, incoming: Incoming<'_>, context: &mut Context<impl EventListener>) {
        let Incoming { order, id, limit, executed, replaced } = incoming;
        if self.orders.books.would_trade(order.instrument, order.side, limit) {
            self.take(order, id, limit, executed, replaced, &mut context.reborrow());
        } else if order.time_in_force == TimeInForce::Day {
            self.rest(incoming, context);
        } else {
            let reason = CancelReason::ImmediateOrCancel;
            self.cancel_rest(order, executed, replaced, reason, &mut context.reborrow());
        }
    }

    /// Matches an order that crosses the other side, and rests or cancels the remainder.
    #[inline(never)]
    fn take(
        &mut self,
        order: &EnterOrder,
        id: OrderId,
        limit: Price,
        executed: u64,
        replaced: Option<OrderId>,
        context: &mut Context<impl EventListener>,
    ) {
        let mut incoming = Incoming { order, id, limit, executed, replaced };
        self.delete_replaced(&mut incoming, context);
        let post_only = order.post_only;
        failpoint!(PostOnlyTrades: post_only = false);
        if post_only {
            return self.cancel_rest(order, executed, incoming.replaced, CancelReason::PostOnly, context);
        }
        if self.can_trade_minimum(&incoming) {
            self.trade(&mut incoming, context);
        }
        failpoint!(RemainderForgotten => return self.work_triggered(context));
        if !incoming.leaves().is_zero() {
            let time_in_force = order.time_in_force;
            failpoint!(IocRests: time_in_force = TimeInForce::Day);
            match time_in_force {
                TimeInForce::Ioc => {
                    let reason = CancelReason::ImmediateOrCancel;
                    self.cancel_rest(order, incoming.executed, incoming.replaced, reason, context);
                }
                _ => self.rest_remainder(incoming, context),
            }
        }
        self.work_triggered(context);
    }

    fn can_trade_minimum(&self, incoming: &Incoming<'_>) -> bool {
        let EnterOrder { instrument, side, min_qty, .. } = *incoming.order;
        failpoint!(MinimumIgnored => return true);
        min_qty.is_zero()
            || self.orders.books.available(instrument, side.opposite(), incoming.limit, min_qty) >= min_qty
    }

    /// Trades with the other side, which the order crosses, best level first and earliest order first, until
    /// the order is filled or no acceptable price is left. The number of resting orders bounds the loop.
    fn trade(&mut self, incoming: &mut Incoming<'_>, context: &mut Context<impl EventListener>) {
        let EnterOrder { instrument, side, user_ref, .. } = *incoming.order;
        let mut first = Price(0);
        let mut last = Price(0);
        let exceeds_cache = self.orders.exceeds_cache();
        while let Some(front) = self.orders.books.front(instrument, side.opposite()) {
            let Some(resting) = self.orders.books.order(front) else { break };
            if exceeds_cache {
                // The cache misses overlap with the work on the events. The next order is prefetched already.
                self.orders.books.prefetch_second_next(front);
                self.orders.index.prefetch(order_key(resting.data.session, resting.data.user_ref));
            }
            let price = resting.price;
            failpoint!(TradeAtTakersPrice: price = incoming.limit);
            let qty = incoming.leaves().min(resting.qty);
            let taker = (context.command.session, user_ref, Liquidity::Removed);
            let match_id = self.executions.execute(taker, &resting, Liquidity::Added, qty, price, context);
            context.publish(instrument, MarketEventKind::Executed { order_id: resting.id, qty, match_id });
            incoming.executed += qty.0;
            if qty == resting.qty {
                self.orders.books.remove(front);
                let handle = self.orders.remove_from_index(resting.data.session, resting.data.user_ref);
                if is_special(handle) {
                    self.forget_special(handle);
                }
            } else {
                self.orders.books.data_mut(front).executed += qty.0;
                self.orders.books.reduce(front, qty);
                failpoint!(PartialFillLosesPriority => self.orders.send_to_tail(front));
            }
            if first == Price(0) {
                first = price;
            }
            last = price;
            if incoming.leaves().is_zero() || !self.orders.books.would_trade(instrument, side, incoming.limit)
            {
                break;
            }
        }
        if last != Price(0) {
            self.note_trades(instrument, first, last);
        }
        // The next trade on this side begins with this order and the one behind it.
        if exceeds_cache && let Some(front) = self.orders.books.front(instrument, side.opposite()) {
            self.orders.books.prefetch_next(front);
        }
    }

    /// Removes a special order's entry. Out of line: it is rare and would take registers from `trade`.
    #[cold]
    #[inline(never)]
    fn forget_special(&mut self, handle: OrderHandle) {
        self.orders.specials.remove(handle);
    }

    /// Calls `rest` out of line, for orders that traded first; `work` inlines its own call.
    #[inline(never)]
    fn rest_remainder(&mut self, incoming: Incoming<'_>, context: &mut Context<impl EventListener>) {
        self.rest(incoming, context);
    }

    #[inline(always)]
    fn rest(&mut self, incoming: Incoming<'_>, context: &mut Context<impl EventListener>) {
        let Incoming { order, id, limit: price, executed, replaced } = incoming;
        let EnterOrder { user_ref, instrument, side, .. } = *order;
        let session = context.command.session;
        let qty = incoming.leaves();
        let data = Owner::of(order, session, executed);
        let handle = self
            .orders
            .books
            .add(Order { id, instrument, side, price, qty, data })
            .expect("room in the books was checked on entry");
        self.orders.enter_index(session, user_ref, handle);
        let kind = match replaced {
            None => MarketEventKind::Add { order_id: id, side, price, qty },
            Some(old_order_id) => MarketEventKind::Replaced { old_order_id, order_id: id, price, qty },
        };
        context.publish(instrument, kind);
    }

    /// Cancels the remainder, and publishes the deletion of the replaced order if that is not yet done.
    // Out of line and with separate arguments, like `take`.
    #[inline(never)]
    fn cancel_rest(
        &mut self,
        order: &EnterOrder,
        executed: u64,
        replaced: Option<OrderId>,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
    ) {
        if let Some(order_id) = replaced {
            context.publish(order.instrument, MarketEventKind::Deleted { order_id });
        }
        let decrement = Qty(order.qty.0 - executed);
        let kind = OrderEventKind::Canceled { user_ref: order.user_ref, decrement, reason };
        context.report(context.command.session, false, kind);
    }

    /// Publishes the deletion of the replaced order, unless it is already published.
    fn delete_replaced(&self, incoming: &mut Incoming<'_>, context: &mut Context<impl EventListener>) {
        if let Some(order_id) = incoming.replaced.take() {
            context.publish(incoming.order.instrument, MarketEventKind::Deleted { order_id });
        }
    }
}

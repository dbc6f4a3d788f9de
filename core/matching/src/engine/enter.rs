//! Plain new orders: matching, and resting what is left. All others are worked in `working`.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, EnterOrder, Liquidity, MarketEventKind, OrderEventKind, OrderId, OrderState, Price, Qty,
    TimeInForce,
};

use super::Engine;
use super::context::Context;
use super::owner::{Owner, order_key};
use super::special::is_special;
use crate::EventListener;

/// An accepted order on its way into the book.
///
/// Passed as separate arguments where the order is going to rest at once, which is most of them: so it
/// never leaves the registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) order: &'a EnterOrder,
    pub(super) id: OrderId,
    /// What to match at: never [`Price::MARKET`], for which the collar's limit stands.
    pub(super) limit: Price,
    /// What of the order's quantity has been executed.
    pub(super) executed: u64,
    /// The resting order that it replaced, until the public knows that it went.
    pub(super) replaced: Option<OrderId>,
}

impl Incoming<'_> {
    #[inline]
    fn leaves(&self) -> Qty {
        Qty(self.order.qty.0 - self.executed)
    }
}

impl<B: OrderBooks<Owner>> Engine<B> {
    #[inline(always)]
    pub(super) fn enter(&mut self, order: &EnterOrder, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        match self.use_number(session, order.user_ref) {
            Ok(Some(owner)) => match self.check_plain(session, &owner, order) {
                Some(limit) => {
                    debug_assert_eq!(self.check_entry(session, order, context.command.ts), Ok(limit));
                    let id = self.next_order_id();
                    let state = OrderState::Live;
                    context.reply(OrderEventKind::Accepted { order: *order, order_id: id, state });
                    self.work(Incoming { order, id, limit, executed: 0, replaced: None }, context);
                }
                None => self.enter_special(order, context),
            },
            Ok(None) => {}
            Err(reason) => self.reject(order.user_ref, reason, order.client_order_id, context),
        }
    }

    #[inline]
    pub(super) fn next_order_id(&mut self) -> OrderId {
        self.last_order_id.0 += 1;
        self.last_order_id
    }

    /// Matches an order that has been answered, and rests or cancels what is left.
    #[inline(always)]
    pub(super) fn work(&mut self, incoming: Incoming<'_>, context: &mut Context<'_, impl EventListener>) {
        let Incoming { order, id, limit, executed, replaced } = incoming;
        if self.resting.books.would_trade(order.instrument, order.side, limit) {
            self.take(order, id, limit, executed, replaced, context);
        } else if order.time_in_force == TimeInForce::Day {
            self.rest(incoming, context);
        } else {
            self.cancel_rest(incoming, CancelReason::ImmediateOrCancel, context);
        }
    }

    /// Matches an order that crosses the other side.
    #[inline(never)]
    fn take(
        &mut self,
        order: &EnterOrder,
        id: OrderId,
        limit: Price,
        executed: u64,
        replaced: Option<OrderId>,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let mut incoming = Incoming { order, id, limit, executed, replaced };
        self.delete_replaced(&mut incoming, context);
        let post_only = order.post_only;
        failpoint!(PostOnlyTrades: post_only = false);
        if post_only {
            return self.cancel_rest(incoming, CancelReason::PostOnly, context);
        }
        if self.can_trade_minimum(&incoming) {
            self.trade(&mut incoming, context);
        }
        failpoint!(RemainderForgotten => return self.work_triggered(context));
        if !incoming.leaves().is_zero() {
            let time_in_force = order.time_in_force;
            failpoint!(IocRests: time_in_force = TimeInForce::Day);
            match time_in_force {
                TimeInForce::Ioc => self.cancel_rest(incoming, CancelReason::ImmediateOrCancel, context),
                _ => self.rest_remainder(incoming, context),
            }
        }
        self.work_triggered(context);
    }

    fn can_trade_minimum(&self, incoming: &Incoming<'_>) -> bool {
        let EnterOrder { instrument, side, min_qty, .. } = *incoming.order;
        failpoint!(MinimumIgnored => return true);
        min_qty.is_zero()
            || self.resting.books.available(instrument, side.opposite(), incoming.limit, min_qty) >= min_qty
    }

    /// Trades with the other side, which the order crosses, best level first and earliest order first, until
    /// the order is filled or no price is left that it accepts. Bounded by the orders that rest.
    fn trade(&mut self, incoming: &mut Incoming<'_>, context: &mut Context<'_, impl EventListener>) {
        let EnterOrder { instrument, side, user_ref, .. } = *incoming.order;
        let mut first = Price(0);
        let mut last = Price(0);
        while let Some(front) = self.resting.books.front(instrument, side.opposite()) {
            let Some(resting) = self.resting.books.order(front) else { break };
            let price = resting.price;
            failpoint!(TradeAtTakersPrice: price = incoming.limit);
            let qty = incoming.leaves().min(resting.qty);
            let taker = (context.command.session, user_ref, Liquidity::Removed);
            let match_id = self.tell_execution(taker, &resting, Liquidity::Added, qty, price, context);
            self.publish(
                instrument,
                MarketEventKind::Executed { order_id: resting.id, qty, match_id },
                context,
            );
            incoming.executed += qty.0;
            if qty == resting.qty {
                self.resting.books.remove(front);
                let handle = self.forget(resting.data.session, resting.data.user_ref);
                if is_special(handle) {
                    self.forget_special(handle);
                }
            } else {
                self.resting.books.data_mut(front).executed += qty.0;
                self.resting.books.reduce(front, qty);
                failpoint!(PartialFillLosesPriority => self.resting.send_to_tail(front));
            }
            if first == Price(0) {
                first = price;
            }
            last = price;
            if incoming.leaves().is_zero()
                || !self.resting.books.would_trade(instrument, side, incoming.limit)
            {
                break;
            }
        }
        if last != Price(0) {
            self.note_trades(instrument, first, last);
        }
    }

    /// Out of line, as it is rare and would take registers from the loop.
    #[cold]
    #[inline(never)]
    fn forget_special(&mut self, handle: OrderHandle) {
        self.resting.specials.remove(handle);
    }

    /// The copy of `rest` for orders that traded first; the other is part of `work`.
    #[inline(never)]
    fn rest_remainder(&mut self, incoming: Incoming<'_>, context: &mut Context<'_, impl EventListener>) {
        self.rest(incoming, context);
    }

    #[inline(always)]
    fn rest(&mut self, incoming: Incoming<'_>, context: &mut Context<'_, impl EventListener>) {
        let Incoming { order, id, limit: price, executed, replaced } = incoming;
        let EnterOrder { user_ref, instrument, side, attributes, .. } = *order;
        let session = context.command.session;
        let qty = incoming.leaves();
        let (capacity, cross_type) = (attributes.capacity, attributes.cross_type);
        let data = Owner { executed, user_ref, session, capacity, cross_type };
        let handle = self
            .resting
            .books
            .add(Order { id, instrument, side, price, qty, data })
            .expect("room in the books was checked on entry");
        self.resting
            .index
            .insert(order_key(session, user_ref), handle)
            .expect("room in the index was checked on entry, and matching only makes more");
        self.sessions.count_opened(session);
        let kind = match replaced {
            None => MarketEventKind::Add { order_id: id, side, price, qty },
            Some(old_order_id) => MarketEventKind::Replaced { old_order_id, order_id: id, price, qty },
        };
        self.publish(instrument, kind, context);
    }

    #[inline(never)]
    fn cancel_rest(
        &mut self,
        mut incoming: Incoming<'_>,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.delete_replaced(&mut incoming, context);
        let user_ref = incoming.order.user_ref;
        let kind = OrderEventKind::Canceled { user_ref, decrement: incoming.leaves(), reason };
        context.tell(context.command.session, false, kind);
    }

    /// Tells the public that the order that this one replaced is gone, unless it knows.
    fn delete_replaced(
        &mut self,
        incoming: &mut Incoming<'_>,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if let Some(order_id) = incoming.replaced.take() {
            self.publish(incoming.order.instrument, MarketEventKind::Deleted { order_id }, context);
        }
    }
}

//! Orders that take another's place.

use tickpath_book::OrderBooks;
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, EnterOrder, Nanos, OrderEventKind, OrderState, Price, Qty, RejectReason, ReplaceOrder,
    SessionId, TimeInForce,
};

use super::Engine;
use super::context::Context;
use super::enter::Incoming;
use super::owner::Owner;
use super::resting::Open;
use super::terms::can_rest;
use super::working::Working;
use crate::EventListener;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Takes an order away and enters another of its side, instrument, capacity and cross type, with a new id
    /// and at the tail.
    ///
    /// What the old one executed counts towards the new one's size. If that was all of it or more, the
    /// old one is cancelled and no new one comes to be: more is done than was wanted already.
    #[inline(never)]
    pub(super) fn replace(&mut self, request: &ReplaceOrder, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        let checked = match self.use_number(session, request.user_ref) {
            Ok(None) => return,
            Ok(Some(_)) => self.check_replace(session, request, context.command.ts),
            Err(reason) => Err(reason),
        };
        match checked {
            Ok((old, order, limit)) if request.qty.0 > old.executed => {
                self.replace_with(&old, &order, limit, context);
            }
            Ok((old, ..)) => {
                self.cancel_whole((session, old.user_ref), true, CancelReason::User, context);
            }
            Err(reason) => self.reject(request.user_ref, reason, request.client_order_id, context),
        }
    }

    /// The open order, the one to take its place, and the limit to match at.
    fn check_replace(
        &self,
        session: SessionId,
        request: &ReplaceOrder,
        now: Nanos,
    ) -> Result<(Open, EnterOrder, Price), RejectReason> {
        let old =
            self.resting.open_order(session, request.orig_user_ref).ok_or(RejectReason::UnknownOrder)?;
        let order = request.entered(old.instrument, old.side, old.capacity, old.cross_type);
        let leaves = Qty(request.qty.0.saturating_sub(old.executed));
        let limit = self.check_terms(&order, leaves, now)?;
        self.sessions.check(session, &order, limit)?;
        if can_rest(&order) && !self.resting.has_room_for_replacement(session, &old, &order) {
            return Err(RejectReason::BookFull);
        }
        Ok((old, order, limit))
    }

    fn replace_with(
        &mut self,
        old: &Open,
        order: &EnterOrder,
        limit: Price,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let session = context.command.session;
        self.forget(session, old.user_ref);
        let removed = self.remove(old.handle);
        let order_id = self.next_order_id();
        context.reply(OrderEventKind::Replaced {
            order: *order,
            orig_user_ref: old.user_ref,
            order_id,
            state: OrderState::Live,
        });
        let executed = old.executed;
        failpoint!(ReplaceForgetsExecuted: executed = 0);
        if self.is_plain(session, order)
            && let Some(replaced) = removed.displayed
        {
            let incoming = Incoming { order, id: order_id, limit, executed, replaced: Some(replaced) };
            return self.work(incoming, context);
        }
        let working = Working {
            order: *order,
            session,
            id: order_id,
            limit,
            used: executed,
            executed,
            replaced: removed.displayed,
            is_known: false,
        };
        self.work_special(working, context);
    }

    /// True when a replacement whose terms were checked may be worked as a plain order.
    fn is_plain(&self, session: SessionId, order: &EnterOrder) -> bool {
        let is_plain = self.listing(order.instrument).is_some_and(|listing| listing.is_plain);
        is_plain
            && self.sessions.session(session).max_plain_orders > 0
            && order.special.is_none()
            && matches!(order.time_in_force, TimeInForce::Day | TimeInForce::Ioc)
    }
}

//! Orders that end with time, and the end of the day.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, MarketEventKind, MatchId, OrderEventKind, OrderId, OrderState, Qty, SessionId, TimeInForce,
};

use super::Engine;
use super::context::Context;
use super::owner::{Owner, order_key};
use super::special::{SpecialOrder, expiry, is_special};
use crate::EventListener;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Cancels the orders whose time has come, in the order of entry.
    #[cold]
    pub(super) fn expire_orders(&mut self, context: &mut Context<'_, impl EventListener>) {
        let now = context.command.ts;
        failpoint!(GttNeverExpires => return);
        if !self.resting.specials.may_expire(now) {
            return;
        }
        let mut expired = std::mem::take(&mut self.scratch);
        let is_over =
            |order: &SpecialOrder| order.time_in_force == TimeInForce::Gtt && expiry(&order.terms) <= now;
        let over = self.resting.specials.iter().filter(|(_, order)| is_over(order));
        expired.extend(over.map(|(handle, order)| (order.entry, handle)));
        expired.sort_unstable_by_key(|(entry, _)| *entry);
        for (_, handle) in expired.drain(..) {
            let SpecialOrder { session, user_ref, .. } = *self.resting.specials.order(handle);
            self.cancel_whole((session, user_ref), false, CancelReason::Expired, context);
        }
        self.scratch = expired;
        self.resting.specials.update_expiry();
    }

    /// Cancels all orders but those that are good till cancelled, and begins to count anew.
    #[cold]
    pub(super) fn end_day(&mut self, context: &mut Context<'_, impl EventListener>) {
        for session in (0..self.limits.max_sessions).map(SessionId) {
            self.cancel_some(session, false, CancelReason::EndOfDay, context, |engine, handle| {
                failpoint!(DayOrderSurvives => return !is_special(handle));
                !is_special(handle) || engine.resting.specials.order(handle).time_in_force != TimeInForce::Gtc
            });
            failpoint!(NumbersKeptOverDay => continue);
            self.sessions.reset_numbers(session);
        }
        self.last_order_id = OrderId(0);
        self.last_match_id = MatchId(0);
        self.executions.clear();
        self.resting.specials.update_expiry();
        self.carry_orders(context);
    }

    /// Gives what is left new numbers and references in the order of entry, and its old place in the books.
    fn carry_orders(&mut self, context: &mut Context<'_, impl EventListener>) {
        let mut parts = std::mem::take(&mut self.carried);
        for instrument in self.listings.ids() {
            self.resting.collect_parts(instrument, &mut parts);
        }
        let mut orders = std::mem::take(&mut self.scratch);
        orders.extend(self.resting.specials.iter().map(|(handle, order)| (order.entry, handle)));
        orders.sort_unstable_by_key(|(entry, _)| *entry);
        for (_, handle) in &orders {
            let SpecialOrder { session, user_ref, .. } = *self.resting.specials.order(*handle);
            self.resting.index.remove(order_key(session, user_ref));
        }
        for (place, (_, handle)) in orders.iter().enumerate() {
            self.renumber(*handle, OrderId(place as u64 + 1), context);
        }
        self.last_order_id = OrderId(orders.len() as u64);
        // All old references are gone before the first new one comes, for they may be the same numbers.
        for part in parts.iter().filter(|part| part.is_displayed()) {
            let Order { id: order_id, instrument, .. } =
                self.resting.books.order(part.handle).expect("it rests");
            self.publish(instrument, MarketEventKind::Deleted { order_id }, context);
        }
        for part in parts.drain(..) {
            // An entry's place in the order of entry is its new reference.
            let entry = self.resting.specials.order(part.entry).entry;
            let place = orders.partition_point(|(other, _)| *other < entry);
            let order_id = OrderId(place as u64 + 1);
            let Order { instrument, side, price, qty, .. } = self.resting.put_back(part, order_id);
            if part.is_displayed() {
                self.publish(instrument, MarketEventKind::Add { order_id, side, price, qty }, context);
            }
        }
        orders.clear();
        (self.scratch, self.carried) = (orders, parts);
    }

    /// Gives an order the next number of its session, and tells it.
    fn renumber(
        &mut self,
        handle: OrderHandle,
        order_id: OrderId,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let special = *self.resting.specials.order(handle);
        let (part, leaves) = self.resting.special_whole(&special);
        let user_ref = self.sessions.use_next_number(special.session);
        self.resting.specials.order_mut(handle).user_ref = user_ref;
        self.resting
            .index
            .insert(order_key(special.session, user_ref), handle)
            .expect("the same orders under neighbouring numbers take no more room");
        let order = self.resting.specials.order(handle).as_entered(Qty(part.data.executed + leaves.0));
        let kind = OrderEventKind::Replaced {
            order,
            orig_user_ref: special.user_ref,
            order_id,
            state: OrderState::Live,
        };
        context.tell(special.session, false, kind);
    }
}

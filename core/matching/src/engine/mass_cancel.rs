//! Cancelling many orders at once: mass cancels, kill switches, suspensions, expiry and the end of the day.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, ClientOrderId, InstrumentId, MarketEventKind, MassCancel, MatchId, OrderEventKind, OrderId,
    OrderState, Qty, RejectReason, SessionId, SetOrderEntry, Side, TimeInForce, TradingState, UserRefNum,
};

use super::context::Context;
use super::orders::{CarriedPart, OpenOrders};
use super::owner::{Owner, order_key, user_ref_of};
use super::sessions::SessionRules;
use super::special::{Layer, SpecialOrder, is_special};
use crate::EventListener;

impl<B: OrderBooks<Owner>> OpenOrders<B> {
    /// Changes the rules of the command's session. If the session is unknown, ignores the command and returns
    /// false.
    #[cold]
    pub(super) fn set_rules(
        &mut self,
        context: &mut Context<impl EventListener>,
        change: impl FnOnce(&mut SessionRules),
    ) -> bool {
        let is_known = self.sessions.set_rules(context.command.session, change);
        if !is_known {
            context.ignore();
        }
        is_known
    }

    #[cold]
    pub(super) fn kill_session(&mut self, is_killed: bool, context: &mut Context<impl EventListener>) {
        if self.set_rules(context, |rules| rules.is_killed = is_killed) && is_killed {
            failpoint!(KillKeepsOrders => return);
            self.cancel_all(CancelReason::Supervisory, context);
        }
    }

    #[cold]
    pub(super) fn kill_venue(&mut self, is_killed: bool, context: &mut Context<impl EventListener>) {
        self.sessions.set_killed(is_killed);
        if is_killed {
            self.cancel_in_all_sessions(CancelReason::Supervisory, context, |_, _| true);
        }
    }

    /// Disables or enables the session's order entry, as requested.
    #[cold]
    pub(super) fn set_order_entry(
        &mut self,
        request: &SetOrderEntry,
        context: &mut Context<impl EventListener>,
    ) {
        if self.use_number(request.user_ref, &ClientOrderId::default(), context).is_some() {
            self.set_rules(context, |rules| rules.is_disabled = !request.is_enabled);
            context.reply(OrderEventKind::OrderEntrySet(*request));
        }
    }

    /// Cancels the session's orders of one instrument or all, of one side or both, in the order of entry.
    #[cold]
    pub(super) fn mass_cancel(&mut self, request: &MassCancel, context: &mut Context<impl EventListener>) {
        let MassCancel { user_ref, instrument, side, .. } = *request;
        if self.use_number(user_ref, &ClientOrderId::default(), context).is_none() {
            return;
        }
        let is_any = instrument == InstrumentId(0);
        if !is_any && self.listings.find(instrument).is_none() {
            return context.reject(user_ref, RejectReason::UnknownInstrument, ClientOrderId::default());
        }
        context.reply(OrderEventKind::MassCanceled(*request));
        self.cancel_selected(
            context.command.session,
            false,
            CancelReason::User,
            context,
            |orders, handle| {
                let (of_instrument, of_side) = orders.instrument_and_side(handle);
                (is_any || of_instrument == instrument) && side.is_none_or(|side| of_side == side)
            },
        );
    }

    /// Halts an instrument and cancels all orders in it, session by session, in the order of entry.
    #[cold]
    pub(super) fn suspend_instrument(&mut self, id: InstrumentId, context: &mut Context<impl EventListener>) {
        if self.listings.find(id).is_none() {
            return context.ignore();
        }
        self.change_state(id, TradingState::Halted, context);
        failpoint!(SuspensionKeepsOrders => return);
        self.cancel_in_all_sessions(CancelReason::Supervisory, context, |orders, handle| {
            orders.instrument_and_side(handle).0 == id
        });
    }

    /// Cancels all open orders of the command's session, in the order of entry.
    ///
    /// A single command cancels them all, so that no order of a disconnected session trades in between.
    #[inline(never)]
    pub(super) fn cancel_all(&mut self, reason: CancelReason, context: &mut Context<impl EventListener>) {
        self.cancel_selected(context.command.session, true, reason, context, |_, _| true);
    }

    fn cancel_in_all_sessions(
        &mut self,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
        is_selected: impl Fn(&Self, OrderHandle) -> bool,
    ) {
        for session in self.sessions.ids() {
            self.cancel_selected(session, false, reason, context, &is_selected);
        }
    }

    /// Cancels those open orders of a session that `is_selected` selects, by ascending `UserRefNum`, which is
    /// the order of entry. If `is_reply`, the first cancel event is the reply to the command.
    fn cancel_selected(
        &mut self,
        session: SessionId,
        mut is_reply: bool,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
        is_selected: impl Fn(&Self, OrderHandle) -> bool,
    ) {
        let end = order_key(session, UserRefNum(u32::MAX));
        let mut from = order_key(session, UserRefNum(0));
        // The loop counts orders: after this session's last one, `first_from` would search other sessions.
        let mut left = self.sessions.find(session).map_or(0, |session| session.open_orders);
        while left > 0
            && let Some((key, handle)) = self.index.first_from(from).filter(|(key, _)| *key <= end)
        {
            left -= 1;
            from = key + 1;
            failpoint!(MassCancelMissesOne => from += 1);
            if !is_selected(self, handle) {
                continue;
            }
            self.index.remove(key);
            self.sessions.count_closed(session);
            self.close(handle, (session, user_ref_of(key)), is_reply, reason, context);
            is_reply = false;
        }
    }

    /// Cancels the expired orders, in the order of entry.
    #[cold]
    pub(super) fn expire_orders(&mut self, context: &mut Context<impl EventListener>) {
        let now = context.command.ts;
        failpoint!(GttNeverExpires => return);
        if !self.specials.may_expire(now) {
            return;
        }
        let expired = self.specials_by_entry(|order| order.is_expired(now));
        for (_, handle) in &expired {
            let name = self.specials.order(*handle).name();
            self.cancel_whole(name, false, CancelReason::Expired, context);
        }
        self.scratch = expired;
        self.specials.update_expiry();
    }

    /// Entry numbers and handles of the selected special orders, in the order of entry. The caller puts the
    /// list back into `scratch`.
    fn specials_by_entry(&mut self, is_selected: impl Fn(&SpecialOrder) -> bool) -> Vec<(u64, OrderHandle)> {
        let mut orders = std::mem::take(&mut self.scratch);
        orders.clear();
        let selected = self.specials.iter().filter(|(_, order)| is_selected(order));
        orders.extend(selected.map(|(handle, order)| (order.entry, handle)));
        orders.sort_unstable_by_key(|(entry, _)| *entry);
        orders
    }

    /// Cancels all orders except GTC ones, and restarts `UserRefNum`s, order ids and match ids at 1.
    #[cold]
    pub(super) fn end_day(&mut self, context: &mut Context<impl EventListener>) {
        self.cancel_in_all_sessions(CancelReason::EndOfDay, context, |orders, handle| {
            failpoint!(DayOrderSurvives => return !is_special(handle));
            !is_special(handle) || orders.specials.order(handle).order.time_in_force != TimeInForce::Gtc
        });
        for session in &mut self.sessions.sessions {
            failpoint!(NumbersKeptOverDay => continue);
            session.last_user_ref = UserRefNum(0);
        }
        (context.progress.last_order_id, context.progress.last_match_id) = (OrderId(0), MatchId(0));
        self.specials.update_expiry();
        self.carry_orders(context);
    }

    /// Gives remaining orders new `UserRefNum`s and order ids in the order of entry; priorities are kept.
    fn carry_orders(&mut self, context: &mut Context<impl EventListener>) {
        let mut parts = std::mem::take(&mut self.carried);
        for instrument in self.listings.ids() {
            self.collect_parts(instrument, &mut parts);
        }
        let orders = self.specials_by_entry(|_| true);
        for (_, handle) in &orders {
            let (session, user_ref) = self.specials.order(*handle).name();
            self.index.remove(order_key(session, user_ref));
        }
        for (place, (_, handle)) in orders.iter().enumerate() {
            self.renumber(*handle, OrderId(place as u64 + 1), context);
        }
        context.progress.last_order_id = OrderId(orders.len() as u64);
        // All old order ids are deleted before the first new one is added, since the two sets may overlap.
        for part in parts.iter().filter(|part| part.layer == Layer::Displayed) {
            let Order { id: order_id, instrument, .. } = self.books.order(part.handle).expect("it rests");
            context.publish(instrument, MarketEventKind::Deleted { order_id });
        }
        for part in parts.drain(..) {
            // The new order id is the order's rank by entry number, from 1.
            let entry = self.specials.order(part.entry).entry;
            let place = orders.partition_point(|(other, _)| *other < entry);
            let order_id = OrderId(place as u64 + 1);
            let Order { instrument, side, price, qty, .. } = self.requeue(part, order_id);
            if part.layer == Layer::Displayed {
                context.publish(instrument, MarketEventKind::Add { order_id, side, price, qty });
            }
        }
        (self.scratch, self.carried) = (orders, parts);
    }

    /// Appends all parts of an instrument's orders to `parts`: by side, then by layer, then by priority.
    fn collect_parts(&self, instrument: InstrumentId, parts: &mut Vec<CarriedPart>) {
        for side in Side::BOTH {
            for layer in Layer::ALL {
                let orders = self.layer(layer).orders(instrument, side);
                parts.extend(orders.map(|(handle, order)| {
                    let entry = self.handle_of(&order.data);
                    CarriedPart { layer, handle, entry }
                }));
            }
        }
    }

    /// Moves a part to the tail of its level under its order's new `UserRefNum` and order id, and returns it.
    /// Priorities within a level do not change, since all parts move in turn.
    fn requeue(&mut self, part: CarriedPart, id: OrderId) -> Order<Owner> {
        let user_ref = self.specials.order(part.entry).order.user_ref;
        let books = self.layer_mut(part.layer);
        let old = books.remove(part.handle);
        let new = Order { id, data: Owner { user_ref, ..old.data }, ..old };
        let handle = books.add(new).expect("it was there before");
        self.specials.order_mut(part.entry).set_part(part.layer, Some(handle));
        new
    }

    /// Gives an order the next `UserRefNum` of its session; reports it, with the new order id, to the owner.
    fn renumber(&mut self, handle: OrderHandle, id: OrderId, context: &mut Context<impl EventListener>) {
        let special = *self.specials.order(handle);
        let (part, leaves) = self.special_whole(&special);
        let user_ref = self.sessions.use_next_number(special.session);
        self.specials.order_mut(handle).order.user_ref = user_ref;
        self.index
            .insert(order_key(special.session, user_ref), handle)
            .expect("the same orders under neighbouring numbers take no more room");
        let order = self.specials.order(handle).as_entered(Qty(part.data.executed + leaves.0));
        let (orig_user_ref, state) = (special.order.user_ref, OrderState::Live);
        let kind = OrderEventKind::Replaced { order, orig_user_ref, order_id: id, state };
        context.report(special.session, false, kind);
    }
}

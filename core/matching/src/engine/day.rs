//! Orders that end with time, and the end of the day.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::{Fault, is_planted};
use tickpath_types::{
    CancelReason, InstrumentId, MarketEventKind, MatchId, OrderEventKind, OrderId, OrderState, Qty,
    SessionId, Side, TimeInForce, UserRefNum,
};

use super::special::{SpecialOrder, expiry, is_special};
use super::{Context, Engine, Owner, order_key};
use crate::EventListener;

/// The three books that an order can rest in.
#[derive(Clone, Copy, Debug)]
enum Shelf {
    Displayed,
    Hidden,
    Stop,
}

/// A part of an order that is carried into the next day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    shelf: Shelf,
    part: OrderHandle,
    entry: OrderHandle,
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Cancels the orders whose time has come, in the order of entry.
    #[cold]
    pub(super) fn expire_orders(&mut self, context: &mut Context<'_, impl EventListener>) {
        let now = context.command.ts;
        if !self.specials.may_expire(now) || is_planted(Fault::GttNeverExpires) {
            return;
        }
        let mut expired = std::mem::take(&mut self.scratch);
        let is_over =
            |order: &SpecialOrder| order.time_in_force == TimeInForce::Gtt && expiry(&order.terms) <= now;
        let over = self.specials.iter().filter(|(_, order)| is_over(order));
        expired.extend(over.map(|(handle, order)| (order.entry, handle)));
        expired.sort_unstable_by_key(|(entry, _)| *entry);
        for (_, handle) in expired.drain(..) {
            let SpecialOrder { session, user_ref, .. } = *self.specials.order(handle);
            self.cancel_whole((session, user_ref), false, CancelReason::Expired, context);
        }
        self.scratch = expired;
        self.specials.update_expiry();
    }

    /// Cancels all orders but those that are good till cancelled, and begins to count anew.
    #[cold]
    pub(super) fn end_day(&mut self, context: &mut Context<'_, impl EventListener>) {
        for session in (0..self.limits.max_sessions).map(SessionId) {
            self.cancel_some(session, false, CancelReason::EndOfDay, context, |engine, handle| {
                !is_special(handle)
                    || engine.specials.order(handle).time_in_force != TimeInForce::Gtc
                        && !is_planted(Fault::DayOrderSurvives)
            });
            if !is_planted(Fault::NumbersKeptOverDay) {
                self.sessions[usize::from(session.0)].last_user_ref = UserRefNum(0);
            }
        }
        self.last_order_id = OrderId(0);
        self.last_match_id = MatchId(0);
        self.executions.clear();
        self.specials.update_expiry();
        self.carry_orders(context);
    }

    /// Gives what is left new numbers and references in the order of entry, and its old place in the books.
    fn carry_orders(&mut self, context: &mut Context<'_, impl EventListener>) {
        let mut parts = std::mem::take(&mut self.carried);
        self.collect_parts(&mut parts);
        let mut orders = std::mem::take(&mut self.scratch);
        orders.extend(self.specials.iter().map(|(handle, order)| (order.entry, handle)));
        orders.sort_unstable_by_key(|(entry, _)| *entry);
        for (_, handle) in &orders {
            let SpecialOrder { session, user_ref, .. } = *self.specials.order(*handle);
            self.index.remove(order_key(session, user_ref));
        }
        for (place, (_, handle)) in orders.iter().enumerate() {
            self.renumber(*handle, OrderId(place as u64 + 1), context);
        }
        self.last_order_id = OrderId(orders.len() as u64);
        // All old references are gone before the first new one comes, for they may be the same numbers.
        for part in parts.iter().filter(|part| matches!(part.shelf, Shelf::Displayed)) {
            let Order { id: order_id, instrument, .. } = self.books.order(part.part).expect("it rests");
            self.publish(instrument, MarketEventKind::Deleted { order_id }, context);
        }
        for part in parts.drain(..) {
            // An entry's place in the order of entry is its new reference.
            let entry = self.specials.order(part.entry).entry;
            let place = orders.partition_point(|(other, _)| *other < entry);
            self.put_back(part, OrderId(place as u64 + 1), context);
        }
        orders.clear();
        (self.scratch, self.carried) = (orders, parts);
    }

    /// All that rests, in the order of the books.
    fn collect_parts(&self, parts: &mut Vec<Carried>) {
        let last = self.instruments.len() as u16;
        for instrument in (0..last).map(InstrumentId) {
            for side in Side::BOTH {
                for (shelf, books) in [
                    (Shelf::Displayed, &self.books),
                    (Shelf::Hidden, &self.hidden),
                    (Shelf::Stop, &self.stops),
                ] {
                    parts.extend(books.orders(instrument, side).map(|(part, order)| {
                        let Owner { session, user_ref, .. } = order.data;
                        let entry = self.index.find(order_key(session, user_ref));
                        Carried { shelf, part, entry: entry.expect("what rests is in the index") }
                    }));
                }
            }
        }
    }

    /// Gives an order the next number of its session, and tells it.
    fn renumber(
        &mut self,
        handle: OrderHandle,
        order_id: OrderId,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let special = *self.specials.order(handle);
        let (part, leaves) = self.special_whole(&special);
        let session = &mut self.sessions[usize::from(special.session.0)];
        session.last_user_ref.0 += 1;
        let user_ref = session.last_user_ref;
        self.specials.order_mut(handle).user_ref = user_ref;
        self.index
            .insert(order_key(special.session, user_ref), handle)
            .expect("the same orders under neighbouring numbers take no more room");
        let order = self.specials.order(handle).as_entered(Qty(part.data.executed + leaves.0));
        let kind = OrderEventKind::Replaced {
            order,
            orig_user_ref: special.user_ref,
            order_id,
            state: OrderState::Live,
        };
        context.tell(special.session, false, kind);
    }

    /// Takes a part out and puts it at the tail of its level under its order's new number and reference: all are, so
    /// they keep their order.
    fn put_back(&mut self, carried: Carried, id: OrderId, context: &mut Context<'_, impl EventListener>) {
        let Carried { shelf, part, entry } = carried;
        let user_ref = self.specials.order(entry).user_ref;
        let books = match shelf {
            Shelf::Displayed => &mut self.books,
            Shelf::Hidden => &mut self.hidden,
            Shelf::Stop => &mut self.stops,
        };
        let old = books.remove(part);
        let new = Order { id, data: Owner { user_ref, ..old.data }, ..old };
        let handle = books.add(new).expect("it was there before");
        let special = self.specials.order_mut(entry);
        let place = match shelf {
            Shelf::Displayed => &mut special.displayed,
            Shelf::Hidden => &mut special.hidden,
            Shelf::Stop => &mut special.stop,
        };
        *place = Some(handle);
        if let Shelf::Displayed = shelf {
            let Order { instrument, side, price, qty, .. } = new;
            self.publish(instrument, MarketEventKind::Add { order_id: id, side, price, qty }, context);
        }
    }
}

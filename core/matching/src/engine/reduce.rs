//! Taking quantity off orders that rest: cancels, reductions, fills, and what an order displays next.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelReason, InstrumentId, MarketEventKind, OrderEventKind, Qty, SessionId, UserRefNum,
};

use super::Engine;
use super::context::Context;
use super::owner::{Owner, order_key};
use super::resting::{Layer, Open, Removed};
use super::special::is_special;
use crate::EventListener;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Takes an order away that the index no longer has, and tells its owner and the public.
    #[inline(always)]
    pub(super) fn close(
        &mut self,
        handle: OrderHandle,
        name: (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if is_special(handle) {
            return self.close_special(handle, name, is_reply, reason, context);
        }
        let (session, user_ref) = name;
        let order = self.resting.books.remove(handle);
        context.tell(session, is_reply, OrderEventKind::Canceled { user_ref, decrement: order.qty, reason });
        failpoint!(CancelUnpublished => return);
        self.publish(order.instrument, MarketEventKind::Deleted { order_id: order.id }, context);
    }

    #[cold]
    #[inline(never)]
    fn close_special(
        &mut self,
        handle: OrderHandle,
        (session, user_ref): (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let removed = self.resting.remove_special(handle, &mut self.listings);
        let kind = OrderEventKind::Canceled { user_ref, decrement: removed.leaves, reason };
        context.tell(session, is_reply, kind);
        if let Some(order_id) = removed.displayed {
            self.publish(removed.instrument, MarketEventKind::Deleted { order_id }, context);
        }
    }

    /// Takes an order out of the books that the index no longer has.
    #[inline(always)]
    pub(super) fn remove(&mut self, handle: OrderHandle) -> Removed {
        self.resting.remove(handle, &mut self.listings)
    }

    /// Recomputes whether an instrument's orders need a second look.
    #[cold]
    pub(super) fn update_listing(&mut self, id: InstrumentId) {
        self.resting.update_listing(id, &mut self.listings);
    }

    /// Removes what is left of an order and tells its owner and the public.
    #[inline(never)]
    pub(super) fn cancel_whole(
        &mut self,
        (session, user_ref): (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let handle = self.forget(session, user_ref);
        self.close(handle, (session, user_ref), is_reply, reason, context);
    }

    /// Takes less than all off an order: what waits or is not displayed goes first.
    pub(super) fn reduce_open(
        &mut self,
        open: &Open,
        qty: Qty,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let (displayed, visible) = if is_special(open.handle) {
            let (displayed, rest) = self.resting.reduce_undisplayed(open.handle, qty, &mut self.listings);
            let Some(displayed) = displayed.filter(|_| !rest.is_zero()) else { return };
            (displayed, rest)
        } else {
            (open.handle, qty)
        };
        let order_id = self.resting.books.order(displayed).expect("it is open").id;
        self.resting.books.reduce(displayed, visible);
        self.publish(open.instrument, MarketEventKind::Reduced { order_id, qty: visible }, context);
        failpoint!(ReductionLosesPriority => self.resting.send_to_tail(displayed));
    }

    /// Takes off a resting part what of it was executed. A displayed part that is used up is refreshed from the
    /// rest of its order; an order of which nothing is left is forgotten.
    pub(super) fn fill_resting(
        &mut self,
        layer: Layer,
        handle: OrderHandle,
        resting: &Order<Owner>,
        qty: Qty,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let books = match layer {
            Layer::Displayed => &mut self.resting.books,
            Layer::Hidden => &mut self.resting.hidden,
        };
        if qty < resting.qty {
            books.data_mut(handle).executed += qty.0;
            books.reduce(handle, qty);
            return;
        }
        books.remove(handle);
        self.handle_part_removed(layer, resting, resting.data.executed + qty.0, context);
    }

    /// Refreshes or forgets an order of which a part has left its book; `executed` is its executed quantity.
    fn handle_part_removed(
        &mut self,
        layer: Layer,
        part: &Order<Owner>,
        executed: u64,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let Owner { session, user_ref, .. } = part.data;
        let handle =
            self.resting.index.find(order_key(session, user_ref)).expect("a resting order is in the index");
        if is_special(handle) {
            let special = self.resting.specials.order_mut(handle);
            match layer {
                Layer::Displayed => special.displayed = None,
                Layer::Hidden => special.hidden = None,
            }
            if let (Layer::Displayed, Some(rest)) = (layer, special.hidden) {
                return self.refresh(handle, rest, executed, context);
            }
            debug_assert!(special.displayed.is_none(), "the undisplayed part of an order goes first");
            self.resting.specials.remove(handle);
            self.update_listing(part.instrument);
        }
        self.forget(session, user_ref);
    }

    /// Displays the next part of an order, at the tail of its level and under a new reference.
    fn refresh(
        &mut self,
        handle: OrderHandle,
        rest: OrderHandle,
        executed: u64,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let hidden = self.resting.hidden.order(rest).expect("it is open");
        let id = self.next_order_id();
        failpoint!(ReserveKeepsReference: id = hidden.id);
        let special = self.resting.specials.order_mut(handle);
        let qty = special.terms.display_qty.min(hidden.qty);
        failpoint!(ReserveShowsAll: qty = hidden.qty);
        if self.resting.hidden.reduce(rest, qty).is_zero() {
            special.hidden = None;
        }
        let Order { instrument, side, price, data, .. } = hidden;
        let shown = Order { id, qty, data: Owner { executed, ..data }, ..hidden };
        special.displayed = Some(self.resting.books.add(shown).expect("the part before it made room"));
        self.update_listing(instrument);
        self.publish(instrument, MarketEventKind::Add { order_id: id, side, price, qty }, context);
        let kind = OrderEventKind::Restated { user_ref: data.user_ref, order_id: id, display_qty: qty };
        context.tell(data.session, false, kind);
    }

    /// Drops what is kept of an order beside the books, and returns what the index had.
    #[inline]
    pub(super) fn forget(&mut self, session: SessionId, user_ref: UserRefNum) -> OrderHandle {
        self.sessions.count_closed(session);
        self.resting.index.remove(order_key(session, user_ref)).expect("a resting order is in the index")
    }
}

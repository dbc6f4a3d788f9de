//! Reducing and removing single orders: cancels, reductions, fills, and refreshed displayed parts.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelOrder, CancelReason, ClientOrderId, InstrumentId, MarketEventKind, ModifyOrder, OrderEventKind,
    Qty, RejectReason, SessionId, Side, UserRefNum,
};

use super::context::Context;
use super::orders::{OpenOrder, OpenOrders};
use super::owner::{Owner, order_key};
use super::special::{Layer, is_special};
use crate::EventListener;

impl<B: OrderBooks<Owner>> OpenOrders<B> {
    /// Reduces an order to a new intended size, or cancels it when nothing would be left.
    ///
    /// A cancel is never rejected: one that comes too late, or does not reduce the order, is ignored.
    #[inline(always)]
    pub(super) fn cancel(&mut self, request: &CancelOrder, context: &mut Context<impl EventListener>) {
        let CancelOrder { user_ref, qty } = *request;
        let session = context.command.session;
        if !qty.is_zero() {
            return self.reduce_to(user_ref, qty, &mut context.reborrow());
        }
        // One walk of the index finds the order and removes it.
        match self.index.remove(order_key(session, user_ref)) {
            Some(handle) => {
                self.sessions.count_closed(session);
                self.close(handle, (session, user_ref), true, CancelReason::User, context);
            }
            None => context.ignore(),
        }
    }

    /// Reduces an order to an intended size above zero.
    #[inline(never)]
    fn reduce_to(&mut self, user_ref: UserRefNum, qty: Qty, context: &mut Context<impl EventListener>) {
        let session = context.command.session;
        let Some(open) = self.open_order(session, user_ref) else { return context.ignore() };
        if qty.0 <= open.executed {
            return self.cancel_whole((session, user_ref), true, CancelReason::User, context);
        }
        let size = open.executed + open.leaves.0;
        failpoint!(CancelForgetsExecuted: size = open.leaves.0);
        if qty.0 >= size || !self.is_in_lots(open.instrument, qty) {
            return context.ignore();
        }
        let decrement = Qty(size - qty.0);
        context.reply(OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::User });
        self.reduce_open(&open, decrement, context);
    }

    /// Changes the side marking, and reduces the intended size; the remainder keeps its priority. There is no
    /// response for an order that is not open: its last event was already sent.
    #[inline(never)]
    pub(super) fn modify(&mut self, request: &ModifyOrder, context: &mut Context<impl EventListener>) {
        let ModifyOrder { user_ref, side_marking, qty } = *request;
        let session = context.command.session;
        let Some(open) = self.open_order(session, user_ref) else { return context.ignore() };
        let size = open.executed + open.leaves.0;
        let rejection = if !is_marking_of(open.side, side_marking) {
            Some(RejectReason::InvalidSide)
        } else if qty.is_zero() || qty.0 > size || !self.is_in_lots(open.instrument, qty) {
            Some(RejectReason::InvalidQty)
        } else {
            None
        };
        if let Some(reason) = rejection {
            return context.reject(user_ref, reason, ClientOrderId::default());
        }
        if qty.0 <= open.executed {
            return self.cancel_whole((session, user_ref), true, CancelReason::User, context);
        }
        context.reply(OrderEventKind::Modified { user_ref, side_marking, qty });
        if qty.0 < size {
            self.reduce_open(&open, Qty(size - qty.0), context);
        }
    }

    fn is_in_lots(&self, instrument: InstrumentId, qty: Qty) -> bool {
        let listing = self.listings.find(instrument);
        listing.is_some_and(|listing| qty.0.is_multiple_of(listing.instrument.lot_size.0))
    }

    /// Removes an order from the books after its removal from the index; informs its owner and the public.
    #[inline(always)]
    pub(super) fn close(
        &mut self,
        handle: OrderHandle,
        name: (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
    ) {
        if is_special(handle) {
            return self.close_special(handle, name, is_reply, reason, &mut context.reborrow());
        }
        let (session, user_ref) = name;
        let order = self.books.remove(handle);
        context.report(
            session,
            is_reply,
            OrderEventKind::Canceled { user_ref, decrement: order.qty, reason },
        );
        failpoint!(CancelUnpublished => return);
        context.publish(order.instrument, MarketEventKind::Deleted { order_id: order.id });
    }

    #[cold]
    #[inline(never)]
    fn close_special(
        &mut self,
        handle: OrderHandle,
        (session, user_ref): (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
    ) {
        let removed = self.remove_special(handle);
        let kind = OrderEventKind::Canceled { user_ref, decrement: removed.leaves, reason };
        context.report(session, is_reply, kind);
        if let Some(order_id) = removed.displayed {
            context.publish(removed.instrument, MarketEventKind::Deleted { order_id });
        }
    }

    /// Removes an order from the index and the books; informs its owner and the public.
    #[inline(never)]
    pub(super) fn cancel_whole(
        &mut self,
        (session, user_ref): (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<impl EventListener>,
    ) {
        let handle = self.remove_from_index(session, user_ref);
        self.close(handle, (session, user_ref), is_reply, reason, context);
    }

    /// Reduces an order by less than its open quantity: first the hidden or waiting part, then the displayed.
    pub(super) fn reduce_open(
        &mut self,
        open: &OpenOrder,
        qty: Qty,
        context: &mut Context<impl EventListener>,
    ) {
        let (displayed, visible) = if is_special(open.handle) {
            let (displayed, rest) = self.reduce_undisplayed(open.handle, qty);
            let Some(displayed) = displayed.filter(|_| !rest.is_zero()) else { return };
            (displayed, rest)
        } else {
            (open.handle, qty)
        };
        let order_id = self.books.order(displayed).expect("it is open").id;
        self.books.reduce(displayed, visible);
        context.publish(open.instrument, MarketEventKind::Reduced { order_id, qty: visible });
        failpoint!(ReductionLosesPriority => self.send_to_tail(displayed));
    }

    /// Reduces the hidden or waiting part by up to `qty`; returns the displayed part, and the rest of `qty`.
    #[cold]
    fn reduce_undisplayed(&mut self, handle: OrderHandle, qty: Qty) -> (Option<OrderHandle>, Qty) {
        let special = self.specials.order_mut(handle);
        let mut rest = qty;
        if let Some(part) = special.part(Layer::Hidden) {
            let taken = rest.min(self.hidden.order(part).expect("it is open").qty);
            rest = Qty(rest.0 - taken.0);
            if !taken.is_zero() && self.hidden.reduce(part, taken).is_zero() {
                special.set_part(Layer::Hidden, None);
            }
        }
        if let Some(part) = special.part(Layer::Stop) {
            self.stops.books.reduce(part, rest);
            rest = Qty::ZERO;
        }
        let (instrument, displayed) = (special.order.instrument, special.part(Layer::Displayed));
        self.update_listing(instrument);
        (displayed, rest)
    }

    /// Reduces a resting part by an executed quantity. A displayed part that is used up is refreshed from the
    /// order's reserve; an order without open quantity is removed.
    pub(super) fn fill_resting(
        &mut self,
        layer: Layer,
        handle: OrderHandle,
        resting: &Order<Owner>,
        qty: Qty,
        context: &mut Context<impl EventListener>,
    ) {
        let books = self.layer_mut(layer);
        if qty < resting.qty {
            books.data_mut(handle).executed += qty.0;
            books.reduce(handle, qty);
            return;
        }
        books.remove(handle);
        self.handle_part_removed(layer, resting, resting.data.executed + qty.0, context);
    }

    /// Refreshes or removes an order after `part` left its book. `executed` is the order's executed quantity.
    fn handle_part_removed(
        &mut self,
        layer: Layer,
        part: &Order<Owner>,
        executed: u64,
        context: &mut Context<impl EventListener>,
    ) {
        let handle = self.handle_of(&part.data);
        if is_special(handle) {
            let special = self.specials.order_mut(handle);
            special.set_part(layer, None);
            if let (Layer::Displayed, Some(rest)) = (layer, special.part(Layer::Hidden)) {
                return self.refresh(handle, rest, executed, context);
            }
            debug_assert!(special.part(Layer::Displayed).is_none(), "the undisplayed part goes first");
            self.specials.remove(handle);
            self.update_listing(part.instrument);
        }
        self.remove_from_index(part.data.session, part.data.user_ref);
    }

    /// Displays the next part of an order, at the tail of its level and under a new order id.
    fn refresh(
        &mut self,
        handle: OrderHandle,
        rest: OrderHandle,
        executed: u64,
        context: &mut Context<impl EventListener>,
    ) {
        let hidden = self.hidden.order(rest).expect("it is open");
        let id = context.next_order_id();
        failpoint!(ReserveKeepsReference: id = hidden.id);
        let special = self.specials.order_mut(handle);
        let qty = special.instructions().display_qty.min(hidden.qty);
        failpoint!(ReserveShowsAll: qty = hidden.qty);
        if self.hidden.reduce(rest, qty).is_zero() {
            special.set_part(Layer::Hidden, None);
        }
        let Order { instrument, side, price, data, .. } = hidden;
        let shown = Order { id, qty, data: Owner { executed, ..data }, ..hidden };
        let shown = self.books.add(shown).expect("the part before it made room");
        special.set_part(Layer::Displayed, Some(shown));
        self.update_listing(instrument);
        context.publish(instrument, MarketEventKind::Add { order_id: id, side, price, qty });
        let kind = OrderEventKind::Restated { user_ref: data.user_ref, order_id: id, display_qty: qty };
        context.report(data.session, false, kind);
    }
}

/// True if the OUCH side marking fits `side`: `B` buys; `S` sells, `T` sells short, `E` sells short exempt.
fn is_marking_of(side: Side, marking: u8) -> bool {
    match side {
        Side::Buy => marking == b'B',
        Side::Sell => matches!(marking, b'S' | b'T' | b'E'),
    }
}

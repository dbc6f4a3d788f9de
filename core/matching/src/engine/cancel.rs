//! Orders that become smaller or go away.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_types::{
    CancelOrder, CancelReason, ClientOrderId, MarketEventKind, ModifyOrder, OrderEventKind, Qty,
    RejectReason, SessionId, Side, UserRefNum,
};

use super::{Context, Engine, Owner, order_key, user_ref_of};
use crate::EventListener;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Reduces an order to a new intended size, or cancels it when nothing would be left.
    ///
    /// A cancel is never rejected: one that comes too late, or asks for what is not less, is ignored.
    #[inline(always)]
    pub(super) fn cancel(&mut self, request: &CancelOrder, context: &mut Context<'_, impl EventListener>) {
        let CancelOrder { user_ref, qty } = *request;
        let session = context.command.session;
        if !qty.is_zero() {
            return self.cancel_to(user_ref, qty, context);
        }
        // One walk of the index finds the order and takes it out.
        match self.index.remove(order_key(session, user_ref)) {
            Some(handle) => {
                self.sessions[usize::from(session.0)].open_orders -= 1;
                self.close(handle, user_ref, true, CancelReason::User, context);
            }
            None => self.counters.ignored += 1,
        }
    }

    /// Reduces an order to an intended size above zero.
    #[inline(never)]
    fn cancel_to(&mut self, user_ref: UserRefNum, qty: Qty, context: &mut Context<'_, impl EventListener>) {
        let Some((handle, order)) = self.open_order(context.command.session, user_ref) else {
            self.counters.ignored += 1;
            return;
        };
        if qty.0 <= order.data.executed {
            return self.cancel_whole(handle, &order.data, true, CancelReason::User, context);
        }
        let size = order.data.executed + order.qty.0;
        if qty.0 >= size || !self.is_in_lots(&order, qty) {
            self.counters.ignored += 1;
            return;
        }
        let decrement = Qty(size - qty.0);
        context.reply(OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::User });
        self.reduce(handle, &order, decrement, context);
    }

    /// Changes the side marking, and the intended size downwards; what is left keeps its priority.
    #[inline(never)]
    pub(super) fn modify(&mut self, request: &ModifyOrder, context: &mut Context<'_, impl EventListener>) {
        let ModifyOrder { user_ref, side_marking, qty } = *request;
        let Some((handle, order)) = self.open_order(context.command.session, user_ref) else {
            return self.reject(user_ref, RejectReason::UnknownOrder, ClientOrderId::default(), context);
        };
        let size = order.data.executed + order.qty.0;
        let refused = if !is_marking_of(order.side, side_marking) {
            Some(RejectReason::InvalidSide)
        } else if qty.is_zero() || qty.0 > size || !self.is_in_lots(&order, qty) {
            Some(RejectReason::InvalidQty)
        } else {
            None
        };
        if let Some(reason) = refused {
            return self.reject(user_ref, reason, ClientOrderId::default(), context);
        }
        if qty.0 <= order.data.executed {
            return self.cancel_whole(handle, &order.data, true, CancelReason::User, context);
        }
        context.reply(OrderEventKind::Modified { user_ref, side_marking, qty });
        if qty.0 < size {
            self.reduce(handle, &order, Qty(size - qty.0), context);
        }
    }

    /// Cancels all open orders of the session, ascending by number, which is the order of entry.
    ///
    /// One command, however many they are: a session that is gone must not trade a little longer.
    #[inline(never)]
    pub(super) fn cancel_all(&mut self, reason: CancelReason, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        let end = order_key(session, UserRefNum(u32::MAX));
        let mut from = order_key(session, UserRefNum(0));
        let mut is_reply = true;
        while let Some((key, handle)) = self.index.first_from(from).filter(|(key, _)| *key <= end) {
            self.index.remove(key);
            self.sessions[usize::from(session.0)].open_orders -= 1;
            self.close(handle, user_ref_of(key), is_reply, reason, context);
            is_reply = false;
            from = key + 1;
        }
    }

    /// The open order that a session calls by this number.
    #[inline]
    pub(super) fn open_order(
        &self,
        session: SessionId,
        user_ref: UserRefNum,
    ) -> Option<(OrderHandle, Order<Owner>)> {
        let handle = self.index.find(order_key(session, user_ref))?;
        Some((handle, self.books.order(handle)?))
    }

    /// Removes what is left of an order and tells its owner and the public.
    #[inline(never)]
    pub(super) fn cancel_whole(
        &mut self,
        handle: OrderHandle,
        owner: &Owner,
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.forget(owner);
        self.close(handle, owner.user_ref, is_reply, reason, context);
    }

    /// As `cancel_whole`, for an order of the command's session that the index no longer has. Who owns it is
    /// said by the caller, who knows, which spares the look at what the books keep of it.
    #[inline(always)]
    fn close(
        &mut self,
        handle: OrderHandle,
        user_ref: UserRefNum,
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let order = self.books.remove(handle);
        context.tell(
            context.command.session,
            is_reply,
            OrderEventKind::Canceled { user_ref, decrement: order.qty, reason },
        );
        self.publish(order.instrument, MarketEventKind::Deleted { order_id: order.id }, context);
    }

    fn reduce(
        &mut self,
        handle: OrderHandle,
        order: &Order<Owner>,
        qty: Qty,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.books.reduce(handle, qty);
        self.publish(order.instrument, MarketEventKind::Reduced { order_id: order.id, qty }, context);
    }

    fn is_in_lots(&self, order: &Order<Owner>, qty: Qty) -> bool {
        self.instrument(order.instrument)
            .is_some_and(|instrument| qty.0.is_multiple_of(instrument.lot_size.0))
    }
}

/// OUCH side markings: `B` buys; `S`, `T` short and `E` short exempt all sell.
fn is_marking_of(side: Side, marking: u8) -> bool {
    match side {
        Side::Buy => marking == b'B',
        Side::Sell => matches!(marking, b'S' | b'T' | b'E'),
    }
}

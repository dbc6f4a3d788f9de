//! Orders that become smaller or go away.

use tickpath_book::{OrderBooks, OrderHandle};
use tickpath_faults::failpoint;
use tickpath_types::{
    CancelOrder, CancelReason, ClientOrderId, InstrumentId, ModifyOrder, OrderEventKind, Qty, RejectReason,
    SessionId, Side, UserRefNum,
};

use super::Engine;
use super::context::Context;
use super::owner::{Owner, order_key, user_ref_of};
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
        match self.resting.index.remove(order_key(session, user_ref)) {
            Some(handle) => {
                self.sessions.count_closed(session);
                self.close(handle, (session, user_ref), true, CancelReason::User, context);
            }
            None => self.counters.ignored += 1,
        }
    }

    /// Reduces an order to an intended size above zero.
    #[inline(never)]
    fn cancel_to(&mut self, user_ref: UserRefNum, qty: Qty, context: &mut Context<'_, impl EventListener>) {
        let session = context.command.session;
        let Some(open) = self.resting.open_order(session, user_ref) else {
            self.counters.ignored += 1;
            return;
        };
        if qty.0 <= open.executed {
            return self.cancel_whole((session, user_ref), true, CancelReason::User, context);
        }
        let size = open.executed + open.leaves.0;
        failpoint!(CancelForgetsExecuted: size = open.leaves.0);
        if qty.0 >= size || !self.is_in_lots(open.instrument, qty) {
            self.counters.ignored += 1;
            return;
        }
        let decrement = Qty(size - qty.0);
        context.reply(OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::User });
        self.reduce_open(&open, decrement, context);
    }

    /// Changes the side marking, and the intended size downwards; what is left keeps its priority. An order that is gone
    /// has been told its end, and a refusal under its number would seem to be another: nothing is said.
    #[inline(never)]
    pub(super) fn modify(&mut self, request: &ModifyOrder, context: &mut Context<'_, impl EventListener>) {
        let ModifyOrder { user_ref, side_marking, qty } = *request;
        let session = context.command.session;
        let Some(open) = self.resting.open_order(session, user_ref) else {
            self.counters.ignored += 1;
            return;
        };
        let size = open.executed + open.leaves.0;
        let refused = if !is_marking_of(open.side, side_marking) {
            Some(RejectReason::InvalidSide)
        } else if qty.is_zero() || qty.0 > size || !self.is_in_lots(open.instrument, qty) {
            Some(RejectReason::InvalidQty)
        } else {
            None
        };
        if let Some(reason) = refused {
            return self.reject(user_ref, reason, ClientOrderId::default(), context);
        }
        if qty.0 <= open.executed {
            return self.cancel_whole((session, user_ref), true, CancelReason::User, context);
        }
        context.reply(OrderEventKind::Modified { user_ref, side_marking, qty });
        if qty.0 < size {
            self.reduce_open(&open, Qty(size - qty.0), context);
        }
    }

    /// Cancels all open orders of a session, which is the command's, in the order of entry.
    ///
    /// One command, however many they are: a session that is gone must not trade a little longer.
    #[inline(never)]
    pub(super) fn cancel_all(
        &mut self,
        session: SessionId,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.cancel_some(session, true, reason, context, |_, _| true);
    }

    /// Cancels those open orders of a session that `is_meant` says, ascending by number, which is the order of entry.
    /// Whether the first of it is the reply to the command is the caller's to know.
    pub(super) fn cancel_some(
        &mut self,
        session: SessionId,
        mut is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
        is_meant: impl Fn(&Self, OrderHandle) -> bool,
    ) {
        let end = order_key(session, UserRefNum(u32::MAX));
        let mut from = order_key(session, UserRefNum(0));
        // Counted, as beyond the last of them the index would be searched to the next order of any session.
        let mut left = self.sessions.find(session).map_or(0, |session| session.open_orders);
        while left > 0
            && let Some((key, handle)) = self.resting.index.first_from(from).filter(|(key, _)| *key <= end)
        {
            left -= 1;
            from = key + 1;
            failpoint!(MassCancelMissesOne => from += 1);
            if !is_meant(self, handle) {
                continue;
            }
            self.resting.index.remove(key);
            self.sessions.count_closed(session);
            self.close(handle, (session, user_ref_of(key)), is_reply, reason, context);
            is_reply = false;
        }
    }

    fn is_in_lots(&self, instrument: InstrumentId, qty: Qty) -> bool {
        self.instrument(instrument).is_some_and(|instrument| qty.0.is_multiple_of(instrument.lot_size.0))
    }
}

/// OUCH side markings: `B` buys; `S`, `T` short and `E` short exempt all sell.
fn is_marking_of(side: Side, marking: u8) -> bool {
    match side {
        Side::Buy => marking == b'B',
        Side::Sell => matches!(marking, b'S' | b'T' | b'E'),
    }
}

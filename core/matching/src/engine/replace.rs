//! Orders that take another's place.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_types::{
    CancelReason, EnterOrder, OrderAttributes, OrderEventKind, OrderState, Price, Qty, RejectReason,
    ReplaceOrder, SessionId, TimeInForce,
};

use super::enter::Incoming;
use super::{Context, Engine, Owner, order_key};
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
            Ok(false) => return,
            Ok(true) => self.check_replace(session, request),
            Err(reason) => Err(reason),
        };
        match checked {
            Ok((old, order, limit)) if request.qty.0 > old.1.data.executed => {
                self.replace_with(old, &order, limit, context);
            }
            Ok(((handle, old), ..)) => {
                self.cancel_whole(handle, &old.data, true, CancelReason::User, context);
            }
            Err(reason) => self.reject(request.user_ref, reason, request.client_order_id, context),
        }
    }

    /// The open order, the one to take its place, and the limit to match at.
    #[expect(clippy::type_complexity, reason = "three results of one check, taken apart at once")]
    fn check_replace(
        &self,
        session: SessionId,
        request: &ReplaceOrder,
    ) -> Result<((OrderHandle, Order<Owner>), EnterOrder, Price), RejectReason> {
        let old = self.open_order(session, request.orig_user_ref).ok_or(RejectReason::UnknownOrder)?;
        let order = EnterOrder {
            user_ref: request.user_ref,
            instrument: old.1.instrument,
            side: old.1.side,
            qty: request.qty,
            price: request.price,
            time_in_force: request.time_in_force,
            post_only: request.post_only,
            min_qty: request.min_qty,
            // A replacement cannot say these two, and stands for whom the old order stood.
            attributes: OrderAttributes {
                capacity: old.1.data.capacity,
                cross_type: old.1.data.cross_type,
                ..request.attributes
            },
            client_order_id: request.client_order_id,
        };
        let leaves = Qty(request.qty.0.saturating_sub(old.1.data.executed));
        let limit = self.check_terms(&order, leaves)?;
        // The books have room: an order leaves them first.
        let may_rest = order.time_in_force == TimeInForce::Day;
        if may_rest && !self.index.has_room(order_key(session, request.user_ref)) {
            return Err(RejectReason::BookFull);
        }
        Ok((old, order, limit))
    }

    fn replace_with(
        &mut self,
        (handle, old): (OrderHandle, Order<Owner>),
        order: &EnterOrder,
        limit: Price,
        context: &mut Context<'_, impl EventListener>,
    ) {
        self.books.remove(handle);
        self.forget(&old.data);
        let order_id = self.next_order_id();
        context.reply(OrderEventKind::Replaced {
            order: *order,
            orig_user_ref: old.data.user_ref,
            order_id,
            state: OrderState::Live,
        });
        let incoming =
            Incoming { order, id: order_id, limit, executed: old.data.executed, replaced: Some(old.id) };
        self.work(incoming, context);
    }
}

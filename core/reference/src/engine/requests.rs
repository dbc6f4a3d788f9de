//! What clients ask for.

use tickpath_types::*;

use super::{Incoming, Open, ReferenceEngine};

impl ReferenceEngine {
    /// False when the request has been answered, or gets no answer.
    pub(super) fn use_number(&mut self, user_ref: UserRefNum, client_order_id: ClientOrderId) -> bool {
        match self.sessions.get_mut(usize::from(self.command.session.0)) {
            None => {
                self.reject(user_ref, RejectReason::NotAuthorised, client_order_id);
                false
            }
            Some(session) if user_ref <= session.last_user_ref => {
                let is_exhausted = session.last_user_ref.0 == u32::MAX;
                if is_exhausted && self.find(self.command.session, user_ref).is_none() {
                    self.reject(user_ref, RejectReason::UserRefsExhausted, client_order_id);
                } else {
                    self.duplicates += 1;
                }
                false
            }
            Some(session) => {
                session.last_user_ref = user_ref;
                true
            }
        }
    }

    pub(super) fn enter(&mut self, order: EnterOrder) {
        if !self.use_number(order.user_ref, order.client_order_id) {
            return;
        }
        let limit = match self.check(&order, order.qty.0, None) {
            Ok(limit) => limit,
            Err(reason) => return self.reject(order.user_ref, reason, order.client_order_id),
        };
        let id = self.next_id();
        self.reply(OrderEventKind::Accepted { order, order_id: id, state: OrderState::Live });
        let (session, leaves) = (self.command.session, order.qty.0);
        self.work(Incoming { order, session, id, limit, leaves, executed: 0, replaced: None, entry: None });
    }

    pub(super) fn replace(&mut self, request: ReplaceOrder) {
        if !self.use_number(request.user_ref, request.client_order_id) {
            return;
        }
        let session = self.command.session;
        let Some(at) = self.find(session, request.orig_user_ref) else {
            let reason = RejectReason::UnknownOrder;
            return self.reject(request.user_ref, reason, request.client_order_id);
        };
        let old = self.orders[at];
        let order = EnterOrder {
            user_ref: request.user_ref,
            instrument: old.order.instrument,
            side: old.order.side,
            qty: request.qty,
            price: request.price,
            time_in_force: request.time_in_force,
            post_only: request.post_only,
            min_qty: request.min_qty,
            special: request.special,
            attributes: OrderAttributes {
                capacity: old.order.attributes.capacity,
                cross_type: old.order.attributes.cross_type,
                ..request.attributes
            },
            client_order_id: request.client_order_id,
        };
        let leaves = request.qty.0.saturating_sub(old.executed);
        let limit = match self.check(&order, leaves, Some(&old)) {
            Ok(limit) => limit,
            Err(reason) => return self.reject(request.user_ref, reason, request.client_order_id),
        };
        if leaves == 0 {
            return self.close(at, true, CancelReason::User);
        }
        self.orders.remove(at);
        let id = self.next_id();
        let (orig_user_ref, state) = (request.orig_user_ref, OrderState::Live);
        self.reply(OrderEventKind::Replaced { order, orig_user_ref, order_id: id, state });
        let replaced = (old.shown > 0).then_some(old.id);
        self.work(Incoming {
            order,
            session,
            id,
            limit,
            leaves,
            executed: old.executed,
            replaced,
            entry: None,
        });
    }

    pub(super) fn cancel(&mut self, CancelOrder { user_ref, qty }: CancelOrder) {
        let Some(at) = self.find(self.command.session, user_ref) else { return };
        let open = self.orders[at];
        let size = open.executed + open.leaves();
        if qty.0 <= open.executed {
            return self.close(at, true, CancelReason::User);
        }
        if qty.0 < size && self.is_in_lots(&open, qty) {
            let decrement = Qty(size - qty.0);
            self.reply(OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::User });
            self.reduce(at, decrement.0);
        }
    }

    pub(super) fn modify(&mut self, ModifyOrder { user_ref, side_marking, qty }: ModifyOrder) {
        let nothing = ClientOrderId::default();
        let Some(at) = self.find(self.command.session, user_ref) else { return };
        let open = self.orders[at];
        let size = open.executed + open.leaves();
        let markings: &[u8] = if open.order.side == Side::Buy { b"B" } else { b"STE" };
        if !markings.contains(&side_marking) {
            return self.reject(user_ref, RejectReason::InvalidSide, nothing);
        }
        if qty.is_zero() || qty.0 > size || !self.is_in_lots(&open, qty) {
            return self.reject(user_ref, RejectReason::InvalidQty, nothing);
        }
        if qty.0 <= open.executed {
            return self.close(at, true, CancelReason::User);
        }
        self.reply(OrderEventKind::Modified { user_ref, side_marking, qty });
        if qty.0 < size {
            self.reduce(at, size - qty.0);
        }
    }

    pub(super) fn mass_cancel(&mut self, request: MassCancel) {
        let MassCancel { user_ref, instrument, side, .. } = request;
        if !self.use_number(user_ref, ClientOrderId::default()) {
            return;
        }
        let is_all = instrument == InstrumentId(0);
        if !is_all && !self.instruments.contains_key(&instrument) {
            return self.reject(user_ref, RejectReason::UnknownInstrument, ClientOrderId::default());
        }
        self.reply(OrderEventKind::MassCanceled(request));
        self.cancel_all(self.command.session, false, CancelReason::User, |open| {
            (is_all || open.order.instrument == instrument) && side.is_none_or(|side| open.order.side == side)
        });
    }

    pub(super) fn set_order_entry(&mut self, request: SetOrderEntry) {
        if self.use_number(request.user_ref, ClientOrderId::default()) {
            self.sessions[usize::from(self.command.session.0)].is_disabled = !request.is_enabled;
            self.reply(OrderEventKind::OrderEntrySet(request));
        }
    }

    /// Takes less than all off an open order, first what is not displayed.
    pub(super) fn reduce(&mut self, at: usize, qty: u64) {
        let open = &mut self.orders[at];
        let unseen = qty.min(open.unseen);
        open.unseen -= unseen;
        open.shown -= qty - unseen;
        let (instrument, order_id) = (open.order.instrument, open.id);
        if qty > unseen {
            self.publish(instrument, MarketEventKind::Reduced { order_id, qty: Qty(qty - unseen) });
        }
    }

    pub(super) fn close(&mut self, at: usize, is_reply: bool, reason: CancelReason) {
        let gone = self.orders.remove(at);
        let (user_ref, decrement) = (gone.order.user_ref, Qty(gone.leaves()));
        self.tell(gone.session, is_reply, OrderEventKind::Canceled { user_ref, decrement, reason });
        self.delete(&gone);
    }

    /// In the order of numbers.
    pub(super) fn cancel_all(
        &mut self,
        session: SessionId,
        mut is_reply: bool,
        reason: CancelReason,
        is_meant: impl Fn(&Open) -> bool,
    ) {
        loop {
            let places = 0..self.orders.len();
            let meant =
                places.filter(|at| self.orders[*at].session == session && is_meant(&self.orders[*at]));
            let Some(at) = meant.min_by_key(|at| self.orders[*at].order.user_ref) else { return };
            self.close(at, is_reply, reason);
            is_reply = false;
        }
    }

    /// Session by session.
    pub(super) fn cancel_everywhere(&mut self, reason: CancelReason, is_meant: impl Fn(&Open) -> bool) {
        for session in (0..self.limits.max_sessions).map(SessionId) {
            self.cancel_all(session, false, reason, &is_meant);
        }
    }

    fn is_in_lots(&self, open: &Open, qty: Qty) -> bool {
        qty.0.is_multiple_of(self.instruments[&open.order.instrument].instrument.lot_size.0)
    }
}

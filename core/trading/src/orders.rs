//! The order manager, which tracks own orders from the request until they are dead.

use tickpath_faults::failpoint;
use tickpath_types::{
    BrokenReason, CancelOrder, CancelReason, ClientOrderId, EnterOrder, InstrumentId, MatchId, Nanos,
    OrderEventKind, OrderId, OrderState, Price, Qty, RejectReason, ReplaceOrder, Side, UserRefNum,
};

use crate::fills::{Fill, Fills};
use crate::order::{OrderChange, OrderUpdate, OwnOrder, OwnState};
use crate::requests::{self, NewOrder};
use crate::table::{NIL, Slot, Table};

/// The reason why the order manager did not build a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The order manager is full: cancel orders or raise `max_open_orders`.
    #[error("the order manager is full: cancel orders or raise max_open_orders")]
    Full,
    /// No open order has this UserRefNum.
    #[error("no open order has this UserRefNum")]
    UnknownOrder,
    /// No such instrument: ids are dense from 1.
    #[error("no such instrument")]
    UnknownInstrument,
    /// An earlier request about the order is unanswered: wait for its answer.
    #[error("an earlier request about this order is not answered yet")]
    Pending,
    /// The new size must be above the executed quantity and, for a reduction, below the current size.
    #[error("the new size is not between the executed and the current size")]
    InvalidQty,
    /// All UserRefNums of the session are used: log in to a new session.
    #[error("all UserRefNums of this session are used")]
    UserRefsExhausted,
}

/// Counters of exceptional events of own orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounters {
    /// Events with a UserRefNum that this manager never assigned.
    pub unknown: u64,
    /// Events about an order that is no longer open, and repeated acceptances.
    pub late: u64,
    /// Executions of more than an order's open quantity; the position includes them in full, as at the venue.
    pub overfilled: u64,
    /// Orders that the venue accepted after the manager had treated them as rejected, because they were
    /// unanswered or the order that they replace was removed: they are open again.
    pub reopened: u64,
    /// Executions that the venue broke and that were reversed.
    pub broken: u64,
    /// Reports of broken executions that the manager does not remember: they are not reversed.
    pub unknown_broken: u64,
}

/// A bounded number of own orders by UserRefNum, with lists of the open ones per instrument and side.
///
/// It allocates only at creation. UserRefNums are strictly increasing; one whose table slot holds an open
/// order is skipped. A request takes two steps: `prepare_*` builds it, and after it was sent the matching
/// `record_*` records it. A request that a full queue refused therefore has no effect.
#[derive(Debug)]
pub struct OrderManager {
    table: Table,
    next_user_ref: u32,
    first_user_ref: u32,
    client_order_id: ClientOrderId,
    counters: OrderCounters,
    /// Rejection of the pending replacement whose original the latest answer removed.
    orphan: Option<OrderUpdate>,
    fills: Fills,
}

impl OrderManager {
    /// Number of latest executions kept. A broken execution is reversed only if it is among them.
    pub const RECENT_FILLS: usize = 1024;

    /// Creates a manager for `max_open_orders` open orders in the instruments 1 to `instrument_count`.
    /// UserRefNums start at `first_user_ref` (at least 1): one more than the last that the session used.
    #[must_use]
    pub fn new(
        instrument_count: usize,
        max_open_orders: usize,
        first_user_ref: UserRefNum,
        client_order_id: ClientOrderId,
    ) -> OrderManager {
        let first = first_user_ref.0.max(1);
        OrderManager {
            table: Table::new(instrument_count, max_open_orders),
            next_user_ref: first,
            first_user_ref: first,
            client_order_id,
            counters: OrderCounters::default(),
            orphan: None,
            fills: Fills::new(Self::RECENT_FILLS),
        }
    }

    /// Builds the request that enters an order.
    ///
    /// # Errors
    /// [`OrderError::UnknownInstrument`], [`OrderError::Full`], [`OrderError::UserRefsExhausted`].
    pub fn prepare_enter(&self, order: &NewOrder) -> Result<EnterOrder, OrderError> {
        self.table.list(order.instrument, order.side).ok_or(OrderError::UnknownInstrument)?;
        Ok(requests::enter(order, self.free_user_ref()?, self.client_order_id))
    }

    /// Records a sent order; it must be the one that `prepare_enter` just returned.
    pub fn record_enter(&mut self, sent: &EnterOrder) {
        self.insert(OwnOrder::sent(sent), sent.qty);
    }

    /// Builds the request that replaces an open order's price and intended size (including the executed
    /// quantity).
    ///
    /// # Errors
    /// [`OrderError::UnknownOrder`], [`OrderError::Pending`] unless the order is live,
    /// [`OrderError::InvalidQty`] when nothing would be left, [`OrderError::Full`],
    /// [`OrderError::UserRefsExhausted`].
    pub fn prepare_replace(
        &self,
        orig_user_ref: UserRefNum,
        qty: Qty,
        price: Price,
    ) -> Result<ReplaceOrder, OrderError> {
        let orig = self.order(orig_user_ref).ok_or(OrderError::UnknownOrder)?;
        if orig.state != OwnState::Live {
            return Err(OrderError::Pending);
        }
        if qty <= orig.cum_qty {
            return Err(OrderError::InvalidQty);
        }
        Ok(ReplaceOrder {
            time_in_force: orig.time_in_force,
            post_only: orig.post_only,
            client_order_id: self.client_order_id,
            ..ReplaceOrder::limit(orig_user_ref, self.free_user_ref()?, qty, price)
        })
    }

    /// Records a sent replacement; it must be the one that `prepare_replace` just returned.
    pub fn record_replace(&mut self, sent: &ReplaceOrder) {
        let Some(slot) = self.table.find_mut(sent.orig_user_ref) else { return };
        slot.replacement = sent.user_ref;
        let orig = &mut slot.order;
        orig.state = OwnState::PendingReplace;
        let order = OwnOrder {
            user_ref: sent.user_ref,
            order_id: OrderId(0),
            price: sent.price,
            qty: sent.qty,
            time_in_force: sent.time_in_force,
            post_only: sent.post_only,
            state: OwnState::PendingNew,
            replaces: Some(sent.orig_user_ref),
            ..*orig
        };
        // Only one of the two orders can trade their common quantity, so only the excess adds exposure.
        let added = Qty(order.qty.0.saturating_sub(orig.qty.0));
        self.insert(order, added);
    }

    /// Builds the request that reduces an order to the intended size `qty` (including the executed quantity);
    /// 0 cancels it.
    ///
    /// # Errors
    /// [`OrderError::UnknownOrder`]; [`OrderError::Pending`] when a cancel or, for a reduction, any request
    /// is pending; [`OrderError::InvalidQty`].
    pub fn prepare_cancel(&self, user_ref: UserRefNum, qty: Qty) -> Result<CancelOrder, OrderError> {
        let slot = self.table.find(user_ref).ok_or(OrderError::UnknownOrder)?;
        let order = &slot.order;
        let is_cancel = qty.is_zero();
        if slot.is_cancel_sent || (!is_cancel && order.state != OwnState::Live) {
            return Err(OrderError::Pending);
        }
        if !is_cancel && (qty >= order.qty || qty <= order.cum_qty) {
            return Err(OrderError::InvalidQty);
        }
        Ok(CancelOrder { user_ref, qty })
    }

    /// Records a sent cancel or reduction.
    pub fn record_cancel(&mut self, sent: &CancelOrder) {
        if let Some(slot) = self.table.find_mut(sent.user_ref) {
            slot.order.state = OwnState::PendingCancel;
            slot.cancel_to = sent.qty;
            slot.is_cancel_sent = sent.qty.is_zero();
            // For an accepted order only this cancel counts as unanswered, and it was just sent.
            slot.is_unresolved &= !slot.is_accepted;
        }
    }

    /// Marks the status of all unanswered requests as unknown, after a lost connection or a request that the
    /// venue dropped.
    pub(crate) fn mark_unresolved(&mut self) {
        for slot in self.table.open_slots_mut() {
            slot.is_unresolved |= !slot.order.is_answered();
        }
    }

    /// Returns slot and UserRefNum of the first order at or after slot `from` with a request of unknown
    /// status.
    pub(crate) fn next_unresolved(&self, from: usize) -> Option<(usize, UserRefNum)> {
        self.table.next_open(from, |slot| slot.is_unresolved)
    }

    /// Treats a request of unknown status as rejected, since it presumably did not reach the venue. A new
    /// order becomes dead; a cancel or reduction is undone. Returns `None` if the request has been answered.
    pub(crate) fn give_up(&mut self, user_ref: UserRefNum) -> Option<OrderUpdate> {
        let slot = self.table.find_mut(user_ref)?;
        if !slot.is_accepted {
            return self.reject_undelivered(user_ref, RejectReason::Unanswered);
        }
        slot.is_unresolved = false;
        self.undo_cancel(user_ref, RejectReason::Unanswered)
    }

    /// Rejects an order that did not reach the venue. If it is a replacement, its original becomes live
    /// again.
    pub(crate) fn reject_undelivered(
        &mut self,
        user_ref: UserRefNum,
        reason: RejectReason,
    ) -> Option<OrderUpdate> {
        self.table.find(user_ref).filter(|slot| !slot.is_accepted)?;
        let client_order_id = self.client_order_id;
        self.apply(&OrderEventKind::Rejected { user_ref, reason, client_order_id }, Nanos::ZERO)
    }

    /// Undoes a pending cancel or reduction that was not sent or was lost. Returns `None` if none is pending.
    pub(crate) fn undo_cancel(&mut self, user_ref: UserRefNum, reason: RejectReason) -> Option<OrderUpdate> {
        self.table.get(user_ref).filter(|order| order.state == OwnState::PendingCancel)?;
        self.clear_pending_cancel(user_ref);
        let order = *self.table.get(user_ref)?;
        Some(OrderUpdate { order, change: OrderChange::CancelRejected { reason }, ts_event: Nanos::ZERO })
    }

    /// Applies an answer that the venue sent at `ts_event`. Returns the order's update, if any; an answer that
    /// matches no order is counted. If the answer removed an order,
    /// [`poll_orphan`](OrderManager::poll_orphan) returns the rejection of its pending replacement.
    pub fn apply(&mut self, event: &OrderEventKind, ts_event: Nanos) -> Option<OrderUpdate> {
        let user_ref = event.user_ref();
        if let OrderEventKind::Broken { match_id, reason, .. } = *event {
            return self.reverse_execution(user_ref, match_id, reason, ts_event);
        }
        let was_accepted = match self.table.find(user_ref).map(|slot| slot.is_accepted) {
            Some(was_accepted) => was_accepted,
            None if self.reopen(event) => false,
            None => return self.apply_late(event, ts_event),
        };
        if was_accepted && matches!(event, OrderEventKind::Accepted { .. } | OrderEventKind::Replaced { .. })
        {
            self.counters.late += 1;
            return None;
        }
        let change = match *event {
            OrderEventKind::Accepted { ref order, order_id, state } => {
                self.accept(order, order_id, state);
                OrderChange::Accepted
            }
            OrderEventKind::Replaced { ref order, orig_user_ref, order_id, state } => {
                self.replace(order, orig_user_ref, order_id, state);
                OrderChange::Replaced { orig_user_ref }
            }
            OrderEventKind::Canceled { decrement, reason, .. } => {
                self.cancel(user_ref, decrement);
                OrderChange::Canceled { decrement, reason }
            }
            OrderEventKind::SelfTradePrevented { decrement, .. } => {
                failpoint!(PreventionUnheard => return None);
                self.cancel(user_ref, decrement);
                OrderChange::Canceled { decrement, reason: CancelReason::SelfTrade }
            }
            // The order has a new queue position and order id; no quantity was traded or removed.
            OrderEventKind::Restated { order_id, .. } | OrderEventKind::Triggered { order_id, .. } => {
                if let Some(order) = self.table.get_mut(user_ref) {
                    order.order_id = order_id;
                }
                return None;
            }
            // `Broken` was handled above, and the other two kinds refer to no single order.
            OrderEventKind::Broken { .. }
            | OrderEventKind::MassCanceled(_)
            | OrderEventKind::OrderEntrySet(_) => return None,
            OrderEventKind::Modified { qty, .. } => {
                self.resize(user_ref, qty);
                OrderChange::Modified
            }
            OrderEventKind::Executed { qty, price, liquidity, match_id, .. } => {
                self.execute(user_ref, qty);
                self.record_fill(user_ref, match_id, qty, price);
                OrderChange::Executed { qty, price, liquidity }
            }
            OrderEventKind::Rejected { reason, .. } if was_accepted => {
                self.clear_pending_cancel(user_ref);
                OrderChange::CancelRejected { reason }
            }
            OrderEventKind::Rejected { reason, .. } => {
                self.reject(user_ref);
                OrderChange::Rejected { reason }
            }
        };
        let slot = self.table.last_known(user_ref)?;
        let update = OrderUpdate { order: slot.order, change, ts_event };
        if slot.replacement.0 != 0 && !slot.order.is_open() {
            self.drop_replacement(user_ref, slot.replacement, ts_event);
        }
        Some(update)
    }

    /// Reverses a broken execution. The order does not change: the executed quantity does not become open
    /// again.
    #[cold]
    fn reverse_execution(
        &mut self,
        user_ref: UserRefNum,
        match_id: MatchId,
        reason: BrokenReason,
        ts_event: Nanos,
    ) -> Option<OrderUpdate> {
        let fill = self.fills.take(user_ref, match_id);
        failpoint!(BrokenTradeKept: fill = None);
        let Some(Fill { order, qty, price, .. }) = fill else {
            self.counters.unknown_broken += 1;
            return None;
        };
        self.counters.broken += 1;
        let order = self.table.last_known(user_ref).map_or(order, |slot| slot.order);
        Some(OrderUpdate { order, change: OrderChange::Broken { qty, price, reason }, ts_event })
    }

    /// Returns the rejection of the pending replacement whose original the latest answer removed, if any.
    pub fn poll_orphan(&mut self) -> Option<OrderUpdate> {
        self.orphan.take()
    }

    /// Removes the pending replacement of an order that filled or was cancelled. An OUCH venue does not
    /// answer the replacement: it cancels the original if nothing would be left to trade, and ignores a
    /// replacement of a dead order. Some venues send a rejection, which has no further effect.
    #[cold]
    fn drop_replacement(&mut self, orig: UserRefNum, user_ref: UserRefNum, ts_event: Nanos) {
        let Some(slot) = self.table.find_mut(user_ref).filter(|slot| slot.order.replaces == Some(orig))
        else {
            return;
        };
        slot.is_unresolved = true;
        self.table.remove(user_ref);
        let change = OrderChange::Rejected { reason: RejectReason::UnknownOrder };
        let dropped = self.table.last_known(user_ref);
        self.orphan = dropped.map(|slot| OrderUpdate { order: slot.order, change, ts_event });
    }

    /// Reopens an order that was treated as rejected but that `event` accepts; returns true if it did so.
    #[cold]
    fn reopen(&mut self, event: &OrderEventKind) -> bool {
        let is_acceptance =
            matches!(event, OrderEventKind::Accepted { .. } | OrderEventKind::Replaced { .. });
        let given_up = self.table.last_known(event.user_ref());
        let Some(slot) = given_up.filter(|slot| is_acceptance && slot.is_unresolved && !slot.is_accepted)
        else {
            return false;
        };
        let order = OwnOrder { state: OwnState::PendingNew, ..slot.order };
        self.counters.reopened += 1;
        self.table.insert(order, order.leaves_qty());
        true
    }

    /// Applies an event about an order that is not open. An execution counts while the table still holds the
    /// dead order, since the venue's trades are final.
    fn apply_late(&mut self, event: &OrderEventKind, ts_event: Nanos) -> Option<OrderUpdate> {
        let user_ref = event.user_ref();
        if user_ref.0 < self.first_user_ref || user_ref.0 >= self.next_user_ref {
            self.counters.unknown += 1;
            return None;
        }
        self.counters.late += 1;
        let OrderEventKind::Executed { qty, price, liquidity, match_id, .. } = *event else { return None };
        let order = self.table.last_known_mut(user_ref)?;
        order.cum_qty.0 = order.cum_qty.0.saturating_add(qty.0);
        self.counters.overfilled += u64::from(order.cum_qty > order.qty);
        let order = *order;
        self.fills.record(Fill { match_id, order, qty, price });
        Some(OrderUpdate { order, change: OrderChange::Executed { qty, price, liquidity }, ts_event })
    }

    fn accept(&mut self, accepted: &EnterOrder, order_id: OrderId, state: OrderState) {
        let Some(slot) = self.table.find_mut(accepted.user_ref) else { return };
        slot.is_accepted = true;
        slot.order.order_id = order_id;
        slot.order.price = accepted.price;
        slot.order.replaces = None;
        if slot.order.state == OwnState::PendingNew {
            slot.order.state = OwnState::Live;
        }
        if state == OrderState::Dead {
            self.table.remove(accepted.user_ref);
        } else {
            self.resize(accepted.user_ref, accepted.qty);
        }
    }

    fn replace(
        &mut self,
        accepted: &EnterOrder,
        orig_user_ref: UserRefNum,
        order_id: OrderId,
        state: OrderState,
    ) {
        let executed = self.table.last_known(orig_user_ref).map_or(Qty::ZERO, |orig| orig.order.cum_qty);
        failpoint!(ReplacedOrderStays: orig_user_ref = UserRefNum(0));
        self.table.remove(orig_user_ref);
        if let Some(order) = self.table.get_mut(accepted.user_ref) {
            order.cum_qty = executed;
        }
        self.accept(accepted, order_id, state);
    }

    fn execute(&mut self, user_ref: UserRefNum, qty: Qty) {
        let Some(order) = self.table.get_mut(user_ref) else { return };
        self.counters.overfilled += u64::from(qty > order.leaves_qty());
        order.cum_qty.0 = order.cum_qty.0.saturating_add(qty.0);
        self.close_if_done(user_ref);
    }

    fn record_fill(&mut self, user_ref: UserRefNum, match_id: MatchId, qty: Qty, price: Price) {
        if let Some(&Slot { order, .. }) = self.table.last_known(user_ref) {
            self.fills.record(Fill { match_id, order, qty, price });
        }
    }

    fn cancel(&mut self, user_ref: UserRefNum, decrement: Qty) {
        if let Some(order) = self.table.get(user_ref) {
            let left = Qty(order.qty.0.saturating_sub(decrement.0));
            self.resize(user_ref, left);
        }
    }

    /// Sets the intended size of an order. An order whose pending reduction is complete is live again; an
    /// order with nothing left to execute is removed.
    fn resize(&mut self, user_ref: UserRefNum, qty: Qty) {
        let Some(slot) = self.table.find_mut(user_ref) else { return };
        slot.order.qty = qty;
        let is_reduced =
            slot.order.state == OwnState::PendingCancel && !slot.is_cancel_sent && qty <= slot.cancel_to;
        if is_reduced {
            slot.order.state = OwnState::Live;
        }
        let replacement = slot.replacement;
        self.close_if_done(user_ref);
        if replacement.0 != 0 {
            self.count_replacement(user_ref, replacement, qty);
        }
    }

    /// Updates the exposure of a pending replacement whose original's size changed. Only the excess over the
    /// original counts, at most the replacement's open quantity. The venue does not change the replacement's
    /// size.
    #[cold]
    fn count_replacement(&mut self, orig: UserRefNum, replacement: UserRefNum, orig_qty: Qty) {
        let Some(order) = self.table.get(replacement).filter(|order| order.replaces == Some(orig)) else {
            return;
        };
        let added = Qty(order.qty.0.saturating_sub(orig_qty.0)).min(order.leaves_qty());
        self.table.set_exposure(replacement, added);
    }

    fn close_if_done(&mut self, user_ref: UserRefNum) {
        let Some(order) = self.table.get(user_ref) else { return };
        match order.leaves_qty() {
            Qty::ZERO => self.table.remove(user_ref),
            leaves => self.table.set_exposure(user_ref, leaves),
        }
    }

    /// Removes a rejected order. If it is a replacement, its original becomes live again.
    fn reject(&mut self, user_ref: UserRefNum) {
        let replaces = self.table.get(user_ref).and_then(|order| order.replaces);
        self.table.remove(user_ref);
        if let Some(orig) = replaces.and_then(|orig| self.table.get_mut(orig))
            && orig.state == OwnState::PendingReplace
        {
            orig.state = OwnState::Live;
        }
    }

    fn clear_pending_cancel(&mut self, user_ref: UserRefNum) {
        if let Some(slot) = self.table.find_mut(user_ref)
            && slot.order.state == OwnState::PendingCancel
        {
            slot.order.state = if slot.is_accepted { OwnState::Live } else { OwnState::PendingNew };
            slot.is_cancel_sent = false;
        }
    }

    fn insert(&mut self, order: OwnOrder, exposure: Qty) {
        self.next_user_ref = order.user_ref.0 + 1;
        self.table.insert(order, exposure);
        self.prefetch();
    }

    /// Prefetches the table slot of the next order.
    pub(crate) fn prefetch(&self) {
        self.table.prefetch(self.next_user_ref);
    }

    /// Sets the UserRefNum of the next order to `first`, unless it is already higher.
    pub(crate) fn number_from(&mut self, first: UserRefNum) {
        self.next_user_ref = self.next_user_ref.max(first.0);
        if self.total_open() == 0 {
            self.first_user_ref = self.next_user_ref;
        }
    }

    pub(crate) fn clear_open(&mut self) {
        self.table.clear();
    }

    pub(crate) fn reset(&mut self) {
        self.clear_open();
        self.next_user_ref = self.first_user_ref;
    }

    fn free_user_ref(&self) -> Result<UserRefNum, OrderError> {
        if self.table.is_full() {
            return Err(OrderError::Full);
        }
        let user_ref = self.table.free_from(self.next_user_ref).ok_or(OrderError::UserRefsExhausted)?;
        // `u32::MAX` is never used, so that `next_user_ref` cannot overflow.
        if user_ref.0 == u32::MAX { Err(OrderError::UserRefsExhausted) } else { Ok(user_ref) }
    }

    /// Returns the open order with this UserRefNum.
    #[must_use]
    pub fn order(&self, user_ref: UserRefNum) -> Option<&OwnOrder> {
        self.table.get(user_ref)
    }

    /// Returns the open orders of an instrument and side, oldest first.
    pub fn open(&self, instrument: InstrumentId, side: Side) -> OpenOrders<'_> {
        OpenOrders { table: &self.table, next: self.table.first(instrument, side) }
    }

    /// Returns the maximum quantity that the open orders of an instrument and side could still trade.
    #[must_use]
    pub fn open_qty(&self, instrument: InstrumentId, side: Side) -> Qty {
        self.table.list(instrument, side).map_or(Qty::ZERO, |list| list.exposure)
    }

    /// Returns the number of open orders of an instrument, both sides.
    #[must_use]
    pub fn open_count(&self, instrument: InstrumentId) -> u32 {
        Side::BOTH.iter().filter_map(|side| self.table.list(instrument, *side)).map(|list| list.len).sum()
    }

    /// Returns the number of open orders in all instruments.
    #[must_use]
    pub const fn total_open(&self) -> usize {
        self.table.len()
    }

    /// Returns the counters of exceptional events of own orders.
    #[must_use]
    pub const fn counters(&self) -> &OrderCounters {
        &self.counters
    }

    /// Returns slot and UserRefNum of the first open order at or after slot `from`. A caller that iterates
    /// over all open orders this way can change them between calls.
    pub(crate) fn next_open(&self, from: usize) -> Option<(usize, UserRefNum)> {
        self.table.next_open(from, |_| true)
    }
}

/// Open orders of one instrument and side, oldest first.
#[derive(Clone, Debug)]
pub struct OpenOrders<'a> {
    table: &'a Table,
    next: u32,
}

impl<'a> Iterator for OpenOrders<'a> {
    type Item = &'a OwnOrder;

    fn next(&mut self) -> Option<&'a OwnOrder> {
        if self.next == NIL {
            return None;
        }
        let slot = self.table.at(self.next);
        self.next = slot.next;
        Some(&slot.order)
    }
}

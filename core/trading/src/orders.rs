//! The order manager: own orders from the request to their end.

use tickpath_faults::failpoint;
use tickpath_types::{
    BrokenReason, CancelOrder, CancelReason, ClientOrderId, EnterOrder, InstrumentId, MatchId, Nanos,
    OrderEventKind, OrderId, OrderState, Price, Qty, RejectReason, ReplaceOrder, Side, UserRefNum,
};

use crate::fills::{Fill, Fills};
use crate::order::{OrderChange, OrderUpdate, OwnOrder, OwnState};
use crate::requests::{self, NewOrder};
use crate::table::{NIL, Slot, Table};

/// Why the order manager did not make a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// As many orders are open as the manager holds: wait for answers, or create it larger.
    #[error("the order manager is full: cancel orders or raise max_open_orders")]
    Full,
    /// No open order has this number.
    #[error("no open order has this UserRefNum")]
    UnknownOrder,
    /// No such instrument: ids are dense from 1.
    #[error("no such instrument")]
    UnknownInstrument,
    /// An earlier request about the order is not answered: wait for its answer.
    #[error("an earlier request about this order is not answered yet")]
    Pending,
    /// A reduction must leave more than what executed and less than the size.
    #[error("the new size is not between what executed and the present size")]
    InvalidQty,
    /// All UserRefNums of the session are used: log in to a new session.
    #[error("all UserRefNums of this session are used")]
    UserRefsExhausted,
}

/// Events that did not fit the orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounters {
    /// About a number that this manager never gave out.
    pub unknown: u64,
    /// About an order that was dead already, or a second acceptance of one.
    pub late: u64,
    /// Executions of more than was open; the position follows the venue.
    pub overfilled: u64,
    /// Orders given up after a lost connection or with their original, and accepted by the venue all the same:
    /// they are open again.
    pub revived: u64,
    /// Executions that the venue made void and that were taken back.
    pub broken: u64,
    /// Executions that the venue made void and that are no longer remembered, or never were: the position still
    /// counts them.
    pub unknown_broken: u64,
}

/// Own orders by UserRefNum, of a bounded number, with lists of the open ones per instrument and side.
///
/// It allocates at creation only. Numbers are given out strictly increasing; a number whose place in the
/// table is taken by an order still open is skipped. A request is made in two steps: `prepare_*` builds
/// it, and once it is on its way the matching `record_*` takes it into the books, so that a full queue
/// leaves no trace.
#[derive(Debug)]
pub struct OrderManager {
    table: Table,
    next_user_ref: u32,
    first_user_ref: u32,
    client_order_id: ClientOrderId,
    counters: OrderCounters,
    /// What the latest answer changed besides its own order.
    orphan: Option<OrderUpdate>,
    fills: Fills,
}

impl OrderManager {
    /// Executions that can still be taken back when the venue makes them void: the latest.
    pub const RECENT_FILLS: usize = 1024;

    /// Room for `max_open_orders` at once, in the instruments 1 to `instrument_count`. Numbering starts at
    /// `first_user_ref` (at least 1): the one after the last that the session used.
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

    /// The request that enters an order.
    ///
    /// # Errors
    /// [`OrderError::UnknownInstrument`], [`OrderError::Full`], [`OrderError::UserRefsExhausted`].
    pub fn prepare_enter(&self, order: &NewOrder) -> Result<EnterOrder, OrderError> {
        self.table.list(order.instrument, order.side).ok_or(OrderError::UnknownInstrument)?;
        Ok(requests::enter(order, self.free_user_ref()?, self.client_order_id))
    }

    /// Takes a sent order into the books; it must be what `prepare_enter` just gave.
    pub fn record_enter(&mut self, sent: &EnterOrder) {
        self.insert(OwnOrder::sent(sent), sent.qty);
    }

    /// The request that puts another price and intended size (counting what executed) in the place of an
    /// open order's.
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

    /// Takes a sent replacement into the books; it must be what `prepare_replace` just gave.
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
        // Only one of the two can ever trade what they share.
        let added = Qty(order.qty.0.saturating_sub(orig.qty.0));
        self.insert(order, added);
    }

    /// The request that reduces an order to an intended size, counting what executed; zero cancels it.
    ///
    /// # Errors
    /// [`OrderError::UnknownOrder`]; [`OrderError::Pending`] when a cancel is on its way, or for a
    /// reduction any request; [`OrderError::InvalidQty`].
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

    /// Takes a sent cancel or reduction into the books.
    pub fn record_cancel(&mut self, sent: &CancelOrder) {
        if let Some(slot) = self.table.find_mut(sent.user_ref) {
            slot.order.state = OwnState::PendingCancel;
            slot.cancel_to = sent.qty;
            slot.is_cancel_sent = sent.qty.is_zero();
            // Of an accepted order only this cancel waits for an answer now.
            slot.is_in_doubt &= !slot.is_accepted;
        }
    }

    /// The connection is lost, or the venue dropped something: whether it has what it did not answer is in doubt from now
    /// on.
    pub(crate) fn doubt_pending(&mut self) {
        for slot in self.table.open_slots_mut() {
            slot.is_in_doubt |= !slot.order.is_settled();
        }
    }

    /// The open order in doubt at or after a place in the table, with its place.
    pub(crate) fn next_in_doubt(&self, from: usize) -> Option<(usize, UserRefNum)> {
        self.table.next_open(from, |slot| slot.is_in_doubt)
    }

    /// The request in doubt did not reach the venue, as far as can be known: a new order is dead, the cancel
    /// of an order is undone. `None` when the order was answered after all.
    pub(crate) fn give_up(&mut self, user_ref: UserRefNum) -> Option<OrderUpdate> {
        let slot = self.table.find_mut(user_ref)?;
        if !slot.is_accepted {
            return self.reject_unheard(user_ref, RejectReason::Unanswered);
        }
        slot.is_in_doubt = false;
        self.undo_cancel(user_ref, RejectReason::Unanswered)
    }

    /// A new order did not reach the venue: it is dead, and the order that it was to replace is as before.
    pub(crate) fn reject_unheard(
        &mut self,
        user_ref: UserRefNum,
        reason: RejectReason,
    ) -> Option<OrderUpdate> {
        self.table.find(user_ref).filter(|slot| !slot.is_accepted)?;
        let client_order_id = self.client_order_id;
        self.apply(&OrderEventKind::Rejected { user_ref, reason, client_order_id }, Nanos::ZERO)
    }

    /// The cancel or reduction of an order was not sent, or is lost: the order stands as before. `None` when
    /// none was under way.
    pub(crate) fn undo_cancel(&mut self, user_ref: UserRefNum, reason: RejectReason) -> Option<OrderUpdate> {
        self.table.get(user_ref).filter(|order| order.state == OwnState::PendingCancel)?;
        self.settle(user_ref);
        let order = *self.table.get(user_ref)?;
        Some(OrderUpdate { order, change: OrderChange::CancelRejected { reason }, ts_event: Nanos::ZERO })
    }

    /// Takes an answer of the venue, given at `ts_event`; `None` when it fits no order of this manager, which is
    /// counted. What else it changed is in [`poll_orphan`](OrderManager::poll_orphan), to be polled after each
    /// call.
    pub fn apply(&mut self, event: &OrderEventKind, ts_event: Nanos) -> Option<OrderUpdate> {
        let user_ref = event.user_ref();
        if let OrderEventKind::Broken { match_id, reason, .. } = *event {
            return self.take_back(user_ref, match_id, reason, ts_event);
        }
        let was_accepted = match self.table.find(user_ref).map(|slot| slot.is_accepted) {
            Some(was_accepted) => was_accepted,
            None if self.revive(event) => false,
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
            // It is in another place, under another reference; nothing of it was traded or taken away.
            OrderEventKind::Restated { order_id, .. } | OrderEventKind::Triggered { order_id, .. } => {
                if let Some(order) = self.table.get_mut(user_ref) {
                    order.order_id = order_id;
                }
                return None;
            }
            // The first was taken above, and no order has the number of the others.
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
                self.settle(user_ref);
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

    /// An execution is void. The order stays as it is: what was executed of it is not open again.
    #[cold]
    fn take_back(
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

    /// The replacement that died because its original went away by the answer that was just applied.
    pub fn poll_orphan(&mut self) -> Option<OrderUpdate> {
        self.orphan.take()
    }

    /// An order filled or was cancelled while its replacement was under way, so the replacement is dead too.
    /// OUCH has no answer for it then: the venue cancels the original of a replacement that would leave nothing,
    /// and ignores one that comes too late. A rejection, which some venues send, changes nothing any more.
    #[cold]
    fn drop_replacement(&mut self, orig: UserRefNum, user_ref: UserRefNum, ts_event: Nanos) {
        let Some(slot) = self.table.find_mut(user_ref).filter(|slot| slot.order.replaces == Some(orig))
        else {
            return;
        };
        slot.is_in_doubt = true;
        self.table.remove(user_ref);
        let change = OrderChange::Rejected { reason: RejectReason::UnknownOrder };
        let dropped = self.table.last_known(user_ref);
        self.orphan = dropped.map(|slot| OrderUpdate { order: slot.order, change, ts_event });
    }

    /// An order that was given up and that the venue accepts all the same is open again; true when it is.
    #[cold]
    fn revive(&mut self, event: &OrderEventKind) -> bool {
        let is_acceptance =
            matches!(event, OrderEventKind::Accepted { .. } | OrderEventKind::Replaced { .. });
        let given_up = self.table.last_known(event.user_ref());
        let Some(slot) = given_up.filter(|slot| is_acceptance && slot.is_in_doubt && !slot.is_accepted)
        else {
            return false;
        };
        let order = OwnOrder { state: OwnState::PendingNew, ..slot.order };
        self.counters.revived += 1;
        self.table.insert(order, order.leaves_qty());
        true
    }

    /// An event about an order that is not open. An execution counts as long as the order is remembered:
    /// what the venue says was traded was traded.
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

    /// Gives the order an intended size, and settles a reduction that it fulfils.
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

    /// A replacement on its way counts for what exceeds the order that it replaces. That has another size now, and the
    /// venue gives the replacement its own all the same. One that executed before its answer counts no more than it leaves.
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

    /// The venue did not take the order: dead, and the order that it was to replace is as before.
    fn reject(&mut self, user_ref: UserRefNum) {
        let replaces = self.table.get(user_ref).and_then(|order| order.replaces);
        self.table.remove(user_ref);
        if let Some(orig) = replaces.and_then(|orig| self.table.get_mut(orig))
            && orig.state == OwnState::PendingReplace
        {
            orig.state = OwnState::Live;
        }
    }

    fn settle(&mut self, user_ref: UserRefNum) {
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

    /// Begins to fetch what the next order needs.
    pub(crate) fn prefetch(&self) {
        self.table.prefetch(self.next_user_ref);
    }

    /// Numbers orders from `first` on, or from where they are numbered by now if that is later.
    pub(crate) fn number_from(&mut self, first: UserRefNum) {
        self.next_user_ref = self.next_user_ref.max(first.0);
        if self.total_open() == 0 {
            self.first_user_ref = self.next_user_ref;
        }
    }

    pub(crate) fn forget_open(&mut self) {
        self.table.clear();
    }

    pub(crate) fn forget(&mut self) {
        self.forget_open();
        self.next_user_ref = self.first_user_ref;
    }

    fn free_user_ref(&self) -> Result<UserRefNum, OrderError> {
        if self.table.is_full() {
            return Err(OrderError::Full);
        }
        let user_ref = self.table.free_from(self.next_user_ref).ok_or(OrderError::UserRefsExhausted)?;
        // One number is kept back so that the next one is always representable.
        if user_ref.0 == u32::MAX { Err(OrderError::UserRefsExhausted) } else { Ok(user_ref) }
    }

    /// The open order of a number.
    #[must_use]
    pub fn order(&self, user_ref: UserRefNum) -> Option<&OwnOrder> {
        self.table.get(user_ref)
    }

    /// Open orders of an instrument and side, oldest first.
    pub fn open(&self, instrument: InstrumentId, side: Side) -> OpenOrders<'_> {
        OpenOrders { table: &self.table, next: self.table.first(instrument, side) }
    }

    /// What the open orders of an instrument and side could still trade, at most.
    #[must_use]
    pub fn open_qty(&self, instrument: InstrumentId, side: Side) -> Qty {
        self.table.list(instrument, side).map_or(Qty::ZERO, |list| list.exposure)
    }

    /// Number of open orders of an instrument, both sides.
    #[must_use]
    pub fn open_count(&self, instrument: InstrumentId) -> u32 {
        Side::BOTH.iter().filter_map(|side| self.table.list(instrument, *side)).map(|list| list.len).sum()
    }

    /// Number of open orders in all instruments.
    #[must_use]
    pub const fn total_open(&self) -> usize {
        self.table.len()
    }

    /// Events that did not fit.
    #[must_use]
    pub const fn counters(&self) -> &OrderCounters {
        &self.counters
    }

    /// The open order at or after a place in the table, with its place: for a walk over all open orders
    /// that changes them on its way.
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

//! Order cancels: single, bulk, on disconnect and at the end of the day.

use std::collections::{BTreeMap, VecDeque};

use tickpath_deribit::codes::{CancelReason, OrderState, TimeInForce};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::CancelOrder;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_types::{CancelOrder as EngineCancel, OrderRequest, Qty, UserRefNum};

use super::fix::FixDone;
use super::orders::Selection;
use super::{ANSWER_MAX, Answer, Front, REQUESTS_MAX};
use crate::fault::Fault;
use crate::json::{Json, Object, json, list, param};
use crate::pending::{Done, Group, Pending, ReplyTo, RequestId, Work};

/// Maximum number of waiting cancels of one account: as many as it may have orders. The limit is per account,
/// so that accounts do not block each other.
const UNSENT_MAX: usize = 1 << 17;

/// Cancels waiting for capacity in the queue; accounts take turns.
#[derive(Default)]
pub(super) struct Unsent {
    /// Order numbers and their cancel groups, by account, oldest first.
    waiting: BTreeMap<usize, VecDeque<(u64, u64)>>,
    /// The account that had the latest turn.
    last: usize,
}

impl Unsent {
    /// Returns true if an account may have `count` more waiting cancels.
    fn has_room(&self, account: usize, count: usize) -> bool {
        self.count(account) + count <= UNSENT_MAX
    }

    /// Returns the number of waiting cancels of an account.
    pub(super) fn count(&self, account: usize) -> usize {
        self.waiting.get(&account).map_or(0, VecDeque::len)
    }

    fn add(&mut self, account: usize, group: u64, orders: &[u64]) {
        let waiting = self.waiting.entry(account).or_default();
        waiting.extend(orders.iter().map(|order| (*order, group)));
    }

    /// Returns the next cancel: its account, order and group.
    fn next(&mut self) -> Option<(usize, u64, u64)> {
        let mut after = self.waiting.range(self.last + 1..);
        let account = after.next().or_else(|| self.waiting.iter().next()).map(|(account, _)| *account)?;
        self.last = account;
        let waiting = self.waiting.get_mut(&account)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&account);
        }
        next.map(|(order, group)| (account, order, group))
    }

    /// Returns true for an order with a waiting cancel.
    pub(super) fn has(&self, account: usize, order: u64) -> bool {
        self.waiting.get(&account).is_some_and(|waiting| waiting.iter().any(|(own, _)| *own == order))
    }
}

impl Front {
    pub(super) fn cancel(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let CancelOrder { order_id } = request.params()?;
        let number = self.order_number(account, &order_id.to_cow())?;
        match self.cancel_order(account, number, to)? {
            Done::Later => Ok(None),
            Done::Order(number) => {
                let mut order = Vec::new();
                if let Some(known) = self.accounts[account].order(number) {
                    self.write_order(known, &mut order);
                }
                Ok(Some(order))
            }
        }
    }

    /// Cancels an order for JSON-RPC or FIX.
    pub(super) fn cancel_order(&mut self, account: usize, number: u64, to: &ReplyTo) -> Result<Done, Fault> {
        if self.accounts[account].waiting.contains_key(&number) {
            self.end_trigger(account, number, OrderState::Cancelled, Some(CancelReason::UserRequest));
            return Ok(Done::Order(number));
        }
        self.open_order(account, number)?;
        self.send_cancel(account, number, Some(to.clone()), None, CancelReason::UserRequest)?;
        Ok(Done::Later)
    }

    pub(super) fn send_cancel(
        &mut self,
        account: usize,
        number: u64,
        reply: Option<ReplyTo>,
        group: Option<u64>,
        reason: CancelReason,
    ) -> Result<(), Fault> {
        // An in-flight edit is processed first, so the cancel uses the engine number that the edit assigns.
        let user_ref = match self.number_on_its_way(account, number) {
            Some(user_ref) => user_ref,
            None => UserRefNum(self.open_order(account, number)?.user_ref),
        };
        let sent_us = self.now_us;
        self.send(
            account,
            Pending {
                request: OrderRequest::Cancel(EngineCancel { user_ref, qty: Qty::ZERO }),
                work: Work::Cancel { number, reason },
                connection: None,
                reply,
                group,
                sent_us,
                turn: 0,
                extra: None,
            },
        )
    }

    /// Cancels all selected orders; replies once all cancels are in the log.
    pub(super) fn cancel_many(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let params: Value<'_> = request.params()?;
        let is_detailed = param(&params, "detailed")?.unwrap_or(false);
        let selection = self.selection(request)?;
        self.freeze_quotes(account, &params)?;
        let group = self.cancel_selected(account, &selection, is_detailed, to)?;
        Ok(group.map(|group| self.group_result(&group)))
    }

    /// Cancels the selected orders for JSON-RPC or FIX. Returns the group if it is already complete.
    pub(super) fn cancel_selected(
        &mut self,
        account: usize,
        selection: &Selection,
        is_detailed: bool,
        to: &ReplyTo,
    ) -> Result<Option<Group>, Fault> {
        let orders = self.accounts[account].open.values();
        // All or none, so that the client never wrongly assumes that it has no orders left.
        let numbers: Vec<u64> =
            orders.filter(|order| self.is_selected(selection, order)).map(|order| order.number).collect();
        let waiting = self.accounts[account].waiting.values();
        let waiting: Vec<u64> =
            waiting.filter(|order| self.is_selected(selection, order)).map(|order| order.number).collect();
        if !self.unsent.has_room(account, numbers.len()) {
            return Err(ErrorCode::MatchingEngineQueueFull.into());
        }
        for number in &waiting {
            self.end_trigger(account, *number, OrderState::Cancelled, Some(CancelReason::UserRequest));
        }
        self.cancel_all_of(account, &numbers, waiting, is_detailed, to)
    }

    /// Cancels open orders; `waited` are already cancelled. Returns the group if it is complete.
    pub(super) fn cancel_all_of(
        &mut self,
        account: usize,
        numbers: &[u64],
        waited: Vec<u64>,
        is_detailed: bool,
        to: &ReplyTo,
    ) -> Result<Option<Group>, Fault> {
        let mut group =
            Group { reply: to.clone(), waiting: 0, cancelled: waited, is_detailed, account, quoting: None };
        if numbers.is_empty() {
            return Ok(Some(group));
        }
        if !self.unsent.has_room(account, numbers.len()) {
            return Err(ErrorCode::MatchingEngineQueueFull.into());
        }
        let number_of_group = self.next_group;
        self.next_group += 1;
        group.waiting = numbers.len();
        self.groups.insert(number_of_group, group);
        self.unsent.add(account, number_of_group, numbers);
        self.send_unsent();
        Ok(None)
    }

    /// Sends waiting cancels up to half of the queue; the other half is reserved for other requests.
    pub(super) fn send_unsent(&mut self) {
        while self.requests.len() < REQUESTS_MAX / 2
            && let Some((account, number, group)) = self.unsent.next()
        {
            if self.send_cancel(account, number, None, Some(group), CancelReason::UserRequest).is_err() {
                // The order has ended meanwhile.
                self.finish_of_group(group, None);
            }
        }
    }

    /// Returns the engine number of an order after its latest in-flight edit.
    fn number_on_its_way(&self, account: usize, number: u64) -> Option<UserRefNum> {
        let changes = self.accounts[account].pending.iter().rev();
        changes
            .filter(|pending| matches!(pending.work, Work::Edit { number: own, .. } if own == number))
            .find_map(|pending| match pending.request {
                OrderRequest::Replace(_) | OrderRequest::Enter(_) => Some(pending.request.user_ref()),
                _ => None,
            })
    }

    /// Resends the cancel of an open order if an edit changed its engine number meanwhile. Returns the cancel
    /// if it was not resent.
    pub(super) fn cancel_again(&mut self, account: usize, pending: Pending) -> Option<Pending> {
        let Work::Cancel { number, reason } = pending.work else { return Some(pending) };
        let open = self.accounts[account].open.get(&number).map(|order| UserRefNum(order.user_ref));
        let now = self.number_on_its_way(account, number).or(open);
        if now.is_none_or(|now| now == pending.request.user_ref()) {
            return Some(pending);
        }
        let sent = self.send_cancel(account, number, pending.reply.clone(), pending.group, reason);
        sent.is_err().then_some(pending)
    }

    /// Counts a cancel of a group as confirmed or given up; the last one triggers the reply.
    pub(super) fn finish_of_group(&mut self, number: u64, cancelled: Option<u64>) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.cancelled.extend(cancelled);
        group.waiting -= 1;
        if group.waiting > 0 {
            return;
        }
        let Some(group) = self.groups.remove(&number) else { return };
        if let RequestId::Fix(asked) = &group.reply.id {
            return self.answer_fix(group.account, &group.reply, asked, Ok(FixDone::of(&group)));
        }
        let result = match group.quoting {
            Some(_) => self.quoting_result(&group),
            None => self.group_result(&group),
        };
        self.reply(&group.reply, Ok(result));
    }

    pub(super) fn group_result(&self, group: &Group) -> Vec<u8> {
        let detailed = group.is_detailed.then(|| self.detailed(group));
        // The cancels are final, so a reply with too many reports is reduced to their number.
        let detailed = detailed.filter(|detailed| detailed.len() <= ANSWER_MAX);
        detailed.unwrap_or_else(|| json(&(group.cancelled.len() as u64)))
    }

    /// Writes the cancelled orders, grouped by instrument.
    fn detailed(&self, group: &Group) -> Vec<u8> {
        let account = &self.accounts[group.account];
        let orders = account.orders(&group.cancelled);
        let mut places: Vec<usize> = orders.iter().map(|order| order.listing).collect();
        places.sort_unstable();
        places.dedup();
        list(places, |place, out| {
            let listing = &self.settings.listings[place];
            let own = orders.iter().filter(|order| order.listing == place);
            let result = Json(list(own, |order, out| self.write_order(order, out)));
            let report = Object::new()
                .with("instrument_name", tickpath_deribit::text::Text::new(&listing.name))
                .with("currency", tickpath_deribit::text::Text::new(listing.currency()))
                .with("type", tickpath_deribit::text::Text::new("limit"))
                .with("result", result);
            out.extend_from_slice(&report.end());
        })
    }

    /// Cancels the open and in-flight orders of ended connections.
    pub(super) fn cancel_for_gone(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        let orders = self.accounts.iter().flat_map(|known| known.open.values().chain(known.waiting.values()));
        let pending = self.accounts.iter().flat_map(|known| known.pending.iter().chain(&known.late));
        let owners: std::collections::HashSet<u64> = orders
            .filter_map(|order| order.connection)
            .chain(pending.filter_map(|pending| pending.connection))
            .chain(self.queued.keys().copied())
            .collect();
        // A connection without orders can be forgotten.
        self.gone.retain(|connection| owners.contains(connection));
        for account in 0..self.accounts.len() {
            let known = &self.accounts[account];
            let is_gone = |order: &&crate::order::Order| {
                order.connection.is_some_and(|connection| self.gone.contains(&connection))
                    && !known.is_cancelling(order.number)
            };
            let own: Vec<u64> = known.open.values().filter(is_gone).map(|order| order.number).collect();
            let waiting: Vec<u64> =
                known.waiting.values().filter(is_gone).map(|order| order.number).collect();
            for order in waiting {
                let reason = Some(CancelReason::CancelOnDisconnect);
                self.end_trigger(account, order, OrderState::Cancelled, reason);
            }
            for order in own {
                // If the queue is full, the next call tries again.
                let _ = self.send_cancel(account, order, None, None, CancelReason::CancelOnDisconnect);
            }
        }
    }

    /// Ends good-till-day orders at 08:00 UTC.
    pub(super) fn end_day_orders(&mut self) {
        const DAY_MS: u64 = 86_400_000;
        const END_MS: u64 = 8 * 3_600_000;
        let now_ms = self.now_ms();
        let last_end = now_ms.saturating_sub(END_MS) / DAY_MS * DAY_MS + END_MS;
        for account in 0..self.accounts.len() {
            let known = &self.accounts[account];
            let is_over = |order: &&crate::order::Order| {
                order.terms.time_in_force == TimeInForce::GoodTilDay && order.created_ms < last_end
            };
            let waiting: Vec<u64> =
                known.waiting.values().filter(is_over).map(|order| order.number).collect();
            let open = known.open.values().filter(is_over);
            let over: Vec<u64> =
                open.map(|order| order.number).filter(|number| !known.is_cancelling(*number)).collect();
            for number in waiting {
                self.end_trigger(account, number, OrderState::Cancelled, Some(CancelReason::Settlement));
            }
            for number in over {
                let _ = self.send_cancel(account, number, None, None, CancelReason::Settlement);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_their_turns() {
        let mut unsent = Unsent::default();
        unsent.add(1, 10, &[1, 2, 3]);
        unsent.add(0, 11, &[7, 8]);
        assert!(unsent.has(0, 8) && !unsent.has(1, 8));
        assert!(unsent.has_room(1, UNSENT_MAX - 3) && !unsent.has_room(1, UNSENT_MAX - 2));
        let order: Vec<u64> = std::iter::from_fn(|| unsent.next()).map(|(_, order, _)| order).collect();
        assert_eq!(order, [1, 7, 2, 8, 3]);
        assert!(unsent.waiting.is_empty());
    }
}

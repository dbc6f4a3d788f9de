//! Handles the venue's reports on own orders, fills and positions, and publishes them to clients.

use tickpath_deribit::codes::{CancelReason, OrderState};
use tickpath_gateway_protocol::{
    ErrorCode, Fixed, Money, ORDER_ID_MAX, OrderStatus, OrderUpdate, PositionUpdate, TradeUpdate, UpdateKind,
};
use tickpath_types::Nanos;

use super::account::{Position, Question};
use super::convert::{
    event_liquidity, event_side, event_time, event_trigger, event_type, flags_of, status_of,
};
use super::news::{OrderNews, PositionNews, TradeNews};
use super::orders::{Doubt, Order, State, Terms};
use super::out::{About, Cause, EventSink};
use super::{Core, convert};

impl Core {
    /// Applies an execution report; returns the order's slot if it is this gateway's.
    pub(super) fn apply_order(
        &mut self,
        account: u16,
        news: &OrderNews,
        cause: Cause,
        door: &mut impl EventSink,
    ) -> Option<u32> {
        self.accounts[usize::from(account)].foreign.is_readable(news.external_id);
        let Some(slot) = self.find_order(account, news) else {
            return self.adopt(account, news, cause, door);
        };
        let order = self.orders.get_mut(slot)?;
        let (was_over, old) = (order.state.is_over(), *order);
        order.doubt = Doubt::None;
        let is_rejected_by_us = order.state == State::Rejected && order.external_id.is_empty();
        if was_over && !is_rejected_by_us {
            // The end of an order is final.
            return Some(slot);
        }
        // The report is about the trigger order, but the order that it became is known already.
        let is_other = !order.external_id.is_empty() && order.external_id != news.external_id;
        let is_of_before = is_other && news.trigger_id != order.external_id;
        let is_late = !is_other && (news.updated_ms < order.updated_ms || news.filled < order.filled);
        // Both connections report a change. One's report may come after the other has reported the next
        // change of the same millisecond: for equal times, the first to report counts.
        let is_echo = order.is_by_fix != news.is_by_fix
            && old.doubt == Doubt::None
            && (order.updated_ms, order.filled) == (news.updated_ms, news.filled)
            && !state_of(news).is_over();
        if is_echo && order.is_by_fix && order.terms.mmp != news.terms.mmp {
            // FIX does not report this flag.
            order.terms.mmp = news.terms.mmp;
            self.tell_order(slot, ErrorCode::default(), cause, door);
            return Some(slot);
        }
        if is_of_before || is_late || is_echo {
            if old.doubt != Doubt::None {
                self.tell_order(slot, ErrorCode::default(), cause, door);
            }
            return Some(slot);
        }
        order.state = state_of(news);
        order.terms = Terms { trigger: news.terms.trigger.or(order.terms.trigger), ..news.terms };
        (order.filled, order.average_price) = (news.filled, news.average_price);
        (order.updated_ms, order.is_by_fix) = (news.updated_ms, news.is_by_fix);
        order.created_ms = news.created_ms;
        let is_changed = (old.state, old.terms, old.filled) != (order.state, order.terms, order.filled)
            || old.doubt != Doubt::None;
        let (is_over, filled, traded) = (order.state.is_over(), order.filled, order.traded);
        self.orders.set_external_id(slot, news.external_id);
        self.note_changed(slot, &old, news);
        self.count_open(account, was_over, is_over);
        if is_changed || is_other {
            let error = reason_of(news.cancel_reason);
            self.tell_order(slot, error, cause, door);
        }
        match (was_over, is_over) {
            (false, true) => {
                self.mass_cancel_ended(slot, cause, door);
                self.orders.end(slot);
            }
            (true, false) => {
                // Its client received a rejection and may have sent another: the two must not coexist.
                self.orders.revive(slot);
                self.want_cancel(slot);
            }
            _ => {}
        }
        if filled > traded && is_over {
            self.ask_trades(account, slot, cause.received);
        }
        Some(slot)
    }

    fn count_open(&mut self, account: u16, was_over: bool, is_over: bool) {
        let open = &mut self.accounts[usize::from(account)].open_orders;
        match (was_over, is_over) {
            (false, true) => *open = open.saturating_sub(1),
            (true, false) => *open += 1,
            _ => {}
        }
    }

    /// Schedules a query of an order's trades, in case they are not reported before.
    pub(super) fn ask_trades(&mut self, account: u16, slot: u32, now: Nanos) {
        let Some(order) = self.orders.get(slot) else { return };
        let question =
            Question { slot, gateway_id: order.gateway_id, at: now + TRADES_PATIENCE, is_of_trades: true };
        self.accounts[usize::from(account)].ask(question);
    }

    /// Finds the slot of the order in a report.
    fn find_order(&self, account: u16, news: &OrderNews) -> Option<u32> {
        self.find_by_label(account, news.label.as_str())
            .or_else(|| self.orders.by_external_id(account, news.external_id.as_str()))
            .or_else(|| {
                let trigger = news.trigger_id;
                if trigger.is_empty() { None } else { self.orders.by_external_id(account, trigger.as_str()) }
            })
    }

    pub(super) fn find_by_label(&self, account: u16, label: &str) -> Option<u32> {
        let parts = self.mark.read(label)?;
        let slot = if parts.session == self.mark.session() {
            self.orders.by_gateway_id(parts.gateway_order_id)?
        } else {
            let user = self.users.iter().position(|user| user.tag == parts.user)? as u16;
            self.orders.by_client_id(user, parts.client_order_id)?
        };
        let order = self.orders.get(slot)?;
        let is_it = order.account == account
            && order.session == parts.session
            && order.label_id == parts.gateway_order_id;
        is_it.then_some(slot)
    }

    /// Stores an order of an earlier instance of this gateway for the user in its label. An external order is
    /// only counted, and so is one that exceeds the capacity.
    fn adopt(
        &mut self,
        account: u16,
        news: &OrderNews,
        cause: Cause,
        door: &mut impl EventSink,
    ) -> Option<u32> {
        if let Some(user) = self.quoter_of(account, news) {
            return self.adopt_quote(account, user, news, cause, door);
        }
        let label = news.label;
        let parts = self.mark.read(label.as_str());
        if let Some(session) = parts.map(|parts| parts.session)
            && self.is_entered_elsewhere(session, news)
        {
            self.note_elsewhere(account, session, news);
            return None;
        }
        let user = parts.and_then(|parts| self.users.iter().position(|user| user.tag == parts.user));
        let (Some(parts), Some(user)) = (parts, user) else {
            self.note_foreign(account, news);
            return None;
        };
        let state = state_of(news);
        let symbol = self.instruments.number(news.symbol.as_str()).unwrap_or(0);
        let known = &mut self.users[user];
        if parts.client_order_id <= ORDER_ID_MAX {
            known.order_id_max = known.order_id_max.max(parts.client_order_id);
        }
        if state.is_over() {
            self.note_foreign(account, news);
            return None;
        }
        let order = Order {
            gateway_id: 0,
            client_id: parts.client_order_id,
            user: user as u16,
            account,
            owner: None,
            symbol,
            symbol_name: news.symbol,
            terms: news.terms,
            external_id: news.external_id,
            label_id: parts.gateway_order_id,
            state,
            filled: news.filled,
            traded: news.filled,
            average_price: news.average_price,
            updated_ms: news.updated_ms,
            is_by_fix: false,
            created_ms: news.created_ms,
            create_ns: 0,
            valid_until_ms: 0,
            doubt: Doubt::None,
            is_quote: false,
            is_cancel_wanted: false,
            is_cancel_queued: false,
            is_cancel_owed: false,
            is_changed_here: false,
            is_changed_elsewhere: false,
            session: parts.session,
        };
        match self.orders.adopt(order) {
            Ok(slot) => {
                self.accounts[usize::from(account)].open_orders += 1;
                self.note_absent(user as u16, cause.received);
                self.tell_order(slot, ErrorCode::default(), cause, door);
                Some(slot)
            }
            Err(_) => {
                self.counters.orders_left_out += 1;
                self.note_foreign(account, news);
                None
            }
        }
    }

    /// Rejects an order that never existed, as decided by the venue or after its deadline.
    pub(super) fn reject_order(
        &mut self,
        slot: u32,
        error: ErrorCode,
        cause: Cause,
        door: &mut impl EventSink,
    ) {
        self.end_order(slot, State::Rejected, error, cause, door);
    }

    /// Ends an order whose last state the venue has not reported.
    pub(super) fn end_order(
        &mut self,
        slot: u32,
        state: State,
        error: ErrorCode,
        cause: Cause,
        door: &mut impl EventSink,
    ) {
        let Some(order) = self.orders.get_mut(slot) else { return };
        if order.state.is_over() {
            return;
        }
        (order.state, order.doubt) = (state, Doubt::None);
        let account = order.account;
        self.count_open(account, false, true);
        self.tell_order(slot, error, cause, door);
        self.mass_cancel_ended(slot, cause, door);
        self.orders.end(slot);
    }

    /// Sends an order's state to the clients of its user.
    pub(super) fn tell_order(&self, slot: u32, error: ErrorCode, cause: Cause, door: &mut impl EventSink) {
        let Some(order) = self.orders.get(slot) else { return };
        let about = About { symbol: order.symbol, ..self.about_account(order.account) };
        let body = OrderUpdate { error, ..update_of(order, UpdateKind::INCREMENTAL) };
        let cause = Cause { origin_ns: order.create_ns, ..cause };
        self.tell_user(order.user, order.account, self.stamp.event(&body, about, cause), door);
    }

    /// Applies a trade of an account, once.
    pub(super) fn apply_trade(
        &mut self,
        account: u16,
        news: &TradeNews,
        received: Nanos,
        update: UpdateKind,
        door: &mut impl EventSink,
    ) {
        let is_buy = news.side == tickpath_types::Side::Buy;
        if !self.seen.insert(account, is_buy, news.trade_id.as_str()) {
            return;
        }
        let slot = self
            .find_by_label(account, news.label.as_str())
            .or_else(|| self.orders.by_external_id(account, news.order_id.as_str()));
        let cause = Cause::venue(received, news.time_ms);
        let symbol = self.instruments.number(news.symbol.as_str()).unwrap_or(0);
        let about = About { symbol, ..self.about_account(account) };
        let mut body = TradeUpdate {
            client_order_id: 0,
            order_id: 0,
            external_order_id: news.order_id,
            trade_id: news.trade_id,
            price: Fixed(news.price),
            quantity: Fixed(news.quantity),
            fee: Money::new(news.fee),
            fee_currency: news.fee_currency,
            side: event_side(news.side),
            liquidity: event_liquidity(news.liquidity),
            update,
            ..TradeUpdate::default()
        };
        let Some(order) = slot.and_then(|slot| self.orders.get_mut(slot)) else {
            return self.tell_account(account, &body, about, cause, door);
        };
        order.traded = order.traded.saturating_add(news.quantity);
        (body.client_order_id, body.order_id) = (order.client_id, order.gateway_id);
        let user = order.user;
        self.tell_user(user, account, self.stamp.event(&body, about, cause), door);
    }

    /// Applies a position of an account.
    pub(super) fn apply_position(
        &mut self,
        account: u16,
        news: &PositionNews,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let Some(symbol) = self.instruments.number(news.symbol.as_str()) else { return };
        let body = PositionUpdate { update: UpdateKind::INCREMENTAL, ..news.body };
        let about = About { symbol, ..self.about_account(account) };
        self.accounts[usize::from(account)].keep_position(Position { symbol, body });
        self.tell_account(account, &body, about, Cause { received, ..Cause::default() }, door);
    }
}

/// Time for trades to be reported after the order's end before they are queried.
const TRADES_PATIENCE: Nanos = Nanos::from_secs(1);

/// Order state of a report. At a settlement the venue cancels what has expired - orders for the day, and
/// orders in an expired instrument - and gives that reason.
pub(super) fn state_of(news: &OrderNews) -> State {
    match news.state {
        OrderState::Filled => State::Completed,
        OrderState::Cancelled if news.cancel_reason == Some(CancelReason::Settlement) => State::Expired,
        OrderState::Cancelled => State::Canceled,
        OrderState::Rejected => State::Rejected,
        OrderState::Untriggered => State::Waiting,
        _ => State::Working,
    }
}

/// Reason why an order has ended without a request.
pub(super) fn reason_of(reason: Option<CancelReason>) -> ErrorCode {
    match reason {
        None | Some(CancelReason::UserRequest | CancelReason::Settlement) => ErrorCode::default(),
        Some(CancelReason::CancelOnDisconnect) => ErrorCode::CONNECTION_LOST,
        Some(CancelReason::EditPostOnlyReject) => ErrorCode::WOULD_TAKE,
        Some(_) => ErrorCode::VENUE,
    }
}

/// State of an order for clients.
pub(super) fn update_of(order: &Order, update: UpdateKind) -> OrderUpdate {
    let status = match (order.doubt, order.state) {
        (Doubt::None, state) => status_of(state),
        (_, state) if state.is_over() => status_of(state),
        _ => OrderStatus::UNKNOWN,
    };
    OrderUpdate {
        client_order_id: order.client_id,
        order_id: order.gateway_id,
        external_order_id: order.external_id,
        price: Fixed(order.terms.price),
        stop_price: Fixed(order.terms.stop_price),
        remaining_quantity: Fixed(if order.state.is_over() {
            0
        } else {
            order.terms.quantity.saturating_sub(order.filled).max(0)
        }),
        traded_quantity: Fixed(order.filled),
        average_price: Fixed(order.average_price),
        created_utc_ns: order.created_ms.saturating_mul(1_000_000),
        status,
        side: convert::event_side(order.terms.side),
        order_type: event_type(order.terms.order_type),
        time_in_force: event_time(order.terms.time_in_force),
        execution: flags_of(&order.terms),
        trigger: event_trigger(order.terms.trigger),
        update,
        ..OrderUpdate::default()
    }
}

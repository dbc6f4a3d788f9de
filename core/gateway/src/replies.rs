//! Messages on an account's connection: replies to requests, and unsolicited updates.

use tickpath_deribit::envelope::{ErrorBody, Notification, Response};
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    AccountSummary, Order as VenueOrder, Position as VenuePosition, UserChanges, UserTrade, UserTrades,
};
use tickpath_deribit::scan::{ScanError, Value};
use tickpath_gateway_protocol::{
    AckStatus, AckType, ErrorCode, FundsUpdate, OrderAck, Origin, PositionUpdate, RateLimitReason, Text,
    UpdateKind,
};
use tickpath_types::Nanos;

use super::Core;
use super::account::{Asker, Pending, Position, Purpose, Question, Step};
use super::convert::{event_side, is_about_state, is_uncertain, venue_error, words};
use super::news::{NewsFault, OrderNews, PositionNews, TradeNews, funds_of};
use super::orders::Doubt;
use super::out::{About, Cause, EventSink};

impl Core {
    /// Handles a reply on an account's connection.
    pub(super) fn handle_account_reply(
        &mut self,
        account: u16,
        id: i64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let Some(pending) = self.accounts[usize::from(account)].take(id) else { return };
        if self.is_forgotten(&pending) {
            return;
        }
        match pending.purpose {
            Purpose::Create { slot } => self.created(account, slot, &pending, response, received, door),
            Purpose::Modify { slot } => self.modified(account, slot, &pending, response, received, door),
            Purpose::Cancel { slot, .. } => self.cancelled(account, slot, &pending, response, received, door),
            Purpose::CancelAll => {
                if response.outcome.is_err() {
                    self.want_cancel_all_again(account);
                }
            }
            // If it was rejected, the cancellations are still queued and are sent one by one.
            Purpose::CancelWaiting => {}
            Purpose::Quotes { .. } => self.quoted(account, &pending, response, received, door),
            Purpose::CancelQuotes { .. } => {
                self.cancelled_quotes(account, &pending, response, received, door)
            }
            Purpose::Step(step) => self.take_step(account, step, response, received, door),
            Purpose::State { slot, gateway_id } => {
                self.take_order_state(account, slot, gateway_id, response, received, door);
            }
            Purpose::Trades { slot, gateway_id } => {
                self.take_order_trades(account, slot, gateway_id, response, received, door);
            }
            Purpose::Ping => self.tell_latency(account, received.since(pending.sent), received, door),
        }
    }

    /// Whether the order of a request has ended and was removed: another order may have its slot.
    pub(super) fn is_forgotten(&self, pending: &Pending) -> bool {
        let is_it = |slot| self.orders.get(slot).is_some_and(|order| order.gateway_id == pending.gateway_id);
        pending.purpose.changes().is_some_and(|slot| !is_it(slot))
    }

    /// Sends the result of a request to its client.
    pub(super) fn answer(
        &self,
        slot: u32,
        pending: &Pending,
        request: AckType,
        outcome: Result<(), (AckStatus, ErrorCode, Text<48>)>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let (Some(client), Some(order)) = (pending.asker.client, self.orders.get(slot)) else { return };
        if self.clients.get(client).is_none() {
            return;
        }
        let (status, error, text) = match outcome {
            Ok(()) => (AckStatus::ACCEPTED, ErrorCode::default(), Text::EMPTY),
            Err(refusal) => refusal,
        };
        self.tell_venue_limit(received, order.account, error, RateLimitReason::VENUE_REFUSED, door);
        let Asker { request_id, create_ns, .. } = pending.asker;
        let ack = OrderAck {
            client_order_id: order.client_id,
            order_id: order.gateway_id,
            request_id,
            external_order_id: order.external_id,
            round_trip_ns: self.round_trip(received, create_ns),
            origin: if status == AckStatus::TIMEOUT { Origin::GATEWAY } else { Origin::EXCHANGE },
            status,
            request,
            side: event_side(order.terms.side),
            error,
            text,
            ..OrderAck::default()
        };
        let stream = self.accounts[usize::from(order.account)].order_stream() as u8 + 1;
        let about = About { symbol: order.symbol, stream, ..self.about_account(order.account) };
        let origin_utc_ns = if ack.origin == Origin::EXCHANGE { self.said_utc_ns } else { 0 };
        let cause = Cause { received, origin_ns: create_ns, origin_utc_ns };
        door.send(client, self.stamp.event(&ack, about, cause));
    }

    fn created(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        match response.outcome {
            Ok(_) => self.take_done(account, slot, pending, AckType::CREATE, received, door),
            Err(error) => self.refused_create(slot, pending, &error, received, door),
        }
    }

    /// Handles a rejected order, or one whose result is unknown.
    pub(super) fn refused_create(
        &mut self,
        slot: u32,
        pending: &Pending,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if is_uncertain(error) {
            return self.in_doubt(slot, pending, AckType::CREATE, error, received, door);
        }
        let refusal = (AckStatus::REJECTED, venue_error(error), words(error));
        self.answer(slot, pending, AckType::CREATE, Err(refusal), received, door);
        let cause = Cause { received, ..Cause::default() };
        self.reject_order(slot, venue_error(error), cause, door);
    }

    fn modified(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        match response.outcome {
            Ok(_) => self.take_done(account, slot, pending, AckType::MODIFY, received, door),
            Err(error) => self.refused_change(slot, pending, AckType::MODIFY, &error, received, door),
        }
    }

    fn cancelled(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        match response.outcome {
            Ok(value) if value.text() == "0" => {
                // No order with its label is open: it has ended, or never existed.
                let text = Text::cut("no open order has its label");
                let refusal = (AckStatus::REJECTED, ErrorCode::UNKNOWN_ORDER, text);
                self.answer(slot, pending, AckType::CANCEL, Err(refusal), received, door);
                self.doubt(slot, received, door);
            }
            Ok(_) => self.take_done(account, slot, pending, AckType::CANCEL, received, door),
            Err(error) => self.refused_cancel(account, slot, pending, &error, received, door),
        }
    }

    pub(super) fn refused_cancel(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if pending.asker.client.is_none() {
            self.mass_cancel_refused(slot, error, received, door);
        }
        if !is_uncertain(error) {
            self.cancel_refused(account, slot, error, received);
        }
        self.refused_change(slot, pending, AckType::CANCEL, error, received, door);
    }

    /// A cancellation whose rejection was reported to the client is not repeated. One that the gateway itself
    /// wants is: after a pause, or when the order's state is known.
    fn cancel_refused(&mut self, account: u16, slot: u32, error: &ErrorBody<'_>, received: Nanos) {
        let Some(order) = self.orders.get_mut(slot) else { return };
        order.is_cancel_wanted = order.is_cancel_owed;
        if order.is_cancel_wanted && !is_about_state(error) {
            self.want_cancel(slot);
            self.accounts[usize::from(account)].cancel_at = received + super::reconcile::RETRY;
        }
    }

    /// Handles an executed request: the order's new state was decoded with the reply.
    fn take_done(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        request: AckType,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let news = self.scratch.order.take();
        if let Some(Ok(news)) = &news {
            self.orders.set_external_id(slot, news.external_id);
        }
        self.answer(slot, pending, request, Ok(()), received, door);
        match news {
            Some(Ok(news)) => {
                self.apply_order(account, &news, Cause::venue(received, news.updated_ms), door);
                self.take_read_trades(account, received, door);
            }
            // The answer to a cancellation by label is a number; the order's state is reported separately.
            None => {}
            Some(Err(_)) => {
                self.counters.faults += 1;
                self.doubt(slot, received, door);
            }
        }
    }

    fn take_read_trades(&mut self, account: u16, received: Nanos, door: &mut impl EventSink) {
        for place in 0..self.scratch.trades.len() {
            match self.scratch.trades[place] {
                Ok(trade) => self.apply_trade(account, &trade, received, UpdateKind::INCREMENTAL, door),
                Err(_) => self.counters.faults += 1,
            }
        }
    }

    pub(super) fn refused_change(
        &mut self,
        slot: u32,
        pending: &Pending,
        request: AckType,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if is_uncertain(error) {
            return self.in_doubt(slot, pending, request, error, received, door);
        }
        let refusal = (AckStatus::REJECTED, venue_error(error), words(error));
        self.answer(slot, pending, request, Err(refusal), received, door);
        if is_about_state(error) {
            self.doubt(slot, received, door);
        }
    }

    /// Handles an answer that leaves the result of the request unknown.
    fn in_doubt(
        &mut self,
        slot: u32,
        pending: &Pending,
        request: AckType,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let refusal = (AckStatus::TIMEOUT, ErrorCode::TIMEOUT, words(error));
        self.answer(slot, pending, request, Err(refusal), received, door);
        self.doubt(slot, received, door);
    }

    /// Marks an order's status as unknown, schedules a status query, and informs the order's clients.
    pub(super) fn doubt(&mut self, slot: u32, now: Nanos, door: &mut impl EventSink) {
        let Some(order) = self.orders.get_mut(slot) else { return };
        if order.state.is_over() {
            return;
        }
        let is_new = order.doubt == Doubt::None;
        order.doubt = Doubt::Unasked;
        let (account, gateway_id) = (order.account, order.gateway_id);
        let question = Question { slot, gateway_id, at: now, is_of_trades: false };
        self.accounts[usize::from(account)].ask(question);
        if is_new {
            self.counters.doubts += 1;
            self.tell_order(slot, ErrorCode::default(), Cause { received: now, ..Cause::default() }, door);
        }
    }

    /// Handles a request on an account's connection that remains without a reply.
    pub(super) fn handle_account_unanswered(
        &mut self,
        account: u16,
        id: i64,
        is_lost: bool,
        now: Nanos,
        door: &mut impl EventSink,
    ) {
        let Some(pending) = self.accounts[usize::from(account)].take(id) else { return };
        self.unanswered(account, &pending, is_lost, now, door);
    }

    /// Handles a request on either of an account's connections that remains without an answer.
    pub(super) fn unanswered(
        &mut self,
        account: u16,
        pending: &Pending,
        is_lost: bool,
        now: Nanos,
        door: &mut impl EventSink,
    ) {
        self.counters.unanswered += 1;
        if self.is_forgotten(pending) {
            return;
        }
        let (slot, request) = match pending.purpose {
            Purpose::Create { slot } => (slot, AckType::CREATE),
            Purpose::Modify { slot } => (slot, AckType::MODIFY),
            Purpose::Cancel { slot, .. } => (slot, AckType::CANCEL),
            Purpose::State { slot, .. } => {
                let known = &mut self.accounts[usize::from(account)];
                known.asked_questions = known.asked_questions.saturating_sub(1);
                return self.doubt_again(slot, now);
            }
            Purpose::Trades { slot, gateway_id } => {
                let known = &mut self.accounts[usize::from(account)];
                known.asked_questions = known.asked_questions.saturating_sub(1);
                if self.orders.get(slot).is_some_and(|order| order.gateway_id == gateway_id) {
                    self.ask_trades(account, slot, now);
                }
                return;
            }
            Purpose::Step(step) => {
                let known = &mut self.accounts[usize::from(account)];
                if known.step == step {
                    known.enter(step, now);
                }
                return;
            }
            Purpose::CancelAll => return self.want_cancel_all_again(account),
            Purpose::CancelWaiting | Purpose::Ping => return,
            Purpose::Quotes { .. } | Purpose::CancelQuotes { .. } => {
                return self.unanswered_quotes(account, pending, is_lost, now, door);
            }
        };
        let error = if is_lost { ErrorCode::CONNECTION_LOST } else { ErrorCode::TIMEOUT };
        let text = Text::cut(if is_lost { "the connection was lost" } else { "no answer in time" });
        self.answer(slot, pending, request, Err((AckStatus::TIMEOUT, error, text)), now, door);
        if request == AckType::CANCEL && pending.asker.client.is_none() {
            self.mass_cancel_unanswered(slot, error, text, now, door);
        }
        self.doubt(slot, now, door);
    }

    /// Handles data of an account's channel.
    pub(super) fn handle_account_news(
        &mut self,
        account: u16,
        news: &Notification<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let Some(channel) = news.channel.plain() else { return };
        let taken = if channel.starts_with("user.changes.") {
            self.take_changes(account, &news.data, received, door)
        } else if channel.starts_with("user.portfolio.") {
            self.take_funds(account, &news.data, received, door)
        } else {
            Ok(())
        };
        if taken.is_err() {
            self.counters.faults += 1;
        }
    }

    fn take_changes(
        &mut self,
        account: u16,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let changes: UserChanges<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        // An undecodable order does not block the others.
        let mut is_whole = true;
        for order in changes.orders.iter() {
            is_whole &= order.is_ok_and(|order| self.take_order(account, &order, received, door).is_ok());
        }
        if !is_whole {
            self.take_odd_changes(account, data, received, door);
        }
        for trade in changes.trades.iter() {
            match TradeNews::read(&trade.map_err(|_| NewsFault::Code)?) {
                Ok(trade) => self.apply_trade(account, &trade, received, UpdateKind::INCREMENTAL, door),
                Err(_) => self.counters.faults += 1,
            }
        }
        for position in changes.positions.iter() {
            match PositionNews::read(&position.map_err(|_| NewsFault::Code)?) {
                Ok(position) => self.apply_position(account, &position, received, door),
                Err(_) => self.counters.faults += 1,
            }
        }
        Ok(())
    }

    /// Handles the orders of a change again if some are undecodable: those are queried, or counted. The
    /// others are known already and are not sent again.
    #[cold]
    fn take_odd_changes(
        &mut self,
        account: u16,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        // Decodes each order separately.
        let Ok(list) = list_under::<Value<'_>>(data, "orders") else { return };
        for value in list.iter().flatten() {
            let _ = self.take_order_value(account, &value, received, door);
        }
    }

    /// Handles an order that may be undecodable; returns its slot if it is this gateway's.
    fn take_order_value(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Option<u32> {
        let order = value.parse::<VenueOrder<'_>>().map_err(|_| NewsFault::Code);
        match order.and_then(|order| self.take_order(account, &order, received, door)) {
            Ok(slot) => slot,
            Err(_) => self.take_unreadable(account, value, received, door),
        }
    }

    fn take_order(
        &mut self,
        account: u16,
        order: &VenueOrder<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<Option<u32>, NewsFault> {
        let news = OrderNews::read(order)?;
        Ok(self.apply_order(account, &news, Cause::venue(received, news.updated_ms), door))
    }

    fn take_funds(
        &mut self,
        account: u16,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let summary: AccountSummary<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        self.apply_funds(account, &summary, received, door)
    }

    pub(super) fn apply_funds(
        &mut self,
        account: u16,
        summary: &AccountSummary<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let funds = FundsUpdate { update: UpdateKind::INCREMENTAL, ..funds_of(summary)? };
        let known = &mut self.accounts[usize::from(account)];
        if known.funds.contains(&funds) {
            return Ok(());
        }
        known.keep_funds(funds);
        let about = self.about_account(account);
        self.tell_account(account, &funds, about, Cause { received, ..Cause::default() }, door);
        Ok(())
    }

    /// Ends an order status query; returns whether its order still has the slot.
    fn end_question(&mut self, account: u16, slot: u32, gateway_id: u64) -> bool {
        let known = &mut self.accounts[usize::from(account)];
        known.asked_questions = known.asked_questions.saturating_sub(1);
        self.orders.get(slot).is_some_and(|order| order.gateway_id == gateway_id)
    }

    /// Handles the answer to an order status query: one order if queried by id, a list if by label.
    fn take_order_state(
        &mut self,
        account: u16,
        slot: u32,
        gateway_id: u64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if !self.end_question(account, slot, gateway_id) {
            return;
        }
        let found = match response.outcome {
            Ok(value) if value.text().starts_with('[') => {
                value.parse::<List<'_, VenueOrder<'_>>>().and_then(|list| of_label(&list))
            }
            Ok(value) => value.parse::<VenueOrder<'_>>().map(Some),
            Err(error) if is_about_state(&error) => Ok(None),
            Err(_) => return self.doubt_again(slot, received),
        };
        match found {
            Ok(Some(order)) => {
                if self.take_order(account, &order, received, door).is_err() {
                    return self.doubt_unreadable(slot, received);
                }
                self.settled(slot, received, door);
            }
            Ok(None) => self.not_found(slot, received, door),
            Err(_) => self.doubt_unreadable(slot, received),
        }
    }

    fn take_order_trades(
        &mut self,
        account: u16,
        slot: u32,
        gateway_id: u64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if !self.end_question(account, slot, gateway_id) {
            return;
        }
        let value = match response.outcome {
            Ok(value) => value,
            Err(error) if error.error_code().is_some_and(|code| code.is_retryable()) => {
                return self.ask_trades(account, slot, received);
            }
            Err(_) => return,
        };
        let list: Result<List<'_, UserTrade<'_>>, _> = if value.text().starts_with('[') {
            value.parse()
        } else {
            value.parse::<UserTrades<'_>>().map(|trades| trades.trades)
        };
        let Ok(list) = list else {
            self.counters.faults += 1;
            return;
        };
        for trade in list.iter() {
            match trade.map_err(|_| NewsFault::Code).and_then(|trade| TradeNews::read(&trade)) {
                Ok(trade) => self.apply_trade(account, &trade, received, UpdateKind::INCREMENTAL, door),
                Err(_) => self.counters.faults += 1,
            }
        }
    }

    /// Handles the answer to a step of an account's download.
    fn take_step(
        &mut self,
        account: u16,
        step: Step,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if self.accounts[usize::from(account)].step != step {
            return;
        }
        let taken = match (step, response.outcome) {
            (Step::Orders, Ok(value)) => self.take_open_orders(account, &value, received, door),
            (Step::Positions, Ok(value)) => self.take_positions(account, &value, received, door),
            (Step::Funds, Ok(value)) => self.take_summaries(account, &value, received, door),
            // A key may have limited access: what it cannot read is omitted.
            (Step::Positions | Step::Funds, Err(error)) if is_forbidden(&error) => Ok(()),
            (_, Err(error)) => {
                let known = &mut self.accounts[usize::from(account)];
                known.refusal = words(&error);
                known.enter(step, received + super::reconcile::RETRY);
                return;
            }
            _ => Err(NewsFault::Code),
        };
        let known = &mut self.accounts[usize::from(account)];
        known.refusal = Text::EMPTY;
        match taken {
            Ok(()) => known.enter(after(step), received),
            Err(_) => {
                self.counters.faults += 1;
                known.enter(step, received + super::reconcile::RETRY);
            }
        }
    }

    fn take_open_orders(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let list: List<'_, Value<'_>> = value.parse().map_err(|_| NewsFault::Code)?;
        self.accounts[usize::from(account)].foreign.clear();
        // The status of an order missing from the list is unknown: it ended unobserved, or never existed.
        self.scratch_marks.clear();
        for order in list.iter() {
            let order = order.map_err(|_| NewsFault::Code)?;
            let slot = self.take_order_value(account, &order, received, door);
            self.scratch_marks.extend(slot);
        }
        // Sorted for binary search: there may be thousands.
        self.scratch_marks.sort_unstable();
        for slot in 0..self.orders.used() {
            let Some(order) = self.orders.get(slot) else { continue };
            if order.account != account || order.state.is_over() {
                continue;
            }
            // A listed order that was undecodable has an unknown status already.
            if order.doubt == Doubt::None && self.scratch_marks.binary_search(&slot).is_ok() {
                self.settled(slot, received, door);
            } else {
                self.doubt(slot, received, door);
            }
        }
        Ok(())
    }

    fn take_positions(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let list: List<'_, VenuePosition<'_>> = value.parse().map_err(|_| NewsFault::Code)?;
        self.scratch_marks.clear();
        for position in list.iter() {
            match PositionNews::read(&position.map_err(|_| NewsFault::Code)?) {
                Ok(position) => {
                    self.scratch_marks.extend(self.instruments.number(position.symbol.as_str()));
                    self.apply_position(account, &position, received, door);
                }
                Err(_) => self.counters.faults += 1,
            }
        }
        // A position missing from the list was closed unobserved.
        for place in 0..self.accounts[usize::from(account)].positions.len() {
            let Position { symbol, body } = self.accounts[usize::from(account)].positions[place];
            if body.quantity.is_zero() || self.scratch_marks.contains(&symbol) {
                continue;
            }
            let body = PositionUpdate { update: UpdateKind::INCREMENTAL, ..PositionUpdate::default() };
            self.accounts[usize::from(account)].keep_position(Position { symbol, body });
            let about = About { symbol, ..self.about_account(account) };
            self.tell_account(account, &body, about, Cause { received, ..Cause::default() }, door);
        }
        Ok(())
    }

    fn take_summaries(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let list = list_under::<AccountSummary<'_>>(value, "summaries").map_err(|_| NewsFault::Code)?;
        for summary in list.iter() {
            self.apply_funds(account, &summary.map_err(|_| NewsFault::Code)?, received, door)?;
        }
        Ok(())
    }
}

/// Returns the list under a name in an object, empty if the name is absent.
fn list_under<'a, T: Field<'a> + Clone>(object: &Value<'a>, name: &str) -> Result<List<'a, T>, ScanError> {
    let mut list = List::default();
    let mut scanner = object.scanner();
    scanner.open_object()?;
    while let Some(key) = scanner.next_key()? {
        if key == name {
            list = List::read(&mut scanner)?;
        } else {
            scanner.skip()?;
        }
    }
    Ok(list)
}

/// Selects from the orders with one label - a trigger order and the order that it became - one that has not
/// ended. An undecodable order is an error, as then the absence of an open order is unproven.
fn of_label<'a>(list: &List<'a, VenueOrder<'a>>) -> Result<Option<VenueOrder<'a>>, ScanError> {
    let rank = |order: &VenueOrder<'a>| (order.order_state.is_terminal(), order.trigger_order_id.is_none());
    let mut best: Option<VenueOrder<'a>> = None;
    for order in list.iter() {
        let order = order?;
        if best.as_ref().is_none_or(|best| rank(&order) < rank(best)) {
            best = Some(order);
        }
    }
    Ok(best)
}

fn is_forbidden(error: &ErrorBody<'_>) -> bool {
    use tickpath_deribit::error_code::ErrorCode as Venue;
    matches!(error.error_code(), Some(Venue::Forbidden | Venue::ScopeExceeded | Venue::MethodNotFound))
}

/// Returns the next step.
const fn after(step: Step) -> Step {
    match step {
        Step::Orders => Step::Positions,
        Step::Positions => Step::Funds,
        _ => Step::Doubts,
    }
}

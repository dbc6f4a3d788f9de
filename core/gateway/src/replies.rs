//! What comes on the connection of an account: replies to requests, and news that nobody asked for.

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
use super::out::{About, Cause, Door};

impl Core {
    /// A reply on an account's connection.
    pub(super) fn handle_account_reply(
        &mut self,
        account: u16,
        id: i64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl Door,
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
            // Where it was refused they wait still, and are asked for one by one.
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

    /// Whether the order that a request was about ended and is forgotten: another one may be at its place.
    pub(super) fn is_forgotten(&self, pending: &Pending) -> bool {
        let is_it = |slot| self.orders.get(slot).is_some_and(|order| order.gateway_id == pending.gateway_id);
        pending.purpose.changes().is_some_and(|slot| !is_it(slot))
    }

    /// The venue's answer to a request of a client, for the client.
    pub(super) fn answer(
        &self,
        slot: u32,
        pending: &Pending,
        request: AckType,
        outcome: Result<(), (AckStatus, ErrorCode, Text<48>)>,
        received: Nanos,
        door: &mut impl Door,
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
        door: &mut impl Door,
    ) {
        match response.outcome {
            Ok(_) => self.take_done(account, slot, pending, AckType::CREATE, received, door),
            Err(error) => self.refused_create(slot, pending, &error, received, door),
        }
    }

    /// The venue has not taken an order, or does not say whether it has.
    pub(super) fn refused_create(
        &mut self,
        slot: u32,
        pending: &Pending,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl Door,
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
        door: &mut impl Door,
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
        door: &mut impl Door,
    ) {
        match response.outcome {
            Ok(value) if value.text() == "0" => {
                // None with its label is open: it has ended, or never was.
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
        door: &mut impl Door,
    ) {
        if pending.asker.client.is_none() {
            self.mass_cancel_refused(slot, error, received, door);
        }
        if !is_uncertain(error) {
            self.cancel_refused(account, slot, error, received);
        }
        self.refused_change(slot, pending, AckType::CANCEL, error, received, door);
    }

    /// What a client was told is refused is not tried again; what the gateway itself wants, for the client or another reason, is:
    /// in a moment, or when it is known how the order stands.
    fn cancel_refused(&mut self, account: u16, slot: u32, error: &ErrorBody<'_>, received: Nanos) {
        let Some(order) = self.orders.get_mut(slot) else { return };
        order.is_cancel_wanted = order.is_cancel_owed;
        if order.is_cancel_wanted && !is_about_state(error) {
            self.want_cancel(slot);
            self.accounts[usize::from(account)].cancel_at = received + super::reconcile::RETRY;
        }
    }

    /// The venue has done it: the order as it is now was read with the reply.
    fn take_done(
        &mut self,
        account: u16,
        slot: u32,
        pending: &Pending,
        request: AckType,
        received: Nanos,
        door: &mut impl Door,
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
            // The answer to a cancellation by label is a number; what became of the order is told by itself.
            None => {}
            Some(Err(_)) => {
                self.counters.faults += 1;
                self.doubt(slot, received, door);
            }
        }
    }

    fn take_read_trades(&mut self, account: u16, received: Nanos, door: &mut impl Door) {
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
        door: &mut impl Door,
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

    /// The venue's answer leaves it open what became of the request.
    fn in_doubt(
        &mut self,
        slot: u32,
        pending: &Pending,
        request: AckType,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl Door,
    ) {
        let refusal = (AckStatus::TIMEOUT, ErrorCode::TIMEOUT, words(error));
        self.answer(slot, pending, request, Err(refusal), received, door);
        self.doubt(slot, received, door);
    }

    /// What became of an order is not certain: it is asked for, and its clients are told.
    pub(super) fn doubt(&mut self, slot: u32, now: Nanos, door: &mut impl Door) {
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

    /// A request on an account's connection has no reply and will have none.
    pub(super) fn handle_account_unanswered(
        &mut self,
        account: u16,
        id: i64,
        is_lost: bool,
        now: Nanos,
        door: &mut impl Door,
    ) {
        let Some(pending) = self.accounts[usize::from(account)].take(id) else { return };
        self.unanswered(account, &pending, is_lost, now, door);
    }

    /// A request of an account, on either of its connections, has no answer and will have none.
    pub(super) fn unanswered(
        &mut self,
        account: u16,
        pending: &Pending,
        is_lost: bool,
        now: Nanos,
        door: &mut impl Door,
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

    /// Data of a channel of an account.
    pub(super) fn handle_account_news(
        &mut self,
        account: u16,
        news: &Notification<'_>,
        received: Nanos,
        door: &mut impl Door,
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
        door: &mut impl Door,
    ) -> Result<(), NewsFault> {
        let changes: UserChanges<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        // One that cannot be told does not keep the others from being told.
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

    /// Takes the orders of a change once more, of which one or another cannot be told: those are doubted, or counted. The others
    /// are known by now, and told no second time.
    #[cold]
    fn take_odd_changes(&mut self, account: u16, data: &Value<'_>, received: Nanos, door: &mut impl Door) {
        // Each for itself.
        let Ok(list) = list_under::<Value<'_>>(data, "orders") else { return };
        for value in list.iter().flatten() {
            let _ = self.take_order_value(account, &value, received, door);
        }
    }

    /// Takes an order that may be unreadable; its place, if it is one of this gateway.
    fn take_order_value(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl Door,
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
        door: &mut impl Door,
    ) -> Result<Option<u32>, NewsFault> {
        let news = OrderNews::read(order)?;
        Ok(self.apply_order(account, &news, Cause::venue(received, news.updated_ms), door))
    }

    fn take_funds(
        &mut self,
        account: u16,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl Door,
    ) -> Result<(), NewsFault> {
        let summary: AccountSummary<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        self.apply_funds(account, &summary, received, door)
    }

    pub(super) fn apply_funds(
        &mut self,
        account: u16,
        summary: &AccountSummary<'_>,
        received: Nanos,
        door: &mut impl Door,
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

    /// A question was answered; whether its order is still the one in that place.
    fn end_question(&mut self, account: u16, slot: u32, gateway_id: u64) -> bool {
        let known = &mut self.accounts[usize::from(account)];
        known.asked_questions = known.asked_questions.saturating_sub(1);
        self.orders.get(slot).is_some_and(|order| order.gateway_id == gateway_id)
    }

    /// The answer to a question about one order: by its id one order, by its label a list.
    fn take_order_state(
        &mut self,
        account: u16,
        slot: u32,
        gateway_id: u64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl Door,
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
        door: &mut impl Door,
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

    /// The answer to one step of an account's download.
    fn take_step(
        &mut self,
        account: u16,
        step: Step,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl Door,
    ) {
        if self.accounts[usize::from(account)].step != step {
            return;
        }
        let taken = match (step, response.outcome) {
            (Step::Orders, Ok(value)) => self.take_open_orders(account, &value, received, door),
            (Step::Positions, Ok(value)) => self.take_positions(account, &value, received, door),
            (Step::Funds, Ok(value)) => self.take_summaries(account, &value, received, door),
            // A key may not see everything: what it may not is left out.
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
        door: &mut impl Door,
    ) -> Result<(), NewsFault> {
        let list: List<'_, Value<'_>> = value.parse().map_err(|_| NewsFault::Code)?;
        self.accounts[usize::from(account)].foreign.clear();
        // What is not in the list is in doubt: it ended while nobody listened, or never came to be.
        self.scratch_marks.clear();
        for order in list.iter() {
            let order = order.map_err(|_| NewsFault::Code)?;
            let slot = self.take_order_value(account, &order, received, door);
            self.scratch_marks.extend(slot);
        }
        // There may be thousands.
        self.scratch_marks.sort_unstable();
        for slot in 0..self.orders.used() {
            let Some(order) = self.orders.get(slot) else { continue };
            if order.account != account || order.state.is_over() {
                continue;
            }
            // One in the list that could not be read is in doubt already.
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
        door: &mut impl Door,
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
        // What is not in the list was closed while nobody listened.
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
        door: &mut impl Door,
    ) -> Result<(), NewsFault> {
        let list = list_under::<AccountSummary<'_>>(value, "summaries").map_err(|_| NewsFault::Code)?;
        for summary in list.iter() {
            self.apply_funds(account, &summary.map_err(|_| NewsFault::Code)?, received, door)?;
        }
        Ok(())
    }
}

/// The list under a name in an object; an empty one where it has none.
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

/// What counts of the orders of one label, a trigger order and the one that it became: what is not over. One that cannot be
/// read is an error: it is not known then that there is none.
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

/// The step after one.
const fn after(step: Step) -> Step {
    match step {
        Step::Orders => Step::Positions,
        Step::Positions => Step::Funds,
        _ => Step::Doubts,
    }
}

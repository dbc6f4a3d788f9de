//! Reconciliation after each login: channels, open orders, positions, funds, and orders of unknown status.
//!
//! An order whose reply was lost is never sent again but queried by its unique label. If the venue does not
//! find it, the query is repeated after the request's deadline, when the request can no longer arrive. Only
//! then is the order rejected. A cancellation whose reply was lost is sent again: repeating it is harmless.

use tickpath_deribit::messages::{
    CancelAll as VenueCancelAll, GetOpenOrders, GetOrderState, GetOrderStateByLabel, GetPositions,
    GetUserTradesByOrder,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_deribit::text::Text as VenueText;
use tickpath_gateway_protocol::{ErrorCode, UpdateKind};
use tickpath_types::Nanos;

use super::Core;
use super::account::{Asker, Position, Purpose, QUESTIONS_MAX, Question, Step};
use super::orders::{Doubt, State};
use super::out::{About, Cause, EventSink, Venue};

/// Pause before a rejected query is repeated.
pub(super) const RETRY: Nanos = Nanos::from_secs(1);
/// Margin after a request's deadline: the venue's clock and the gateway's differ by less.
const DEADLINE_MARGIN_MS: u64 = 1_000;
/// Maximum number of cancellations sent per call.
const CANCELS_PER_CYCLE: usize = 32;
/// Number of queued cancellations from which one request replaces them, if they cover all orders.
const TOGETHER_MIN: usize = 32;
/// Channel for all changes of an account except its funds.
const CHANGES: &str = "user.changes.any.any.raw";

impl Core {
    /// Continues the work for one account.
    pub(super) fn poll_account(
        &mut self,
        account: u16,
        now: Nanos,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> usize {
        let known = &self.accounts[usize::from(account)];
        let (step, is_asked) = (known.step, known.is_asked);
        let mut work = self.poll_entry(account, now, door);
        // Reducing risk waits only for a connection that can do it.
        if self.accounts[usize::from(account)].can_cancel() {
            work += self.poll_cancels(account, now, venue);
        }
        if step == Step::Down {
            return work;
        }
        work += self.poll_questions(account, now, venue);
        if step == Step::Ready {
            return work;
        }
        if is_asked && step != Step::Channels || now < self.accounts[usize::from(account)].ask_at {
            return work;
        }
        work += match step {
            Step::Channels => self.poll_channels(account, now, venue),
            Step::Orders => self.ask_step(
                account,
                now,
                Method::GetOpenOrders,
                &GetOpenOrders { kind: None, order_type: None },
                venue,
            ),
            Step::Positions => {
                let params =
                    GetPositions { currency: Some(VenueText::new("any")), kind: None, subaccount_id: None };
                self.ask_step(account, now, Method::GetPositions, &params, venue)
            }
            Step::Funds => self.ask_step(account, now, Method::GetAccountSummaries, &NoParams, venue),
            _ => self.poll_doubts(account, now, door),
        };
        work
    }

    /// Waits for the channels before the queries, so that no update is missed between the two.
    fn poll_channels(&mut self, account: u16, now: Nanos, venue: &mut impl Venue) -> usize {
        // The instruments must be known first: positions and orders refer to them by number.
        if !self.is_listed {
            return 0;
        }
        let stream = self.accounts[usize::from(account)].stream;
        if !self.accounts[usize::from(account)].is_asked {
            venue.subscribe(stream, CHANGES);
            for currency in self.currencies() {
                venue.subscribe(stream, &format!("user.portfolio.{}", currency.to_ascii_lowercase()));
            }
            self.accounts[usize::from(account)].is_asked = true;
            return 1;
        }
        match venue.settled_channels(stream) {
            Some(count) if count > 0 => {
                let is_killed = self.policy.is_killed();
                let known = &mut self.accounts[usize::from(account)];
                known.enter(Step::Orders, now);
                known.is_cancel_all_wanted |= is_killed;
                known.is_cancel_all_due = is_killed;
                1
            }
            _ => 0,
        }
    }

    /// Currencies in which instruments are settled or traded.
    fn currencies(&self) -> Vec<String> {
        let mut all = Vec::new();
        for instrument in self.instruments.all() {
            let reference = &instrument.reference;
            let is_spot = reference.kind == tickpath_gateway_protocol::InstrumentKind::SPOT;
            let names = if is_spot {
                [reference.base_currency.as_str(), reference.quote_currency.as_str()]
            } else {
                [reference.settlement_currency.as_str(), ""]
            };
            for name in names.into_iter().filter(|name| !name.is_empty()) {
                if !all.iter().any(|known| known == name) {
                    all.push(name.to_owned());
                }
            }
        }
        all
    }

    fn ask_step<'a>(
        &mut self,
        account: u16,
        now: Nanos,
        method: Method,
        params: &impl tickpath_deribit::field::Field<'a>,
        venue: &mut impl Venue,
    ) -> usize {
        let known = &mut self.accounts[usize::from(account)];
        match venue.request(now, known.stream, method, params) {
            Ok(id) => {
                known.is_asked = true;
                let purpose = Purpose::Step(known.step);
                self.push(account, id, purpose, Asker::default(), now);
            }
            Err(error) => known.ask_at = now + pause(error),
        }
        1
    }

    /// Makes the account ready when no order's status is unknown and orders can be entered.
    fn poll_doubts(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) -> usize {
        let known = &self.accounts[usize::from(account)];
        // The answer about an undecodable order is not waited for.
        let is_waited_for = |question: &Question| {
            let order = self.orders.get(question.slot);
            !question.is_of_trades && order.is_none_or(|order| order.doubt != Doubt::Unreadable)
        };
        let is_open = known.asked_questions > 0 || known.questions.all().any(is_waited_for);
        let step = known.step;
        let next = match (is_open, known.can_enter()) {
            (true, _) => Step::Doubts,
            (false, false) => Step::Entry,
            (false, true) => Step::Ready,
        };
        if !is_open {
            let known = &mut self.accounts[usize::from(account)];
            known.is_cancel_all_wanted |= std::mem::take(&mut known.is_cancel_all_due);
        }
        if next != Step::Ready {
            let is_new = step != next;
            if is_new {
                self.accounts[usize::from(account)].enter(next, now);
            }
            return is_new.into();
        }
        self.accounts[usize::from(account)].enter(Step::Ready, now);
        let stream = self.accounts[usize::from(account)].stream;
        self.set_stream(stream, tickpath_gateway_protocol::ConnectionStatus::READY, now, door);
        1
    }

    /// Sends order status queries, a few at a time.
    fn poll_questions(&mut self, account: u16, now: Nanos, venue: &mut impl Venue) -> usize {
        let mut work = 0;
        let known = &self.accounts[usize::from(account)];
        if now < known.ask_at || known.step < Step::Doubts {
            return 0;
        }
        for _ in 0..QUESTIONS_MAX {
            let known = &mut self.accounts[usize::from(account)];
            if known.asked_questions >= QUESTIONS_MAX || !known.has_room() {
                break;
            }
            let Some(question) = known.questions.take_due(now) else { break };
            work += 1;
            if let Err(error) = self.put_question(account, &question, now, venue) {
                let known = &mut self.accounts[usize::from(account)];
                known.ask(question);
                known.ask_at = now + pause(error);
                break;
            }
        }
        work
    }

    fn put_question(
        &mut self,
        account: u16,
        question: &Question,
        now: Nanos,
        venue: &mut impl Venue,
    ) -> Result<(), RequestError> {
        let Question { slot, gateway_id, is_of_trades, .. } = *question;
        let stream = self.accounts[usize::from(account)].stream;
        let Some(order) = self.orders.get(slot).filter(|order| order.gateway_id == gateway_id) else {
            return Ok(());
        };
        let external_id = order.external_id;
        if is_of_trades {
            if order.traded >= order.filled || external_id.is_empty() {
                return Ok(());
            }
            let params = GetUserTradesByOrder {
                order_id: VenueText::new(external_id.as_str()),
                sorting: None,
                historical: None,
            };
            let id = venue.request(now, stream, Method::GetUserTradesByOrder, &params)?;
            self.push(account, id, Purpose::Trades { slot, gateway_id }, Asker::default(), now);
        } else {
            if order.state.is_over() {
                return Ok(());
            }
            if order.doubt == Doubt::None {
                // A report came first, but it does not contain the result of the cancellation.
                if order.is_cancel_wanted {
                    self.want_cancel_still(slot);
                }
                return Ok(());
            }
            let id = if external_id.is_empty() {
                let label = self.label_of(order);
                let currency = self.instruments.get(order.symbol).map_or("any", |it| it.currency.as_str());
                let params = GetOrderStateByLabel {
                    currency: VenueText::new(currency),
                    label: Some(VenueText::new(label.as_str())),
                };
                venue.request(now, stream, Method::GetOrderStateByLabel, &params)?
            } else {
                let params = GetOrderState { order_id: VenueText::new(external_id.as_str()) };
                venue.request(now, stream, Method::GetOrderState, &params)?
            };
            self.push(account, id, Purpose::State { slot, gateway_id }, Asker::default(), now);
            if let Some(order) = self.orders.get_mut(slot).filter(|order| order.doubt != Doubt::Unreadable) {
                order.doubt = Doubt::Asked;
            }
        }
        self.accounts[usize::from(account)].asked_questions += 1;
        Ok(())
    }

    /// Schedules an order status query again that remained without an answer.
    pub(super) fn doubt_again(&mut self, slot: u32, now: Nanos) {
        let Some(order) = self.orders.get_mut(slot) else { return };
        if order.state.is_over() {
            return;
        }
        order.doubt = Doubt::Unasked;
        let question = Question { slot, gateway_id: order.gateway_id, at: now + RETRY, is_of_trades: false };
        let account = order.account;
        self.accounts[usize::from(account)].ask(question);
    }

    /// Handles an order that the venue does not find. Until its request's deadline it may still arrive.
    pub(super) fn not_found(&mut self, slot: u32, now: Nanos, door: &mut impl EventSink) {
        let venue_ms = self.venue_ms(now);
        let Some(order) = self.orders.get_mut(slot) else { return };
        let is_certain = venue_ms > order.valid_until_ms.saturating_add(DEADLINE_MARGIN_MS);
        if is_certain {
            // An order that the venue had ended so long ago that the venue has forgotten it.
            let (state, error) = if order.external_id.is_empty() {
                (State::Rejected, ErrorCode::TIMEOUT)
            } else {
                (State::Canceled, ErrorCode::UNKNOWN_ORDER)
            };
            let cause = Cause { received: now, ..Cause::default() };
            return self.end_order(slot, state, error, cause, door);
        }
        order.doubt = Doubt::Unknown;
        let wait_ms = order.valid_until_ms.saturating_add(DEADLINE_MARGIN_MS + 1).saturating_sub(venue_ms);
        let at = now + Nanos::from_millis(wait_ms).min(RETRY);
        let question = Question { slot, gateway_id: order.gateway_id, at, is_of_trades: false };
        let account = order.account;
        self.accounts[usize::from(account)].ask(question);
    }

    /// Resolves an order's uncertainty after the venue's answer; a wanted cancellation is still wanted.
    pub(super) fn settled(&mut self, slot: u32, now: Nanos, door: &mut impl EventSink) {
        let Some(order) = self.orders.get_mut(slot) else { return };
        let was_in_doubt = order.doubt != Doubt::None;
        order.doubt = Doubt::None;
        let (is_over, account, is_short) =
            (order.state.is_over(), order.account, order.filled > order.traded);
        let (gateway_id, is_cancel_wanted) = (order.gateway_id, order.is_cancel_wanted);
        if was_in_doubt && !is_over {
            self.tell_order(slot, ErrorCode::default(), Cause { received: now, ..Cause::default() }, door);
        }
        if is_short {
            self.accounts[usize::from(account)].ask(Question {
                slot,
                gateway_id,
                at: now,
                is_of_trades: true,
            });
        }
        if is_cancel_wanted && !is_over {
            self.want_cancel_still(slot);
        }
    }

    /// Queues the wanted cancellation of an open order again, unless one is in flight.
    fn want_cancel_still(&mut self, slot: u32) {
        let Some(account) = self.orders.get(slot).map(|order| order.account) else { return };
        if !self.accounts[usize::from(account)].is_cancelling(slot) {
            self.want_cancel(slot);
        }
    }

    /// Cancels an order as soon as its connection and the venue's limits allow. In a dry run only the kill
    /// switch cancels.
    pub(super) fn want_cancel(&mut self, slot: u32) {
        if self.policy.is_dry_run() {
            return;
        }
        let Some(order) = self.orders.get_mut(slot) else { return };
        (order.is_cancel_wanted, order.is_cancel_owed) = (true, true);
        if std::mem::replace(&mut order.is_cancel_queued, true) {
            return;
        }
        let (account, gateway_id) = (order.account, order.gateway_id);
        self.accounts[usize::from(account)].cancels.push_back((slot, gateway_id));
    }

    /// Number of open orders whose cancellation is wanted.
    #[must_use]
    pub fn cancels_wanted(&self) -> usize {
        let is_wanted = |slot: &u32| self.orders.get(*slot).is_some_and(|order| order.is_cancel_wanted);
        self.orders.live_from(0).filter(is_wanted).count()
    }

    /// Sends queued cancellations.
    fn poll_cancels(&mut self, account: u16, now: Nanos, venue: &mut impl Venue) -> usize {
        let mut work = self.poll_cancel_all(account, now, venue) + self.cancel_waiting(account, now, venue);
        for _ in 0..CANCELS_PER_CYCLE {
            let known = &mut self.accounts[usize::from(account)];
            if now < known.cancel_at {
                break;
            }
            let Some((slot, gateway_id)) = known.cancels.pop_front() else { break };
            let order = self.orders.get_mut(slot).filter(|order| order.gateway_id == gateway_id);
            let Some(order) = order else { continue };
            order.is_cancel_queued = false;
            // An order being queried is cancelled when its state is known; the wanted cancellation is kept.
            let is_asked_for = !matches!(order.doubt, Doubt::None | Doubt::Unreadable);
            if order.state.is_over() || is_asked_for {
                continue;
            }
            work += 1;
            if let Err(error) = self.send_cancel(now, slot, Asker::default(), venue) {
                self.orders.get_mut(slot).expect("it was there before").is_cancel_queued = true;
                let known = &mut self.accounts[usize::from(account)];
                known.cancels.push_front((slot, gateway_id));
                known.cancel_at = now + pause(error);
                break;
            }
        }
        work
    }

    /// Replaces many queued cancellations by one request if they cover every order: singly, the venue's
    /// limits would take minutes. Not done with known external orders or quotes in flight. An unreported
    /// order that another session of the account enters before the request arrives is cancelled too.
    fn cancel_waiting(&mut self, account: u16, now: Nanos, venue: &mut impl Venue) -> usize {
        let known = &self.accounts[usize::from(account)];
        // External orders are unknown before the list of open orders has arrived.
        let may_be_all = known.step > Step::Orders
            && known.cancels.len() >= TOGETHER_MIN
            && known.cancels.len() >= known.open_orders as usize
            && known.foreign.count() == 0
            && known.quotes.sent() == 0;
        if !may_be_all || now < known.cancel_at || !known.has_room() {
            return 0;
        }
        // An unconfirmed order might arrive at the venue after the request.
        let is_there = |(slot, gateway_id): &&(u32, u64)| {
            self.orders.get(*slot).is_some_and(|order| {
                order.gateway_id == *gateway_id
                    && !order.state.is_over()
                    && order.doubt == Doubt::None
                    && !order.external_id.is_empty()
            })
        };
        let count = known.cancels.iter().filter(is_there).count();
        if count < TOGETHER_MIN || count != known.open_orders as usize {
            return 0;
        }
        let params = VenueCancelAll { detailed: false, freeze_quotes: false };
        match venue.request(now, known.stream, Method::CancelAll, &params) {
            Ok(id) => {
                // Orders that remain are cancelled one by one afterwards.
                self.accounts[usize::from(account)].cancel_at = now + RETRY;
                self.push(account, id, Purpose::CancelWaiting, Asker::default(), now);
            }
            Err(error) => self.accounts[usize::from(account)].cancel_at = now + pause(error),
        }
        1
    }

    /// Repeats a cancellation of all orders that was rejected or not answered, while the kill switch is on.
    pub(super) fn want_cancel_all_again(&mut self, account: u16) {
        self.accounts[usize::from(account)].is_cancel_all_wanted |= self.policy.is_killed();
    }

    fn poll_cancel_all(&mut self, account: u16, now: Nanos, venue: &mut impl Venue) -> usize {
        let known = &mut self.accounts[usize::from(account)];
        if !known.is_cancel_all_wanted || now < known.cancel_at {
            return 0;
        }
        let params = VenueCancelAll { detailed: false, freeze_quotes: false };
        let by_fix = known.has_fix();
        let stream = known.stream;
        let sent = if by_fix {
            self.cancel_all_by_fix(now, account, venue)
        } else {
            venue.request(now, stream, Method::CancelAll, &params)
        };
        let known = &mut self.accounts[usize::from(account)];
        match sent {
            Ok(id) => {
                known.is_cancel_all_wanted = false;
                // If it is rejected, it is not repeated immediately.
                known.cancel_at = now + RETRY;
                if by_fix {
                    self.push_order(account, id, Purpose::CancelAll, Asker::default(), now);
                } else {
                    self.push(account, id, Purpose::CancelAll, Asker::default(), now);
                }
            }
            Err(error) => known.cancel_at = now + pause(error),
        }
        1
    }

    /// Handles the loss of an account's connection.
    pub(super) fn lose_account(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) {
        self.tell_stale_account(account, now, door);
        self.lose_mass_cancels(account, now, door);
        let known = &mut self.accounts[usize::from(account)];
        known.enter(Step::Down, now);
        known.refusal = tickpath_gateway_protocol::Text::EMPTY;
        known.asked_questions = 0;
        known.forget_pending();
        known.quotes.forget_sent();
    }
}

impl Core {
    /// Marks positions and funds as stale until they are reported again.
    fn tell_stale_account(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) {
        if self.accounts[usize::from(account)].step <= Step::Positions {
            return;
        }
        let (about, cause) = (self.about_account(account), Cause { received: now, ..Cause::default() });
        for place in 0..self.accounts[usize::from(account)].positions.len() {
            let position = &mut self.accounts[usize::from(account)].positions[place];
            if position.body.quantity.is_zero() {
                continue;
            }
            position.body.update = UpdateKind::STALE;
            let Position { symbol, body } = *position;
            self.tell_account(account, &body, About { symbol, ..about }, cause, door);
        }
        for place in 0..self.accounts[usize::from(account)].funds.len() {
            let funds = &mut self.accounts[usize::from(account)].funds[place];
            funds.update = UpdateKind::STALE;
            let funds = *funds;
            self.tell_account(account, &funds, about, cause, door);
        }
    }
}

/// Pause after a request that could not be passed to the connection.
fn pause(error: RequestError) -> Nanos {
    match error {
        RequestError::RateLimit { wait_ns } => Nanos(wait_ns.min(RETRY.0)),
        _ => Nanos::from_millis(10),
    }
}

/// Parameters of a method without parameters.
struct NoParams;

impl<'a> tickpath_deribit::field::Field<'a> for NoParams {
    fn read(
        scanner: &mut tickpath_deribit::scan::Scanner<'a>,
    ) -> Result<NoParams, tickpath_deribit::scan::ScanError> {
        scanner.skip().map(|()| NoParams)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

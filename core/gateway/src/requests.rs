//! Client requests: checked, numbered, passed to the venue's connection, acknowledged.

use tickpath_deribit::codes::TimeInForce as VenueTime;
use tickpath_deribit::messages::{CancelByLabel, CancelOrder as VenueCancel, EditByLabel, EditOrder};
use tickpath_deribit::method::Method;
use tickpath_deribit::prepared::PlainLabel;
use tickpath_deribit::session::RequestError;
use tickpath_deribit::text::Text as VenueText;
use tickpath_gateway_protocol::{
    AckStatus, AckType, CancelAll, CancelOrder, CancelQuotes, CreateOrder, CustomMessage, CustomRequest,
    ErrorCode, Event, EventKind, ExecutionFlags, Fixed, InstrumentKind, MassQuote, ModifyOrder, ORDER_ID_MAX,
    OrderAck, Origin, QuoteAck, RateLimitReason, Request, RequestKind, SetRiskLimits, Side as EventSide,
    StatisticKind, Text,
};
use tickpath_types::{Nanos, Side};

use super::Core;
use super::account::{Asker, Pending, Purpose, Step};
use super::convert::{
    decimal, event_side, has_price, has_trigger, optional, request_error, side_of, venue_time, venue_trigger,
    venue_type,
};
use super::news::SymbolText;
use super::orders::{Doubt, ExternalId, NoRoom, Order, State, Terms};
use super::out::{About, Cause, EventSink, Venue};
use super::policy::{OrderFacts, Worth};
use super::refusal::Wanted;
use super::templates::order_params;

/// Execution flags that an order may have.
const KNOWN_FLAGS: ExecutionFlags = ExecutionFlags::POST_ONLY
    .with(ExecutionFlags::REJECT_POST_ONLY)
    .with(ExecutionFlags::REDUCE_ONLY)
    .with(ExecutionFlags::MMP);

/// A request with its sender and subject, as far as validated.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) asker: Asker,
    pub(super) user: u16,
    pub(super) client: u32,
    pub(super) client_order_id: u64,
    pub(super) order_id: u64,
    pub(super) account: u16,
    pub(super) symbol: u32,
}

/// The last order entered, used for warm-up.
#[derive(Clone, Copy)]
pub(super) struct LastOrder {
    asked: Asked,
    body: CreateOrder,
}

impl Core {
    pub(super) fn take_request(
        &mut self,
        now: Nanos,
        client: u32,
        request: &Request,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        let Some(user) = self.clients.get(client).map(|client| client.user) else { return };
        let header = &request.header;
        let asked = Asked {
            asker: Asker { client: Some(client), request_id: header.request_id, create_ns: header.create_ns },
            user,
            client,
            client_order_id: header.client_order_id,
            order_id: header.order_id,
            // 0, for none, becomes an index that no account has.
            account: header.account.wrapping_sub(1),
            symbol: header.symbol,
        };
        match header.kind {
            RequestKind::CREATE_ORDER => {
                if let Some(body) = request.body::<CreateOrder>() {
                    self.create(now, &asked, &body, door, venue);
                }
            }
            RequestKind::MODIFY_ORDER => {
                if let Some(body) = request.body::<ModifyOrder>() {
                    self.modify(now, &asked, &body, door, venue);
                }
            }
            RequestKind::CANCEL_ORDER => {
                if request.body::<CancelOrder>().is_some() {
                    self.cancel(now, &asked, door, venue);
                }
            }
            RequestKind::CANCEL_ALL => {
                if let Some(body) = request.body::<CancelAll>() {
                    self.cancel_all(now, &asked, body.side, door);
                }
            }
            RequestKind::MASS_QUOTE => {
                if let Some(body) = request.body::<MassQuote>() {
                    self.mass_quote(now, &asked, &body, door, venue);
                }
            }
            RequestKind::CANCEL_QUOTES => {
                if let Some(body) = request.body::<CancelQuotes>() {
                    self.cancel_quotes(now, &asked, &body, door, venue);
                }
            }
            RequestKind::DOWNLOAD_MARKET_DATA => {
                // Not counted by the user's rate limit: slow readers request it automatically, which must not
                // use up the user's cancellations. A pause between two downloads limits it.
                if let Some(client) = self.clients.get_mut(client) {
                    client.wants_again = true;
                }
            }
            RequestKind::CUSTOM_MESSAGE => {
                if let Some(body) = request.body::<CustomRequest>() {
                    self.pass_on(now, &asked, &body, door);
                }
            }
            RequestKind::SET_RISK_LIMITS => {
                if let Some(body) = request.body::<SetRiskLimits>() {
                    self.set_risk_limits(now, &asked, &body, door);
                }
            }
            // The event sink handles pongs. Unknown requests count like known ones.
            _ => {
                let error = self.admit(now, user, false, door).err().unwrap_or(ErrorCode::MALFORMED);
                self.refuse(now, &asked, AckType::default(), EventSide::default(), error, door);
            }
        }
    }

    /// Forwards a client's message to all clients.
    fn pass_on(&mut self, now: Nanos, asked: &Asked, body: &CustomRequest, door: &mut impl EventSink) {
        if let Err(error) = self.admit(now, asked.user, false, door) {
            return self.refuse(now, asked, AckType::CUSTOM_MESSAGE, EventSide::default(), error, door);
        }
        let CustomRequest { topic, len, data, .. } = *body;
        let message = CustomMessage { client: asked.client, topic, len: len.min(64), data };
        let cause = Cause { origin_ns: asked.asker.create_ns, ..Cause::default() };
        door.broadcast(self.stamp.event(&message, About::default(), cause));
    }

    fn create(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &CreateOrder,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        let admitted = self.admit(now, asked.user, false, door);
        let (slot, queued) = match admitted.and_then(|()| self.enter(now, asked, body, false, door, venue)) {
            Ok(entered) => entered,
            Err(error) => {
                let wanted = Wanted::from(body);
                return self.refuse_order(now, asked, AckType::CREATE, body.side, error, &wanted, door);
            }
        };
        self.accounts[usize::from(asked.account)].open_orders += 1;
        let user = &mut self.users[usize::from(asked.user)];
        user.order_id_max = user.order_id_max.max(asked.client_order_id);
        match queued {
            Ok(id) => self.push_order(asked.account, id, Purpose::Create { slot }, asked.asker, now),
            Err(error) => self.reject_order(slot, error, Cause::default(), door),
        }
        self.last_created = Some(LastOrder { asked: *asked, body: *body });
    }

    /// Checks and stores an order, queues it to its connection, and acknowledges it. Returns its slot, and the
    /// request's id or the reason why the connection does not take it. A warm-up sends no acknowledgement.
    ///
    /// Never inlined: execution and warm-up share the same code.
    #[inline(never)]
    fn enter(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &CreateOrder,
        is_rehearsal: bool,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> Result<(u32, Result<i64, ErrorCode>), ErrorCode> {
        let slot = self.keep_order(now, asked, body, venue)?;
        // Queued first: RECEIVED means that the order's bytes wait for the venue's socket.
        let queued = match self.policy.is_dry_run() {
            true => Err(ErrorCode::DRY_RUN),
            false => self.place(now, slot, venue).map_err(request_error),
        };
        door.deliver(asked.client, self.received_order(now, asked, body.side, slot), is_rehearsal);
        Ok((slot, queued))
    }

    /// Creates the ack of an order that its connection accepts.
    fn received_order(&self, now: Nanos, asked: &Asked, side: EventSide, slot: u32) -> Event {
        let order_id = self.orders.get(slot).map_or(0, |order| order.gateway_id);
        let status = AckStatus::RECEIVED;
        self.ack_event(asked, &OrderAck { order_id, status, side, ..self.ack(now, asked, AckType::CREATE) })
    }

    /// Checks an order and its connection's capacity and credits, and stores the order; returns its slot.
    #[inline]
    fn keep_order(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &CreateOrder,
        venue: &mut impl Venue,
    ) -> Result<u32, ErrorCode> {
        let terms = self.check_order(asked, body)?;
        if !self.policy.is_dry_run() {
            let stream = self.accounts[usize::from(asked.account)].order_stream();
            venue.check(now, stream, method_of(terms.side)).map_err(request_error)?;
        }
        self.store_order(now, asked, terms)
    }

    /// Checks all of an order except its connection; returns its parameters.
    fn check_order(&self, asked: &Asked, body: &CreateOrder) -> Result<Terms, ErrorCode> {
        self.check_access(asked)?;
        if !(1..=ORDER_ID_MAX).contains(&asked.client_order_id) {
            return Err(ErrorCode::INVALID_ORDER_ID);
        }
        let terms = terms_of(body)?;
        self.check_protection(asked.user, &terms)?;
        self.check_steps(asked.symbol, &terms)?;
        self.check_fix_terms(asked.account, asked.symbol, &terms)?;
        self.check_policy(asked, &terms, terms.quantity, 1)?;
        self.check_clear(asked.account, asked.symbol)?;
        if self.orders.live_count() >= self.settings.orders_max {
            return Err(ErrorCode::BUSY);
        }
        Ok(terms)
    }

    /// Stores a new order; returns its slot.
    fn store_order(&mut self, now: Nanos, asked: &Asked, terms: Terms) -> Result<u32, ErrorCode> {
        let valid_until_ms = self.valid_until_ms(now);
        let symbol_name =
            self.instruments.get(asked.symbol).map_or(SymbolText::EMPTY, |it| it.reference.name);
        let order = Order {
            gateway_id: 0,
            client_id: asked.client_order_id,
            user: asked.user,
            account: asked.account,
            owner: Some(asked.client),
            symbol: asked.symbol,
            symbol_name,
            terms,
            external_id: ExternalId::EMPTY,
            label_id: 0,
            state: State::Sent,
            filled: 0,
            traded: 0,
            average_price: 0,
            updated_ms: 0,
            is_by_fix: false,
            created_ms: 0,
            create_ns: asked.asker.create_ns,
            valid_until_ms,
            doubt: Doubt::None,
            is_quote: false,
            is_cancel_wanted: false,
            is_cancel_queued: false,
            is_cancel_owed: false,
            is_changed_here: false,
            is_changed_elsewhere: false,
            session: self.mark.session(),
        };
        self.orders.insert(order).map_err(|why| match why {
            NoRoom::Full => ErrorCode::BUSY,
            NoRoom::Duplicate => ErrorCode::DUPLICATE_ORDER,
        })
    }

    /// Runs the last order's path as a warm-up, so that code and data are in the processor's caches for the
    /// next order. Leaves all state unchanged.
    pub fn rehearse(&mut self, now: Nanos, door: &mut impl EventSink, venue: &mut impl Venue) {
        let Some(LastOrder { asked, body }) = self.last_created else { return };
        if self.policy.is_dry_run() || !self.orders.has_free_place() {
            return;
        }
        let client_order_id = self.users[usize::from(asked.user)].order_id_max.saturating_add(1);
        let asked = Asked { client_order_id, ..asked };
        venue.set_rehearsal(true);
        if let Ok((slot, _)) = self.enter(now, &asked, &body, true, door, venue) {
            self.orders.take_back(slot);
        }
        venue.set_rehearsal(false);
    }

    /// Encodes an order for its connection; returns the id of the request.
    #[inline]
    fn place(&mut self, now: Nanos, slot: u32, venue: &mut impl Venue) -> Result<i64, RequestError> {
        let order = self.orders.get(slot).ok_or(RequestError::NotReady)?;
        let account = &self.accounts[usize::from(order.account)];
        if account.entry.is_some() {
            return self.place_by_fix(now, order, venue);
        }
        let user = &self.users[usize::from(order.user)];
        let label = self.mark.label(order.gateway_id, order.client_id, &user.tag);
        let instrument = self.instruments.get_mut(order.symbol);
        let template = instrument.and_then(|instrument| {
            instrument.templates.find(&order.terms, &mut self.template_buffer, || order_params(order, &label))
        });
        let (stream, method, Terms { quantity, price, .. }) =
            (account.stream, method_of(order.terms.side), order.terms);
        match template {
            Some(template) => {
                let params = template.order(quantity, price, &label, order.valid_until_ms);
                venue.request(now, stream, method, &params)
            }
            None => venue.request(now, stream, method, &order_params(order, &label)),
        }
    }

    fn modify(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &ModifyOrder,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        match self.try_modify(now, asked, body, door, venue) {
            Ok(slot) => self.received(now, asked, AckType::MODIFY, slot, door),
            Err(error) => {
                let (side, wanted) = (EventSide::default(), Wanted::from(body));
                self.refuse_order(now, asked, AckType::MODIFY, side, error, &wanted, door);
            }
        }
    }

    fn try_modify(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &ModifyOrder,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> Result<u32, ErrorCode> {
        self.admit(now, asked.user, false, door)?;
        let slot = self.find_own(asked)?;
        let order = *self.orders.get(slot).ok_or(ErrorCode::UNKNOWN_ORDER)?;
        let of_order = Asked { account: order.account, symbol: order.symbol, ..*asked };
        self.check_access(&of_order)?;
        if order.doubt != Doubt::None {
            return Err(ErrorCode::TOO_LATE);
        }
        if order.is_quote {
            // The next mass quote changes it.
            return Err(ErrorCode::NOT_SUPPORTED);
        }
        if !KNOWN_FLAGS.contains(body.execution) {
            return Err(ErrorCode::INVALID_TERMS);
        }
        let is_other_stop = !body.stop_price.is_zero() && body.stop_price.0 != order.terms.stop_price;
        if is_other_stop && order.external_id.is_empty() {
            // A change by label can modify only price and quantity.
            return Err(ErrorCode::BUSY);
        }
        let flag = |flag| body.execution.contains(flag);
        let terms = Terms {
            price: body.price.0,
            quantity: body.quantity.0,
            stop_price: if body.stop_price.is_zero() { order.terms.stop_price } else { body.stop_price.0 },
            post_only: flag(ExecutionFlags::POST_ONLY),
            reject_post_only: flag(ExecutionFlags::REJECT_POST_ONLY),
            reduce_only: flag(ExecutionFlags::REDUCE_ONLY),
            // The venue does not allow removing it.
            mmp: order.terms.mmp || flag(ExecutionFlags::MMP),
            ..order.terms
        };
        if terms.mmp && terms.order_type != tickpath_deribit::codes::OrderType::Limit {
            return Err(ErrorCode::INVALID_TERMS);
        }
        self.check_protection(asked.user, &terms)?;
        self.check_steps(order.symbol, &terms)?;
        self.check_fix_change(&order, &terms)?;
        let left = terms.quantity.saturating_sub(order.filled);
        self.check_policy(&of_order, &terms, left, 0)?;
        if self.policy.is_dry_run() {
            return Err(ErrorCode::DRY_RUN);
        }
        let id = self.edit(now, &order, &terms, venue).map_err(request_error)?;
        self.push_order(order.account, id, Purpose::Modify { slot }, asked.asker, now);
        if let Some(order) = self.orders.get_mut(slot) {
            (order.is_changed_here, order.is_changed_elsewhere) = (true, false);
        }
        Ok(slot)
    }

    fn edit(
        &self,
        now: Nanos,
        order: &Order,
        terms: &Terms,
        venue: &mut impl Venue,
    ) -> Result<i64, RequestError> {
        let valid_until_ms = self.valid_until_ms(now);
        if self.accounts[usize::from(order.account)].entry.is_some() {
            return self.edit_by_fix(now, order, terms, valid_until_ms, venue);
        }
        let stream = self.accounts[usize::from(order.account)].stream;
        let (amount, valid_until) = (Some(decimal(terms.quantity)), Some(valid_until_ms));
        let price = has_price(terms.order_type).then(|| decimal(terms.price));
        let Terms { post_only, reduce_only, reject_post_only, .. } = *terms;
        if order.external_id.is_empty() {
            // The venue's id is not known yet; the venue executes the requests of a connection in order.
            let label = self.label_of(order);
            let params = EditByLabel {
                label: VenueText::new(label.as_str()),
                instrument_name: VenueText::new(order.symbol_name.as_str()),
                amount,
                contracts: None,
                price,
                post_only,
                reduce_only,
                reject_post_only,
                advanced: None,
                trigger_price: None,
                trigger_offset: None,
                mmp: terms.mmp,
                valid_until,
                display_amount: optional(terms.shown),
            };
            return venue.request(now, stream, Method::EditByLabel, &params);
        }
        let is_trailing = terms.order_type == tickpath_deribit::codes::OrderType::TrailingStop;
        let params = EditOrder {
            order_id: VenueText::new(order.external_id.as_str()),
            amount,
            contracts: None,
            price,
            post_only,
            reduce_only,
            reject_post_only,
            advanced: None,
            trigger_price: if is_trailing { None } else { optional(terms.stop_price) },
            trigger_offset: if is_trailing { optional(terms.stop_price) } else { None },
            mmp: terms.mmp,
            valid_until,
            display_amount: optional(terms.shown),
        };
        venue.request(now, stream, Method::Edit, &params)
    }

    fn cancel(&mut self, now: Nanos, asked: &Asked, door: &mut impl EventSink, venue: &mut impl Venue) {
        match self.try_cancel(now, asked, door, venue) {
            Ok(slot) => self.received(now, asked, AckType::CANCEL, slot, door),
            Err(error) => self.refuse(now, asked, AckType::CANCEL, EventSide::default(), error, door),
        }
    }

    fn try_cancel(
        &mut self,
        now: Nanos,
        asked: &Asked,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> Result<u32, ErrorCode> {
        self.admit(now, asked.user, true, door)?;
        self.check_trader(asked)?;
        let slot = self.find_own(asked)?;
        let order = self.orders.get(slot).ok_or(ErrorCode::UNKNOWN_ORDER)?;
        if self.policy.is_dry_run() {
            // The order is from an earlier instance: in a dry run, orders of this instance end immediately.
            return Err(ErrorCode::DRY_RUN);
        }
        let known = &self.accounts[usize::from(order.account)];
        let is_ready = known.step == Step::Ready;
        // Before the account is ready, a cancellation waits only for a status query of the same order.
        let is_clear = is_ready || known.can_cancel() && order.doubt == Doubt::None;
        let sent = is_clear.then(|| self.send_cancel(now, slot, asked.asker, venue));
        match sent {
            Some(Ok(())) => {}
            Some(Err(error)) if is_ready => return Err(request_error(error)),
            // It is sent as soon as a connection accepts it.
            Some(Err(_)) | None => self.want_cancel(slot),
        }
        Ok(slot)
    }

    /// Passes a cancellation to the order's connection, or to the WebSocket while the FIX session is down.
    pub(super) fn send_cancel(
        &mut self,
        now: Nanos,
        slot: u32,
        asker: Asker,
        venue: &mut impl Venue,
    ) -> Result<(), RequestError> {
        let order = self.orders.get(slot).ok_or(RequestError::NotReady)?;
        let account = &self.accounts[usize::from(order.account)];
        let (is_by_label, of_account) = (order.external_id.is_empty(), order.account);
        let by_fix = account.has_fix();
        if !(if by_fix { account.has_order_room() } else { account.has_room() }) {
            return Err(RequestError::TooManyPending);
        }
        let id = if by_fix {
            self.cancel_by_fix(now, order, venue)
        } else if is_by_label {
            let label = self.label_of(order);
            let currency = self.instruments.get(order.symbol).map(|it| VenueText::new(&it.currency));
            let params = CancelByLabel { label: VenueText::new(label.as_str()), currency };
            venue.request(now, account.stream, Method::CancelByLabel, &params)
        } else {
            let params = VenueCancel { order_id: VenueText::new(order.external_id.as_str()) };
            venue.request(now, account.stream, Method::Cancel, &params)
        }?;
        if let Some(order) = self.orders.get_mut(slot) {
            order.is_cancel_wanted = true;
        }
        let purpose = Purpose::Cancel { slot, is_by_label };
        if by_fix {
            self.push_order(of_account, id, purpose, asker, now);
        } else {
            self.push(of_account, id, purpose, asker, now);
        }
        Ok(())
    }

    fn cancel_all(&mut self, now: Nanos, asked: &Asked, side: EventSide, door: &mut impl EventSink) {
        let is_known = side == EventSide::default() || side_of(side).is_some();
        let known = if is_known { Ok(()) } else { Err(ErrorCode::INVALID_TERMS) };
        let admitted = self.admit(now, asked.user, true, door);
        let is_dry_run = self.policy.is_dry_run();
        let meant = if is_dry_run { Err(ErrorCode::DRY_RUN) } else { Ok(()) };
        let refusal = admitted.and_then(|()| self.check_account(asked)).and(known).and(meant).err();
        let mut count = 0;
        if refusal.is_none() {
            let request = self.mass_cancels.begin(asked);
            for slot in 0..self.orders.used() {
                let Some(order) = self.orders.get(slot) else { continue };
                let is_meant = order.user == asked.user
                    && order.account == asked.account
                    && !order.state.is_over()
                    && (asked.symbol == 0 || order.symbol == asked.symbol)
                    && side_of(side).is_none_or(|side| side == order.terms.side);
                if is_meant {
                    self.want_cancel(slot);
                    self.mass_cancels.wait_for(request, slot);
                    count += 1;
                }
            }
            if count == 0 {
                self.mass_cancels.drop_empty(request);
            }
            let quotes = &mut self.accounts[usize::from(asked.account)].quotes;
            if quotes.user == Some(asked.user) {
                quotes.want_cancel_of_coming(asked.symbol, side_of(side), 0);
            }
        }
        self.counters.refused += u64::from(refusal.is_some());
        let why = refusal.map(|error| self.why_refused(now, asked, error, &Wanted::default()));
        let ack = QuoteAck {
            request_id: asked.asker.request_id,
            round_trip_ns: self.round_trip(now, asked.asker.create_ns),
            done: count,
            origin: Origin::GATEWAY,
            status: match refusal {
                Some(_) => AckStatus::REJECTED,
                // There is nothing for the venue to answer.
                None if count == 0 => AckStatus::ACCEPTED,
                None => AckStatus::RECEIVED,
            },
            request: AckType::CANCEL_ALL,
            error: refusal.unwrap_or_default(),
            text: why.map_or(Text::EMPTY, |why| Text::cut(why.as_str())),
            ..QuoteAck::default()
        };
        self.send_quote_ack(asked, EventKind::CANCEL_ALL_ACK, &ack, door);
    }

    pub(super) fn send_quote_ack(
        &self,
        asked: &Asked,
        kind: EventKind,
        ack: &QuoteAck,
        door: &mut impl EventSink,
    ) {
        let event = Event::of_quote_ack(kind, ack);
        let about =
            About { account: asked.account.wrapping_add(1), symbol: asked.symbol, ..About::default() };
        let cause = Cause { origin_ns: asked.asker.create_ns, ..Cause::default() };
        door.send(asked.client, self.stamp.stamp(event, about, cause));
    }

    pub(super) fn check_account(&self, asked: &Asked) -> Result<(), ErrorCode> {
        let is_own = usize::from(asked.account) < self.accounts.len()
            && self.users[usize::from(asked.user)].has(asked.account);
        if !is_own {
            return Err(ErrorCode::UNKNOWN_ACCOUNT);
        }
        self.check_trader(asked)
    }

    /// Rejects clients that have connected only to watch.
    fn check_trader(&self, asked: &Asked) -> Result<(), ErrorCode> {
        let may_trade = self.clients.get(asked.client).is_some_and(|client| client.may_trade);
        if may_trade { Ok(()) } else { Err(ErrorCode::NOT_PERMITTED) }
    }

    /// Checks that account and instrument exist and the user may trade the instrument in the account.
    pub(super) fn check_access(&self, asked: &Asked) -> Result<(), ErrorCode> {
        self.check_account(asked)?;
        let place = (asked.symbol as usize).wrapping_sub(1);
        let has = |flags: &Vec<bool>| flags.get(place).copied().unwrap_or(false);
        let is_permitted = has(&self.user_symbols[usize::from(asked.user)])
            && has(&self.account_symbols[usize::from(asked.account)]);
        if !is_permitted {
            return Err(ErrorCode::UNKNOWN_SYMBOL);
        }
        self.check_ready(asked.account)
    }

    /// Rejects market maker protection for users without it: it cancels orders of all the account's users.
    #[inline]
    fn check_protection(&self, user: u16, terms: &Terms) -> Result<(), ErrorCode> {
        if terms.mmp && !self.users[usize::from(user)].has_mmp {
            return Err(ErrorCode::NOT_PERMITTED);
        }
        Ok(())
    }

    pub(super) fn check_ready(&self, account: u16) -> Result<(), ErrorCode> {
        if self.is_stopping {
            return Err(ErrorCode::STOPPING);
        }
        let account = &self.accounts[usize::from(account)];
        match account.step {
            Step::Ready if !account.may_trade => Err(ErrorCode::NOT_PERMITTED),
            Step::Ready if account.has_order_room() => Ok(()),
            Step::Ready => Err(ErrorCode::BUSY),
            _ => Err(ErrorCode::NOT_READY),
        }
    }

    /// Checks prices and quantities against the instrument's steps.
    pub(super) fn check_steps(&self, symbol: u32, terms: &Terms) -> Result<(), ErrorCode> {
        let instrument = self.instruments.get(symbol).ok_or(ErrorCode::UNKNOWN_SYMBOL)?;
        let is_step = |value: i64, step: Fixed| step.0 > 0 && value % step.0 == 0;
        let min = instrument.reference.min_quantity;
        let is_quantity = terms.quantity > 0 && is_step(terms.quantity, min) && is_step(terms.shown, min);
        if !is_quantity || terms.shown < 0 {
            return Err(ErrorCode::INVALID_QUANTITY);
        }
        let is_price = |price: i64| price > 0 && is_step(price, instrument.tick_at(Fixed(price)));
        if has_price(terms.order_type) && !is_price(terms.price) {
            return Err(ErrorCode::INVALID_PRICE);
        }
        // The stop price of a trailing order is a distance.
        let is_trailing = terms.order_type == tickpath_deribit::codes::OrderType::TrailingStop;
        let is_stop = match is_trailing {
            true => terms.stop_price > 0 && is_step(terms.stop_price, instrument.reference.tick_size),
            false => is_price(terms.stop_price),
        };
        if has_trigger(terms.order_type) && !is_stop {
            return Err(ErrorCode::INVALID_PRICE);
        }
        Ok(())
    }

    pub(super) fn check_policy(
        &self,
        asked: &Asked,
        terms: &Terms,
        quantity: i64,
        new_orders: u32,
    ) -> Result<(), ErrorCode> {
        let instrument = self.instruments.get(asked.symbol).ok_or(ErrorCode::UNKNOWN_SYMBOL)?;
        let figure = |kind| instrument.market.figure(kind).map_or(0, |value| value.0);
        let reference = &instrument.reference;
        let is_in_base = || reference.settlement_currency == reference.base_currency;
        let mark = figure(StatisticKind::MARK_PRICE).max(instrument.market.top().bid.price);
        self.policy.check(&OrderFacts {
            account: asked.account,
            price: dearest(terms, mark),
            quantity,
            index_price: figure(StatisticKind::INDEX_PRICE),
            worth: match reference.kind {
                _ if reference.is_inverse == 1 => Worth::Quantity,
                // A combination's price is a difference of prices, unrelated to its legs' notional.
                InstrumentKind::FUTURE_COMBO if is_in_base() => Worth::Quantity,
                InstrumentKind::FUTURE_COMBO | InstrumentKind::OPTION_COMBO => Worth::Index,
                InstrumentKind::OPTION if is_in_base() => Worth::Index,
                _ => Worth::Price,
            },
            open_orders: self.accounts[usize::from(asked.account)].all_open_orders() + new_orders,
        })
    }

    /// Finds the order that a request names, if it belongs to the user and has not ended.
    pub(super) fn find_own(&self, asked: &Asked) -> Result<u32, ErrorCode> {
        let slot = match (asked.client_order_id, asked.order_id) {
            (0, id) => self.orders.by_gateway_id(id),
            (id, _) => self.orders.by_client_id(asked.user, id),
        };
        let slot = slot.ok_or(ErrorCode::UNKNOWN_ORDER)?;
        let order = self.orders.get(slot).ok_or(ErrorCode::UNKNOWN_ORDER)?;
        if order.user == asked.user && !order.state.is_over() {
            Ok(slot)
        } else {
            Err(ErrorCode::UNKNOWN_ORDER)
        }
    }

    /// Deadline after which the venue rejects a request sent now.
    pub(super) fn valid_until_ms(&self, now: Nanos) -> u64 {
        self.venue_ms(now).saturating_add(self.settings.request_timeout.0 / 1_000_000)
    }

    /// Returns the label of an order.
    pub(super) fn label_of(&self, order: &Order) -> PlainLabel {
        let mark = self.mark.of_session(order.session);
        mark.label(order.label_id, order.client_id, &self.users[usize::from(order.user)].tag)
    }

    pub(super) fn push(&mut self, account: u16, id: i64, purpose: Purpose, asker: Asker, sent: Nanos) {
        let gateway_id = self.changed_id(&purpose);
        self.accounts[usize::from(account)].push(Pending { id, purpose, asker, sent, gateway_id });
    }

    /// Like `push`, on the connection that carries orders.
    #[inline]
    pub(super) fn push_order(&mut self, account: u16, id: i64, purpose: Purpose, asker: Asker, sent: Nanos) {
        let gateway_id = self.changed_id(&purpose);
        self.accounts[usize::from(account)].push_order(Pending { id, purpose, asker, sent, gateway_id });
    }

    /// Returns the gateway's id of the order that a request changes; 0 for none.
    #[inline]
    fn changed_id(&self, purpose: &Purpose) -> u64 {
        let order = purpose.changes().and_then(|slot| self.orders.get(slot));
        order.map_or(0, |order| order.gateway_id)
    }

    #[inline]
    pub(super) const fn round_trip(&self, now: Nanos, create_ns: u64) -> u64 {
        if create_ns == 0 { 0 } else { self.stamp.monotonic(now).saturating_sub(create_ns) }
    }

    #[inline]
    fn ack(&self, now: Nanos, asked: &Asked, request: AckType) -> OrderAck {
        OrderAck {
            client_order_id: asked.client_order_id,
            order_id: asked.order_id,
            request_id: asked.asker.request_id,
            round_trip_ns: self.round_trip(now, asked.asker.create_ns),
            origin: Origin::GATEWAY,
            request,
            ..OrderAck::default()
        }
    }

    fn send_ack(&self, asked: &Asked, ack: OrderAck, door: &mut impl EventSink) {
        door.send(asked.client, self.ack_event(asked, &ack));
    }

    #[inline]
    fn ack_event(&self, asked: &Asked, ack: &OrderAck) -> Event {
        let known = self.accounts.get(usize::from(asked.account));
        let about = About {
            stream: known.map_or(0, |account| account.order_stream() as u8 + 1),
            account: asked.account.wrapping_add(1),
            symbol: asked.symbol,
        };
        let cause = Cause { origin_ns: asked.asker.create_ns, ..Cause::default() };
        self.stamp.event(ack, about, cause)
    }

    fn received(&self, now: Nanos, asked: &Asked, request: AckType, slot: u32, door: &mut impl EventSink) {
        let Some(order) = self.orders.get(slot) else { return };
        let ack = OrderAck {
            client_order_id: order.client_id,
            order_id: order.gateway_id,
            external_order_id: order.external_id,
            side: event_side(order.terms.side),
            status: AckStatus::RECEIVED,
            ..self.ack(now, asked, request)
        };
        let asked = Asked { account: order.account, symbol: order.symbol, ..*asked };
        self.send_ack(&asked, ack, door);
    }

    /// Publishes a risk manager's limits for an account and sends them to the account's clients.
    fn set_risk_limits(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &SetRiskLimits,
        door: &mut impl EventSink,
    ) {
        let account = asked.account;
        let outcome = self.admit(now, asked.user, true, door).and_then(|()| {
            let is_own = usize::from(account) < self.accounts.len()
                && self.users[usize::from(asked.user)].has(account);
            let access = if is_own { Ok(()) } else { Err(ErrorCode::UNKNOWN_ACCOUNT) };
            access.and_then(|()| self.policy.publish(asked.user, account, body))
        });
        match outcome {
            Err(error) => {
                self.refuse(now, asked, AckType::SET_RISK_LIMITS, EventSide::default(), error, door);
            }
            Ok(()) => {
                let ack = OrderAck {
                    status: AckStatus::ACCEPTED,
                    ..self.ack(now, asked, AckType::SET_RISK_LIMITS)
                };
                self.send_ack(asked, ack, door);
                self.tell_limits(account, door);
            }
        }
    }

    fn refuse(
        &mut self,
        now: Nanos,
        asked: &Asked,
        request: AckType,
        side: EventSide,
        error: ErrorCode,
        door: &mut impl EventSink,
    ) {
        self.refuse_order(now, asked, request, side, error, &Wanted::default(), door);
    }

    /// Like `refuse`, for a request with prices and quantities.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "what the refusal says of the request, each its own")]
    fn refuse_order(
        &mut self,
        now: Nanos,
        asked: &Asked,
        request: AckType,
        side: EventSide,
        error: ErrorCode,
        wanted: &Wanted,
        door: &mut impl EventSink,
    ) {
        self.counters.refused += 1;
        self.tell_venue_limit(now, asked.account, error, RateLimitReason::REFUSED, door);
        let text = self.why_refused(now, asked, error, wanted);
        let ack =
            OrderAck { status: AckStatus::REJECTED, side, error, text, ..self.ack(now, asked, request) };
        self.send_ack(asked, ack, door);
    }
}

const fn method_of(side: Side) -> Method {
    match side {
        Side::Buy => Method::Buy,
        Side::Sell => Method::Sell,
    }
}

/// Worst price at which an order can trade, as far as known; 0 if unknown. `market` is the current market
/// price, 0 if unknown.
fn dearest(terms: &Terms, market: i64) -> i64 {
    let is_trailing = terms.order_type == tickpath_deribit::codes::OrderType::TrailingStop;
    match terms.side {
        Side::Buy if has_price(terms.order_type) => terms.price,
        _ if market == 0 => 0,
        // A sell order trades at the bid if that is higher.
        Side::Sell if has_price(terms.order_type) => terms.price.max(market),
        // The stop price of a trailing order is a distance.
        _ if is_trailing => market,
        _ => market.max(terms.stop_price),
    }
}

/// Converts and validates a request's order parameters; the input may hold any codes and numbers.
fn terms_of(body: &CreateOrder) -> Result<Terms, ErrorCode> {
    let flag = |flag| body.execution.contains(flag);
    let order_type = venue_type(body.order_type).ok_or(ErrorCode::INVALID_TERMS)?;
    let terms = Terms {
        side: side_of(body.side).ok_or(ErrorCode::INVALID_TERMS)?,
        order_type,
        time_in_force: venue_time(body.time_in_force).ok_or(ErrorCode::INVALID_TERMS)?,
        price: body.price.0,
        quantity: body.quantity.0,
        stop_price: body.stop_price.0,
        shown: body.max_show.0,
        trigger: venue_trigger(body.trigger),
        post_only: flag(ExecutionFlags::POST_ONLY),
        reject_post_only: flag(ExecutionFlags::REJECT_POST_ONLY),
        reduce_only: flag(ExecutionFlags::REDUCE_ONLY),
        mmp: flag(ExecutionFlags::MMP),
    };
    let is_whole = KNOWN_FLAGS.contains(body.execution)
        && has_trigger(order_type) == terms.trigger.is_some()
        && (has_price(order_type) || terms.price == 0)
        && (has_trigger(order_type) || terms.stop_price == 0)
        // Without a price no time in force is sent: one with an effect must not be dropped silently.
        && (has_price(order_type) || !matches!(terms.time_in_force, VenueTime::GoodTilDay | VenueTime::FillOrKill))
        && (terms.post_only || !terms.reject_post_only)
        && (!terms.mmp || order_type == tickpath_deribit::codes::OrderType::Limit);
    if is_whole { Ok(terms) } else { Err(ErrorCode::INVALID_TERMS) }
}

//! Mass quotes: one request enters both sides of an instrument, and one request cancels quotes.
//!
//! The venue keeps one quote for each instrument, side and market maker protection group, and changes it in
//! place. In an account one user quotes, in that user's group. So a quote needs no id before the venue
//! assigns one: it is stored when the account's channel reports it, and is an order from then on. A lost
//! answer is not queried: the channel reports the state, and repeating the request does no harm.

use rustc_hash::FxHashMap;
use tickpath_deribit::codes::{OrderType, TimeInForce};
use tickpath_deribit::envelope::{ErrorBody, Response};
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{
    CancelQuotes as VenueCancel, MassQuote as VenueQuote, MassQuoteResult, QuoteEntry, QuoteSide,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::text::Text as VenueText;
use tickpath_gateway_protocol::{
    AckStatus, AckType, CancelQuotes, ErrorCode, Event, EventKind, ExecutionFlags, MassQuote, Origin,
    QuoteAck, RateLimitReason, Text,
};
use tickpath_types::{Nanos, Side};

use super::Core;
use super::account::{Asker, Pending, Purpose, Step};
use super::convert::{decimal, is_uncertain, request_error, venue_error, words};
use super::news::{GroupText, OrderNews, SymbolText};
use super::orders::{Doubt, Order, Terms};
use super::out::{About, Cause, EventSink, Venue};
use super::own_orders::state_of;
use super::refusal::Wanted;
use super::requests::Asked;

/// Maximum number of quoted sides in one account.
const QUOTED_MAX: usize = 1_024;
/// Bits of a request's sides.
const BID: u8 = 1;
const ASK: u8 = 2;

/// Quote on one side of an instrument.
#[derive(Clone, Copy, Debug, Default)]
struct Quoted {
    /// The client that quoted last; none for a quote left by an earlier gateway instance.
    owner: Option<u32>,
    /// The client's id of the quotes.
    set: u64,
    /// The gateway's order id of the quote; 0 before the venue has reported one.
    order_id: u64,
    /// Whether a new quote was sent and is not reported yet.
    is_sent: bool,
    /// Whether to cancel the quote as soon as it is reported.
    is_cancel_wanted: bool,
}

/// Quotes in one account.
#[derive(Debug, Default)]
pub struct Quotes {
    /// The user who quotes; none if there is none.
    pub user: Option<u16>,
    sides: FxHashMap<(u32, Side), Quoted>,
    /// Number of sides sent but not reported.
    sent: u32,
}

impl Quotes {
    /// Creates an empty set for a user, with capacity for the maximum.
    #[must_use]
    pub fn of(user: Option<u16>) -> Quotes {
        let mut sides = FxHashMap::default();
        if user.is_some() {
            sides.reserve(QUOTED_MAX);
        }
        Quotes { user, sides, sent: 0 }
    }

    /// Number of sides sent, which may be orders by now.
    #[must_use]
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    fn has_room(&self, keys: &[(u32, Side)]) -> bool {
        let new = keys.iter().filter(|key| !self.sides.contains_key(key)).count();
        self.sides.len() + new <= QUOTED_MAX
    }

    /// Records a side sent to the venue.
    fn send(&mut self, key: (u32, Side), owner: u32, set: u64, is_new: bool) {
        let known = self.sides.entry(key).or_default();
        self.sent += u32::from(is_new && !known.is_sent);
        *known = Quoted {
            owner: Some(owner),
            set,
            order_id: known.order_id,
            is_sent: known.is_sent || is_new,
            is_cancel_wanted: false,
        };
    }

    /// Records the order id of a side. An earlier instance's are kept while capacity lasts.
    fn keep(&mut self, key: (u32, Side), order_id: u64) {
        if self.sides.len() < QUOTED_MAX || self.sides.contains_key(&key) {
            self.sides.entry(key).or_default().order_id = order_id;
        }
    }

    /// Clears the sent flag of a side that will not be reported.
    fn unsend(&mut self, key: (u32, Side)) {
        if let Some(known) = self.sides.get_mut(&key)
            && std::mem::take(&mut known.is_sent)
        {
            self.sent -= 1;
        }
    }

    /// Clears all sent flags: with the connection every quote is lost.
    pub(super) fn forget_sent(&mut self) {
        self.sides.values_mut().for_each(|known| known.is_sent = false);
        self.sent = 0;
    }

    /// Marks the matching sides: whatever is reported for them from now on is cancelled. That includes
    /// changes of a resting quote: if the quote has traded, the venue turns the change into a new order.
    pub(super) fn want_cancel_of_coming(&mut self, symbol: u32, side: Option<Side>, set: u64) {
        for ((its_symbol, its_side), known) in &mut self.sides {
            let is_meant = (symbol == 0 || symbol == *its_symbol)
                && side.is_none_or(|side| side == *its_side)
                && (set == 0 || set == known.set);
            known.is_cancel_wanted |= is_meant;
        }
    }
}

impl Core {
    /// Handles a client's mass quote.
    pub(super) fn mass_quote(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &MassQuote,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        let sides = [body.bid_quantity, body.ask_quantity].iter().filter(|it| !it.is_zero()).count() as u32;
        let sent = self.try_mass_quote(now, asked, body, door, venue);
        self.acknowledge(
            now,
            asked,
            AckType::MASS_QUOTE,
            body.quote_set,
            sent.map_err(|error| (error, sides)),
            door,
        );
    }

    /// Checks a quote and passes it to the connection.
    fn try_mass_quote(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &MassQuote,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> Result<(), ErrorCode> {
        self.admit(now, asked.user, false, door)?;
        self.check_access(asked)?;
        self.check_quoter(asked)?;
        let [bid, ask] = sides_of(body)?;
        let mut new = 0;
        for terms in [bid, ask].into_iter().flatten() {
            self.check_steps(asked.symbol, &terms)?;
            new += u32::from(self.is_new_quote(asked.account, (asked.symbol, terms.side)));
            self.check_policy(asked, &terms, terms.quantity, new)?;
        }
        self.check_clear(asked.account, asked.symbol)?;
        let sent: usize = self.accounts.iter().map(|account| account.quotes.sent() as usize).sum();
        let keys = [(asked.symbol, Side::Buy), (asked.symbol, Side::Sell)];
        let has_room = self.orders.live_count() + sent + new as usize <= self.settings.orders_max
            && self.make_room_for_quotes(asked.account, &keys);
        if !has_room {
            return Err(ErrorCode::BUSY);
        }
        if self.policy.is_dry_run() {
            return Err(ErrorCode::DRY_RUN);
        }
        self.send_quotes(now, asked, body.quote_set, [bid, ask], venue)
    }

    fn send_quotes(
        &mut self,
        now: Nanos,
        asked: &Asked,
        set: u64,
        sides: [Option<Terms>; 2],
        venue: &mut impl Venue,
    ) -> Result<(), ErrorCode> {
        let symbol = asked.symbol;
        let name = self.instruments.get(symbol).map_or(SymbolText::EMPTY, |it| it.reference.name);
        let [quote_id, set_id] = [asked.asker.request_id, set].map(Digits::of);
        let [bid, ask] = sides.map(|terms| {
            terms.map(|terms| QuoteSide {
                price: Some(decimal(terms.price)),
                amount: Some(decimal(terms.quantity)),
                post_only: terms.post_only,
                reject_post_only: terms.reject_post_only,
            })
        });
        let entries = [QuoteEntry {
            instrument_name: VenueText::new(name.as_str()),
            quote_set_id: VenueText::new(set_id.as_str()),
            bid,
            ask,
        }];
        let group = self.users[usize::from(asked.user)].mmp_group;
        let params = VenueQuote {
            quote_id: VenueText::new(quote_id.as_str()),
            mmp_group: VenueText::new(group.as_str()),
            quotes: List::new(&entries),
            wait_for_response: None,
            detailed: false,
            valid_until: Some(self.valid_until_ms(now)),
        };
        let stream = self.accounts[usize::from(asked.account)].stream;
        let id = venue.request(now, stream, Method::MassQuote, &params).map_err(request_error)?;
        let mut bits = 0;
        for terms in sides.into_iter().flatten() {
            bits |= bit_of(terms.side);
            let key = (symbol, terms.side);
            let is_new = self.is_new_quote(asked.account, key);
            self.accounts[usize::from(asked.account)].quotes.send(key, asked.client, set, is_new);
            if let Some(order) =
                self.live_quote(asked.account, key).and_then(|slot| self.orders.get_mut(slot))
            {
                order.owner = Some(asked.client);
            }
        }
        self.push(asked.account, id, Purpose::Quotes { symbol, sides: bits, set }, asked.asker, now);
        Ok(())
    }

    /// Handles a client's request to cancel quotes: of a set, of an instrument, or all of the account.
    pub(super) fn cancel_quotes(
        &mut self,
        now: Nanos,
        asked: &Asked,
        body: &CancelQuotes,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) {
        let sent = self.try_cancel_quotes(now, asked, body.quote_set, door, venue);
        self.acknowledge(
            now,
            asked,
            AckType::CANCEL_QUOTES,
            body.quote_set,
            sent.map_err(|error| (error, 0)),
            door,
        );
    }

    fn try_cancel_quotes(
        &mut self,
        now: Nanos,
        asked: &Asked,
        set: u64,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> Result<(), ErrorCode> {
        self.admit(now, asked.user, true, door)?;
        self.check_account(asked)?;
        self.check_quoter(asked)?;
        let symbol = asked.symbol;
        if symbol != 0 && set != 0 {
            // The venue's request accepts only one of them.
            return Err(ErrorCode::INVALID_TERMS);
        }
        let name = match symbol {
            0 => SymbolText::EMPTY,
            _ => self.instruments.get(symbol).ok_or(ErrorCode::UNKNOWN_SYMBOL)?.reference.name,
        };
        if self.policy.is_dry_run() {
            return Err(ErrorCode::DRY_RUN);
        }
        let known = &self.accounts[usize::from(asked.account)];
        if known.step != Step::Ready || !known.has_room() {
            // Reducing risk does not wait for the download: resting quotes are cancelled one by one.
            self.want_cancel_of_quotes(asked.account, symbol, set);
            return Ok(());
        }
        let set_id = Digits::of(set);
        let params = VenueCancel {
            cancel_type: VenueText::new(match (symbol, set) {
                (0, 0) => "all",
                (0, _) => "quote_set_id",
                _ => "instrument",
            }),
            min_delta: None,
            max_delta: None,
            quote_set_id: (set != 0).then(|| VenueText::new(set_id.as_str())),
            instrument_name: (symbol != 0).then(|| VenueText::new(name.as_str())),
            kind: None,
            currency: None,
            currency_pair: None,
            detailed: false,
            freeze_quotes: false,
        };
        let account = &mut self.accounts[usize::from(asked.account)];
        let id = venue.request(now, account.stream, Method::CancelQuotes, &params).map_err(request_error)?;
        // The venue may cancel only the quotes that rest when the request arrives, not those about to.
        account.quotes.want_cancel_of_coming(symbol, None, set);
        self.push(asked.account, id, Purpose::CancelQuotes { symbol, set }, asked.asker, now);
        Ok(())
    }

    /// Rejects users who do not quote in the account, and accounts whose orders use FIX.
    fn check_quoter(&self, asked: &Asked) -> Result<(), ErrorCode> {
        let account = &self.accounts[usize::from(asked.account)];
        let is_quoter = account.entry.is_none() && account.quotes.user == Some(asked.user);
        if is_quoter { Ok(()) } else { Err(ErrorCode::NOT_SUPPORTED) }
    }

    /// Returns the slot of a quote's order if the order has not ended.
    fn live_quote(&self, account: u16, key: (u32, Side)) -> Option<u32> {
        let known = self.accounts[usize::from(account)].quotes.sides.get(&key)?;
        let slot = self.orders.by_gateway_id(known.order_id)?;
        self.orders.get(slot).is_some_and(|order| !order.state.is_over()).then_some(slot)
    }

    /// Whether a quote would be a new order.
    fn is_new_quote(&self, account: u16, key: (u32, Side)) -> bool {
        let is_sent = |known: &Quoted| known.is_sent;
        !self.accounts[usize::from(account)].quotes.sides.get(&key).is_some_and(is_sent)
            && self.live_quote(account, key).is_none()
    }

    /// Whether there is capacity for these sides, after removing ended ones if necessary.
    fn make_room_for_quotes(&mut self, account: u16, keys: &[(u32, Side)]) -> bool {
        let orders = &self.orders;
        let quotes = &mut self.accounts[usize::from(account)].quotes;
        if !quotes.has_room(keys) {
            let is_live = |id| orders.by_gateway_id(id).and_then(|slot| orders.get(slot));
            quotes.sides.retain(|_, known| {
                known.is_sent || is_live(known.order_id).is_some_and(|order| !order.state.is_over())
            });
        }
        quotes.has_room(keys)
    }

    /// Sends the gateway's own ack; a rejection has the number of rejected sides.
    fn acknowledge(
        &mut self,
        now: Nanos,
        asked: &Asked,
        request: AckType,
        quote_set: u64,
        sent: Result<(), (ErrorCode, u32)>,
        door: &mut impl EventSink,
    ) {
        let (refusal, refused) = sent.err().map_or((None, 0), |(error, sides)| (Some(error), sides));
        if let Some(error) = refusal {
            self.counters.refused += 1;
            self.tell_venue_limit(now, asked.account, error, RateLimitReason::REFUSED, door);
        }
        let why = refusal.map(|error| self.why_refused(now, asked, error, &Wanted::default()));
        let ack = QuoteAck {
            request_id: asked.asker.request_id,
            quote_set,
            round_trip_ns: self.round_trip(now, asked.asker.create_ns),
            refused,
            origin: Origin::GATEWAY,
            status: if refusal.is_some() { AckStatus::REJECTED } else { AckStatus::RECEIVED },
            request,
            error: refusal.unwrap_or_default(),
            text: why.map_or(Text::EMPTY, |why| Text::cut(why.as_str())),
            ..QuoteAck::default()
        };
        self.send_quote_ack(asked, kind_of(request), &ack, door);
    }

    /// Handles the venue's answer to a mass quote. The account's channel reports the state of the quotes.
    pub(super) fn quoted(
        &mut self,
        account: u16,
        pending: &Pending,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let Purpose::Quotes { symbol, sides, set } = pending.purpose else { return };
        let ack = QuoteAck { request: AckType::MASS_QUOTE, quote_set: set, ..QuoteAck::default() };
        let ack = match response.outcome {
            Ok(value) => match value.parse::<MassQuoteResult<'_>>() {
                Ok(result) => self.told_of_quotes(account, symbol, sides, &result, ack),
                Err(_) => {
                    self.counters.faults += 1;
                    self.unsend(account, symbol, sides);
                    uncertain(ack, Text::cut("the answer cannot be read"))
                }
            },
            Err(error) => {
                self.unsend(account, symbol, sides);
                let refused = sides.count_ones();
                if is_uncertain(&error) {
                    uncertain(ack, words(&error))
                } else {
                    let (error, text) = (venue_error(&error), words(&error));
                    QuoteAck { status: AckStatus::REJECTED, refused, error, text, ..ack }
                }
            }
        };
        self.answer_quotes(account, symbol, pending.asker, ack, received, door);
    }

    /// Converts the venue's result for each side to an ack.
    fn told_of_quotes(
        &mut self,
        account: u16,
        symbol: u32,
        sides: u8,
        result: &MassQuoteResult<'_>,
        ack: QuoteAck,
    ) -> QuoteAck {
        let mut ack = QuoteAck { status: AckStatus::ACCEPTED, ..ack };
        for refusal in result.errors.iter() {
            let Ok(refusal) = refusal else {
                self.counters.faults += 1;
                break;
            };
            ack.refused += 1;
            match refusal.side.and_then(|side| side.plain()) {
                Some("bid") => self.unsend(account, symbol, BID),
                Some("ask") => self.unsend(account, symbol, ASK),
                _ => self.unsend(account, symbol, sides),
            }
            if ack.error == ErrorCode::default() {
                ack.error = ErrorCode::VENUE;
                if let Ok(error) = refusal.error.parse::<ErrorBody<'_>>() {
                    (ack.error, ack.text) = (venue_error(&error), words(&error));
                }
            }
        }
        ack.done = sides.count_ones().saturating_sub(ack.refused);
        if ack.done == 0 {
            ack.status = AckStatus::REJECTED;
        }
        ack
    }

    fn unsend(&mut self, account: u16, symbol: u32, sides: u8) {
        for side in [Side::Buy, Side::Sell] {
            if sides & bit_of(side) != 0 {
                self.accounts[usize::from(account)].quotes.unsend((symbol, side));
            }
        }
    }

    /// Handles the venue's answer to a cancellation of quotes.
    pub(super) fn cancelled_quotes(
        &mut self,
        account: u16,
        pending: &Pending,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let Purpose::CancelQuotes { symbol, set } = pending.purpose else { return };
        let ack = QuoteAck { request: AckType::CANCEL_QUOTES, quote_set: set, ..QuoteAck::default() };
        let ack = match response.outcome {
            Ok(value) => {
                let done = value.text().parse().unwrap_or(0);
                QuoteAck { status: AckStatus::ACCEPTED, done, ..ack }
            }
            Err(error) if is_uncertain(&error) => {
                self.want_cancel_of_quotes(account, symbol, set);
                uncertain(ack, words(&error))
            }
            Err(error) => {
                let (error, text) = (venue_error(&error), words(&error));
                QuoteAck { status: AckStatus::REJECTED, error, text, ..ack }
            }
        };
        self.answer_quotes(account, symbol, pending.asker, ack, received, door);
    }

    /// Handles an unanswered request about quotes. The account's channel reports new quotes, or they ended
    /// with the connection. Resting quotes to be cancelled are cancelled one by one.
    pub(super) fn unanswered_quotes(
        &mut self,
        account: u16,
        pending: &Pending,
        is_lost: bool,
        now: Nanos,
        door: &mut impl EventSink,
    ) {
        let text = Text::cut(if is_lost { "the connection was lost" } else { "no answer in time" });
        let error = if is_lost { ErrorCode::CONNECTION_LOST } else { ErrorCode::TIMEOUT };
        let (symbol, set, request) = match pending.purpose {
            Purpose::Quotes { symbol, sides, set } => {
                self.unsend(account, symbol, sides);
                (symbol, set, AckType::MASS_QUOTE)
            }
            Purpose::CancelQuotes { symbol, set } => {
                self.want_cancel_of_quotes(account, symbol, set);
                (symbol, set, AckType::CANCEL_QUOTES)
            }
            _ => return,
        };
        let ack = QuoteAck { request, quote_set: set, ..QuoteAck::default() };
        let ack = QuoteAck { error, ..uncertain(ack, text) };
        self.answer_quotes(account, symbol, pending.asker, ack, now, door);
    }

    /// Cancels resting quotes one by one: those of a set, of an instrument, or all.
    fn want_cancel_of_quotes(&mut self, account: u16, symbol: u32, set: u64) {
        self.accounts[usize::from(account)].quotes.want_cancel_of_coming(symbol, None, set);
        for slot in 0..self.orders.used() {
            let Some(order) = self.orders.get(slot) else { continue };
            if !order.is_quote || order.account != account || order.state.is_over() {
                continue;
            }
            let known =
                self.accounts[usize::from(account)].quotes.sides.get(&(order.symbol, order.terms.side));
            let is_of_set = set == 0 || known.is_some_and(|known| known.set == set);
            if is_of_set && (symbol == 0 || symbol == order.symbol) {
                self.want_cancel(slot);
            }
        }
    }

    fn answer_quotes(
        &self,
        account: u16,
        symbol: u32,
        asker: Asker,
        ack: QuoteAck,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        let Some(client) = asker.client.filter(|client| self.clients.get(*client).is_some()) else { return };
        self.tell_venue_limit(received, account, ack.error, RateLimitReason::VENUE_REFUSED, door);
        let is_told = ack.status != AckStatus::TIMEOUT;
        let ack = QuoteAck {
            request_id: asker.request_id,
            round_trip_ns: self.round_trip(received, asker.create_ns),
            origin: if is_told { Origin::EXCHANGE } else { Origin::GATEWAY },
            ..ack
        };
        let about = About { symbol, ..self.about_account(account) };
        let origin_utc_ns = if is_told { self.said_utc_ns } else { 0 };
        let cause = Cause { received, origin_ns: asker.create_ns, origin_utc_ns };
        let event = Event::of_quote_ack(kind_of(ack.request), &ack);
        door.send(client, self.stamp.stamp(event, about, cause));
    }

    /// Returns the user of a quote; none if the order is not a quote of this gateway.
    pub(super) fn quoter_of(&self, account: u16, news: &OrderNews) -> Option<u16> {
        if news.quote_group.is_empty() {
            return None;
        }
        let known = &self.accounts[usize::from(account)];
        let user = known.quotes.user.filter(|_| known.entry.is_none())?;
        (self.users[usize::from(user)].mmp_group == news.quote_group).then_some(user)
    }

    /// Stores a quote that the venue reports for the first time; returns its slot.
    pub(super) fn adopt_quote(
        &mut self,
        account: u16,
        user: u16,
        news: &OrderNews,
        cause: Cause,
        door: &mut impl EventSink,
    ) -> Option<u32> {
        let symbol = self.instruments.number(news.symbol.as_str()).unwrap_or(0);
        let key = (symbol, news.terms.side);
        self.accounts[usize::from(account)].quotes.unsend(key);
        let known = self.accounts[usize::from(account)].quotes.sides.get(&key).copied();
        // Only a quote that a client of this instance has sent.
        let known = known.filter(|known| known.owner.is_some());
        let owner = known.and_then(|known| known.owner).filter(|owner| self.clients.get(*owner).is_some());
        let state = state_of(news);
        let order = Order {
            gateway_id: 0,
            client_id: 0,
            user,
            account,
            owner,
            symbol,
            symbol_name: news.symbol,
            terms: news.terms,
            external_id: news.external_id,
            label_id: 0,
            state,
            filled: news.filled,
            // Fills of an earlier instance are part of the position and are not sent one by one.
            traded: if known.is_some() { 0 } else { news.filled },
            average_price: news.average_price,
            updated_ms: news.updated_ms,
            is_by_fix: false,
            created_ms: news.created_ms,
            create_ns: 0,
            valid_until_ms: 0,
            doubt: Doubt::None,
            is_quote: true,
            is_cancel_wanted: false,
            is_cancel_queued: false,
            is_cancel_owed: false,
            is_changed_here: false,
            // Quotes of an earlier instance were created before this one started.
            is_changed_elsewhere: known.is_none() && self.is_entered_late(news),
            session: self.mark.session(),
        };
        self.counters.orders_elsewhere += u64::from(order.is_changed_elsewhere);
        let Ok(slot) = self.orders.adopt(order) else {
            self.counters.orders_left_out += 1;
            self.note_foreign(account, news);
            return None;
        };
        let gateway_id = self.orders.get(slot).map_or(0, |order| order.gateway_id);
        self.accounts[usize::from(account)].quotes.keep(key, gateway_id);
        self.tell_order(slot, super::own_orders::reason_of(news.cancel_reason), cause, door);
        if state.is_over() {
            self.orders.end(slot);
            if news.filled > 0 {
                self.ask_trades(account, slot, cause.received);
            }
            return Some(slot);
        }
        self.accounts[usize::from(account)].open_orders += 1;
        if self.policy.is_killed() {
            self.want_cancel(slot);
        }
        match known {
            // Its client has disconnected or cancelled the quote while it was in flight.
            Some(known) if known.is_cancel_wanted || owner.is_none() && self.settings.cancels => {
                self.want_cancel(slot);
            }
            Some(_) => {}
            None => self.note_absent(user, cause.received),
        }
        Some(slot)
    }
}

/// Order parameters of the two sides; none for an omitted side.
fn sides_of(body: &MassQuote) -> Result<[Option<Terms>; 2], ErrorCode> {
    const KNOWN: ExecutionFlags = ExecutionFlags::POST_ONLY.with(ExecutionFlags::REJECT_POST_ONLY);
    let post_only = body.execution.contains(ExecutionFlags::POST_ONLY);
    let reject_post_only = body.execution.contains(ExecutionFlags::REJECT_POST_ONLY);
    if !KNOWN.contains(body.execution) || reject_post_only && !post_only {
        return Err(ErrorCode::INVALID_TERMS);
    }
    let terms = |side, price: i64, quantity: i64| Terms {
        side,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::GoodTilCancelled,
        price,
        quantity,
        stop_price: 0,
        shown: 0,
        trigger: None,
        post_only,
        reject_post_only,
        reduce_only: false,
        mmp: true,
    };
    let bid = terms(Side::Buy, body.bid_price.0, body.bid_quantity.0);
    let ask = terms(Side::Sell, body.ask_price.0, body.ask_quantity.0);
    let [bid, ask] = [bid, ask].map(|terms| (terms.quantity != 0).then_some(terms));
    match (bid, ask) {
        (None, None) => Err(ErrorCode::INVALID_QUANTITY),
        (Some(bid), Some(ask)) if bid.price >= ask.price => Err(ErrorCode::INVALID_PRICE),
        sides => Ok([sides.0, sides.1]),
    }
}

const fn bit_of(side: Side) -> u8 {
    match side {
        Side::Buy => BID,
        Side::Sell => ASK,
    }
}

const fn kind_of(request: AckType) -> EventKind {
    match request {
        AckType::MASS_QUOTE => EventKind::MASS_QUOTE_ACK,
        _ => EventKind::CANCEL_QUOTES_ACK,
    }
}

fn uncertain(ack: QuoteAck, text: Text<64>) -> QuoteAck {
    QuoteAck { status: AckStatus::TIMEOUT, error: ErrorCode::TIMEOUT, text, ..ack }
}

/// Market maker protection group of a quote; empty for other orders.
pub(super) fn group_of(is_quote: bool, group: Option<VenueText<'_>>) -> GroupText {
    group.filter(|_| is_quote).and_then(|group| GroupText::new(group.plain()?)).unwrap_or_default()
}

/// A number as decimal text.
#[derive(Clone, Copy)]
struct Digits {
    bytes: [u8; 20],
    from: usize,
}

impl Digits {
    fn of(mut number: u64) -> Digits {
        let mut digits = Digits { bytes: [b'0'; 20], from: 20 };
        loop {
            digits.from -= 1;
            digits.bytes[digits.from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.from..]).expect("digits are ASCII")
    }
}

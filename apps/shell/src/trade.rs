//! Orders: checked against the limits, entered, and found again where their answer was lost.

use tickpath_deribit::codes::{Direction, Kind, OrderState, OrderType};
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    CancelOrder, ClosePosition, GetInstrument, GetOpenOrders, GetOpenOrdersByInstrument, GetOrderState,
    GetOrderStateByLabel, GetPosition, GetTicker, Instrument, Order, OrderPrice, OrderReply, Position,
    Ticker,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{Value, check};
use tickpath_deribit::text::Text;
use tickpath_types::{Nanos, Side};

use crate::link::Clock;
use crate::order::{Change, NewOrder, currency_of, exceeds, has_limit, notional};
use crate::shell::{Failure, Reply, Shell};

/// How far the venue's clock may be behind ours, in milliseconds, for an order to be one of this request, where nothing is
/// known of it; and what is left to its rounding and its drift where its replies tell it.
const CLOCKS_APART_MS: u64 = 60_000;
const CLOCK_ERROR_MS: u64 = 1_000;
/// How long after the deadline of a request, by the venue's clock, it is certain that it is not taken any more.
const DEADLINE_MARGIN_MS: u64 = 1_000;
/// Orders of this run that are known by their answers; the oldest are forgotten.
const ENTERED_MAX: usize = 1_024;
/// A request whose answer was lost may still be on its way: so often its order is asked for again, with this pause, and then
/// with a longer one as long as the venue would take it.
const SETTLE_ASKS: u32 = 5;
const SETTLE_INTERVAL: Nanos = Nanos::from_millis(200);
const SETTLE_INTERVAL_LONG: Nanos = Nanos::from_millis(500);

/// When a request was sent by the venue's clock, and until when it is taken, in milliseconds since 1970; none where nothing
/// is known of that clock.
#[derive(Clone, Copy, Debug, Default)]
struct Deadline {
    asked_ms: Option<u64>,
    valid_until: Option<u64>,
}

impl Deadline {
    /// Whether it is certain that the request is not taken any more.
    fn is_over(self, link: &crate::link::Link) -> bool {
        let over_ms = self.valid_until.map(|until| until.saturating_add(DEADLINE_MARGIN_MS));
        over_ms.zip(link.venue_ms()).is_some_and(|(over, venue)| venue > over)
    }
}

/// Reads a result that the venue gave.
pub(crate) fn read<'a, T: Field<'a>>(json: &'a str) -> Result<T, Failure> {
    let unreadable = || Failure::Invalid("the venue's answer cannot be read: show 1 shows it".to_owned());
    check(json.as_bytes()).ok().and_then(|value| value.parse().ok()).ok_or_else(unreadable)
}

impl Shell {
    /// Enters an order; in a dry run says what would be sent.
    ///
    /// # Errors
    /// [`Failure`]. Where the answer was lost the venue is asked by the order's label, as long as it would take it:
    /// [`Failure::NotDone`] when it has none then.
    pub fn enter(&mut self, side: Side, mut order: NewOrder) -> Result<Reply, Failure> {
        let method = match side {
            Side::Buy => Method::Buy,
            Side::Sell => Method::Sell,
        };
        if order.label.is_none() && !self.link().keeps_requests() {
            self.labels += 1;
            order.label = Some(format!("tp-{:x}-{:x}-{}", Clock::unix_ms(), std::process::id(), self.labels));
        }
        let limits = self.link().config().limits;
        let has_limits = limits != crate::config::Limits::default();
        // Where the instrument is known by now the order is checked without a question.
        let is_known = self.instruments.contains_key(&order.instrument);
        if has_limits || is_known || (order.amount.is_some() && order.contracts.is_some()) {
            let json = self.instrument(&order.instrument)?;
            let instrument: Instrument<'_> = read(&json)?;
            order.check_instrument(&instrument)?;
            if has_limits {
                self.check_limits(side, &order, &instrument, true)?;
            }
        }
        if self.is_dry_run {
            return self.dry_run(method, &order.params(None));
        }
        let deadline = self.deadline()?;
        let result = match self.ask(method, &order.params(deadline.valid_until)) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => {
                self.find_by_label(side, &order, deadline, failure)
            }
            result => result,
        };
        if let Ok(reply) = &result
            && let Ok(reply) = read::<OrderReply<'_>>(&reply.json)
        {
            if self.entered.len() == ENTERED_MAX {
                self.entered.pop_front();
            }
            let id = reply.order.order_id.to_cow().into_owned();
            self.rests |= matches!(reply.order.order_state, OrderState::Open | OrderState::Untriggered);
            if self.is_watched {
                self.link().learn_order(id.clone());
            }
            self.entered.push_back(id);
        }
        result
    }

    /// Until when the venue takes a request that is sent now. Connects first: the login tells the venue's clock.
    fn deadline(&mut self) -> Result<Deadline, Failure> {
        if !self.link().has_key() || self.link().keeps_requests() {
            return Ok(Deadline::default());
        }
        self.begin_ready()?;
        let link = self.link();
        let asked_ms = link.venue_ms();
        let timeout_ms = link.config().request_timeout.0.0 / 1_000_000;
        Ok(Deadline { asked_ms, valid_until: asked_ms.map(|now| now.saturating_add(timeout_ms)) })
    }

    /// Changes an order.
    ///
    /// # Errors
    /// [`Failure`]. Where the answer was lost the venue is asked for the order: [`Failure::NotDone`] when it is as it was.
    pub fn edit(&mut self, change: &Change) -> Result<Reply, Failure> {
        if self.link().config().limits != crate::config::Limits::default() {
            self.check_change(change)?;
        }
        if self.is_dry_run {
            return self.dry_run(Method::Edit, &change.params(None));
        }
        let deadline = self.deadline()?;
        let failure = match self.ask(Method::Edit, &change.params(deadline.valid_until)) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => failure,
            result => return result,
        };
        let is_done = |order: &Order<'_>| {
            // A change before this one had perhaps the same aim.
            let is_since = deadline.asked_ms.is_none_or(|asked| order.last_update_timestamp >= asked);
            order.replaced && is_since && is_changed(change, order)
        };
        let (json, state) = self.state_after(&failure, &change.order_id, deadline, is_done)?;
        match state {
            After::Done => {
                Ok(Reply { json: format!("{{\"order\":{json},\"trades\":[]}}"), ..Reply::default() })
            }
            other => Err(other.failure(&failure, &json)),
        }
    }

    /// Cancels an order.
    ///
    /// # Errors
    /// As [`edit`](Shell::edit).
    pub fn cancel(&mut self, order_id: &str) -> Result<Reply, Failure> {
        let params = CancelOrder { order_id: Text::new(order_id) };
        if self.is_dry_run {
            return self.dry_run(Method::Cancel, &params);
        }
        let failure = match self.ask(Method::Cancel, &params) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => failure,
            result => return result,
        };
        let is_cancelled = |order: &Order<'_>| order.order_state == OrderState::Cancelled;
        // Nothing says until when the venue takes a cancel.
        match self.state_after(&failure, order_id, Deadline::default(), is_cancelled)? {
            (json, After::Done) => Ok(Reply { json, ..Reply::default() }),
            (json, other) => Err(other.failure(&failure, &json)),
        }
    }

    /// Closes a position, at the market or at a limit.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn close(&mut self, instrument: &str, price: Option<Decimal>) -> Result<Reply, Failure> {
        let order_type = if price.is_some() { OrderType::Limit } else { OrderType::Market };
        let params = ClosePosition { instrument_name: Text::new(instrument), order_type, price };
        if self.link().config().limits != crate::config::Limits::default() {
            self.check_close(instrument, order_type, price)?;
        }
        if self.is_dry_run {
            return self.dry_run(Method::ClosePosition, &params);
        }
        match self.ask(Method::ClosePosition, &params) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => {
                Err(self.what_is_left(instrument, &failure))
            }
            result => result,
        }
    }

    /// Whether the order that would close a position is within the limits that are stated.
    fn check_close(
        &mut self,
        instrument: &str,
        order_type: OrderType,
        price: Option<Decimal>,
    ) -> Result<(), Failure> {
        let name = Text::new(instrument);
        let json = self.ask(Method::GetPosition, &GetPosition { instrument_name: name })?.json;
        let size = read::<Position<'_>>(&json)?.size;
        let unsigned =
            size.mantissa().checked_abs().and_then(|mantissa| Decimal::new(mantissa, size.scale()));
        let amount = unsigned.filter(|amount| !amount.is_zero());
        // The venue says what it thinks of a position that is none.
        let Some(amount) = amount else { return Ok(()) };
        if let Some(max) = self.link().config().limits.order_size_max
            && amount > max.0
        {
            return Err(Failure::Limit(format!(
                "a position of {size} is above limits.order_size_max = {max}: close it in parts with reduce_only"
            )));
        }
        let side = if size > Decimal::ZERO { Side::Sell } else { Side::Buy };
        let order = NewOrder { amount: Some(amount), price, ..NewOrder::of(instrument, order_type) };
        let json = self.instrument(instrument)?;
        self.check_limits(side, &order, &read(&json)?, price.is_some())
    }

    /// After a request to close a position that got no answer, what there is: such an order has no label to be found by,
    /// and a second one could turn the position round.
    fn what_is_left(&mut self, instrument: &str, failure: &Failure) -> Failure {
        let name = Text::new(instrument);
        let mut look = || -> Result<String, Failure> {
            // What is on its way arrives meanwhile.
            self.pump(Nanos(SETTLE_INTERVAL.0 * u64::from(SETTLE_ASKS)), |_| false)?;
            let json = self.ask(Method::GetPosition, &GetPosition { instrument_name: name })?.json;
            let size = read::<Position<'_>>(&json)?.size;
            let params = GetOpenOrdersByInstrument { instrument_name: name, order_type: None };
            let json = self.ask(Method::GetOpenOrdersByInstrument, &params)?.json;
            let count = read::<List<'_, Value<'_>>>(&json)?.count();
            Ok(format!("the position in {instrument} is {size} and {count} orders are open in it"))
        };
        match look() {
            Ok(state) => Failure::Unknown(format!("{failure}; {state}: look before it is closed again")),
            Err(Failure::Interrupted) => Failure::Unanswered(Method::ClosePosition.name()),
            Err(other) => Failure::Unknown(format!(
                "{failure}, and asking for the position failed ({other}): look at positions and orders before it is closed again"
            )),
        }
    }

    /// What would be sent.
    pub(crate) fn dry_run<'a>(&self, method: Method, params: &impl Field<'a>) -> Result<Reply, Failure> {
        self.link().check(method, params).map_err(Failure::Invalid)?;
        let mut out = format!("{{\"dry_run\":\"{method}\",\"params\":").into_bytes();
        params.write(&mut out);
        out.push(b'}');
        Ok(Reply { json: String::from_utf8_lossy(&out).into_owned(), ..Reply::default() })
    }

    /// An instrument, asked for once.
    pub(crate) fn instrument(&mut self, name: &str) -> Result<String, Failure> {
        if let Some(json) = self.instruments.get(name) {
            return Ok(json.clone());
        }
        let json = self.ask(Method::GetInstrument, &GetInstrument { instrument_name: Text::new(name) })?.json;
        self.instruments.insert(name.to_owned(), json.clone());
        self.link().learn([name.to_owned()]);
        Ok(json)
    }

    /// An order as it stands.
    pub(crate) fn order_json(&mut self, order_id: &str) -> Result<String, Failure> {
        Ok(self.ask(Method::GetOrderState, &GetOrderState { order_id: Text::new(order_id) })?.json)
    }

    /// Whether an order is within the limits that are stated.
    fn check_limits(
        &mut self,
        side: Side,
        order: &NewOrder,
        instrument: &Instrument<'_>,
        is_new: bool,
    ) -> Result<(), Failure> {
        let limits = self.link().config().limits;
        let amount = match (order.amount, order.contracts) {
            (Some(amount), _) => amount,
            (None, contracts) => contracts
                .zip(instrument.contract_size)
                .and_then(|(contracts, size)| multiplied(contracts, size))
                .ok_or_else(|| {
                    Failure::Limit("state amount= so that the limits can be checked".to_owned())
                })?,
        };
        if let Some(max) = limits.order_size_max
            && amount > max.0
        {
            return Err(Failure::Limit(format!(
                "an amount of {amount} is above limits.order_size_max = {max}"
            )));
        }
        if let Some(max) = limits.notional_max {
            let (price, index) = self.prices(side, order, instrument)?;
            let value = notional(instrument, amount, price, index).ok_or_else(|| {
                Failure::Limit("no price to check limits.notional_max by: give a limit".to_owned())
            })?;
            if exceeds(value, max.0) {
                return Err(Failure::Limit(format!(
                    "the value of {amount} is above limits.notional_max = {max}"
                )));
            }
        }
        if let (true, Some(max)) = (is_new, limits.open_orders_max) {
            let json = self.ask(Method::GetOpenOrders, &GetOpenOrders { kind: None, order_type: None })?.json;
            let count = read::<List<'_, Value<'_>>>(&json)?.count();
            if count >= max as usize {
                return Err(Failure::Limit(format!(
                    "{count} orders are open, and limits.open_orders_max = {max}"
                )));
            }
        }
        Ok(())
    }

    /// The price that an order may trade at, and the index; from the market where the order has none.
    fn prices(
        &mut self,
        side: Side,
        order: &NewOrder,
        instrument: &Instrument<'_>,
    ) -> Result<(Option<Decimal>, Option<Decimal>), Failure> {
        // A sell order may trade above its limit; the market says how far.
        let own = order.price.filter(|_| has_limit(order.order_type) && side == Side::Buy);
        let needs_index = matches!(instrument.kind, Kind::Option | Kind::OptionCombo | Kind::FutureCombo);
        if own.is_some() && !needs_index {
            return Ok((own, None));
        }
        let name = Text::new(&order.instrument);
        let json = self.ask(Method::Ticker, &GetTicker { instrument_name: name })?.json;
        let ticker: Ticker<'_> = read(&json)?;
        let exact = |number: Option<tickpath_deribit::number::Number<'_>>| {
            number.and_then(|number| number.decimal().ok())
        };
        let market = match side {
            Side::Buy => ticker.best_ask_price,
            Side::Sell => ticker.best_bid_price,
        };
        let candidates =
            [own, order.price, order.trigger_price, market, exact(ticker.mark_price), ticker.last_price];
        let price = match own {
            Some(own) => Some(own),
            None => candidates.into_iter().flatten().max(),
        };
        Ok((price, exact(ticker.index_price)))
    }

    fn check_change(&mut self, change: &Change) -> Result<(), Failure> {
        let id = Text::new(&change.order_id);
        let json = self.ask(Method::GetOrderState, &GetOrderState { order_id: id })?.json;
        let before: Order<'_> = read(&json)?;
        let order = NewOrder {
            amount: match change.contracts {
                Some(_) => change.amount,
                None => Some(change.amount.unwrap_or(before.amount)),
            },
            contracts: change.contracts,
            price: change.price.or(before.price.and_then(OrderPrice::limit)),
            trigger_price: change.trigger_price.or(before.trigger_price),
            ..NewOrder::of(&before.instrument_name.to_cow(), before.order_type)
        };
        let side = if before.direction == Direction::Sell { Side::Sell } else { Side::Buy };
        let json = self.instrument(&order.instrument)?;
        let instrument: Instrument<'_> = read(&json)?;
        // So that the larger of the two is the one that counts.
        order.check_instrument(&instrument)?;
        self.check_limits(side, &order, &instrument, false)
    }

    /// An order whose answer was lost, asked for by its label: for a while, as it may still be on its way.
    fn find_by_label(
        &mut self,
        side: Side,
        order: &NewOrder,
        deadline: Deadline,
        failure: Failure,
    ) -> Result<Reply, Failure> {
        let label = order.label.as_deref().unwrap_or_default();
        let currency = Text::new(currency_of(&order.instrument));
        let params = GetOrderStateByLabel { currency, label: Some(Text::new(label)) };
        // A label of the user's may be that of several orders: those that were answered are others.
        let answered = std::mem::take(&mut self.entered);
        let since_ms = match deadline.asked_ms {
            Some(asked) => asked.saturating_sub(CLOCK_ERROR_MS),
            None => Clock::unix_ms().saturating_sub(CLOCKS_APART_MS),
        };
        let of_this_request = |value: &Value<'_>| {
            let found: Order<'_> = value.parse().ok()?;
            let is_new = found.creation_timestamp >= since_ms;
            let is_answered = answered.iter().any(|id| *found.order_id.to_cow() == **id);
            (is_new && !is_answered && is_as_sent(side, order, &found)).then_some(found.creation_timestamp)
        };
        let result = self.ask_by_label(&params, label, deadline, &of_this_request, &failure);
        self.entered = answered;
        result
    }

    fn ask_by_label(
        &mut self,
        params: &GetOrderStateByLabel<'_>,
        label: &str,
        deadline: Deadline,
        of_this_request: &impl Fn(&Value<'_>) -> Option<u64>,
        failure: &Failure,
    ) -> Result<Reply, Failure> {
        let mut asks = 0;
        loop {
            // Before the question: what the venue took until then it tells.
            let is_over = deadline.is_over(&self.link());
            let json = match self.ask(Method::GetOrderStateByLabel, params) {
                Ok(reply) => reply.json,
                Err(Failure::Interrupted) => return Err(unanswered(failure)),
                Err(other) => {
                    return Err(Failure::Unknown(format!(
                        "{failure}, and asking by its label {label} failed ({other}): look at orders before it is sent again"
                    )));
                }
            };
            let orders: List<'_, Value<'_>> = read(&json)?;
            let found = orders.iter().map_while(Result::ok).filter(|value| of_this_request(value).is_some());
            if let Some(order) = found.max_by_key(&of_this_request) {
                let json = format!("{{\"order\":{},\"trades\":[]}}", order.text());
                return Ok(Reply { json, ..Reply::default() });
            }
            if is_over {
                return Err(Failure::NotDone(format!(
                    "{failure}; the venue has no order with its label {label} and takes none any more: it was not entered"
                )));
            }
            if asks > SETTLE_ASKS && deadline.valid_until.is_none() {
                return Err(Failure::Unknown(format!(
                    "{failure}; the venue has no order with its label {label} so far: look at orders before it is sent again"
                )));
            }
            self.pump(settle_pause(asks), |_| false).map_err(|_| unanswered(failure))?;
            asks += 1;
        }
    }

    /// The state of an order whose change or cancel got no answer, and whether it is as wanted; asked for as an order is.
    fn state_after(
        &mut self,
        failure: &Failure,
        order_id: &str,
        deadline: Deadline,
        is_as_wanted: impl Fn(&Order<'_>) -> bool,
    ) -> Result<(String, After), Failure> {
        let id = Text::new(order_id);
        let mut asks = 0;
        loop {
            let is_over = deadline.is_over(&self.link());
            match self.ask(Method::GetOrderState, &GetOrderState { order_id: id }) {
                Ok(reply) => {
                    if is_as_wanted(&read(&reply.json)?) {
                        return Ok((reply.json, After::Done));
                    }
                    if is_over {
                        return Ok((reply.json, After::NotDone));
                    }
                    if asks >= SETTLE_ASKS && deadline.valid_until.is_none() {
                        return Ok((reply.json, After::Unknown));
                    }
                }
                Err(Failure::Interrupted) => return Err(unanswered(failure)),
                Err(other) => {
                    return Err(Failure::Unknown(format!(
                        "{failure}, and asking for the order failed ({other})"
                    )));
                }
            }
            self.pump(settle_pause(asks), |_| false).map_err(|_| unanswered(failure))?;
            asks += 1;
        }
    }
}

/// What became of a change or a cancel whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Done,
    NotDone,
    /// Not done so far; the venue may still take it.
    Unknown,
}

impl After {
    fn failure(self, failure: &Failure, order: &str) -> Failure {
        let text = format!("{failure}; {}", crate::print::result(Method::Cancel, order));
        if self == After::NotDone { Failure::NotDone(text) } else { Failure::Unknown(text) }
    }
}

/// The pause behind so many questions.
fn settle_pause(asks: u32) -> Nanos {
    if asks < SETTLE_ASKS { SETTLE_INTERVAL } else { SETTLE_INTERVAL_LONG }
}

/// Whether an order is as a change would have it.
fn is_changed(change: &Change, order: &Order<'_>) -> bool {
    let is =
        |wanted: Option<Decimal>, found: Option<Decimal>| wanted.is_none_or(|wanted| found == Some(wanted));
    // A price that would take liquidity is moved for an order that must not.
    let price = change.price.filter(|_| !(change.post_only || order.post_only));
    is(change.amount, Some(order.amount))
        && is(change.contracts, order.contracts.and_then(|contracts| contracts.decimal().ok()))
        && is(price, order.price.and_then(OrderPrice::limit))
        && is(change.trigger_price, order.trigger_price)
        && is(change.trigger_offset, order.trigger_offset)
        && is(change.display_amount, order.display_amount.or(order.max_show))
        && (!change.post_only || order.post_only)
        && (!change.reduce_only || order.reduce_only)
}

/// Ctrl-C while it is being found out what became of a request.
fn unanswered(failure: &Failure) -> Failure {
    match failure {
        Failure::Late(method) | Failure::Lost(method) => Failure::Unanswered(method),
        _ => Failure::Unanswered("the request"),
    }
}

/// Whether an order at the venue is as one that was sent.
fn is_as_sent(side: Side, sent: &NewOrder, found: &Order<'_>) -> bool {
    // A price that would take liquidity is moved for an order that must not.
    let is_fixed = has_limit(sent.order_type) && !sent.post_only;
    let price = sent.price.filter(|_| is_fixed).map(OrderPrice::Limit);
    // A type or a trigger that the venue has not changed by itself since.
    let is_type = found.triggered == Some(true)
        || sent.order_type == OrderType::MarketLimit
        || found.order_type == sent.order_type;
    let is_trigger =
        sent.trigger_price.is_none_or(|price| found.trigger_price.is_none_or(|own| own == price));
    is_type
        && is_trigger
        && (!sent.reduce_only || found.reduce_only)
        && *found.instrument_name.to_cow() == *sent.instrument
        && found.direction == side.into()
        && sent.amount.is_none_or(|amount| amount == found.amount)
        && price.is_none_or(|price| found.price == Some(price))
}

/// A product that is a decimal again.
fn multiplied(a: Decimal, b: Decimal) -> Option<Decimal> {
    Decimal::new(a.mantissa().checked_mul(b.mantissa())?, a.scale().checked_add(b.scale())?)
}

//! Orders: checked against the limits, sent, and found again after a lost answer.

use tickpath_deribit::codes::{Direction, Kind, OrderState, OrderType};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    CancelOrder, ClosePosition, GetInstrument, GetOpenOrders, GetOpenOrdersByInstrument, GetOrderState,
    GetPosition, GetTicker, Instrument, Order, OrderPrice, OrderReply, Position, Ticker,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{Value, check};
use tickpath_deribit::text::Text;
use tickpath_types::{Nanos, Side};

use crate::link::{Clock, push_bounded};
use crate::order::{Change, NewOrder, exceeds, has_limit, notional};
use crate::settle::{self, After, Deadline, Look, SETTLE_ASKS, SETTLE_INTERVAL, SETTLE_MORE, Sent};
use crate::shell::{Failure, Reply, Shell};
use crate::words::counted;

/// Upper bound of remembered order ids of this run; the oldest are forgotten.
const ENTERED_MAX: usize = 1_024;

/// The checks of a dry run against the venue's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    what: Vec<&'static str>,
    /// The reason if no check was possible.
    why_not: Option<String>,
}

/// Parses a result of the venue.
pub(crate) fn read<'a, T: Field<'a>>(json: &'a str) -> Result<T, Failure> {
    let unreadable = || Failure::Invalid("the venue's answer cannot be read: show 1 shows it".to_owned());
    check(json.as_bytes()).ok().and_then(|value| value.parse().ok()).ok_or_else(unreadable)
}

impl Shell {
    /// Sends an order; in a dry run returns the request instead.
    ///
    /// # Errors
    /// [`Failure`]. After a lost answer the venue is queried by the order's label, until it would reject the
    /// order: [`Failure::NotDone`] if it then has no such order.
    pub fn enter(&mut self, side: Side, mut order: NewOrder) -> Result<Reply, Failure> {
        let method = match side {
            Side::Buy => Method::Buy,
            Side::Sell => Method::Sell,
        };
        let has_own_label = order.label.is_none() && !self.link().keeps_requests();
        if has_own_label {
            self.labels += 1;
            order.label = Some(format!("tp-{:x}-{:x}-{}", Clock::unix_ms(), std::process::id(), self.labels));
        }
        let limits = self.link().config().limits;
        let has_limits = limits != crate::config::Limits::default();
        // A known instrument is checked without a query.
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
            let checked = self.check_dry(|shell| shell.check_at_venue(side, &order))?;
            return self.dry_run(method, &order.params(None), &checked);
        }
        let deadline = self.deadline()?;
        let result = match self.ask_until(deadline, method, &order.params(deadline.valid_until)) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => {
                let sent = Sent { side, order: &order, has_own_label };
                self.find_by_label(sent, deadline, failure)
            }
            result => result,
        };
        if let Err(Failure::Unknown(_) | Failure::Unanswered(_)) = &result {
            // The order may rest.
            let losses = self.link().losses();
            self.rests = Some(losses);
        }
        if let Ok(reply) = &result
            && let Ok(reply) = read::<OrderReply<'_>>(&reply.json)
        {
            let id = reply.order.order_id.to_cow().into_owned();
            if matches!(reply.order.order_state, OrderState::Open | OrderState::Untriggered) {
                let losses = self.link().losses();
                self.rests = Some(losses);
            }
            if self.is_watched {
                self.link().learn_order(id.clone());
            }
            push_bounded(&mut self.entered, id, ENTERED_MAX);
        }
        result
    }

    /// The deadline of a request that is sent now. Connects first, because the login shows the venue's clock.
    fn deadline(&mut self) -> Result<Deadline, Failure> {
        if !self.link().has_key() || self.link().keeps_requests() {
            return Ok(Deadline::default());
        }
        self.begin_ready()?;
        let link = self.link();
        let asked_ms = link.venue_ms();
        let timeout = link.config().request_timeout.0;
        let valid_until = asked_ms.map(|now| now.saturating_add(timeout.0 / 1_000_000));
        let end = valid_until.map(|_| link.clock().now() + timeout + SETTLE_MORE);
        Ok(Deadline { asked_ms, valid_until, end })
    }

    /// Sends a request with a deadline, over the connection that was just seen to be open.
    fn ask_until<'a>(
        &mut self,
        deadline: Deadline,
        method: Method,
        params: &impl Field<'a>,
    ) -> Result<Reply, Failure> {
        if deadline.valid_until.is_none() {
            return self.ask(method, params);
        }
        self.check_asked(method, params)?;
        self.ask_when_ready(method, params)
    }

    /// Changes an order.
    ///
    /// # Errors
    /// [`Failure`]. After a lost answer the order is queried: [`Failure::NotDone`] if it is unchanged.
    pub fn edit(&mut self, change: &Change) -> Result<Reply, Failure> {
        if self.link().config().limits != crate::config::Limits::default() {
            self.check_change(change)?;
        }
        if self.is_dry_run {
            let checked =
                self.check_dry(|shell| shell.check_change(change).map(|()| vec!["order", "step", "tick"]))?;
            return self.dry_run(Method::Edit, &change.params(None), &checked);
        }
        let deadline = self.deadline()?;
        let failure = match self.ask_until(deadline, Method::Edit, &change.params(deadline.valid_until)) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => failure,
            result => return result,
        };
        let look = |order: &Order<'_>| settle::of_change(change, deadline, order);
        let (json, state) = self.state_after(&failure, &change.order_id, deadline, look)?;
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
    /// Those of [`edit`](Shell::edit).
    pub fn cancel(&mut self, order_id: &str) -> Result<Reply, Failure> {
        let params = CancelOrder { order_id: Text::new(order_id) };
        if self.is_dry_run {
            return self.dry_run(Method::Cancel, &params, &Checked::default());
        }
        let failure = match self.ask(Method::Cancel, &params) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => failure,
            result => return result,
        };
        let look = |order: &Order<'_>| match order.order_state {
            OrderState::Cancelled => Look::Done,
            // An ended order cannot be cancelled.
            state if state.is_terminal() => Look::Never,
            _ => Look::NotYet,
        };
        // A cancel has no deadline at the venue.
        match self.state_after(&failure, order_id, Deadline::default(), look)? {
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
            return self.dry_run(Method::ClosePosition, &params, &Checked::default());
        }
        match self.ask(Method::ClosePosition, &params) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => {
                Err(self.what_is_left(instrument, &failure))
            }
            // The general remedy of this code is written for orders.
            Err(Failure::Refused { code, message, .. }) if code == ErrorCode::AlreadyClosed.code() => {
                Err(Failure::NotDone(format!("there is no position in {instrument} ({message}, {code})")))
            }
            result => result,
        }
    }

    /// Checks the order that would close a position against the configured limits.
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
        // Without a position, the venue's own answer is shown.
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

    /// Describes position and orders after an unanswered request to close a position: its order has no label
    /// to query, and a second one could reverse the position.
    fn what_is_left(&mut self, instrument: &str, failure: &Failure) -> Failure {
        let name = Text::new(instrument);
        let mut look = || -> Result<String, Failure> {
            // Waits for requests and fills in flight.
            self.pump(Nanos(SETTLE_INTERVAL.0 * u64::from(SETTLE_ASKS)), |_| false)?;
            let json = self.ask(Method::GetPosition, &GetPosition { instrument_name: name })?.json;
            let size = read::<Position<'_>>(&json)?.size;
            let params = GetOpenOrdersByInstrument { instrument_name: name, order_type: None };
            let json = self.ask(Method::GetOpenOrdersByInstrument, &params)?.json;
            let count = read::<List<'_, Value<'_>>>(&json)?.count();
            let are = if count == 1 { "is" } else { "are" };
            let orders = counted(count, "order");
            Ok(format!("the position in {instrument} is {size} and {orders} {are} open in it"))
        };
        match look() {
            Ok(state) => Failure::Unknown(format!("{failure}; {state}: look before it is closed again")),
            Err(Failure::Interrupted) => Failure::Unanswered(Method::ClosePosition.name()),
            Err(other) => Failure::Unknown(format!(
                "{failure}, and asking for the position failed ({other}): look at positions and orders before it is closed again"
            )),
        }
    }

    /// Returns the request that would be sent, and the checks that were made.
    pub(crate) fn dry_run<'a>(
        &self,
        method: Method,
        params: &impl Field<'a>,
        checked: &Checked,
    ) -> Result<Reply, Failure> {
        self.link().check(method, params).map_err(Failure::Invalid)?;
        let mut out = format!("{{\"dry_run\":\"{method}\",\"params\":").into_bytes();
        params.write(&mut out);
        let Checked { what, why_not } = checked;
        let why_not = why_not.as_ref().map(|why| format!(",\"not_checked\":{}", serde_json::json!(why)));
        let what = serde_json::json!(what);
        out.extend(format!(",\"checked\":{what}{}}}", why_not.unwrap_or_default()).into_bytes());
        Ok(Reply { json: String::from_utf8_lossy(&out).into_owned(), ..Reply::default() })
    }

    /// Runs checks of a dry run against the venue's data, if the venue can be queried.
    fn check_dry(
        &mut self,
        check: impl FnOnce(&mut Shell) -> Result<Vec<&'static str>, Failure>,
    ) -> Result<Checked, Failure> {
        match check(self) {
            Ok(what) => Ok(Checked { what, why_not: None }),
            Err(failure @ (Failure::NotConnected(_) | Failure::Late(_) | Failure::Lost(_))) => {
                Ok(Checked { what: Vec::new(), why_not: Some(failure.to_string()) })
            }
            Err(other) => Err(other),
        }
    }

    /// Checks an order against its instrument and the current price band; returns the checks made.
    fn check_at_venue(&mut self, side: Side, order: &NewOrder) -> Result<Vec<&'static str>, Failure> {
        let json = self.instrument(&order.instrument)?;
        let instrument: Instrument<'_> = read(&json)?;
        order.check_instrument(&instrument)?;
        let mut checked = vec!["instrument", "step"];
        let Some(price) = order.price else { return Ok(checked) };
        checked.push("tick");
        if order.order_type != OrderType::Limit {
            // The band applies when the trigger fires.
            return Ok(checked);
        }
        let name = Text::new(&order.instrument);
        let json = match self.ask(Method::Ticker, &GetTicker { instrument_name: name }) {
            Ok(reply) => reply.json,
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            // Some venues have no ticker.
            Err(_) => return Ok(checked),
        };
        let ticker: Ticker<'_> = read(&json)?;
        let (Some(min), Some(max)) = (ticker.min_price, ticker.max_price) else { return Ok(checked) };
        let is_beyond = if side == Side::Buy { price > max } else { price < min };
        if is_beyond {
            return Err(Failure::Invalid(format!(
                "price={price} is outside of the band, which is {min} to {max} now"
            )));
        }
        checked.push("band");
        Ok(checked)
    }

    /// Returns an instrument, queried once.
    pub(crate) fn instrument(&mut self, name: &str) -> Result<String, Failure> {
        if let Some(json) = self.instruments.get(name) {
            return Ok(json.clone());
        }
        let json = self.ask(Method::GetInstrument, &GetInstrument { instrument_name: Text::new(name) })?.json;
        self.instruments.insert(name.to_owned(), json.clone());
        self.link().learn([name.to_owned()]);
        Ok(json)
    }

    /// Returns the current state of an order.
    pub(crate) fn order_json(&mut self, order_id: &str) -> Result<String, Failure> {
        Ok(self.ask(Method::GetOrderState, &GetOrderState { order_id: Text::new(order_id) })?.json)
    }

    /// Checks an order against the configured limits.
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
                Failure::Limit(match needs_index(&instrument.kind) {
                    true => "the venue tells no index of it to check limits.notional_max by".to_owned(),
                    false => "no price to check limits.notional_max by: give a limit".to_owned(),
                })
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
                let are = if count == 1 { "is" } else { "are" };
                return Err(Failure::Limit(format!(
                    "{} {are} open, and limits.open_orders_max = {max}",
                    counted(count, "order")
                )));
            }
        }
        Ok(())
    }

    /// The price at which an order may trade, and the index; from the market if the order has no price.
    fn prices(
        &mut self,
        side: Side,
        order: &NewOrder,
        instrument: &Instrument<'_>,
    ) -> Result<(Option<Decimal>, Option<Decimal>), Failure> {
        // A sell order may trade above its limit; the market shows how far.
        let own = order.price.filter(|_| has_limit(order.order_type) && side == Side::Buy);
        if own.is_some() && !needs_index(&instrument.kind) {
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
        // Amount and contracts must agree, so that the larger one cannot bypass the limit.
        order.check_instrument(&instrument)?;
        self.check_limits(side, &order, &instrument, false)
    }
}

/// Whether an order's value depends on the index instead of its price.
fn needs_index(kind: &Kind) -> bool {
    matches!(kind, Kind::Option | Kind::OptionCombo | Kind::FutureCombo)
}

/// A product, if it fits a decimal.
fn multiplied(a: Decimal, b: Decimal) -> Option<Decimal> {
    Decimal::new(a.mantissa().checked_mul(b.mantissa())?, a.scale().checked_add(b.scale())?)
}

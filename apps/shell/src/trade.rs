//! Orders: checked against the limits, entered, and found again where their answer was lost.

use tickpath_deribit::codes::{Direction, OrderState, OrderType};
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    CancelOrder, ClosePosition, GetInstrument, GetOpenOrders, GetOrderState, GetOrderStateByLabel,
    GetPosition, GetTicker, Instrument, Order, OrderPrice, Position, Ticker,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{Value, check};
use tickpath_deribit::text::Text;
use tickpath_types::{Nanos, Side};

use crate::link::Clock;
use crate::order::{Change, NewOrder, currency_of, exceeds, has_limit, notional};
use crate::shell::{Failure, Reply, Shell};

/// How far the venue's clock may be behind ours, in milliseconds, for an order to be one of this request.
const CLOCKS_APART_MS: u64 = 60_000;
/// A request whose answer was lost may still be on its way: so often its order is asked for again, with this pause.
const SETTLE_ASKS: u32 = 5;
const SETTLE_INTERVAL: Nanos = Nanos::from_millis(200);

/// Reads a result that the venue gave.
pub(crate) fn read<'a, T: Field<'a>>(json: &'a str) -> Result<T, Failure> {
    let unreadable = || Failure::Invalid("the venue's answer cannot be read: show 1 shows it".to_owned());
    check(json.as_bytes()).ok().and_then(|value| value.parse().ok()).ok_or_else(unreadable)
}

impl Shell {
    /// Enters an order; in a dry run says what would be sent.
    ///
    /// # Errors
    /// [`Failure`]. Where the answer was lost the venue is asked by the order's label: [`Failure::NotDone`] when it has none.
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
        if has_limits || (order.amount.is_some() && order.contracts.is_some()) {
            let json = self.instrument(&order.instrument)?;
            let instrument: Instrument<'_> = read(&json)?;
            order.check_instrument(&instrument)?;
            if has_limits {
                self.check_limits(side, &order, &instrument, true)?;
            }
        }
        if self.is_dry_run {
            return self.dry_run(method, &order.params());
        }
        let asked_ms = Clock::unix_ms();
        match self.ask(method, &order.params()) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => {
                self.find_by_label(&order, asked_ms, failure)
            }
            result => result,
        }
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
            return self.dry_run(Method::Edit, &change.params());
        }
        let failure = match self.ask(Method::Edit, &change.params()) {
            Err(failure) if failure.is_unsure() && !self.link().keeps_requests() => failure,
            result => return result,
        };
        let (json, is_done) = self.state_after(&failure, &change.order_id, |order| {
            let is_amount = change.amount.is_none_or(|amount| order.amount == amount);
            let is_price = change.price.is_none_or(|price| order.price == Some(OrderPrice::Limit(price)));
            order.replaced && is_amount && is_price && change.contracts.is_none()
        })?;
        match is_done {
            true => Ok(Reply { json: format!("{{\"order\":{json},\"trades\":[]}}"), ..Reply::default() }),
            false => {
                Err(Failure::NotDone(format!("{failure}; {}", crate::print::result(Method::Cancel, &json))))
            }
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
        match self.state_after(&failure, order_id, is_cancelled)? {
            (json, true) => Ok(Reply { json, ..Reply::default() }),
            (json, false) => {
                Err(Failure::NotDone(format!("{failure}; {}", crate::print::result(Method::Cancel, &json))))
            }
        }
    }

    /// Closes a position, at the market or at a limit.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn close(&mut self, instrument: &str, price: Option<Decimal>) -> Result<Reply, Failure> {
        let order_type = if price.is_some() { OrderType::Limit } else { OrderType::Market };
        let params = ClosePosition { instrument_name: Text::new(instrument), order_type, price };
        let limits = self.link().config().limits;
        if let Some(max) = limits.order_size_max {
            let name = Text::new(instrument);
            let json = self.ask(Method::GetPosition, &GetPosition { instrument_name: name })?.json;
            let position: Position<'_> = read(&json)?;
            let size = (i128::from(position.size.mantissa()).abs(), position.size.scale());
            if exceeds(size, max.0) {
                let size = position.size;
                return Err(Failure::Limit(format!(
                    "a position of {size} is above limits.order_size_max = {max}: close it in parts with reduce_only"
                )));
            }
        }
        if self.is_dry_run {
            return self.dry_run(Method::ClosePosition, &params);
        }
        self.ask(Method::ClosePosition, &params)
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
        Ok(json)
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
        if own.is_some() && !instrument.kind.text().starts_with("option") {
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
            instrument: before.instrument_name.to_cow().into_owned(),
            amount: match change.contracts {
                Some(_) => change.amount,
                None => Some(change.amount.unwrap_or(before.amount)),
            },
            contracts: change.contracts,
            order_type: before.order_type,
            price: change.price.or(before.price.and_then(OrderPrice::limit)),
            label: None,
            time_in_force: None,
            post_only: false,
            reject_post_only: false,
            reduce_only: false,
            mmp: false,
            display_amount: None,
            trigger: None,
            trigger_price: change.trigger_price.or(before.trigger_price),
            trigger_offset: None,
        };
        let side = if before.direction == Direction::Sell { Side::Sell } else { Side::Buy };
        let instrument = self.instrument(&order.instrument)?;
        self.check_limits(side, &order, &read(&instrument)?, false)
    }

    /// An order whose answer was lost, asked for by its label: for a while, as it may still be on its way.
    fn find_by_label(&mut self, order: &NewOrder, asked_ms: u64, failure: Failure) -> Result<Reply, Failure> {
        let label = order.label.as_deref().unwrap_or_default();
        let currency = Text::new(currency_of(&order.instrument));
        let params = GetOrderStateByLabel { currency, label: Some(Text::new(label)) };
        let of_this_request = |value: &Value<'_>| {
            let order: Order<'_> = value.parse().ok()?;
            (order.creation_timestamp + CLOCKS_APART_MS >= asked_ms).then_some(order.creation_timestamp)
        };
        for _ in 0..=SETTLE_ASKS {
            let json = match self.ask(Method::GetOrderStateByLabel, &params) {
                Ok(reply) => reply.json,
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(other) => {
                    return Err(Failure::NotDone(format!(
                        "{failure}, and asking by its label {label} failed ({other}): look at orders before it is sent again"
                    )));
                }
            };
            let orders: List<'_, Value<'_>> = read(&json)?;
            let found = orders.iter().map_while(Result::ok).filter(|value| of_this_request(value).is_some());
            if let Some(order) = found.max_by_key(of_this_request) {
                let json = format!("{{\"order\":{},\"trades\":[]}}", order.text());
                return Ok(Reply { json, ..Reply::default() });
            }
            self.pump(SETTLE_INTERVAL, |_| false)?;
        }
        Err(Failure::NotDone(format!(
            "{failure}; the venue has no order with its label {label}: it was not entered"
        )))
    }

    /// The state of an order whose change or cancel got no answer, and whether it is as wanted; asked for as an order is.
    fn state_after(
        &mut self,
        failure: &Failure,
        order_id: &str,
        is_as_wanted: impl Fn(&Order<'_>) -> bool,
    ) -> Result<(String, bool), Failure> {
        let id = Text::new(order_id);
        let mut asks_left = SETTLE_ASKS;
        loop {
            match self.ask(Method::GetOrderState, &GetOrderState { order_id: id }) {
                Ok(reply) => {
                    let is_done = is_as_wanted(&read(&reply.json)?);
                    if is_done || asks_left == 0 {
                        return Ok((reply.json, is_done));
                    }
                }
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(other) => {
                    return Err(Failure::NotDone(format!(
                        "{failure}, and asking for the order failed ({other})"
                    )));
                }
            }
            asks_left -= 1;
            self.pump(SETTLE_INTERVAL, |_| false)?;
        }
    }
}

/// A product that is a decimal again.
fn multiplied(a: Decimal, b: Decimal) -> Option<Decimal> {
    Decimal::new(a.mantissa().checked_mul(b.mantissa())?, a.scale().checked_add(b.scale())?)
}

//! The interface of a strategy to its engine during a call.

use std::ops::Deref;

use tickpath_timing::Function;
use tickpath_types::{
    CancelOrder, Instrument, InstrumentId, Nanos, OrderRequest, Price, Qty, Side, TimeInForce, UserRefNum,
};

use crate::sink::RequestPort;
use crate::{
    Bbo, Desk, Limits, NewOrder, OpenOrders, OrderError, OwnOrder, Position, ProposedOrder, QueueFull,
    RiskResult,
};

/// The reason why a request of a strategy was not sent. Every refusal is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request would break a risk limit.
    #[error("refused by risk: {}", .0.name())]
    Risk(RiskResult),
    /// The order manager could not build the request.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The engine has no instrument with this id.
    #[error("no such instrument")]
    UnknownInstrument,
    /// The price is not a multiple of the tick size.
    #[error("the price is not a multiple of the tick size")]
    PriceNotOnTick,
    /// The price is outside the instrument's collar.
    #[error("the price is outside the collar")]
    PriceOutsideCollar,
    /// The quantity is zero, not a multiple of the lot size, or above the instrument's maximum.
    #[error("the quantity is zero, not a multiple of the lot size, or above the instrument's maximum")]
    InvalidQty,
    /// The order rate limit is reached: retry later.
    #[error("more orders than orders_per_second")]
    RateLimited,
    /// The queue to the order gateway is full: retry later.
    #[error("the queue to the order gateway is full")]
    QueueFull,
    /// The engine has stopped: only cancels are sent.
    #[error("the engine has stopped")]
    Stopped,
    /// The connection to the venue is lost: retry when it is back. Until then not even cancels are sent.
    #[error("the connection to the venue is lost")]
    NotConnected,
}

impl From<QueueFull> for Refusal {
    fn from(_: QueueFull) -> Refusal {
        Refusal::QueueFull
    }
}

/// The engine's interface to a strategy during one call: it gives read access to the [`Desk`] and takes
/// requests.
pub struct Context<'a> {
    desk: &'a mut Desk,
    port: &'a mut dyn RequestPort,
    now: Nanos,
    is_timed: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(desk: &'a mut Desk, port: &'a mut dyn RequestPort, now: Nanos, is_timed: bool) -> Self {
        Context { desk, port, now, is_timed }
    }

    /// Returns the time of this call, on the program's clock.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// Returns the best bid and ask of an instrument; both are empty when there is no such instrument.
    #[must_use]
    pub fn bbo(&self, instrument: InstrumentId) -> Bbo {
        self.desk.features(instrument).map_or(Bbo::default(), |features| *features.bbo())
    }

    /// Returns the position in an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn position(&self, instrument: InstrumentId) -> Option<&Position> {
        self.desk.positions.get(instrument)
    }

    /// Returns the risk limits of an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn limits(&self, instrument: InstrumentId) -> Option<&Limits> {
        self.desk.risk.limits(instrument)
    }

    /// Returns the own open order with this UserRefNum; `None` when there is none.
    #[must_use]
    pub fn order(&self, user_ref: UserRefNum) -> Option<&OwnOrder> {
        self.desk.orders.order(user_ref)
    }

    /// Returns own open orders of an instrument and side, oldest first.
    #[must_use]
    pub fn orders(&self, instrument: InstrumentId, side: Side) -> OpenOrders<'_> {
        self.desk.orders.open(instrument, side)
    }

    /// Returns the number of own open orders of an instrument, both sides.
    #[must_use]
    pub fn open_count(&self, instrument: InstrumentId) -> u32 {
        self.desk.orders.open_count(instrument)
    }

    /// Enters a buy order that rests for the day.
    ///
    /// # Errors
    /// As [`Context::enter`].
    pub fn buy(&mut self, instrument: InstrumentId, qty: Qty, price: Price) -> Result<UserRefNum, Refusal> {
        self.enter(&NewOrder::limit(instrument, Side::Buy, qty, price))
    }

    /// Enters a sell order that rests for the day.
    ///
    /// # Errors
    /// As [`Context::enter`].
    pub fn sell(&mut self, instrument: InstrumentId, qty: Qty, price: Price) -> Result<UserRefNum, Refusal> {
        self.enter(&NewOrder::limit(instrument, Side::Sell, qty, price))
    }

    /// Enters an order, and sends it before the call returns.
    ///
    /// # Errors
    /// A [`Refusal`] if the request was not sent; then only a counter of refusals has changed.
    pub fn enter(&mut self, order: &NewOrder) -> Result<UserRefNum, Refusal> {
        let result = self.try_enter(order);
        self.count(result)
    }

    /// Replaces an order's price and intended size, which includes the quantity already executed. The order
    /// loses its queue position and continues under the returned UserRefNum.
    ///
    /// # Errors
    /// A [`Refusal`] if the request was not sent; then only a counter of refusals has changed.
    pub fn replace(&mut self, user_ref: UserRefNum, qty: Qty, price: Price) -> Result<UserRefNum, Refusal> {
        let result = self.try_replace(user_ref, qty, price);
        self.count(result)
    }

    /// Cancels an order. Neither risk limits, the rate limit nor a stop block a cancel.
    ///
    /// # Errors
    /// A [`Refusal`] if the cancel was not sent: the order is not open, its cancel is pending, the queue is
    /// full, or the connection is lost.
    pub fn cancel(&mut self, user_ref: UserRefNum) -> Result<(), Refusal> {
        self.reduce(user_ref, Qty::ZERO)
    }

    /// Reduces an order to an intended size, which includes the executed quantity. The queue position is
    /// kept.
    ///
    /// # Errors
    /// As [`Context::cancel`], and when the size is not between the executed quantity and the present size
    /// ([`OrderError::InvalidQty`]) or not in lots ([`Refusal::InvalidQty`]): the venue would not answer such
    /// a request.
    pub fn reduce(&mut self, user_ref: UserRefNum, qty: Qty) -> Result<(), Refusal> {
        let result = self.try_reduce(user_ref, qty);
        self.count(result)
    }

    /// Cancels every open order that has no pending cancel. Returns the number of orders for which the
    /// queue was full; while the connection is lost, the number of all open orders.
    pub fn cancel_all(&mut self) -> usize {
        if !self.desk.is_connected {
            return self.desk.orders.total_open();
        }
        let (mut slot_index, mut left) = (0, 0);
        while let Some((at, user_ref)) = self.desk.orders.next_open(slot_index) {
            slot_index = at + 1;
            left += usize::from(self.cancel_unless_pending(user_ref).is_err());
        }
        left
    }

    fn cancel_unless_pending(&mut self, user_ref: UserRefNum) -> Result<(), Refusal> {
        match self.desk.orders.prepare_cancel(user_ref, Qty::ZERO) {
            Ok(cancel) => {
                let result = self.send_cancel(&cancel);
                self.count(result)
            }
            Err(_) => Ok(()),
        }
    }

    fn try_enter(&mut self, order: &NewOrder) -> Result<UserRefNum, Refusal> {
        self.check_running()?;
        let instrument = self.desk.instrument(order.instrument).ok_or(Refusal::UnknownInstrument)?;
        let takes_any_price = order.price == Price::MARKET && order.time_in_force == TimeInForce::Ioc;
        if !takes_any_price {
            check_price(instrument, order.price)?;
        }
        check_qty(instrument, order.qty)?;
        self.check_rate()?;
        self.check_risk(
            order.instrument,
            ProposedOrder { side: order.side, qty: order.qty, added_qty: order.qty, added_orders: 1 },
        )?;
        let enter = self.desk.orders.prepare_enter(order)?;
        self.port.send(&OrderRequest::Enter(enter))?;
        self.desk.orders.record_enter(&enter);
        self.desk.rate.take(self.now);
        self.desk.counters.enters += 1;
        Ok(enter.user_ref)
    }

    fn try_replace(&mut self, user_ref: UserRefNum, qty: Qty, price: Price) -> Result<UserRefNum, Refusal> {
        self.check_running()?;
        let orig = *self.desk.orders.order(user_ref).ok_or(OrderError::UnknownOrder)?;
        let instrument = self.desk.instrument(orig.instrument).ok_or(Refusal::UnknownInstrument)?;
        check_price(instrument, price)?;
        check_qty(instrument, qty)?;
        self.check_rate()?;
        let replace = self.desk.orders.prepare_replace(user_ref, qty, price)?;
        self.check_risk(
            orig.instrument,
            ProposedOrder {
                side: orig.side,
                qty: Qty(qty.0 - orig.cum_qty.0),
                added_qty: Qty(qty.0.saturating_sub(orig.qty.0)),
                added_orders: 0,
            },
        )?;
        self.port.send(&OrderRequest::Replace(replace))?;
        self.desk.orders.record_replace(&replace);
        self.desk.rate.take(self.now);
        self.desk.counters.replaces += 1;
        Ok(replace.user_ref)
    }

    fn try_reduce(&mut self, user_ref: UserRefNum, qty: Qty) -> Result<(), Refusal> {
        let cancel = self.desk.orders.prepare_cancel(user_ref, qty)?;
        if !qty.is_zero() {
            self.check_lots(user_ref, qty)?;
        }
        self.send_cancel(&cancel)
    }

    fn check_lots(&self, user_ref: UserRefNum, qty: Qty) -> Result<(), Refusal> {
        let order = self.desk.orders.order(user_ref).ok_or(OrderError::UnknownOrder)?;
        let instrument = self.desk.instrument(order.instrument).ok_or(Refusal::UnknownInstrument)?;
        check_qty(instrument, qty)
    }

    fn send_cancel(&mut self, cancel: &CancelOrder) -> Result<(), Refusal> {
        self.check_connected()?;
        self.port.send(&OrderRequest::Cancel(*cancel))?;
        self.desk.orders.record_cancel(cancel);
        self.desk.counters.cancels += 1;
        Ok(())
    }

    const fn check_running(&self) -> Result<(), Refusal> {
        if self.desk.stopped.is_some() { Err(Refusal::Stopped) } else { self.check_connected() }
    }

    const fn check_connected(&self) -> Result<(), Refusal> {
        if self.desk.is_connected { Ok(()) } else { Err(Refusal::NotConnected) }
    }

    fn check_rate(&self) -> Result<(), Refusal> {
        if self.desk.rate.has_token(self.now) { Ok(()) } else { Err(Refusal::RateLimited) }
    }

    fn check_risk(&mut self, instrument: InstrumentId, order: ProposedOrder) -> Result<(), Refusal> {
        let start = if self.is_timed { self.port.ticks() } else { 0 };
        let exposure = self.desk.exposure(instrument, order.side);
        let result = self.desk.risk.check(instrument, &order, &exposure);
        if self.is_timed {
            let ticks = self.port.ticks().saturating_sub(start);
            self.port.time(Function::Risk, ticks);
        }
        if result == RiskResult::Allowed { Ok(()) } else { Err(Refusal::Risk(result)) }
    }

    fn count<R>(&mut self, result: Result<R, Refusal>) -> Result<R, Refusal> {
        if let Err(refusal) = &result {
            let counters = &mut self.desk.counters;
            *match refusal {
                Refusal::Risk(_) => &mut counters.refused_risk,
                Refusal::Order(_) => &mut counters.refused_order,
                Refusal::RateLimited => &mut counters.refused_rate,
                Refusal::QueueFull => &mut counters.refused_queue,
                Refusal::Stopped => &mut counters.refused_stopped,
                Refusal::NotConnected => &mut counters.refused_disconnected,
                Refusal::UnknownInstrument
                | Refusal::PriceNotOnTick
                | Refusal::PriceOutsideCollar
                | Refusal::InvalidQty => &mut counters.refused_invalid,
            } += 1;
        }
        result
    }
}

impl Deref for Context<'_> {
    type Target = Desk;

    #[inline]
    fn deref(&self) -> &Desk {
        self.desk
    }
}

fn check_price(instrument: &Instrument, price: Price) -> Result<(), Refusal> {
    if !instrument.is_on_tick(price) {
        Err(Refusal::PriceNotOnTick)
    } else if !instrument.is_within_collar(price) {
        Err(Refusal::PriceOutsideCollar)
    } else {
        Ok(())
    }
}

const fn check_qty(instrument: &Instrument, qty: Qty) -> Result<(), Refusal> {
    if instrument.is_tradable_qty(qty) { Ok(()) } else { Err(Refusal::InvalidQty) }
}

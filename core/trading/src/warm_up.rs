//! The warm-up: a second instance of a strategy decides on artificial data, to keep code in the caches.

use tickpath_timing::Tracer;
use tickpath_types::{
    BookHealth, CancelReason, Instrument, MarketUpdate, Nanos, OrderAttributes, OrderEventKind, OrderId,
    OrderRequest, OrderState, PriceLevel, Qty, Side, TimeInForce, UpdateKind, UserRefNum,
};

use crate::{EngineConfig, RequestSink, Strategy, TradeEngine};

/// Maximum number of open orders in the warm-up's engine.
const OPEN_ORDERS_MAX: usize = 64;
/// UserRefNum after which numbering restarts at 1, long before the UserRefNums run out.
const USER_REF_MAX: u32 = 1 << 31;
/// Quantity at each best price and of each trade in the artificial market.
const QTY: u64 = 1_000_000;

/// A strategy and a second instance of it for the [warm-up](WarmUpEngine).
///
/// The second instance decides repeatedly while the engine is idle. It must act only through its context.
/// Without it there is no warm-up, and decisions after a pause take longer.
#[derive(Clone, Debug)]
pub struct WarmUp<S> {
    /// The instance that trades.
    pub strategy: S,
    /// The instance that decides on artificial data.
    pub instance: Option<S>,
}

impl<S> WarmUp<S> {
    /// Creates two instances with `make`.
    pub fn of(mut make: impl FnMut() -> S) -> WarmUp<S> {
        WarmUp { strategy: make(), instance: Some(make()) }
    }

    /// Converts both instances, for example into boxes.
    pub fn map<M>(self, mut make: impl FnMut(S) -> M) -> WarmUp<M> {
        WarmUp { strategy: make(self.strategy), instance: self.instance.map(make) }
    }
}

/// Creates a strategy without a warm-up.
impl<S> From<S> for WarmUp<S> {
    fn from(strategy: S) -> WarmUp<S> {
        WarmUp { strategy, instance: None }
    }
}

/// A second engine of the same type as one that trades. Its artificial market moves with every update, and
/// its artificial venue accepts every request and executes nothing.
///
/// Decisions are rare even while updates are frequent. Between two decisions, other code and programs replace
/// the contents of the processor's caches and branch predictors. The next decision then takes several times
/// as long. This engine runs the same code on artificial data, so that the code stays in the caches.
#[derive(Debug)]
pub struct WarmUpEngine<S, T> {
    engine: TradeEngine<S, T>,
    instrument: Instrument,
    step: u64,
    user_ref_max: u32,
}

impl<S: Strategy, T: Tracer> WarmUpEngine<S, T> {
    /// Creates the warm-up of `engine` with a second instance of its strategy; `None` if it has no
    /// instruments.
    #[must_use]
    pub fn of(engine: &TradeEngine<S, T>, instance: S) -> Option<WarmUpEngine<S, T>> {
        WarmUpEngine::with_user_ref_max(USER_REF_MAX, engine, instance)
    }

    /// Creates a warm-up whose UserRefNums restart after `user_ref_max`.
    pub(crate) fn with_user_ref_max(
        user_ref_max: u32,
        engine: &TradeEngine<S, T>,
        instance: S,
    ) -> Option<WarmUpEngine<S, T>> {
        let desk = engine.desk();
        let instrument = *desk.instruments().first()?;
        let config = EngineConfig {
            max_open_orders: OPEN_ORDERS_MAX,
            orders_per_second: u32::MAX,
            ..EngineConfig::default()
        };
        let limits = desk.instruments().iter().map(|instrument| desk.risk().limits(instrument.id).copied());
        let limits: Option<Vec<_>> = limits.collect();
        let tracer = engine.tracer().warm_up_instance();
        let engine = TradeEngine::new(&config, desk.instruments(), &limits?, instance, tracer).ok()?;
        Some(WarmUpEngine { engine, instrument, step: 0, user_ref_max })
    }

    /// Makes the engine handle one artificial update. Its requests go to `sink`, and must be
    /// [answered](Self::answer).
    pub fn decide(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.step += 1;
        let update = self.update();
        self.engine.handle_market(&update, now, sink);
    }

    /// Returns the next update: the market moves up and down a few ticks, and every second update is a trade.
    fn update(&self) -> MarketUpdate {
        let tick = self.instrument.tick_size.0;
        let bid = self.instrument.reference_price.0 + tick * (self.step % 4) as i64;
        let ask = bid + 2 * tick;
        let is_trade = self.step.is_multiple_of(2);
        MarketUpdate {
            sequence: self.step,
            ts_event: self.step,
            order_id: self.step,
            price: ask,
            qty: QTY,
            bid: PriceLevel { price: bid, qty: QTY },
            ask: PriceLevel { price: ask, qty: QTY },
            instrument: self.instrument.id.0,
            kind: if is_trade { UpdateKind::Trade } else { UpdateKind::Add } as u8,
            side: 1,
            health: BookHealth::Live as u8,
            ..MarketUpdate::default()
        }
    }

    /// Answers a request like a venue on which nothing trades.
    pub fn answer(&mut self, request: &OrderRequest, now: Nanos, sink: &mut impl RequestSink<T>) {
        let order_id = OrderId(self.step);
        let known = self.engine.desk().orders().order(request.user_ref()).copied();
        match *request {
            OrderRequest::Enter(order) => {
                self.deliver(
                    OrderEventKind::Accepted { order, order_id, state: OrderState::Live },
                    now,
                    sink,
                );
                if order.time_in_force == TimeInForce::Ioc {
                    self.deliver_cancel(
                        order.user_ref,
                        order.qty,
                        CancelReason::ImmediateOrCancel,
                        now,
                        sink,
                    );
                }
            }
            OrderRequest::Replace(replace) => {
                let side = known.map_or(Side::Buy, |order| order.side);
                let OrderAttributes { capacity, cross_type, .. } = replace.attributes;
                let order = replace.entered(self.instrument.id, side, capacity, cross_type);
                let orig_user_ref = replace.orig_user_ref;
                let state = OrderState::Live;
                self.deliver(OrderEventKind::Replaced { order, orig_user_ref, order_id, state }, now, sink);
            }
            OrderRequest::Cancel(cancel) => {
                let decrement = Qty(known.map_or(0, |order| order.qty.0.saturating_sub(cancel.qty.0)));
                self.deliver_cancel(cancel.user_ref, decrement, CancelReason::User, now, sink);
            }
            // No strategy sends these.
            OrderRequest::Modify(_) | OrderRequest::MassCancel(_) | OrderRequest::SetOrderEntry(_) => {}
        }
        if request.user_ref().0 > self.user_ref_max {
            self.engine.reset_orders();
        }
    }

    fn deliver_cancel(
        &mut self,
        user_ref: UserRefNum,
        decrement: Qty,
        reason: CancelReason,
        now: Nanos,
        sink: &mut impl RequestSink<T>,
    ) {
        self.deliver(OrderEventKind::Canceled { user_ref, decrement, reason }, now, sink);
    }

    fn deliver(&mut self, event: OrderEventKind, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.engine.handle_order_event(&event, Nanos::ZERO, now, sink);
    }

    /// Returns the engine that decides on artificial data.
    #[cfg(test)]
    pub(crate) const fn engine(&self) -> &TradeEngine<S, T> {
        &self.engine
    }

    /// Returns the warm-up's tracer. Discard its timestamps, since they measure no real decision.
    pub const fn tracer_mut(&mut self) -> &mut T {
        self.engine.tracer_mut()
    }
}

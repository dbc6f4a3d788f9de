//! The trade engine. Inputs are market data, answers of the venue and time; outputs are requests.

use tickpath_faults::failpoint;
use tickpath_timing::{Function, Sampler, Tracer};
use tickpath_types::{
    BookHealth, Instrument, MarketUpdate, Nanos, OrderEventKind, OrderRequest, Sequence, UpdateKind,
    UserRefNum,
};

use crate::sink::Port;
use crate::{
    ConfigError, Context, Desk, EngineConfig, GatewayEvent, Limits, OrderUpdate, RequestSink, StopReason,
    Strategy,
};

/// The features and the strategy are timed in one of `2^FUNCTION_TIMER_SHIFT` market updates.
const FUNCTION_TIMER_SHIFT: u32 = 4;

/// Runs one strategy on one session of one venue.
///
/// Performs no IO and reads no clock. Each `handle_*` may send requests through its sink; `now` is the
/// program's clock and must not go back.
#[derive(Debug)]
pub struct TradeEngine<S, T> {
    strategy: S,
    tracer: T,
    desk: Desk,
    sampler: Sampler,
    silence_stop: Option<Nanos>,
    disconnect_stop: Option<Nanos>,
    disconnected_at: Option<Nanos>,
    /// Time of the latest market data; before the first, time of the start.
    last_market_data_at: Option<Nanos>,
}

impl<S: Strategy, T: Tracer> TradeEngine<S, T> {
    /// Creates an engine. The limits of `instruments[i]` are `limits[i]`.
    ///
    /// # Errors
    /// [`ConfigError`] when the settings are inconsistent.
    pub fn new(
        config: &EngineConfig,
        instruments: &[Instrument],
        limits: &[Limits],
        strategy: S,
        tracer: T,
    ) -> Result<Self, ConfigError> {
        Ok(TradeEngine {
            strategy,
            tracer,
            desk: Desk::new(config, instruments, limits)?,
            sampler: Sampler::one_in_pow2(FUNCTION_TIMER_SHIFT),
            silence_stop: config.silence_stop,
            disconnect_stop: config.disconnect_stop,
            disconnected_at: None,
            last_market_data_at: None,
        })
    }

    /// Sets the UserRefNum of the next order, as reported by the venue. Lower numbers belong to orders of an
    /// earlier run, which this engine does not know. Call this before the start.
    #[cold]
    pub fn handle_numbering(&mut self, first: UserRefNum) {
        self.desk.orders.number_from(first);
    }

    /// Starts the strategy after the session's login. The time without market data is counted from `now`.
    pub fn handle_start(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.last_market_data_at = Some(now);
        self.disconnected_at = None;
        if self.desk.stopped.is_none() {
            self.call(now, sink, None, false, |strategy, cx| strategy.on_start(cx));
        }
    }

    /// Stops the engine if the first login takes longer than [`EngineConfig::disconnect_stop`], counted from
    /// the first call. Call this repeatedly until the login.
    #[cold]
    pub fn handle_wait(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.disconnected_at.get_or_insert(now);
        if self.is_disconnect_overdue(now) {
            self.stop(StopReason::Disconnected, now, sink);
        }
    }

    /// Handles one market update. After the last update of a packet, the strategy decides on each instrument
    /// that the packet changed.
    ///
    /// Never inlined, so that the warm-up runs the same code as live trading.
    #[inline(never)]
    pub fn handle_market(&mut self, update: &MarketUpdate, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.last_market_data_at = Some(now);
        let is_timed = T::ENABLED && self.sampler.is_due();
        let start = if is_timed { self.tracer.now() } else { 0 };
        let is_known = self.desk.apply_market(update);
        if is_known && update.kind() == Some(UpdateKind::Trade) && self.desk.stopped.is_none() {
            self.strategy.on_trade(update, &self.desk);
        }
        let applied = if is_timed { self.tracer.now() } else { 0 };
        if update.ends_packet() {
            self.evaluate(now, sink, is_timed);
        }
        if is_timed && is_known {
            let end = self.tracer.now();
            self.tracer.time(Function::Features, applied.saturating_sub(start));
            if update.ends_packet() {
                self.tracer.time(Function::Strategy, end.saturating_sub(applied));
            }
        }
    }

    /// Ends a packet: the strategy decides on each instrument that the packet changed.
    #[inline]
    fn evaluate(&mut self, now: Nanos, sink: &mut impl RequestSink<T>, is_timed: bool) {
        let mut index = 0;
        while let Some((instrument, message)) = self.desk.end_packet(index) {
            index += 1;
            if self.desk.stopped.is_none() {
                self.call(now, sink, message, is_timed, |strategy, cx| strategy.on_market(instrument, cx));
            }
        }
        self.desk.clear_changed();
    }

    /// Marks every book as stale, because market updates were lost. The next update of an instrument corrects
    /// its state, since each update carries the best prices.
    #[cold]
    pub fn handle_lost_updates(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        let count = self.desk.instruments.len();
        for instrument in 1..=count {
            let has_more = u8::from(instrument < count);
            let (instrument, kind) = (instrument as u16, UpdateKind::Status as u8);
            let health = BookHealth::Stale as u8;
            let update = MarketUpdate { instrument, kind, health, has_more, ..MarketUpdate::default() };
            self.handle_market(&update, now, sink);
        }
    }

    /// Handles one answer or report of the venue; `ts_event` is the venue's time of it.
    #[inline(never)]
    pub fn handle_order_event(
        &mut self,
        event: &OrderEventKind,
        ts_event: Nanos,
        now: Nanos,
        sink: &mut impl RequestSink<T>,
    ) {
        failpoint!(AnswersWhileAwayForgotten => if !self.desk.is_connected { return });
        let update = self.desk.apply_order_event(event, ts_event);
        let orphan = self.desk.poll_orphan();
        self.notify(update, now, sink);
        self.notify(orphan, now, sink);
    }

    /// Handles an event of the order gateway.
    pub fn handle_gateway_event(&mut self, event: &GatewayEvent, now: Nanos, sink: &mut impl RequestSink<T>) {
        match event {
            GatewayEvent::Answer { kind, ts } => self.handle_order_event(kind, *ts, now, sink),
            GatewayEvent::Unsent(request) => self.handle_unsent(request, now, sink),
            GatewayEvent::Disconnected => self.handle_disconnect(now),
            GatewayEvent::Reconnected => self.handle_reconnect(),
            GatewayEvent::Unresolved => self.handle_dropped_request(),
            GatewayEvent::Reconciled => self.handle_reconciled(now, sink),
        }
    }

    /// Handles a lost connection to the venue. Own orders may execute meanwhile, and their reports come
    /// later. Requests are refused until [`handle_reconnect`](Self::handle_reconnect). Unanswered requests
    /// have an unknown status until their answer or [`handle_reconciled`](Self::handle_reconciled).
    #[cold]
    pub fn handle_disconnect(&mut self, now: Nanos) {
        self.disconnected_at.get_or_insert(now);
        self.desk.is_connected = false;
        self.desk.orders.mark_unresolved();
    }

    /// Handles a notice that the venue dropped a request; which one is unknown. All unanswered requests have
    /// an unknown status until their answer or [`handle_reconciled`](Self::handle_reconciled).
    #[cold]
    pub fn handle_dropped_request(&mut self) {
        self.desk.orders.mark_unresolved();
    }

    /// Handles the restored connection to the venue.
    #[cold]
    pub fn handle_reconnect(&mut self) {
        self.disconnected_at = None;
        self.desk.is_connected = true;
        failpoint!(OrdersForgottenAtReconnect => self.desk.orders.clear_open());
    }

    /// Ends a reconciliation: the venue has answered all requests that it received. Requests still unanswered
    /// did not reach it or were dropped. The strategy receives a rejection for each of them, as if from the
    /// venue. An order whose cancel is rejected stays open.
    #[cold]
    pub fn handle_reconciled(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        failpoint!(UnansweredWaitForEver => return);
        let mut from = 0;
        while let Some((slot_index, update)) = self.desk.give_up_next(from) {
            from = slot_index + 1;
            self.notify(update, now, sink);
        }
    }

    /// Handles a request of this engine that was not sent, because the connection was lost first. The
    /// strategy receives a rejection, as if from the venue.
    #[cold]
    pub fn handle_unsent(&mut self, request: &OrderRequest, now: Nanos, sink: &mut impl RequestSink<T>) {
        let update = self.desk.apply_unsent(request);
        self.notify(update, now, sink);
    }

    fn notify(&mut self, update: Option<OrderUpdate>, now: Nanos, sink: &mut impl RequestSink<T>) {
        if let Some(update) = update {
            self.call(now, sink, None, false, |strategy, cx| strategy.on_order(&update, cx));
        }
    }

    /// Stops the engine if market data or the connection is missing for too long, else calls the strategy's
    /// `on_timer`. After a stop, resends cancels that a full queue refused. Call it every few milliseconds.
    pub fn handle_timer(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        if self.is_silent(now) {
            self.stop(StopReason::Silence, now, sink);
        } else if self.is_disconnect_overdue(now) {
            self.stop(StopReason::Disconnected, now, sink);
        } else if self.desk.stopped.is_some() {
            self.call(now, sink, None, false, |_, cx| _ = cx.cancel_all());
        } else {
            self.call(now, sink, None, false, |strategy, cx| strategy.on_timer(now, cx));
        }
    }

    /// Stops trading: cancels every own order and sends no new one. A later stop keeps the first reason.
    pub fn stop(&mut self, reason: StopReason, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.desk.stopped.get_or_insert(reason);
        self.call(now, sink, None, false, |_, cx| _ = cx.cancel_all());
    }

    fn is_silent(&self, now: Nanos) -> bool {
        self.is_overdue(now, self.silence_stop, self.last_market_data_at)
    }

    fn is_disconnect_overdue(&self, now: Nanos) -> bool {
        self.is_overdue(now, self.disconnect_stop, self.disconnected_at)
    }

    /// Returns true if the engine trades and `limit` has passed since `since`.
    fn is_overdue(&self, now: Nanos, limit: Option<Nanos>, since: Option<Nanos>) -> bool {
        self.desk.stopped.is_none()
            && limit.zip(since).is_some_and(|(limit, since)| now.since(since) >= limit)
    }

    fn call(
        &mut self,
        now: Nanos,
        sink: &mut impl RequestSink<T>,
        trigger: Option<Sequence>,
        is_timed: bool,
        call: impl FnOnce(&mut S, &mut Context<'_>),
    ) {
        sink.set_trigger(trigger);
        let mut port = Port { sink, tracer: &mut self.tracer };
        call(&mut self.strategy, &mut Context::new(&mut self.desk, &mut port, now, is_timed));
    }

    /// Returns the strategy.
    #[must_use]
    pub const fn strategy(&self) -> &S {
        &self.strategy
    }

    /// Returns the strategy, to change its settings between calls.
    pub const fn strategy_mut(&mut self) -> &mut S {
        &mut self.strategy
    }

    /// Returns markets, positions, orders, limits and counters.
    #[must_use]
    pub const fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Prefetches the table slot of the next order, which is rarely in the cache; call this when idle.
    pub fn prefetch(&self) {
        self.desk.orders.prefetch();
    }

    /// Removes all own orders and restarts UserRefNums at 1: for a warm-up, which has no venue.
    pub(crate) fn reset_orders(&mut self) {
        self.desk.orders.reset();
    }

    /// Returns the engine's tracer.
    #[must_use]
    pub const fn tracer(&self) -> &T {
        &self.tracer
    }

    /// Returns the engine's tracer, to record timestamps around calls of the engine.
    pub const fn tracer_mut(&mut self) -> &mut T {
        &mut self.tracer
    }

    /// Returns the reason why the engine no longer trades; `None` while it trades.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopReason> {
        self.desk.stopped()
    }
}

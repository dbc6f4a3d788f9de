//! The engine: market data, answers and time in; requests out.

use tickpath_faults::failpoint;
use tickpath_timing::{Function, Sampler, Tracer};
use tickpath_types::{
    BookHealth, Instrument, MarketUpdate, Nanos, OrderEventKind, OrderRequest, UpdateKind, UserRefNum,
};

use crate::sink::Port;
use crate::{
    ConfigError, Context, Desk, EngineConfig, GatewayEvent, Limits, OrderUpdate, RequestSink, StopReason,
    Strategy,
};

/// One market update in `2^FUNCTION_TIMER_SHIFT` has its functions timed.
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
    /// Time of the latest market data, or of the start.
    heard_at: Option<Nanos>,
}

impl<S: Strategy, T: Tracer> TradeEngine<S, T> {
    /// An engine for all `instruments`, with `limits` in their order.
    ///
    /// # Errors
    /// [`ConfigError`] when the settings contradict one another.
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
            heard_at: None,
        })
    }

    /// The venue says which number the user's next order is to have: those before it were used by an earlier run, of
    /// which nothing else is known. To be called before the start.
    #[cold]
    pub fn handle_numbering(&mut self, first: UserRefNum) {
        self.desk.orders.number_from(first);
    }

    /// The session is logged in and the strategy may begin; silence counts from here.
    pub fn handle_start(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.heard_at = Some(now);
        self.disconnected_at = None;
        if self.desk.stopped.is_none() {
            self.call(now, sink, false, |strategy, cx| strategy.on_start(cx));
        }
    }

    /// Takes the passing of time before the start, while there is no connection to the venue yet: stops when that
    /// takes as long as a lost connection may.
    #[cold]
    pub fn handle_wait(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.disconnected_at.get_or_insert(now);
        if self.is_cut_off(now) {
            self.stop(StopReason::Disconnected, now, sink);
        }
    }

    /// Takes one market update.
    ///
    /// Never inlined: what trades and what is warmed up run the same code.
    #[inline(never)]
    pub fn handle_market(&mut self, update: &MarketUpdate, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.heard_at = Some(now);
        let is_timed = T::ENABLED && self.sampler.is_due();
        let start = if is_timed { self.tracer.now() } else { 0 };
        if !self.desk.apply_market(update) {
            return;
        }
        let applied = if is_timed { self.tracer.now() } else { 0 };
        if self.desk.stopped.is_none() {
            self.call(now, sink, is_timed, |strategy, cx| strategy.on_market(update, cx));
        }
        if is_timed {
            let end = self.tracer.now();
            self.tracer.time(Function::Features, applied.saturating_sub(start));
            self.tracer.time(Function::Strategy, end.saturating_sub(applied));
        }
    }

    /// Market updates were lost. Each carries the best prices, so the next one of each instrument makes the engine right
    /// again; until then its books count as stale.
    #[cold]
    pub fn handle_lost_updates(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        for instrument in 1..=self.desk.instruments.len() {
            let (instrument, kind) = (instrument as u16, UpdateKind::Status as u8);
            let health = BookHealth::Stale as u8;
            let update = MarketUpdate { instrument, kind, health, ..MarketUpdate::default() };
            self.handle_market(&update, now, sink);
        }
    }

    /// Takes one answer of the venue, given at `ts_event` by the venue's clock.
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
        self.tell(update, now, sink);
        self.tell(orphan, now, sink);
    }

    /// Takes what the order gateway says.
    pub fn handle_gateway_event(&mut self, event: &GatewayEvent, now: Nanos, sink: &mut impl RequestSink<T>) {
        match event {
            GatewayEvent::Answer { kind, ts } => self.handle_order_event(kind, *ts, now, sink),
            GatewayEvent::Unsent(request) => self.handle_unsent(request, now, sink),
            GatewayEvent::Disconnected => self.handle_disconnect(now),
            GatewayEvent::Reconnected => self.handle_reconnect(),
            GatewayEvent::InDoubt => self.handle_doubt(),
            GatewayEvent::Settled => self.handle_settled(now, sink),
        }
    }

    /// The connection to the venue is lost. Own orders may execute meanwhile, and what becomes of them is told
    /// later; requests are refused until [`handle_reconnect`](Self::handle_reconnect). Requests that were not
    /// answered are in doubt until their answer or [`handle_settled`](Self::handle_settled).
    #[cold]
    pub fn handle_disconnect(&mut self, now: Nanos) {
        self.disconnected_at.get_or_insert(now);
        self.desk.is_connected = false;
        self.desk.orders.doubt_pending();
    }

    /// The venue dropped a request without an answer, and nobody knows which: those that were not answered are in doubt
    /// until their answer or [`handle_settled`](Self::handle_settled).
    #[cold]
    pub fn handle_doubt(&mut self) {
        self.desk.orders.doubt_pending();
    }

    /// The connection to the venue stands again.
    #[cold]
    pub fn handle_reconnect(&mut self) {
        self.disconnected_at = None;
        self.desk.is_connected = true;
        failpoint!(OrdersForgottenAtReconnect => self.desk.orders.forget_open());
    }

    /// The venue has answered everything that it got before the connection was lost, or before it dropped something: what
    /// is in doubt still did not reach it, or was dropped. The strategy is told as if the venue had refused it: a new
    /// order is rejected, the cancel of an order too, and the order stands.
    #[cold]
    pub fn handle_settled(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        failpoint!(UnansweredWaitForEver => return);
        let mut from = 0;
        while let Some((place, update)) = self.desk.give_up_next(from) {
            from = place + 1;
            self.tell(update, now, sink);
        }
    }

    /// A request of this engine was not sent, because the connection was lost before it could be: the strategy
    /// is told as if the venue had refused it.
    #[cold]
    pub fn handle_unsent(&mut self, request: &OrderRequest, now: Nanos, sink: &mut impl RequestSink<T>) {
        let update = self.desk.apply_unsent(request);
        self.tell(update, now, sink);
    }

    fn tell(&mut self, update: Option<OrderUpdate>, now: Nanos, sink: &mut impl RequestSink<T>) {
        if let Some(update) = update {
            self.call(now, sink, false, |strategy, cx| strategy.on_order(&update, cx));
        }
    }

    /// Takes the passing of time; every few milliseconds is often enough. After a stop it sends again the
    /// cancels for which the queue had no room.
    pub fn handle_timer(&mut self, now: Nanos, sink: &mut impl RequestSink<T>) {
        if self.is_silent(now) {
            self.stop(StopReason::Silence, now, sink);
        } else if self.is_cut_off(now) {
            self.stop(StopReason::Disconnected, now, sink);
        } else if self.desk.stopped.is_some() {
            self.call(now, sink, false, |_, cx| _ = cx.cancel_all());
        } else {
            self.call(now, sink, false, |strategy, cx| strategy.on_timer(now, cx));
        }
    }

    /// The kill switch: cancels every own order and sends no new one from now on. The first reason stays.
    pub fn stop(&mut self, reason: StopReason, now: Nanos, sink: &mut impl RequestSink<T>) {
        self.desk.stopped.get_or_insert(reason);
        self.call(now, sink, false, |_, cx| _ = cx.cancel_all());
    }

    fn is_silent(&self, now: Nanos) -> bool {
        self.is_over(now, self.silence_stop, self.heard_at)
    }

    fn is_cut_off(&self, now: Nanos) -> bool {
        self.is_over(now, self.disconnect_stop, self.disconnected_at)
    }

    /// True when the engine trades and so much time has passed since then.
    fn is_over(&self, now: Nanos, limit: Option<Nanos>, since: Option<Nanos>) -> bool {
        self.desk.stopped.is_none()
            && limit.zip(since).is_some_and(|(limit, since)| now.since(since) >= limit)
    }

    fn call(
        &mut self,
        now: Nanos,
        sink: &mut impl RequestSink<T>,
        is_timed: bool,
        call: impl FnOnce(&mut S, &mut Context<'_>),
    ) {
        let mut port = Port { sink, tracer: &mut self.tracer };
        call(&mut self.strategy, &mut Context::new(&mut self.desk, &mut port, now, is_timed));
    }

    /// The strategy.
    #[must_use]
    pub const fn strategy(&self) -> &S {
        &self.strategy
    }

    /// The strategy, to change its settings between calls.
    pub const fn strategy_mut(&mut self) -> &mut S {
        &mut self.strategy
    }

    /// Markets, positions, orders, limits and counters.
    #[must_use]
    pub const fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Begins to fetch what the next order needs and no order has touched for long: for quiet moments.
    pub fn prefetch(&self) {
        self.desk.orders.prefetch();
    }

    /// Forgets all own orders and resets their numbers: for a warm-up, which has no venue.
    pub(crate) fn forget_orders(&mut self) {
        self.desk.orders.forget();
    }

    /// The engine's tracer.
    #[must_use]
    pub const fn tracer(&self) -> &T {
        &self.tracer
    }

    /// The engine's tracer, for stamps around its calls.
    pub const fn tracer_mut(&mut self) -> &mut T {
        &mut self.tracer
    }

    /// Why it no longer trades; `None` while it does.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopReason> {
        self.desk.stopped()
    }
}

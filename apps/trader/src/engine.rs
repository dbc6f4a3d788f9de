//! The strategy engine as an agent.

use tickpath_agent::{Agent, AgentError, WaitSet, Waker};
use tickpath_faults::failpoint;
use tickpath_lockfree::{broadcast, spsc};
use tickpath_timing::{Hop, MarketId, Token, Tracer};
use tickpath_trading::{
    Desk, GatewayEvent, KillSwitch, QueueFull, RequestSink, SnapshotWriter, StopReason, Strategy,
    TradeEngine, TraderView, WarmUpEngine,
};
use tickpath_types::{MarketUpdate, Nanos, OrderRequest, Sequence, SessionId, UpdateKind, UserRefNum};

/// Maximum number of market updates handled in one duty cycle: more than a packet has.
const UPDATES_PER_CYCLE: usize = 128;
/// Maximum number of gateway events handled in one duty cycle.
const EVENTS_PER_CYCLE: usize = 32;
/// Maximum number of requests that one warm-up step may cause.
const WARM_UP_REQUESTS_MAX: usize = 16;
/// Interval of the engine's timer calls.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(5);
/// Interval at which a snapshot of the engine's state is published to other threads.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(100);

/// The name of an engine, and the ids that identify it in time stamps.
#[derive(Clone, Copy, Debug)]
pub struct EngineIdentity {
    /// Name of the agent.
    pub role: &'static str,
    /// Id of the engine's feed handler.
    pub feed: u8,
    /// Id of the engine.
    pub engine: u8,
    /// Session of the engine's orders.
    pub session: SessionId,
}

/// The rings between an engine and its feed handler and order gateway.
pub struct EngineRings {
    /// Market updates of the feed handler.
    pub updates: broadcast::Receiver<MarketUpdate>,
    /// Answers of the venue, and changes of the connection to it.
    pub events: spsc::Consumer<GatewayEvent>,
    /// Requests to the order gateway.
    pub requests: spsc::Producer<OrderRequest>,
}

/// Agent that runs a strategy on market updates and the venue's answers.
pub struct EngineAgent<S, T> {
    identity: EngineIdentity,
    engine: TradeEngine<S, T>,
    warm_up: Option<WarmUp<S, T>>,
    updates: broadcast::Receiver<MarketUpdate>,
    events: spsc::Consumer<GatewayEvent>,
    outbox: Outbox,
    kill: KillSwitch,
    is_started: bool,
    /// The latest duty cycle with work left stamps that are not published yet.
    has_stamps: bool,
    lost_updates: u64,
    next_timer: Nanos,
    next_snapshot: Nanos,
    last_now: Nanos,
    snapshot: SnapshotWriter,
    view: TraderView,
}

/// A warm-up engine with its own request ring, so that its requests do not reach the gateway.
struct WarmUp<S, T> {
    engine: WarmUpEngine<S, T>,
    outbox: Outbox,
    requests: spsc::Consumer<OrderRequest>,
}

impl<S: Strategy, T: Tracer> WarmUp<S, T> {
    fn of(engine: &TradeEngine<S, T>, instance: S, identity: &EngineIdentity) -> Option<WarmUp<S, T>> {
        let (producer, requests) = spsc::channel(WARM_UP_REQUESTS_MAX);
        Some(WarmUp {
            engine: WarmUpEngine::of(engine, instance)?,
            outbox: Outbox::new(identity, producer),
            requests,
        })
    }

    /// Makes the warm-up engine decide on one artificial update, and answers its requests as a venue would.
    fn run(&mut self, now: Nanos) {
        self.engine.decide(now, &mut self.outbox);
        for _ in 0..WARM_UP_REQUESTS_MAX {
            let Some(request) = self.requests.try_pop() else { break };
            self.engine.answer(&request, now, &mut self.outbox);
        }
        self.engine.tracer_mut().discard();
    }
}

/// The engine's end of the request ring: stamps each request with the time, and links it to the market
/// message that triggered it.
struct Outbox {
    session: SessionId,
    feed: u8,
    engine: u8,
    requests: spsc::Producer<OrderRequest>,
    trigger: Option<MarketId>,
    has_sent: bool,
}

impl Outbox {
    fn new(identity: &EngineIdentity, requests: spsc::Producer<OrderRequest>) -> Outbox {
        let EngineIdentity { session, feed, engine, .. } = *identity;
        Outbox { session, feed, engine, requests, trigger: None, has_sent: false }
    }

    fn market_id(&self, message: Sequence) -> MarketId {
        MarketId::new(message).via_feed(self.feed).to_engine(self.engine)
    }
}

impl<T: Tracer> RequestSink<T> for Outbox {
    #[inline]
    fn send(&mut self, request: &OrderRequest, tracer: &mut T) -> Result<(), QueueFull> {
        self.requests.try_push(*request).map_err(|_| QueueFull)?;
        let token = Token::of_request(self.session, request);
        tracer.stamp(Hop::T10, token);
        if let Some(trigger) = self.trigger {
            tracer.link(token, trigger);
        }
        self.has_sent = true;
        Ok(())
    }

    #[inline]
    fn set_trigger(&mut self, message: Option<Sequence>) {
        self.trigger = message.map(|message| self.market_id(message));
    }
}

impl<S: Strategy, T: Tracer> EngineAgent<S, T> {
    /// Creates an agent that runs `engine`. Another thread can stop the engine by `kill`.
    pub fn new(
        identity: EngineIdentity,
        engine: TradeEngine<S, T>,
        rings: EngineRings,
        kill: KillSwitch,
    ) -> EngineAgent<S, T> {
        let (snapshot, view) = SnapshotWriter::new(engine.desk().instruments().len());
        let outbox = Outbox::new(&identity, rings.requests);
        EngineAgent {
            identity,
            engine,
            warm_up: None,
            updates: rings.updates,
            events: rings.events,
            outbox,
            kill,
            is_started: false,
            has_stamps: false,
            lost_updates: 0,
            next_timer: Nanos::ZERO,
            next_snapshot: Nanos::ZERO,
            last_now: Nanos::ZERO,
            snapshot,
            view,
        }
    }

    /// Adds a warm-up: while the agent is idle, `instance`, a second instance of the strategy, decides on
    /// artificial data. `None` adds none.
    #[must_use]
    pub fn warmed_up_by(self, instance: Option<S>) -> EngineAgent<S, T> {
        let warm_up = instance.and_then(|instance| WarmUp::of(&self.engine, instance, &self.identity));
        EngineAgent { warm_up, ..self }
    }

    /// Returns the view through which other threads read the engine's state and the order gateway's counters.
    pub fn view(&self) -> TraderView {
        self.view.clone()
    }

    /// Returns the engine's markets, positions, orders, limits and counters, for callers on the same thread.
    #[must_use]
    pub const fn desk(&self) -> &Desk {
        self.engine.desk()
    }

    /// Handles market updates. Returns early after a packet that caused a request, so that the gateway can
    /// send the request first.
    fn take_updates(&mut self, now: Nanos) -> usize {
        // Requests of answers and of the timer leave the flag set; they end no packet.
        self.outbox.has_sent = false;
        let mut count = 0;
        while count < UPDATES_PER_CYCLE {
            match self.updates.try_recv() {
                Ok(None) => break,
                Ok(Some(update)) => self.take_update(now, &update),
                Err(lagged) => self.on_lost_updates(now, lagged.0),
            }
            count += 1;
            // Strategies decide after the last update of a packet, or after a loss of updates.
            if self.outbox.has_sent {
                break;
            }
        }
        count
    }

    #[inline]
    fn take_update(&mut self, now: Nanos, update: &MarketUpdate) {
        // A `Status` update reports a book's health. No message of the venue caused it, so it gets no stamp.
        if update.kind() != Some(UpdateKind::Status) {
            let id = self.outbox.market_id(Sequence(update.sequence));
            self.engine.tracer_mut().stamp(Hop::T9, id);
        }
        self.engine.handle_market(update, now, &mut self.outbox);
    }

    /// Handles the loss of `count` updates that the feed handler overwrote before the engine read them.
    #[cold]
    fn on_lost_updates(&mut self, now: Nanos, count: u64) {
        self.lost_updates += count;
        self.engine.handle_lost_updates(now, &mut self.outbox);
    }

    fn take_events(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while count < EVENTS_PER_CYCLE {
            let Some(event) = self.events.try_pop() else { break };
            if let GatewayEvent::Answer { kind, .. } = &event
                && let Some(token) = Token::of_reply(self.identity.session, kind)
            {
                self.engine.tracer_mut().stamp(Hop::T9t, token);
            }
            self.engine.handle_gateway_event(&event, now, &mut self.outbox);
            count += 1;
        }
        count
    }

    /// Starts the engine once the gateway is logged in and the UserRefNum of the first order is known. Until
    /// then market data waits in the ring. The engine stops if the first login takes longer than
    /// `EngineConfig::disconnect_stop`.
    fn start(&mut self, now: Nanos) -> bool {
        let first_user_ref = self.view.gateway.first_user_ref.read();
        if first_user_ref > 0 {
            self.is_started = true;
            failpoint!(NumbersFromOne: first_user_ref = 1);
            self.engine.handle_numbering(UserRefNum(first_user_ref as u32));
            self.engine.handle_start(now, &mut self.outbox);
        } else if now >= self.next_timer {
            self.next_timer = now + TIMER_INTERVAL;
            self.stop_if_killed(now);
            self.engine.handle_wait(now, &mut self.outbox);
            if self.engine.stopped().is_some() {
                self.publish_snapshot();
            }
        }
        self.is_started
    }

    fn run_timer(&mut self, now: Nanos) {
        self.next_timer = now + TIMER_INTERVAL;
        self.stop_if_killed(now);
        self.engine.handle_timer(now, &mut self.outbox);
        if now >= self.next_snapshot {
            self.next_snapshot = now + SNAPSHOT_INTERVAL;
            self.publish_snapshot();
        }
    }

    fn stop_if_killed(&mut self, now: Nanos) {
        if self.kill.is_pulled() && self.engine.stopped().is_none() {
            self.engine.stop(StopReason::Killed, now, &mut self.outbox);
        }
    }

    fn publish_snapshot(&mut self) {
        self.snapshot.write(self.engine.desk(), self.lost_updates);
    }
}

impl<S: Strategy + Send, T: Tracer + Send> Agent for EngineAgent<S, T> {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.last_now = now;
        // Published a duty cycle late, so that a store to a line that another core polls does not delay the
        // gateway on this thread.
        if std::mem::take(&mut self.has_stamps) {
            self.engine.tracer_mut().flush();
        }
        if !self.is_started && !self.start(now) {
            return Ok(0);
        }
        let updates = self.take_updates(now);
        let work = if updates > 0 { updates } else { self.take_events(now) };
        if now >= self.next_timer {
            self.run_timer(now);
        }
        if work > 0 {
            self.view.updates.add(updates as u64);
            self.has_stamps = true;
        }
        Ok(work)
    }

    fn warm_up(&mut self, now: Nanos) {
        self.engine.prefetch();
        self.engine.tracer().prefetch();
        if let Some(warm_up) = &mut self.warm_up {
            warm_up.run(now);
        }
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.updates.wake_by(waker);
        self.events.wake_by(waker);
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        wait.until(self.next_timer);
    }

    fn role_name(&self) -> &'static str {
        self.identity.role
    }

    fn on_close(&mut self) {
        while self.take_events(self.last_now) > 0 {}
        self.engine.tracer_mut().flush();
        self.publish_snapshot();
    }
}

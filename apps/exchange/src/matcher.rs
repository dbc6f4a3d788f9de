//! The matching engine as an agent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrayvec::ArrayVec;
use tickpath_agent::{Agent, AgentError, Counter};
use tickpath_book::FastBooks;
use tickpath_lockfree::spsc;
use tickpath_matching::{Command, Engine, EventListener, LOOK_AHEAD_LEN, Owner};
use tickpath_timing::{CommandId, Function, Hop, MarketId, Tracer};
use tickpath_types::{MarketEvent, Nanos, OrderEvent};

/// One command in so many has its matching timed.
const TIMED_EVERY: u64 = 16;

/// What a [`Matcher`] has done, readable from outside while it runs.
#[derive(Default)]
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub struct MatcherCounters {
    /// Commands applied.
    pub commands: Counter,
    /// Responses emitted.
    pub responses: Counter,
    /// Market events emitted; also the sequence of the last one.
    pub market_events: Counter,
    /// Executions.
    pub executions: Counter,
    /// Events that waited because the ring to their agent was full.
    pub delayed_events: Counter,
}

/// The engine as the matcher left it, for comparison once the venue has stopped.
pub type FinalEngine = Arc<Mutex<Option<Box<Engine<FastBooks<Owner>>>>>>;

/// Applies the sequenced commands to the engine and hands on its responses and market events.
pub struct Matcher<T> {
    engine: Option<Box<Engine<FastBooks<Owner>>>>,
    commands: spsc::Consumer<Command>,
    /// Commands taken together, so that what they will need is fetched at once.
    batch: ArrayVec<Command, LOOK_AHEAD_LEN>,
    /// How many of the batch are applied.
    applied: usize,
    outbox: Outbox<T>,
    last_engine: FinalEngine,
}

/// The two rings out of the matcher, each with an overflow list for a command that causes more events
/// than its ring has room for. No further command is applied before the lists are empty.
struct Outbox<T> {
    tracer: T,
    counters: Arc<MatcherCounters>,
    responses: spsc::Producer<OrderEvent>,
    late_responses: VecDeque<OrderEvent>,
    market: spsc::Producer<MarketEvent>,
    late_market: VecDeque<MarketEvent>,
}

impl<T: Tracer> Matcher<T> {
    /// A matcher over an engine; `last_engine` receives it when the matcher closes.
    pub fn new(
        engine: Engine<FastBooks<Owner>>,
        commands: spsc::Consumer<Command>,
        responses: spsc::Producer<OrderEvent>,
        market: spsc::Producer<MarketEvent>,
        counters: Arc<MatcherCounters>,
        last_engine: FinalEngine,
        tracer: T,
    ) -> Matcher<T> {
        // Room for a sweep of many orders, so that the lists do not allocate while trading.
        let room = 16_384;
        let outbox = Outbox {
            tracer,
            counters,
            responses,
            late_responses: VecDeque::with_capacity(room),
            market,
            late_market: VecDeque::with_capacity(room),
        };
        Matcher {
            engine: Some(Box::new(engine)),
            commands,
            batch: ArrayVec::new(),
            applied: 0,
            outbox,
            last_engine,
        }
    }
}

impl<T: Tracer + Send> Agent for Matcher<T> {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        let engine = self.engine.as_mut().expect("a closed agent does no work");
        if !self.outbox.send_late() {
            return Ok(0);
        }
        if self.applied == self.batch.len() {
            self.applied = 0;
            self.batch.clear();
            self.commands.drain(LOOK_AHEAD_LEN, |command| self.batch.push(*command));
            if self.batch.len() > 1 {
                engine.look_ahead(&self.batch);
            }
        }
        let mut work = 0;
        while self.outbox.is_prompt()
            && let Some(command) = self.batch.get(self.applied)
        {
            let taken = self.outbox.tracer.stamp(Hop::T3, CommandId(command.sequence));
            engine.apply(command, &mut self.outbox);
            if T::ENABLED && command.sequence.0.is_multiple_of(TIMED_EVERY) {
                let ticks = self.outbox.tracer.now().wrapping_sub(taken);
                self.outbox.tracer.time(Function::Match, ticks);
            }
            self.applied += 1;
            work += 1;
        }
        if work > 0 {
            self.outbox.counters.commands.add(work as u64);
            self.outbox.tracer.flush();
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        "matcher"
    }

    fn on_close(&mut self) {
        if let Ok(mut last) = self.last_engine.lock() {
            *last = self.engine.take();
        }
    }
}

impl<T: Tracer> Outbox<T> {
    /// True when both rings have taken everything.
    fn is_prompt(&self) -> bool {
        self.late_responses.is_empty() && self.late_market.is_empty()
    }

    /// Hands on what waited; true when nothing waits any more.
    fn send_late(&mut self) -> bool {
        while let Some(event) = self.late_responses.front() {
            if self.responses.try_push(*event).is_err() {
                break;
            }
            self.late_responses.pop_front();
        }
        while let Some(event) = self.late_market.front() {
            if self.market.try_push(*event).is_err() {
                break;
            }
            self.late_market.pop_front();
        }
        self.is_prompt()
    }
}

impl<T: Tracer> EventListener for Outbox<T> {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        if event.is_reply {
            self.tracer.stamp(Hop::T4t, CommandId(event.command));
        }
        self.counters.responses.add(1);
        if !self.late_responses.is_empty() || self.responses.try_push(*event).is_err() {
            self.late_responses.push_back(*event);
            self.counters.delayed_events.add(1);
        }
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        let id = MarketId::new(event.sequence);
        self.tracer.stamp(Hop::T4, id);
        self.tracer.link(id, CommandId(event.command));
        self.counters.market_events.add(1);
        if matches!(event.kind, tickpath_types::MarketEventKind::Executed { .. }) {
            self.counters.executions.add(1);
        }
        if !self.late_market.is_empty() || self.market.try_push(*event).is_err() {
            self.late_market.push_back(*event);
            self.counters.delayed_events.add(1);
        }
    }
}

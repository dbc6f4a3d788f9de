//! The matching stage: sequenced commands in, answers to users and market events out.

use std::sync::{Arc, Mutex};

use arrayvec::ArrayVec;
use tickpath_book::FastBooks;
use tickpath_lockfree::wake::Waker;
use tickpath_lockfree::{Counter, spsc};
use tickpath_matching::{Command, Engine, EventListener, LOOK_AHEAD_LEN, Owner};
use tickpath_timing::{CommandId, Function, Hop, MarketId, Tracer};
use tickpath_types::{
    InstrumentId, Liquidity, MarketEvent, MarketEventKind, OrderEvent, OrderEventKind, Price, Qty,
    SystemEventCode, UserRefNum,
};

use crate::counters::TradeTotals;
use crate::log_command::LogCommand;
use crate::overflow_queue::{OverflowQueue, end_ring};
use crate::response::Response;

/// The tracer measures the matching time of one in this many commands.
const TIMED_EVERY: u64 = 16;

tickpath_lockfree::counters! {
    /// Counters of a [`Matcher`]; other threads may read them while it runs.
    pub struct MatcherCounters {
        /// Commands applied.
        pub commands,
        /// Responses to users emitted.
        pub responses,
        /// Market events emitted; also the sequence number of the last one.
        pub market_events,
        /// Executions.
        pub executions => "executions",
        /// Events that waited in an overflow queue because their ring was full.
        pub delayed_events,
    }
}

/// The venue's matching engine.
pub type VenueEngine = Engine<FastBooks<Owner>>;
/// The engine after its last command, stored when the matcher closes so that other threads can inspect it.
pub type FinalEngine = Arc<Mutex<Option<Box<VenueEngine>>>>;

/// Applies the sequenced commands to the engine and emits its responses and market events.
pub struct Matcher<T> {
    /// `None` once the matcher is closed.
    engine: Option<Box<VenueEngine>>,
    commands: spsc::Consumer<LogCommand>,
    /// Commands taken from the ring together, so that the memory for all of them is prefetched first.
    batch: ArrayVec<LogCommand, LOOK_AHEAD_LEN>,
    /// Number of applied commands of the batch.
    applied: usize,
    outbox: Outbox<T>,
    last_engine: FinalEngine,
}

/// The two rings out of the matcher, each with an overflow queue for a command's events beyond the ring's
/// capacity. No further command is applied before the queues are empty, so each queue has capacity for the
/// events of one command.
struct Outbox<T> {
    tracer: T,
    counters: Arc<MatcherCounters>,
    responses: spsc::Producer<Response>,
    response_overflow: OverflowQueue<Response>,
    market: spsc::Producer<MarketEvent>,
    market_overflow: OverflowQueue<MarketEvent>,
    /// Code of each instrument's trading state, indexed by instrument id.
    states: Arc<[Counter]>,
    /// Trade totals of each instrument, indexed by instrument id.
    trades: Arc<[TradeTotals]>,
    /// Price of the latest execution reported to a user, for the trade totals: the market event that follows
    /// may have no price. `None` in a cross: a `Cross` event has the total quantity and the price.
    execution_price: Option<Price>,
}

impl<T: Tracer> Matcher<T> {
    /// A matcher over an engine; `last_engine` receives it when the matcher closes.
    pub fn new(
        engine: VenueEngine,
        commands: spsc::Consumer<LogCommand>,
        responses: spsc::Producer<Response>,
        market: spsc::Producer<MarketEvent>,
        counters: Arc<MatcherCounters>,
        last_engine: FinalEngine,
        tracer: T,
    ) -> Matcher<T> {
        // Plus one for the response `Applied` to an internal command.
        let events_max = engine.limits().max_events_per_command() as usize + 1;
        let outbox = Outbox {
            tracer,
            counters,
            responses,
            response_overflow: OverflowQueue::new(events_max),
            market,
            market_overflow: OverflowQueue::new(events_max),
            states: Arc::default(),
            trades: Arc::default(),
            execution_price: None,
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

    /// Makes the matcher publish each instrument's trading state in `states`, as its
    /// [code](tickpath_types::TradingState::code), and its totals in `trades`, indexed by instrument id.
    #[must_use]
    pub fn with_instruments(mut self, states: Arc<[Counter]>, trades: Arc<[TradeTotals]>) -> Matcher<T> {
        self.outbox.states = states;
        self.outbox.trades = trades;
        self
    }

    /// Applies some of the waiting commands; returns their number. Applies none while an output ring is full.
    ///
    /// # Panics
    /// When the matcher is closed.
    pub fn poll(&mut self) -> usize {
        let engine = self.engine.as_mut().expect("a closed matcher does no work");
        if !self.outbox.flush_overflow() {
            return 0;
        }
        if self.applied == self.batch.len() {
            self.applied = 0;
            self.batch.clear();
            self.commands.drain(LOOK_AHEAD_LEN, |command| self.batch.push(*command));
            if self.batch.len() > 1 {
                engine.look_ahead(self.batch.iter().filter_map(LogCommand::engine));
            }
        }
        let mut work = 0;
        while self.outbox.is_drained()
            && let Some(command) = self.batch.get(self.applied)
        {
            let taken = self.outbox.tracer.stamp(Hop::T3, CommandId(command.sequence()));
            let ignored = engine.counters().ignored;
            command.apply(engine, &mut self.outbox);
            if command.is_internal() {
                let is_ignored = engine.counters().ignored != ignored;
                self.outbox.respond(Response::Applied { command: command.sequence(), is_ignored });
            }
            if T::ENABLED && command.sequence().0.is_multiple_of(TIMED_EVERY) {
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
        work
    }

    /// Makes each sequenced command wake the thread behind `waker`.
    pub fn wake_by(&self, waker: &Waker) {
        self.commands.wake_by(waker);
    }

    /// True while an output ring is full: poll again soon, as the ring's reader does not wake this thread.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        !self.outbox.is_drained() || self.applied < self.batch.len()
    }

    /// Applies the remaining commands. When the command ring has ended and all events are emitted, ends the
    /// output rings and returns true.
    pub fn finish(&mut self) -> bool {
        // Check the producer before polling, so that commands pushed before its end are still applied.
        let has_ended = self.commands.is_disconnected();
        let is_done = self.poll() == 0 && has_ended && !self.is_blocked() && self.commands.is_empty();
        if is_done {
            self.outbox.end();
        }
        is_done
    }

    /// Stores the engine in `last_engine`, for other threads.
    pub fn close(&mut self) {
        if let Ok(mut last) = self.last_engine.lock() {
            *last = self.engine.take();
        }
    }
}

impl<T: Tracer> Outbox<T> {
    /// True when no event waits in an overflow queue.
    fn is_drained(&self) -> bool {
        self.response_overflow.is_empty() && self.market_overflow.is_empty()
    }

    /// Moves waiting events into the rings; true when none is left.
    fn flush_overflow(&mut self) -> bool {
        self.response_overflow.flush(&mut self.responses);
        self.market_overflow.flush(&mut self.market);
        self.is_drained()
    }

    /// Ends the rings: their readers find the producers disconnected.
    fn end(&mut self) {
        end_ring(&mut self.responses);
        end_ring(&mut self.market);
    }

    #[inline]
    fn add_trade(&self, instrument: InstrumentId, price: Option<Price>, qty: Qty) {
        let totals = self.trades.get(usize::from(instrument.0));
        if let (Some(totals), Some(price)) = (totals, price) {
            totals.add(price, qty);
        }
    }

    #[inline]
    fn respond(&mut self, response: Response) {
        let is_answer = matches!(response, Response::Order(_) | Response::NextUserRef { .. });
        self.counters.responses.add(is_answer.into());
        if !self.response_overflow.is_empty() || self.responses.try_push(response).is_err() {
            self.response_overflow.push(response);
            self.counters.delayed_events.add(1);
        }
    }
}

impl<T: Tracer> EventListener for Outbox<T> {
    #[inline]
    fn on_order_event(&mut self, event: &OrderEvent) {
        if event.is_reply {
            self.tracer.stamp(Hop::T4t, CommandId(event.command));
        }
        if let OrderEventKind::Executed { price, liquidity, .. } = event.kind {
            let is_cross = matches!(liquidity, Liquidity::OpeningCross | Liquidity::ClosingCross);
            self.execution_price = (!is_cross).then_some(price);
        }
        self.respond(Response::Order(*event));
    }

    #[inline]
    fn on_market_event(&mut self, event: &MarketEvent) {
        let id = MarketId::new(event.sequence);
        self.tracer.stamp(Hop::T4, id);
        self.tracer.link(id, CommandId(event.command));
        self.counters.market_events.add(1);
        match event.kind {
            MarketEventKind::Executed { qty, .. } => {
                self.counters.executions.add(1);
                self.add_trade(event.instrument, self.execution_price, qty);
            }
            MarketEventKind::Traded { qty, .. } => {
                self.add_trade(event.instrument, self.execution_price, qty);
            }
            MarketEventKind::Cross { qty, price, .. } if qty.0 > 0 => {
                self.add_trade(event.instrument, Some(price), qty);
            }
            MarketEventKind::TradingAction(state) => {
                if let Some(view) = self.states.get(usize::from(event.instrument.0)) {
                    view.set(state.code().into());
                }
            }
            _ => {}
        }
        if !self.market_overflow.is_empty() || self.market.try_push(*event).is_err() {
            self.market_overflow.push(*event);
            self.counters.delayed_events.add(1);
        }
    }

    #[cold]
    fn on_query_answer(&mut self, query: &Command, next: UserRefNum) {
        let Command { sequence: command, session, ts, .. } = *query;
        self.respond(Response::NextUserRef { command, session, ts, next });
    }

    #[cold]
    fn on_session_phase(&mut self, command: &Command, phase: SystemEventCode) {
        self.respond(Response::SessionPhase { command: command.sequence, ts: command.ts, phase });
    }
}

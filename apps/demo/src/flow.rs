//! A recorded order flow as an agent: sends requests that make the venue's books repeat the recorded ones.

mod fill_verifier;
mod outstanding;
mod reader;
mod session;

use std::sync::{Arc, Mutex, PoisonError};

use tickpath_agent::{Agent, AgentError, TscClock};
use tickpath_capture::flow::{FlowCounts, Role};
use tickpath_config::Speed;
use tickpath_trader::OrderEntry;
use tickpath_types::Nanos;

use crate::fills::{Fills, OrderIndex};
use crate::participant::{Phase, SharedPhase, SourceWriter};
use fill_verifier::FillVerifier;
use outstanding::Outstanding;
pub(crate) use reader::FlowReader;
use reader::NextStep;
use session::{MAKER, TAKER};

/// Maximum number of requests sent in one duty cycle.
const REQUESTS_PER_CYCLE: usize = 16;

/// The result of playing a recording.
#[derive(Clone, Debug, Default)]
pub struct FlowResult {
    /// Counters of the mapper, which converted the recorded events to requests.
    pub counts: FlowCounts,
    /// Executions that the venue must repeat: one for each eligible execution of the recording, or several if
    /// the recorded one filled several slices of an iceberg order.
    pub expected: u64,
    /// Expected executions that occurred with the recorded resting order, price and quantity.
    pub confirmed: u64,
    /// Expected executions that had another resting order, price or quantity, or did not occur.
    pub contradicted: u64,
    /// Requests that the venue refused.
    pub rejected: u64,
    /// Post-only orders that the venue cancelled because they would have traded.
    pub would_have_crossed: u64,
    /// True if all readable events of the recording were played; false if the market stopped earlier.
    pub is_complete: bool,
    /// The error that ended reading before the end of the file, if any.
    pub damage: Option<String>,
    /// Time from the first to the last recorded event that was played.
    pub recorded_ns: u64,
}

/// The result of a recorded flow, which its agent stores when it closes.
pub(crate) type FlowOutcome = Arc<Mutex<FlowResult>>;

struct Session {
    entry: OrderEntry,
    orders: OrderIndex,
    outstanding: Outstanding,
}

/// Plays a recording over two sessions: the maker's enters the resting orders, the taker's those that trade.
///
/// The venue orders the input of two sockets by the kernel's receive time only within one duty cycle. So
/// that no request overtakes one of the other session, the sessions take turns: a session sends only when
/// the venue has answered all requests of the other.
pub(crate) struct FlowAgent {
    /// `None` once the agent has closed.
    reader: Option<FlowReader>,
    speed: Speed,
    first_ts: Option<u64>,
    last_ts: u64,
    started: Option<Nanos>,
    sessions: [Session; 2],
    turn: usize,
    fill_verifier: FillVerifier,
    fills: Fills,
    is_over: bool,
    shared_phase: SharedPhase,
    next_snapshot: Nanos,
    clock: TscClock,
    view: SourceWriter,
    outcome: FlowOutcome,
}

impl FlowAgent {
    #[expect(clippy::too_many_arguments, reason = "each is one end of the wiring")]
    pub(crate) fn new(
        reader: FlowReader,
        speed: Speed,
        entries: [OrderEntry; 2],
        instruments: usize,
        shared_phase: SharedPhase,
        clock: TscClock,
        view: SourceWriter,
        outcome: FlowOutcome,
    ) -> FlowAgent {
        FlowAgent {
            reader: Some(reader),
            speed,
            first_ts: None,
            last_ts: 0,
            started: None,
            sessions: entries.map(|entry| Session {
                entry,
                orders: OrderIndex::new(),
                outstanding: Outstanding::new(),
            }),
            turn: MAKER,
            fill_verifier: FillVerifier::new(),
            fills: Fills::new(instruments),
            is_over: false,
            shared_phase,
            next_snapshot: Nanos::ZERO,
            clock,
            view,
            outcome,
        }
    }

    /// Sends due requests, [`REQUESTS_PER_CYCLE`] at most; returns their number.
    fn send_due(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while count < REQUESTS_PER_CYCLE && self.send_next(now) {
            count += 1;
        }
        self.flush(now);
        self.view.counters.requests.add(count as u64);
        count
    }

    /// Queues the recording's next request; returns false if it must wait, or if there is none.
    fn send_next(&mut self, now: Nanos) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let step = match reader.peek() {
            NextStep::Step(step) => *step,
            NextStep::NotYet => return false,
            NextStep::End => {
                self.is_over = self.sessions.iter().all(|session| session.outstanding.is_empty());
                self.view.counters.finished.set(u64::from(self.is_over));
                return false;
            }
        };
        let index = if step.role == Role::Maker { MAKER } else { TAKER };
        let is_its_turn = index == self.turn || self.sessions[1 - index].outstanding.is_empty();
        if !self.is_due(step.ts_ns, now) || !is_its_turn || self.sessions[index].outstanding.is_full() {
            return false;
        }
        if index != self.turn {
            // Send the queued requests before the turn passes to this session.
            self.flush(now);
            self.turn = index;
        }
        let session = &mut self.sessions[index];
        if session.entry.queue(&step.request).is_err() {
            return false;
        }
        self.last_ts = self.last_ts.max(step.ts_ns);
        session.orders.record(&step.request);
        session.outstanding.sent(&step.request, now);
        if let Some(expected) = step.expected {
            self.fill_verifier.expect(step.request.user_ref(), expected);
        }
        self.view.counters.orders.add(u64::from(step.request.is_new_order()));
        if let Some(reader) = &mut self.reader {
            reader.take();
        }
        true
    }

    fn is_due(&mut self, ts_ns: u64, now: Nanos) -> bool {
        let first = *self.first_ts.get_or_insert(ts_ns);
        let started = *self.started.get_or_insert(now);
        match self.speed {
            Speed::Max => true,
            Speed::Hundredths(factor) => {
                let recorded = u128::from(ts_ns.saturating_sub(first));
                let due = recorded * 100 / u128::from(factor.max(1));
                u128::from(now.since(started).0) >= due
            }
        }
    }

    fn flush(&mut self, now: Nanos) {
        for session in &mut self.sessions {
            // Requests that the socket does not accept stay queued; the next flush sends them.
            let _ = session.entry.flush(now);
        }
    }

    fn read(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut total = 0;
        for index in [MAKER, TAKER] {
            let session = &mut self.sessions[index];
            let before = session.entry.client().next_sequence();
            let mut context = (&mut self.fills, &mut self.fill_verifier, &mut session.outstanding);
            let orders = &session.orders;
            let count = session
                .entry
                .poll(
                    now,
                    &mut context,
                    |_| {},
                    |(fills, fill_verifier, outstanding), answer| {
                        fills.apply(orders, &answer.kind);
                        fill_verifier.on_order_event(index, &answer.kind);
                        outstanding.on_answer(&answer.kind, now);
                    },
                )
                .map_err(AgentError::fatal)?;
            if count == 0 {
                session.outstanding.expire(now);
            }
            self.view.counters.received.add(session.entry.client().next_sequence() - before);
            total += count;
        }
        if total > 0 {
            self.view.counters.answers.add(total as u64);
            self.view.count_fills(&self.fills);
            self.view.counters.rejected.set(self.fill_verifier.rejected);
        }
        Ok(total)
    }

    fn publish(&mut self, now: Nanos) {
        let entries = self.sessions.iter().map(|session| &session.entry);
        self.next_snapshot = self.view.publish(now, entries, &self.fills);
    }

    fn result(&mut self) -> FlowResult {
        let (counts, damage) = self.reader.take().map(FlowReader::finish).unwrap_or_default();
        FlowResult {
            counts,
            expected: self.fill_verifier.expected_total,
            confirmed: self.fill_verifier.confirmed,
            contradicted: self.fill_verifier.contradicted,
            rejected: self.fill_verifier.rejected,
            would_have_crossed: self.fill_verifier.would_have_crossed,
            is_complete: self.is_over,
            damage,
            recorded_ns: self.last_ts.saturating_sub(self.first_ts.unwrap_or(0)),
        }
    }
}

impl Agent for FlowAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = match self.shared_phase.phase() {
            Phase::Trading => self.send_due(now),
            Phase::LogIn | Phase::Draining => 0,
        };
        work += self.read(now)?;
        if now >= self.next_snapshot {
            self.publish(now);
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        "flow"
    }

    fn on_close(&mut self) {
        let now = self.clock.now();
        self.publish(now);
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = self.result();
        for session in &mut self.sessions {
            session.entry.logout(now);
        }
    }
}

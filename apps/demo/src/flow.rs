//! A recorded order flow as an agent: the venue is driven through the same book as the real one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tickpath_agent::{Agent, AgentError, TscClock};
use tickpath_capture::Recording;
use tickpath_capture::flow::{Expected, FlowCounts, FlowStep, Mapper, Role};
use tickpath_trader::{OrderEntry, is_reply};
use tickpath_types::{CancelReason, Liquidity, MatchId, Nanos, OrderEventKind, Price, Qty, UserRefNum};

use crate::fills::{Fills, OrderBook};
use crate::participant::{Phase, SourceWriter, Stage};

/// Requests sent in one duty cycle at most.
const REQUESTS_PER_CYCLE: usize = 16;
/// Requests that wait for their answer at most.
const WINDOW: u64 = 256;
/// A request that had no answer for so long will have none: the venue ignores what is about a dead order.
const ANSWER_TIMEOUT: Nanos = Nanos::from_millis(200);
/// How often what others read is brought up to date.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(100);

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As fast as the venue answers.
    Max,
    /// So many times as fast as it was recorded, in hundredths.
    Hundredths(u64),
}

/// What became of the executions of a recording.
#[derive(Clone, Debug, Default)]
pub struct FlowResult {
    /// What the mapper made of the recording.
    pub counts: FlowCounts,
    /// Executions that the venue must repeat: one for each eligible one of the recording, and more where one
    /// reached several slices of an iceberg order.
    pub expected: u64,
    /// Executions that traded with the expected order, at its price and quantity.
    pub confirmed: u64,
    /// Executions that did not.
    pub contradicted: u64,
    /// Requests that the venue refused.
    pub rejected: u64,
    /// Post-only orders that would have traded.
    pub would_have_crossed: u64,
    /// Why reading ended before the end of the file, if it did.
    pub damage: Option<String>,
    /// Time from the first to the last recorded event that was played.
    pub recorded_ns: u64,
}

/// Where a flow leaves its result when it closes.
pub(crate) type FlowOutcome = Arc<Mutex<FlowResult>>;

struct Session {
    entry: OrderEntry,
    orders: OrderBook,
    /// Requests sent and answered.
    sent: u64,
    answered: u64,
}

/// What the venue said of one execution, as it comes from its two sides.
#[derive(Clone, Copy, Default)]
struct Match {
    taker: Option<(UserRefNum, Price, Qty)>,
    maker: Option<(UserRefNum, Price, Qty)>,
}

/// Checks the venue's executions against what the recording says.
#[derive(Default)]
struct Referee {
    /// By the number of the taker's order.
    expected: HashMap<UserRefNum, Expected>,
    matches: HashMap<MatchId, Match>,
    confirmed: u64,
    contradicted: u64,
    rejected: u64,
    would_have_crossed: u64,
    expected_total: u64,
}

/// Plays a recording by two sessions: the maker's, which keeps the book, and the taker's, which executes.
///
/// The venue orders what comes by two sockets by the kernel's time in one duty cycle; so that no request of
/// one session overtakes one of the other, the sessions take turns: one sends only when the venue has
/// answered everything of the other.
pub(crate) struct FlowAgent {
    recording: Recording,
    mapper: Mapper,
    is_read: bool,
    next: Option<FlowStep>,
    speed: Speed,
    first_ts: Option<u64>,
    last_ts: u64,
    started: Option<Nanos>,
    last_progress: Nanos,
    sessions: [Session; 2],
    turn: usize,
    referee: Referee,
    fills: Fills,
    damage: Option<String>,
    stage: Stage,
    next_snapshot: Nanos,
    clock: TscClock,
    view: SourceWriter,
    outcome: FlowOutcome,
}

const MAKER: usize = 0;
const TAKER: usize = 1;

impl FlowAgent {
    #[expect(clippy::too_many_arguments, reason = "each is one end of the wiring")]
    pub(crate) fn new(
        recording: Recording,
        mapper: Mapper,
        speed: Speed,
        entries: [OrderEntry; 2],
        instruments: usize,
        stage: Stage,
        clock: TscClock,
        view: SourceWriter,
        outcome: FlowOutcome,
    ) -> FlowAgent {
        FlowAgent {
            recording,
            mapper,
            is_read: false,
            next: None,
            speed,
            first_ts: None,
            last_ts: 0,
            started: None,
            last_progress: Nanos::ZERO,
            sessions: entries.map(|entry| Session { entry, orders: OrderBook::new(), sent: 0, answered: 0 }),
            turn: MAKER,
            referee: Referee::default(),
            fills: Fills::new(instruments),
            damage: None,
            stage,
            next_snapshot: Nanos::ZERO,
            clock,
            view,
            outcome,
        }
    }

    /// The next request that the recording asks for; `None` at its end. A damaged file ends where it is
    /// damaged: what came before was played.
    fn next_step(&mut self) -> Option<FlowStep> {
        loop {
            if let Some(step) = self.next.take().or_else(|| self.mapper.poll_step()) {
                return Some(step);
            }
            if self.is_read {
                return None;
            }
            match self.recording.next_event() {
                Ok(Some(event)) => self.mapper.handle_event(&event),
                Ok(None) => self.end_recording(),
                Err(error) => {
                    self.damage = Some(error.to_string());
                    self.end_recording();
                }
            }
        }
    }

    fn end_recording(&mut self) {
        self.is_read = true;
        self.mapper.finish();
    }

    fn is_due(&mut self, step: &FlowStep, now: Nanos) -> bool {
        let first = *self.first_ts.get_or_insert(step.ts_ns);
        self.last_ts = self.last_ts.max(step.ts_ns);
        let started = *self.started.get_or_insert(now);
        match self.speed {
            Speed::Max => true,
            Speed::Hundredths(factor) => {
                let recorded = u128::from(step.ts_ns.saturating_sub(first));
                let due = recorded * 100 / u128::from(factor.max(1));
                u128::from(now.since(started).0) >= due
            }
        }
    }

    fn outstanding(&self, session: usize) -> u64 {
        self.sessions[session].sent - self.sessions[session].answered
    }

    fn send_due(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while count < REQUESTS_PER_CYCLE {
            let Some(step) = self.next_step() else {
                let answered = self.outstanding(MAKER) + self.outstanding(TAKER) == 0;
                self.view.counters.finished.set(u64::from(answered && count == 0));
                break;
            };
            let session = if step.role == Role::Maker { MAKER } else { TAKER };
            let other_is_done = session == self.turn || self.outstanding(1 - session) == 0;
            if !self.is_due(&step, now) || !other_is_done || self.outstanding(session) >= WINDOW {
                self.next = Some(step);
                break;
            }
            if session != self.turn {
                // What is queued belongs before the turn.
                self.flush(now);
                self.turn = session;
            }
            let entry = &mut self.sessions[session];
            if entry.entry.queue(&step.request).is_err() {
                self.next = Some(step);
                break;
            }
            entry.orders.remember(&step.request);
            entry.sent += 1;
            if let Some(expected) = step.expected {
                self.referee.expected.insert(step.request.user_ref(), expected);
                self.referee.expected_total += 1;
            }
            self.view.counters.orders.add(u64::from(step.request.is_new_order()));
            count += 1;
        }
        self.flush(now);
        self.view.counters.requests.add(count as u64);
        count
    }

    fn flush(&mut self, now: Nanos) {
        for session in &mut self.sessions {
            // Whatever TCP has no room for stays queued and goes with the next flush.
            let _ = session.entry.flush(now);
        }
    }

    fn read(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut total = 0;
        for place in [MAKER, TAKER] {
            let session = &mut self.sessions[place];
            let before = session.entry.next_sequence();
            let mut context = (&mut self.fills, &mut self.referee, &mut session.answered);
            let orders = &session.orders;
            let count = session
                .entry
                .poll(
                    now,
                    &mut context,
                    |_| {},
                    |(fills, referee, answered), answer| {
                        fills.apply(orders, &answer.kind);
                        referee.hear(place, &answer.kind);
                        **answered += u64::from(is_reply(&answer.kind));
                    },
                )
                .map_err(AgentError::fatal)?;
            self.view.counters.received.add(session.entry.next_sequence() - before);
            total += count;
        }
        if total > 0 {
            self.last_progress = now;
            self.view.counters.answers.add(total as u64);
            self.view.counters.fills.set(self.fills.fills);
            self.view.counters.unknown_fills.set(self.fills.unknown);
            self.view.counters.rejected.set(self.referee.rejected);
        } else if now.since(self.last_progress) >= ANSWER_TIMEOUT {
            self.last_progress = now;
            for session in &mut self.sessions {
                session.answered = session.sent;
            }
        }
        Ok(total)
    }

    fn publish(&mut self, now: Nanos) {
        self.next_snapshot = now + SNAPSHOT_INTERVAL;
        let logged_in = self.sessions.iter().filter(|session| session.entry.is_active()).count();
        self.view.counters.logged_in.set(logged_in as u64);
        self.view.write_positions(&self.fills.positions);
    }

    fn result(&self) -> FlowResult {
        FlowResult {
            counts: self.mapper.counts(),
            expected: self.referee.expected_total,
            confirmed: self.referee.confirmed,
            contradicted: self.referee.contradicted,
            rejected: self.referee.rejected,
            would_have_crossed: self.referee.would_have_crossed,
            damage: self.damage.clone(),
            recorded_ns: self.last_ts - self.first_ts.unwrap_or(self.last_ts),
        }
    }
}

impl Referee {
    fn hear(&mut self, session: usize, kind: &OrderEventKind) {
        match *kind {
            OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
                let heard = self.matches.entry(match_id).or_default();
                let side = if liquidity == Liquidity::Removed { &mut heard.taker } else { &mut heard.maker };
                *side = Some((user_ref, price, qty));
                if let Match { taker: Some(taker), maker: Some(maker) } = *heard {
                    self.matches.remove(&match_id);
                    self.judge(taker, maker);
                }
            }
            OrderEventKind::Canceled { user_ref, reason: CancelReason::ImmediateOrCancel, .. }
                if session == TAKER && self.expected.remove(&user_ref).is_some() =>
            {
                self.contradicted += 1;
            }
            OrderEventKind::Canceled { reason: CancelReason::PostOnly, .. } => self.would_have_crossed += 1,
            OrderEventKind::Rejected { user_ref, .. } => {
                self.rejected += 1;
                if session == TAKER && self.expected.remove(&user_ref).is_some() {
                    self.contradicted += 1;
                }
            }
            _ => {}
        }
    }

    fn judge(&mut self, taker: (UserRefNum, Price, Qty), maker: (UserRefNum, Price, Qty)) {
        let Some(expected) = self.expected.remove(&taker.0) else { return };
        let said = (expected.resting, expected.price, expected.qty);
        let is_as_said = maker == said && (taker.1, taker.2) == (expected.price, expected.qty);
        *(if is_as_said { &mut self.confirmed } else { &mut self.contradicted }) += 1;
    }
}

impl Agent for FlowAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = match self.stage.phase() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(user_ref: u32, liquidity: Liquidity, price: i64) -> OrderEventKind {
        OrderEventKind::Executed {
            user_ref: UserRefNum(user_ref),
            qty: Qty(5),
            price: Price(price),
            liquidity,
            match_id: MatchId(1),
        }
    }

    fn referee() -> Referee {
        let mut referee = Referee::default();
        let expected = Expected { resting: UserRefNum(7), price: Price(100), qty: Qty(5) };
        referee.expected.insert(UserRefNum(1), expected);
        referee
    }

    #[test]
    fn both_sides_must_say_what_the_recording_says() {
        for (resting, price, verdict) in [(7, 100, (1, 0)), (8, 100, (0, 1)), (7, 101, (0, 1))] {
            let mut referee = referee();
            referee.hear(MAKER, &executed(resting, Liquidity::Added, price));
            assert_eq!((referee.confirmed, referee.contradicted), (0, 0), "one side is not enough");
            referee.hear(TAKER, &executed(1, Liquidity::Removed, price));
            assert_eq!((referee.confirmed, referee.contradicted), verdict);
        }
    }

    #[test]
    fn an_execution_that_does_not_happen_contradicts() {
        let mut referee = referee();
        let canceled = OrderEventKind::Canceled {
            user_ref: UserRefNum(1),
            decrement: Qty(5),
            reason: CancelReason::ImmediateOrCancel,
        };
        referee.hear(TAKER, &canceled);
        assert_eq!((referee.confirmed, referee.contradicted), (0, 1));
        referee.hear(TAKER, &canceled);
        assert_eq!(referee.contradicted, 1, "once");
    }
}

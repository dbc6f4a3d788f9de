//! The crowd as an agent: sends its schedule by its own sessions, whatever the market does.

use tickpath_agent::{Agent, AgentError, TscClock};
use tickpath_sim::{Crowd, CrowdAction};
use tickpath_trader::OrderEntry;
use tickpath_types::{InstrumentId, Nanos, OrderEventKind};

use crate::fills::{Fills, OrderBook};
use crate::participant::{Phase, SourceWriter, Stage};

/// Requests sent in one duty cycle at most.
const REQUESTS_PER_CYCLE: usize = 16;
/// How often what others read is brought up to date.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(100);

struct Session {
    entry: OrderEntry,
    orders: OrderBook,
    has_queued: bool,
}

/// Plays a [`Crowd`] against the venue in open loop: each request is sent when it is due, or as soon after
/// as the host lets it.
pub(crate) struct CrowdAgent {
    crowd: Crowd,
    next: Option<CrowdAction>,
    started: Option<Nanos>,
    sessions: Vec<Session>,
    next_session: usize,
    fills: Fills,
    stage: Stage,
    next_snapshot: Nanos,
    clock: TscClock,
    view: SourceWriter,
}

impl CrowdAgent {
    pub(crate) fn new(
        crowd: Crowd,
        entries: Vec<OrderEntry>,
        instruments: usize,
        stage: Stage,
        clock: TscClock,
        view: SourceWriter,
    ) -> CrowdAgent {
        let session = |entry| Session { entry, orders: OrderBook::new(), has_queued: false };
        CrowdAgent {
            crowd,
            next: None,
            started: None,
            sessions: entries.into_iter().map(session).collect(),
            next_session: 0,
            fills: Fills::new(instruments),
            stage,
            next_snapshot: Nanos::ZERO,
            clock,
            view,
        }
    }

    /// Sends what is due, one write for each session.
    fn send_due(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let elapsed = now.since(*self.started.get_or_insert(now));
        let mut count = 0;
        while count < REQUESTS_PER_CYCLE {
            let Some(action) = self.next.take().or_else(|| self.crowd.poll(elapsed)) else { break };
            let session = &mut self.sessions[usize::from(action.session)];
            if session.entry.queue(&action.request).is_err() {
                self.next = Some(action);
                break;
            }
            session.has_queued = true;
            session.orders.remember(&action.request);
            self.view.counters.orders.add(u64::from(action.request.is_new_order()));
            self.view.counters.behind_ns.set(elapsed.since(action.due).0);
            count += 1;
        }
        for session in self.sessions.iter_mut().filter(|session| session.has_queued) {
            session.has_queued = session.entry.flush(now).is_err();
        }
        self.view.counters.requests.add(count as u64);
        Ok(count)
    }

    /// Reads the answers of one session, in turn.
    fn read(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let place = self.next_session;
        self.next_session = (place + 1) % self.sessions.len();
        let session = &mut self.sessions[place];
        let mut context = (&mut self.fills, &mut self.crowd, &self.view);
        let before = session.entry.next_sequence();
        let orders = &session.orders;
        let count = session
            .entry
            .poll(
                now,
                &mut context,
                |_| {},
                |(fills, crowd, view), answer| {
                    fills.apply(orders, &answer.kind);
                    crowd.on_event(place as u16, &answer.kind);
                    if matches!(answer.kind, OrderEventKind::Rejected { .. }) {
                        view.counters.rejected.add(1);
                    }
                },
            )
            .map_err(AgentError::fatal)?;
        if count > 0 {
            let counters = &self.view.counters;
            counters.answers.add(count as u64);
            counters.received.add(session.entry.next_sequence() - before);
            counters.fills.set(self.fills.fills);
            counters.unknown_fills.set(self.fills.unknown);
        }
        Ok(count)
    }

    fn publish_snapshot(&mut self, now: Nanos) {
        self.next_snapshot = now + SNAPSHOT_INTERVAL;
        let logged_in = self.sessions.iter().filter(|session| session.entry.is_active()).count();
        self.view.counters.logged_in.set(logged_in as u64);
        let open: usize =
            (1..=self.fills.positions.len()).map(|id| self.crowd.live_count(InstrumentId(id as u16))).sum();
        self.view.counters.open_orders.set(open as u64);
        self.view.write_positions(&self.fills.positions);
    }
}

impl Agent for CrowdAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = match self.stage.phase() {
            Phase::Trading => self.send_due(now)?,
            Phase::LogIn | Phase::Draining => 0,
        };
        if work == 0 {
            work = self.read(now)?;
        }
        if now >= self.next_snapshot {
            self.publish_snapshot(now);
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        "crowd"
    }

    fn on_close(&mut self) {
        let now = self.clock.now();
        self.publish_snapshot(now);
        for session in &mut self.sessions {
            session.entry.logout(now);
        }
    }
}

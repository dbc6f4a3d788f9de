//! The background flow as an agent: sends each request at its scheduled time, whatever the venue answers.

use tickpath_agent::{Agent, AgentError, TscClock};
use tickpath_flowgen::{BackgroundFlow, FlowRequest};
use tickpath_trader::OrderEntry;
use tickpath_types::{InstrumentId, Nanos, OrderEventKind};

use crate::fills::{Fills, OrderIndex};
use crate::participant::{Phase, SharedPhase, SourceWriter};

/// Maximum number of requests sent in one duty cycle.
const REQUESTS_PER_CYCLE: usize = 16;
/// Interval at which the agent reads from the venue even while it has requests to send.
const READ_INTERVAL: Nanos = Nanos::from_micros(50);

struct Session {
    entry: OrderEntry,
    orders: OrderIndex,
    has_queued: bool,
}

/// Plays a [`BackgroundFlow`] against the venue in open loop: each request is sent when it is due, or as soon
/// after as the host allows.
pub(crate) struct BackgroundFlowAgent {
    background_flow: BackgroundFlow,
    next: Option<FlowRequest>,
    started: Option<Nanos>,
    sessions: Vec<Session>,
    next_session: usize,
    next_read: Nanos,
    fills: Fills,
    shared_phase: SharedPhase,
    next_snapshot: Nanos,
    clock: TscClock,
    view: SourceWriter,
}

impl BackgroundFlowAgent {
    pub(crate) fn new(
        background_flow: BackgroundFlow,
        entries: Vec<OrderEntry>,
        instruments: usize,
        shared_phase: SharedPhase,
        clock: TscClock,
        view: SourceWriter,
    ) -> BackgroundFlowAgent {
        let session = |entry| Session { entry, orders: OrderIndex::new(), has_queued: false };
        BackgroundFlowAgent {
            background_flow,
            next: None,
            started: None,
            sessions: entries.into_iter().map(session).collect(),
            next_session: 0,
            next_read: Nanos::ZERO,
            fills: Fills::new(instruments),
            shared_phase,
            next_snapshot: Nanos::ZERO,
            clock,
            view,
        }
    }

    /// Drops the request that could not be queued, if any, and sends requests to cancel every open order.
    pub(crate) fn cancel_all(&mut self, now: Nanos) {
        if let Some(action) = self.next.take() {
            self.background_flow.drop_unsent(&action);
        }
        for (session, index) in self.sessions.iter_mut().zip(0..) {
            let Some(request) = self.background_flow.cancel_all(index) else { continue };
            // If TCP's buffer is full, a later flush sends the request. A read detects a lost connection.
            if session.entry.queue(&request).is_ok() {
                session.has_queued = session.entry.flush(now).is_err();
            }
        }
    }

    /// Sends due requests, with one write per session.
    fn send_due(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let elapsed = now.since(*self.started.get_or_insert(now));
        let mut count = 0;
        while count < REQUESTS_PER_CYCLE {
            let Some(action) = self.next.take().or_else(|| self.background_flow.poll(elapsed)) else { break };
            let session = &mut self.sessions[usize::from(action.session)];
            if session.entry.queue(&action.request).is_err() {
                self.next = Some(action);
                break;
            }
            session.has_queued = true;
            session.orders.record(&action.request);
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

    /// Reads the venue's answers on one session; each call reads the next session.
    fn read(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.next_read = now + READ_INTERVAL;
        let index = self.next_session;
        self.next_session = (index + 1) % self.sessions.len();
        let session = &mut self.sessions[index];
        let mut context = (&mut self.fills, &mut self.background_flow, &self.view);
        let before = session.entry.client().next_sequence();
        let orders = &session.orders;
        let count = session
            .entry
            .poll(
                now,
                &mut context,
                |_| {},
                |(fills, background_flow, view), answer| {
                    fills.apply(orders, &answer.kind);
                    background_flow.on_event(index as u16, &answer.kind);
                    if matches!(answer.kind, OrderEventKind::Rejected { .. }) {
                        view.counters.rejected.add(1);
                    }
                },
            )
            .map_err(AgentError::fatal)?;
        if count > 0 {
            let counters = &self.view.counters;
            counters.answers.add(count as u64);
            counters.received.add(session.entry.client().next_sequence() - before);
            self.view.count_fills(&self.fills);
        }
        Ok(count)
    }

    fn publish_snapshot(&mut self, now: Nanos) {
        let open: usize = (1..=self.fills.positions.len())
            .map(|id| self.background_flow.live_count(InstrumentId(id as u16)))
            .sum();
        self.view.counters.open_orders.set(open as u64);
        let entries = self.sessions.iter().map(|session| &session.entry);
        self.next_snapshot = self.view.publish(now, entries, &self.fills);
    }
}

impl Agent for BackgroundFlowAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = match self.shared_phase.phase() {
            Phase::Trading => self.send_due(now)?,
            Phase::LogIn | Phase::Draining => 0,
        };
        // A flow behind its schedule has requests to send in every cycle, so read at intervals too.
        if work == 0 || now >= self.next_read {
            work += self.read(now)?;
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use tickpath_flowgen::BackgroundFlowConfig;
    use tickpath_nasdaq::soupbintcp::{LoginAccepted, Packet, Session as SessionName};
    use tickpath_test_support::{instrument, listen};
    use tickpath_types::{Instrument, InstrumentTable, Price, Sequence};

    use super::*;
    use crate::participant::SourceView;

    fn instruments() -> InstrumentTable {
        let (collar_low, collar_high) = (Price(500_000), Price(1_500_000));
        InstrumentTable::new(&[Instrument { collar_low, collar_high, ..instrument(1, "ONLY") }])
    }

    /// The venue's end of a connection: discards its input and sends the packets that the test chooses.
    struct Venue(TcpStream);

    impl Venue {
        fn accept(listener: &TcpListener) -> Venue {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = stream.try_clone().unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 1 << 16];
                while reader.read(&mut bytes).is_ok_and(|len| len > 0) {}
            });
            Venue(stream)
        }

        fn send(&mut self, packet: &Packet) {
            let mut bytes = [0; 64];
            let len = packet.encode(&mut bytes).unwrap();
            self.0.write_all(&bytes[..len]).unwrap();
        }
    }

    /// A logged-in background flow that always has requests to send.
    struct Busy {
        agent: BackgroundFlowAgent,
        venue: Venue,
        view: SourceView,
        shared_phase: SharedPhase,
        now: Nanos,
    }

    impl Busy {
        fn start() -> Busy {
            let (listener, address) = listen();
            let instruments = instruments();
            let config = BackgroundFlowConfig {
                rate: BackgroundFlowConfig::RATE_MAX,
                sessions: 1,
                ..BackgroundFlowConfig::default()
            };
            let background_flow = BackgroundFlow::new(config, instruments.as_slice()).unwrap();
            let entry = OrderEntry::connect(address, "CROWD1", "test", instruments, Nanos::ZERO).unwrap();
            let mut venue = Venue::accept(&listener);
            let (clock, shared_phase, (view, writer)) =
                (TscClock::shared(), SharedPhase::default(), SourceView::new(1));
            let mut agent = BackgroundFlowAgent::new(
                background_flow,
                vec![entry],
                1,
                shared_phase.clone(),
                clock,
                writer,
            );
            agent.do_work(Nanos::ZERO).unwrap();
            let accepted = LoginAccepted { session: SessionName::BLANK, next_sequence: Sequence(1) };
            venue.send(&Packet::LoginAccepted(accepted));
            let now = Nanos::from_millis(1);
            while view.counters.logged_in.read() == 0 {
                agent.publish_snapshot(now);
                agent.do_work(now).unwrap();
            }
            shared_phase.enter(Phase::Trading);
            Busy { agent, venue, view, shared_phase, now }
        }

        /// Advances the time by 100 ms and runs one duty cycle.
        fn step(&mut self) -> Result<usize, AgentError> {
            self.now = self.now + Nanos::from_millis(100);
            self.agent.do_work(self.now)
        }
    }

    #[test]
    fn a_flow_behind_its_schedule_reads_from_the_venue() {
        let mut busy = Busy::start();
        // Run for 20 s with heartbeats from the venue; a client that reads nothing for so long disconnects.
        for _ in 0..20 {
            busy.venue.send(&Packet::ServerHeartbeat);
            for _ in 0..10 {
                busy.step().unwrap();
            }
        }
        // In the first of the 200 cycles only one request is due.
        let requests = busy.view.counters.requests.read();
        assert!(requests > 199 * REQUESTS_PER_CYCLE as u64, "{requests} are not some in every cycle");
        busy.venue.send(&Packet::EndOfSession);
        let has_ended = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            busy.step().is_err()
        });
        assert!(has_ended);
    }

    #[test]
    fn unread_data_counts_against_silence() {
        let mut busy = Busy::start();
        busy.shared_phase.enter(Phase::Draining);
        busy.step().unwrap();
        busy.venue.send(&Packet::ServerHeartbeat);
        std::thread::sleep(std::time::Duration::from_millis(20));
        busy.now = busy.now + Nanos::from_secs(60);
        busy.step().unwrap();
        busy.now = busy.now + Nanos::from_secs(60);
        assert!(busy.step().is_err(), "and that is one");
    }
}

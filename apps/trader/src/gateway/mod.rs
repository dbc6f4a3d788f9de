//! The order gateway agent: it sends the requests of engines to the venue and returns the answers.

mod session;
mod settings;

use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, TscClock, WaitSet, Waker};
use tickpath_lockfree::spsc;
use tickpath_net::{Kernel, Network};
use tickpath_timing::Tracer;
use tickpath_trading::{GatewayCounters, GatewayEvent};
use tickpath_types::{Nanos, OrderRequest};

use self::session::{GatewaySession, connect_blocking};
pub use self::settings::GatewaySettings;

/// Maximum delay of a due socket read while agents of this thread have other work.
const READ_DELAY_MAX: Nanos = Nanos(10_000);

/// Sends the requests of engines to the venue and returns the answers; each engine has its own session.
///
/// A duty cycle first encodes the waiting requests of all sessions, and then writes them: sessions with an
/// order that may take liquidity before those that only quote or cancel. A session's requests keep their
/// order, because the venue requires rising UserRefNums. No write blocks: what a full connection does not take
/// is kept, and the other sessions continue.
pub struct OrderGateway<T, N: Network = Kernel> {
    role: &'static str,
    sessions: Vec<GatewaySession<T, N>>,
    /// Errors of sessions that were not returned yet: a duty cycle returns at most one.
    errors: Vec<AgentError>,
}

impl<T: Tracer> OrderGateway<T> {
    /// Creates a gateway with one session, whose start blocks until it is connected to the venue.
    pub fn new(
        settings: GatewaySettings,
        requests: spsc::Consumer<OrderRequest>,
        events: spsc::Producer<GatewayEvent>,
        clock: TscClock,
        counters: Arc<GatewayCounters>,
        tracer: T,
    ) -> OrderGateway<T> {
        OrderGateway::on(Kernel, settings, requests, events, clock, counters, tracer).waiting()
    }

    /// Makes the start block until every session is connected. The start fails if there is no listener.
    pub(crate) fn waiting(mut self) -> OrderGateway<T> {
        self.sessions.iter_mut().for_each(|session| session.connect_by(connect_blocking));
        self
    }
}

impl<T: Tracer, N: Network> OrderGateway<T, N> {
    /// Creates a gateway with one session on any network. Its start begins to connect; duty cycles complete
    /// the connection.
    pub fn on(
        network: N,
        settings: GatewaySettings,
        requests: spsc::Consumer<OrderRequest>,
        events: spsc::Producer<GatewayEvent>,
        clock: TscClock,
        counters: Arc<GatewayCounters>,
        tracer: T,
    ) -> OrderGateway<T, N> {
        let role = settings.role;
        let session = GatewaySession::on(network, settings, requests, events, clock, counters, tracer);
        OrderGateway { role, sessions: vec![session], errors: Vec::new() }
    }

    /// Adds the sessions of another gateway. The role stays that of this one.
    #[must_use]
    pub fn joined(mut self, other: OrderGateway<T, N>) -> OrderGateway<T, N> {
        self.sessions.extend(other.sessions);
        self
    }

    /// Sets the wait before reconnecting; the default is one second.
    #[must_use]
    pub fn reconnecting_after(mut self, wait: Nanos) -> OrderGateway<T, N> {
        self.sessions.iter_mut().for_each(|session| session.reconnect_after(wait));
        self
    }

    /// Encodes the requests of all sessions, then writes them. Returns their number.
    fn send_requests(&mut self, now: Nanos) -> usize {
        let OrderGateway { sessions, errors, .. } = self;
        let mut count = 0;
        for session in &mut *sessions {
            count += count_or_keep(session.encode_requests(now), errors);
        }
        if count == 0 {
            return 0;
        }
        for takes_liquidity in [true, false] {
            for session in &mut *sessions {
                if session.encoded() == Some(takes_liquidity) {
                    count_or_keep(session.write(now).map(|()| 0), errors);
                }
            }
        }
        sessions.iter_mut().for_each(GatewaySession::flush_stamps);
        count
    }

    /// Reads the answers of all sessions whose read is due since at least `delay`. Returns their number.
    fn read_answers(&mut self, now: Nanos, delay: Nanos) -> usize {
        let OrderGateway { sessions, errors, .. } = self;
        let read = |session: &mut GatewaySession<T, N>| session.read_if_due(now, delay);
        sessions.iter_mut().map(|session| count_or_keep(read(session), errors)).sum()
    }

    /// Returns a fatal error if there is one, else the oldest error; without errors, `work`.
    fn outcome(&mut self, work: usize) -> Result<usize, AgentError> {
        if self.errors.is_empty() {
            return Ok(work);
        }
        let index = self.errors.iter().position(AgentError::is_fatal).unwrap_or(0);
        Err(self.errors.remove(index))
    }
}

/// Returns the count, or 0 after an error, which is kept.
#[inline]
fn count_or_keep(result: Result<usize, AgentError>, errors: &mut Vec<AgentError>) -> usize {
    result.unwrap_or_else(|error| {
        errors.push(error);
        0
    })
}

impl<T: Tracer + Send, N: Network> Agent for OrderGateway<T, N> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.errors.reserve(self.sessions.len());
        self.sessions.iter_mut().try_for_each(GatewaySession::start)
    }

    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let work = self.send_requests(now) + self.read_answers(now, READ_DELAY_MAX);
        self.outcome(work)
    }

    fn do_background_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let work = self.read_answers(now, Nanos::ZERO);
        self.outcome(work)
    }

    fn warm_up(&mut self, _now: Nanos) {
        self.sessions.iter_mut().for_each(GatewaySession::warm_up);
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.sessions.iter().for_each(|session| session.wake_by(waker));
    }

    fn wait_for(&mut self, now: Nanos, wait: &mut WaitSet) {
        self.sessions.iter().for_each(|session| session.wait_for(now, wait));
    }

    fn role_name(&self) -> &'static str {
        self.role
    }

    fn on_close(&mut self) {
        self.sessions.iter_mut().for_each(GatewaySession::close);
    }
}

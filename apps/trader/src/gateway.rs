//! The order gateway as an agent: requests of one engine to the venue, and the answers back.

use std::net::SocketAddrV4;
use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, Counter, TscClock};
use tickpath_lockfree::spsc;
use tickpath_nasdaq::ouch50::OrderAnswer;
use tickpath_timing::{Function, Hop, Token, Tracer};
use tickpath_types::{CancelReason, InstrumentTable, Nanos, OrderEventKind, OrderRequest, SessionId};

use crate::order_entry::{OrderEntry, OrderEntryError};

/// Requests sent by one write at most.
const REQUESTS_PER_CYCLE: usize = 32;
/// One request in so many has its encoding timed.
const TIMED_EVERY: u32 = 16;
/// How often the socket is looked at while there is nothing to write: a look is a system call of some 200 ns.
const READ_INTERVAL: Nanos = Nanos(1_000);
/// How long to wait before connecting again.
const RECONNECT_INTERVAL: Nanos = Nanos::from_secs(1);

/// What an [`OrderGateway`] has done, readable from outside while it runs.
#[derive(Default)]
pub struct GatewayCounters {
    /// Requests written to the venue.
    pub requests: Counter,
    /// Answers read from it.
    pub answers: Counter,
    /// Number of the last message of the venue's session.
    pub last_sequence: Counter,
    /// 1 while logged in.
    pub logged_in: Counter,
    /// Connections lost.
    pub disconnects: Counter,
}

/// How an order gateway logs in.
#[derive(Clone)]
pub struct GatewaySettings {
    /// Name of the agent.
    pub role: &'static str,
    /// The venue's order entry.
    pub address: SocketAddrV4,
    /// The user.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Number of the session in stamps: the venue's, where both are traced together.
    pub session: SessionId,
    /// The venue's instruments.
    pub instruments: InstrumentTable,
}

/// Writes an engine's requests to the venue and hands it the answers.
///
/// A duty cycle either writes or reads, writing first. When the connection is lost it logs in again where the
/// session stood: no answer is missed and none comes twice.
pub struct OrderGateway<T> {
    settings: GatewaySettings,
    entry: Option<OrderEntry>,
    reconnect_at: Nanos,
    clock: TscClock,
    requests: spsc::Consumer<OrderRequest>,
    requests_until_timed: u32,
    next_read: Nanos,
    inbox: Inbox<T>,
    counters: Arc<GatewayCounters>,
}

/// The way back to the engine.
struct Inbox<T> {
    session: SessionId,
    answers: spsc::Producer<OrderAnswer>,
    tracer: T,
    read_at: u64,
    overflowed: bool,
}

impl<T: Tracer> OrderGateway<T> {
    /// A gateway that connects when it is started.
    pub fn new(
        settings: GatewaySettings,
        requests: spsc::Consumer<OrderRequest>,
        answers: spsc::Producer<OrderAnswer>,
        clock: TscClock,
        counters: Arc<GatewayCounters>,
        tracer: T,
    ) -> OrderGateway<T> {
        let inbox = Inbox { session: settings.session, answers, tracer, read_at: 0, overflowed: false };
        OrderGateway {
            settings,
            entry: None,
            reconnect_at: Nanos::ZERO,
            clock,
            requests,
            requests_until_timed: 0,
            next_read: Nanos::ZERO,
            inbox,
            counters,
        }
    }

    fn connect(&self, now: Nanos) -> Result<OrderEntry, OrderEntryError> {
        let GatewaySettings { address, user, password, instruments, .. } = &self.settings;
        OrderEntry::connect(*address, user, password, instruments.clone(), now)
    }

    /// Takes what the engine asks for and sends it by one write.
    fn send_requests(&mut self, now: Nanos) -> Result<usize, OrderEntryError> {
        let Some(entry) = self.entry.as_mut().filter(|entry| entry.is_active()) else { return Ok(0) };
        let mut sent = [None; REQUESTS_PER_CYCLE];
        let mut count = 0;
        while count < REQUESTS_PER_CYCLE {
            let Some(request) = self.requests.try_pop() else { break };
            let token = Token::of_request(self.inbox.session, &request);
            let taken = self.inbox.tracer.stamp(Hop::T11, token);
            entry.queue(now, &request)?;
            if T::ENABLED {
                self.requests_until_timed = self.requests_until_timed.wrapping_sub(1);
                if self.requests_until_timed.is_multiple_of(TIMED_EVERY) {
                    let ticks = self.inbox.tracer.now().wrapping_sub(taken);
                    self.inbox.tracer.time(Function::OrderEncode, ticks);
                }
            }
            sent[count] = Some(token);
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        let writing = self.inbox.tracer.now();
        let flushed = entry.flush();
        let written = self.inbox.tracer.now();
        for token in sent[..count].iter().flatten() {
            self.inbox.tracer.stamp_at(Hop::T12w, *token, writing);
            self.inbox.tracer.stamp_at(Hop::T12, *token, written);
        }
        self.counters.requests.add(count as u64);
        flushed.map(|()| count)
    }

    fn read_answers(&mut self, now: Nanos) -> Result<usize, OrderEntryError> {
        let Some(entry) = self.entry.as_mut() else { return Ok(0) };
        let count = entry.poll(
            now,
            &mut self.inbox,
            |inbox| inbox.read_at = inbox.tracer.now(),
            |inbox, answer| inbox.take(answer),
        )?;
        self.counters.logged_in.set(u64::from(entry.is_active()));
        if count > 0 {
            self.counters.answers.add(count as u64);
            self.counters.last_sequence.set(entry.next_sequence() - 1);
        }
        Ok(count)
    }

    /// Loses the connection; a refused login is final, everything else is tried again.
    #[cold]
    fn disconnect(&mut self, now: Nanos, error: OrderEntryError) -> AgentError {
        self.counters.logged_in.set(0);
        self.counters.disconnects.add(1);
        self.reconnect_at = now + RECONNECT_INTERVAL;
        if let OrderEntryError::LoginRejected { .. } | OrderEntryError::Encode(_) = error {
            return AgentError::fatal(error);
        }
        if let Some(entry) = &mut self.entry {
            entry.disconnect();
        }
        AgentError::recoverable(error)
    }

    #[cold]
    fn reconnect(&mut self, now: Nanos) -> Result<(), AgentError> {
        self.reconnect_at = now + RECONNECT_INTERVAL;
        match &mut self.entry {
            Some(entry) => entry.reconnect(self.settings.address, now).map_err(AgentError::recoverable),
            None => Ok(()),
        }
    }
}

impl<T: Tracer> Inbox<T> {
    #[inline]
    fn take(&mut self, answer: &OrderAnswer) {
        let token = reply_token(self.session, &answer.kind);
        if let Some(token) = token {
            self.tracer.stamp_at(Hop::T7t, token, self.read_at);
        }
        self.overflowed |= self.answers.try_push(*answer).is_err();
        if let Some(token) = token {
            self.tracer.stamp(Hop::T8t, token);
        }
    }
}

/// True for an answer that replies to a request and is not mere news of an order. Every request has one,
/// unless it is about an order that is gone.
#[must_use]
pub fn is_reply(kind: &OrderEventKind) -> bool {
    reply_token(SessionId::default(), kind).is_some()
}

/// The request that an answer replies to, if it is a reply and not news of an order.
pub(crate) fn reply_token(session: SessionId, kind: &OrderEventKind) -> Option<Token> {
    match kind {
        OrderEventKind::Accepted { order, .. } | OrderEventKind::Replaced { order, .. } => {
            Some(Token::new(session, order.user_ref, true))
        }
        OrderEventKind::Rejected { user_ref, .. } => Some(Token::new(session, *user_ref, true)),
        OrderEventKind::Canceled { user_ref, reason: CancelReason::User, .. }
        | OrderEventKind::Modified { user_ref, .. } => Some(Token::new(session, *user_ref, false)),
        OrderEventKind::Canceled { .. } | OrderEventKind::Executed { .. } => None,
    }
}

impl<T: Tracer + Send> Agent for OrderGateway<T> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.entry = Some(self.connect(self.clock.now()).map_err(AgentError::fatal)?);
        Ok(())
    }

    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if self.entry.as_ref().is_some_and(|entry| !entry.is_connected()) {
            if now >= self.reconnect_at {
                self.reconnect(now)?;
            }
            return Ok(0);
        }
        let mut work = match self.send_requests(now) {
            Ok(count) => count,
            Err(error) => return Err(self.disconnect(now, error)),
        };
        if work == 0 && now >= self.next_read {
            self.next_read = now + READ_INTERVAL;
            work = match self.read_answers(now) {
                Ok(count) => count,
                Err(error) => return Err(self.disconnect(now, error)),
            };
        }
        if self.inbox.overflowed {
            return Err(AgentError::fatal(
                "the engine does not take its answers: it is stuck, or its ring is too small",
            ));
        }
        if work > 0 {
            self.inbox.tracer.flush();
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        self.settings.role
    }

    fn on_close(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.logout(self.clock.now());
        }
    }
}

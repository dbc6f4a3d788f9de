//! The order entry session of one engine: encodes and writes its requests, and returns the answers.

use std::sync::Arc;

use tickpath_agent::{AgentError, TscClock, WaitSet, Waker};
use tickpath_faults::failpoint;
use tickpath_lockfree::spsc;
use tickpath_nasdaq::ouch50::OrderAnswer;
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_net::{Kernel, Network};
use tickpath_timing::{Function, Hop, Token, Tracer};
use tickpath_trading::{GatewayCounters, GatewayEvent, OrderSession};
use tickpath_types::{
    CancelOrder, EnterOrder, InstrumentId, Nanos, OrderRequest, Price, Qty, SessionId, Side, UserRefNum,
};

use super::settings::GatewaySettings;
use crate::order_entry::{OrderEntry, OrderEntryError};

/// Maximum number of requests per write.
const REQUESTS_PER_CYCLE: usize = 32;
/// The encoding of one request in this many is timed.
const TIMED_EVERY: u32 = 16;
/// Number of request kinds in the warm-up.
const WARM_UP_KINDS: usize = 3;
/// Minimum interval between socket reads: a read is a system call of some 200 ns.
const READ_INTERVAL: Nanos = Nanos(1_000);
/// Maximum sleep while connected: short, compared with the protocol's time-outs of seconds.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(20);
/// Default wait before reconnecting.
const RECONNECT_INTERVAL: Nanos = Nanos::from_secs(1);

/// Sends an engine's requests to the venue and returns the answers.
///
/// Requests are [encoded](Self::encode_requests) first and [written](Self::write) later, so that a gateway can
/// encode those of several sessions before it writes any.
///
/// At its first login the session requests only new messages and the next UserRefNum, because this engine
/// does not own the orders of the user's earlier runs. Writes have priority over reads, but delay a read only
/// for a bounded time. After a lost connection the session logs in again from the last message on, so that no
/// answer is missed or repeated. Requests made in the meantime are never sent; they are returned as
/// [`GatewayEvent::Unsent`].
pub(super) struct GatewaySession<T, N: Network = Kernel> {
    settings: GatewaySettings,
    network: N,
    connect: Connect<N>,
    entry: Option<OrderEntry<N>>,
    state: OrderSession,
    reconnect_after: Nanos,
    clock: TscClock,
    requests: Requests,
    /// Number of requests that are encoded and wait for the write.
    encoded: usize,
    next_read: Nanos,
    inbox: Inbox<T>,
    encode_warm_up: EncodeWarmUp<T>,
    counters: Arc<GatewayCounters>,
}

/// Function that makes the first connection; it may block. Reconnecting never blocks.
pub(super) type Connect<N> = fn(&N, &GatewaySettings, Nanos) -> Result<OrderEntry<N>, OrderEntryError>;

/// Takes requests from the engine's ring and encodes them for the venue.
struct Requests {
    session: SessionId,
    ring: spsc::Consumer<OrderRequest>,
    until_timed: u32,
    /// Timing tokens of the requests that the latest `encode` call encoded.
    sent: Box<[Token]>,
    /// True if one of these requests may take liquidity.
    may_take: bool,
}

/// Warm-up: encodes sample requests without sending them.
struct EncodeWarmUp<T> {
    requests: Requests,
    ring: spsc::Producer<OrderRequest>,
    tracer: T,
    sample_requests: Option<[OrderRequest; WARM_UP_KINDS]>,
    next: usize,
}

/// Passes answers and events to the engine's ring.
struct Inbox<T> {
    session: SessionId,
    events: spsc::Producer<GatewayEvent>,
    tracer: T,
    read_at: u64,
    /// True if the latest read of the socket returned data.
    has_read: bool,
    /// Number of answers from the latest read.
    answered: usize,
    has_overflowed: bool,
}

impl<T: Tracer, N: Network> GatewaySession<T, N> {
    /// Creates a session on any network, which begins to connect at its start.
    pub(super) fn on(
        network: N,
        settings: GatewaySettings,
        requests: spsc::Consumer<OrderRequest>,
        events: spsc::Producer<GatewayEvent>,
        clock: TscClock,
        counters: Arc<GatewayCounters>,
        tracer: T,
    ) -> GatewaySession<T, N> {
        let first = settings.instruments.as_slice().first().map(|instrument| instrument.id);
        let encode_warm_up = EncodeWarmUp::new(settings.session, first, tracer.warm_up_instance());
        let requests = Requests::new(settings.session, requests);
        let (session, state) = (settings.session, OrderSession::new(settings.reconcile_after));
        let inbox = Inbox {
            session,
            events,
            tracer,
            read_at: 0,
            has_read: false,
            answered: 0,
            has_overflowed: false,
        };
        GatewaySession {
            settings,
            network,
            connect: begin_connecting,
            entry: None,
            state,
            reconnect_after: RECONNECT_INTERVAL,
            clock,
            requests,
            encoded: 0,
            next_read: Nanos::ZERO,
            inbox,
            encode_warm_up,
            counters,
        }
    }

    /// Sets the function that makes the first connection.
    pub(super) fn connect_by(&mut self, connect: Connect<N>) {
        self.connect = connect;
    }

    /// Sets the wait before reconnecting; the default is one second.
    pub(super) fn reconnect_after(&mut self, wait: Nanos) {
        self.reconnect_after = wait;
    }

    /// Begins the first connection.
    pub(super) fn start(&mut self) -> Result<(), AgentError> {
        let now = self.clock.now();
        let entry = (self.connect)(&self.network, &self.settings, now).map_err(AgentError::fatal)?;
        self.entry = Some(entry.only_new(now));
        Ok(())
    }

    /// Encodes the engine's requests; returns them to the engine while not logged in. Returns their number.
    #[inline]
    pub(super) fn encode_requests(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if self.requests.ring.peek().is_none() {
            return Ok(0);
        }
        let entry = self.entry.as_mut().filter(|entry| entry.is_active());
        let Some(entry) = entry else { return Ok(self.return_requests()) };
        match self.requests.encode(entry, &mut self.inbox.tracer) {
            Ok(count) => {
                self.encoded = count;
                Ok(count)
            }
            Err(error) => Err(self.disconnect(now, error)),
        }
    }

    /// Returns whether requests are encoded and not written; if so, whether one of them may take liquidity.
    pub(super) const fn encoded(&self) -> Option<bool> {
        if self.encoded > 0 { Some(self.requests.may_take) } else { None }
    }

    /// Passes the encoded requests to TCP in one write, which never blocks.
    pub(super) fn write(&mut self, now: Nanos) -> Result<(), AgentError> {
        let count = std::mem::take(&mut self.encoded);
        let Some(entry) = &mut self.entry else { return Ok(()) };
        let tracer = &mut self.inbox.tracer;
        let writing = tracer.now();
        let flushed = entry.flush(now);
        let written = tracer.now();
        for token in &self.requests.sent[..count] {
            tracer.stamp_at(Hop::T12w, *token, writing);
            tracer.stamp_at(Hop::T12, *token, written);
        }
        self.counters.requests.add(count as u64);
        flushed.map_err(|error| self.disconnect(now, error))
    }

    /// Publishes the stamps of the latest requests.
    pub(super) fn flush_stamps(&mut self) {
        self.inbox.tracer.flush();
    }

    /// Reads answers if a read is due since at least `delay`; returns their number.
    #[inline]
    pub(super) fn read_if_due(&mut self, now: Nanos, delay: Nanos) -> Result<usize, AgentError> {
        if now >= self.next_read + delay { self.take_answers(now) } else { Ok(0) }
    }

    /// Keeps the code of the encoding in the caches.
    pub(super) fn warm_up(&mut self) {
        self.inbox.tracer.prefetch();
        if let Some(entry) = self.entry.as_mut().filter(|entry| entry.is_connected()) {
            self.encode_warm_up.run(entry);
        }
    }

    /// See [`Agent::wake_by`](tickpath_agent::Agent::wake_by).
    pub(super) fn wake_by(&self, waker: &Waker) {
        self.requests.ring.wake_by(waker);
    }

    /// See [`Agent::wait_for`](tickpath_agent::Agent::wait_for).
    pub(super) fn wait_for(&self, now: Nanos, wait: &mut WaitSet) {
        match &self.entry {
            Some(entry) if entry.is_connected() && self.state.is_up() => {
                wait.descriptor(entry.descriptor());
                wait.until(now + TIMER_INTERVAL);
            }
            _ => wait.soon(),
        }
    }

    /// Logs out, if connected.
    pub(super) fn close(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.logout(self.clock.now());
        }
    }

    /// Returns requests to the engine as unsent, as many as the event ring has space for.
    #[cold]
    fn return_requests(&mut self) -> usize {
        let free_slots = self.inbox.events.free_slots().min(REQUESTS_PER_CYCLE);
        let mut count = 0;
        while count < free_slots {
            let Some(request) = self.requests.ring.try_pop() else { break };
            self.inbox.publish(GatewayEvent::Unsent(request));
            count += 1;
        }
        self.counters.unsent.add(count as u64);
        count
    }

    fn take_answers(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.next_read = now + READ_INTERVAL;
        let Some(entry) = &mut self.entry else { return Ok(0) };
        match entry.poll_connected(now) {
            Ok(true) => {}
            Ok(false) => return Ok(0),
            Err(error) => {
                entry.disconnect(now + self.reconnect_after);
                return Err(AgentError::recoverable(error));
            }
        }
        let (answered, outcome) = self.read_answers(now);
        if answered > 0 {
            self.inbox.tracer.flush();
        }
        if self.inbox.has_overflowed {
            return Err(AgentError::fatal(
                "the engine does not read its answers: it is stuck, or its ring is too small",
            ));
        }
        outcome.map(|()| answered).map_err(|error| self.disconnect(now, error))
    }

    /// Passes the answers from a read to the engine; returns their number, and an error if the connection
    /// must end.
    fn read_answers(&mut self, now: Nanos) -> (usize, Result<(), OrderEntryError>) {
        let Some(entry) = self.entry.as_mut() else { return (0, Ok(())) };
        (self.inbox.has_read, self.inbox.answered) = (false, 0);
        let outcome = entry.poll(
            now,
            &mut self.inbox,
            |inbox| {
                inbox.read_at = inbox.tracer.now();
                inbox.has_read = true;
            },
            |inbox, answer| inbox.publish_answer(answer),
        );
        // Answers that were read before the connection ended are still valid.
        let answered = self.inbox.answered;
        if answered > 0 {
            self.counters.answers.add(answered as u64);
        }
        if self.inbox.has_read {
            // Before the login no message has arrived, so the next sequence number may be 0.
            self.counters.last_sequence.set(entry.client().next_sequence().saturating_sub(1));
        }
        let (is_active, has_debug_message) = (entry.is_active(), entry.client_mut().take_debug_message());
        if has_debug_message {
            self.state.handle_notice(now, |event| self.inbox.publish(event));
        }
        let outcome = outcome
            .and_then(|_| if is_active && !self.state.is_up() { self.update_session(now) } else { Ok(()) });
        let is_logged_in = is_active && !self.state.is_new();
        if outcome.is_ok() {
            self.counters.logged_in.set(is_logged_in.into());
        }
        (answered, outcome)
    }

    /// Runs after each read from the login until the session is up. Queries the venue for the UserRefNum of
    /// the engine's first order, publishes it for the engine, and advances the session's state.
    #[cold]
    fn update_session(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        let Some(entry) = &mut self.entry else { return Ok(()) };
        let first = entry.client().next_user_ref();
        if let Some(first) = first.filter(|_| self.state.is_new()) {
            if first.0 == 0 {
                return Err(OrderEntryError::NumbersExhausted { name: self.settings.user.clone() });
            }
            self.counters.first_user_ref.set(first.0.into());
        }
        let inbox = &mut self.inbox;
        if self.state.handle_read(now, inbox.has_read, first.is_some(), |event| inbox.publish(event)) {
            entry.query_account(now)?;
            self.counters.requests.add(1);
        }
        Ok(())
    }

    /// Handles an error of the connection. An unencodable request, used-up UserRefNums and a refused login
    /// are fatal. After other errors the gateway reconnects, also if the venue refuses a later login because
    /// it still holds the lost connection.
    #[cold]
    fn disconnect(&mut self, now: Nanos, error: OrderEntryError) -> AgentError {
        self.counters.logged_in.set(0);
        let is_final = match error {
            OrderEntryError::LoginRejected { reason, .. } => {
                self.state.is_new() || reason != LoginRejectReason::SESSION_NOT_AVAILABLE
            }
            OrderEntryError::Encode(_) | OrderEntryError::NumbersExhausted { .. } => true,
            _ => false,
        };
        if is_final {
            return AgentError::fatal(error);
        }
        let was_logged_in = self.state.handle_disconnect(|event| self.inbox.publish(event));
        self.counters.disconnects.add(was_logged_in.into());
        if let Some(entry) = &mut self.entry {
            entry.disconnect(now + self.reconnect_after);
        }
        AgentError::recoverable(error)
    }
}

pub(super) fn connect_blocking(
    _: &Kernel,
    settings: &GatewaySettings,
    now: Nanos,
) -> Result<OrderEntry, OrderEntryError> {
    let GatewaySettings { address, user, password, instruments, .. } = settings;
    OrderEntry::connect(*address, user, password, instruments.clone(), now)
}

fn begin_connecting<N: Network>(
    network: &N,
    settings: &GatewaySettings,
    now: Nanos,
) -> Result<OrderEntry<N>, OrderEntryError> {
    let GatewaySettings { address, user, password, instruments, .. } = settings;
    OrderEntry::begin_on(network.clone(), *address, user, password, instruments.clone(), now)
}

impl Requests {
    fn new(session: SessionId, ring: spsc::Consumer<OrderRequest>) -> Requests {
        let none = Token::new(session, UserRefNum(0), true);
        let sent = [none; REQUESTS_PER_CYCLE].into();
        Requests { session, ring, until_timed: 0, sent, may_take: false }
    }

    /// Encodes up to `REQUESTS_PER_CYCLE` requests from the ring; returns their number. Never inlined, so
    /// that sending and warm-up run the same code.
    #[inline(never)]
    fn encode<T: Tracer, N: Network>(
        &mut self,
        entry: &mut OrderEntry<N>,
        tracer: &mut T,
    ) -> Result<usize, OrderEntryError> {
        let mut count = 0;
        self.may_take = false;
        while count < REQUESTS_PER_CYCLE {
            // Encoded from the ring's memory, without a copy of the request.
            let Some(request) = self.ring.peek() else { break };
            self.may_take |= request.may_take_liquidity();
            let token = Token::of_request(self.session, request);
            let taken = tracer.stamp(Hop::T11, token);
            let queued = entry.queue(request);
            let _ = self.ring.try_pop();
            queued?;
            if T::ENABLED {
                self.until_timed = self.until_timed.wrapping_sub(1);
                if self.until_timed.is_multiple_of(TIMED_EVERY) {
                    let ticks = tracer.now().wrapping_sub(taken);
                    tracer.time(Function::OrderEncode, ticks);
                }
            }
            self.sent[count] = token;
            count += 1;
        }
        Ok(count)
    }
}

impl<T: Tracer> EncodeWarmUp<T> {
    /// Creates a warm-up with requests for an instrument; without an instrument there is no warm-up.
    fn new(session: SessionId, instrument: Option<InstrumentId>, tracer: T) -> EncodeWarmUp<T> {
        let (ring, requests) = spsc::channel(WARM_UP_KINDS);
        let requests = Requests::new(session, requests);
        EncodeWarmUp { requests, ring, tracer, sample_requests: instrument.map(sample_requests), next: 0 }
    }

    /// Encodes the next sample request as if it were sent, and discards it.
    fn run<N: Network>(&mut self, entry: &mut OrderEntry<N>) {
        let Some(sample_requests) = &self.sample_requests else { return };
        if !entry.is_active() || !entry.client().queued().is_empty() {
            return;
        }
        let request = sample_requests[self.next];
        self.next = (self.next + 1) % WARM_UP_KINDS;
        let encoded = self.ring.try_push(request).is_ok()
            && self.requests.encode(entry, &mut self.tracer).is_ok_and(|count| count == 1);
        debug_assert!(encoded, "{request:?} is a request like any other");
        self.tracer.discard();
        failpoint!(RehearsedRequestSent => return);
        entry.client_mut().discard();
    }
}

/// Returns one request of each kind that strategies send.
fn sample_requests(instrument: InstrumentId) -> [OrderRequest; WARM_UP_KINDS] {
    let order = |user_ref| EnterOrder {
        post_only: true,
        ..EnterOrder::limit(UserRefNum(user_ref), instrument, Side::Buy, Qty(1), Price(10_000))
    };
    let enter = order(1);
    let replace = order(2).replacing(enter.user_ref);
    let cancel = CancelOrder { user_ref: enter.user_ref, qty: Qty::ZERO };
    [OrderRequest::Replace(replace), OrderRequest::Cancel(cancel), OrderRequest::Enter(enter)]
}

impl<T: Tracer> Inbox<T> {
    #[inline]
    fn publish(&mut self, event: GatewayEvent) {
        self.has_overflowed |= self.events.try_push(event).is_err();
    }

    #[inline]
    fn publish_answer(&mut self, answer: &OrderAnswer) {
        self.answered += 1;
        let token = Token::of_reply(self.session, &answer.kind);
        if let Some(token) = token {
            self.tracer.stamp_at(Hop::T7t, token, self.read_at);
        }
        self.publish(GatewayEvent::Answer { kind: answer.kind, ts: answer.ts });
        if let Some(token) = token {
            self.tracer.stamp(Hop::T8t, token);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nasdaq::ouch50;
    use tickpath_types::Symbol;

    use super::*;

    #[test]
    fn warm_up_requests_can_be_sent() {
        let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
        let instrument = InstrumentId(7);
        let symbol_of = |id| (id == instrument).then(|| Symbol::new("SEVEN").unwrap());
        let lens = sample_requests(instrument)
            .map(|request| ouch50::encode_request(&request, symbol_of, &mut bytes).unwrap());
        assert!(lens.iter().all(|len| *len > 0), "{lens:?}");
        let kinds = sample_requests(instrument).map(|request| std::mem::discriminant(&request));
        assert!(kinds[0] != kinds[1] && kinds[1] != kinds[2] && kinds[2] != kinds[0], "each kind once");
    }
}

//! The order gateway as an agent: requests of one engine to the venue, and the answers back.

use std::net::SocketAddrV4;
use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, Counter, TscClock};
use tickpath_lockfree::spsc;
use tickpath_nasdaq::ouch50::OrderAnswer;
use tickpath_nasdaq::soupbintcp::LoginRejectReason;
use tickpath_timing::{Function, Hop, Token, Tracer};
use tickpath_types::{
    CancelOrder, CancelReason, ClientOrderId, EnterOrder, InstrumentId, InstrumentTable, Nanos,
    OrderAttributes, OrderEventKind, OrderRequest, Price, Qty, ReplaceOrder, SessionId, Side, TimeInForce,
    UserRefNum,
};

use crate::order_entry::{OrderEntry, OrderEntryError};

/// Requests sent by one write at most.
const REQUESTS_PER_CYCLE: usize = 32;
/// One request in so many has its encoding timed.
const TIMED_EVERY: u32 = 16;
/// Kinds of requests that are rehearsed.
const REHEARSED_KINDS: usize = 3;
/// How often the socket is looked at while there is nothing to write: a look is a system call of some 200 ns.
const READ_INTERVAL: Nanos = Nanos(1_000);
/// How long a look may wait in addition while other agents of the thread have work.
const READ_DELAY_MAX: Nanos = Nanos(10_000);
/// How long to wait before connecting again.
const RECONNECT_INTERVAL: Nanos = Nanos::from_secs(1);

/// What an order gateway tells its engine, in the order in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// The venue said something of an order.
    Answer(OrderAnswer),
    /// The request was not sent, and never will be: it came while the gateway was not logged in.
    Unsent(OrderRequest),
    /// The connection is lost. What was sent and is not answered may have reached the venue or not.
    Disconnected,
    /// The gateway is logged in again. What the venue had to say meanwhile follows, or came just before.
    Reconnected,
    /// The venue has said what it had to say of everything that was sent before the connection was lost: what is
    /// not answered by now did not reach it.
    Settled,
}

/// What an [`OrderGateway`] has done, readable from outside while it runs.
#[derive(Debug, Default)]
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub struct GatewayCounters {
    /// Requests written to the venue.
    pub requests: Counter,
    /// Requests given back to the engine because the gateway was not logged in.
    pub unsent: Counter,
    /// Answers read from it.
    pub answers: Counter,
    /// Number of the last message of the venue's session.
    pub last_sequence: Counter,
    /// 1 while logged in.
    pub logged_in: Counter,
    /// Connections lost after the login.
    pub disconnects: Counter,
}

/// How long after a new login requests may still be answered that the venue got by the lost connection.
pub const SETTLE_AFTER: Nanos = Nanos::from_secs(1);

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
    /// How long after a new login requests may still be answered that the venue got by the lost connection;
    /// [`SETTLE_AFTER`] is ample where the venue answers within milliseconds.
    pub settle_after: Nanos,
}

/// Whether there is a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// There was none yet.
    New,
    Up,
    Lost,
    /// There is one again, and requests that were sent before may still be answered: until `from`, and until the
    /// venue is heard once more after everything that had come by then was read. TCP keeps the order: whatever
    /// the venue said before that was read too.
    Settling {
        from: Nanos,
        is_dry: bool,
    },
}

/// Writes an engine's requests to the venue and hands it the answers.
///
/// Writing comes first: reads wait until nothing is to be done, though not for ever. When the connection is lost
/// it logs in again where the session stood: no answer is missed and none comes twice. Requests that come
/// meanwhile are given back, each by a [`GatewayEvent::Unsent`], and never sent late.
pub struct OrderGateway<T> {
    settings: GatewaySettings,
    entry: Option<OrderEntry>,
    link: Link,
    reconnect_at: Nanos,
    clock: TscClock,
    requests: Requests,
    next_read: Nanos,
    inbox: Inbox<T>,
    rehearsal: Rehearsal<T>,
    counters: Arc<GatewayCounters>,
}

/// The way from the engine.
struct Requests {
    session: SessionId,
    ring: spsc::Consumer<OrderRequest>,
    until_timed: u32,
    /// Those of the latest cycle that sent any.
    sent: Box<[Token]>,
}

/// Requests that are encoded and not sent.
struct Rehearsal<T> {
    requests: Requests,
    ring: spsc::Producer<OrderRequest>,
    tracer: T,
    kind: usize,
}

/// The way back to the engine.
struct Inbox<T> {
    session: SessionId,
    events: spsc::Producer<GatewayEvent>,
    tracer: T,
    read_at: u64,
    /// Set when a look at the socket brought something.
    has_read: bool,
    overflowed: bool,
}

impl<T: Tracer> OrderGateway<T> {
    /// A gateway that connects when it is started.
    pub fn new(
        settings: GatewaySettings,
        requests: spsc::Consumer<OrderRequest>,
        events: spsc::Producer<GatewayEvent>,
        clock: TscClock,
        counters: Arc<GatewayCounters>,
        tracer: T,
    ) -> OrderGateway<T> {
        let rehearsal = Rehearsal::new(settings.session, tracer.understudy());
        let requests = Requests::new(settings.session, requests);
        let session = settings.session;
        let inbox = Inbox { session, events, tracer, read_at: 0, has_read: false, overflowed: false };
        OrderGateway {
            settings,
            entry: None,
            link: Link::New,
            reconnect_at: Nanos::ZERO,
            clock,
            requests,
            next_read: Nanos::ZERO,
            inbox,
            rehearsal,
            counters,
        }
    }

    fn connect(&self, now: Nanos) -> Result<OrderEntry, OrderEntryError> {
        let GatewaySettings { address, user, password, instruments, .. } = &self.settings;
        OrderEntry::connect(*address, user, password, instruments.clone(), now)
    }

    /// Takes what the engine asks for and sends it by one write.
    fn send_requests(&mut self, now: Nanos) -> Result<usize, OrderEntryError> {
        let entry = self.entry.as_mut().filter(|entry| entry.is_connected() && entry.is_active());
        let Some(entry) = entry else { return Ok(self.give_back_requests()) };
        let tracer = &mut self.inbox.tracer;
        let count = self.requests.encode(entry, tracer)?;
        let writing = tracer.now();
        let flushed = entry.flush(now);
        let written = tracer.now();
        for token in &self.requests.sent[..count] {
            tracer.stamp_at(Hop::T12w, *token, writing);
            tracer.stamp_at(Hop::T12, *token, written);
        }
        self.counters.requests.add(count as u64);
        flushed.map(|()| count)
    }

    /// Nothing can be sent: whoever asked is told at once, as far as there is room to tell.
    #[cold]
    fn give_back_requests(&mut self) -> usize {
        let room = self.inbox.events.free_slots().min(REQUESTS_PER_CYCLE);
        let mut count = 0;
        while count < room {
            let Some(request) = self.requests.ring.try_pop() else { break };
            self.inbox.tell(GatewayEvent::Unsent(request));
            count += 1;
        }
        self.counters.unsent.add(count as u64);
        count
    }

    fn take_answers(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.next_read = now + READ_INTERVAL;
        if self.entry.as_ref().is_none_or(|entry| !entry.is_connected()) {
            return if now >= self.reconnect_at { self.reconnect(now).map(|()| 0) } else { Ok(0) };
        }
        let count = self.read_answers(now).map_err(|error| self.disconnect(now, error))?;
        if self.inbox.overflowed {
            return Err(AgentError::fatal(
                "the engine does not take its answers: it is stuck, or its ring is too small",
            ));
        }
        if count > 0 {
            self.inbox.tracer.flush();
        }
        Ok(count)
    }

    fn read_answers(&mut self, now: Nanos) -> Result<usize, OrderEntryError> {
        let Some(entry) = self.entry.as_mut() else { return Ok(0) };
        self.inbox.has_read = false;
        let count = entry.poll(
            now,
            &mut self.inbox,
            |inbox| {
                inbox.read_at = inbox.tracer.now();
                inbox.has_read = true;
            },
            |inbox, answer| inbox.take(answer),
        )?;
        self.counters.logged_in.set(u64::from(entry.is_active()));
        if count > 0 {
            self.counters.answers.add(count as u64);
            self.counters.last_sequence.set(entry.next_sequence() - 1);
        }
        if self.link != Link::Up && entry.is_active() {
            self.settle(now);
        }
        Ok(count)
    }

    /// After a look at the socket, logged in: whether the engine is to be told.
    #[cold]
    fn settle(&mut self, now: Nanos) {
        self.link = match self.link {
            Link::New | Link::Up => Link::Up,
            Link::Lost => {
                self.inbox.tell(GatewayEvent::Reconnected);
                Link::Settling { from: now + self.settings.settle_after, is_dry: false }
            }
            Link::Settling { is_dry: true, .. } if self.inbox.has_read => {
                self.inbox.tell(GatewayEvent::Settled);
                Link::Up
            }
            Link::Settling { from, is_dry } => {
                Link::Settling { from, is_dry: is_dry || (now >= from && !self.inbox.has_read) }
            }
        };
    }

    /// Loses the connection. A refused login is final, except that a venue may not yet have noticed the end of the
    /// connection before, and refuses a second one; everything else is tried again.
    #[cold]
    fn disconnect(&mut self, now: Nanos, error: OrderEntryError) -> AgentError {
        self.counters.logged_in.set(0);
        self.reconnect_at = now + RECONNECT_INTERVAL;
        let is_final = match error {
            OrderEntryError::LoginRejected { reason, .. } => {
                self.link == Link::New || reason != LoginRejectReason::SESSION_NOT_AVAILABLE
            }
            OrderEntryError::Encode(_) => true,
            _ => false,
        };
        if is_final {
            return AgentError::fatal(error);
        }
        if let Link::Up | Link::Settling { .. } = self.link {
            self.link = Link::Lost;
            self.counters.disconnects.add(1);
            self.inbox.tell(GatewayEvent::Disconnected);
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

impl Requests {
    fn new(session: SessionId, ring: spsc::Consumer<OrderRequest>) -> Requests {
        let none = Token::new(session, UserRefNum(0), true);
        Requests { session, ring, until_timed: 0, sent: [none; REQUESTS_PER_CYCLE].into() }
    }

    /// Encodes what the ring holds, as much as one cycle sends. Never inlined: what is sent and what is rehearsed
    /// run the same code.
    #[inline(never)]
    fn encode<T: Tracer>(
        &mut self,
        entry: &mut OrderEntry,
        tracer: &mut T,
    ) -> Result<usize, OrderEntryError> {
        let mut count = 0;
        while count < REQUESTS_PER_CYCLE {
            let Some(request) = self.ring.try_pop() else { break };
            let token = Token::of_request(self.session, &request);
            let taken = tracer.stamp(Hop::T11, token);
            entry.queue(&request)?;
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

impl<T: Tracer> Rehearsal<T> {
    fn new(session: SessionId, tracer: T) -> Rehearsal<T> {
        let (ring, requests) = spsc::channel(REHEARSED_KINDS);
        Rehearsal { requests: Requests::new(session, requests), ring, tracer, kind: 0 }
    }

    /// Takes one request of each kind in turn up to the write, and forgets it.
    fn run(&mut self, entry: &mut OrderEntry) {
        if !entry.is_active() || entry.queued_len() > 0 {
            return;
        }
        self.kind = (self.kind + 1) % REHEARSED_KINDS;
        if self.ring.try_push(specimen(self.kind)).is_ok() {
            // An order that cannot be encoded is as well rehearsed.
            let _ = self.requests.encode(entry, &mut self.tracer);
        }
        entry.discard();
        self.tracer.discard();
    }
}

/// A request of each kind that strategies make.
fn specimen(kind: usize) -> OrderRequest {
    let (user_ref, price, time_in_force) = (UserRefNum(1), Price(10_000), TimeInForce::Day);
    let attributes = OrderAttributes::default();
    match kind {
        0 => OrderRequest::Replace(ReplaceOrder {
            orig_user_ref: user_ref,
            user_ref,
            qty: Qty(1),
            price,
            time_in_force,
            post_only: true,
            min_qty: Qty::ZERO,
            attributes,
            client_order_id: ClientOrderId::default(),
        }),
        1 => OrderRequest::Cancel(CancelOrder { user_ref, qty: Qty::ZERO }),
        _ => OrderRequest::Enter(EnterOrder {
            user_ref,
            instrument: InstrumentId(1),
            side: Side::Buy,
            qty: Qty(1),
            price,
            time_in_force,
            post_only: true,
            min_qty: Qty::ZERO,
            attributes,
            client_order_id: ClientOrderId::default(),
        }),
    }
}

impl<T: Tracer> Inbox<T> {
    #[inline]
    fn tell(&mut self, event: GatewayEvent) {
        self.overflowed |= self.events.try_push(event).is_err();
    }

    #[inline]
    fn take(&mut self, answer: &OrderAnswer) {
        let token = reply_token(self.session, &answer.kind);
        if let Some(token) = token {
            self.tracer.stamp_at(Hop::T7t, token, self.read_at);
        }
        self.tell(GatewayEvent::Answer(*answer));
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
        if self.requests.ring.peek().is_some() {
            let count = self.send_requests(now).map_err(|error| self.disconnect(now, error))?;
            self.inbox.tracer.flush();
            if count > 0 {
                return Ok(count);
            }
        }
        if now >= self.next_read + READ_DELAY_MAX { self.take_answers(now) } else { Ok(0) }
    }

    fn do_background_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if now >= self.next_read { self.take_answers(now) } else { Ok(0) }
    }

    fn rehearse(&mut self, _now: Nanos) {
        if let Some(entry) = self.entry.as_mut().filter(|entry| entry.is_connected()) {
            self.rehearsal.run(entry);
        }
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

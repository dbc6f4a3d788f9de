//! The door for orders: TCP, SoupBinTCP, OUCH.

use std::net::SocketAddrV4;
use std::sync::Arc;

use arrayvec::ArrayVec;
use tickpath_agent::{Agent, AgentError, Counter, KernelTime, TscClock};
use tickpath_lockfree::spsc;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::ouch50::{self, QueryResponse, RequestError};
use tickpath_nasdaq::soupbintcp::{HEADER_LEN, ServerConfig, ServerEvent, ServerSession, Session};
use tickpath_net::{BufferSizes, Fill, Interest, Poller, SendOutcome, TcpAcceptor, TcpConnection};
use tickpath_timing::{CommandId, Function, Hop, Token, Tracer};
use tickpath_types::{
    InstrumentTable, Nanos, OrderEvent, OrderRequest, SessionId, SystemEventCode, TradingState, UserRefNum,
};
use zerocopy::IntoBytes;

use crate::matcher::Response;
use crate::sequencer::{Arrival, Sequencer};
use crate::session_log::MAX_LOGGED_MESSAGE;
use crate::users::Users;

/// Bytes received and not yet taken, for each connection.
const RECEIVE_BUFFER: usize = 16 * 1024;
/// Bytes gathered for one write.
const SEND_BUFFER: usize = 32 * 1024;
/// Most requests that a full receive buffer can hold: the shortest, a query, has 1 byte and its header.
const REQUESTS_PER_READ_MAX: usize = RECEIVE_BUFFER / (HEADER_LEN + 1) + 1;
/// Requests that one duty cycle may drain.
pub(crate) const BATCH_CAPACITY: usize = 2 * REQUESTS_PER_READ_MAX;
/// Responses taken in one duty cycle at most; a user's log keeps at least these, so that a client which
/// reads is never behind it.
pub(crate) const RESPONSES_PER_CYCLE: usize = 256;
/// Replies of one write whose stamps are taken; more in one write are not stamped.
const STAMPED_REPLIES: usize = 64;
/// Messages that are no OUCH, after which a connection is closed.
const MALFORMED_MAX: u32 = 16;
/// Connections that one duty cycle reads at most; the others come with the next.
const READY_MAX: usize = 64;
/// Connections that one duty cycle accepts or turns away at most: each costs some system calls.
const ACCEPTS_PER_CYCLE: usize = 4;
/// How long nothing is accepted after the system refused to: the limit of open files does not change at once, and
/// who waits to be accepted stays ready.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);
/// How long a client may take to close its side once it was told that the session is over.
const LINGER: Nanos = Nanos::from_millis(100);
/// How often timers are looked at.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(20);
/// Key of the acceptor in the poller; connections have their places.
const ACCEPTOR_KEY: u64 = u64::MAX;
/// One message in so many has its decoding and encoding timed.
const TIMED_EVERY: u64 = 16;

/// What an [`OrderServer`] has done, readable from outside while it runs.
#[derive(Default)]
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub struct OrderServerCounters {
    /// Connections accepted.
    pub connections: Counter,
    /// Connections refused because there were as many as there may be.
    pub connections_refused: Counter,
    /// Times that the system refused a connection, mostly by the limit of open files; the connection waits.
    pub accept_errors: Counter,
    /// Connections closed, by whichever side.
    pub disconnects: Counter,
    /// Logins accepted.
    pub logins: Counter,
    /// Logins refused.
    pub logins_refused: Counter,
    /// Requests sequenced, refused ones included.
    pub requests: Counter,
    /// Requests that the door refused.
    pub requests_refused: Counter,
    /// Messages that were no OUCH, packets that were no SoupBinTCP, and messages that are not offered.
    pub malformed: Counter,
    /// Responses taken from the matcher.
    pub responses: Counter,
    /// Clients disconnected because they read too slowly for what is kept.
    pub slow_clients: Counter,
    /// Commands in the log, the venue's own included.
    pub commands: Counter,
}

/// What an [`OrderServer`] needs to know.
pub(crate) struct OrderServerConfig {
    pub address: SocketAddrV4,
    pub session: Session,
    pub max_connections: usize,
    pub soup: ServerConfig,
    pub instruments: InstrumentTable,
}

struct Connection {
    tcp: TcpConnection,
    soup: ServerSession,
    user: Option<usize>,
    malformed: u32,
    /// Replies that the next write carries.
    replies: ArrayVec<CommandId, STAMPED_REPLIES>,
    /// True while the log has messages that were not handed to TCP.
    is_behind: bool,
    /// Set once the client was told that the session is over: when to stop waiting for its side to close.
    lingers_until: Option<Nanos>,
}

impl Connection {
    /// After the end of the session: true when the client has closed its side too.
    fn linger(&mut self) -> bool {
        if matches!(self.tcp.flush_pending(), Ok(SendOutcome::Sent)) {
            self.tcp.end_sending();
        }
        let unread = self.tcp.received().len();
        self.tcp.consume(unread);
        !matches!(self.tcp.fill(), Ok(Fill::Bytes { .. } | Fill::Empty))
    }
}

/// Why a connection ends; each is counted by its cause before.
struct Hangup;

/// Accepts connections, logs users in, sequences their requests and sends them the answers.
///
/// A duty cycle either sends answers or reads requests: answers go first, so that reading stops by
/// itself when they come faster than they can be sent.
pub struct OrderServer<T> {
    config: OrderServerConfig,
    acceptor: TcpAcceptor,
    poller: Poller,
    connections: Box<[Option<Connection>]>,
    users: Users,
    sequencer: Sequencer,
    responses: spsc::Consumer<Response>,
    kernel_time: KernelTime,
    clock: TscClock,
    next_timers: Nanos,
    /// When the acceptor is looked at again, while it is not.
    accept_again_at: Option<Nanos>,
    /// True when a connection has more to be sent than fitted into its last write.
    has_backlog: bool,
    send_buffer: Box<[u8]>,
    counters: Arc<OrderServerCounters>,
    tracer: T,
}

impl<T: Tracer> OrderServer<T> {
    pub(crate) fn new(
        config: OrderServerConfig,
        users: Users,
        sequencer: Sequencer,
        responses: spsc::Consumer<Response>,
        clock: TscClock,
        counters: Arc<OrderServerCounters>,
        tracer: T,
    ) -> anyhow::Result<OrderServer<T>> {
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind(config.address, buffers)?;
        // One more than there may be, for the one that is turned away.
        acceptor.reserve(config.max_connections + 1);
        let poller = Poller::new(READY_MAX)?;
        poller.add(&acceptor, ACCEPTOR_KEY, Interest::Read)?;
        Ok(OrderServer {
            acceptor,
            poller,
            connections: (0..config.max_connections).map(|_| None).collect(),
            users,
            sequencer,
            responses,
            kernel_time: KernelTime::new(clock),
            clock,
            next_timers: Nanos::ZERO,
            accept_again_at: None,
            has_backlog: false,
            send_buffer: vec![1; SEND_BUFFER].into_boxed_slice(),
            counters,
            tracer,
            config,
        })
    }

    /// Where clients connect.
    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// The venue's own first commands: the day begins and every instrument opens for trading.
    fn open_session(&mut self) {
        let stages = [SystemEventCode::StartOfMessages, SystemEventCode::StartOfSystemHours];
        let open = self.config.instruments.as_slice().iter().map(|instrument| CommandKind::OpenInstrument {
            instrument: instrument.id,
            state: TradingState::Trading,
        });
        let trading = CommandKind::System(SystemEventCode::StartOfMarketHours);
        let kinds: Vec<_> =
            stages.map(CommandKind::System).into_iter().chain(open).chain([trading]).collect();
        for kind in kinds {
            if self.sequencer.room() == 0 {
                self.sequencer.sequence(self.clock.now(), &mut self.tracer);
            }
            self.sequencer.add(Arrival { kernel_ns: 0, session: Default::default(), token: None, kind });
        }
    }

    /// Appends the answers to their users' logs, then sends each connection what is new for it.
    fn send_responses(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while count < RESPONSES_PER_CYCLE {
            let Some(response) = self.responses.try_pop() else { break };
            match response {
                Response::Order(event) => self.log_event(&event),
                Response::NextUserRef { session, ts, next } => self.log_query_answer(session, ts, next),
            }
            count += 1;
        }
        self.counters.responses.add(count as u64);
        if count > 0 || std::mem::take(&mut self.has_backlog) {
            for place in 0..self.connections.len() {
                if self.connections[place].as_ref().is_some_and(|connection| connection.is_behind) {
                    self.transmit_or_close(place, now);
                }
            }
        }
        count
    }

    #[cold]
    fn log_query_answer(&mut self, session: SessionId, ts: Nanos, next: UserRefNum) {
        let Some(user) = self.users.of_session(session) else { return };
        let answer = QueryResponse::new(ts, next);
        let bytes = answer.as_bytes();
        user.log.append(|out| {
            out[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        });
        if let Some(connection) = user.connection.and_then(|place| self.connections[place].as_mut()) {
            connection.is_behind = true;
        }
    }

    #[inline]
    fn log_event(&mut self, event: &OrderEvent) {
        let started = self.tracer.now();
        if event.is_reply {
            self.tracer.stamp_at(Hop::T5t, CommandId(event.command), started);
        }
        let Some(user) = self.users.of_session(event.session) else { return };
        let instruments = &self.config.instruments;
        user.log.append(|out| {
            ouch50::encode_event(event, |id| instruments.symbol(id), out)
                .expect("the engine's events fit OUCH: its instruments and quantities were checked at start")
        });
        if T::ENABLED && event.is_reply && event.command.0.is_multiple_of(TIMED_EVERY) {
            let ticks = self.tracer.now().wrapping_sub(started);
            self.tracer.time(Function::ResponseEncode, ticks);
        }
        if let Some(connection) = user.connection.and_then(|place| self.connections[place].as_mut()) {
            connection.is_behind = true;
            if event.is_reply {
                // Beyond the bound a reply is not stamped; it is sent all the same.
                let _ = connection.replies.try_push(CommandId(event.command));
            }
        }
    }

    fn transmit_or_close(&mut self, place: usize, now: Nanos) {
        if self.transmit(place, now).is_err() {
            self.close(place);
        }
    }

    /// Hands TCP what is due: control packets, then the log from where the connection stands.
    fn transmit(&mut self, place: usize, now: Nanos) -> Result<(), Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        match connection.tcp.flush_pending() {
            Ok(SendOutcome::Sent) => {}
            Ok(SendOutcome::Pending) => {
                // Who never reads is noticed here, where nothing more can be sent.
                let next = connection.soup.next_sequence().0;
                if connection.user.is_some_and(|user| next < self.users.get_mut(user).log.oldest()) {
                    self.counters.slow_clients.add(1);
                    return Err(Hangup);
                }
                return Ok(());
            }
            _ => return Err(Hangup),
        }
        let mut len = connection.soup.poll_transmit(now, &mut self.send_buffer);
        if let Some(user) = connection.user.filter(|_| connection.soup.is_active()) {
            let log = &self.users.get_mut(user).log;
            while self.send_buffer.len() - len >= HEADER_LEN + MAX_LOGGED_MESSAGE {
                let sequence = connection.soup.next_sequence().0;
                if sequence == log.next_sequence() {
                    connection.is_behind = false;
                    break;
                }
                let Some(message) = log.message(sequence) else {
                    self.counters.slow_clients.add(1);
                    return Err(Hangup);
                };
                let room = &mut self.send_buffer[len..];
                let (written, _) = connection.soup.encode_message(now, room, message).map_err(|_| Hangup)?;
                len += written;
            }
        }
        if len > 0 {
            let writing = self.tracer.now();
            let sent = connection.tcp.send(&self.send_buffer[..len]);
            let written = self.tracer.now();
            for id in connection.replies.drain(..) {
                self.tracer.stamp_at(Hop::T6tw, id, writing);
                self.tracer.stamp_at(Hop::T6t, id, written);
            }
            match sent {
                // One write's worth: a client that has come back goes on with the next duty cycle.
                Ok(SendOutcome::Sent) => self.has_backlog |= connection.is_behind,
                Ok(SendOutcome::Pending) => {}
                _ => return Err(Hangup),
            }
        }
        if connection.soup.is_closed() { Err(Hangup) } else { Ok(()) }
    }

    /// Reads every connection that has something, as far as the batch has room.
    fn read_requests(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let ready: ArrayVec<u64, READY_MAX> = self
            .poller
            .poll()
            .map_err(|error| AgentError::fatal(format!("cannot poll the order entry sockets: {error}")))?
            .map(|ready| ready.key)
            .collect();
        let mut work = 0;
        for key in ready {
            if key == ACCEPTOR_KEY {
                work += self.accept(now);
                continue;
            }
            work += 1;
            if self.sequencer.room() >= REQUESTS_PER_READ_MAX {
                let place = key as usize;
                if self.read(place, now).is_err() {
                    self.close(place);
                }
            }
        }
        Ok(work)
    }

    /// Accepts some of those who wait, or turns them away; returns how many.
    #[cold]
    fn accept(&mut self, now: Nanos) -> usize {
        for count in 0..ACCEPTS_PER_CYCLE {
            let tcp = match self.acceptor.accept() {
                Ok(Some(tcp)) => tcp,
                Ok(None) => return count,
                Err(_) => {
                    self.pause_accepting(now);
                    return count;
                }
            };
            let Some(place) = self.connections.iter().position(Option::is_none) else {
                self.counters.connections_refused.add(1);
                self.acceptor.take_back(tcp);
                continue;
            };
            if self.poller.add(&tcp, place as u64, Interest::Read).is_err() {
                self.acceptor.take_back(tcp);
                self.pause_accepting(now);
                return count;
            }
            self.counters.connections.add(1);
            let soup = ServerSession::new(self.config.soup, now);
            let (user, malformed, replies) = (None, 0, ArrayVec::new());
            self.connections[place] = Some(Connection {
                tcp,
                soup,
                user,
                malformed,
                replies,
                is_behind: false,
                lingers_until: None,
            });
        }
        ACCEPTS_PER_CYCLE
    }

    /// The system has no room for a connection: who waits is asked for again after a while, not in every duty cycle.
    fn pause_accepting(&mut self, now: Nanos) {
        self.counters.accept_errors.add(1);
        if self.poller.remove(&self.acceptor).is_ok() {
            self.accept_again_at = Some(now + ACCEPT_PAUSE);
        }
    }

    fn resume_accepting(&mut self, now: Nanos) {
        if self.accept_again_at.is_some_and(|at| now >= at)
            && self.poller.add(&self.acceptor, ACCEPTOR_KEY, Interest::Read).is_ok()
        {
            self.accept_again_at = None;
        }
    }

    fn read(&mut self, place: usize, now: Nanos) -> Result<(), Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        let fill = connection.tcp.fill().map_err(|_| Hangup)?;
        let read_at = self.tracer.now();
        let kernel_ns = match fill {
            Fill::Bytes { kernel_ns, .. } => kernel_ns.unwrap_or(0),
            _ => 0,
        };
        let received_at =
            if T::ENABLED && kernel_ns != 0 { self.kernel_time.ticks(kernel_ns, read_at) } else { 0 };
        loop {
            let connection = self.connections[place].as_mut().ok_or(Hangup)?;
            let (event, used) = match connection.soup.handle_bytes(now, connection.tcp.received()) {
                Ok(Some(found)) => found,
                // A packet that the whole buffer cannot hold never comes to its end.
                Ok(None) if connection.tcp.received().len() < RECEIVE_BUFFER => break,
                Ok(None) | Err(_) => {
                    self.counters.malformed.add(1);
                    return Err(Hangup);
                }
            };
            match event {
                ServerEvent::Message(message) => {
                    let Some(user) = connection.user else { return Err(Hangup) };
                    let user = self.users.get_mut(user);
                    let timed = T::ENABLED && self.counters.requests.read().is_multiple_of(TIMED_EVERY);
                    let started = if timed { self.tracer.now() } else { 0 };
                    let decoded =
                        ouch50::decode_request(message, |symbol| self.config.instruments.find(symbol));
                    if timed {
                        let ticks = self.tracer.now().wrapping_sub(started);
                        self.tracer.time(Function::OrderDecode, ticks);
                    }
                    match admit(decoded) {
                        Admission::Sequence { kind, user_ref, is_new_order } => {
                            let token = Token::new(user.session, user_ref, is_new_order);
                            self.tracer.stamp_at(Hop::T1k, token, received_at);
                            self.tracer.stamp_at(Hop::T1, token, read_at);
                            self.counters.requests.add(1);
                            if matches!(kind, CommandKind::Refuse { .. }) {
                                self.counters.requests_refused.add(1);
                            }
                            let (session, token) = (user.session, Some(token));
                            self.sequencer.add(Arrival { kernel_ns, session, token, kind });
                        }
                        Admission::Query => {
                            self.counters.requests.add(1);
                            let (session, kind) = (user.session, CommandKind::AccountQuery);
                            self.sequencer.add(Arrival { kernel_ns, session, token: None, kind });
                        }
                        Admission::Drop => {
                            self.counters.malformed.add(1);
                            connection.malformed += 1;
                            if connection.malformed >= MALFORMED_MAX {
                                return Err(Hangup);
                            }
                        }
                    }
                }
                ServerEvent::LoginRequest(login) => match self.users.login(&login, self.config.session) {
                    Ok((user, next)) => {
                        self.counters.logins.add(1);
                        connection.soup.accept(self.config.session, next);
                        connection.user = Some(user);
                        connection.is_behind = true;
                        self.users.get_mut(user).connection = Some(place);
                    }
                    Err(reason) => {
                        self.counters.logins_refused.add(1);
                        connection.soup.reject(reason);
                        connection.is_behind = true;
                    }
                },
                ServerEvent::LogoutRequest => return Err(Hangup),
                ServerEvent::Heartbeat | ServerEvent::Debug(_) => {}
            }
            if let Some(connection) = self.connections[place].as_mut() {
                connection.tcp.consume(used);
            }
        }
        if fill == Fill::Closed {
            return Err(Hangup);
        }
        match self.connections[place].as_ref() {
            Some(connection) if connection.is_behind => self.transmit(place, now),
            _ => Ok(()),
        }
    }

    /// Heartbeats, time-outs, and what did not fit into the sockets before.
    fn run_timers(&mut self, now: Nanos) {
        self.next_timers = now + TIMER_INTERVAL;
        self.resume_accepting(now);
        for place in 0..self.connections.len() {
            let connection = self.connections[place].as_mut();
            let Some(connection) = connection.filter(|connection| connection.lingers_until.is_none()) else {
                continue;
            };
            if connection.soup.handle_timeout(now).is_err() {
                self.close(place);
            } else {
                self.transmit_or_close(place, now);
            }
        }
    }

    fn close(&mut self, place: usize) {
        let Some(connection) = self.connections[place].take() else { return };
        let _ = self.poller.remove(&connection.tcp);
        if let Some(user) = connection.user {
            self.users.get_mut(user).connection = None;
        }
        self.acceptor.take_back(connection.tcp);
        self.counters.disconnects.add(1);
    }

    /// Brings every session nearer to its end; true when all are over.
    fn end_sessions(&mut self, now: Nanos) -> bool {
        let open = (0..self.connections.len()).filter(|place| !self.end_session(*place, now));
        open.count() == 0
    }

    /// The rest of the log, then the end of the session, then the client's side of the connection, which it closes
    /// when it has read all that: what it still sends is not read, only taken away, for a connection that is closed
    /// with bytes unread takes back what is on its way. True when the connection is over.
    fn end_session(&mut self, place: usize, now: Nanos) -> bool {
        if self.connections[place].as_ref().is_some_and(|connection| connection.lingers_until.is_none()) {
            self.transmit_or_close(place, now);
        }
        let Some(connection) = self.connections[place].as_mut() else { return true };
        let is_over = match connection.lingers_until {
            Some(deadline) => connection.linger() || now >= deadline,
            None if connection.is_behind || connection.tcp.pending_len() > 0 => false,
            None => {
                connection.soup.end_session();
                connection.lingers_until = Some(now + LINGER);
                let len = connection.soup.poll_transmit(now, &mut self.send_buffer);
                // Who is not logged in has no session that could end.
                len == 0
                    || !matches!(
                        connection.tcp.send(&self.send_buffer[..len]),
                        Ok(SendOutcome::Sent | SendOutcome::Pending)
                    )
            }
        };
        if is_over {
            self.close(place);
        }
        is_over
    }
}

/// What becomes of a message of a client.
enum Admission {
    Sequence { kind: CommandKind, user_ref: UserRefNum, is_new_order: bool },
    Query,
    Drop,
}

fn admit(decoded: Result<OrderRequest, RequestError>) -> Admission {
    match decoded {
        Ok(request) => Admission::Sequence {
            user_ref: request.user_ref(),
            is_new_order: request.is_new_order(),
            kind: CommandKind::Order(request),
        },
        Err(RequestError::Refused { user_ref, reason, client_order_id }) => Admission::Sequence {
            kind: CommandKind::Refuse { user_ref, reason, client_order_id },
            user_ref,
            is_new_order: true,
        },
        Err(RequestError::AccountQuery) => Admission::Query,
        Err(_) => Admission::Drop,
    }
}

impl<T: Tracer + Send> Agent for OrderServer<T> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.open_session();
        Ok(())
    }

    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = self.send_responses(now);
        if work == 0 {
            if self.sequencer.is_drained() {
                work = self.read_requests(now)?;
            }
            if !self.sequencer.is_drained() {
                work += self.sequencer.sequence(now, &mut self.tracer);
                self.counters.commands.set(self.sequencer.command_count());
            }
        }
        if now >= self.next_timers {
            self.run_timers(now);
        }
        if work > 0 {
            self.tracer.flush();
        }
        Ok(work)
    }

    fn role_name(&self) -> &'static str {
        "order-server"
    }

    /// Reads nothing more. What was read goes into the log, the answers to it to the users, and when each client has
    /// them it is told that the session is over.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        if !self.sequencer.is_drained() {
            self.sequencer.sequence(now, &mut self.tracer);
            self.counters.commands.set(self.sequencer.command_count());
        }
        if self.sequencer.is_drained() {
            self.sequencer.end();
        }
        // In this order: what came before the end of the ring is still there.
        let has_ended = self.responses.is_disconnected();
        let is_answered = self.send_responses(now) == 0 && has_ended;
        if now >= self.next_timers {
            self.run_timers(now);
        }
        self.tracer.flush();
        Ok(is_answered && self.end_sessions(now))
    }

    /// Ends the sessions that are not ended yet, as far as that goes at once.
    fn on_close(&mut self) {
        let now = self.clock.now();
        while self.send_responses(now) > 0 {}
        self.end_sessions(now);
        self.tracer.flush();
    }
}

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
    InstrumentTable, Nanos, OrderEvent, OrderRequest, SystemEventCode, TradingState, UserRefNum,
};
use zerocopy::IntoBytes;

use crate::sequencer::{Arrival, Sequencer};
use crate::session_log::MAX_LOGGED_MESSAGE;
use crate::users::Users;

/// Bytes received and not yet taken, for each connection.
const RECEIVE_BUFFER: usize = 16 * 1024;
/// Bytes gathered for one write.
const SEND_BUFFER: usize = 32 * 1024;
/// Most requests that a full receive buffer can hold: the shortest, a cancel, has 9 bytes and its header.
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
/// Connections that one duty cycle accepts or reads at most; the others come with the next.
const READY_MAX: usize = 64;
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
    pub midnight: Nanos,
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
    responses: spsc::Consumer<OrderEvent>,
    kernel_time: KernelTime,
    clock: TscClock,
    next_timers: Nanos,
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
        responses: spsc::Consumer<OrderEvent>,
        clock: TscClock,
        counters: Arc<OrderServerCounters>,
        tracer: T,
    ) -> anyhow::Result<OrderServer<T>> {
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let acceptor = TcpAcceptor::bind(config.address, buffers)?;
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
            let Some(event) = self.responses.try_pop() else { break };
            self.log_response(&event);
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

    fn log_response(&mut self, event: &OrderEvent) {
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
            work += 1;
            if key == ACCEPTOR_KEY {
                self.accept(now);
            } else if self.sequencer.room() >= REQUESTS_PER_READ_MAX {
                let place = key as usize;
                if self.read(place, now).is_err() {
                    self.close(place);
                }
            }
        }
        Ok(work)
    }

    fn accept(&mut self, now: Nanos) {
        for _ in 0..READY_MAX {
            let Ok(Some(tcp)) = self.acceptor.accept() else { return };
            let Some(place) = self.connections.iter().position(Option::is_none) else {
                self.counters.connections_refused.add(1);
                continue;
            };
            if self.poller.add(&tcp, place as u64, Interest::Read).is_err() {
                continue;
            }
            self.counters.connections.add(1);
            let soup = ServerSession::new(self.config.soup, now);
            let (user, malformed, replies) = (None, 0, ArrayVec::new());
            self.connections[place] =
                Some(Connection { tcp, soup, user, malformed, replies, is_behind: false });
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
                            if is_new_order {
                                user.last_user_ref = user.last_user_ref.max(user_ref);
                            }
                            self.counters.requests.add(1);
                            if matches!(kind, CommandKind::Refuse { .. }) {
                                self.counters.requests_refused.add(1);
                            }
                            let (session, token) = (user.session, Some(token));
                            self.sequencer.add(Arrival { kernel_ns, session, token, kind });
                        }
                        Admission::AnswerQuery => {
                            let next = UserRefNum(user.last_user_ref.0.saturating_add(1));
                            let answer = QueryResponse::new(now.since(self.config.midnight), next);
                            let bytes = answer.as_bytes();
                            user.log.append(|out| {
                                out[..bytes.len()].copy_from_slice(bytes);
                                bytes.len()
                            });
                            connection.is_behind = true;
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
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections[place].as_mut() else { continue };
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
        self.counters.disconnects.add(1);
    }
}

/// What becomes of a message of a client.
enum Admission {
    Sequence { kind: CommandKind, user_ref: UserRefNum, is_new_order: bool },
    AnswerQuery,
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
        Err(RequestError::AccountQuery) => Admission::AnswerQuery,
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

    /// Sends what is still to be sent and ends every session.
    fn on_close(&mut self) {
        let now = self.clock.now();
        while self.send_responses(now) > 0 {}
        for place in 0..self.connections.len() {
            if let Some(connection) = self.connections[place].as_mut() {
                connection.soup.end_session();
                self.transmit_or_close(place, now);
            }
        }
    }
}

//! The door for orders: TCP, SoupBinTCP, OUCH.

mod closing;
mod control;
mod day;
mod front;
mod log;
mod logins;
mod reading;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use arrayvec::ArrayVec;
use tickpath_admission::{LoginGuard, PreLogin, PreLoginLimits};
use tickpath_agent::{Agent, AgentError, Counter, KernelTime, TscClock, WaitSet, Waker};
use tickpath_faults::{Fault, is_planted};
use tickpath_lockfree::spsc;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::soupbintcp::{HEADER_LEN, ServerConfig, Session};
use tickpath_net::{BufferSizes, Kernel, Network, SocketPoller, TcpAcceptor};
use tickpath_timing::{CommandId, Function, Hop, Tracer};
use tickpath_types::{InstrumentTable, Nanos, OrderEvent, SessionId, UserRefNum};
use tickpath_venue::day::Day;
use tickpath_venue::{
    Arrival, LogState, MAX_LOGGED_MESSAGE, Response, Sequencer, UserRegistry, Users, append_event,
    append_query_answer,
};

use crate::admin::AdminPort;
use crate::front_port::FrontRequests;
use crate::journal::JournalCounters;
use crate::login::{LoginChecker, TrustedLogin};
use crate::soup_link::{Hangup, SoupLink};

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
/// How long a connection that takes no more is left alone: each try is a system call that the other clients wait for.
const FULL_PAUSE: Nanos = Nanos::from_millis(1);
/// A time that does not come.
const NEVER: Nanos = Nanos(u64::MAX);
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
    /// Logins refused because as many clients were logged in as may be.
    pub connections_refused: Counter,
    /// Connections closed before their login, because others came and there was no capacity.
    pub pre_login_evicted: Counter,
    /// Connections closed because their login did not come in time.
    pub pre_login_expired: Counter,
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
    /// Answers to users.
    pub responses: Counter,
    /// Times that a connection took no more, because its client does not read; it is left alone for a while.
    pub full_connections: Counter,
    /// Clients disconnected because they read too slowly for what is kept.
    pub slow_clients: Counter,
    /// Commands in the log, the venue's own included.
    pub commands: Counter,
    /// Wrong passwords, and names that nobody has.
    pub wrong_passwords: Counter,
    /// Logins whose check was put off: too many passwords were wrong before, or too many checks waited.
    pub logins_delayed: Counter,
    /// Passwords checked whose connection was gone by then.
    pub checks_dropped: Counter,
    /// Sessions whose open orders were cancelled because their connection was gone.
    pub cancels_on_disconnect: Counter,
    /// Commands of the administrator that were carried out.
    pub admin_commands: Counter,
    /// 1 between kill and unkill of everybody.
    pub is_killed: Counter,
    /// 1 once the venue takes no new orders until it stops.
    pub is_draining: Counter,
}

/// What an [`OrderServer`] needs to know.
pub(crate) struct OrderServerConfig {
    pub address: SocketAddrV4,
    pub session: Session,
    pub max_connections: usize,
    pub pre_login: PreLoginLimits,
    pub soup: ServerConfig,
    pub instruments: InstrumentTable,
    pub cancel_at_shutdown: bool,
    /// The session goes on with the next start: its end is not said.
    pub is_session_kept: bool,
    /// The venue's own first commands.
    pub opening: Vec<(SessionId, CommandKind)>,
}

/// What an [`OrderServer`] is joined to.
pub(crate) struct OrderServerLinks {
    /// The trading day.
    pub day: Day,
    pub sequencer: Sequencer,
    pub responses: spsc::Consumer<Response>,
    pub front_port: Option<FrontRequests>,
    pub guard: LoginGuard<Ipv4Addr>,
    pub checker: LoginChecker,
    /// New trusted logins, for the file that outlasts a restart.
    pub trusted: Option<spsc::Producer<TrustedLogin>>,
    pub admin: AdminPort,
    pub counters: Arc<OrderServerCounters>,
    pub registry: UserRegistry,
    pub journal: Arc<JournalCounters>,
}

struct Connection<N: Network> {
    link: SoupLink<N>,
    user: Option<usize>,
    /// The login that has no answer yet.
    login: Option<logins::PendingLogin>,
    /// When the kernel received what was read last, as far as known.
    kernel_ns: u64,
    malformed: u32,
    /// Replies that the next write carries.
    replies: ArrayVec<CommandId, STAMPED_REPLIES>,
    /// True while the log has messages that were not handed to TCP.
    is_behind: bool,
    /// While its kernel takes no more: when it is tried again.
    full_until: Nanos,
    /// Set once the client was told that the session is over: when to stop waiting for its side to close.
    lingers_until: Option<Nanos>,
}

/// Accepts connections, logs users in, sequences their requests and sends them the answers.
///
/// A duty cycle either sends answers or reads requests: answers go first, so that reading stops by
/// itself when they come faster than they can be sent.
pub struct OrderServer<T, N: Network = Kernel> {
    config: OrderServerConfig,
    acceptor: TcpAcceptor<N>,
    poller: N::Poller,
    /// Places for those who are logged in and for those who are not yet.
    connections: Box<[Option<Connection<N>>]>,
    pre_login: PreLogin<Ipv4Addr>,
    /// Places of the connections that are logged in.
    clients: Vec<usize>,
    pub(crate) users: Users,
    guard: LoginGuard<Ipv4Addr>,
    checker: LoginChecker,
    /// New trusted logins, for the file that outlasts a restart.
    trusted: Option<spsc::Producer<TrustedLogin>>,
    pub(crate) sequencer: Sequencer,
    responses: spsc::Consumer<Response>,
    /// The front that runs beside the venue, if there is one.
    pub(crate) front_port: Option<FrontRequests>,
    admin: AdminPort,
    /// The answer to the administrator whose command is not safe yet.
    held_answer: Option<control::HeldAnswer>,
    /// What the venue commanded of itself and is not applied yet.
    given: Option<day::Given>,
    /// The same of its first commands.
    opening: Option<day::Given>,
    applied: day::Applied,
    day: Day,
    /// How the journal stood at the last look.
    log_state: LogState,
    kernel_time: KernelTime,
    clock: TscClock,
    next_timers: Nanos,
    /// When the open orders of the next user without a connection are to be cancelled.
    next_cancel: Nanos,
    /// True once nothing more is read.
    is_finishing: bool,
    /// True once the last commands are given.
    is_log_over: bool,
    /// When the acceptor is looked at again, while it is not.
    accept_again_at: Option<Nanos>,
    /// True when a connection has more to be sent than fitted into its last write.
    has_backlog: bool,
    send_buffer: Box<[u8]>,
    pub(crate) counters: Arc<OrderServerCounters>,
    registry: UserRegistry,
    journal: Arc<JournalCounters>,
    tracer: T,
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    pub(crate) fn new(
        config: OrderServerConfig,
        users: Users,
        links: OrderServerLinks,
        network: &N,
        clock: TscClock,
        tracer: T,
    ) -> anyhow::Result<OrderServer<T, N>> {
        let OrderServerLinks {
            day,
            sequencer,
            responses,
            front_port,
            guard,
            checker,
            trusted,
            admin,
            counters,
            registry,
            journal,
        } = links;
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), config.address, buffers)?;
        let places = config.max_connections + config.pre_login.connections;
        acceptor.reserve(places);
        let poller = network.poller(READY_MAX)?;
        acceptor.watch(&poller, ACCEPTOR_KEY)?;
        Ok(OrderServer {
            acceptor,
            poller,
            connections: (0..places).map(|_| None).collect(),
            pre_login: PreLogin::new(config.pre_login),
            clients: Vec::with_capacity(config.max_connections),
            guard,
            users,
            checker,
            trusted,
            sequencer,
            responses,
            front_port,
            admin,
            held_answer: None,
            given: None,
            opening: None,
            applied: day::Applied::default(),
            day,
            log_state: LogState::Running,
            kernel_time: KernelTime::new(clock),
            clock,
            next_timers: Nanos::ZERO,
            next_cancel: NEVER,
            is_finishing: false,
            is_log_over: false,
            accept_again_at: None,
            has_backlog: false,
            send_buffer: vec![1; SEND_BUFFER].into_boxed_slice(),
            counters,
            registry,
            journal,
            tracer,
            config,
        })
    }

    /// Where clients connect.
    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Sequences the venue's own first commands. Users whose open orders outlive their connection for a while only are
    /// given that while from now on.
    fn open_session(&mut self) {
        let now = self.clock.now();
        for (session, kind) in std::mem::take(&mut self.config.opening) {
            if self.sequencer.room() == 0 {
                self.sequencer.sequence(now, &mut self.tracer);
            }
            self.sequencer.add(Arrival::internal(session, kind));
        }
        self.opening = Some(day::Given::now(&self.sequencer));
        for user in self.users.iter_mut().filter(|user| user.log.next_sequence() > 1) {
            if is_planted(Fault::GraceForgottenAtStart) {
                continue;
            }
            user.cancel_at = user.cancel_on_disconnect.map(|grace| now + grace);
            self.next_cancel = self.next_cancel.min(user.cancel_at.unwrap_or(NEVER));
        }
    }

    /// Appends the answers to their users' logs, then sends each connection what is new for it.
    fn send_responses(&mut self, now: Nanos) -> usize {
        let (mut count, mut answers) = (0, 0);
        while count < RESPONSES_PER_CYCLE {
            // What is not in the log yet is not told.
            match self.responses.peek() {
                Some(response) if self.sequencer.is_durable(response.command()) => {}
                _ => break,
            }
            let Some(response) = self.responses.try_pop() else { break };
            match response {
                Response::Order(event) => {
                    self.log_event(&event);
                    answers += 1;
                }
                Response::NextUserRef { session, ts, next, .. } => {
                    self.log_query_answer(session, ts, next);
                    answers += 1;
                }
                Response::Applied { command, is_ignored } => self.note_applied(command, is_ignored),
                Response::Stage { ts, stage, .. } => self.log_stage(ts, stage),
            }
            count += 1;
        }
        self.counters.responses.add(answers);
        if count > 0 || std::mem::take(&mut self.has_backlog) {
            let mut index = 0;
            while let Some(&place) = self.clients.get(index) {
                let is_due =
                    |connection: &Connection<_>| connection.is_behind && now >= connection.full_until;
                if self.connections[place].as_ref().is_some_and(is_due) {
                    self.transmit_or_close(place, now);
                }
                // One that was closed is not among them any more.
                index += usize::from(self.clients.get(index) == Some(&place));
            }
        }
        count
    }

    #[cold]
    fn log_query_answer(&mut self, session: SessionId, ts: Nanos, next: UserRefNum) {
        let Some(user) = self.users.of_session(session) else { return };
        append_query_answer(&mut user.log, ts, next);
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
        append_event(&mut user.log, event, &self.config.instruments);
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

    /// A request of a user that has no connection here was refused.
    #[cold]
    pub(crate) fn note_refused(&mut self, session: SessionId) {
        self.counters.requests_refused.add(1);
        let place = usize::from(session.0).checked_sub(1);
        if let Some(user) = place.and_then(|place| self.registry.get(place)) {
            user.requests_refused.add(1);
        }
    }

    /// True while a refusal is not to have a record.
    pub(crate) fn keeps_room_for_cancels(&self) -> bool {
        log::is_kept_for_cancels(self.log_state, &self.sequencer)
    }

    fn transmit_or_close(&mut self, place: usize, now: Nanos) {
        if let Err(hangup) = self.transmit(place, now) {
            self.hang_up(place, hangup, now);
        }
    }

    /// Hands TCP what is due: control packets, then the log from where the connection stands.
    fn transmit(&mut self, place: usize, now: Nanos) -> Result<(), Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        if !connection.link.flush()? {
            connection.full_until = now + FULL_PAUSE;
            self.counters.full_connections.add(1);
            // Who never reads is noticed here, where nothing more can be sent.
            let next = connection.link.soup.next_sequence().0;
            let is_overtaken = |user| next < self.users.get(user).log.oldest();
            return if connection.user.is_some_and(is_overtaken) { Err(Hangup::Slow) } else { Ok(()) };
        }
        let mut len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
        if let Some(user) = connection.user.filter(|_| connection.link.soup.is_active()) {
            let log = &self.users.get_mut(user).log;
            while self.send_buffer.len() - len >= HEADER_LEN + MAX_LOGGED_MESSAGE {
                let sequence = connection.link.soup.next_sequence().0;
                if sequence == log.next_sequence() {
                    connection.is_behind = false;
                    break;
                }
                let Some(message) = log.message(sequence) else { return Err(Hangup::Slow) };
                let room = &mut self.send_buffer[len..];
                let encoded = connection.link.soup.encode_message(now, room, message);
                let (written, _) = encoded.map_err(|_| Hangup::Over)?;
                len += written;
            }
        }
        if len > 0 {
            let writing = self.tracer.now();
            let sent = connection.link.send(&self.send_buffer[..len]);
            let written = self.tracer.now();
            for id in connection.replies.drain(..) {
                self.tracer.stamp_at(Hop::T6tw, id, writing);
                self.tracer.stamp_at(Hop::T6t, id, written);
            }
            // One write's worth: a client that has come back goes on with the next duty cycle.
            self.has_backlog |= sent? && connection.is_behind;
        }
        if connection.link.soup.is_closed() { Err(Hangup::Over) } else { Ok(()) }
    }

    /// Heartbeats, time-outs, and what did not fit into the sockets before.
    fn run_timers(&mut self, now: Nanos) {
        self.next_timers = now + TIMER_INTERVAL;
        self.resume_accepting(now);
        while let Some(place) = self.pre_login.expired(now) {
            self.counters.pre_login_expired.add(1);
            self.close(place as usize, now);
        }
        for place in 0..self.connections.len() {
            let connection = self.connections[place].as_mut();
            let Some(connection) = connection.filter(|connection| connection.lingers_until.is_none()) else {
                continue;
            };
            if connection.link.soup.handle_timeout(now).is_err() {
                self.close(place, now);
            } else {
                self.check_if_due(place, now);
                self.transmit_or_close(place, now);
            }
        }
        if !self.is_finishing {
            self.take_admin_commands(now);
            self.run_day(now);
        }
    }
}

impl<T: Tracer + Send, N: Network> Agent for OrderServer<T, N> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.open_session();
        Ok(())
    }

    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = self.send_responses(now);
        if work == 0 {
            if self.sequencer.is_drained() {
                work = self.read_requests(now)?;
                if self.checker.is_waiting() {
                    work += self.take_checked_logins(now);
                }
                if self.front_port.is_some() {
                    work += self.take_front_requests(now);
                }
                if now >= self.next_cancel {
                    work += self.cancel_for_absent_users(now);
                }
            }
            if !self.sequencer.is_drained() {
                work += self.sequencer.sequence(now, &mut self.tracer);
                self.counters.commands.set(self.sequencer.command_count());
            }
        }
        work += self.move_log_on()?;
        if now >= self.next_timers {
            self.run_timers(now);
            // What is to be sequenced now is no reason to idle.
            work += usize::from(!self.sequencer.is_drained());
        }
        if work > 0 {
            self.tracer.flush();
        }
        Ok(work)
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.responses.wake_by(waker);
        self.sequencer.wake_by(waker);
        self.checker.wake_by(waker);
        if let Some(front_port) = &self.front_port {
            front_port.wake_by(waker);
        }
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        wait.descriptor(self.poller.descriptor());
        wait.until(self.next_timers.min(self.next_cancel));
        // The matcher or the log has no room: neither wakes this thread when it has.
        if !self.sequencer.is_drained() {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "order-server"
    }

    /// Reads nothing more. What was read goes into the log, the answers to it to the users, and when each client has
    /// them it is told that the session is over.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        if !self.is_finishing && self.sequencer.is_drained() {
            self.is_finishing = true;
            if self.config.cancel_at_shutdown {
                self.cancel_at_shutdown();
            }
        } else if self.is_finishing && !self.is_log_over && self.sequencer.is_drained() {
            // By itself: of what is sequenced together the venue's own commands come before its users'.
            self.is_log_over = true;
            if !self.config.is_session_kept {
                self.end_day_with_session();
            }
        }
        if !self.sequencer.is_drained() {
            self.sequencer.sequence(now, &mut self.tracer);
            self.counters.commands.set(self.sequencer.command_count());
        }
        if self.is_log_over && self.sequencer.is_drained() {
            self.sequencer.end();
        }
        self.move_log_on()?;
        // In this order: what came before the end of the ring is still there.
        let has_ended = self.responses.is_disconnected();
        let is_answered = self.send_responses(now) == 0 && has_ended;
        if now >= self.next_timers {
            self.run_timers(now);
        }
        self.tracer.flush();
        Ok(is_answered && self.sequencer.is_settled() && self.end_sessions(now))
    }

    /// Ends the sessions that are not ended yet, as far as that goes at once.
    fn on_close(&mut self) {
        let now = self.clock.now();
        while self.send_responses(now) > 0 {}
        self.end_sessions(now);
        self.tracer.flush();
    }
}

//! The order entry gateway: OUCH 5.0 over SoupBinTCP.

mod connections;
mod listener;
mod reading;
mod sessions;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_agent::{Agent, AgentError, KernelTime, TscClock, WaitSet, Waker};
use tickpath_lockfree::spsc;
use tickpath_nasdaq::soupbintcp::{HEADER_LEN, Session};
use tickpath_net::{Kernel, Network};
use tickpath_timing::{CommandId, Function, Hop, Tracer};
use tickpath_types::{InstrumentTable, Nanos, OrderEvent, SessionId, UserRefNum};
use tickpath_venue::{
    AdminAnswer, AdminCommand, AdminOutcome, FrontRequest, JournalCounters, LogCommandKind, LogState,
    OrderEntry, OrderServerCounters, Response, UserRegistry, VenueView, append_event, append_query_answer,
};

use self::connections::Connections;
use self::listener::{Listener, RECEIVE_BUFFER};
use crate::admin::{AdminPort, NewUserRequest, QueuedCommand};
use crate::login::{LoginChecker, TrustedLogin};

/// Maximum number of requests in a full receive buffer. The shortest request, a query, has 1 byte + header.
const REQUESTS_PER_READ_MAX: usize = RECEIVE_BUFFER / (HEADER_LEN + 1) + 1;
/// Maximum number of requests that wait to be sequenced; internal commands have separate capacity.
pub(crate) const BATCH_CAPACITY: usize = 2 * REQUESTS_PER_READ_MAX;
/// Maximum number of responses handled in one duty cycle. Users' logs retain them for slow clients.
pub(crate) const RESPONSES_PER_CYCLE: usize = 256;
/// Maximum number of responses prefetched together.
const RESPONSES_PREFETCHED: usize = 16;
/// Number of invalid messages after which a connection is closed.
const MALFORMED_MAX: u32 = 16;
/// Maximum number of front requests taken in one duty cycle. Large, because of the log under `async`: a byte costs a
/// quarter when it is written with 64 KiB instead of 8.
const FRONT_REQUESTS_PER_CYCLE: usize = 512;
const TIMER_INTERVAL: Nanos = Nanos::from_millis(20);
/// Decoding and encoding are timed for one in this many messages.
const TIMED_EVERY: u64 = 16;

pub(crate) struct OrderServerConfig {
    pub address: SocketAddrV4,
    pub session: Session,
    /// Maximum number of connections, including those before login.
    pub places: usize,
    pub instruments: InstrumentTable,
    pub cancel_at_shutdown: bool,
    /// True if the session continues after a restart; its end is then not announced at shutdown.
    pub is_session_kept: bool,
    /// Commands to sequence at the start, each with its session.
    pub opening: Vec<(SessionId, LogCommandKind)>,
}

/// The order server's ends of its rings to other agents, and its password checker.
pub(crate) struct Links {
    pub responses: spsc::Consumer<Response>,
    /// Requests from a front, which runs on another thread; `None` without a front.
    pub front: Option<spsc::Consumer<FrontRequest>>,
    /// Sends new trusted logins to the thread that writes them to a file.
    pub trusted: Option<spsc::Producer<TrustedLogin>>,
    pub admin: AdminPort,
    pub checker: LoginChecker,
}

/// Shutdown stages of the order server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Requests are read.
    Open,
    /// No more requests are read.
    Finishing,
    /// No more commands are added to the batch.
    LogEnded,
}

/// Accepts connections, logs users in, sequences their requests, and sends the responses.
///
/// A duty cycle either sends responses or reads requests. Responses come first: a cycle that has responses to
/// send reads no requests.
pub struct OrderServer<T, N: Network = Kernel> {
    config: OrderServerConfig,
    listener: Listener<N>,
    connections: Connections<N>,
    entry: OrderEntry<Ipv4Addr>,
    links: Links,
    kernel_time: KernelTime,
    clock: TscClock,
    next_timers: Nanos,
    stage: Stage,
    counters: Arc<OrderServerCounters>,
    registry: UserRegistry,
    journal: Arc<JournalCounters>,
    tracer: T,
}

impl<T: Tracer, N: Network> OrderServer<T, N> {
    pub(crate) fn new(
        config: OrderServerConfig,
        entry: OrderEntry<Ipv4Addr>,
        links: Links,
        view: &VenueView,
        network: &N,
        clock: TscClock,
        tracer: T,
    ) -> anyhow::Result<OrderServer<T, N>> {
        Ok(OrderServer {
            listener: Listener::open(network, config.address, config.places)?,
            connections: Connections::new(config.places),
            entry,
            links,
            kernel_time: KernelTime::new(clock),
            clock,
            next_timers: Nanos::ZERO,
            stage: Stage::Open,
            counters: Arc::clone(&view.order_server),
            registry: view.users.clone(),
            journal: Arc::clone(&view.journal),
            tracer,
            config,
        })
    }

    /// The listening address.
    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.listener.local_address()
    }

    /// Appends durable responses to their users' logs, then sends new messages to each connection. Returns
    /// the number of responses.
    fn send_responses(&mut self, now: Nanos) -> usize {
        let (mut count, mut answers) = (0, 0);
        let OrderServer { links, entry, connections, config, tracer, .. } = self;
        loop {
            let waiting = links.responses.prefetch(RESPONSES_PREFETCHED.min(RESPONSES_PER_CYCLE - count));
            let taken = links.responses.drain_while(waiting, |response| {
                // The response may be sent only once its command is durable.
                if !entry.sequencer.is_durable(response.command()) {
                    return false;
                }
                match response {
                    Response::Order(event) => {
                        log_event(event, entry, connections, config, tracer);
                        answers += 1;
                    }
                    Response::NextUserRef { session, ts, next, .. } => {
                        log_query_answer(*session, *ts, *next, entry, connections);
                        answers += 1;
                    }
                    Response::Applied { command, is_ignored } => {
                        entry.commands.handle_applied(*command, *is_ignored);
                    }
                    Response::SessionPhase { ts, phase, .. } => {
                        entry
                            .append_session_phase(*ts, *phase, |place| connections.note_message(place, None));
                    }
                }
                true
            });
            count += taken;
            if waiting == 0 || taken < waiting {
                break;
            }
        }
        self.counters.responses.add(answers);
        if count > 0 || self.connections.take_backlog() {
            let mut index = 0;
            while let Some(place) = self.connections.pending(index) {
                let connection = self.connections.get(place);
                if connection.is_some_and(|connection| connection.user.is_some() && connection.is_due(now)) {
                    self.transmit_or_close(place, now);
                }
                // Sending may have closed the connection; then the next one has moved to this index.
                index += usize::from(self.connections.pending(index) == Some(place));
            }
            self.connections.prune_pending();
        }
        count
    }

    /// Sequences waiting requests while the log and the matcher's ring have capacity; returns their number.
    fn sequence(&mut self, now: Nanos) -> usize {
        let count = self.entry.sequencer.sequence(now, &mut self.tracer);
        self.counters.commands.set(self.entry.sequencer.command_count());
        count
    }

    /// Does pending work of the journal; returns the amount of work.
    #[inline]
    fn poll_journal(&mut self) -> Result<usize, AgentError> {
        let mut work = self.entry.sequencer.poll_journal();
        if work > 0 {
            self.journal.durable.set(self.entry.sequencer.durable().0);
            self.journal.delayed.set(self.entry.sequencer.delayed());
            if let Some(state) = self.entry.poll_log_state() {
                self.note_log_state(state)?;
            }
        }
        if self.entry.commands.is_answer_pending() {
            work += self.send_admin_answer();
        }
        Ok(work)
    }

    /// Records the log's new state. Fails if the log has failed: then no more responses may be sent.
    #[cold]
    fn note_log_state(&mut self, state: LogState) -> Result<(), AgentError> {
        self.journal.is_full.set((state == LogState::Full).into());
        match state {
            LogState::Running | LogState::Full => Ok(()),
            LogState::Failed => {
                self.journal.has_failed.set(1);
                let failure = self.entry.sequencer.log_failure().unwrap_or_default();
                Err(AgentError::fatal(format!(
                    "{failure}: the venue answers no more requests; repair the disk, then restart the venue"
                )))
            }
        }
    }

    /// Passes the pending answer, if any, to the administrator; returns the number of answers.
    #[cold]
    fn send_admin_answer(&mut self) -> usize {
        let answer = self.entry.commands.poll_answer(&self.entry.sequencer);
        let Some(AdminAnswer { id, outcome }) = answer else { return 0 };
        self.links.admin.commands.answer(id, outcome);
        1
    }

    /// Executes pending administrator commands one by one: an outcome depends on the commands before it.
    fn take_admin_commands(&mut self, now: Nanos) {
        loop {
            let next = self.links.admin.commands.peek();
            let adds_user = matches!(next, Some(QueuedCommand::AddUser));
            if next.is_none()
                || !self.entry.commands.may_handle(adds_user, &self.entry.sequencer)
                || !self.links.admin.commands.may_answer()
            {
                return;
            }
            let Some((id, work)) = self.links.admin.commands.poll() else { return };
            let outcome = match work {
                QueuedCommand::AddUser => self.add_user(id),
                QueuedCommand::Command(command) => self.execute(id, command, now),
            };
            if matches!(outcome, AdminOutcome::Done { .. }) {
                self.counters.admin_commands.add(1);
            }
            self.send_admin_answer();
        }
    }

    #[cold]
    fn execute(&mut self, id: u64, command: AdminCommand, now: Nanos) -> AdminOutcome {
        let done = AdminOutcome::Done { commands: 0 };
        let outcome = match command {
            AdminCommand::Unlock(session) => match self.entry.users.place_of(session) {
                None => AdminOutcome::UnknownUser,
                Some(user) => {
                    self.entry.logins.forgive(user);
                    done
                }
            },
            AdminCommand::Disconnect(session) => {
                match self.entry.users.of_session(session).map(|user| user.connection) {
                    None => AdminOutcome::UnknownUser,
                    Some(None) => AdminOutcome::NotConnected,
                    Some(Some(connection)) => {
                        self.close(connection, now);
                        done
                    }
                }
            }
            command => {
                match command {
                    AdminCommand::Kill(None) => self.counters.is_killed.set(1),
                    AdminCommand::Unkill(None) => self.counters.is_killed.set(0),
                    AdminCommand::Drain => self.counters.is_draining.set(1),
                    _ => {}
                }
                return self.entry.handle_command(id, command);
            }
        };
        self.entry.commands.answer(AdminAnswer { id, outcome });
        outcome
    }

    #[cold]
    fn add_user(&mut self, id: u64) -> AdminOutcome {
        let Ok(NewUserRequest { user, checker }) = self.links.admin.new_users.try_recv() else {
            self.entry.commands.answer(AdminAnswer { id, outcome: AdminOutcome::UnknownUser });
            return AdminOutcome::UnknownUser;
        };
        if let Some(checker) = checker {
            self.links.checker.attach(checker);
        }
        self.entry.handle_new_user(id, user)
    }

    /// Sends heartbeats, handles timeouts, and retries data that did not fit into the sockets.
    fn run_timers(&mut self, now: Nanos) {
        self.next_timers = now + TIMER_INTERVAL;
        self.listener.handle_timeout(now);
        while let Some(place) = self.entry.logins.poll_expired(now) {
            self.counters.pre_login_expired.add(1);
            self.close(place, now);
        }
        for place in 0..self.connections.place_count() {
            let connection = self.connections.get_mut(place);
            let Some(connection) = connection.filter(|connection| connection.is_open()) else { continue };
            if connection.link.soup.handle_timeout(now).is_err() {
                self.close(place, now);
            } else {
                self.check_if_due(place, now);
                self.transmit_or_close(place, now);
            }
        }
        if self.stage == Stage::Open {
            self.take_admin_commands(now);
            self.entry.commands.handle_time(now, &mut self.entry.sequencer);
        }
    }
}

/// Appends the response to an account query to its user's log.
#[cold]
fn log_query_answer<N: Network>(
    session: SessionId,
    ts: Nanos,
    next: UserRefNum,
    entry: &mut OrderEntry<Ipv4Addr>,
    connections: &mut Connections<N>,
) {
    let Some(user) = entry.users.of_session(session) else { return };
    append_query_answer(&mut user.log, ts, next);
    if let Some(place) = user.connection {
        connections.note_message(place, None);
    }
}

/// Appends an event to the log of its order's user.
#[inline]
fn log_event<T: Tracer, N: Network>(
    event: &OrderEvent,
    entry: &mut OrderEntry<Ipv4Addr>,
    connections: &mut Connections<N>,
    config: &OrderServerConfig,
    tracer: &mut T,
) {
    let started = tracer.now();
    if event.is_reply {
        tracer.stamp_at(Hop::T5t, CommandId(event.command), started);
    }
    let Some(user) = entry.users.of_session(event.session) else { return };
    append_event(&mut user.log, event, &config.instruments);
    if T::ENABLED && event.is_reply && event.command.0.is_multiple_of(TIMED_EVERY) {
        let ticks = tracer.now().wrapping_sub(started);
        tracer.time(Function::ResponseEncode, ticks);
    }
    if let Some(place) = user.connection {
        connections.note_message(place, event.is_reply.then_some(CommandId(event.command)));
    }
}

impl<T: Tracer + Send, N: Network> Agent for OrderServer<T, N> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        let opening = std::mem::take(&mut self.config.opening);
        self.entry.open(opening, self.clock.now(), &mut self.tracer);
        Ok(())
    }

    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = self.send_responses(now);
        if work == 0 {
            if self.entry.sequencer.is_drained() {
                work = self.read_requests(now)?;
                if self.links.checker.is_waiting() {
                    work += self.take_checked_logins(now);
                }
                if self.links.front.is_some() {
                    work += self.take_front_requests(now);
                }
                if now >= self.entry.users.next_cancel() {
                    let count = self.entry.cancel_for_absent_users(now);
                    self.counters.cancels_on_disconnect.add(count as u64);
                    work += count;
                }
            }
            if !self.entry.sequencer.is_drained() {
                work += self.sequence(now);
            }
        }
        work += self.poll_journal()?;
        if now >= self.next_timers {
            self.run_timers(now);
            // Waiting requests count as work, so that the thread does not idle before they are sequenced.
            work += usize::from(!self.entry.sequencer.is_drained());
        }
        if work > 0 {
            self.tracer.flush();
        }
        Ok(work)
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.links.responses.wake_by(waker);
        self.entry.sequencer.wake_by(waker);
        self.links.checker.wake_by(waker);
        if let Some(front) = &self.links.front {
            front.wake_by(waker);
        }
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        if !self.watch_all() {
            wait.soon();
        }
        self.listener.wait_for(wait);
        wait.until(self.next_timers.min(self.entry.users.next_cancel()));
        // If requests remain, the log or the matcher's ring is full. Freed space does not wake this thread.
        if !self.entry.sequencer.is_drained() {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "order-server"
    }

    /// Reads no more requests, and answers those read. True once all responses are sent and sessions ended.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        if self.entry.sequencer.is_drained() {
            match self.stage {
                Stage::Open => {
                    self.stage = Stage::Finishing;
                    if self.config.cancel_at_shutdown {
                        let count = self.entry.cancel_at_shutdown();
                        self.counters.cancels_on_disconnect.add(count as u64);
                    }
                }
                // The session's end needs a later batch: in one batch, it would precede the users' cancels.
                Stage::Finishing => {
                    self.stage = Stage::LogEnded;
                    if !self.config.is_session_kept {
                        self.entry.commands.end_session(&mut self.entry.sequencer);
                    }
                }
                Stage::LogEnded => {}
            }
        }
        if !self.entry.sequencer.is_drained() {
            self.sequence(now);
        }
        if self.stage == Stage::LogEnded && self.entry.sequencer.is_drained() {
            self.entry.sequencer.end();
        }
        self.poll_journal()?;
        // Check for the matcher's disconnect first, so that responses sent before it are still handled.
        let has_ended = self.links.responses.is_disconnected();
        let is_answered = self.send_responses(now) == 0 && has_ended;
        if now >= self.next_timers {
            self.run_timers(now);
        }
        self.tracer.flush();
        Ok(is_answered && self.entry.sequencer.is_all_durable() && self.end_sessions(now))
    }

    /// Sends pending data as far as possible without blocking, and ends the remaining sessions.
    fn on_close(&mut self) {
        let now = self.clock.now();
        while self.send_responses(now) > 0 {}
        self.end_sessions(now);
        self.tracer.flush();
    }
}

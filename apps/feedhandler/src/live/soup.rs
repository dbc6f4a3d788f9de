//! ITCH over SoupBinTCP.

use std::net::SocketAddrV4;

use tickpath_agent::WaitSet;
use tickpath_book::BooksById;
use tickpath_feed::{BookBuilder, Channel, MessageBooks, MoldUdp64};
use tickpath_nasdaq::soupbintcp::{
    CONTROL_LEN_MAX, ClientConfig, ClientEvent, ClientSession, LoginRejectReason, Session,
};
use tickpath_net::{BufferSizes, Fill, Kernel, SendOutcome, TcpConnection};
use tickpath_types::{InstrumentId, Nanos, Sequence};

use super::channel::{ChannelStatus, Source};
use super::outputs::Sink;
use super::recovery::RecoveryCounters;

/// Messages applied in one duty cycle.
const MESSAGES_PER_CYCLE: usize = 256;
/// How long a connection may take.
const CONNECT_MAX: Nanos = Nanos::from_secs(5);
/// Until a lost connection is made again; doubled with each failure.
const RETRY_MIN: Nanos = Nanos::from_millis(100);
const RETRY_MAX: Nanos = Nanos::from_secs(10);

enum State {
    Resting { until: Nanos },
    Connecting { deadline: Nanos },
    Up { session: Box<ClientSession> },
}

type SoupChannel<B> = Channel<BookBuilder<B>, MoldUdp64>;

/// One stream of ITCH messages, which loses none: a lost connection is made again and goes on.
pub(super) struct SoupSource {
    server: SocketAddrV4,
    login: ClientConfig,
    state: State,
    retry_wait: Nanos,
    connection: Option<TcpConnection<Kernel>>,
    /// The session that the books are of.
    session: Option<Session>,
    next: Sequence,
    /// The server has that session no more: it is asked for its current one.
    is_session_gone: bool,
    /// The session ended in good order, and nothing of it is missing.
    has_ended: bool,
    ended_sessions: u64,
    jumps_back: u64,
    lost: u64,
    messages: u64,
    events: u64,
    counters: RecoveryCounters,
}

impl SoupSource {
    pub(super) fn new(server: SocketAddrV4, login: ClientConfig) -> SoupSource {
        SoupSource {
            server,
            login,
            state: State::Resting { until: Nanos::ZERO },
            retry_wait: RETRY_MIN,
            connection: None,
            session: None,
            next: Sequence(1),
            is_session_gone: false,
            has_ended: false,
            ended_sessions: 0,
            jumps_back: 0,
            lost: 0,
            messages: 0,
            events: 0,
            counters: RecoveryCounters::default(),
        }
    }

    fn connect(&mut self, now: Nanos) {
        self.counters.connections += 1;
        let begun = match &mut self.connection {
            Some(connection) => connection.start_connecting(self.server),
            none => TcpConnection::begin_on(Kernel, self.server, BufferSizes::default())
                .map(|begun| *none = Some(begun)),
        };
        match begun {
            Ok(()) => self.state = State::Connecting { deadline: now + CONNECT_MAX },
            Err(_) => self.fail(now),
        }
    }

    fn fail(&mut self, now: Nanos) {
        self.counters.failures += 1;
        self.rest(now + self.retry_wait);
        self.retry_wait = Nanos((self.retry_wait.0 * 2).min(RETRY_MAX.0));
    }

    fn rest(&mut self, until: Nanos) {
        if let Some(connection) = &mut self.connection {
            connection.close();
        }
        self.state = State::Resting { until };
    }

    fn log_in(&mut self, now: Nanos, deadline: Nanos) {
        let Some(connection) = &mut self.connection else { return };
        match connection.poll_connected() {
            Ok(true) => {
                let mut config = self.login;
                if let Some(session) = self.session.filter(|_| !self.is_session_gone) {
                    (config.login.session, config.login.sequence) = (session, self.next);
                }
                self.state = State::Up { session: Box::new(ClientSession::new(config, now)) };
            }
            Ok(false) if now < deadline => {}
            _ => self.fail(now),
        }
    }

    fn read<B: BooksById>(&mut self, now: Nanos, channel: &mut SoupChannel<B>, out: &mut Sink<'_>) -> usize {
        let State::Up { session } = &mut self.state else { return 0 };
        let Some(connection) = &mut self.connection else { return 0 };
        let mut packet = [0; CONTROL_LEN_MAX];
        let len = session.poll_transmit(now, &mut packet);
        let is_sent = len == 0
            || matches!(connection.send(&packet[..len]), Ok(SendOutcome::Sent | SendOutcome::Pending));
        let is_silent = session.handle_timeout(now).is_err();
        let is_closed = matches!(connection.fill(), Ok(Fill::Closed) | Err(_));
        let mut count = 0;
        let mut is_over = !is_sent || is_silent;
        while count < MESSAGES_PER_CYCLE && !is_over {
            let (State::Up { session }, Some(connection)) = (&mut self.state, &mut self.connection) else {
                return count;
            };
            let (event, used) = match session.handle_bytes(now, connection.received()) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    is_over = is_closed;
                    break;
                }
                Err(_) => {
                    is_over = true;
                    break;
                }
            };
            (count, self.events) = (count + 1, self.events + 1);
            match event {
                ClientEvent::Message { sequence, message } => {
                    self.messages += 1;
                    self.next = sequence.next();
                    self.has_ended = false;
                    channel.handle_stream(sequence, std::iter::once(message), out);
                }
                ClientEvent::LoginAccepted { session, next_sequence } => {
                    self.retry_wait = RETRY_MIN;
                    is_over = !self.log_on(session, next_sequence, channel, out);
                }
                ClientEvent::EndOfSession => {
                    self.ended_sessions += u64::from(!self.has_ended);
                    self.has_ended = true;
                    self.rest(now + RETRY_MAX);
                    return count;
                }
                ClientEvent::LoginRejected(reason) => {
                    self.counters.refusals += 1;
                    self.is_session_gone = reason == LoginRejectReason::SESSION_NOT_AVAILABLE;
                    is_over = true;
                }
                ClientEvent::Heartbeat | ClientEvent::Debug(_) | ClientEvent::Unsequenced(_) => {}
            }
            let Some(connection) = &mut self.connection else { return count };
            connection.consume(used);
        }
        if is_over {
            if !self.has_ended {
                channel.books_mut().instruments_mut().handle_recovering(true, out);
            }
            self.fail(now);
        }
        count
    }

    /// The server goes on with this message of this session; false when it has to be asked for all of it.
    fn log_on<B: BooksById>(
        &mut self,
        session: Session,
        next: Sequence,
        channel: &mut SoupChannel<B>,
        out: &mut Sink<'_>,
    ) -> bool {
        let is_other = self.session.replace(session).is_some_and(|before| before != session);
        self.is_session_gone = false;
        if is_other {
            channel.follow(out);
            (self.next, self.has_ended) = (Sequence(1), false);
        } else if next < self.next {
            // What the books are of has not happened.
            self.jumps_back += 1;
            channel.books_mut().handle_restart(out);
            self.next = Sequence(1);
            if next > self.next {
                return false;
            }
        }
        let books = channel.books_mut();
        books.instruments_mut().handle_recovering(false, out);
        if next > self.next {
            // The server does not have what is between.
            self.lost += next.0 - self.next.0;
            books.handle_lost(out);
        }
        self.next = next;
        true
    }
}

impl<B: BooksById + Send> Source<BookBuilder<B>, MoldUdp64> for SoupSource {
    /// The connection comes and goes: it is looked at.
    fn wait_for(&self, wait: &mut WaitSet) {
        wait.soon();
    }

    fn do_work(
        &mut self,
        now: Nanos,
        channel: &mut SoupChannel<B>,
        out: &mut Sink<'_>,
    ) -> std::io::Result<usize> {
        Ok(match self.state {
            State::Resting { until } if now >= until => {
                self.connect(now);
                1
            }
            State::Connecting { deadline } => {
                self.log_in(now, deadline);
                0
            }
            State::Up { .. } => self.read(now, channel, out),
            State::Resting { .. } => 0,
        })
    }

    fn do_background_work(&mut self, _: Nanos, _: &mut SoupChannel<B>, _: &mut Sink<'_>) -> usize {
        0
    }

    fn resync(&mut self, _: InstrumentId) {}

    fn report(&self, status: &mut ChannelStatus) {
        status.recovery = self.counters;
        (status.next_sequence, status.received) = (self.next.0, self.events);
        status.lines.lines[0].first_messages = self.messages;
        status.lines.messages_lost = self.lost;
        status.lines.jumps_back = self.jumps_back;
        status.channel.ended_sessions = self.ended_sessions;
    }
}

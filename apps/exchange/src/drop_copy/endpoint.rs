//! The drop copy endpoint: SoupBinTCP sessions in which only the server sends messages.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_admission::{LoginGuard, PreLoginLimits};
use tickpath_agent::{Agent, AgentError, WaitSet, Waker};
use tickpath_lockfree::spsc;
use tickpath_nasdaq::drop_copy::{COPY_LEN_MAX, DropCopy};
use tickpath_nasdaq::soupbintcp::{HEADER_LEN, LoginRejectReason, SendError, Session};
use tickpath_net::{BufferSizes, NetError, Network, TcpAcceptor, TcpConnection};
use tickpath_types::Nanos;
use tickpath_venue::drop_copy::{CopySource, CopyStreams, FollowRun, Readers, RewindRun};
use tickpath_venue::{DropCopyCounters, LogReadError, LoginStep, Logins, StoredLog, UserRegistry};

use super::DropCopySettings;
use crate::login::{HashChecks, TrustedLogin};
use crate::soup_endpoint::{SoupEndpoint, next_waiting};
use crate::soup_link::{DisconnectReason, SoupLink};

/// Size of the receive buffer, in bytes; readers send only logins and heartbeats.
const RECEIVE_BUFFER: usize = 4 * 1024;
/// Maximum size of one write to a connection, in bytes.
const SEND_BUFFER: usize = 32 * 1024;
/// Maximum number of messages read from the log in one run. One write to a connection carries as many, so a
/// reader that reads without delay keeps up even while the endpoint catches up with the log.
const MESSAGES_PER_RUN: usize = SEND_BUFFER / (HEADER_LEN + COPY_LEN_MAX);

/// The parts from which a [`DropCopyEndpoint`] is built.
pub(crate) struct DropCopyLinks {
    pub(crate) log: Box<dyn StoredLog>,
    pub(crate) session: Session,
    pub(crate) users: UserRegistry,
    pub(crate) guard: LoginGuard<Ipv4Addr>,
    /// Sends new trusted logins to the thread that writes them to a file.
    pub(crate) trusted: spsc::Producer<TrustedLogin>,
    pub(crate) pre_login: PreLoginLimits,
    pub(crate) counters: Arc<DropCopyCounters>,
}

/// Agent that follows the log and sends copies to readers. The work of each run is bounded; reading the log
/// may block on the disk.
pub(crate) struct DropCopyEndpoint<N: Network> {
    session: Session,
    acceptor: TcpAcceptor<N>,
    /// Connections by index, including those before login.
    connections: Box<[Option<Connection<N>>]>,
    logins: Logins<Ipv4Addr>,
    readers: Readers,
    /// Password checks on this thread. They delay other readers only, and the login guard keeps them rare.
    checks: HashChecks,
    trusted: spsc::Producer<TrustedLogin>,
    send_buffer: Box<[u8]>,
    counters: Arc<DropCopyCounters>,
}

struct Connection<N: Network> {
    link: SoupLink<N>,
    /// Registry index of the logged-in reader; `None` before login.
    reader: Option<usize>,
}

impl<N: Network> DropCopyEndpoint<N> {
    pub(crate) fn open(
        settings: &DropCopySettings,
        network: &N,
        links: DropCopyLinks,
    ) -> Result<Self, NetError> {
        let DropCopyLinks { log, session, users, guard, trusted, pre_login, counters } = links;
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), settings.address, buffers)?;
        let places = settings.max_connections + pre_login.connections;
        acceptor.reserve(places);
        let streams = CopyStreams::new(log, settings.retained_messages, MESSAGES_PER_RUN);
        Ok(DropCopyEndpoint {
            session,
            acceptor,
            connections: (0..places).map(|_| None).collect(),
            logins: Logins::new(settings.max_connections, pre_login, guard),
            checks: HashChecks(users.clone()),
            readers: Readers::new(session, users, streams),
            trusted,
            send_buffer: vec![0; SEND_BUFFER].into_boxed_slice(),
            counters,
        })
    }

    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Reads a bounded number of commands from the log; returns the amount of work.
    fn follow(&mut self) -> Result<usize, LogReadError> {
        match self.readers.streams.follow() {
            Ok(FollowRun { work, messages, last_command }) => {
                self.counters.messages.add(messages as u64);
                self.counters.commands.set(last_command.0);
                Ok(work)
            }
            Err(error) => {
                self.counters.has_failed.set(1);
                (0..self.connections.len()).for_each(|place| self.close(place));
                Err(error)
            }
        }
    }

    /// Continues the rewind, if any: a second reading of the log, for a reader of older messages. Returns the
    /// amount of work.
    fn rewind(&mut self, now: Nanos) -> usize {
        let Some(place) = self.readers.streams.rewinding() else { return 0 };
        let Some(connection) = &self.connections[place] else { return 0 };
        let Some(reader) = connection.reader else { return 0 };
        let takes_all = connection.link.tcp.pending_len() == 0;
        match self.readers.advance_rewind(reader, takes_all, now) {
            RewindRun::Read(count) => return count,
            RewindRun::Stalled => self.disconnect(place, DisconnectReason::Slow),
            RewindRun::Lost => {
                self.counters.rewinds_failed.add(1);
                self.close(place);
            }
        }
        1
    }

    /// Reads input from the connection, then sends it pending messages.
    fn serve(&mut self, place: usize, now: Nanos) -> Result<usize, DisconnectReason> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(0) };
        let (readers, checks) = (&mut self.readers, &mut self.checks);
        let step = match connection.link.read_login(now)? {
            Some(request) => {
                let peer = *connection.link.tcp.peer_address().ip();
                Some(self.logins.handle_login(now, place, peer, &request, readers, checks))
            }
            None => self.logins.handle_timeout(now, place, readers, checks),
        };
        if let Some(step) = step {
            self.answer_login(place, step);
        }
        self.transmit(place, now)
    }

    fn serve_or_close(&mut self, place: usize, now: Nanos) -> usize {
        self.serve(place, now).unwrap_or_else(|reason| {
            self.disconnect(place, reason);
            0
        })
    }

    /// Accepts or rejects the login, and counts it, if `step` decides it.
    fn answer_login(&mut self, place: usize, step: LoginStep) {
        if let Some((user, peer)) = self.logins.poll_trusted() {
            // If the ring is full, this login is trusted only until the venue stops.
            let _ = self.trusted.try_push((user as u32, peer));
        }
        let Some(connection) = self.connections[place].as_mut() else { return };
        let reason = match step {
            LoginStep::Checking | LoginStep::Postponed | LoginStep::Busy => return,
            LoginStep::Accepted { user, next } => {
                let source = self.readers.source(user);
                self.counters.rewinds.add(u64::from(source == Some(CopySource::Rewind)));
                connection.link.soup.accept(self.session, next);
                connection.reader = Some(user);
                self.counters.logins.add(1);
                return;
            }
            LoginStep::Wrong { .. } => {
                self.counters.wrong_passwords.add(1);
                LoginRejectReason::NOT_AUTHORIZED
            }
            LoginStep::Rejected(reason) => reason,
            LoginStep::Full => LoginRejectReason::SESSION_NOT_AVAILABLE,
        };
        connection.link.soup.reject(reason);
        self.counters.logins_refused.add(1);
    }

    /// Writes control packets and then copies to the connection; returns the number of copies.
    fn transmit(&mut self, place: usize, now: Nanos) -> Result<usize, DisconnectReason> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(0) };
        let is_flushed = connection.link.flush()?;
        // Check that the reader's next message is still retained, even while bytes are unsent: the reader may
        // never read them.
        let source = connection.reader.and_then(|reader| self.readers.source(reader));
        if source.is_some_and(|source| !self.readers.streams.is_kept(source)) {
            return Err(DisconnectReason::Slow);
        }
        if !is_flushed {
            return Ok(0);
        }
        let mut len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
        let mut copies = 0;
        let is_active = connection.link.soup.is_active();
        if let Some(reader) = connection.reader.filter(|_| is_active) {
            while self.send_buffer.len() - len >= HEADER_LEN + COPY_LEN_MAX
                && let Some(entry) = self.readers.next_copy(reader, now)
            {
                let user = self.readers.name(usize::from(entry.user));
                let copy = DropCopy { user, number: entry.number, message: entry.message() };
                let write = |buffer: &mut [u8]| Ok::<_, SendError>(copy.encode(buffer)?);
                let encoded =
                    connection.link.soup.encode_message_with(now, &mut self.send_buffer[len..], write);
                let (written, _) = encoded.map_err(|_| DisconnectReason::Closed)?;
                len += written;
                copies += 1;
            }
        }
        if len > 0 {
            connection.link.send(&self.send_buffer[..len])?;
        }
        self.counters.copies.add(copies as u64);
        if connection.link.soup.is_closed() { Err(DisconnectReason::Closed) } else { Ok(copies) }
    }

    /// Closes a connection and counts the reason.
    fn disconnect(&mut self, place: usize, reason: DisconnectReason) {
        match reason {
            DisconnectReason::Malformed => self.counters.malformed.add(1),
            DisconnectReason::Slow => self.counters.slow_readers.add(1),
            DisconnectReason::Closed | DisconnectReason::TimedOut => {}
        }
        self.close(place);
    }

    fn close(&mut self, place: usize) {
        let Some(connection) = self.connections[place].take() else { return };
        self.logins.handle_close(place);
        if let Some(reader) = connection.reader {
            self.readers.log_out(reader);
        }
        self.readers.streams.end(place);
        self.acceptor.recycle(connection.link.tcp);
        self.counters.disconnects.add(1);
    }
}

impl<N: Network> SoupEndpoint<N> for DropCopyEndpoint<N> {
    const ACCEPTS_MAX: usize = 64;

    fn next_connection(&mut self, _now: Nanos) -> Option<TcpConnection<N>> {
        next_waiting(&mut self.acceptor)
    }

    fn victim(&self, peer: Ipv4Addr) -> Option<u64> {
        self.logins.victim(peer).map(|place| place as u64)
    }

    fn serve_once(&mut self, key: u64, now: Nanos) {
        self.serve_or_close(key as usize, now);
    }

    fn evict(&mut self, key: u64, _now: Nanos) {
        self.counters.pre_login_evicted.add(1);
        self.close(key as usize);
    }

    fn admit(&mut self, tcp: TcpConnection<N>, peer: Ipv4Addr, now: Nanos) -> bool {
        let place = self.connections.iter().position(Option::is_none);
        let place = place.expect("logged-in readers and pending logins have separate places");
        self.counters.connections.add(1);
        self.logins.handle_connection(now, place, peer);
        let link = SoupLink::new(tcp, now);
        self.connections[place] = Some(Connection { link, reader: None });
        true
    }
}

impl<N: Network> Agent for DropCopyEndpoint<N> {
    /// Reads the log and serves all readers. Fails when the log cannot be followed any more.
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = self.follow().map_err(AgentError::fatal)?;
        self.readers.take_new_users();
        work += self.rewind(now);
        if self.readers.streams.is_ready() {
            work += self.accept(now);
        }
        while let Some(place) = self.logins.poll_expired(now) {
            self.evict(place as u64, now);
        }
        for place in 0..self.connections.len() {
            work += self.serve_or_close(place, now);
        }
        Ok(work)
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.readers.streams.wake_by(waker);
    }

    /// Adds the acceptor to `wait`, and a short timeout while there are connections.
    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        wait.descriptor(self.acceptor.descriptor());
        if self.connections.iter().any(Option::is_some) {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "drop-copy"
    }

    /// Does one run. Returns true once all durable commands are read and all readers' copies are sent.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        self.do_work(now)?;
        let source_of = |connection: &Connection<N>| self.readers.source(connection.reader?);
        let is_sent = |connection: &Connection<N>| {
            connection.link.tcp.pending_len() == 0
                && source_of(connection).is_none_or(|source| self.readers.streams.is_sent(source))
        };
        Ok(self.readers.streams.is_caught_up() && self.connections.iter().flatten().all(is_sent))
    }
}

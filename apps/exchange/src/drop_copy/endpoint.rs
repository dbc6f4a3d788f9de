//! The endpoint of drop copies: SoupBinTCP, one way.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::{Agent, AgentError, WaitSet, Waker};
use tickpath_nasdaq::drop_copy::{COPY_LEN_MAX, Copy};
use tickpath_nasdaq::soupbintcp::{
    HEADER_LEN, LoginRejectReason, LoginRequest, SendError, ServerConfig, Session,
};
use tickpath_net::{BufferSizes, NetError, Network, TcpAcceptor, TcpConnection};
use tickpath_types::{Nanos, Sequence};
use tickpath_venue::drop_copy::{CopySource, CopyStart, CopyStreams, FollowRun, REWIND_PATIENCE, RewindRun};
use tickpath_venue::{DropCopyCounters, LogReadError, StoredLog};

use super::DropCopySettings;
use super::logins::ReaderLogins;
use crate::soup_endpoint::SoupEndpoint;
use crate::soup_link::{Hangup, SoupLink};

/// Bytes received and not yet taken: readers send logins and heartbeats.
const RECEIVE_BUFFER: usize = 4 * 1024;
/// Bytes gathered for one write.
const SEND_BUFFER: usize = 32 * 1024;
/// Messages taken from the log in one run: as many as one write holds, so that a reader which takes what it is sent is never
/// overtaken, however far the log is ahead.
const MESSAGES_PER_RUN: usize = SEND_BUFFER / (HEADER_LEN + COPY_LEN_MAX);

/// The parts that a [`DropCopyEndpoint`] is made of.
pub(crate) struct DropCopyLinks {
    pub(crate) log: Box<dyn StoredLog>,
    pub(crate) session: Session,
    pub(crate) logins: ReaderLogins,
    pub(crate) pre_login: PreLoginLimits,
    pub(crate) counters: Arc<DropCopyCounters>,
}

/// Follows the log and sends its readers their copies, in runs of bounded work on a thread that may wait for the disk.
pub(crate) struct DropCopyEndpoint<N: Network> {
    session: Session,
    acceptor: TcpAcceptor<N>,
    /// Places for readers and for those who have not logged in.
    connections: Box<[Option<Connection<N>>]>,
    pre_login: PreLogin<Ipv4Addr>,
    /// Readers that are logged in, at most.
    readers_max: usize,
    logins: ReaderLogins,
    streams: CopyStreams,
    send_buffer: Box<[u8]>,
    counters: Arc<DropCopyCounters>,
}

struct Connection<N: Network> {
    link: SoupLink<N>,
    /// The login that has no answer yet.
    login: Option<PendingLogin>,
    /// The reader that is logged in, and the source of its next message.
    reader: Option<(usize, CopySource)>,
}

#[derive(Clone, Copy)]
struct PendingLogin {
    request: LoginRequest,
    check: Check,
}

#[derive(Clone, Copy)]
enum Check {
    /// The password is checked from this time on.
    PutOff(Nanos),
    /// It is the one of this reader, whose stream cannot begin yet.
    Right(usize),
}

impl<N: Network> DropCopyEndpoint<N> {
    pub(crate) fn open(
        settings: &DropCopySettings,
        network: &N,
        links: DropCopyLinks,
    ) -> Result<Self, NetError> {
        let DropCopyLinks { log, session, logins, pre_login, counters } = links;
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), settings.address, buffers)?;
        let places = settings.max_connections + pre_login.connections;
        acceptor.reserve(places);
        Ok(DropCopyEndpoint {
            session,
            acceptor,
            connections: (0..places).map(|_| None).collect(),
            pre_login: PreLogin::new(pre_login),
            readers_max: settings.max_connections,
            logins,
            streams: CopyStreams::new(log, settings.retained_messages, MESSAGES_PER_RUN),
            send_buffer: vec![0; SEND_BUFFER].into_boxed_slice(),
            counters,
        })
    }

    pub(crate) fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Follows the log some way; returns how much there was to do.
    fn follow(&mut self) -> Result<usize, LogReadError> {
        match self.streams.follow() {
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

    /// Reads on in the log for the reader that began before what is kept; returns how much.
    fn rewind(&mut self, now: Nanos) -> usize {
        let Some(place) = self.streams.rewinding() else { return 0 };
        let Some(connection) = &self.connections[place] else { return 0 };
        let Some((reader, _)) = connection.reader else { return 0 };
        let takes_all = connection.link.tcp.pending_len() == 0;
        match self.streams.advance_rewind(&self.logins.reader(reader).watched, takes_all, now) {
            RewindRun::Read(count) => return count,
            RewindRun::Stalled => self.hang_up(place, Hangup::Slow),
            RewindRun::Lost => {
                self.counters.rewinds_failed.add(1);
                self.close(place);
            }
        }
        1
    }

    /// Reads what the reader sends, then sends what there is for it.
    fn serve(&mut self, place: usize, now: Nanos) -> Result<usize, Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(0) };
        if let Some(request) = connection.link.listen(now)? {
            self.begin_login(place, request, now);
        }
        if let Some(login) = self.connections[place].as_mut().and_then(|connection| connection.login.take()) {
            self.continue_login(place, login, now);
        }
        self.transmit(place, now)
    }

    fn serve_or_close(&mut self, place: usize, now: Nanos) -> usize {
        self.serve(place, now).unwrap_or_else(|hangup| {
            self.hang_up(place, hangup);
            0
        })
    }

    fn begin_login(&mut self, place: usize, request: LoginRequest, now: Nanos) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        let peer = *connection.link.tcp.peer_address().ip();
        let (user, delay, is_trusted) = self.logins.begin(&request, peer, now);
        self.pre_login.postpone_login(place as u64, user, now + delay, is_trusted);
        connection.login = Some(PendingLogin { request, check: Check::PutOff(now + delay) });
    }

    /// Answers a login, if it can be answered yet; otherwise it waits.
    fn continue_login(&mut self, place: usize, mut login: PendingLogin, now: Nanos) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        let reader = match login.check {
            Check::PutOff(at) if now < at => {
                connection.login = Some(login);
                return;
            }
            Check::PutOff(_) => {
                let peer = *connection.link.tcp.peer_address().ip();
                self.logins.check(&login.request, peer)
            }
            Check::Right(reader) => Some(reader),
        };
        let Some(reader) = reader else {
            self.counters.wrong_passwords.add(1);
            self.refuse_login(place, LoginRejectReason::NOT_AUTHORIZED);
            return;
        };
        match self.start_stream(place, reader, &login.request, now) {
            Err(reason) => self.refuse_login(place, reason),
            Ok(CopyStart::NotAvailable) => {
                self.refuse_login(place, LoginRejectReason::SESSION_NOT_AVAILABLE);
            }
            Ok(CopyStart::Busy) => {
                // Its turn comes when the log has been read again for another one.
                self.pre_login.postpone_login(place as u64, Some(reader), now + REWIND_PATIENCE, true);
                login.check = Check::Right(reader);
                if let Some(connection) = self.connections[place].as_mut() {
                    connection.login = Some(login);
                }
            }
            Ok(CopyStart::At(number, source)) => {
                self.counters.rewinds.add(u64::from(source == CopySource::Rewind));
                if let Some(connection) = self.connections[place].as_mut() {
                    connection.link.soup.accept(self.session, Sequence(number));
                    connection.reader = Some((reader, source));
                }
                *self.logins.connection_of(reader) = Some(place);
                self.pre_login.remove(place as u64);
                self.counters.logins.add(1);
            }
        }
    }

    fn refuse_login(&mut self, place: usize, reason: LoginRejectReason) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        connection.link.soup.reject(reason);
        self.counters.logins_refused.add(1);
    }

    /// Begins the stream of a reader whose password is right.
    fn start_stream(
        &mut self,
        place: usize,
        reader: usize,
        request: &LoginRequest,
        now: Nanos,
    ) -> Result<CopyStart, LoginRejectReason> {
        let user = self.logins.reader(reader);
        if !user.may_read {
            return Err(LoginRejectReason::NOT_AUTHORIZED);
        }
        let is_current = request.session == Session::BLANK || request.session == self.session;
        let is_full = self.logins.connected() >= self.readers_max;
        if !is_current || user.connection.is_some() || is_full {
            return Ok(CopyStart::NotAvailable);
        }
        Ok(self.streams.start(place, &user.watched, request.sequence.0, now))
    }

    /// Hands TCP what is due: control packets, then copies; returns how many.
    fn transmit(&mut self, place: usize, now: Nanos) -> Result<usize, Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(0) };
        let has_room = connection.link.flush()?;
        // A reader that never reads is noticed here, where nothing more can be sent.
        if connection.reader.is_some_and(|(_, source)| !self.streams.is_kept(source)) {
            return Err(Hangup::Slow);
        }
        if !has_room {
            return Ok(0);
        }
        let mut len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
        let mut copies = 0;
        let is_active = connection.link.soup.is_active();
        if let Some((reader, source)) = connection.reader.as_mut().filter(|_| is_active) {
            let watched = &self.logins.reader(*reader).watched;
            while self.send_buffer.len() - len >= HEADER_LEN + COPY_LEN_MAX
                && let Some(entry) = self.streams.next(source, watched, now)
            {
                let user = &self.logins.reader(usize::from(entry.user)).name;
                let copy = Copy { user, number: entry.number, message: entry.message() };
                let write = |room: &mut [u8]| Ok::<_, SendError>(copy.encode(room)?);
                let encoded =
                    connection.link.soup.encode_message_with(now, &mut self.send_buffer[len..], write);
                let (written, _) = encoded.map_err(|_| Hangup::Over)?;
                len += written;
                copies += 1;
            }
        }
        if len > 0 {
            connection.link.send(&self.send_buffer[..len])?;
        }
        self.counters.copies.add(copies as u64);
        if connection.link.soup.is_closed() { Err(Hangup::Over) } else { Ok(copies) }
    }

    /// Closes a connection and counts why.
    fn hang_up(&mut self, place: usize, hangup: Hangup) {
        match hangup {
            Hangup::Malformed => self.counters.malformed.add(1),
            Hangup::Slow => self.counters.slow_readers.add(1),
            Hangup::Over | Hangup::Silent => {}
        }
        self.close(place);
    }

    fn close(&mut self, place: usize) {
        let Some(connection) = self.connections[place].take() else { return };
        self.pre_login.remove(place as u64);
        if let Some((reader, _)) = connection.reader {
            *self.logins.connection_of(reader) = None;
        }
        self.streams.end(place);
        self.acceptor.take_back(connection.link.tcp);
        self.counters.disconnects.add(1);
    }
}

impl<N: Network> SoupEndpoint<N> for DropCopyEndpoint<N> {
    const ACCEPTS_MAX: usize = 64;

    fn next_connection(&mut self, _now: Nanos) -> Option<TcpConnection<N>> {
        // A connection that the system refuses now waits, and is accepted in a later run.
        self.acceptor.accept().ok().flatten()
    }

    fn victim(&self, peer: Ipv4Addr) -> Option<u64> {
        self.pre_login.victim(peer)
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
        let place = place.expect("readers and those who are not yet have places of their own");
        self.counters.connections.add(1);
        self.pre_login.admit(now, place as u64, peer);
        let link = SoupLink::new(tcp, ServerConfig::default(), now);
        self.connections[place] = Some(Connection { link, login: None, reader: None });
        true
    }
}

impl<N: Network> Agent for DropCopyEndpoint<N> {
    /// Reads on in the log and serves every reader. Where the log cannot be followed any more, every connection is closed.
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        let mut work = self.follow().map_err(AgentError::fatal)?;
        self.logins.take_new_users();
        work += self.rewind(now);
        if self.streams.is_ready() {
            work += self.accept(now);
        }
        while let Some(key) = self.pre_login.expired(now) {
            self.evict(key, now);
        }
        for place in 0..self.connections.len() {
            work += self.serve_or_close(place, now);
        }
        Ok(work)
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.streams.wake_by(waker);
    }

    /// The next reader, and while there is one, a little.
    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        wait.descriptor(self.acceptor.descriptor());
        if self.connections.iter().any(Option::is_some) {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "drop-copy"
    }

    /// Serves on until every reader has what there is.
    fn finish(&mut self, now: Nanos) -> Result<bool, AgentError> {
        self.do_work(now)?;
        let is_sent = |connection: &Connection<N>| {
            connection.link.tcp.pending_len() == 0
                && connection.reader.is_none_or(|(_, source)| self.streams.is_sent(source))
        };
        Ok(self.streams.is_caught_up() && self.connections.iter().flatten().all(is_sent))
    }
}

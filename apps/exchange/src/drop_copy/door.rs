//! The door of drop copies: SoupBinTCP, one way.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tickpath_admission::{LoginGuard, PreLogin, PreLoginLimits};
use tickpath_agent::{WaitSet, Waker};
use tickpath_journal::Storage;
use tickpath_lockfree::spsc;
use tickpath_nasdaq::drop_copy::{COPY_LEN_MAX, Copy};
use tickpath_nasdaq::soupbintcp::{
    HEADER_LEN, LoginRejectReason, LoginRequest, SendError, ServerConfig, Session,
};
use tickpath_net::{BufferSizes, NetError, Network, TcpAcceptor};
use tickpath_types::{Nanos, Sequence};
use tickpath_venue::drop_copy::{CopyStore, Entry, Place, ReaderUser, Watched, count, enlist, find};
use tickpath_venue::{Password, UserRegistry};

use super::reading::{DropCopyError, Reading, Source};
use super::{DropCopyCounters, DropCopySettings};
use crate::login::{TrustedLogin, has_password, unknown_password};
use crate::soup_link::{Hangup, SoupLink};

/// Bytes received and not yet taken: readers send logins and heartbeats.
const RECEIVE_BUFFER: usize = 4 * 1024;
/// Bytes gathered for one write.
const SEND_BUFFER: usize = 32 * 1024;
/// Connections accepted in one run.
const ACCEPTS_PER_RUN: usize = 64;
/// Commands taken from the log in one run.
const COMMANDS_PER_RUN: usize = 1 << 12;
/// Messages taken from it in one run: as many as one write holds, so that a reader which takes what it is sent is never
/// overtaken, however far the log is ahead.
const MESSAGES_PER_RUN: usize = SEND_BUFFER / (HEADER_LEN + COPY_LEN_MAX);
/// Messages that wait for a reader for whom the log is read again.
const REWOUND_MAX: usize = 1 << 10;
/// How long a reader for whom the log is read again may take nothing: others wait for their turn.
const REWIND_PATIENCE: Nanos = Nanos::from_secs(10);

/// What the door is joined to.
pub(crate) struct Wiring<S: Storage> {
    pub(crate) storage: S,
    pub(crate) log_session: tickpath_journal::SessionName,
    pub(crate) durable: tickpath_journal::DurableView,
    pub(crate) session: Session,
    pub(crate) users: UserRegistry,
    pub(crate) guard: LoginGuard<Ipv4Addr>,
    pub(crate) trusted: spsc::Producer<TrustedLogin>,
    pub(crate) pre_login: PreLoginLimits,
    pub(crate) counters: Arc<DropCopyCounters>,
}

/// Follows the log and sends its readers their copies, in runs of bounded work on a thread that may wait for the disk.
pub(crate) struct DropCopyDoor<S: Storage, N: Network> {
    source: Source<S>,
    session: Session,
    retained: usize,
    acceptor: TcpAcceptor<N>,
    /// Places for readers and for those who have not logged in.
    connections: Box<[Option<Connection<N>>]>,
    pre_login: PreLogin<Ipv4Addr>,
    /// Readers that are logged in, at most.
    readers_max: usize,
    users: UserRegistry,
    /// The same users, by their places.
    readers: Vec<ReaderUser>,
    /// What the password of a name that nobody has is checked against.
    nobody: Option<Password>,
    guard: LoginGuard<Ipv4Addr>,
    /// New trusted logins, for the file that outlasts a restart.
    trusted: spsc::Producer<TrustedLogin>,
    live: Option<Live<S>>,
    /// The log read again for one reader; others wait.
    rewind: Option<Rewind<S>>,
    send_buffer: Box<[u8]>,
    counters: Arc<DropCopyCounters>,
}

/// The log as far as it is safe.
struct Live<S: Storage> {
    reading: Reading<S>,
    store: CopyStore,
    /// What the last command caused beyond what one run takes: as much as one command can, as the end of a day does.
    waiting: VecDeque<Entry>,
    /// Nobody is let in before the log was read up to here.
    ready_at: Sequence,
}

/// The log read again from before what is kept.
struct Rewind<S: Storage> {
    reading: Reading<S>,
    /// Whose connection it is for.
    connection: usize,
    /// Number of the reader's next message that is read.
    next_number: u64,
    /// The first that it wants.
    wanted: u64,
    /// Messages that wait to be sent.
    out: VecDeque<Entry>,
    /// When it took something last.
    last_progress: Nanos,
}

struct Connection<N: Network> {
    link: SoupLink<N>,
    /// The login that has no answer yet.
    login: Option<PendingLogin>,
    reader: Option<usize>,
    source: Origin,
}

#[derive(Clone, Copy)]
struct PendingLogin {
    request: LoginRequest,
    verdict: Verdict,
}

#[derive(Clone, Copy)]
enum Verdict {
    /// Of this reader; what it wants is to be found.
    Right(usize),
    Wrong,
    /// The password is checked from this time on.
    PutOff(Nanos),
}

/// Where a connection's next message comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Nowhere: nobody is logged in.
    Nothing,
    /// The store, from this place on.
    Store(u64),
    /// The log, read again.
    Rewind,
}

impl<S: Storage, N: Network> DropCopyDoor<S, N> {
    pub(crate) fn open(
        settings: &DropCopySettings,
        network: &N,
        wiring: Wiring<S>,
    ) -> Result<Self, NetError> {
        let Wiring { storage, log_session, durable, session, users, guard, trusted, pre_login, counters } =
            wiring;
        let buffers = BufferSizes { receive: RECEIVE_BUFFER, pending: SEND_BUFFER };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), settings.address, buffers)?;
        let places = settings.max_connections + pre_login.connections;
        acceptor.reserve(places);
        let mut readers = Vec::with_capacity(users.room());
        enlist(&mut readers, &users);
        Ok(DropCopyDoor {
            source: Source { storage, session: log_session, durable },
            session,
            retained: settings.retained_messages,
            acceptor,
            connections: (0..places).map(|_| None).collect(),
            pre_login: PreLogin::new(pre_login),
            readers_max: settings.max_connections,
            readers,
            nobody: unknown_password(&users),
            guard,
            trusted,
            users,
            live: None,
            rewind: None,
            send_buffer: vec![0; SEND_BUFFER].into_boxed_slice(),
            counters,
        })
    }

    pub(crate) fn local_address(&self) -> std::net::SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Has what becomes safe in the log wake the thread behind `waker`.
    pub(crate) fn wake_by(&self, waker: &Waker) {
        self.source.durable.wake_by(waker);
    }

    /// Says what it waits for: the next reader, and while there is one, a little.
    pub(crate) fn wait_for(&self, wait: &mut WaitSet) {
        wait.descriptor(self.acceptor.descriptor());
        if self.connections.iter().any(Option::is_some) {
            wait.soon();
        }
    }

    /// Reads on in the log and serves every reader; returns how much there was to do.
    ///
    /// # Errors
    /// [`DropCopyError`] when the log cannot be followed any more: every connection is closed.
    pub(crate) fn run_once(&mut self, now: Nanos) -> Result<usize, DropCopyError> {
        let mut work = match self.follow_log() {
            Ok(work) => work,
            Err(error) => {
                self.counters.has_failed.set(1);
                (0..self.connections.len()).for_each(|place| self.close(place));
                return Err(error);
            }
        };
        self.enlist_new_users();
        work += self.rewind(now);
        if self.live.as_ref().is_some_and(Live::is_ready) {
            work += self.accept(now);
        }
        while let Some(place) = self.pre_login.expired(now) {
            self.counters.pre_login_evicted.add(1);
            self.close(place as usize);
        }
        for place in 0..self.connections.len() {
            match self.serve(place, now) {
                Ok(count) => work += count,
                Err(hangup) => self.hang_up(place, hangup),
            }
        }
        Ok(work)
    }

    /// Whoever is heard of in the log is in the roster by then.
    fn enlist_new_users(&mut self) {
        if self.users.get(self.readers.len()).is_some() {
            enlist(&mut self.readers, &self.users);
            self.nobody = self.nobody.take().or_else(|| unknown_password(&self.users));
        }
    }

    /// True when every reader has what there is.
    pub(crate) fn is_settled(&self) -> bool {
        let Some(live) = &self.live else { return true };
        let is_sent = |connection: &Connection<N>| {
            connection.link.tcp.pending_len() == 0
                && match connection.source {
                    Origin::Nothing => true,
                    Origin::Store(at) => at == live.store.next(),
                    Origin::Rewind => false,
                }
        };
        live.reading.last_command() >= self.source.durable.durable()
            && live.waiting.is_empty()
            && self.connections.iter().flatten().all(is_sent)
    }

    fn follow_log(&mut self) -> Result<usize, DropCopyError> {
        let limit = self.source.durable.durable();
        let live = match &mut self.live {
            Some(live) => live,
            live => {
                let reading = self.source.read_newest()?;
                let store = CopyStore::new(self.retained, reading.next_numbers().collect());
                live.insert(Live { reading, store, waiting: VecDeque::new(), ready_at: limit })
            }
        };
        let Live { reading, store, waiting, .. } = live;
        // What is pushed must not push out what the readers are to be sent next.
        let messages_max = MESSAGES_PER_RUN.min(store.capacity().div_ceil(2));
        let waited = waiting.len().min(messages_max);
        waiting.drain(..waited).for_each(|entry| store.push(entry));
        let (mut messages, mut commands) = (waited, 0);
        while commands < COMMANDS_PER_RUN
            && messages < messages_max
            && reading.step(limit, |user, number, message| {
                let entry = Entry::new(user, number, message);
                if messages < messages_max {
                    store.push(entry);
                    messages += 1;
                } else {
                    waiting.push_back(entry);
                }
            })?
        {
            commands += 1;
        }
        self.counters.messages.add(messages as u64);
        self.counters.commands.set(reading.last_command().0 - u64::from(!waiting.is_empty()));
        Ok(waited + commands)
    }

    /// Reads on in the log for the reader that began before what is kept; returns how much. Where the log has gone
    /// meanwhile that reader alone is let go: whether the others' can be read is seen by reading it.
    fn rewind(&mut self, now: Nanos) -> usize {
        let (Some(rewind), Some(live)) = (&mut self.rewind, &self.live) else { return 0 };
        let place = rewind.connection;
        let Some(connection) = &self.connections[place] else { return 0 };
        let Some(reader) = connection.reader else { return 0 };
        // While there is nothing that the reader could take its turn is not over.
        if rewind.out.is_empty() && connection.link.tcp.pending_len() == 0 {
            rewind.last_progress = now;
        }
        match rewind.read_on(live.reading.last_command(), &self.readers[reader].watched) {
            Ok(_) if now.since(rewind.last_progress) >= REWIND_PATIENCE => {
                self.hang_up(place, Hangup::Slow);
                1
            }
            Ok(count) => count,
            Err(_) => {
                self.counters.rewinds_failed.add(1);
                self.close(place);
                1
            }
        }
    }

    fn accept(&mut self, now: Nanos) -> usize {
        for count in 0..ACCEPTS_PER_RUN {
            // A connection that the system refuses now waits, and is accepted in a later run.
            let Ok(Some(tcp)) = self.acceptor.accept() else { return count };
            let peer = *tcp.peer_address().ip();
            self.make_room(peer, now);
            let place = self.connections.iter().position(Option::is_none);
            let place = place.expect("readers and those who are not yet have places of their own");
            self.counters.connections.add(1);
            self.pre_login.admit(now, place as u64, peer);
            let link = SoupLink::new(tcp, ServerConfig::default(), now);
            self.connections[place] =
                Some(Connection { link, login: None, reader: None, source: Origin::Nothing });
        }
        ACCEPTS_PER_RUN
    }

    /// Closes a connection that has not logged in, where another one of `peer` finds no capacity. It is served once more
    /// before: its login may have come.
    fn make_room(&mut self, peer: Ipv4Addr, now: Nanos) {
        let Some(place) = self.pre_login.victim(peer).map(|place| place as usize) else { return };
        if let Err(hangup) = self.serve(place, now) {
            self.hang_up(place, hangup);
        }
        if let Some(place) = self.pre_login.victim(peer) {
            self.counters.pre_login_evicted.add(1);
            self.close(place as usize);
        }
    }

    /// What the reader says, then what it is told.
    fn serve(&mut self, place: usize, now: Nanos) -> Result<usize, Hangup> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(0) };
        if let Some(request) = connection.link.listen(now)? {
            self.begin_login(place, request, now);
        }
        if let Some(login) = self.connections[place].as_ref().and_then(|connection| connection.login) {
            self.settle_login(place, login, now);
        }
        self.transmit(place, now)
    }

    fn begin_login(&mut self, place: usize, request: LoginRequest, now: Nanos) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        let user = find(&self.readers, &request.username);
        let peer = *connection.link.tcp.peer_address().ip();
        let at = now + self.guard.delay(now, user, peer);
        let is_trusted = self.guard.is_trusted(user, peer);
        self.pre_login.postpone_login(place as u64, user, at, is_trusted);
        connection.login = Some(PendingLogin { request, verdict: Verdict::PutOff(at) });
    }

    /// Takes as long as a hashed password takes, on this thread: only other readers wait for it, and the guard sees to it
    /// that they do not wait often.
    fn check_password(&mut self, request: &LoginRequest, peer: Ipv4Addr) -> Verdict {
        let user = find(&self.readers, &request.username);
        let known = user.map(|user| &self.readers[user].password).or(self.nobody.as_ref());
        let is_right = known.is_some_and(|known| has_password(known, &request.password));
        match user.filter(|_| is_right) {
            Some(user) => {
                if self.guard.record_success(user, peer) {
                    // One that finds no room is trusted until the venue stops.
                    let _ = self.trusted.try_push((user as u32, peer));
                }
                Verdict::Right(user)
            }
            None => {
                self.counters.wrong_passwords.add(1);
                Verdict::Wrong
            }
        }
    }

    /// Answers a login, if it can be answered yet.
    fn settle_login(&mut self, place: usize, mut login: PendingLogin, now: Nanos) {
        let Some(connection) = self.connections[place].as_mut() else { return };
        if let Verdict::PutOff(at) = login.verdict {
            if now < at {
                return;
            }
            let peer = *connection.link.tcp.peer_address().ip();
            login.verdict = self.check_password(&login.request, peer);
        }
        let outcome = match login.verdict {
            Verdict::PutOff(_) | Verdict::Wrong => Err(LoginRejectReason::NOT_AUTHORIZED),
            Verdict::Right(reader) => match self.admit(place, reader, &login.request, now) {
                Some(outcome) => outcome,
                None => {
                    // Its turn comes when the log has been read again for another one.
                    self.pre_login.postpone_login(place as u64, Some(reader), now + REWIND_PATIENCE, true);
                    if let Some(connection) = self.connections[place].as_mut() {
                        connection.login = Some(login);
                    }
                    return;
                }
            },
        };
        let Some(connection) = self.connections[place].as_mut() else { return };
        connection.login = None;
        match outcome {
            Ok((reader, number, source)) => {
                connection.link.soup.accept(self.session, Sequence(number));
                connection.reader = Some(reader);
                connection.source = source;
                self.readers[reader].connection = Some(place);
                self.pre_login.remove(place as u64);
                self.counters.logins.add(1);
            }
            Err(reason) => {
                connection.link.soup.reject(reason);
                self.counters.logins_refused.add(1);
            }
        }
    }

    /// The reader, its first number and where that is; `None` while another one is being rewound for.
    fn admit(
        &mut self,
        place: usize,
        reader: usize,
        request: &LoginRequest,
        now: Nanos,
    ) -> Option<Result<(usize, u64, Origin), LoginRejectReason>> {
        let ReaderUser { may_read, watched, connection, .. } = &self.readers[reader];
        if !may_read {
            return Some(Err(LoginRejectReason::NOT_AUTHORIZED));
        }
        let is_current = request.session == Session::BLANK || request.session == self.session;
        let is_full =
            self.readers.iter().filter(|reader| reader.connection.is_some()).count() >= self.readers_max;
        let not_available = Some(Err(LoginRejectReason::SESSION_NOT_AVAILABLE));
        let Some(live) = self.live.as_ref().filter(|_| is_current && connection.is_none() && !is_full) else {
            return not_available;
        };
        let number = match request.sequence.0 {
            0 => live.store.next_number(watched),
            number => number,
        };
        match live.store.find(watched, number) {
            Place::At(at) => return Some(Ok((reader, number, Origin::Store(at)))),
            Place::Beyond => return not_available,
            Place::Before if self.rewind.is_some() => return None,
            Place::Before => {}
        }
        // A log that cannot be read here is noticed, and told of, by whoever follows it.
        let Ok(Some(reading)) = self.source.read_before(watched, number) else { return not_available };
        self.counters.rewinds.add(1);
        let next_number = 1 + count(watched, reading.next_numbers());
        let out = VecDeque::with_capacity(REWOUND_MAX);
        self.rewind =
            Some(Rewind { reading, connection: place, next_number, wanted: number, out, last_progress: now });
        Some(Ok((reader, number, Origin::Rewind)))
    }

    /// Hands TCP what is due: control packets, then copies; returns how many.
    fn transmit(&mut self, place: usize, now: Nanos) -> Result<usize, Hangup> {
        let (Some(connection), Some(live)) = (self.connections[place].as_mut(), &self.live) else {
            return Ok(0);
        };
        let has_room = connection.link.flush()?;
        // Who never reads is noticed here, where nothing more can be sent.
        connection.check_is_kept(live)?;
        if !has_room {
            return Ok(0);
        }
        let mut len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
        let mut copies = 0;
        if let Some(reader) = connection.reader.filter(|_| connection.link.soup.is_active()) {
            let watched = &self.readers[reader].watched;
            while self.send_buffer.len() - len >= HEADER_LEN + COPY_LEN_MAX {
                let Some(entry) = next_entry(&mut connection.source, live, &mut self.rewind, watched, now)
                else {
                    break;
                };
                let user = &self.readers[usize::from(entry.user)].name;
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
        if let Some(reader) = connection.reader {
            self.readers[reader].connection = None;
        }
        if self.rewind.as_ref().is_some_and(|rewind| rewind.connection == place) {
            self.rewind = None;
        }
        self.acceptor.take_back(connection.link.tcp);
        self.counters.disconnects.add(1);
    }
}

impl<S: Storage> Live<S> {
    fn is_ready(&self) -> bool {
        self.reading.last_command() >= self.ready_at && self.waiting.is_empty()
    }
}

impl<N: Network> Connection<N> {
    /// A reader that is overtaken by the newest messages is sent nothing with a gap in it.
    fn check_is_kept<S: Storage>(&self, live: &Live<S>) -> Result<(), Hangup> {
        match self.source {
            Origin::Store(at) if at < live.store.next() && live.store.entry(at).is_none() => {
                Err(Hangup::Slow)
            }
            _ => Ok(()),
        }
    }
}

/// The reader's next message, if it is there.
fn next_entry<S: Storage>(
    source: &mut Origin,
    live: &Live<S>,
    rewind: &mut Option<Rewind<S>>,
    watched: &Watched,
    now: Nanos,
) -> Option<Entry> {
    if *source == Origin::Rewind {
        let reader = rewind.as_mut()?;
        if let Some(entry) = reader.out.pop_front() {
            reader.last_progress = now;
            return Some(entry);
        }
        // Once the log was read again as far as it is kept, it is like the others.
        let Place::At(at) = live.store.find(watched, reader.next_number.max(reader.wanted)) else {
            return None;
        };
        *source = Origin::Store(at);
        *rewind = None;
    }
    let Origin::Store(at) = source else { return None };
    while let Some(entry) = live.store.entry(*at) {
        *at += 1;
        if watched[usize::from(entry.user)] {
            return Some(*entry);
        }
    }
    None
}

impl<S: Storage> Rewind<S> {
    /// Reads some of the log, as far as there is room for what follows; returns how many commands.
    fn read_on(&mut self, limit: Sequence, watched: &Watched) -> Result<usize, DropCopyError> {
        let mut count = 0;
        while count < COMMANDS_PER_RUN && self.out.len() < REWOUND_MAX && self.step(limit, watched)? {
            count += 1;
        }
        Ok(count)
    }

    fn step(&mut self, limit: Sequence, watched: &Watched) -> Result<bool, DropCopyError> {
        let Rewind { reading, next_number, wanted, out, .. } = self;
        reading.step(limit, |user, number, message| {
            if watched.get(user) == Some(&true) {
                if *next_number >= *wanted {
                    out.push_back(Entry::new(user, number, message));
                }
                *next_number += 1;
            }
        })
    }
}

//! The front's server: sockets and a separate thread.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::Context;
use nix::errno::Errno;
use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_agent::{Counter, Rest, StopSignal, TscClock, WaitSet};
use tickpath_exchange::{FrontPort, LogFeedError};
use tickpath_net::{Kernel, Poller, SendOutcome, SocketPoller};
use tickpath_types::{Nanos, Sequence};
use tickpath_web::{
    EndCause, HttpResponse, ServerEvent, TlsServer, WebAcceptor, WebConnection, WebEvent, WebLimits,
};

use crate::config::{ConnectionsPerAddress, FrontSettings};
use crate::connection::{Frame, Transport};
use crate::faults::{FaultSwitch, Outage};
use crate::fix_door::{FixCounters, FixDoor};
use crate::front::{Front, FrontCounters, HttpCall, MAINTENANCE};
use crate::labels::Labels;
use crate::line_file::LineFile;
use crate::rebase::LogStart;
use crate::side_files::{Kept, SideFiles};
use crate::trusted_file::TrustedFile;

/// Path for WebSocket upgrades.
const WEBSOCKET_PATH: &str = "/ws/api/v2";
/// Poller key of the acceptor; connections have keys from 0.
const ACCEPTOR_KEY: u64 = u64::MAX;
/// Maximum number of ready connections per poll; the others follow in the next poll.
const READY_MAX: usize = 64;
/// Maximum number of connections accepted per run.
const ACCEPTS_PER_RUN: usize = 64;
/// Maximum number of messages processed per connection and run.
const MESSAGES_PER_RUN: usize = 16;
/// Maximum number of log commands processed per run.
const COMMANDS_PER_RUN: usize = 1 << 10;
/// Sleep time of the thread after its latest work, which bounds the delay of a reply.
const REST: Nanos = Nanos::from_micros(200);
/// Time after sending a request during which the thread only yields, because the reply is imminent.
const ANSWER_IN: Nanos = Nanos::from_micros(300);
/// Interval for checking time-outs of connections that the poller does not report, and the disk capacity.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(50);
/// Maximum bytes in the kernel's send buffer of one client.
const KERNEL_BYTES_MAX: usize = 256 << 10;
/// Time after which a closing connection that accepts no data is dropped.
const END_PATIENCE: Nanos = Nanos::from_secs(5);
/// WebSocket close codes (RFC 6455, 7.4.1): normal closure, going away, policy violation.
const CLOSE_NORMAL: u16 = 1000;
const CLOSE_GOING_AWAY: u16 = 1001;
const CLOSE_POLICY: u16 = 1008;
/// Service restart, used for maintenance (IANA's registry of close codes).
const CLOSE_RESTART: u16 = 1012;
/// HTTP status of Deribit's error codes; all others have status 400.
const STATUS_OF: [(i64, u16); 6] =
    [(13_009, 401), (13_004, 401), (13_020, 404), (13_021, 403), (10_028, 429), (11_051, 503)];

/// Counters of the front's port, readable from other threads.
#[derive(Default)]
pub struct DoorCounters {
    /// Connections rejected because the connection limit was reached.
    pub refused: Counter,
    /// Connections closed before a request or login because others needed the capacity, or because their
    /// first request was late.
    pub evicted: Counter,
    /// Connections that ended normally.
    pub done: Counter,
    /// Connections that broke, timed out, or sent no valid HTTP.
    pub broken: Counter,
    /// Failed writes of records; these are unknown after a restart.
    pub records_lost: Counter,
    /// System error number for labels, records or tokens; 0 without an error.
    pub storage_error: Counter,
    /// 1 while the disk has no capacity for labels or records; orders that need it are rejected.
    pub is_disk_full: Counter,
    /// 1 once the log can no longer be followed; the front is unavailable until the venue restarts.
    pub has_failed: Counter,
}

struct Client {
    web: WebConnection,
    /// The front's connection number: of the WebSocket, or of the current HTTP request.
    number: Option<u64>,
    is_closing: bool,
    stage: Stage,
    /// Deadline for closing a connection that accepts no data.
    end_by: Option<Nanos>,
}

/// Authentication stage of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No request yet.
    Waiting,
    /// No request yet, and its address has reached the connection limit: it only gets that error.
    Excess,
    /// Requests without a login.
    Anonymous,
    /// Logged in.
    LoggedIn,
}

impl Stage {
    fn after_request(self) -> Stage {
        if self == Stage::Waiting { Stage::Anonymous } else { self }
    }
}

/// Counters of a front, for display.
#[derive(Clone)]
pub struct DeribitView {
    /// Requests and replies.
    pub front: Arc<FrontCounters>,
    /// Connections.
    pub door: Arc<DoorCounters>,
    /// Injected faults.
    pub faults: FaultSwitch,
    /// FIX connections, if enabled.
    pub fix: Option<Arc<FixCounters>>,
}

impl std::fmt::Display for DeribitView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let DeribitView { front, door, .. } = self;
        write!(
            f,
            "Deribit: {} connections, {} turned away, {} evicted, {} broken | {} logins, {} refused, {} delayed | {} requests, \
             {} refused, {} malformed, {} waited | {} over the rate, {} too slow, {} silent | {} notifications, {} too long",
            front.connections.read(),
            door.refused.read(),
            door.evicted.read(),
            door.broken.read(),
            front.logins.read(),
            front.logins_refused.read(),
            front.logins_delayed.read(),
            front.requests.read(),
            front.refused.read(),
            front.malformed.read(),
            front.waited.read(),
            front.over_rate.read(),
            front.slow_clients.read(),
            front.silent_clients.read(),
            front.notifications.read(),
            front.too_long.read(),
        )?;
        if let Some(fix) = &self.fix {
            let (made, refused, broken) = (fix.connections.read(), fix.refused.read(), fix.broken.read());
            write!(f, " | FIX: {made} connections, {refused} turned away, {broken} broken")?;
        }
        if door.is_disk_full.read() != 0 {
            f.write_str(" | orders with new labels, triggers and links are refused")?;
        }
        if door.records_lost.read() != 0 {
            f.write_str(" | decisions are not recorded")?;
        }
        match i32::try_from(door.storage_error.read()).map(Errno::from_raw) {
            Err(_) | Ok(Errno::UnknownErrno) => {}
            Ok(Errno::ENOSPC | Errno::EDQUOT) => f.write_str(": make room on the disk")?,
            Ok(errno) => write!(f, ": {}", errno.desc())?,
        }
        if self.faults.is_armed() {
            write!(f, " | {}", self.faults)?;
        }
        if door.has_failed.read() != 0 {
            f.write_str(" | closed: the journal cannot be followed, start the venue again")?;
        }
        Ok(())
    }
}

/// The Deribit front, ready to run.
pub struct DeribitServer {
    front: Front,
    door: FrontPort,
    acceptor: WebAcceptor,
    fix: Option<FixDoor>,
    poller: Poller,
    clients: BTreeMap<u64, Client>,
    /// Connections without a request.
    pre_login: PreLogin<Ipv4Addr>,
    /// Connections with requests but without a login; these are closed when others need the capacity.
    anonymous: PreLogin<Ipv4Addr>,
    /// Buffer for the client keys of a run.
    keys: Vec<u64>,
    next_key: u64,
    max_connections: usize,
    per_address: ConnectionsPerAddress,
    files: SideFiles,
    trusted: TrustedFile,
    notices: Vec<String>,
    /// Log position that must be reached before clients are accepted.
    ready_at: Option<Sequence>,
    next_timers: Nanos,
    disk_at: Nanos,
    /// Time until which the thread does not sleep.
    awake_until: Nanos,
    counters: Arc<DoorCounters>,
}

/// The front's thread. Dropping it stops the thread.
pub struct DeribitThread {
    stop: StopSignal,
    handle: Option<JoinHandle<Result<(), LogFeedError>>>,
}

/// Storage of the data that the log does not contain.
#[derive(Clone, Debug)]
pub struct LabelStore {
    /// Common prefix of the file names.
    pub path: PathBuf,
    /// Folder of the journal that the files belong to.
    pub journal: PathBuf,
    /// Whether they are synced before an order with a new label is sent.
    pub is_synced: bool,
    /// Whether to continue with the intact part of a damaged file, which is kept under another name.
    pub accepts_loss: bool,
}

impl DeribitServer {
    /// Opens the front's sockets. Clients are accepted once the log has been read.
    ///
    /// # Errors
    /// An address that is in use or not local, or a file of labels that cannot be read or written.
    pub fn open(
        settings: FrontSettings,
        door: FrontPort,
        store: &LabelStore,
        clock: TscClock,
    ) -> anyhow::Result<DeribitServer> {
        let limits = WebLimits { idle_timeout: Nanos::from_secs(15 * 60), ..WebLimits::server() };
        let tls = settings.tls.as_ref().map(|(certificate, key)| TlsServer::from_pem_files(certificate, key));
        let tls = tls.transpose().context("deribit.tls")?;
        let open_fix = |address| FixDoor::open(address, tls.clone(), &settings);
        let fix = settings.fix_address.map(open_fix).transpose()?;
        let acceptor = WebAcceptor::bind(Kernel, settings.address, tls, limits).context("deribit.address")?;
        let poller = Poller::new(READY_MAX)?;
        acceptor.watch(&poller, ACCEPTOR_KEY)?;
        let (mut files, kept) = SideFiles::open(store, &door.log.session).context("the Deribit front")?;
        let known = Labels::read(&kept.labels)
            .with_context(|| format!("the Deribit front's labels beside {}", store.path.display()))?;
        let max_connections = settings.max_connections;
        let (per_address, pre_login) = (settings.per_address, PreLogin::new(settings.pre_login));
        // One more than the limit, until another connection is closed.
        let places = max_connections + 1;
        let all = PreLoginLimits { connections: places, per_address: places, deadline: Nanos(u64::MAX) };
        let now_us = clock.now().0 / 1_000;
        let is_new = kept.labels.is_empty() && kept.records.is_empty();
        let mut front = Front::new(settings, known, random_key().context("/dev/urandom")?, now_us);
        let ready_at = door.log.durable();
        let log = LogStart { commands: ready_at.0, generation: door.log.generation };
        let lost = recall(&mut front, &mut files, &kept, log);
        let lost =
            lost.with_context(|| format!("the Deribit front's files beside {}", store.path.display()))?;
        let (trusted, notice) = TrustedFile::open(store, &mut front, is_new)?;
        let notices = kept.notices.into_iter().chain(lost).chain(notice).collect();

        Ok(DeribitServer {
            front,
            ready_at: Some(ready_at),
            door,
            acceptor,
            fix,
            poller,
            clients: BTreeMap::new(),
            pre_login,
            anonymous: PreLogin::new(all),
            keys: Vec::new(),
            next_key: 0,
            max_connections,
            per_address,
            files,
            trusted,
            notices,
            next_timers: Nanos::ZERO,
            disk_at: Nanos::ZERO,
            awake_until: Nanos::ZERO,
            counters: Arc::default(),
        })
    }

    /// Returns messages for the operator about the side files.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the address of the WebSocket and HTTP port.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Returns the address of the FIX port, if enabled.
    #[must_use]
    pub fn fix_address(&self) -> Option<SocketAddrV4> {
        self.fix.as_ref().map(FixDoor::local_address)
    }

    /// Returns the counters.
    #[must_use]
    pub fn view(&self) -> DeribitView {
        let fix = self.fix.as_ref().map(FixDoor::counters);
        DeribitView {
            front: self.front.counters(),
            door: Arc::clone(&self.counters),
            faults: self.front.faults(),
            fix,
        }
    }

    /// Returns the fault switch for tests; none if other machines can reach the front.
    #[must_use]
    pub fn faults(&self) -> Option<FaultSwitch> {
        let mut addresses = [Some(self.local_address()), self.fix_address()].into_iter().flatten();
        addresses.all(|address| address.ip().is_loopback()).then(|| self.front.faults())
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot create it.
    pub fn start(mut self, clock: TscClock) -> io::Result<DeribitThread> {
        let stop = StopSignal::new();
        let stopped = stop.clone();
        let mut rest = Rest::new(clock, REST)?;
        self.door.log.wake_by(rest.waker());
        stop.wake(rest.waker());
        let handle = thread::Builder::new().name("deribit-front".to_owned()).spawn(move || {
            let _told = ToldOfPanic(Arc::clone(&self.counters));
            while !stopped.is_stopped() {
                match self.run_once(clock.now()) {
                    Ok(0) if clock.now() < self.awake_until => thread::yield_now(),
                    Ok(0) => rest.rest(|now, wait| self.wait_for(now, wait)),
                    Ok(_) => rest.note_work(),
                    Err(error) => {
                        self.counters.has_failed.set(1);
                        self.close_all(clock.now());
                        return Err(error);
                    }
                }
            }
            self.close_all(clock.now());
            Ok(())
        })?;
        Ok(DeribitThread { stop, handle: Some(handle) })
    }

    /// Does a bounded amount of work and returns how much.
    ///
    /// # Errors
    /// [`LogFeedError`] when the log can no longer be followed: clients would get wrong data.
    pub fn run_once(&mut self, now: Nanos) -> Result<usize, LogFeedError> {
        self.front.handle_time(now.0 / 1_000);
        let mut work = self.door.log.run_once(COMMANDS_PER_RUN, &mut self.front)?;
        if let Some(ready_at) = self.ready_at {
            // Log commands from before the start are not published.
            if self.front.counters().commands.read() < ready_at.0 {
                return Ok(work);
            }
            self.ready_at = None;
            self.front.go_live();
        }
        if now >= self.disk_at {
            self.disk_at = now + TIMER_INTERVAL;
            self.look_at_disk();
            self.trusted.take(&mut self.front);
        }
        work += self.read(now);
        if let Some(fix) = &mut self.fix {
            work += fix.read(&mut self.front, now);
        }
        let handed_over = self.hand_over();
        if handed_over > 0 {
            self.awake_until = now + ANSWER_IN;
        }
        work += handed_over;
        let mut keys = std::mem::take(&mut self.keys);
        keys.extend(self.clients.keys());
        for key in keys.drain(..) {
            work += self.write(key, now);
        }
        self.keys = keys;
        if let Some(fix) = &mut self.fix {
            work += fix.write(&mut self.front, now);
        }
        Ok(work)
    }

    /// Adds the events that the thread waits for, besides new durable log commands.
    fn wait_for(&self, now: Nanos, wait: &mut WaitSet) {
        wait.descriptor(self.poller.descriptor());
        wait.until(Nanos(self.front.next_time_us() * 1_000).min(self.next_timers).min(self.disk_at));
        let has_unsent = self.clients.values().any(|client| client.web.has_pending());
        let mut is_waiting = has_unsent || self.front.faults().is_armed();
        if let Some(fix) = &self.fix {
            wait.descriptor(fix.descriptor());
            is_waiting |= fix.has_more();
        }
        if is_waiting {
            wait.until(now + REST);
        }
    }

    fn read(&mut self, now: Nanos) -> usize {
        // When the system call fails, the next run polls again.
        let mut ready = std::mem::take(&mut self.keys);
        if let Ok(found) = self.poller.poll() {
            ready.extend(found.map(|ready| ready.key));
        }
        if now >= self.next_timers {
            self.next_timers = now + TIMER_INTERVAL;
            ready.extend(self.clients.keys());
        }
        let mut work = 0;
        for key in ready.iter().copied().filter(|key| *key != ACCEPTOR_KEY) {
            work += self.receive(key, now);
        }
        // After the others: a received request is read before its connection could be closed for a new one.
        if ready.contains(&ACCEPTOR_KEY) {
            work += self.accept(now);
        }
        while let Some(key) = self.pre_login.expired(now) {
            self.counters.evicted.add(1);
            self.forget(key, now);
        }
        ready.clear();
        self.keys = ready;
        work
    }

    fn accept(&mut self, now: Nanos) -> usize {
        for count in 0..ACCEPTS_PER_RUN {
            let Ok(Some(web)) = self.acceptor.accept(now) else { return count };
            let peer = *web.peer_address().ip();
            self.make_room(peer, now);
            let key = self.next_key;
            self.next_key += 1;
            if web.limit_send_buffer(KERNEL_BYTES_MAX).is_ok() && web.watch(&self.poller, key).is_ok() {
                self.pre_login.admit(now, key, peer);
                let client =
                    Client { web, number: None, is_closing: false, stage: Stage::Waiting, end_by: None };
                self.clients.insert(key, client);
            }
        }
        ACCEPTS_PER_RUN
    }

    /// Closes a connection without a request when the limits leave no capacity for another one of `peer`.
    /// Reads the connection first, because its request may have arrived.
    fn make_room(&mut self, peer: Ipv4Addr, now: Nanos) {
        let Some(key) = self.pre_login.victim(peer) else { return };
        self.receive(key, now);
        if let Some(key) = self.pre_login.victim(peer) {
            self.counters.evicted.add(1);
            self.forget(key, now);
        }
    }

    /// Receives from a client; returns the number of messages.
    fn receive(&mut self, key: u64, now: Nanos) -> usize {
        let Some(client) = self.clients.get(&key) else { return 0 };
        if !matches!(client.stage, Stage::Waiting | Stage::Excess) {
            return self.take_messages(key, now);
        }
        let peer = *client.web.peer_address().ip();
        let is_excess = self.count_of(peer, &[Stage::LoggedIn]) >= self.per_address.max_of(peer);
        if let Some(client) = self.clients.get_mut(&key) {
            client.stage = if is_excess { Stage::Excess } else { Stage::Waiting };
        }
        let count = self.take_messages(key, now);
        // The first message may include a login.
        if let Some(stage @ (Stage::Anonymous | Stage::LoggedIn)) =
            self.clients.get(&key).map(|client| client.stage)
        {
            self.enter(key, peer, stage, now);
        }
        count
    }

    fn count_of(&self, peer: Ipv4Addr, stages: &[Stage]) -> usize {
        let is_one =
            |client: &&Client| *client.web.peer_address().ip() == peer && stages.contains(&client.stage);
        self.clients.values().filter(is_one).count()
    }

    /// Handles the first request of a connection. If a limit is exceeded, closes the oldest connection
    /// without a login: of this address, or of the address with the most.
    fn enter(&mut self, key: u64, peer: Ipv4Addr, stage: Stage, now: Nanos) {
        self.pre_login.remove(key);
        if self.count_of(peer, &[Stage::Anonymous, Stage::LoggedIn]) > self.per_address.max_of(peer)
            && let Some(oldest) = self.anonymous.oldest_of(peer)
        {
            self.counters.evicted.add(1);
            self.forget(oldest, now);
        }
        if self.clients.len() - self.pre_login.len() > self.max_connections {
            let Some(oldest) = self.anonymous.oldest_of_busiest() else {
                self.counters.refused.add(1);
                return self.forget(key, now);
            };
            self.counters.evicted.add(1);
            self.forget(oldest, now);
        }
        if stage == Stage::Anonymous {
            self.anonymous.admit(now, key, peer);
        }
    }

    fn take_messages(&mut self, key: u64, now: Nanos) -> usize {
        let now_us = now.0 / 1_000;
        let Some(client) = self.clients.get_mut(&key) else { return 0 };
        if client.number.is_some_and(|number| self.front.poll_outage(number).is_some()) {
            return 0;
        }
        let peer = *client.web.peer_address().ip();
        for count in 0..MESSAGES_PER_RUN {
            match client.web.receive(now) {
                None => return count,
                Some(ServerEvent::Message(event)) => {
                    if let Some(number) = client.number {
                        let frame = match event {
                            WebEvent::Text(text) => text.as_bytes(),
                            WebEvent::Binary(bytes) => bytes,
                            WebEvent::Closed(_) => continue,
                        };
                        self.front.handle_frame(number, frame, now_us);
                        if client.stage == Stage::Anonymous && self.front.is_logged_in(number) {
                            client.stage = Stage::LoggedIn;
                            self.anonymous.remove(key);
                        }
                        if self.front.poll_outage(number).is_some() {
                            return count + 1;
                        }
                    }
                }
                Some(ServerEvent::Upgrade(_) | ServerEvent::Request(_)) if client.stage == Stage::Excess => {
                    let frame = Front::too_many_connections();
                    client.web.respond(now, &HttpResponse::json(status_of(&frame), &frame.bytes));
                    // Unsent data is lost with the connection.
                    let _ = client.web.flush();
                    self.counters.refused.add(1);
                    self.forget(key, now);
                    return count + 1;
                }
                Some(ServerEvent::Upgrade(_) | ServerEvent::Request(_))
                    if let Some(frame) = self.front.maintenance() =>
                {
                    client.web.respond(now, &HttpResponse::json(status_of(&frame), &frame.bytes));
                }
                Some(ServerEvent::Upgrade(request)) => {
                    client.stage = client.stage.after_request();
                    if request.path() == WEBSOCKET_PATH {
                        client.web.accept_upgrade();
                        client.number = Some(self.front.open_from(peer, Transport::WebSocket, now_us));
                    } else {
                        let frame = self.front.no_websocket(peer, now_us);
                        client.web.respond(now, &HttpResponse::json(status_of(&frame), &frame.bytes));
                    }
                }
                Some(ServerEvent::Request(request)) => {
                    client.stage = client.stage.after_request();
                    let number = self.front.open_from(peer, Transport::Http, now_us);
                    client.number = Some(number);
                    let call = HttpCall {
                        connection: key,
                        method: request.method(),
                        target: request.target(),
                        path: request.path(),
                        query: request
                            .query_pairs()
                            .map(|(name, value)| (name.into_owned(), value.into_owned()))
                            .collect(),
                        authorization: request.header("authorization"),
                        body: request.body(),
                    };
                    self.front.handle_http(number, &call, now_us);
                    return count + 1;
                }
                Some(ServerEvent::End(cause)) => {
                    let is_done = cause == EndCause::Done;
                    if is_done {
                        self.counters.done.add(1)
                    } else {
                        self.counters.broken.add(1)
                    }
                    self.forget(key, now);
                    return count + 1;
                }
            }
        }
        MESSAGES_PER_RUN
    }

    fn forget(&mut self, key: u64, now: Nanos) {
        self.pre_login.remove(key);
        self.anonymous.remove(key);
        if let Some(Client { number: Some(number), .. }) = self.clients.remove(&key) {
            self.front.close(number, now.0 / 1_000);
        }
    }

    /// Stores the front's records before their effects are published.
    fn keep_records(&mut self) {
        let records = self.front.poll_records();
        let files = &mut self.files;
        let mut is_lost = !records.is_empty() && !files.records.append(&records);
        if let Some((lines, is_anew)) = self.front.poll_tokens() {
            let is_kept = if is_anew { files.tokens.replace(&lines) } else { files.tokens.append(&lines) };
            is_lost |= !is_kept;
        }
        if is_lost {
            self.counters.records_lost.add(1);
            self.note_storage_error();
        }
    }

    /// Checks the disk capacity for further orders, which are rejected without it. The preallocated part is
    /// sufficient for all requests in flight.
    fn look_at_disk(&mut self) {
        let has_room = self.files.each().map(LineFile::has_room) == [true; 3];
        self.note_storage_error();
        self.counters.is_disk_full.set(u64::from(!has_room));
        self.front.set_storage(has_room);
    }

    fn note_storage_error(&mut self) {
        let error = self.files.each().into_iter().find_map(|file| file.error());
        self.counters.storage_error.set(error.map_or(0, |errno| errno as u64));
    }

    /// Stores new labels and records, then sends the front's requests to the venue.
    fn hand_over(&mut self) -> usize {
        let labels = self.front.poll_labels();
        if !labels.is_empty() {
            // Failed labels are written before the next ones, because a label's place is its number.
            self.files.labels.append(&Labels::write(labels));
        }
        self.keep_records();
        let mut count = 0;
        while let Some(request) = self.front.poll_request() {
            if let Err(request) = self.door.try_request(request) {
                self.front.give_back(request);
                break;
            }
            count += 1;
        }
        count
    }

    /// Sends queued messages that the client accepts; returns their number.
    fn write(&mut self, key: u64, now: Nanos) -> usize {
        let Some(client) = self.clients.get_mut(&key) else { return 0 };
        match client.number.and_then(|number| self.front.poll_outage(number)) {
            None => {}
            Some(Outage::Silent) => return 0,
            Some(Outage::Cut) => {
                self.counters.broken.add(1);
                self.forget(key, now);
                return 1;
            }
        }
        if client.web.has_pending() && client.web.flush() == SendOutcome::Pending {
            return self.outwait(key, now);
        }
        let Some(number) = client.number else { return 0 };
        let mut count = 0;
        // A delayed login succeeds without further input from its client.
        if client.stage == Stage::Anonymous && self.front.is_logged_in(number) {
            client.stage = Stage::LoggedIn;
            self.anonymous.remove(key);
        }
        if client.web.is_websocket() {
            let mut is_full = false;
            while !client.is_closing
                && let Some(frame) = self.front.poll_frame(number)
            {
                count += 1;
                let text = std::str::from_utf8(&frame.bytes).unwrap_or_default();
                match client.web.queue(text) {
                    SendOutcome::Sent | SendOutcome::Pending => {}
                    outcome => {
                        is_full = outcome == SendOutcome::Backpressured;
                        break;
                    }
                }
            }
            if is_full {
                // The message was lost; the client would not notice it if it stayed connected.
                self.front.counters().slow_clients.add(1);
                self.forget(key, now);
                return count;
            }
            if count > 0 {
                // The next run sends the rest.
                let _ = client.web.flush();
            }
            if let Some(reason) = self.front.poll_end(number).filter(|_| !client.is_closing) {
                let code = match reason {
                    "logout" => CLOSE_NORMAL,
                    MAINTENANCE => CLOSE_RESTART,
                    _ => CLOSE_POLICY,
                };
                client.web.close(now, code, reason);
                client.is_closing = true;
            }
        } else if let Some(frame) = self.front.poll_frame(number) {
            client.web.respond(now, &HttpResponse::json(status_of(&frame), &frame.bytes));
            client.number = None;
            self.front.close(number, now.0 / 1_000);
            count += 1;
        }
        count
    }

    /// Drops a closing client that accepts no data: a client that does not read never sees the close and
    /// would keep its queue. Returns the number of dropped clients.
    fn outwait(&mut self, key: u64, now: Nanos) -> usize {
        let Some(client) = self.clients.get_mut(&key) else { return 0 };
        let is_to_end = client.number.is_some_and(|number| self.front.end(number).is_some());
        if !is_to_end || now < *client.end_by.get_or_insert(now + END_PATIENCE) {
            return 0;
        }
        self.counters.broken.add(1);
        self.forget(key, now);
        1
    }

    /// Stores the last records and closes all connections, before the thread ends.
    fn close_all(&mut self, now: Nanos) {
        self.front.finish();
        self.keep_records();
        self.trusted.take(&mut self.front);
        for file in self.files.each() {
            // After an error the lines are still in the page cache, which survives the process.
            let _ = file.finish();
        }
        if let Some(fix) = &mut self.fix {
            fix.close_all(&mut self.front, now);
        }
        for client in self.clients.values_mut() {
            client.web.close(now, CLOSE_GOING_AWAY, "the venue stops");
            let _ = client.web.flush();
        }
        self.clients.clear();
    }
}

impl DeribitThread {
    /// Ends the thread.
    ///
    /// # Errors
    /// [`LogFeedError`] if that ended the thread earlier.
    ///
    /// # Panics
    /// If the thread panicked.
    pub fn join(mut self) -> Result<(), LogFeedError> {
        self.end().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn end(&mut self) -> thread::Result<Result<(), LogFeedError>> {
        self.stop.stop();
        let Some(handle) = self.handle.take() else { return Ok(Ok(())) };
        handle.join()
    }
}

/// Restores the front's records. If the log may have lost commands, rewrites the files and returns a message
/// for the operator.
fn recall(
    front: &mut Front,
    files: &mut SideFiles,
    kept: &Kept,
    log: LogStart,
) -> anyhow::Result<Option<String>> {
    let Some(rebased) = front.recall(&kept.records, log).context("records")? else {
        front.recall_tokens(&kept.tokens).context("tokens")?;
        return Ok(None);
    };
    front.recall_tokens(&[]).context("tokens")?;
    let (tokens, _) = front.poll_tokens().unwrap_or_default();
    // Tokens first: rewritten records no longer show that the tokens must be ended.
    files.tokens.try_replace(&tokens).context("tokens")?;
    files.records.try_replace(&rebased.lines).context("records")?;
    Ok(rebased.notice)
}

/// Reports the failure of the front if its thread panics.
struct ToldOfPanic(Arc<DoorCounters>);

impl Drop for ToldOfPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.has_failed.set(1);
        }
    }
}

impl Drop for DeribitThread {
    fn drop(&mut self) {
        // The counters contain its reason.
        let _ = self.end();
    }
}

fn status_of(frame: &Frame) -> u16 {
    let Some(code) = frame.error else { return 200 };
    STATUS_OF.iter().find(|(known, _)| *known == code).map_or(400, |(_, status)| *status)
}

/// Returns the secret random key from which tokens are generated.
fn random_key() -> io::Result<[u8; 32]> {
    use std::io::Read as _;
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}

//! The GLIMPSE server: snapshots over SoupBinTCP.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_admission::PreLoginLimits;
use tickpath_agent::WaitSet;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_nasdaq::soupbintcp::{CONTROL_LEN_MAX, LoginRejectReason, LoginRequest};
use tickpath_net::{BufferSizes, NetError, Network, SendOutcome, TcpAcceptor, TcpConnection};
use tickpath_types::{Nanos, Sequence};
use tickpath_venue::MarketImage;
use tickpath_venue::market_recovery::{RecoveryCounters, SnapshotTurns, Stage};

use super::settings::SnapshotSettings;
use crate::soup_endpoint::{SoupEndpoint, next_waiting};
use crate::soup_link::{DisconnectReason, SoupLink};

/// Size of the kernel's send buffer for one client, in bytes.
const KERNEL_LEN: usize = 64 << 10;
/// Maximum number of bytes queued for one client that the kernel has not accepted.
const PENDING_LEN: usize = 64 << 10;
/// Size of one client's receive buffer, in bytes; a client sends only a login and heartbeats.
const RECEIVE_LEN: usize = 1 << 10;
/// Maximum length of a packet, in bytes.
const PACKET_LEN_MAX: usize = 128;

struct Client<N: Network> {
    id: u64,
    link: SoupLink<N>,
    stage: Stage,
    /// Time by which the client must have received its snapshot.
    deadline: Nanos,
}

/// Sends a snapshot of the market to each client that logs in, then ends the session.
pub struct GlimpseServer<N: Network> {
    acceptor: TcpAcceptor<N>,
    clients: Vec<Client<N>>,
    turns: SnapshotTurns<Ipv4Addr>,
    next_id: u64,
    market_session: Session,
    /// False while the market state is incomplete; then logins are refused.
    is_open: bool,
    time_max: Nanos,
    counters: Arc<RecoveryCounters>,
}

impl<N: Network> GlimpseServer<N> {
    /// Listens on the configured address; port 0 takes a free port.
    ///
    /// # Errors
    /// [`NetError`] when the address is not local or is in use.
    pub fn bind(
        network: &N,
        settings: &SnapshotSettings,
        pre_login: PreLoginLimits,
        market_session: Session,
        counters: Arc<RecoveryCounters>,
    ) -> Result<GlimpseServer<N>, NetError> {
        let sizes = BufferSizes { receive: RECEIVE_LEN, pending: PENDING_LEN };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), settings.glimpse, sizes)?;
        let places = settings.max_connections + pre_login.connections;
        acceptor.reserve(places);
        let served = PreLoginLimits {
            connections: settings.max_connections,
            per_address: settings.max_connections,
            deadline: settings.time_max,
        };
        Ok(GlimpseServer {
            acceptor,
            clients: Vec::with_capacity(places),
            turns: SnapshotTurns::new(market_session, pre_login, served, Arc::clone(&counters)),
            next_id: 0,
            market_session,
            is_open: false,
            time_max: settings.time_max,
            counters,
        })
    }

    /// The listening address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Does a bounded amount of work for all clients; returns the amount of work.
    pub fn poll(&mut self, now: Nanos, image: &MarketImage) -> usize {
        let mut work = 0;
        self.is_open = image.is_complete();
        for index in 0..self.clients.len() {
            work += self.read(now, index);
        }
        // Accept last: a new connection can evict one that has not logged in, so read arrived logins first.
        work += self.accept(now);
        while let Some(id) = self.turns.poll_expired(now) {
            self.evict(id, now);
        }
        work += self.take_snapshot(now, image);
        for client in &mut self.clients {
            work += client.send(now, &self.turns);
            client.check_time(now, &self.counters);
        }
        self.release();
        work
    }

    /// Adds the acceptor to `wait`, and a short timeout while clients are connected.
    pub(super) fn wait_for(&self, wait: &mut WaitSet) {
        wait.descriptor(self.acceptor.descriptor());
        if !self.clients.is_empty() {
            wait.soon();
        }
    }

    fn read(&mut self, now: Nanos, index: usize) -> usize {
        let client = &mut self.clients[index];
        match client.read(now, &self.counters) {
            None => return 0,
            Some(None) => {}
            Some(Some(login)) => self.answer_login(now, index, &login),
        }
        if self.clients[index].stage != Stage::Login {
            self.turns.end_login(self.clients[index].id);
        }
        1
    }

    fn answer_login(&mut self, now: Nanos, index: usize, login: &LoginRequest) {
        let (id, peer) = (self.clients[index].id, *self.clients[index].link.tcp.peer_address().ip());
        let (stage, evicted) = self.turns.handle_login(now, id, peer, login, self.is_open);
        if let Some(evicted) = evicted {
            let evicted = self.clients.iter_mut().find(|client| client.id == evicted);
            evicted
                .expect("a client that is served is connected")
                .disconnect(DisconnectReason::Slow, &self.counters);
        }
        let client = &mut self.clients[index];
        client.stage = stage;
        if stage == Stage::Waiting {
            // Start at message 1: an earlier snapshot cannot be resumed, as its state no longer exists.
            client.link.soup.accept(self.market_session, Sequence(1));
        } else {
            client.link.soup.reject(LoginRejectReason::SESSION_NOT_AVAILABLE);
        }
    }

    /// Takes a snapshot of the current market for the waiting clients. If all snapshot buffers are in use, it
    /// instead disconnects the clients that have read theirs for too long. Returns the amount of work.
    fn take_snapshot(&mut self, now: Nanos, image: &MarketImage) -> usize {
        let GlimpseServer { clients, turns, counters, .. } = self;
        let waits = |client: &&mut Client<N>| client.stage == Stage::Waiting && client.link.soup.is_active();
        let mut waiting = clients.iter_mut().filter(waits).map(|client| &mut client.stage).peekable();
        if waiting.peek().is_none() || !image.is_complete() {
            return 0;
        }
        if turns.begin_snapshot(now, image, waiting) {
            return 1;
        }
        let slow = clients.iter_mut().filter(|client| client.stage.has_exceeded_turn(now));
        slow.map(|client| client.disconnect(DisconnectReason::Slow, counters)).count()
    }

    /// Removes disconnected clients, and frees snapshots without readers.
    fn release(&mut self) {
        for client in self.clients.extract_if(.., |client| client.stage == Stage::Disconnected) {
            self.turns.handle_close(client.id);
            self.acceptor.recycle(client.link.tcp);
        }
        self.turns.release(self.clients.iter().map(|client| &client.stage));
        self.counters.glimpse_connections.set(self.clients.len() as u64);
    }

    /// Ends all clients' sessions.
    pub fn close(&mut self, now: Nanos) {
        for client in &mut self.clients {
            client.end_session(now);
        }
        self.clients.clear();
    }
}

impl<N: Network> SoupEndpoint<N> for GlimpseServer<N> {
    const ACCEPTS_MAX: usize = 64;

    fn next_connection(&mut self, _now: Nanos) -> Option<TcpConnection<N>> {
        next_waiting(&mut self.acceptor)
    }

    fn victim(&self, peer: Ipv4Addr) -> Option<u64> {
        self.turns.victim(peer)
    }

    fn serve_once(&mut self, key: u64, now: Nanos) {
        if let Some(index) = self.clients.iter().position(|client| client.id == key) {
            self.read(now, index);
        }
    }

    fn evict(&mut self, key: u64, _now: Nanos) {
        self.counters.glimpse_evicted.add(1);
        self.turns.end_login(key);
        if let Some(index) = self.clients.iter().position(|client| client.id == key) {
            self.acceptor.recycle(self.clients.remove(index).link.tcp);
        }
    }

    fn admit(&mut self, tcp: TcpConnection<N>, peer: Ipv4Addr, now: Nanos) -> bool {
        // Without this limit, a slow client is still disconnected at its deadline.
        _ = tcp.limit_send_buffer(KERNEL_LEN);
        let link = SoupLink::new(tcp, now);
        let id = self.next_id;
        self.next_id += 1;
        self.turns.handle_connection(now, id, peer);
        self.clients.push(Client { id, link, stage: Stage::Login, deadline: now + self.time_max });
        true
    }
}

impl<N: Network> Client<N> {
    /// Reads from the client. `None` if there was no input; otherwise its login, if one was received.
    fn read(&mut self, now: Nanos, counters: &RecoveryCounters) -> Option<Option<LoginRequest>> {
        match self.stage {
            Stage::Refused | Stage::Disconnected => return None,
            Stage::Draining => {
                if !self.link.linger() {
                    return None;
                }
                self.stage = Stage::Disconnected;
                return Some(None);
            }
            Stage::Login | Stage::Waiting | Stage::Reading(_) => {}
        }
        match self.link.read_login(now) {
            Ok(None) => None,
            Ok(login) => Some(login),
            Err(reason) => {
                self.disconnect(reason, counters);
                Some(None)
            }
        }
    }

    /// Disconnects the client and counts the reason.
    fn disconnect(&mut self, reason: DisconnectReason, counters: &RecoveryCounters) {
        self.stage = Stage::Disconnected;
        match reason {
            DisconnectReason::Malformed => counters.glimpse_malformed.add(1),
            DisconnectReason::TimedOut | DisconnectReason::Slow => counters.glimpse_slow.add(1),
            DisconnectReason::Closed => {}
        }
    }

    /// Queues control packets and all messages that fit, passes the queue to the kernel, and returns the
    /// number of packets queued.
    fn send(&mut self, now: Nanos, turns: &SnapshotTurns<Ipv4Addr>) -> usize {
        if self.stage == Stage::Disconnected {
            return 0;
        }
        let mut count = self.queue_control(now);
        if let Stage::Reading(reading) = &mut self.stage {
            while self.link.tcp.pending_len() + PACKET_LEN_MAX <= PENDING_LEN
                && let Some(message) = turns.message(reading)
            {
                let mut packet = [0; PACKET_LEN_MAX];
                let Ok((len, _)) = self.link.soup.encode_message(now, &mut packet, message) else { break };
                if self.link.tcp.queue(&packet[..len]) != SendOutcome::Pending {
                    break;
                }
                reading.pass(message.len());
                count += 1;
            }
            if turns.message(reading).is_none() {
                self.link.soup.end_session();
                self.queue_control(now);
                self.stage = Stage::Draining;
            }
        }
        self.flush();
        count
    }

    fn queue_control(&mut self, now: Nanos) -> usize {
        let mut packet = [0; CONTROL_LEN_MAX];
        if self.link.tcp.pending_len() + CONTROL_LEN_MAX > PENDING_LEN {
            return 0;
        }
        let len = self.link.soup.poll_transmit(now, &mut packet);
        if len > 0 {
            // The queue has capacity, as checked above. The next read detects a closed connection.
            let _ = self.link.tcp.queue(&packet[..len]);
        }
        len.min(1)
    }

    fn flush(&mut self) {
        match self.link.flush() {
            Ok(true) if self.stage == Stage::Refused => self.stage = Stage::Disconnected,
            Ok(_) => {}
            Err(_) => self.stage = Stage::Disconnected,
        }
    }

    fn check_time(&mut self, now: Nanos, counters: &RecoveryCounters) {
        if self.stage != Stage::Disconnected && now >= self.deadline {
            self.disconnect(DisconnectReason::Slow, counters);
        }
    }

    fn end_session(&mut self, now: Nanos) {
        self.link.soup.end_session();
        self.queue_control(now);
        self.flush();
    }
}

//! Snapshots over SoupBinTCP, as GLIMPSE has them.

use std::net::SocketAddrV4;
use std::sync::Arc;

use tickpath_nasdaq::moldudp64::Session;
use tickpath_nasdaq::soupbintcp::{CONTROL_LEN_MAX, LoginRejectReason, ServerConfig};
use tickpath_net::{BufferSizes, NetError, Network, SendOutcome, TcpAcceptor};
use tickpath_types::{Nanos, Sequence};

use super::image::{MarketImage, next_message};
use super::{RecoveryCounters, SnapshotSettings};
use crate::soup_link::{Hangup, SoupLink};

/// Snapshots in memory at a time. Clients that log in while one is about to be taken share it; those that come when all
/// are being read wait until one has been, or its readers have had their turn.
pub(super) const SNAPSHOTS_MAX: usize = 2;
/// Connections accepted in one duty cycle.
const ACCEPTS_PER_CYCLE: usize = 16;
/// How long a snapshot may be read while others wait for room: a client that is slower is let go.
const TURN_MAX: Nanos = Nanos::from_secs(2);
/// Bytes for one client that the kernel takes before they are received.
const KERNEL_LEN: usize = 64 << 10;
/// Bytes for one client that the kernel has not taken; no message is added beyond.
const PENDING_LEN: usize = 64 << 10;
/// Bytes of a client that wait to be read: a client says little.
const RECEIVE_LEN: usize = 1 << 10;
/// A packet with the longest message.
const PACKET_LEN_MAX: usize = 128;

/// One client.
struct Client<N: Network> {
    link: SoupLink<N>,
    stage: Stage,
    /// When it must be through.
    deadline: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its login has not come.
    Login,
    /// It waits for a snapshot.
    Waiting,
    /// It has been sent this snapshot up to `place`.
    Reading {
        snapshot: usize,
        place: usize,
        since: Nanos,
    },
    /// It was refused, and that is still to be sent.
    Refused,
    /// It was given everything: what is pending is still to be sent, and the client to close its side.
    Leaving,
    Gone,
}

/// A snapshot and how many clients are being sent it.
#[derive(Default)]
struct Snapshot {
    messages: Vec<u8>,
    readers: usize,
}

/// Sends the state of the market to whoever logs in, and ends the session.
///
/// Name and password are not checked: what is told is public, and the number of connections, their time and the
/// memory for them are bounded.
pub struct GlimpseServer<N: Network> {
    acceptor: TcpAcceptor<N>,
    clients: Vec<Client<N>>,
    snapshots: [Snapshot; SNAPSHOTS_MAX],
    market_session: Session,
    max_connections: usize,
    time_max: Nanos,
    counters: Arc<RecoveryCounters>,
}

impl<N: Network> GlimpseServer<N> {
    /// Listens where the settings say; port 0 takes a free one.
    ///
    /// # Errors
    /// [`NetError`] when the address is not one of this machine, or taken.
    pub fn bind(
        network: &N,
        settings: &SnapshotSettings,
        market_session: Session,
        counters: Arc<RecoveryCounters>,
    ) -> Result<GlimpseServer<N>, NetError> {
        let sizes = BufferSizes { receive: RECEIVE_LEN, pending: PENDING_LEN };
        let mut acceptor = TcpAcceptor::bind_on(network.clone(), settings.glimpse, sizes)?;
        acceptor.reserve(settings.max_connections);
        Ok(GlimpseServer {
            acceptor,
            clients: Vec::with_capacity(settings.max_connections),
            snapshots: Default::default(),
            market_session,
            max_connections: settings.max_connections,
            time_max: settings.time_max,
            counters,
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn local_address(&self) -> SocketAddrV4 {
        self.acceptor.local_address()
    }

    /// Serves every client a bounded amount; returns how much there was to do.
    pub fn poll(&mut self, now: Nanos, image: &MarketImage) -> usize {
        let mut work = self.accept(now);
        for client in &mut self.clients {
            work += client.read(now, self.market_session, image.is_whole(), &self.counters);
        }
        work += self.take_snapshot(now, image);
        for client in &mut self.clients {
            work += client.send(now, &self.snapshots);
            client.check_time(now, &self.counters);
        }
        self.release();
        work
    }

    fn accept(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        while count < ACCEPTS_PER_CYCLE
            && let Ok(Some(connection)) = self.acceptor.accept()
        {
            count += 1;
            if self.clients.len() == self.max_connections {
                self.counters.glimpse_refused.add(1);
                self.acceptor.take_back(connection);
                continue;
            }
            // Where it cannot be bounded the time is.
            _ = connection.limit_send_buffer(KERNEL_LEN);
            let link = SoupLink::new(connection, ServerConfig::default(), now);
            self.clients.push(Client { link, stage: Stage::Login, deadline: now + self.time_max });
        }
        count
    }

    /// Gives those who wait a snapshot of this moment, if there is room for one.
    fn take_snapshot(&mut self, now: Nanos, image: &MarketImage) -> usize {
        let waits = |client: &&mut Client<N>| client.stage == Stage::Waiting && client.link.soup.is_active();
        let mut waiting = self.clients.iter_mut().filter(waits).peekable();
        if waiting.peek().is_none() || !image.is_whole() {
            return 0;
        }
        let free = self.snapshots.iter().position(|snapshot| snapshot.readers == 0);
        let Some(snapshot) = free else {
            let counters = &self.counters;
            return self.clients.iter_mut().map(|client| client.check_turn(now, counters)).sum();
        };
        let Snapshot { messages, readers } = &mut self.snapshots[snapshot];
        messages.clear();
        image.write_all(messages);
        for client in waiting {
            client.stage = Stage::Reading { snapshot, place: 0, since: now };
            *readers += 1;
        }
        self.counters.glimpse_snapshots.add(1);
        1
    }

    /// Lets go of clients that are gone, and of snapshots that nobody reads.
    fn release(&mut self) {
        let (acceptor, counters) = (&mut self.acceptor, &self.counters);
        for client in self.clients.extract_if(.., |client| client.stage == Stage::Gone) {
            acceptor.take_back(client.link.tcp);
        }
        for (index, snapshot) in self.snapshots.iter_mut().enumerate() {
            let reads = |client: &&Client<N>| matches!(client.stage, Stage::Reading { snapshot, .. } if snapshot == index);
            snapshot.readers = self.clients.iter().filter(reads).count();
        }
        counters.glimpse_connections.set(self.clients.len() as u64);
    }

    /// Ends every session.
    pub fn close(&mut self, now: Nanos) {
        for client in &mut self.clients {
            client.leave(now);
        }
        self.clients.clear();
    }
}

impl<N: Network> Client<N> {
    fn read(&mut self, now: Nanos, market: Session, is_whole: bool, counters: &RecoveryCounters) -> usize {
        match self.stage {
            Stage::Refused | Stage::Gone => return 0,
            Stage::Leaving => {
                let has_left = self.link.linger();
                if has_left {
                    self.stage = Stage::Gone;
                }
                return has_left.into();
            }
            Stage::Login | Stage::Waiting | Stage::Reading { .. } => {}
        }
        match self.link.listen(now) {
            Ok(None) => return 0,
            Ok(Some(login)) => {
                let is_here = login.session == Session::BLANK || login.session == market;
                if is_here && is_whole {
                    counters.glimpse_logins.add(1);
                    // A snapshot that was cut off does not go on: its state is gone.
                    self.link.soup.accept(market, Sequence(1));
                    self.stage = Stage::Waiting;
                } else {
                    counters.glimpse_refused.add(1);
                    self.link.soup.reject(LoginRejectReason::SESSION_NOT_AVAILABLE);
                    self.stage = Stage::Refused;
                }
            }
            Err(hangup) => self.hang_up(hangup, counters),
        }
        1
    }

    /// The client is let go, and why is counted.
    fn hang_up(&mut self, hangup: Hangup, counters: &RecoveryCounters) {
        self.stage = Stage::Gone;
        match hangup {
            Hangup::Malformed => counters.glimpse_malformed.add(1),
            Hangup::Silent | Hangup::Slow => counters.glimpse_slow.add(1),
            Hangup::Over => {}
        }
    }

    /// Queues control packets and as many messages as there is room for, and gives them to the kernel.
    fn send(&mut self, now: Nanos, snapshots: &[Snapshot]) -> usize {
        if self.stage == Stage::Gone {
            return 0;
        }
        let mut count = self.queue_control(now);
        if let Stage::Reading { snapshot, mut place, since } = self.stage {
            let messages = &snapshots[snapshot].messages;
            while self.link.tcp.pending_len() + PACKET_LEN_MAX <= PENDING_LEN
                && let Some(message) = next_message(messages, place)
            {
                let mut packet = [0; PACKET_LEN_MAX];
                let Ok((len, _)) = self.link.soup.encode_message(now, &mut packet, message) else { break };
                if self.link.tcp.queue(&packet[..len]) != SendOutcome::Pending {
                    break;
                }
                place += 1 + message.len();
                count += 1;
            }
            self.stage = Stage::Reading { snapshot, place, since };
            if place >= messages.len() {
                self.link.soup.end_session();
                self.queue_control(now);
                self.stage = Stage::Leaving;
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
            // There is room; a connection that is closed is found by the next read.
            let _ = self.link.tcp.queue(&packet[..len]);
        }
        len.min(1)
    }

    fn flush(&mut self) {
        match self.link.flush() {
            Ok(true) if self.stage == Stage::Refused => self.stage = Stage::Gone,
            Ok(_) => {}
            Err(_) => self.stage = Stage::Gone,
        }
    }

    /// Others wait: lets it go when it has had its turn; 1 then.
    fn check_turn(&mut self, now: Nanos, counters: &RecoveryCounters) -> usize {
        match self.stage {
            Stage::Reading { since, .. } if now >= since + TURN_MAX => {
                self.hang_up(Hangup::Slow, counters);
                1
            }
            _ => 0,
        }
    }

    fn check_time(&mut self, now: Nanos, counters: &RecoveryCounters) {
        if self.stage != Stage::Gone && now >= self.deadline {
            self.hang_up(Hangup::Slow, counters);
        }
    }

    fn leave(&mut self, now: Nanos) {
        self.link.soup.end_session();
        self.queue_control(now);
        self.flush();
    }
}

//! Snapshots for books that lost messages for good: over TCP, or by multicast.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use tickpath_agent::Counter;
use tickpath_feed::{MessageBooks, SnapshotHealer, SnapshotOutcome, SnapshotScope, UpdateListener};
use tickpath_nasdaq::moldudp64::{Packet, Session};
use tickpath_nasdaq::soupbintcp::{CONTROL_LEN_MAX, ClientConfig, ClientEvent, ClientSession};
use tickpath_net::{BufferSizes, DatagramReceiver, Fill, Network, SendOutcome, TcpConnection};
use tickpath_types::{Nanos, Sequence};

use crate::senders::Senders;

/// Snapshot messages applied in one duty cycle.
const MESSAGES_PER_CYCLE: usize = 64;
/// Packets of the snapshot channel taken in one duty cycle.
const PACKETS_PER_CYCLE: usize = 4;
/// After so long without a message of a snapshot the server is given up. Signs of life heal no book.
const SILENCE_MAX: Nanos = Nanos::from_secs(2);
/// How long the snapshot channel is listened to before the server is tried again.
const CHANNEL_TURN: Nanos = Nanos::from_secs(10);
/// Time from a failure to the next try.
const RETRY_WAIT: Nanos = Nanos::from_millis(20);
/// Longest datagram of the snapshot channel.
const DATAGRAM_MAX: usize = 65_536;
/// What the client says of itself: the door of snapshots asks for no password.
const USER: &str = "FEED";

/// Where snapshots come from, and what waits meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSources {
    /// Snapshots of the market over SoupBinTCP, tried first.
    pub glimpse: Option<SocketAddrV4>,
    /// Group and port of snapshots of one instrument after another, on the interface of the lines.
    pub channel: Option<SocketAddrV4>,
    /// Addresses that may send to that group.
    pub senders: Senders,
    /// Messages held for books that wait; the oldest are dropped, and newer snapshots needed.
    pub hold_messages: usize,
}

impl SnapshotSources {
    /// None: what is lost for good leaves the books stale.
    #[must_use]
    pub const fn none() -> SnapshotSources {
        SnapshotSources { glimpse: None, channel: None, senders: Senders::any(), hold_messages: 1 << 16 }
    }

    /// True when there is one.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.glimpse.is_some() || self.channel.is_some()
    }
}

/// What came of snapshots, readable from outside.
#[derive(Default)]
pub struct SnapshotCounters {
    /// Books that wait for a snapshot.
    pub waiting: Counter,
    /// Books that a snapshot healed.
    pub healed: Counter,
    /// Connections to the snapshot server.
    pub connections: Counter,
    /// Of these, those that did not bring a snapshot to its end.
    pub failures: Counter,
    /// Times that the snapshot channel was joined.
    pub channel_joins: Counter,
    /// Snapshots that were too old.
    pub too_old: Counter,
    /// Snapshots that ended too far ahead of the lines to be believed.
    pub too_far_ahead: Counter,
    /// Snapshots that were cut off, by a lost packet or connection.
    pub abandoned: Counter,
    /// Live messages dropped because too many waited.
    pub dropped: Counter,
}

enum State<R> {
    Idle,
    /// Until then nothing is tried.
    Resting {
        until: Nanos,
        next: Source,
    },
    Connecting {
        deadline: Nanos,
    },
    Reading {
        session: Box<ClientSession>,
        deadline: Nanos,
    },
    Listening {
        receiver: Box<R>,
        next: Option<u64>,
        until: Nanos,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Glimpse,
    Channel,
}

/// What heals books, and what brings it snapshots.
pub(crate) struct Healing<N: Network> {
    pub(crate) healer: SnapshotHealer,
    pub(crate) client: SnapshotClient<N>,
}

/// Gets snapshots while books need one: from the server, and where that fails from the channel, by turns.
pub(crate) struct SnapshotClient<N: Network> {
    network: N,
    sources: SnapshotSources,
    login: ClientConfig,
    interface: Ipv4Addr,
    state: State<N::Receiver>,
    connection: Option<TcpConnection<N>>,
    buffer: Box<[u8]>,
    counters: Arc<SnapshotCounters>,
}

impl<N: Network> SnapshotClient<N> {
    pub(crate) fn new(
        network: N,
        sources: SnapshotSources,
        interface: Ipv4Addr,
        counters: Arc<SnapshotCounters>,
    ) -> SnapshotClient<N> {
        let login = ClientConfig::new(USER, "").expect("both are short enough");
        SnapshotClient::logging_in(network, sources, login, interface, counters)
    }

    /// The same, for a server that asks who it is.
    pub(crate) fn logging_in(
        network: N,
        sources: SnapshotSources,
        login: ClientConfig,
        interface: Ipv4Addr,
        counters: Arc<SnapshotCounters>,
    ) -> SnapshotClient<N> {
        let buffer = vec![0; DATAGRAM_MAX].into_boxed_slice();
        let (state, connection) = (State::Idle, None);
        SnapshotClient { network, sources, login, interface, state, connection, buffer, counters }
    }

    /// Does a bounded amount of what is needed; returns how much.
    pub(crate) fn poll(
        &mut self,
        now: Nanos,
        market: Option<Session>,
        healer: &mut SnapshotHealer,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> usize {
        if !healer.needs_snapshot() {
            self.stop(healer);
            return 0;
        }
        let Some(market) = market else { return 0 };
        let (next, work) = match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => (self.start(now, Source::Glimpse, healer), 1),
            State::Resting { until, next } if now >= until => (self.start(now, next, healer), 1),
            resting @ State::Resting { .. } => (resting, 0),
            State::Connecting { deadline } => (self.connect(now, deadline, market, healer), 0),
            State::Reading { session, deadline } => {
                self.read(now, session, deadline, market, healer, builder, out)
            }
            State::Listening { receiver, next, until } => {
                self.listen(now, receiver, next, until, market, healer, builder, out)
            }
        };
        self.state = next;
        // Nobody polls while all books are whole, so that the channel must be left now.
        if !healer.needs_snapshot() {
            self.stop(healer);
        }
        work
    }

    /// Brings the counts that others read up to date.
    pub(crate) fn publish_counters(&self, healer: &SnapshotHealer) {
        let counters = healer.counters();
        self.counters.waiting.set(healer.waiting().into());
        self.counters.healed.set(counters.healed);
        self.counters.too_old.set(counters.too_old);
        self.counters.too_far_ahead.set(counters.too_far_ahead);
        self.counters.abandoned.set(counters.abandoned);
        self.counters.dropped.set(counters.dropped);
    }

    fn stop(&mut self, healer: &mut SnapshotHealer) {
        if !matches!(self.state, State::Idle) {
            self.state = State::Idle;
            self.close(healer);
        }
    }

    fn close(&mut self, healer: &mut SnapshotHealer) {
        healer.abandon();
        if let Some(connection) = &mut self.connection {
            connection.close();
        }
    }

    /// The wanted source, or the other one where there is but one.
    fn start(&mut self, now: Nanos, wanted: Source, healer: &mut SnapshotHealer) -> State<N::Receiver> {
        match (wanted, self.sources.glimpse, self.sources.channel) {
            (Source::Glimpse, Some(server), _) | (_, Some(server), None) => {
                self.counters.connections.add(1);
                let begun = match &mut self.connection {
                    Some(connection) => connection.start_connecting(server),
                    connection => {
                        TcpConnection::begin_on(self.network.clone(), server, BufferSizes::default())
                            .map(|begun| *connection = Some(begun))
                    }
                };
                match begun {
                    Ok(()) => State::Connecting { deadline: now + SILENCE_MAX },
                    Err(_) => self.fail(now, healer),
                }
            }
            (_, _, Some(group)) => match self.network.receiver(group, self.interface) {
                Ok(receiver) => {
                    self.counters.channel_joins.add(1);
                    State::Listening { receiver: Box::new(receiver), next: None, until: now + CHANNEL_TURN }
                }
                Err(_) => State::Resting { until: now + SILENCE_MAX, next: Source::Glimpse },
            },
            (_, None, None) => State::Idle,
        }
    }

    /// The server did not do it: the channel's turn.
    fn fail(&mut self, now: Nanos, healer: &mut SnapshotHealer) -> State<N::Receiver> {
        self.counters.failures.add(1);
        self.close(healer);
        State::Resting { until: now + RETRY_WAIT, next: Source::Channel }
    }

    fn connect(
        &mut self,
        now: Nanos,
        deadline: Nanos,
        market: Session,
        healer: &mut SnapshotHealer,
    ) -> State<N::Receiver> {
        let Some(connection) = &mut self.connection else { return State::Idle };
        match connection.poll_connected() {
            Ok(true) => {
                let mut config = self.login;
                config.login.session = market;
                config.login.sequence = Sequence(1);
                State::Reading {
                    session: Box::new(ClientSession::new(config, now)),
                    deadline: now + SILENCE_MAX,
                }
            }
            Ok(false) if now < deadline => State::Connecting { deadline },
            _ => self.fail(now, healer),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the state's parts, and what every state is given")]
    fn read(
        &mut self,
        now: Nanos,
        mut session: Box<ClientSession>,
        mut deadline: Nanos,
        market: Session,
        healer: &mut SnapshotHealer,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> (State<N::Receiver>, usize) {
        let Some(connection) = &mut self.connection else { return (State::Idle, 0) };
        let mut packet = [0; CONTROL_LEN_MAX];
        let len = session.poll_transmit(now, &mut packet);
        let is_sent = len == 0
            || matches!(connection.send(&packet[..len]), Ok(SendOutcome::Sent | SendOutcome::Pending));
        let is_closed = matches!(connection.fill(), Ok(Fill::Closed) | Err(_));
        let mut count = 0;
        while count < MESSAGES_PER_CYCLE {
            let (event, used) = match session.handle_bytes(now, connection.received()) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(_) => return (self.fail(now, healer), 1),
            };
            count += 1;
            match event {
                ClientEvent::LoginAccepted { session, .. } if session == market => {
                    healer.begin(SnapshotScope::Market);
                }
                ClientEvent::Message { message, .. } => {
                    deadline = now + SILENCE_MAX;
                    match healer.handle_snapshot(SnapshotScope::Market, message, builder, out) {
                        None => {}
                        Some(SnapshotOutcome::Healed(_)) => {
                            connection.close();
                            return (State::Idle, count);
                        }
                        // The channel may know better.
                        Some(SnapshotOutcome::TooFarAhead) => return (self.fail(now, healer), count),
                        // It was taken too early: the next one will not be.
                        Some(SnapshotOutcome::TooOld | SnapshotOutcome::Ignored) => {
                            self.close(healer);
                            return (
                                State::Resting { until: now + RETRY_WAIT, next: Source::Glimpse },
                                count,
                            );
                        }
                    }
                }
                ClientEvent::Heartbeat | ClientEvent::Debug(_) | ClientEvent::Unsequenced(_) => {}
                ClientEvent::LoginAccepted { .. }
                | ClientEvent::LoginRejected(_)
                | ClientEvent::EndOfSession => return (self.fail(now, healer), count),
            }
            connection.consume(used);
        }
        let is_cut_off = is_closed && count == 0;
        if !is_sent || is_cut_off || now >= deadline {
            return (self.fail(now, healer), 1);
        }
        (State::Reading { session, deadline }, count)
    }

    #[expect(clippy::too_many_arguments, reason = "the state's parts, and what every state is given")]
    fn listen(
        &mut self,
        now: Nanos,
        mut receiver: Box<N::Receiver>,
        mut next: Option<u64>,
        until: Nanos,
        market: Session,
        healer: &mut SnapshotHealer,
        builder: &mut impl MessageBooks,
        out: &mut impl UpdateListener,
    ) -> (State<N::Receiver>, usize) {
        let mut count = 0;
        while count < PACKETS_PER_CYCLE
            && let Ok(Some(received)) = receiver.recv(&mut self.buffer)
        {
            count += 1;
            let Ok(packet) = Packet::parse(&self.buffer[..received.len]) else { continue };
            if packet.session() != market || !self.sources.senders.allows(*received.from.ip()) {
                continue;
            }
            if next.is_some_and(|next| next != packet.sequence().0) {
                healer.abandon();
            }
            next = Some(packet.next_sequence().0);
            for (_, message) in packet.messages() {
                healer.handle_snapshot(SnapshotScope::Instrument, message, builder, out);
            }
        }
        if now >= until && self.sources.glimpse.is_some() {
            healer.abandon();
            return (State::Resting { until: now, next: Source::Glimpse }, count);
        }
        (State::Listening { receiver, next, until }, count)
    }
}
